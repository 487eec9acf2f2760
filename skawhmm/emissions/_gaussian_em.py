"""EM of Gaussian states, many models at a time; compiled.

The covariances decide what is computed: two axes are diagonal (or spherical) states,
three are full (or tied) ones. Functions that depend on it take the covariances first:
numba drops the branch of the other kind when the number of axes is that of an argument.

The frames of a model lie one after the other in a flat array, channel by channel.

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
    row_sum,
)
from skawhmm.numerics._forward_backward import forward_backward_each
from skawhmm.utils._compile import KERNEL

# A state with less than this many expected frames is empty and keeps its parameters.
EMPTY_COUNT = 1e-8
# Floor of eigenvalues, relative to the data's: keeps factors finite at reg_covar=0.
LEAST_FLOOR = 1e-12

Moments = namedtuple("Moments", ["counts", "firsts", "seconds"])
Moments.__doc__ = "Expected moments of the frames of each state, about its mean."


@njit(**KERNEL)
def add_moments(covars, frames, seen, post, means, moments):
    """Add the weighted moments of the frames about the means."""
    if covars.ndim == 2:
        add_diag_moments(
            frames, seen, post, means, moments.counts, moments.firsts, moments.seconds
        )
    else:
        add_full_moments(
            frames, post, means, moments.counts, moments.firsts, moments.seconds
        )


@njit(**KERNEL)
def fill_densities(covars, frames, seen, means, logs):
    """Fill log densities (n_components, n_frames) under the states of one model."""
    n_components, n_features = means.shape
    if covars.ndim == 2:
        diag_log_density(frames, seen, means, covars, logs)
    else:
        whiteners, norms = np.zeros(covars.shape), np.empty(n_components)
        for k in range(n_components):
            log_det = cholesky_whitener(covars[k], whiteners[k])
            norms[k] = -0.5 * (n_features * LOG_TWO_PI + log_det)
        full_log_density(frames, means, whiteners, norms, logs)


@njit(**KERNEL)
def expectation(covars, frames, seen, offsets, chain, means, expected, moments, post):
    """E step: add the statistics of several sequences, return their log likelihood.

    Parameters
    ----------
    covars : ndarray of shape (n_components, n_features[, n_features])
        Covariances of the model.

    frames, seen : ndarray of shape (n_features, n_frames)
        The sequences one after the other; their mask, empty if all was observed.

    offsets : ndarray of shape (n_sequences + 1,)
        Where they begin and end.

    chain : tuple of ndarray
        Start and transition probabilities.

    means : ndarray of shape (n_components, n_features)
        Means of the states.

    expected : tuple of ndarray
        Starts and moves; they receive the sums.

    moments : Moments
        Likewise.

    post : ndarray of shape (n_components, n_frames)
        Receives the state probabilities.
    """
    logs = np.empty(post.shape)
    fill_densities(covars, frames, seen, means, logs)
    total = forward_backward_each(
        logs, offsets, chain[0], chain[1], post, expected[0], expected[1]
    )
    add_moments(covars, frames, seen, post, means, moments)
    return total


@njit(**KERNEL)
def model_frames(flat, n_features, first, last):
    """View the frames first to last of a flat array, (n_features, last - first)."""
    part = flat[first * n_features : last * n_features]
    return part.reshape((n_features, last - first))


@njit(**KERNEL)
def row_moments(moments, n):
    """One row of stacked moments."""
    return Moments(moments.counts[n], moments.firsts[n], moments.seconds[n])


@njit(**KERNEL)
def fill_expectations(
    frames, seen, offsets, firsts, chains, states, active, expected, moments, values
):
    """E step of several models, each with its own sequences.

    Parameters
    ----------
    frames, seen : ndarray of shape (n_frames * n_features,)
        The frames of each model, flat; their mask, empty if all was observed.

    offsets, firsts : ndarray of int
        Where sequences begin and end, and which of these are the bounds of models.

    chains, states : tuple of ndarray
        Start and transition probabilities; means and covariances of all models.

    active : ndarray of int of shape (n_active,)
        Which models.

    expected : tuple of ndarray
        Starts, moves and frames per state, one row per active model; zeros that receive
        the sums.

    moments : Moments
        Likewise.

    values : ndarray of shape (n_active,)
        Receives the log likelihoods.
    """
    means, covars = states
    n_components, n_features = means.shape[1:]
    for n in range(active.shape[0]):
        m = active[n]
        first, last = offsets[firsts[m]], offsets[firsts[m + 1]]
        inner = offsets[firsts[m] : firsts[m + 1] + 1] - first
        mask = np.empty((0, 0))
        if seen.size > 0:
            mask = model_frames(seen, n_features, first, last)
        post = np.empty((n_components, last - first))
        values[n] = expectation(
            covars[m],
            model_frames(frames, n_features, first, last),
            mask,
            inner,
            (chains[0][m], chains[1][m]),
            means[m],
            (expected[0][n], expected[1][n]),
            row_moments(moments, n),
            post,
        )
        for k in range(n_components):
            expected[2][n, k] = row_sum(post[k])


@njit(**KERNEL)
def fill_given(
    covars, frames, seen, offsets, firsts, labels, means, allowed, expected, moments
):
    """Statistics of frames whose states are given: within-state moments, counted steps.

    Parameters
    ----------
    covars, means : ndarray
        The state that all frames are taken to be in at first, repeated.

    frames, seen, offsets, firsts : ndarray
        As in `fill_expectations`.

    labels : ndarray of shape (n_frames,)
        State of every frame.

    allowed : tuple of ndarray
        1 for starts and transitions the topology has, else 0.

    expected, moments : tuple of ndarray
        Starts and moves, and moments, one row per model; zeros that receive the sums.
    """
    n_components, n_features = means.shape
    starts, moves = expected[0], expected[1]
    for m in range(firsts.shape[0] - 1):
        first, last = offsets[firsts[m]], offsets[firsts[m + 1]]
        mask = np.empty((0, 0))
        if seen.size > 0:
            mask = model_frames(seen, n_features, first, last)
        post = np.zeros((n_components, last - first))
        for t in range(last - first):
            post[labels[first + t], t] = 1.0
        for s in range(firsts[m], firsts[m + 1]):
            starts[m, labels[offsets[s]]] += 1.0
            for t in range(offsets[s] + 1, offsets[s + 1]):
                moves[m, labels[t - 1], labels[t]] += 1.0
        # Half a step more for each state's row leaves every allowed move possible.
        for i in range(n_components):
            starts[m, i] += 1 / n_components
            if not allowed[0][i] > 0:
                starts[m, i] = 0.0
            share = 0.5 / row_sum(allowed[1][i])
            for j in range(n_components):
                moves[m, i, j] = (moves[m, i, j] + share) * allowed[1][i, j]
        own = model_frames(frames, n_features, first, last)
        add_moments(covars, own, mask, post, means, row_moments(moments, m))


@njit(**KERNEL)
def diag_update(moments, states, prior, relevance, floor, is_pooled):
    """Means and variances of the M step; floors are a constraint, not an addition."""
    means, covars = states[0].copy(), states[1].copy()
    n_components, n_features = means.shape
    for k in range(n_components):
        spread, weight = 0.0, 0.0
        for c in range(n_features):
            total = moments.counts[k, c] + relevance
            if total < EMPTY_COUNT:
                continue
            gap = prior[0][k, c] - states[0][k, c]
            step = (moments.firsts[k, c] + relevance * gap) / total
            second = moments.seconds[k, c]
            second += relevance * (prior[1][k, c] + gap * gap)
            means[k, c] = states[0][k, c] + step
            covars[k, c] = max(second / total - step * step, floor)
            spread += total * (second / total - step * step)
            weight += total
        if is_pooled and weight > 0:
            for c in range(n_features):
                covars[k, c] = max(spread / weight, floor)
    return means, covars


@njit(**KERNEL)
def full_update(moments, states, prior, relevance, floor, is_pooled):
    """Means and covariance matrices of the M step, eigenvalues above the floor."""
    means, covars = states[0].copy(), states[1].copy()
    n_components, n_features = means.shape
    step, gap = np.empty(n_features), np.empty(n_features)
    shared, weight = np.zeros((n_features, n_features)), 0.0
    for k in range(n_components):
        total = moments.counts[k, 0] + relevance
        if total < EMPTY_COUNT:
            continue
        for c in range(n_features):
            gap[c] = prior[0][k, c] - states[0][k, c]
            step[c] = (moments.firsts[k, c] + relevance * gap[c]) / total
            means[k, c] = states[0][k, c] + step[c]
        for c in range(n_features):
            for e in range(n_features):
                second = moments.seconds[k, c, e]
                second += relevance * (prior[1][k, c, e] + gap[c] * gap[e])
                covars[k, c, e] = second / total - step[c] * step[e]
                shared[c, e] += total * covars[k, c, e]
        weight += total
    for c in range(n_features):
        for e in range(n_features):
            shared[c, e] /= weight
    for k in range(n_components):
        floored = lifted(shared if is_pooled else covars[k], floor)
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
def fill_updates(covars, moments, rows, states, prior, constraints, active):
    """M step of the states of several models, in place.

    Parameters
    ----------
    covars : ndarray of shape (n_models, n_components, n_features[, n_features])
        Covariances of all models.

    moments : Moments
        Expected moments, with a leading axis.

    rows, active : ndarray of int of shape (n_active,)
        Which rows of them belong to which models.

    states, prior : tuple of ndarray
        Means and covariances of all models; what they shrink to, one for each or one
        for all.

    constraints : tuple
        Weight of the prior in frames per state, floor of the variances, and whether
        they are pooled (over channels, or over states if covariances are full).
    """
    relevance, floor, is_pooled = constraints
    for n in range(rows.shape[0]):
        m = active[n]
        own, sums = (states[0][m], covars[m]), row_moments(moments, rows[n])
        row = min(m, prior[0].shape[0] - 1)
        other = (prior[0][row], prior[1][row])
        if covars.ndim == 3:
            means, spreads = diag_update(sums, own, other, relevance, floor, is_pooled)
        else:
            means, spreads = full_update(sums, own, other, relevance, floor, is_pooled)
        states[0][m] = means
        covars[m] = spreads


@njit(**KERNEL)
def log_prior(covars, means, prior):
    """Logarithm of the prior at the states, per frame of relevance."""
    n_components, n_features = means.shape
    value = 0.0
    for k in range(n_components):
        if covars.ndim == 2:
            for c in range(n_features):
                gap = prior[0][k, c] - means[k, c]
                spread = prior[1][k, c] + gap * gap
                value -= 0.5 * (np.log(covars[k, c]) + spread / covars[k, c])
        else:
            whitener = np.zeros((n_features, n_features))
            value -= 0.5 * cholesky_whitener(covars[k], whitener)
            for r in range(n_features):
                whitened = 0.0
                for c in range(r + 1):
                    gap = prior[0][k, c] - means[k, c]
                    whitened += whitener[r, c] * gap
                    for e in range(r + 1):
                        product = whitener[r, c] * whitener[r, e]
                        value -= 0.5 * product * prior[1][k, c, e]
                value -= 0.5 * whitened * whitened
    return value
