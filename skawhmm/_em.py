"""Expectation maximisation of one Gaussian hidden Markov model, compiled.

The covariances decide the emission family: two axes are diagonal (or spherical)
states, three are full (or tied) ones. Functions that depend on the family take the
covariances first: numba drops the branch of the other family when the number of axes
is that of an argument.
"""

from collections import namedtuple

import numpy as np
from numba import njit

from skawhmm._chains import forward_backward
from skawhmm._densities import (
    KERNEL,
    LOG_TWO_PI,
    add_diag_moments,
    add_full_moments,
    cholesky,
    cholesky_whitener,
    diag_log_density,
    full_log_density,
)
from skawhmm._starts import start_labels

# A state with less than this many expected frames is empty and keeps its parameters.
EMPTY_COUNT = 1e-8
# Transition probabilities below this are 0: their powers would leave the range.
LEAST_TRANSITION = 1e-100
# Floor of eigenvalues, relative to the data's: keeps factors finite at reg_covar=0.
LEAST_FLOOR = 1e-12
# Steps of EM after which starts are compared.
SCREENING_STEPS = 1

Model = namedtuple("Model", ["startprob", "transmat", "means", "covars"])
Model.__doc__ = "Parameters of one model, arrays without a leading axis."

Stats = namedtuple("Stats", ["start", "moves", "counts", "firsts", "seconds"])
Stats.__doc__ = "Expected sufficient statistics; moments are taken about the means."

Rule = namedtuple(
    "Rule", ["pooled_covars", "n_mix", "floor", "relevance", "max_iter", "tol"]
)
Rule.__doc__ = "What the M step keeps to, and when to stop."

Search = namedtuple("Search", ["origin", "allowed", "ordered", "n_candidates"])
Search.__doc__ = "Blank model, allowed moves, whether states come in order, draws."


@njit(**KERNEL)
def empty_stats(model):
    """Statistics of no frames."""
    return Stats(
        np.zeros_like(model.startprob),
        np.zeros_like(model.transmat),
        np.zeros_like(model.means),
        np.zeros_like(model.means),
        np.zeros_like(model.covars),
    )


@njit(**KERNEL)
def model_log_density(covars, frames, seen, means, out):
    """Log density of every frame under every state of a model on active channels."""
    if covars.ndim == 2:
        diag_log_density(frames, seen, means, covars, out)
    else:
        size = means.shape[1]
        whiteners = np.zeros(covars.shape)
        norms = np.empty(means.shape[0])
        for k in range(means.shape[0]):
            log_det = cholesky_whitener(covars[k], whiteners[k])
            norms[k] = -0.5 * (size * LOG_TWO_PI + log_det)
        full_log_density(frames, means, whiteners, norms, out)


@njit(**KERNEL)
def add_moments(covars, frames, seen, post, means, stats):
    """Add the weighted moments of the frames about the means."""
    if covars.ndim == 2:
        add_diag_moments(
            frames, seen, post, means, stats.counts, stats.firsts, stats.seconds
        )
    else:
        add_full_moments(frames, post, means, stats.counts, stats.firsts, stats.seconds)


@njit(**KERNEL)
def expectation(frames, seen, offsets, model, stats, post):
    """E step: add the statistics of several sequences, return their log likelihood.

    Parameters
    ----------
    frames, seen : ndarray of shape (n_features, n_frames)
        The sequences one after the other.

    offsets : ndarray of shape (n_sequences + 1,)
        Where they begin and end.

    model : Model
        Present parameters.

    stats : Stats
        Receives the sums.

    post : ndarray of shape (n_components, n_frames)
        Receives the state probabilities.
    """
    logs = np.empty(post.shape)
    model_log_density(model.covars, frames, seen, model.means, logs)
    total = 0.0
    for s in range(offsets.shape[0] - 1):
        first, last = offsets[s], offsets[s + 1]
        part = np.empty((post.shape[0], last - first))
        total += forward_backward(
            np.ascontiguousarray(logs[:, first:last]),
            model.startprob,
            model.transmat,
            part,
            stats.moves,
        )
        post[:, first:last] = part
        stats.start[:] += part[:, 0]
    add_moments(model.covars, frames, seen, post, model.means, stats)
    return total


