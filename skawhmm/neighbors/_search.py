r"""Exact nearest neighbours without computing every distance.

A reference can be skipped as soon as a lower bound of its distance exceeds the distance
of the k-th neighbour found so far. Bounds are applied cheapest first: a tree over the
leading coordinates of the centroids, the whole centroids, the relaxed transport, the
marginal component, the bound of the transition component. The distances that are left
are computed like any others, so the answers are the same as those of a search through
all references, to the last bit and with ties in the same order.

With :math:`f = (\mu, \sqrt{\operatorname{diag} \Sigma})` the Euclidean distance of two
states' vectors is at most :math:`W_2`: each coordinate of a coupling of two Gaussians
costs at least what the coupling of its own margins does. Hence, for p >= 1:

- centroid: :math:`R \ge \lVert E_a f - E_b f \rVert`, since a norm is convex;
- relaxed: :math:`R^p \ge \sum_i \pi_a[i] \min_j \lVert f_i - f_j \rVert^p` and the same
  with a and b exchanged, since a plan with one margin less to obey costs no more;
- transition: :math:`OT_{C^p}(s, t) \ge \lVert (s - t) F \rVert^p` for rows s, t and the
  matrix F of the states' vectors, again by convexity.
"""

from collections import Counter
from copy import copy

import numpy as np
from sklearn.neighbors import KDTree

from skawhmm.distances._aggregated import registered_transitions
from skawhmm.distances._base import BoundedDistance
from skawhmm.distances._components import marginal_components
from skawhmm.distances._pairwise import bare_models, oriented
from skawhmm.distances._prepared import PreparedModels
from skawhmm.distances._registration import optimal_registrations, power_cost
from skawhmm.models._batch import HMMBatch
from skawhmm.neighbors._search_kernels import (
    centroid_bounds,
    relaxed_bounds,
    transition_bounds,
)
from skawhmm.utils._parallel import Shared, completed

# Coordinates of the centroids that the tree holds: trees do not pay in more.
TREE_DIMENSIONS = 6

# Bounds and distances are rounded; a reference is dropped only if its bound exceeds
# the limit by more than this fraction.
PRUNING_SLACK = 1e-6

# References that came after the tree was made, as a fraction of those in it, at which
# it is made again; so the cost per added reference does not grow.
LATER_FRACTION = 0.25

# Queries searched together, so that compiled loops have enough pairs to work on.
QUERY_BLOCK = 64

# References examined per query before limits are tightened, if there are many queries,
# and of all queries, if there are few; doubled each round.
FIRST_ROUND = 4
FIRST_PAIRS = 256


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


def state_vectors(models):
    """Return the vectors f of states, (n_models, n_components, 2 * n_features)."""
    variances = models.covars
    if models.covariance_type == "full":
        variances = np.diagonal(variances, axis1=2, axis2=3)
    return np.concatenate([models.means, np.sqrt(variances)], axis=2)


