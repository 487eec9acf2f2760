"""Kinds of cases, one module each, which draws a call and checks its result."""

import numpy as np

from fuzzing.kinds import (
    amounts,
    containers,
    degenerate,
    displays,
    distances,
    effects,
    families,
    functions,
    matrices,
    methods,
    parameters,
    pipelines,
    queries,
    recordings,
    searches,
    spoilt_models,
    stale,
    symbols,
    tied,
    training,
)

# Kinds and how often they are drawn.
KINDS = {
    "containers": (containers.trial, 22),
    "degenerate": (degenerate.trial, 12),
    "pipelines": (pipelines.trial, 8),
    "parameters": (parameters.trial, 13),
    "effects": (effects.trial, 6),
    "stale": (stale.trial, 3),
    "queries": (queries.trial, 3),
    "spoilt models": (spoilt_models.trial, 5),
    "distances": (distances.trial, 12),
    "tied": (tied.trial, 4),
    "searches": (searches.trial, 4),
    "methods": (methods.trial, 5),
    "matrices": (matrices.trial, 8),
    "functions": (functions.trial, 7),
    "symbols": (symbols.trial, 5),
    "families": (families.trial, 10),
    "recordings": (recordings.trial, 6),
    "displays": (displays.trial, 1),
    "amounts": (amounts.trial, 2),
    "training": (training.trial, 4),
}


def kind_of(seed, number):
    """Return the kind of a case."""
    weights = np.array([weight for _, weight in KINDS.values()], dtype=float)
    rng = np.random.default_rng([seed, number, 0])
    return [*KINDS][int(rng.choice(len(KINDS), p=weights / weights.sum()))]


def trial_of(seed, number):
    """Return the kind of a case and its trial."""
    name = kind_of(seed, number)
    return name, KINDS[name][0](np.random.default_rng([seed, number, 1]))
