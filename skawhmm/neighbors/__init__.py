"""Nearest models: estimators, retrieval, exact search, scores."""

from skawhmm.neighbors._cv import KNeighborsHMMClassifierCV
from skawhmm.neighbors._estimators import (
    KNeighborsHMMClassifier,
    KNeighborsHMMRegressor,
)
from skawhmm.neighbors._novelty import HMMNoveltyDetector
from skawhmm.neighbors._retriever import HMMRetriever
from skawhmm.neighbors._scores import (
    average_precision,
    precision_at_k,
    retrieval_auc,
    retrieval_curve,
)
from skawhmm.neighbors._shards import HMMShards

__all__ = [
    "HMMNoveltyDetector",
    "HMMRetriever",
    "HMMShards",
    "KNeighborsHMMClassifier",
    "KNeighborsHMMClassifierCV",
    "KNeighborsHMMRegressor",
    "average_precision",
    "precision_at_k",
    "retrieval_auc",
    "retrieval_curve",
]
