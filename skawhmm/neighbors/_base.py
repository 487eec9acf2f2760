"""Base classes of the nearest-neighbour estimators."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix, identity
from sklearn.utils.validation import check_is_fitted

from skawhmm._estimator import (
    METRIC_NAMES,
    ReferencesMixin,
    mixed_precomputed,
)
from skawhmm.distances._pairwise import all_pairs
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_same_features, checked_rows
from skawhmm.neighbors._from_distances import (
    nearest,
    nearest_others,
    neighbor_graph,
    within_radius,
)
from skawhmm.neighbors._search import (
    SearchIndex,
    can_prune,
    check_prunable,
    has_bounds,
)
from skawhmm.utils._checks import check_choice, check_integer, check_one_each

ALGORITHMS = ("auto", "pruned", "brute")
WEIGHTS = ("uniform", "distance")

# With fewer models, comparing with all of them is as fast as a pruned search.
MIN_PRUNED = 500


def check_neighbor_count(n_neighbors, n_available):
    """Return the number of neighbours, or raise if there are fewer models."""
    number = check_integer("n_neighbors", n_neighbors, 1)
    if number > n_available:
        raise ValueError(
            f"n_neighbors must be at most the number of models to choose from, got "
            f"n_neighbors = {number}, n_samples = {n_available}."
        )
    return number


def check_weights(name, value):
    """Raise unless `value` is a weighting of neighbours that scikit-learn knows."""
    if value is not None and not callable(value):
        check_choice(name, value, WEIGHTS)


def can_grow(estimator):
    """Raise if references are given by precomputed distances, which cannot grow."""
    if estimator._precomputed:
        raise AttributeError(
            "References can be added and removed if they are models or sequences, got "
            'metric="precomputed". Call fit with the distances of all models.'
        )
    return True


class KNeighborsMixin:
    """`kneighbors` and `kneighbors_graph`, for any estimator that can search.

    A subclass has `_question`, which checks the arguments of a caller, `_nearest`,
    which takes what `_question` returns and finds distances and indices, and
    `_n_references`, the number of models searched.
    """

    _question: Callable[..., Any]
    _nearest: Callable[..., Any]
    _n_references: Any

    def kneighbors(
        self,
        X: Any = None,
        n_neighbors: int | None = None,
        return_distance: bool = True,
    ) -> Any:
        """Find the nearest training models.

        Parameters
        ----------
        X : HMMBatch, list of array-like or array-like, default=None
            Queries in one of the forms that `fit` takes. By default the training
            models, none of which is its own neighbour.

        n_neighbors : int, default=None
            Number of neighbours per query; by default `n_neighbors` of the estimator.

        return_distance : bool, default=True
            Whether to return distances as well.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            Distances in increasing order, if `return_distance`.

        indices : ndarray of shape (n_queries, n_neighbors)
            Indices of the neighbours in the training data. Neighbours at equal distance
            are in the order of the training data.
        """
        found, indices = self._nearest(*self._question(X, n_neighbors))
        return (found, indices) if return_distance else indices

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> csr_matrix:
        """Return the nearest training models as a sparse matrix.

        Parameters
        ----------
        X : HMMBatch, list of array-like or array-like, default=None
            Queries in one of the forms that `fit` takes. By default the training
            models, none of which is its own neighbour.

        n_neighbors : int, default=None
            Number of neighbours per query; by default `n_neighbors` of the estimator.

        mode : {"connectivity", "distance"}, default="connectivity"
            Whether the entries are ones or distances.

        Returns
        -------
        graph : csr_matrix of shape (n_queries, n_models_fit)
            The graph; rows are sorted by distance.
        """
        check_is_fitted(self)
        check_choice("mode", mode, ("connectivity", "distance"))
        found, indices = self._nearest(*self._question(X, n_neighbors))
        values = found if mode == "distance" else np.ones_like(found)
        return neighbor_graph(values, indices, self._n_references)


class NeighborsMixin(KNeighborsMixin, ReferencesMixin):
    """Base of the estimators that compare queries with their training models.

    A subclass has the parameters `n_neighbors`, `metric`, `alpha`, `p`,
    `metric_params`, `hmm`, `algorithm`, `n_jobs` and `verbose`.
    """

    n_neighbors: int
    weights: Any
    alpha: float | None
    p: float | None
    metric_params: Any
    algorithm: str
    models_: Any

    _parameter_checks: ClassVar = {
        **ReferencesMixin._parameter_checks,
        "n_neighbors": partial(check_integer, low=1),
        "weights": check_weights,
        "algorithm": partial(check_choice, choices=ALGORITHMS),
    }
    _read_later: ClassVar = METRIC_NAMES | {"n_neighbors", "weights", "algorithm"}

    @property
    def n_distance_evaluations_(self) -> int:
        """Number of full distances that the last search computed."""
        check_is_fitted(self)
        return self._searched.get("counts", {}).get("distance", 0)

    @property
    def search_counts_(self) -> dict[str, int]:
        """Number of pairs that each stage of the last search examined.

        A pruned search has the stages "group", "member", "transport", "marginal" and
        "distance", omitting stages that examined nothing; a search through all models
        has only the last stage.
        """
        check_is_fitted(self)
        return dict(self._searched.get("counts", {}))

    def _check_parameters(self):
        metric = super()._check_parameters()
        if self.algorithm == "pruned":
            check_prunable(metric is not None and has_bounds(metric), self.metric)
        return metric

    def _fit_references(self, X, y=None, *, metric, n_voters=1):
        """Keep the models of `X`; there must be at least `n_voters`."""
        X = self._checked(X, y, reset=True)
        check_one_each(X, y)
        # scikit-learn compares the two numbers at the first query; here that would be
        # after all models have been fitted. Only one of its common checks fits fewer
        # samples than neighbours (one sample), and it accepts "n_samples = 1" in the
        # error.
        check_neighbor_count(n_voters, len(X))
        self.n_samples_fit_ = len(X)
        self._given = X if self._precomputed else None
        self.models_ = self._learned_models(X, y)
        if self.algorithm == "pruned" and self.models_ is not None:
            check_prunable(can_prune(metric, self.models_), self.metric)
        # Searches write here, so that only `fit` adds attributes.
        self._searched = {}

    def _add_references(self, X, metric):
        """Add the models of `X` to the references; return them."""
        models = self._models(X)
        grown = HMMBatch.concatenate([self.models_, models])
        index = self._made_index(metric)
        # Extending an index costs only as much as the added models.
        if index is not None:
            index = index.added(models) if index.takes(models) else None
        self._searched = {"index": (self._purpose(metric), index)}
        self.models_, self.n_samples_fit_ = grown, len(grown)
        return models

    def _remove_references(self, indices, metric, n_voters=1):
        """Remove references; return the indices of those that stay."""
        n_models = self.n_samples_fit_
        gone = checked_rows(indices, n_models)
        kept = np.setdiff1d(np.arange(n_models), gone)
        if len(kept) < n_voters:
            raise ValueError(
                f"indices must leave at least {n_voters} of {n_models} models, got "
                f"{len({*gone.tolist()})} indices."
            )
        index = self._made_index(metric)
        index = None if index is None else index.kept(kept)
        self._searched = {"index": (self._purpose(metric), index)}
        self.models_, self.n_samples_fit_ = self.models_[kept], len(kept)
        return kept

    def __getstate__(self) -> Any:
        # The index is rebuilt from the models, so it need not be stored.
        state: Any = super().__getstate__()
        if "_searched" in state:
            state = {**state, "_searched": {}}
        return state

    @property
    def _n_references(self):
        return self.n_samples_fit_

    def _index(self, metric):
        """Return the index for pruned search, or None if all models are searched."""
        if self.algorithm == "brute" or self._precomputed:
            return None
        pruned = self.algorithm == "pruned"
        if not pruned and len(self.models_) < MIN_PRUNED:
            return None
        possible = can_prune(metric, self.models_)
        if pruned:
            check_prunable(possible, self.metric)
        if not possible:
            return None
        index = self._made_index(metric)
        if index is None:
            index = self._new_index(metric)
            # Both are stored at once: an interrupted build leaves nothing behind, and
            # other threads never see one without the other.
            self._searched["index"] = self._purpose(metric), index
        return index

    def _index_for(self, queries, metric):
        """Return the index that can search for queries, or None; raise if none can."""
        if queries is None or self._precomputed:
            return self._index(metric)
        check_same_features(queries, self.models_, ("X", "the models of fit"))
        if queries.observed is None:
            return self._index(metric)
        # Vectors of states have a coordinate for every channel.
        if self.algorithm not in {"auto", "brute"}:
            raise ValueError(
                f"algorithm={self.algorithm!r} needs queries that observed every "
                "feature, got models of which some lack one. Use algorithm='auto'."
            )
        return None

    def _new_index(self, metric):
        """Return the references arranged for a search."""
        return SearchIndex(self.models_, metric, n_jobs=self.n_jobs)

    def _purpose(self, metric):
        """Return the settings that an index depends on."""
        return (metric,)

    def _made_index(self, metric):
        """Return the index built for the current settings, or None."""
        made_for, index = self._searched.get("index", (None, None))
        return index if made_for == self._purpose(metric) else None

    def _question(self, X, n_neighbors=None):
        """Check a query; return its models, the number of neighbours, the distance."""
        metric = self._check_ready()
        chosen = self.n_neighbors if n_neighbors is None else n_neighbors
        n_neighbors = check_neighbor_count(chosen, self.n_samples_fit_ - (X is None))
        return self._queries(X), n_neighbors, metric

    def _queries(self, X):
        """Return `X` as models or distances; None stands for the references."""
        if X is None:
            return None
        return self._checked(X, reset=False) if self._precomputed else self._models(X)

    def _nearest(self, queries, n_neighbors, metric, radius=None):
        """Return distances and indices of the neighbours of checked queries.

        They are the nearest models, or all models within `radius` if it is given.
        """
        work = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        index = self._index_for(queries, metric)
        if index is not None:
            if radius is None:
                found = index.kneighbors(queries, n_neighbors, **work)
            else:
                found = index.radius_neighbors(queries, radius, **work)
            self._searched["counts"] = dict(index.counts)
            return found
        if self._precomputed:
            given = self._given if queries is None else queries
            distances = mixed_precomputed(given, self.alpha)
        else:
            models = self.models_ if queries is None else queries
            self._searched["counts"] = {"distance": len(models) * len(self.models_)}
            distances = all_pairs(models, self.models_, metric, **work)
        if radius is not None:
            return within_radius(distances, radius, has_own=queries is None)
        seek = nearest_others if queries is None else nearest
        return seek(distances, n_neighbors)

    def _vote(self, voter, targets, found, indices):
        """Return the voter, and the neighbours in the form that it takes."""
        # Only the order of neighbours and their weights count, so infinity may become
        # the largest float, which scikit-learn accepts, and an estimate below 0 may
        # become 0.
        found = np.clip(found, 0, np.finfo(float).max)
        size = self.n_samples_fit_
        voter = voter(found.shape[1], weights=self.weights, metric="precomputed")
        voter.fit(identity(size, format="csr"), targets)
        return voter, neighbor_graph(found, indices, size)
