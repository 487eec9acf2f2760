"""Display of a permutation test."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skawhmm.groups._results import GroupTestResult, statistic_name
from skawhmm.plot._style import (
    bar_range,
    check_result,
    drawing_axes,
    legend_above,
    literal,
)
from skawhmm.utils._checks import check_choice
from skawhmm.utils._colors import COLORS
from skawhmm.utils._numbers import shaped_array


class GroupTestDisplay:
    """Show the observed statistic and its distribution under permutation.

    Use :meth:`from_result` to create it.

    Parameters
    ----------
    statistic : float
        The observed statistic.

    null_distribution : array-like of shape (n_permutations,)
        Statistics under permutation.

    pvalue : float
        The p-value, for the legend.

    name : str, default="statistic"
        Label of the horizontal axis.

    Attributes
    ----------
    bars_ : matplotlib.container.BarContainer
        The histogram.

    line_ : matplotlib.lines.Line2D
        The observed statistic.

    ax_ : matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    hmm_group_test : Compute the test.

    Examples
    --------
    >>> import numpy as np
    >>> from skawhmm import hmm_group_test
    >>> from skawhmm.plot import GroupTestDisplay
    >>> values = np.array([0.0, 1.0, 2.0, 5.0, 4.0, 6.0, 8.0, 9.0])
    >>> distances = np.abs(values[:, None] - values)
    >>> result = hmm_group_test(distances, list("aaaabbbb"), random_state=0)
    >>> display = GroupTestDisplay.from_result(result)
    >>> display.line_.get_label()
    'observed: 9.417, p = 0.0569'
    """

    def __init__(
        self,
        statistic: float,
        null_distribution: ArrayLike,
        pvalue: float,
        *,
        name: str = "statistic",
    ) -> None:
        self.statistic = statistic
        self.null_distribution = null_distribution
        self.pvalue = pvalue
        self.name = name

    @classmethod
    def from_result(
        cls,
        result: GroupTestResult,
        test: str = "distance",
        *,
        ax: Any = None,
        **kwargs: Any,
    ) -> "GroupTestDisplay":
        """Draw one of the tests of :func:`hmm_group_test`.

        Parameters
        ----------
        result : GroupTestResult
            The result.

        test : {"distance", "marginal", "transition", "dispersion"}, default="distance"
            The test to draw.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.hist`.

        Returns
        -------
        display : GroupTestDisplay
            The display.
        """
        check_result("result", result, GroupTestResult, "hmm_group_test")
        tests = result.all_tests
        found = tests[check_choice("test", test, tests)]
        kind = "F" if test == "dispersion" else statistic_name(result)
        part = " component" if test in {"marginal", "transition"} else ""
        display = cls(
            found.statistic,
            found.null_distribution,
            found.pvalue,
            name=f"{kind} of the {test}{part}",
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "GroupTestDisplay":
        """Draw the histogram of the permutations and the observed statistic.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.hist`.

        Returns
        -------
        display : GroupTestDisplay
            The display.
        """
        null = shaped_array(
            "null_distribution", self.null_distribution, "n_permutations"
        )
        self.ax_, self.figure_ = drawing_axes(ax)
        null = null[np.isfinite(null)]
        label = f"{len(null)} permutations"
        style = {"bins": 40, "range": bar_range(null), "color": "0.75"}
        style |= {"label": label, **kwargs}
        _, _, self.bars_ = self.ax_.hist(null, **style)
        self.line_ = self.ax_.axvline(
            self.statistic,
            color=COLORS[1],
            linewidth=2,
            label=f"observed: {self.statistic:.4g}, p = {self.pvalue:.4g}",
        )
        self.ax_.set(xlabel=literal(self.name), ylabel="number of permutations")
        legend_above(self.ax_, ncols=2)
        return self
