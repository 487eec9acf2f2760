import pickle
import re
import warnings

import numpy as np
import pytest
from hmmlearn.hmm import GMMHMM
from hmmlearn.vhmm import VariationalGaussianHMM
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skawhmm.distances._pairwise import pairwise_hmm_distances
from skawhmm.emissions import Gaussian
from skawhmm.fitting import _transformer
from skawhmm.fitting._transformer import HMMTransformer
from skawhmm.models._batch import HMMBatch
from skawhmm.models._inference import log_likelihood
from skawhmm.neighbors._scores import retrieval_auc

COVARIANCE_TYPES = ["diag", "full", "spherical", "tied"]
ARRAYS = ("transmats", "means", "covars", "weights", "startprobs")


def make_sequences(rng, n_sequences=12, n_features=2):
    """Two classes that differ in their means; lengths differ."""
    X, y = [], np.arange(n_sequences) % 2
    for label in y:
        path = np.repeat(rng.integers(2, size=8), rng.integers(3, 8, size=8))
        centers = np.array([[0.0, 3.0], [1.0, 6.0]])[label]
        X.append(centers[path][:, None] + rng.normal(size=(len(path), n_features)))
    return X, y


def test_docstring_groups_every_parameter_once():
    _, groups = HMMTransformer.__doc__.split("by what they govern:")
    groups = groups[: groups.index("Parameters\n")]
    assert sorted(re.findall(r"`(\w+)`", groups)) == sorted(
        HMMTransformer().get_params()
    )


