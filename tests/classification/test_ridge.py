import numpy as np
import pytest
from helpers import Moments
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import Ridge as PlainRidge

from skawhmm.classification import HMMViewClassifier, _ridge
from skawhmm.classification._base import PENALTIES as PENALTIES_TRIED
from skawhmm.classification._base import content_order
from skawhmm.classification._ridge import (
    dual_ridge,
    explained_variance,
    median_distance,
    primal_ridge,
    score_weights,
    scoring_rows,
    weighted_accuracy,
)
from skawhmm.sequences._checked import CheckedSequences

PENALTIES = (1e-3, 1e-1, 10.0)


def drawn_problem(seed, n=24, p=7, n_classes=3, n_folds=4):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % n_classes)
    features = rng.normal(size=(n, p)) + codes[:, None] * rng.normal(size=p)
    targets = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
    weights = rng.uniform(0.2, 3.0, size=n)
    folds = np.array_split(rng.permutation(n), n_folds)
    return features, targets, weights, folds


def refitted(features, targets, weights, folds, penalty):
    """Predictions for each fold by scikit-learn's ridge on the other rows."""
    held_out = np.empty_like(targets)
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(targets)), fold)
        ridge = PlainRidge(alpha=penalty, solver="cholesky")
        ridge.fit(features[rest], targets[rest], sample_weight=weights[rest])
        held_out[fold] = ridge.predict(features[fold])
    return held_out


def solved(solver, features, *problem):
    if solver is dual_ridge:
        return dual_ridge(features @ features.T, *problem)
    return primal_ridge(features, *problem)


@pytest.mark.parametrize("solver", [dual_ridge, primal_ridge])
@pytest.mark.parametrize("penalty", PENALTIES)
@given(seed=st.integers(0, 10**6), p=st.sampled_from([1, 7, 40]))
def test_held_out_predictions_are_those_of_refits(solver, penalty, seed, p):
    features, *problem = drawn_problem(seed, p=p)
    ridge = solved(solver, features, *problem, [penalty], weighted_accuracy)
    expected = refitted(features, *problem, penalty)
    assert_allclose(ridge.held_out, expected, rtol=1e-8, atol=1e-8)


@given(seed=st.integers(0, 10**6), p=st.sampled_from([1, 7, 40]))
def test_primal_and_dual_ridge_are_equal(seed, p):
    features, *problem = drawn_problem(seed, p=p)
    features -= features.mean(axis=0)
    dual = solved(dual_ridge, features, *problem, PENALTIES, weighted_accuracy)
    primal = solved(primal_ridge, features, *problem, PENALTIES, weighted_accuracy)
    assert dual.penalty == primal.penalty
    assert_allclose(dual.score, primal.score, atol=1e-10)
    new = np.random.default_rng(seed + 1).normal(size=(5, p))
    one = new @ features.T @ dual.coef + dual.intercept
    assert_allclose(one, new @ primal.coef + primal.intercept, atol=1e-8)


@pytest.mark.parametrize("solver", [dual_ridge, primal_ridge])
def test_penalty_with_the_best_score_is_chosen(solver):
    features, *problem = drawn_problem(3, p=30)
    each = [
        solved(solver, features, *problem, [penalty], weighted_accuracy)
        for penalty in PENALTIES
    ]
    best = solved(solver, features, *problem, PENALTIES, weighted_accuracy)
    scores = [ridge.score for ridge in each]
    assert len(set(scores)) == len(PENALTIES)
    assert best.score == max(scores)
    assert best.penalty == PENALTIES[int(np.argmax(scores))]
    assert_allclose(best.coef, each[int(np.argmax(scores))].coef)


def test_smallest_of_equally_good_penalties_is_chosen():
    features, *problem = drawn_problem(0)

    def flat(*_):
        return 0.5

    for solver in (dual_ridge, primal_ridge):
        ridge = solved(solver, features, *problem, PENALTIES, flat)
        assert ridge.penalty == PENALTIES[0]


@given(seed=st.integers(0, 10**6), shift=st.floats(-5, 5))
def test_predictions_do_not_depend_on_a_shift_of_features(seed, shift):
    features, *problem = drawn_problem(seed)
    here = solved(dual_ridge, features, *problem, [0.1], weighted_accuracy)
    there = solved(dual_ridge, features + shift, *problem, [0.1], weighted_accuracy)
    assert_allclose(there.held_out, here.held_out, atol=1e-7)


@pytest.mark.parametrize("solver", [dual_ridge, primal_ridge])
def test_feature_that_is_constant_without_a_fold_does_not_leak(solver):
    # The channel tells the class, but is constant wherever it could be learned.
    features, targets, weights, folds = drawn_problem(5)
    leak = np.full((len(features), 1), 0.7)
    leak[folds[1], 0] = 0.7 + 3.0 * targets[folds[1]].argmax(axis=1)
    whole = np.hstack([features, leak])
    for penalty in PENALTIES:
        one, two = (
            solved(solver, x, targets, weights, folds, [penalty], weighted_accuracy)
            for x in (features, whole)
        )
        assert_allclose(
            two.held_out[folds[1]], one.held_out[folds[1]], rtol=1e-8, atol=1e-8
        )
        # Other folds have it in their training part.
        assert np.abs(two.held_out[folds[0]] - one.held_out[folds[0]]).max() > 1e-3


def test_ridge_of_two_points_matches_a_calculation_by_hand():
    # Centred features -1 and 1, targets -1 and 1: the slope is 2 / (2 + penalty).
    gram = np.array([[0.0, 0.0], [0.0, 4.0]])
    targets, folds = np.array([[-1.0], [1.0]]), [np.array([0]), np.array([1])]
    ridge = dual_ridge(gram, targets, np.ones(2), folds, [2.0], explained_variance)
    new = np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 4.0]])
    assert_allclose((new @ ridge.coef + ridge.intercept)[:, 0], [-0.5, 0.0, 0.5])
    # From one point, only its own target can be said.
    assert_allclose(ridge.held_out[:, 0], [1.0, -1.0])


