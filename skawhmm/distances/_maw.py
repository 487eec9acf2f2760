"""MAW: the aggregated distance whose registration is optimal transport."""

from skawhmm.distances._aggregated import Aggregated
from skawhmm.distances._registration import optimal_registrations


class MAW(Aggregated):
    """Minimized aggregated Wasserstein distance: states registered by transport.

    The paper's first distance. It is exact and needs no sample: microseconds a pair.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.1
        Share of the transition component in the distance.

    p : float in (0, 2], default=1
        Order of the distance: states are compared by the p-th power of their
        2-Wasserstein distance.

    Examples
    --------
    A distance of your own needs three members and works wherever a name does:

    >>> import numpy as np
    >>> from skawhmm import pairwise_hmm_distances
    >>> from skawhmm.datasets import make_seed_models
    >>> from skawhmm import HMMBatch
    >>> class MeanDistance:
    ...     symmetric = True
    ...
    ...     def prepare(self, models):
    ...         return np.einsum("nk,nkd->nd", models.weights, models.means)
    ...
    ...     def distances(self, prepared, index_a, index_b):
    ...         gap = prepared[index_a] - prepared[index_b]
    ...         return np.linalg.norm(gap, axis=1)
    >>> models = HMMBatch(**make_seed_models(n_models=4, random_state=0))
    >>> pairwise_hmm_distances(models, metric=MeanDistance()).shape
    (4, 4)
    """

    @property
    def transition_share(self) -> float:
        """Share of the transition component under the best registration."""
        return self.alpha

    def _plans(self, prepared, index_a, index_b, cost):
        return optimal_registrations(
            prepared.weights, prepared.transmats, index_a, index_b, cost
        )
