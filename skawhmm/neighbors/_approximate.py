"""Approximate nearest neighbours: only models of nearby groups are compared.

Some models are held out. One half of them decides how many groups and candidates a
query gets, the other half measures the recall, which is therefore not optimistic.
"""

import warnings
from collections import Counter
from copy import copy
from typing import Any

import numpy as np

from skawhmm.distances._pairwise import all_pairs
from skawhmm.distances._resolve import fitted_metric
from skawhmm.models._batch import HMMBatch
from skawhmm.neighbors._from_distances import nearest
from skawhmm.neighbors._points import PointIndex, state_points
from skawhmm.neighbors._search import (
    Breadth,
    SearchIndex,
    can_prune,
    marginal_parts,
    nearest_of,
    paired,
    query_blocks,
)
from skawhmm.utils._parallel import completed

# Number of models held out to measure the recall, at most and at least. Without bounds,
# each needs its distance to every model: HELD_OUT_PAIRS limits these distances.
HELD_OUT, LEAST_HELD_OUT = 400, 20
HELD_OUT_PAIRS = 400_000

# How many of the neighbours that may be missed, as a fraction, are missed because the
# marginal part of their distance is unusually large.
FRACTION_MISSES = 0.25

# Groups per query at the start, and candidates at the start and at most. Both are
# doubled until the recall is high enough.
FIRST_GROUPS = 4
FIRST_CANDIDATES, MOST_CANDIDATES = 32, 8192

# Number of pairs whose distances are computed at once.
PAIR_BLOCK = 1 << 14


def check_approximable(models):
    """Raise unless the states of these models are points."""
    if state_points(models[:1]) is None:
        raise ValueError(
            "algorithm='approximate' needs models that observed every feature and "
            "whose states are points, such as Gaussian ones, got states of kind "
            f"{models.emission.name!r}, observed = {models.observed is not None}. "
            "Use algorithm='auto'."
        )


