"""Forward-backward, Viterbi and friends on one chain, given log densities; compiled.

Log densities have shape (n_components, n_timesteps); minus infinity marks a frame that
a state cannot emit. Nothing here knows what the emissions are.
"""

from math import factorial
from typing import Any

import numpy as np
from numba import njit

from skawhmm._densities import KERNEL

# A state whose scaled forward weight falls below this may be lost to underflow ...
LOST_WEIGHT = 1e-200
# Weights that sum to less are scaled up.
LEAST_TOTAL = 1e-30
# ... which does no harm if every state is reached from every other with more than this.
SAFE_TRANSITION = 1e-50
# Terms of a sum below exp(-SMALL_LOG) of the largest one are less than rounding.
SMALL_LOG = 40.0
# Exponentials: 1.5 * 2**52, its bits, log2(e), ln(2) in two parts, 1 / 12! .. 1 / 0!.
ROUNDER = 6755399441055744.0
ROUNDER_BITS = int(np.float64(ROUNDER).view(np.int64))
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
LAST_INVERSE = 1.0 / factorial(13)
INVERSE_FACTORIALS = tuple(1.0 / factorial(n) for n in range(12, -1, -1))
EXACT: dict[str, Any] = {**KERNEL, "fastmath": {"contract"}}


@njit(**EXACT)
def fill_exp(gaps, powers, out):
    """Exponentials of numbers of at most 0, to 2 ulp; below -700 they are 0.

    The usual range reduction and Taylor polynomial, written so that it fills vector
    registers, which calls of the C library do not.
    """
    bits = powers.view(np.int64)
    for t in range(gaps.shape[0]):
        value = max(gaps[t], -708.0)
        # Adding the constant rounds to an integer, which the low bits then hold.
        shifted = value * LOG2_E + ROUNDER
        whole = shifted - ROUNDER
        powers[t] = shifted
        r = (value - whole * LN2_HIGH) - whole * LN2_LOW
        total = LAST_INVERSE
        for inverse in INVERSE_FACTORIALS:
            total = total * r + inverse
        out[t] = total if gaps[t] > -700.0 else 0.0
    for t in range(gaps.shape[0]):
        bits[t] = (bits[t] - ROUNDER_BITS + 1023) << 52
    for t in range(gaps.shape[0]):
        out[t] *= powers[t]


@njit(**EXACT)
def relative_densities(logs, emit, tops):
    """Densities relative to the best state of each frame, and the logs of those."""
    n_components, n_timesteps = logs.shape
    gaps, powers = np.empty(n_timesteps), np.empty(n_timesteps)
    row = np.empty(n_timesteps)
    tops[:] = logs[0]
    for k in range(1, n_components):
        other = logs[k]
        for t in range(n_timesteps):
            tops[t] = max(tops[t], other[t])
    for k in range(n_components):
        other = logs[k]
        for t in range(n_timesteps):
            gaps[t] = other[t] - tops[t]
        fill_exp(gaps, powers, row)
        for t in range(n_timesteps):
            emit[t, k] = row[t]


@njit(**KERNEL)
def scaled_forward(emit, tops, startprob, transmat, alpha, scale):
    """Forward pass, scaled down whenever the weights become small.

    Parameters
    ----------
    emit, tops : ndarray of shape (n_timesteps, n_components) and (n_timesteps,)
        Relative densities and the logs of what they are relative to.

    startprob, transmat : ndarray
        The chain.

    alpha : ndarray of shape (n_timesteps, n_components)
        Receives the forward weights; those of the last frame sum to one.

    scale : ndarray of shape (n_timesteps,)
        Receives the factors divided out.

    Returns
    -------
    log_likelihood : float
        Log likelihood.

    lost : bool
        Whether a state that can be reached fell out of range; the rest is then void.
    """
    n_timesteps, n_components = emit.shape
    log_likelihood, lost = tops.sum(), not np.isfinite(tops.min())
    reach = startprob.copy()
    for t in range(n_timesteps):
        if t > 0:
            for j in range(n_components):
                total = 0.0
                for i in range(n_components):
                    total += alpha[t - 1, i] * transmat[i, j]
                reach[j] = total
        total = 0.0
        for j in range(n_components):
            weight = reach[j] * emit[t, j]
            if weight < LOST_WEIGHT and reach[j] > 0:
                lost = True
            alpha[t, j] = weight
            total += weight
        scale[t] = 1.0
        if total < LEAST_TOTAL or t == n_timesteps - 1:
            if not total > 0:
                return -np.inf, True
            scale[t] = total
            log_likelihood += np.log(total)
            for j in range(n_components):
                alpha[t, j] /= total
    return log_likelihood, lost


