"""Sequences to try things on: generators, and readers of common formats."""

from skawhmm.datasets._generators import make_hmm_sequences
from skawhmm.datasets._mfcc import mfcc
from skawhmm.datasets._perturbations import (
    make_model_sequences,
    make_seed_models,
    make_table1_models,
)
from skawhmm.datasets._phonemes import make_phonemes

__all__ = [
    "make_hmm_sequences",
    "make_model_sequences",
    "make_phonemes",
    "make_seed_models",
    "make_table1_models",
    "mfcc",
]
