"""What estimators by nearest models have in common."""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, identity
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from skawhmm._base import (
    check_precomputed,
    fit_models,
    mixed_precomputed,
    reference_distances,
    transformed,
)
from skawhmm.distances._resolve import resolve_metric
from skawhmm.neighbors._from_distances import nearest, nearest_others, neighbor_graph
from skawhmm.neighbors._search import SearchIndex, can_prune
from skawhmm.sequences._input import check_input
from skawhmm.utils._checks import check_choice, check_neighbor_count, check_prunable

ALGORITHMS = ("auto", "pruned", "brute")

# Among fewer models a search through all is as fast as one by bounds.
MIN_PRUNED = 500


class NeighborsMixin:
    """What estimators by nearest models have in common.

    A subclass has the parameters `n_neighbors`, `metric`, `alpha`, `p`,
    `metric_params`, `hmm`, `algorithm`, `memory`, `n_jobs` and `verbose`.
    """

    n_neighbors: int
    weights: Any
    metric: Any
    alpha: float
    hmm: Any
    memory: Any
    algorithm: str
    models_: Any
    p: float
    metric_params: Any
    n_jobs: int | None
    verbose: int

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
            How many; by default as the parameter says.

        return_distance : bool, default=True
            Whether to return distances as well.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            Distances in increasing order, if `return_distance`.

        indices : ndarray of shape (n_queries, n_neighbors)
            Places of the neighbours in the training data. Of neighbours at equal
            distance the first comes first.
        """
        check_is_fitted(self)
        found, indices = self._nearest(X, n_neighbors)
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
            How many; by default as the parameter says.

        mode : {"connectivity", "distance"}, default="connectivity"
            Whether the entries are ones or distances.

        Returns
        -------
        graph : csr_matrix of shape (n_queries, n_models_fit)
            The graph; rows are sorted by distance.
        """
        check_is_fitted(self)
        check_choice("mode", mode, ("connectivity", "distance"))
        found, indices = self._nearest(X, n_neighbors)
        values = found if mode == "distance" else np.ones_like(found)
        return neighbor_graph(values, indices, self.n_samples_fit_)

    def _fit_references(self, X, y=None):
        check_neighbor_count(self.n_neighbors, np.inf)
        if self._precomputed:
            X = check_precomputed(self, X, reset=True, square=True)
            check_consistent_length(X, y)
            self._between_references = mixed_precomputed(X, self.alpha)
            self.hmm_, self.models_ = None, None
        else:
            X = check_input(self, X, reset=True)
            check_consistent_length(X, y)
            self._between_references = None
            self.hmm_, self.models_ = fit_models(self.hmm, X, y, self.memory)
        self.n_samples_fit_ = len(X)
        check_choice("algorithm", self.algorithm, ALGORITHMS)
        # What searches change, so that `fit` alone adds attributes.
        self._searched = {}

    @property
    def n_distance_evaluations_(self) -> int:
        """Number of full distances that the last search computed."""
        check_is_fitted(self)
        return self._searched.get("counts", {}).get("distance", 0)

    @property
    def search_counts_(self) -> dict[str, int]:
        """Number of pairs that each stage of the last search looked at.

        A pruned search has the stages "centroid", "relaxed", "marginal" and "distance";
        a search through everything only the last one.
        """
        check_is_fitted(self)
        return dict(self._searched.get("counts", {}))

    def __getstate__(self) -> Any:
        # The index is made again from the models; it need not be stored with them.
        state: Any = super().__getstate__()
        if "_searched" in state:
            state = {**state, "_searched": {}}
        return state

    def _index(self):
        """Return the index for pruned search, or None if everything is searched."""
        if self.algorithm == "brute" or self._precomputed:
            return None
        metric = resolve_metric(
            self.metric, alpha=self.alpha, p=self.p, metric_params=self.metric_params
        )
        possible = can_prune(metric, self.models_)
        if self.algorithm == "pruned":
            check_prunable(possible, self.metric)
        elif not possible or self.memory is not None or len(self.models_) < MIN_PRUNED:
            return None
        settings = self.metric, self.alpha, self.p, repr(self.metric_params)
        if self._searched.get("settings") != settings:
            self._searched["settings"] = settings
            self._searched["index"] = SearchIndex(self.models_, metric)
        return self._searched["index"]

    def _queries(self, X):
        """Return the models of `X`; None stands for the references."""
        if X is None:
            return None
        X = check_input(self, X, reset=False)
        return transformed(self.hmm_, X, self.memory)

    def _distances(self, X):
        """Return the distances of `X` to the references; theirs if X is None."""
        if self._precomputed:
            if X is None:
                return self._between_references
            X = check_precomputed(self, X, reset=False)
            return mixed_precomputed(X, self.alpha)
        models = self._queries(X)
        models = self.models_ if models is None else models
        self._searched["counts"] = {"distance": len(models) * len(self.models_)}
        return reference_distances(models, self.models_, self, self.alpha)

    def _nearest(self, X, n_neighbors=None):
        """Return distances and indices of neighbours; the one place that seeks them."""
        chosen = self.n_neighbors if n_neighbors is None else n_neighbors
        n_neighbors = check_neighbor_count(chosen, self.n_samples_fit_ - (X is None))
        index = self._index()
        if index is not None:
            found = index.kneighbors(
                self._queries(X), n_neighbors, n_jobs=self.n_jobs, verbose=self.verbose
            )
            self._searched["counts"] = dict(index.counts)
            return found
        seek = nearest_others if X is None else nearest
        return seek(self._distances(X), n_neighbors)

    def _vote(self, voter, targets, found, indices):
        """Return the voter, and the neighbours in the form that it takes."""
        # Only the order of neighbours and their weights count, so infinity may be
        # the largest number, which scikit-learn accepts, and an estimate below 0 be 0.
        found = np.clip(found, 0, np.finfo(float).max)
        size = self.n_samples_fit_
        voter = voter(found.shape[1], weights=self.weights, metric="precomputed")
        voter.fit(identity(size, format="csr"), targets)
        return voter, neighbor_graph(found, indices, size)

    @property
    def _precomputed(self):
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.allow_nan = not self._precomputed
        tags.input_tags.three_d_array = True
        return tags
