"""Display of one sequence, coloured by the states of its model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_single_model
from skawhmm.models._inference import best_paths
from skawhmm.plot._style import (
    channel_labels,
    check_result,
    item_names,
    legend_label,
    literal,
    pyplot,
    state_color,
    state_labels,
)
from skawhmm.sequences._trials import Trials
from skawhmm.sequences._windows import WindowList
from skawhmm.utils._checks import check_integer
from skawhmm.utils._numbers import label_array, shaped_array

# Of more channels, the ones that vary most are drawn by default.
MAX_CHANNELS = 8

# With more symbols than this, only some are named.
MAX_NAMED_SYMBOLS = 12

# Height of the strip of a channel; strips are 1 apart.
STRIP = 0.86


class SequenceDisplay:
    """Show the channels of a sequence over time, coloured by the states of a model.

    Each channel has its own strip, scaled to its range, which is printed next to it.
    The background colours show the most probable path of states. Use :meth:`from_model`
    to create it.

    Parameters
    ----------
    sequence : array-like of shape (n_timesteps, n_channels)
        The frames.

    path : array-like of int of shape (n_timesteps,)
        The state of each frame.

    channel_names : sequence of str, default=None
        Names of the channels; by default their indices.

    state_names : sequence of str, default=None
        Names of the states; by default their indices.

    symbols : array-like of shape (n_symbols,), default=None
        The alphabet, if frames are indices of symbols.

    Attributes
    ----------
    lines_ : list of matplotlib.lines.Line2D
        The channels.

    spans_ : list of matplotlib.patches.Polygon or matplotlib.patches.Rectangle
        The visits to states, in order of time.

    ax_ : matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    HMMDisplay : The model itself.

    Examples
    --------
    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.plot import SequenceDisplay
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(5, n_features=2, separation=3, random_state=0)
    >>> models = HMMTransformer(random_state=0).fit_transform(X)
    >>> display = SequenceDisplay.from_model(models[0], X[0])
    >>> [text.get_text() for text in display.ax_.get_legend().texts]
    ['state 0', 'state 1', 'state 2']
    """

    def __init__(
        self,
        sequence: ArrayLike,
        path: ArrayLike,
        *,
        channel_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        symbols: ArrayLike | None = None,
    ) -> None:
        self.sequence = sequence
        self.path = path
        self.channel_names = channel_names
        self.state_names = state_names
        self.symbols = symbols

    @classmethod
    def from_model(
        cls,
        model: HMMBatch,
        sequence: Any = None,
        *,
        channels: Sequence[int] | None = None,
        channel_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "SequenceDisplay":
        """Draw a sequence with its most probable path of states.

        Parameters
        ----------
        model : HMMBatch
            A batch of one model, such as ``models[0]``.

        sequence : array-like of shape (n_timesteps, n_features) or str, default=None
            The sequence. By default the one the model was fitted to, if the model keeps
            it (``HMMTransformer(keep_sequences=True)``).

        channels : sequence of int, default=None
            The channels to draw; by default all, or the 8 that vary most if there are
            more than 8.

        channel_names : sequence of str, default=None
            Names of all channels; by default the names in the model, or else indices.

        state_names : sequence of str, default=None
            Names of the states; by default the symbols of visible chains, or else
            indices.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for the channels.

        Returns
        -------
        display : SequenceDisplay
            The display.
        """
        check_single_model("model", model)
        names = channel_labels(channel_names, model.n_features, model.feature_names)
        if state_names is not None or model.state_names is not None:
            state_names = state_labels(state_names, model)
        if sequence is None:
            if model.sequences is None:
                raise ValueError(
                    "sequence must be given, because the model does not contain its "
                    "sequence; HMMTransformer(keep_sequences=True) keeps it."
                )
            frames = model.sequences[0]
        else:
            _check_single(sequence)
            (frames,) = model._checked([sequence], caller="SequenceDisplay")
        if isinstance(frames, Trials):
            raise TypeError(
                f"sequence must be a single recording, got Trials of {len(frames)}. "
                "Pass one of them."
            )
        paths, _ = best_paths(model, [frames])
        chosen = _check_channels(channels, frames)
        display = cls(
            frames[:, chosen],
            paths[0],
            channel_names=[names[k] for k in chosen],
            state_names=state_names,
            symbols=model.emission.extras.get("symbols"),
        )
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_windows(
        cls,
        windows: WindowList,
        values: ArrayLike,
        recording: ArrayLike,
        *,
        index: int = 0,
        names: Sequence[str] | None = None,
        channels: Sequence[int] | None = None,
        channel_names: Sequence[str] | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "SequenceDisplay":
        """Draw a recording, coloured by the regimes of its windows.

        Parameters
        ----------
        windows : WindowList
            Windows of recordings, from :class:`skawhmm.sequences.Windows`.

        values : array-like of int of shape (n_windows,)
            The regime of each window, from 0, such as the cluster of its model. A frame
            has the regime of the window whose middle is nearest.

        recording : array-like of shape (n_timesteps, n_features)
            The recording.

        index : int, default=0
            Index of this recording among the recordings of `windows`.

        names : sequence of str, default=None
            Names of the regimes; by default "regime 0" and so on.

        channels : sequence of int, default=None
            The channels to draw; by default all, or the 8 that vary most.

        channel_names : sequence of str, default=None
            Names of all channels; by default their indices.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for the channels.

        Returns
        -------
        display : SequenceDisplay
            The display.
        """
        check_result("windows", windows, WindowList, "Windows().fit_transform")
        frames = shaped_array("recording", recording, "n_timesteps", "n_features")
        check_integer("index", index, 0)
        if index >= len(windows.lengths) or len(frames) != windows.lengths[index]:
            raise ValueError(
                f"recording must be recording {index} of windows, whose recordings "
                f"have {windows.lengths.tolist()} frames, got {len(frames)} frames."
            )
        values = label_array("values", values, len(windows), "window")
        path = windows.per_frame(values, align="center")[index]
        regimes = item_names("names", names, int(values.max()) + 1, "regime")
        if names is None:
            regimes = [f"regime {name}" for name in regimes]
        labels = channel_labels(channel_names, frames.shape[1])
        chosen = _check_channels(channels, frames)
        display = cls(
            frames[:, chosen],
            path,
            channel_names=[labels[k] for k in chosen],
            state_names=regimes,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "SequenceDisplay":
        """Draw one strip per channel.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for the channels.

        Returns
        -------
        display : SequenceDisplay
            The display.
        """
        frames = shaped_array("sequence", self.sequence, "n_timesteps", "n_features")
        path = label_array("path", self.path, len(frames), "frame")
        n_states = int(path.max(initial=0)) + 1
        if self.state_names is not None:
            n_states = max(n_states, len(self.state_names))
        names = item_names("state_names", self.state_names, n_states, "state")
        if self.state_names is None:
            names = [f"state {name}" for name in names]
        channels = channel_labels(self.channel_names, frames.shape[1])
        if ax is None:
            size = (8.0, 1.6 + 0.62 * frames.shape[1] + (self.symbols is not None))
            _, ax = pyplot().subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.spans_ = self._draw_states(path, names)
        ax.set(xlim=(-0.5, len(frames) - 0.5), xlabel="frame")
        if self.symbols is None:
            self._draw_channels(frames, channels, kwargs)
        else:
            self._draw_symbols(frames[:, 0], channels[0], kwargs)
        ax.spines[["top", "right", "left"]].set_visible(False)
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1), "ncols": 6}
        ax.legend(handles=self._handles, frameon=False, handlelength=1.2, **place)
        return self

    def _draw_states(self, path, names):
        starts = np.flatnonzero(np.diff(path, prepend=-1))
        ends = np.append(starts[1:], len(path))
        spans = []
        for start, end in zip(starts, ends, strict=True):
            style = {"color": state_color(path[start]), "alpha": 0.3, "linewidth": 0}
            spans.append(self.ax_.axvspan(start - 0.5, end - 0.5, zorder=0, **style))
        # The legend lists states by index, not in order of visits.
        self._handles = []
        for state in np.unique(path):
            self._handles.append(spans[np.argmax(path[starts] == state)])
            self._handles[-1].set_label(legend_label(names[state]))
        return spans

    def _draw_channels(self, frames, names, kwargs):
        ax, self.lines_ = self.ax_, []
        for row, values in enumerate(frames.T):
            seen = values[np.isfinite(values)]
            low, high = (seen.min(), seen.max()) if len(seen) else (0.0, 0.0)
            scaled = (values - low) / (high - low) if high > low else 0 * values + 0.5
            style = {"color": "black", "linewidth": 1, **kwargs}
            self.lines_ += ax.plot(STRIP * (scaled - 0.5) - row, **style)
            # The range of a channel is printed at the right end of its strip.
            text = {"fontsize": 7, "color": "0.35", "va": "center"}
            for value, side in ((high, 0.5), (low, -0.5)):
                place = (1.005, -row + 0.8 * STRIP * side)
                spot = {"transform": ax.get_yaxis_transform(), **text}
                ax.text(*place, f"{value:.3g}", **spot)
        ax.set_yticks(-np.arange(len(names)), list(map(literal, names)))
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(-len(names) + 0.45, 0.55)

    def _draw_symbols(self, codes, name, kwargs):
        symbols = [literal(symbol) for symbol in np.asarray(self.symbols)]
        style = {"color": "black", "marker": "|", "linestyle": "none", **kwargs}
        self.lines_ = self.ax_.plot(codes, **style)
        shown = slice(None, None, 1 + (len(symbols) - 1) // MAX_NAMED_SYMBOLS)
        self.ax_.set_yticks(np.arange(len(symbols))[shown], symbols[shown])
        self.ax_.set(ylim=(-0.7, len(symbols) - 0.3), ylabel=literal(name))


def _check_single(sequence):
    """Raise if a list of sequences is given in place of one."""
    several = isinstance(sequence, list | tuple)
    if several and getattr(sequence[0], "ndim", 0) > 1:
        raise TypeError(
            f"sequence must be a single recording, got a list of {len(sequence)}. Pass "
            "one of them."
        )


def _check_channels(channels, frames):
    """Return the channels to draw."""
    n_features = frames.shape[1]
    if channels is not None:
        chosen = [check_integer("channels", channel, 0) for channel in channels]
        if not chosen or max(chosen) >= n_features:
            raise ValueError(
                f"channels must be indices of channels below {n_features}, got "
                f"{chosen}."
            )
        return chosen
    there = np.isfinite(frames)
    counts = np.maximum(there.sum(axis=0), 1)
    means = np.where(there, frames, 0).sum(axis=0) / counts
    spread = (np.where(there, frames - means, 0) ** 2).sum(axis=0) / counts
    return np.sort(np.argsort(-spread, kind="stable")[:MAX_CHANNELS]).tolist()
