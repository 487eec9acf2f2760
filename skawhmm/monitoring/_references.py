"""Reference windows that single windows are compared with at once."""

import numpy as np

from skawhmm.distances._pairwise import oriented
from skawhmm.distances._prepared import PreparedModels
from skawhmm.neighbors._from_distances import nearest

# Pairs of states up to which a window is compared with every reference. Windows of one
# process are about equally far from each other, so bounds spare few distances.
MOST_STATE_PAIRS = 40_000


class References:
    """References prepared once, so that each window costs its distances only.

    Parameters
    ----------
    models : HMMBatch
        The references.

    metric : object
        The distance.
    """

    def __init__(self, models, metric):
        self.models, self.metric = models, metric
        n_pairs = len(models) * models.transmats.shape[1] ** 2
        self.prepared = None
        if n_pairs <= MOST_STATE_PAIRS and metric.symmetric:
            prepared = metric.prepare(models)
            if isinstance(prepared, PreparedModels) and prepared.sampler is None:
                self.prepared = prepared

    def takes(self, window):
        """Whether the model of a window can be compared with all references at once."""
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
        parts = [self.metric.prepare(window), self.prepared]
        both = PreparedModels.concatenate(parts)
        keys = np.concatenate([window.keys, self.models.keys])
        others = np.arange(1, len(keys))
        a, b = oriented(keys, np.zeros(len(others), int), others)
        return nearest(self.metric.distances(both, a, b)[None], n_neighbors)
