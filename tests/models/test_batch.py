import json
import pickle
import zipfile

import joblib
import numpy as np
import pytest
from hmmlearn.hmm import GaussianHMM
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.utils import resample, shuffle

import skawhmm.models._archive as storage
from skawhmm import HMMBatch, as_models, pairwise_hmm_distances

TRANSMATS = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.5, 0.5]]])
MEANS = np.array([[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0]]])
VARIANCES = np.ones((2, 2, 2))
MATRICES = np.broadcast_to(np.eye(2), (2, 2, 2, 2))


def arguments(**changes):
    given = {"transmats": TRANSMATS, "means": MEANS, "covars": VARIANCES}
    return {**given, **changes}


def changed(array, place, value):
    array = np.array(array, dtype=float)
    array[place] = value
    return array


def test_arrays_are_what_was_given():
    models = HMMBatch(
        TRANSMATS,
        MEANS,
        VARIANCES,
        weights=[[0.3, 0.7], [1, 0]],
        startprobs=[[1, 0], [0, 1]],
        observed=[[True, True], [True, False]],
        info={"label": ["a", "b"]},
    )
    assert_array_equal(models.transmats, TRANSMATS)
    assert_array_equal(models.means, MEANS)
    assert_array_equal(models.covars, VARIANCES)
    assert_array_equal(models.weights, [[0.3, 0.7], [1, 0]])
    assert_array_equal(models.startprobs, [[1, 0], [0, 1]])
    assert_array_equal(models.observed, [[True, True], [True, False]])
    assert_array_equal(models.info["label"], ["a", "b"])
    assert models.shape == (2,)
    assert len(models) == 2
    assert models.n_features == 2
    assert models.covariance_type == "diag"
    assert HMMBatch(TRANSMATS, MEANS, MATRICES).covariance_type == "full"


def test_weights_are_stationary_by_default():
    models = HMMBatch(**arguments())
    assert_allclose(models.weights, [[2 / 3, 1 / 3], [0.5, 0.5]])
    assert_array_equal(models.startprobs, models.weights)
    assert models.observed is None
    assert dict(models.info) == {}


def test_start_decides_between_closed_classes():
    stays = np.broadcast_to(np.eye(2), (2, 2, 2))
    start = [[0.25, 0.75], [1, 0]]
    models = HMMBatch(**arguments(transmats=stays, startprobs=start))
    assert_allclose(models.weights, start)
    assert_allclose(HMMBatch(**arguments(transmats=stays)).weights, 0.5)


