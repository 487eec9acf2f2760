"""Displays of the uncertainty of distances, registrations and numbers of states."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skawhmm.groups._registration import RegistrationInterval
from skawhmm.groups._stability import StabilityCurve
from skawhmm.groups._uncertainty import DistanceInterval
from skawhmm.plot._style import (
    bar_range,
    check_result,
    drawing_axes,
    item_names,
    legend_above,
    literal,
    side_by_side,
)
from skawhmm.utils._colors import COLORS
from skawhmm.utils._numbers import shaped_array

# Cells above this fraction are dark and get white text.
DARK = 0.6

# Smaller fractions would be written as 0 %.
LEAST_WRITTEN = 0.005

# Letters per line of a title, per axes below it.
TITLE_WIDTH = 52

# Names of curves, and factors that convert them to log likelihoods.
LABELS = {
    "restarts": ("restarts", 1.0),
    "halves": ("halves of a sequence", 1.0),
    "held_out": ("held-out log likelihood", 1.0),
    "bic": ("-BIC / 2", -0.5),
    "aic": ("-AIC / 2", -0.5),
}


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
        check_result("interval", interval, DistanceInterval, "distance_interval")
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
        # An interval often starts at 0, where its end must not be cut off.
        self.ax_.set_xlim(left=-0.02 * self.ax_.get_xlim()[1])
        self.ax_.set_ylim(top=1.25 * counts.max())
        legend_above(self.ax_, ncols=2)
        return self


class RegistrationIntervalDisplay:
    """Show how often refits match each state of a with each state of b.

    Use :meth:`from_interval` to create it.

    Parameters
    ----------
    probabilities : array-like of shape (n_components_a, n_components_b)
        Fraction of refits in which a state of a is matched with a state of b; NaN in
        the rows of states that are in no refit.

    notes : sequence of str, default=()
        Lines of text above the matrix, such as which states split.

    names : pair of str, default=("a", "b")
        Names of the models.

    state_names : pair of (sequence of str or None), default=None
        Names of the states of both models; by default they are numbered.

    Attributes
    ----------
    im_ : matplotlib.image.AxesImage
        The matrix.

    texts_ : list of matplotlib.text.Text
        The percentages.

    ax_ : matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    registration_interval : Compute the numbers that are drawn.
    RegistrationDisplay : The registration of two models.

    Examples
    --------
    >>> from skawhmm import HMMBatch
    >>> from skawhmm.groups import registration_interval
    >>> from skawhmm.plot import RegistrationIntervalDisplay
    >>> chain = [[0.9, 0.1], [0.1, 0.9]]
    >>> a = HMMBatch([chain], [[[0.0], [5.0]]], [[[1.0], [1.0]]])
    >>> b = HMMBatch([chain], [[[7.0], [2.0]]], [[[1.0], [1.0]]])
    >>> found = registration_interval(a, b, n_timesteps=100, random_state=0)
    >>> display = RegistrationIntervalDisplay.from_interval(found)
    >>> [text.get_text() for text in display.texts_]
    ['100 %', '100 %']
    """

    def __init__(
        self,
        probabilities: ArrayLike,
        *,
        notes: Sequence[str] = (),
        names: Sequence[str] = ("a", "b"),
        state_names: Sequence[Sequence[str] | None] | None = None,
    ) -> None:
        self.probabilities = probabilities
        self.notes = notes
        self.names = names
        self.state_names = state_names

    @classmethod
    def from_interval(
        cls,
        interval: RegistrationInterval,
        *,
        names: Sequence[str] = ("a", "b"),
        ax: Any = None,
        **kwargs: Any,
    ) -> "RegistrationIntervalDisplay":
        """Draw the result of :func:`registration_interval`.

        Parameters
        ----------
        interval : RegistrationInterval
            The interval.

        names : pair of str, default=("a", "b")
            Names of the models.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.imshow`.

        Returns
        -------
        display : RegistrationIntervalDisplay
            The display.
        """
        check_result(
            "interval", interval, RegistrationInterval, "registration_interval"
        )
        notes = interval.notes(*item_names("names", names, 2, "model"))
        display = cls(
            interval.probabilities,
            notes=notes,
            names=names,
            state_names=interval.state_names,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "RegistrationIntervalDisplay":
        """Draw the matrix with its percentages.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.imshow`.

        Returns
        -------
        display : RegistrationIntervalDisplay
            The display.
        """
        values = np.asarray(self.probabilities, dtype=float)
        first, second = item_names("names", self.names, 2, "model")
        rows, columns = (
            item_names("state_names", own, size, "state")
            for own, size in zip(
                self.state_names or (None,) * 2, values.shape, strict=True
            )
        )
        self.ax_, self.figure_ = drawing_axes(ax)
        style = {"vmin": 0.0, "vmax": 1.0, "cmap": "Blues", **kwargs}
        self.im_ = self.ax_.imshow(values, **style)
        self.texts_ = [
            self.ax_.text(
                j,
                i,
                f"{100 * values[i, j]:.0f} %",
                ha="center",
                va="center",
                color="white" if values[i, j] > DARK else "black",
            )
            for i, j in np.ndindex(values.shape)
            if values[i, j] > LEAST_WRITTEN
        ]
        self.ax_.set(
            xticks=range(values.shape[1]),
            yticks=range(values.shape[0]),
            xticklabels=map(literal, columns),
            yticklabels=map(literal, rows),
            xlabel=literal(f"state of {second}"),
            ylabel=literal(f"state of {first}"),
        )
        title = ["fraction of refits", *self.notes]
        self.ax_.set_title(literal("\n".join(title)), fontsize="medium")
        return self


class StabilityDisplay:
    """Show stability and fit of models per number of states.

    On the left is the agreement of restarts and of halves; on the right are held-out
    likelihood and information criteria, all per frame, where larger is better. Use
    :meth:`from_curve` to create it.

    Parameters
    ----------
    n_components : array-like of shape (n_numbers,)
        Numbers of states.

    halves, restarts : array-like of shape (n_numbers, n_sequences)
        Agreement of the models of two halves, and of two fits from different starts.

    held_out : array-like of shape (n_numbers, n_sequences), default=None
        Held-out log likelihoods per frame. Without them the right side is not drawn.

    bic, aic : array-like of shape (n_numbers, n_sequences), default=None
        Information criteria per frame; minus one half of them is drawn.

    best_n_components : int, default=None
        Number of states to mark.

    recommendation : str, default=None
        Sentence written above the figure.

    Attributes
    ----------
    curves_ : list of matplotlib.container.ErrorbarContainer
        Agreement of restarts and of halves, held-out likelihood, BIC and AIC, with
        standard errors.

    best_lines_ : list of matplotlib.lines.Line2D
        Lines that mark the chosen number.

    axes_ : list of matplotlib.axes.Axes
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
        held_out: ArrayLike | None = None,
        bic: ArrayLike | None = None,
        aic: ArrayLike | None = None,
        best_n_components: int | None = None,
        recommendation: str | None = None,
    ) -> None:
        self.n_components = n_components
        self.halves = halves
        self.restarts = restarts
        self.held_out = held_out
        self.bic = bic
        self.aic = aic
        self.best_n_components = best_n_components
        self.recommendation = recommendation

    @classmethod
    def from_curve(
        cls, curve: StabilityCurve, *, ax: Any = None, **kwargs: Any
    ) -> "StabilityDisplay":
        """Draw the result of :func:`stability_curve`.

        Parameters
        ----------
        curve : StabilityCurve
            The curve.

        ax : matplotlib.axes.Axes or pair of them, default=None
            Where to draw; by default on a new figure. On single axes, only the
            agreement is drawn.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.errorbar`.

        Returns
        -------
        display : StabilityDisplay
            The display.
        """
        check_result("curve", curve, StabilityCurve, "stability_curve")
        criteria = {
            name: values
            for name, values in (("bic", curve.bic), ("aic", curve.aic))
            if np.isfinite(values).all()
        }
        display = cls(
            curve.n_components,
            curve.halves,
            curve.restarts,
            held_out=curve.held_out,
            **criteria,
            best_n_components=curve.best_n_components,
            recommendation=curve.recommendation,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "StabilityDisplay":
        """Draw all curves with their standard errors.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or pair of them, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.errorbar`.

        Returns
        -------
        display : StabilityDisplay
            The display.
        """
        sizes = shaped_array("n_components", self.n_components, "n_sizes")
        parts = [self._drawn(("restarts", "halves"), len(sizes))]
        if self.held_out is not None:
            parts.append(self._drawn(("held_out", "bic", "aic"), len(sizes)))
        self.axes_ = side_by_side(ax, len(parts), (4.6, 3.6))
        self.figure_ = self.axes_[0].figure
        self.curves_, self.best_lines_ = [], []
        for axes, curves in zip(self.axes_, parts, strict=False):
            for color, (label, values) in zip(COLORS, curves.items(), strict=False):
                errors = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
                style = {"marker": "o", "capsize": 3, "color": color, "label": label}
                self.curves_.append(
                    axes.errorbar(
                        sizes, values.mean(axis=1), errors, **{**style, **kwargs}
                    )
                )
            if self.best_n_components is not None:
                line = axes.axvline(
                    self.best_n_components, color="0.5", linestyle="--", zorder=0
                )
                self.best_lines_.append(line)
            axes.set(xlabel="number of states", xticks=sizes)
            axes.legend(framealpha=1, fontsize="small")
        if self.recommendation is not None:
            text = literal(fill(self.recommendation, TITLE_WIDTH * len(self.axes_)))
            self.axes_[0].set_title(text, loc="left", fontsize="medium")
        self.axes_[0].set(ylabel="agreement")
        self.axes_[0].set_ylim(top=1.05)
        for axes in self.axes_[1:]:
            axes.set(ylabel="per frame, larger is better")
        return self

    def _drawn(self, names, n_sizes):
        """Return the curves of one side by their labels."""
        curves = {}
        for name in names:
            values = getattr(self, name)
            if values is None:
                continue
            array = shaped_array(name, values, n_sizes, "n_sequences")
            label, factor = LABELS[name]
            curves[label] = factor * np.asarray(array, dtype=float)
        return curves
