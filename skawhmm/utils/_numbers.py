"""Conversion of user input to arrays of numbers, with errors that name the problem."""

from collections.abc import Iterator, Mapping, Set
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Contents other than real numbers, by the kind of an array's dtype.
WRONG_KINDS = {
    "M": "dates",
    "m": "durations",
    "c": "complex values",
    "U": "strings",
    "S": "bytes",
    "T": "strings",
    "V": "records with fields",
}
# The same for arrays of objects.
WRONG_TYPES = (
    (str, "strings"),
    (bytes, "bytes"),
    (complex | np.complexfloating, "complex values"),
    (date | datetime | time | np.datetime64, "dates"),
    (timedelta | np.timedelta64, "durations"),
)
# The largest power of 2 that is a float.
FLOAT_BITS = 1023
# Numbers processed at a time where temporary arrays of the size of a large matrix would
# take too much memory.
BLOCK_NUMBERS = 1 << 20

# Types that NumPy treats as a single object, not as an array of numbers.
NO_ARRAYS = (str, bytes, type, Mapping, Set, Iterator)


def wrong_kind(values):
    """Return a description of the content if it is not real numbers, else None."""
    if values.dtype != object:
        return WRONG_KINDS.get(values.dtype.kind)
    for value in values.ravel():
        for kind, words in WRONG_TYPES:
            if isinstance(value, kind):
                return f"{words}, such as {value!r}"
        if isinstance(value, int) and value.bit_length() > FLOAT_BITS:
            return "an integer beyond the range of floats"
    return None


def aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array whose numbers are aligned in memory.

    Arrays from files, records or messages may be unaligned, which kernels cannot read.
    """
    return np.require(array, requirements="A")


def real_array(name: str, values: Any) -> NDArray[np.float64]:
    """Return an array of float64, or raise unless it is given as real numbers.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    values : array-like
        The input. Texts, dates and complex values raise an error, although NumPy could
        convert them to numbers.

    Returns
    -------
    array : ndarray of float64
        The numbers, NaN where they were masked; copied only if necessary.
    """
    wanted = f"{name} must be an array of numbers"
    if sparse.issparse(values):
        # scikit-learn's own checks expect these first words.
        raise TypeError(
            f"Sparse data was passed for {name}, but an array is required. Use "
            f"{name}.toarray()."
        )
    if values is None or isinstance(values, NO_ARRAYS):
        shown = "None" if values is None else f"a {type(values).__name__}"
        raise TypeError(f"{wanted}, got {shown}.")
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(values)
        return np.where(hidden, np.nan, real_array(name, values.data))
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{wanted}, got nested lists of several lengths.") from error
    wrong = wrong_kind(array)
    if wrong is not None:
        start = "Complex data not supported: " * wrong.startswith("complex")
        raise ValueError(f"{start}{wanted}, got {wrong}.")
    try:
        return aligned(np.asarray(array, dtype=np.float64))
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(
            f"{wanted}, got objects that are not numbers ({error})."
        ) from error


def check_square(name: str, values: Any, of: str = "model") -> NDArray[np.float64]:
    """Return a square matrix, or raise."""
    matrix = real_array(name, values)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(
            f"{name} must be a square matrix with one row per {of}, got shape "
            f"{matrix.shape}."
        )
    return matrix


def shaped_array(name: str, values: Any, *axes: int | str) -> NDArray[np.float64]:
    """Return an array of the wanted shape, or raise.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    values : array-like
        What was given.

    *axes : int or str
        Length of each axis, or the name of an axis of any length except 0.

    Returns
    -------
    array : ndarray of float64
        The numbers.
    """
    array = real_array(name, values)
    fits = array.ndim == len(axes) and all(
        size > 0 if isinstance(axis, str) else size == axis
        for size, axis in zip(array.shape, axes, strict=True)
    )
    if not fits:
        shape = ", ".join(map(str, axes)) + "," * (len(axes) == 1)
        raise ValueError(
            f"{name} must have shape ({shape}) without empty axes, got {array.shape}."
        )
    return array


def check_one_type(name: str, labels: Any, of: str = "") -> None:
    """Raise if labels mix text and other types: NumPy would turn all into text.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    labels : array-like
        What was given.

    of : str, default=""
        Word for the labelled item, if no label may be missing (None, NaN, NA).
    """
    if not isinstance(labels, list | tuple):
        dtype = getattr(labels, "dtype", None)
        kind = getattr(dtype, "kind", "O")
        if dtype is None or np.ndim(labels) == 0 or kind not in "Of":
            return
        if kind == "f" and not np.isnan(labels).any():
            return
        labels = np.asarray(labels, dtype=object).ravel().tolist()
    first: dict[bool, Any] = {}
    for i, label in enumerate(labels):
        if not _is_missing(label):
            first.setdefault(isinstance(label, str | bytes), label)
        elif of:
            raise ValueError(
                f"{name} must hold a label for every {of}, got {label!r} at index {i}."
            )
    if len(first) == 2:
        raise TypeError(
            f"{name} must hold labels of one type, got text ({first[True]!r}) and "
            f"{type(first[False]).__name__} ({first[False]!r}). Write all of them as "
            "text, or all as numbers."
        )


def _is_missing(label):
    """Whether a label is None, NaN, NaT or NA."""
    is_nan = isinstance(label, float | np.floating) and np.isnan(label)
    return label is None or is_nan or type(label).__name__ in {"NAType", "NaTType"}


def label_array(
    name: str, labels: Any, n_labels: int, of: str = "model"
) -> NDArray[Any]:
    """Return labels as an array with one axis, or raise if their number is wrong.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    labels : array-like of shape (n_labels,)
        What was given.

    n_labels : int
        Expected number of labels.

    of : str, default="model"
        Word for the labelled item.

    Returns
    -------
    labels : ndarray of shape (n_labels,)
        The labels.
    """
    many = f"{of[:-1]}ies" if of.endswith("y") else f"{of}s"
    wanted = f"{name} must hold one label per {of} ({n_labels} {many})"
    if labels is None:
        raise ValueError(f"{wanted}, got None.")
    if isinstance(labels, NO_ARRAYS) or hasattr(labels, "get_params"):
        raise TypeError(f"{wanted}, got a {type(labels).__name__}.")
    check_one_type(name, labels)
    try:
        array = np.asarray(labels)
    except ValueError as error:
        raise ValueError(f"{wanted}, got nested lists of several lengths.") from error
    if array.shape != (n_labels,):
        raise ValueError(f"{wanted}, got shape {array.shape}.")
    return array


def distinct_labels(
    name: str, labels: Any, n_labels: int, of: str = "model"
) -> tuple[Any, Any]:
    """Return the distinct labels in order, and the index of each label among them."""
    if labels is None:
        return np.unique(np.zeros(n_labels), return_inverse=True)
    array = label_array(name, labels, n_labels, of)
    check_one_type(name, labels, of)
    try:
        return np.unique(array, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in array.tolist()})
        raise TypeError(
            f"{name} must hold labels that can be sorted, got the types {kinds}."
        ) from error


def row_blocks(matrix: NDArray[Any]) -> Iterator[slice]:
    """Yield slices of rows that limit the numbers processed at a time."""
    size = max(BLOCK_NUMBERS // max(matrix[:1].size, 1), 1)
    for first in range(0, len(matrix), size):
        yield slice(first, first + size)
