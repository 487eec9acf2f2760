"""A collection of models in several files, which are searched as one."""

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from skawhmm.distances._resolve import fitted_metric
from skawhmm.models._checks import check_models
from skawhmm.neighbors._base import check_neighbor_count
from skawhmm.neighbors._retriever import HMMRetriever, ragged
from skawhmm.neighbors._search import nearest_of
from skawhmm.utils._checks import check_n_jobs, check_real, check_verbose
from skawhmm.utils._parallel import completed

# Number of files that a process keeps open.
MOST_OPEN = 64


class HMMShards:
    """Search a collection of models that is divided among several files.

    The files are written by :meth:`HMMRetriever.save`, with equal parameters. Each is
    searched by a joblib worker, which opens it once. On a dask cluster
    (``joblib.parallel_config("dask")``) the workers are its machines, all of which must
    see the files under the same names. Exact searches give the same results as one
    retriever with all models, to the last bit.

    Parameters
    ----------
    paths : sequence of str or path-like
        The files.

    n_jobs : int, default=None
        Number of joblib workers, threads by default.

    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    n_samples_fit_ : int
        Number of models in all files. Models are indexed through all files, in the
        order of `paths`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from skawhmm import HMMBatch, HMMRetriever
    >>> from skawhmm.datasets import make_seed_models
    >>> from skawhmm.neighbors import HMMShards
    >>> models = HMMBatch(**make_seed_models(n_models=300, random_state=0))
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> paths = [folder / "one.npz", folder / "two.npz"]
    >>> HMMRetriever(n_neighbors=3).fit(models[:100]).save(paths[0])
    >>> HMMRetriever(n_neighbors=3).fit(models[100:]).save(paths[1])
    >>> distances, indices = HMMShards(paths).kneighbors(models[:5])
    >>> whole = HMMRetriever(n_neighbors=3).fit(models).kneighbors(models[:5])
    >>> bool(np.all(distances == whole[0]) and np.all(indices == whole[1]))
    True
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        if isinstance(paths, str | bytes | os.PathLike) or not len(paths):
            raise TypeError(
                f"paths must be a list with at least one file, got {paths!r:.100}."
            )
        self.paths = [os.fspath(path) for path in paths]
        self.n_jobs = check_n_jobs("n_jobs", n_jobs)
        check_verbose("verbose", verbose)
        self.verbose = verbose
        shards = [_opened(path) for path in self.paths]
        for path, shard in zip(self.paths, shards, strict=True):
            _check_alike(self.paths[0], shards[0], path, shard)
        self._first = shards[0]
        sizes = [shard.n_samples_fit_ for shard in shards]
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        self.n_samples_fit_ = int(self._starts[-1])

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Find the nearest models of all files.

        Parameters
        ----------
        X : HMMBatch
            Queries.

        n_neighbors : int, default=None
            Number of neighbours per query; by default as in the saved retrievers.

        return_distance : bool, default=True
            Whether to return distances as well.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            Distances in increasing order, if `return_distance`.

        indices : ndarray of shape (n_queries, n_neighbors)
            Indices of the neighbours; neighbours at equal distance are in order of
            index.
        """
        chosen = self._first.n_neighbors if n_neighbors is None else n_neighbors
        number = check_neighbor_count(chosen, self.n_samples_fit_)
        found = self._found(X, "kneighbors", number)
        nearest = nearest_of(found, len(X), number)
        distances, indices = (np.array(parts) for parts in zip(*nearest, strict=True))
        return (distances, indices) if return_distance else indices

    def radius_neighbors(
        self, X: Any, radius: float | None = None, return_distance: bool = True
    ) -> Any:
        """Find the models of all files within a distance of each query.

        Parameters
        ----------
        X : HMMBatch
            Queries.

        radius : float, default=None
            Largest distance; by default as in the saved retrievers.

        return_distance : bool, default=True
            Whether to return distances as well.

        Returns
        -------
        distances : ndarray of shape (n_queries,) of ndarray
            Distances in increasing order, if `return_distance`.

        indices : ndarray of shape (n_queries,) of ndarray
            Indices of the neighbours.
        """
        chosen = self._first.radius if radius is None else radius
        limit = check_real("radius", chosen, 0, np.inf, allow_infinity=True)
        found = self._found(X, "radius_neighbors", limit)
        nearest = nearest_of(found, len(X), None)
        distances, indices = (ragged(parts) for parts in zip(*nearest, strict=True))
        return (distances, indices) if return_distance else indices

    def _found(self, X, method, limit):
        """Return queries, indices and distances of the neighbours in all files."""
        check_models("X", X)
        tasks = [(path, method, limit) for path in self.paths]
        results = completed(
            _searched_shard,
            X._bare(),
            tasks,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            label="files",
        )
        parts = []
        for start, (query, reference, distances) in zip(
            self._starts[:-1], results, strict=True
        ):
            parts.append((query, start + reference, distances))
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


def _searched_shard(queries, path, method, limit):
    """Return queries, references and distances of the neighbours in one file."""
    retriever = _opened(path)
    if method == "kneighbors":
        limit = min(limit, retriever.n_samples_fit_)
    distances, indices = getattr(retriever, method)(queries, limit)
    query = np.repeat(np.arange(len(indices)), [len(row) for row in indices])
    return query, np.concatenate([*indices]), np.concatenate([*distances])


def _opened(path):
    """Return the retriever in a file, read again if the file has changed."""
    status = os.stat(path)
    return _loaded(path, status.st_mtime_ns, status.st_ino)


@lru_cache(MOST_OPEN)
def _loaded(path, time, number):  # noqa: ARG001
    # Each file is one task, which is not divided further.
    return HMMRetriever.load(path).set_params(n_jobs=1, verbose=0)


def _check_alike(first_path, first, path, shard):
    """Raise unless two files can be searched as one collection."""
    metric = shard._check_ready()
    if fitted_metric(metric, shard.models_) != metric:
        raise ValueError(
            f"Files that are searched as one must have a distance that learns nothing "
            f"from their models, got {metric!r} in {path!r}. Set its parameters."
        )
    one, two = ({**s.get_params(deep=False), "hmm": None} for s in (first, shard))
    differing = [name for name in one if one[name] != two[name]]
    if differing:
        name = differing[0]
        raise ValueError(
            f"Files that are searched as one must have equal parameters, got "
            f"{name}={one[name]!r} in {first_path!r} and {two[name]!r} in {path!r}."
        )
    # States may be of another family, or channels may differ.
    kinds = [
        (s.models_.emission.name, s.models_.n_features, s.models_.feature_names)
        for s in (first, shard)
    ]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"Files that are searched as one must hold models of the same kind, got "
            f"(emission, n_features, feature_names) = {kinds[0]} in {first_path!r} and "
            f"{kinds[1]} in {path!r}."
        )
