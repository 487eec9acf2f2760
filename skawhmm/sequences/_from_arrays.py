"""Sequences from arrays, lists, dicts and series, and from xarray and awkward."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from skawhmm.sequences._checks import (
    check_not_distances,
    check_sequences,
    is_list_of_sequences,
    unpadded_rows,
)
from skawhmm.sequences._forms import is_table, package_type, readable, warn_of_form
from skawhmm.sequences._from_tables import from_table, table_frames
from skawhmm.sequences._names import matched_columns
from skawhmm.sequences._reading import (
    label_columns,
    read_sequences,
    refuse_layout,
    refuse_names,
)
from skawhmm.sequences._symbols import holds_symbols, symbol_sequences
from skawhmm.sequences._tables import (
    channel_names,
    id_array,
    is_columns,
    matrix,
    numbers,
    open_table,
    shown,
)
from skawhmm.sequences._trials import Units


def from_lengths(data, names, *, lengths, layout):
    """Cut concatenated frames into sequences."""
    refuse_names(names, ("id", "time", "labels"), "frames with lengths")
    refuse_layout(layout, "frames with lengths")
    columns = None
    if is_columns(data):
        table = open_table(data)
        columns = channel_names(table, names["channels"], [])
        frames = matrix(table, columns)
    else:
        refuse_names(names, ("channels",), "an array")
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
    return _numbered(read_sequences(np.split(frames, np.cumsum(counts)[:-1]), columns))


def from_members(data, names, *, lengths, layout):  # noqa: ARG001
    """Read a dict, a list or another iterable of sequences."""
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
        refuse_names(names, ("id", "labels"), "a list of tables")
        members = [table_frames(member, names, i) for i, member in enumerate(members)]
    else:
        refuse_names(
            names, ("id", "time", "channels", "labels"), "data without columns"
        )
    columns, units = None, Units()
    if layout == "time_first":
        where = [f"data[{key!r}]" for key in (keys or range(len(members)))]
        members, columns, units = matched_columns(members, where)
    if holds_symbols(members):
        refuse_layout(layout, "symbols")
        sequences = symbol_sequences(members)
    elif is_list_of_sequences(members) or keys is not None:
        if layout == "channels_first":
            members = [_turned(x, i) for i, x in enumerate(members)]
        members = [np.asarray(x) if isinstance(x, tuple) else x for x in members]
        sequences = read_sequences(_as_list(members), columns)
    else:
        return from_array(np.asarray(members), names, lengths=None, layout=layout)
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


def from_array(data, names, *, lengths, layout):  # noqa: ARG001
    """Read an array of two or three dimensions, or an array of arrays."""
    refuse_names(names, ("id", "time", "channels", "labels"), "an array")
    if isinstance(data, np.ndarray) and data.dtype == object and data.ndim == 1:
        return from_members([*data], names, lengths=None, layout=layout)
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


def from_pandas_series(data, names, *, lengths, layout):
    """Read a Series: a long table of one column, or one sequence per entry."""
    if data.index.nlevels > 1:
        column = "value" if data.name is None else data.name
        frame = data.to_frame(column)
        return from_table(frame, names, lengths=lengths, layout=layout)
    found = from_members(
        dict(enumerate(readable(data))), names, lengths=lengths, layout=layout
    )
    return found[0], np.asarray(data.index), None


def from_series(data, names, *, lengths, layout):
    return from_members(readable(data), names, lengths=lengths, layout=layout)


def from_xarray(data, names, *, lengths, layout):  # noqa: ARG001
    """Read an array with named dimensions, or variables that share dimensions."""
    refuse_layout(layout, "an xarray object, whose dimensions have names")
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
    sequences = read_sequences(values, _coordinate_names(data, dims.get("channels")))
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

    return sequences, ids, label_columns(names["labels"], read)


def _coordinate_names(data, dim):
    """Return the names of the channels, None if their dimension has no coordinates."""
    return None if dim not in data.coords else data.coords[dim].to_numpy().tolist()


def _dimensions(dims, names):
    """Return the dimensions of ids, time and channels, in this order."""
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


def from_awkward(data, names, *, lengths, layout):  # noqa: ARG001
    """Read lists of numbers, of rows, or of records."""
    import awkward as ak

    refuse_names(names, ("id", "time", "labels"), "an awkward array")
    if data.fields:
        chosen = names["channels"] or data.fields
        fields = [chosen] if isinstance(chosen, str) else [*chosen]
        parts = [
            from_awkward(
                data[name], {**names, "channels": None}, lengths=None, layout=layout
            )[0]
            for name in fields
        ]
        combined = [np.hstack(columns) for columns in zip(*parts, strict=True)]
        wide = combined[0].shape[1] != len(fields)
        return _numbered(read_sequences(combined, None if wide else fields))
    refuse_names(names, ("channels",), "an awkward array without fields")
    if data.ndim == 3 and layout == "channels_first":
        return from_members(
            [ak.to_numpy(x) for x in data], names, lengths=None, layout=layout
        )
    refuse_layout(layout, "an awkward array of 2 dimensions")
    try:
        counts = ak.to_numpy(ak.num(data, axis=1))
        frames = ak.to_numpy(ak.flatten(data, axis=1))
    except ValueError as error:
        raise ValueError(
            "data must have the shape (n_sequences, any number of frames[, "
            f"n_features]), got an awkward array of type {data.type}."
        ) from error
    frames = numbers(frames, "data")
    return _numbered(read_sequences(np.split(frames, np.cumsum(counts)[:-1])))


def _numbered(sequences):
    return sequences, np.arange(len(sequences)), None
