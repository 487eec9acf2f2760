"""Nearest neighbours among models: retrieval."""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from skawhmm.neighbors._base import NeighborsMixin, can_grow
from skawhmm.sequences._forms import check_not_lengths
from skawhmm.utils._checks import check_real
from skawhmm.utils._interruption import all_or_nothing


class HMMRetriever(NeighborsMixin, BaseEstimator):
    """Find the models that are nearest to a query.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours that `kneighbors` finds.

    radius : float, default=1.0
        Largest distance of neighbours that `radius_neighbors` finds.

    metric : str or object, default="maw"
        Distance between two models: "maw", "iaw", "jaw", "kl", "coupling", "mmd" or an
        object.
        With "precomputed", `X` holds distances of shape (n_queries, n_models_fit), or
        components of shape (n_queries, n_models_fit, 2), which are mixed at `alpha`.

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
        lower bound of the distance rules out ("pruned"; for "maw", "iaw", "jaw" and
        "coupling" with ``p >= 1``). The neighbours are the same. By default pruned,
        where possible, among 500 models or more.

    n_jobs : int, default=None
        Number of joblib workers for the distances, threads by default.

    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    models_ : HMMBatch or None
        The models to choose from; None if distances were given.

    hmm_ : transformer or None
        The fitted `hmm`; None if `fit` was not given sequences.

    n_samples_fit_ : int
        Number of models to choose from.

    n_features_in_ : int
        Number of features of the models or sequences; of columns if `fit` was given a
        2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences or models that have
        names; of the columns, if it was given distances in a data frame.

    See Also
    --------
    KNeighborsHMMClassifier : Classification by the same neighbours.
    retrieval_curve : How good a retrieval is, if there are labels.

    Examples
    --------
    >>> from skawhmm import HMMRetriever, HMMTransformer
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=20, separation=2, random_state=0)
    >>> models = HMMTransformer(random_state=0).fit_transform(X)
    >>> retriever = HMMRetriever(n_neighbors=3).fit(models)
    >>> distances, indices = retriever.kneighbors(models[:2])
    >>> indices[:, 0], y[indices[0]]
    (array([0, 1]), array([0, 0, 0]))
    """

    _parameter_checks: ClassVar = {
        **NeighborsMixin._parameter_checks,
        "radius": partial(check_real, low=0, high=np.inf, allow_infinity=True),
    }
    _read_later: ClassVar = NeighborsMixin._read_later | {"radius"}

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        radius: float = 1.0,
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
        self.radius = radius
        self.metric = metric
        self.alpha = alpha
        self.p = p
        self.metric_params = metric_params
        self.hmm = hmm
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> "HMMRetriever":
        """Keep the models of `X`.

        Parameters
        ----------
        X : HMMBatch, list of array-like of shape (n_timesteps, n_features), or array
            Models or sequences; sequences may also be a 3-D array padded by NaN, or a
            2-D array whose rows are univariate. Distances or components between the
            models if ``metric="precomputed"``.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : HMMRetriever
            The fitted retriever.
        """
        metric = self._begin_fit()
        check_not_lengths(X, y)
        # There may be fewer models than `n_neighbors`: queries can ask for another
        # number, and `radius_neighbors` for none.
        self._fit_references(X, metric=metric)
        return self

    @available_if(can_grow)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> "HMMRetriever":
        """Add the models of `X` to those that are searched.

        Searches then give what they give after a `fit` with all models, to the last
        bit. The cost is that of what is added. A transformer of sequences that learns
        from its training sequences, such as ``HMMTransformer(init="pooled")``, keeps
        what it learned in `fit`.

        Parameters
        ----------
        X : HMMBatch or list of array-like of shape (n_timesteps, n_features)
            Models or sequences, in the form that `fit` was given. The first call of an
            unfitted retriever is `fit`.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : HMMRetriever
            The retriever; the models that were added have the last indices.
        """
        if not hasattr(self, "models_"):
            return self.fit(X, y)
        self._add_references(X, self._check_ready())
        return self

    @available_if(can_grow)
    @all_or_nothing
    def remove(self, indices: Any) -> "HMMRetriever":
        """Remove models from those that are searched.

        Parameters
        ----------
        indices : int, slice or array-like of int or bool
            The models, in the order in which they were given. At least one must stay.

        Returns
        -------
        self : HMMRetriever
            The retriever; the models that stay are numbered anew, in their order.
        """
        self._remove_references(indices, self._check_ready())
        return self

    def radius_neighbors(
        self, X: Any = None, radius: float | None = None, return_distance: bool = True
    ) -> Any:
        """Find the models within a distance of each query.

        Parameters
        ----------
        X : HMMBatch, list of array-like or array-like, default=None
            Queries in one of the forms that `fit` takes. By default the models
            themselves, none of which is its own neighbour.

        radius : float, default=None
            Largest distance; by default `radius` of the retriever.

        return_distance : bool, default=True
            Whether to return distances as well.

        Returns
        -------
        distances : ndarray of shape (n_queries,) of ndarray
            Distances in increasing order, if `return_distance`.

        indices : ndarray of shape (n_queries,) of ndarray
            Indices of the neighbours in the models of `fit`.
        """
        metric = self._check_ready()
        chosen = self.radius if radius is None else radius
        radius = check_real("radius", chosen, 0, np.inf, allow_infinity=True)
        queries, index = self._queries(X), self._index(metric)
        if index is not None:
            lists = index.radius_neighbors(
                queries, radius, n_jobs=self.n_jobs, verbose=self.verbose
            )
            self._searched["counts"] = dict(index.counts)
            found, indices = (_ragged(arrays) for arrays in lists)
            return (found, indices) if return_distance else indices
        distances = self._distances(queries, metric)
        near = distances <= radius
        if X is None:
            np.fill_diagonal(near, False)
        places = [np.flatnonzero(row) for row in near]
        places = [
            place[np.argsort(row[place], kind="stable")]
            for row, place in zip(distances, places, strict=True)
        ]
        found = _ragged(
            [row[place] for row, place in zip(distances, places, strict=True)]
        )
        return (found, _ragged(places)) if return_distance else _ragged(places)


def _ragged(arrays):
    """Return arrays of unequal length as scikit-learn does: an array of objects."""
    result = np.empty(len(arrays), dtype=object)
    result[:] = arrays
    return result
