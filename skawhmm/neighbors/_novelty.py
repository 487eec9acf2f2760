"""New models: those farther from their neighbours than known models are from theirs."""

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin

from skawhmm.distances._aggregated import mixed_components
from skawhmm.distances._pairwise import oriented, registrations
from skawhmm.distances._registration import power_cost
from skawhmm.models._batch import HMMBatch
from skawhmm.neighbors._base import NeighborsMixin
from skawhmm.utils._checks import check_real
from skawhmm.utils._interruption import all_or_nothing


class HMMNoveltyDetector(OutlierMixin, NeighborsMixin, BaseEstimator):
    """Tell whether a model is new, by the distance to its nearest neighbours.

    The score of a model is its mean distance to the `n_neighbors` nearest training
    models. It is compared with the scores of the training models themselves, each among
    the others. If a model comes from where they came from, its p-value is at most t
    with probability about t, whatever the models are (conformal prediction).

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours. There must be more training models.

    level : float in (0, 1), default=0.05
        Share of known models that may be called new: those with a smaller or equal
        p-value are. It takes at least ``1 / level - 1`` training models to call any
        model new.

    metric : {"maw", "iaw", "jaw", "kl", "coupling", "precomputed"} or object, \
            default="jaw"
        Distance between two models. With "precomputed", `X` holds distances of shape
        (n_queries, n_models_fit), or components of shape (n_queries, n_models_fit, 2),
        which are mixed at `alpha`.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default that of the
        distance: 0.1 for "maw" and "iaw", 0.5 for "jaw". Must be given with
        components, and None if there are none, or if `metric` is an object, which has
        its own.

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
        lower bound of the distance rules out ("pruned"). The neighbours are the same.
        By default pruned, where possible, among 500 models or more.

    memory : str, path-like or joblib.Memory, default=None
        Where fitted models and components are kept, by content.

    n_jobs : int, default=None
        Number of joblib workers for the distances, threads by default.

    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    calibration_scores_ : ndarray of shape (n_models_fit,)
        Mean distance of each training model to its nearest others.

    offset_ : float
        Score from which on a model is known: ``decision_function`` is the score minus
        this. Minus infinity if there are too few training models to call any new.

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
        Names of the columns, if `fit` was given a data frame.

    See Also
    --------
    HMMRetriever : The neighbours themselves.

    Notes
    -----
    Parameters that are changed after `fit` need another `fit`: they change the
    calibration. Without it, an error names them. A query that is one of the training
    models finds itself and is known.

    References
    ----------
    Vovk, V., Gammerman, A. and Shafer, G. (2005). Algorithmic Learning in a Random
    World. Springer.

    Examples
    --------
    Windows of a machine that runs well, and one in which its second state has moved:

    >>> from skawhmm import HMMBatch, HMMNoveltyDetector
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> chain = [[0.9, 0.1], [0.2, 0.8]]
    >>> means = rng.normal([[0.0], [5.0]], 0.2, (40, 2, 1))
    >>> known = HMMBatch([chain] * 40, means, np.ones((40, 2, 1)))
    >>> window = HMMBatch([chain], [[[0.1], [7.0]]], [[[1.0], [1.0]]])
    >>> detector = HMMNoveltyDetector().fit(known)
    >>> detector.predict(window), detector.pvalues(window).round(3)
    (array([-1]), array([0.024]))
    >>> states, transition = detector.explain(window)
    >>> states.round(2), transition.round(2)
    (array([[0.02, 0.29]]), array([0.]))
    """

    _parameter_checks: ClassVar = {
        **NeighborsMixin._parameter_checks,
        "level": partial(check_real, low=0, high=1, include_low=False),
    }
    # All others change the calibration.
    _read_later: ClassVar = frozenset({"algorithm"})

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        level: float = 0.05,
        metric: Any = "jaw",
        alpha: float | None = None,
        p: float | None = None,
        metric_params: Mapping[str, Any] | None = None,
        hmm: Any = None,
        algorithm: str = "auto",
        memory: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.level = level
        self.metric = metric
        self.alpha = alpha
        self.p = p
        self.metric_params = metric_params
        self.hmm = hmm
        self.algorithm = algorithm
        self.memory = memory
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> "HMMNoveltyDetector":  # noqa: ARG002
        """Keep the models of `X`, and measure how far each is from the others.

        Parameters
        ----------
        X : HMMBatch, list of array-like of shape (n_timesteps, n_features), or array
            Models or sequences that are known; sequences may also be a 3-D array padded
            by NaN, or a 2-D array whose rows are univariate. Distances or components
            between the models if ``metric="precomputed"``.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : HMMNoveltyDetector
            The fitted detector.
        """
        self._begin_fit()
        # A training model needs as many neighbours beside itself.
        self._fit_references(X, n_voters=self.n_neighbors + 1)
        found, _ = self._nearest(None)
        self.calibration_scores_ = found.mean(axis=1)
        # A query is new if at most this many training models are as far from others.
        n_farther = np.floor(self.level * (self.n_samples_fit_ + 1) + 1e-9) - 1
        if n_farther < 0:
            self.offset_ = -np.inf
            warnings.warn(
                f"level={self.level} takes at least {np.ceil(1 / self.level - 1):.0f} "
                f"training models, got {self.n_samples_fit_}: no model will be new.",
                stacklevel=2,
            )
        else:
            self.offset_ = -np.sort(self.calibration_scores_)[::-1][int(n_farther)]
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return minus the mean distance of each model to its nearest neighbours.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like
            Queries in one of the forms that `fit` takes.

        Returns
        -------
        scores : ndarray of shape (n_queries,)
            The lower, the more unusual.
        """
        self._check_ready()
        found, _ = self._nearest(X)
        return -found.mean(axis=1)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return scores that are negative where a model is new.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like
            Queries in one of the forms that `fit` takes.

        Returns
        -------
        scores : ndarray of shape (n_queries,)
            ``score_samples(X) - offset_``.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Tell which models are new.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like
            Queries in one of the forms that `fit` takes.

        Returns
        -------
        labels : ndarray of shape (n_queries,)
            -1 for new models, whose p-value is at most `level`, and 1 for known ones.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def pvalues(self, X: Any = None) -> NDArray[np.float64]:
        """Return the share of training models that are as far from the others.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like, default=None
            Queries in one of the forms that `fit` takes. By default the training
            models, each compared with the others.

        Returns
        -------
        pvalues : ndarray of shape (n_queries,)
            ``(b + 1) / (n + 1)`` for b of n training models; for the training models,
            which are among the n, ``b / n``.
        """
        self._check_ready()
        known = np.sort(self.calibration_scores_)
        if X is None:
            scores = self.calibration_scores_
            return (len(known) - np.searchsorted(known, scores)) / len(known)
        scores = -self.score_samples(X)
        farther = len(known) - np.searchsorted(known, scores)
        return (farther + 1) / (len(known) + 1)

    def explain(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what each state, and the movement between them, adds to the score.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like
            Queries in one of the forms that `fit` takes, other than distances.

        Returns
        -------
        states : ndarray of shape (n_queries, n_components)
            Part of the mean distance to the neighbours that is due to each state of the
            query.

        transition : ndarray of shape (n_queries,)
            Part that is due to the transitions. All parts of a query add up to minus
            its score.
        """
        self._check_ready()
        metric = None if self._precomputed else self._resolved_metric()
        needed = ("components", "registrations", "alpha", "p")
        if not all(hasattr(metric, name) for name in needed):
            raise TypeError(
                "metric must register states and have two components to explain a "
                f"score, got {self.metric!r}."
            )
        queries = self._models(X)
        _, indices = self._nearest(queries)
        neighbors, places = np.unique(indices, return_inverse=True)
        batches = [queries._bare(), self.models_[neighbors]._bare()]
        models = HMMBatch.concatenate(batches)
        n_queries, n_neighbors = indices.shape
        index_a = np.repeat(np.arange(n_queries), n_neighbors)
        index_b = n_queries + places.ravel()
        states, transition = _parts(models, metric, index_a, index_b)
        states = states.reshape(n_queries, n_neighbors, -1).mean(axis=1)
        size = queries.transmats.shape[1]
        return states[:, :size], transition.reshape(n_queries, -1).mean(axis=1)


