import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from skawhmm import HMMTransformer, KNeighborsHMMClassifier
from skawhmm.sequences import _checks, as_sequences
from skawhmm.sequences._checked import CheckedSequences
from skawhmm.sequences._checks import check_input, check_sequences


def test_forms_of_input_agree(rng):
    cube = rng.normal(size=(3, 5, 2))
    ragged = np.empty(3, object)
    ragged[:] = list(cube)
    for form in (list(cube), tuple(cube), ragged, [x.tolist() for x in cube]):
        for got, wanted in zip(
            check_sequences(form), check_sequences(cube), strict=True
        ):
            np.testing.assert_array_equal(got, wanted)


def test_rows_of_a_matrix_are_univariate(rng):
    X = rng.normal(size=(4, 6))
    for form in (X, X.tolist(), list(X)):
        sequences = check_sequences(form)
        assert [x.shape for x in sequences] == [(6, 1)] * 4
        np.testing.assert_array_equal(sequences[2][:, 0], X[2])


def test_univariate_lists_may_differ_in_length():
    sequences = check_sequences([np.arange(3), np.arange(5.0)])
    assert [x.shape for x in sequences] == [(3, 1), (5, 1)]


def test_trailing_padding_is_removed_and_inner_gaps_kept():
    X = np.ones((2, 4, 2))
    X[0, 2:] = np.nan
    X[1, 1] = np.nan
    first, second = check_sequences(X)
    assert first.shape == (2, 2)
    assert second.shape == (4, 2)
    assert np.isnan(second[1]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool])
def test_other_types_and_orders_become_c_contiguous_floats(dtype):
    x = np.asfortranarray(np.arange(6).reshape(3, 2)).astype(dtype, order="F")
    (got,) = check_sequences([x])
    assert got.dtype == np.float64
    assert got.flags.c_contiguous
    np.testing.assert_array_equal(got, x)


def test_good_arrays_are_not_copied(rng):
    x = rng.normal(size=(4, 2))
    assert check_sequences([x])[0] is x


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([], ValueError, "at least one sequence"),
        ([np.ones((2, 1)), np.ones((2, 3))], ValueError, r"got \[1, 3\]"),
        ([np.ones((2, 2)), np.full((2, 2), np.inf)], ValueError, r"X\[1\].*infinity"),
        ([np.ones((2, 2)), np.full((2, 2), np.nan)], ValueError, r"X\[1\].*only NaN"),
        ([np.ones((2, 2)), np.empty((0, 2))], ValueError, r"X\[1\].*1 timestep"),
        ([np.ones((2, 2)), np.full((2, 2), 1e200)], ValueError, r"X\[1\].*1e\+200"),
        ([np.ones((2, 2)), np.ones((2, 2, 2))], ValueError, r"X\[1\].*\(2, 2, 2\)"),
        ([np.ones((2, 2)), np.array([["a", "b"]])], ValueError, r"X\[1\].*numbers"),
        ([np.ones((2, 2)) * 1j], ValueError, r"X\[0\].*complex"),
        ([np.ones((2, 0))], ValueError, "at least 1 feature"),
        (np.ones(3), ValueError, "1D array"),
        (np.ones((1, 2, 3, 4)), ValueError, r"\(1, 2, 3, 4\)"),
        (sparse.eye(3), TypeError, "Sparse data"),
    ],
)
def test_errors_say_what_and_where(X, error, message):
    with pytest.raises(error, match=message):
        check_sequences(X)


def test_number_of_features_is_held():
    with pytest.raises(ValueError, match="X has 2 features, but Model is expecting 3"):
        check_sequences([np.ones((4, 2))], n_features=3, caller="Model")


@pytest.fixture
def checked(rng):
    X = [rng.normal(size=(n, 2)) for n in (3, 4, 5)]
    return check_input(BaseEstimator(), X, reset=True)


def test_estimators_get_checked_sequences_and_users_ordinary_lists(checked):
    assert isinstance(checked, CheckedSequences)
    assert type(check_sequences([*checked])) is list
    assert type(as_sequences([*checked])[0]) is list
    models = HMMTransformer(1, keep_sequences=True).fit_transform(checked)
    assert type(models.sequences) is list


def test_checked_sequences_are_returned_unchanged(checked):
    assert check_sequences(checked) is checked
    assert check_input(BaseEstimator(), checked, reset=True) is checked
    with pytest.raises(ValueError, match="X has 2 features, but Model is expecting 3"):
        check_sequences(checked, n_features=3, caller="Model")
    one = BaseEstimator()
    check_input(one, [np.ones((4, 1))], reset=True)
    with pytest.raises(ValueError, match="X has 2 features, but BaseEstimator"):
        check_input(one, checked, reset=False)


def test_parts_and_copies_of_checked_sequences_are_checked(checked):
    parts = [checked[1:], checked.taken(np.array([1, 2]))]
    for part in [*parts, copy.copy(parts[0]), pickle.loads(pickle.dumps(parts[0]))]:
        assert isinstance(part, CheckedSequences)
        assert [len(x) for x in part] == [4, 5]
    assert checked[0].shape == (3, 2)
    # What users make of them is an ordinary list, and checked again.
    for other in (list(checked), checked.copy(), checked + checked):
        assert type(other) is list


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("__setitem__", (0, None)),
        ("__delitem__", (0,)),
        ("__iadd__", ([],)),
        ("__imul__", (2,)),
        ("append", (None,)),
        ("extend", ([],)),
        ("insert", (0, None)),
        ("pop", ()),
        ("remove", (None,)),
        ("clear", ()),
        ("sort", ()),
        ("reverse", ()),
    ],
)
def test_checked_sequences_cannot_be_changed(checked, name, arguments):
    with pytest.raises(TypeError, match=r"cannot be changed.*list\(X\)"):
        getattr(checked, name)(*arguments)
    assert [len(x) for x in checked] == [3, 4, 5]


def test_estimators_inside_others_do_not_check_again(monkeypatch, make_sequences):
    X, y = make_sequences()
    seen = []
    check = _checks.check_values

    def counted(x, i):
        seen.append(i)
        check(x, i)

    monkeypatch.setattr(_checks, "check_values", counted)
    knn = KNeighborsHMMClassifier(1, hmm=HMMTransformer(1)).fit(X, y)
    assert seen == list(range(6))
    knn.predict(X[:2])
    assert seen == [*range(6), 0, 1]


@pytest.mark.parametrize("X", [[[[1, 10**400], [1, 2]]], [[1, 10**400]], [[[10**400]]]])
def test_integers_beyond_the_range_of_floats_are_named(X):
    with pytest.raises(ValueError, match=r"^X.* got an integer beyond the range"):
        HMMTransformer(1).fit(X)
