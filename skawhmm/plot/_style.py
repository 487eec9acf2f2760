"""Common code of the displays: axes, colours of states, names, histogram limits."""

import numpy as np

from skawhmm.utils._colors import COLORS

# Bars between values with a smaller relative difference would have no width.
NEARLY_EQUAL = 1e-6


def pyplot():
    """Return `matplotlib.pyplot`, or raise an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise ImportError(
            'Displays need matplotlib: pip install "skawhmm[plot]".'
        ) from error
    return plt


def check_axes(ax):
    """Raise unless a display was given axes to draw on."""
    if not all(hasattr(ax, member) for member in ("plot", "transData", "figure")):
        raise TypeError(
            "ax must hold matplotlib axes, such as those of plt.subplots(), got "
            f"{type(ax).__name__}."
        )


def drawing_axes(ax):
    """Return the given or new axes, and their figure."""
    if ax is None:
        _, ax = pyplot().subplots()
    check_axes(ax)
    return ax, ax.figure


def check_result(name, value, kind, source):
    """Raise unless a display was given the kind of result that it draws."""
    if not isinstance(value, kind):
        raise TypeError(
            f"{name} must be the result of {source}, got {type(value).__name__}."
        )


def side_by_side(ax, n_parts, size):
    """Return the given axes as a list, or `n_parts` new ones of a `size` in inches."""
    if ax is None:
        width, height = size
        _, ax = pyplot().subplots(
            1, n_parts, figsize=(width * n_parts, height), layout="constrained"
        )
    axes = list(np.ravel(np.asarray(ax, dtype=object)))
    for one in axes:
        check_axes(one)
    return axes


def bar_range(values):
    """Return the ends of a histogram, distinct even if all values are nearly equal."""
    low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
    if low > high:
        return 0.0, 1.0
    size = max(abs(low), abs(high))
    if high - low > NEARLY_EQUAL * size:
        return low, high
    room = NEARLY_EQUAL * size or 0.5
    return low - room, high + room


def legend_above(ax, **options):
    """Put a legend above the axes, where it hides no line and no bar."""
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.3}
    return ax.legend(frameon=False, fontsize="small", **place, **options)


def literal(text):
    """Return a user's text escaped, so that matplotlib draws `$` signs unchanged."""
    return str(text).replace("$", r"\$")


def legend_label(text):
    """Return a user's text as a label that appears in every legend.

    Matplotlib hides labels that are empty or begin with an underscore, so these get a
    leading space.
    """
    label = literal(text)
    return f" {label}" if label[:1] in {"", "_"} else label


def item_names(name, names, n_items, item):
    """Return one name per item, or raise with the name of the argument.

    `name` is the argument as the caller knows it, `item` the kind of thing that is
    named, such as "state". The default names are indices.
    """
    if names is None:
        return [str(k) for k in range(n_items)]
    if len(names) != n_items:
        raise ValueError(
            f"{name} must name the {n_items} {item}s, got {len(names)} names."
        )
    return [str(entry) for entry in names]


def state_labels(state_names, models):
    """Return the given names of states, or the names in the models, or indices."""
    names = models.state_names if state_names is None else state_names
    return item_names("state_names", names, int(models.n_components.max()), "state")


def state_color(state):
    """Return the colour of a state, the same in all displays; colours repeat."""
    return COLORS[state % len(COLORS)]


def channel_labels(channel_names, n_features, feature_names=None):
    """Return the given names of channels, or the names in the models, or indices."""
    if channel_names is None:
        channel_names = feature_names
    names = item_names("channel_names", channel_names, n_features, "channel")
    return names if channel_names is not None else [f"channel {k}" for k in names]
