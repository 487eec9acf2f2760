r"""Exact nearest neighbours without computing every distance.

A reference can be skipped as soon as a lower bound of its distance exceeds the distance
of the k-th neighbour found so far. Bounds are applied cheapest first: the cost of
moving the states of the query to the centres of a group of models, minus the cost of
moving the states of a member there (see `_balls`); the relaxed and then the optimal
transport of state vectors, with the transition component under the best plan if this
plan is certain; otherwise the marginal component and the bound of the transition
component. The remaining distances are computed in full, so the answers equal a search
through all references, to the last bit and with ties in the same order.

With :math:`f = (\mu, \sqrt{\operatorname{diag} \Sigma})` the Euclidean distance of two
states' vectors is at most :math:`W_2`: each coordinate of a coupling of two Gaussians
costs at least what the coupling of its own margins does. Hence, for p >= 1:

- relaxed: :math:`R^p \ge \sum_i \pi_a[i] \min_j \lVert f_i - f_j \rVert^p` and the same
  with a and b exchanged, since a plan with one margin less to obey costs no more;
- group: R is at least the cost of moving a to the centres less that of b, by the
  triangle inequality;
- transport: :math:`R^p \ge OT_{c}(\pi_a, \pi_b)` with
  :math:`c_{ij} = \lVert f_i - f_j \rVert^p`;
- transition: :math:`OT_{C^p}(s, t) \ge \lVert (s - t) F \rVert^p` for rows s, t and the
  matrix F of the states' vectors, by convexity.

`docs/search_proofs.md` has the proofs.
"""

from collections import Counter
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skawhmm.distances._aggregated import registered_transitions
from skawhmm.distances._base import BoundedDistance
from skawhmm.distances._components import marginal_components
from skawhmm.distances._pairwise import oriented
from skawhmm.distances._registration import optimal_registrations, power_cost
from skawhmm.models._batch import HMMBatch
from skawhmm.neighbors._balls import (
    LARGEST_COORDINATE,
    grown_balls,
    kept_balls,
    make_balls,
    points_of,
    state_vectors,
)
from skawhmm.neighbors._search_kernels import (
    costs_to_centres,
    group_survivors,
    transition_bounds,
)
from skawhmm.utils._parallel import completed, even_ranges

# Bounds and distances are rounded; a reference is dropped only if its bound exceeds
# the limit by more than this fraction.
PRUNING_SLACK = 1e-6

# Rounding of single precision.
SINGLE = 2.0**-24

# Queries searched together, so that compiled loops have enough pairs to work on: at
# most, and at least if there are several workers.
QUERY_BLOCK, LEAST_BLOCK = 64, 16

# Number of groups that are compared with a query at first, and next.
FIRST_GROUPS = 2
NEAR_GROUPS = 6

# Number of references compared before limits are tightened: per neighbour of a query,
# and over all queries if there are few. Both are multiplied each round.
FIRST_ROUND = 3
FIRST_PAIRS = 256
ROUND_GROWTH = 4


def has_bounds(metric):
    """Return whether this distance has lower bounds between Gaussian models."""
    if not isinstance(metric, BoundedDistance):
        return False
    return metric.marginal_weight > 0 and metric.p >= 1 and metric.symmetric


def can_prune(metric, references):
    """Return whether a distance between these models has bounds for `SearchIndex`."""
    return (
        has_bounds(metric)
        and references.emission.name == "gaussian"
        and references.observed is None
    )


def check_prunable(possible, metric):
    """Raise unless a pruned search is possible."""
    if not possible:
        raise ValueError(
            "algorithm='pruned' needs a distance with lower bounds ('maw', 'jaw', "
            "'iaw' with debias=False, or 'coupling', with p >= 1 and "
            "alpha < 1) and Gaussian models that observed every feature, got "
            f"metric={metric!r}. "
            "Use algorithm='auto' or 'brute'."
        )


