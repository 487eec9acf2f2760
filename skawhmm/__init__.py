"""Compare time series by the hidden Markov models behind them."""

from skawhmm.cluster._barycenter import hmm_barycenter
from skawhmm.cluster._estimators import HMMKMeans, HMMKMedoids
from skawhmm.distances._coupling import TransitionCoupling
from skawhmm.distances._iaw import IAW
from skawhmm.distances._kl import KL
from skawhmm.distances._maw import MAW
from skawhmm.distances._pairwise import (
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    pairwise_hmm_distances_chunked,
    register_states,
)
from skawhmm.features._class_distance import HMMClassDistance
from skawhmm.features._embedding import HMMEmbedding
from skawhmm.features._explanation import Explanation
from skawhmm.features._ngrams import NGrams
from skawhmm.features._pairwise import AlphaMixer, PairwiseHMMDistance
from skawhmm.features._view_estimators import (
    HMMViewClassifier,
    HMMViewRegressor,
    make_classifier,
    make_regressor,
    make_views,
)
from skawhmm.fitting._transformer import HMMTransformer
from skawhmm.models._batch import HMMBatch
from skawhmm.neighbors._cv import KNeighborsHMMClassifierCV
from skawhmm.neighbors._estimators import (
    KNeighborsHMMClassifier,
    KNeighborsHMMRegressor,
)
from skawhmm.neighbors._retriever import HMMRetriever
from skawhmm.neighbors._scores import (
    average_precision,
    precision_at_k,
    retrieval_auc,
    retrieval_curve,
)
from skawhmm.plot._curves import AlphaCurveDisplay, RetrievalDisplay
from skawhmm.plot._explanation import ExplanationDisplay
from skawhmm.plot._map import HMMMapDisplay
from skawhmm.plot._matrix import DistanceMatrixDisplay
from skawhmm.plot._registration import RegistrationDisplay
from skawhmm.sequences._preprocessing import Deltas, Framewise, TimeChannel
from skawhmm.utils._versions import show_versions

__version__ = "0.1.0.dev0"

__all__ = [
    "IAW",
    "KL",
    "MAW",
    "AlphaCurveDisplay",
    "AlphaMixer",
    "Deltas",
    "DistanceMatrixDisplay",
    "Explanation",
    "ExplanationDisplay",
    "Framewise",
    "HMMBatch",
    "HMMClassDistance",
    "HMMEmbedding",
    "HMMKMeans",
    "HMMKMedoids",
    "HMMMapDisplay",
    "HMMRetriever",
    "HMMTransformer",
    "HMMViewClassifier",
    "HMMViewRegressor",
    "KNeighborsHMMClassifier",
    "KNeighborsHMMClassifierCV",
    "KNeighborsHMMRegressor",
    "NGrams",
    "PairwiseHMMDistance",
    "RegistrationDisplay",
    "RetrievalDisplay",
    "TimeChannel",
    "TransitionCoupling",
    "average_precision",
    "hmm_barycenter",
    "hmm_distance",
    "make_classifier",
    "make_regressor",
    "make_views",
    "pairwise_hmm_components",
    "pairwise_hmm_distances",
    "pairwise_hmm_distances_chunked",
    "precision_at_k",
    "register_states",
    "retrieval_auc",
    "retrieval_curve",
    "show_versions",
]
