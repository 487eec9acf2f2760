r"""Models in groups whose states lie in a few balls.

Every model of a group has its state vectors inside of the group's balls, so that the
distance of a query to the balls bounds its distances to all models of the group. Any
grouping gives right bounds; a good one gives small balls. Here models are divided among
some of them that are far from each other, level by level, so that the work grows little
faster than their number.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skawhmm.neighbors._search_kernels import relaxed_bounds, state_balls
from skawhmm.utils._parallel import Shared, completed

# Groups that one level of the division makes, and examples per group that they are
# chosen from.
MAX_BRANCHES = 256
EXAMPLES_PER_BRANCH = 16

# Steps of k-means that divide the states of a group among its balls.
MEANS_STEPS = 3

# Groups have about this times the square root of the number of models: comparing a
# query with all groups then costs about as much as with the models of a few.
GROUP_FACTOR = 0.4
MIN_GROUP = 16

# Groups with a ball of more than this times the usual radius are divided further.
WIDE = 1.5
WIDE_ROUNDS = 3
WIDE_BRANCHES = 3

# Models treated at once while an index is made.
BUILD_BLOCK = 4096

# Vectors of queries are projected to a box in which squares in single precision are
# finite. It contains all references, so distances to them only become smaller.
LARGEST_COORDINATE = 2.0**50


class Balls(NamedTuple):
    """Models in groups, and balls that contain the state vectors of each group.

    Attributes
    ----------
    order : ndarray of int of shape (n_models,)
        Indices of the models, group by group.

    starts : ndarray of int of shape (n_groups + 1,)
        Where each group begins in `order`.

    centres : ndarray of float32 of shape (n_groups, n_components, 2 * n_features)
        Centres of the balls.

    radii : ndarray of float32 of shape (n_groups, n_components)
        Their radii; negative if there is no such ball.

    vectors : ndarray of float32 of shape (n_models, n_components, 2 * n_features)
        State vectors minus `origin`, in units of `scale`, in the order of `order`.

    margins : ndarray of shape (n_models, n_components)
        State probabilities, in the same order.

    balls : ndarray of uint16 of shape (n_models, n_components)
        Which ball of its group each state is in, in the same order.

    reaches : ndarray of float32 of shape (n_models, n_components)
        Its distance to the centre of this ball.

    origin : ndarray of shape (2 * n_features,)
        Origin of the vectors.

    scale : float
        Unit of the vectors.

    largest : float
        No vector has a coordinate above it; 1 for the models that set the scale.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    centres: NDArray[np.float32]
    radii: NDArray[np.float32]
    vectors: NDArray[np.float32]
    margins: NDArray[np.float64]
    balls: NDArray[np.uint16]
    reaches: NDArray[np.float32]
    origin: NDArray[np.float64]
    scale: float
    largest: float = 1.0


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
        The groups and their balls.
    """
    origin, scale = vector_units(models)
    value = models, metric, origin, scale
    vectors, margins = _by_blocks(_compact_block, value, len(models), n_jobs)
    rng = np.random.default_rng(0)
    return _grouped(vectors, margins, origin, scale, 1.0, rng, n_jobs)


def _grouped(vectors, margins, origin, scale, largest, rng, n_jobs=None):
    """Return models, given by their vectors and margins, in groups."""
    divide = partial(_divided, vectors, margins, rng=rng, n_jobs=n_jobs)
    groups = _small_groups(len(vectors), divide)
    for _ in range(WIDE_ROUNDS):
        groups = _narrow_groups(groups, vectors, margins, divide)
    order, starts = _joined(groups)
    vectors, margins = vectors[order], margins[order]
    centres, radii, balls, reaches = state_balls(vectors, margins, starts, MEANS_STEPS)
    return Balls(
        order,
        starts,
        centres,
        radii,
        vectors,
        margins,
        balls,
        reaches,
        origin,
        scale,
        largest,
    )


def regrouped_balls(balls):
    """Return the same models in new groups."""
    vectors, margins = np.empty_like(balls.vectors), np.empty_like(balls.margins)
    vectors[balls.order], margins[balls.order] = balls.vectors, balls.margins
    units = balls.origin, balls.scale, balls.largest
    return _grouped(vectors, margins, *units, np.random.default_rng(0))


def grown_balls(balls, models, metric):
    """Return the groups and further ones, of models with the next indices."""
    vectors = compact_vectors(models, balls.origin, balls.scale)
    margins = metric.prepare(models).margins
    # They may be larger than the models that set the scale.
    largest = max(balls.largest, float(np.abs(vectors).max()))
    units = balls.origin, balls.scale, largest
    new = _grouped(vectors, margins, *units, np.random.default_rng(0))
    return balls._replace(
        order=np.concatenate([balls.order, len(balls.order) + new.order]),
        starts=np.concatenate([balls.starts, len(balls.order) + new.starts[1:]]),
        centres=np.concatenate([balls.centres, new.centres]),
        radii=np.concatenate([balls.radii, new.radii]),
        vectors=np.concatenate([balls.vectors, new.vectors]),
        margins=np.concatenate([balls.margins, new.margins]),
        balls=np.concatenate([balls.balls, new.balls]),
        reaches=np.concatenate([balls.reaches, new.reaches]),
        largest=largest,
    )


def kept_balls(balls, rows):
    """Return the groups with some of the models only, whose indices increase."""
    moved = np.full(len(balls.order), -1)
    moved[rows] = np.arange(len(rows))
    order = moved[balls.order]
    keep = order >= 0
    return balls._replace(
        order=order[keep],
        starts=np.concatenate([[0], np.cumsum(keep)])[balls.starts],
        vectors=balls.vectors[keep],
        margins=balls.margins[keep],
        balls=balls.balls[keep],
        reaches=balls.reaches[keep],
    )


def blocks(size):
    """Return ranges of models that are treated at once."""
    firsts = range(0, size, BUILD_BLOCK)
    return [(first, min(first + BUILD_BLOCK, size)) for first in firsts]


def _by_blocks(function, value, size, n_jobs):
    """Return the arrays that a function makes of each block, concatenated."""
    shared = Shared(value)
    parts = completed(function, shared, blocks(size), n_jobs=n_jobs, label="models")
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
    _, radii, *_ = state_balls(vectors[order], margins[order], starts, MEANS_STEPS)
    widest = radii.max(axis=1)
    wide = widest > WIDE * np.median(widest)
    return [
        part
        for group, far in zip(groups, wide, strict=True)
        for part in divide(group, min(group.size // 4, WIDE_BRANCHES) if far else 1)
    ]


def _divided(vectors, margins, group, n_parts, *, rng, n_jobs):
    """Return a group in at most so many parts, each around one of its models."""
    if n_parts < 2:
        return [group]
    seeds = _seeds(vectors, margins, group, n_parts, rng)
    value = vectors, margins, group, seeds
    (labels,) = _by_blocks(_nearest_seeds, value, group.size, n_jobs)
    order = np.argsort(labels, kind="stable")
    parts = np.split(group[order], np.cumsum(np.bincount(labels))[:-1])
    return [part for part in parts if part.size]


def _compact_block(shared, first, last):
    """Return vectors and margins of some models."""
    models, metric, origin, scale = shared.value
    some = models[first:last]
    margins = metric.prepare(some).margins
    return compact_vectors(some, origin, scale), margins


def _seeds(vectors, margins, group, n_seeds, rng):
    """Return models of a group that are far from each other, drawn as by k-means++."""
    size = min(EXAMPLES_PER_BRANCH * n_seeds, group.size)
    some = rng.choice(group, size, replace=False)
    points, probs = vectors[some], margins[some]
    chosen = [0]
    nearest = np.full(size, np.inf)
    for draw in rng.random(n_seeds - 1):
        last = chosen[-1:]
        costs = relaxed_bounds(points, probs, points[last], probs[last], 1.0)[:, 0]
        nearest = np.minimum(nearest, costs**2)
        levels = np.cumsum(nearest)
        place = np.searchsorted(levels, draw * levels[-1], "right")
        chosen.append(min(int(place), size - 1))
    return some[chosen]


def _nearest_seeds(shared, first, last):
    """Return which seed is nearest to each of some models of a group."""
    vectors, margins, group, seeds = shared.value
    some = group[first:last]
    costs = relaxed_bounds(
        vectors[some], margins[some], vectors[seeds], margins[seeds], 1.0
    )
    return (costs.argmin(axis=1),)
