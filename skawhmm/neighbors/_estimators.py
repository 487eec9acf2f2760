"""Nearest neighbours among models: classification and regression."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.utils import check_array

from skawhmm._estimator import check_classes, check_targets
from skawhmm.neighbors._base import NeighborsMixin
from skawhmm.neighbors._from_distances import broken_ties
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._numbers import real_array


class KNeighborsHMMClassifier(NeighborsMixin, ClassifierMixin, BaseEstimator):
    """Classify by vote of the nearest models.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours that vote.

    weights : {"uniform", "distance"}, callable or None, default="uniform"
        Weight of each vote, as in :class:`sklearn.neighbors.KNeighborsClassifier`; a
        callable is given infinite distances as the largest float. Ties go to the class
        with the nearest neighbour.

    metric : str or object, default="maw"
        Distance between two models: "maw", "iaw", "jaw", "kl", "coupling", "mmd" or an
        object.
        With "precomputed", `X` holds distances of shape (n_queries, n_models_fit), or
        components of shape (n_queries, n_models_fit, 2), which are mixed at `alpha`.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw" and
        "iaw", 0.5 for "jaw". Required if `X` holds components; must be None for
        distances without components, and for a `metric` object, which has its own.

    p : float in (0, 2], default=None
        Order of the distance, by default 1. Must be None if the distance has no
        order, or if `metric` is an object, which has its own.

    metric_params : dict, default=None
        Further parameters of the distance.

    hmm : transformer, default=None
        Turns sequences into models; it is cloned, and fitted on the training
        sequences. By default ``HMMTransformer()``; None if `X` is an `HMMBatch`.

    algorithm : {"auto", "pruned", "brute"}, default="auto"
        Whether to compare a query with all models ("brute"), or to skip those that a
        lower bound of the distance rules out ("pruned"; for "maw", "iaw", "jaw" and
        "coupling" with ``p >= 1``). The neighbours are the same. By default pruned,
        where possible, from 500 models on.

    n_jobs : int, default=None
        Number of joblib workers for the distances, threads by default.

    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.

    models_ : HMMBatch or None
        The training models; None if distances were given.

    hmm_ : transformer or None
        The fitted `hmm`; None if `fit` was not given sequences.

    n_samples_fit_ : int
        Number of training models.

    n_features_in_ : int
        Number of features of the models or sequences; of columns if `fit` was given a
        2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences or models that have
        names; of the columns, if it was given distances in a data frame.

    See Also
    --------
    KNeighborsHMMClassifierCV : Chooses `alpha` and `n_neighbors`.
    HMMRetriever : Neighbours without labels.

    Examples
    --------
    >>> from skawhmm import HMMTransformer, KNeighborsHMMClassifier
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=30, separation=2, random_state=0)
    >>> hmm = HMMTransformer(n_components=3, random_state=0)
    >>> knn = KNeighborsHMMClassifier(3, hmm=hmm).fit(X[:20], y[:20])
    >>> knn.score(X[20:], y[20:])
    1.0
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: str | Callable[..., Any] = "uniform",
        metric: Any = "maw",
        alpha: float | None = None,
        p: float | None = None,
        metric_params: Mapping[str, Any] | None = None,
        hmm: Any = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric = metric
        self.alpha = alpha
        self.p = p
        self.metric_params = metric_params
        self.hmm = hmm
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> "KNeighborsHMMClassifier":
        """Keep the models of `X` and their classes.

        Parameters
        ----------
        X : HMMBatch, list of array-like of shape (n_timesteps, n_features), or array
            Models or sequences; sequences may also be a 3-D array padded by NaN, or a
            2-D array whose rows are univariate. Distances or components between the
            training models if ``metric="precomputed"``.

        y : array-like of shape (n_models,)
            Classes.

        Returns
        -------
        self : KNeighborsHMMClassifier
            The fitted classifier.
        """
        metric = self._begin_fit()
        y = check_classes(y, type(self).__name__)
        self._fit_references(X, y, metric=metric, n_voters=self.n_neighbors)
        self.classes_, self._codes = np.unique(y, return_inverse=True)
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
            The class with the most votes; in a tie, the class of the nearest
            neighbour among the tied classes.
        """
        fractions = self._fractions(*self._nearest(*self._question(X)))
        return self.classes_[np.argmax(fractions, axis=1)]

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
            Fractions in the order of `classes_`. In a tie, the class with the nearest
            neighbour is ahead in the last digit, so that `predict` always returns the
            class with the largest fraction.
        """
        return self._fractions(*self._nearest(*self._question(X)))

    def _fractions(self, found, indices):
        voter, graph = self._vote(KNeighborsClassifier, self._codes, found, indices)
        return broken_ties(voter.predict_proba(graph), self._codes[indices])


