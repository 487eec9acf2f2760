r"""Exact nearest neighbours without computing every distance.

A reference can be skipped as soon as a lower bound of its distance exceeds the distance
of the k-th neighbour found so far. Bounds are applied cheapest first: the distance to
the balls that contain the states of a group of models (see `_balls`); for the models of
the groups that are left, the distance to the balls that their own states are in, the
relaxed and then the optimal transport of state vectors; the marginal component and the
bound of the transition component. The distances that are left are computed like any
others, so the answers are the same as those of a search through all references, to the
last bit and with ties in the same order.

With :math:`f = (\mu, \sqrt{\operatorname{diag} \Sigma})` the Euclidean distance of two
states' vectors is at most :math:`W_2`: each coordinate of a coupling of two Gaussians
costs at least what the coupling of its own margins does. Hence, for p >= 1:

- relaxed: :math:`R^p \ge \sum_i \pi_a[i] \min_j \lVert f_i - f_j \rVert^p` and the same
  with a and b exchanged, since a plan with one margin less to obey costs no more;
- group: the same with the distance to the nearest ball in place of the nearest state;
- member: the same with the distance to the centre of the ball that a state is in, less
  the distance of this state to the centre;
- transport: :math:`R^p \ge OT_{c}(\pi_a, \pi_b)` with
  :math:`c_{ij} = \lVert f_i - f_j \rVert^p`;
- transition: :math:`OT_{C^p}(s, t) \ge \lVert (s - t) F \rVert^p` for rows s, t and the
  matrix F of the states' vectors, by convexity.

`docs/search_proofs.md` has the proofs.
"""

from collections import Counter
from copy import copy

import numpy as np

from skawhmm.distances._aggregated import registered_transitions
from skawhmm.distances._base import BoundedDistance
from skawhmm.distances._components import marginal_components
from skawhmm.distances._pairwise import oriented
from skawhmm.distances._registration import optimal_registrations, power_cost
from skawhmm.models._batch import HMMBatch
from skawhmm.neighbors._balls import (
    compact_vectors,
    grown_balls,
    kept_balls,
    make_balls,
    regrouped_balls,
    state_vectors,
)
from skawhmm.neighbors._search_kernels import (
    group_bounds,
    group_survivors,
    transition_bounds,
)
from skawhmm.utils._parallel import Shared, completed

# Bounds and distances are rounded; a reference is dropped only if its bound exceeds
# the limit by more than this fraction.
PRUNING_SLACK = 1e-6

# References that came after the others were grouped, as a fraction of these, at which
# all are grouped anew; so the cost per added reference does not grow.
LATER_FRACTION = 0.25

# Rounding of single precision.
SINGLE = 2.0**-24

# Queries searched together, so that compiled loops have enough pairs to work on.
QUERY_BLOCK = 64

# Groups of references that are compared with a query to begin with, and next.
FIRST_GROUPS = 2
NEAR_GROUPS = 6

# References of a query that are compared before limits are tightened, per neighbour,
# and of all queries, if there are few; multiplied each round.
FIRST_ROUND = 3
FIRST_PAIRS = 256
ROUND_GROWTH = 4


def has_bounds(metric):
    """Whether the distances of two models have lower bounds, if they are Gaussian."""
    if not isinstance(metric, BoundedDistance):
        return False
    return metric.marginal_weight > 0 and metric.p >= 1 and metric.symmetric


def can_prune(metric, references):
    """Whether a distance between these models has lower bounds for `SearchIndex`."""
    return (
        has_bounds(metric)
        and references.emission.name == "gaussian"
        and references.observed is None
    )


def check_prunable(possible, metric):
    """Raise unless neighbours can be sought by bounds."""
    if not possible:
        raise ValueError(
            "algorithm='pruned' needs a distance with lower bounds ('maw', 'jaw', "
            "'iaw' with debias=False, or 'coupling', with p >= 1 and "
            "alpha < 1) and Gaussian models that observed every feature, got "
            f"metric={metric!r}. "
            "Use algorithm='auto' or 'brute'."
        )


