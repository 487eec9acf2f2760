"""Forward and backward passes over one chain, given log densities; compiled.

Log densities have shape (n_components, n_timesteps); minus infinity marks a frame that
a state cannot emit. Nothing here knows what the emissions are.
"""

from math import factorial

import numpy as np
from numba import njit

from skawhmm.utils._compile import EXACT, KERNEL, REORDERED

# A state whose scaled forward weight falls below this may be lost to underflow ...
LOST_WEIGHT = 1e-200
# ... which does no harm if every state is reached from every other with more than this,
SAFE_TRANSITION = 1e-50
# ... or if the products of forward and backward weights keep this much of the whole.
LEAST_OVERLAP = 1e-100
# Weights that sum to less are scaled up.
LEAST_TOTAL = 1e-30
# Terms of a sum below exp(-SMALL_LOG) of the largest one are less than rounding.
SMALL_LOG = 40.0
# Exponentials: 1.5 * 2**52, its bits, log2(e), ln(2) in two parts, 1 / 12! .. 1 / 0!.
ROUNDER = 6755399441055744.0
ROUNDER_BITS = int(np.float64(ROUNDER).view(np.int64))
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
LAST_INVERSE = 1.0 / factorial(13)
INVERSE_FACTORIALS = tuple(1.0 / factorial(n) for n in range(12, -1, -1))


@njit(**KERNEL)
def window(array, first, last):
    """Columns of an array, copied so that its rows lie one after the other."""
    part = np.empty((array.shape[0], last - first))
    for c in range(array.shape[0]):
        for t in range(last - first):
            part[c, t] = array[c, first + t]
    return part


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
    for t in range(n_timesteps):
        tops[t] = logs[0, t]
    for k in range(1, n_components):
        other = logs[k]
        for t in range(n_timesteps):
            tops[t] = max(tops[t], other[t])
    for k in range(n_components):
        other = logs[k]
        for t in range(n_timesteps):
            gaps[t] = other[t] - tops[t]
        fill_exp(gaps, powers, emit[k])


@njit(**KERNEL)
def scaled_forward(emit, startprob, transmat):
    """Forward pass, scaled up whenever the weights become small.

    Parameters
    ----------
    emit : ndarray of shape (n_components, n_timesteps)
        Relative densities.

    startprob, transmat : ndarray
        The chain.

    Returns
    -------
    log_likelihood : float
        Logarithm of the likelihood, relative as the densities.

    lost : bool
        Whether a state that can be reached fell out of range.
    """
    n_components, n_timesteps = emit.shape
    log_likelihood, lost = 0.0, False
    reach, alpha = startprob.copy(), np.empty(n_components)
    for t in range(n_timesteps):
        total = 0.0
        for j in range(n_components):
            alpha[j] = reach[j] * emit[j, t]
            if alpha[j] < LOST_WEIGHT and reach[j] > 0:
                lost = True
            total += alpha[j]
        if total < LEAST_TOTAL or t == n_timesteps - 1:
            if not total > 0:
                return -np.inf, True
            log_likelihood += np.log(total)
            for j in range(n_components):
                alpha[j] /= total
        for j in range(n_components):
            total = 0.0
            for i in range(n_components):
                total += alpha[i] * transmat[i, j]
            reach[j] = total
    return log_likelihood, lost


