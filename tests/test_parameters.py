"""Every parameter: wrong ones stop `fit`, others have an effect or raise."""

import copy
import pickle
from inspect import isfunction

import numpy as np
import pytest
from fuzzing.effect_values import SILENT
from fuzzing.effects import ESTIMATORS, SUBJECTS, effect, refit, refits, settings
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV

import skawhmm
from skawhmm import (
    MAW,
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
from skawhmm.emissions import Categorical
from skawhmm.features import HMMClassDistance, NGrams
from skawhmm.groups import HMMAligner
from skawhmm.sequences import Delays, Deltas, TimeChannel


class Untouchable(TransformerMixin, BaseEstimator):
    """An `hmm` that must not be fitted: all parameters are checked first."""

    def __init__(self, init="kmeans"):
        self.init = init

    def fit(self, *_, **__):
        pytest.fail("models were fitted before the parameters were checked")

    fit_transform = transform = fit


# Values that are wrong for every estimator that has the parameter.
SHARED = {
    "metric": ["far", 3, PairwiseHMMDistance],
    "alpha": [-0.1, 1.5, "much", np.nan],
    "p": [0, 2.5, "two"],
    "metric_params": [3, {"far": 1}],
    "hmm": [3, "hmm", HMMTransformer],
    "n_jobs": [0, 1.5, "all"],
    "verbose": [-1, "yes", None],
    "random_state": ["now", -1, 0.5],
}
VOTERS = {
    "n_neighbors": [0, 2.5, "few", 7],
    "weights": ["rank", 3],
    "algorithm": ["fast", None],
}
RIDGES = {
    "views": [
        *(3, [], [3], [("x",)], [("x", 3)], [("x", HMMEmbedding)], [(3, NGrams())]),
        *([("a__b", NGrams())], [("x", NGrams())] * 2, [("cv", NGrams())]),
    ],
    "penalties": [0, (), (1, -1), "small"],
    "gammas": [-1, (), (0, "wide")],
    "cv": [1, 2.5, "five", None],
    "solver": ["fast", None],
    "max_rank": [0, 2.5, "full"],
}
OWN: dict = {
    PairwiseHMMDistance: {
        "metric": ["precomputed"],
        "output": ["matrix", None],
        "gamma": [0, "auto", None, [1.0]],
    },
    AlphaMixer: {"alpha": [None]},
    HMMAligner: {
        "reference": ["mean", None, 3],
        "n_components": [0, 2.5, "few"],
        "max_distance": [-1, "far"],
        "n_resamples": [-1, 2.5],
    },
    HMMClassDistance: {
        "metric": ["precomputed"],
        "groups": [3, "all", {}, [[7]], [["x"]]],
        "hmm": [BaseEstimator()],
    },
    HMMEmbedding: {
        "n_components": [0, (), (2, 2.5), "many"],
        "relevance": [0, "low"],
        "blocks": ["mean", (), 3, (3,)],
        "emission": ["text", None],
        "reference": ["gmm", None],
        "normalize": ["yes", 1.5],
        "max_iter": [0, 2.5],
        "dtype": [int, "wide"],
    },
    HMMViewClassifier: {
        **RIDGES,
        "class_weight": ["equal", 3, {0: -1}, {0: "x"}],
    },
    HMMViewRegressor: RIDGES,
    NGrams: {
        "order": [0, 2.5, "two", (2, 1), (0, 1), (1, 2, 3)],
        "lag": [0, 2.5, "two"],
        "max_features": [0, 2.5, None],
        "n_features": [0, 2.5, "few"],
        "idf": ["yes", None, 3],
        "sparse_output": ["yes", None, 3],
    },
    HMMRetriever: {
        "n_neighbors": [0, 2.5, "few"],
        "radius": [-1, "near"],
        "algorithm": ["fast", None],
        "min_recall": [0, 1.5, "all"],
    },
    HMMNoveltyDetector: {
        "n_neighbors": [0, 2.5, "few", 6],
        "false_alarm_rate": [0, 1.5, "low"],
        "algorithm": ["fast", None],
    },
    KNeighborsHMMClassifier: VOTERS,
    KNeighborsHMMRegressor: VOTERS,
    KNeighborsHMMClassifierCV: {
        "alphas": [2, [0.5, -1], [], "all", ["x"]],
        "n_neighbors": [0, [], [1, 2.5], [7, 9], "few"],
        "weights": ["rank", np.exp],
        "scoring": ["f1", None],
    },
    HMMKMeans: {
        "metric": ["precomputed"],
        "n_clusters": [0, 2.5, "few", 7],
        "init": ["best", None],
        "n_init": [0, 2.5],
        "max_iter": [0, 2.5],
        "tol": [-1, "low"],
    },
    HMMKMedoids: {"n_clusters": [0, 2.5, "few", 7], "max_iter": [0, 2.5]},
}
PRECOMPUTED = (
    KNeighborsHMMClassifier,
    KNeighborsHMMRegressor,
    KNeighborsHMMClassifierCV,
    HMMRetriever,
    HMMNoveltyDetector,
    HMMKMedoids,
)


def wrong_values(kind):
    """Yield each parameter of an estimator with each value that is wrong for it."""
    own = OWN[kind]
    for name in kind().get_params(deep=False):
        values = SHARED.get(name, []) + own.get(name, [])
        assert values, f"no wrong value of {name} of {kind.__name__} is known"
        yield from ((name, value) for value in values)


CASES = [
    pytest.param(kind, name, value, id=f"{kind.__name__}-{name}-{value!r:.20}")
    for kind in OWN
    for name, value in wrong_values(kind)
]


@pytest.mark.parametrize(("kind", "name", "value"), CASES)
def test_wrong_parameters_stop_fit_before_any_work(
    kind, name, value, make_sequences, monkeypatch
):
    X, y = make_sequences()
    monkeypatch.setattr(
        "skawhmm.features._embedding.fit_gaussian_references", Untouchable().fit
    )
    params = {"hmm": Untouchable(), "n_neighbors": 2, "n_clusters": 2}
    known = kind().get_params(deep=False)
    params = {key: param for key, param in params.items() if key in known}
    estimator = kind(**{**params, name: value})
    with pytest.raises((TypeError, ValueError), match=rf"^{name}\b"):
        estimator.fit(np.zeros((6, 6)) if kind is AlphaMixer else X, y)


@pytest.mark.parametrize("kind", PRECOMPUTED, ids=lambda kind: kind.__name__)
def test_wrong_parameters_stop_fit_on_distances(kind):
    distances, y = np.ones((6, 6)), np.arange(6) % 2
    for name, value in wrong_values(kind):
        if value == {"far": 1}:
            # Without the name of a distance, its parameters are unknown.
            continue
        params = {"metric": "precomputed", name: value}
        with pytest.raises((TypeError, ValueError), match=rf"^{name}\b"):
            kind(**params).fit(distances, y)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (PairwiseHMMDistance("kl", output="components"), "metric must have a marginal"),
        (KNeighborsHMMClassifier(2, metric="kl", algorithm="pruned"), "^algorithm"),
        (HMMRetriever(2, p=0.5, algorithm="pruned"), "^algorithm"),
        (KNeighborsHMMClassifierCV(scoring="roc_auc"), "^scoring='roc_auc' needs"),
    ],
)
def test_incompatible_parameters_are_named(estimator, message, make_sequences):
    X, _ = make_sequences()
    estimator.set_params(hmm=Untouchable())
    with pytest.raises((TypeError, ValueError), match=message):
        estimator.fit(X, np.zeros(len(X)))