def test_sums_of_single_precision_are_divided_out(rng):
    transmats = rng.dirichlet(np.ones(3), size=(1, 3)).astype(np.float32)
    models = HMMBatch(transmats, np.zeros((1, 3, 1)), np.ones((1, 3, 1)))
    assert_allclose(models.transmats.sum(axis=2), 1, rtol=1e-15)
    assert models.transmats.dtype == float


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"transmats": changed(TRANSMATS, (1, 0), [0.5, 0.4])},
            r"transmats must sum to one, got 0\.9 in model 1, state 0",
        ),
        (
            {"transmats": changed(TRANSMATS, (1, 1), [1.5, -0.5])},
            r"transmats must not be negative, got -0\.5 in model 1, state 1",
        ),
        (
            {"weights": [[0.5, 0.5], [-1, 2]]},
            r"weights must not be negative, got -1\.0 in model 1",
        ),
        (
            {"weights": [[0.5, 0.4], [0, 1]]},
            r"weights must sum to one, got 0\.9.*model 0",
        ),
        (
            {"startprobs": [[1, 0], [1, 1]]},
            r"startprobs must sum to one, got 2.*model 1",
        ),
        (
            {"startprobs": [[1, 0], [2, -1]]},
            "startprobs must not be negative, got -1.* in model 1",
        ),
        (
            {"transmats": changed(TRANSMATS, (0, 1, 1), np.nan)},
            "transmats must be finite, got nan in model 0, state 1",
        ),
        (
            {"means": changed(MEANS, (1, 1, 0), np.inf)},
            "means must be finite, got inf in model 1, state 1",
        ),
        (
            {"covars": changed(VARIANCES, (0, 1, 0), np.nan)},
            "covars must be finite, got nan in model 0, state 1",
        ),
        (
            {"weights": [[0.5, 0.5], [np.nan, 1]]},
            "weights must be finite, got nan in model 1, state 0",
        ),
        (
            {"startprobs": [[0.5, np.inf], [0, 1]]},
            "startprobs must be finite, got inf in model 0, state 1",
        ),
        (
            {"covars": changed(VARIANCES, (1, 0, 1), -0.1)},
            r"covars must not be negative, got -0\.1 in model 1, state 0",
        ),
        (
            {"covars": changed(MATRICES, (1, 0, 0, 1), 0.5)},
            r"covars must be symmetric, got entries that differ by 0\.5 in model 1,",
        ),
        (
            {"covars": changed(MATRICES, (0, 1), [[1, 2], [2, 1]])},
            r"positive semidefinite, got the eigenvalue -.* in model 0, state 1",
        ),
        (
            {"means": MEANS[:, :1]},
            r"means of model 0 must have shape \(2, 2\) \(2 states, 2 features\), got "
            r"\(1, 2\)",
        ),
        (
            {"covars": np.ones((2, 2, 3))},
            r"covars of model 0 must have shape \(2, 2\).*got \(2, 3\)",
        ),
        (
            {"covars": np.ones((2, 2, 2, 3))},
            r"covars of model 0 must have shape \(2, 2, 2\).*got \(2, 2, 3\)",
        ),
        (
            {"transmats": TRANSMATS[:, :, :1]},
            r"transmats of model 0 must have shape \(2, 2\).*got \(2, 1\)",
        ),
        (
            {"weights": [[1.0, 0.0], [1.0]]},
            r"weights of model 1 must have shape \(2,\).*got \(1,\)",
        ),
        ({"means": MEANS[:1]}, "must have one entry per model, got .*'means': 1"),
        (
            {"means": MEANS[0]},
            r"means must have 2 axes per model, got shape \(2,\).*list",
        ),
        ({"transmats": TRANSMATS[0]}, r"transmats must have 2 axes per model"),
        ({"covars": np.ones((2, 2))}, r"covars must have 2 or 3 axes per model"),
        (
            {"weights": [0.5, 0.5]},
            r"weights must have 1 axis per model, got shape \(\)",
        ),
        (
            {"means": np.zeros((2, 2, 0)), "covars": np.zeros((2, 2, 0))},
            "means must have at least one feature, got none",
        ),
        (
            {"covars": [np.eye(2)[None].repeat(2, 0), np.ones((2, 2))]},
            "variances in model 1 and matrices in model 0",
        ),
        (
            {"observed": [[True, False]]},
            r"observed must be a boolean array of shape \(2, 2\), got bool of shape",
        ),
        (
            {"observed": np.ones((2, 2))},
            r"observed must be a boolean array of shape \(2, 2\), got float64",
        ),
        (
            {"observed": [[True, True], [False, False]]},
            "observed must keep at least one feature, got none in model 1",
        ),
        ({"info": {"y": [1]}}, r"info\['y'\] must hold one .* per model .2 models"),
        ({"info": {"y": 1}}, r"info\['y'\] must hold one .* per model .2 models"),
        ({"info": {"y": [{}, {}]}}, r"info\['y'\] must hold one .*object"),
        ({"feature_names": ["a"]}, r"feature_names must be 2 distinct names.*\['a'\]"),
        ({"feature_names": ["a", "a"]}, "feature_names must be 2 distinct names"),
    ],
)
def test_bad_values_are_named(changes, words):
    with pytest.raises(ValueError, match=words):
        HMMBatch(**arguments(**changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"transmats": None}, "transmats must hold one numeric array per model"),
        ({"means": 5}, "means must hold one numeric array per model, but .* got int"),
        ({"covars": [["a", "b"]]}, "covars must hold one numeric array per model"),
        ({"covars": np.array([["a"]])}, "covars must hold one numeric array"),
        ({"info": {1: [1, 2]}}, "info must have names as keys, got 1"),
        ({"feature_names": "ab"}, "feature_names must be a list of strings, got 'ab'"),
        ({"feature_names": [0, 1]}, "feature_names must be a list of strings"),
        ({"feature_names": 2}, "feature_names must be a list of strings, got 2"),
    ],
)
def test_bad_types_are_named(changes, words):
    with pytest.raises(TypeError, match=words):
        HMMBatch(**arguments(**changes))


def test_no_model_and_no_state():
    with pytest.raises(ValueError, match="transmats must hold at least one model"):
        HMMBatch([], [], [])
    with pytest.raises(ValueError, match="must have a state, got none in model 1"):
        HMMBatch(
            [[[1.0]], np.ones((0, 0))],
            [[[0.0]], np.ones((0, 1))],
            [[[1.0]], np.ones((0, 1))],
        )