@njit(**EXACT)
def scaled_passes(emit, startprob, transmat, alpha, beta, ahead, shrink):
    """Forward and backward pass, scaled up whenever the weights become small.

    The two passes are independent. They share a loop, because each alone would spend
    most of its time waiting for the result of its last step.

    Parameters
    ----------
    emit : ndarray of shape (n_components, n_timesteps)
        Relative densities.

    startprob, transmat : ndarray
        The chain.

    alpha, beta : ndarray of shape (n_components, n_timesteps)
        Receive the forward and the backward weights, at most 1.

    ahead : ndarray of shape (n_components, n_timesteps)
        Receives the backward weights times the densities.

    shrink : ndarray of shape (n_timesteps,)
        Receives the factors divided out of the backward weights.

    Returns
    -------
    log_likelihood : float
        Logarithm of the likelihood, relative as the densities; minus infinity if all
        weights of a frame fell out of range.
    """
    n_components, n_timesteps = emit.shape
    forward, backward = np.empty(n_components), np.empty(n_components)
    products = np.empty(n_components)
    log_scale, last = 0.0, n_timesteps - 1
    for j in range(n_components):
        forward[j], backward[j] = startprob[j] * emit[j, 0], 1.0
        alpha[j, 0], beta[j, last] = forward[j], backward[j]
    shrink[last] = 1.0
    for t in range(1, n_timesteps):
        s = n_timesteps - t
        total, size = 0.0, 0.0
        for j in range(n_components):
            value = 0.0
            for i in range(n_components):
                value += forward[i] * transmat[i, j]
            alpha[j, t] = value * emit[j, t]
            total += alpha[j, t]
            products[j] = emit[j, s] * backward[j]
            ahead[j, s] = products[j]
        for i in range(n_components):
            value = 0.0
            for j in range(n_components):
                value += transmat[i, j] * products[j]
            backward[i] = value
            size += value
        if not (total > 0 and size > 0):
            return -np.inf
        shrink[s - 1] = size if size < LEAST_TOTAL else 1.0
        factor = total if total < LEAST_TOTAL else 1.0
        if factor < 1:
            log_scale += np.log(factor)
        for j in range(n_components):
            if factor < 1:
                alpha[j, t] /= factor
            forward[j] = alpha[j, t]
            if shrink[s - 1] < 1:
                backward[j] /= shrink[s - 1]
            beta[j, s - 1] = backward[j]
    total = 0.0
    for j in range(n_components):
        total += forward[j]
    return log_scale + np.log(total)


@njit(**EXACT)
def small_passes(emit, startprob, transmat, alpha, beta, ahead, shrink):
    """`scaled_passes` for at most four states, whose weights stay in registers.

    Fewer states are padded with states that are never entered; `alpha`, `beta` and
    `ahead` have four rows. It takes less than half the time.
    """
    n_components, n_timesteps = emit.shape
    p, start = np.zeros((4, 4)), np.zeros(4)
    for i in range(n_components):
        start[i] = startprob[i]
        for j in range(n_components):
            p[i, j] = transmat[i, j]
    p00, p01, p02, p03 = p[0, 0], p[0, 1], p[0, 2], p[0, 3]
    p10, p11, p12, p13 = p[1, 0], p[1, 1], p[1, 2], p[1, 3]
    p20, p21, p22, p23 = p[2, 0], p[2, 1], p[2, 2], p[2, 3]
    p30, p31, p32, p33 = p[3, 0], p[3, 1], p[3, 2], p[3, 3]
    last = n_components - 1
    emit0, emit1 = emit[0], emit[min(1, last)]
    emit2, emit3 = emit[min(2, last)], emit[min(3, last)]
    alpha0, alpha1, alpha2, alpha3 = alpha[0], alpha[1], alpha[2], alpha[3]
    beta0, beta1, beta2, beta3 = beta[0], beta[1], beta[2], beta[3]
    ahead0, ahead1, ahead2, ahead3 = ahead[0], ahead[1], ahead[2], ahead[3]
    a0, a1 = start[0] * emit0[0], start[1] * emit1[0]
    a2, a3 = start[2] * emit2[0], start[3] * emit3[0]
    b0, b1, b2, b3 = 1.0, 1.0, 1.0, 1.0
    alpha0[0], alpha1[0], alpha2[0], alpha3[0] = a0, a1, a2, a3
    t = n_timesteps - 1
    beta0[t], beta1[t], beta2[t], beta3[t], shrink[t] = b0, b1, b2, b3, 1.0
    log_scale = 0.0
    for t in range(1, n_timesteps):
        s = n_timesteps - t
        n0 = ((a0 * p00 + a1 * p10) + (a2 * p20 + a3 * p30)) * emit0[t]
        n1 = ((a0 * p01 + a1 * p11) + (a2 * p21 + a3 * p31)) * emit1[t]
        n2 = ((a0 * p02 + a1 * p12) + (a2 * p22 + a3 * p32)) * emit2[t]
        n3 = ((a0 * p03 + a1 * p13) + (a2 * p23 + a3 * p33)) * emit3[t]
        c0, c1, c2, c3 = emit0[s] * b0, emit1[s] * b1, emit2[s] * b2, emit3[s] * b3
        ahead0[s], ahead1[s], ahead2[s], ahead3[s] = c0, c1, c2, c3
        b0 = (p00 * c0 + p01 * c1) + (p02 * c2 + p03 * c3)
        b1 = (p10 * c0 + p11 * c1) + (p12 * c2 + p13 * c3)
        b2 = (p20 * c0 + p21 * c1) + (p22 * c2 + p23 * c3)
        b3 = (p30 * c0 + p31 * c1) + (p32 * c2 + p33 * c3)
        total, size = (n0 + n1) + (n2 + n3), (b0 + b1) + (b2 + b3)
        a0, a1, a2, a3 = n0, n1, n2, n3
        shrink[s - 1] = 1.0
        if total < LEAST_TOTAL:
            if not total > 0:
                return -np.inf
            log_scale += np.log(total)
            a0, a1, a2, a3 = a0 / total, a1 / total, a2 / total, a3 / total
        if size < LEAST_TOTAL:
            if not size > 0:
                return -np.inf
            shrink[s - 1] = size
            b0, b1, b2, b3 = b0 / size, b1 / size, b2 / size, b3 / size
        alpha0[t], alpha1[t], alpha2[t], alpha3[t] = a0, a1, a2, a3
        beta0[s - 1], beta1[s - 1], beta2[s - 1], beta3[s - 1] = b0, b1, b2, b3
    return log_scale + np.log((a0 + a1) + (a2 + a3))


