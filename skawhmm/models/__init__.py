"""HMMBatch, inference with it, its files, and exchange with hmmlearn."""

from skawhmm.models._batch import HMMBatch

__all__ = [
    "HMMBatch",
]
