"""What the displays share: axes, colours of states, names, ends of histograms."""

import numpy as np

from skawhmm.utils._colors import COLORS

# Bars between values that differ by a smaller share would have no width.
NEARLY_EQUAL = 1e-6


def pyplot():
    """Return `matplotlib.pyplot`, or raise an error that says how to install it.

    Returns
    -------
    pyplot : module
        The module.
    """
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise ImportError(
            'Pictures need matplotlib: pip install "skawhmm[plot]".'
        ) from error
    return plt


def drawing_axes(ax):
    """Return the axes given, or new ones, and their figure.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        Where to draw.

    Returns
    -------
    ax : matplotlib.axes.Axes
        The axes.

    figure : matplotlib.figure.Figure
        Their figure.
    """
    if ax is None:
        _, ax = pyplot().subplots()
    return ax, ax.figure


def side_by_side(ax, n_parts, size):
    """Return the axes given, or new ones in a row, as a list.

    Parameters
    ----------
    ax : matplotlib.axes.Axes, sequence of them, or None
        Where to draw.

    n_parts : int
        Number of new axes.

    size : pair of float
        Width and height of each of them, in inches.

    Returns
    -------
    axes : list of matplotlib.axes.Axes
        The axes.
    """
    if ax is None:
        width, height = size
        _, ax = pyplot().subplots(
            1, n_parts, figsize=(width * n_parts, height), layout="constrained"
        )
    return list(np.ravel(np.asarray(ax, dtype=object)))


def bar_range(values):
    """Return the ends of a histogram, apart even if all values are nearly equal.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        What is counted, finite.

    Returns
    -------
    ends : tuple of float
        The least and the largest value, or some room around them.
    """
    low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
    if low > high:
        return 0.0, 1.0
    size = max(abs(low), abs(high))
    if high - low > NEARLY_EQUAL * size:
        return low, high
    room = NEARLY_EQUAL * size or 0.5
    return low - room, high + room


def literal(text):
    """Return a user's text as matplotlib draws it unchanged, dollar signs and all.

    Parameters
    ----------
    text : object
        A label, a name; anything that is not text is turned into it.

    Returns
    -------
    text : str
        The text, in which no part is taken for a formula.
    """
    return str(text).replace("$", r"\$")


def legend_label(text):
    """Return a user's text as a label that no legend leaves out.

    Parameters
    ----------
    text : object
        A label or a name.

    Returns
    -------
    label : str
        The text; after a space if matplotlib would take it for a hidden label, which
        is empty or begins with an underscore.
    """
    label = literal(text)
    return f" {label}" if label[:1] in {"", "_"} else label


def item_names(name, names, n_items, item):
    """Return names as a list of text, one per item; by default their numbers.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    names : sequence of str or None
        What was given.

    n_items : int
        Number of items.

    item : str
        What is named, such as "state".

    Returns
    -------
    names : list of str
        One name per item.
    """
    if names is None:
        return [str(k) for k in range(n_items)]
    if len(names) != n_items:
        raise ValueError(
            f"{name} must name the {n_items} {item}s, got {len(names)} names."
        )
    return [str(entry) for entry in names]


def state_color(state):
    """Return the colour of a state, the same in all pictures of models.

    Parameters
    ----------
    state : int
        Number of the state.

    Returns
    -------
    color : str
        The colour; after the last one they begin again.
    """
    return COLORS[state % len(COLORS)]


def channel_labels(channel_names, n_features, feature_names=None):
    """Return the names of channels, or raise unless there is one per channel.

    Parameters
    ----------
    channel_names : sequence of str or None
        What was given.

    n_features : int
        Number of channels.

    feature_names : sequence of str, default=None
        Names that models know, if none were given.

    Returns
    -------
    names : list of str
        One name per channel.
    """
    if channel_names is None:
        channel_names = feature_names
    names = item_names("channel_names", channel_names, n_features, "channel")
    return names if channel_names is not None else [f"channel {k}" for k in names]
