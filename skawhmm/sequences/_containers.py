"""Readers of sequences in tables, dicts and other libraries' arrays."""

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
    function converts the usual containers of data to such a list.

    Parameters
    ----------
    data : table, array-like, dict, list or iterable
        One of:

        - a long table with one row per frame (pandas, polars, pyarrow, a dict of
          columns, a structured array): give `id` and, if they exist, `time`, `channels`
          and `labels`; a pandas MultiIndex whose last level is the time needs no names;
        - a wide table with one univariate sequence per row, of numbers or of symbols
          (TraMineR's STS format): give no `time`, and no `id` unless every row has its
          own;
        - a table with one spell per row (SPELL format): ``time=("begin", "end")``;
        - texts such as "(A,3)-(B,2)", or a column of them, with ``layout="sps"``;
        - frames of shape (n_frames, n_features) and `lengths`, as for hmmlearn;
        - an array of shape (n_sequences, n_timesteps, n_features), padded with NaN at
          the end, as in tslearn, or of shape (n_sequences, n_timesteps);
        - an array of shape (n_sequences, n_channels, n_timesteps), or a list of arrays
          of shape (n_channels, n_timesteps), with ``layout="channels_first"``, as in
          aeon and sktime;
        - a nested table of sktime, whose cells are series;
        - an xarray `DataArray` (`id`, `time` and `channels` name its dimensions) or a
          `Dataset`, whose variables are channels;
        - an awkward array: numbers of shape (n_sequences, any[, n_features]), or
          records, whose fields are channels;
        - a dict with one sequence per key, a Series of arrays, a list or a generator;
          the sequences may be arrays, lists or tables.

    id : str or list of str, default=None
        Columns or dimension that identify the sequences.

    unit : str, list of str or array-like of shape (n_sequences,), default=None
        Units that sequences belong to, such as the subjects of trials. For tables, the
        columns of the units (`id` then identifies the trials of a unit); otherwise one
        unit per sequence. The result then has one entry per unit.

    time : str or pair of str, default=None
        Column or dimension by which frames are sorted: numbers or dates. Unless `every`
        is given, repeated times in a sequence raise an error and gaps a warning. By
        default, the rows of a table keep their order. For spells, the columns of the
        first and the last time: whole numbers, both included.

    channels : str or list of str, default=None
        Columns, variables or dimension of the features. By default all columns without
        another role. A single column of strings gives sequences of symbols.

    labels : str or list of str, default=None
        Column of labels, or several such columns. The label must be the same in all
        rows of a sequence, or of a unit.

    lengths : array-like of int of shape (n_sequences,), default=None
        Number of frames of each sequence, if `data` holds the concatenated frames.

    every : float or timedelta, default=None
        Resample the rows of a table at this interval, in the unit of the column `time`;
        a timedelta for dates. Each frame is the mean of the rows nearest to it (for
        symbols, the last one). Frames without rows are missing; nothing is
        interpolated.

    layout : {"time_first", "channels_first", "sps"}, default="time_first"
        Order of the axes of arrays, or "sps" for texts of spells.

    Returns
    -------
    sequences : list of ndarray of shape (n_timesteps, n_features)
        The sequences: float64, NaN where values are missing; for symbols, strings of
        shape (n_timesteps,), empty where they are missing. Arrays carry the names of
        their channels, if there are any (``sequences[0].feature_names``), and pass them
        on to estimators and models; see Notes. With `unit`, a list of :class:`Trials`.

    ids : ndarray of shape (n_sequences,)
        Identifier of each sequence: entries of `id`, keys, or entries of an index;
        otherwise numbers from 0. They are in the order of their first appearance. With
        `unit`, the units.

    labels : ndarray of shape (n_sequences,) or dict of ndarray
        Only if `labels` names a column; with a list of columns, one array per name.

    See Also
    --------
    HMMTransformer : Fits one model per sequence.
    Trials : Several recordings of one unit.

    Notes
    -----
    Columns of several tables are matched by name: columns in a different order are
    reordered, different columns raise an error. Columns that are only numbered from 0
    count as unnamed.

    The names belong to the arrays, not to the list, so they survive cross-validation
    and `train_test_split`, which make plain lists. Selected rows and columns keep their
    names (``x[:100]``, ``x[:, [2, 0]]``). Other results computed from an array have no
    names, since their columns may be different channels. In a pipeline, `Framewise`,
    `Deltas` and `TimeChannel` pass names on.

    Examples
    --------
    A table with one row per frame, in any order:

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
    >>> X
    [array([[0., 1.],
           [2., 3.],
           [4., 5.]]), array([[6., 7.],
           [8., 9.]])]

    Several trials per subject, for one model per subject:

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
    if type(data).__name__.endswith("GroupBy"):
        raise TypeError(
            f"data must be a table, got a {type(data).__name__}. Pass the table, and "
            "the columns that it is grouped by as id."
        )
    if package in {"xarray", "awkward"}:
        return {"xarray": from_xarray, "awkward": from_awkward}[package]
    is_named = any(name is not None for name in names.values())
    if isinstance(data, Mapping):
        # The keys of a dict identify its entries, which may be tables with columns.
        keys = [name for name in (names["id"], names["time"]) if name is not None]
        has_columns = any(isinstance(k, list | tuple) or k in data for k in keys)
        return from_table if has_columns or names["id"] else from_members
    if is_columns(data) and (is_named or not is_bare_frame(data)):
        return from_nested if is_nested(data) else from_table
    if package_type(data) in SERIES:
        return from_pandas_series if package == "pandas" else from_series
    return from_members if not hasattr(data, "__array__") else from_array
