"""Sequences from tables: columns by name, rows by sequence and time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

import numpy as np

from skawhmm.sequences._forms import package_type, warn_caller
from skawhmm.sequences._missing import MISSING, is_missing, string_array
from skawhmm.utils._numbers import aligned, wrong_kind

# Number of names that a message lists.
SHOWN = 8


@dataclass
class Table:
    """Columns by name, from any package."""

    names: list[Any]
    n_rows: int
    column: Callable[[Any], np.ndarray]
    # Names of the levels of the index: columns that are channels only if named.
    levels: list[Any] = field(default_factory=list)


def is_columns(data):
    """Whether data is a table, a structured array or a dict of columns."""
    is_structured = isinstance(data, np.ndarray) and data.dtype.names is not None
    return package_type(data)[1] in {"DataFrame", "Table", "RecordBatch"} or (
        is_structured or isinstance(data, Mapping)
    )


def open_table(data):
    """Return a table from any package, a dict or a structured array as `Table`."""
    package = package_type(data)[0]
    if package == "pandas":
        return _pandas_table(data)
    if package == "polars":
        return Table([*data.columns], data.height, lambda name: data[name].to_numpy())
    if package == "pyarrow":
        return Table([*data.column_names], data.num_rows, _arrow_column(data))
    if isinstance(data, Mapping):
        columns = {name: np.asarray(values) for name, values in data.items()}
        sizes = {name: column.shape for name, column in columns.items()}
        if any(len(s) != 1 for s in sizes.values()) or len({*sizes.values()}) != 1:
            raise ValueError(
                f"The columns of a table must have one length, got shapes {sizes}."
            )
        return Table([*columns], next(iter(sizes.values()))[0], columns.__getitem__)
    return Table([*data.dtype.names], len(data), data.__getitem__)


def _arrow_column(data):
    def column(name):
        values = data.column(name)
        # Arrays of a RecordBatch only copy if they are allowed to.
        if package_type(values)[1] == "Array":
            return values.to_numpy(zero_copy_only=False)
        return values.to_numpy()

    return column


def _pandas_table(data):
    index = data.index
    levels: list[Any] = []
    if index.nlevels > 1 or index.name is not None:
        levels = [f"level_{k}" if n is None else n for k, n in enumerate(index.names)]
    names = [*data.columns]
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Columns must have distinct names, got {twice!r} twice.")
    levels = [name for name in levels if name not in names]

    def column(name):
        if name not in levels:
            return _pandas_values(data[name])
        level = index.names.index(name) if name in index.names else levels.index(name)
        return _pandas_values(index.get_level_values(level).to_series())

    return Table(names + levels, len(data), column, levels)


def _pandas_values(column):
    dtype = column.dtype
    kind = getattr(dtype, "kind", "O")
    if isinstance(dtype, np.dtype):
        return column.to_numpy()
    if kind in "iufb":
        return column.to_numpy(dtype=float, na_value=np.nan)
    if kind == "M":
        # Times in a time zone are converted to UTC.
        return column.to_numpy(dtype="datetime64[ns]")
    return np.asarray(column)


def check_column(table, argument, name):
    """Return a column, or raise unless the table has it."""
    if name not in table.names:
        raise ValueError(
            f"{argument} must name a column, one of {shown(table.names)}, got {name!r}."
        )
    return table.column(name)


def shown(names):
    """Return the first few names as a text."""
    more = ", ..." if len(names) > SHOWN else ""
    return "[" + ", ".join(repr(name) for name in names[:SHOWN]) + more + "]"


def numbers(values, where):
    """Return values as floats, or raise unless they are real numbers or missing.

    Parameters
    ----------
    values : ndarray
        Of any type; None, NaN, NA and masked entries are missing.

    where : str
        Description of the values for the message.

    Returns
    -------
    values : ndarray of float64 of the same shape
        The numbers, NaN where they are missing.
    """
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(values)
        data = np.array(numbers(np.where(hidden, 0, values.data), where))
        data[hidden] = np.nan
        return data
    wrong = wrong_kind(values)
    if wrong is not None:
        raise ValueError(f"{where} must hold numbers, got {wrong}.")
    if values.dtype != object:
        return aligned(np.asarray(values, dtype=np.float64))
    known = [np.nan if is_missing(value) else value for value in values.ravel()]
    try:
        return np.array(known, dtype=np.float64).reshape(values.shape)
    except (TypeError, ValueError, OverflowError) as error:
        odd = next((v for v in known if not isinstance(v, Number)), known[0])
        raise ValueError(
            f"{where} must hold numbers, got an object of type {type(odd).__name__}."
        ) from error


def channel_names(table, channels, used):
    """Return the columns of the channels: the named ones, or all unused ones."""
    if channels is None:
        taken = {*used, *table.levels}
        names = [name for name in table.names if name not in taken]
    else:
        names = [*channels] if isinstance(channels, list | tuple) else [channels]
    for name in names:
        check_column(table, "channels", name)
    if not names:
        raise ValueError("channels must name at least one column, got none.")
    return names


def matrix(table, names):
    """Return the channels as an array of shape (n_rows, n_channels).

    Parameters
    ----------
    table : Table
        The table.

    names : list
        Columns. A single one may hold strings, which are symbols.

    Returns
    -------
    values : ndarray of shape (n_rows, n_channels), or (n_rows,) if it holds symbols
        Float64, or strings.
    """
    columns = [table.column(name) for name in names]
    if len(columns) == 1 and is_text(columns[0]):
        _warn_of_decimals(names[0], columns[0])
        return string_array(columns[0])
    out = np.empty((table.n_rows, len(names)))
    for k, (name, column) in enumerate(zip(names, columns, strict=True)):
        wrong = wrong_kind(column) if column.ndim == 1 else "sequences"
        if wrong is not None:
            raise ValueError(
                f"The column {name!r} must hold numbers, got {wrong}."
                f"{_hint_of_columns(names, columns, column)}"
            )
        out[:, k] = numbers(column, f"The column {name!r}")
    return out


def _warn_of_decimals(name, column):
    """Warn of symbols that are decimal numbers, such as "1.5"."""
    decimal = next((v for v in column if isinstance(v, str) and "." in v), None)
    if decimal is not None and are_numbers(column):
        warn_caller(
            f"The column {name!r} holds texts that are numbers, such as {decimal!r}; "
            "they were read as symbols. Convert them to numbers first, for example by "
            "pandas.to_numeric."
        )


def _hint_of_columns(names, columns, wrong):
    """Return a hint for columns that hold strings."""
    if is_text(wrong) and are_numbers(wrong):
        return " Convert strings to numbers first, for example by pandas.to_numeric."
    texts = [n for n, c in zip(names, columns, strict=True) if is_text(c)]
    if len(texts) > 1:
        return (
            " If each row is a sequence of symbols, name their columns: "
            f"channels={shown(texts)}."
        )
    fit = [n for n, c in zip(names, columns, strict=True) if not wrong_kind(c)]
    if fit:
        return f" The channels can be named: channels={shown(fit)}."
    return " Sequences of symbols are read from a single column: channels=..."


def are_numbers(texts):
    """Whether all texts in an array, which may have missing entries, are numbers."""
    try:
        np.array(
            [v for v in np.ravel(texts) if not is_missing(v) and v != MISSING], float
        )
    except ValueError:
        return False
    return True


def is_text(column):
    """Whether a column holds strings, some of which may be missing."""
    if column.dtype.kind in "UT":
        return True
    if column.dtype != object:
        return False
    texts = [isinstance(v, str) for v in column if not is_missing(v)]
    return all(texts) and len(texts) > 0


def symbol_rows(table, names):
    """Return one sequence of symbols per row of a wide table of strings, else None.

    Missing symbols at the end of a row are cut off. Columns without any symbol are
    allowed: sequences may be shorter than the table is wide.
    """
    columns = [table.column(name) for name in names]
    texts = [is_text(column) for column in columns]
    empty = [column.dtype != bool and _missing_rows(column).all() for column in columns]
    if len(names) < 2 or not any(texts) or not all(map(np.logical_or, texts, empty)):
        return None
    rows = np.stack([string_array(column) for column in columns], axis=1)
    lasts = [np.flatnonzero(row) for row in rows != MISSING]
    return [
        row[: last[-1] + 1 if len(last) else 0]
        for row, last in zip(rows, lasts, strict=True)
    ]


def group_codes(columns, names):
    """Return the number of the sequence of each row, and the ids.

    Parameters
    ----------
    columns : list of ndarray of shape (n_rows,)
        Columns that identify sequences.

    names : list
        Names of the columns.

    Returns
    -------
    codes : ndarray of int of shape (n_rows,)
        Sequences are numbered in the order in which they first appear.

    ids : ndarray of shape (n_sequences,)
        Tuples if there are several columns.
    """
    combined = np.zeros(len(columns[0]), np.int64)
    for name, column in zip(names, columns, strict=True):
        missing = np.flatnonzero(_missing_rows(column))
        if len(missing):
            raise ValueError(
                f"The column {name!r} identifies sequences and must have a value in "
                f"every row, got none in row {missing[0]} and {len(missing) - 1} "
                "others."
            )
        part = _value_codes(column)
        # Renumbered after each column, so that the numbers stay small.
        combined = combined * (part.max(initial=0) + 1) + part
        combined = np.unique(combined, return_inverse=True)[1]
    _, first, codes = np.unique(combined, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    chosen = [column[first[order]] for column in columns]
    if len(columns) == 1:
        return rank[codes], id_array(_items(chosen[0]), chosen)
    return rank[codes], id_array(zip(*map(_items, chosen), strict=True))


def _missing_rows(column):
    if column.dtype.kind in "Mm":
        return np.isnat(column)
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype != object:
        return np.zeros(len(column), bool)
    return np.array([is_missing(v) for v in column], bool)


def _value_codes(column):
    """Return one number per distinct value."""
    if column.dtype != object:
        return np.unique(column, return_inverse=True)[1]
    # Values of mixed types cannot be sorted.
    places: dict[Any, int] = {}
    return np.array([places.setdefault(v, len(places)) for v in column], np.int64)


def _items(column):
    """Return the values as Python objects; dates stay unchanged."""
    return [*column] if column.dtype.kind in "Mm" else column.tolist()


def id_array(ids, columns=()):
    """Return ids as an array with one axis; tuples stay tuples."""
    ids = [*ids]
    if len(columns) == 1 and columns[0].dtype != object:
        return np.array(ids, dtype=columns[0].dtype)
    types = {type(value) for value in ids}
    if types <= {str} or types <= {int}:
        return np.array(ids)
    out = np.empty(len(ids), object)
    out[:] = ids
    return out


def warn_of_constant_columns(values, codes, names):
    """Warn of channels that have one value per sequence, such as an age.

    `values` are rows sorted by sequence, `codes` the sequence of each row.
    """
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    if values.ndim == 1 or len(starts) < 2 or len(starts) == len(codes):
        return
    low, high = (f.reduceat(values, starts, axis=0) for f in (np.minimum, np.maximum))
    fixed = (low == high).all(axis=0) & (low != low[0]).any(axis=0)
    if not fixed.any() or fixed.all():
        return
    found = [name for name, is_fixed in zip(names, fixed, strict=True) if is_fixed]
    others = [name for name in names if name not in found]
    warn_caller(
        f"The columns {shown(found)} have one value per sequence, so they describe "
        f"sequences, not frames. They were read as channels; to leave them out, write "
        f"labels={shown(found)} or channels={shown(others)}."
    )


def shown_value(value):
    """Return a value formatted for a message."""
    is_plain = isinstance(value, np.number | np.str_ | np.bool_)
    return repr(value.item()) if is_plain else str(value)


def group_labels(codes, labels, ids, name, *, of="sequence"):
    """Return one label per sequence, or raise if the rows of a sequence disagree.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        Number of the sequence of each row.

    labels : ndarray of shape (n_rows,)
        The label of each row.

    ids : ndarray of shape (n_sequences,)
        Names of the sequences.

    name : object
        Name of the column of labels.

    of : str, default="sequence"
        Word for a labelled item in messages.

    Returns
    -------
    labels : ndarray of shape (n_sequences,)
        The labels.
    """
    _, first = np.unique(codes, return_index=True)
    chosen = labels[first]
    missing = np.flatnonzero(_missing_rows(chosen))
    if len(missing):
        raise ValueError(
            f"The column {name!r} must hold one label per {of}, got none in {of} "
            f"{shown_value(ids[missing[0]])}."
        )
    differ = np.flatnonzero(chosen[codes] != labels)
    if len(differ):
        row = differ[0]
        raise ValueError(
            f"The column {name!r} must hold one label per {of}, got "
            f"{shown_value(chosen[codes[row]])} and {shown_value(labels[row])} in "
            f"{of} {shown_value(ids[codes[row]])}."
        )
    return id_array(chosen.tolist(), (chosen,))
