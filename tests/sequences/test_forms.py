"""What estimators read as sequences, and what they refuse in plain words."""

import datetime
import warnings
from collections import deque

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import Bunch

from skawhmm import (
    Framewise,
    HMMEmbedding,
    HMMKMeans,
    HMMKMedoids,
    HMMNoveltyDetector,
    HMMRetriever,
    HMMTransformer,
    KNeighborsHMMClassifier,
    KNeighborsHMMClassifierCV,
    PairwiseHMMDistance,
    as_sequences,
)
from skawhmm.features import HMMClassDistance
from skawhmm.sequences import Deltas, TimeChannel


def frame(**kw):
    return pytest.importorskip("pandas").DataFrame(kw)


LONG_FRAME = {"subject": [1, 1, 2, 2], "time": [0, 1, 0, 1], "v": [0.5, 1, 2, 3]}
REFUSED = {
    "pandas": (
        lambda: frame(**LONG_FRAME),
        TypeError,
        r"of 4 rows and 3 columns.*as_sequences\(X, id='subject', time='time'\)",
    ),
    "pandas index": (
        lambda: frame(**LONG_FRAME).set_index(["subject", "time"]),
        TypeError,
        r"X, ids = as_sequences\(X\)",
    ),
    "pandas wide": (
        lambda: frame(a=[0.5, 1], b=[1.5, 2]),
        TypeError,
        r"univariate.*X, ids = as_sequences\(X\)",
    ),
    "polars": (
        lambda: pytest.importorskip("polars").DataFrame(LONG_FRAME),
        TypeError,
        r"as_sequences\(X, id='subject', time='time'\)",
    ),
    "polars lazy": (
        lambda: pytest.importorskip("polars").DataFrame(LONG_FRAME).lazy(),
        TypeError,
        "call collect",
    ),
    "pyarrow": (
        lambda: pytest.importorskip("pyarrow").table(LONG_FRAME),
        TypeError,
        r"as_sequences\(X, id='subject', time='time'\)",
    ),
    "xarray": (
        lambda: pytest.importorskip("xarray").DataArray(np.ones((3, 4, 2))),
        TypeError,
        r"as_sequences\(X\)",
    ),
    "awkward": (
        lambda: pytest.importorskip("awkward").Array([[1.0, 2], [3]]),
        TypeError,
        r"as_sequences\(X\)",
    ),
    "dict": (lambda: {"a": np.ones(3)}, TypeError, "keys as ids"),
    "bunch": (lambda: Bunch(data=[1], target=[1]), TypeError, "give .data"),
    "generator": (lambda: (x for x in [np.ones(3)]), TypeError, r"list\(X\)"),
    "iterator": (lambda: iter([np.ones(3)]), TypeError, r"list\(X\)"),
    "set": (lambda: {(1.0, 2.0)}, TypeError, "no order"),
    "None": (lambda: None, TypeError, "got None"),
    "number": (lambda: 3.5, TypeError, "a single float"),
    "text": (lambda: "abc", TypeError, "a single str"),
    "numbers": (lambda: [1.0, 2.0], ValueError, r"Write \[X\]"),
    "one sequence": (lambda: np.ones(4), ValueError, r"1D.*\[X\]"),
    "structured": (
        lambda: np.zeros(4, [("id", int), ("v", float)]),
        TypeError,
        r"fields \['id', 'v'\]",
    ),
    "dates": (lambda: np.zeros((3, 4), "M8[s]"), ValueError, "X must.*got dates"),
    "list of dates": (lambda: [np.zeros(4, "M8[s]")], ValueError, r"X\[0\].*dates"),
    "objects of dates": (
        lambda: [np.array([datetime.date(2020, 1, 1)] * 3, object)],
        ValueError,
        r"X\[0\] must hold numbers, got dates",
    ),
    "durations": (lambda: [np.zeros(4, "m8[s]")], ValueError, "got durations"),
    "complex": (lambda: [np.ones(4) * 1j], ValueError, r"X\[0\].*complex"),
    "complex matrix": (lambda: np.ones((3, 4)) * 1j, ValueError, "Complex data"),
    "strings": (lambda: np.array([["1", "2"]] * 3), ValueError, "got strings"),
    "strings among numbers": (lambda: [[1, "a"], [2, 3]], ValueError, "such as 'a'"),
    "a string in a sequence": (
        lambda: [[[1.0], ["a"]], [[2.0], [3.0]]],
        ValueError,
        r"X\[0\].*such as 'a'.*categorical",
    ),
    "ragged rows": (
        lambda: [[[1, 2], [3]], [[4, 5]]],
        ValueError,
        r"X\[0\].*rows of different sizes \[1, 2\]",
    ),
    "dict inside": (lambda: [{"a": 1.0}], TypeError, r"X\[0\].*got a dict"),
    "None inside": (lambda: [np.ones(3), None], TypeError, r"X\[1\].*NoneType"),
    "generator inside": (lambda: [(x for x in "ab")], TypeError, "got a generator"),
    "objects": (lambda: np.array([[1, {}]] * 3, object), TypeError, "numbers only"),
    "objects in a list": (
        lambda: [np.array([[1, {}]], object)],
        ValueError,
        r"X\[0\] must hold numbers, got an object of type dict",
    ),
    "table inside": (
        lambda: [frame(a=[1, 2], b=["u", "v"])],
        ValueError,
        "'b' must hold numbers",
    ),
    "channels first": (
        lambda: [np.ones((2, 9)), np.ones((2, 7))],
        ValueError,
        "All have 2 rows.*channels_first",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize(
    "estimator",
    [HMMTransformer(1), Framewise(), PairwiseHMMDistance()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_refuse_in_plain_words(estimator, name):
    make, error, message = REFUSED[name]
    with pytest.raises(error, match=message) as caught:
        estimator.fit(make())
    # None of these is the text of NumPy.
    for words in ("inhomogeneous", "setting an array", "could not convert", "ufunc"):
        assert words not in str(caught.value)


READ = {
    "lists of numbers": [[0.0, 1.0, 4.0], [2.0, 3.0]],
    "tuples": ((0.0, 1.0, 4.0), (2.0, 3.0)),
    "columns": [[[0.0], [1.0], [4.0]], [[2.0], [3.0]]],
    "deque": deque([[0.0, 1.0, 4.0], [2.0, 3.0]]),
    "masked": np.ma.masked_array([[0.0, 1, 4], [2, 3, 99]], [[0, 0, 0], [0, 0, 1]]),
    "masked list": [np.ma.masked_array([0.0, 1, 4]), [2, 3]],
    "padded": np.array([[0.0, 1, 4], [2, 3, np.nan]]),
    "objects": np.array([[0, 1, 4], [2, 3, None]], object),
}


@pytest.mark.parametrize("name", READ)
def test_estimators_read(name):
    models = HMMTransformer(1).fit_transform(READ[name])
    assert_allclose(models.means.ravel(), [5 / 3, 2.5])
    assert models.info["n_timesteps"].tolist() == [3, 2]
    changed = Framewise().fit(READ[name]).transform(READ[name])
    assert len(changed) == 2


def test_estimators_read_series(rng):
    pandas, polars = map(pytest.importorskip, ("pandas", "polars"))
    sequences = [rng.normal(size=(n, 2)) for n in (4, 6, 5)]
    wanted = HMMTransformer(2, random_state=0).fit_transform(sequences)
    nested = [x.tolist() for x in sequences]
    for X in (pandas.Series(sequences), polars.Series(nested)):
        assert HMMTransformer(2, random_state=0).fit_transform(X) == wanted
    texts = pandas.Series(["abab", "aaab"])
    hmm = HMMTransformer(1, emission="categorical")
    assert hmm.fit_transform(texts) == hmm.fit_transform(texts.tolist())
    knn = KNeighborsHMMClassifier(1, hmm=hmm).fit(texts, [0, 1])
    assert knn.predict(texts).tolist() == [0, 1]


def test_masked_values_inside_are_missing(rng):
    x = rng.normal(size=(20, 2))
    mask = rng.random(x.shape) < 0.2
    hidden = np.ma.masked_array(np.where(mask, 1e6, x), mask)
    gaps = np.where(mask, np.nan, x)
    hmm = HMMTransformer(2, random_state=0)
    assert hmm.fit_transform([hidden]) == hmm.fit_transform([gaps])


def test_a_frame_without_names_is_a_matrix(rng):
    # scikit-learn's own checks pass such frames.
    pandas = pytest.importorskip("pandas")
    X = rng.normal(size=(5, 6))
    hmm = HMMTransformer(1)
    assert hmm.fit_transform(pandas.DataFrame(X)) == hmm.fit_transform(X)


@pytest.mark.parametrize(
    "estimator",
    [
        HMMTransformer(1),
        Framewise(),
        HMMEmbedding(1),
        PairwiseHMMDistance(),
        HMMRetriever(),
        HMMKMeans(2),
        HMMClassDistance(),
        KNeighborsHMMClassifier(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_lengths_do_not_count_as_labels(estimator, rng):
    frames = rng.normal(size=(90, 3))
    with pytest.raises(ValueError, match=r"hmmlearn's lengths.*lengths=y"):
        estimator.fit(frames, [50, 40])
    with pytest.raises(ValueError, match=r"hmmlearn's lengths"):
        estimator.fit(frames, np.array([30, 30, 30]))


def test_labels_whose_sum_is_their_number_are_labels(rng):
    X = rng.normal(size=(6, 8))
    KNeighborsHMMClassifier(1).fit(X, [0, 2, 0, 2, 0, 2])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((5, 3, 50)), r"5 sequences of 3 timesteps with 50.*channels_first"),
        ([np.ones((3, 50))] * 2, r"2 sequences of 3 timesteps with 50"),
        (np.arange(1500.0).reshape(500, 3), r"500 univariate.*write \[X\]"),
        ([[0.0, 1.0, 2.0]] * 500, r"500 univariate"),
    ],
    ids=["cube", "list", "recording", "nested recording"],
)
def test_doubtful_forms_are_named(X, message):
    with pytest.warns(UserWarning, match=message) as caught:
        Framewise().fit(X)
    # The warning points to the caller's line, so that it is shown once.
    assert caught[0].filename == __file__


@pytest.mark.parametrize("shape", [(30, 2), (10, 1), (24, 8), (200, 9)])
def test_a_recording_read_as_rows_is_a_warning(shape, rng):
    X = rng.normal(size=shape)
    words = rf"one recording of {shape[0]} timesteps, write \[X\]"
    for use in (HMMTransformer(1).fit, Deltas().fit, as_sequences):
        with pytest.warns(UserWarning, match=words):
            use(X)
    step = Deltas().fit([X[:, :1]])
    with pytest.warns(UserWarning, match=words):
        step.transform(X)
    Deltas().fit([X])


def distances(n=5):
    points = np.random.default_rng(0).normal(size=(n, 2))
    return np.linalg.norm(points[:, None] - points, axis=2)


@pytest.mark.parametrize("form", ["matrix", "lists", "components", "float32", "frame"])
@pytest.mark.parametrize(
    ("estimator", "takes"),
    [
        (KNeighborsHMMClassifier(1), True),
        (HMMKMedoids(2), True),
        (HMMNoveltyDetector(n_neighbors=1, false_alarm_rate=0.5), True),
        (KNeighborsHMMClassifierCV(), True),
        (HMMRetriever(), True),
        (PairwiseHMMDistance(), False),
        (HMMTransformer(), False),
        (HMMEmbedding(), False),
        (HMMKMeans(2), False),
        (Deltas(), False),
    ],
)
def test_distances_are_no_sequences(estimator, takes, form):
    pandas = pytest.importorskip("pandas")
    D = distances()
    X = {
        "matrix": D,
        "lists": D.tolist(),
        "components": np.stack([D, 2 * D], axis=2),
        "float32": D.astype(np.float32),
        "frame": pandas.DataFrame(D),
    }[form]
    name = type(estimator).__name__
    words = f"{name} does not take distances; estimators such as KNeighborsHMMClass"
    if takes:
        estimator.set_params(metric="precomputed").fit(D, [0, 1, 0, 1, 0])
        estimator.set_params(metric="maw")
        words = rf'write {name}\(metric="precomputed"\)'
    with pytest.raises(ValueError, match=words):
        estimator.fit(X, [0, 1, 0, 1, 0])


def test_distances_are_no_data_for_as_sequences():
    pandas = pytest.importorskip("pandas")
    for X in (distances(), pandas.DataFrame(distances(), columns=[*"abcde"])):
        with pytest.raises(ValueError, match="as_sequences does not take distances"):
            as_sequences(X)


@pytest.mark.parametrize("method", ["score", "decode", "predict_proba"])
def test_models_do_not_score_distances(method, make_batch):
    with pytest.raises(ValueError, match="HMMBatch does not take distances"):
        getattr(make_batch(2, n_features=1), method)(distances())


def test_nearly_exact_distances_are_accepted(rng):
    D = distances()
    off = D.copy()
    off[1, 2] += 0.1
    full = D + 0.5
    for X in (off, full, -D, np.zeros((5, 5)), D[:2, :2], [*D], D[:4]):
        TimeChannel().fit(X)


def test_clear_forms_are_silent(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Framewise().fit(rng.normal(size=(500, 3, 1)))
        Framewise().fit(rng.normal(size=(60, 24)))
        Framewise().fit([rng.normal(size=(500, 3))])
        Framewise().fit([rng.normal(size=(n, 12)) for n in (7, 11)])
        step = Framewise().fit([rng.normal(size=(30, 12))])
        # Later input has the channels of the first, so its axes are known.
        step.transform([rng.normal(size=(7, 12))])


@pytest.mark.parametrize("form", ["list", "cube", "rows", "objects", "single"])
def test_input_is_not_changed(form, rng):
    cube = rng.normal(size=(6, 9, 3)) * [1e-5, 1, 1e5]
    cube[..., 1] = 2.0
    cube[rng.random(cube.shape) < 0.1] = np.nan
    X = {
        "list": [*cube],
        "cube": cube,
        "rows": cube[:, :, 0].copy(),
        "objects": cube.astype(object),
        "single": cube.astype(np.float32),
    }[form]
    parts = X if isinstance(X, list) else [X]
    before = [part.copy() for part in parts]
    y = [0, 1] * 3
    for estimator in (
        HMMTransformer(2),
        HMMTransformer(2, prior="pooled"),
        Framewise(),
        HMMEmbedding(2, random_state=0),
        KNeighborsHMMClassifier(1),
    ):
        estimator.fit(X, y)
        getattr(estimator, "transform", getattr(estimator, "predict", None))(X)
        for part, kept in zip(parts, before, strict=True):
            assert_array_equal(part.astype(float), kept.astype(float))


@pytest.mark.parametrize("role", ["id", "time", "channels", "labels"])
def test_names_of_columns_are_names(role):
    with pytest.raises(TypeError, match=f"^{role} must name columns or be None, got"):
        as_sequences({"id": [0, 0], "x": [1.0, 2.0]}, **{role: {}})


def test_a_class_is_not_a_list():
    with pytest.raises(TypeError, match="X must be a list of sequences, got a class"):
        HMMTransformer().fit(list)