def query_blocks(n_queries, n_jobs):
    """Return ranges of queries that are searched together."""
    limits = {"per_job": 1, "least": LEAST_BLOCK, "most": QUERY_BLOCK}
    return even_ranges(np.ones(n_queries, np.int64), n_jobs, **limits)


class Breadth(NamedTuple):
    """How much of a collection a search takes into account.

    Attributes
    ----------
    n_groups : int or None
        How many of the nearest groups; None for all.

    marginal_fraction : float
        How much of the distance of the k-th neighbour found so far the marginal part of
        a bound may take, 1 if nothing may be missed.
    """

    n_groups: int | None
    marginal_fraction: float


EVERYTHING = Breadth(None, 1.0)


class SearchIndex:
    """Reference models arranged for exact pruned search.

    Parameters
    ----------
    references : HMMBatch
        The models to search.

    metric : object
        A distance that `can_prune` accepts.

    n_jobs : int, default=None
        Number of joblib workers that build the index.

    Attributes
    ----------
    counts : Counter
        How many pairs each stage examined in the last search: "group" (queries and
        groups), "member" (queries and models of the remaining groups), "transport" (of
        state vectors), "marginal" (where that is not the marginal component) and
        "distance" (full distances).
    """

    def __init__(self, references, metric, *, n_jobs=None):
        self.metric = metric
        references = references._bare()
        balls = make_balls(references, metric, n_jobs)
        self._set(references, references.keys, balls)

    @classmethod
    def of(cls, references, metric, keys, balls):
        """Return an index from existing parts, such as the parts read from a file."""
        index = cls.__new__(cls)
        index.metric = metric
        index._set(references._bare(), keys, balls)
        return index

    def _set(self, references, keys, balls):
        """Set the references, their arrays and the rounding errors of the bounds."""
        self.references, self.keys, self.balls = references, keys, balls
        self.counts: Counter[str] = Counter()
        size = balls.tiles.shape[2]
        # Single precision rounds sums, in proportion to them, and the vectors.
        self.relative = PRUNING_SLACK + (size + 16) * SINGLE
        # The bounds of two equal models differ from 0 by rounding.
        norm = np.sqrt(size) * balls.scale * balls.largest
        self.rounding = norm * (PRUNING_SLACK + 4 * SINGLE)

    def __len__(self):
        return len(self.references)

    def takes(self, models):
        """Return whether models can be added without changing the existing ones."""
        both = self.references, models
        same_size = len({batch.transmats.shape[1] for batch in both}) == 1
        same_kind = len({batch.covariance_type for batch in both}) == 1
        return same_size and same_kind and models.observed is None

    def added(self, models):
        """Return an index with more references, which `takes` must accept."""
        index, models = copy(self), models._bare()
        index._set(
            HMMBatch.concatenate([self.references, models]),
            np.concatenate([self.keys, models.keys]),
            grown_balls(self.balls, models, self.metric),
        )
        return index

    def kept(self, rows):
        """Return an index with some of the references, in their order."""
        index = copy(self)
        balls = kept_balls(self.balls, rows, self.metric.p)
        index._set(self.references[rows], self.keys[rows], balls)
        return index

    def kneighbors(
        self, queries, n_neighbors, *, breadth=EVERYTHING, n_jobs=None, verbose=0
    ):
        """Find the nearest references of each query, within a `Breadth`."""
        sought = n_neighbors, None, breadth
        parts = self._run(queries, sought, n_jobs, verbose)
        distances = np.array([found[0] for part in parts for found in part])
        indices = np.array([found[1] for part in parts for found in part])
        return distances, indices

    def radius_neighbors(self, queries, radius, *, n_jobs=None, verbose=0):
        """Find all references within a distance of each query."""
        parts = self._run(queries, (None, radius, EVERYTHING), n_jobs, verbose)
        found = [one for part in parts for one in part]
        return [one[0] for one in found], [one[1] for one in found]

    def certified(self, queries, indices, *, n_jobs=None, verbose=0):
        """Return for which queries no other reference is as near as the given ones."""
        queries = queries._bare()
        tasks = [
            (queries[first:last], indices[first:last])
            for first, last in query_blocks(len(queries), n_jobs)
        ]
        parts = completed(
            _certified_block,
            self,
            tasks,
            n_jobs=n_jobs,
            verbose=verbose,
            label="queries",
        )
        return np.concatenate([*parts])

    def _run(self, queries, sought, n_jobs, verbose):
        if queries is not None:
            queries = queries._bare()
        n_queries = len(self if queries is None else queries)
        tasks = [
            (None if queries is None else queries[first:last], first, last)
            for first, last in query_blocks(n_queries, n_jobs)
        ]
        parts, total = [], Counter[str]()
        for found, counts in completed(
            _search_block,
            (self, *sought),
            tasks,
            n_jobs=n_jobs,
            verbose=verbose,
            label="queries",
        ):
            parts.append(found)
            total += counts
        # Assigned in one step, since other threads may search at the same time.
        self.counts = total
        return parts


