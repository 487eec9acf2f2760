"""Start values compared and climbed from, many models in one call; compiled."""

from collections import namedtuple

import numpy as np
from numba import njit

from skawhmm.emissions._gaussian_densities import row_sum
from skawhmm.fitting._em import (
    Model,
    Rule,
    add_moments,
    empty_stats,
    expectation,
    log_prior,
    maximization,
)
from skawhmm.numerics._forward_backward import window
from skawhmm.utils._compile import KERNEL

# Steps of EM after which starts are compared.
SCREENING_STEPS = 1

Climbs = namedtuple(
    "Climbs",
    ["model", "counts", "log_likelihood", "objective", "n_iter", "converged"],
)
Climbs.__doc__ = """How several climbs ended, arrays with one row for each.

Counts are expected frames per state, the objective is the log likelihood plus the
log prior; both belong to the model after `n_iter` M steps.
"""


@njit(**KERNEL)
def hard_stats(frames, seen, offsets, labels, origin, allowed):
    """Statistics of frames whose states are given: within-state moments, counted steps.

    Parameters
    ----------
    frames, seen : ndarray of shape (n_features, n_frames)
        The sequences one after the other.

    offsets : ndarray of shape (n_sequences + 1,)
        Where they begin and end.

    labels : ndarray of shape (n_frames,)
        State of every frame.

    origin : Model
        What states without frames get.

    allowed : ndarray of shape (n_components, n_components)
        1 for transitions the topology has, else 0; the start has those of `origin`.
    """
    n_components = origin.startprob.shape[0]
    stats = empty_stats(origin)
    post = np.zeros((n_components, frames.shape[1]))
    for t in range(frames.shape[1]):
        post[labels[t], t] = 1.0
    for s in range(offsets.shape[0] - 1):
        stats.start[labels[offsets[s]]] += 1.0
        for t in range(offsets[s] + 1, offsets[s + 1]):
            stats.moves[labels[t - 1], labels[t]] += 1.0
    # Half a step more for each state's row leaves every allowed move possible.
    for i in range(n_components):
        stats.start[i] += 1 / n_components
        if not origin.startprob[i] > 0:
            stats.start[i] = 0.0
        share = 0.5 / row_sum(allowed[i])
        for j in range(n_components):
            stats.moves[i, j] = (stats.moves[i, j] + share) * allowed[i, j]
    add_moments(origin.covars, frames, seen, post, origin.means, stats)
    return stats


@njit(**KERNEL)
def model_at(models, i):
    """One of several models."""
    return Model(
        models.startprob[i], models.transmat[i], models.means[i], models.covars[i]
    )


@njit(**KERNEL)
def write(values, target):
    """Copy an array into another of the same size."""
    source, out = values.ravel(), target.ravel()
    for i in range(source.shape[0]):
        out[i] = source[i]


