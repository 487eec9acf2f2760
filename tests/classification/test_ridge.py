import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge as PlainRidge

from skawhmm.classification._ridge import (
    dealt_folds,
    dual_ridge,
    explained_variance,
    primal_ridge,
    weighted_accuracy,
)

ALPHAS = (1e-3, 1e-1, 10.0)


def drawn_problem(seed, n=24, p=7, n_classes=3, n_folds=4):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % n_classes)
    features = rng.normal(size=(n, p)) + codes[:, None] * rng.normal(size=p)
    targets = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
    weights = rng.uniform(0.2, 3.0, size=n)
    folds = dealt_folds(codes, None, n_folds, np.random.RandomState(seed))
    return features, targets, weights, folds


def refitted(features, targets, weights, folds, alpha):
    """Predictions for each fold by scikit-learn's ridge on the other rows."""
    held_out = np.empty_like(targets)
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(targets)), fold)
        ridge = PlainRidge(alpha=alpha, solver="cholesky")
        ridge.fit(features[rest], targets[rest], sample_weight=weights[rest])
        held_out[fold] = ridge.predict(features[fold])
    return held_out


def solved(solver, features, *problem):
    if solver is dual_ridge:
        return dual_ridge(features @ features.T, *problem)
    return primal_ridge(features, *problem)


@pytest.mark.parametrize("solver", [dual_ridge, primal_ridge])
@pytest.mark.parametrize("alpha", ALPHAS)
@given(seed=st.integers(0, 10**6), p=st.sampled_from([1, 7, 40]))
def test_held_out_predictions_are_those_of_refits(solver, alpha, seed, p):
    features, *problem = drawn_problem(seed, p=p)
    ridge = solved(solver, features, *problem, [alpha], weighted_accuracy)
    expected = refitted(features, *problem, alpha)
    assert_allclose(ridge.held_out, expected, rtol=1e-8, atol=1e-8)


@given(seed=st.integers(0, 10**6), p=st.sampled_from([1, 7, 40]))
def test_primal_and_dual_give_the_same_answers(seed, p):
    features, *problem = drawn_problem(seed, p=p)
    features -= features.mean(axis=0)
    dual = solved(dual_ridge, features, *problem, ALPHAS, weighted_accuracy)
    primal = solved(primal_ridge, features, *problem, ALPHAS, weighted_accuracy)
    assert dual.alpha == primal.alpha
    assert_allclose(dual.score, primal.score, atol=1e-10)
    new = np.random.default_rng(seed + 1).normal(size=(5, p))
    one = new @ features.T @ dual.coef + dual.intercept
    assert_allclose(one, new @ primal.coef + primal.intercept, atol=1e-8)


@pytest.mark.parametrize("solver", [dual_ridge, primal_ridge])
def test_the_best_penalty_is_taken(solver):
    features, *problem = drawn_problem(3, p=30)
    each = [
        solved(solver, features, *problem, [alpha], weighted_accuracy)
        for alpha in ALPHAS
    ]
    best = solved(solver, features, *problem, ALPHAS, weighted_accuracy)
    scores = [ridge.score for ridge in each]
    assert len(set(scores)) == len(ALPHAS)
    assert best.score == max(scores)
    assert best.alpha == ALPHAS[int(np.argmax(scores))]
    assert_allclose(best.coef, each[int(np.argmax(scores))].coef)


def test_the_first_of_equal_penalties_is_taken():
    features, *problem = drawn_problem(0)

    def flat(*_):
        return 0.5

    for solver in (dual_ridge, primal_ridge):
        ridge = solved(solver, features, *problem, ALPHAS, flat)
        assert ridge.alpha == ALPHAS[0]


@given(seed=st.integers(0, 10**6), shift=st.floats(-5, 5))
def test_a_shift_of_features_changes_nothing(seed, shift):
    features, *problem = drawn_problem(seed)
    here = solved(dual_ridge, features, *problem, [0.1], weighted_accuracy)
    there = solved(dual_ridge, features + shift, *problem, [0.1], weighted_accuracy)
    assert_allclose(there.held_out, here.held_out, atol=1e-7)