@pytest.mark.parametrize("kind", [KNeighborsHMMClassifier, KNeighborsHMMRegressor])
def test_fit_rejects_fewer_models_than_neighbors(kind, make_sequences):
    X, y = make_sequences()
    with pytest.raises(ValueError, match="n_neighbors = 7, n_samples = 6"):
        kind(7, hmm=Untouchable()).fit(X, y)


def test_retriever_may_hold_fewer_models_than_n_neighbors(make_batch):
    models = make_batch(3)
    retriever = HMMRetriever(5).fit(models)
    assert retriever.kneighbors(models, 2)[1].shape == (3, 2)
    assert retriever.radius_neighbors(models)[1].shape == (3,)
    with pytest.raises(ValueError, match="n_neighbors = 5, n_samples = 3"):
        retriever.kneighbors(models)


def outcome(estimator, X):
    """Return the output of an estimator for new input."""
    for name in ("predict_proba", "transform", "predict"):
        if hasattr(estimator, name):
            return getattr(estimator, name)(X)
    return estimator.kneighbors_graph(X, mode="distance").toarray()


SETTINGS = [
    {"alpha": 0.9},
    {"p": 2},
    {"metric": "coupling"},
    {"metric": "mmd"},
    {"metric": "jaw"},
    {"metric_params": {"rows": "hellinger"}},
    {"metric": "iaw", "metric_params": {"n_samples": 16}},
]
SEARCHED = [*SETTINGS, {"n_neighbors": 4}]
CHANGES = [
    (PairwiseHMMDistance(), [*SETTINGS, {"output": "components"}]),
    (HMMRetriever(2), SEARCHED),
    (KNeighborsHMMClassifier(2, weights="distance"), [*SEARCHED, {"weights": None}]),
    (KNeighborsHMMRegressor(2, weights="distance"), [*SEARCHED, {"weights": None}]),
]


