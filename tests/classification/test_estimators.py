import numpy as np
import pytest
from helpers import Moments
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import Ridge
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline

from skawhmm.classification import HMMViewClassifier, HMMViewRegressor
from skawhmm.classification._base import PENALTIES, stratified_folds
from skawhmm.classification._estimators import calibrated_sharpness
from skawhmm.sequences import Deltas


def test_classes_are_learned(problem, small):
    X, y = problem
    assert small.fit(X[:30], y[:30]).score(X[30:], y[30:]) > 0.6
    assert list(small.classes_) == ["a", "b", "c"]
    assert small.decision_function(X).shape == (60, 3)
    assert set(small.view_scores_) == {"mean", "square"}
    assert_allclose(sum(small.view_weights_.values()), 1)
    assert small.view_weights_["mean"] > small.view_weights_["square"]
    assert small.solver_ == "dual"


def test_scores_weights_and_decisions_match_refits_of_ridge(problem, small):
    # By refits of scikit-learn's ridge on standardized views.
    X, y = problem
    codes = np.unique(y, return_inverse=True)[1]
    targets = np.where(codes[:, None] == np.arange(3), 1.0, -1.0)
    folds = stratified_folds(codes, None, 5, np.random.RandomState(0))
    splits = [(np.setdiff1d(np.arange(60), fold), fold) for fold in folds]
    small.set_params(gammas=0, cv=splits).fit(X, y)

    def held_out(features, alpha):
        rows = np.empty_like(targets)
        for fold in folds:
            rest = np.setdiff1d(np.arange(60), fold)
            ridge = Ridge(alpha=alpha, solver="cholesky")
            ridge.fit(features[rest], targets[rest])
            rows[fold] = ridge.predict(features[fold])
        return rows

    def best(features):
        scores = []
        for alpha in PENALTIES:
            rows = held_out(features, alpha)
            accuracy = balanced_accuracy_score(codes, rows.argmax(axis=1))
            scores.append(accuracy - ((rows - targets) ** 2).mean())
        return max(scores), PENALTIES[int(np.argmax(scores))]

    parts = []
    for _, view in small.views:
        rows = clone(view).fit(X).transform(X)
        rows = rows - rows.mean(axis=0)
        parts.append(rows / np.sqrt((rows**2).sum() / 60))
    scores = np.array([best(part)[0] for part in parts])
    assert_allclose(list(small.view_scores_.values()), scores, atol=1e-8)
    weights = np.exp(scores / 0.02)
    weights /= weights.sum()
    assert_allclose(list(small.view_weights_.values()), weights, atol=1e-8)
    whole = np.hstack(
        [np.sqrt(w) * part for w, part in zip(weights, parts, strict=True)]
    )
    score, alpha = best(whole)
    assert_allclose(small.inner_score_, score, atol=1e-8)
    assert small.penalty_ == alpha
    ridge = Ridge(alpha=alpha, solver="cholesky").fit(whole, targets)
    assert_allclose(small.decision_function(X), ridge.predict(whole), atol=1e-8)


def test_permuted_labels_are_predicted_at_chance(rng, views):
    X = [rng.normal(size=(8, 3)) for _ in range(240)]
    y = rng.permutation(np.arange(240) % 4)
    model = HMMViewClassifier(views, random_state=0).fit(X[:120], y[:120])
    assert abs(model.score(X[120:], y[120:]) - 0.25) < 0.12
    assert model.inner_score_ < 0.42


def test_channel_that_is_constant_in_training_changes_nothing(problem):
    # The second channel tells the class in one fold only.
    X, y = problem
    codes = np.unique(y, return_inverse=True)[1]
    folds = stratified_folds(codes, None, 5, np.random.RandomState(0))
    leak = np.zeros(60)
    leak[folds[2]] = 5.0 * (codes[folds[2]] + 1)
    wide = [
        np.column_stack([x, np.full(len(x), v)]) for x, v in zip(X, leak, strict=True)
    ]
    fixed = {"penalties": 0.1, "gammas": 0, "random_state": 0}
    train = np.setdiff1d(np.arange(60), folds[2])
    plain, leaky = (
        HMMViewClassifier([("mean", Moments())], **fixed).fit(
            [data[i] for i in train], y[train]
        )
        for data in (X, wide)
    )
    assert_allclose(plain.inner_score_, leaky.inner_score_, rtol=1e-12)
    assert_array_equal(
        plain.predict([X[i] for i in folds[2]]),
        leaky.predict([wide[i] for i in folds[2]]),
    )


