import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.utils import _safe_indexing

from skawhmm import (
    Framewise,
    HMMTransformer,
    KNeighborsHMMClassifier,
    Trials,
    as_sequences,
)
from skawhmm.fitting import MarkovChainTransformer
from skawhmm.sequences import Deltas, TimeChannel
from skawhmm.sequences._checked import CheckedSequences
from skawhmm.sequences._trials import Units, recordings_of, split_units


def units(n_units=6, *, seed=0):
    """Units of two kinds, with a few trials each."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_units) % 2
    X = [
        Trials([rng.normal(3 * kind, size=(n, 2)) for n in rng.integers(1, 9, 4) + 1])
        for kind in y
    ]
    return X, y


def test_scikit_learn_and_numpy_take_trials_for_single_objects():
    X, y = units()
    assert np.asarray(X, dtype=object).shape == (6,)
    assert np.asarray([X[0], np.zeros((3, 2))], dtype=object).shape == (2,)
    assert _safe_indexing(X, [4, 1]) == [X[4], X[1]]
    assert list(_safe_indexing(np.asarray(X, dtype=object), [4, 1])) == [X[4], X[1]]
    train, test, *_ = train_test_split(X, y, test_size=2, random_state=0)
    assert {*map(id, [*train, *test])} == {*map(id, X)}
    again = pickle.loads(pickle.dumps(X[0]))
    for one, two in zip(X[0], again, strict=True):
        assert_array_equal(one, two)
    assert repr(again) == "Trials(n_trials=4)"


def test_containers_of_trials_give_the_same_models():
    X, _ = units()
    hmm = HMMTransformer(2, random_state=0)
    models = hmm.fit_transform(X)
    for container in (np.asarray(X, dtype=object), tuple(X), pd.Series(X)):
        assert hmm.fit_transform(container) == models
    stacks = [np.stack([next(iter(x))[:2]] * 3) for x in X]
    assert hmm.fit_transform([Trials(x) for x in stacks]) == hmm.fit_transform(
        [Trials([*x]) for x in stacks]
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_trials_pass_through_pipelines_and_folds(n_jobs):
    X, y = units(12)
    pipeline = make_pipeline(
        Framewise(),
        Deltas(),
        KNeighborsHMMClassifier(1, hmm=HMMTransformer(2, random_state=0)),
    )
    scores = cross_val_score(clone(pipeline), X, y, cv=3, n_jobs=n_jobs)
    assert_array_equal(scores, 1.0)
    grid = {"kneighborshmmclassifier__hmm__n_components": [1, 2]}
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=n_jobs).fit(X, y)
    assert_array_equal(search.predict(X), y)


@pytest.mark.parametrize("step", [Framewise(), Deltas(order=2), TimeChannel()])
def test_steps_change_each_recording_alone(step):
    X, y = units()
    names = ("a", "b")
    named = [
        Trials(as_sequences([pd.DataFrame(r, columns=names) for r in x])[0]) for x in X
    ]
    changed = step.fit(named, y).transform(named)
    flat = [r for x in named for r in x]
    expected = clone(step).fit(flat, np.repeat(y, 4)).transform(flat)
    assert [len(x) for x in changed] == [4] * 6
    for one, two in zip([r for x in changed for r in x], expected, strict=True):
        assert_array_equal(one, two)
        assert one.feature_names == two.feature_names


def test_columns_are_matched_by_name_within_and_between_units():
    X, _ = units(3)
    tables = [Trials([pd.DataFrame(r, columns=["a", "b"]) for r in x]) for x in X]
    mixed = [tables[0], Trials([t[["b", "a"]] for t in tables[1]]), tables[2]]
    hmm = HMMTransformer(2, random_state=0)
    models = hmm.fit_transform(tables)
    assert models.feature_names == ("a", "b")
    assert hmm.fit_transform(mixed) == models
    wrong = Trials([*[*tables[2]][:1], [*tables[2]][1].rename(columns={"a": "c"})])
    with pytest.raises(
        ValueError, match=r"trial 1 of X\[1\] must have the same columns"
    ):
        hmm.fit([tables[0], wrong])
    with pytest.warns(UserWarning, match=r"trial 0 of X\[1\] does not have valid"):
        hmm.fit([tables[0], X[1]])


def test_recordings_lie_one_after_the_other():
    X, _ = units(2)
    X.insert(1, np.zeros((3, 2)))
    recordings, found = split_units(X)
    assert len(recordings) == 9
    assert_array_equal(found.firsts, [0, 4, 5, 9])
    names = [found.name(i) for i in (3, 4, 5)]
    assert names == ["trial 3 of X[0]", "X[1]", "trial 0 of X[2]"]
    again = found.grouped(recordings)
    assert [type(x) for x in again] == [Trials, np.ndarray, Trials]
    assert [*again[2]] == [*X[2]]
    assert_array_equal(recordings_of(X)[1], found.firsts)
    plain = [np.zeros((3, 2)), np.zeros((2, 2))]
    same, each = split_units(plain)
    assert same is plain
    assert each.grouped(plain) is plain
    assert each.name(1) == "X[1]"
    assert_array_equal(recordings_of(plain)[1], [0, 1, 2])
    assert Units(np.array([0, 2]), [True]).grouped([1, 2], list) == [[1, 2]]


def test_checked_sequences_hold_units():
    X, _ = units()
    checked = CheckedSequences(X, ("a", "b"))
    assert checked.n_features == 2
    assert not checked.is_text
    recordings, found = checked.split()
    assert len(recordings) == 24
    assert len(found.several) == 6
    assert [*checked.taken([3, 0])] == [X[3], X[0]]
    part = checked.channels(np.array([1]))
    assert part.names == ("b",)
    assert_array_equal([*part[2]][1], [*X[2]][1][:, [1]])
    assert next(iter(pickle.loads(pickle.dumps(checked)))).recordings[0].shape[1] == 2


# Bad input.


def test_constructor_takes_lists_of_recordings():
    for wrong, said in (
        (np.zeros((5, 2)), r"array of shape \(5, 2\)"),
        ("abc", "a str"),
        ([1.0, 2.0], "a list of numbers"),
        (3, "a int"),
    ):
        with pytest.raises(
            TypeError, match=rf"recordings must.*{said}.*Trials\(\[x\]\)"
        ):
            Trials(wrong)
    with pytest.raises(TypeError, match="Trials among them"):
        Trials([Trials([np.zeros((2, 1))])])


GOOD = Trials([np.arange(6.0).reshape(3, 2), np.ones((2, 2))])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (Trials([]), r"X\[1\] must hold at least 1 recording, got empty Trials"),
        (Trials([np.ones((2, 2)), np.ones((0, 2))]), r"trial 1 of X\[1\].*1 timestep"),
        (Trials([np.ones((2, 2)), np.ones((2, 3))]), r"\[2, 3\].*trial 1 of X\[1\]"),
        (Trials([np.ones((2, 2)), [[np.inf, 1]]]), r"trial 1 of X\[1\].*infinity"),
        (Trials([[[np.nan] * 2], np.ones((2, 2))]), r"trial 0 of X\[1\].*only NaN"),
        (Trials([np.ones((1, 2))] * 3), r"X\[1\].*transition, got 3 trials of 1 frame"),
        (Trials(["abc", "ab"]), r"trial 0 of X\[1\].*text"),
        ([np.ones((2, 2)), np.ones((3, 2))], r"X\[1\].*Trials\(X\[1\]\)"),
        ([np.ones((2, 2)), np.ones((2, 2))], r"X\[1\].*Trials\(X\[1\]\)"),
        ([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], r"X\[1\].*Trials\(X\[1\]\)"),
    ],
)
def test_errors_name_unit_and_trial(wrong, said):
    with pytest.raises((TypeError, ValueError), match=said):
        HMMTransformer(2).fit_transform([GOOD, wrong])


def test_errors_about_symbols_name_unit_and_trial():
    chains = MarkovChainTransformer("ab").fit(["ab"])
    with pytest.raises(ValueError, match=r"trial 1 of X\[1\] holds the symbol 'c'"):
        chains.transform([Trials(["ab"]), Trials(["ba", "abc"])])
    with pytest.raises(ValueError, match=r"trial 0 of X\[0\] must have at least 1 sym"):
        chains.fit([Trials(["", "ab"])])
    with pytest.raises(ValueError, match=r"Trials\(X\[0\]\)"):
        chains.fit([[[1, 2], [1]]])


def test_arrays_of_four_axes_name_trials():
    with pytest.raises(ValueError, match="given as Trials"):
        HMMTransformer().fit(np.zeros((2, 3, 4, 5)))


def test_labels_are_counted_by_units():
    X, y = units()
    model = KNeighborsHMMClassifier(1).fit(X, y)
    assert_array_equal(model.predict(X), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Framewise().fit(X, np.arange(24))


def test_occupancy_of_a_single_frame_trial_counts():
    x = Trials([[[0.0], [0.1], [5.0], [5.1]], [[5.05]]])
    model = HMMTransformer(2, random_state=0).fit_transform([x])
    assert_allclose(np.sort(model.weights[0]), [0.4, 0.6], atol=1e-6)


# Reading units.


def long_table():
    """Trials 0 and 1 of two subjects, rows not in order; subject "b" has a third."""
    rows = [
        ("b", 0, 1, 5.0, "old"),
        ("a", 0, 0, 1.0, "young"),
        ("b", 0, 0, 4.0, "old"),
        ("a", 1, 0, 3.0, "young"),
        ("a", 0, 1, 2.0, "young"),
        ("b", 1, 0, 6.0, "old"),
        ("b", 2, 0, 7.0, "old"),
    ]
    return pd.DataFrame(rows, columns=["subject", "trial", "time", "v", "age"])


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.to_dict("list")])
def test_trials_of_a_table(make):
    table = make(long_table())
    X, ids, y = as_sequences(
        table, id="trial", unit="subject", time="time", labels="age"
    )
    assert ids.tolist() == ["b", "a"]
    assert y.tolist() == ["old", "young"]
    values = [[trial.ravel().tolist() for trial in x] for x in X]
    assert values == [[[4.0, 5.0], [6.0], [7.0]], [[1.0, 2.0], [3.0]]]
    assert next(iter(X[0])).feature_names == ("v",)


def test_trials_of_an_index_and_of_two_columns_per_unit():
    table = long_table().drop(columns="age").sort_values(["subject", "trial", "time"])
    X, ids = as_sequences(table.set_index(["subject", "trial", "time"]), unit="subject")
    assert ids.tolist() == ["a", "b"]
    assert [len(x) for x in X] == [2, 3]
    table = long_table()
    X, ids = as_sequences(
        table, id="trial", unit=["subject", "age"], time="time", channels="v"
    )
    assert ids.tolist() == [("b", "old"), ("a", "young")]
    assert [len(x) for x in X] == [3, 2]


def test_a_unit_per_sequence():
    rng = np.random.default_rng(0)
    frames, lengths = rng.normal(size=(12, 2)), [3, 2, 4, 1, 2]
    X, ids = as_sequences(frames, lengths=lengths, unit=[7, 3, 7, 3, 7])
    assert ids.tolist() == [7, 3]
    assert [[len(trial) for trial in x] for x in X] == [[3, 4, 2], [2, 1]]
    parts = np.split(frames, np.cumsum(lengths)[:-1])
    again, _ = as_sequences(parts, unit=[7, 3, 7, 3, 7])
    for one, two in zip(X, again, strict=True):
        for left, right in zip(one, two, strict=True):
            assert_array_equal(left, right)
    X, ids = as_sequences([Trials(parts[:2]), parts[2]])
    assert [type(x) for x in X] == [Trials, np.ndarray]
    words, ids = as_sequences(["ab", "ba", "bb"], unit=["x", "y", "x"])
    assert [len(x) for x in words] == [2, 1]


def test_units_that_cannot_be_read():
    table = long_table()
    with pytest.raises(ValueError, match=r"id must name .*unit='subject'"):
        as_sequences(table, unit="subject", time="time", channels="v")
    with pytest.raises(ValueError, match=r"unit must name a column.*'person'"):
        as_sequences(table, id="trial", unit="person", time="time", channels="v")
    table.loc[0, "age"] = "young"
    with pytest.raises(
        ValueError, match=r"'age' must hold one label per unit.*unit 'b'"
    ):
        as_sequences(table, id="trial", unit="subject", time="time", labels="age")
    frames = np.zeros((5, 1))
    with pytest.raises(ValueError, match=r"unit must hold one unit.*2 seq.*\(3,\)"):
        as_sequences(frames, lengths=[3, 2], unit=[0, 1, 2])
    with pytest.raises(ValueError, match=r"lengths must sum to the 5 frames"):
        as_sequences(frames, lengths=[3, 3], unit=[0, 1])
    with pytest.raises(ValueError, match=r"Each row has its own 'trial'"):
        as_sequences(
            {"s": [1, 1], "trial": [0, 1], "v": [0.0, 1]}, id="trial", unit="s"
        )