@njit(**KERNEL)
def chain_update(stats, model, prior, rule):
    """Start and transition probabilities of the M step."""
    n_components = model.startprob.shape[0]
    # The start is the last row.
    counts = np.empty((n_components + 1, n_components))
    for j in range(n_components):
        counts[-1, j] = stats.start[j] + rule.relevance * prior.startprob[j]
        for i in range(n_components):
            counts[i, j] = stats.moves[i, j] + rule.relevance * prior.transmat[i, j]
    if rule.n_mix > 1:
        tie_mixtures(counts, rule.n_mix)
    startprob, transmat = np.empty(n_components), np.empty_like(model.transmat)
    for i in range(n_components + 1):
        total, kept = 0.0, 0.0
        for j in range(n_components):
            total += counts[i, j]
        for j in range(n_components):
            if i < n_components and total < EMPTY_COUNT:
                counts[i, j] = model.transmat[i, j]
            else:
                counts[i, j] /= total
            if counts[i, j] < LEAST_TRANSITION:
                counts[i, j] = 0.0
            kept += counts[i, j]
        for j in range(n_components):
            if i < n_components:
                transmat[i, j] = counts[i, j] / kept
            else:
                startprob[j] = counts[i, j] / kept
    return startprob, transmat


@njit(**KERNEL)
def tie_mixtures(counts, n_mix):
    """Change counts to what they are if components are entered in fixed proportions.

    The rows are those of the components, and the start.
    """
    n_components = counts.shape[1]
    portions = np.zeros(n_components)
    for j in range(n_components):
        for i in range(n_components + 1):
            portions[j] += counts[i, j]
    for first in range(0, n_components, n_mix):
        total = 0.0
        for j in range(first, first + n_mix):
            total += portions[j]
        for j in range(first, first + n_mix):
            portions[j] = portions[j] / total if total > 0 else 1 / n_mix
    for top in range(0, n_components + 1, n_mix):
        bottom = min(top + n_mix, n_components + 1)
        for first in range(0, n_components, n_mix):
            total = 0.0
            for i in range(top, bottom):
                for j in range(first, first + n_mix):
                    total += counts[i, j]
            for i in range(top, bottom):
                for j in range(first, first + n_mix):
                    counts[i, j] = total * portions[j]


@njit(**KERNEL)
def diag_update(stats, model, prior, rule):
    """Means and variances of the M step; floors are a constraint, not an addition."""
    means, covars = model.means.copy(), model.covars.copy()
    n_components, n_features = means.shape
    for k in range(n_components):
        spread, weight = 0.0, 0.0
        for c in range(n_features):
            total = stats.counts[k, c] + rule.relevance
            if total < EMPTY_COUNT:
                continue
            gap = prior.means[k, c] - model.means[k, c]
            step = (stats.firsts[k, c] + rule.relevance * gap) / total
            second = stats.seconds[k, c]
            second += rule.relevance * (prior.covars[k, c] + gap * gap)
            means[k, c] = model.means[k, c] + step
            covars[k, c] = max(second / total - step * step, rule.floor)
            spread += total * (second / total - step * step)
            weight += total
        if rule.pooled_covars and weight > 0:
            covars[k] = max(spread / weight, rule.floor)
    return means, covars