def _parts(models, metric, index_a, index_b):
    """Return the parts of distances due to each state of the first model, and to steps.

    Parameters
    ----------
    models : HMMBatch
        The models.

    metric : object
        A distance with registrations and components.

    index_a, index_b : ndarray of int of shape (n_pairs,)
        The models of each pair.

    Returns
    -------
    states : ndarray of shape (n_pairs, n_components)
        Parts of the marginal component, in proportion to the cost of each state.

    transition : ndarray of shape (n_pairs,)
        Part of the transition component.
    """
    prepared = metric.prepare(models)
    first, second = oriented(models.keys, index_a, index_b)
    components = metric.components(prepared, first, second)
    plans = registrations(models, metric, index_a, index_b)
    cost = power_cost(prepared.costs.cross(index_a, index_b), metric.p)
    moved = np.sum(plans * cost, axis=2)
    totals = moved.sum(axis=1, keepdims=True)
    shares = moved / np.where(totals > 0, totals, 1)
    nothing = np.zeros_like(components[:, 0])
    marginal = np.stack([components[:, 0], nothing], axis=1)
    steps = np.stack([nothing, components[:, 1]], axis=1)
    whole = mixed_components(marginal, metric.alpha)[:, None]
    return shares * whole, mixed_components(steps, metric.alpha)