def test_covariances_are_made_symmetric():
    almost = changed(MATRICES, (0, 0, 0, 1), 1e-12)
    models = HMMBatch(**arguments(covars=almost))
    assert_array_equal(models.covars, models.covars.swapaxes(2, 3))


def test_singular_covariances_are_legal():
    HMMBatch(**arguments(covars=np.zeros((2, 2, 2))))
    HMMBatch(**arguments(covars=np.ones((2, 2, 2, 2))))


def test_unequal_numbers_of_states(make_batch):
    models = make_batch(4, [3, 1, 2, 3])
    assert_array_equal(models.n_components, [3, 1, 2, 3])
    assert_array_equal(models.weights[1], [1, 0, 0])
    assert_array_equal(models.startprobs[2, 2:], 0)
    assert_array_equal(models.transmats[2, 2], [0, 0, 1])
    assert_array_equal(models.transmats[1, :, 0], [1, 0, 0])
    assert_allclose(models.transmats.sum(axis=2), 1)


def test_padding_differs_from_states():
    # The last state is never reached, but it emits and moves on.
    unreached = HMMBatch([[[1.0, 0.0], [0.5, 0.5]]], [[[0.0], [1.0]]], [[[1.0], [1.0]]])
    assert_array_equal(unreached.n_components, [2])
    alone = HMMBatch([np.eye(2)], [[[0.0], [1.0]]], [[[0.0], [0.0]]], weights=[[1, 0]])
    assert_array_equal(alone.n_components, [2])
    dirac = HMMBatch([np.eye(2)], [[[0.0], [0.0]]], [[[0.0], [0.0]]])
    assert_array_equal(dirac.n_components, [2])


@pytest.fixture
def models(make_batch):
    sizes = [3, 1, 2, 3, 2]
    info = {"number": np.arange(5), "name": list("abcde")}
    observed = np.ones((5, 2), dtype=bool)
    observed[3, 0] = False
    return make_batch(5, sizes, info=info, observed=observed)


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        (2, [2]),
        (-1, [4]),
        (np.int64(1), [1]),
        (np.array(3), [3]),
        (slice(1, 4), [1, 2, 3]),
        (slice(None, None, -2), [4, 2, 0]),
        ([3, 3, 0], [3, 3, 0]),
        (np.array([-1, 0]), [4, 0]),
        ([True, False, False, True, False], [0, 3]),
        (np.array([True, False, False, True, False]), [0, 3]),
        ((slice(0, 2), ...), [0, 1]),
        ((np.array([1, 2]), ...), [1, 2]),
        (slice(2, 2), []),
        ([], []),
        (np.array([], dtype=int), []),
        (range(2), [0, 1]),
    ],
    ids=str,
)
def test_indexing_follows_all_arrays(models, key, rows):
    part = models[key]
    assert isinstance(part, HMMBatch)
    for name in ("transmats", "means", "covars", "weights", "startprobs", "observed"):
        assert_array_equal(getattr(part, name), getattr(models, name)[rows])
    assert_array_equal(part.info["number"], np.array(rows, dtype=int))
    assert_array_equal(part.n_components, models.n_components[rows])
    assert repr(part).startswith(f"HMMBatch(n_models={len(rows)}, ")


@pytest.mark.parametrize(
    "key", [5, -6, [0, 5], (0, 1), (0, ..., 1), [[0, 1]], True, 1.5, "a", [True], None]
)
def test_indices_that_do_not_exist(models, key):
    with pytest.raises(IndexError):
        models[key]


def test_iteration(models):
    assert [part.info["name"][0] for part in models] == list("abcde")


class NearestModel(ClassifierMixin, BaseEstimator):
    """The label of the nearest model, as small an estimator as can be."""

    def __init__(self, alpha=0.1):
        self.alpha = alpha

    def fit(self, X, y):
        assert isinstance(X, HMMBatch)
        self.classes_ = np.unique(y)
        self.models_, self.y_ = X, np.asarray(y)
        return self

    def predict(self, X):
        distances = pairwise_hmm_distances(X, self.models_, alpha=self.alpha)
        return self.y_[distances.argmin(axis=1)]


