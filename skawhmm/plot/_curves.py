"""Displays of scores."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skawhmm.neighbors._scores import average_precision, retrieval_curve
from skawhmm.plot._style import (
    drawing_axes,
    legend_label,
    literal,
)
from skawhmm.utils._numbers import shaped_array


class AlphaCurveDisplay:
    """Show the score of each `alpha`.

    Use :meth:`from_estimator` to create it.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        Weights of the transition component.

    scores : ndarray of shape (n_alphas, n_numbers)
        Leave-one-out scores.

    n_neighbors : array-like of shape (n_numbers,)
        Numbers of neighbours, one per column of `scores`.

    path : dict of ndarray, default=None
        Exact scores of one neighbour: ``path["scores"][i]`` holds from
        ``path["alphas"][i]`` to the next alpha. They replace the column of `scores` for
        one neighbour.

    best_alpha : float, default=None
        The chosen weight, which is marked.

    score_name : str, default="score"
        Label of the vertical axis.

    Attributes
    ----------
    lines_ : list of matplotlib.lines.Line2D
        The curves, one per number of neighbours.

    best_line_ : matplotlib.lines.Line2D or None
        The mark at the chosen weight.

    ax_ : matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    KNeighborsHMMClassifierCV : The classifier that computes the scores.

    Examples
    --------
    >>> from skawhmm import KNeighborsHMMClassifierCV
    >>> from skawhmm.plot import AlphaCurveDisplay
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(20, differ_in="transitions", random_state=0)
    >>> knn = KNeighborsHMMClassifierCV(n_neighbors=[1, 3]).fit(X, y)
    >>> display = AlphaCurveDisplay.from_estimator(knn)
    >>> [line.get_label() for line in display.lines_]
    ['1 neighbour', '3 neighbours']
    """

    def __init__(
        self,
        alphas: ArrayLike,
        scores: ArrayLike,
        n_neighbors: ArrayLike,
        *,
        path: Any = None,
        best_alpha: float | None = None,
        score_name: str = "score",
    ) -> None:
        self.alphas = alphas
        self.scores = scores
        self.n_neighbors = n_neighbors
        self.path = path
        self.best_alpha = best_alpha
        self.score_name = score_name

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, **kwargs: Any
    ) -> "AlphaCurveDisplay":
        """Draw the scores of a fitted `KNeighborsHMMClassifierCV`.

        Parameters
        ----------
        estimator : KNeighborsHMMClassifierCV
            The fitted classifier.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : AlphaCurveDisplay
            The display.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "alpha_path_"):
            raise TypeError(
                "estimator must be a fitted KNeighborsHMMClassifierCV, which scores "
                f"many alphas, got {type(estimator).__name__}. For a GridSearchCV, "
                "write AlphaCurveDisplay(alphas, scores, n_neighbors).plot()."
            )
        display = cls(
            estimator.alphas_,
            estimator.scores_,
            estimator.n_neighbors_tried_,
            path=estimator.alpha_path_,
            best_alpha=estimator.alpha_,
            score_name=f"leave-one-out {estimator.scoring.replace('_', ' ')}",
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "AlphaCurveDisplay":
        """Draw one curve per number of neighbours.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : AlphaCurveDisplay
            The display.
        """
        alphas = shaped_array("alphas", self.alphas, "n_alphas")
        numbers = shaped_array("n_neighbors", self.n_neighbors, "n_values")
        grid = shaped_array("scores", self.scores, len(alphas), len(numbers))
        self.ax_, self.figure_ = drawing_axes(ax)
        self.lines_ = []
        for number, scores in zip(np.asarray(self.n_neighbors), grid.T, strict=True):
            label = f"{number} neighbour" + ("s" if number > 1 else "")
            style = {"label": label, **kwargs}
            if number == 1 and self.path is not None:
                steps = np.repeat(self.path["scores"], 2)
                ends = np.repeat(self.path["alphas"], 2)[1:-1]
                self.lines_ += self.ax_.plot(ends, steps, **style)
            else:
                self.lines_ += self.ax_.plot(self.alphas, scores, **style)
        self.best_line_ = None
        if self.best_alpha is not None:
            self.best_line_ = self.ax_.axvline(
                self.best_alpha, color="0.5", linestyle="--", zorder=0
            )
        self.ax_.set(xlabel="alpha", ylabel=literal(self.score_name), xlim=(0, 1))
        self.ax_.legend()
        return self


class RetrievalDisplay:
    """Show precision at each level of recall.

    Use :meth:`from_distances` to create it.

    Parameters
    ----------
    recall : ndarray of shape (n_levels,)
        Levels of recall.

    precision : ndarray of shape (n_levels,)
        Precision at each level, averaged over the queries.

    mean_average_precision : float, default=None
        Average precision, averaged over the queries, for the legend.

    name : str, default=None
        Name of the curve in the legend.

    Attributes
    ----------
    line_ : matplotlib.lines.Line2D
        The curve.

    ax_ : matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    retrieval_curve : Compute the numbers that are drawn.

    Examples
    --------
    >>> from skawhmm import HMMTransformer, pairwise_hmm_distances
    >>> from skawhmm.plot import RetrievalDisplay
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(20, separation=2, random_state=0)
    >>> models = HMMTransformer(random_state=0).fit_transform(X)
    >>> distances = pairwise_hmm_distances(models)
    >>> display = RetrievalDisplay.from_distances(distances, y, name="MAW")
    >>> display.line_.get_label()
    'MAW (mAP = 0.87)'
    """

    def __init__(
        self,
        recall: ArrayLike,
        precision: ArrayLike,
        *,
        mean_average_precision: float | None = None,
        name: str | None = None,
    ) -> None:
        self.recall = recall
        self.precision = precision
        self.mean_average_precision = mean_average_precision
        self.name = name

    @classmethod
    def from_distances(
        cls,
        distances: ArrayLike,
        y: ArrayLike,
        y_query: ArrayLike | None = None,
        *,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "RetrievalDisplay":
        """Draw the curve for a matrix of distances.

        Parameters
        ----------
        distances : array-like of shape (n_queries, n_items)
            Distance of each query to each item.

        y : array-like of shape (n_items,)
            Labels of the items.

        y_query : array-like of shape (n_queries,), default=None
            Labels of the queries. By default the queries are the items, and each query
            is left out of its own list.

        name : str, default=None
            Name of the curve in the legend.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : RetrievalDisplay
            The display.
        """
        recall, precision = retrieval_curve(distances, y, y_query)
        scores = average_precision(distances, y, y_query)
        mean = float(np.nanmean(scores)) if np.isfinite(scores).any() else None
        display = cls(recall, precision, mean_average_precision=mean, name=name)
        return display.plot(ax=ax, **kwargs)

    def plot(
        self, ax: Any = None, *, name: str | None = None, **kwargs: Any
    ) -> "RetrievalDisplay":
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        name : str, default=None
            Name of the curve in the legend; by default the name of the display.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : RetrievalDisplay
            The display.
        """
        recall = shaped_array("recall", self.recall, "n_levels")
        shaped_array("precision", self.precision, len(recall))
        self.ax_, self.figure_ = drawing_axes(ax)
        parts = [name or self.name]
        if self.mean_average_precision is not None:
            score = f"mAP = {self.mean_average_precision:.2f}"
            parts.append(f"({score})" if parts[0] else score)
        label = " ".join(part for part in parts if part)
        style = {"label": legend_label(label), **kwargs} if label else kwargs
        (self.line_,) = self.ax_.plot(self.recall, self.precision, **style)
        self.ax_.set(
            xlabel="recall", ylabel="precision", xlim=(-0.01, 1.01), ylim=(-0.01, 1.05)
        )
        if "label" in style:
            self.ax_.legend()
        return self