@pytest.mark.parametrize(
    ("estimator", "change"),
    [(estimator, change) for estimator, changes in CHANGES for change in changes],
    ids=str,
)
def test_changed_parameters_take_effect_without_refit(estimator, change, make_batch):
    models, y = make_batch(n_models=24), np.arange(24) % 3
    fitted = clone(estimator).fit(models[:16], y[:16])
    before = outcome(fitted, models[16:])
    after = outcome(fitted.set_params(**change), models[16:])
    fresh = clone(estimator).set_params(**change).fit(models[:16], y[:16])
    assert_array_equal(after, outcome(fresh, models[16:]))
    assert before.shape != after.shape or np.abs(after - before).max() > 1e-6


@pytest.mark.parametrize(
    "change", [{"alpha": 0.9}, {"metric": "coupling"}, {"metric": MAW(p=2)}], ids=str
)
def test_changed_class_distances_take_effect(change, make_sequences):
    X, y = make_sequences(n_sequences=8)
    step = HMMClassDistance(hmm=HMMTransformer(2, random_state=0)).fit(X, y)
    before, after = step.transform(X), step.set_params(**change).transform(X)
    assert_array_equal(after, clone(step).fit(X, y).transform(X))
    assert np.abs(after - before).max() > 1e-6


OWN_ALPHAS = {"maw": 0.1, "iaw": 0.1, "jaw": 0.5}
MIXED = [
    PairwiseHMMDistance(),
    HMMRetriever(2),
    HMMKMeans(2, random_state=0),
    HMMKMedoids(2),
]


@pytest.mark.parametrize("estimator", MIXED, ids=str)
@pytest.mark.parametrize("metric", OWN_ALPHAS)
def test_default_alpha_comes_from_the_distance(estimator, metric, make_batch):
    X, y, alpha = make_batch(n_models=12), np.arange(12) % 3, OWN_ALPHAS[metric]
    default, same, other = (
        outcome(clone(estimator).set_params(metric=metric, **params).fit(X, y), X)
        for params in ({}, {"alpha": alpha}, {"alpha": 0.9})
    )
    assert_array_equal(default, same)
    assert np.abs(default - other).max() > 1e-6


@pytest.mark.parametrize("kind", PRECOMPUTED, ids=lambda kind: kind.__name__)
def test_components_need_alpha_and_distances_reject_it(kind, rng):
    stack, y = rng.random((12, 12, 2)), np.arange(12) % 2
    if kind is KNeighborsHMMClassifierCV:
        kind(metric="precomputed", alphas=[0.5]).fit(stack, y)
        with pytest.raises(ValueError, match=r"^alphas must be None .* got \[0\.5\]"):
            kind(metric="precomputed", alphas=[0.5]).fit(stack[..., 0], y)
        return
    small = {"false_alarm_rate": 0.5} if kind is HMMNoveltyDetector else {}
    kind(2, metric="precomputed", alpha=0.5, **small).fit(stack, y)
    with pytest.raises(ValueError, match=r"^alpha must be .* MAW and IAW use alpha=0"):
        outcome(kind(2, metric="precomputed", **small).fit(stack, y), stack)
    with pytest.raises(ValueError, match=r"^alpha must be None if X holds distances"):
        kind(2, metric="precomputed", alpha=0.5, **small).fit(stack[..., 0], y)


def test_grid_search_over_parameter_without_effect_raises(make_batch):
    models, y = make_batch(n_models=12), np.arange(12) % 2
    knn = KNeighborsHMMClassifier(1, metric="kl")
    search = GridSearchCV(knn, {"alpha": [0.1, 0.5]}, cv=2, error_score="raise")
    with pytest.raises(ValueError, match="alpha must be None with metric='kl'"):
        search.fit(models, y)


# Some contexts have short data, about which engines warn.
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", SUBJECTS)
def test_every_parameter_has_an_effect_or_raises(name):
    subject, known, showing, silent = SUBJECTS[name], {}, set(), []
    for context, parameter, values in settings(subject):
        key = str(context)
        if key not in known:
            data = context.data(np.random.default_rng(1))
            known[key] = data, subject.call(data, dict(context.params))
        found = {effect(subject, context, parameter, v, *known[key]) for v in values}
        if "effect" in found or (found == {"error"} and parameter == "emission"):
            showing.add(parameter)
        elif "ignored" in found:
            silent.append(f"{parameter} of {name}({key})")
    assert not silent
    # A parameter that raises in all contexts would be useless.
    assert showing == {*subject.parameters} - SILENT.keys()