class SearchIndex:
    """Reference models arranged for exact pruned search.

    Parameters
    ----------
    references : HMMBatch
        The models to search.

    metric : object
        A distance for which `can_prune` holds.

    n_jobs : int, default=None
        Number of joblib workers that make the index.

    Attributes
    ----------
    counts : Counter
        How many pairs each stage examined in the last search: "group" (queries and
        groups), "member" (queries and the models of the groups that are left),
        "relaxed", "marginal" and "distance" (the full ones).
    """

    def __init__(self, references, metric, *, n_jobs=None):
        self.metric = metric
        references = references._bare()
        balls = make_balls(references, metric, n_jobs)
        self._set(references, references.keys, balls)
        self.n_grouped = len(self)

    @classmethod
    def of(cls, references, metric, keys, balls, n_grouped):
        """Return the index whose parts are known, such as those in a file."""
        index = cls.__new__(cls)
        index.metric, index.n_grouped = metric, n_grouped
        index._set(references._bare(), keys, balls)
        return index

    def _set(self, references, keys, balls):
        """Set what belongs to the references."""
        self.references, self.keys, self.balls = references, keys, balls
        self.counts: Counter[str] = Counter()
        size = balls.vectors.shape[2]
        # Single precision: of sums, in proportion to them, and of the vectors.
        self.relative = PRUNING_SLACK + (size / 8 + 16) * SINGLE
        # The bounds of two equal models differ from 0 by rounding.
        norm = np.sqrt(size) * balls.scale * balls.largest
        self.rounding = norm * (PRUNING_SLACK + 4 * SINGLE)

    def __len__(self):
        return len(self.references)

    def takes(self, models):
        """Whether models can be added without a change to those that are here."""
        both = self.references, models
        same_size = len({batch.transmats.shape[1] for batch in both}) == 1
        same_kind = len({batch.covariance_type for batch in both}) == 1
        return same_size and same_kind and models.observed is None

    def added(self, models):
        """Return an index with more references, for which `takes` holds."""
        index, models = copy(self), models._bare()
        index._set(
            HMMBatch.concatenate([self.references, models]),
            np.concatenate([self.keys, models.keys]),
            grown_balls(self.balls, models, self.metric),
        )
        if len(index) > (1 + LATER_FRACTION) * self.n_grouped + QUERY_BLOCK:
            index._regroup()
        return index

    def kept(self, rows):
        """Return an index with some of the references, in their order."""
        index = copy(self)
        index._set(self.references[rows], self.keys[rows], kept_balls(self.balls, rows))
        if 2 * len(index) < self.n_grouped:
            index._regroup()
        return index

    def _regroup(self):
        """Group all references anew."""
        self.balls = regrouped_balls(self.balls)
        self.n_grouped = len(self)

    def kneighbors(self, queries, n_neighbors, *, n_jobs=None, verbose=0):
        """Find the nearest references of each query."""
        parts = self._run(queries, n_neighbors, None, n_jobs, verbose)
        distances = np.array([found[0] for part in parts for found in part])
        indices = np.array([found[1] for part in parts for found in part])
        return distances, indices

    def radius_neighbors(self, queries, radius, *, n_jobs=None, verbose=0):
        """Find all references within a distance of each query."""
        parts = self._run(queries, None, radius, n_jobs, verbose)
        found = [one for part in parts for one in part]
        return [one[0] for one in found], [one[1] for one in found]

    def certified(self, queries, indices, *, n_jobs=None, verbose=0):
        """Return for which queries no other reference is as near as the given ones."""
        queries = queries._bare()
        tasks = [
            (queries[first:last], indices[first:last])
            for first in range(0, len(queries), QUERY_BLOCK)
            for last in [min(first + QUERY_BLOCK, len(queries))]
        ]
        shared = Shared(self)
        parts = completed(
            _certified_block,
            shared,
            tasks,
            n_jobs=n_jobs,
            verbose=verbose,
            label="queries",
        )
        return np.concatenate([*parts])

    def _run(self, queries, n_neighbors, radius, n_jobs, verbose):
        if queries is not None:
            queries = queries._bare()
        n_queries = len(self if queries is None else queries)
        tasks = [
            (None if queries is None else queries[first:last], first, last)
            for first in range(0, n_queries, QUERY_BLOCK)
            for last in [min(first + QUERY_BLOCK, n_queries)]
        ]
        shared = Shared((self, n_neighbors, radius))
        parts, total = [], Counter[str]()
        for found, counts in completed(
            _search_block,
            shared,
            tasks,
            n_jobs=n_jobs,
            verbose=verbose,
            label="queries",
        ):
            parts.append(found)
            total += counts
        # Assigned once, since others may search at the same time.
        self.counts = total
        return parts