def test_weighted_accuracy_matches_a_calculation_by_hand():
    predicted = np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    targets = np.array([[1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0]])
    weights = np.array([1.0, 2.0, 1.0])
    # Two of four parts are right; the wrong row has the squared error 4.
    assert_allclose(weighted_accuracy(predicted, targets, weights), 0.5 - 2.0)


def test_explained_variance_matches_a_calculation_by_hand():
    targets = np.array([[0.0], [2.0]])
    assert explained_variance(targets, targets, np.ones(2)) == 1.0
    assert explained_variance(targets * 0 + 1.0, targets, np.ones(2)) == 0.0
    assert explained_variance(targets, targets * 0, np.ones(2)) == 0.0


def test_weights_of_views_match_a_calculation_by_hand():
    weights = score_weights(np.array([0.9, 0.9 - 0.02 * np.log(3)]))
    assert_allclose(weights, [0.75, 0.25])


def test_classifiers_with_primal_and_dual_solver_agree(problem, small):
    X, y = problem
    dual = clone(small).set_params(gammas=0).fit(X[:40], y[:40])
    for rank in (None, 512, 4):
        primal = clone(dual).set_params(solver="primal", max_rank=rank)
        primal.fit(X[:40], y[:40])
        assert primal.solver_ == "primal"
        assert primal.penalty_ == dual.penalty_
        assert_allclose(primal.inner_score_, dual.inner_score_, atol=1e-8)
        assert_allclose(
            primal.decision_function(X), dual.decision_function(X), atol=1e-8
        )
    fewer = clone(dual).set_params(solver="primal", max_rank=2).fit(X[:40], y[:40])
    assert np.abs(fewer.decision_function(X) - dual.decision_function(X)).max() > 1e-3


def test_radial_kernel_is_chosen_where_no_line_separates(rng):
    # A ring around a blob: no line separates them.
    angles = rng.uniform(0, 2 * np.pi, size=60)
    radius = np.where(np.arange(60) % 2, 3.0, 0.3)
    points = radius[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    X, y = list(np.repeat(points[:, None], 2, axis=1)), np.arange(60) % 2
    view = [("mean", Moments())]
    radial = HMMViewClassifier(view, random_state=0).fit(X[:40], y[:40])
    assert radial.gamma_ > 0
    assert radial.score(X[40:], y[40:]) == 1
    assert radial.decision_function(X).shape == (60,)
    linear = HMMViewClassifier(view, gammas=0, random_state=0).fit(X[:40], y[:40])
    assert linear.inner_score_ < 0.8
    rows = np.array(points[:40])
    gaps = ((rows[:, None] - rows) ** 2).sum(axis=2)
    assert_allclose(
        radial._decision.rate * radial._decision.views[0].scale ** -2,
        radial.gamma_ / median_distance(gaps),
        rtol=1e-9,
    )


def test_linear_kernel_is_chosen_if_scores_are_equal(rng):
    X = [np.full((3, 1), c) + 0.01 * rng.normal(size=(3, 1)) for c in (0.0, 1.0) * 10]
    y = np.arange(20) % 2
    model = HMMViewClassifier([("mean", Moments())], gammas=(0, 1e-9), random_state=0)
    constant = [np.zeros((3, 1))] * 20
    assert model.fit(constant, y).gamma_ == 0
    assert_array_equal(model.view_scores_["mean"], model.inner_score_)
    assert model.fit(X, y).score(X, y) == 1


@given(sizes=st.lists(st.integers(1, 40), min_size=2, max_size=6))
def test_views_are_scored_by_equal_fractions_of_folds(sizes):
    rows = np.random.default_rng(0).permutation(sum(sizes))
    folds = np.split(rows, np.cumsum(sizes)[:-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_ridge, "SCORED_ROWS", 30)
        chosen = scoring_rows(folds, np.random.RandomState(0))
    assert len(chosen) == min(30, sum(sizes))
    assert (np.diff(chosen) > 0).all()
    fraction = len(chosen) / sum(sizes)
    for fold in folds:
        assert abs(np.isin(fold, chosen).sum() - fraction * len(fold)) <= 1


def test_scores_by_some_sequences_are_those_of_a_problem_of_their_own(problem, views):
    X, y = problem
    order = content_order(CheckedSequences(X), np.unique(y, return_inverse=True)[1])
    X, y = [X[i] for i in order], y[order]
    folds = np.array_split(np.arange(60), 3)
    splits = [(np.setdiff1d(np.arange(60), fold), fold) for fold in folds]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_ridge, "SCORED_ROWS", 30)
        model = HMMViewClassifier(views, cv=splits, gammas=0, class_weight=None)
        model.set_params(random_state=0).fit(X, y)
        rows = scoring_rows(folds, np.random.RandomState(0))
    codes = np.unique(y, return_inverse=True)[1]
    targets = np.where(codes[:, None] == np.arange(3), 1.0, -1.0)
    for name, view in views:
        points = view.fit(X).transform(X)
        points = points - points.mean(axis=0)
        points /= np.sqrt((points**2).sum() / 60)
        own = [np.flatnonzero(np.isin(rows, fold)) for fold in folds]
        alone = primal_ridge(
            points[rows],
            targets[rows],
            np.ones(30),
            own,
            PENALTIES_TRIED,
            weighted_accuracy,
        )
        assert_allclose(model.view_scores_[name], alone.score, atol=1e-8)
    # The last ridge has all sequences.
    assert model._decision.coefs[0].shape == (4, 3)