class MeanClassifier(ClassifierMixin, BaseEstimator):
    """Nearest class by the mean of a model, the least a pipeline can end with."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        values = self.values(X)
        self.centers_ = np.array([values[y == c].mean(axis=0) for c in self.classes_])
        return self

    def values(self, X):
        return np.einsum("nk,nkc->nc", X.weights, X.means)

    def predict(self, X):
        gaps = self.values(X)[:, None] - self.centers_
        return self.classes_[(gaps**2).sum(axis=2).argmin(axis=1)]


def assert_same(a, b):
    for name in ARRAYS:
        assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_one_model_a_sequence(rng, covariance_type):
    X, _ = make_sequences(rng)
    models = HMMTransformer(2, covariance_type, random_state=0).fit_transform(X)
    assert isinstance(models, HMMBatch)
    assert len(models) == len(X)
    stored = "diag" if covariance_type in {"diag", "spherical"} else "full"
    assert models.covariance_type == stored
    assert_array_equal(models.info["n_timesteps"], [len(x) for x in X])
    names = {"converged", "n_iter", "log_likelihood", "n_timesteps", "n_trials"}
    assert set(models.info) == names
    scores = log_likelihood(models, X)
    assert_allclose(np.diag(scores), models.info["log_likelihood"])
    assert (scores.argmax(axis=1) == np.arange(len(X))).mean() > 0.8


def test_forms_of_input_agree(rng):
    X = rng.normal(size=(4, 30, 2))
    transformer = HMMTransformer(2, random_state=0)
    wanted = transformer.fit_transform(X)
    ragged = np.empty(4, object)
    ragged[:] = list(X)
    padded = np.full((4, 35, 2), np.nan)
    padded[:, :30] = X
    fortran = [np.asfortranarray(x) for x in X]
    for form in (list(X), ragged, padded, fortran):
        assert_same(transformer.fit_transform(form), wanted)
    single = [x.astype(np.float32) for x in X]
    double = [x.astype(float) for x in single]
    assert_same(transformer.fit_transform(single), transformer.fit_transform(double))
    counts = [np.round(9 * x).astype(int) for x in X]
    floats = [x.astype(float) for x in counts]
    assert_same(transformer.fit_transform(counts), transformer.fit_transform(floats))


@pytest.mark.parametrize("pooled", [{}, {"prior": "pooled"}, {"init": "pooled"}])
def test_results_do_not_depend_on_jobs_or_company(rng, pooled):
    X, _ = make_sequences(rng)
    transformer = HMMTransformer(2, random_state=3, **pooled).fit(X)
    models = transformer.transform(X)
    assert_same(transformer.transform(X[::-1]), models[::-1])
    assert_same(transformer.transform(X[4:6]), models[4:6])
    assert_same(clone(transformer).set_params(n_jobs=2).fit_transform(X), models)
    with parallel_config(backend="loky", n_jobs=2):
        assert_same(transformer.transform(X), models)


def test_random_state(rng):
    X = [rng.normal(size=(40, 2)) for _ in range(6)]
    first = HMMTransformer(4, random_state=1).fit_transform(X)
    assert_same(HMMTransformer(4, random_state=1).fit_transform(X), first)
    other = HMMTransformer(4, random_state=2).fit_transform(X)
    assert (other.means != first.means).any()
    state = np.random.RandomState(5)
    assert len(HMMTransformer(2, random_state=state).fit_transform(X)) == 6
    free = HMMTransformer(4).fit(X)
    assert_same(free.transform(X), free.transform(X))


def test_pipeline_search_and_validation_take_lists(rng):
    X, y = make_sequences(rng, 24)
    pipeline = make_pipeline(HMMTransformer(2, random_state=0), MeanClassifier())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9
    grid = {
        "hmmtransformer__n_components": [1, 2],
        "hmmtransformer__prior": [None, "pooled"],
    }
    with parallel_config("threading", n_jobs=2):
        search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    assert search.predict(X).shape == (24,)


def test_clone_and_pickle(rng):
    X, _ = make_sequences(rng)
    transformer = HMMTransformer(2, prior="pooled", random_state=0).fit(X)
    again = pickle.loads(pickle.dumps(transformer))
    assert_same(again.transform(X), transformer.transform(X))
    assert clone(transformer).get_params() == transformer.get_params()
    assert "HMMTransformer(" in repr(transformer)


def test_weights(rng):
    X, _ = make_sequences(rng)
    occupancy = HMMTransformer(2, random_state=0).fit_transform(X)
    stationary = HMMTransformer(2, weights="stationary", random_state=0).fit_transform(
        X
    )
    assert_array_equal(stationary.transmats, occupancy.transmats)
    moved = np.einsum("nk,nkj->nj", stationary.weights, stationary.transmats)
    assert_allclose(moved, stationary.weights, atol=1e-12)
    assert np.abs(occupancy.weights - stationary.weights).max() > 0.01


def test_uniform_weights_are_divided_among_existing_states(rng):
    X = [rng.normal(size=(40, 2)) for _ in range(5)] + [np.zeros((7, 2)), np.eye(2)]
    with pytest.warns(UserWarning, match="fewer distinct frames"):
        models = HMMTransformer(3, weights="uniform", random_state=0).fit_transform(X)
    assert_allclose(models.weights[:5], 1 / 3)
    assert_allclose(models.weights[5:], [[1, 0, 0], [0.5, 0.5, 0]])
    pooled = HMMTransformer(2, weights="uniform", prior="pooled", random_state=0).fit(X)
    assert_allclose(pooled.pooled_model_.weights, 0.5)


def test_uniform_weights_distinguish_classes_that_noisy_occupancies_mix(rng):
    """Two kinds of sequences with the same fractions of states in the long run."""
    X, y = [], np.repeat([0, 1], 20)
    for kind in y:
        path = np.cumsum(rng.random(60) < 0.05) % 2
        gap = (3.0, 4.0)[kind]
        X.append(rng.normal(gap * path[:, None] + [0.0, 1.0], 1.0))
        X[-1][:2] = [[0, 1], [gap, gap + 1]]
    found = {}
    for weights in ("occupancy", "uniform"):
        models = HMMTransformer(2, weights=weights, random_state=0).fit_transform(X)
        distances = pairwise_hmm_distances(models, alpha=0.0)
        found[weights] = retrieval_auc(distances, y).mean()
    assert found["uniform"] > found["occupancy"] + 0.2


def test_pooled_model_sees_training_data_only(rng):
    X, _ = make_sequences(rng)
    transformer = HMMTransformer(2, prior="pooled", random_state=0).fit(X[:6])
    before = transformer.pooled_model_.means.copy()
    transformer.transform([x + 100 for x in X[6:]])
    assert_array_equal(transformer.pooled_model_.means, before)
    assert HMMTransformer(2).fit(X).pooled_model_ is None


def test_short_sequences_are_announced_once(rng):
    X = [rng.normal(size=(n, 2)) for n in (1, 2, 30)]
    with pytest.warns(UserWarning, match=r"2 of 3 .* X\[0\] with 1") as record:
        models = HMMTransformer(3, random_state=0).fit_transform(X)
    assert len(record) == 1
    assert_array_equal(models.n_components, [1, 2, 3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HMMTransformer(3, prior="pooled", random_state=0).fit_transform(X)
        HMMTransformer("bic", random_state=0).fit_transform(X)


def test_missing_channels_are_zero_or_masked(rng):
    X, _ = make_sequences(rng, 3)
    X[1][:, 0] = np.nan
    zero = HMMTransformer(2, random_state=0).fit_transform(X)
    assert zero.observed is None
    assert_array_equal(zero.means[1, :, 0], 0)
    common = HMMTransformer(2, missing="common", random_state=0).fit_transform(X)
    assert_array_equal(common.observed, [[True, True], [False, True], [True, True]])


@pytest.mark.parametrize("init", ["kmeans", "pooled"])
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_hmmlearn_engine_ends_near_ours(rng, covariance_type, init):
    X, _ = make_sequences(rng, 4)
    ours, theirs = (
        HMMTransformer(2, covariance_type, engine=e, init=init, random_state=0)
        for e in ("batched", "hmmlearn")
    )
    ours, theirs = ours.fit_transform(X), theirs.fit_transform(X)
    # hmmlearn's prior on covariances stays on, so its fits are a little lower.
    gap = ours.info["log_likelihood"] - theirs.info["log_likelihood"]
    assert (gap > -1e-3).all()
    assert (gap < 10).all()


@pytest.mark.parametrize("engine", [VariationalGaussianHMM(), GMMHMM(n_mix=2)])
def test_hmmlearn_estimators_are_engines(rng, engine):
    X, _ = make_sequences(rng, 3)
    transformer = HMMTransformer(2, engine=engine, random_state=0)
    models = transformer.fit_transform(X)
    assert_array_equal(models.n_components, 2 * getattr(engine, "n_mix", 1))
    assert_allclose(np.diag(log_likelihood(models, X)), models.info["log_likelihood"])
    assert_same(clone(transformer).fit_transform(X), models)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_components": 0}, ValueError, "n_components"),
        ({"n_components": "mdl"}, ValueError, "n_components.*'mdl'"),
        ({"covariance_type": "round"}, ValueError, "covariance_type.*'round'"),
        ({"covariance_type": ["diag"]}, ValueError, "covariance_type"),
        ({"topology": "ring"}, ValueError, "topology.*'ring'"),
        ({"init": "random"}, ValueError, "init.*'random'"),
        ({"prior": "flat"}, ValueError, "prior.*'flat'"),
        ({"weights": "equal"}, ValueError, "weights.*'equal'"),
        ({"missing": "drop"}, ValueError, "missing.*'drop'"),
        ({"relevance": 0}, ValueError, "relevance"),
        ({"emission": Gaussian(reg_covar=-1.0)}, ValueError, "reg_covar"),
        ({"emission": Gaussian("round")}, ValueError, "covariance_type.*'round'"),
        ({"emission": Gaussian}, TypeError, r"emission.*Gaussian\(\)"),
        ({"emission": 3}, TypeError, "emission.*3"),
        (
            {"emission": Gaussian(), "covariance_type": "full"},
            ValueError,
            "covariance_type must be 'diag' with emission=Gaussian",
        ),
        ({"max_iter": -1}, ValueError, "max_iter"),
        ({"n_init": 1.5}, TypeError, "n_init"),
        ({"engine": "gpu"}, ValueError, "engine.*'gpu'"),
        ({"engine": 3}, TypeError, "engine.*int"),
        ({"engine": "hmmlearn", "prior": "pooled"}, ValueError, "prior must be None"),
        ({"engine": GMMHMM(), "topology": "linear"}, ValueError, "topology must be"),
    ],
)
def test_parameters_are_checked_in_fit(parameters, error, message):
    transformer = HMMTransformer(**parameters)
    with pytest.raises(error, match=message):
        transformer.fit([np.ones((5, 2))])


@pytest.mark.parametrize(
    "parameters",
    [
        {"covariance_type": "full"},
        {"covariance_type": "tied"},
        {"engine": "hmmlearn"},
    ],
)
def test_unfittable_input_is_named(rng, parameters):
    X = [rng.normal(size=(20, 2)) for _ in range(3)]
    X[1][4, 1] = np.nan
    transformer = HMMTransformer(2, **parameters).fit(X)
    with pytest.raises(
        ValueError, match=r"1 NaN among 20 values of channel 1 of X\[1\]"
    ):
        transformer.transform(X)


def test_feature_counts_are_held(rng):
    transformer = HMMTransformer(2).fit([rng.normal(size=(9, 2))])
    with pytest.raises(ValueError, match="X has 3 features, but HMMTransformer"):
        transformer.transform([rng.normal(size=(9, 3))])


def test_parameters_set_after_fit_are_checked(rng):
    X = [rng.normal(size=(30, 2)) for _ in range(3)]
    hmm = HMMTransformer(2).fit(X).set_params(n_mix=0)
    with pytest.raises(ValueError, match="n_mix must be an integer of at least 1"):
        hmm.transform(X)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_a_pooled_start_gives_identical_results_alone_and_in_a_batch(
    rng, covariance_type
):
    X = [np.round(rng.normal(size=(n, 7))) for n in (5, 10, 10, 6)]
    hmm = HMMTransformer(1, covariance_type, init="pooled", random_state=3).fit(X)
    together = hmm.transform(X)
    for n in range(len(X)):
        alone = hmm.transform(X[n : n + 1])
        assert_array_equal(alone.means, together[n : n + 1].means)
        assert_array_equal(alone.covars, together[n : n + 1].covars)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_models_adapted_to_equal_channels(covariance_type):
    # The pooled states are flat, and rounding made them less than that.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = [np.repeat(3 * rng.normal(size=(n, 1)) + 2, 2, axis=1) for n in (5, 7)]
        hmm = HMMTransformer(
            3,
            emission=Gaussian(covariance_type, reg_covar=0),
            prior="pooled",
            random_state=0,
        )
        models = hmm.fit_transform(X)
        assert_allclose(models.means[..., 0], models.means[..., 1], rtol=1e-6)
        assert np.isfinite(models.info["log_likelihood"]).all()


def test_models_own_the_sequences_they_keep(make_sequences):
    X, _ = make_sequences(3)
    models = HMMTransformer(2, keep_sequences=True, random_state=0).fit_transform(X)
    wanted = [x.copy() for x in X]
    for x in X:
        x[:] = 0
    for own, x in zip(models.sequences, wanted, strict=True):
        np.testing.assert_array_equal(own, x)
        with pytest.raises(ValueError, match="read-only"):
            own[0] = 0


@pytest.mark.parametrize(
    ("emission", "backend", "n_frames", "expected"),
    [
        ("bernoulli", "threading", 50, 1),
        ("bernoulli", "threading", 5000, 2),
        ("bernoulli", "loky", 50, 2),
        ("categorical", "threading", 50, 2),
    ],
)
def test_short_units_are_given_to_threads_if_em_is_compiled(
    emission, backend, n_frames, expected, monkeypatch, rng
):
    asked = []

    def completed(function, shared, tasks, *, n_jobs, **_):
        asked.append(n_jobs)
        return [function(shared, *task) for task in tasks]

    monkeypatch.setattr(_transformer, "completed", completed)
    X = list(rng.integers(0, 2, (4, n_frames, 1)))
    with parallel_config(backend):
        HMMTransformer(
            2, emission=emission, max_iter=2, n_jobs=2, random_state=0
        ).fit_transform(X)
    assert asked[-1] == expected


def test_arrays_and_columns_of_fitted_models_are_read_only(make_sequences):
    models = HMMTransformer(2, random_state=0).fit_transform(make_sequences()[0])
    parts = {**models._arrays(), **models.info}
    del parts["observed"]  # made anew by each call
    assert "log_likelihood" in parts
    for name, array in parts.items():
        assert not array.flags.writeable, name