@njit(**KERNEL)
def fill_climbs(
    frames, seen, offsets, bounds, labels, allowed, starts, priors, rule, climbs
):
    """Fill what `climb` returns.

    One kernel chooses a start and climbs from it, since each of two would be compiled
    with all that both call.
    """
    n_models, n_candidates = bounds.shape[0] - 1, labels.shape[0]
    n_components = starts.startprob.shape[1]
    plain = Rule(rule.pooled_covars, rule.n_mix, rule.floor, 0.0, 0, 0.0)
    s = 0
    for m in range(n_models):
        begin, end = bounds[m], bounds[m + 1]
        first = s
        while offsets[s] < end:
            s += 1
        inner = offsets[first : s + 1] - begin
        own, mask = window(frames, begin, end), seen
        if seen.size > 0:
            mask = window(seen, begin, end)
        post = np.empty((n_components, end - begin))
        best = model_at(starts, min(m, starts.startprob.shape[0] - 1))
        prior = model_at(priors, min(m, priors.startprob.shape[0] - 1))
        origin, best_value = best, -np.inf
        # The last round is the climb itself, the others are trials of a start.
        for trial in range(n_candidates + 1):
            is_trial = trial < n_candidates
            model, limit, present = best, rule.max_iter, rule
            if is_trial:
                model, limit, present = origin, SCREENING_STEPS, plain
                stats = hard_stats(
                    own, mask, inner, labels[trial, begin:end], model, allowed
                )
                model = maximization(model.covars, stats, model, model, plain)
            if (is_trial and n_candidates == 1) or (not is_trial and limit < 0):
                best = model
                continue
            n_iter, done, value, objective = 0, False, 0.0, -np.inf
            while True:
                stats = empty_stats(model)
                value = expectation(model.covars, own, mask, inner, model, stats, post)
                before, objective = objective, value
                if not is_trial:
                    objective += log_prior(model.covars, model, prior, rule)
                    done = objective - before <= rule.tol * own.shape[1]
                if done or n_iter == limit:
                    break
                model = maximization(model.covars, stats, model, prior, present)
                n_iter += 1
            if not is_trial or trial == 0 or objective > best_value:
                best, best_value = model, objective
            climbs.log_likelihood[m], climbs.objective[m] = value, objective
            climbs.n_iter[m], climbs.converged[m] = n_iter, done
        for k in range(n_components):
            climbs.counts[m, k] = row_sum(post[k])
        write(best.startprob, climbs.model.startprob[m])
        write(best.transmat, climbs.model.transmat[m])
        write(best.means, climbs.model.means[m])
        write(best.covars, climbs.model.covars[m])


def climb(frames, seen, offsets, bounds, labels, allowed, starts, priors, rule):
    """Fit several models, each to its own sequences: choose a start, climb from it.

    Parameters
    ----------
    frames, seen : ndarray of shape (n_features, n_frames)
        The sequences one after the other.

    offsets : ndarray of shape (n_sequences + 1,)
        Where they begin and end.

    bounds : ndarray of shape (n_models + 1,)
        Where the frames of a model begin and end; some of the offsets.

    labels : ndarray of int of shape (n_candidates, n_frames)
        States of the frames in the starts to be compared. If there are none, the climb
        begins at `starts`.

    allowed : ndarray of shape (n_components, n_components)
        1 for transitions the topology has, else 0.

    starts, priors : Model
        Stacks of models, one for each or one for all: where to begin, or what states
        without frames get; what to shrink to (not used at relevance 0).

    rule : Rule
        Constraints and stopping rule; no climb if the number of steps is negative.

    Returns
    -------
    climbs : Climbs
        One row a model.
    """
    n_models, n_components = len(bounds) - 1, starts.startprob.shape[1]
    climbs = Climbs(
        Model(*(np.empty((n_models, *part.shape[1:])) for part in starts)),
        np.empty((n_models, n_components)),
        np.empty(n_models),
        np.empty(n_models),
        np.zeros(n_models, np.int64),
        np.zeros(n_models, np.bool_),
    )
    parts = frames, seen, offsets, bounds, labels, allowed, starts, priors, rule
    fill_climbs(*parts, climbs)
    return climbs


def stacked(model):
    """Return a model as a stack of one."""
    return Model(*(np.ascontiguousarray(part)[None] for part in model))


def em(frames, seen, offsets, start, prior, rule):
    """Climb from a start until the gain per frame is below the tolerance.

    Parameters
    ----------
    frames, seen, offsets : ndarray
        Sequences of one model, as in `climb`.

    start, prior : Model
        Start values; the model to shrink to (not used at relevance 0).

    rule : Rule
        Constraints and stopping rule.

    Returns
    -------
    climbs : Climbs
        Of one row.
    """
    none, bounds = np.empty((0, frames.shape[1]), np.int64), offsets[[0, -1]]
    starts, priors = stacked(start), stacked(prior)
    return climb(
        frames, seen, offsets, bounds, none, start.transmat, starts, priors, rule
    )
