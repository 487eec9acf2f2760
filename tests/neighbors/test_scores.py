import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import average_precision_score, roc_auc_score

from skawhmm.neighbors import (
    average_precision,
    precision_at_k,
    retrieval_auc,
    retrieval_curve,
)


@pytest.fixture(params=["distinct", "tied", "infinite"])
def retrieval(request, rng):
    distances = rng.random((12, 12))
    if request.param == "tied":
        distances = rng.integers(0, 4, size=(12, 12)).astype(float)
    if request.param == "infinite":
        distances[distances > 0.6] = np.inf
    return distances, np.array(["a", "b", "c"])[np.arange(12) % 3]


def others(values, n):
    return np.delete(values, n)


def ranked(distances):
    # Scores in the order of the distances, finite for scikit-learn.
    return -np.unique(distances, return_inverse=True)[1].reshape(distances.shape)


def test_scores_of_each_query_agree_with_sklearn(retrieval):
    distances, y = retrieval
    for scores, oracle in (
        (average_precision(distances, y), average_precision_score),
        (retrieval_auc(distances, y), roc_auc_score),
    ):
        wanted = [
            oracle(others(y == y[n], n), ranked(others(distances[n], n)))
            for n in range(12)
        ]
        assert_allclose(scores, wanted)


def test_scores_do_not_depend_on_the_order_of_items(retrieval, rng):
    distances, y = retrieval
    order = rng.permutation(12)
    shuffled = distances[np.ix_(order, order)]
    for score in (average_precision, retrieval_auc, precision_at_k):
        assert_allclose(score(shuffled, y[order]), score(distances, y)[order])
    curves = [
        retrieval_curve(d, z)[1] for d, z in ((distances, y), (shuffled, y[order]))
    ]
    assert_allclose(*curves)


def test_curve_of_one_query_by_hand():
    # Relevant items come first, third and fourth.
    distances, y = np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]), np.array([1, 0, 1, 1, 0])
    recall, precision = retrieval_curve(distances, y, [1], n_levels=4)
    assert_allclose(recall, [0, 1 / 3, 2 / 3, 1])
    assert_allclose(precision, [1, 1, 2 / 3, 3 / 4])
    assert_allclose(average_precision(distances, y, [1]), (1 + 2 / 3 + 3 / 4) / 3)
    assert_allclose(precision_at_k(distances, y, [1], n_retrieved=2), 1 / 2)


def test_perfect_and_worst_retrieval():
    y = np.repeat([0, 1], 4)
    distances = (y[:, None] != y).astype(float)
    assert_array_equal(retrieval_curve(distances, y)[1], 1)
    assert_array_equal(retrieval_auc(distances, y), 1)
    assert_array_equal(retrieval_auc(-distances, y), 0)
    assert_array_equal(precision_at_k(1 - distances, y, n_retrieved=3), 0)


def test_ties_share_the_last_places():
    # One of the two items at the second place is relevant.
    distances, y = [[0.0, 1.0, 1.0, 2.0]], [1, 1, 0, 0]
    assert_allclose(precision_at_k(distances, y, [1], n_retrieved=2), 0.75)


def test_queries_without_relevant_items_have_no_score(rng):
    distances = rng.random((4, 4))
    y = np.array([0, 0, 0, 1])
    assert_array_equal(np.isnan(average_precision(distances, y)), y == 1)
    assert np.isnan(retrieval_auc(distances, y)[3])
    assert np.isfinite(retrieval_curve(distances, y)[1]).all()


def test_asking_for_more_items_than_there_are_takes_all(rng):
    distances, y = rng.random((5, 5)), np.array([0, 0, 1, 1, 1])
    assert_allclose(
        precision_at_k(distances, y, n_retrieved=9), [1 / 4] * 2 + [1 / 2] * 3
    )


@pytest.mark.parametrize(
    ("distances", "y", "message"),
    [
        (np.zeros((3, 2)), [0, 1], "distances must have shape"),
        ([[0, np.nan], [1, 0]], [0, 1], "got NaN in row 0, column 1"),
        ([[0.0]], [0], "at least 2 items"),
    ],
)
def test_bad_input_is_named(distances, y, message):
    with pytest.raises(ValueError, match=message):
        retrieval_auc(distances, y)


def test_the_number_of_items_is_given_by_name():
    distances = 1.0 - np.eye(3)
    with pytest.raises(TypeError, match=r"y_query must .* got 5\..* n_retrieved=5"):
        precision_at_k(distances, [0, 0, 1], 5)


@pytest.mark.parametrize("score", [average_precision, precision_at_k, retrieval_auc])
def test_labels_and_distances_are_named(score):
    distances = 1.0 - np.eye(3)
    for y in (5, "abc", [0, 1], {0, 1, 2}, [[0], [1], [2]]):
        with pytest.raises(
            (TypeError, ValueError), match=r"^y must hold one label per"
        ):
            score(distances, y)
    for wrong in ("far", None, distances.astype(str), distances.astype("M8[s]")):
        with pytest.raises(
            (TypeError, ValueError), match=r"^distances must be an array"
        ):
            score(wrong, [0, 0, 1])
    with pytest.raises(ValueError, match="at least 2 items, got 0"):
        score(np.empty((0, 0)), [])


@pytest.mark.parametrize("score", [average_precision, retrieval_auc, precision_at_k])
def test_labels_of_two_types_are_refused(score):
    # As strings and integers, no item would be relevant for any query.
    with pytest.raises(
        ValueError, match=r"y_query must hold labels of the type .* in y"
    ):
        score([[1.0, 2], [2, 1]], ["0", "1"], [0, 1])
    assert_array_equal(score([[1.0, 2], [2, 1]], [0, 1], [0.0, 1.0]), [1, 1])


@pytest.mark.parametrize(
    ("y", "y_query", "name"),
    [([0, np.nan], None, "y"), ([0, 1], [0, np.nan], "y_query")],
)
def test_missing_labels_are_refused(y, y_query, name):
    with pytest.raises(ValueError, match=f"^{name} must .* label .* nan at index 1"):
        average_precision([[1.0, 2], [2, 1]], y, y_query)
