"""Frames of a running process: checks, and division into windows."""

import numpy as np

from skawhmm.sequences._names import check_names, matched_columns
from skawhmm.utils._numbers import real_array

# Number of windows whose frames are kept, to date the beginning of a change.
HELD_WINDOWS = 8

# An interval between two frames that exceeds the usual one by this factor is a gap.
GAP_FACTOR = 1.5


def check_frames(X, hmm):
    """Return frames as a checked array, or raise.

    Parameters
    ----------
    X : array-like of shape (n_frames, n_features)
        The frames as passed by the user. A single frame may be 1-D.

    hmm : HMMTransformer
        Transformer fitted on the reference.

    Returns
    -------
    frames : ndarray of shape (n_frames, n_features)
        The frames.
    """
    n_features = hmm.n_features_in_
    (X,), names, _ = matched_columns([X])
    if names is not None:
        check_names(hmm, names, reset=False)
    array = np.asarray(X)
    if array.dtype.kind in "fiu":
        shape = array.shape
        if array.ndim == 1:
            array = array.reshape(-1, 1) if n_features == 1 else array[None]
        if array.ndim != 2 or array.shape[1] != n_features or not len(array):
            raise ValueError(
                f"X must have shape (n_frames, {n_features}), one row per frame, got "
                f"shape {shape}."
            )
        wrong = np.flatnonzero(np.isinf(array).any(axis=1))
        if wrong.size:
            raise ValueError(
                f"X must not hold infinite values, got {array[wrong[0]]} in frame "
                f"{wrong[0]}. NaN stands for values that were not observed."
            )
        if np.isnan(array).all() and hmm._template.accepts_missing:
            # A sequence needs an observed value, the frames of one call do not.
            array = array.astype(np.float64)
            hmm._check_missing([array])
            return array
        X = array
    frames = hmm._template.checked([X], caller="HMMMonitor", n_features=n_features)
    hmm._check_missing(frames)
    return np.array(frames[0])


def check_times(times, n_frames, last):
    """Return one increasing time per frame, or raise.

    Parameters
    ----------
    times : array-like of shape (n_frames,) or float
        The times as passed by the user.

    n_frames : int
        Number of frames.

    last : float
        Time of the frame before, minus infinity if there was none.

    Returns
    -------
    times : ndarray of shape (n_frames,)
        The times.
    """
    times = np.atleast_1d(real_array("times", times)).astype(float)
    if times.shape != (n_frames,):
        raise ValueError(
            f"times must hold one number per frame, {n_frames} in all, got shape "
            f"{times.shape}."
        )
    if not np.isfinite(times).all():
        raise ValueError(f"times must be finite, got {times[~np.isfinite(times)][0]}.")
    steps = np.diff(times, prepend=last)
    if (steps <= 0).any():
        k = int(np.argmax(steps <= 0))
        before = last if k == 0 else times[k - 1]
        raise ValueError(
            f"times must increase, got {times[k]:g} after {before:g} (frame {k})."
        )
    return times


class FrameBuffer:
    """The last frames of a stream, and the position of the next window.

    Attributes
    ----------
    frames, times : ndarray
        The last frames and their times.

    n_frames : int
        Number of all frames so far.

    start, place : int
        Index of the first frame of the next window, and number of windows since the
        last gap.

    interval : float
        Usual time between frames, NaN if it is not known.
    """

    def __init__(self, length, step, n_features):
        self.length, self.step = length, step
        self.frames = np.empty((0, n_features))
        self.times = np.empty(0)
        self.n_frames = self.start = self.place = 0
        self.interval = np.nan

    @property
    def first(self):
        """Index of the oldest frame that is kept."""
        return self.n_frames - len(self.frames)

    @property
    def last_time(self):
        """Time of the newest frame, minus infinity before the first."""
        return float(self.times[-1]) if len(self.times) else -np.inf

    def cut(self):
        """Begin the next window with the next frame."""
        self.start, self.place = self.n_frames, 0

    def append(self, frames, times):
        """Add frames."""
        self.frames = np.concatenate([self.frames, frames])
        self.times = np.concatenate([self.times, times])
        self.n_frames += len(frames)

    def starts(self):
        """Return the first frames of the windows that are complete."""
        return range(self.start, self.n_frames - self.length + 1, self.step)

    def window(self, start):
        """Return the frames of a window, and their times."""
        rows = slice(start - self.first, start - self.first + self.length)
        return self.frames[rows], self.times[rows]

    def advance(self):
        """Move on to the next window; drop frames that are no longer needed."""
        self.start += self.step
        self.place += 1

    def trim(self):
        """Drop frames that neither a window nor a change point needs."""
        needed = min(self.start, self.n_frames - HELD_WINDOWS * self.length)
        drop = needed - self.first
        # Drop at least half of the frames at once, so that few copies are made.
        if drop > len(self.frames) // 2:
            self.frames, self.times = (
                self.frames[drop:].copy(),
                self.times[drop:].copy(),
            )

    def gaps(self, times, max_gap):
        """Return places in `times` before which a gap lies."""
        steps = np.diff(times, prepend=times[0] if self.start == 0 else self.last_time)
        if np.isnan(self.interval) and len(times) > 1:
            self.interval = float(np.median(np.diff(times)))
        limit = GAP_FACTOR * self.interval if max_gap is None else max_gap
        return np.flatnonzero(steps > limit)
