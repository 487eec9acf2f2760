"""Windows of long recordings, and mapping of window values back to frames."""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from skawhmm.sequences._checks import HINT_OF_ROWS, check_sequences
from skawhmm.sequences._forms import readable
from skawhmm.sequences._names import matched_columns, named_sequences
from skawhmm.sequences._symbols import holds_symbols, symbol_sequences
from skawhmm.utils._checks import check_choice, check_integer, check_optional
from skawhmm.utils._parameters import ParametersMixin

ALIGNMENTS = ("end", "center")

positive = partial(check_integer, low=1)


class WindowList(list[Any]):
    """A list of windows that records where each window was cut from.

    :class:`Windows` creates it. Estimators accept it like any list of sequences, and
    models that `HMMTransformer` fits to it have the columns of its `info`.

    Parameters
    ----------
    windows : sequence of ndarray of shape (n_timesteps, n_features)
        The windows.

    info : dict of ndarray of int of shape (n_windows,)
        ``recording``, the index of the recording of each window, and ``start`` and
        ``end``: the window holds the frames ``recording[start:end]``.

    lengths : ndarray of int of shape (n_recordings,)
        Numbers of frames of the recordings.

    Attributes
    ----------
    info, lengths : dict and ndarray
        As above.

    See Also
    --------
    Windows : Makes windows, with an example.
    """

    def __init__(
        self,
        windows: Sequence[Any],
        info: dict[str, NDArray[np.int64]],
        lengths: NDArray[np.int64],
    ) -> None:
        super().__init__(windows)
        self.info = info
        self.lengths = lengths

    def __reduce__(self) -> Any:
        return WindowList, (list(self), self.info, self.lengths)

    def per_frame(self, values: Any, *, align: str = "end") -> list[NDArray[Any]]:
        """Return one value per frame from one value per window, for plots.

        Parameters
        ----------
        values : array-like of shape (n_windows,)
            One value per window, such as the cluster of its model.

        align : {"end", "center"}, default="end"
            Which window a frame takes its value from. "end" is the latest window that
            ends at or before the frame, so no value uses the future. "center" is the
            window whose middle is nearest.

        Returns
        -------
        values : list of ndarray of shape (n_timesteps,)
            One array per recording. Frames that no window has reached yet are NaN, or
            -1 if the values are integers, or None if they are neither.
        """
        check_choice("align", align, ALIGNMENTS)
        values = np.asarray(values)
        if values.shape != (len(self),):
            raise ValueError(
                f"values must hold one value per window, of shape ({len(self)},), got "
                f"shape {values.shape}."
            )
        values, nothing = _with_gaps(values)
        parts = []
        for r, length in enumerate(self.lengths):
            rows = np.flatnonzero(self.info["recording"] == r)
            ends, starts = self.info["end"][rows], self.info["start"][rows]
            frames = np.arange(length)
            if align == "end":
                newest = np.searchsorted(ends, frames + 1, side="right") - 1
            else:
                middles = (starts + ends - 1) / 2
                newest = np.searchsorted((middles[1:] + middles[:-1]) / 2, frames)
            part = np.full(length, nothing, values.dtype)
            part[newest >= 0] = values[rows][newest[newest >= 0]]
            parts.append(part)
        return parts


def _with_gaps(values):
    """Return values in a type that has a missing value, and that missing value."""
    if values.dtype.kind in "iu":
        return values.astype(np.int64), -1
    if values.dtype.kind == "f":
        return values, np.nan
    return values.astype(object), None


