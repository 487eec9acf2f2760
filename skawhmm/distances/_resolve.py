"""Distances between models by name.

A distance is any object with these three members; `MAW` is one:

``symmetric``
    Whether the order of the two models does not matter.

``prepare(models)``
    Called once with an `HMMBatch`; returns whatever the next method needs of each
    model, so that nothing is computed per pair that can be computed per model.

``distances(prepared, index_a, index_b)``
    Returns one number per pair ``models[index_a[k]], models[index_b[k]]``. The number
    must not depend on the other pairs.

It may also have ``max_tile``: pairs are asked for in blocks of at most that many rows
and columns.

A distance of the form ``(1 - alpha) * marginal + alpha * transition`` also has
``components(prepared, index_a, index_b)``, of shape (n_pairs, 2), and
``registrations(prepared, index_a, index_b)``; `Aggregated` then makes ``distances``.
"""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from typing import Any

from skawhmm.distances._coupling import TransitionCoupling
from skawhmm.distances._iaw import IAW
from skawhmm.distances._kl import KL
from skawhmm.distances._maw import MAW
from skawhmm.utils._checks import check_choice, check_parameters, check_real

METRICS = {"maw": MAW, "iaw": IAW, "kl": KL, "coupling": TransitionCoupling}


def check_metric_params(name, value):
    """Raise unless `value` holds further parameters of a distance, or is None.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    value : object
        What was given.
    """
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict or None, got {type(value).__name__}.")


# Checks of what is said about a distance beside its name.
METRIC_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "alpha": partial(check_real, low=0, high=1),
    "p": partial(check_real, low=0, high=2, include_low=False),
    "metric_params": check_metric_params,
}


def resolve_metric(metric, *, alpha, p, metric_params=None):
    """Return the distance that a name and its parameters stand for.

    Parameters
    ----------
    metric : str or object
        A name, or a distance, which is returned as it is.

    alpha, p : float
        Share of the transition component and order. They are always checked, and given
        to the distances that have them.

    metric_params : dict, default=None
        Further parameters of the distance.

    Returns
    -------
    metric : object
        The distance.
    """
    given = {"alpha": alpha, "p": p}
    check_parameters({**given, "metric_params": metric_params}, METRIC_CHECKS)
    if not isinstance(metric, str):
        if metric_params:
            raise ValueError(
                "metric_params go with the name of a metric, got them with "
                f"{metric!r}, which has its own."
            )
        return check_metric(metric)
    chosen = METRICS[check_choice("metric", metric, METRICS)]
    known = signature(chosen).parameters
    params = {name: value for name, value in given.items() if name in known}
    extra = metric_params or {}
    unknown = extra.keys() - (known.keys() - given.keys())
    if unknown:
        allowed = sorted(known.keys() - given.keys()) or "none"
        raise ValueError(
            f"metric_params of {metric!r} may be {allowed}, got {sorted(unknown)}."
        )
    return chosen(**params, **extra)


def check_metric(metric):
    """Return `metric` if it has the members of a distance, else raise.

    Parameters
    ----------
    metric : object
        What was given.

    Returns
    -------
    metric : object
        The distance.
    """
    members = ("symmetric", "prepare", "distances")
    if isinstance(metric, type) or not all(hasattr(metric, name) for name in members):
        raise TypeError(
            f"metric must be one of {', '.join(map(repr, METRICS))} or an object with "
            f"symmetric, prepare and distances, got {metric!r}."
        )
    return metric


def check_aggregated(metric, given):
    """Raise unless a distance has a marginal and a transition component.

    Parameters
    ----------
    metric : object
        The distance.

    given : str or object
        What the caller gave as `metric`.
    """
    if not hasattr(metric, "components"):
        raise TypeError(
            f"metric must have a marginal and a transition component, got {given!r}, "
            "which is a single number."
        )
