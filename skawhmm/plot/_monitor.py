"""Display of a monitored process: recording, states, distance, evidence, alarms."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skawhmm.monitoring._monitor import HMMMonitor
from skawhmm.plot._style import (
    COLORS,
    check_result,
    legend_label,
    pyplot,
    state_color,
)
from skawhmm.utils._numbers import shaped_array


class MonitorDisplay:
    """Show the rows of a monitor over time.

    From top to bottom: the recording, if it is given; the states of each window by
    name; its distance to the reference, with the middle 90 % of the calibration
    windows; and the evidence of a change. Red lines are alarms; dotted lines are the
    times at which the changes began. Use :meth:`from_monitor` to create it.

    Parameters
    ----------
    rows : list of dict
        Rows of a monitor.

    calibration_scores : array-like of shape (n_windows,)
        Distances of the calibration windows.

    false_alarm_rate : float
        An alarm is raised when the evidence reaches the reciprocal of this rate.

    state_names : sequence of str
        Names of the states of the reference, which get the first colours.

    recording : array-like of shape (n_frames, n_features), default=None
        Frames of the stream.

    times : array-like of shape (n_frames,), default=None
        Times of the frames; by default they are numbered from 0.

    Attributes
    ----------
    axes_ : list of matplotlib.axes.Axes
        The panels, from top to bottom.

    alarms_ : list of matplotlib.lines.Line2D
        The alarms in the last panel.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    skawhmm.monitoring.HMMMonitor : Compute the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skawhmm import HMMMonitor
    >>> from skawhmm.plot import MonitorDisplay
    >>> rng = np.random.default_rng(0)
    >>> def machine(n_blocks, levels):
    ...     means = np.repeat(rng.choice(levels, n_blocks), 10)
    ...     return rng.normal(means)[:, None]
    >>> monitor = HMMMonitor(length=100).fit([machine(1000, [0, 4, 8])])
    >>> stream = np.concatenate([machine(100, [0, 4, 8]), machine(60, [0, 4, 12])])
    >>> display = MonitorDisplay.from_monitor(monitor.partial_fit(stream), stream)
    >>> [ax.get_ylabel() for ax in display.axes_]
    ['recording', 'states', 'distance', 'evidence']
    """

    def __init__(
        self,
        rows: list[dict[str, Any]],
        calibration_scores: ArrayLike,
        false_alarm_rate: float,
        state_names: Sequence[str],
        *,
        recording: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> None:
        self.rows = rows
        self.calibration_scores = calibration_scores
        self.false_alarm_rate = false_alarm_rate
        self.state_names = state_names
        self.recording = recording
        self.times = times

    @classmethod
    def from_monitor(
        cls,
        monitor: HMMMonitor,
        recording: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
        axes: Any = None,
    ) -> "MonitorDisplay":
        """Draw the rows that a monitor keeps.

        Parameters
        ----------
        monitor : HMMMonitor
            A monitor that has processed frames.

        recording : array-like of shape (n_frames, n_features), default=None
            Frames to draw; by default they are not drawn.

        times : array-like of shape (n_frames,), default=None
            The times of the frames, if the monitor was given times.

        axes : sequence of matplotlib.axes.Axes, default=None
            Where to draw the three or four panels; by default on a new figure.

        Returns
        -------
        display : MonitorDisplay
            The display.
        """
        check_result("monitor", monitor, HMMMonitor, "HMMMonitor().fit")
        check_is_fitted(monitor)
        rows = monitor.rows_
        if not rows:
            raise ValueError(
                "monitor must have taken the frames of a window, got "
                f"{monitor.n_frames_} frames and length={monitor.length}."
            )
        display = cls(
            rows,
            monitor.calibration_scores_,
            monitor.false_alarm_rate,
            monitor.state_names_,
            recording=recording,
            times=times,
        )
        return display.plot(axes)

    def plot(self, axes: Any = None) -> "MonitorDisplay":
        """Draw the panels.

        Parameters
        ----------
        axes : sequence of matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        Returns
        -------
        display : MonitorDisplay
            The display.
        """
        n_panels = 3 + (self.recording is not None)
        if axes is None:
            _, axes = pyplot().subplots(
                n_panels,
                1,
                sharex=True,
                figsize=(8.0, 1.2 + 1.5 * n_panels),
                layout="constrained",
            )
        self.axes_ = list(np.ravel(np.asarray(axes, dtype=object)))
        if len(self.axes_) != n_panels:
            raise ValueError(
                f"axes must hold {n_panels} axes, one per panel, got {len(self.axes_)}."
            )
        self.figure_ = self.axes_[0].figure
        *first, states, distance, evidence = self.axes_
        times = np.array([row["time"] for row in self.rows])
        if first:
            self._draw_recording(first[0])
        self._draw_states(states, times)
        self._draw_distance(distance, times)
        self._draw_evidence(evidence, times)
        for ax in self.axes_:
            self._draw_changes(ax)
            ax.spines[["top", "right"]].set_visible(False)
        self.axes_[-1].set_xlabel("time")
        return self

    def _draw_recording(self, ax):
        frames = shaped_array("recording", self.recording, "n_frames", "n_features")
        times = np.arange(len(frames)) if self.times is None else np.asarray(self.times)
        ax.plot(times, frames, linewidth=0.5, color="0.3", alpha=0.7)
        ax.set(ylabel="recording")

    def _draw_states(self, ax, times):
        names = [*self.state_names]
        for row in self.rows:
            names += [name for name in row["states"] if name not in names]
        # Colours must not repeat, and the legend must fit.
        n_named = max(len(self.state_names), len(COLORS))
        named, others = names[:n_named], names[n_named:]
        bars = [([name], state_color(k), name) for k, name in enumerate(named)]
        if others:
            bars.append((others, "0.75", f"{len(others)} others"))
        width = np.median(np.diff(times)) if len(times) > 1 else 1.0
        bottom = np.zeros(len(times))
        for group, color, label in bars:
            heights = np.array([_weight(row, group) for row in self.rows])
            ax.bar(
                times - width,
                heights,
                width,
                bottom,
                align="edge",
                color=color,
                label=legend_label(label),
            )
            bottom += heights
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        ax.legend(frameon=False, handlelength=1.0, fontsize=8, **place)
        ax.set(ylabel="states", ylim=(0, 1), yticks=[0, 1])

    def _draw_distance(self, ax, times):
        low, high = np.quantile(np.asarray(self.calibration_scores), [0.05, 0.95])
        ax.axhspan(low, high, color="0.9", zorder=0)
        ax.plot(times, [row["distance"] for row in self.rows], ".-", color="black")
        ax.set(ylabel="distance")

    def _draw_evidence(self, ax, times):
        ax.plot(times, [row["evidence"] for row in self.rows], ".-", color="black")
        ax.axhline(1 / self.false_alarm_rate, color="0.5", linestyle="--", linewidth=1)
        ax.set(ylabel="evidence", yscale="log")

    def _draw_changes(self, ax):
        self.alarms_ = []
        for row in self.rows:
            if row["alarm"]:
                self.alarms_.append(ax.axvline(row["time"], color="tab:red", lw=1))
                ax.axvline(row["began"], color="tab:red", lw=1, linestyle=":")


def _weight(row, names):
    """Return the total probability of the states of a row with the given names."""
    pairs = zip(row["states"], row["weights"], strict=True)
    return sum(weight for known, weight in pairs if known in names)
