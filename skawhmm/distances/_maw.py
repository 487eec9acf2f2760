"""MAW: the aggregated distance that registers states by optimal transport."""

from functools import partial
from operator import eq
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skawhmm.distances._aggregated import Aggregated
from skawhmm.distances._registration import optimal_registrations
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_equal_sizes
from skawhmm.utils._checks import check_choice
from skawhmm.utils._parameters import Unused

REGISTRATIONS = ("transport", "identity")


class MAW(Aggregated):
    """Minimized aggregated Wasserstein distance: states registered by transport.

    This is the first distance of the paper. It is exact, needs no samples, and takes
    microseconds per pair.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.1
        Weight of the transition component in the distance.

    p : float in (0, 2], default=1
        Order of the distance: states are compared by the p-th power of their
        2-Wasserstein distance.

    steps : {"independent", "joint"}, default="independent"
        Whether the two ends of a step are registered independently, as in the paper,
        or together, as in :class:`JAW`. Only for ``registration="transport"``.

    rows : {"transport", "hellinger"}, default="transport"
        Whether the rows of two transition matrices are compared by optimal transport
        of the next states, as in the paper, or by the squared Hellinger distance,
        which sees rare transitions and has no unit. Next states with equal emissions
        then count as one.

    registration : {"transport", "identity"}, default="transport"
        How transitions are transferred. With "identity", state 1 of a model stands for
        state 1 of every other model, and so on: rows are compared directly. It is for
        models that share their states, such as visible chains and models that start
        from a pooled one; all must have the same number of states. The marginal
        component uses optimal transport in either case.

    See Also
    --------
    JAW : The same registration, with steps registered jointly.
    Distance : How to write your own distance.

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
    """

    _parameter_checks: ClassVar = {
        **Aggregated._parameter_checks,
        "registration": partial(check_choice, choices=REGISTRATIONS),
    }
    _unused: ClassVar = (Unused(("steps",), "registration", partial(eq, "identity")),)

    def __init__(
        self,
        alpha: float = 0.1,
        p: float = 1,
        *,
        steps: str = "independent",
        rows: str = "transport",
        registration: str = "transport",
    ) -> None:
        super().__init__(alpha, p, steps=steps, rows=rows)
        self.registration = registration
        self._check_parameters()

    def prepare(self, models: HMMBatch) -> Any:
        """Return what is computed once for all pairs of `models`.

        Parameters
        ----------
        models : HMMBatch
            The models.

        Returns
        -------
        prepared : PreparedModels
            For the other methods.
        """
        prepared = super().prepare(models)
        if not self._by_index:
            return prepared
        check_equal_sizes(models, "registration='identity'")
        # Every state has its counterpart, visited or not.
        chains = np.array(models.transmats)
        return prepared._replace(transmats=chains, chains=chains)

    @property
    def marginal_weight(self) -> float:
        """Weight of the marginal component in the lower bound."""
        # A search by bounds prepares queries separately, so it could not check that
        # they have as many states as the references.
        return 0.0 if self._by_index else super().marginal_weight

    @property
    def transition_weight(self) -> float:
        """Weight of the transition component under the best registration."""
        return 0.0 if self._by_index else self.alpha

    @property
    def _by_index(self):
        return self.registration == "identity"

    def _plans(self, prepared, index_a, index_b, cost):
        # With states registered by index, only the cost of the plan is used, which is
        # the same for tied plans.
        return optimal_registrations(
            prepared.weights,
            prepared.transmats,
            index_a,
            index_b,
            cost,
            break_ties=not self._by_index,
        )

    def _chain_plans(self, plans):
        if not self._by_index:
            return plans
        return np.tile(np.eye(plans.shape[1]), (len(plans), 1, 1))

    def registrations(
        self, prepared: Any, index_a: NDArray[np.int64], index_b: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the registration of the states of each pair.

        Parameters
        ----------
        prepared : PreparedModels
            From `prepare`.

        index_a, index_b : ndarray of int of shape (n_pairs,)
            The models of each pair.

        Returns
        -------
        plans : ndarray of shape (n_pairs, n_components, n_components)
            Joint probability of each state of a and each state of b. If states are
            registered by index, the mean of their two probabilities.
        """
        if not self._by_index:
            return super().registrations(prepared, index_a, index_b)
        weights = 0.5 * (prepared.weights[index_a] + prepared.weights[index_b])
        return weights[:, :, None] * np.eye(weights.shape[1])