class Windows(ParametersMixin, TransformerMixin, BaseEstimator):
    """Cut recordings into windows of equal length, which may overlap.

    Window k of a recording is ``recording[k * step : k * step + length]``. A result
    computed from a window uses no later frame, so it was available when the last frame
    of the window arrived. Frames at the end that do not fill a window are dropped.

    Parameters
    ----------
    length : int, default=200
        Number of frames per window.

    step : int, default=None
        Number of frames from one window to the next. By default `length`, so windows do
        not overlap.

    min_length : int, default=None
        If given, each recording also starts with shorter windows of at least this many
        frames, which end a multiple of `step` before the first complete window. They
        are not padded. By default the first window is complete, so no window ends
        within the first ``length - 1`` frames.

    See Also
    --------
    skawhmm.plot.SequenceDisplay.from_windows : Plots a recording, coloured by regime.
    skawhmm.monitoring.HMMMonitor : Windows of a running process.

    Examples
    --------
    A machine changes its rhythm after 600 frames; clustering the models of its windows
    recovers the two regimes:

    >>> import numpy as np
    >>> from skawhmm import HMMBatch, HMMKMeans, HMMTransformer
    >>> from skawhmm.sequences import Windows
    >>> def machine(stay):
    ...     chain = [[stay, 1 - stay], [1 - stay, stay]]
    ...     return HMMBatch([chain], [[[0.0], [3.0]]], [[[1.0], [1.0]]])
    >>> parts = [machine(s).sample(600, random_state=0)[0][0] for s in (0.98, 0.7)]
    >>> windows = Windows(length=150).fit_transform([np.concatenate(parts)])
    >>> models = HMMTransformer(2, init="pooled", random_state=0).fit_transform(windows)
    >>> models.info["start"]
    array([   0,  150,  300,  450,  600,  750,  900, 1050])
    >>> regimes = HMMKMeans(2, metric="jaw", random_state=0).fit_predict(models)
    >>> regimes == regimes[0]
    array([ True,  True,  True,  True, False, False, False, False])
    """

    _parameter_checks: ClassVar = {
        "length": positive,
        "step": partial(check_optional, check=positive),
        "min_length": partial(check_optional, check=positive),
    }
    _read_later: ClassVar = frozenset({"length", "step", "min_length"})

    def __init__(
        self,
        length: int = 200,
        step: int | None = None,
        *,
        min_length: int | None = None,
    ) -> None:
        self.length = length
        self.step = step
        self.min_length = min_length

    def fit(self, X: Any, y: Any = None) -> "Windows":  # noqa: ARG002
        """Check the parameters; there is nothing to learn.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Recordings.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : Windows
            The step.
        """
        self._begin_fit()
        return self

    def transform(self, X: Any) -> WindowList:
        """Return the windows of all recordings, one recording after the other.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Recordings, in any form that `HMMTransformer` takes, symbols included. Each
            recording in `Trials` is cut separately.

        Returns
        -------
        windows : WindowList of ndarray of shape (length, n_features)
            The windows. They share the memory of the recordings.
        """
        self._check_parameters()
        recordings, names = _recordings(X)
        starts, ends = [], []
        for i, x in enumerate(recordings):
            bounds = self._bounds(len(x))
            if not len(bounds[0]):
                raise ValueError(
                    f"{'length' if self.min_length is None else 'min_length'} must be "
                    "at most the number of frames of every recording, got "
                    f"{self.min_length or self.length} and X[{i}] with {len(x)}."
                    f"{HINT_OF_ROWS * (getattr(X, 'ndim', 0) == 2)}"
                )
            starts.append(bounds[0])
            ends.append(bounds[1])
        counts = [len(part) for part in starts]
        info = {
            "recording": np.repeat(np.arange(len(recordings)), counts),
            "start": np.concatenate(starts),
            "end": np.concatenate(ends),
        }
        windows = [recordings[r][i:j] for r, i, j in zip(*info.values(), strict=True)]
        lengths = np.array([len(x) for x in recordings])
        return WindowList(named_sequences(windows, names), info, lengths)

    def _bounds(self, n_timesteps):
        """Return the starts and ends of the windows of a recording."""
        step = self.length if self.step is None else self.step
        ends = np.arange(self.length, n_timesteps + 1, step)
        if self.min_length is not None:
            early = np.arange(self.length - step, self.min_length - 1, -step)[::-1]
            ends = np.concatenate([early[early <= n_timesteps], ends])
        return np.maximum(ends - self.length, 0), ends

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags


def _recordings(X):
    """Return recordings as arrays, and the names of their channels."""
    if holds_symbols(X):
        return symbol_sequences(X), None
    X, names, units = matched_columns(readable(X))
    with units.naming():
        return check_sequences(X), names
