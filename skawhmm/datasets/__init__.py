"""Generators of sequences, and readers of common file formats."""

from skawhmm.datasets._files import data_home, load_npz
from skawhmm.datasets._generators import make_hmm_sequences
from skawhmm.datasets._mocap import load_cmu_mocap
from skawhmm.datasets._packaged import (
    load_basic_motions,
    load_gene_families,
    load_japanese_vowels,
    load_spoken_digits,
)
from skawhmm.datasets._perturbations import (
    make_model_sequences,
    make_seed_models,
    make_table1_models,
)
from skawhmm.datasets._phonemes import make_phonemes
from skawhmm.datasets._timit import load_timit
from skawhmm.datasets._ts import load_ts
from skawhmm.datasets._wav_folder import load_wav_folder

__all__ = [
    "data_home",
    "load_basic_motions",
    "load_cmu_mocap",
    "load_gene_families",
    "load_japanese_vowels",
    "load_npz",
    "load_spoken_digits",
    "load_timit",
    "load_ts",
    "load_wav_folder",
    "make_hmm_sequences",
    "make_model_sequences",
    "make_phonemes",
    "make_seed_models",
    "make_table1_models",
]
