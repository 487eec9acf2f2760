"""Display of how much the order of frames contributes to a score."""

from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skawhmm.classification._dynamics import DynamicsGain
from skawhmm.plot._style import (
    check_result,
    drawing_axes,
    literal,
)
from skawhmm.utils._colors import COLORS
from skawhmm.utils._numbers import shaped_array


class DynamicsGainDisplay:
    """Show the scores of sequences with and without the order of their frames.

    Use :meth:`from_gain` to create it. Every fold has a large mark for its score, small
    marks for the scores of permuted sequences, and a line from their mean to the score,
    whose length is the gain. The last column shows the means over all folds, with the
    interval of the gain: order matters, or misleads, if the interval does not reach the
    mean of the permuted sequences.

    Parameters
    ----------
    scores : array-like of shape (n_folds,)
        Scores of the unchanged sequences.

    permuted_scores : array-like of shape (n_folds, n_permutations)
        Scores of permuted sequences.

    interval : pair of float
        Interval of the mean gain.

    meaning : str, default=None
        Sentence written above the figure.

    score_name : str, default="score"
        Label of the vertical axis.

    Attributes
    ----------
    marks_ : matplotlib.lines.Line2D
        The scores of the folds.

    permuted_marks_ : matplotlib.lines.Line2D
        The scores of permuted sequences.

    gains_ : matplotlib.collections.LineCollection
        The gains of the folds.

    mean_ : matplotlib.container.ErrorbarContainer
        The mean score, with the interval of the mean gain.

    ax_ : matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    dynamics_gain : Compute the numbers that are drawn.

    Examples
    --------
    >>> from skawhmm import dynamics_gain
    >>> from skawhmm.plot import DynamicsGainDisplay
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(40, differ_in="transitions", random_state=0)
    >>> result = dynamics_gain(X, y, n_permutations=2)
    >>> display = DynamicsGainDisplay.from_gain(result)
    >>> display.ax_.get_ylabel()
    'balanced accuracy'
    """

    def __init__(
        self,
        scores: ArrayLike,
        permuted_scores: ArrayLike,
        interval: tuple[float, float],
        *,
        meaning: str | None = None,
        score_name: str = "score",
    ) -> None:
        self.scores = scores
        self.permuted_scores = permuted_scores
        self.interval = interval
        self.meaning = meaning
        self.score_name = score_name

    @classmethod
    def from_gain(
        cls, result: Any, *, ax: Any = None, **kwargs: Any
    ) -> "DynamicsGainDisplay":
        """Draw a result of `dynamics_gain`.

        Parameters
        ----------
        result : DynamicsGain
            The result of :func:`dynamics_gain`.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for the scores of the folds.

        Returns
        -------
        display : DynamicsGainDisplay
            The display.
        """
        check_result("result", result, DynamicsGain, "dynamics_gain")
        display = cls(
            result.scores,
            result.permuted_scores,
            result.interval,
            meaning=result.meaning,
            score_name=result.score_name,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "DynamicsGainDisplay":
        """Draw the scores of all folds, and their means.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for the scores of the folds.

        Returns
        -------
        display : DynamicsGainDisplay
            The display.
        """
        scores = shaped_array("scores", self.scores, "n_folds")
        permuted = shaped_array(
            "permuted_scores", self.permuted_scores, len(scores), "n_permutations"
        )
        lows = permuted.mean(axis=1)
        gain = scores.mean() - lows.mean()
        low, high = shaped_array("interval", self.interval, 2)
        if not low <= gain <= high:
            raise ValueError(
                f"interval must contain the mean gain {gain:.3g}, got {low:.3g} to "
                f"{high:.3g}."
            )
        self.ax_, self.figure_ = drawing_axes(ax)
        ax = self.ax_
        places, last = np.arange(len(scores)), len(scores) + 0.5
        self.gains_ = ax.vlines(
            [*places, last],
            [*lows, lows.mean()],
            [*scores, scores.mean()],
            color="0.6",
            linewidth=1.5,
            zorder=1,
        )
        (self.permuted_marks_,) = ax.plot(
            np.repeat(places, permuted.shape[1]),
            permuted.ravel(),
            "o",
            color=COLORS[1],
            markersize=4,
            alpha=0.5,
            label="frames permuted",
        )
        style = {"markersize": 8, "color": COLORS[0], "label": "frames in order"}
        (self.marks_,) = ax.plot(places, scores, "o", **{**style, **kwargs})
        ax.plot([last], [lows.mean()], "D", color=COLORS[1], markersize=7)
        self.mean_ = ax.errorbar(
            [last],
            [scores.mean()],
            yerr=[[gain - low], [high - gain]],
            fmt="D",
            color=COLORS[0],
            markersize=7,
            capsize=5,
            label="means, 95 % interval of the gain",
        )
        ax.axvline(len(scores) - 0.25, color="0.85", linewidth=1)
        names = [*(str(place + 1) for place in places), "mean"]
        ax.set_xticks([*places, last], names)
        ax.set(xlabel="fold", ylabel=literal(self.score_name), xlim=(-0.6, last + 0.6))
        if self.meaning is not None:
            ax.set_title(literal(fill(self.meaning, 68)), fontsize="medium")
        # Below the axes, because lines may be anywhere inside.
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12), "ncols": 3}
        ax.legend(fontsize="small", frameon=False, **place)
        return self