def test_scikit_learn_slices_batches(make_batch):
    centers = np.repeat([0.0, 10.0], 6)
    drawn = make_batch(12)
    models = HMMBatch(
        drawn.transmats,
        drawn.means + centers[:, None, None],
        drawn.covars,
        info={"number": np.arange(12)},
    )
    y = np.repeat(["low", "high"], 6)
    cv = KFold(4, shuffle=True, random_state=0)
    assert_array_equal(cross_val_score(NearestModel(), models, y, cv=cv), 1)
    assert_array_equal(cross_val_predict(NearestModel(), models, y, cv=cv), y)
    search = GridSearchCV(NearestModel(), {"alpha": [0.0, 0.5]}, cv=cv)
    assert search.fit(models, y).best_score_ == 1
    train, test, y_train, y_test = train_test_split(models, y, random_state=0)
    assert_array_equal(np.where(train.info["number"] < 6, "low", "high"), y_train)
    assert_array_equal(np.where(test.info["number"] < 6, "low", "high"), y_test)
    mixed, labels = shuffle(models, y, random_state=0)
    assert_array_equal(np.where(mixed.info["number"] < 6, "low", "high"), labels)
    assert len(resample(models, n_samples=20, random_state=0)) == 20


def test_a_batch_is_not_an_array_of_numbers(models):
    with pytest.raises(TypeError, match="not an array of numbers"):
        np.asarray(models)


def test_concatenation(models):
    again = HMMBatch.concatenate([models[:2], models[2:]])
    assert again == models
    assert HMMBatch.concatenate(list(models)) == models
    assert HMMBatch.concatenate(models) == models
    twice = HMMBatch.concatenate([models, models])
    assert len(twice) == 10
    assert twice[5:] == models


def test_concatenation_pads_to_the_largest(make_batch):
    small, large = make_batch(2, 2), make_batch(1, 4, seed=1)
    combined = HMMBatch.concatenate([small, large])
    assert_array_equal(combined.n_components, [2, 2, 4])
    assert combined[:2] == small
    assert combined[2:] == large


def test_concatenation_of_diagonal_and_full(make_batch):
    diag, full = make_batch(1), make_batch(1, covariance_type="full")
    combined = HMMBatch.concatenate([diag, full])
    assert combined.covariance_type == "full"
    assert_array_equal(combined.covars[0], diag.covars[0][..., None] * np.eye(2))
    assert_array_equal(combined.covars[1], full.covars[0])


def test_concatenation_of_masked_and_unmasked(models, make_batch):
    plain = make_batch(2, info={"number": [5, 6], "name": ["f", "g"]})
    combined = HMMBatch.concatenate([plain, models])
    assert_array_equal(combined.observed[:2], True)
    assert_array_equal(combined.observed[2:], models.observed)


def test_batches_that_cannot_be_concatenated(make_batch):
    models = make_batch()
    with pytest.raises(ValueError, match="batches must hold at least one batch"):
        HMMBatch.concatenate([])
    with pytest.raises(TypeError, match="batches must hold HMMBatch objects, got int"):
        HMMBatch.concatenate([models, 1])
    with pytest.raises(ValueError, match="got 2 in batch 0 and 3 in batch 1"):
        HMMBatch.concatenate([models, make_batch(n_features=3)])
    with pytest.raises(ValueError, match=r"got \[\] in batch 0 and \['y'\] in batch 1"):
        HMMBatch.concatenate([models, make_batch(info={"y": range(4)})])


def test_names_of_features_stay_with_models(make_batch, tmp_path):
    names = ("temp", "vib")
    models = make_batch(feature_names=[*names])
    bare = make_batch()
    models.save(tmp_path / "models.npz")
    for again in (
        HMMBatch.load(tmp_path / "models.npz"),
        pickle.loads(pickle.dumps(models)),
        HMMBatch.concatenate([bare, models])[4:],
        HMMBatch.concatenate([models, bare])[:4],
    ):
        assert again == models
        assert again.feature_names == names
    assert models[[2, 1]].feature_names == models[0].feature_names == names
    assert bare.feature_names is None
    assert bare != models
    assert_array_equal(bare.keys, models.keys)
    drawn, _ = models.sample(5, random_state=0)
    assert drawn[0].feature_names == names
    models.score(drawn)
    with pytest.raises(ValueError, match="must be in the same order"):
        models.score([x[:, ::-1] for x in drawn])


def test_every_constructor_takes_names(rng):
    theirs = GaussianHMM(1).fit(rng.normal(size=(9, 2)))
    chain, rates = [[[1.0]]], [[[1.0, 2.0]]]
    arrays = {"transmats": chain, "rates": rates}
    names = ("a", "b")
    for models in (
        HMMBatch.from_rates(chain, rates, feature_names=names),
        HMMBatch.from_arrays(arrays, feature_names=names),
        as_models(theirs, feature_names=names),
    ):
        assert models.feature_names == names


