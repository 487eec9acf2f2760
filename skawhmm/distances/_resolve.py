"""Distances between models by name, and what an object must have to be one.

A distance is any object with three members. `MAW` is one; its docstring has a distance
of a user.

``symmetric``
    Whether the order of the two models does not matter. If so, each pair is computed
    once, ordered by the content of its models, and only half of a matrix is computed.

``prepare(models)``
    Called once with an `HMMBatch`. Returns what the other methods need of each model,
    so that work per model is not repeated per pair.

``distances(prepared, index_a, index_b)``
    Returns one number per pair ``models[index_a[k]], models[index_b[k]]``. It must not
    depend on the other pairs. It may be infinite but not NaN.

Its parameters are its attributes: matrices on disk and remembered results are told
apart by them. Further members are optional, and each makes more possible:

``max_tile``
    Largest number of rows and columns of a block of pairs. Without it a block has at
    most 128; a distance that needs much memory or time per pair has less.

``fitted_to(models)``
    Returns the distance with the parameters that it learns from reference models, such
    as a scale. The reference models are the training models of an estimator, or the
    second batch of a function. Once they are learned, the value of a pair must not
    depend on other models.

``components(prepared, index_a, index_b)``
    Returns the marginal and the transition component of each pair, of shape
    (n_pairs, 2), for `pairwise_hmm_components`.

``alpha``
    Share of the transition component. A distance with `components` and `alpha` promises
    ``(1 - alpha) * marginal + alpha * transition``, so that components are computed
    once and serve every alpha.

``registrations(prepared, index_a, index_b)``
    Returns the probability that each state of a shares with each state of b, of shape
    (n_pairs, n_components, n_components), for `register_states` (which asks for
    `components` as well) and the explorer.

``p``, ``marginal_share``, ``transition_share``, ``steps``, ``rows``
    A lower bound, for searches that skip models. Let R and D be the marginal and the
    transition component of `MAW` of order `p`, both under its optimal registration, D
    with the `steps` and `rows` of the distance (by default those of `MAW`).
    The distance of two models with Gaussian states promises to be at least
    ``marginal_share * R + transition_share * D``. The search is used if `p` is at least
    1, `marginal_share` is positive and all features are observed. It also needs
    `symmetric` to be true, and `prepare` to return `PreparedModels`, as
    `prepare_models` does. R is taken between its `margins`, which are the state
    probabilities unless the distance sets others. `transition_share` must be 0 if the
    distance registers states in another way or sets `margins`.
    `skawhmm.neighbors._bounds` bounds R and D in turn by what is cheaper to compute.

`Aggregated` has all of them but `max_tile`, for distances that mix two components: a
subclass only says how states are registered.
"""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from typing import Any

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
    """Raise unless `value` is a mapping of further parameters, or None.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    value : object
        The value to check.
    """
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict or None, got {type(value).__name__}.")


def check_components_alpha(alpha):
    """Raise if nothing says at which weight given components are mixed.

    Parameters
    ----------
    alpha : float or None
        What the caller gave.
    """
    if alpha is None:
        raise ValueError(
            "alpha must be a number in [0, 1] if X holds components, which do not "
            f"record their distance, got None. MAW and IAW use alpha={MAW().alpha}, "
            f"JAW alpha={JAW().alpha}."
        )


# Checks of the parameters that estimators and functions take besides `metric`.
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
        A name, or a distance, which is returned unchanged.

    alpha, p : float, default=None
        Weight of the transition component, and order; by default those of the distance.

    metric_params : dict, default=None
        Further parameters of the distance.

    implied : dict, default=None
        Values of `alpha` and `p` that the caller did not choose: they replace the
        defaults of the distances that have these parameters.

    Returns
    -------
    metric : object
        The distance. Parameters that it does not have raise an error.
    """
    given = {"alpha": alpha, "p": p}
    check_parameters({**given, "metric_params": metric_params}, METRIC_CHECKS)
    reason = f"with metric={metric!r:.200}"
    if not isinstance(metric, str):
        check_metric(metric)
        for name, value in {**given, "metric_params": metric_params or None}.items():
            check_unused(name, value, None, reason)
        # Parameters may have been set since the distance was made.
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
    """Return a distance with what it learns from reference models, if anything.

    Parameters
    ----------
    metric : object
        The distance.

    references : HMMBatch
        The models.

    Returns
    -------
    metric : object
        The same distance, or another one that has learned.
    """
    return metric.fitted_to(references) if hasattr(metric, "fitted_to") else metric


def check_metric(metric):
    """Return `metric` if it has the members of a distance, else raise.

    Parameters
    ----------
    metric : object
        The value to check.

    Returns
    -------
    metric : object
        The distance.
    """
    members = ("symmetric", "prepare", "distances")
    if isinstance(metric, type) or not all(hasattr(metric, name) for name in members):
        hint = ""
        if isinstance(metric, type):
            hint = f" Write metric={metric.__name__}(), with brackets."
        elif callable(metric):
            hint = " MAW's documentation shows how to make a distance of a function."
        raise TypeError(
            f"metric must be one of {', '.join(map(repr, METRICS))} or an object with "
            f"symmetric, prepare and distances, got {metric!r}.{hint}"
        )
    return metric


def check_aggregated(metric, given, purpose=""):
    """Raise unless a distance has a marginal and a transition component.

    Parameters
    ----------
    metric : object
        The distance.

    given : str or object
        What the caller gave as `metric`.

    purpose : str, default=""
        What needs components, such as " with output='components'".
    """
    if not hasattr(metric, "components"):
        raise TypeError(
            f"metric must have a marginal and a transition component{purpose}, got "
            f"{given!r}, which has no components. 'maw', 'iaw' and 'jaw' have them."
        )
