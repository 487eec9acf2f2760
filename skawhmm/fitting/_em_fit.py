"""Fits of any family of states: random starts, EM, number of states.

The model of a sequence depends on its frames and the options, and on nothing else.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from skawhmm.emissions._model import Model
from skawhmm.fitting._em import (
    Fit,
    Steps,
    allowed_moves,
    best_start,
    chain_size,
    climb,
    criterion_value,
    model_at,
    stacked,
)
from skawhmm.models._counts import Counts
from skawhmm.numerics._paths import DEAD_COUNT, without_empty_states
from skawhmm.utils._seeds import item_rng

# Number of starts compared before a fit, and of EM steps after which they are compared.
CANDIDATES = 4
SCREENING_STEPS = 5


def frames_rng(frames, seed, run):
    """Return a generator that depends on the frames, the seed and the run only."""
    return item_rng(seed, run, frames)


def start_model(data, n_states, options, rng, *, first):
    """Return start values of one model.

    Parameters
    ----------
    data : Data
        The sequences of the model.

    n_states : int
        Number of states.

    options : FitOptions
        Family and topology.

    rng : numpy.random.Generator
        Source of the draws.

    first : bool
        Whether states that come in order divide each sequence into equal parts;
        otherwise the cuts are drawn at random. Ergodic models do not use it.

    Returns
    -------
    model : Model
        A stack of one; every allowed move and every observed value is possible.
    """
    family, frames = options.template, data.frames
    start, allowed = allowed_moves(options.topology, n_states)
    if options.topology == "ergodic":
        shares = rng.standard_exponential(allowed.shape) * allowed
        transmat = shares / shares.sum(axis=1, keepdims=True)
        states = family.random_states(frames, n_states, rng)
        return stacked([Model(start / start.sum(), transmat, states)])
    cuts = np.arange(1, n_states) / n_states
    if not first:
        cuts = np.sort(rng.random(n_states - 1))
    lengths = np.diff(data.offsets)
    place = [(np.arange(n) + 0.5) / n for n in lengths]
    labels = np.searchsorted(cuts, np.concatenate(place))
    post = (labels == np.arange(n_states)[:, None]).astype(float)
    common = tuple(
        np.repeat(part, n_states, axis=0) for part in family.common_states(frames)
    )
    # About as many moves as a path through all states has, and one frame of the whole.
    stays = np.eye(n_states) * len(frames) / len(lengths) / n_states
    moves = (stays + 1.0) * allowed
    statistics = family.statistics(frames, post, common)
    states = family.update(statistics, common, common, 1.0)
    return stacked([Model(start, moves / moves.sum(axis=1, keepdims=True), states)])


def screened_start(data, n_states, options, run):
    """Return the best of several starts after a few EM steps from each."""
    rng = frames_rng(data.frames, options.seed, run)
    starts = [
        start_model(data, n_states, options, rng, first=run == 0 and n == 0)
        for n in range(CANDIDATES if n_states > 1 else 1)
    ]
    steps = Steps(options.template, data, options.rule._replace(relevance=0.0))
    if n_states == 1:
        return climb(steps, starts[0], max_iter=SCREENING_STEPS, tol=0.0).model
    return best_start(steps, starts, n_steps=SCREENING_STEPS, tol=0.0)


def fit_one(data, options, pooled=None):
    """Fit one model to one or more sequences.

    Parameters
    ----------
    data : Data
        The sequences of one model.

    options : FitOptions
        What to fit and how.

    pooled : Model, default=None
        Start values and, if `options.relevance` is not 0, the prior.

    Returns
    -------
    fit : Fit
        The model; with a criterion, that with the number of states it prefers.
    """
    if options.criterion is not None and pooled is None:
        return selected_fit(data, options)
    if pooled is not None:
        start = stacked([pooled])
        climbs = climb(Steps(options.template, data, options.rule, start), start)
        return finished_fit(climbs, data, options)
    limit = np.diff(data.offsets).max() if options.template.varied(data.frames) else 1
    n_states = int(min(options.n_components, limit))
    best: Any = None
    for run in range(options.n_init):
        start = screened_start(data, n_states, options, run)
        climbs = climb(Steps(options.template, data, options.rule, start), start)
        if best is None or climbs.objective[0] > best.objective[0]:
            best = climbs
    return finished_fit(best, data, options)


def finished_fit(climbs, data, options):
    """Return a finished climb as a fit, without transitions to empty states."""
    model, counts = model_at(climbs.model, 0), climbs.counts[0]
    if options.relevance == 0:
        model = without_empty_states(model, counts)
        counts = np.where(counts < DEAD_COUNT, 0.0, counts)
    return Fit(
        model,
        counts / counts.sum(),
        None,
        len(counts),
        float(climbs.log_likelihood[0]),
        float(climbs.objective[0]),
        int(climbs.n_iter[0]),
        bool(climbs.converged[0]),
        int(data.offsets[-1]),
        Counts(climbs.counts, climbs.moves),
    )


def selected_fit(data, options):
    """Return the fit with the number of states that the criterion prefers."""
    best, best_value = None, np.inf
    for n_states in options.sizes:
        only = replace(options, n_components=n_states, criterion=None)
        fit = fit_one(data, only)
        if fit.n_states < n_states:
            break
        n_free = chain_size(options.topology, n_states)
        n_free += n_states * options.template.n_free(data.frames)
        value = criterion_value(fit, n_free, options)
        if value < best_value:
            best, best_value = fit, value
    return best


def general_fits(sequences, options, pooled=None):
    """Fit one model per checked sequence; the parameters are those of `fit_one`."""
    data = (options.template.data([x]) for x in sequences)
    return [fit_one(part, options, pooled) for part in data]


def general_pooled_fit(sequences, options):
    """Fit one model to all sequences together, by maximum likelihood."""
    data = options.template.data(sequences, [0, len(sequences)])
    fit = fit_one(data, replace(options, relevance=0.0))
    return fit.model, fit