class _Block:
    """A few queries together with the references they are compared with."""

    def __init__(self, index, queries, own):
        balls = index.balls
        self.index = index
        self.own = own if queries is None else None
        self.queries = index.references[own] if queries is None else queries
        self.keys = index.keys[own] if queries is None else queries.keys
        self.vectors = compact_vectors(self.queries, balls.origin, balls.scale)
        self.margins = index.metric.prepare(self.queries).margins
        # Lower bounds of the marginal component to all models of each group.
        self.group_bounds, self.centre_gaps = group_bounds(
            self.vectors, self.margins, balls.centres, balls.radii, index.metric.p
        )
        self.group_bounds *= balls.scale
        self.counts: Counter[str] = Counter(group=self.group_bounds.size)

    def reach(self, limits):
        """Return the largest marginal component that a distance within limits has."""
        index = self.index
        factor = (1 + index.relative) / index.metric.marginal_weight
        return limits * factor + index.rounding

    def survivors(self, query, group, limits):
        """Return pairs in groups whose bounds of R are within limits, and these."""
        index, balls = self.index, self.index.balls
        query, place, bounds, n_relaxed = group_survivors(
            self.vectors,
            self.margins,
            balls,
            query,
            group,
            self.reach(limits) / balls.scale,
            index.metric.p,
        )
        sizes = np.diff(balls.starts)
        self.counts["member"] += int(sizes[group].sum())
        self.counts["relaxed"] += n_relaxed
        reference = balls.order[place]
        bounds *= balls.scale
        if self.own is None:
            return query, reference, bounds
        # A reference is not its own neighbour.
        others = self.own[query] != reference
        return query[others], reference[others], bounds[others]

    def distances(self, query, reference, limits):
        """Return the distances of pairs, infinite where bounds exceed the limits."""
        index, metric = self.index, self.index.metric
        both, prepared, a, b = paired(
            metric,
            self.queries,
            self.keys,
            index.references,
            index.keys,
            query,
            reference,
        )
        keep = np.arange(query.size)
        distances = np.full(query.size, np.inf)
        if np.isfinite(limits[query]).any():
            self.counts["marginal"] += query.size
            bounds = _registered_bounds(metric, prepared, state_vectors(both), a, b)
            limits = limits * (1 + PRUNING_SLACK) + index.rounding
            keep = np.flatnonzero(bounds <= limits[query])
        self.counts["distance"] += keep.size
        if keep.size:
            distances[keep] = metric.distances(prepared, a[keep], b[keep])
        return distances


def paired(metric, queries, query_keys, references, keys, query, reference):
    """Return the models of pairs as one batch, prepared, and the pairs in it.

    Parameters
    ----------
    metric : object
        The distance.

    queries, references : HMMBatch
        The models.

    query_keys, keys : ndarray
        Their keys.

    query, reference : ndarray of int of shape (n_pairs,)
        The pairs.

    Returns
    -------
    both : HMMBatch
        The queries and the references that are in pairs.

    prepared : object
        What the distance made of them.

    a, b : ndarray of int of shape (n_pairs,)
        The pairs as places in `both`, in the order in which they are compared.
    """
    used, place = np.unique(reference, return_inverse=True)
    both = HMMBatch.concatenate([queries, references[used]])
    prepared = metric.prepare(both)
    place = len(queries) + place
    if not metric.symmetric:
        return both, prepared, query, place
    both_keys = np.concatenate([query_keys, keys[used]])
    if queries.emission.traits != references.emission.traits:
        # With the other kind of covariances, models have other keys.
        both_keys = both.keys
    return both, prepared, *oriented(both_keys, query, place)


def _registered_bounds(metric, prepared, vectors, a, b):
    """Lower bounds of distances that need the best registration."""
    p = metric.p
    cost = power_cost(prepared.costs.cross(a, b), p)
    plans = optimal_registrations(prepared.margins, prepared.transmats, a, b, cost)
    marginal = marginal_components(plans, cost, p, np.zeros(a.size))
    bounds = metric.marginal_weight * marginal
    if metric.transition_weight > 0:
        bounds += metric.transition_weight * _least_transitions(
            metric, prepared, vectors, a, b, plans
        )
    return bounds


def _least_transitions(metric, prepared, vectors, a, b, plans):
    """Lower bounds of the transition component, given the best registration."""
    # A distance without `steps` and `rows` has the defaults of MAW.
    steps = getattr(metric, "steps", "independent")
    rows = getattr(metric, "rows", "transport")
    if rows == "hellinger":
        # There is nothing cheaper than the component itself.
        return registered_transitions(prepared, a, b, plans, metric.p, steps, rows)
    return transition_bounds(
        prepared.weights,
        prepared.transmats,
        prepared.chains,
        vectors,
        a,
        b,
        plans,
        metric.p,
        steps == "joint",
    )


