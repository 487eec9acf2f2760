"""Distances between models, as objects that carry their own parameters.

A distance is any object with these three members; `MAW` is one:

``symmetric``
    Whether the order of the two models does not matter.

``prepare(models)``
    Called once with an `HMMBatch`; returns whatever the next method needs of each
    model, so that nothing is computed once a pair that can be computed once a model.

``distances(prepared, index_a, index_b)``
    Returns one number for each pair ``models[index_a[k]], models[index_b[k]]``. The
    number must not depend on the other pairs.

A distance of the form ``(1 - alpha) * marginal + alpha * transition`` also has
``components(prepared, index_a, index_b)``, of shape (n_pairs, 2), and
``registrations(prepared, index_a, index_b)``, and gets ``distances`` from `Aggregated`.
"""

from inspect import signature
from typing import NamedTuple

import numpy as np

from skawhmm._components import marginal_components, transition_components
from skawhmm._registration import optimal_registrations, power_cost
from skawhmm._validation import check_choice, check_real


def mixed(components, alpha):
    """Return the distance that the two components make at `alpha`.

    Parameters
    ----------
    components : ndarray of shape (..., 2)
        Marginal and transition component.

    alpha : float
        Share of the transition component.

    Returns
    -------
    distances : ndarray of shape (...)
        The mixture.
    """
    return (1 - alpha) * components[..., 0] + alpha * components[..., 1]


class PreparedModels(NamedTuple):
    """What an aggregated distance needs of a batch."""

    weights: np.ndarray
    transmats: np.ndarray
    costs: object


class Aggregated:
    """What distances made of a marginal and a transition component have in common.

    A subclass says how states are registered.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.1
        Share of the transition component in the distance.

    p : float in (0, 2], default=1
        Order of the distance: states are compared by the p-th power of their
        2-Wasserstein distance.
    """

    symmetric = True

    def __init__(self, alpha=0.1, p=1):
        self.alpha = check_real("alpha", alpha, 0, 1)
        self.p = check_real("p", p, 0, 2, include_low=False)

    def prepare(self, models):
        """Return what the pairs of `models` share."""
        return PreparedModels(
            models.weights, models.transmats, models.emission.ground_costs()
        )

    def components(self, prepared, index_a, index_b):
        """Return the marginal and the transition component of each pair."""
        weights, transmats, costs = prepared
        cost = power_cost(costs.cross(index_a, index_b), self.p)
        plans = self._plans(prepared, index_a, index_b, cost)
        within_a = power_cost(costs.within(index_a, index_b), self.p)
        within_b = power_cost(costs.within(index_b, index_a), self.p)
        marginal = marginal_components(plans, cost, self.p)
        transition = transition_components(
            weights, transmats, index_a, index_b, plans, within_a, within_b, self.p
        )
        return np.stack([marginal, transition], axis=1)

    def distances(self, prepared, index_a, index_b):
        """Return the distance of each pair."""
        return mixed(self.components(prepared, index_a, index_b), self.alpha)

    def registrations(self, prepared, index_a, index_b):
        """Return the registration of the states of each pair."""
        cost = power_cost(prepared.costs.cross(index_a, index_b), self.p)
        return self._plans(prepared, index_a, index_b, cost)


class MAW(Aggregated):
    """Minimized aggregated Wasserstein distance: states registered by transport.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.1
        Share of the transition component in the distance.

    p : float in (0, 2], default=1
        Order of the distance: states are compared by the p-th power of their
        2-Wasserstein distance.
    """

    def _plans(self, prepared, index_a, index_b, cost):
        return optimal_registrations(
            prepared.weights, prepared.transmats, index_a, index_b, cost
        )


METRICS = {"maw": MAW}


def resolve_metric(metric, *, alpha, p, metric_params=None):
    """Return the distance that a name and its parameters stand for.

    Parameters
    ----------
    metric : str or object
        A name, or a distance, which is returned as it is.

    alpha, p : float
        Given to the distances that have them.

    metric_params : dict, default=None
        Further parameters of the distance.

    Returns
    -------
    metric : object
        The distance.
    """
    if not isinstance(metric, str):
        missing = [
            name
            for name in ("symmetric", "prepare", "distances")
            if not hasattr(metric, name)
        ]
        if missing or isinstance(metric, type):
            raise TypeError(
                f"metric must be one of {', '.join(map(repr, METRICS))} or an object "
                f"with symmetric, prepare and distances, got {metric!r}."
            )
        return metric
    chosen = METRICS[check_choice("metric", metric, METRICS)]
    known = signature(chosen).parameters
    given = {"alpha": alpha, "p": p}
    params = {name: value for name, value in given.items() if name in known}
    extra = metric_params or {}
    unknown = extra.keys() - (known.keys() - given.keys())
    if unknown:
        allowed = sorted(known.keys() - given.keys()) or "none"
        raise ValueError(
            f"metric_params of {metric!r} may be {allowed}, got {sorted(unknown)}."
        )
    return chosen(**params, **extra)
