import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline

from skawhmm import HMMEmbedding, make_classifier, make_regressor
from skawhmm.classification import HMMViewClassifier, HMMViewRegressor, make_views
from skawhmm.classification._estimators import calibrated_sharpness
from skawhmm.classification._ridge import dealt_folds
from skawhmm.classification._view_fit import median_gap
from skawhmm.classification._views import score_weights
from skawhmm.features import HMMClassDistance, NGrams, _view_base, _views
from skawhmm.sequences import Deltas


class Moments(TransformerMixin, BaseEstimator):
    """A cheap view: powers of the frames, averaged."""

    def __init__(self, power=1, factor=1.0):
        self.power = power
        self.factor = factor

    def fit(self, X, y=None):
        assert y is None, "views must not see the classes"
        self.n_features_ = X[0].shape[1]
        return self

    def transform(self, X):
        return self.factor * np.array([(x**self.power).mean(axis=0) for x in X])


VIEWS = [("mean", Moments()), ("square", Moments(2))]


@pytest.fixture
def problem(rng):
    """Return noisy sequences of three classes that differ in their means."""
    y = np.arange(60) % 3
    centres = rng.normal(size=(3, 4))
    X = [rng.normal(size=(9, 4)) + 0.5 * centres[c] for c in y]
    return X, np.array(["a", "b", "c"])[y]


@pytest.fixture
def small():
    return HMMViewClassifier(VIEWS, random_state=0)


def test_it_learns(problem, small):
    X, y = problem
    assert small.fit(X[:30], y[:30]).score(X[30:], y[30:]) > 0.6
    assert list(small.classes_) == ["a", "b", "c"]
    assert small.decision_function(X).shape == (60, 3)
    assert set(small.view_scores_) == {"mean", "square"}
    assert_allclose(sum(small.view_weights_.values()), 1)
    assert small.view_weights_["mean"] > small.view_weights_["square"]
    assert small.solver_ == "dual"


def test_everything_follows_its_formula(problem, small):
    # By refits of scikit-learn's ridge on standardized views.
    from sklearn.linear_model import Ridge

    X, y = problem
    small.set_params(gammas=0).fit(X, y)
    codes = np.unique(y, return_inverse=True)[1]
    targets = np.where(codes[:, None] == np.arange(3), 1.0, -1.0)
    folds = dealt_folds(codes, None, 5, np.random.RandomState(0))

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
        for alpha in _view_base.ALPHAS:
            rows = held_out(features, alpha)
            accuracy = balanced_accuracy_score(codes, rows.argmax(axis=1))
            scores.append(accuracy - 0.01 * ((rows - targets) ** 2).mean())
        return max(scores), _view_base.ALPHAS[int(np.argmax(scores))]

    parts = []
    for _, view in VIEWS:
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
    assert small.alpha_ == alpha
    ridge = Ridge(alpha=alpha, solver="cholesky").fit(whole, targets)
    assert_allclose(small.decision_function(X), ridge.predict(whole), atol=1e-8)


def test_primal_and_dual_agree(problem, small):
    X, y = problem
    dual = clone(small).set_params(gammas=0).fit(X[:40], y[:40])
    for rank in (None, 512, 4):
        primal = clone(dual).set_params(solver="primal", max_rank=rank)
        primal.fit(X[:40], y[:40])
        assert primal.solver_ == "primal"
        assert primal.alpha_ == dual.alpha_
        assert_allclose(primal.inner_score_, dual.inner_score_, atol=1e-8)
        assert_allclose(
            primal.decision_function(X), dual.decision_function(X), atol=1e-8
        )
    fewer = clone(dual).set_params(solver="primal", max_rank=2).fit(X[:40], y[:40])
    assert np.abs(fewer.decision_function(X) - dual.decision_function(X)).max() > 1e-3


def test_a_full_basis_loses_nothing(problem):
    # Fewer sequences than features: principal coordinates span all of them.
    X, y = problem
    views = [("wide", HMMEmbedding((2, 3), random_state=0))]
    dual = HMMViewClassifier(views, gammas=0, random_state=0).fit(X[:20], y[:20])
    primal = clone(dual).set_params(solver="primal", max_rank=30).fit(X[:20], y[:20])
    assert primal._decision.views[0].basis.shape[1] <= 20
    assert_allclose(primal.decision_function(X), dual.decision_function(X), atol=1e-7)


