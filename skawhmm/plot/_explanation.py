"""Display of contributions to decisions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skawhmm.classification._estimators import HMMViewClassifier, HMMViewRegressor
from skawhmm.classification._explanation import Explanation
from skawhmm.plot._style import (
    drawing_axes,
    literal,
)
from skawhmm.utils._checks import check_integer
from skawhmm.utils._colors import COLORS


class ExplanationDisplay:
    """Show which views, blocks, states or channels drive the decisions.

    There is one bar per group of features: what it adds to the decision for a class,
    averaged over sequences. Use :meth:`from_estimator` to create it.

    Parameters
    ----------
    explanation : Explanation
        The contributions of groups, from ``explain`` of a classifier or regressor.

    target : int, default=None
        Column of the decisions to explain. By default the predicted class of each
        sequence; for regression the first column.

    max_groups : int, default=20
        Largest number of bars; the largest contributions are drawn.

    Attributes
    ----------
    contributions_ : ndarray of shape (n_groups,)
        Mean contribution of each group to the decisions.

    order_ : ndarray of int
        The groups that are drawn, the largest contribution first.

    bars_ : matplotlib.container.BarContainer
        The bars.

    ax_ : matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    HMMViewClassifier.explain : Compute the numbers that are drawn.

    Examples
    --------
    >>> from skawhmm import make_classifier
    >>> from skawhmm.plot import ExplanationDisplay
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=40, random_state=0)
    >>> classifier = make_classifier(random_state=0).fit(X, y)
    >>> display = ExplanationDisplay.from_estimator(classifier, X, by="view")
    >>> len(display.bars_), display.ax_.get_xlabel()
    (3, 'contribution to the decision for the predicted class')
    """

    def __init__(
        self,
        explanation: Explanation,
        *,
        target: int | None = None,
        max_groups: int = 20,
    ) -> None:
        self.explanation = explanation
        self.target = target
        self.max_groups = max_groups

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        by: str | Sequence[str] = ("view", "block"),
        label: Any = None,
        max_groups: int = 20,
        ax: Any = None,
        **kwargs: Any,
    ) -> "ExplanationDisplay":
        """Draw what drives the decisions about some sequences.

        Parameters
        ----------
        estimator : HMMViewClassifier or HMMViewRegressor
            The fitted estimator.

        X : list of array-like of shape (n_timesteps, n_features)
            Sequences, usually of one class.

        by : str or sequence of str, default=("view", "block")
            Levels by which features are grouped, as in ``explain``.

        label : object, default=None
            The class whose decisions are explained. By default the predicted class of
            each sequence.

        max_groups : int, default=20
            Largest number of bars; the largest contributions are drawn.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.barh`.

        Returns
        -------
        display : ExplanationDisplay
            The display.
        """
        if not isinstance(estimator, HMMViewClassifier | HMMViewRegressor):
            raise TypeError(
                "estimator must be a fitted HMMViewClassifier or HMMViewRegressor, as "
                f"make_classifier() makes, got {estimator!r}."
            )
        check_is_fitted(estimator)
        target = None
        if label is not None:
            is_one = np.ndim(label) == 0
            same = is_one & (estimator.classes_ == (label if is_one else None))
            places = np.flatnonzero(same)
            if not len(places):
                raise ValueError(
                    f"label must be one of {estimator.classes_.tolist()}, got "
                    f"{label!r}."
                )
            target = int(places[0])
        explanation = estimator.explain(X, by=by)
        display = cls(explanation, target=target, max_groups=max_groups)
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "ExplanationDisplay":
        """Draw one bar per group of features.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.barh`.

        Returns
        -------
        display : ExplanationDisplay
            The display.
        """
        check_integer("max_groups", self.max_groups, 1)
        self.ax_, self.figure_ = drawing_axes(ax)
        found = self.explanation
        columns = found.decisions.argmax(axis=1)
        if self.target is not None:
            columns = np.full(len(found.decisions), self.target)
        self.contributions_ = found.contributions[
            np.arange(len(columns)), :, columns
        ].mean(axis=0)
        largest = np.argsort(-np.abs(self.contributions_), kind="stable")[
            : self.max_groups
        ]
        self.order_ = largest[np.argsort(-self.contributions_[largest], kind="stable")]
        sizes = self.contributions_[self.order_]
        # Both the side and the colour of a bar show its sign.
        colors = [COLORS[0] if size >= 0 else COLORS[1] for size in sizes]
        places = np.arange(len(sizes))
        self.bars_ = self.ax_.barh(places, sizes, **{"color": colors, **kwargs})
        self.ax_.set_yticks(places, [literal(found.labels[g]) for g in self.order_])
        self.ax_.invert_yaxis()
        self.ax_.axvline(0, color="0.5", linewidth=0.8)
        self.ax_.set_xlabel(literal(self._label()))
        return self

    def _label(self):
        if self.explanation.classes is None:
            return "contribution to the prediction"
        if self.target is None:
            return "contribution to the decision for the predicted class"
        return (
            f"contribution to the decision for {self.explanation.classes[self.target]}"
        )