class _Block:
    """A few queries together with the references they are compared with."""

    def __init__(self, index, queries, own, marginal_fraction=1.0):
        balls = index.balls
        self.index = index
        self.marginal_fraction = marginal_fraction
        self.own = own if queries is None else None
        self.queries = index.references[own] if queries is None else queries
        self.keys = index.keys[own] if queries is None else queries.keys
        metric = index.metric
        self.points = points_of(self.queries, metric, balls.origin, balls.scale)
        # Lower bounds of the marginal component to all models of each group.
        self.centre_gaps = costs_to_centres(
            self.points.vectors,
            self.points.margins,
            balls.centres,
            balls.used,
            metric.p,
        )
        self.group_bounds = self.centre_gaps - balls.widest
        has_chains = (
            self.points.vectors.shape[1] == balls.used.shape[1]
            and len(self.points.chains)
            and len(balls.chains)
            # Plans between projected vectors need not be those between states.
            and max(np.abs(self.points.vectors).max(), balls.largest)
            < LARGEST_COORDINATE
        )
        self.transition_weight = metric.transition_weight if has_chains else 0.0
        # No remaining bound is cheaper than the distance.
        self.is_done = both_diagonal(self.queries, index.references) and (
            metric.transition_weight == 0
        )
        self.counts: Counter[str] = Counter(group=self.group_bounds.size)

    def bound_limits(self, limits):
        """Return the largest bounds, in units of the index, of distances in limits."""
        index = self.index
        return (limits * (1 + index.relative) + index.rounding) / index.balls.scale

    def survivors(self, chosen, limits):
        """Return pairs in groups, chosen per query, whose bounds are within limits."""
        balls, metric = self.index.balls, self.index.metric
        # Rounding is allowed for in full, so that equal models are never missed.
        marginal_limits = self.bound_limits(self.marginal_fraction * limits)
        reach = marginal_limits / metric.marginal_weight
        near = np.flatnonzero(chosen & (self.group_bounds <= reach[:, None]))
        query, group = np.divmod(near, balls.n_groups)
        query, place, bounds, is_certain, counts = group_survivors(
            self.points,
            balls,
            query,
            group,
            self.centre_gaps,
            self.bound_limits(limits),
            marginal_limits,
            metric.p,
            metric.marginal_weight,
            self.transition_weight,
            getattr(metric, "steps", "independent") == "joint",
        )
        self.counts["member"] += counts[0]
        self.counts["transport"] += counts[1]
        pairs = Pairs(query, balls.order[place], bounds, is_certain | self.is_done)
        if self.own is None:
            return pairs
        # A reference is not its own neighbour.
        return pairs.at(self.own[query] != pairs.reference)

    def distances(self, pairs, limits):
        """Return the distances of pairs, infinite where bounds exceed the limits."""
        index, metric = self.index, self.index.metric
        query, reference = pairs.query, pairs.reference
        distances = np.full(query.size, np.inf)
        keep = np.arange(query.size)
        both, prepared, a, b = paired(
            metric,
            self.queries,
            self.keys,
            index.references,
            index.keys,
            query,
            reference,
        )
        waiting = np.flatnonzero(~pairs.is_done & np.isfinite(limits[query]))
        if waiting.size:
            self.counts["marginal"] += waiting.size
            bounds = np.zeros(query.size)
            bounds[waiting] = _registered_bounds(
                metric, prepared, state_vectors(both), a[waiting], b[waiting]
            )
            limits = limits * (1 + PRUNING_SLACK) + index.rounding
            keep = np.flatnonzero(bounds <= limits[query])
        self.counts["distance"] += keep.size
        if keep.size:
            distances[keep] = metric.distances(prepared, a[keep], b[keep])
        return distances


