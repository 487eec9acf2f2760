"""Fitted models of pomegranate as arrays by name."""

import numpy as np

from skawhmm.emissions._checks import SUM_TOLERANCE
from skawhmm.models._conversions import (
    as_matrices,
    check_fitted,
    first_known,
    mark_states,
    unknown_states,
    with_every_row,
)

KINDS = ("Normal", "Categorical", "Poisson", "Bernoulli")
MODELS = ("DenseHMM", "SparseHMM")


def pomegranate_arrays(model, where):
    """Return the arrays of a `DenseHMM` or `SparseHMM`, by our names.

    pomegranate stores logarithms, and a probability of ending after each state. Our
    models do not end: transition probabilities are conditional on continuing.
    """
    if first_known(type(model).__mro__, MODELS) is None:
        raise TypeError(
            f"{where} must be one of the models {list(MODELS)} of pomegranate, got "
            f"{type(model).__name__}."
        )
    check_fitted(model, where, bool(getattr(model, "_initialized", False)))
    chain = {
        "transmats": _going_on(_edges(model), _numbers(model.ends)),
        "startprobs": np.exp(_numbers(model.starts)),
    }
    return {**chain, **_states([*model.distributions], where)}


def _numbers(tensor):
    """Return a tensor as an array of float64."""
    return tensor.detach().cpu().numpy().astype(float)


def _edges(model):
    """Return transition probabilities, whose rows may sum to less than one."""
    if not hasattr(model, "_edge_idx_starts"):
        return np.exp(_numbers(model.edges))
    size = len(model.distributions)
    rows, columns = (
        _numbers(index).astype(int)
        for index in (model._edge_idx_starts, model._edge_idx_ends)
    )
    edges = np.zeros((size, size))
    edges[rows, columns] = np.exp(_numbers(model._edge_log_probs))
    return edges


def _going_on(edges, log_ends):
    """Return transition probabilities, given that the sequence does not end.

    Rows that sum to one, with or without the probability of ending, are accepted. Other
    rows are reported by the later check of all models, which names the state.
    """
    moves = edges.sum(axis=1)
    with_end = np.abs(moves + np.exp(log_ends) - 1) <= SUM_TOLERANCE
    divisors = np.where(with_end & (moves > 0), moves, 1.0)
    is_last = with_end & (moves == 0)
    return np.where(is_last[:, None], with_every_row(edges), edges / divisors[:, None])


def _states(distributions, where):
    """Return the parameters of the states, all of one kind."""
    kinds = [first_known(type(d).__mro__, KINDS) for d in distributions]
    for state, (kind, distribution) in enumerate(
        zip(kinds, distributions, strict=True)
    ):
        if kind is None or kind != kinds[0]:
            name = type(distribution).__name__
            if kinds[0] is None or kind is None:
                raise unknown_states(where, f"{name} in state {state}", KINDS)
            raise TypeError(
                f"{where} must have states of one kind, got {kinds[0]} in state 0 and "
                f"{name} in state {state}."
            )
    if kinds[0] == "Normal":
        return _normal_states(distributions)
    if kinds[0] == "Poisson":
        return {"rates": np.stack([_numbers(d.lambdas) for d in distributions])}
    probs = [_numbers(d.probs) for d in distributions]
    if kinds[0] == "Bernoulli":
        return mark_states(np.stack(probs), where)
    shapes = sorted({p.shape for p in probs})
    if len(shapes) > 1 or shapes[0][0] != 1:
        raise TypeError(
            f"{where} must emit symbols of one alphabet in one channel, got "
            f"probabilities of shape {shapes}."
        )
    return {"emissionprobs": np.concatenate(probs)}


def _normal_states(distributions):
    means = np.stack([_numbers(d.means) for d in distributions])
    covars = [_numbers(d.covs) for d in distributions]
    if any(d.covariance_type == "full" for d in distributions):
        covars = [
            c if d.covariance_type == "full" else as_matrices(np.zeros(len(m)) + c)
            for d, c, m in zip(distributions, covars, means, strict=True)
        ]
        return {"means": means, "covars": np.stack(covars)}
    rows = [np.broadcast_to(c, m.shape) for c, m in zip(covars, means, strict=True)]
    return {"means": means, "covars": np.stack(rows)}
