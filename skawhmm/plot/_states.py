"""Display of the states in each group."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skawhmm.groups._design import check_labels
from skawhmm.groups._tables import aligned_to, state_measures
from skawhmm.models._batch import HMMBatch
from skawhmm.plot._style import (
    drawing_axes,
    item_names,
    legend_label,
    literal,
    state_labels,
)
from skawhmm.utils._checks import check_choice
from skawhmm.utils._colors import COLORS
from skawhmm.utils._numbers import label_array, shaped_array

MEASURES = {
    "occupancy": "fraction of time",
    "dwell_time": "mean length of a visit (steps)",
    "visits": "visits per 100 steps",
}


class StateSummaryDisplay:
    """Show occupancy or dwell times of each state, by group.

    Each point is one model; the line is the mean of a group, with error bars of twice
    the standard error. Use :meth:`from_models` to create it.

    Parameters
    ----------
    values : array-like of shape (n_models, n_states)
        The measure; NaN where a model does not have a state.

    groups : array-like of shape (n_models,)
        The group of each model.

    state_names : sequence of str, default=None
        Names of the states; by default their indices.

    label : str, default=None
        Label of the vertical axis.

    Attributes
    ----------
    points_ : list of matplotlib.collections.PathCollection
        The models, one entry per group.

    means_ : list of matplotlib.container.ErrorbarContainer
        Means and their errors, one entry per group.

    ax_ : matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    state_table : Compute the numbers that are drawn.
    state_effects : Test which differences are significant.

    Examples
    --------
    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.plot import StateSummaryDisplay
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(10, differ_in="transitions", random_state=0)
    >>> models = HMMTransformer(random_state=0).fit_transform(X)
    >>> display = StateSummaryDisplay.from_models(models, y, "dwell_time")
    >>> display.ax_.get_ylabel()
    'mean length of a visit (steps)'
    """

    def __init__(
        self,
        values: ArrayLike,
        groups: ArrayLike,
        *,
        state_names: Sequence[str] | None = None,
        label: str | None = None,
    ) -> None:
        self.values = values
        self.groups = groups
        self.state_names = state_names
        self.label = label

    @classmethod
    def from_models(
        cls,
        models: HMMBatch,
        groups: str | ArrayLike,
        measure: str = "occupancy",
        *,
        reference: Any = "barycenter",
        state_names: Sequence[str] | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "StateSummaryDisplay":
        """Draw a measure of the states of models.

        Parameters
        ----------
        models : HMMBatch
            The models.

        groups : str or array-like of shape (n_models,)
            The group of each model, or the name of a column of ``models.info``.

        measure : {"occupancy", "dwell_time", "visits"}, default="occupancy"
            Measure to draw: fraction of time, mean length of a visit, or number of
            visits per 100 steps. Dwell times beyond the data of a model (see
            :func:`state_table`) are not shown.

        reference : {"barycenter", "medoid"}, HMMBatch, HMMAligner or None, \
                default="barycenter"
            Model to whose states all models are aligned, as in :func:`state_table`.

        state_names : sequence of str, default=None
            Names of the states; by default the symbols of visible chains, or else
            indices.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.scatter` for the models.

        Returns
        -------
        display : StateSummaryDisplay
            The display.
        """
        check_choice("measure", measure, MEASURES)
        models = aligned_to(models, reference).models
        labels = check_labels("groups", groups, models)
        values = shown_measure(models, measure)
        label = MEASURES[measure]
        names = state_labels(state_names, models)
        display = cls(values, labels, state_names=names, label=label)
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "StateSummaryDisplay":
        """Draw one column of points per state and group.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.scatter` for the models.

        Returns
        -------
        display : StateSummaryDisplay
            The display.
        """
        values = shaped_array("values", self.values, "n_models", "n_states")
        groups = label_array("groups", self.groups, len(values))
        self.ax_, self.figure_ = drawing_axes(ax)
        names = item_names("state_names", self.state_names, values.shape[1], "state")
        kinds = np.unique(groups)
        width = 0.8 / len(kinds)
        states = np.arange(values.shape[1])
        self.points_, self.means_ = [], []
        for n, kind in enumerate(kinds):
            own = values[groups == kind]
            middle = states + (n - (len(kinds) - 1) / 2) * width
            places = middle + 0.35 * width * _spread(own)
            color = COLORS[n % len(COLORS)]
            style = {"s": 12, "color": color, "alpha": 0.5, "linewidths": 0, **kwargs}
            points = self.ax_.scatter(places, own, label=legend_label(kind), **style)
            self.points_.append(points)
            means, errors = _means_and_errors(own)
            self.means_.append(
                self.ax_.errorbar(
                    middle,
                    means,
                    2 * errors,
                    fmt="_",
                    color="black",
                    markersize=14,
                    markeredgewidth=2,
                    capsize=3,
                    zorder=3,
                )
            )
        self.ax_.set_xticks(states, list(map(literal, names)))
        self.ax_.set(xlabel="state", ylabel=literal(self.label or ""))
        self.ax_.set_ylim(bottom=0)
        self.ax_.spines[["top", "right"]].set_visible(False)
        legend = self.ax_.legend(frameon=False, markerscale=2)
        for handle in legend.legend_handles:
            handle.set_alpha(1)
        return self


def shown_measure(models, name):
    """Return a measure of states, NaN where a model lacks the state or the data."""
    columns = state_measures(models)
    values = columns[name]
    shown = np.isfinite(values)
    if name == "dwell_time" and "dwell_time_beyond_data" in columns:
        shown &= ~columns["dwell_time_beyond_data"]
    return np.where(shown, values, np.nan)


def _spread(values):
    """Return offsets from -1 to 1 that separate models, the same in every drawing."""
    n_models = len(values)
    order = np.arange(n_models) * 0.618034 % 1
    return np.tile((2 * order - 1)[:, None], (1, values.shape[1]))


def _means_and_errors(values):
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    means = np.where(known, values, 0).sum(axis=0) / np.maximum(counts, 1)
    left = np.where(known, values - means, 0)
    errors = np.sqrt((left**2).sum(axis=0) / np.maximum(counts - 1, 1))
    errors /= np.sqrt(np.maximum(counts, 1))
    return np.where(counts > 0, means, np.nan), np.where(counts > 1, errors, np.nan)
