import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skawhmm._transformers import HMMTransformer

# Checks that cannot pass, each with its reason.
OUTPUT = "the output is an HMMBatch, which the check compares as an array"
COLUMNS = "the columns of a 2-D array are time steps, so their number may change"
EXPECTED_FAILURES = {
    "HMMTransformer": {
        "check_transformer_general": OUTPUT,
        "check_transformer_data_not_an_array": OUTPUT,
        "check_pipeline_consistency": OUTPUT,
        "check_estimators_pickle": OUTPUT,
        "check_methods_sample_order_invariance": OUTPUT,
        "check_methods_subset_invariance": OUTPUT,
        "check_fit_idempotent": OUTPUT,
        "check_transformer_n_iter": "every model has its own n_iter, in its info",
        "check_n_features_in": COLUMNS,
        "check_n_features_in_after_fitting": COLUMNS,
    },
}

pytestmark = pytest.mark.filterwarnings("ignore:.*fewer distinct frames.*:UserWarning")


def expected_failures(estimator):
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})


@parametrize_with_checks(
    [HMMTransformer(n_components=2)], expected_failed_checks=expected_failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
