import pickle

import numpy as np
import pytest
from helpers import Moments
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit

from skawhmm import HMMEmbedding
from skawhmm.classification import HMMViewClassifier, _base, _views
from skawhmm.classification._base import stratified_folds


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    n_folds=st.integers(2, 6),
    seed=st.integers(0, 1000),
)
def test_folds_have_equal_proportions_of_classes(sizes, n_folds, seed):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    if len(codes) < 2:
        return
    folds = stratified_folds(codes, None, n_folds, np.random.RandomState(seed))
    largest = max(sizes) if max(sizes) > 1 else len(codes)
    assert len(folds) == min(n_folds, largest)
    assert_array_equal(np.sort(np.concatenate(folds)), np.arange(len(codes)))
    counts = np.array([np.bincount(codes[f], minlength=len(sizes)) for f in folds])
    assert np.ptp(counts, axis=0).max() <= 1


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@given(n_groups=st.integers(2, 12), n_folds=st.integers(2, 6), seed=st.integers(0, 99))
def test_folds_keep_groups_together(n_groups, n_folds, seed):
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(n_groups), rng.integers(n_groups, size=30)])
    codes = rng.integers(3, size=len(groups))
    folds = stratified_folds(codes, groups, n_folds, np.random.RandomState(seed))
    assert 2 <= len(folds) <= min(n_folds, n_groups)
    assert_array_equal(np.sort(np.concatenate(folds)), np.arange(len(codes)))
    assert all(len(fold) for fold in folds)
    owners = [set(groups[fold]) for fold in folds]
    assert sum(map(len, owners)) == n_groups


def test_groups_of_one_class_are_spread_over_folds():
    groups = np.repeat(np.arange(12), 3)
    codes = groups % 3
    folds = stratified_folds(codes, groups, 4, np.random.RandomState(0))
    for fold in folds:
        assert_array_equal(np.bincount(codes[fold]), [3, 3, 3])


def test_inner_folds_keep_groups_together(rng):
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


def test_inner_folds_must_hold_each_sequence_once(problem, small):
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
        small.set_params(cv=[(np.arange(0), np.arange(60))]).fit(X, y)
    with pytest.raises(ValueError, match="groups must hold at least 2 groups"):
        small.set_params(cv=5).fit(X, y, groups=np.zeros(60))


def test_classes_of_one_member_are_learned(problem, small):
    X, _ = problem
    y = np.array(["c"] + ["a"] * 39 + ["b"] * 20)
    with pytest.warns(UserWarning, match="least populated class in y has only 1"):
        small.fit(X, y)
    assert_array_equal(small.classes_, ["a", "b", "c"])
    assert np.isfinite(small.inner_score_)
    assert small.fit(X[:2], ["a", "b"]).predict(X).shape == (60,)


def test_inner_folds_may_leave_out_a_whole_class(problem, small):
    # Without a fold, only the other class is left.
    X, _ = problem
    y = np.arange(20) < 10
    cv = [(np.arange(10, 20), np.arange(10)), (np.arange(10), np.arange(10, 20))]
    assert small.set_params(cv=cv).fit(X[:20], y).inner_score_ < 0.1
    assert small.predict(X).shape == (60,)


def test_views_and_their_parameters_are_set_by_name(problem, small):
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


def test_many_sequences_use_the_primal_solver(problem, small, monkeypatch):
    X, y = problem
    monkeypatch.setattr(_base, "DUAL_SEQUENCES", 39)
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


def test_progress_is_shown(problem, small, capsys):
    small.set_params(verbose=1).fit(*problem)
    shown = capsys.readouterr().err
    assert "views" in shown
    assert "kernels" in shown


def test_jobs_and_pickles_change_nothing(problem, small):
    X, y = problem
    expected = small.fit(X, y).decision_function(X)
    again = pickle.loads(pickle.dumps(small))
    assert_array_equal(again.decision_function(X), expected)
    parallel = clone(small).set_params(n_jobs=2).fit(X, y)
    assert_array_equal(parallel.decision_function(X), expected)


def test_views_in_a_tuple_are_replaced_by_name(views):
    model = HMMViewClassifier(tuple(views)).set_params(mean=Moments(7))
    assert [view.power for _, view in model.views] == [7, 2]
    assert [view.power for _, view in views] == [1, 2]


def test_views_may_have_names_that_a_feature_union_uses(problem):
    X, y = problem
    model = HMMViewClassifier([("transformer_weights", Moments())], random_state=0)
    model.set_params(transformer_weights__power=2)
    assert model.get_params()["transformer_weights"].power == 2
    assert model.fit(X, y).views_[0][1].power == 2


@pytest.mark.parametrize(
    "views", [3, "frames", [("a", HMMEmbedding)], [("a",)], [Moments()]]
)
def test_wrong_views_are_named_by_fit_and_not_before(problem, views):
    model = clone(HMMViewClassifier()).set_params(views=views, cv=3)
    assert model.get_params()["views"] == views
    with pytest.raises(TypeError, match=r"^views must be a list of pairs"):
        model.fit(*problem)
