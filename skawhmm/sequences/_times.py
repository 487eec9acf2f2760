"""Times of the rows of a table: order, gaps, regular steps, spells."""

from datetime import date, timedelta

import numpy as np

from skawhmm.sequences._forms import warn_caller
from skawhmm.sequences._missing import MISSING
from skawhmm.sequences._tables import check_column, numbers, shown_value
from skawhmm.utils._checks import check_real
from skawhmm.utils._numbers import wrong_kind

# A time step this many times longer than the usual one of its sequence is a gap.
GAP = 1.5
# More frames per row than this mean that the step was given in a wrong unit.
MOST_FRAMES = 10_000


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
    column = dated(column)
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


def dated(column):
    """Return a column of dates, durations or periods as such; others unchanged."""
    if column.dtype != object or not len(column):
        return column
    first = column[0]
    if hasattr(first, "ordinal"):
        return np.array([value.ordinal for value in column])
    if isinstance(first, date | timedelta | np.datetime64 | np.timedelta64):
        unit = "m8[us]" if isinstance(first, timedelta) else "M8[us]"
        return np.array([*column], dtype=unit)
    return column


def step_size(every, column):
    """Return a step as a number in the unit of the times of a column."""
    column = dated(column)
    if column.dtype.kind in "Mm":
        if not isinstance(every, timedelta | np.timedelta64):
            raise TypeError(
                "every must be a timedelta for a column of dates, such as "
                f"pandas.Timedelta('1h'), got {every!r}."
            )
        unit = np.datetime_data(column.dtype)[0]
        step = np.timedelta64(every).astype(f"m8[{unit}]").astype(np.int64)
        return check_real("every", step, 0, np.inf, include_low=False)
    return check_real("every", every, 0, np.inf, include_low=False)


def row_order(codes, times):
    """Return row indices sorted by sequence and, unless times is None, by time."""
    if times is None:
        return np.argsort(codes, kind="stable")
    return np.lexsort((times, codes))


def check_times(order, codes, times, ids, raw, name):
    """Raise if a time is repeated within a sequence.

    Parameters
    ----------
    order : ndarray of int of shape (n_rows,)
        Row numbers, sorted by sequence and time.

    codes : ndarray of int of shape (n_rows,)
        Number of the sequence of each row.

    times : ndarray of shape (n_rows,)
        Time of each row.

    ids : ndarray of shape (n_sequences,)
        Names of the sequences.

    raw : ndarray of shape (n_rows,)
        The times as they were given, for messages.

    name : object
        Name of the column of times.
    """
    same = codes[order][1:] == codes[order][:-1]
    steps = np.diff(times[order])
    twice = np.flatnonzero(same & (steps == 0))
    if len(twice):
        row = order[twice[0]]
        time, sequence = shown_value(raw[row]), shown_value(ids[codes[row]])
        raise ValueError(
            f"The column {name!r} must not repeat a time within a sequence, got {time} "
            f"twice in sequence {sequence} ({len(twice)} rows repeat a time). If "
            "several sequences are mixed, the argument id names the columns that "
            "distinguish them."
        )


def regular_frames(values, codes, times, step):
    """Return frames at regular times, one per step, and their number per sequence.

    Each sequence begins at its first time. A frame is the mean of the rows whose times
    are nearest to it (for symbols, the last one), and missing if there are none.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_channels), or (n_rows,) for symbols
        Rows sorted by sequence and time.

    codes, times : ndarray of shape (n_rows,)
        Sequence and time of each row.

    step : float
        Time between two frames.

    Returns
    -------
    frames : ndarray of shape (n_frames, n_channels) or (n_frames,)
        The frames of all sequences, one after the other.

    counts : ndarray of int of shape (n_sequences,)
        Number of frames of each sequence.
    """
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    steps = np.rint((times - times[starts][codes]) / step)
    counts = steps[np.append(starts[1:], len(codes)) - 1].astype(np.int64) + 1
    n_frames = check_frame_count(counts.sum(dtype=float), len(values))
    places = (np.cumsum(counts) - counts)[codes] + steps.astype(np.int64)
    if values.ndim == 1:
        symbols = np.full(n_frames, MISSING, dtype=values.dtype)
        seen = values != MISSING
        symbols[places[seen]] = values[seen]
        return symbols, counts
    frames = np.empty((n_frames, values.shape[1]))
    for k, column in enumerate(values.T):
        seen = ~np.isnan(column)
        sizes = np.bincount(places[seen], minlength=n_frames)
        sums = np.bincount(places[seen], weights=column[seen], minlength=n_frames)
        np.divide(sums, sizes, out=frames[:, k], where=sizes > 0)
        frames[sizes == 0, k] = np.nan
    return frames, counts


def check_frame_count(n_frames, n_rows):
    """Return a number of frames as an integer, or raise if it is far too large."""
    if n_frames > MOST_FRAMES * n_rows:
        raise ValueError(
            f"every must be a step of about the time between rows, got one that makes "
            f"{n_frames:.3g} frames of {n_rows} rows. Its unit is the unit of the "
            "column of times."
        )
    return int(n_frames)


def expanded_spells(table, begin, end):
    """Return the row and the time of each frame of a table with one spell per row.

    Spells last from `begin` to `end`, both included, in whole units of time.
    """
    columns = [check_column(table, "time", name) for name in (begin, end)]
    times = [time_values(c, n) for c, n in zip(columns, (begin, end), strict=True)]
    for name, column, values in zip((begin, end), columns, times, strict=True):
        if column.dtype.kind in "MmO" or (values != np.rint(values)).any():
            raise ValueError(
                f"The column {name!r} must hold whole numbers, since a spell lasts "
                f"from {begin!r} to {end!r}, both included. Convert dates to units "
                "first, such as months since the start."
            )
    first, last = (values.astype(np.int64) for values in times)
    wrong = np.flatnonzero(last < first)
    if len(wrong):
        row = wrong[0]
        raise ValueError(
            f"A spell must not end before it begins, got {begin}={first[row]} and "
            f"{end}={last[row]} in row {row}."
        )
    counts = last - first + 1
    rows = np.repeat(np.arange(len(first)), counts)
    offsets = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, first[rows] + offsets


def warn_of_gaps(order, codes, times, ids, raw, name):
    """Warn if a step is much longer than the median step of its sequence.

    The parameters are described in `check_times`.
    """
    kept = np.flatnonzero(codes[order][1:] == codes[order][:-1])
    codes, steps, rows = codes[order][kept], np.diff(times[order])[kept], order[kept]
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
        f"first, {shown_value(ids[codes[gaps[0]]])}, goes from "
        f"{shown_value(raw[before])} to {shown_value(raw[after])}. Their frames are "
        "read as if they followed each other; every=... resamples them."
    )
