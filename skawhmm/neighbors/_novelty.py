"""Novelty detection: models farther from their neighbours than known models."""

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.metaestimators import available_if

from skawhmm.distances._aggregated import Aggregated, mixed_components
from skawhmm.distances._base import LearnedDistance
from skawhmm.distances._pairwise import all_pairs, content_keys, oriented, registrations
from skawhmm.distances._registration import power_cost
from skawhmm.models._batch import HMMBatch
from skawhmm.neighbors._base import NeighborsMixin, can_grow
from skawhmm.neighbors._from_distances import nearest_except
from skawhmm.sequences._forms import warn_caller
from skawhmm.utils._checks import check_real
from skawhmm.utils._interruption import all_or_nothing


class HMMNoveltyDetector(OutlierMixin, NeighborsMixin, BaseEstimator):
    """Detect new models by the distance to their nearest neighbours.

    The score of a model is its mean distance to the `n_neighbors` nearest training
    models. It is compared with the scores of the training models, each computed among
    the others. The p-value of a model from the same distribution is at most t with
    probability about t, whatever that distribution (conformal prediction).

    A query that equals a training model is treated as that model: every method compares
    it only with the others, as `fit_predict` and ``pvalues()`` do.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours whose distances are averaged; must be less than the number
        of training models.

    false_alarm_rate : float in (0, 1), default=0.05
        Fraction of known models that may be called new: a model is new if its p-value
        is at most this. Calling any model new takes at least
        ``1 / false_alarm_rate - 1`` training models.

    metric : {"maw", "iaw", "jaw", "kl", "coupling", "precomputed"} or object, \
            default="jaw"
        Distance between two models. With "precomputed", `X` holds distances of shape
        (n_queries, n_models_fit), or components of shape (n_queries, n_models_fit, 2),
        which are mixed at `alpha`.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw" and
        "iaw", 0.5 for "jaw". Required if `X` holds components; must be None for
        distances without components, and for a `metric` object, which has its own.

    hmm : transformer, default=None
        Turns sequences into models; it is cloned, and fitted on the training
        sequences. By default ``HMMTransformer()``; None if `X` is an `HMMBatch`.

    algorithm : {"auto", "pruned", "brute"}, default="auto"
        Whether to compare a query with all models ("brute"), or to skip those that a
        lower bound of the distance rules out ("pruned"). The neighbours are the same.
        By default pruned, where possible, from 500 models on.

    n_jobs : int, default=None
        Number of joblib workers for the distances, threads by default.

    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    calibration_scores_ : ndarray of shape (n_models_fit,)
        Mean distance of each training model to its nearest others.

    offset_ : float
        Models with a lower score are new: ``decision_function`` is the score minus
        this. Minus infinity if there are too few training models to call any model new.

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
    HMMRetriever : The neighbours themselves.

    Notes
    -----
    Changing a parameter after `fit` requires another `fit`, because it changes the
    calibration. Without it, an error names the parameter.

    Training models are recognised by their content: parameters and start probabilities
    that are equal to the last bit, and equal sequences if both models keep theirs. The
    models of the training sequences are, because a fit is repeatable. With
    ``metric="precomputed"`` a row that equals a row of the training matrix stands for
    that training model. Training models that equal each other stay neighbours.

    References
    ----------
    Vovk, V., Gammerman, A. and Shafer, G. (2005). Algorithmic Learning in a Random
    World. Springer.

    Examples
    --------
    Forty windows of a healthy machine, and one window whose second state has moved:

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
        "false_alarm_rate": partial(
            check_real, low=0, high=1, include_low=False, include_high=False
        ),
    }
    # All other parameters change the calibration.
    _read_later: ClassVar = frozenset({"algorithm"})

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        false_alarm_rate: float = 0.05,
        metric: Any = "jaw",
        alpha: float | None = None,
        hmm: Any = None,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.false_alarm_rate = false_alarm_rate
        self.metric = metric
        self.alpha = alpha
        self.hmm = hmm
        self.algorithm = algorithm
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
        metric = self._begin_fit()
        # A training model needs as many neighbours besides itself.
        self._fit_references(X, metric=metric, n_voters=int(self.n_neighbors) + 1)
        self._calibrate(self._nearest(None, int(self.n_neighbors), metric))
        return self

    def _calibrate(self, neighbors):
        """Set the scores of the training models, given their nearest others."""
        self._calibration = neighbors
        self.calibration_scores_ = self._calibration[0].mean(axis=1)
        self.offset_ = -_threshold(self.calibration_scores_, self.false_alarm_rate)
        if (
            self.offset_ == -np.inf
            and 1 / (self.n_samples_fit_ + 1) > self.false_alarm_rate
        ):
            warn_caller(
                f"false_alarm_rate={self.false_alarm_rate} takes at least "
                f"{np.ceil(1 / self.false_alarm_rate - 1):.0f} "
                f"training models, got {self.n_samples_fit_}: no model will count as "
                "new."
            )

    @available_if(can_grow)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> "HMMNoveltyDetector":
        """Add the models of `X` to the known ones.

        The result equals a `fit` with all models, to the last bit, except that a
        transformer that learns from its training sequences, such as
        ``HMMTransformer(init="pooled")``, keeps what it learned. An added model is
        compared with each of the others once. A distance that learns from all models,
        such as `MMD`, is learned again, and all models are compared again.

        Parameters
        ----------
        X : HMMBatch or list of array-like of shape (n_timesteps, n_features)
            Models or sequences, in the form that `fit` was given. The first call of an
            unfitted detector is `fit`.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : HMMNoveltyDetector
            The detector.
        """
        if not hasattr(self, "models_"):
            return self.fit(X, y)
        metric = self._check_ready()
        n_before, n_neighbors = self.n_samples_fit_, self._calibration[0].shape[1]
        fresh = self._add_references(X, metric)
        if isinstance(metric, LearnedDistance):
            self._calibrate(self._nearest(None, n_neighbors, metric))
            return self
        work = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        rows = all_pairs(fresh, self.models_, metric, **work)
        columns = rows[:, :n_before].T
        if not metric.symmetric:
            before = self.models_[:n_before]
            columns = all_pairs(before, fresh, metric, **work)
        own = np.arange(n_before, self.n_samples_fit_)
        places = np.broadcast_to(own, columns.shape)
        merged = [
            np.concatenate(pair, axis=1)
            for pair in zip(self._calibration, (columns, places), strict=True)
        ]
        # Old neighbours come first, which keeps equal distances in order of index.
        order = np.argsort(merged[0], axis=1, kind="stable")[:, :n_neighbors]
        old = [np.take_along_axis(part, order, axis=1) for part in merged]
        new = nearest_except(rows, own, n_neighbors)
        self._calibrate(tuple(map(np.concatenate, zip(old, new, strict=True))))
        return self

    @available_if(can_grow)
    @all_or_nothing
    def remove(self, indices: Any) -> "HMMNoveltyDetector":
        """Remove models from the known ones, as if they had not been in `fit`.

        Only training models that had one of them as a neighbour are compared again.

        Parameters
        ----------
        indices : int, slice or array-like of int or bool
            The models, in the order in which they were given. More than `n_neighbors`
            must stay.

        Returns
        -------
        self : HMMNoveltyDetector
            The detector; the models that stay are numbered anew, in their order.
        """
        metric = self._check_ready()
        n_neighbors, n_before = self._calibration[0].shape[1], self.n_samples_fit_
        kept = self._remove_references(indices, metric, n_voters=n_neighbors + 1)
        if isinstance(metric, LearnedDistance):
            self._calibrate(self._nearest(None, n_neighbors, metric))
            return self
        moved = np.full(n_before, -1)
        moved[kept] = np.arange(len(kept))
        found, places = (part[kept] for part in self._calibration)
        places = moved[places]
        changed = np.flatnonzero((places < 0).any(axis=1))
        if changed.size:
            rows = all_pairs(
                self.models_[changed],
                self.models_,
                metric,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
            again = nearest_except(rows, changed, n_neighbors)
            found[changed], places[changed] = again
        self._calibrate((found, places))
        return self

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Fit, and return which training models are new among the others.

        Parameters
        ----------
        X : HMMBatch, list of array-like of shape (n_timesteps, n_features), or array
            Models, sequences or distances in one of the forms that `fit` takes.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        labels : ndarray of shape (n_models,)
            -1 for models whose p-value from ``pvalues()`` is at most
            `false_alarm_rate`, and 1 for the others.
        """
        return _labels(self.fit(X, y).pvalues(), self.false_alarm_rate)

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
        metric = self._check_ready()
        return -self._judged(X, metric)[0]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return scores that are negative for new models.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like
            Queries in one of the forms that `fit` takes.

        Returns
        -------
        scores : ndarray of shape (n_queries,)
            ``score_samples(X) - offset_``; 0 for a known model whose score ties with
            the score of the last new training model.
        """
        metric = self._check_ready()
        scores, pvalues = self._judged(X, metric)
        with np.errstate(invalid="ignore"):
            decisions = -scores - self.offset_
        return np.where(
            pvalues <= self.false_alarm_rate, decisions, np.fmax(decisions, 0.0)
        )

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return -1 for new models and 1 for known ones.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like
            Queries in one of the forms that `fit` takes.

        Returns
        -------
        labels : ndarray of shape (n_queries,)
            -1 for new models, whose p-value is at most `false_alarm_rate`, and 1 for
            known ones.
        """
        return _labels(self.pvalues(X), self.false_alarm_rate)

    def pvalues(self, X: Any = None) -> NDArray[np.float64]:
        """Return p-values: fractions of training models that are at least as unusual.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like, default=None
            Queries in one of the forms that `fit` takes. By default the training
            models, each compared with the others.

        Returns
        -------
        pvalues : ndarray of shape (n_queries,)
            ``(b + 1) / (n + 1)`` if b of the n training models have a mean distance at
            least as large. For training models, which are among the n, ``b / n``, even
            if they come as queries.
        """
        metric = self._check_ready()
        if X is None:
            farther = _at_least(self.calibration_scores_, self.calibration_scores_)
            return farther / self.n_samples_fit_
        return self._judged(X, metric)[1]

    def explain(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what each state, and the transitions between them, add to the score.

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
            Part that is due to the transitions. All parts of a query add up to its
            score with the sign reversed.
        """
        metric = self._check_ready()
        if not isinstance(metric, Aggregated):
            raise TypeError(
                "metric must register states and have two components to explain a "
                f"score, got {self.metric!r}."
            )
        queries = self._queries(X)
        indices = self._found(queries, metric)[1]
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

    def _judged(self, X, metric):
        """Return mean distances and p-values of queries."""
        found, _, own = self._found(self._queries(X), metric)
        scores = np.where(own < 0, found.mean(axis=1), self.calibration_scores_[own])
        farther = _at_least(self.calibration_scores_, scores)
        # A training model is already counted among those at least as far as itself.
        one = own < 0
        return scores, (farther + one) / (self.n_samples_fit_ + one)

    def _found(self, queries, metric):
        """Return distances and indices of neighbours, and which training model each is.

        The training model is -1 for queries that equal none. A training model is never
        its own neighbour.
        """
        if self._precomputed:
            mine, known = map(row_keys, (queries, self._given))
        else:
            mine, known = comparable_keys(queries, self.models_)
        n_neighbors = self._calibration[0].shape[1]
        found, indices = self._nearest(queries, n_neighbors, metric)
        places = {key: n for n, key in enumerate(known)}
        own = np.array([places.get(key, -1) for key in mine])
        again = own >= 0
        found[again], indices[again] = (part[own[again]] for part in self._calibration)
        return found, indices, own


def row_keys(matrix):
    """Return a key for each row of precomputed distances or components."""
    # Adding zero turns -0.0 into 0.0, whose bytes differ.
    return [(row + 0.0).tobytes() for row in matrix]


def comparable_keys(queries, references):
    """Return a key for each model of two batches.

    Sequences count only if both batches carry them: models read from a file without
    sequences are still the same models.
    """
    batches = queries, references
    if any(batch.sequences is None for batch in batches):
        batches = queries._bare(), references._bare()
    return tuple(content_keys(batch).tolist() for batch in batches)


def _at_least(known, scores):
    """Return how many of the `known` scores are at least as large as each score."""
    return len(known) - np.searchsorted(np.sort(known), scores)


def _labels(pvalues, false_alarm_rate):
    return np.where(pvalues <= false_alarm_rate, -1, 1)


def _threshold(scores, false_alarm_rate):
    """Return the mean distance above which models are new.

    A query is new above the m-th largest score of the training models, m being the
    number of p-values ``k / (n + 1)`` that are small enough. Among the training models
    themselves, with p-values ``k / n``, the model with this very score may be new, too;
    the threshold is then the next smaller number.
    """
    size = len(scores)
    ranks = np.arange(1, size + 2)
    n_new = np.count_nonzero(ranks / (size + 1) <= false_alarm_rate)
    n_own = np.count_nonzero(ranks[:size] / size <= false_alarm_rate)
    if n_new == 0:
        return np.inf
    falling = np.append(np.sort(scores)[::-1], -np.inf)
    limit = falling[n_new - 1]
    return np.nextafter(limit, -np.inf) if falling[n_own] < limit else limit


def _parts(models, metric, index_a, index_b):
    """Return the parts of distances due to each state of `a`, and to transitions.

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
    fractions = moved / np.where(totals > 0, totals, 1)
    nothing = np.zeros_like(components[:, 0])
    marginal = np.stack([components[:, 0], nothing], axis=1)
    steps = np.stack([nothing, components[:, 1]], axis=1)
    whole = mixed_components(marginal, metric.alpha)[:, None]
    return fractions * whole, mixed_components(steps, metric.alpha)