class SearchIndex:
    """Reference models arranged for exact pruned search.

    Parameters
    ----------
    references : HMMBatch
        The models to search.

    metric : object
        A distance for which `can_prune` holds.

    Attributes
    ----------
    counts : Counter
        How many pairs each stage examined in the last search: "centroid", "relaxed",
        "marginal" and "distance" (the full ones).
    """

    def __init__(self, references, metric):
        self.metric = metric
        self.counts: Counter[str] = Counter()
        self.references = bare_models(references)
        self.prepared, self.vectors, self.centroids = _arranged(self.references, metric)
        self._plant()

    def _plant(self):
        """Make a tree of all references."""
        # The bounds of two equal models differ from 0 by rounding.
        self.rounding = PRUNING_SLACK * np.abs(self.vectors).max()
        self.centre = self.centroids.mean(axis=0)
        spread = self.centroids - self.centre
        _, basis = np.linalg.eigh(spread.T @ spread)
        self.basis = basis[:, ::-1][:, :TREE_DIMENSIONS]
        self.tree = KDTree(spread @ self.basis)
        # The reference that each point of the tree stands for, -1 if it was removed,
        # and the references that came after the tree was made.
        self.places = np.arange(len(self))
        self.later = np.empty(0, np.int64)

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
        index, models = copy(self), bare_models(models)
        prepared, vectors, centroids = _arranged(models, self.metric)
        index._set(
            HMMBatch.concatenate([self.references, models]),
            np.concatenate([self.references.keys, models.keys]),
            PreparedModels.concatenate([self.prepared, prepared]),
            np.concatenate([self.vectors, vectors]),
            np.concatenate([self.centroids, centroids]),
        )
        slack = PRUNING_SLACK * np.abs(vectors).max()
        index.rounding = max(self.rounding, slack)
        index.later = np.append(self.later, np.arange(len(self), len(index)))
        if len(index.later) > LATER_FRACTION * len(self.places) + QUERY_BLOCK:
            index._plant()
        return index

    def kept(self, rows):
        """Return an index with some of the references, in their order."""
        index = copy(self)
        index._set(
            self.references[rows],
            self.references.keys[rows],
            self.prepared.rows(rows),
            self.vectors[rows],
            self.centroids[rows],
        )
        # The last entry is for points that were removed before.
        moved = np.full(len(self) + 1, -1)
        moved[rows] = np.arange(len(rows))
        index.places, index.later = moved[self.places], moved[self.later]
        index.later = index.later[index.later >= 0]
        if 2 * np.count_nonzero(index.places < 0) > len(index.places):
            index._plant()
        return index

    def _set(self, references, keys, prepared, vectors, centroids):
        """Set what belongs to each reference."""
        # Keys take longer than all else, and are known.
        vars(references)["keys"] = keys
        self.references, self.prepared = references, prepared
        self.vectors, self.centroids = vectors, centroids
        self.counts = Counter()

    def near(self, points, reach):
        """Return pairs of queries and references that the tree does not rule out."""
        hits = self.tree.query_radius(points, reach)
        query = np.repeat(np.arange(len(points)), [hit.size for hit in hits])
        query, reference = self._pairs(query, np.concatenate(hits))
        rest = np.repeat(np.arange(len(points)), len(self.later))
        later = np.tile(self.later, len(points))
        return np.append(query, rest), np.append(reference, later)

    def guesses(self, points, n_guesses):
        """Return pairs of queries and references whose centroids look nearest."""
        n_guesses = min(n_guesses, len(self.places))
        hits = self.tree.query(points, n_guesses, return_distance=False)
        return self._pairs(np.repeat(np.arange(len(points)), n_guesses), hits.ravel())

    def _pairs(self, query, hits):
        """Return points of the tree as the references they still stand for."""
        reference = self.places[hits.astype(np.int64)]
        return query[reference >= 0], reference[reference >= 0]

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

    def _run(self, queries, n_neighbors, radius, n_jobs, verbose):
        index, queries = self._aligned(queries)
        n_queries = len(index if queries is None else queries)
        tasks = [
            (None if queries is None else queries[first:last], first, last)
            for first in range(0, n_queries, QUERY_BLOCK)
            for last in [min(first + QUERY_BLOCK, n_queries)]
        ]
        shared = Shared((index, n_neighbors, radius), 2 * index.references.nbytes)
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

    def _aligned(self, queries):
        """Return an index and queries with as many states and the same covariances."""
        if queries is None:
            return self, None
        both = HMMBatch.concatenate([self.references[:1], bare_models(queries)])
        size = both.transmats.shape[1]
        same_size = size == self.references.transmats.shape[1]
        if same_size and both.covariance_type == self.references.covariance_type:
            return self, both[1:]
        wide = HMMBatch.concatenate([self.references, bare_models(queries[:1])])[:-1]
        return SearchIndex(wide, self.metric), both[1:]


