"""Models of ssm, and objects built like them, as arrays by name."""

import numpy as np
from scipy.special import expit, softmax

from skawhmm.models._conversions import first_known, mark_states, unknown_states

PARTS = ("init_state_distn", "transitions", "observations")
# Other transitions depend on inputs or data, even if their classes derive from these.
TRANSITIONS = (
    "StationaryTransitions",
    "ConstrainedStationaryTransitions",
    "StickyTransitions",
)


def is_ssm_like(model):
    """Whether an object has the three parts of an ssm model."""
    return all(hasattr(model, name) for name in PARTS)


def ssm_arrays(model, where):
    """Return the arrays of a model of ssm, by our names.

    Parameters
    ----------
    model : object
        Its `init_state_distn`, `transitions` and `observations` must have the
        attributes and class names of ssm. An unfitted ssm model cannot be recognised,
        as its parameters are drawn at random.

    where : str
        The model as the caller knows it.

    Returns
    -------
    arrays : dict of ndarray
        Chain and states.
    """
    if not is_ssm_like(model):
        raise TypeError(
            f"{where} must be an HMM of ssm, with {', '.join(PARTS)}, got "
            f"{type(model).__name__}."
        )
    kind = type(model.transitions).__name__
    if kind not in TRANSITIONS:
        raise TypeError(
            f"{where} must have transitions that are the same at all times, one of "
            f"{list(TRANSITIONS)}, got {kind}."
        )
    states = first_known(type(model.observations).__mro__, STATES)
    if states is None:
        raise unknown_states(where, type(model.observations).__name__, STATES)
    return {
        "transmats": np.asarray(model.transitions.transition_matrix),
        "startprobs": np.asarray(model.init_state_distn.initial_state_distn),
        **STATES[states](model.observations, where),
    }


def _full_states(observations, _):
    return {"means": observations.mus, "covars": observations.Sigmas}


def _diagonal_states(observations, _):
    return {"means": observations.mus, "covars": observations.sigmasq}


def _count_states(observations, _):
    return {"rates": np.exp(observations.log_lambdas)}


def _symbol_states(observations, where):
    logits = np.asarray(observations.logits, float)
    if logits.ndim != 3 or logits.shape[1] != 1:
        raise TypeError(
            f"{where} must emit symbols in one channel, got logits of shape "
            f"{logits.shape}."
        )
    return {"emissionprobs": softmax(logits[:, 0], axis=1)}


def _mark_states(observations, where):
    return mark_states(expit(np.asarray(observations.logit_ps, float)), where)


STATES = {
    "GaussianObservations": _full_states,
    "DiagonalGaussianObservations": _diagonal_states,
    "PoissonObservations": _count_states,
    "CategoricalObservations": _symbol_states,
    "BernoulliObservations": _mark_states,
}
