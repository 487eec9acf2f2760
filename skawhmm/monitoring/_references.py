r"""Reference windows, prepared for comparison with one window at a time.

With the state vectors f of `neighbors._search` and the mean vector
:math:`m = \sum_i \pi_i f_i` of a model, the marginal component is
:math:`R \ge \lVert m_a - m_b \rVert` for p >= 1: by convexity, the mean cost of a plan
is at least the length of the mean difference, and this is the same for all plans. One
array operation gives this bound for all references, where an index would take longer
than the distances.
"""

from typing import Any

import numpy as np

from skawhmm.distances._pairwise import oriented
from skawhmm.distances._prepared import PreparedModels
from skawhmm.neighbors._balls import state_vectors
from skawhmm.neighbors._from_distances import nearest
from skawhmm.neighbors._search import can_prune

# Number of pairs of states up to which a window is compared without an index.
MOST_STATE_PAIRS = 40_000

# Number of references with the least bounds; their distances limit the others.
N_FIRST = 32

# Rounding error of bounds and distances, relative to them and to the mean vectors.
ROUNDING = 1e-9


class References:
    """References prepared once, so that a window only costs its distances.

    Parameters
    ----------
    models : HMMBatch
        The references.

    metric : object
        The distance.
    """

    def __init__(self, models, metric):
        self.models, self.metric = models, metric
        self.prepared: Any = None
        self.points: Any = None
        n_pairs = len(models) * models.transmats.shape[1] ** 2
        if n_pairs <= MOST_STATE_PAIRS and metric.symmetric:
            prepared = metric.prepare(models)
            if isinstance(prepared, PreparedModels) and prepared.sampler is None:
                self.prepared = prepared
        if self.prepared is not None and can_prune(metric, models):
            self.points = mean_vectors(models, self.prepared)

    def takes(self, window):
        """Return whether a window can be compared with all references at once."""
        models = self.models
        return (
            self.prepared is not None
            and len(window) == 1
            and window.transmats.shape == (1, *models.transmats.shape[1:])
            and window.emission.name == models.emission.name
            and window.observed is None
            and models.observed is None
        )

    def nearest(self, window, n_neighbors):
        """Return distances and indices of the nearest references of one model."""
        prepared = self.metric.prepare(window)
        distances = np.full(len(self.models), np.inf)
        limit, bounds = np.inf, self._bounds(window, prepared)
        n_first = max(N_FIRST, n_neighbors)
        if n_first < len(bounds):
            first = np.argpartition(bounds, n_first)[:n_first]
            distances[first] = self._distances(window, prepared, first)
            limit = np.partition(distances[first], n_neighbors - 1)[n_neighbors - 1]
        left = np.flatnonzero((bounds <= limit) & np.isinf(distances))
        distances[left] = self._distances(window, prepared, left)
        return nearest(distances[None], n_neighbors)

    def _bounds(self, window, prepared):
        """Return lower bounds of the distances, slightly too small; 0 if unknown."""
        if self.points is None:
            return np.zeros(len(self.models))
        point = mean_vectors(window, prepared)
        gaps = np.sqrt(np.sum((self.points - point) ** 2, axis=1))
        size = max(np.abs(point).max(), np.abs(self.points).max())
        bounds = self.metric.marginal_weight * (gaps * (1 - ROUNDING) - ROUNDING * size)
        return np.where(np.isfinite(bounds), bounds, 0.0)

    def _distances(self, window, prepared, rows):
        """Return the distances of one model to some of the references."""
        both = PreparedModels.concatenate([prepared, self.prepared.rows(rows)])
        keys = np.concatenate([window.keys, self.models.keys[rows]])
        others = np.arange(1, len(keys))
        a, b = oriented(keys, np.zeros(len(others), int), others)
        return self.metric.distances(both, a, b)


def mean_vectors(models, prepared):
    """Return the mean vectors of models, of shape (n_models, 2 * n_features)."""
    return np.einsum("nk,nkd->nd", prepared.margins, state_vectors(models))
