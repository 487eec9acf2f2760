"""MAW: the aggregated distance whose registration is optimal transport."""

from skawhmm.distances._aggregated import Aggregated
from skawhmm.distances._registration import optimal_registrations


class MAW(Aggregated):
    """Minimized aggregated Wasserstein distance: states registered by transport.

    This is the first distance of the paper. It is exact, needs no samples, and takes
    microseconds per pair.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.1
        Share of the transition component in the distance.

    p : float in (0, 2], default=1
        Order of the distance: states are compared by the p-th power of their
        2-Wasserstein distance.

    steps : {"independent", "joint"}, default="independent"
        Whether the two ends of a step are registered independently, as in the paper,
        or together, as in :class:`JAW`.

    rows : {"transport", "hellinger"}, default="transport"
        Whether the rows of two transition matrices are compared by optimal transport
        of the next states, as in the paper, or by the squared Hellinger distance,
        which sees rare transitions and has no unit.

    See Also
    --------
    JAW : The same registration, with steps carried over jointly.

    Examples
    --------
    >>> from skawhmm import MAW, HMMBatch, hmm_distance
    >>> models = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]],
    ...     means=[[[0.0], [2.0]], [[3.0], [1.0]]],
    ...     covars=[[[1.0], [1.0]], [[1.0], [1.0]]],
    ... )
    >>> round(hmm_distance(models[0], models[1], MAW(alpha=0.5)), 2)
    1.3

    Your own distance needs three members, and works wherever the name of a distance
    does:

    >>> import numpy as np
    >>> from skawhmm import pairwise_hmm_distances
    >>> class MeanDistance:
    ...     symmetric = True
    ...
    ...     def prepare(self, models):
    ...         return np.einsum("nk,nkd->nd", models.weights, models.means)
    ...
    ...     def distances(self, prepared, index_a, index_b):
    ...         gap = prepared[index_a] - prepared[index_b]
    ...         return np.linalg.norm(gap, axis=1)
    >>> pairwise_hmm_distances(models, metric=MeanDistance())
    array([[0., 1.],
           [1., 0.]])
    """

    @property
    def transition_share(self) -> float:
        """Share of the transition component under the best registration."""
        return self.alpha

    def _plans(self, prepared, index_a, index_b, cost):
        return optimal_registrations(
            prepared.weights, prepared.transmats, index_a, index_b, cost
        )
