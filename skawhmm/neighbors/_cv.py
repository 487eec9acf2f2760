"""Nearest neighbours with alpha and n_neighbors chosen by leave-one-out."""

from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from skawhmm._estimator import (
    ReferencesMixin,
    check_classes,
    is_mixture,
)
from skawhmm.distances._pairwise import all_pairs
from skawhmm.neighbors._base import WEIGHTS, KNeighborsMixin
from skawhmm.neighbors._estimators import KNeighborsHMMClassifier
from skawhmm.neighbors._leave_one_out import (
    ROUNDING,
    SCORES,
    grid_neighbors,
    nearest_path,
    vote_fractions,
    widest_best,
)
from skawhmm.sequences._forms import warn_caller
from skawhmm.sequences._tables import shown
from skawhmm.utils._checks import (
    check_choice,
    check_counts,
    check_numbers,
    check_one_each,
    check_real,
)
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._numbers import distinct_labels
from skawhmm.utils._parameters import check_unused

# The values of alpha that are tried by default.
DEFAULT_ALPHAS = np.linspace(0, 1, 101)


def check_alphas(name, value):
    """Return weights of the transition component, or raise; None stays None."""
    if value is None:
        return None
    return check_numbers(name, value, partial(check_real, low=0, high=1))


def _together(groups, n_models):
    """Return a mask of the pairs that must not vote for each other, by group."""
    if groups is None:
        return np.eye(n_models, dtype=bool)
    names, codes = distinct_labels("groups", groups, n_models)
    if len(names) < 2:
        raise ValueError(
            f"groups must name at least 2 groups, got only {names[0].item()!r}."
        )
    return codes[:, None] == codes


def _warn_of_single_groups(together, codes, classes):
    """Warn of classes that no model of another group can vote for."""
    same_class = codes[:, None] == codes
    alone = ~(same_class & ~together).any(axis=1)
    if alone.any():
        names = shown(classes[np.unique(codes[alone])].tolist())
        warn_caller(
            f"All models of the classes {names} belong to one group each, so none of "
            "them can be classified correctly by the other groups, whatever alpha is. "
            "groups should name what is to be new, such as the speaker, and not follow "
            "from the class."
        )