def test_every_estimator_and_function_is_tested():
    names = {
        name
        for name in skawhmm.__all__
        if hasattr(getattr(skawhmm, name), "fit")
        or isfunction(getattr(skawhmm, name))
        or hasattr(getattr(skawhmm, name), "distances")
    }
    # Parameters of models of other tools are tested in tests/models, those of the
    # monitor, whose results are rows of a stream, in tests/monitoring.
    elsewhere = {"as_models", "HMMMonitor"}
    assert names - SUBJECTS.keys() == {"show_versions"} | elsewhere


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_set_after_fit_match_a_new_fit_or_raise(name):
    wrong = {}
    for context, parameter, value in refits(ESTIMATORS[name]):
        data = context.data(np.random.default_rng(1))
        found = refit(ESTIMATORS[name], context, parameter, value, data)
        if found not in {"effect", "error"}:
            wrong[f"{name}({context}), then {parameter}={value!r:.30}"] = found
    assert not wrong


def test_changed_parameters_of_inner_estimators_are_noticed(make_sequences):
    X, y = make_sequences()
    knn = KNeighborsHMMClassifier(2, hmm=HMMTransformer(2, random_state=0)).fit(X, y)
    wanted = knn.predict_proba(X)
    knn.set_params(hmm__n_jobs=2, hmm__verbose=0)
    assert_array_equal(knn.predict_proba(X), wanted)
    knn.set_params(hmm__n_components=3)
    with pytest.raises(ValueError, match="hmm__n_components must"):
        knn.predict(X)
    knn.set_params(hmm__n_components=np.int64(2))
    assert_array_equal(knn.predict_proba(X), wanted)
    knn.set_params(hmm=HMMTransformer(2, random_state=1))
    with pytest.raises(ValueError, match="hmm__random_state must"):
        knn.predict(X)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_remember_the_parameters_of_fit(copied, make_sequences):
    X, _ = make_sequences()
    states = HMMTransformer(2, random_state=np.random.RandomState(0)).fit(X)
    again = copied(states)
    assert_array_equal(again.transform(X).means, states.transform(X).means)
    again.set_params(covariance_type="full")
    with pytest.raises(ValueError, match="covariance_type must"):
        again.transform(X)
    states.transform(X)
    assert clone(again).fit(X).transform(X).covariance_type == "full"


def test_in_place_changes_of_parameters_are_noticed():
    costs = np.array([[0.0, 1.0], [1.0, 0.0]])
    hmm = HMMTransformer(1, emission=Categorical("ab", costs=costs))
    hmm.fit(["abab"]).transform(["ab"])
    costs[0, 1] = costs[1, 0] = 2.0
    with pytest.raises(ValueError, match="emission__costs must"):
        hmm.transform(["ab"])
    metric = MAW(0.3)
    models = HMMTransformer(1).fit_transform([np.arange(9.0) + n for n in range(6)])
    detector = HMMNoveltyDetector(2, false_alarm_rate=0.5, metric=metric).fit(models)
    metric.alpha = 0.9
    with pytest.raises(ValueError, match="metric__alpha must"):
        detector.predict(models)


def test_failed_fit_keeps_previous_parameters(make_sequences):
    X, _ = make_sequences()
    hmm = HMMTransformer(2, random_state=0).fit(X)
    wanted = hmm.transform(X)
    with pytest.raises(ValueError, match="X"):
        hmm.set_params(n_components=1).fit([])
    with pytest.raises(ValueError, match="n_components must"):
        hmm.transform(X)
    assert hmm.set_params(n_components=2).transform(X) == wanted


@pytest.mark.parametrize("kind", [PairwiseHMMDistance, HMMAligner])
def test_failed_fit_transform_keeps_previous_fit(kind, make_batch):
    models, narrow = make_batch(6), make_batch(6, n_features=1)
    step = kind().fit(models)
    before = dict(vars(step))
    changed = {"p": 2} if kind is PairwiseHMMDistance else {"n_components": 99}
    step.set_params(**changed)
    with pytest.raises((TypeError, ValueError)):
        step.fit_transform(narrow if kind is HMMAligner else [])
    assert {**vars(step), **before}.keys() == before.keys()
    assert all(vars(step)[name] is before[name] for name in before.keys() - changed)


