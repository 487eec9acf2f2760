r"""Models in groups whose states lie near a few centres.

The cost of moving the states of a query to the centres of a group, minus the cost of
moving the states of a member there, is a lower bound of their distance. Any grouping
gives valid bounds; in a good one the second cost is small. Here models are divided
among some of them that are far from each other, level by level, so that the work grows
only slightly faster than their number.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skawhmm.neighbors._search_kernels import (
    LANES,
    from_tiles,
    in_tiles,
    relaxed_bounds,
    state_balls,
)
from skawhmm.utils._parallel import completed

# Number of groups that one level of the division makes, and of examples per group from
# which their centres are chosen.
MAX_BRANCHES = 256
EXAMPLES_PER_BRANCH = 16

# Steps of k-means that divide the states of a group among its balls.
MEANS_STEPS = 3

# A group has about this times the square root of the number of models: comparing a
# query with all groups then costs about as much as with all members of a few groups.
GROUP_FACTOR = 0.4
MIN_GROUP = 16

# Groups with a member farther from the centres than this multiple of the usual distance
# are divided further.
WIDE = 1.5
WIDE_ROUNDS = 3
WIDE_BRANCHES = 3

# All models are regrouped once the number added since the last grouping exceeds this
# fraction of the grouped ones and MIN_LATER, so the cost per added model does not grow.
LATER_FRACTION = 0.25
MIN_LATER = 64

# Number of models processed at once while an index is built.
BUILD_BLOCK = 4096

# Vectors of queries are projected to a box in which squares in single precision are
# finite. It contains all references, so distances to them only become smaller.
LARGEST_COORDINATE = 2.0**50


class Points(NamedTuple):
    """Models as sets of points, one per state, with the other arrays that bounds need.

    Attributes
    ----------
    vectors : ndarray of float32 of shape (n_models, n_components, n_dimensions)
        State vectors, in the units of an index.

    margins : ndarray of shape (n_models, n_components)
        State probabilities.

    chains : ndarray of shape (n_models, n_components, n_components)
        Transition matrices; empty (zero models) if they are not compared.

    within : ndarray of shape (n_models, n_components, n_components)
        Distances between the state vectors of a model; empty likewise.
    """

    vectors: NDArray[np.float32]
    margins: NDArray[np.float64]
    chains: NDArray[np.float64]
    within: NDArray[np.float64]


class Balls(NamedTuple):
    """Models in groups around centres of their states.

    Models are in the order of `order` in all arrays. Within a group, the farthest from
    the centres come first.

    Attributes
    ----------
    order : ndarray of int of shape (n_models,)
        Indices of the models, group by group.

    starts : ndarray of int of shape (n_groups + 1,)
        Where each group begins in `order`.

    centres : ndarray of float32, in tiles
        Centres of the groups, as many as models have states.

    used : ndarray of uint8 of shape (n_groups, n_components)
        Whether a centre is the nearest centre of any state in the group.

    tiles : ndarray of float32, in tiles
        State vectors minus `origin`, in units of `scale`.

    margins : ndarray of shape (n_models, n_components)
        State probabilities.

    spreads : ndarray of float32 of shape (n_models,)
        Cost of moving the states of a model to the nearest centres of its group.

    chains : ndarray of float32 of shape (n_models, n_components, n_components)
        Transition matrices; empty (zero models) if the bounds do not need them.

    apart : ndarray of float32 of shape (n_models, n_pairs)
        Distances between the state vectors of each model, in the order (1, 0), (2, 0),
        (2, 1), (3, 0); empty likewise.

    origin : ndarray of shape (n_dimensions,)
        Origin of the vectors.

    scale : float
        Unit of the vectors.

    largest : float
        Upper bound of the coordinates of all vectors; 1 for the models that set the
        scale.

    n_grouped : int
        Number of models that were grouped together; later ones were added.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    centres: NDArray[np.float32]
    used: NDArray[np.uint8]
    tiles: NDArray[np.float32]
    margins: NDArray[np.float64]
    spreads: NDArray[np.float32]
    chains: NDArray[np.float32]
    apart: NDArray[np.float32]
    origin: NDArray[np.float64]
    scale: float
    largest: float
    n_grouped: int

    @property
    def n_groups(self):
        """Number of groups."""
        return len(self.starts) - 1

    @property
    def widest(self):
        """The largest spread of each group; 0 for an empty one."""
        return np.append(self.spreads, 0)[self.starts[:-1]] * (np.diff(self.starts) > 0)