def test_batches_with_other_names_cannot_be_concatenated(make_batch):
    one, two = (make_batch(feature_names=names) for names in (["a", "b"], ["b", "a"]))
    words = r"batch 1 and batch 2 must have the same feature names .*'a', 'b'.*'b', 'a'"
    with pytest.raises(ValueError, match=words):
        HMMBatch.concatenate([make_batch(), one, two])


def test_pickles_without_names_are_read(models):
    state = models.__getstate__()
    del state["feature_names"]
    again = HMMBatch.__new__(HMMBatch)
    again.__setstate__(state)
    assert again == models


def test_equality(make_batch):
    models = make_batch(info={"y": range(4)})
    assert models == make_batch(info={"y": range(4)})
    assert models != make_batch()
    assert models != make_batch(info={"y": range(1, 5)})
    assert models != make_batch(info={"z": range(4)})
    assert models != models[:3]
    assert models != make_batch(seed=1, info={"y": range(4)})
    assert models != 3
    assert make_batch(1) != make_batch(1, covariance_type="full")
    assert make_batch(1) != make_batch(1, n_features=3)
    unknown = {"score": [1.0, np.nan]}
    assert make_batch(2, info=unknown) == make_batch(2, info=unknown)
    padded = HMMBatch.concatenate([make_batch(1, 2), make_batch(1, 4)])
    assert padded[0] == make_batch(1, 2)
    everything = np.ones((1, 2), dtype=bool)
    assert make_batch(1, observed=everything) == make_batch(1)


@pytest.mark.parametrize("name", ["weights", "startprobs"])
def test_equality_looks_at_every_array(name):
    models = HMMBatch(**arguments())
    other = HMMBatch(**arguments(**{name: [[0.5, 0.5], [0.5, 0.5]]}))
    assert models != other


def test_repr(models, make_batch):
    expected = "HMMBatch(n_models=5, n_components=1..3, n_features=2, covariance_type="
    assert repr(models) == expected + "'diag')"
    assert "n_components=3, " in repr(make_batch(2, 3))
    assert "n_models=0" in repr(models[:0])