STEPS: dict = {
    Delays: {"n": [0, 1.5, "two"]},
    Deltas: {"order": [0, 3, "two"], "lags": [0, (), 2.5]},
    TimeChannel: {"scale": [-1, np.nan, "long"]},
    Framewise: {"transformer": [3, "scale", PCA]},
    HMMTransformer: {
        "n_components": [0, 2.5, "many"],
        "covariance_type": ["round", None],
        "n_mix": [0, 2.5],
        "n_jobs": [0, "all"],
    },
}
LATER = [
    *((kind, name, value) for kind in OWN for name, value in wrong_values(kind)),
    *(
        (kind, name, value)
        for kind, known in STEPS.items()
        for name, values in known.items()
        for value in values
    ),
]


def wrong_by_itself(name, value):
    """Whether a value is wrong for any training data."""
    numbers = np.ravel(value).tolist() if name in {"n_neighbors", "n_clusters"} else []
    return name != "groups" and not {6, 7} & set(numbers)


@pytest.fixture(scope="module")
def fitted_once(make_sequences):
    """Return estimators fitted to six sequences, each once."""
    known: dict = {}

    def fitted(kind):
        if kind not in known:
            X, y = make_sequences()
            small = {
                "hmm": HMMTransformer(2, random_state=0),
                "views": [("vectors", HMMEmbedding(2, random_state=0))],
                "n_components": 2,
                "n_neighbors": 2,
                "n_clusters": 2,
                "cv": 2,
                "false_alarm_rate": 0.5,
                "random_state": 0,
            }
            names = kind().get_params(deep=False)
            params = {key: value for key, value in small.items() if key in names}
            if kind is KNeighborsHMMClassifierCV:
                params["n_neighbors"] = [1]
            if kind is NGrams:
                X = ["abab", "aabb", "abba"]
            if kind is AlphaMixer:
                X = np.ones((6, 6, 2))
            known[kind] = kind(**params).fit(X, y), X
        return known[kind]

    return fitted


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        pytest.param(*case, id=f"{case[0].__name__}-{case[1]}-{case[2]!r:.20}")
        for case in LATER
        if wrong_by_itself(*case[1:])
    ],
)
def test_wrong_parameters_set_after_fit_are_named(kind, name, value, fitted_once):
    estimator, X = fitted_once(kind)
    before = estimator.get_params(deep=False)[name]
    estimator.set_params(**{name: value})
    try:
        with pytest.raises((TypeError, ValueError), match=rf"^{name}\b"):
            outcome(estimator, X)
    finally:
        estimator.set_params(**{name: before})


def test_changed_radius_takes_effect(make_batch):
    models = make_batch(n_models=12)
    retriever = HMMRetriever(radius=0).fit(models)
    assert not any(map(len, retriever.radius_neighbors()[1]))
    retriever.set_params(radius=np.inf)
    assert {len(row) for row in retriever.radius_neighbors()[1]} == {11}


@pytest.mark.parametrize(
    "change",
    [{"relevance": 9.0}, {"blocks": "scales"}, {"normalize": False}, {"dtype": "f4"}],
    ids=str,
)
def test_changed_embedding_takes_effect(change, make_sequences):
    X, _ = make_sequences()
    embedding = HMMEmbedding((1, 2), random_state=0).fit(X)
    before, after = embedding.transform(X), embedding.set_params(**change).transform(X)
    assert_array_equal(after, clone(embedding).fit(X).transform(X))
    assert before.dtype != after.dtype or not np.array_equal(before, after)


def test_changed_alpha_takes_effect_on_precomputed_components(rng):
    stack, y = rng.random((12, 12, 2)), np.arange(12) % 2
    mixer = AlphaMixer(0.2).fit(stack).set_params(alpha=0.7)
    assert_array_equal(mixer.transform(stack), AlphaMixer(0.7).fit_transform(stack))
    given = KNeighborsHMMClassifier(3, metric="precomputed", alpha=0.2).fit(stack, y)
    fresh = clone(given).set_params(alpha=0.9).fit(stack, y)
    before = given.kneighbors()[0]
    given.set_params(alpha=0.9)
    for X in (stack, None):
        for one, two in zip(given.kneighbors(X), fresh.kneighbors(X), strict=True):
            assert_array_equal(one, two)
    assert np.abs(given.kneighbors()[0] - before).max() > 1e-6


def test_parameters_for_speed_do_not_change_results(make_batch):
    models, y = make_batch(n_models=24), np.arange(24) % 3
    knn = KNeighborsHMMClassifier(3).fit(models[:16], y[:16])
    wanted = knn.predict_proba(models[16:])
    for change in ({"n_jobs": 2}, {"algorithm": "pruned"}, {"algorithm": "brute"}):
        assert_array_equal(knn.set_params(**change).predict_proba(models[16:]), wanted)