def test_many_sequences_go_to_the_primal_solver(problem, small, monkeypatch):
    X, y = problem
    monkeypatch.setattr(_view_base, "DUAL_SEQUENCES", 39)
    monkeypatch.setattr(_views, "SEQUENCE_BLOCK", 7)
    monkeypatch.setattr(_views, "FIT_SEQUENCES", 10)
    many = clone(small).fit(X[:40], y[:40])
    assert many.solver_ == "primal"
    monkeypatch.undo()
    dual = clone(small).set_params(gammas=0, solver="dual").fit(X[:40], y[:40])
    assert_allclose(many.decision_function(X), dual.decision_function(X), atol=1e-8)
    for gammas in ((0.5, 2), (0, 0.1)):
        with pytest.raises(ValueError, match="gammas must be 0, the linear kernel"):
            small.set_params(solver="primal", gammas=gammas).fit(X, y)


def test_a_radial_kernel_can_be_chosen(rng):
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
        radial.gamma_ / median_gap(gaps),
        rtol=1e-9,
    )


def test_equal_scores_keep_the_linear_kernel(rng):
    X = [np.full((3, 1), c) + 0.01 * rng.normal(size=(3, 1)) for c in (0.0, 1.0) * 10]
    y = np.arange(20) % 2
    model = HMMViewClassifier([("mean", Moments())], gammas=(0, 1e-9), random_state=0)
    constant = [np.zeros((3, 1))] * 20
    assert model.fit(constant, y).gamma_ == 0
    assert_array_equal(model.view_scores_["mean"], model.inner_score_)
    assert model.fit(X, y).score(X, y) == 1


def test_permuted_labels_give_chance(rng):
    X = [rng.normal(size=(8, 3)) for _ in range(240)]
    y = rng.permutation(np.arange(240) % 4)
    model = HMMViewClassifier(VIEWS, random_state=0).fit(X[:120], y[:120])
    assert abs(model.score(X[120:], y[120:]) - 0.25) < 0.12
    assert model.inner_score_ < 0.42


def test_a_channel_that_is_new_in_the_test_part_changes_nothing(problem):
    # The second channel tells the class in one fold only.
    X, y = problem
    codes = np.unique(y, return_inverse=True)[1]
    folds = dealt_folds(codes, None, 5, np.random.RandomState(0))
    leak = np.zeros(60)
    leak[folds[2]] = 5.0 * (codes[folds[2]] + 1)
    wide = [
        np.column_stack([x, np.full(len(x), v)]) for x, v in zip(X, leak, strict=True)
    ]
    fixed = {"alphas": 0.1, "gammas": 0, "random_state": 0}
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


def test_views_do_not_see_the_classes(problem):
    X, y = problem
    views = [("classes", HMMClassDistance())]
    with pytest.raises(ValueError, match="requires y to be passed"):
        HMMViewClassifier(views).fit(X, y)


def test_groups_stay_together(rng):
    # Each subject has an offset of its own: only inner folds by subject see that the
    # mean does not help.
    subjects = np.repeat(np.arange(10), 6)
    y = subjects % 2
    X = [rng.normal(loc=7.0 * (37 * s % 10), size=(5, 1)) for s in subjects]
    model = HMMViewClassifier([("mean", Moments())], gammas=2.0, random_state=0)
    assert clone(model).fit(X, y).inner_score_ > 0.9
    assert clone(model).fit(X, y, groups=subjects).inner_score_ < 0.8
    splitter = clone(model).set_params(cv=GroupKFold(5))
    assert splitter.fit(X, y, groups=subjects).inner_score_ < 0.8


def test_inner_folds_hold_each_sequence_once(problem, small):
    X, y = problem
    splits = list(KFold(3).split(X))
    one, two = (
        clone(small).set_params(cv=cv).fit(X, y).inner_score_
        for cv in (KFold(3), splits)
    )
    assert one == two
    with pytest.raises(
        ValueError, match="folds of cv must be at least 2 and hold each"
    ):
        small.set_params(cv=ShuffleSplit(3)).fit(X, y)
    with pytest.raises(ValueError, match="folds of cv must be at least 2"):
        small.set_params(cv=5).fit(X, y, groups=np.zeros(60))


def test_small_classes(problem, small):
    X, y = problem
    y = y.astype(object)
    y[:] = np.where(np.arange(60) < 40, "a", "b")
    y[0] = "c"
    small.fit(X, y.astype(str))
    assert_array_equal(small.classes_, ["a", "b", "c"])
    assert np.isfinite(small.inner_score_)
    assert HMMViewClassifier(VIEWS).fit(X[:2], ["a", "b"]).predict(X).shape == (60,)


def test_folds_of_one_class(problem, small):
    # Without a fold, only the other class is left.
    X, _ = problem
    y = np.arange(20) < 10
    cv = [(np.arange(10, 20), np.arange(10)), (np.arange(10), np.arange(10, 20))]
    assert small.set_params(cv=cv).fit(X[:20], y).inner_score_ < 0.1
    assert small.predict(X).shape == (60,)


