"""Approximate nearest neighbours: a graph proposes models, distances decide.

Models are held out while the graph is made. One half of them decides how many
candidates a query gets, the other half measures the recall, so it was not chosen.
"""

import warnings
from collections import Counter
from copy import copy

import numpy as np

from skawhmm.distances._pairwise import all_pairs
from skawhmm.distances._resolve import fitted_metric
from skawhmm.models._batch import HMMBatch
from skawhmm.neighbors._from_distances import nearest
from skawhmm.neighbors._graph import (
    ModelGraph,
    engine,
    point_units,
    state_points,
)
from skawhmm.neighbors._search import (
    QUERY_BLOCK,
    SearchIndex,
    can_prune,
    nearest_of,
    paired,
)
from skawhmm.utils._parallel import Shared, completed

# Models that are held out to measure the recall; fewer if distances have no bounds, so
# that the distances to all models are needed, of which there should be so many.
HELD_OUT, LEAST_HELD_OUT = 400, 20
HELD_OUT_PAIRS = 400_000

# Candidates of a query to begin with, twice as many as long as the recall is too low,
# and at most.
FIRST_CANDIDATES, MOST_CANDIDATES = 32, 8192

# Pairs of which distances are computed at once.
PAIR_BLOCK = 1 << 14


def check_approximable(models):
    """Raise unless a graph can propose neighbours among these models."""
    engine()
    if state_points(models[:1]) is None:
        raise ValueError(
            "algorithm='approximate' needs models that observed every feature and "
            "whose states are points, such as Gaussian ones, got states of kind "
            f"{models.emission.name!r}, observed = {models.observed is not None}. "
            "Use algorithm='auto'."
        )


