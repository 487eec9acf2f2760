from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from skawhmm.utils._numbers import (
    check_one_type,
    check_square,
    distinct_labels,
    label_array,
    real_array,
    shaped_array,
)


@pytest.mark.parametrize(
    "values",
    [[1, 2], (1.0, 2.0), np.array([1, 2], np.int8), np.array([1, 2], object)],
)
def test_numbers_of_any_type_are_read(values):
    array = real_array("X", values)
    assert array.dtype == np.float64
    assert_array_equal(array, [1.0, 2.0])


def test_an_array_of_floats_is_not_copied():
    array = np.zeros(3)
    assert real_array("X", array) is array


def test_masked_values_are_missing():
    given = np.ma.array([1.0, 9.0], mask=[False, True])
    assert_array_equal(real_array("X", given), [1.0, np.nan])
    assert given.data[1] == 9


@pytest.mark.parametrize(
    ("values", "came"),
    [
        (["1", "2"], "strings"),
        ([1, "2"], "strings"),
        (np.array([1, "2"], object), "strings, such as '2'"),
        ([b"1"], "bytes"),
        (np.zeros(2, "M8[s]"), "dates"),
        ([datetime(2020, 1, 1, tzinfo=UTC)], "dates, such as"),
        (np.zeros(2, "m8[s]"), "durations"),
        ([1j], "complex values"),
        (np.zeros(2, [("a", float)]), "records with fields"),
        ([[1.0], [1.0, 2.0]], "nested lists of several lengths"),
        ("12", "a str"),
        (None, "None"),
        ({1.0}, "a set"),
        ({"a": 1}, "a dict"),
        (iter([1.0]), "a list_iterator"),
        (float, "a type"),
        ([object()], "objects that are not numbers"),
        ([10**400], "an integer beyond the range of floats"),
    ],
)
def test_input_without_numbers_is_named(values, came):
    with pytest.raises((TypeError, ValueError)) as caught:
        real_array("means", values)
    assert "means must be an array of numbers, got " + came in str(caught.value)


def test_sparse_matrices_are_refused():
    with pytest.raises(TypeError, match=r"Use X\.toarray"):
        real_array("X", sparse.eye_array(2))


def test_labels_have_one_axis():
    assert_array_equal(label_array("y", ["a", "1"], 2), ["a", "1"])
    with pytest.raises(ValueError, match=r"y must hold one label per model \(3 models"):
        label_array("y", [0, 1], 3)
    with pytest.raises(ValueError, match=r"\(2 queries\), got shape \(\)"):
        label_array("y_query", 5, 2, of="query")
    for wrong in ("ab", {0, 1}, {0: 1, 1: 2}, iter([0, 1])):
        with pytest.raises(TypeError, match=r"^y must hold one label per model"):
            label_array("y", wrong, 2)


@pytest.mark.parametrize(
    "labels",
    [["a", 0], ("a", 0.5), np.array(["a", 0], dtype=object), [None, 1, "b", np.nan]],
    ids=str,
)
def test_text_and_numbers_are_not_mixed(labels):
    # NumPy turns such a list into text without a word, and cannot sort such an array.
    with pytest.raises(TypeError, match="y must hold labels of one type, got text"):
        label_array("y", labels, len(labels))


@pytest.mark.parametrize(
    "labels",
    [["a", b"b"], [1, 2.5, True], [None, "b"], [np.str_("a"), "b"], np.arange(2), []],
    ids=str,
)
def test_labels_of_one_type_may_be_of_any(labels):
    check_one_type("y", labels)


def test_labels_that_cannot_be_sorted_are_named():
    names, codes = distinct_labels("y", ["b", "a", "b"], 3)
    assert_array_equal(names[codes], ["b", "a", "b"])
    assert_array_equal(distinct_labels("y", None, 3)[1], [0, 0, 0])
    with pytest.raises(TypeError, match="y must hold labels that can be sorted, got"):
        distinct_labels("y", [1, object()], 2)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT], ids=str)
def test_missing_labels_are_named(missing):
    for labels in (["a", missing], pd.Series(["a", missing])):
        with pytest.raises(ValueError, match=r"y must .* label .* got .* at index 1"):
            distinct_labels("y", labels, 2)
        check_one_type("y", labels)
    with pytest.raises(ValueError, match="got nan at index 0"):
        check_one_type("y", np.array([np.nan, 1.0]), "model")


def test_shapes_are_checked():
    assert shaped_array("scores", [[1, 2]], 1, "n_folds").shape == (1, 2)
    with pytest.raises(
        ValueError, match=r"scores must have shape \(n_folds,\) .* \(0,"
    ):
        shaped_array("scores", [], "n_folds")
    with pytest.raises(ValueError, match=r"shape \(2, n_folds\) .* got \(1, 2\)"):
        shaped_array("scores", [[1, 2]], 2, "n_folds")


@pytest.mark.parametrize("values", [np.zeros((2, 3)), np.zeros((0, 0)), np.zeros(4)])
def test_matrices_are_square(values):
    with pytest.raises(ValueError, match="distances must be a square matrix"):
        check_square("distances", values)


def test_numbers_of_packed_records_are_aligned():
    packed = np.zeros(3, dtype=[("flag", "u1"), ("value", "f8")])
    packed["value"] = [1.0, 2.0, 3.0]
    assert not packed["value"].flags.aligned
    read = real_array("X", packed["value"])
    assert read.flags.aligned
    np.testing.assert_array_equal(read, [1.0, 2.0, 3.0])


def test_aligned_numbers_are_not_copied():
    values = np.arange(3.0)
    assert real_array("X", values) is values


def test_numbers_beyond_the_range_of_floats_are_named():
    with pytest.raises(ValueError, match=r"^it must be .* an integer beyond the range"):
        real_array("it", [10**400, 1])
    with pytest.raises(TypeError, match=r"^it must be an array of numbers"):
        real_array("it", [Fraction(10**400), 1])