@njit(**KERNEL)
def scaled_backward(transmat, emit, alpha, scale, post, moves):
    """Backward pass: state probabilities given the sequence, expected transitions.

    Parameters
    ----------
    transmat, emit, alpha, scale : ndarray
        The chain and what `scaled_forward` left.

    post : ndarray of shape (n_components, n_timesteps)
        Receives the state probabilities.

    moves : ndarray of shape (n_components, n_components)
        Expected transitions are added to it.
    """
    n_components, n_timesteps = post.shape
    beta, ahead = np.ones(n_components), np.empty(n_components)
    sums = np.zeros((n_components, n_components))
    for j in range(n_components):
        post[j, n_timesteps - 1] = alpha[n_timesteps - 1, j]
    for t in range(n_timesteps - 2, -1, -1):
        for j in range(n_components):
            ahead[j] = emit[t + 1, j] * beta[j]
        if scale[t + 1] != 1.0:
            for j in range(n_components):
                ahead[j] /= scale[t + 1]
        for i in range(n_components):
            total = 0.0
            for j in range(n_components):
                total += transmat[i, j] * ahead[j]
                sums[i, j] += alpha[t, i] * ahead[j]
            beta[i] = total
            post[i, t] = alpha[t, i] * total
    for i in range(n_components):
        for j in range(n_components):
            moves[i, j] += transmat[i, j] * sums[i, j]


@njit(**KERNEL)
def log_sum_exp(values):
    """Logarithm of the sum of exponentials."""
    top = values.max()
    if top == -np.inf:
        return top
    total = 0.0
    for value in values:
        if value > top - SMALL_LOG:
            total += np.exp(value - top)
    return top + np.log(total)


@njit(**KERNEL)
def log_forward(logs, startprob, transmat, alpha):
    """Forward pass in logarithms: nothing is lost, at several times the cost."""
    n_components, n_timesteps = logs.shape
    log_start, log_transmat = np.log(startprob), np.log(transmat)
    terms = np.empty(n_components)
    for j in range(n_components):
        alpha[0, j] = log_start[j] + logs[j, 0]
    for t in range(1, n_timesteps):
        for j in range(n_components):
            for i in range(n_components):
                terms[i] = alpha[t - 1, i] + log_transmat[i, j]
            alpha[t, j] = log_sum_exp(terms) + logs[j, t]
    return log_sum_exp(alpha[n_timesteps - 1])


@njit(**KERNEL)
def log_backward(logs, transmat, alpha, log_likelihood, post, moves):
    """Backward pass in logarithms, after `log_forward`; see `scaled_backward`."""
    n_components, n_timesteps = logs.shape
    log_transmat = np.log(transmat)
    beta, ahead = np.zeros(n_components), np.empty(n_components)
    terms = np.empty(n_components)
    for t in range(n_timesteps - 1, -1, -1):
        if t < n_timesteps - 1:
            for j in range(n_components):
                ahead[j] = logs[j, t + 1] + beta[j]
            for i in range(n_components):
                for j in range(n_components):
                    terms[j] = log_transmat[i, j] + ahead[j]
                    gain = alpha[t, i] + terms[j] - log_likelihood
                    if gain > -700:
                        moves[i, j] += np.exp(gain)
                beta[i] = log_sum_exp(terms)
        total = 0.0
        for j in range(n_components):
            post[j, t] = np.exp(alpha[t, j] + beta[j] - log_likelihood)
            total += post[j, t]
        for j in range(n_components):
            post[j, t] /= total


@njit(**KERNEL)
def log_passes(logs, startprob, transmat, alpha, post, moves):
    """Both passes in logarithms; frames that cannot be are passed over.

    Returns
    -------
    log_likelihood : float
        Minus infinity if a frame was passed over.
    """
    value = log_forward(logs, startprob, transmat, alpha)
    if value > -np.inf:
        log_backward(logs, transmat, alpha, value, post, moves)
        return value
    possible = logs.copy()
    for t in range(logs.shape[1]):
        part = possible[:, : t + 1]
        if log_forward(part, startprob, transmat, alpha) == -np.inf:
            possible[:, t] = 0.0
    value = log_forward(possible, startprob, transmat, alpha)
    log_backward(possible, transmat, alpha, value, post, moves)
    return -np.inf


