"""Measures of states and transitions, as columns."""

import numpy as np

from skawhmm.groups._support import Measures
from skawhmm.groups._tables import (
    state_measures,
    transition_probabilities,
    unseen_states,
)


def measured(models, names):
    """Return the measures of each model, as columns.

    Parameters
    ----------
    models : HMMBatch
        Models on common states.

    names : list of str
        Kinds of measures.

    Returns
    -------
    measures : Measures
        One row per model.
    """
    kinds = {"transitions": _transitions, "parameters": _parameters}
    if models.counts is not None:
        kinds |= {"transitions": _counted_transitions, "dwell_time": _counted_stays}
    parts = []
    for name in names:
        parts += kinds[name](models) if name in kinds else _state_measure(models, name)
    if not parts:
        raise ValueError(
            f"measures must be known of these models, got {names}, and states of kind "
            f"{models.emission.name!r}, of which nothing can be measured."
        )
    return Measures.concatenated(parts)


def _state_labels(name, models):
    return [(name, k, -1) for k in range(models.transmats.shape[1])]


def _cells(models):
    return [("transition", *cell) for cell in np.ndindex(models.transmats.shape[1:])]


def _state_measure(models, name):
    return [Measures.plain(_state_labels(name, models), state_measures(models)[name])]


def _parameters(models):
    unseen = unseen_states(models)
    return [
        Measures.plain(_state_labels(name, models), np.where(unseen, np.nan, numbers))
        for name, numbers in models.emission.compared(models._channels).items()
    ]


def _transitions(models):
    chains = transition_probabilities(models)
    return [Measures.plain(_cells(models), chains.reshape(len(chains), -1))]


def _counted_transitions(models):
    steps = models.counts.transitions
    total = np.broadcast_to(steps.sum(axis=2, keepdims=True), steps.shape)
    flat = (part.reshape(len(steps), -1) for part in (steps, total))
    return [Measures.counts(_cells(models), *flat)]


def _counted_stays(models):
    steps = models.counts.transitions
    total = steps.sum(axis=2)
    # By rounding, a state can be kept more often than seen.
    exits = np.maximum(total - np.diagonal(steps, axis1=1, axis2=2), 0.0)
    labels = _state_labels("dwell_time", models)
    return [Measures.counts(labels, total, exits, inverted=True)]
