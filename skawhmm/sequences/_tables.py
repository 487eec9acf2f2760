"""Sequences from tables: columns by name, rows by sequence and time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from numbers import Number
from typing import Any

import numpy as np

from skawhmm.sequences._forms import package_type, warn_caller
from skawhmm.utils._numbers import aligned, wrong_kind

# A step in time this many times the usual one of its sequence is a gap.
GAP = 1.5
# Number of names that a message lists.
SHOWN = 8


@dataclass
class Table:
    """Columns by name, whichever package keeps them."""

    names: list[Any]
    n_rows: int
    column: Callable[[Any], np.ndarray]
    # Names of the levels of the index: columns that are channels only if named.
    levels: list[Any] = field(default_factory=list)


def is_columns(data):
    """Whether data is a table, or can be one: fields, or a dict of columns."""
    is_structured = isinstance(data, np.ndarray) and data.dtype.names is not None
    return package_type(data)[1] in {"DataFrame", "Table", "RecordBatch"} or (
        is_structured or isinstance(data, Mapping)
    )


def open_table(data):
    """Return the columns of a table of any package, of a dict or of fields."""
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
        # Times of a zone become times of UTC.
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
        What it is, for the message.

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
    known = [np.nan if _is_missing(value) else value for value in values.ravel()]
    try:
        return np.array(known, dtype=np.float64).reshape(values.shape)
    except (TypeError, ValueError, OverflowError) as error:
        odd = next((v for v in known if not isinstance(v, Number)), known[0])
        raise ValueError(
            f"{where} must hold numbers, got an object of type {type(odd).__name__}."
        ) from error


def _is_missing(value):
    return value is None or type(value).__name__ == "NAType"


def channel_names(table, channels, used):
    """Return the columns that are channels: those named, or all that are not used."""
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
    if len(columns) == 1 and _is_text(columns[0]):
        return columns[0].astype(str)
    out = np.empty((table.n_rows, len(names)))
    for k, (name, column) in enumerate(zip(names, columns, strict=True)):
        wrong = wrong_kind(column) if column.ndim == 1 else "sequences"
        if wrong is not None:
            fit = [n for n, c in zip(names, columns, strict=True) if not wrong_kind(c)]
            raise ValueError(
                f"The column {name!r} must hold numbers, got {wrong}. The channels can "
                f"be named: channels={shown(fit)}."
            )
        out[:, k] = numbers(column, f"The column {name!r}")
    return out


def _is_text(column):
    if column.dtype.kind in "UT":
        return True
    return column.dtype == object and all(isinstance(v, str) for v in column)


def group_codes(columns, names):
    """Return the number of the sequence of each row, and the ids.

    Parameters
    ----------
    columns : list of ndarray of shape (n_rows,)
        What identifies sequences.

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
        # Numbered anew after each column, so that the numbers stay small.
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
    # Only NaN differs from itself.
    return np.array([_is_missing(v) or v != v for v in column], bool)  # noqa: PLR0124


def _value_codes(column):
    """Return one number per distinct value."""
    if column.dtype != object:
        return np.unique(column, return_inverse=True)[1]
    # Values of several types cannot be sorted.
    places: dict[Any, int] = {}
    return np.array([places.setdefault(v, len(places)) for v in column], np.int64)


def _items(column):
    """Return the values as objects of Python, but dates as they are."""
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


