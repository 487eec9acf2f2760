"""Sequences from long, wide and nested tables, and from texts of spells."""

import re
from collections.abc import Mapping

import numpy as np

from skawhmm.sequences._checks import check_not_distances, check_sequences
from skawhmm.sequences._forms import (
    is_id_name,
    is_table,
    is_time_name,
    package_type,
    readable,
    warn_of_form,
)
from skawhmm.sequences._names import column_names, named_frames
from skawhmm.sequences._reading import (
    label_columns,
    listed,
    read_sequences,
    refuse_layout,
    refuse_names,
)
from skawhmm.sequences._symbols import symbol_sequences
from skawhmm.sequences._tables import (
    channel_names,
    check_column,
    group_codes,
    group_labels,
    id_array,
    is_columns,
    matrix,
    open_table,
    shown,
    symbol_rows,
    warn_of_constant_columns,
)
from skawhmm.sequences._times import (
    check_times,
    expanded_spells,
    regular_frames,
    row_order,
    step_size,
    time_values,
    warn_of_gaps,
)
from skawhmm.sequences._trials import units_of

# A spell of TraMineR's SPS format, "(A,3)" or "A/3".
SPELL = re.compile(r"\((.+?),(\d+)\)|([^()]+?)/(\d+)")


def from_table(data, names, *, lengths, layout):  # noqa: ARG001
    """Read a long table, or a wide one."""
    refuse_layout(layout, "a table")
    table = open_table(data)
    unit_names = listed(names.get("unit"))
    id_names, times = _roles(table, names, unit_names)
    used = [*unit_names, *id_names, *times]
    used += listed(names["labels"])
    if names["every"] is not None and not times:
        raise ValueError(
            f"every needs a column of times, got time=None and {names['every']!r}."
        )
    for name in listed(names["labels"]):
        check_column(table, "labels", name)
    if unit_names and not id_names:
        raise ValueError(
            "id must name the column of the trials if unit names the column of the "
            f"units, got None with unit={names['unit']!r}."
        )
    if table.n_rows == 0:
        raise ValueError("data must have at least one row, got none.")
    columns = [check_column(table, "unit", name) for name in unit_names]
    unit_codes, unit_ids = group_codes(columns, unit_names) if columns else ((), ())
    columns += [check_column(table, "id", name) for name in id_names]
    id_names = [*unit_names, *id_names]
    codes, ids = (
        group_codes(columns, id_names)
        if columns
        else (np.zeros(table.n_rows, np.int64), np.arange(1))
    )
    # A table with no column of times and an id per row has one sequence per row.
    if not times and (not columns or len(ids) == table.n_rows):
        if unit_names:
            raise ValueError(
                f"Each row has its own {names['id']!r}. With unit, rows must be frames "
                "of which a trial has several, or time must name a column."
            )
        found = _wide_sequences(table, names, used, has_ids=bool(columns))
        labels = label_columns(
            names["labels"], lambda name: check_column(table, "labels", name)
        )
        return found, ids if columns else _row_ids(data, table.n_rows), labels
    sequences = _long_sequences(table, names, used, codes, ids, times)
    of = "sequence"
    if unit_names:
        _, first = np.unique(codes, return_index=True)
        sequences = units_of(sequences, unit_codes[first])
        codes, ids, of = unit_codes, unit_ids, "unit"

    def read(name):
        column = check_column(table, "labels", name)
        return group_labels(codes, column, ids, name, of=of)

    return sequences, ids, label_columns(names["labels"], read)


def _roles(table, names, unit_names):
    """Return the columns of the ids and the columns of the times (up to two)."""
    given, times = listed(names["id"]), listed(names["time"])
    if len(times) > 2:
        raise ValueError(
            "time must name a column, or two columns for the first and the last time "
            f"of spells, got {names['time']!r}."
        )
    if len(table.levels) > 1 and not given:
        times = times or [table.levels[-1]]
        given = [level for level in table.levels if level not in {*times, *unit_names}]
    return given, times


def _row_ids(data, n_rows):
    """Return the index of a table, or numbers from 0."""
    index = getattr(data, "index", None) if package_type(data)[1] else None
    return np.arange(n_rows) if index is None else np.asarray(index)


def _wide_sequences(table, names, used, *, has_ids):
    """Return one sequence per row, of numbers or of symbols."""
    if not has_ids and names["channels"] is None:
        _check_wide(table, used)
    channels = channel_names(table, names["channels"], used)
    symbols = symbol_rows(table, channels)
    if symbols is not None:
        return symbol_sequences(symbols)
    values = matrix(table, channels)
    if not has_ids:
        check_not_distances("as_sequences", values)
        warn_of_form(values)
    return _checked_rows(values)


def _check_wide(table, used):
    """Raise if the column names of a table suggest that its rows are frames."""
    for role, known in (("id", is_id_name), ("time", is_time_name)):
        for name in table.names:
            if name not in used and name not in table.levels and known(name):
                raise ValueError(
                    f"data has a column {name!r}. If its rows are frames, write: "
                    f"as_sequences(data, {role}={name!r}, ...). If each row is a "
                    "sequence, the argument channels names the columns of the values."
                )


