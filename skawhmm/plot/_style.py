"""What the displays share: colours, and axes to draw on."""

# The colours of Okabe and Ito, without the yellow that white paper swallows: told apart
# with any colour vision.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


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
