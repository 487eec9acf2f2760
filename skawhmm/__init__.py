"""Compare time series by the hidden Markov models behind them."""

from skawhmm._aggregated import IAW, MAW
from skawhmm._barycenter import hmm_barycenter
from skawhmm._class_distance import HMMClassDistance
from skawhmm._cluster import HMMKMeans, HMMKMedoids
from skawhmm._coupling import TransitionCoupling
from skawhmm._displays import AlphaCurveDisplay, RetrievalDisplay
from skawhmm._divergence import KL
from skawhmm._embedding import HMMEmbedding, make_classifier
from skawhmm._map_display import HMMMapDisplay
from skawhmm._matrix_display import DistanceMatrixDisplay
from skawhmm._metrics import (
    average_precision,
    precision_at_k,
    retrieval_auc,
    retrieval_curve,
)
from skawhmm._models import HMMBatch
from skawhmm._neighbors import KNeighborsHMMClassifier, KNeighborsHMMRegressor
from skawhmm._neighbors_cv import KNeighborsHMMClassifierCV
from skawhmm._pairwise import (
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    pairwise_hmm_distances_chunked,
    register_states,
)
from skawhmm._pairwise_transformers import AlphaMixer, PairwiseHMMDistance
from skawhmm._preprocessing import Deltas, Framewise, TimeChannel
from skawhmm._registration_display import RegistrationDisplay
from skawhmm._retriever import HMMRetriever
from skawhmm._transformers import HMMTransformer
from skawhmm._versions import show_versions

__version__ = "0.1.0.dev0"

__all__ = [
    "IAW",
    "KL",
    "MAW",
    "AlphaCurveDisplay",
    "AlphaMixer",
    "Deltas",
    "DistanceMatrixDisplay",
    "Framewise",
    "HMMBatch",
    "HMMClassDistance",
    "HMMEmbedding",
    "HMMKMeans",
    "HMMKMedoids",
    "HMMMapDisplay",
    "HMMRetriever",
    "HMMTransformer",
    "KNeighborsHMMClassifier",
    "KNeighborsHMMClassifierCV",
    "KNeighborsHMMRegressor",
    "PairwiseHMMDistance",
    "RegistrationDisplay",
    "RetrievalDisplay",
    "TimeChannel",
    "TransitionCoupling",
    "average_precision",
    "hmm_barycenter",
    "hmm_distance",
    "make_classifier",
    "pairwise_hmm_components",
    "pairwise_hmm_distances",
    "pairwise_hmm_distances_chunked",
    "precision_at_k",
    "register_states",
    "retrieval_auc",
    "retrieval_curve",
    "show_versions",
]
