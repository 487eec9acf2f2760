"""Display of one model: emissions of its states, and transitions between them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skawhmm.emissions._checks import SUM_TOLERANCE
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_single_model
from skawhmm.plot._channels import MAX_PANELS, channel_panels, draw_panels
from skawhmm.plot._graph import (
    circle_places,
    draw_arrow,
    draw_ring,
    frame_graph,
    outward_directions,
    state_radii,
)
from skawhmm.plot._registration import deviation_ellipse
from skawhmm.plot._style import (
    channel_labels,
    item_names,
    literal,
    side_by_side,
    state_color,
    state_labels,
)
from skawhmm.utils._checks import check_choice, check_integer, check_real
from skawhmm.utils._numbers import check_square, shaped_array

# Widths of the faintest and of the strongest arrow, in points.
ARROW_WIDTHS = 0.8, 5.0

# With more bars than this, only some are named.
MAX_NAMED_BARS = 24

# Radii of the rarest and the most frequent state; a short name fits inside.
RADII = 0.19, 0.28

# Longer names do not fit into the circle of their state.
LONGEST_INSIDE = 5

# Number of points of a curve.
N_POINTS = 400

# Height of the highest bar; rows of bars are 1 apart.
BAR_HEIGHT = 0.8

# Margin around the circle of states, for rings and labels.
MARGIN = 0.85


class HMMDisplay:
    """Show one model: its states, transitions, dwell times and start.

    On the left are the emissions of each state: ellipses of one standard deviation,
    density curves, roses of angles, or bars. On the right are the states as circles
    whose area shows how frequent they are, labelled with the fraction of time and the
    mean length of a visit. Arrows are transitions, with their probabilities; black
    arrows from outside are the start. Use :meth:`from_model` to create it.

    Parameters
    ----------
    transmat : array-like of shape (n_states, n_states)
        Transition matrix.

    weights : array-like of shape (n_states,)
        Fraction of time in each state.

    startprob : array-like of shape (n_states,)
        Probabilities of the first state.

    means : array-like of shape (n_states, 2) or (n_states, 1), default=None
        Centres of the ellipses or, for one channel, of the curves.

    covars : array-like of shape (n_states, 2, 2) or (n_states, 1, 1), default=None
        Covariances of the states.

    axis_names : pair of str, default=("channel 0", "channel 1")
        Names of the axes of the ellipses; curves use only the first one.

    bars : array-like of shape (n_states, n_bars), default=None
        Heights of the bars, drawn if there are no ellipses.

    errors : array-like of shape (n_states, n_bars), default=None
        Half-lengths of the error bars.

    bar_names : sequence of str, default=None
        Names of the bars; by default their indices.

    bar_label : str, default="value"
        Title of the bars.

    panels : list of dict, default=None
        Panels of single channels, drawn if there are no ellipses: ``name``, ``kind``
        ("curve", "points", "rose" or "bars"), ``places`` of shape (n_places,) and
        ``heights`` of shape (n_states, n_places); optionally a ``histogram`` with its
        ``edges``, and a ``note``.

    state_names : sequence of str, default=None
        Names of the states; by default their indices.

    threshold : float, default=0.01
        Transitions and start arrows with a lower probability are not drawn.

    Attributes
    ----------
    ellipses_ : list of matplotlib.patches.Ellipse
        The ellipses, one per state, or none.

    curves_ : list of matplotlib.lines.Line2D
        The curves, one per state, or none.

    bars_ : list of matplotlib.container.BarContainer
        The bars, one entry per state, or none.

    panels_ : list of matplotlib.axes.Axes
        The axes of single channels, or none.

    states_ : list of matplotlib.patches.Circle
        The states of the graph.

    arrows_ : dict of matplotlib.patches.FancyArrowPatch
        Transitions by state and next state.

    starts_ : dict of matplotlib.patches.FancyArrowPatch
        Start arrows by state.

    axes_ : list of matplotlib.axes.Axes
        The axes of the states, if these are drawn, and of the graph.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    SequenceDisplay : A sequence, coloured by the states of its model.
    RegistrationDisplay : Two models, and how their states correspond.

    Examples
    --------
    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.plot import HMMDisplay
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(5, n_features=2, separation=3, random_state=0)
    >>> models = HMMTransformer(random_state=0).fit_transform(X)
    >>> display = HMMDisplay.from_model(models[0], channel_names=["speed", "height"])
    >>> display.axes_[0].get_xlabel(), len(display.ellipses_)
    ('speed', 3)
    """

    def __init__(
        self,
        transmat: ArrayLike,
        weights: ArrayLike,
        startprob: ArrayLike,
        *,
        means: ArrayLike | None = None,
        covars: ArrayLike | None = None,
        axis_names: Sequence[str] = ("channel 0", "channel 1"),
        bars: ArrayLike | None = None,
        errors: ArrayLike | None = None,
        bar_names: Sequence[str] | None = None,
        bar_label: str = "value",
        panels: Sequence[dict[str, Any]] | None = None,
        state_names: Sequence[str] | None = None,
        threshold: float = 0.01,
    ) -> None:
        self.transmat = transmat
        self.weights = weights
        self.startprob = startprob
        self.means = means
        self.covars = covars
        self.axis_names = axis_names
        self.bars = bars
        self.errors = errors
        self.bar_names = bar_names
        self.bar_label = bar_label
        self.panels = panels
        self.state_names = state_names
        self.threshold = threshold

    @classmethod
    def from_model(
        cls,
        model: HMMBatch,
        X: Any = None,
        *,
        states: str = "auto",
        channels: Sequence[int] | None = None,
        channel_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        threshold: float = 0.01,
        ax: Any = None,
    ) -> "HMMDisplay":
        """Draw a model, whatever the kind of its states.

        Parameters
        ----------
        model : HMMBatch
            A batch of one model, such as ``models[0]``.

        X : list of array-like of shape (n_timesteps, n_features), default=None
            Sequences whose values are drawn as histograms, in grey. By default the
            sequence of the model, if it keeps one.

        states : {"auto", "gaussian", "bars", "channels"}, default="auto"
            How states are drawn. "gaussian" draws ellipses or, for one channel, curves:
            densities times fractions of time. "channels" draws the emissions in each
            channel: densities or probabilities times fractions of time, roses of
            angles, and probabilities of symbols within a state. Bars are means with one
            standard deviation (in standard deviations of all frames, if there are
            several channels), probabilities of symbols, or rates. "auto" draws Gaussian
            states as "gaussian", symbols and Poisson counts as "bars", and all others,
            or any states if `X` is given, as "channels".

        channels : sequence of int, default=None
            The two channels that are the axes of the ellipses, or the channels that are
            drawn with ``states="channels"``. By default ellipses use the only two
            channels or, if there are more, the two principal axes; "channels" draws the
            first twelve.

        channel_names : sequence of str, default=None
            Names of the channels; by default the names in the model, or else indices.

        state_names : sequence of str, default=None
            Names of the states; by default the symbols of visible chains, or else
            indices.

        threshold : float in [0, 1], default=0.01
            Transitions and start arrows with a lower probability are not drawn.

        ax : pair of matplotlib.axes.Axes, or one, default=None
            Where to draw, as for :meth:`plot`.

        Returns
        -------
        display : HMMDisplay
            The display.
        """
        check_single_model("model", model)
        check_choice("states", states, ("auto", "gaussian", "bars", "channels"))
        check_real("threshold", threshold, 0, 1)
        names = channel_labels(channel_names, model.n_features, model.feature_names)
        size = int(model.n_components[0])
        chosen = _chosen_form(model, states, has_data=X is not None)
        if channels is not None and chosen == "bars":
            raise ValueError(
                "channels must be None unless states are drawn as ellipses or by "
                f"channel, got {channels!r}."
            )
        if X is not None and chosen != "channels":
            raise ValueError(
                "X must be None unless states are drawn by channel, got "
                f"states={states!r}. Use states='channels'."
            )
        if chosen == "gaussian":
            parts = _plane(model, size, channels, names)
        elif chosen == "channels":
            parts = _panels(model, size, channels, names, X)
        else:
            parts = BARS.get(model.emission.name, _described)(model, size, names)
        display = cls(
            model.transmats[0, :size, :size],
            model.weights[0, :size],
            model.startprobs[0, :size],
            state_names=state_labels(state_names, model),
            threshold=threshold,
            **parts,
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> "HMMDisplay":
        """Draw the states and the graph of transitions.

        Parameters
        ----------
        ax : pair of matplotlib.axes.Axes, or one, default=None
            Where to draw the states, and the graph. On a single one only the graph is
            drawn. By default both are drawn on a new figure.

        Returns
        -------
        display : HMMDisplay
            The display.
        """
        transmat = check_square("transmat", self.transmat, of="state")
        distributions = {
            name: shaped_array(name, getattr(self, name), len(transmat))
            for name in ("weights", "startprob")
        }
        for name, probabilities in {"transmat": transmat, **distributions}.items():
            wrong = ~((probabilities >= 0) & (probabilities <= 1 + SUM_TOLERANCE))
            if wrong.any():
                # Arrows of such a width would take forever to draw.
                raise ValueError(
                    f"{name} must hold probabilities, got {probabilities[wrong][0]:g}."
                )
        names = item_names("state_names", self.state_names, len(transmat), "state")
        shapes = self.means, self.bars, self.panels
        n_parts = 1 if all(shape is None for shape in shapes) else 2
        height = max(4.4, 1.7 * -(-len(self.panels or []) // 2))
        self.axes_ = side_by_side(ax, n_parts, (4.6, height))
        self.figure_ = self.axes_[0].figure
        self.ellipses_: list[Any] = []
        self.curves_: list[Any] = []
        self.bars_: list[Any] = []
        self.panels_: list[Any] = []
        if len(self.axes_) > 1 and self.means is not None:
            is_line = np.shape(self.means)[1] == 1
            draw = self._draw_curves if is_line else self._draw_ellipses
            draw(self.axes_[0], names)
        elif len(self.axes_) > 1 and self.bars is not None:
            self._draw_bars(self.axes_[0], names)
        elif len(self.axes_) > 1 and self.panels is not None:
            self.panels_ = draw_panels(self.axes_[0], self.panels, names)
        self._draw_graph(self.axes_[-1], transmat, names)
        return self

    def _draw_ellipses(self, ax, names):
        means, covars = np.asarray(self.means), np.asarray(self.covars)
        # Frequent states are drawn first, so that rare ones are not hidden.
        for k in np.argsort(-np.asarray(self.weights), kind="stable"):
            color = state_color(k)
            ellipse = deviation_ellipse(means[k], covars[k])
            ellipse.set(facecolor=(color, 0.2), edgecolor=color, linewidth=1.8)
            self.ellipses_.append(ax.add_patch(ellipse))
            box = {"boxstyle": "round,pad=0.25", "fc": color, "ec": "white"}
            style = {"color": "white", "fontsize": 9, "ha": "center", "va": "center"}
            ax.text(*means[k], literal(names[k]), bbox=box, zorder=3, **style)
        ax.autoscale_view()
        ax.margins(0.1)
        ax.set(xlabel=literal(self.axis_names[0]), ylabel=literal(self.axis_names[1]))
        ax.set_title("states: mean and standard deviation", fontsize="medium")

    def _draw_curves(self, ax, names):
        means = np.asarray(self.means)[:, 0]
        widths = np.sqrt(np.maximum(np.asarray(self.covars)[:, 0, 0], 0))
        low, high = np.min(means - 3.5 * widths), np.max(means + 3.5 * widths)
        # A state with zero variance is drawn as a spike.
        widths = np.maximum(widths, (high - low) / N_POINTS or 1.0)
        low, high = np.min(means - 3.5 * widths), np.max(means + 3.5 * widths)
        x = np.linspace(low, high, N_POINTS)
        for k, weight in enumerate(np.asarray(self.weights)):
            y = weight * np.exp(-0.5 * ((x - means[k]) / widths[k]) ** 2) / widths[k]
            y /= np.sqrt(2 * np.pi)
            style = {"color": state_color(k), "label": literal(f"state {names[k]}")}
            self.curves_ += ax.plot(x, y, linewidth=1.8, **style)
            ax.fill_between(x, y, color=state_color(k), alpha=0.2, linewidth=0)
        ax.set(xlabel=literal(self.axis_names[0]), xlim=(low, high))
        ax.set(ylim=(0, None), yticks=[])
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.legend(frameon=False, fontsize="small")
        ax.set_title("states: density times fraction of time", fontsize="medium")

    def _draw_bars(self, ax, names):
        bars = np.asarray(self.bars, dtype=float)
        errors = None if self.errors is None else np.asarray(self.errors, dtype=float)
        reach = np.abs(bars) if errors is None else np.abs(bars) + errors
        largest = np.nanmax(reach, initial=0.0) or 1.0
        is_signed = np.nanmin(bars, initial=0.0) < 0 or errors is not None
        unit = BAR_HEIGHT / largest / (2 if is_signed else 1)
        places = np.arange(bars.shape[1])
        for k, heights in enumerate(bars):
            style = {"bottom": -k, "color": state_color(k), "width": 0.8}
            line = {"ecolor": "0.35", "capsize": 2, "error_kw": {"elinewidth": 1}}
            if errors is not None:
                style |= {"yerr": unit * errors[k], **line}
            ax.axhline(-k, color="0.8", linewidth=0.8, zorder=0)
            self.bars_.append(ax.bar(places, unit * heights, **style))
        labels = item_names("bar_names", self.bar_names, bars.shape[1], "bar")
        shown = slice(None, None, 1 + (len(labels) - 1) // MAX_NAMED_BARS)
        upright = sum(len(label) + 2 for label in labels[shown]) > 50
        texts = list(map(literal, labels[shown]))
        ax.set_xticks(places[shown], texts, rotation=90 if upright else 0)
        ax.set_yticks(-np.arange(len(bars)), list(map(literal, names)))
        low, high = (0.5, 0.55) if is_signed else (0.1, 1.0)
        ax.set(ylim=(-len(bars) + 1 - low, high), ylabel="state")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        title = literal(f"{self.bar_label}; longest {largest:.3g}")
        ax.set_title(title, fontsize="medium")

    def _draw_graph(self, ax, transmat, names):
        from matplotlib.patches import Circle

        weights = np.asarray(self.weights, dtype=float)
        order = np.argsort(_path_order(transmat, np.asarray(self.startprob)))
        places = circle_places(len(transmat))[order]
        radii = state_radii(weights, *RADII)
        self.states_, self.arrows_, self.starts_ = [], {}, {}
        for k, place in enumerate(places):
            color = state_color(k)
            ring = {"color": color, "linewidth": 2, "zorder": 1}
            circle = Circle(
                place, radii[k], facecolor=color, edgecolor="white", zorder=3
            )
            self.states_.append(ax.add_patch(circle))
            self._write_name(ax, place, names[k])
            if transmat[k, k] > 0:
                draw_ring(ax, places, radii, k, ring)
            self._write_times(ax, places, radii, k, transmat[k, k])
        self._draw_arrows(ax, places, radii, transmat)
        self._draw_starts(ax, places, radii)
        frame_graph(ax, places, MARGIN)
        ax.set_title("transitions, times in states, start", fontsize="medium")

    def _write_name(self, ax, place, name):
        from matplotlib.patheffects import withStroke

        style = {"ha": "center", "va": "center", "zorder": 4, "weight": "bold"}
        if len(name) <= LONGEST_INSIDE:
            size = 9 if len(name) < LONGEST_INSIDE - 1 else 8
            ax.text(*place, literal(name), fontsize=size, color="white", **style)
            return
        halo = [withStroke(linewidth=2.5, foreground="white")]
        style |= {"fontsize": 8, "color": "black", "path_effects": halo}
        ax.text(*place, literal(name), **style)

    def _write_times(self, ax, places, radii, k, staying):
        outward = outward_directions(places)[k]
        occupancy = f"{100 * np.asarray(self.weights)[k]:.0f} %"
        length = f"{occupancy}, never left"
        if staying < 1:
            steps = 1 / (1 - staying)
            digits = f"{steps:.3g}" if steps < 1000 else f"{steps:,.0f}"
            length = f"{occupancy}, {digits} steps"
        place = places[k] + (2.05 * radii[k] + 0.06) * outward
        side = {"ha": "center", "va": "bottom" if outward[1] > 0 else "top"}
        if abs(outward[0]) > 0.5:
            length = length.replace(", ", "\n")
            side = {"ha": "left" if outward[0] > 0 else "right", "va": "center"}
        ax.text(*place, length, fontsize=8, color="0.25", **side)

    def _draw_arrows(self, ax, places, radii, transmat):
        moves = transmat - np.diag(np.diag(transmat))
        thin, thick = ARROW_WIDTHS
        for i, k in np.argwhere((moves > 0) & (moves >= self.threshold)):
            width = thin + (thick - thin) * moves[i, k] / moves.max()
            style = {"color": "0.45", "linewidth": width, "zorder": 2}
            self.arrows_[int(i), int(k)] = draw_arrow(ax, places, radii, i, k, style)
            length = np.linalg.norm(places[k] - places[i])
            along = (places[k] - places[i]) / length
            aside = np.array([along[1], -along[0]])
            # Near the source state, because other arrows cross in the middle.
            middle = places[i] + 0.42 * length * along + (0.2 + 0.07 * length) * aside
            text = f"{moves[i, k]:.2f}".removeprefix("0")
            box = {"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none"}
            style = {"ha": "center", "va": "center", "fontsize": 8, "zorder": 2.5}
            ax.text(*middle, text, color="0.2", bbox=box | {"alpha": 0.8}, **style)

    def _draw_starts(self, ax, places, radii):
        from matplotlib.patches import FancyArrowPatch

        turn = np.radians(55)
        rotation = [[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]
        sides = outward_directions(places) @ np.array(rotation)
        for k, probability in enumerate(np.asarray(self.startprob, dtype=float)):
            if probability == 0 or probability < self.threshold:
                continue
            tail = places[k] + (radii[k] + 0.24) * sides[k]
            tip = places[k] + radii[k] * sides[k]
            arrow = FancyArrowPatch(
                tail,
                tip,
                arrowstyle="-|>",
                mutation_scale=9,
                linewidth=1.2 + 1.5 * probability,
                color="black",
                zorder=2,
                shrinkA=0,
                shrinkB=1,
            )
            self.starts_[k] = ax.add_patch(arrow)
            place = places[k] + (radii[k] + 0.27) * sides[k]
            start = "start" if probability > 0.995 else f"start {probability:.2f}"
            left = "left" if sides[k, 0] > 0 else "right"
            ax.text(*place, start, fontsize=8, ha=left, va="center")


def _path_order(transmat, startprob):
    """Return the states in the order of a likely path that visits each once.

    Neighbours on the circle then follow each other, and few arrows cross.
    """
    order = [int(np.argmax(startprob))]
    while len(order) < len(transmat):
        left = np.setdiff1d(np.arange(len(transmat)), order)
        order.append(int(left[np.argmax(transmat[order[-1], left])]))
    return order


def _chosen_form(model, states, *, has_data):
    """Return how states are drawn, or raise if they cannot be."""
    family = model.emission
    if states == "gaussian" and family.name != "gaussian":
        raise ValueError(
            "states='gaussian' needs Gaussian states, got states of kind "
            f"{family.name!r}. Use states='bars' or states='channels'."
        )
    has_channels = family.support is not None or family.name == "by_channel"
    if states == "channels" and not has_channels:
        raise ValueError(
            "states='channels' needs states of a known kind, got states of kind "
            f"{family.name!r}. Use states='bars'."
        )
    if states != "auto":
        return states
    if has_channels and (has_data or family.name not in {"gaussian", *BARS}):
        return "channels"
    return "gaussian" if family.name == "gaussian" else "bars"


def _panels(model, size, channels, names, X):
    """Return the panels of single channels."""
    seen = np.flatnonzero(model.emission.masks()[0]).tolist()
    chosen = seen[:MAX_PANELS] if channels is None else [*channels]
    for channel in chosen:
        if check_integer("channels", channel, 0) not in seen:
            raise ValueError(
                f"channels must be among the observed channels {seen}, got {channel}."
            )
    sequences = model.sequences
    if X is not None:
        sequences = model._checked(X, caller="HMMDisplay")
    return {"panels": channel_panels(model, size, chosen, names, sequences)}


def _plane(model, size, channels, names):
    """Return the states of a model on one or two channels or two principal axes."""
    seen = np.flatnonzero(model.emission.masks()[0])
    means = model.means[0, :size]
    covars = model.emission.full_covars()[0, :size]
    if channels is None and len(seen) < 3:
        channels = seen
    if channels is not None:
        chosen = _check_pair(channels, seen)
        axis_names = tuple(names[k] for k in chosen)
        return {
            "means": means[:, chosen],
            "covars": covars[:, chosen][:, :, chosen],
            "axis_names": axis_names,
        }
    means, covars = means[:, seen], covars[:, seen][:, :, seen]
    values, vectors = np.linalg.eigh(_total_covariance(model.weights[0], means, covars))
    basis = vectors[:, :-3:-1]
    # The sign of an axis is arbitrary; its largest entry is made positive.
    basis = basis * np.sign(basis[np.abs(basis).argmax(axis=0), [0, 1]])
    percentages = 100 * np.maximum(values[:-3:-1], 0) / (values.sum() or 1.0)
    axis_names = tuple(
        f"principal axis {n} ({percentage:.0f} % of the variance)"
        for n, percentage in enumerate(percentages)
    )
    return {
        "means": means @ basis,
        "covars": basis.T @ covars @ basis,
        "axis_names": axis_names,
    }


def _check_pair(channels, seen):
    chosen = [check_integer("channels", channel, 0) for channel in channels]
    known = seen.tolist()
    if len(chosen) != min(2, len(known)) or not {*chosen} <= {*known}:
        raise ValueError(
            f"channels must be two of the observed channels {known}, got {chosen}."
        )
    return chosen


def _total_covariance(weights, means, covars):
    """Return the covariance of all frames of a model."""
    weights = weights[: len(means)]
    gaps = means - weights @ means
    inner = np.einsum("k,kij->ij", weights, covars)
    return inner + gaps.T @ (weights[:, None] * gaps)


def _mean_bars(model, size, names):
    """Return means and standard deviations, scaled if there are several channels."""
    means = model.means[0, :size]
    covars = model.emission.full_covars()[0, :size]
    errors = np.sqrt(np.diagonal(covars, axis1=1, axis2=2))
    label = "mean and standard deviation"
    if model.n_features > 1:
        total = _total_covariance(model.weights[0], means, covars)
        scale = np.sqrt(np.diag(total))
        scale = np.where(scale > 0, scale, 1.0)
        means = (means - model.weights[0, :size] @ means) / scale
        errors, label = errors / scale, "standardised mean, standard deviation"
    hidden = model.emission.masks()[0] == 0
    means, errors = (np.where(hidden, np.nan, part) for part in (means, errors))
    return {"bars": means, "errors": errors, "bar_names": names, "bar_label": label}


def _symbol_bars(model, size, _):
    return {
        "bars": model.emissionprobs[0, :size],
        "bar_names": [str(symbol) for symbol in model.symbols],
        "bar_label": "probability of each symbol",
    }


def _rate_bars(model, size, names):
    label = "mean count"
    return {"bars": model.rates[0, :size], "bar_names": names, "bar_label": label}


def _described(model, size, _):
    """Return the parameters of a user-defined family; empty if it names none."""
    columns = model._described()
    if not columns:
        return {}
    bars = np.stack([values[0, :size] for values in columns.values()], axis=1)
    return {"bars": bars, "bar_names": list(columns), "bar_label": "parameters"}


BARS = {"gaussian": _mean_bars, "categorical": _symbol_bars, "poisson": _rate_bars}
