"""Preprocessing steps: transformers from sequences to sequences."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_consistent_length, get_tags

from skawhmm.sequences._checked import CheckedSequences
from skawhmm.sequences._checks import (
    check_input,
    input_names,
    is_list_of_sequences,
)
from skawhmm.sequences._forms import readable
from skawhmm.sequences._names import fitted_names, named_sequences
from skawhmm.utils._checks import (
    LARGEST_VALUE,
    check_counts,
    check_integer,
    check_real,
)
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._numbers import real_array
from skawhmm.utils._parameters import ParametersMixin


class SequenceTransformer(  # type: ignore[call-arg]
    ParametersMixin, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Base of the transformers from sequences to sequences."""

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike | None = None) -> Any:
        """Learn the number of features, and the parameters of the step.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features), or of Trials
            Training sequences; also a 3-D array padded with NaN, or a 2-D array whose
            rows are univariate sequences. Recordings of a unit are transformed one by
            one.

        y : array-like of shape (n_sequences,), default=None
            Labels, for steps that use them.

        Returns
        -------
        self : estimator
            The fitted step.
        """
        self._begin_fit()
        sequences = check_input(self, X, y, reset=True)
        check_consistent_length(sequences, y)
        recordings, units = sequences.split()
        if y is not None:
            y = np.repeat(np.asarray(y), np.diff(units.bounds(recordings)), axis=0)
        self._fit(recordings, y)
        return self

    def transform(self, X: Any) -> Any:
        """Return the transformed sequences.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences in one of the forms that `fit` takes.

        Returns
        -------
        X : list of ndarray of shape (n_timesteps, n_features_out), or of Trials
            The transformed sequences; their lengths do not change. If `X` is an array,
            an array of shape (n_sequences, n_timesteps, n_features_out), padded with
            NaN. If the channels have names, the result carries the names of
            `get_feature_names_out`, for the steps that follow.
        """
        self._check_ready()
        checked = check_input(self, X, reset=False)
        recordings, units = checked.split()
        changed = self._transform(recordings)
        sequences = units.grouped(changed)
        names = self._carried_names()
        if checked is X and isinstance(changed, CheckedSequences):
            # Inside another estimator, which has already checked the input.
            return CheckedSequences(sequences, names)
        if checked is not X and not is_list_of_sequences(readable(X)):
            return _padded(sequences)
        return named_sequences(sequences, names)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the channels of transformed sequences.

        Parameters
        ----------
        input_features : array-like of str of shape (n_features_in_,), default=None
            Names of the channels; they are not used if `fit` was given a 2-D array.
            By default the names seen by `fit`.

        Returns
        -------
        names : ndarray of str
            For example ``"x0"``, or ``"x0_lag2"`` for its derivative over 2 frames.
        """
        self._check_ready()
        names = self._names(input_names(self, input_features))
        return np.array(names, dtype=object)

    def set_output(self, *, transform: str | None = None) -> Any:  # noqa: ARG002
        """Do nothing: sequences stay sequences in every output format.

        It exists so that ``set_output`` of a Pipeline reaches the steps after this one.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, default=None
            The format, which has no effect.

        Returns
        -------
        self : estimator
            The step.
        """
        return self

    def _fit(self, X, y):
        pass

    def _sources(self, channels):
        """Return the channel that each output channel is computed from, or its name."""
        return self._names(channels)

    def _carried_names(self):
        """Return the names that transformed sequences carry, or None."""
        channels = fitted_names(self)
        return None if channels is None else self._names(channels)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def check_row_transformer(name, value):
    """Raise unless `value` can transform rows, or is None."""
    members = ("fit", "transform", "get_params")
    able = all(hasattr(value, member) for member in members)
    if value is not None and (isinstance(value, type) or not able):
        raise TypeError(
            f"{name} must be None or an instance that transforms rows, such as "
            f"StandardScaler(), got {value!r}."
        )
    if value is not None and get_tags(value).input_tags.three_d_array:
        raise TypeError(
            f"{name} must transform rows, as StandardScaler() does, got {value!r}, "
            "which takes whole sequences. Make it a step of the pipeline."
        )


class Framewise(SequenceTransformer):
    """Apply a scikit-learn transformer to the frames of sequences.

    Parameters
    ----------
    transformer : transformer, default=None
        Any transformer of rows. It is fitted on the frames of all training sequences;
        if there are labels, each frame has the label of its sequence. By default
        :class:`sklearn.preprocessing.StandardScaler`.

    Attributes
    ----------
    transformer_ : transformer
        The fitted transformer.

    n_features_in_ : int
        Number of features of a frame; of columns if `fit` was given a 2-D array.

    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences that have names.

    See Also
    --------
    Deltas : Append time derivatives.
    TimeChannel : Append the position in the sequence.

    Examples
    --------
    Standardise all frames together: their mean is 3, their standard deviation 2.

    >>> from skawhmm import Framewise
    >>> Framewise().fit_transform([[[1.0], [5.0]], [[5.0], [1.0]]])
    [array([[-1.],
           [ 1.]]), array([[ 1.],
           [-1.]])]
    """

    _parameter_checks: ClassVar = {"transformer": check_row_transformer}

    def __init__(self, transformer: Any = None) -> None:
        self.transformer = transformer

    def _chosen(self):
        return StandardScaler() if self.transformer is None else self.transformer

    def _fit(self, X, y):
        lengths = [len(x) for x in X]
        labels = None if y is None else np.repeat(np.asarray(y), lengths, axis=0)
        self.transformer_ = clone(self._chosen()).fit(np.concatenate(X), labels)

    def _names(self, channels):
        return list(self.transformer_.get_feature_names_out(channels))

    def _carried_names(self):
        try:
            return super()._carried_names()
        except (AttributeError, ValueError):
            # Transformers need not name their outputs.
            return None

    def _transform(self, X):
        frames, ends = concatenated(X)
        frames = self.transformer_.transform(frames)
        frames = frames.toarray() if sparse.issparse(frames) else frames
        frames = real_array("The output of transformer", frames)
        if frames.ndim != 2 or len(frames) != ends[-1]:
            raise ValueError(
                f"transformer must return one row per frame ({ends[-1]} frames), got "
                f"shape {frames.shape}."
            )
        return divided(np.ascontiguousarray(frames), ends)


def check_order(name, value):
    """Raise unless `value` is 1 or 2, the number of differences."""
    if check_integer(name, value, 1) > 2:
        raise ValueError(f"{name} must be 1 or 2, got {value!r}.")


class Deltas(SequenceTransformer):
    r"""Append time derivatives to the channels of sequences.

    The derivative at lag :math:`l` is the slope from :math:`t - l` to :math:`t + l`.
    Near the ends of a sequence the slope is taken over the frames that exist. A
    sequence of one frame has derivative 0.

    Parameters
    ----------
    order : {1, 2}, default=1
        Whether to append first derivatives only, or second derivatives too.

    lags : int or sequence of int, default=1
        Half the width of the slopes, in frames. Each lag appends its own derivatives.

    Attributes
    ----------
    n_features_in_ : int
        Number of features of a frame; of columns if `fit` was given a 2-D array.

    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences that have names.

    See Also
    --------
    Framewise : Apply any transformer to the frames.
    TimeChannel : Append the position in the sequence.

    Examples
    --------
    >>> from skawhmm.sequences import Deltas
    >>> Deltas().fit_transform([[[0.0], [1.0], [4.0]]])
    [array([[0., 1.],
           [1., 2.],
           [4., 3.]])]
    """

    _parameter_checks: ClassVar = {"order": check_order, "lags": check_counts}
    _read_later: ClassVar = frozenset({"order", "lags"})

    def __init__(self, order: int = 1, lags: int | Sequence[int] = 1) -> None:
        self.order = order
        self.lags = lags

    def _names(self, channels):
        return [channel + suffix for suffix in self._suffixes() for channel in channels]

    def _sources(self, channels):
        return [*channels] * len(self._suffixes())

    def _suffixes(self):
        suffixes = [""]
        for lag in self._checked_lags():
            suffixes += [f"_lag{lag}", f"_lag{lag}_twice"][: self.order]
        return suffixes

    def _transform(self, X):
        lags = self._checked_lags()
        frames, ends = concatenated(X)
        lengths = np.diff(ends, prepend=0)
        # The first and the last frame of the sequence that a frame belongs to.
        first, last = np.repeat([ends - lengths, ends - 1], lengths, axis=1)
        parts = [frames]
        for lag in lags:
            derivative = frames
            for _ in range(self.order):
                derivative = _slopes(derivative, lag, first, last)
                parts.append(derivative)
        wide = np.hstack(parts)
        changed = divided(wide, ends)
        peak = max(np.fmax.reduce(wide, axis=None), -np.fmin.reduce(wide, axis=None))
        # Slopes beyond the range of frames are reported by the next step.
        return CheckedSequences(changed) if peak <= LARGEST_VALUE else changed

    def _checked_lags(self):
        return check_counts("lags", self.lags)


class TimeChannel(SequenceTransformer):
    """Append the relative position in the sequence as a channel.

    Parameters
    ----------
    scale : float, default=1.0
        Value of the channel in the last frame. It is 0 in the first frame and grows
        linearly.

    Attributes
    ----------
    n_features_in_ : int
        Number of features of a frame; of columns if `fit` was given a 2-D array.

    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences that have names.

    See Also
    --------
    Framewise : Apply any transformer to the frames.
    Deltas : Append time derivatives.

    Examples
    --------
    >>> from skawhmm.sequences import TimeChannel
    >>> TimeChannel(scale=2.0).fit_transform([[[5.0], [6.0], [7.0]]])
    [array([[5., 0.],
           [6., 1.],
           [7., 2.]])]
    """

    _parameter_checks: ClassVar = {
        "scale": partial(check_real, low=0, high=LARGEST_VALUE)
    }
    _read_later: ClassVar = frozenset({"scale"})

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def _names(self, channels):
        return [*channels, "position"]

    def _transform(self, X):
        lengths = np.array([len(x) for x in X])
        ends = np.cumsum(lengths)
        steps = float(self.scale) / np.maximum(lengths - 1, 1)
        times = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        positions = times * np.repeat(steps, lengths)
        # Not off by a rounding error.
        positions[ends[lengths > 1] - 1] = self.scale
        changed = []
        for x, position in zip(X, divided(positions, ends), strict=True):
            # One array of all frames would not stay in the cache.
            frames = np.empty((len(x), x.shape[1] + 1))
            frames[:, :-1], frames[:, -1] = x, position
            changed.append(frames)
        return CheckedSequences(changed)


def concatenated(sequences):
    """Return the frames of all sequences, and where each sequence ends."""
    # Items of a plain list are found faster.
    return np.concatenate([*sequences]), np.cumsum([len(x) for x in sequences])


def divided(frames, ends):
    """Return the sequences of which `concatenated` made frames and ends."""
    return [frames[first:last] for first, last in pairwise([0, *ends.tolist()])]


def _slopes(frames, lag, first, last):
    """Return the slope of each channel around each frame, within its sequence."""
    times = np.arange(len(frames))
    lag = min(lag, len(frames))
    before = np.maximum(times - lag, first)
    after = np.minimum(times + lag, last)
    slopes = frames.take(after, axis=0)
    slopes -= frames.take(before, axis=0)
    slopes /= np.maximum(after - before, 1)[:, None]
    return slopes


def _padded(sequences):
    """Return sequences as one array; shorter ones are padded with NaN."""
    length = max(len(x) for x in sequences)
    array = np.full((len(sequences), length, sequences[0].shape[1]), np.nan)
    for n, x in enumerate(sequences):
        array[n, : len(x)] = x
    return array