def test_batches_cannot_be_changed(models):
    names = ("transmats", "means", "covars", "weights", "startprobs", "observed")
    for part in (models, models[1:3], HMMBatch.concatenate([models, models])):
        for name in (*names, "n_components", "keys"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(part, name)[0] = 0
        with pytest.raises(ValueError, match="read-only"):
            part.info["number"][0] = 7
    with pytest.raises(AttributeError, match="immutable: weights cannot be set"):
        models.weights = 0
    with pytest.raises(TypeError):
        models.info["new"] = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(models)


def test_arrays_of_the_caller_stay_free():
    given = {
        name: np.array(array)
        for name, array in arguments(
            weights=[[0.5, 0.5], [0.5, 0.5]],
            startprobs=[[0.5, 0.5], [0.5, 0.5]],
            observed=np.ones((2, 2), dtype=bool),
        ).items()
    }
    labels = np.arange(2)
    carried = [np.ones((3, 2)), np.ones((4, 2))]
    models = HMMBatch(**given, info={"y": labels}, sequences=carried)
    before = pickle.loads(pickle.dumps(models))
    for array in (*given.values(), labels, *carried):
        array[0] = 0
    assert models == before
    for own, wanted in zip(models.sequences, before.sequences, strict=True):
        assert_array_equal(own, wanted)


def test_arrays_of_the_caller_stay_free_in_other_families():
    chain = np.array([[[0.9, 0.1], [0.2, 0.8]]])
    rows = np.array([[[0.5, 0.5], [0.25, 0.75]]])
    costs, symbols = np.array([[0.0, 2.0], [2.0, 0.0]]), np.array([3, 5])
    states = np.array([[1.0, 5.0]])
    made = [
        HMMBatch.from_rates(chain, rows),
        HMMBatch.from_arrays({"transmats": chain, "rates": rows}),
        HMMBatch.from_emissionprobs(chain, rows, symbols=symbols, symbol_costs=costs),
        HMMBatch.from_state_costs(chain, costs),
        HMMBatch.from_state_costs(chain, lambda a, b: abs(a - b), states=states),
    ]
    both = np.array([0]), np.array([0])
    before = [(pickle.dumps(b._arrays()), b.emission.cross(*both)) for b in made]
    for array in (chain, rows, costs, symbols, states):
        array[...] = 7
    for models, (arrays, cross) in zip(made, before, strict=True):
        assert pickle.dumps(models._arrays()) == arrays
        assert_array_equal(models.emission.cross(*both), cross)


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_pickle(covariance_type, make_batch):
    models = make_batch(3, [1, 3, 2], covariance_type=covariance_type)
    for copy in (pickle.loads(pickle.dumps(models)), models[:]):
        assert copy == models
        assert_array_equal(copy.keys, models.keys)
        with pytest.raises(ValueError, match="read-only"):
            copy.means[0] = 1


def test_joblib(models, tmp_path):
    joblib.dump(models, tmp_path / "models.joblib")
    assert joblib.load(tmp_path / "models.joblib") == models
    assert joblib.hash(models) == joblib.hash(models[:])
    calls = (joblib.delayed(len)(models[:n]) for n in range(1, 3))
    assert joblib.Parallel(n_jobs=2)(calls) == [1, 2]


def test_keys_depend_on_content_only(models, make_batch):
    assert_array_equal(models[[3, 1]].keys, models.keys[[3, 1]])
    assert len(set(models.keys.tolist())) == 5
    small = make_batch(1, 2)
    padded = HMMBatch.concatenate([small, make_batch(1, 4)])
    assert padded.keys[0] == small.keys[0]
    masked = make_batch(1, 2, observed=[[True, False]])
    assert HMMBatch.concatenate([small, masked]).keys.tolist() == [
        small.keys[0],
        masked.keys[0],
    ]
    zero = HMMBatch([[[1.0]]], [[[0.0]]], [[[1.0]]])
    assert zero.keys[0] == HMMBatch([[[1.0]]], [[[-0.0]]], [[[1.0]]]).keys[0]


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_save_and_load(covariance_type, make_batch, tmp_path):
    info = {"converged": [True, False], "name": ["ä", "b"], "score": [np.nan, 1.5]}
    models = make_batch(2, [3, 2], covariance_type=covariance_type, info=info)
    models.save(tmp_path / "models.npz")
    loaded = HMMBatch.load(str(tmp_path / "models.npz"))
    assert loaded == models
    assert loaded.observed is None
    assert {name: column.dtype for name, column in loaded.info.items()} == {
        name: column.dtype for name, column in models.info.items()
    }
    assert_array_equal(loaded.keys, models.keys)


def test_save_keeps_masks_and_replaces_files(models, make_batch, tmp_path):
    path = tmp_path / "models.npz"
    make_batch(1).save(path)
    models.save(path)
    assert HMMBatch.load(path) == models
    assert [file.name for file in tmp_path.iterdir()] == ["models.npz"]
    (tmp_path / "plain").write_bytes(b"")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_files_hold_no_pickle(models, tmp_path):
    models.save(tmp_path / "models.npz")
    with np.load(tmp_path / "models.npz", allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)
        header = json.loads(str(archive["header"]))
    assert header["kind"] == "skawhmm.HMMBatch"
    assert header["version"] == 1


def test_a_file_cut_short(models, tmp_path):
    models.save(tmp_path / "models.npz")
    whole = (tmp_path / "models.npz").read_bytes()
    for size in [*range(0, len(whole), 37), len(whole) - 1]:
        (tmp_path / "cut.npz").write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"cut\.npz' must be a complete skawhmm"):
            HMMBatch.load(tmp_path / "cut.npz")


