"""What the displays share: colours, axes to draw on, and ends of histograms."""

import numpy as np

# The colours of Okabe and Ito, without the yellow that white paper swallows: told apart
# with any colour vision.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

# Bars between values that differ by a smaller share would have no width.
NEARLY_EQUAL = 1e-6


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
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots()
    return ax, ax.figure


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
