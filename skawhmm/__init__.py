"""Compare time series by the hidden Markov models behind them."""

import importlib

from skawhmm.classification import dynamics_gain, make_classifier, make_regressor
from skawhmm.cluster import HMMKMeans, HMMKMedoids, hmm_barycenter
from skawhmm.distances import (
    IAW,
    JAW,
    KL,
    MAW,
    TransitionCoupling,
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    register_states,
)
from skawhmm.features import AlphaMixer, HMMEmbedding, PairwiseHMMDistance
from skawhmm.fitting import HMMTransformer
from skawhmm.groups import hmm_group_test
from skawhmm.models import HMMBatch, as_models
from skawhmm.monitoring import HMMMonitor
from skawhmm.neighbors import (
    HMMNoveltyDetector,
    HMMRetriever,
    KNeighborsHMMClassifier,
    KNeighborsHMMClassifierCV,
    KNeighborsHMMRegressor,
)
from skawhmm.sequences import Framewise, Trials, as_sequences
from skawhmm.utils._versions import show_versions

__version__ = "0.1.0"

__all__ = [
    "IAW",
    "JAW",
    "KL",
    "MAW",
    "AlphaMixer",
    "Framewise",
    "HMMBatch",
    "HMMEmbedding",
    "HMMKMeans",
    "HMMKMedoids",
    "HMMMonitor",
    "HMMNoveltyDetector",
    "HMMRetriever",
    "HMMTransformer",
    "KNeighborsHMMClassifier",
    "KNeighborsHMMClassifierCV",
    "KNeighborsHMMRegressor",
    "PairwiseHMMDistance",
    "TransitionCoupling",
    "Trials",
    "as_models",
    "as_sequences",
    "dynamics_gain",
    "hmm_barycenter",
    "hmm_distance",
    "hmm_group_test",
    "make_classifier",
    "make_regressor",
    "pairwise_hmm_components",
    "pairwise_hmm_distances",
    "register_states",
    "show_versions",
]

# Public packages, imported when they are first used.
PACKAGES = [
    "classification",
    "cluster",
    "datasets",
    "distances",
    "emissions",
    "features",
    "fitting",
    "groups",
    "models",
    "monitoring",
    "neighbors",
    "plot",
    "sequences",
]


def __getattr__(name):
    if name in PACKAGES:
        return importlib.import_module(f"skawhmm.{name}")
    raise AttributeError(f"module 'skawhmm' has no attribute {name!r}.")


def __dir__():
    return [*globals(), *PACKAGES]
