"""Nearest neighbours among models: retrieval."""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import ne
from os import PathLike, fspath
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from skawhmm._estimator import check_hmm
from skawhmm.neighbors._approximate import ApproximateIndex, check_approximable
from skawhmm.neighbors._base import ALGORITHMS, NeighborsMixin, can_grow
from skawhmm.neighbors._files import load_retriever, save_retriever
from skawhmm.sequences._checks import check_channels
from skawhmm.sequences._forms import check_not_lengths
from skawhmm.utils._checks import check_boolean, check_choice, check_real
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._parameters import Unused

APPROXIMATE = "approximate"


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

    algorithm : {"auto", "pruned", "brute", "approximate"}, default="auto"
        Whether to compare a query with all models ("brute"), or to skip those that a
        lower bound of the distance rules out ("pruned"; for "maw", "iaw", "jaw" and
        "coupling" with ``p >= 1``). The neighbours are the same. By default pruned,
        where possible, from 500 models on. With "approximate", a query is only compared
        with models of the groups nearest to it, whatever the distance, and a few
        neighbours may be missed; it needs models that observed every feature, and
        states with coordinates, such as Gaussian ones.

    min_recall : float in (0, 1], default=0.99
        Fraction of the true neighbours that an approximate search should find. A higher
        one makes the search compare more groups and candidates.

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

    recall_ : float
        Fraction of the `n_neighbors` nearest models that an approximate search found
        for held-out models that had no part in choosing the numbers of groups and
        candidates.

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
    retrieval_curve : Precision and recall of a retrieval, given labels.

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
        "algorithm": partial(check_choice, choices=(*ALGORITHMS, APPROXIMATE)),
        "min_recall": partial(check_real, low=0, high=1, include_low=False),
    }
    _unused: ClassVar[Sequence[Unused]] = (
        *NeighborsMixin._unused,
        Unused(("min_recall",), "algorithm", partial(ne, APPROXIMATE)),
    )
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
        min_recall: float = 0.99,
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
        self.min_recall = min_recall
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
        # There may be fewer models than `n_neighbors`: a query can ask for another
        # number, and `radius_neighbors` does not use it.
        self._fit_references(X, metric=metric)
        if self._is_approximate:
            self._index(metric)
        return self

    @property
    def _is_approximate(self):
        return self.algorithm == APPROXIMATE

    def _check_parameters(self):
        if self._is_approximate and self._precomputed:
            raise ValueError(
                "algorithm='approximate' needs models or sequences, got "
                "metric='precomputed'. Use algorithm='auto'."
            )
        return super()._check_parameters()

    def _index(self, metric):
        index = self._made_index(metric) if self._is_approximate else None
        if self._is_approximate and index is None:
            check_approximable(self.models_)
            index = ApproximateIndex(
                self.models_,
                metric,
                self.n_neighbors,
                self.min_recall,
                n_jobs=self.n_jobs,
            )
            self._searched["index"] = self._purpose(metric), index
        return index if self._is_approximate else super()._index(metric)

    def _purpose(self, metric):
        return (metric, self.min_recall) if self._is_approximate else (metric,)

    @property
    def recall_(self) -> float:
        """Fraction of the nearest neighbours of held-out models that were found."""
        if not self._is_approximate:
            raise AttributeError(
                "recall_ is there with algorithm='approximate', got "
                f"algorithm={self.algorithm!r}, which finds all neighbours."
            )
        return self._index(self._check_ready()).recall

    @available_if(can_grow)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> "HMMRetriever":
        """Add the models of `X` to those that are searched.

        Searches then give the same results as after a `fit` with all models, to the
        last bit. The cost depends only on the added models. A transformer of sequences
        that learns from its training sequences, such as
        ``HMMTransformer(init="pooled")``, keeps what it learned in `fit`.

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

    def certified(self, X: Any, indices: ArrayLike) -> NDArray[np.bool_]:
        """Return for which queries the neighbours found are proven to be the nearest.

        The proof uses lower bounds of the distance to all other models and takes about
        as long as an exact search. Without bounds nothing is proven.

        Parameters
        ----------
        X : HMMBatch, list of array-like or array-like
            Queries in one of the forms that `fit` takes.

        indices : array-like of int of shape (n_queries, n_neighbors)
            The neighbours of each query, as `kneighbors` returns them.

        Returns
        -------
        certified : ndarray of bool of shape (n_queries,)
            True if every other model is farther than all given ones; False if another
            is as near, or if the distance has no bounds.

        Examples
        --------
        >>> from skawhmm import HMMRetriever, HMMTransformer
        >>> from skawhmm.datasets import make_hmm_sequences
        >>> X, y = make_hmm_sequences(n_sequences=60, separation=3, random_state=0)
        >>> models = HMMTransformer(random_state=0).fit_transform(X)
        >>> retriever = HMMRetriever(3, algorithm="approximate").fit(models[10:])
        >>> distances, indices = retriever.kneighbors(models[:5])
        >>> retriever.certified(models[:5], indices)
        array([ True,  True,  True,  True,  True])
        """
        metric = self._check_ready()
        queries = self._queries(X)
        rows = check_neighbors("indices", indices, len(queries), self.n_samples_fit_)
        index = self._index_for(queries, metric)
        index = getattr(index, "exact", index)
        if index is None:
            return np.zeros(len(queries), bool)
        return index.certified(queries, rows, n_jobs=self.n_jobs, verbose=self.verbose)

    @available_if(can_grow)
    def save(self, path: str | PathLike[str]) -> None:
        """Write the models and the index to a file, completely or not at all.

        The file is an archive of arrays without pickles, usually named ``*.npz``. It
        contains neither the sequences nor the transformer that made the models.

        Parameters
        ----------
        path : str or path-like
            The file. If it exists, it is replaced.
        """
        metric = self._check_ready()
        params = self.get_params(deep=False)
        del params["hmm"]
        save_retriever(path, params, self.models_, self._index(metric))

    @classmethod
    def load(
        cls, path: str | PathLike[str], *, hmm: Any = None, memory_map: bool = True
    ) -> "HMMRetriever":
        """Read a retriever that `save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.

        hmm : transformer, default=None
            Fitted transformer that turns sequences into models, so that queries may be
            sequences. By default queries must be models.

        memory_map : bool, default=True
            Whether models and index stay in the file, which must not be changed, until
            a search needs them: a million models open in a moment. If False, the whole
            file is read and its checksums are verified.

        Returns
        -------
        retriever : HMMRetriever
            The retriever; it finds the same neighbours as the saved one.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from skawhmm import HMMBatch, HMMRetriever
        >>> from skawhmm.datasets import make_seed_models
        >>> models = HMMBatch(**make_seed_models(n_models=600, random_state=0))
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "retriever.npz"
        >>> HMMRetriever(n_neighbors=3, metric="jaw").fit(models[5:]).save(path)
        >>> distances, indices = HMMRetriever.load(path).kneighbors(models[:2])
        >>> indices.shape
        (2, 3)
        """
        check_hmm("hmm", hmm)
        check_boolean("memory_map", memory_map)
        params, models, make_index = load_retriever(path, memory_map)
        try:
            retriever = cls(**params, hmm=hmm)
            metric = retriever._begin_fit()
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{fspath(path)!r} must hold the parameters of a retriever: {error}"
            ) from error
        check_channels(retriever, models.n_features, models.feature_names, reset=True)
        retriever.hmm_, retriever._given = hmm, None
        retriever.models_, retriever.n_samples_fit_ = models, len(models)
        retriever._searched = {
            "index": (retriever._purpose(metric), make_index(metric))
        }
        return retriever

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
        if self._is_approximate:
            raise ValueError(
                "radius_neighbors needs algorithm='auto', 'pruned' or 'brute', got "
                "algorithm='approximate', which finds a given number of neighbours."
            )
        chosen = self.radius if radius is None else radius
        radius = check_real("radius", chosen, 0, np.inf, allow_infinity=True)
        lists = self._nearest(self._queries(X), None, metric, radius)
        found, indices = (ragged(arrays) for arrays in lists)
        return (found, indices) if return_distance else indices


def ragged(arrays):
    """Return arrays of unequal length as an array of objects, as scikit-learn does."""
    result = np.empty(len(arrays), dtype=object)
    result[:] = arrays
    return result


def check_neighbors(name, indices, n_queries, n_models):
    """Return indices of models, a row per query, or raise."""
    rows = np.asarray(indices)
    wanted = f"{name} must hold integers of shape ({n_queries}, n_neighbors)"
    if rows.dtype.kind not in "iu" or rows.ndim != 2 or len(rows) != n_queries:
        raise ValueError(f"{wanted}, got {rows.dtype} of shape {rows.shape}.")
    if not rows.size or rows.min() < 0 or rows.max() >= n_models:
        raise ValueError(
            f"{wanted} from 0 to {n_models - 1}, got "
            f"{f'{rows.min()} to {rows.max()}' if rows.size else 'none'}."
        )
    return rows.astype(np.int64)