def state_vectors(models):
    """Return the vectors f of states, (n_models, n_components, 2 * n_features)."""
    variances = models.covars
    if models.covariance_type == "full":
        variances = np.diagonal(variances, axis1=2, axis2=3)
    return np.concatenate([models.means, np.sqrt(variances)], axis=2)


def compact_vectors(models, origin, scale):
    """Return state vectors in the units of an index, in single precision."""
    return in_units(state_vectors(models), origin, scale).astype(np.float32)


def in_units(vectors, origin, scale):
    """Return vectors in the units of an index; their squares are finite."""
    vectors = (vectors - origin) / scale
    return np.clip(vectors, -LARGEST_COORDINATE, LARGEST_COORDINATE, out=vectors)


def vector_units(models, vectors_of=state_vectors):
    """Return an origin and a scale in which no coordinate of a state is above 1."""
    n_models = len(models)
    rows = np.random.default_rng(0).choice(
        n_models, min(BUILD_BLOCK, n_models), replace=False
    )
    origin = vectors_of(models[rows]).mean(axis=(0, 1))
    largest = max(
        np.abs(vectors_of(models[first:last]) - origin).max()
        for first, last in blocks(n_models)
    )
    # A power of two divides without rounding.
    return origin, 2.0 ** np.ceil(np.log2(largest)) if largest > 0 else 1.0


def points_of(models, metric, origin, scale):
    """Return models as sets of points, in the units of an index."""
    vectors = compact_vectors(models, origin, scale)
    prepared = metric.prepare(models)
    margins = np.ascontiguousarray(prepared.margins)
    if not compares_chains(metric, models):
        return Points(
            vectors, margins, *[np.empty((0, *prepared.transmats[0].shape))] * 2
        )
    within = np.zeros(prepared.transmats.shape)
    for i, j in zip(*np.tril_indices(vectors.shape[1], -1), strict=True):
        gaps = vectors[:, i].astype(float) - vectors[:, j]
        within[:, i, j] = within[:, j, i] = np.sqrt(np.square(gaps).sum(axis=1))
    return Points(vectors, margins, np.ascontiguousarray(prepared.transmats), within)


def compares_chains(metric, models):
    """Return whether both components can be bounded together.

    This requires state vectors to be exactly as far apart as the states.
    """
    return (
        metric.transition_weight > 0
        and metric.p == 1
        and getattr(metric, "rows", "transport") == "transport"
        and models.covariance_type == "diag"
    )


def make_balls(models, metric, n_jobs=None):
    """Return the models in groups of about equal size.

    Parameters
    ----------
    models : HMMBatch
        The models.

    metric : object
        A distance with lower bounds.

    n_jobs : int, default=None
        Number of joblib workers.

    Returns
    -------
    balls : Balls
        The groups.
    """
    origin, scale = vector_units(models)
    value = models, metric, origin, scale
    arrays = _by_blocks(_compact_block, value, len(models), n_jobs)
    return grouped(arrays, metric.p, (origin, scale, 1.0), n_jobs)


