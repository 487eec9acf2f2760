r"""Discounted transition coupling: the cost of running two chains side by side.

For states i of a and j of b let :math:`V_{ij}` be the discounted cost of running both
chains from there, coupled as well as possible:

.. math::
    V_{ij} = (1 - \gamma) c_{ij} + \gamma \, OT_V(T_a[i], T_b[j]) ,
    \qquad D_\gamma^p = \min_{W \in \Pi(\pi_a, \pi_b)} \langle W, V \rangle .

It is solved by policy iteration: given the couplings of all rows, V is the solution of
a linear system; given V, each row coupling is a transport problem. V falls in every
round, and since there are finitely many extreme couplings it stops after a few rounds.

The search for neighbours needs a lower bound. Two chains that start from W and run by
the best couplings spend a fraction of :math:`(1-\gamma) \gamma^t` of their discounted
time at step t. The distribution of the pair of states over this time has the margins

.. math::
    \nu_a = (1-\gamma) \sum_t \gamma^t \pi_a T_a^t
          = (1-\gamma) \, \pi_a (I - \gamma T_a)^{-1}

and :math:`\nu_b`, and its mean cost is :math:`D_\gamma^p`. It is one of the couplings
of these margins, so :math:`D_\gamma^p \ge OT_c(\nu_a, \nu_b)`. If the state
probabilities are stationary, :math:`\nu = \pi`, and the bound is the marginal component
R of MAW. Fitted models have others, and R may then exceed :math:`D_\gamma`.
"""

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skawhmm.distances._coupling_kernels import coupling_distances
from skawhmm.distances._prepared import prepare_models
from skawhmm.distances._registration import power_cost
from skawhmm.models._batch import HMMBatch
from skawhmm.numerics._lapack import in_batches
from skawhmm.utils._checks import check_real
from skawhmm.utils._parameters import Parametrized

# Closer to 1 the present cost is lost in rounding.
MAX_GAMMA = 1 - 1e-9


def discounted_distributions(weights, transmats, gamma):
    r"""Return the fraction of discounted time that each chain spends in each state."""
    system = np.eye(transmats.shape[1]) - gamma * transmats.swapaxes(1, 2)
    systems = np.concatenate([system, weights[..., None]], axis=2)
    # Rounding can push the fraction of a state that is hardly reached below zero.
    occupancies = np.maximum(in_batches(_solutions, systems)[..., 0], 0)
    return occupancies / occupancies.sum(axis=1, keepdims=True)


def _solutions(systems):
    return np.linalg.solve(systems[..., :-1], systems[..., -1:])


class TransitionCoupling(Parametrized):
    """Discounted cost of running both chains together, as close as possible.

    It is a pseudometric for p >= 1 and has no `alpha` to tune. With ``gamma=0`` it is
    the marginal component of MAW; the closer `gamma` is to 1, the more dynamics count.

    Parameters
    ----------
    p : float in (0, 2], default=1
        Order of the distance: states are compared by the p-th power of their
        2-Wasserstein distance.

    gamma : float in [0, 1), default=0.9
        Weight of the future: a step counts `gamma` times as much as the one before.

    Examples
    --------
    Two chains with the same states, of which the second changes state more often:

    >>> from skawhmm import HMMBatch, TransitionCoupling, hmm_distance
    >>> models = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]],
    ...     means=[[[0.0], [2.0]], [[0.0], [2.0]]],
    ...     covars=[[[1.0], [1.0]], [[1.0], [1.0]]],
    ... )
    >>> hmm_distance(models[0], models[1], TransitionCoupling(gamma=0))
    0.0
    >>> round(hmm_distance(models[0], models[1], TransitionCoupling(gamma=0.9)), 2)
    0.72
    """

    symmetric = True
    marginal_weight = 1.0
    transition_weight = 0.0
    _parameter_checks: ClassVar = {
        "p": partial(check_real, low=0, high=2, include_low=False),
        "gamma": partial(check_real, low=0, high=MAX_GAMMA),
    }

    def __init__(self, p: float = 1, *, gamma: float = 0.9) -> None:
        self.p = p
        self.gamma = gamma
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
            For the other method.
        """
        self._check_parameters()
        # Unvisited states also have a cost of running from them.
        chains = np.array(models.transmats)
        margins = discounted_distributions(models.weights, chains, self.gamma)
        return prepare_models(models)._replace(transmats=chains, margins=margins)

    def distances(
        self, prepared: Any, index_a: NDArray[np.int64], index_b: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the distance of each pair.

        Parameters
        ----------
        prepared : PreparedModels
            From `prepare`.

        index_a, index_b : ndarray of int of shape (n_pairs,)
            The models of each pair.

        Returns
        -------
        distances : ndarray of shape (n_pairs,)
            The distances.
        """
        cost = power_cost(prepared.costs.cross(index_a, index_b), self.p)
        return coupling_distances(
            prepared.weights,
            prepared.transmats,
            index_a,
            index_b,
            cost,
            self.gamma,
            self.p,
        )
