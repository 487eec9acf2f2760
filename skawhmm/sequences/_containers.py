"""Sequences from what users keep them in: tables, dicts, other libraries' arrays."""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from skawhmm.sequences._checks import (
    check_not_distances,
    check_sequences,
    is_list_of_sequences,
    unpadded_rows,
)
from skawhmm.sequences._forms import (
    SERIES,
    is_bare_frame,
    is_id_name,
    is_table,
    is_time_name,
    package_type,
    readable,
    warn_of_form,
)
from skawhmm.sequences._names import (
    column_names,
    matched_columns,
    named_frames,
    named_sequences,
    valid_names,
)
from skawhmm.sequences._symbols import holds_symbols, symbol_sequences
from skawhmm.sequences._tables import (
    channel_names,
    check_column,
    group_codes,
    group_labels,
    id_array,
    is_columns,
    matrix,
    numbers,
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
from skawhmm.utils._checks import check_choice

LAYOUTS = ("time_first", "channels_first", "sps")
# A spell of TraMineR's SPS format, "(A,3)" or "A/3".
SPELL = re.compile(r"\((.+?),(\d+)\)|([^()]+?)/(\d+)")


def as_sequences(
    data: Any,
    *,
    id: Any = None,  # noqa: A002
    unit: Any = None,
    time: Any = None,
    channels: Any = None,
    labels: Any = None,
    lengths: Any = None,
    every: Any = None,
    layout: str = "time_first",
) -> Any:
    """Read sequences from tables, dicts, files in memory and other libraries' arrays.

    Every estimator takes a list of arrays of shape (n_timesteps, n_features). This
    function makes that list from what data usually comes in.

    Parameters
    ----------
    data : table, array-like, dict, list or iterable
        One of

        - a long table with one row per frame (pandas, polars, pyarrow, a dict of
          columns, a structured array), with `id` and, as far as there are such columns,
          `time`, `channels` and `labels`; a pandas MultiIndex whose last level is the
          time needs no names;
        - a wide table with one univariate sequence per row, of numbers or of symbols
          (TraMineR's STS format): no `time`, and no `id` or one that differs from row
          to row;
        - a table with one spell per row (SPELL format): ``time=("begin", "end")``;
        - texts such as "(A,3)-(B,2)", or a column of them, with ``layout="sps"``;
        - frames of shape (n_frames, n_features) and `lengths`, as for hmmlearn;
        - an array of shape (n_sequences, n_timesteps, n_features), padded with NaN at
          the end, as in tslearn, or of shape (n_sequences, n_timesteps);
        - an array of shape (n_sequences, n_channels, n_timesteps), or a list of arrays
          of shape (n_channels, n_timesteps), with ``layout="channels_first"``, as in
          aeon and sktime;
        - a nested table of sktime, whose cells are series;
        - an xarray `DataArray`, whose dimensions `id`, `time` and `channels` name, or a
          `Dataset`, whose variables are channels;
        - an awkward array: numbers of shape (n_sequences, any[, n_features]), or
          records, whose fields are channels;
        - a dict with one sequence per key, a Series of arrays, a list, a generator; the
          sequences in them may be arrays, lists or tables.

    id : str or list of str, default=None
        Column, columns or dimension that identifies sequences.

    unit : str, list of str or array-like of shape (n_sequences,), default=None
        What several sequences belong to, such as the subject of trials: columns of a
        table, in which `id` identifies the sequences of a unit, or one unit per
        sequence. The result then has one entry per unit.

    time : str or pair of str, default=None
        Column or dimension by which frames are sorted: numbers or dates. A time that
        occurs twice in a sequence is an error, and gaps are a warning, unless `every`
        is given. By default the rows of a table are taken in their order. Two columns
        are the first and the last time of a spell, whole numbers, both included.

    channels : str or list of str, default=None
        Columns, variables or the dimension of the features. By default all columns
        with no other role. A single column of strings gives sequences of symbols.

    labels : str or list of str, default=None
        Column of labels, of which each sequence, or unit, must have one; or several
        such columns.

    lengths : array-like of int of shape (n_sequences,), default=None
        Number of frames of each sequence, in frames that follow each other.

    every : float or timedelta, default=None
        Time between two frames, if rows of a table are to be resampled at regular
        times, in the unit of the column `time`; a timedelta for dates. Each frame is
        the mean of the rows nearest to it (the last symbol, for symbols). Frames
        without rows are missing; nothing is interpolated.

    layout : {"time_first", "channels_first", "sps"}, default="time_first"
        Order of the axes of arrays, or "sps" for texts of spells.

    Returns
    -------
    sequences : list of ndarray of shape (n_timesteps, n_features)
        Float64, NaN where values are missing; strings of shape (n_timesteps,) if there
        are symbols, empty where they are missing. If the channels have names, each
        array knows them (``sequences[0].feature_names``), and so do the estimators and
        models that are fitted to it; see Notes. With `unit`, a list of
        :class:`Trials`.

    ids : ndarray of shape (n_sequences,)
        What names each sequence: entries of `id`, keys, entries of an index, otherwise
        numbers from 0. They are in the order in which they first appear. With `unit`,
        the units.

    labels : ndarray of shape (n_sequences,) or dict of ndarray
        Only if `labels` names a column; with a list of columns, one array per name.

    See Also
    --------
    HMMTransformer : Fits one model per sequence.
    Trials : Several recordings of one unit.

    Notes
    -----
    Columns of several tables are matched by name: if a table has those of the first one
    in another order, they are reordered, and other columns are an error. Columns that
    are only numbered from 0 have no names.

    The names belong to the arrays, not to the list, so that they survive
    cross-validation and `train_test_split`, which make plain lists. Chosen rows and
    columns keep them (``x[:100]``, ``x[:, [2, 0]]``); whatever else is computed from an
    array has no names, since its columns may be other channels. In a pipeline,
    `Framewise`, `Deltas` and `TimeChannel` pass them on.

    Examples
    --------
    A table with one row per frame, not in order:

    >>> from skawhmm import as_sequences
    >>> table = {
    ...     "run": ["b", "a", "b", "a", "b"],
    ...     "time": [2, 0, 0, 1, 1],
    ...     "speed": [9.0, 1.0, 7.0, 2.0, 8.0],
    ...     "kind": ["fast", "slow", "fast", "slow", "fast"],
    ... }
    >>> X, ids, y = as_sequences(table, id="run", time="time", labels="kind")
    >>> X[0].ravel(), X[1].ravel()
    (array([7., 8., 9.]), array([1., 2.]))
    >>> ids, y
    (array(['b', 'a'], dtype='<U1'), array(['fast', 'slow'], dtype='<U4'))

    Measurements at irregular times, as one frame per second:

    >>> table = {"run": [1] * 4, "time": [0.1, 0.9, 1.2, 3.0], "x": [1.0, 2, 4, 8]}
    >>> X, ids = as_sequences(table, id="run", time="time", every=1.0)
    >>> X[0].ravel()
    array([ 1.,  3., nan,  8.])

    Frames and lengths, as hmmlearn takes them:

    >>> import numpy as np
    >>> X, ids = as_sequences(np.arange(10.0).reshape(5, 2), lengths=[3, 2])
    >>> [x.shape for x in X], ids
    ([(3, 2), (2, 2)], array([0, 1]))

    Several trials per subject, of which each has one model:

    >>> frames = np.arange(7.0)[:, None]
    >>> owners = ["ann", "bob", "ann"]
    >>> X, subjects = as_sequences(frames, lengths=[3, 2, 2], unit=owners)
    >>> X, subjects
    ([Trials(n_trials=2), Trials(n_trials=1)], array(['ann', 'bob'], dtype='<U3'))
    """
    check_choice("layout", layout, LAYOUTS)
    names = {"id": id, "time": time, "channels": channels, "labels": labels}
    for role, name in names.items():
        _check_names(role, name)
    reader = _from_sps if layout == "sps" else _reader(data, names, lengths)
    if _has_columns(reader, data):
        names["unit"] = unit
        names["every"] = every
    elif every is not None:
        raise ValueError(
            f"every must be None unless time names a column of a table, got {every!r}."
        )
    found = reader(data, names, lengths=lengths, layout=layout)
    if unit is not None and "unit" not in names:
        found = _units(found, unit, labels)
    return found if labels is not None else found[:2]


def _has_columns(reader, data):
    """Whether data is a long table, whose columns or index levels have names."""
    return reader is _from_table or (
        reader is _from_pandas_series and data.index.nlevels > 1
    )


def _units(found, unit, name):
    """Return sequences as units, given the unit of each sequence."""
    sequences, _, labels = found
    column = np.asarray(unit)
    if column.shape != (len(sequences),):
        raise ValueError(
            f"unit must hold one unit per sequence ({len(sequences)} sequences), got "
            f"shape {column.shape}. Columns can be named for tables only."
        )
    codes, ids = group_codes([column], ["unit"])
    if isinstance(labels, dict):
        labels = {
            name: group_labels(codes, column, ids, name, of="unit")
            for name, column in labels.items()
        }
    elif labels is not None:
        labels = group_labels(codes, labels, ids, name, of="unit")
    return units_of(sequences, codes), ids, labels


def _label_columns(labels, read):
    """Return what `read` gives for a column, or a dict of it for a list of columns."""
    if labels is None:
        return None
    if isinstance(labels, list | tuple):
        return {name: read(name) for name in labels}
    return read(labels)


def _check_names(role, name):
    """Raise unless an argument can be the name of a column, or several."""
    for part in name if isinstance(name, list | tuple) else [name]:
        if not isinstance(part, Hashable):
            raise TypeError(f"{role} must name columns or be None, got {name!r}.")


def _reader(data, names, lengths):
    """Return the function that reads this kind of data."""
    package, kind = package_type(data)
    if lengths is not None:
        return _from_lengths
    if kind == "LazyFrame":
        raise TypeError("data must be in memory, got a LazyFrame: call collect first.")
    if package in {"xarray", "awkward"}:
        return {"xarray": _from_xarray, "awkward": _from_awkward}[package]
    is_named = any(name is not None for name in names.values())
    if isinstance(data, Mapping):
        # Tables within a dict have columns, too; those of the dict are its keys.
        keys = [name for name in (names["id"], names["time"]) if name is not None]
        has_columns = any(isinstance(k, list | tuple) or k in data for k in keys)
        return _from_table if has_columns or names["id"] else _from_members
    if is_columns(data) and (is_named or not is_bare_frame(data)):
        return _from_nested if _is_nested(data) else _from_table
    if package_type(data) in SERIES:
        return _from_pandas_series if package == "pandas" else _from_series
    return _from_members if not hasattr(data, "__array__") else _from_array


def _refuse(names, roles, what):
    """Raise if columns are named for data that has none."""
    for role in roles:
        if names[role] is not None:
            raise ValueError(
                f"{role} must be None for {what}, which has no names, got "
                f"{names[role]!r}."
            )


def _refuse_layout(layout, what):
    if layout != "time_first":
        raise ValueError(f"layout must be 'time_first' for {what}, got {layout!r}.")


def _numbered(sequences):
    return sequences, np.arange(len(sequences)), None


def _from_lengths(data, names, *, lengths, layout):
    """Cut frames that follow each other."""
    _refuse(names, ("id", "time", "labels"), "frames with lengths")
    _refuse_layout(layout, "frames with lengths")
    columns = None
    if is_columns(data):
        table = open_table(data)
        columns = channel_names(table, names["channels"], [])
        frames = matrix(table, columns)
    else:
        _refuse(names, ("channels",), "an array")
        try:
            given = np.asanyarray(data)
        except ValueError as error:
            raise ValueError(
                "lengths must be None unless data holds frames one after the other, "
                "got sequences of unequal shapes."
            ) from error
        frames = given if given.dtype == np.float64 else numbers(given, "data")
    if frames.ndim == 1:
        frames = frames[:, None]
    counts = np.asarray(lengths)
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or (counts < 1).any():
        raise ValueError(f"lengths must be positive integers, got {lengths!r}.")
    if frames.ndim != 2 or counts.sum() != len(frames):
        raise ValueError(
            f"lengths must sum to the {len(frames)} frames of data, which have shape "
            f"{frames.shape}, got the sum {counts.sum()}."
        )
    return _numbered(_checked(np.split(frames, np.cumsum(counts)[:-1]), columns))


def _checked(sequences, columns=None):
    """Return checked sequences, which carry the names of their columns."""
    if holds_symbols(sequences):
        return symbol_sequences(sequences)
    names = None if columns is None else valid_names(columns)
    return named_sequences(check_sequences(sequences, caller="as_sequences"), names)


def _from_table(data, names, *, lengths, layout):  # noqa: ARG001
    """Read a long table, or a wide one."""
    _refuse_layout(layout, "a table")
    table = open_table(data)
    unit_names = _listed(names.get("unit"))
    id_names, times = _roles(table, names, unit_names)
    used = [*unit_names, *id_names, *times]
    used += _listed(names["labels"])
    if names["every"] is not None and not times:
        raise ValueError(
            f"every needs a column of times, got time=None and {names['every']!r}."
        )
    for name in _listed(names["labels"]):
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
        labels = _label_columns(
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

    return sequences, ids, _label_columns(names["labels"], read)


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
    return _checked(np.split(values, np.cumsum(counts)[:-1]), channels)


def _check_wide(table, used):
    """Raise if a table has columns whose names say that its rows are frames."""
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


def _listed(name):
    """Return a name, several or none as a list."""
    if name is None:
        return []
    return [*name] if isinstance(name, list | tuple) else [name]


def _roles(table, names, unit_names):
    """Return the columns of the ids, and those of the times: none, one or two."""
    given, times = _listed(names["id"]), _listed(names["time"])
    if len(times) > 2:
        raise ValueError(
            "time must name a column, or two columns for the first and the last time "
            f"of spells, got {names['time']!r}."
        )
    if len(table.levels) > 1 and not given:
        times = times or [table.levels[-1]]
        given = [level for level in table.levels if level not in {*times, *unit_names}]
    return given, times


def _is_nested(data):
    """Whether the cells of a pandas table are series, as sktime keeps them."""
    if package_type(data) != ("pandas", "DataFrame") or not data.size:
        return False
    return all(np.ndim(cell) == 1 for cell in data.iloc[0])


def _from_nested(data, names, *, lengths, layout):  # noqa: ARG001
    _refuse(names, ("id", "time", "labels"), "a nested table")
    _refuse_layout(layout, "a nested table")
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
    return _checked(sequences, channels), np.asarray(data.index), None


def _from_pandas_series(data, names, *, lengths, layout):
    """Read a Series: a long table of one column, or one sequence per entry."""
    if data.index.nlevels > 1:
        column = "value" if data.name is None else data.name
        frame = data.to_frame(column)
        return _from_table(frame, names, lengths=lengths, layout=layout)
    found = _from_members(
        dict(enumerate(readable(data))), names, lengths=lengths, layout=layout
    )
    return found[0], np.asarray(data.index), None


def _from_series(data, names, *, lengths, layout):
    return _from_members(readable(data), names, lengths=lengths, layout=layout)


def _from_sps(data, names, *, lengths, layout):  # noqa: ARG001
    """Read texts of spells, "(A,3)-(B,2)", from a list, a dict or a column."""
    if lengths is not None:
        raise ValueError(f"lengths must be None with layout='sps', got {lengths!r}.")
    labels = None
    if is_columns(data) and not isinstance(data, Mapping):
        table = open_table(data)
        used = [*_listed(names["id"]), *_listed(names["labels"])]
        channels = channel_names(table, names["channels"], used)
        if len(channels) != 1:
            raise ValueError(
                f"channels must name the column of the texts, got {shown(channels)}."
            )
        texts, ids = table.column(channels[0]), _row_ids(data, table.n_rows)
        if names["id"] is not None:
            ids = id_array(check_column(table, "id", names["id"]).tolist())
        labels = _label_columns(
            names["labels"], lambda name: check_column(table, "labels", name)
        )
    else:
        _refuse(names, ("id", "time", "channels", "labels"), "a list of texts")
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


def _from_members(data, names, *, lengths, layout):  # noqa: ARG001
    """Read a dict, a list or anything that gives one sequence after the other."""
    if isinstance(data, str | bytes) or not isinstance(data, Iterable | Sequence):
        raise TypeError(
            "data must be a table, an array, a dict or a list of sequences, got "
            f"{type(data).__name__}."
        )
    if isinstance(data, set | frozenset):
        readable(data, "data")
    keys, members = (
        ([*data], [*data.values()]) if isinstance(data, Mapping) else (None, [*data])
    )
    if not members:
        raise ValueError("data must hold at least one sequence, got none.")
    if any(is_table(member) for member in members):
        _refuse(names, ("id", "labels"), "a list of tables")
        members = [_frames(member, names, i) for i, member in enumerate(members)]
    else:
        _refuse(names, ("id", "time", "channels", "labels"), "data without columns")
    columns = units = None
    if layout == "time_first":
        where = [f"data[{key!r}]" for key in (keys or range(len(members)))]
        members, columns, units = matched_columns(members, where)
    if holds_symbols(members):
        _refuse_layout(layout, "symbols")
        sequences = symbol_sequences(members)
    elif is_list_of_sequences(members) or keys is not None:
        if layout == "channels_first":
            members = [_turned(x, i) for i, x in enumerate(members)]
        members = [np.asarray(x) if isinstance(x, tuple) else x for x in members]
        sequences = _checked(_as_list(members), columns)
    else:
        return _from_array(np.asarray(members), names, lengths=None, layout=layout)
    if units is not None:
        sequences = units.grouped(sequences)
    ids = np.arange(len(sequences)) if keys is None else id_array(keys)
    return sequences, ids, None


def _as_list(members):
    """Return a list that is read as one sequence per entry, whatever its lengths."""
    return [np.asarray(x) if _is_flat(x) else x for x in members]


def _is_flat(x):
    is_list = isinstance(x, list | tuple) and len(x) > 0
    return is_list and all(np.isscalar(value) for value in x)


def _turned(x, i):
    array = np.asanyarray(x)
    if array.ndim != 2:
        raise ValueError(
            f"data[{i}] must have shape (n_channels, n_timesteps) with "
            f"layout='channels_first', got {array.shape}."
        )
    return array.T


def _frames(member, names, i):
    """Return the frames of one table, sorted by time; they carry its names."""
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
        (frames,), _, _ = _from_table(member, only, lengths=None, layout="time_first")
    return named_frames(frames, column_names(columns))


def _from_array(data, names, *, lengths, layout):  # noqa: ARG001
    """Read an array of two or three dimensions, or an array of arrays."""
    _refuse(names, ("id", "time", "channels", "labels"), "an array")
    if isinstance(data, np.ndarray) and data.dtype == object and data.ndim == 1:
        return _from_members([*data], names, lengths=None, layout=layout)
    array = data if isinstance(data, np.ndarray) else np.asanyarray(data)
    if array.ndim == 1:
        raise ValueError(
            "data must have 2 or 3 axes, got 1. A single univariate sequence is given "
            "as [data]."
        )
    if layout == "channels_first":
        if array.ndim != 3:
            raise ValueError(
                "data must have shape (n_sequences, n_channels, n_timesteps) with "
                f"layout='channels_first', got {array.shape}. A single recording is "
                "given as [data]; univariate sequences in rows need no layout."
            )
        array = array.transpose(0, 2, 1)
    elif array.ndim in {2, 3}:
        check_not_distances("as_sequences", array)
        warn_of_form(array)
    sequences = unpadded_rows(array)
    return _numbered(check_sequences(sequences, caller="as_sequences"))


def _from_xarray(data, names, *, lengths, layout):  # noqa: ARG001
    """Read an array with named dimensions, or variables with the same ones."""
    _refuse_layout(layout, "an xarray object, whose dimensions have names")
    if package_type(data)[1] == "Dataset":
        chosen = names["channels"]
        if chosen is not None:
            data = data[[chosen] if isinstance(chosen, str) else [*chosen]]
        data = data.to_array(dim="variable")
        names = {**names, "channels": "variable"}
    dims = _dimensions([*data.dims], names)
    ordered = data.transpose(*(dims[role] for role in dims))
    values = ordered.to_numpy()
    if "id" not in dims:
        values = values[None]
    if "channels" not in dims:
        values = values[..., None]
    sequences = _checked(values, _coordinate_names(data, dims.get("channels")))
    ids = np.arange(len(sequences))
    if "id" in dims and dims["id"] in data.coords:
        ids = np.asarray(data.coords[dims["id"]])

    def read(name):
        own = [dims.get("id")]
        known = [name for name, c in data.coords.items() if [*c.dims] == own]
        if name not in known:
            raise ValueError(
                f"labels must name a coordinate of the sequences, one of "
                f"{shown(known)}, got {name!r}."
            )
        return np.asarray(data.coords[name])

    return sequences, ids, _label_columns(names["labels"], read)


def _coordinate_names(data, dim):
    """Return the names of the channels, None if their dimension has no coordinates."""
    return None if dim not in data.coords else data.coords[dim].to_numpy().tolist()


def _dimensions(dims, names):
    """Return which dimension has which role, in the order id, time, channels."""
    if len(dims) > 3:
        raise ValueError(
            f"data must have at most the dimensions of sequences, time and channels, "
            f"got {dims}."
        )
    roles = {role: names[role] for role in ("id", "time", "channels")}
    for role, name in roles.items():
        if name is not None and name not in dims:
            raise ValueError(
                f"{role} must name a dimension, one of {dims}, got {name!r}."
            )
    if roles["time"] is None and "time" in dims and "time" not in roles.values():
        roles["time"] = "time"
    order = ["id", "time", "channels"]
    if len(dims) == 2:
        # One recording if time comes first, otherwise univariate sequences.
        is_recording = roles["channels"] is not None or dims[0] == roles["time"]
        order = order[1:] if roles["id"] is None and is_recording else order[:2]
    elif len(dims) < 2:
        order = ["time"]
    free = [dim for dim in dims if dim not in roles.values()]
    wanted = [role for role in order if roles[role] is None]
    if len(free) != len(wanted):
        raise ValueError(
            f"id, time and channels must name the dimensions {dims}, got "
            f"{names['id']!r}, {names['time']!r} and {names['channels']!r}."
        )
    roles.update(zip(wanted, free, strict=True))
    return {role: roles[role] for role in order}


def _from_awkward(data, names, *, lengths, layout):  # noqa: ARG001
    """Read lists of numbers, of rows, or of records."""
    import awkward as ak

    _refuse(names, ("id", "time", "labels"), "an awkward array")
    if data.fields:
        chosen = names["channels"] or data.fields
        fields = [chosen] if isinstance(chosen, str) else [*chosen]
        parts = [
            _from_awkward(
                data[name], {**names, "channels": None}, lengths=None, layout=layout
            )[0]
            for name in fields
        ]
        combined = [np.hstack(columns) for columns in zip(*parts, strict=True)]
        wide = combined[0].shape[1] != len(fields)
        return _numbered(_checked(combined, None if wide else fields))
    _refuse(names, ("channels",), "an awkward array without fields")
    if data.ndim == 3 and layout == "channels_first":
        return _from_members(
            [ak.to_numpy(x) for x in data], names, lengths=None, layout=layout
        )
    _refuse_layout(layout, "an awkward array of 2 dimensions")
    try:
        counts = ak.to_numpy(ak.num(data, axis=1))
        frames = ak.to_numpy(ak.flatten(data, axis=1))
    except ValueError as error:
        raise ValueError(
            "data must have the shape (n_sequences, any number of frames[, "
            f"n_features]), got an awkward array of type {data.type}."
        ) from error
    frames = numbers(frames, "data")
    return _numbered(_checked(np.split(frames, np.cumsum(counts)[:-1])))