class ApproximateIndex:
    """Reference models arranged for approximate search.

    Parameters
    ----------
    references : HMMBatch
        The models to search, for which `check_approximable` holds.

    metric : object
        The distance.

    n_neighbors : int
        Number of neighbours whose recall is measured.

    min_recall : float
        The recall that decides how many candidates a query gets.

    n_jobs : int, default=None
        Number of joblib workers, and of threads that make the graph.

    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    recall : float
        Fraction of the nearest neighbours of held out models that were found.

    n_candidates : int
        Number of nodes of the graph that a query is compared with.

    counts : Counter
        How many full distances the last search computed.
    """

    def __init__(
        self, references, metric, n_neighbors, min_recall, *, n_jobs=None, verbose=0
    ):
        self.references = references._bare()
        self.metric = fitted_metric(metric, self.references)
        self.exact = None
        if can_prune(self.metric, self.references):
            self.exact = SearchIndex(self.references, self.metric, n_jobs=n_jobs)
        self.keys = self.references.keys if self.exact is None else self.exact.keys
        self.counts: Counter[str] = Counter()
        self._build(n_neighbors, min_recall, n_jobs, verbose)

    @classmethod
    def of(cls, references, metric, keys, exact, graph, members, n_candidates, recall):
        """Return the index whose parts are known, such as those in a file."""
        index = cls.__new__(cls)
        index.references, index.metric, index.keys = references._bare(), metric, keys
        index.exact, index.graph = exact, graph
        index.members, index.starts = members
        index.n_candidates, index.recall = n_candidates, recall
        index.counts = Counter()
        return index

    def __len__(self):
        return len(self.references)

    def _build(self, n_neighbors, min_recall, n_jobs, verbose):
        """Make the graph; held out models are its last nodes."""
        _, firsts = np.unique(self.keys, return_index=True)
        rng = np.random.default_rng(0)
        firsts = rng.permutation(firsts)
        most = HELD_OUT
        if self.exact is None:
            most = int(np.clip(HELD_OUT_PAIRS // len(self), LEAST_HELD_OUT, HELD_OUT))
        n_held = min(most, len(firsts) // 5)
        nodes = np.concatenate([firsts[n_held:], firsts[:n_held]])
        self._set_members(self.keys, self.keys[nodes])
        self.graph = ModelGraph(point_units(self.references, self.metric, n_jobs))
        work = {"n_jobs": n_jobs, "verbose": verbose}
        self.graph.add(self.references[nodes[: len(nodes) - n_held]], **work)
        self.n_candidates, self.recall = len(nodes), 1.0
        if n_held > 1:
            self._measure(nodes[-n_held:], n_neighbors, min_recall, n_jobs)
        self.graph.add(self.references[nodes[len(nodes) - n_held :]], **work)

    def _set_members(self, keys, node_keys):
        """Set `members`, the models of each node in their order, and `starts`."""
        order = np.argsort(node_keys, kind="stable")
        node = order[np.searchsorted(node_keys, keys, sorter=order)]
        self.members = np.argsort(node, kind="stable")
        sizes = np.bincount(node, minlength=len(node_keys))
        self.starts = np.concatenate([[0], np.cumsum(sizes)])

    def _measure(self, held, n_neighbors, min_recall, n_jobs):
        """Set the number of candidates and the recall, by models not in the graph."""
        inside = self.members[: self.starts[self.graph.n_nodes]]
        queries, rest = self.references[held], np.sort(inside)
        n_neighbors = min(n_neighbors, len(rest))
        if self.exact is None:
            others = self.references[rest]
            pairs = all_pairs(queries, others, self.metric, n_jobs=n_jobs)
            true = nearest(pairs, n_neighbors)[0]
        else:
            index = self.exact.kept(rest)
            true = index.kneighbors(queries, n_neighbors, n_jobs=n_jobs)[0]
        half = len(held) // 2

        def recall(rows):
            found = self.kneighbors(queries[rows], n_neighbors, n_jobs=n_jobs)[0]
            # Which of several at equal distances are found does not count.
            return float(np.mean(found <= true[rows][:, -1:]))

        most = min(MOST_CANDIDATES, self.graph.n_nodes)
        self.n_candidates = min(FIRST_CANDIDATES, most)
        while (reached := recall(slice(None, half))) < min_recall:
            if self.n_candidates == most:
                warnings.warn(
                    f"algorithm='approximate' reaches a recall of {reached:.3f} with "
                    f"{most} candidates per query, below min_recall={min_recall}. "
                    "Other algorithms find all neighbours.",
                    UserWarning,
                    stacklevel=2,
                )
                break
            self.n_candidates = min(2 * self.n_candidates, most)
        self.recall = recall(slice(half, None))

    def takes(self, models):
        """Whether models can be added without a change to those that are here."""
        fits = self.exact is None or self.exact.takes(models)
        return fits and state_points(models[:1]) is not None

    def added(self, models):
        """Return an index with more references, for which `takes` holds."""
        index, models = copy(self), models._bare()
        index.references = HMMBatch.concatenate([self.references, models])
        index.keys = np.concatenate([self.keys, models.keys])
        if self.exact is not None:
            index.exact = self.exact.added(models)
        index.graph = self.graph.copy()
        index.graph.add(models)
        more = len(self) + np.arange(len(models))
        index.members = np.concatenate([self.members, more])
        ends = len(self.members) + 1 + np.arange(len(models))
        index.starts = np.concatenate([self.starts, ends])
        return index

    def kept(self, rows):
        """Return an index with some of the references; None if there are too few.

        The nodes of others stay in the graph, as the way to those that are left.
        """
        if 2 * len(rows) < len(self.starts):
            return None
        index = copy(self)
        index.references, index.keys = self.references[rows], self.keys[rows]
        if self.exact is not None:
            index.exact = self.exact.kept(rows)
        moved = np.full(len(self), -1)
        moved[rows] = np.arange(len(rows))
        members = moved[self.members]
        stay = members >= 0
        index.members = members[stay]
        index.starts = np.concatenate([[0], np.cumsum(stay)])[self.starts]
        return index

    def kneighbors(self, queries, n_neighbors, *, n_jobs=None, verbose=0):
        """Find near references of each query, the nearest ones with few exceptions."""
        own = None if queries is not None else np.arange(len(self))
        queries = self.references if queries is None else queries._bare()
        # A query that is a reference is not its own neighbour.
        n_wanted = n_neighbors + (own is not None)
        number = max(self.n_candidates, 2 * n_wanted)
        nodes = self.graph.candidates(queries, number, n_jobs)
        candidates = [self._models_at(found, n_wanted) for found in nodes]
        short = [n for n, rows in enumerate(candidates) if len(rows) < n_wanted]
        for n in short:
            # Parts of the graph may not be connected.
            candidates[n] = np.arange(len(self))
        tasks = [
            (queries[first:last], first, candidates[first:last])
            for first in range(0, len(queries), QUERY_BLOCK)
            for last in [min(first + QUERY_BLOCK, len(queries))]
        ]
        value = self.references, self.keys, self.metric, n_neighbors, own is not None
        results = completed(
            _nearest_candidates,
            Shared(value),
            tasks,
            n_jobs=n_jobs,
            verbose=verbose,
            label="queries",
        )
        found = [one for part in results for one in part]
        self.counts = Counter(distance=sum(map(len, candidates)))
        return np.array([one[0] for one in found]), np.array([one[1] for one in found])

    def _models_at(self, nodes, n_wanted):
        """Return the first models of some nodes; those of a node are equal."""
        sizes = np.minimum(self.starts[nodes + 1] - self.starts[nodes], n_wanted)
        places = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.members[np.repeat(self.starts[nodes], sizes) + places]


def _nearest_candidates(shared, queries, first, candidates):
    """Return distances and indices of the nearest candidates of a few queries."""
    references, keys, metric, n_neighbors, is_own = shared.value
    if is_own:
        candidates = [rows[rows != first + n] for n, rows in enumerate(candidates)]
    query = np.repeat(np.arange(len(queries)), [len(rows) for rows in candidates])
    reference = np.concatenate(candidates)
    distances = np.empty(query.size)
    tile = getattr(metric, "max_tile", None)
    step = PAIR_BLOCK if tile is None else tile**2
    for start in range(0, query.size, step):
        now = slice(start, start + step)
        _, prepared, a, b = paired(
            metric, queries, queries.keys, references, keys, query[now], reference[now]
        )
        distances[now] = metric.distances(prepared, a, b)
    return nearest_of((query, reference, distances), len(queries), n_neighbors)