class Pairs(NamedTuple):
    """Pairs of queries and references, their bounds, and whether these are final."""

    query: NDArray[np.intp]
    reference: NDArray[np.int64]
    bounds: NDArray[np.float64]
    is_done: NDArray[np.bool_]

    def at(self, rows):
        """Return some of the pairs."""
        return Pairs(*(array[rows] for array in self))


def both_diagonal(queries, references):
    """Return whether state vectors are exactly as far apart as the states."""
    return queries.covariance_type == references.covariance_type == "diag"


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
        The models as prepared by the distance.

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
        # Converting the covariances to the other type changes the keys.
        both_keys = both.keys
    return both, prepared, *oriented(both_keys, query, place)


def _registered(metric, prepared, a, b):
    """Return the marginal component of pairs, and the best registration."""
    cost = power_cost(prepared.costs.cross(a, b), metric.p)
    plans = optimal_registrations(prepared.margins, prepared.transmats, a, b, cost)
    return marginal_components(plans, cost, metric.p, np.zeros(a.size)), plans


def marginal_parts(index, queries, reference):
    """Return the marginal part of the distances to some references of each query.

    Parameters
    ----------
    index : SearchIndex
        The references.

    queries : HMMBatch
        The queries.

    reference : ndarray of int of shape (n_queries, n_chosen)
        References of each query.
    """
    query = np.repeat(np.arange(len(queries)), reference.shape[1])
    models = queries, queries.keys, index.references, index.keys
    _, prepared, a, b = paired(index.metric, *models, query, reference.ravel())
    marginal, _ = _registered(index.metric, prepared, a, b)
    return index.metric.marginal_weight * marginal.reshape(reference.shape)


def _registered_bounds(metric, prepared, vectors, a, b):
    """Lower bounds of distances that need the best registration."""
    marginal, plans = _registered(metric, prepared, a, b)
    bounds = metric.marginal_weight * marginal
    if metric.transition_weight > 0:
        bounds += metric.transition_weight * _least_transitions(
            metric, prepared, vectors, a, b, plans
        )
    return bounds


def _least_transitions(metric, prepared, vectors, a, b, plans):
    """Lower bounds of the transition component, given the best registration."""
    # A distance without `steps` and `rows` uses the defaults of MAW.
    steps = getattr(metric, "steps", "independent")
    rows = getattr(metric, "rows", "transport")
    if rows == "hellinger":
        # No bound is cheaper than the component itself.
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


def _search_block(data, queries, first, last):
    """Search for a few queries; return what was found for each, and the counts."""
    index, n_neighbors, radius, breadth = data
    own = np.arange(first, last)
    block = _Block(index, queries, own, breadth.marginal_fraction)
    n_queries = len(block.keys)
    limits = np.full(n_queries, np.inf if radius is None else radius)
    found = _NOTHING
    for chosen in _best_first(block, n_neighbors, breadth.n_groups):
        pairs = block.survivors(chosen, limits)
        found, limits = _examined(block, pairs, found, limits, n_neighbors)
    return nearest_of(found, n_queries, n_neighbors, radius), block.counts