def _search_block(shared, queries, first, last):
    """Search for a few queries; return what was found for each, and the counts."""
    index, n_neighbors, radius = shared.value
    block = _Block(index, queries, np.arange(first, last))
    n_queries = len(block.keys)
    limits = np.full(n_queries, np.inf if radius is None else radius)
    found = _NOTHING
    for query, group in _best_first(block, n_neighbors):
        near = block.group_bounds[query, group] <= block.reach(limits)[query]
        pairs = block.survivors(query[near], group[near], limits)
        found, limits = _examined(block, pairs, found, limits, n_neighbors)
    return nearest_of(found, n_queries, n_neighbors, radius), block.counts


def _certified_block(shared, queries, indices):
    """Return for which of a few queries no reference but the given is within reach."""
    index, (n_queries, n_given) = shared.value, indices.shape
    block = _Block(index, queries, None)
    given = np.repeat(np.arange(n_queries), n_given), indices.ravel()
    distances = block.distances(*given, np.full(n_queries, np.inf))
    limits = distances.reshape(indices.shape).max(axis=1)
    near = block.group_bounds <= block.reach(limits)[:, None]
    query, group = np.divmod(np.flatnonzero(near), near.shape[1])
    query, reference, _ = block.survivors(query, group, limits)
    others = ~(indices[query] == reference[:, None]).any(axis=1)
    query, reference = query[others], reference[others]
    if query.size:
        near = block.distances(query, reference, limits) <= limits[query]
        query = query[near]
    return np.bincount(query, minlength=n_queries) == 0


def _best_first(block, n_neighbors):
    """Yield queries and groups of references: the nearest groups, others, all others.

    The first ones have enough references to set limits; the next ones tighten them.
    """
    shape = block.group_bounds.shape
    rank = np.zeros(shape, np.intp)
    n_first = n_near = 0
    if n_neighbors is not None:
        order = np.argsort(block.centre_gaps, axis=1)
        np.put_along_axis(rank, order, np.arange(shape[1])[None], axis=1)
        held = np.cumsum(np.diff(block.index.balls.starts)[order], axis=1)
        # A query may be among the references.
        n_first = np.maximum((held <= n_neighbors).sum(axis=1) + 1, FIRST_GROUPS)[
            :, None
        ]
        n_near = n_first + NEAR_GROUPS
    for now in (
        rank < n_first,
        (rank >= n_first) & (rank < n_near),
        rank >= n_near,
    ):
        yield np.divmod(np.flatnonzero(now), shape[1])


def _examined(block, pairs, found, limits, n_neighbors):
    """Return the references found so far and the limits, after some more pairs."""
    query, reference, bounds = pairs
    order = np.lexsort((bounds, query))
    query, reference, bounds = query[order], reference[order], bounds[order]
    size = query.size
    if n_neighbors is not None:
        size = max(FIRST_ROUND * n_neighbors, FIRST_PAIRS // limits.size)
    while query.size:
        rank = np.arange(query.size) - np.searchsorted(query, query)
        now = rank < size
        distances = block.distances(query[now], reference[now], limits)
        found = _joined(found, query[now], reference[now], distances)
        if n_neighbors is not None:
            limits = _limits(found, limits.size, n_neighbors)
        later = ~now & (bounds <= block.reach(limits)[query])
        query, reference, bounds = query[later], reference[later], bounds[later]
        size *= ROUND_GROWTH
    return found, limits


_NOTHING = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def _joined(found, query, reference, distances):
    near = distances < np.inf
    new = query[near], reference[near], distances[near]
    return tuple(np.concatenate(pair) for pair in zip(found, new, strict=True))


def _limits(found, n_queries, n_neighbors):
    """Return what a bound must not exceed: the distance of the k-th found so far."""
    query, _, distances = found
    order = np.lexsort((distances, query))
    ends = np.searchsorted(query[order], np.arange(n_queries)) + n_neighbors - 1
    limits = np.full(n_queries, np.inf)
    enough = np.bincount(query, minlength=n_queries) >= n_neighbors
    limits[enough] = distances[order[ends[enough]]]
    return limits


def nearest_of(found, n_queries, n_neighbors, radius=None):
    """Return distances and indices of each query, nearest first, ties by index."""
    query, reference, distances = found
    order = np.lexsort((reference, distances, query))
    parts = np.split(order, np.searchsorted(query[order], np.arange(1, n_queries)))
    result = []
    for part in parts:
        chosen = part[:n_neighbors]
        if radius is not None:
            chosen = chosen[distances[chosen] <= radius]
        result.append((distances[chosen], reference[chosen]))
    return result