class KNeighborsHMMRegressor(NeighborsMixin, RegressorMixin, BaseEstimator):
    """Predict the mean target of the nearest models.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours that are averaged.

    weights : {"uniform", "distance"}, callable or None, default="uniform"
        Weight of each neighbour, as in :class:`sklearn.neighbors.KNeighborsRegressor`;
        a callable is given infinite distances as the largest float.

    metric : str or object, default="maw"
        Distance between two models: "maw", "iaw", "jaw", "kl", "coupling", "mmd" or an
        object.
        With "precomputed", `X` holds distances of shape (n_queries, n_models_fit), or
        components of shape (n_queries, n_models_fit, 2), which are mixed at `alpha`.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw" and
        "iaw", 0.5 for "jaw". Required if `X` holds components; must be None for
        distances without components, and for a `metric` object, which has its own.

    p : float in (0, 2], default=None
        Order of the distance, by default 1. Must be None if the distance has no
        order, or if `metric` is an object, which has its own.

    metric_params : dict, default=None
        Further parameters of the distance.

    hmm : transformer, default=None
        Turns sequences into models; it is cloned, and fitted on the training
        sequences. By default ``HMMTransformer()``; None if `X` is an `HMMBatch`.

    algorithm : {"auto", "pruned", "brute"}, default="auto"
        Whether to compare a query with all models ("brute"), or to skip those that a
        lower bound of the distance rules out ("pruned"; for "maw", "iaw", "jaw" and
        "coupling" with ``p >= 1``). The neighbours are the same. By default pruned,
        where possible, from 500 models on.

    n_jobs : int, default=None
        Number of joblib workers for the distances, threads by default.

    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    models_ : HMMBatch or None
        The training models; None if distances were given.

    hmm_ : transformer or None
        The fitted `hmm`; None if `fit` was not given sequences.

    n_samples_fit_ : int
        Number of training models.

    n_features_in_ : int
        Number of features of the models or sequences; of columns if `fit` was given a
        2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences or models that have
        names; of the columns, if it was given distances in a data frame.

    See Also
    --------
    KNeighborsHMMClassifier : The same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from skawhmm import HMMTransformer, KNeighborsHMMRegressor
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(8.0)
    >>> X = [level + rng.normal(size=(50, 1)) for level in y]
    >>> hmm = HMMTransformer(n_components=1)
    >>> KNeighborsHMMRegressor(2, hmm=hmm).fit(X, y).predict(None)[[3, 4]]
    array([3., 4.])
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: str | Callable[..., Any] = "uniform",
        metric: Any = "maw",
        alpha: float | None = None,
        p: float | None = None,
        metric_params: Mapping[str, Any] | None = None,
        hmm: Any = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric = metric
        self.alpha = alpha
        self.p = p
        self.metric_params = metric_params
        self.hmm = hmm
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> "KNeighborsHMMRegressor":
        """Keep the models of `X` and their targets.

        Parameters
        ----------
        X : HMMBatch, list of array-like of shape (n_timesteps, n_features), or array
            Models or sequences; sequences may also be a 3-D array padded by NaN, or a
            2-D array whose rows are univariate. Distances or components between the
            training models if ``metric="precomputed"``.

        y : array-like of shape (n_models,) or (n_models, n_outputs)
            Targets.

        Returns
        -------
        self : KNeighborsHMMRegressor
            The fitted regressor.
        """
        metric = self._begin_fit()
        y = real_array("y", check_targets(y, type(self).__name__))
        self._targets = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
        self._fit_references(X, self._targets, metric=metric, n_voters=self.n_neighbors)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return one number per query: the mean target of its neighbours.

        Parameters
        ----------
        X : HMMBatch, list of array-like, array-like or None
            Queries in one of the forms that `fit` takes. None stands for the training
            models, none of which is its own neighbour.

        Returns
        -------
        y : ndarray of shape (n_queries,) or (n_queries, n_outputs)
            The mean targets.
        """
        found, indices = self._nearest(*self._question(X))
        voter, graph = self._vote(KNeighborsRegressor, self._targets, found, indices)
        return voter.predict(graph)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        # Rows of a table are read as sequences, so columns have no meaning of their
        # own.
        tags.regressor_tags.poor_score = True
        return tags
