"""Transformers from models or sequences to numbers."""

from skawhmm.features._class_distance import HMMClassDistance
from skawhmm.features._embedding import HMMEmbedding
from skawhmm.features._ngrams import NGrams
from skawhmm.features._pairwise import AlphaMixer, PairwiseHMMDistance

__all__ = [
    "AlphaMixer",
    "HMMClassDistance",
    "HMMEmbedding",
    "NGrams",
    "PairwiseHMMDistance",
]
