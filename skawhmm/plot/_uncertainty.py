"""Displays of the uncertainty of a distance and of the stability of models."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skawhmm.groups._uncertainty import DistanceInterval, StabilityCurve
from skawhmm.plot._style import bar_range, drawing_axes
from skawhmm.utils._colors import COLORS
from skawhmm.utils._numbers import shaped_array


class DistanceIntervalDisplay:
    """Show a distance, its interval, and the distances of resampled models.

    Use :meth:`from_interval` to create it.

    Parameters
    ----------
    distance, estimate : float
        The distance between fitted models, and its estimate corrected for fitting
        noise.

    low, high : float
        Ends of the interval.

    replicates : array-like of shape (n_resamples,)
        Distances between models fitted to resampled sequences.

    confidence : float, default=None
        Confidence of the interval, for the legend.

    Attributes
    ----------
    bars_ : matplotlib.container.BarContainer
        Histogram of the resampled distances.

    line_ : matplotlib.lines.Line2D
        The distance.

    interval_ : matplotlib.container.ErrorbarContainer
        The estimate and its interval.

    ax_ : matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    distance_interval : Compute the numbers that are drawn.

    Examples
    --------
    >>> from skawhmm import HMMBatch
    >>> from skawhmm.groups import distance_interval
    >>> from skawhmm.plot import DistanceIntervalDisplay
    >>> chain = [[0.9, 0.1], [0.1, 0.9]]
    >>> a = HMMBatch([chain], [[[0.0], [5.0]]], [[[1.0], [1.0]]])
    >>> b = HMMBatch([chain], [[[2.0], [7.0]]], [[[1.0], [1.0]]])
    >>> found = distance_interval(a, b, n_timesteps=500, random_state=0)
    >>> display = DistanceIntervalDisplay.from_interval(found)
    >>> display.line_.get_label()
    'distance of the fitted models'
    """

    def __init__(
        self,
        distance: float,
        estimate: float,
        low: float,
        high: float,
        replicates: ArrayLike,
        *,
        confidence: float | None = None,
    ) -> None:
        self.distance = distance
        self.estimate = estimate
        self.low = low
        self.high = high
        self.replicates = replicates
        self.confidence = confidence

    @classmethod
    def from_interval(
        cls, interval: DistanceInterval, *, ax: Any = None, **kwargs: Any
    ) -> "DistanceIntervalDisplay":
        """Draw the result of :func:`distance_interval`.

        Parameters
        ----------
        interval : DistanceInterval
            The interval.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.hist`.

        Returns
        -------
        display : DistanceIntervalDisplay
            The display.
        """
        display = cls(
            interval.distance,
            interval.estimate,
            interval.low,
            interval.high,
            interval.replicates,
            confidence=interval.confidence,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "DistanceIntervalDisplay":
        """Draw the histogram, the distance and the interval.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.hist`.

        Returns
        -------
        display : DistanceIntervalDisplay
            The display.
        """
        drawn = shaped_array("replicates", self.replicates, "n_resamples")
        self.ax_, self.figure_ = drawing_axes(ax)
        style = {"bins": 25, "range": bar_range(drawn), "color": "0.75"}
        style |= {"label": "resampled models", **kwargs}
        counts, _, self.bars_ = self.ax_.hist(drawn, **style)
        self.line_ = self.ax_.axvline(
            self.distance, color=COLORS[0], label="distance of the fitted models"
        )
        confidence = "" if self.confidence is None else f"{self.confidence:.0%} "
        ends = [[self.estimate - self.low], [self.high - self.estimate]]
        self.interval_ = self.ax_.errorbar(
            [self.estimate],
            [1.12 * counts.max()],
            xerr=ends,
            fmt="o",
            color=COLORS[1],
            capsize=4,
            linewidth=2,
            label=f"{confidence}interval of the true distance",
        )
        self.ax_.set(xlabel="distance", ylabel="number of resamples")
        self.ax_.set_xlim(left=0)
        self.ax_.set_ylim(top=1.6 * counts.max())
        self.ax_.legend(fontsize=9)
        return self


class StabilityDisplay:
    """Show how stable models are for each number of states.

    Use :meth:`from_curve` to create it.

    Parameters
    ----------
    n_components : array-like of shape (n_numbers,)
        Numbers of states.

    halves, restarts : array-like of shape (n_numbers, n_sequences)
        Agreement of the models of two halves, and of two fits from different starts.

    best_n_components : int, default=None
        The number to mark.

    Attributes
    ----------
    curves_ : list of matplotlib.container.ErrorbarContainer
        Agreement of restarts and of halves, with standard errors.

    best_line_ : matplotlib.lines.Line2D or None
        The mark.

    ax_ : matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    stability_curve : Compute the numbers that are drawn.

    Examples
    --------
    >>> from skawhmm.groups import stability_curve
    >>> from skawhmm.plot import StabilityDisplay
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, _ = make_hmm_sequences(8, n_timesteps=300, separation=3, random_state=0)
    >>> curve = stability_curve(X, n_components=(1, 3, 5), random_state=0)
    >>> StabilityDisplay.from_curve(curve).best_n_components
    3
    """

    def __init__(
        self,
        n_components: ArrayLike,
        halves: ArrayLike,
        restarts: ArrayLike,
        *,
        best_n_components: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.halves = halves
        self.restarts = restarts
        self.best_n_components = best_n_components

    @classmethod
    def from_curve(
        cls, curve: StabilityCurve, *, ax: Any = None, **kwargs: Any
    ) -> "StabilityDisplay":
        """Draw the result of :func:`stability_curve`.

        Parameters
        ----------
        curve : StabilityCurve
            The curve.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.errorbar`.

        Returns
        -------
        display : StabilityDisplay
            The display.
        """
        display = cls(
            curve.n_components,
            curve.halves,
            curve.restarts,
            best_n_components=curve.best_n_components,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "StabilityDisplay":
        """Draw both curves with their standard errors.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.errorbar`.

        Returns
        -------
        display : StabilityDisplay
            The display.
        """
        sizes = shaped_array("n_components", self.n_components, "n_sizes")
        for name in ("restarts", "halves"):
            shaped_array(name, getattr(self, name), len(sizes), "n_sequences")
        self.ax_, self.figure_ = drawing_axes(ax)
        sizes = np.asarray(self.n_components)
        self.curves_ = []
        for values, name, color in (
            (self.restarts, "restarts", COLORS[0]),
            (self.halves, "halves of a sequence", COLORS[1]),
        ):
            array = np.asarray(values, dtype=float)
            errors = array.std(axis=1, ddof=1) / np.sqrt(array.shape[1])
            style = {
                "marker": "o",
                "capsize": 3,
                "color": color,
                "label": name,
                **kwargs,
            }
            self.curves_.append(
                self.ax_.errorbar(sizes, array.mean(axis=1), errors, **style)
            )
        self.best_line_ = None
        if self.best_n_components is not None:
            self.best_line_ = self.ax_.axvline(
                self.best_n_components, color="0.5", linestyle="--", zorder=0
            )
        self.ax_.set(xlabel="number of states", ylabel="agreement", xticks=sizes)
        self.ax_.set_ylim(top=1.05)
        self.ax_.legend(frameon=False)
        return self