class _Block:
    """A few queries together with the references they are compared with."""

    def __init__(self, index, queries, own):
        self.index = index
        self.own = own if queries is None else None
        if queries is None:
            self.prepared = index.prepared.rows(own)
            self.vectors, self.keys = index.vectors[own], index.references.keys[own]
        else:
            self.prepared = index.metric.prepare(queries)
            self.vectors, self.keys = state_vectors(queries), queries.keys
        self.centroids = _centroids(self.prepared.margins, self.vectors)
        self.points = (self.centroids - index.centre) @ index.basis
        self.counts: Counter[str] = Counter()

    def others(self, query, reference):
        """Drop pairs of a reference with itself."""
        if self.own is None:
            return query, reference
        keep = self.own[query] != reference
        return query[keep], reference[keep]

    def bounded(self, query, reference, limits):
        """Drop pairs whose cheap bounds exceed the limits; return the other bounds."""
        index, p = self.index, self.index.metric.p
        share = index.metric.marginal_weight
        self.counts["centroid"] += query.size
        bounds = share * centroid_bounds(
            self.centroids, index.centroids, query, reference
        )
        keep = bounds <= limits[query]
        query, reference = query[keep], reference[keep]
        self.counts["relaxed"] += query.size
        bounds = share * relaxed_bounds(
            self.vectors,
            self.prepared.margins,
            index.vectors,
            index.prepared.margins,
            query,
            reference,
            p,
        )
        keep = bounds <= limits[query]
        return query[keep], reference[keep], bounds[keep]

    def distances(self, query, reference, limits):
        """Return the distances of pairs, infinite where bounds exceed the limits."""
        index, metric = self.index, self.index.metric
        used, place = np.unique(reference, return_inverse=True)
        parts = [self.prepared, index.prepared.rows(used)]
        prepared = PreparedModels.concatenate(parts)
        vectors = np.concatenate([self.vectors, index.vectors[used]])
        keys = np.concatenate([self.keys, index.references.keys[used]])
        a, b = oriented(keys, query, len(self.keys) + place)
        keep = np.arange(query.size)
        distances = np.full(query.size, np.inf)
        if np.isfinite(limits[query]).any():
            self.counts["marginal"] += query.size
            bounds = _registered_bounds(metric, prepared, vectors, a, b)
            keep = np.flatnonzero(bounds <= limits[query])
        self.counts["distance"] += keep.size
        if keep.size:
            distances[keep] = metric.distances(prepared, a[keep], b[keep])
        return distances


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
    found = _NOTHING
    if n_neighbors is None:
        limits = np.full(n_queries, radius * (1 + PRUNING_SLACK) + index.rounding)
    else:
        found = _first_guess(block, n_queries, n_neighbors)
        limits = _limits(found, n_queries, n_neighbors) + index.rounding
    reach = limits / index.metric.marginal_weight
    query, reference = block.others(*index.near(block.points, reach))
    fresh = ~np.isin(query * len(index) + reference, found[0] * len(index) + found[1])
    query, reference, bounds = block.bounded(query[fresh], reference[fresh], limits)
    order = np.lexsort((bounds, query))
    query, reference, bounds = query[order], reference[order], bounds[order]
    size = max(FIRST_ROUND, FIRST_PAIRS // n_queries)
    while query.size:
        rank = np.arange(query.size) - np.searchsorted(query, query)
        now = rank < size
        distances = block.distances(query[now], reference[now], limits)
        found = _joined(found, query[now], reference[now], distances)
        if n_neighbors is not None:
            limits = _limits(found, n_queries, n_neighbors) + index.rounding
        later = ~now & (bounds <= limits[query])
        query, reference, bounds = query[later], reference[later], bounds[later]
        size *= 2
    return _sorted(found, n_queries, n_neighbors, radius), block.counts


_NOTHING = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def _first_guess(block, n_queries, n_neighbors):
    """Return the distances of the references whose centroids look nearest."""
    pairs = block.index.guesses(block.points, 2 * n_neighbors + 2)
    query, reference = block.others(*pairs)
    distances = block.distances(query, reference, np.full(n_queries, np.inf))
    return query, reference, distances


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
    return limits * (1 + PRUNING_SLACK)


def _sorted(found, n_queries, n_neighbors, radius):
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


def _arranged(models, metric):
    """Return what bounds and distances need of models, one row per model."""
    prepared, vectors = metric.prepare(models), state_vectors(models)
    return prepared, vectors, _centroids(prepared.margins, vectors)


def _centroids(weights, vectors):
    return np.einsum("nk,nkd->nd", weights, vectors)