def test_one_class_is_refused(problem, small):
    X, _ = problem
    with pytest.raises(ValueError, match="at least 2 classes in y, got 1 class"):
        small.fit(X, ["a"] * 60)
    with pytest.raises(ValueError, match=r"at least 2 sequences, got n_samples = 1"):
        HMMViewRegressor(VIEWS).fit(X[:1], [1.0])


def test_class_weights(rng):
    y = (np.arange(80) < 8).astype(int)
    X = [rng.normal(size=(4, 1)) + 0.8 * c for c in y]
    view = [("mean", Moments())]
    hits = {}
    for weight in ("balanced", None, {0: 1.0, 1: 10.0}):
        model = HMMViewClassifier(view, class_weight=weight, gammas=0, random_state=0)
        hits[str(weight)] = model.fit(X, y).predict(X).sum()
    assert hits["None"] < hits["balanced"]
    assert hits["{0: 1.0, 1: 10.0}"] >= hits["balanced"] - 1


def test_the_units_of_a_view_change_nothing(problem):
    X, y = problem
    views = [("mean", Moments()), ("square", Moments(2, factor=1e4))]
    one = HMMViewClassifier(VIEWS, random_state=0).fit(X, y)
    two = HMMViewClassifier(views, random_state=0).fit(X, y)
    assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-9)


def test_score_weights_by_hand():
    weights = score_weights(np.array([0.9, 0.9 - 0.02 * np.log(3)]), 0.02)
    assert_allclose(weights, [0.75, 0.25])


def test_probabilities(problem, small):
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


def test_sharpness_has_the_least_loss(rng):
    codes = rng.integers(3, size=500)
    decisions = rng.normal(size=(500, 3))
    decisions[np.arange(500), codes] += 0.8
    # The log odds of such decisions are 0.8 times their differences.
    weights = np.ones(500)
    assert_allclose(calibrated_sharpness(decisions, codes, weights), 0.8, atol=0.15)
    assert calibrated_sharpness(20 * decisions, codes, weights) < 0.05
    certain = np.eye(3)[codes]
    assert 1 < calibrated_sharpness(certain, codes, weights) < 20


def test_parameters_of_views(problem, small):
    X, y = problem
    small.set_params(square__power=3, cv=3)
    assert small.views[1][1].power == 3
    assert small.get_params()["square__power"] == 3
    small.set_params(mean=Moments(4))
    assert [view.power for _, view in small.views] == [4, 3]
    with pytest.raises(ValueError, match="Invalid parameter"):
        small.set_params(other__power=3)
    grid = {"mean__power": [1, 2]}
    model = HMMViewClassifier([("mean", Moments())], random_state=0)
    assert GridSearchCV(model, grid, cv=3).fit(X, y).best_params_ == {"mean__power": 1}


def test_it_works_with_scikit_learn(problem, small):
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


def test_jobs_and_pickles_change_nothing(problem, small):
    X, y = problem
    expected = small.fit(X, y).decision_function(X)
    again = pickle.loads(pickle.dumps(small))
    assert_array_equal(again.decision_function(X), expected)
    parallel = clone(small).set_params(n_jobs=2).fit(X, y)
    assert_array_equal(parallel.decision_function(X), expected)


def test_progress_is_shown(problem, small, capsys):
    small.set_params(verbose=1).fit(*problem)
    shown = capsys.readouterr().err
    assert "views" in shown
    assert "kernels" in shown


def test_the_recommended_classifier_of_frames(make_sequences):
    X, y = make_sequences(n_sequences=50, n_timesteps=(30, 50))
    model = make_classifier(random_state=0)
    model.set_params(frames__n_components=(2, 4), deltas__hmmembedding__n_components=2)
    model.set_params(views=model.views[:2])
    assert model.fit(X[:30], y[:30]).score(X[30:], y[30:]) > 0.8
    # The classes differ in how fast they move.
    assert model.view_weights_["deltas"] > model.view_weights_["frames"]
    assert HMMViewClassifier().fit(X[:6], y[:6]).predict(X[:2]).shape == (2,)


def test_the_recommended_classifier_of_symbols(rng):
    # Equal shares of letters; one class has runs of them.
    X, y = [], np.arange(40) % 2
    for c in y:
        turns = rng.random(60) < (0.2 if c else 0.5)
        X.append("".join("ab"[k] for k in np.cumsum(turns) % 2))
    model = make_classifier("categorical", random_state=0)
    model.set_params(states__n_components=(2, 4))
    assert model.fit(X[:24], y[:24]).score(X[24:], y[24:]) > 0.8
    assert model.view_weights_["symbols"] < 0.1
    codes = [np.array(["ab".index(s) for s in x]) for x in X]
    again = clone(model).fit(codes[:24], y[:24])
    assert_array_equal(again.decision_function(codes), model.decision_function(X))
    assert model.predict(["xyz"]).shape == (1,)
    with pytest.raises(ValueError, match="emission must be one of"):
        make_views("poisson")


