"""Display of a registration: states of two models, and the plan between them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skawhmm.distances._pairwise import register_states
from skawhmm.models._batch import HMMBatch
from skawhmm.plot._style import (
    item_names,
    legend_label,
    literal,
    side_by_side,
    state_labels,
)
from skawhmm.utils._colors import COLORS
from skawhmm.utils._numbers import shaped_array

# Smaller probabilities are rounding errors and are not drawn.
LEAST_SHARE = 1e-9

# Smaller probabilities would be printed as 0.00.
LEAST_WRITTEN = 0.005

# Width of a line for probability 1, in points.
FULL_WIDTH = 12.0

# Longer state names are drawn vertically.
LONGEST_LEVEL = 4

# Height of the ellipses of models with one feature, whose rows are 1 apart.
FLAT_HEIGHT = 0.25


class RegistrationDisplay:
    """Show which states of `b` each state of `a` is matched with.

    On the left are the states of both models, as ellipses of one standard deviation,
    with the plan as lines between them; on the right is the plan as a matrix. Use
    :meth:`from_models` to create it.

    Parameters
    ----------
    plan : ndarray of shape (n_components_a, n_components_b)
        The registration.

    means : pair of ndarray of shape (n_components, 2), default=None
        Positions of the states of each model. By default only the matrix is drawn.

    covars : pair of ndarray of shape (n_components, 2, 2), default=None
        Covariances of the states.

    names : pair of str, default=("a", "b")
        Names of the models.

    axis_names : pair of str, default=("feature 0", "feature 1")
        Labels of the axes of the states.

    state_names : pair of sequence of str, default=None
        Names of the states of each model; by default their indices.

    Attributes
    ----------
    ellipses_ : list of list of matplotlib.patches.Ellipse
        The states of each model.

    lines_ : list of matplotlib.lines.Line2D
        The plan: one line per pair of matched states; its width shows the
        probability.

    im_ : matplotlib.image.AxesImage or None
        The matrix, if it is drawn.

    axes_ : list of matplotlib.axes.Axes
        The axes of the states and the axes of the matrix.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    register_states : Compute the plan of two models.

    Examples
    --------
    >>> from skawhmm import HMMBatch
    >>> from skawhmm.plot import RegistrationDisplay
    >>> models = HMMBatch(
    ...     transmats=[[[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]],
    ...     means=[[[0.0, 0.0], [9.0, 9.0]], [[8.0, 9.0], [1.0, 0.0]]],
    ...     covars=[[[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]],
    ... )
    >>> display = RegistrationDisplay.from_models(models[0], models[1])
    >>> display.plan
    array([[0. , 0.5],
           [0.5, 0. ]])
    """

    def __init__(
        self,
        plan: ArrayLike,
        *,
        means: Sequence[ArrayLike] | None = None,
        covars: Sequence[ArrayLike] | None = None,
        names: Sequence[str] = ("a", "b"),
        axis_names: Sequence[str] = ("feature 0", "feature 1"),
        state_names: Sequence[Sequence[str]] | None = None,
    ) -> None:
        self.plan = plan
        self.means = means
        self.covars = covars
        self.names = names
        self.axis_names = axis_names
        self.state_names = state_names

    @classmethod
    def from_models(
        cls,
        a: HMMBatch,
        b: HMMBatch,
        metric: Any = "maw",
        *,
        p: float | None = None,
        metric_params: Mapping[str, Any] | None = None,
        names: Sequence[str] = ("a", "b"),
        ax: Any = None,
    ) -> "RegistrationDisplay":
        """Draw the registration of two models.

        Parameters
        ----------
        a, b : HMMBatch
            Batches of one model each, such as ``models[0]``. Models with more than two
            features are drawn along the two principal axes of both; states that are
            never visited are left out.

        metric : {"maw", "iaw", "jaw"} or object, default="maw"
            Distance that registers the states.

        p : float in (0, 2], default=None
            Order of the distance, by default 1. Must be None if the distance has no
            order, or if `metric` is an object, which has its own.

        metric_params : dict, default=None
            Further parameters of the distance.

        names : pair of str, default=("a", "b")
            Names of the models.

        ax : matplotlib.axes.Axes or pair of them, default=None
            Where to draw, as for :meth:`plot`.

        Returns
        -------
        display : RegistrationDisplay
            The display.
        """
        plan = register_states(a, b, metric, p=p, metric_params=metric_params)
        visited = [model.weights[0] > 0 for model in (a, b)]
        plan = plan[np.ix_(*visited)]
        states = [
            [
                name
                for name, kept in zip(state_labels(None, model), keep, strict=False)
                if kept
            ]
            for model, keep in zip((a, b), visited, strict=True)
        ]
        if a.emission.name != "gaussian":
            return cls(plan, names=names, state_names=states).plot(ax=ax)
        pairs = list(zip((a, b), visited, strict=True))
        means, covars, axis_names = _in_the_plane(
            [model.weights[0][keep] for model, keep in pairs],
            [model.means[0][keep] for model, keep in pairs],
            [model.emission.full_covars()[0][keep] for model, keep in pairs],
            a.feature_names or b.feature_names,
        )
        display = cls(
            plan,
            means=means,
            covars=covars,
            names=names,
            axis_names=axis_names,
            state_names=states,
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> "RegistrationDisplay":
        """Draw the states and the plan.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or pair of them, default=None
            Where to draw the states, and the matrix. On a single one the states are
            drawn without the matrix. By default both are drawn on a new figure.

        Returns
        -------
        display : RegistrationDisplay
            The display.
        """
        plan = shaped_array("plan", self.plan, "n_components_a", "n_components_b")
        item_names("names", self.names, 2, "model")
        given = self.state_names or (None, None)
        self._states = [
            item_names("state_names", own, size, "state")
            for own, size in zip(given, plan.shape, strict=True)
        ]
        n_parts = 1 if self.means is None else 2
        self.axes_ = side_by_side(ax, n_parts, (4.2, 4.2))
        self.figure_ = self.axes_[0].figure
        self.ellipses_: list[list[Any]] = [[], []]
        self.lines_: list[Any] = []
        self.im_ = None
        if self.means is not None:
            self._draw_states(self.axes_[0], self.means, self.covars)
        if self.means is None or len(self.axes_) > 1:
            self._draw_matrix(self.axes_[-1])
        return self

    def _draw_states(self, ax, means, covars):
        """Draw ellipses, and lines between their centres."""
        plan, means = np.asarray(self.plan), [np.asarray(m) for m in means]
        for i, j in np.argwhere(plan > LEAST_SHARE):
            ends = np.stack([means[0][i], means[1][j]], axis=1)
            width = max(FULL_WIDTH * plan[i, j], 0.4)
            style = {"color": "0.45", "solid_capstyle": "round", "zorder": 2}
            self.lines_ += ax.plot(*ends, linewidth=width, **style)
        for side, color in enumerate(COLORS[:2]):
            for k, centre in enumerate(means[side]):
                ellipse = deviation_ellipse(centre, np.asarray(covars[side])[k])
                ellipse.set(facecolor=(color, 0.2), edgecolor=color, linewidth=1.5)
                # The outline distinguishes the models even without colour.
                ellipse.set(linestyle="-" if side == 0 else "--", zorder=1)
                ellipse.set_label(legend_label(self.names[side]) if k == 0 else None)
                self.ellipses_[side].append(ax.add_patch(ellipse))
                box = {"boxstyle": "circle,pad=0.25", "fc": color, "ec": "white"}
                style = {"color": "white", "fontsize": 8, "ha": "center", "zorder": 3}
                # Place the number away from the matched state, so that none is hidden.
                masses = plan[k] if side == 0 else plan[:, k]
                partner = means[1 - side][np.argmax(masses)]
                left = centre[0] < partner[0] or (centre[0] == partner[0] and side == 0)
                shift = (-9 if left else 9, 0)
                style |= {"va": "center", "bbox": box, "textcoords": "offset points"}
                ax.annotate(self._states[side][k], centre, shift, **style)
                ax.plot(*centre, ".", color=color, markersize=4, zorder=3)
        ax.autoscale_view()
        ax.margins(0.1)
        ax.set(xlabel=literal(self.axis_names[0]), ylabel=literal(self.axis_names[1]))
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1), "ncols": 2}
        ax.legend(**place, frameon=False)

    def _draw_matrix(self, ax):
        """Draw the plan with its probabilities printed in the cells."""
        plan = np.asarray(self.plan)
        self.im_ = ax.imshow(plan, vmin=0, cmap="Blues")
        for (i, j), mass in np.ndenumerate(plan):
            if mass >= LEAST_WRITTEN:
                color = "white" if mass > plan.max() / 2 else "black"
                style = {"ha": "center", "va": "center", "color": color}
                ax.text(j, i, f"{mass:.2f}", **style)
        ax.set(
            xlabel=literal(f"state of {self.names[1]}"),
            ylabel=literal(f"state of {self.names[0]}"),
        )
        rows, columns = (list(map(literal, own)) for own in self._states)
        ax.set_yticks(range(len(rows)), rows)
        # Long names would overlap.
        is_long = max(map(len, columns)) > LONGEST_LEVEL
        ax.set_xticks(range(len(columns)), columns, rotation=90 if is_long else 0)


def _in_the_plane(weights, means, covars, names):
    """Return means and covariances in two dimensions, and names of the axes."""
    n_features = means[0].shape[1]
    names = names or [f"feature {k}" for k in range(n_features)]
    if n_features == 1:
        means = [np.insert(m, 1, 1.0 - row, axis=1) for row, m in enumerate(means)]
        flat = np.diag([0, (FLAT_HEIGHT / 2) ** 2])
        return means, [c * np.diag([1, 0]) + flat for c in covars], (names[0], "")
    if n_features == 2:
        return means, covars, tuple(names)
    masses = np.concatenate(weights) / 2
    points = np.concatenate(means)
    gaps = points - masses @ points
    total = np.einsum("k,kij->ij", masses, np.concatenate(covars))
    _, basis = np.linalg.eigh(total + gaps.T @ (masses[:, None] * gaps))
    basis = basis[:, :-3:-1]
    means = [m @ basis for m in means]
    covars = [basis.T @ c @ basis for c in covars]
    return means, covars, ("principal axis 0", "principal axis 1")


def deviation_ellipse(centre, covar):
    """Return the ellipse of one standard deviation of a Gaussian in the plane."""
    from matplotlib.patches import Ellipse

    values, vectors = np.linalg.eigh(covar)
    # Rounding can push the variance along a dead channel below zero.
    sizes = 2 * np.sqrt(np.maximum(values, 0))
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    return Ellipse(centre, sizes[1], sizes[0], angle=angle)
