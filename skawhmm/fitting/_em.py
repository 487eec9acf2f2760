"""Expectation maximisation of Gaussian hidden Markov models, compiled.

The covariances decide the emission family: two axes are diagonal (or spherical)
states, three are full (or tied) ones. Functions that depend on the family take the
covariances first: numba drops the branch of the other family when the number of axes
is that of an argument.

Loops are written out where an expression on arrays would do: numba would compile the
wording of its error messages for each of those, which takes longer than the kernel.
"""

from collections import namedtuple

import numpy as np
from numba import njit

from skawhmm.emissions._gaussian_densities import (
    LOG_TWO_PI,
    add_diag_moments,
    add_full_moments,
    cholesky,
    cholesky_whitener,
    diag_log_density,
    full_log_density,
)
from skawhmm.numerics._forward_backward import forward_backward_each
from skawhmm.utils._compile import KERNEL

# A state with less than this many expected frames is empty and keeps its parameters.
EMPTY_COUNT = 1e-8
# Transition probabilities below this are 0: their powers would leave the range.
LEAST_TRANSITION = 1e-100
# Floor of eigenvalues, relative to the data's: keeps factors finite at reg_covar=0.
LEAST_FLOOR = 1e-12

Model = namedtuple("Model", ["startprob", "transmat", "means", "covars"])
Model.__doc__ = "Parameters of one model, or of several with a leading axis."

Stats = namedtuple("Stats", ["start", "moves", "counts", "firsts", "seconds"])
Stats.__doc__ = "Expected sufficient statistics; moments are taken about the means."

Rule = namedtuple(
    "Rule", ["pooled_covars", "n_mix", "floor", "relevance", "max_iter", "tol"]
)
Rule.__doc__ = "What the M step keeps to, and when to stop."


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
def add_moments(covars, frames, seen, post, means, stats):
    """Add the weighted moments of the frames about the means."""
    if covars.ndim == 2:
        add_diag_moments(
            frames, seen, post, means, stats.counts, stats.firsts, stats.seconds
        )
    else:
        add_full_moments(frames, post, means, stats.counts, stats.firsts, stats.seconds)


@njit(**KERNEL)
def expectation(covars, frames, seen, offsets, model, stats, post):
    """E step: add the statistics of several sequences, return their log likelihood.

    Parameters
    ----------
    covars : ndarray
        Covariances of the model.

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
    n_components, n_features = model.means.shape
    logs = np.empty(post.shape)
    if covars.ndim == 2:
        diag_log_density(frames, seen, model.means, covars, logs)
    else:
        whiteners, norms = np.zeros(covars.shape), np.empty(n_components)
        for k in range(n_components):
            log_det = cholesky_whitener(covars[k], whiteners[k])
            norms[k] = -0.5 * (n_features * LOG_TWO_PI + log_det)
        full_log_density(frames, model.means, whiteners, norms, logs)
    chain = model.startprob, model.transmat
    total = forward_backward_each(logs, offsets, *chain, post, stats.start, stats.moves)
    add_moments(covars, frames, seen, post, model.means, stats)
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
            for c in range(n_features):
                covars[k, c] = max(spread / weight, rule.floor)
    return means, covars


@njit(**KERNEL)
def full_update(stats, model, prior, rule):
    """Means and covariance matrices of the M step, eigenvalues above the floor."""
    means, covars = model.means.copy(), model.covars.copy()
    n_components, n_features = means.shape
    step, gap = np.empty(n_features), np.empty(n_features)
    shared, weight = np.zeros((n_features, n_features)), 0.0
    for k in range(n_components):
        total = stats.counts[k, 0] + rule.relevance
        if total < EMPTY_COUNT:
            continue
        for c in range(n_features):
            gap[c] = prior.means[k, c] - model.means[k, c]
            step[c] = (stats.firsts[k, c] + rule.relevance * gap[c]) / total
            means[k, c] = model.means[k, c] + step[c]
        for c in range(n_features):
            for e in range(n_features):
                second = stats.seconds[k, c, e]
                second += rule.relevance * (prior.covars[k, c, e] + gap[c] * gap[e])
                covars[k, c, e] = second / total - step[c] * step[e]
                shared[c, e] += total * covars[k, c, e]
        weight += total
    for c in range(n_features):
        for e in range(n_features):
            shared[c, e] /= weight
    for k in range(n_components):
        floored = lifted(shared if rule.pooled_covars else covars[k], rule.floor)
        for c in range(n_features):
            for e in range(n_features):
                covars[k, c, e] = floored[c, e]
    return means, covars


@njit(**KERNEL)
def lifted(covar, floor):
    """Return the covariance with eigenvalues below the floor lifted to it.

    Among matrices that are at least floor * I this one has the greatest likelihood,
    so the M step stays one and the likelihood never falls.
    """
    scratch = np.zeros(covar.shape)
    if cholesky(covar, floor, scratch):
        return covar
    values, vectors = np.linalg.eigh(covar)
    result = np.zeros(covar.shape)
    for r in range(values.shape[0]):
        value = max(values[r], floor)
        for c in range(covar.shape[0]):
            for e in range(c + 1):
                result[c, e] += value * vectors[c, r] * vectors[e, r]
    for c in range(covar.shape[0]):
        for e in range(c):
            result[e, c] = result[c, e]
    return result


@njit(**KERNEL)
def maximization(covars, stats, model, prior, rule):
    """M step: parameters that maximise the expected log posterior."""
    startprob, transmat = chain_update(stats, model, prior, rule)
    if covars.ndim == 2:
        means, spreads = diag_update(stats, model, prior, rule)
    else:
        means, spreads = full_update(stats, model, prior, rule)
    return Model(startprob, transmat, means, spreads)


@njit(**KERNEL)
def log_prior(covars, model, prior, rule):
    """Logarithm of the prior at the model, up to a constant (0 without a prior).

    The prior acts as `relevance` expected frames, starts and steps per state.
    """
    if rule.relevance == 0:
        return 0.0
    n_components, n_features = model.means.shape
    value = 0.0
    for i in range(n_components):
        if prior.startprob[i] > 0:
            entry = max(model.startprob[i], LEAST_TRANSITION)
            value += prior.startprob[i] * np.log(entry)
        for j in range(n_components):
            if prior.transmat[i, j] > 0:
                entry = max(model.transmat[i, j], LEAST_TRANSITION)
                value += prior.transmat[i, j] * np.log(entry)
    for k in range(n_components):
        if covars.ndim == 2:
            for c in range(n_features):
                gap = prior.means[k, c] - model.means[k, c]
                spread = prior.covars[k, c] + gap * gap
                value -= 0.5 * (np.log(covars[k, c]) + spread / covars[k, c])
        else:
            whitener = np.zeros((n_features, n_features))
            value -= 0.5 * cholesky_whitener(covars[k], whitener)
            for r in range(n_features):
                whitened = 0.0
                for c in range(r + 1):
                    gap = prior.means[k, c] - model.means[k, c]
                    whitened += whitener[r, c] * gap
                    for e in range(r + 1):
                        product = whitener[r, c] * whitener[r, e]
                        value -= 0.5 * product * prior.covars[k, c, e]
                value -= 0.5 * whitened * whitened
    return rule.relevance * value