@njit(**KERNEL)
def log_likelihood_of(logs, startprob, transmat):
    """Log likelihood of one sequence, by the fast pass if that is exact."""
    n_components, n_timesteps = logs.shape
    emit = np.empty((n_timesteps, n_components))
    tops, scale = np.empty(n_timesteps), np.empty(n_timesteps)
    alpha = np.empty((n_timesteps, n_components))
    relative_densities(logs, emit, tops)
    value, lost = scaled_forward(emit, tops, startprob, transmat, alpha, scale)
    if lost and not transmat.min() > SAFE_TRANSITION:
        value = log_forward(logs, startprob, transmat, alpha)
    return value


@njit(**KERNEL)
def forward_backward(logs, startprob, transmat, post, moves):
    """Log likelihood; fills state probabilities, adds expected transitions.

    Parameters
    ----------
    logs : ndarray of shape (n_components, n_timesteps)
        Log densities.

    startprob, transmat : ndarray
        The chain.

    post : ndarray of shape (n_components, n_timesteps)
        Receives the state probabilities given the sequence.

    moves : ndarray of shape (n_components, n_components)
        Expected transitions are added to it.

    Returns
    -------
    log_likelihood : float
        Minus infinity if no path of states can emit the sequence.
    """
    n_components, n_timesteps = logs.shape
    emit = np.empty((n_timesteps, n_components))
    alpha = np.empty((n_timesteps, n_components))
    tops, scale = np.empty(n_timesteps), np.empty(n_timesteps)
    relative_densities(logs, emit, tops)
    value, lost = scaled_forward(emit, tops, startprob, transmat, alpha, scale)
    if lost and not (value > -np.inf and transmat.min() > SAFE_TRANSITION):
        return log_passes(logs, startprob, transmat, alpha, post, moves)
    scaled_backward(transmat, emit, alpha, scale, post, moves)
    return value


@njit(**KERNEL)
def keep_least_rank(logs, ranks, startprob, transmat):
    """Drop, frame by frame, reachable states that a flatter one outweighs.

    Where the supports of states differ in dimension, a frame on the flattest of them
    has infinitely more density there. The log densities are changed in place.
    """
    n_components, n_timesteps = logs.shape
    alive = startprob > 0
    for t in range(n_timesteps):
        least = n_components * 0 + ranks.max()
        for j in range(n_components):
            if alive[j] and logs[j, t] > -np.inf:
                least = min(least, ranks[j])
        for j in range(n_components):
            if not alive[j] or ranks[j] > least:
                logs[j, t] = -np.inf
        following = np.zeros(n_components, np.bool_)
        for i in range(n_components):
            if logs[i, t] > -np.inf:
                for j in range(n_components):
                    following[j] |= transmat[i, j] > 0
        alive = following


@njit(**KERNEL)
def best_path(logs, startprob, transmat, path):
    """Fill the most probable path of states; returns its log probability."""
    n_components, n_timesteps = logs.shape
    log_start, log_transmat = np.log(startprob), np.log(transmat)
    back = np.zeros((n_timesteps, n_components), np.int64)
    score, following = log_start + logs[:, 0], np.empty(n_components)
    for t in range(1, n_timesteps):
        for j in range(n_components):
            best, origin = -np.inf, 0
            for i in range(n_components):
                value = score[i] + log_transmat[i, j]
                if value > best:
                    best, origin = value, i
            following[j] = best + logs[j, t]
            back[t, j] = origin
        score[:] = following
    path[n_timesteps - 1] = np.argmax(score)
    for t in range(n_timesteps - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return score.max()


@njit(**KERNEL)
def random_path(startprob, transmat, uniforms, path):
    """Fill a path of states drawn from the chain by inversion."""
    n_components = startprob.shape[0]
    row = startprob
    for t in range(path.shape[0]):
        level, state = uniforms[t] * row.sum(), -1
        for j in range(n_components):
            if row[j] > 0:
                state = j
                level -= row[j]
                if level < 0:
                    break
        path[t] = state
        row = transmat[state]