def test_one_class_is_refused(problem, small, views):
    X, _ = problem
    with pytest.raises(ValueError, match="at least 2 classes in y, got 1 class"):
        small.fit(X, ["a"] * 60)
    with pytest.raises(ValueError, match=r"at least 2 sequences, got n_samples = 1"):
        HMMViewRegressor(views).fit(X[:1], [1.0])


def test_balanced_weights_find_more_of_the_rare_class(rng):
    y = (np.arange(80) < 8).astype(int)
    X = [rng.normal(size=(4, 1)) + 0.8 * c for c in y]
    view = [("mean", Moments())]
    hits = {}
    for weight in ("balanced", None, {0: 1.0, 1: 10.0}):
        model = HMMViewClassifier(view, class_weight=weight, gammas=0, random_state=0)
        hits[str(weight)] = model.fit(X, y).predict(X).sum()
    assert hits["None"] < hits["balanced"]
    assert hits["{0: 1.0, 1: 10.0}"] >= hits["balanced"] - 1


def test_probabilities_are_calibrated(problem, small):
    X, y = problem
    probabilities = small.fit(X[:30], y[:30]).predict_proba(X[30:])
    assert_allclose(probabilities.sum(axis=1), 1)
    assert_array_equal(
        small.classes_[probabilities.argmax(axis=1)], small.predict(X[30:])
    )
    # Neither sharper nor softer ones would be better on new data, by much.
    loss = log_loss(y[30:], probabilities)
    assert loss < np.log(3)
    for factor in (0.2, 5.0):
        other = np.exp(factor * np.log(probabilities))
        other /= other.sum(axis=1, keepdims=True)
        assert loss < log_loss(y[30:], other)


def test_sharpness_minimizes_the_log_loss(rng):
    codes = rng.integers(3, size=500)
    decisions = rng.normal(size=(500, 3))
    decisions[np.arange(500), codes] += 0.8
    # The log odds of such decisions are 0.8 times their differences.
    weights = np.ones(500)
    assert_allclose(calibrated_sharpness(decisions, codes, weights), 0.8, atol=0.15)
    assert calibrated_sharpness(20 * decisions, codes, weights) < 0.05
    certain = np.eye(3)[codes]
    assert 1 < calibrated_sharpness(certain, codes, weights) < 20


def test_pipelines_searches_and_routing_work(problem, small):
    X, y = problem
    pipe = make_pipeline(Deltas(), small)
    assert cross_val_predict(pipe, X, y, cv=3).shape == (60,)
    assert cross_val_score(pipe, X, y, cv=3, scoring="neg_log_loss").mean() < 0
    groups = np.arange(60) // 4
    pipe.fit(X, y, hmmviewclassifier__groups=groups)
    calibrated = CalibratedClassifierCV(small, cv=2, ensemble=False).fit(X, y)
    assert calibrated.predict_proba(X).shape == (60, 3)
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(Deltas(), clone(small).set_fit_request(groups=True))
        search = GridSearchCV(routed, {}, cv=GroupKFold(3))
        assert search.fit(X, y, groups=groups).best_score_ > 0.3


def test_numbers_are_predicted(rng, views):
    y = rng.normal(size=80)
    X = [rng.normal(loc=[v, 0.0], size=(12, 2)) for v in y]
    model = HMMViewRegressor(views, random_state=0).fit(X[:50], y[:50])
    assert model.score(X[50:], y[50:]) > 0.7
    assert model.view_weights_["mean"] > 0.99
    assert abs(model.inner_score_ - model.score(X[50:], y[50:])) < 0.25
    both = np.stack([y, -y], axis=1)
    double = HMMViewRegressor(views, random_state=0).fit(X[:50], both[:50])
    assert_allclose(double.predict(X)[:, 0], model.predict(X), atol=1e-9)
    assert_allclose(double.predict(X)[:, 1], -model.predict(X), atol=1e-9)
    same = HMMViewRegressor(views, random_state=0).fit(X[:50], np.ones(50))
    assert_allclose(same.predict(X), 1)


def test_folds_given_by_the_user_keep_their_sequences(problem, views):
    X, y = problem
    splits = list(KFold(4).split(X))
    model = HMMViewClassifier(views, cv=splits, gammas=0, random_state=0).fit(X, y)
    order = np.random.default_rng(1).permutation(60)
    place = np.argsort(order)
    moved = [(place[train], place[test]) for train, test in splits]
    again = clone(model).set_params(cv=moved).fit([X[i] for i in order], y[order])
    assert again.inner_score_ == model.inner_score_
