"""Averages and clusters of models."""

from skawhmm.cluster._barycenter import hmm_barycenter
from skawhmm.cluster._estimators import HMMKMeans, HMMKMedoids

__all__ = [
    "HMMKMeans",
    "HMMKMedoids",
    "hmm_barycenter",
]