def test_a_damaged_file(models, tmp_path):
    models.save(tmp_path / "models.npz")
    whole = (tmp_path / "models.npz").read_bytes()
    for place in range(0, len(whole), 5):
        damaged = bytearray(whole)
        damaged[place] ^= 0x21
        (tmp_path / "damaged.npz").write_bytes(damaged)
        # Some bytes of an archive, such as dates, mean nothing.
        try:
            loaded = HMMBatch.load(tmp_path / "damaged.npz")
        except ValueError as error:
            assert "damaged.npz' must" in str(error)  # noqa: PT017
        else:
            assert loaded == models


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            {"a": np.arange(3)},
            "must be a skawhmm.HMMBatch file, got an archive without",
        ),
        ({"header": np.arange(3)}, "got an archive without its header"),
        ({"header": np.array("[1, 2]")}, "got an archive without its header"),
        ({"header": np.array("{")}, "got an archive without its header"),
        (
            {"header": np.array('{"kind": "skawhmm.HMMBatch", "version": "new"}')},
            "the version of its format, an integer from 1, got 'new'",
        ),
        (
            {"header": np.array('{"kind": "skawhmm.HMMBatch", "version": 1e999}')},
            "the version of its format, an integer from 1, got 'inf'",
        ),
        ({"header": np.array("[" * 100_000)}, "got an archive without its header"),
        (
            {"header": np.array('{"kind": "other.Thing", "version": 1}')},
            "must hold a skawhmm.HMMBatch, got a other.Thing",
        ),
        (
            {"header": np.array('{"kind": "skawhmm.HMMBatch", "version": 3}')},
            "has version 3 .* reads up to version 2. A newer skawhmm wrote it",
        ),
        (
            {"header": np.array('{"kind": "skawhmm.HMMBatch", "version": 1}')},
            "must hold the arrays",
        ),
        ({"header": np.array([{}], dtype=object)}, "must be a complete.*holds objects"),
    ],
)
def test_foreign_archives(content, words, tmp_path):
    np.savez(tmp_path / "foreign.npz", **content)
    with pytest.raises(ValueError, match=words):
        HMMBatch.load(tmp_path / "foreign.npz")


def test_foreign_files(models, tmp_path):
    path = tmp_path / "foreign.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ValueError, match=r"complete skawhmm.*readme"):
        HMMBatch.load(path)
    path.write_bytes(pickle.dumps(models))
    with pytest.raises(ValueError, match="must be a complete skawhmm"):
        HMMBatch.load(path)
    with open(path, "wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(ValueError, match="must be a complete skawhmm"):
        HMMBatch.load(path)
    with pytest.raises(FileNotFoundError):
        HMMBatch.load(tmp_path / "nowhere.npz")


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_the_old_file(error, models, tmp_path, monkeypatch):
    path = tmp_path / "models.npz"
    models.save(path)

    def interrupted(file, **arrays):
        file.write(b"half")
        raise error("disk full")

    monkeypatch.setattr(storage.np, "savez", interrupted)
    with pytest.raises(error, match="disk full"):
        models[:1].save(path)
    monkeypatch.undo()
    assert HMMBatch.load(path) == models
    assert [file.name for file in tmp_path.iterdir()] == ["models.npz"]


def log_likelihood(model, x):
    """Forward recursion of the first model of a batch."""
    size = model.n_components[0]
    emitted = np.stack(
        [
            multivariate_normal.logpdf(
                x,
                model.means[0, k],
                model.covars[0, k]
                if model.covariance_type == "full"
                else np.diag(model.covars[0, k]),
            )
            for k in range(size)
        ],
        axis=1,
    )
    with np.errstate(divide="ignore"):
        ahead = np.log(model.startprobs[0, :size]) + emitted[0]
        steps = np.log(model.transmats[0, :size, :size])
    for row in emitted[1:]:
        ahead = logsumexp(ahead[:, None] + steps, axis=0) + row
    return logsumexp(ahead)


def test_info_is_a_mapping_that_pandas_reads(make_batch):
    info = {"name": list("abcd"), "length": [4, 3, 2, 1]}
    models = make_batch(4, info=info)
    assert isinstance(models.info, dict)
    frame = pytest.importorskip("pandas").DataFrame(models.info)
    assert frame["name"].tolist() == info["name"]
    assert frame["length"].tolist() == info["length"]
    for change in (
        lambda columns: columns.update(new=1),
        lambda columns: columns.pop("name"),
        lambda columns: columns.clear(),
        lambda columns: columns.setdefault("new", 1),
        lambda columns: columns.__delitem__("name"),
    ):
        with pytest.raises(TypeError, match="cannot be changed"):
            change(models.info)
    assert {*models.info} == {"name", "length"}
    again = pickle.loads(pickle.dumps(models.info))
    assert again["name"].tolist() == info["name"]


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_to_hmmlearn_and_back(covariance_type, make_batch, rng):
    models = make_batch(3, [2, 3, 1], covariance_type=covariance_type)
    x = rng.normal(size=(12, 2))
    for n in (0, 1, 2, -1):
        theirs = models.to_hmmlearn(n)
        assert theirs.n_components == models.n_components[n]
        assert_allclose(theirs.score(x), log_likelihood(models[n], x), rtol=1e-10)
        back = as_models(theirs)
        assert_allclose(back.weights[0], models.weights[n, : back.n_components[0]])
        assert_array_equal(back.means[0], models.means[n, : back.n_components[0]])
    theirs.means_[0] = 9
    assert models.means[-1, 0, 0] != 9
    assert len(models.to_hmmlearn().sample(5, random_state=0)[0]) == 5


def test_singular_models_have_no_place_in_hmmlearn():
    flat = HMMBatch(**arguments(covars=np.zeros((2, 2, 2))))
    with pytest.raises(ValueError, match=r"covars must be positive definite .* 0\.0"):
        flat.to_hmmlearn()
    line = HMMBatch(**arguments(covars=np.ones((2, 2, 2, 2))))
    with pytest.raises(ValueError, match="covars must be positive definite"):
        line.to_hmmlearn(1)
    with pytest.raises(IndexError):
        flat.to_hmmlearn(2)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ([True, False], r"one entry per model \(4 models\), got shape \(2,\)"),
        (np.ones(5, bool), r"one entry per model \(4 models\), got shape \(5,\)"),
        (9, "within the 4 models, got 9"),
        ([0, -5], "within the 4 models, got -5"),
        (1.5, "integers, by a slice or by a boolean mask, got 1.5"),
        ("info", "got 'info'"),
        ([[0], [1, 2]], "got nested lists"),
        ([[0, 1]], "one axis"),
    ],
)
def test_errors_of_an_index(make_batch, key, message):
    with pytest.raises(IndexError, match=message):
        make_batch(4)[key]