def test_sparse_views(rng):
    y = np.arange(30) % 2
    X = [
        "".join(rng.choice(list("ab"), p=p, size=20))
        for p in ([0.3, 0.7], [0.6, 0.4]) * 15
    ]
    dense = [("pairs", NGrams(sparse_output=False))]
    one = HMMViewClassifier([("pairs", NGrams())], random_state=0).fit(X, y)
    two = HMMViewClassifier(dense, random_state=0).fit(X, y)
    assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-9)


def test_numbers_are_predicted(rng):
    y = rng.normal(size=80)
    X = [rng.normal(loc=[v, 0.0], size=(12, 2)) for v in y]
    model = HMMViewRegressor(VIEWS, random_state=0).fit(X[:50], y[:50])
    assert model.score(X[50:], y[50:]) > 0.7
    assert model.view_weights_["mean"] > 0.99
    assert abs(model.inner_score_ - model.score(X[50:], y[50:])) < 0.25
    both = np.stack([y, -y], axis=1)
    double = HMMViewRegressor(VIEWS, random_state=0).fit(X[:50], both[:50])
    assert_allclose(double.predict(X)[:, 0], model.predict(X), atol=1e-9)
    assert_allclose(double.predict(X)[:, 1], -model.predict(X), atol=1e-9)
    same = HMMViewRegressor(VIEWS, random_state=0).fit(X[:50], np.ones(50))
    assert_allclose(same.predict(X), 1)


def test_the_recommended_regressor(make_sequences):
    X, y = make_sequences(n_sequences=40)
    model = make_regressor(random_state=0)
    assert [name for name, _ in model.views] == ["frames", "deltas", "lags", "position"]
    model.set_params(views=[("frames", HMMEmbedding(2, random_state=0))])
    assert model.fit(X, y.astype(float)).predict(X).shape == (40,)
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(X, None)


@pytest.mark.parametrize("gammas", [0, 2.0])
def test_shares_follow_their_definition(problem, small, gammas):
    X, y = problem
    small.set_params(gammas=gammas).fit(X, y)
    found = small.explain(X[:5], by=("view", "feature"))
    assert found.labels[:2] == ["mean 0", "mean 1"]
    assert found.shares.shape == (5, 8, 3)
    assert_allclose(found.decisions, small.decision_function(X[:5]))
    assert_array_equal(found.classes, small.classes_)
    # Put one feature at its mean, and decide again.
    rows = [view.transform(X) for _, view in small.views_]
    parts = [row[:5].copy() for row in rows]
    parts[1][:, 2] = rows[1][:, 2].mean()
    changed = small._decision.decide(parts)
    assert_allclose(found.shares[:, 6], found.decisions - changed, atol=1e-10)


def test_shares_of_a_linear_kernel_add_up(problem, small):
    X, y = problem
    small.set_params(gammas=0).fit(X, y)
    finest, coarse = (small.explain(X, by=by) for by in ("feature", "view"))
    totals = coarse.shares.sum(axis=1)
    assert_allclose(finest.shares.sum(axis=1), totals, atol=1e-10)
    constants = coarse.decisions - totals
    assert_allclose(constants, np.tile(constants[0], (60, 1)), atol=1e-10)


def test_groups_are_read_off_names(make_sequences):
    X, y = make_sequences(n_sequences=20)
    lags = make_pipeline(Deltas(lags=(1, 2)), HMMEmbedding((1, 2), random_state=0))
    model = HMMViewClassifier([("lags", lags)], random_state=0).fit(X, y)
    by_channel = model.explain(X[:1], by="channel").labels
    assert by_channel == ["x0", "x1", "x0_lag1", "x1_lag1", "x0_lag2", "x1_lag2"]
    blocks = model.explain(X[:1]).labels
    assert blocks == ["lags means", "lags scales", "lags thirds"]
    states = model.explain(X[:1], by=("reference", "state")).labels
    assert states == ["r0 s0", "r1 s0", "r1 s1"]
    assert model.explain(X[:1], by="view").labels == ["lags"]
    for wrong, kind in (("states", ValueError), ((), ValueError)):
        with pytest.raises(kind, match=r"^by must"):
            model.explain(X[:1], by=wrong)


def test_features_without_such_names_are_others(problem, small):
    X, y = problem
    assert small.fit(X, y).explain(X[:1], by="block").labels == ["other"]