def time_values(column, name):
    """Return times as numbers that can be compared and subtracted.

    Parameters
    ----------
    column : ndarray of shape (n_rows,)
        Numbers, dates, durations or periods.

    name : object
        Name of the column.

    Returns
    -------
    times : ndarray of shape (n_rows,)
        Int64 or float64.
    """
    if column.dtype == object and len(column):
        first = column[0]
        if hasattr(first, "ordinal"):
            column = np.array([value.ordinal for value in column])
        elif isinstance(first, date | timedelta | np.datetime64 | np.timedelta64):
            unit = "m8[us]" if isinstance(first, timedelta) else "M8[us]"
            column = np.array([*column], dtype=unit)
    if column.dtype.kind in "Mm":
        missing, times = np.isnat(column), column.astype(np.int64)
    else:
        wrong = wrong_kind(column)
        if wrong is not None:
            raise ValueError(
                f"The column {name!r} must hold numbers or dates to order frames by, "
                f"got {wrong}. Convert texts to dates with pandas.to_datetime."
            )
        is_whole = column.dtype.kind in "iub"
        times = column.astype(np.int64) if is_whole else numbers(column, str(name))
        missing = np.isnan(times)
    if missing.any():
        raise ValueError(
            f"The column {name!r} must hold a time in every row, got none in row "
            f"{int(np.argmax(missing))} and {int(missing.sum()) - 1} others."
        )
    return times


def row_order(codes, times, ids, raw, name):
    """Return the rows by sequence and time; gaps and repeated times are reported.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        Number of the sequence of each row.

    times : ndarray of shape (n_rows,) or None
        When it was measured; None keeps the order of the rows.

    ids : ndarray of shape (n_sequences,)
        Names of the sequences.

    raw : ndarray of shape (n_rows,)
        The times as they were given, for messages.

    name : object
        Name of the column of times.

    Returns
    -------
    order : ndarray of int of shape (n_rows,)
        Row numbers.
    """
    if times is None:
        return np.argsort(codes, kind="stable")
    order = np.lexsort((times, codes))
    same = codes[order][1:] == codes[order][:-1]
    steps = np.diff(times[order])
    twice = np.flatnonzero(same & (steps == 0))
    if len(twice):
        row = order[twice[0]]
        time, sequence = _shown_value(raw[row]), _shown_value(ids[codes[row]])
        raise ValueError(
            f"The column {name!r} must not repeat a time within a sequence, got {time} "
            f"twice in sequence {sequence} ({len(twice)} rows repeat a time). If "
            "several sequences are mixed, the argument id names the columns that tell "
            "them apart."
        )
    kept = np.flatnonzero(same)
    _warn_of_gaps(codes[order][kept], steps[kept], order[kept], ids, raw, order, name)
    return order


def _warn_of_gaps(codes, steps, rows, ids, raw, order, name):
    """Warn if a step is much longer than the median step of its sequence."""
    if not len(steps):
        return
    by_size = np.lexsort((steps, codes))
    starts = np.flatnonzero(np.r_[True, np.diff(codes) > 0])
    counts = np.diff(np.r_[starts, len(codes)])
    usual = np.repeat(steps[by_size][starts + (counts - 1) // 2], counts)
    gaps = np.flatnonzero(steps > GAP * usual)
    if not len(gaps):
        return
    place = {row: k for k, row in enumerate(order.tolist())}
    before = rows[gaps[0]]
    after = order[place[int(before)] + 1]
    affected = len(np.unique(codes[gaps]))
    warn_caller(
        f"{affected} of {len(ids)} sequences have gaps in the column {name!r}; the "
        f"first, {_shown_value(ids[codes[gaps[0]]])}, goes from "
        f"{_shown_value(raw[before])} to {_shown_value(raw[after])}. Their frames are "
        "read as if they followed each other."
    )


def _shown_value(value):
    is_plain = isinstance(value, np.number | np.str_ | np.bool_)
    return repr(value.item()) if is_plain else str(value)


def group_labels(codes, labels, ids, name, *, of="sequence"):
    """Return one label per sequence, or raise unless all its rows agree.

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
        What messages call what has a label.

    Returns
    -------
    labels : ndarray of shape (n_sequences,)
        The labels.
    """
    _, first = np.unique(codes, return_index=True)
    chosen = labels[first]
    differ = np.flatnonzero(chosen[codes] != labels)
    if len(differ):
        row = differ[0]
        raise ValueError(
            f"The column {name!r} must hold one label per {of}, got "
            f"{_shown_value(chosen[codes[row]])} and {_shown_value(labels[row])} in "
            f"{of} {_shown_value(ids[codes[row]])}."
        )
    return id_array(chosen.tolist(), (chosen,))
