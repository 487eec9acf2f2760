"""Compare time series by the hidden Markov models behind them."""

from skawhmm.cluster._barycenter import hmm_barycenter
from skawhmm.cluster._estimators import HMMKMeans, HMMKMedoids
from skawhmm.distances._coupling import TransitionCoupling
from skawhmm.distances._iaw import IAW
from skawhmm.distances._jaw import JAW
from skawhmm.distances._kl import KL
from skawhmm.distances._law import Law
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
from skawhmm.groups._alignment import Alignment, HMMAligner
from skawhmm.groups._effects import StateEffects, state_effects
from skawhmm.groups._results import GroupTestResult
from skawhmm.groups._tables import state_table, transition_table
from skawhmm.groups._tests import hmm_group_test
from skawhmm.groups._uncertainty import (
    DistanceInterval,
    StabilityCurve,
    distance_interval,
    stability_curve,
)
from skawhmm.models._batch import HMMBatch
from skawhmm.neighbors._cv import KNeighborsHMMClassifierCV
from skawhmm.neighbors._dynamics import dynamics_gain
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
from skawhmm.plot._curves import AlphaCurveDisplay, RetrievalDisplay
from skawhmm.plot._dynamics import DynamicsGainDisplay
from skawhmm.plot._effects import EffectsDisplay, TransitionGraphDisplay
from skawhmm.plot._explanation import ExplanationDisplay
from skawhmm.plot._group_test import GroupTestDisplay
from skawhmm.plot._map import HMMMapDisplay
from skawhmm.plot._matrix import DistanceMatrixDisplay
from skawhmm.plot._model import HMMDisplay
from skawhmm.plot._registration import RegistrationDisplay
from skawhmm.plot._sequence import SequenceDisplay
from skawhmm.plot._states import StateSummaryDisplay
from skawhmm.plot._uncertainty import DistanceIntervalDisplay, StabilityDisplay
from skawhmm.sequences._containers import as_sequences
from skawhmm.sequences._mfcc import mfcc
from skawhmm.sequences._preprocessing import Deltas, Framewise, TimeChannel
from skawhmm.utils._versions import show_versions

__version__ = "0.1.0"

__all__ = [
    "IAW",
    "JAW",
    "KL",
    "MAW",
    "Alignment",
    "AlphaCurveDisplay",
    "AlphaMixer",
    "Deltas",
    "DistanceInterval",
    "DistanceIntervalDisplay",
    "DistanceMatrixDisplay",
    "DynamicsGainDisplay",
    "EffectsDisplay",
    "Explanation",
    "ExplanationDisplay",
    "Framewise",
    "GroupTestDisplay",
    "GroupTestResult",
    "HMMAligner",
    "HMMBatch",
    "HMMClassDistance",
    "HMMDisplay",
    "HMMEmbedding",
    "HMMKMeans",
    "HMMKMedoids",
    "HMMMapDisplay",
    "HMMNoveltyDetector",
    "HMMRetriever",
    "HMMTransformer",
    "HMMViewClassifier",
    "HMMViewRegressor",
    "KNeighborsHMMClassifier",
    "KNeighborsHMMClassifierCV",
    "KNeighborsHMMRegressor",
    "Law",
    "NGrams",
    "PairwiseHMMDistance",
    "RegistrationDisplay",
    "RetrievalDisplay",
    "SequenceDisplay",
    "StabilityCurve",
    "StabilityDisplay",
    "StateEffects",
    "StateSummaryDisplay",
    "TimeChannel",
    "TransitionCoupling",
    "TransitionGraphDisplay",
    "as_sequences",
    "average_precision",
    "distance_interval",
    "dynamics_gain",
    "hmm_barycenter",
    "hmm_distance",
    "hmm_group_test",
    "make_classifier",
    "make_regressor",
    "make_views",
    "mfcc",
    "pairwise_hmm_components",
    "pairwise_hmm_distances",
    "pairwise_hmm_distances_chunked",
    "precision_at_k",
    "register_states",
    "retrieval_auc",
    "retrieval_curve",
    "show_versions",
    "stability_curve",
    "state_effects",
    "state_table",
    "transition_table",
]