@njit(**KERNEL)
def fill_posteriors(alpha, beta, shrink, post, factors):
    """State probabilities from the weights of both passes.

    Parameters
    ----------
    alpha, beta, shrink : ndarray
        What the passes left.

    post : ndarray of shape (n_components, n_timesteps)
        Receives the state probabilities.

    factors : ndarray of shape (n_timesteps,)
        Receives the factors that turn products of weights into transition
        probabilities.

    Returns
    -------
    least : float
        Smallest sum over states of the products of the weights, which are at most 1.
    """
    n_components, n_timesteps = post.shape
    sums = np.zeros(n_timesteps)
    for k in range(n_components):
        row, left, right = post[k], alpha[k], beta[k]
        for t in range(n_timesteps):
            row[t] = left[t] * right[t]
            sums[t] += row[t]
    least = np.inf
    for t in range(n_timesteps):
        least = min(least, sums[t])
        factors[t] = 1 / (sums[t] * shrink[t])
        sums[t] = 1 / sums[t]
    for k in range(n_components):
        row = post[k]
        for t in range(n_timesteps):
            row[t] *= sums[t]
    return least


@njit(**REORDERED)
def triple_product(left, factors, right):
    """Sum over time of left[t] * factors[t] * right[t + 1]."""
    total = 0.0
    for t in range(left.shape[0] - 1):
        total += left[t] * factors[t] * right[t + 1]
    return total


@njit(**KERNEL)
def log_sum_exp(values):
    """Logarithm of the sum of exponentials."""
    top = -np.inf
    for value in values:
        top = max(top, value)
    if top == -np.inf:
        return top
    total = 0.0
    for value in values:
        if value > top - SMALL_LOG:
            total += np.exp(value - top)
    return top + np.log(total)


@njit(**KERNEL)
def log_forward(logs, startprob, log_transmat, alpha):
    """Forward pass in logarithms: no weight is lost, at several times the cost.

    Frames that no state can emit are skipped: their log densities are set to 0 in
    place, and the second value returned says whether there were any.
    """
    n_components, n_timesteps = logs.shape
    terms, possible = np.empty(n_components), True
    for t in range(n_timesteps):
        top = -np.inf
        for j in range(n_components):
            alpha[t, j] = np.log(startprob[j])
            if t > 0:
                for i in range(n_components):
                    terms[i] = alpha[t - 1, i] + log_transmat[i, j]
                alpha[t, j] = log_sum_exp(terms)
            top = max(top, alpha[t, j] + logs[j, t])
        for j in range(n_components):
            if top == -np.inf:
                logs[j, t] = 0.0
            alpha[t, j] += logs[j, t]
        possible &= top > -np.inf
    return log_sum_exp(alpha[n_timesteps - 1]), possible