def _checked_rows(values):
    if values.ndim == 1:
        raise ValueError(
            "A table of strings must have several rows per sequence; the argument id "
            "names the columns that identify sequences."
        )
    return check_sequences(values, caller="as_sequences")


def _long_sequences(table, names, used, codes, ids, times):
    """Return the sequences of a table with one row per frame, or per spell."""
    channels = channel_names(table, names["channels"], used)
    every, step = names["every"], None
    if len(times) == 2:
        if every is not None:
            raise ValueError(f"every must be None for spells, got {every!r}.")
        rows, when = expanded_spells(table, *times)
        raw, step = when, 1
    else:
        rows = np.arange(table.n_rows)
        raw = check_column(table, "time", times[0]) if times else None
        when = None if raw is None else time_values(raw, times[0])
        step = None if every is None else step_size(every, raw)
    codes = codes[rows]
    order = row_order(codes, when)
    values, codes_in_order = matrix(table, channels)[rows[order]], codes[order]
    if times and every is None:
        column = " and ".join(map(str, times))
        check_times(order, codes, when, ids, raw, column)
        if step is None:
            warn_of_gaps(order, codes, when, ids, raw, column)
    if names["channels"] is None:
        warn_of_constant_columns(values, codes_in_order, channels)
    if step is None:
        counts = np.bincount(codes, minlength=len(ids))
    else:
        values, counts = regular_frames(values, codes_in_order, when[order], step)
    return read_sequences(np.split(values, np.cumsum(counts)[:-1]), channels)


def table_frames(member, names, i):
    """Return the frames of one table, sorted by time, with its column names."""
    if not is_table(member):
        raise ValueError(
            f"data must hold tables only or no tables, got {type(member).__name__} "
            f"at {i}."
        )
    only = {**names, "id": None, "labels": None, "every": None}
    table = open_table(member)
    used = table.levels if names["time"] is None else [*table.levels, names["time"]]
    columns = channel_names(table, names["channels"], used)
    if names["time"] is None:
        frames = matrix(table, columns)
    else:
        (frames,), _, _ = from_table(member, only, lengths=None, layout="time_first")
    return named_frames(frames, column_names(columns))


def is_nested(data):
    """Whether the cells of a pandas table are series, as sktime keeps them."""
    if package_type(data) != ("pandas", "DataFrame") or not data.size:
        return False
    return all(np.ndim(cell) == 1 for cell in data.iloc[0])


def from_nested(data, names, *, lengths, layout):  # noqa: ARG001
    refuse_names(names, ("id", "time", "labels"), "a nested table")
    refuse_layout(layout, "a nested table")
    table = open_table(data)
    channels = channel_names(table, names["channels"], table.levels)
    columns = [table.column(name) for name in channels]
    sequences = []
    for i, cells in enumerate(zip(*columns, strict=True)):
        sizes = sorted({len(cell) for cell in cells})
        if len(sizes) > 1:
            raise ValueError(
                f"The cells of row {i} must have one length, got {sizes}: all channels "
                "of a sequence are measured at the same times."
            )
        sequences.append(np.stack([np.asarray(cell) for cell in cells], axis=1))
    return read_sequences(sequences, channels), np.asarray(data.index), None


def from_spells(data, names, *, lengths, layout):  # noqa: ARG001
    """Read texts of spells, "(A,3)-(B,2)", from a list, a dict or a column."""
    if lengths is not None:
        raise ValueError(f"lengths must be None with layout='sps', got {lengths!r}.")
    labels = None
    if is_columns(data) and not isinstance(data, Mapping):
        table = open_table(data)
        used = [*listed(names["id"]), *listed(names["labels"])]
        channels = channel_names(table, names["channels"], used)
        if len(channels) != 1:
            raise ValueError(
                f"channels must name the column of the texts, got {shown(channels)}."
            )
        texts, ids = table.column(channels[0]), _row_ids(data, table.n_rows)
        if names["id"] is not None:
            ids = id_array(check_column(table, "id", names["id"]).tolist())
        labels = label_columns(
            names["labels"], lambda name: check_column(table, "labels", name)
        )
    else:
        refuse_names(names, ("id", "time", "channels", "labels"), "a list of texts")
        is_dict = isinstance(data, Mapping)
        texts = [*data.values()] if is_dict else readable(data)
        ids = id_array(data) if is_dict else _row_ids(data, len(texts))
    return symbol_sequences([_spelled(x, i) for i, x in enumerate(texts)]), ids, labels


def _spelled(text, i):
    """Return the symbols of a text such as "(A,3)-(B,2)" or "A/3-B/2"."""
    spells = [SPELL.fullmatch(part) for part in str(text).split("-")]
    if not all(spells):
        raise ValueError(
            'data must hold texts such as "(A,3)-(B,2)" or "A/3-B/2" with '
            f"layout='sps', got {text!r} at {i}."
        )
    parts = [(m[1], m[2]) if m[1] else (m[3], m[4]) for m in spells if m]
    return np.repeat([symbol for symbol, _ in parts], [int(n) for _, n in parts])