class KNeighborsHMMClassifierCV(
    KNeighborsMixin, ReferencesMixin, ClassifierMixin, BaseEstimator
):
    r"""Classify by the nearest models, with `alpha` and `n_neighbors` chosen in `fit`.

    The components of all pairs are computed once. Every `alpha` and every number of
    neighbours is then scored by leaving each training model out of its own vote, or,
    with `groups`, all models of its group.

    Parameters
    ----------
    alphas : array-like of float in [0, 1], default=None
        Candidate weights of the transition component. By default 0, 0.01, ..., 1 and,
        for one neighbour, all numbers in [0, 1] (see `alpha_path_`). Must be None if
        the distance has no components.

    n_neighbors : int or sequence of int, default=(1, 3, 5, 7, 9)
        Candidate numbers of neighbours; numbers larger than the number of other
        training models are skipped.

    weights : {"uniform", "distance"}, default="uniform"
        Weight of each vote, as in :class:`KNeighborsHMMClassifier`.

    scoring : {"accuracy", "balanced_accuracy", "roc_auc"}, default="accuracy"
        Score to maximise. With more than two classes, "roc_auc" is the mean over each
        class against the rest.

    metric : str or object, default="maw"
        Distance between two models: "maw", "iaw", "jaw", "kl", "coupling", "mmd" or an
        object. With "precomputed", `X` holds components of shape (n_queries,
        n_models_fit, 2). For distances without components only the number of neighbours
        is chosen.

    p : float in (0, 2], default=None
        Order of the distance, by default 1. Must be None if the distance has no
        order, or if `metric` is an object, which has its own.

    metric_params : dict, default=None
        Further parameters of the distance.

    hmm : transformer, default=None
        Turns sequences into models; it is cloned, and fitted on the training
        sequences. By default ``HMMTransformer()``; None if `X` is an `HMMBatch`.

    n_jobs : int, default=None
        Number of joblib workers for the distances, threads by default.

    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    alpha_ : float
        The chosen weight of the transition component: the middle of the widest range
        with the best score.

    n_neighbors_ : int
        The chosen number of neighbours. Ties go to the number with the widest range of
        best `alpha`, then to the smallest.

    best_score_ : float
        Leave-one-out score of the chosen pair. It is optimistic, because it is the best
        of many.

    alphas_ : ndarray of shape (n_alphas,)
        The weights tried.

    n_neighbors_tried_ : ndarray of shape (n_numbers,)
        The numbers of neighbours tried.

    scores_ : ndarray of shape (n_alphas, n_numbers)
        Leave-one-out score of each combination.

    alpha_path_ : dict of ndarray
        The score of one neighbour as an exact function of `alpha`: it is
        ``alpha_path_["scores"][i]`` between ``alpha_path_["alphas"][i]`` and the next.

    best_estimator_ : KNeighborsHMMClassifier
        The classifier with the chosen parameters, fitted on all training models.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    hmm_ : transformer or None
        The fitted `hmm`; None if `fit` was not given sequences.

    n_features_in_ : int
        Number of features of the models or sequences; of columns if `fit` was given a
        2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences or models that have
        names; of the columns, if it was given distances in a data frame.

    See Also
    --------
    AlphaCurveDisplay : Picture of the scores.
    KNeighborsHMMClassifier : The classifier for a given `alpha`.

    Notes
    -----
    The distance from a model to any other, :math:`(1 - \alpha) R + \alpha D`, is a line
    in :math:`\alpha`, so its nearest neighbour follows the lower envelope of lines, and
    the score of one neighbour is constant between finitely many values.

    Examples
    --------
    >>> from skawhmm import HMMTransformer, KNeighborsHMMClassifierCV
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(60, differ_in="transitions", random_state=0)
    >>> hmm = HMMTransformer(n_components=3, random_state=0)
    >>> knn = KNeighborsHMMClassifierCV(hmm=hmm).fit(X[:40], y[:40])
    >>> knn.score(X[40:], y[40:])
    1.0
    """

    _parameter_checks: ClassVar = {
        **ReferencesMixin._parameter_checks,
        "alphas": check_alphas,
        "n_neighbors": check_counts,
        "weights": partial(check_choice, choices=WEIGHTS),
        "scoring": partial(check_choice, choices=SCORES),
    }

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        n_neighbors: int | Sequence[int] = (1, 3, 5, 7, 9),
        *,
        weights: str = "uniform",
        scoring: str = "accuracy",
        metric: Any = "maw",
        p: float | None = None,
        metric_params: Mapping[str, Any] | None = None,
        hmm: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.scoring = scoring
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.hmm = hmm
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(
        self, X: Any, y: ArrayLike, groups: ArrayLike | None = None
    ) -> "KNeighborsHMMClassifierCV":
        """Choose `alpha` and the number of neighbours; keep the models of `X`.

        Parameters
        ----------
        X : HMMBatch, list of array-like of shape (n_timesteps, n_features), or array
            Models or sequences; sequences may also be a 3-D array padded by NaN, or a
            2-D array whose rows are univariate. Components between the training models
            if ``metric="precomputed"``.

        y : array-like of shape (n_models,)
            Classes.

        groups : array-like of shape (n_models,), default=None
            Groups of models that belong together, such as the speaker. A model is then
            scored only by neighbours from other groups, so that the choice suits new
            groups.

        Returns
        -------
        self : KNeighborsHMMClassifierCV
            The fitted classifier.
        """
        metric = self._begin_fit()
        y = check_classes(y, type(self).__name__)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.scoring == "roc_auc" and len(self.classes_) < 2:
            raise ValueError("scoring='roc_auc' needs at least 2 classes in y, got 1.")
        X = self._checked(X, y, reset=True)
        is_mixed = X.ndim == 3 if metric is None else is_mixture(metric)
        if not is_mixed:
            given = "if X holds distances, not components"
            reason = given if metric is None else f"with metric={self.metric!r}"
            check_unused("alphas", self.alphas, None, reason)
        check_one_each(X, y)
        together = _together(groups, len(X))
        self.n_neighbors_tried_ = self._usable_numbers(
            int((~together).sum(axis=1).min()), len(X)
        )
        models = self._learned_models(X, y)
        if groups is not None:
            _warn_of_single_groups(together, codes, self.classes_)
        components = X if metric is None else self._components(models, metric)
        if components.ndim == 2:
            # Distances without components serve as both.
            components = np.stack([components, components], axis=-1)
        self.alphas_ = self._alphas_to_try(components)
        if groups is not None:
            components = np.where(together[..., None], np.inf, components)
        self._score(components, codes)
        self._choose()
        # Distances without components have no alpha; objects carry their own.
        is_named = isinstance(self.metric, str) and is_mixed
        self.best_estimator_ = KNeighborsHMMClassifier(
            self.n_neighbors_,
            weights=self.weights,
            metric=self._metric_at(self.alpha_),
            alpha=self.alpha_ if is_named else None,
            p=self.p,
            metric_params=self.metric_params,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        ).fit(X if models is None else models, y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return one class per query.

        Parameters
        ----------
        X : HMMBatch, list of array-like, array-like or None
            Queries in one of the forms that `fit` takes. None stands for the training
            models, each without its own vote.

        Returns
        -------
        y : ndarray of shape (n_queries,)
            The class with the most votes; in a tie, the class of the nearest neighbour.
        """
        self._check_ready()
        return self.best_estimator_.predict(self._queries(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the fraction of votes for each class, one row per query.

        Parameters
        ----------
        X : HMMBatch, list of array-like, array-like or None
            Queries in one of the forms that `fit` takes. None stands for the training
            models, each without its own vote.

        Returns
        -------
        fractions : ndarray of shape (n_queries, n_classes)
            Fractions in the order of `classes_`.
        """
        self._check_ready()
        return self.best_estimator_.predict_proba(self._queries(X))

    def _usable_numbers(self, n_others, n_models):
        """Return the numbers of neighbours that can be tried, in increasing order."""
        tried = check_counts("n_neighbors", self.n_neighbors)
        usable = sorted({number for number in tried if number <= n_others})
        if not usable:
            raise ValueError(
                "n_neighbors must hold a number of at most the number of models that "
                f"may vote for another one, {n_others}, got n_neighbors = {tried}, "
                f"n_samples = {n_models}."
            )
        return np.array(usable)

    def _components(self, models, metric):
        """Return the components of all pairs, or their distances if there are none."""
        parts = ("components", (2,)) if is_mixture(metric) else ()
        return all_pairs(
            models, None, metric, *parts, n_jobs=self.n_jobs, verbose=self.verbose
        )

    def _alphas_to_try(self, components):
        """Return the values of alpha to try, in increasing order."""
        if self.alphas is not None:
            return np.unique(check_alphas("alphas", self.alphas))
        # Without two components alpha makes no difference.
        single = np.array_equal(components[..., 0], components[..., 1])
        return np.zeros(1) if single else DEFAULT_ALPHAS.copy()

    def _score(self, components, codes):
        """Set the leave-one-out scores of the grid and of the path."""
        score, gains = SCORES[self.scoring]
        n_classes, most = len(self.classes_), self.n_neighbors_tried_[-1]
        self.scores_ = np.empty((len(self.alphas_), len(self.n_neighbors_tried_)))
        neighborhoods = grid_neighbors(components, self.alphas_, most)
        for i, (found, indices) in enumerate(neighborhoods):
            neighbors = codes[indices]
            fractions = vote_fractions(found, neighbors, n_classes, self.weights)
            for j, number in enumerate(self.n_neighbors_tried_):
                self.scores_[i, j] = score(
                    codes, fractions[:, number - 1], neighbors[:, :number]
                )
        alphas, scores = nearest_path(components, codes, gains(codes))
        self.alpha_path_ = {"alphas": alphas, "scores": scores}

    def _choose(self):
        """Set the best pair: by score, then by the width of its range of alpha."""
        middles = (self.alphas_[1:] + self.alphas_[:-1]) / 2
        lows, highs = np.append(0, middles), np.append(middles, 1)
        choices = []
        for number, scores in zip(self.n_neighbors_tried_, self.scores_.T, strict=True):
            first, last = widest_best(lows, highs, scores)
            width = highs[last] - lows[first]
            alpha = self.alphas_[(first + last) // 2]
            choices.append((scores.max(), width, int(number), alpha))
        if choices[0][2] == 1 and self.alphas is None and len(self.alphas_) > 1:
            ends, scores = self.alpha_path_["alphas"], self.alpha_path_["scores"]
            first, last = widest_best(ends[:-1], ends[1:], scores)
            width = ends[last + 1] - ends[first]
            choices[0] = scores.max(), width, 1, ends[first] + width / 2
        best = max(choices, key=lambda c: (round(c[0] / ROUNDING), c[1], -c[2]))
        self.best_score_, self.alpha_ = float(best[0]), float(best[3])
        self.n_neighbors_ = best[2]

    def _metric_at(self, alpha):
        """Return the parameter `metric`; objects carry their own alpha."""
        if isinstance(self.metric, str) or not is_mixture(self.metric):
            return self.metric
        metric = copy(self.metric)
        metric.alpha = alpha
        return metric

    @property
    def _n_references(self):
        return self.best_estimator_.n_samples_fit_

    def _question(self, X, n_neighbors=None):
        self._check_ready()
        return self.best_estimator_._question(self._queries(X), n_neighbors)

    def _nearest(self, *question):
        return self.best_estimator_._nearest(*question)

    def _queries(self, X):
        """Return what the chosen classifier takes as `X`."""
        if X is None:
            return None
        return self._checked(X, reset=False) if self._precomputed else self._models(X)
