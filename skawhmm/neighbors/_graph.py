r"""Candidates for neighbours from a graph of near models, made by usearch.

A model is a set of points, one per state: :math:`(f_i, w (T f)_i, v \pi_i)`, where f
are the coordinates of the states, T f their mean after one step, and :math:`\pi` the
state probabilities. Two models are compared by the relaxed transport of their points, a
compiled function that usearch calls. It knows how alike states, steps and probabilities
are, and no order of the states; it takes a tenth of a microsecond. It is no bound: the
graph proposes models, and their distances decide.
"""

from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from skawhmm.distances._pairwise import all_pairs
from skawhmm.neighbors._balls import blocks, in_units, state_vectors, vector_units
from skawhmm.neighbors._search_kernels import (
    MOST_POINTS,
    POINT_SET_GAP,
    relaxed_bounds,
)
from skawhmm.utils._parallel import n_threads

# Edges per node, and nodes that are examined when one is added.
CONNECTIVITY = 16
EXPANSION_ADD = 48

# Models that are added, or queries that are asked, before Ctrl-C is heard.
ADD_BLOCK = 1000

# The difference of two state probabilities counts this many times what it costs to move
# it to another state.
PROBABILITY_WEIGHT = 2.0

# Weights of the next coordinates that are tried, and on how many models: queries,
# models that they are compared with, of these the nearest, of which the order counts.
NEXT_WEIGHTS = (1.0, 0.5, 2.0, 0.0)
TRIAL_QUERIES, TRIAL_MODELS, TRIAL_NEAR = 24, 20_000, 200
TRIAL_RANKS = (5, 10)


def engine():
    """Return `usearch.index`, or raise an error that says how to install it."""
    try:
        import usearch.index
    except ModuleNotFoundError as error:
        raise ImportError(
            'algorithm="approximate" needs usearch: pip install "skawhmm[search]".'
        ) from error
    return usearch.index


def state_points(models):
    """Return states as points, whose distances are near their costs; None if none."""
    if models.observed is not None:
        return None
    if models.emission.name == "gaussian":
        return state_vectors(models)
    return models.emission.points()


class PointUnits(NamedTuple):
    """How models become vectors: origin and scale of points, and weights.

    `spread` is the mean distance of two states of a model, in units of `scale`.
    """

    origin: NDArray[np.float64]
    scale: float
    spread: float
    next_weight: float
    n_points: int

    def points(self, models):
        """Return points (n_models, n_points, n_dimensions) and their weights."""
        own = in_units(state_points(models), self.origin, self.scale)
        probs = np.array(models.weights)
        after = self.next_weight * (models.transmats @ own)
        share = PROBABILITY_WEIGHT * self.spread * probs[:, :, None]
        points = np.concatenate([own, after, share], axis=2).astype(np.float32)
        size = probs.shape[1]
        if size > self.n_points:
            # The most probable states stand for all.
            most = np.argsort(-probs, axis=1, kind="stable")[:, : self.n_points]
            probs = np.take_along_axis(probs, most, axis=1)
            points = np.take_along_axis(points, most[:, :, None], axis=1)
        elif size < self.n_points:
            more = (0, 0), (0, self.n_points - size)
            probs, points = np.pad(probs, more), np.pad(points, (*more, (0, 0)))
        return points, probs

    def vectors(self, models):
        """Return models in the form that `point_set_gap` compares."""
        points, probs = self.points(models)
        number = np.full((len(models), 1), self.n_points, np.float32)
        parts = number, probs.astype(np.float32), points.reshape(len(models), -1)
        return np.concatenate(parts, axis=1)


def point_units(models, metric, n_jobs=None):
    """Return the units in which the nearest sets of points are the nearest models.

    Parameters
    ----------
    models : HMMBatch
        The models.

    metric : object
        The distance.

    n_jobs : int, default=None
        Number of joblib workers.

    Returns
    -------
    units : PointUnits
        The units. The weight of the next coordinates is the best of a few.
    """
    origin, scale = vector_units(models, state_points)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(models))[: TRIAL_QUERIES + TRIAL_MODELS]
    some = models[rows]
    own = in_units(state_points(some), origin, scale)
    gaps = np.sqrt(np.square(own[:, :, None] - own[:, None]).sum(axis=3))
    apart = np.einsum("ni,nij,nj->n", some.weights, gaps, some.weights)
    alone = 1 - np.square(some.weights).sum(axis=1)
    spread = float(apart.sum() / max(alone.sum(), np.finfo(float).tiny))
    n_points = min(models.transmats.shape[1], MOST_POINTS)
    units = PointUnits(origin, scale, spread, 1.0, n_points)
    if len(some) < 2 * TRIAL_QUERIES:
        return units
    return units._replace(next_weight=_best_next_weight(some, metric, units, n_jobs))


