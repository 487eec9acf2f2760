"""Distances between all models of two batches, computed in tiles by workers."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from skawhmm.distances._base import Distance
from skawhmm.distances._matrix_file import check_matrix, open_matrix, tile_checksum
from skawhmm.distances._resolve import (
    check_aggregated,
    check_registering,
    fitted_metric,
    resolve_metric,
)
from skawhmm.distances._tiles import MAX_TILE, Tiles, tile_edge
from skawhmm.models._archive import FOREIGN_SUFFIXES
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import (
    check_models,
    check_same_features,
    check_single_model,
)
from skawhmm.utils._checks import (
    WORK_CHECKS,
    check_float_type,
    check_not_nan,
    check_parameters,
    check_real,
)
from skawhmm.utils._digest import content_digest
from skawhmm.utils._parallel import completed
from skawhmm.utils._parameters import kind_of


def pairwise_hmm_distances(
    X: HMMBatch,
    Y: HMMBatch | None = None,
    metric: str | Distance = "maw",
    *,
    alpha: float | None = None,
    p: float | None = None,
    metric_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    out: str | PathLike[str] | NDArray[Any] | None = None,
    dtype: Any = np.float64,
) -> NDArray[Any]:
    """Return all distances between the models of `X` and of `Y`.

    Parameters
    ----------
    X : HMMBatch
        The models.

    Y : HMMBatch, default=None
        The models to compare with; by default `X`, each pair computed once.

    metric : {"maw", "iaw", "jaw", "kl", "coupling", "mmd"} or object, default="maw"
        Distance between two models.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw"
        and "iaw", 0.5 for "jaw". Must be None if the distance has no components, or if
        `metric` is an object, which has its own.

    p : float in (0, 2], default=None
        Order of the distance, by default 1. Must be None if the distance has no
        order, or if `metric` is an object, which has its own.

    metric_params : dict, default=None
        Further parameters of the distance.

    n_jobs : int, default=None
        Number of joblib workers, threads by default. None means 1 unless in a
        :obj:`joblib.parallel_config` context. It never changes the result.

    verbose : int, default=0
        Whether to show a progress bar.

    out : str, path-like or ndarray of shape (n_models_X, n_models_Y), default=None
        Where to put the distances. A file name creates a ``.npy`` file, which may be
        larger than memory. After an interruption, the same call continues where it
        stopped and recomputes anything damaged since. A call with other models or
        parameters, or while another process writes to the file, raises an error.

    dtype : dtype, default=float64
        Floating-point type of the returned distances. They are computed in double
        precision.

    Returns
    -------
    distances : ndarray of shape (n_models_X, n_models_Y)
        The distances; `out` if it is an array. The distance of a pair is the same to
        the last bit whatever else is in the batches, and with any number of workers.

    Examples
    --------
    >>> from skawhmm import HMMBatch, pairwise_hmm_distances
    >>> models = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]],
    ...     means=[[[0.0], [2.0]], [[0.0], [2.0]]],
    ...     covars=[[[1.0], [1.0]], [[1.0], [1.0]]],
    ... )
    >>> pairwise_hmm_distances(models, alpha=0.5)
    array([[0. , 0.8],
           [0.8, 0. ]])
    """
    check_parameters({"n_jobs": n_jobs, "verbose": verbose}, WORK_CHECKS)
    chosen = resolve_metric(metric, alpha=alpha, p=p, metric_params=metric_params)
    dtype = check_float_type("dtype", dtype)
    check_models("X", X)
    problem = pair_problem(X, None if Y is None else check_models("Y", Y), chosen)
    work: Any = {"n_jobs": n_jobs, "verbose": verbose}
    if out is None or isinstance(out, np.ndarray):
        return distances_in_array(problem, out, dtype, **work)
    if isinstance(out, str | PathLike):
        return distances_in_file(problem, out, dtype, **work)
    raise TypeError(
        f"out must be None, an array or the name of a file, got {out!r:.60}."
    )


def pairwise_hmm_distances_chunked(
    X: HMMBatch,
    Y: HMMBatch | None = None,
    metric: str | Distance = "maw",
    *,
    alpha: float | None = None,
    p: float | None = None,
    metric_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    max_memory: float = 256.0,
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Generate the distances between models a few rows at a time.

    Parameters
    ----------
    X : HMMBatch
        The models.

    Y : HMMBatch, default=None
        The models to compare with; by default `X`.

    metric : {"maw", "iaw", "jaw", "kl", "coupling", "mmd"} or object, default="maw"
        Distance between two models.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw"
        and "iaw", 0.5 for "jaw". Must be None if the distance has no components, or if
        `metric` is an object, which has its own.

    p : float in (0, 2], default=None
        Order of the distance, by default 1. Must be None if the distance has no
        order, or if `metric` is an object, which has its own.

    metric_params : dict, default=None
        Further parameters of the distance.

    n_jobs : int, default=None
        Number of joblib workers, as in :func:`pairwise_hmm_distances`.

    verbose : int, default=0
        Whether to show a progress bar.

    max_memory : float, default=256.0
        Largest size of a chunk in megabytes; a chunk has at least one row.

    Yields
    ------
    rows : slice
        The models of `X` that the chunk belongs to.

    distances : ndarray of shape (n_rows, n_models_Y)
        Their distances to all models of `Y`.

    Examples
    --------
    The nearest neighbour of each of five models, with at most two rows of distances in
    memory. Column 0 of the sorted distances is the model itself:

    >>> from skawhmm import HMMBatch
    >>> from skawhmm.distances import pairwise_hmm_distances_chunked
    >>> from skawhmm.datasets import make_seed_models
    >>> models = HMMBatch(**make_seed_models(n_models=5, random_state=0))
    >>> for rows, distances in pairwise_hmm_distances_chunked(models, max_memory=8e-5):
    ...     print(rows, distances.argsort(axis=1)[:, 1])
    slice(0, 2, None) [3 3]
    slice(2, 4, None) [3 0]
    slice(4, 5, None) [2]
    """
    check_models("X", X)
    others = X if Y is None else check_models("Y", Y)
    limit = check_real("max_memory", max_memory, 0, np.inf, include_low=False)
    check_parameters({"n_jobs": n_jobs, "verbose": verbose}, WORK_CHECKS)
    chosen = resolve_metric(metric, alpha=alpha, p=p, metric_params=metric_params)
    chosen = fitted_metric(chosen, others)
    n_rows = max(int(limit * 1e6 / (8 * len(others))), 1)
    starts = range(0, len(X), n_rows)
    for first in tqdm(starts, "chunks", disable=not verbose):
        rows = slice(first, min(first + n_rows, len(X)))
        yield rows, all_pairs(X[rows], others, chosen, n_jobs=n_jobs)