def grouped(arrays, p, units, n_jobs=None):
    """Return models in groups.

    Parameters
    ----------
    arrays : sequence of ndarray
        Vectors (not in tiles), margins, chains and state distances of the models, as in
        `Balls`.

    p : float
        Order of the distance.

    units : tuple
        `origin`, `scale` and `largest` of the groups.

    n_jobs : int, default=None
        Number of joblib workers.

    Returns
    -------
    balls : Balls
        The groups.
    """
    vectors, margins, chains, apart = arrays
    origin, scale, largest = units
    rng = np.random.default_rng(0)
    divide = partial(_divided, vectors, margins, rng=rng, n_jobs=n_jobs)
    groups = _small_groups(len(vectors), divide)
    for _ in range(WIDE_ROUNDS):
        groups = _narrow_groups(groups, vectors, margins, divide)
    order, starts = _joined(groups)
    centres, used, spreads = state_balls(
        vectors[order], margins[order], starts, MEANS_STEPS, p
    )
    group = np.repeat(np.arange(len(groups)), np.diff(starts))
    farthest = np.lexsort((order, -spreads, group))
    order, spreads = order[farthest], spreads[farthest]
    return Balls(
        order,
        starts,
        in_tiles(centres),
        used,
        in_tiles(vectors[order]),
        margins[order],
        spreads,
        chains[order] if len(chains) else chains,
        apart[order] if len(apart) else apart,
        origin,
        scale,
        largest,
        len(order),
    )


def regrouped_balls(balls, p):
    """Return the same models in new groups."""
    moved = np.argsort(balls.order)
    vectors = from_tiles(balls.tiles, len(balls.order))
    stored = vectors, balls.margins, balls.chains, balls.apart
    arrays = [array[moved] if len(array) else array for array in stored]
    return grouped(arrays, p, (balls.origin, balls.scale, balls.largest))


def grown_balls(balls, models, metric):
    """Return the groups, with models added under the next indices."""
    return joined_balls(
        balls, _stored(models, metric, balls.origin, balls.scale), metric.p
    )


def joined_balls(balls, arrays, p):
    """Return the groups, with models added from their arrays."""
    # The new vectors may exceed the models that set the scale.
    largest = max(balls.largest, float(np.abs(arrays[0]).max()))
    new = grouped(arrays, p, (balls.origin, balls.scale, largest))
    vectors = from_tiles(new.tiles, len(new.order))
    centres = from_tiles(new.centres, new.n_groups)
    both = ("used", "margins", "spreads", "chains", "apart")
    balls = balls._replace(
        order=np.concatenate([balls.order, len(balls.order) + new.order]),
        starts=np.concatenate([balls.starts, len(balls.order) + new.starts[1:]]),
        centres=_appended(balls.centres, balls.n_groups, centres),
        tiles=_appended(balls.tiles, len(balls.order), vectors),
        largest=largest,
        **{
            name: np.concatenate([getattr(balls, name), getattr(new, name)])
            for name in both
        },
    )
    if len(balls.order) > (1 + LATER_FRACTION) * balls.n_grouped + MIN_LATER:
        balls = regrouped_balls(balls, p)
    return balls


def _appended(tiles, n_models, vectors):
    """Return tiles of `n_models` models, extended by `vectors`."""
    n_full = n_models // LANES
    rest = from_tiles(tiles[n_full:], n_models - n_full * LANES)
    return np.concatenate([tiles[:n_full], in_tiles(np.concatenate([rest, vectors]))])


def kept_balls(balls, rows, p):
    """Return the groups with only some of the models, given by increasing indices."""
    moved = np.full(len(balls.order), -1)
    moved[rows] = np.arange(len(rows))
    order = moved[balls.order]
    keep = order >= 0
    balls = balls._replace(
        order=order[keep],
        starts=np.concatenate([[0], np.cumsum(keep)])[balls.starts],
        tiles=in_tiles(from_tiles(balls.tiles, len(order))[keep]),
        margins=balls.margins[keep],
        spreads=balls.spreads[keep],
        chains=balls.chains[keep] if len(balls.chains) else balls.chains,
        apart=balls.apart[keep] if len(balls.apart) else balls.apart,
    )
    if 2 * len(balls.order) < balls.n_grouped:
        balls = regrouped_balls(balls, p)
    return balls


