"""What the displays share: axes to draw on, and checks of labels."""

import numpy as np


def pyplot():
    """Return `matplotlib.pyplot`, or raise an error that says how to install it.

    Returns
    -------
    pyplot : module
        The module.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
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


def matched_labels(name, labels, n_items, item="model"):
    """Return labels as an array if there is one per item, else raise.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    labels : array-like or None
        The labels; None is returned as it is.

    n_items : int
        Number of items.

    item : str, default="model"
        What they belong to.

    Returns
    -------
    labels : ndarray of shape (n_items,) or None
        The labels.
    """
    if labels is None:
        return None
    array = np.asarray(labels)
    if array.shape != (n_items,):
        raise ValueError(
            f"{name} must hold one label per {item} ({n_items} {item}s), got shape "
            f"{array.shape}."
        )
    return array


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