def pairwise_hmm_components(
    X: HMMBatch,
    Y: HMMBatch | None = None,
    metric: str | Distance = "maw",
    *,
    p: float | None = None,
    metric_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the marginal and transition components of all pairs of models.

    The distance for any `alpha` is ``(1 - alpha) * marginal + alpha * transition``.

    Parameters
    ----------
    X : HMMBatch
        The models.

    Y : HMMBatch, default=None
        The models to compare with; by default `X`, each pair computed once.

    metric : {"maw", "iaw", "jaw"} or object, default="maw"
        Distance between two models, which must have components.

    p : float in (0, 2], default=None
        Order of the distance, by default 1. Must be None if the distance has no
        order, or if `metric` is an object, which has its own.

    metric_params : dict, default=None
        Further parameters of the distance.

    n_jobs : int, default=None
        Number of joblib workers, as in :func:`pairwise_hmm_distances`.

    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    marginal : ndarray of shape (n_models_X, n_models_Y)
        Distances between the states of the models.

    transition : ndarray of shape (n_models_X, n_models_Y)
        Distances between the transition matrices, after states have been registered.

    Examples
    --------
    >>> from skawhmm import HMMBatch, pairwise_hmm_components
    >>> models = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]],
    ...     means=[[[0.0], [2.0]], [[1.0], [3.0]]],
    ...     covars=[[[1.0], [1.0]], [[1.0], [1.0]]],
    ... )
    >>> marginal, transition = pairwise_hmm_components(models)
    >>> marginal
    array([[0., 1.],
           [1., 0.]])
    >>> transition
    array([[0. , 1.6],
           [1.6, 0. ]])
    """
    check_parameters({"n_jobs": n_jobs, "verbose": verbose}, WORK_CHECKS)
    chosen = resolve_metric(metric, p=p, metric_params=metric_params)
    check_aggregated(chosen, metric)
    check_models("X", X)
    Y = None if Y is None else check_models("Y", Y)
    both = all_pairs(X, Y, chosen, "components", (2,), n_jobs=n_jobs, verbose=verbose)
    return both[..., 0], both[..., 1]


def hmm_distance(
    a: HMMBatch,
    b: HMMBatch,
    metric: str | Distance = "maw",
    *,
    alpha: float | None = None,
    p: float | None = None,
    metric_params: Mapping[str, Any] | None = None,
) -> float:
    """Return the distance between two models.

    Parameters
    ----------
    a, b : HMMBatch
        Batches of one model each, such as ``models[0]``.

    metric : {"maw", "iaw", "jaw", "kl", "coupling", "mmd"} or object, default="maw"
        Distance between two models.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw"
        and "iaw", 0.5 for "jaw". Must be None if the distance has no components, or if
        `metric` is an object, which has its own.

    p : float in (0, 2], default=None
        Order of the distance, by default 1. Must be None if the distance has no
        order, or if `metric` is an object, which has its own.

    metric_params : dict, default=None
        Further parameters of the distance.

    Returns
    -------
    distance : float
        The distance.

    Examples
    --------
    >>> from skawhmm import HMMBatch, hmm_distance
    >>> models = HMMBatch(
    ...     transmats=[[[1.0]], [[1.0]]],
    ...     means=[[[0.0, 0.0]], [[3.0, 0.0]]],
    ...     covars=[[[1.0, 1.0]], [[1.0, 25.0]]],
    ... )
    >>> hmm_distance(models[0], models[1], alpha=0)
    5.0
    """
    check_single_model("a", a)
    check_single_model("b", b)
    check_same_features(a, b, ("a", "b"))
    chosen = resolve_metric(metric, alpha=alpha, p=p, metric_params=metric_params)
    both = HMMBatch.concatenate([bare_models(a), bare_models(b)])
    chosen = fitted_metric(chosen, both)
    return float(all_pairs(a, b, chosen)[0, 0])


def register_states(
    a: HMMBatch,
    b: HMMBatch,
    metric: str | Distance = "maw",
    *,
    p: float | None = None,
    metric_params: Mapping[str, Any] | None = None,
) -> NDArray[np.float64]:
    """Return which state of one model corresponds to which state of another.

    Parameters
    ----------
    a, b : HMMBatch
        Batches of one model each, such as ``models[0]``.

    metric : {"maw", "iaw", "jaw"} or object, default="maw"
        Distance that registers the states.

    p : float in (0, 2], default=None
        Order of the distance, by default 1. Must be None if the distance has no
        order, or if `metric` is an object, which has its own.

    metric_params : dict, default=None
        Further parameters of the distance.

    Returns
    -------
    plan : ndarray of shape (n_components_a, n_components_b)
        Joint probability of each state of `a` and each state of `b`. Rows sum to
        the weights of `a`, columns to the weights of `b`.

    Examples
    --------
    >>> from skawhmm import HMMBatch, register_states
    >>> models = HMMBatch(
    ...     transmats=[[[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]],
    ...     means=[[[0.0], [9.0]], [[8.0], [1.0]]],
    ...     covars=[[[1.0], [1.0]], [[1.0], [1.0]]],
    ... )
    >>> register_states(models[0], models[1])
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    check_single_model("a", a)
    check_single_model("b", b)
    chosen = resolve_metric(metric, p=p, metric_params=metric_params)
    check_registering(chosen, metric)
    check_same_features(a, b, ("a", "b"))
    models = HMMBatch.concatenate([bare_models(a), bare_models(b)])
    plan = registrations(models, chosen, np.array([0]), np.array([1]))[0]
    return plan[: a.n_components[0], : b.n_components[0]]


def registrations(models, metric, index_a, index_b):
    """Return the registration of the states of each pair of models."""
    first, second = oriented(models.keys, index_a, index_b)
    plans = metric.registrations(metric.prepare(models), first, second)
    swapped = first != index_a
    plans[swapped] = plans[swapped].swapaxes(1, 2)
    return plans


def bare_models(models):
    """Return the models without counts, and without info, whose columns may differ."""
    return models._changed(_info={}, counts=None)


class PairProblem(NamedTuple):
    """All pairs of two batches, ready to be compared tile by tile.

    `models` holds the models of both batches; the second batch begins at `offset`.
    """

    models: HMMBatch
    metric: Any
    tiles: Tiles
    offset: int


def pair_problem(X, Y, metric):
    """Return all pairs of two batches, or of `X` with itself if `Y` is None.

    If `Y` holds the same models as `X`, half of the pairs are enough as well.
    """
    others = X if Y is None else Y
    check_same_features(X, others)
    metric = fitted_metric(metric, others)
    if Y is X or (Y is not None and _same_models(X, Y)):
        Y = None
    models = X if Y is None else HMMBatch.concatenate([bare_models(X), bare_models(Y)])
    shape, limit = (len(X), len(others)), getattr(metric, "max_tile", MAX_TILE)
    edge = tile_edge(shape, models.transmats.shape[1], limit)
    tiles = Tiles(shape, edge, Y is None and metric.symmetric)
    return PairProblem(models, metric, tiles, 0 if Y is None else len(X))


def all_pairs(X, Y, metric, method="distances", tail=(), *, n_jobs=None, verbose=0):
    """Return the results of a method of a distance for all pairs, in memory.

    `tail` is the shape of the result of one pair; the other parameters are those of
    `pairwise_hmm_distances`, for a distance that is already an object.
    """
    problem = pair_problem(X, Y, metric)
    matrix = _empty_matrix((*problem.tiles.shape, *tail), np.float64)
    for tile, values in computed_tiles(problem, method, n_jobs, verbose):
        fill_tile(matrix, problem.tiles, tile, values)
    return matrix


def computed_tiles(problem, method, n_jobs, verbose):
    """Return an iterator of tiles and the results of a method for their pairs."""
    models, metric, tiles, offset = problem
    results = completed(
        getattr(metric, method),
        metric.prepare(models),
        TilePairs(tiles, models.keys if metric.symmetric else None, offset),
        n_jobs=n_jobs,
        verbose=verbose,
        label="tiles",
    )
    return zip(tiles, results, strict=True)


def fill_tile(matrix, tiles, tile, values):
    """Write the values of a tile's pairs, mirrored; return the tile of the matrix."""
    row, column = tile
    shape = row.stop - row.start, column.stop - column.start
    if tiles.mirrored and row == column:
        upper = np.triu_indices(shape[0])
        block = np.empty((*shape, *values.shape[1:]))
        block[upper] = values
        block[upper[::-1]] = values
    else:
        block = values.reshape(*shape, *values.shape[1:])
    check_not_nan("metric", block, first=(row.start, column.start))
    matrix[row, column] = block
    if tiles.mirrored:
        matrix[column, row] = block.swapaxes(0, 1)
    return matrix[row, column]


def distances_in_array(problem, matrix, dtype, *, n_jobs, verbose):
    """Return distances in a new array, or in the array that a caller gave."""
    shape = problem.tiles.shape
    if matrix is None:
        matrix = _empty_matrix(shape, dtype)
    else:
        check_matrix("out", matrix, shape)
        if dtype not in (np.float64, matrix.dtype):
            raise ValueError(
                f"dtype must be the dtype of out ({matrix.dtype}), or the default, got "
                f"{dtype}."
            )
    for tile, values in computed_tiles(problem, "distances", n_jobs, verbose):
        fill_tile(matrix, problem.tiles, tile, values)
    return matrix


def distances_in_file(problem, path, dtype, *, n_jobs, verbose):
    """Return distances in a file, which may be continued from an earlier call."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix in FOREIGN_SUFFIXES - {".npy"}:
        raise ValueError(
            f"out must name a file of one array, such as 'matrix.npy', got "
            f"{os.fspath(path)!r}, which names another format."
        )
    models, metric, tiles, offset = problem
    plan = {**_plan(models, metric), "tiles": len(tiles), "with_itself": offset == 0}
    matrix, journal = open_matrix(path, tiles.shape, dtype, plan)
    with journal:
        if journal.checksums:
            tiles = _missing(tiles, matrix, journal.checksums)
        if tiles:
            left = problem._replace(tiles=tiles)
            results = computed_tiles(left, "distances", n_jobs, verbose)
            for k, (tile, values) in zip(tiles.numbers, results, strict=True):
                written = fill_tile(matrix, tiles, tile, values)
                journal.add(int(k), tile_checksum(written), matrix)
            journal.secure(matrix)
    return matrix


def _empty_matrix(shape, dtype):
    """Return a matrix to be filled; if it does not fit, an error says what to do."""
    try:
        return np.empty(shape, dtype)
    except MemoryError as error:
        size = np.prod(shape, dtype=float) * np.dtype(dtype).itemsize / 1e9
        raise MemoryError(
            f"Distances between {shape[0]} and {shape[1]} models need {size:.1f} GB of "
            "memory, for which there is no room. pairwise_hmm_distances writes them to "
            "a file (out='matrix.npy') and stores them in half of the space "
            "(dtype='float32'); pairwise_hmm_distances_chunked gives a few rows at a "
            "time."
        ) from error


def _missing(tiles, matrix, checksums):
    """Return the tiles that are missing from a file, or have changed there."""
    numbers = np.array(
        [
            k
            for k, tile in zip(tiles.numbers, tiles, strict=True)
            if k not in checksums
            or not _is_whole(matrix, tile, tiles.mirrored, checksums[k])
        ],
        np.intp,
    )
    return Tiles(tiles.shape, tiles.edge, tiles.mirrored, numbers)


def _is_whole(matrix, tile, mirrored, checksum):
    """Whether a tile in a file, and its mirror image, are unchanged."""
    row, column = tile
    values = matrix[row, column]
    if mirrored and not np.array_equal(values, matrix[column, row].swapaxes(0, 1)):
        return False
    return tile_checksum(values) == checksum


def _plan(models, metric):
    """Return the description that identifies a matrix in a file."""
    if hasattr(metric, "random_state") and metric.random_state is None:
        raise ValueError(
            "out can name a file only if a later call gives the same distances: "
            f"random_state of {type(metric).__name__} must be an integer or a "
            "RandomState, got None."
        )
    try:
        digests = {"models": models_digest(models), "content": content_digest(metric)}
    except TypeError as error:
        raise ValueError(
            "out can name a file only if a later call can tell whether it asks for "
            f"the same distances, but {error}. Give out as an array."
        ) from error
    shown = ", ".join(
        f"{name}={value!r}" if isinstance(value, float | int | str) else f"{name}=..."
        for name, value in vars(metric).items()
    )
    metric = f"{kind_of(metric).__name__}({shown})"
    return {**digests, "metric": metric, "skawhmm": version("skawhmm")}


def models_digest(models):
    """Return a text that is equal only for models that no distance distinguishes."""
    chains = models.transmats, models.weights, models.startprobs
    return content_digest((models.emission, chains, models.sequences))


def content_keys(models):
    """Return one uint64 per model, equal if states, chains and sequences are equal."""
    keys = np.empty(len(models), np.uint64)
    for n, size in enumerate(models.n_components):
        digest = hashlib.blake2b(models.keys[n].tobytes(), digest_size=8)
        # Adding zero turns -0.0 into 0.0, whose bytes differ.
        digest.update((models.startprobs[n, :size] + 0.0).tobytes())
        if models.sequences is not None:
            digest.update(content_digest(models.sequences[n]).encode())
        keys[n] = int.from_bytes(digest.digest(), "little")
    return keys


def _same_models(X, Y):
    return len(X) == len(Y) and np.array_equal(content_keys(X), content_keys(Y))


class TilePairs(Sequence):
    """The pairs of models in each tile, as two arrays of indices, made on demand.

    Of a tile on the diagonal of a symmetric matrix, they are the upper half. With
    `keys`, the pairs are ordered by content.
    """

    def __init__(self, tiles, keys, offset):
        self.tiles = tiles
        self.keys = keys
        self.offset = offset

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, place):
        row, column = self.tiles[place]
        rows = np.arange(row.start, row.stop)
        columns = self.offset + np.arange(column.start, column.stop)
        index_a, index_b = np.repeat(rows, columns.size), np.tile(columns, rows.size)
        if self.tiles.mirrored and row == column:
            upper = index_a <= index_b
            index_a, index_b = index_a[upper], index_b[upper]
        if self.keys is None:
            return index_a, index_b
        return oriented(self.keys, index_a, index_b)


def oriented(keys, index_a, index_b):
    """Return pairs ordered by content: d(a, b) and d(b, a) are then one computation."""
    swap = keys[index_a] > keys[index_b]
    return np.where(swap, index_b, index_a), np.where(swap, index_a, index_b)