def _certified_block(index, queries, indices):
    """Return for which of a few queries only the given references are within reach."""
    n_queries, n_given = indices.shape
    block = _Block(index, queries, None)
    given = np.repeat(np.arange(n_queries), n_given), indices.ravel()
    unbounded = Pairs(*given, np.zeros(indices.size), np.ones(indices.size, bool))
    distances = block.distances(unbounded, np.full(n_queries, np.inf))
    limits = distances.reshape(indices.shape).max(axis=1)
    pairs = block.survivors(np.ones(block.group_bounds.shape, bool), limits)
    pairs = pairs.at(~(indices[pairs.query] == pairs.reference[:, None]).any(axis=1))
    query = pairs.query
    if query.size:
        query = query[block.distances(pairs, limits) <= limits[query]]
    return np.bincount(query, minlength=n_queries) == 0


def _best_first(block, n_neighbors, n_groups):
    """Yield masks of groups per query: the nearest, then some more, then the rest.

    The first mask holds enough references to set limits; the second tightens them. The
    last one holds the rest of the `n_groups` nearest, or of all.
    """
    waiting = np.ones(block.group_bounds.shape, bool)
    if n_neighbors is not None:
        # A query may be among the references.
        gaps, sizes = block.centre_gaps, np.diff(block.index.balls.starts)
        top, n_first = nearest_groups(gaps, sizes, n_neighbors + 1, n_groups)
        rank, n_last = np.arange(top.shape[1]), n_first + NEAR_GROUPS
        masks = [rank < n_first, (rank >= n_first) & (rank < n_last)]
        if n_groups is not None:
            masks.append(rank >= n_last)
        for now in masks:
            query, place = np.nonzero(now)
            chosen = np.zeros_like(waiting)
            chosen[query, top[query, place]] = True
            waiting &= ~chosen
            yield chosen
    if n_groups is None:
        yield waiting


def nearest_groups(gaps, sizes, n_wanted, n_groups=None):
    """Return the groups whose centres are nearest to each query, nearest first.

    Parameters
    ----------
    gaps : ndarray of shape (n_queries, n_groups)
        Costs of the queries to the centres.

    sizes : ndarray of int of shape (n_groups,)
        Number of models in each group.

    n_wanted : int
        Number of models that a query needs.

    n_groups : int, default=None
        Number of groups to return at least; by default enough for two parts of
        `_best_first`.

    Returns
    -------
    top : ndarray of int of shape (n_queries, n_top)
        The groups.

    n_first : ndarray of int of shape (n_queries, 1)
        How many of these, at least `FIRST_GROUPS`, together hold `n_wanted` models.
    """
    n_top = FIRST_GROUPS + NEAR_GROUPS if n_groups is None else n_groups
    n_more = NEAR_GROUPS if n_groups is None else 0
    while True:
        n_top = min(n_top, sizes.size)
        top = np.argpartition(gaps, n_top - 1, axis=1)[:, :n_top]
        order = np.argsort(np.take_along_axis(gaps, top, axis=1), axis=1)
        top = np.take_along_axis(top, order, axis=1)
        held = np.cumsum(sizes[top], axis=1)
        n_first = np.maximum((held < n_wanted).sum(axis=1) + 1, FIRST_GROUPS)
        if n_top == sizes.size or n_first.max() + n_more <= n_top:
            return top, n_first[:, None]
        n_top *= 2


def _examined(block, pairs, found, limits, n_neighbors):
    """Return the references found so far and the limits, after some more pairs."""
    pairs = pairs.at(np.lexsort((pairs.bounds, pairs.query)))
    size = pairs.query.size
    if n_neighbors is not None:
        size = max(FIRST_ROUND * n_neighbors, FIRST_PAIRS // limits.size)
    while pairs.query.size:
        query = pairs.query
        now = np.arange(query.size) - np.searchsorted(query, query) < size
        some = pairs.at(now)
        distances = block.distances(some, limits)
        found = _joined(found, some.query, some.reference, distances)
        if n_neighbors is not None:
            limits = _limits(found, limits.size, n_neighbors)
        pairs = pairs.at(~now & (pairs.bounds <= block.bound_limits(limits)[query]))
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
