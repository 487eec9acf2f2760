r"""Candidates for neighbours by any distance: groups of near sets of points.

A model is a set of points, one per state: :math:`(f_i, w (T f)_i, v \pi_i)`, where f
are the coordinates of the states, T f their mean after one step, and :math:`\pi` the
state probabilities. Two models are compared by the transport of their points, which
reflects how similar states, steps and probabilities are, whatever the order of the
states. It is not a bound: members of the groups nearest to a query are candidates, and
their true distances decide.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skawhmm.distances._pairwise import all_pairs
from skawhmm.neighbors._balls import (
    Points,
    blocks,
    grouped,
    in_units,
    joined_balls,
    kept_balls,
    state_vectors,
    vector_units,
)
from skawhmm.neighbors._search import nearest_groups
from skawhmm.neighbors._search_kernels import (
    costs_to_centres,
    group_survivors,
    in_tiles,
    relaxed_bounds,
)

# A difference of state probabilities counts this many times the cost of moving that
# probability to another state.
PROBABILITY_WEIGHT = 2.0

# Candidate weights of the coordinates after one step, and the sizes of the trial:
# queries, models compared with each, and the nearest of them, whose order is scored.
NEXT_WEIGHTS = (1.0, 0.5, 2.0, 0.0)
TRIAL_QUERIES, TRIAL_MODELS, TRIAL_NEAR = 24, 20_000, 200
TRIAL_RANKS = (5, 10)


def state_points(models):
    """Return states as points whose distances approximate their costs, or None."""
    if models.observed is not None:
        return None
    if models.emission.name == "gaussian":
        return state_vectors(models)
    return models.emission.points()


class PointUnits(NamedTuple):
    """How models become points: origin, scale and weights of the coordinates.

    `spread` is the mean distance of two states of a model, in units of `scale`.
    """

    origin: NDArray[np.float64]
    scale: float
    spread: float
    next_weight: float

    def points(self, models):
        """Return points (n_models, n_components, n_dimensions) and their weights."""
        own = in_units(state_points(models), self.origin, self.scale)
        probs = np.array(models.weights)
        after = self.next_weight * (models.transmats @ own)
        share = PROBABILITY_WEIGHT * self.spread * probs[:, :, None]
        points = np.concatenate([own, after, share], axis=2).astype(np.float32)
        return points, probs


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
        The units. The weight of the coordinates after one step is the best of
        `NEXT_WEIGHTS`.
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
    units = PointUnits(origin, scale, spread, 1.0)
    if len(some) < 2 * TRIAL_QUERIES:
        return units
    return units._replace(next_weight=_best_next_weight(some, metric, units, n_jobs))


def _best_next_weight(models, metric, units, n_jobs):
    """Return the weight that ranks nearby models most like the true distance."""
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
    """Return the relaxed transport between the points of all models of two batches."""
    near, far = units.points(queries), units.points(models)
    return relaxed_bounds(near[0], near[1], in_tiles(far[0]), far[1], 1.0)


class PointIndex:
    """Models in groups of near sets of points.

    Parameters
    ----------
    units : PointUnits
        How models become points.

    balls : Balls
        The groups.
    """

    def __init__(self, units, balls):
        self.units, self.balls = units, balls

    @classmethod
    def make(cls, models, metric, n_jobs=None):
        """Return models in groups, for a distance."""
        units = point_units(models, metric, n_jobs)
        parts = [
            _stored(units, models[first:last]) for first, last in blocks(len(models))
        ]
        arrays = [np.concatenate(array) for array in zip(*parts, strict=True)]
        # Points are already in units; the last coordinate may exceed 1.
        largest = float(np.abs(arrays[0]).max())
        origin = np.zeros(arrays[0].shape[2])
        return cls(units, grouped(arrays, 1.0, (origin, 1.0, largest), n_jobs))

    def added(self, models):
        """Return an index with more models."""
        return PointIndex(
            self.units, joined_balls(self.balls, _stored(self.units, models), 1.0)
        )

    def kept(self, rows):
        """Return an index with some of the models."""
        return PointIndex(self.units, kept_balls(self.balls, rows, 1.0))

    def candidates(self, queries, n_groups, n_wanted):
        """Return the members of the nearest groups, by the transport of their points.

        Parameters
        ----------
        queries : HMMBatch
            A few models.

        n_groups : int
            Number of groups.

        n_wanted : int
            Minimum number of members in the groups of a query.

        Returns
        -------
        candidates : list of ndarray of int
            The members, nearest first, for each query.
        """
        balls, (points, probs) = self.balls, self.units.points(queries)
        gaps = costs_to_centres(points, probs, balls.centres, balls.used, 1.0)
        top, _ = nearest_groups(gaps, np.diff(balls.starts), n_wanted, n_groups)
        nothing = np.empty((0, 1, 1))
        limits = np.full(len(top), np.inf)
        query, place, bounds, *_ = group_survivors(
            Points(points, probs, nothing, nothing),
            balls,
            np.repeat(np.arange(len(top)), top.shape[1]),
            top.ravel(),
            gaps,
            limits,
            limits,
            1.0,
            1.0,
            0.0,
            False,
        )
        models = balls.order[place]
        order = np.lexsort((models, bounds, query))
        ends = np.cumsum(np.bincount(query, minlength=len(top)))
        return np.split(models[order], ends[:-1])


def _stored(units, models):
    """Return points and weights as in `Balls`, without chains."""
    points, probs = units.points(models)
    size = points.shape[1]
    return (
        points,
        probs,
        np.empty((0, size, size), np.float32),
        np.empty((0, size * (size - 1) // 2), np.float32),
    )