class ApproximateIndex:
    """Reference models arranged for approximate search.

    If the distance has bounds, this is the exact search, limited to the nearest groups
    of `SearchIndex`. Otherwise the members of the nearest groups of `PointIndex` are
    ranked by the transport of their points, and only the best candidates get a true
    distance.

    Parameters
    ----------
    references : HMMBatch
        The models to search; `check_approximable` must accept them.

    metric : object
        The distance.

    n_neighbors : int
        Number of neighbours per query for which the recall is measured.

    min_recall : float
        The recall that decides how many groups and candidates a query gets.

    n_jobs : int, default=None
        Number of joblib workers.

    Attributes
    ----------
    recall : float
        Fraction of the nearest neighbours of held-out models that were found.

    n_groups : int
        Number of groups that a query is compared with.

    marginal_fraction : float
        As in `Breadth`, if there are bounds.

    n_candidates : int
        Number of their members that get a true distance, if there are no bounds.

    counts : Counter
        How many pairs the last search examined.
    """

    def __init__(self, references, metric, n_neighbors, min_recall, *, n_jobs=None):
        self.references = references._bare()
        self.metric = fitted_metric(metric, self.references)
        self.exact = self.points = None
        if can_prune(self.metric, self.references):
            self.exact = SearchIndex(self.references, self.metric, n_jobs=n_jobs)
            self.keys = self.exact.keys
        else:
            self.points = PointIndex.make(self.references, self.metric, n_jobs)
            self.keys = self.references.keys
        self.counts: Counter[str] = Counter()
        self.n_groups, self.n_candidates, self.recall = 1, FIRST_CANDIDATES, 1.0
        self.marginal_fraction = 1.0
        self.n_fitted = len(self)
        self._measure(n_neighbors, min_recall, n_jobs)

    @classmethod
    def of(cls, references, metric, keys, exact, points, numbers):
        """Return an index from existing parts, such as the parts read from a file."""
        index = cls.__new__(cls)
        index.references, index.metric, index.keys = references._bare(), metric, keys
        index.exact, index.points = exact, points
        vars(index).update(numbers)
        index.counts = Counter()
        return index

    def __len__(self):
        return len(self.references)

    @property
    def _all_groups(self):
        """Number of groups."""
        index: Any = self.points or self.exact
        return index.balls.n_groups

    def _measure(self, n_neighbors, min_recall, n_jobs):
        """Set how many groups and candidates a query gets, and the recall.

        Held-out models are removed from their groups; the centres do not change.
        """
        _, firsts = np.unique(self.keys, return_index=True)
        most = HELD_OUT
        if self.exact is None:
            most = int(np.clip(HELD_OUT_PAIRS // len(self), LEAST_HELD_OUT, HELD_OUT))
        n_held = min(most, len(firsts) // 5)
        if n_held < 2:
            self.n_groups, self.n_candidates = self._all_groups, len(self)
            return
        held = np.random.default_rng(0).permutation(firsts)[:n_held]
        rest = np.flatnonzero(~np.isin(self.keys, self.keys[held]))
        n_neighbors = min(n_neighbors, len(rest))
        trial, queries = self._without(rest), self.references[held]
        half, work = n_held // 2, (n_neighbors, n_jobs)
        true, nearest = trial._true_neighbors(queries, *work)
        if self.exact is not None:
            chosen = queries[:half], true[:half], nearest[:half]
            self.marginal_fraction = trial._chosen_fraction(*chosen, min_recall)
            trial.marginal_fraction = self.marginal_fraction
        chosen, reached = trial._choose(queries[:half], true[:half], min_recall, *work)
        if reached < min_recall:
            warnings.warn(
                f"algorithm='approximate' reaches a recall of {reached:.3f} with "
                f"{chosen[1]} candidates per query, below min_recall={min_recall}. "
                "Other algorithms find all neighbours.",
                UserWarning,
                stacklevel=2,
            )
        self.n_groups, self.n_candidates = trial.n_groups, trial.n_candidates = chosen
        self.recall = trial._recall(queries[half:], true[half:], *work)

    def _without(self, rest):
        """Return an index with some of the references, in the same groups."""
        index = copy(self)
        index.references, index.keys = self.references[rest], self.keys[rest]
        index.exact = self.exact and self.exact.kept(rest)
        index.points = self.points and self.points.kept(rest)
        return index

    def _true_neighbors(self, queries, n_neighbors, n_jobs):
        """Return the distances to the nearest references, and their indices."""
        if self.exact is not None:
            return self.exact.kneighbors(queries, n_neighbors, n_jobs=n_jobs)
        pairs = all_pairs(queries, self.references, self.metric, n_jobs=n_jobs)
        return nearest(pairs, n_neighbors)

    def _chosen_fraction(self, queries, true, indices, min_recall):
        """Return the least sufficient `marginal_fraction`, given the true neighbours.

        It misses a part of the neighbours that may be missed.
        """
        parts = marginal_parts(self.exact, queries, indices)
        limits = np.maximum(true[:, -1:], np.finfo(float).tiny)
        level = 1 - FRACTION_MISSES * (1 - min_recall)
        return float(np.quantile(parts / limits, level, method="higher"))

    def _recall(self, queries, true, n_neighbors, n_jobs):
        """Return the fraction of the neighbours, by their distances, that are found."""
        found = self.kneighbors(queries, n_neighbors, n_jobs=n_jobs)[0]
        # Any of several neighbours at equal distance counts as found.
        return float(np.mean(found <= true[:, -1:]))

    def _choose(self, queries, true, min_recall, n_neighbors, n_jobs):
        """Return the least sufficient numbers of groups and candidates, and the recall.

        The number of groups is doubled first, then the number of candidates.
        """
        most = self._all_groups, min(MOST_CANDIDATES, len(self))
        self.n_groups, self.n_candidates = FIRST_GROUPS, most[1]
        for name, limit in zip(("n_groups", "n_candidates"), most, strict=True):
            if name == "n_candidates" and self.exact is not None:
                break
            if name == "n_candidates":
                self.n_candidates = FIRST_CANDIDATES
            setattr(self, name, min(getattr(self, name), limit))
            while True:
                reached = self._recall(queries, true, n_neighbors, n_jobs)
                value = getattr(self, name)
                if reached >= min_recall or value == limit:
                    break
                setattr(self, name, min(2 * value, limit))
        return (self.n_groups, self.n_candidates), reached

    def takes(self, models):
        """Return whether models can be added without changing the existing ones."""
        if self.exact is not None:
            return self.exact.takes(models)
        size = models.transmats.shape[1] == self.references.transmats.shape[1]
        return size and state_points(models[:1]) is not None

    def added(self, models):
        """Return an index with more references, which `takes` must accept."""
        index, models = copy(self), models._bare()
        index.references = HMMBatch.concatenate([self.references, models])
        index.keys = np.concatenate([self.keys, models.keys])
        index.exact = self.exact and self.exact.added(models)
        index.points = self.points and self.points.added(models)
        return index

    def kept(self, rows):
        """Return an index with some of the references; None if there are too few."""
        return self._without(rows) if 2 * len(rows) >= self.n_fitted else None

    def kneighbors(self, queries, n_neighbors, *, n_jobs=None, verbose=0):
        """Find near references of each query, the nearest ones with few exceptions."""
        if self.exact is not None:
            found = self.exact.kneighbors(
                queries,
                n_neighbors,
                breadth=Breadth(self.n_groups, self.marginal_fraction),
                n_jobs=n_jobs,
                verbose=verbose,
            )
            self.counts = self.exact.counts
            return found
        is_own = queries is None
        queries = self.references if is_own else queries._bare()
        tasks = [
            (queries[first:last], first)
            for first, last in query_blocks(len(queries), n_jobs)
        ]
        results = completed(
            _nearest_candidates,
            (self, n_neighbors, is_own),
            tasks,
            n_jobs=n_jobs,
            verbose=verbose,
            label="queries",
        )
        parts = list(results)
        self.counts = Counter(distance=sum(number for _, number in parts))
        found = [one for part, _ in parts for one in part]
        return np.array([one[0] for one in found]), np.array([one[1] for one in found])


def _nearest_candidates(data, queries, first):
    """Return the neighbours of a few queries, and the number of distances computed."""
    index, n_neighbors, is_own = data
    references, metric = index.references, index.metric
    # A query that is a reference is not its own neighbour.
    n_wanted = n_neighbors + is_own
    number = max(index.n_candidates, 2 * n_wanted)
    ranked = index.points.candidates(queries, index.n_groups, n_wanted)
    if is_own:
        ranked = [rows[rows != first + n] for n, rows in enumerate(ranked)]
    ranked = [rows[:number] for rows in ranked]
    query = np.repeat(np.arange(len(queries)), [len(rows) for rows in ranked])
    reference = np.concatenate(ranked)
    distances = np.empty(query.size)
    tile = getattr(metric, "max_tile", None)
    step = PAIR_BLOCK if tile is None else tile**2
    for start in range(0, query.size, step):
        now = slice(start, start + step)
        _, prepared, a, b = paired(
            metric,
            queries,
            queries.keys,
            references,
            index.keys,
            query[now],
            reference[now],
        )
        distances[now] = metric.distances(prepared, a, b)
    found = nearest_of((query, reference, distances), len(queries), n_neighbors)
    return found, query.size
