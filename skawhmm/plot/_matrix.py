"""Heat map of distances."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skawhmm.plot._style import (
    drawing_axes,
    literal,
)
from skawhmm.utils._numbers import check_square, distinct_labels


class DistanceMatrixDisplay:
    """Show distances as a heat map, ordered by label.

    Use :meth:`from_distances` to create it.

    Parameters
    ----------
    distances : array-like of shape (n_models, n_models)
        Distances between all models.

    y : array-like of shape (n_models,), default=None
        Labels that order the models. By default their order is unchanged.

    Attributes
    ----------
    im_ : matplotlib.image.AxesImage
        The matrix.

    order_ : ndarray of shape (n_models,)
        Index of the model in each row.

    lines_ : list of matplotlib.lines.Line2D
        Lines between blocks of equal labels.

    colorbar_ : matplotlib.colorbar.Colorbar
        The colour scale.

    ax_ : matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    HMMMapDisplay : The same distances as a map.

    Examples
    --------
    >>> from skawhmm import PairwiseHMMDistance
    >>> from skawhmm.plot import DistanceMatrixDisplay
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=6, random_state=0)
    >>> distances = PairwiseHMMDistance().fit_transform(X)
    >>> DistanceMatrixDisplay.from_distances(distances, y).order_
    array([0, 2, 4, 1, 3, 5])
    """

    def __init__(self, distances: ArrayLike, y: ArrayLike | None = None) -> None:
        self.distances = distances
        self.y = y

    @classmethod
    def from_distances(
        cls,
        distances: ArrayLike,
        y: ArrayLike | None = None,
        *,
        ax: Any = None,
        **kwargs: Any,
    ) -> "DistanceMatrixDisplay":
        """Draw a matrix of distances.

        Parameters
        ----------
        distances : array-like of shape (n_models, n_models)
            Distances between all models.

        y : array-like of shape (n_models,), default=None
            Labels of the models.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.imshow`.

        Returns
        -------
        display : DistanceMatrixDisplay
            The display.
        """
        return cls(distances, y).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "DistanceMatrixDisplay":
        """Draw the matrix.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.imshow`.

        Returns
        -------
        display : DistanceMatrixDisplay
            The display.
        """
        distances = check_square("distances", self.distances)
        y = None
        if self.y is not None:
            names, codes = distinct_labels("y", self.y, len(distances))
            y = names[codes]
        self.ax_, self.figure_ = drawing_axes(ax)
        self.order_ = np.arange(len(distances))
        self.lines_: list[Any] = []
        if y is not None:
            self.order_ = np.argsort(y, kind="stable")
        ordered = distances[np.ix_(self.order_, self.order_)]
        # Infinite distances have no colour on the scale.
        ordered = np.ma.masked_invalid(ordered)
        style = {"cmap": "viridis_r", "vmin": 0, "interpolation": "nearest", **kwargs}
        self.im_ = self.ax_.imshow(ordered, **style)
        self.colorbar_ = self.figure_.colorbar(
            self.im_, ax=self.ax_, label="distance", shrink=0.8
        )
        self.ax_.set(xlabel="model", ylabel="model")
        if y is not None:
            self._draw_labels(y[self.order_])
        return self

    def _draw_labels(self, y):
        """Name the blocks of equal labels and draw lines between them."""
        names, starts = np.unique(y, return_index=True)
        ends = np.append(starts[1:], len(y))
        for border in starts[1:] - 0.5:
            for draw in (self.ax_.axvline, self.ax_.axhline):
                self.lines_.append(draw(border, color="white", linewidth=0.8))
        centres = (starts + ends - 1) / 2
        texts = [literal(name) for name in names]
        self.ax_.set_xticks(centres, texts, rotation=90 if len(texts) > 5 else 0)
        self.ax_.set_yticks(centres, texts)
        self.ax_.set(xlabel="label", ylabel="label")
