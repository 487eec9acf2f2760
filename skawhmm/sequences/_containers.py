"""Sequences from what users keep them in: tables, dicts, other libraries' arrays."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from skawhmm.sequences._forms import SERIES, is_bare_frame, package_type
from skawhmm.sequences._from_arrays import (
    from_array,
    from_awkward,
    from_lengths,
    from_members,
    from_pandas_series,
    from_series,
    from_xarray,
)
from skawhmm.sequences._from_tables import (
    from_nested,
    from_spells,
    from_table,
    is_nested,
)
from skawhmm.sequences._tables import group_codes, group_labels, is_columns
from skawhmm.sequences._trials import units_of
from skawhmm.utils._checks import check_choice

LAYOUTS = ("time_first", "channels_first", "sps")


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
    reader = from_spells if layout == "sps" else _reader(data, names, lengths)
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
    return reader is from_table or (
        reader is from_pandas_series and data.index.nlevels > 1
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


def _check_names(role, name):
    """Raise unless an argument can be the name of a column, or several."""
    for part in name if isinstance(name, list | tuple) else [name]:
        if not isinstance(part, Hashable):
            raise TypeError(f"{role} must name columns or be None, got {name!r}.")


def _reader(data, names, lengths):
    """Return the function that reads this kind of data."""
    package, kind = package_type(data)
    if lengths is not None:
        return from_lengths
    if kind == "LazyFrame":
        raise TypeError("data must be in memory, got a LazyFrame: call collect first.")
    if package in {"xarray", "awkward"}:
        return {"xarray": from_xarray, "awkward": from_awkward}[package]
    is_named = any(name is not None for name in names.values())
    if isinstance(data, Mapping):
        # Tables within a dict have columns, too; those of the dict are its keys.
        keys = [name for name in (names["id"], names["time"]) if name is not None]
        has_columns = any(isinstance(k, list | tuple) or k in data for k in keys)
        return from_table if has_columns or names["id"] else from_members
    if is_columns(data) and (is_named or not is_bare_frame(data)):
        return from_nested if is_nested(data) else from_table
    if package_type(data) in SERIES:
        return from_pandas_series if package == "pandas" else from_series
    return from_members if not hasattr(data, "__array__") else from_array
