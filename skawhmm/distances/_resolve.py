"""Distances between models by name.

A distance is any object with these three members; `MAW` is one:

``symmetric``
    Whether the order of the two models does not matter.

``prepare(models)``
    Called once with an `HMMBatch`; returns whatever the next method needs of each
    model, so that nothing is computed once a pair that can be computed once a model.

``distances(prepared, index_a, index_b)``
    Returns one number for each pair ``models[index_a[k]], models[index_b[k]]``. The
    number must not depend on the other pairs.

It may also have ``max_tile``, the most models a side whose pairs are asked for at once.

A distance of the form ``(1 - alpha) * marginal + alpha * transition`` also has
``components(prepared, index_a, index_b)``, of shape (n_pairs, 2), and
``registrations(prepared, index_a, index_b)``; `Aggregated` then makes ``distances``.
"""

from collections.abc import Mapping
from inspect import signature

from skawhmm.distances._coupling import TransitionCoupling
from skawhmm.distances._iaw import IAW
from skawhmm.distances._kl import KL
from skawhmm.distances._maw import MAW
from skawhmm.utils._checks import check_choice, check_metric

METRICS = {"maw": MAW, "iaw": IAW, "kl": KL, "coupling": TransitionCoupling}


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
    if metric_params is not None and not isinstance(metric_params, Mapping):
        raise TypeError(
            f"metric_params must be a dict or None, got {type(metric_params).__name__}."
        )
    if not isinstance(metric, str):
        if metric_params:
            raise ValueError(
                "metric_params go with the name of a metric, got them with "
                f"{metric!r}, which has its own."
            )
        return check_metric(metric, METRICS)
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