@njit(**KERNEL)
def full_update(stats, model, prior, rule):
    """Means and covariance matrices of the M step, eigenvalues above the floor."""
    means, covars = model.means.copy(), model.covars.copy()
    n_components, n_features = means.shape
    shared, weight = np.zeros((n_features, n_features)), 0.0
    for k in range(n_components):
        total = stats.counts[k, 0] + rule.relevance
        if total < EMPTY_COUNT:
            continue
        gap = prior.means[k] - model.means[k]
        step = (stats.firsts[k] + rule.relevance * gap) / total
        for c in range(n_features):
            for e in range(n_features):
                second = stats.seconds[k, c, e]
                second += rule.relevance * (prior.covars[k, c, e] + gap[c] * gap[e])
                covars[k, c, e] = second / total - step[c] * step[e]
        means[k] = model.means[k] + step
        shared += total * covars[k]
        weight += total
    if rule.pooled_covars:
        shared = floored(shared / weight, rule.floor)
        for k in range(n_components):
            covars[k] = shared
    else:
        for k in range(n_components):
            covars[k] = floored(covars[k], rule.floor)
    return means, covars


@njit(**KERNEL)
def floored(covar, floor):
    """Return the covariance with eigenvalues below the floor lifted to it.

    Among matrices that are at least floor * I this one has the greatest likelihood,
    so the M step stays one and the likelihood never falls.
    """
    scratch = np.zeros_like(covar)
    if cholesky(covar, floor, scratch):
        return covar
    values, vectors = np.linalg.eigh(covar)
    result = np.zeros_like(covar)
    for r in range(values.shape[0]):
        value = max(values[r], floor)
        for c in range(covar.shape[0]):
            for e in range(covar.shape[0]):
                result[c, e] += value * vectors[c, r] * vectors[e, r]
    return 0.5 * (result + result.T)


@njit(**KERNEL)
def emission_update(covars, stats, model, prior, rule):
    """Means and covariances of the M step."""
    if covars.ndim == 2:
        result = diag_update(stats, model, prior, rule)
    else:
        result = full_update(stats, model, prior, rule)
    return result


@njit(**KERNEL)
def maximization(stats, model, prior, rule):
    """M step: parameters that maximise the expected log posterior."""
    startprob, transmat = chain_update(stats, model, prior, rule)
    means, covars = emission_update(model.covars, stats, model, prior, rule)
    return Model(startprob, transmat, means, covars)


@njit(**KERNEL)
def expected_log_density(covars, prior_covars, gaps):
    """Sum over states of the prior's expected log density, up to a constant."""
    n_components, n_features = gaps.shape
    value = 0.0
    for k in range(n_components):
        if covars.ndim == 2:
            for c in range(n_features):
                spread = prior_covars[k, c] + gaps[k, c] * gaps[k, c]
                value -= 0.5 * (np.log(covars[k, c]) + spread / covars[k, c])
        else:
            whitener = np.zeros((n_features, n_features))
            value -= 0.5 * cholesky_whitener(covars[k], whitener)
            precision = whitener.T @ whitener
            for c in range(n_features):
                for e in range(n_features):
                    spread = prior_covars[k, c, e] + gaps[k, c] * gaps[k, e]
                    value -= 0.5 * precision[c, e] * spread
    return value


@njit(**KERNEL)
def log_prior(model, prior, rule):
    """Logarithm of the prior at the model, up to a constant (0 without a prior).

    The prior acts as `relevance` expected frames, starts and steps per state.
    """
    if rule.relevance == 0:
        return 0.0
    value = 0.0
    for i in range(model.startprob.shape[0]):
        if prior.startprob[i] > 0:
            entry = max(model.startprob[i], LEAST_TRANSITION)
            value += prior.startprob[i] * np.log(entry)
        for j in range(model.startprob.shape[0]):
            if prior.transmat[i, j] > 0:
                entry = max(model.transmat[i, j], LEAST_TRANSITION)
                value += prior.transmat[i, j] * np.log(entry)
    gaps = prior.means - model.means
    value += expected_log_density(model.covars, prior.covars, gaps)
    return rule.relevance * value


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
    stats.start[:] = (stats.start + 1 / n_components) * (origin.startprob > 0)
    for i in range(n_components):
        stats.moves[i] = (stats.moves[i] + 0.5 / allowed[i].sum()) * allowed[i]
    add_moments(origin.covars, frames, seen, post, origin.means, stats)
    return stats