def blocks(size):
    """Return ranges of models that are processed at once."""
    firsts = range(0, size, BUILD_BLOCK)
    return [(first, min(first + BUILD_BLOCK, size)) for first in firsts]


def _by_blocks(function, value, size, n_jobs):
    """Return the arrays that a function makes of each block, concatenated."""
    parts = completed(function, value, blocks(size), n_jobs=n_jobs, label="models")
    return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


def _joined(groups):
    """Return the members of groups one after the other, and where each begins."""
    return np.concatenate(groups), np.cumsum([0] + [group.size for group in groups])


def _small_groups(n_models, divide):
    """Return the indices of all models, in groups that are small enough."""
    size = max(int(GROUP_FACTOR * np.sqrt(n_models)), MIN_GROUP)
    waiting = [np.arange(n_models)]
    done: list[NDArray[np.int64]] = []
    while waiting:
        group = waiting.pop()
        parts = divide(group, min(-(-group.size // size), MAX_BRANCHES))
        # Equal models stay together, however many they are.
        (waiting if len(parts) > 1 else done).extend(parts)
    return done


def _narrow_groups(groups, vectors, margins, divide):
    """Return groups, the wide ones of which are divided once more."""
    order, starts = _joined(groups)
    spreads = state_balls(vectors[order], margins[order], starts, MEANS_STEPS, 1.0)[2]
    widest = np.maximum.reduceat(spreads, starts[:-1])
    wide = widest > WIDE * np.median(widest)
    return [
        part
        for group, far in zip(groups, wide, strict=True)
        for part in divide(group, min(group.size // 4, WIDE_BRANCHES) if far else 1)
    ]


def _divided(vectors, margins, group, n_parts, *, rng, n_jobs):
    """Return a group divided into at most `n_parts`, each around one of its models."""
    if n_parts < 2:
        return [group]
    seeds = _seeds(vectors, margins, group, n_parts, rng)
    value = vectors, margins, group, in_tiles(vectors[seeds]), margins[seeds]
    (labels,) = _by_blocks(_nearest_seeds, value, group.size, n_jobs)
    order = np.argsort(labels, kind="stable")
    parts = np.split(group[order], np.cumsum(np.bincount(labels))[:-1])
    return [part for part in parts if part.size]


def _compact_block(data, first, last):
    """Return the compact arrays of a block of models."""
    models, metric, origin, scale = data
    return _stored(models[first:last], metric, origin, scale)


def _stored(models, metric, origin, scale):
    """Return the vectors, margins, chains and state distances, as in `Balls`."""
    points = points_of(models, metric, origin, scale)
    below = np.tril_indices(points.vectors.shape[1], -1)
    apart = points.within[:, *below].astype(np.float32)
    return points.vectors, points.margins, points.chains.astype(np.float32), apart


def _seeds(vectors, margins, group, n_seeds, rng):
    """Return models of a group that are far from each other, drawn as by k-means++."""
    size = min(EXAMPLES_PER_BRANCH * n_seeds, group.size)
    some = rng.choice(group, size, replace=False)
    points, probs = vectors[some], margins[some]
    tiles = in_tiles(points)
    chosen = [0]
    nearest = np.full(size, np.inf)
    for draw in rng.random(n_seeds - 1):
        last = chosen[-1:]
        costs = relaxed_bounds(points[last], probs[last], tiles, probs, 1.0)[0]
        nearest = np.minimum(nearest, costs**2)
        levels = np.cumsum(nearest)
        place = np.searchsorted(levels, draw * levels[-1], "right")
        chosen.append(min(int(place), size - 1))
    return some[chosen]


def _nearest_seeds(data, first, last):
    """Return which seed is nearest to each of some models of a group."""
    vectors, margins, group, seeds, probs = data
    some = group[first:last]
    costs = relaxed_bounds(vectors[some], margins[some], seeds, probs, 1.0)
    return (costs.argmin(axis=1),)
