"""Displays of differences between groups: a forest plot and a graph."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skawhmm.groups._effects import StateEffects
from skawhmm.plot._graph import (
    LARGEST_STATE,
    circle_places,
    draw_arrow,
    draw_ring,
    frame_graph,
    state_radii,
)
from skawhmm.plot._style import (
    check_result,
    drawing_axes,
    item_names,
    legend_above,
    literal,
    state_labels,
)
from skawhmm.utils._checks import check_integer, check_real
from skawhmm.utils._colors import COLORS
from skawhmm.utils._numbers import check_square, label_array, shaped_array

# Widths of the faintest and of the strongest arrow, in points.
ARROW_WIDTHS = 0.8, 5.0

# Columns that are exchanged, and columns that change sign, if the groups are swapped.
PLACES = (("group", "other"), ("mean", "other_mean"), ("low", "high"))
OPPOSITES = {a: b for pair in PLACES for a, b in (pair, pair[::-1])}
SIGNED = ("difference", "standardized", "low", "high")


def chosen_pair(effects, groups):
    """Return the rows of effects that compare two groups, by default the first two.

    If the groups are in reverse order, differences change sign.
    """
    check_result("effects", effects, StateEffects, "state_effects")
    columns: Mapping[str, Any] = effects.columns
    found = zip(columns["group"].tolist(), columns["other"].tolist(), strict=True)
    pairs = list(dict.fromkeys(found))
    pair = pairs[0] if groups is None else tuple(map(str, groups))
    is_swapped = pair not in pairs and pair[::-1] in pairs
    if pair not in pairs and not is_swapped:
        raise ValueError(
            f"groups must be one of the pairs {', '.join(map(str, pairs))}, got "
            f"{groups!r}."
        )
    first, other = pair[::-1] if is_swapped else pair
    chosen = (columns["group"] == first) & (columns["other"] == other)
    rows = {name: values[chosen] for name, values in columns.items()}
    if not is_swapped:
        return rows
    swapped = {name: rows[OPPOSITES.get(name, name)] for name in rows}
    return swapped | {name: -swapped[name] for name in SIGNED}


class EffectsDisplay:
    """Show differences between two groups with their intervals, as a forest plot.

    Differences are in units of the standard deviation within groups, so that
    occupancies, dwell times and probabilities fit on one axis. Use :meth:`from_effects`
    to create it.

    Parameters
    ----------
    labels : sequence of str
        Labels of the rows.

    difference, low, high : array-like of shape (n_rows,)
        Standardised differences and the ends of their intervals.

    pvalue : array-like of shape (n_rows,)
        Corrected p-values.

    groups : tuple of str, default=None
        The two groups, for the label of the axis.

    significance : float, default=0.05
        Rows with a p-value of at most this are drawn in colour.

    match : array-like of shape (n_rows,), default=None
        Fraction of refits that match the states of each row with the same states again;
        written on the right.

    Attributes
    ----------
    lines_ : list of matplotlib.lines.Line2D
        The intervals, one per row, the most significant on top.

    points_ : list of matplotlib.lines.Line2D
        The differences.

    texts_ : list of matplotlib.text.Text
        The percentages on the right, if there are any.

    ax_ : matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    state_effects : Compute the numbers that are drawn.
    TransitionGraphDisplay : The transitions as a graph.

    Examples
    --------
    >>> import numpy as np
    >>> from skawhmm import HMMBatch
    >>> from skawhmm.groups import state_effects
    >>> from skawhmm.plot import EffectsDisplay
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(["a", "b"], 10)
    >>> stay = np.where(group == "a", 0.6, 0.8) + rng.normal(0, 0.03, 20)
    >>> models = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [1 - s, s]] for s in stay],
    ...     means=np.tile([[0.0], [5.0]], (20, 1, 1)),
    ...     covars=np.ones((20, 2, 1)),
    ... )
    >>> effects = state_effects(models, group, random_state=0)
    >>> display = EffectsDisplay.from_effects(effects, state_names=["calm", "busy"])
    >>> display.labels[:2]
    ['busy → calm', 'busy → busy']
    """

    def __init__(
        self,
        labels: Sequence[str],
        difference: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        pvalue: ArrayLike,
        *,
        groups: tuple[str, str] | None = None,
        significance: float = 0.05,
        match: ArrayLike | None = None,
    ) -> None:
        self.labels = labels
        self.difference = difference
        self.low = low
        self.high = high
        self.pvalue = pvalue
        self.groups = groups
        self.significance = significance
        self.match = match

    @classmethod
    def from_effects(
        cls,
        effects: StateEffects,
        groups: tuple[str, str] | None = None,
        *,
        state_names: Sequence[str] | None = None,
        max_rows: int = 20,
        significance: float = 0.05,
        ax: Any = None,
        **kwargs: Any,
    ) -> "EffectsDisplay":
        """Draw the result of :func:`state_effects`.

        Parameters
        ----------
        effects : StateEffects
            The differences.

        groups : tuple of str, default=None
            The two groups, in either order: the first is subtracted from the second. By
            default the first pair in the table of effects.

        state_names : sequence of str, default=None
            Names of the states; by default the symbols of visible chains, or else
            indices.

        max_rows : int, default=20
            Largest number of rows; the most significant ones are drawn.

        significance : float in [0, 1], default=0.05
            Rows with a p-value of at most this are drawn in colour.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for the intervals.

        Returns
        -------
        display : EffectsDisplay
            The display.
        """
        check_integer("max_rows", max_rows, 1)
        check_real("significance", significance, 0, 1)
        rows = chosen_pair(effects, groups)
        names = state_labels(state_names, effects.models)
        size = np.abs(np.nan_to_num(rows["standardized"]))
        order = np.lexsort((-size, rows["pvalue"]))
        order = order[np.isfinite(rows["low"][order])][:max_rows]
        rows = {name: values[order] for name, values in rows.items()}
        is_named = state_names is not None or effects.models.state_names is not None
        kind = "" if is_named else "state "
        labels = [
            f"{names[i]} → {names[k]}"
            if k >= 0
            else f"{measure.replace('dwell_time', 'dwell time')} of {kind}{names[i]}"
            for measure, i, k in zip(
                rows["measure"], rows["state"], rows["next_state"], strict=True
            )
        ]
        # Rescale the intervals to the unit of the standardised differences.
        scale = rows["standardized"] / np.where(
            rows["difference"], rows["difference"], 1
        )
        display = cls(
            labels,
            rows["standardized"],
            rows["low"] * scale,
            rows["high"] * scale,
            rows["pvalue"],
            groups=(str(rows["group"][0]), str(rows["other"][0])),
            significance=significance,
            match=rows.get("match"),
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "EffectsDisplay":
        """Draw one row per difference.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for the intervals.

        Returns
        -------
        display : EffectsDisplay
            The display.
        """
        n_rows = len(shaped_array("difference", self.difference, "n_rows"))
        labels = label_array("labels", self.labels, n_rows, "difference")
        numbers = [
            shaped_array(name, getattr(self, name), n_rows)
            for name in ("difference", "low", "high", "pvalue")
        ]
        self.ax_, self.figure_ = drawing_axes(ax)
        self.lines_: list[Any] = []
        self.points_: list[Any] = []
        rows = zip(*numbers, strict=True)
        for place, (difference, low, high, pvalue) in enumerate(rows):
            sure = pvalue <= self.significance
            color = COLORS[int(difference > 0)] if sure else "0.6"
            style = {"color": color, "linewidth": 2, **kwargs}
            self.lines_ += self.ax_.plot([low, high], [place, place], **style)
            self.points_ += self.ax_.plot([difference], [place], "o", color=color)
        self.ax_.axvline(0, color="0.5", linewidth=0.8, zorder=0)
        self.ax_.set_yticks(range(len(labels)), list(map(literal, labels)))
        self.ax_.invert_yaxis()
        label = "difference in standard deviations"
        if self.groups is not None:
            label = f"{self.groups[1]} minus {self.groups[0]}, in standard deviations"
        self.ax_.set(xlabel=literal(label))
        self.ax_.spines[["top", "right"]].set_visible(False)
        self._write_matches(n_rows)
        return self

    def _write_matches(self, n_rows):
        """Write the match fractions on the right."""
        self.texts_ = []
        if self.match is None:
            return
        beside = self.ax_.get_yaxis_transform()
        style = {"fontsize": "small", "va": "center", "ha": "right"}
        for place, value in enumerate(shaped_array("match", self.match, n_rows)):
            text = "" if np.isnan(value) else f"{value:.0%}"
            drawn = self.ax_.text(1.06, place, text, transform=beside, **style)
            self.texts_.append(drawn)
        title = "refits with the same match"
        self.ax_.set_title(title, loc="right", x=1.06, fontsize="small")


class TransitionGraphDisplay:
    """Show differences between transition probabilities as a graph of states.

    States are circles whose area shows how frequent they are. An arrow is a transition
    that one group makes more often: its colour shows which group, its width by how
    much. Differences that are not significant are thin and grey. A ring on a state is
    the probability of staying. Use :meth:`from_effects` to create it.

    Parameters
    ----------
    differences : array-like of shape (n_states, n_states)
        Differences between transition probabilities; NaN for transitions that are not
        compared.

    pvalues : array-like of shape (n_states, n_states)
        Corrected p-values.

    occupancy : array-like of shape (n_states,)
        Mean fractions of time.

    state_names : sequence of str, default=None
        Names of the states.

    groups : tuple of str, default=None
        The two groups, for the legend.

    significance : float, default=0.05
        Arrows with a p-value of at most this are drawn in colour.

    positions : array-like of shape (n_states, 2), default=None
        Positions of the states; by default on a circle.

    Attributes
    ----------
    states_ : list of matplotlib.patches.Circle
        The states.

    arrows_ : dict of matplotlib.patches.Patch
        Arrows and rings by state and next state.

    ax_ : matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    state_effects : Compute the numbers that are drawn.
    EffectsDisplay : The same differences with their intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from skawhmm import HMMBatch
    >>> from skawhmm.groups import state_effects
    >>> from skawhmm.plot import TransitionGraphDisplay
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(["a", "b"], 10)
    >>> stay = np.where(group == "a", 0.6, 0.8) + rng.normal(0, 0.03, 20)
    >>> models = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [1 - s, s]] for s in stay],
    ...     means=np.tile([[0.0], [5.0]], (20, 1, 1)),
    ...     covars=np.ones((20, 2, 1)),
    ... )
    >>> effects = state_effects(models, group, random_state=0)
    >>> display = TransitionGraphDisplay.from_effects(effects)
    >>> sorted(display.arrows_)
    [(1, 0), (1, 1)]
    """

    def __init__(
        self,
        differences: ArrayLike,
        pvalues: ArrayLike,
        occupancy: ArrayLike,
        *,
        state_names: Sequence[str] | None = None,
        groups: tuple[str, str] | None = None,
        significance: float = 0.05,
        positions: ArrayLike | None = None,
    ) -> None:
        self.differences = differences
        self.pvalues = pvalues
        self.occupancy = occupancy
        self.state_names = state_names
        self.groups = groups
        self.significance = significance
        self.positions = positions

    @classmethod
    def from_effects(
        cls,
        effects: StateEffects,
        groups: tuple[str, str] | None = None,
        *,
        state_names: Sequence[str] | None = None,
        significance: float = 0.05,
        positions: ArrayLike | None = None,
        ax: Any = None,
    ) -> "TransitionGraphDisplay":
        """Draw the transitions in the result of :func:`state_effects`.

        Parameters
        ----------
        effects : StateEffects
            The differences, with transitions among them.

        groups : tuple of str, default=None
            The two groups, in either order: the first is subtracted from the second. By
            default the first pair in the table of effects.

        state_names : sequence of str, default=None
            Names of the states; by default the symbols of visible chains, or else
            indices.

        significance : float in [0, 1], default=0.05
            Arrows with a p-value of at most this are drawn in colour.

        positions : array-like of shape (n_states, 2), default=None
            Positions of the states; by default on a circle.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        Returns
        -------
        display : TransitionGraphDisplay
            The display.
        """
        check_real("significance", significance, 0, 1)
        rows = chosen_pair(effects, groups)
        steps = rows["next_state"] >= 0
        if not steps.any():
            raise ValueError(
                'effects must hold transitions: state_effects(measures="transitions"), '
                f"got {', '.join(np.unique(rows['measure']))}."
            )
        n_states = effects.models.transmats.shape[1]
        tables = np.full((2, n_states, n_states), np.nan)
        cells = rows["state"][steps], rows["next_state"][steps]
        tables[0][cells] = rows["difference"][steps]
        tables[1][cells] = rows["pvalue"][steps]
        display = cls(
            tables[0],
            tables[1],
            effects.models.weights.mean(axis=0),
            state_names=state_labels(state_names, effects.models),
            groups=(str(rows["group"][0]), str(rows["other"][0])),
            significance=significance,
            positions=positions,
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> "TransitionGraphDisplay":
        """Draw states, arrows and rings.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        Returns
        -------
        display : TransitionGraphDisplay
            The display.
        """
        differences = check_square("differences", self.differences, of="state")
        shaped_array("pvalues", self.pvalues, *differences.shape)
        shaped_array("occupancy", self.occupancy, len(differences))
        self.ax_, self.figure_ = drawing_axes(ax)
        from matplotlib.patches import Circle

        places = self._places(len(differences))
        names = item_names("state_names", self.state_names, len(places), "state")
        radii = state_radii(self.occupancy)
        self.states_ = []
        for place, radius, name in zip(places, radii, names, strict=True):
            state = Circle(place, radius, facecolor="0.92", edgecolor="0.3", zorder=3)
            self.states_.append(self.ax_.add_patch(state))
            self.ax_.text(*place, literal(name), ha="center", va="center", zorder=4)
        self.arrows_: dict[tuple[int, int], Any] = {}
        largest = np.nanmax(np.abs(differences), initial=0.0) or 1.0
        for i, k in np.ndindex(differences.shape):
            if np.isfinite(differences[i, k]) and differences[i, k] != 0:
                style = self._style(differences[i, k] / largest, (i, k))
                self.arrows_[i, k] = (
                    draw_ring(self.ax_, places, radii, i, style)
                    if i == k
                    else draw_arrow(self.ax_, places, radii, i, k, style)
                )
        self._legend()
        frame_graph(self.ax_, places, 2.2 * LARGEST_STATE)
        return self

    def _places(self, n_states) -> NDArray[np.float64]:
        if self.positions is not None:
            places = np.asarray(self.positions, dtype=float)
            if places.shape != (n_states, 2):
                raise ValueError(
                    f"positions must have shape {(n_states, 2)}, got {places.shape}."
                )
            return places
        return circle_places(n_states)

    def _style(self, size, cell):
        thin, thick = ARROW_WIDTHS
        if not np.asarray(self.pvalues)[cell] <= self.significance:
            return {"color": "0.75", "linewidth": thin, "zorder": 1}
        width = thin + (thick - thin) * abs(size)
        return {"color": COLORS[int(size > 0)], "linewidth": width, "zorder": 2}

    def _legend(self):
        from matplotlib.lines import Line2D

        groups = self.groups or ("first group", "second group")
        entries = [
            Line2D([], [], color=COLORS[side], linewidth=3, label=name)
            for side, name in enumerate(literal(f"more in {group}") for group in groups)
        ]
        label = f"p > {self.significance:g}"
        entries.append(Line2D([], [], color="0.75", linewidth=1, label=label))
        legend_above(self.ax_, handles=entries, ncols=3)