def test_masks_and_numbers_choose_models(make_batch):
    models = make_batch(4)
    mask = np.array([True, False, False, True])
    assert models[mask] == models[[0, 3]] == models[[0, -1]]
    assert len(models[[]]) == len(models[np.zeros(4, bool)]) == 0


@pytest.mark.parametrize("name", ["transmats", "means", "covars", "weights"])
@pytest.mark.parametrize("kind", [str, complex, "M8[s]"])
def test_parameters_of_models_must_be_numbers(name, kind):
    given = arguments(weights=[[0.5, 0.5]] * 2)
    # Zeros and ones can be converted to any type.
    given[name] = np.ones_like(np.array(given[name], float)).astype(int).astype(kind)
    with pytest.raises(TypeError, match=f"^{name} must hold one numeric array per mod"):
        HMMBatch(**given)


@pytest.mark.parametrize("index", [2, -3, 1.0, "a", [0], True, None, slice(1)])
def test_one_model_goes_to_hmmlearn(index):
    models = HMMBatch(**arguments())
    with pytest.raises((TypeError, IndexError), match=r"^index must"):
        models.to_hmmlearn(index)


@pytest.mark.parametrize("batches", [3, None, [3], []])
def test_batches_are_named(batches):
    with pytest.raises((TypeError, ValueError), match=r"^batches must"):
        HMMBatch.concatenate(batches)


def test_slices_hold_integers():
    with pytest.raises(IndexError, match="models must be indexed by integers"):
        HMMBatch(**arguments())["a":]


def test_equal_models_get_sequences_of_their_own():
    one, other = HMMBatch(**arguments())
    alone = one.sample(20, random_state=0)[0][0]
    drawn = HMMBatch.concatenate([one, other, one]).sample(20, random_state=0)[0]
    assert_array_equal(drawn[0], alone)
    assert np.abs(drawn[2] - alone).max() > 0.1
    again = HMMBatch.concatenate([one, one]).sample(20, random_state=0)[0]
    assert_array_equal(again[1], drawn[2])


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_models_are_aligned_wherever_a_message_puts_them(make_batch, covariance_type):
    models = make_batch(covariance_type=covariance_type)
    buffers = []
    rest = pickle.dumps(models, 5, buffer_callback=buffers.append)
    moved = [np.frombuffer(b" " + bytes(x.raw()), np.uint8)[1:] for x in buffers]
    received = pickle.loads(rest, buffers=moved)
    assert received == models
    for name in ("transmats", "weights", "startprobs", "means", "covars"):
        assert getattr(received, name).flags.aligned
        assert not getattr(received, name).flags.writeable


def test_files_of_invalid_models_are_named(models, tmp_path):
    models.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        arrays = dict(archive) | {"startprobs": -archive["startprobs"]}
    np.savez(tmp_path / "b.npz", **arrays)
    with pytest.raises(ValueError, match=r"b\.npz' must hold valid models: startprobs"):
        HMMBatch.load(tmp_path / "b.npz")