@njit(**KERNEL)
def log_passes(logs, startprob, transmat, post, moves):
    """Both passes in logarithms; see `forward_backward`. The logs may be changed."""
    n_components, n_timesteps = logs.shape
    alpha, log_transmat = np.empty((n_timesteps, n_components)), np.log(transmat)
    value, possible = log_forward(logs, startprob, log_transmat, alpha)
    beta, ahead = np.zeros(n_components), np.empty(n_components)
    terms = np.empty(n_components)
    for t in range(n_timesteps - 1, -1, -1):
        if t < n_timesteps - 1:
            for j in range(n_components):
                ahead[j] = logs[j, t + 1] + beta[j]
            for i in range(n_components):
                for j in range(n_components):
                    terms[j] = log_transmat[i, j] + ahead[j]
                    gain = alpha[t, i] + terms[j] - value
                    if gain > -700:
                        moves[i, j] += np.exp(gain)
                beta[i] = log_sum_exp(terms)
        total = 0.0
        for j in range(n_components):
            post[j, t] = np.exp(alpha[t, j] + beta[j] - value)
            total += post[j, t]
        for j in range(n_components):
            post[j, t] /= total
    return value if possible else -np.inf


@njit(**KERNEL)
def log_likelihood_of(logs, startprob, transmat):
    """Log likelihood of one sequence, by the fast pass if that is exact."""
    n_components, n_timesteps = logs.shape
    emit, tops = np.empty(logs.shape), np.empty(n_timesteps)
    relative_densities(logs, emit, tops)
    value, lost = scaled_forward(emit, startprob, transmat)
    top, least = 0.0, np.inf
    for t in range(n_timesteps):
        top += tops[t]
    for i in range(n_components):
        for j in range(n_components):
            least = min(least, transmat[i, j])
    if not np.isfinite(top) or (lost and not least > SAFE_TRANSITION):
        alpha = np.empty((n_timesteps, n_components))
        value, possible = log_forward(logs.copy(), startprob, np.log(transmat), alpha)
        return value if possible else -np.inf
    return top + value


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
        Minus infinity if no path of states can emit the sequence; frames that no state
        can emit are then skipped.
    """
    n_components, n_timesteps = logs.shape
    shape = (max(n_components, 4), n_timesteps)
    alpha, beta, ahead = np.empty(shape), np.empty(shape), np.empty(shape)
    emit, tops = np.empty(logs.shape), np.empty(n_timesteps)
    shrink, factors = np.empty(n_timesteps), np.empty(n_timesteps)
    relative_densities(logs, emit, tops)
    if n_components <= 4:
        value = small_passes(emit, startprob, transmat, alpha, beta, ahead, shrink)
    else:
        value = scaled_passes(emit, startprob, transmat, alpha, beta, ahead, shrink)
    for t in range(n_timesteps):
        value += tops[t]
    least = 0.0
    if np.isfinite(value):
        least = fill_posteriors(alpha, beta, shrink, post, factors)
    # Weights that fell out of range are less than rounding if this much is left.
    if not least > LEAST_OVERLAP:
        return log_passes(logs.copy(), startprob, transmat, post, moves)
    for i in range(n_components):
        for j in range(n_components):
            product = triple_product(alpha[i], factors, ahead[j])
            moves[i, j] += transmat[i, j] * product
    return value


@njit(**KERNEL)
def forward_backward_each(logs, offsets, startprob, transmat, post, starts, moves):
    """`forward_backward` of several sequences; returns their log likelihood.

    Parameters
    ----------
    logs : ndarray of shape (n_components, n_frames)
        Log densities of the sequences one after the other.

    offsets : ndarray of shape (n_sequences + 1,)
        Where they begin and end.

    startprob, transmat, post, moves : ndarray
        As in `forward_backward`, for all frames.

    starts : ndarray of shape (n_components,)
        The state probabilities of first frames are added to it.
    """
    total = 0.0
    for s in range(offsets.shape[0] - 1):
        first, last = offsets[s], offsets[s + 1]
        part, inside = np.empty((logs.shape[0], last - first)), logs
        if offsets.shape[0] > 2:
            inside = window(logs, first, last)
        total += forward_backward(inside, startprob, transmat, part, moves)
        for k in range(logs.shape[0]):
            starts[k] += part[k, 0]
            for t in range(last - first):
                post[k, first + t] = part[k, t]
    return total