@pytest.mark.parametrize("solver", [dual_ridge, primal_ridge])
def test_a_channel_of_the_validation_part_changes_no_score(solver):
    # The channel tells the class, but is constant wherever it could be learned.
    features, targets, weights, folds = drawn_problem(5)
    leak = np.full((len(features), 1), 0.7)
    leak[folds[1], 0] = 0.7 + 3.0 * targets[folds[1]].argmax(axis=1)
    whole = np.hstack([features, leak])
    for alpha in ALPHAS:
        one, two = (
            solved(solver, x, targets, weights, folds, [alpha], weighted_accuracy)
            for x in (features, whole)
        )
        assert_allclose(
            two.held_out[folds[1]], one.held_out[folds[1]], rtol=1e-8, atol=1e-8
        )
        # Other folds have it in their training part.
        assert np.abs(two.held_out[folds[0]] - one.held_out[folds[0]]).max() > 1e-3


def test_two_points_by_hand():
    # Centred features -1 and 1, targets -1 and 1: the slope is 2 / (2 + alpha).
    gram = np.array([[0.0, 0.0], [0.0, 4.0]])
    targets, folds = np.array([[-1.0], [1.0]]), [np.array([0]), np.array([1])]
    ridge = dual_ridge(gram, targets, np.ones(2), folds, [2.0], explained_variance)
    new = np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 4.0]])
    assert_allclose((new @ ridge.coef + ridge.intercept)[:, 0], [-0.5, 0.0, 0.5])
    # From one point, only its own target can be said.
    assert_allclose(ridge.held_out[:, 0], [1.0, -1.0])


def test_weighted_accuracy_by_hand():
    predicted = np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    targets = np.array([[1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0]])
    weights = np.array([1.0, 2.0, 1.0])
    # Two of four parts are right; the wrong row has the squared error 4.
    assert_allclose(weighted_accuracy(predicted, targets, weights), 0.5 - 0.01 * 2.0)


def test_explained_variance_by_hand():
    targets = np.array([[0.0], [2.0]])
    assert explained_variance(targets, targets, np.ones(2)) == 1.0
    assert explained_variance(targets * 0 + 1.0, targets, np.ones(2)) == 0.0
    assert explained_variance(targets, targets * 0, np.ones(2)) == 0.0


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    n_folds=st.integers(2, 6),
    seed=st.integers(0, 1000),
)
def test_folds_share_out_classes(sizes, n_folds, seed):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    if len(codes) < 2:
        return
    folds = dealt_folds(codes, None, n_folds, np.random.RandomState(seed))
    assert len(folds) == min(n_folds, len(codes))
    assert_array_equal(np.sort(np.concatenate(folds)), np.arange(len(codes)))
    counts = np.array([np.bincount(codes[f], minlength=len(sizes)) for f in folds])
    assert np.ptp(counts, axis=0).max() <= 1
    assert np.ptp(counts.sum(axis=1)) <= 1


@given(n_groups=st.integers(2, 12), n_folds=st.integers(2, 6), seed=st.integers(0, 99))
def test_folds_keep_groups_together(n_groups, n_folds, seed):
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(n_groups), rng.integers(n_groups, size=30)])
    codes = rng.integers(3, size=len(groups))
    codes[:3] = [0, 1, 2]
    folds = dealt_folds(codes, groups, n_folds, np.random.RandomState(seed))
    assert len(folds) == min(n_folds, n_groups)
    assert_array_equal(np.sort(np.concatenate(folds)), np.arange(len(codes)))
    assert all(len(fold) for fold in folds)
    owners = [set(groups[fold]) for fold in folds]
    assert sum(map(len, owners)) == n_groups


def test_groups_even_out_the_classes():
    # Each group has one class; folds can still have all of them.
    groups = np.repeat(np.arange(12), 3)
    codes = groups % 3
    folds = dealt_folds(codes, groups, 4, np.random.RandomState(0))
    for fold in folds:
        assert_array_equal(np.bincount(codes[fold]), [3, 3, 3])
