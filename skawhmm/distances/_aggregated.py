"""Aggregated Wasserstein distances: a marginal and a transition component, mixed."""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skawhmm.distances._components import marginal_components, transition_components
from skawhmm.distances._prepared import prepare_models
from skawhmm.distances._registration import power_cost
from skawhmm.models._batch import HMMBatch
from skawhmm.utils._checks import check_choice, check_real
from skawhmm.utils._parameters import Parametrized

STEPS = ("independent", "joint")
ROWS = ("transport", "hellinger")


def mixed_components(components, alpha):
    """Return the mixture, at `alpha`, of components in the last axis."""
    return (1 - alpha) * components[..., 0] + alpha * components[..., 1]


def registered_transitions(prepared, index_a, index_b, plans, p, steps, rows):
    """Return the transition components of model pairs under given registrations.

    Parameters
    ----------
    prepared : PreparedModels
        What is computed once for all pairs.

    index_a, index_b : ndarray of int of shape (n_pairs,)
        The models of each pair.

    plans : ndarray of shape (n_pairs, n_components, n_components)
        Registrations.

    p : float
        Order of the distance.

    steps, rows : str
        Options of `Aggregated`: how the two ends of a step are registered, and how
        rows are compared.

    Returns
    -------
    transition : ndarray of shape (n_pairs,)
        The components.
    """
    return transition_components(
        prepared.weights,
        prepared.transmats,
        prepared.chains,
        index_a,
        index_b,
        plans,
        power_cost(prepared.costs.within(index_a, index_b), p),
        power_cost(prepared.costs.within(index_b, index_a), p),
        p,
        steps == "joint",
        rows == "hellinger",
    )


class Aggregated(Parametrized, ABC):
    """Base of the distances that mix a marginal and a transition component.

    A subclass says how states are registered, in `_plans`.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.1
        Weight of the transition component in the distance.

    p : float in (0, 2], default=1
        Order of the distance: states are compared by the p-th power of their
        2-Wasserstein distance.

    steps : {"independent", "joint"}, default="independent"
        Whether the two ends of a step are registered independently, as in the paper,
        or together, so that a chain that stays in its state stays.

    rows : {"transport", "hellinger"}, default="transport"
        Whether the rows of two transition matrices are compared by optimal transport
        of the next states or by Hellinger distance.
    """

    symmetric = True
    _parameter_checks: ClassVar = {
        "alpha": partial(check_real, low=0, high=1),
        "p": partial(check_real, low=0, high=2, include_low=False),
        "steps": partial(check_choice, choices=STEPS),
        "rows": partial(check_choice, choices=ROWS),
    }

    def __init__(
        self,
        alpha: float = 0.1,
        p: float = 1,
        *,
        steps: str = "independent",
        rows: str = "transport",
    ) -> None:
        self.alpha = alpha
        self.p = p
        self.steps = steps
        self.rows = rows

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
        self._check_parameters()
        return prepare_models(models)

    def components(
        self, prepared: Any, index_a: NDArray[np.int64], index_b: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the two components of each pair.

        Parameters
        ----------
        prepared : PreparedModels
            From `prepare`.

        index_a, index_b : ndarray of int of shape (n_pairs,)
            The models of each pair.

        Returns
        -------
        components : ndarray of shape (n_pairs, 2)
            Marginal and transition component.
        """
        cost = power_cost(prepared.costs.cross(index_a, index_b), self.p)
        plans = self._plans(prepared, index_a, index_b, cost)
        bias = 0.5 * (prepared.bias[index_a] + prepared.bias[index_b])
        marginal = marginal_components(plans, cost, self.p, bias)
        chain_plans = self._chain_plans(plans)
        transition = registered_transitions(
            prepared, index_a, index_b, chain_plans, self.p, self.steps, self.rows
        )
        return np.stack([marginal, transition], axis=1)

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
            The components mixed at `alpha`.
        """
        return mixed_components(self.components(prepared, index_a, index_b), self.alpha)

    @property
    def marginal_weight(self) -> float:
        """Weight of MAW's marginal component in the lower bound."""
        return 1 - self.alpha

    @property
    def transition_weight(self) -> float:
        """Weight of MAW's transition component in the lower bound."""
        return 0.0

    @abstractmethod
    def _plans(self, prepared, index_a, index_b, cost):
        """Return the registration of the states of each pair, given their cost."""

    def _chain_plans(self, plans):
        """Return the registrations used to transfer chains."""
        return plans

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
            Joint probability of each state of a and each state of b.
        """
        cost = power_cost(prepared.costs.cross(index_a, index_b), self.p)
        return self._plans(prepared, index_a, index_b, cost)