@njit(**KERNEL)
def climb(points, frames, seen, offsets, search, prior, rule, state):
    """Choose a start and climb from it; see `em` and `screened_start`.

    One kernel does both, since each would be compiled with all that it calls.
    """
    n_states = search.origin.startprob.shape[0] // rule.n_mix
    post = np.empty((search.origin.startprob.shape[0], frames.shape[1]))
    history = np.empty(max(rule.max_iter, SCREENING_STEPS) + 1)
    best, best_value = search.origin, -np.inf
    plain = Rule(rule.pooled_covars, rule.n_mix, rule.floor, 0.0, 0, 0.0)
    # The last round is the climb itself, the others are trials of a start.
    for trial in range(search.n_candidates + 1):
        is_trial = trial < search.n_candidates
        model, n_iter, steps = best, 0, rule.max_iter
        if is_trial:
            order = 0
            if search.ordered:
                order = 1 if trial == 0 else 2
            labels = start_labels(points, offsets, n_states, rule.n_mix, order, state)
            model, steps = search.origin, SCREENING_STEPS
            stats = hard_stats(frames, seen, offsets, labels, model, search.allowed)
            model = maximization(stats, model, model, plain)
        if (is_trial and search.n_candidates == 1) or (not is_trial and steps < 0):
            best = model
            continue
        converged, log_likelihood = False, 0.0
        while True:
            stats = empty_stats(model)
            log_likelihood = expectation(frames, seen, offsets, model, stats, post)
            history[n_iter] = log_likelihood
            if not is_trial:
                history[n_iter] += log_prior(model, prior, rule)
                if n_iter > 0:
                    gain = history[n_iter] - history[n_iter - 1]
                    converged = gain <= rule.tol * frames.shape[1]
            if converged or n_iter == steps:
                break
            model = maximization(stats, model, prior, plain if is_trial else rule)
            n_iter += 1
        if not is_trial:
            return model, post, history[: n_iter + 1], log_likelihood, converged
        if trial == 0 or history[n_iter] > best_value:
            best, best_value = model, history[n_iter]
    return best, post, history[:0], -np.inf, False


def em(frames, seen, offsets, start, prior, rule):
    """Climb from a start until the gain per frame is below the tolerance.

    Parameters
    ----------
    frames, seen : ndarray of shape (n_features, n_frames)
        The sequences one after the other.

    offsets : ndarray of shape (n_sequences + 1,)
        Where they begin and end.

    start, prior : Model
        Start values; the model to shrink to (not used at relevance 0).

    rule : Rule
        Constraints and stopping rule.

    Returns
    -------
    model : Model
        Parameters after the last M step.

    post : ndarray of shape (n_components, n_frames)
        State probabilities under them.

    history : ndarray of shape (n_iter + 1,)
        Log likelihood plus log prior before each M step and at the end.

    log_likelihood : float
        Log likelihood of the returned model.

    converged : bool
        Whether the gain fell below the tolerance.
    """
    search = Search(start, start.transmat, False, 0)
    state = np.zeros(1, np.uint64)
    return climb(frames, frames, seen, offsets, search, prior, rule, state)


def screened_start(points, frames, seen, offsets, search, rule, state):
    """Best of several starts after a few steps of EM from each.

    Parameters
    ----------
    points, frames, seen : ndarray of shape (n_features, n_frames)
        Frames in the coordinates of the start and of the fit, and the mask.

    offsets : ndarray of shape (n_sequences + 1,)
        Where the sequences begin and end.

    search : Search
        What to draw, and how many times.

    rule : Rule
        Constraints of the M step.

    state : ndarray of shape (1,)
        State of the random generator.

    Returns
    -------
    model : Model
        Start values.
    """
    rule = rule._replace(max_iter=-1)
    return climb(points, frames, seen, offsets, search, search.origin, rule, state)[0]