def _best_next_weight(models, metric, units, n_jobs):
    """Return the weight under which the order of near models is most like the true."""
    queries, others = models[:TRIAL_QUERIES], models[TRIAL_QUERIES:]
    n_true, n_first = TRIAL_RANKS
    near = np.argsort(_gaps(queries, others, units), axis=1)[:, :TRIAL_NEAR]
    true = [
        np.argsort(all_pairs(query, others[row], metric, n_jobs=n_jobs)[0])[:n_true]
        for query, row in zip(queries, near, strict=True)
    ]
    scores = []
    for weight in NEXT_WEIGHTS:
        gaps = _gaps(queries, others, units._replace(next_weight=weight))
        order = np.argsort(np.take_along_axis(gaps, near, axis=1), axis=1)
        pairs = zip(true, order[:, :n_first], strict=True)
        scores.append(np.mean([np.isin(*pair).mean() for pair in pairs]))
    return NEXT_WEIGHTS[int(np.argmax(scores))]


def _gaps(queries, models, units):
    """Return what the engine would compute between all models of two batches."""
    near, far = units.points(queries), units.points(models)
    return relaxed_bounds(near[0], near[1], far[0], far[1], 1.0)


class ModelGraph:
    """A graph of near models.

    Parameters
    ----------
    units : PointUnits
        How models become vectors.
    """

    def __init__(self, units):
        self.units = units
        self._engine = _empty_engine(units)
        self._lock = Lock()
        self._content = None

    @property
    def n_nodes(self):
        """Number of models in the graph."""
        return len(self._engine)

    def add(self, models, *, n_jobs=None, verbose=0):
        """Add models; their numbers follow those that are there."""
        with tqdm(total=len(models), desc="models", disable=not verbose) as bar:
            for first in range(0, len(models), ADD_BLOCK):
                some = models[first : first + ADD_BLOCK]
                numbers = self.n_nodes + np.arange(len(some))
                vectors = self.units.vectors(some)
                self._engine.add(numbers, vectors, threads=n_threads(n_jobs))
                bar.update(len(some))

    def copy(self):
        """Return a copy, to which models can be added."""
        return ModelGraph.read(self.units, self.written())

    def candidates(self, queries, number, n_jobs=None):
        """Return the nodes that are nearest to each query, as far as it is known."""
        number = min(number, self.n_nodes)
        found: list[NDArray[np.intp]] = []
        for first, last in blocks(len(queries)):
            vectors = self.units.vectors(queries[first:last])
            # Threads of other searches would share its memory.
            with self._lock:
                self._engine.expansion_search = number
                matches = self._engine.search(
                    vectors, number, threads=n_threads(n_jobs)
                )
            # Of a single query, usearch returns the matches themselves.
            each = [matches] if len(vectors) == 1 else matches
            found.extend(one.keys.astype(np.intp) for one in each)
        return found

    def written(self):
        """Return the graph as bytes."""
        return np.frombuffer(self._engine.save(), np.uint8)

    @classmethod
    def read(cls, units, content, *, is_mapped=False):
        """Return the graph that `written` gave; it may stay where it is."""
        graph = cls(units)
        (graph._engine.view if is_mapped else graph._engine.load)(memoryview(content))
        # A file does not name the function that compares vectors.
        graph._engine.metric = _engine_metric()
        # What is mapped must live as long as the graph.
        graph._content = content if is_mapped else None
        return graph


def _engine_metric():
    """Return the function that compares two vectors, as usearch takes it."""
    usearch: Any = engine()
    return usearch.CompiledMetric(
        pointer=POINT_SET_GAP,
        kind=usearch.MetricKind.L2sq,
        signature=usearch.MetricSignature.ArrayArraySize,
    )


def _empty_engine(units):
    """Return an index of usearch for the vectors of `PointUnits.vectors`."""
    return engine().Index(
        ndim=1 + units.n_points * (2 + 2 * len(units.origin)),
        metric=_engine_metric(),
        dtype="f32",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
    )
