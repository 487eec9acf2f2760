"""Sequences to try things on: generators, and readers of common formats."""

from skawhmm.datasets._generators import make_hmm_sequences

__all__ = ["make_hmm_sequences"]
