"""Distances by name, and checks of what is passed as `metric`."""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from typing import Any

from skawhmm.distances._base import (
    AggregatedDistance,
    Distance,
    LearnedDistance,
    RegisteringDistance,
)
from skawhmm.distances._coupling import TransitionCoupling
from skawhmm.distances._iaw import IAW
from skawhmm.distances._jaw import JAW
from skawhmm.distances._kl import KL
from skawhmm.distances._maw import MAW
from skawhmm.distances._mmd import MMD
from skawhmm.utils._checks import (
    check_choice,
    check_optional,
    check_parameters,
    check_real,
)
from skawhmm.utils._parameters import Parametrized, check_unused

METRICS = {
    "maw": MAW,
    "iaw": IAW,
    "jaw": JAW,
    "kl": KL,
    "coupling": TransitionCoupling,
    "mmd": MMD,
}


def check_metric_params(name, value):
    """Raise unless `value` is a mapping of further parameters, or None."""
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict or None, got {type(value).__name__}.")


def check_components_alpha(alpha):
    """Raise if `alpha` is None, since components cannot be mixed without it."""
    if alpha is None:
        raise ValueError(
            "alpha must be a number in [0, 1] if X holds components, which do not "
            f"record their distance, got None. MAW and IAW use alpha={MAW().alpha}, "
            f"JAW alpha={JAW().alpha}."
        )


# Checks of the parameters that come with `metric` in estimators and functions.
METRIC_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "alpha": partial(check_optional, check=partial(check_real, low=0, high=1)),
    "p": partial(
        check_optional, check=partial(check_real, low=0, high=2, include_low=False)
    ),
    "metric_params": check_metric_params,
}


def resolve_metric(metric, *, alpha=None, p=None, metric_params=None, implied=None):
    """Return the distance that a name and its parameters stand for.

    Parameters
    ----------
    metric : str or object
        A name, or a distance.

    alpha, p : float, default=None
        Weight of the transition component, and order; by default of the distance.

    metric_params : dict, default=None
        Further parameters of the distance.

    implied : dict, default=None
        Values of `alpha` and `p` that replace the defaults of the distances that have
        these parameters.

    Returns
    -------
    metric : object
        The distance; a copy with checked parameters if it is a distance of the package.
        Unknown parameters raise an error.
    """
    given = {"alpha": alpha, "p": p}
    check_parameters({**given, "metric_params": metric_params}, METRIC_CHECKS)
    reason = f"with metric={metric!r:.200}"
    if not isinstance(metric, str):
        check_metric(metric)
        for name, value in {**given, "metric_params": metric_params or None}.items():
            check_unused(name, value, None, reason)
        # Parameters may have been changed since the distance was created.
        return metric._checked() if isinstance(metric, Parametrized) else metric
    chosen = METRICS[check_choice("metric", metric, METRICS)]
    known = signature(chosen).parameters
    for name in given.keys() - known.keys():
        check_unused(name, given[name], None, reason)
    extra = metric_params or {}
    unknown = extra.keys() - (known.keys() - given.keys())
    if unknown:
        allowed = sorted(known.keys() - given.keys()) or "none"
        raise ValueError(
            f"metric_params of {metric!r} may be {allowed}, got {sorted(unknown)}."
        )
    stated = {name: value for name, value in given.items() if value is not None}
    params = {
        name: value
        for name, value in {**(implied or {}), **stated}.items()
        if name in known
    }
    return chosen(**params, **extra)._checked()


def fitted_metric(metric, references):
    """Return a distance with any parameters that it learns from reference models."""
    is_learned = isinstance(metric, LearnedDistance)
    return metric.fitted_to(references) if is_learned else metric


def check_metric(metric):
    """Return `metric` if it has the members of a distance, else raise."""
    if isinstance(metric, type) or not isinstance(metric, Distance):
        hint = ""
        if isinstance(metric, type):
            hint = f" Write metric={metric.__name__}(), with parentheses."
        elif callable(metric):
            hint = " The documentation of Distance shows how to write one."
        raise TypeError(
            f"metric must be one of {', '.join(map(repr, METRICS))} or an object with "
            f"symmetric, prepare and distances, got {metric!r}.{hint}"
        )
    return metric


def check_aggregated(metric, given, purpose=""):
    """Raise unless a distance has components; `given` is what the caller passed."""
    if not isinstance(metric, AggregatedDistance):
        raise TypeError(
            f"metric must have a marginal and a transition component{purpose}, got "
            f"{given!r}, which has no components or no alpha. 'maw', 'iaw' and 'jaw' "
            "have them."
        )


def check_registering(metric, given):
    """Raise unless a distance registers states; `given` is what the caller passed."""
    if not isinstance(metric, RegisteringDistance):
        raise TypeError(
            f"metric must register states, got {given!r}, which has no registrations. "
            "'maw', 'iaw' and 'jaw' have them."
        )
