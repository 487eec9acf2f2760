import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from skawhmm import (
    AlphaMixer,
    Framewise,
    HMMEmbedding,
    HMMKMeans,
    HMMKMedoids,
    HMMNoveltyDetector,
    HMMRetriever,
    HMMTransformer,
    KNeighborsHMMClassifier,
    KNeighborsHMMClassifierCV,
    KNeighborsHMMRegressor,
    PairwiseHMMDistance,
)
from skawhmm.classification import HMMViewClassifier, HMMViewRegressor
from skawhmm.features import HMMClassDistance, NGrams
from skawhmm.fitting import MarkovChainTransformer
from skawhmm.groups import HMMAligner
from skawhmm.sequences import Delays, Deltas, TimeChannel

# Checks that cannot pass, each with its reason.
OUTPUT = "the output is an HMMBatch, which the check compares as an array"
COLUMNS = "the columns of a 2-D array are time steps, so their number may change"
SQUARE = "the check passes points, not the distances that the estimator asks for"
INTEGERS = "the check subtracts a mean from symbols, which must be integers"
INFINITE = "an infinite distance is legal, as between models without common support"
MODELS_OUT = {
    "check_transformer_general": OUTPUT,
    "check_transformer_data_not_an_array": OUTPUT,
    "check_pipeline_consistency": OUTPUT,
    "check_estimators_pickle": OUTPUT,
    "check_methods_sample_order_invariance": OUTPUT,
    "check_methods_subset_invariance": OUTPUT,
    "check_fit_idempotent": OUTPUT,
}
EXPECTED_FAILURES = {
    "precomputed": {
        "check_estimators_nan_inf": INFINITE,
        "check_clustering": SQUARE,
        "check_outliers_train": SQUARE,
        "check_outliers_fit_predict": SQUARE,
    },
    "HMMAligner": MODELS_OUT,
    "NGrams": {"check_positive_only_tag_during_fit": INTEGERS},
    "MarkovChainTransformer": {
        **MODELS_OUT,
        "check_n_features_in": COLUMNS,
        "check_n_features_in_after_fitting": COLUMNS,
        "check_estimators_nan_inf": "the check passes fractions, which are not symbols",
        "check_fit2d_predict1d": "symbols have no second axis to reshape to",
    },
    "HMMTransformer": {
        **MODELS_OUT,
        "check_transformer_n_iter": "every model has its own n_iter, in its info",
        "check_n_features_in": COLUMNS,
        "check_n_features_in_after_fitting": COLUMNS,
    },
}

# Many checks fit matrices of many rows and few columns, which look like recordings.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fewer distinct frames.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:X of shape .* was read as:UserWarning"),
]


# One state and no randomness: many checks fit rows of two numbers.
HMM = HMMTransformer(n_components=1)
ESTIMATORS = [
    HMMTransformer(n_components=2),
    MarkovChainTransformer(),
    Framewise(),
    Delays(),
    Deltas(),
    TimeChannel(),
    PairwiseHMMDistance(hmm=HMM),
    PairwiseHMMDistance(hmm=HMM, output="kernel"),
    PairwiseHMMDistance(hmm=HMM, output="psd_kernel"),
    AlphaMixer(),
    HMMClassDistance(hmm=HMM),
    HMMEmbedding((1, 2), random_state=0),
    NGrams(),
    HMMViewClassifier([("frames", HMMEmbedding((1, 2), random_state=0))], cv=2),
    HMMViewRegressor([("frames", HMMEmbedding((1, 2), random_state=0))], cv=2),
    HMMRetriever(hmm=HMM),
    HMMNoveltyDetector(hmm=HMM, false_alarm_rate=0.2),
    HMMNoveltyDetector(metric="precomputed", false_alarm_rate=0.2),
    HMMAligner(hmm=HMM),
    KNeighborsHMMClassifier(hmm=HMM),
    KNeighborsHMMClassifier(metric="precomputed"),
    KNeighborsHMMRegressor(hmm=HMM),
    KNeighborsHMMClassifierCV(hmm=HMM),
    KNeighborsHMMClassifierCV(metric="precomputed"),
    HMMKMeans(3, n_init=1, hmm=HMM),
    HMMKMedoids(3, hmm=HMM),
    HMMKMedoids(3, metric="precomputed"),
]


def expected_failures(estimator):
    if get_tags(estimator).input_tags.pairwise:
        return EXPECTED_FAILURES["precomputed"]
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
