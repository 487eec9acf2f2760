"""Gaussian log densities and weighted moments, compiled.

Frames lie in memory channel by channel, shape (n_features, n_timesteps), so that every
inner loop runs over time and needs no shuffling. Nothing here knows about chains.
"""

import numpy as np
from numba import njit

from skawhmm.numerics._forward_backward import window
from skawhmm.utils._compile import KERNEL, REORDERED

# Frames handled at a time: the channels of one block stay in the first cache.
TIME_BLOCK = 512
LOG_TWO_PI = 1.8378770664093453
# Relative size below which an eigenvalue of a correlation matrix is rounding.
RANK_TOLERANCE = 1e-13
# Relative distance at which a frame still counts as lying on a state's support.
SUPPORT_TOLERANCE = 1e-7


@njit(**REORDERED)
def add_squares_of_two(row_a, row_b, means, scales, total):
    """Add the scaled squared gaps of two channels from their means to the total."""
    mean_a, mean_b = means
    scale_a, scale_b = scales
    for t in range(total.shape[0]):
        gap_a, gap_b = row_a[t] - mean_a, row_b[t] - mean_b
        total[t] += scale_a * gap_a * gap_a + scale_b * gap_b * gap_b


@njit(**REORDERED)
def add_seen_squares(row, seen_row, mean, scale, norm, total):
    """Add the terms of one channel where it was observed (`seen_row` is 0 or 1)."""
    for t in range(total.shape[0]):
        gap = row[t] - mean
        total[t] += seen_row[t] * (scale * gap * gap + norm)


@njit(**KERNEL)
def diag_log_density(frames, seen, means, covars, out):
    """Log density of every frame under every state with diagonal covariance.

    Parameters
    ----------
    frames : ndarray of shape (n_features, n_timesteps)
        Finite values; those not observed are arbitrary.

    seen : ndarray of shape (n_features, n_timesteps) or (0, 0)
        1 where a value was observed, else 0; empty if all were.

    means, covars : ndarray of shape (n_components, n_features)
        Parameters. A variance of 0 adds nothing here, as on a flat support.

    out : ndarray of shape (n_components, n_timesteps)
        Receives the result.
    """
    n_components, n_features = means.shape
    norms = np.zeros(means.shape)
    scales = np.zeros((n_components, n_features + 1))
    for k in range(n_components):
        norm = 0.0
        for c in range(n_features):
            if covars[k, c] > 0:
                scales[k, c] = -0.5 / covars[k, c]
                norms[k, c] = -0.5 * (LOG_TWO_PI + np.log(covars[k, c]))
                norm += norms[k, c]
        for t in range(out.shape[1]):
            out[k, t] = norm if seen.size == 0 else 0.0
    for first in range(0, frames.shape[1], TIME_BLOCK):
        last = min(first + TIME_BLOCK, frames.shape[1])
        for c in range(0, n_features, 1 if seen.size > 0 else 2):
            # With an odd number of channels the last is its own, weightless, partner.
            e = min(c + 1, n_features - 1)
            for k in range(n_components):
                total = out[k, first:last]
                if seen.size > 0:
                    add_seen_squares(
                        frames[c, first:last],
                        seen[c, first:last],
                        means[k, c],
                        scales[k, c],
                        norms[k, c],
                        total,
                    )
                else:
                    add_squares_of_two(
                        frames[c, first:last],
                        frames[e, first:last],
                        (means[k, c], means[k, e]),
                        (scales[k, c], scales[k, c + 1]),
                        total,
                    )


@njit(**REORDERED)
def add_projection(block, weights, size, n_frames, buffer):
    """Add weights[:size] @ block[:size] to the buffer, four channels at a time."""
    c = 0
    while c + 4 <= size:
        w0, w1, w2, w3 = weights[c], weights[c + 1], weights[c + 2], weights[c + 3]
        for t in range(n_frames):
            buffer[t] += (w0 * block[c, t] + w1 * block[c + 1, t]) + (
                w2 * block[c + 2, t] + w3 * block[c + 3, t]
            )
        c += 4
    while c < size:
        w0 = weights[c]
        for t in range(n_frames):
            buffer[t] += w0 * block[c, t]
        c += 1


@njit(**REORDERED)
def add_squares(buffer, scale, n_frames, total):
    """Add scale * buffer**2 to the total."""
    for t in range(n_frames):
        total[t] += scale * buffer[t] * buffer[t]


@njit(**KERNEL)
def full_log_density(frames, means, whiteners, norms, out):
    """Log density of every frame under every state with full covariance.

    Parameters
    ----------
    frames : ndarray of shape (n_features, n_timesteps)
        Finite values.

    means : ndarray of shape (n_components, n_features)
        Means.

    whiteners : ndarray of shape (n_components, n_features, n_features)
        Matrices A with A covars A^T = I on the support and rows of 0 off it.

    norms : ndarray of shape (n_components,)
        Logarithms of the normalising constants.

    out : ndarray of shape (n_components, n_timesteps)
        Receives the result.
    """
    n_components, n_features = means.shape
    buffer, total = np.empty(TIME_BLOCK), np.empty(TIME_BLOCK)
    sizes = np.zeros((n_components, n_features), np.int64)
    shifts = np.zeros((n_components, n_features))
    for k in range(n_components):
        for r in range(n_features):
            for c in range(n_features):
                shifts[k, r] -= whiteners[k, r, c] * means[k, c]
                if whiteners[k, r, c] != 0:
                    sizes[k, r] = c + 1
    for first in range(0, frames.shape[1], TIME_BLOCK):
        n_frames = min(TIME_BLOCK, frames.shape[1] - first)
        block = window(frames, first, first + n_frames)
        for k in range(n_components):
            for t in range(n_frames):
                total[t] = norms[k]
            for r in range(n_features):
                if sizes[k, r] > 0:
                    for t in range(n_frames):
                        buffer[t] = shifts[k, r]
                    weights = whiteners[k, r]
                    add_projection(block, weights, sizes[k, r], n_frames, buffer)
                    add_squares(buffer, -0.5, n_frames, total)
            for t in range(n_frames):
                out[k, first + t] = total[t]


@njit(**KERNEL)
def cholesky(covar, shift, lower):
    """Fill the Cholesky factor of covar - shift * I; returns whether there is one."""
    for i in range(covar.shape[0]):
        for j in range(i + 1):
            total = covar[i, j] - (shift if i == j else 0.0)
            for c in range(j):
                total -= lower[i, c] * lower[j, c]
            if i > j:
                lower[i, j] = total / lower[j, j]
            elif total > 0:
                lower[i, i] = np.sqrt(total)
            else:
                return False
    return True


@njit(**KERNEL)
def cholesky_whitener(covar, whitener):
    """Fill the inverse Cholesky factor; returns the log determinant.

    The log determinant is NaN if the matrix is not positive definite.
    """
    size = covar.shape[0]
    lower = np.zeros((size, size))
    if not cholesky(covar, 0.0, lower):
        return np.nan
    log_det = 0.0
    for j in range(size):
        for i in range(j):
            whitener[i, j] = 0.0
        log_det += 2 * np.log(lower[j, j])
        whitener[j, j] = 1 / lower[j, j]
        for i in range(j + 1, size):
            total = 0.0
            for c in range(j, i):
                total -= lower[i, c] * whitener[c, j]
            whitener[i, j] = total / lower[i, i]
    return log_det


@njit(**REORDERED)
def row_sum(row):
    """Sum of a row."""
    total = 0.0
    for value in row:
        total += value
    return total


@njit(**REORDERED)
def two_channel_moments(first_row, second_row, weights, means, n_frames):
    """Weighted sums and sums of squares of two channels about their means."""
    a1, a2, b1, b2 = 0.0, 0.0, 0.0, 0.0
    mean_a, mean_b = means
    for t in range(n_frames):
        gap_a, gap_b = first_row[t] - mean_a, second_row[t] - mean_b
        weighted_a, weighted_b = weights[t] * gap_a, weights[t] * gap_b
        a1 += weighted_a
        a2 += weighted_a * gap_a
        b1 += weighted_b
        b2 += weighted_b * gap_b
    return a1, a2, b1, b2


@njit(**REORDERED)
def seen_moments(row, seen_row, weights, mean, n_frames):
    """Weighted count, sum and sum of squares of the observed values of a channel."""
    count, first, second = 0.0, 0.0, 0.0
    for t in range(n_frames):
        weight, gap = weights[t] * seen_row[t], row[t] - mean
        count += weight
        first += weight * gap
        second += weight * gap * gap
    return count, first, second


@njit(**REORDERED)
def add_diag_moments(frames, seen, post, means, counts, firsts, seconds):
    """Add weighted counts, sums and sums of squares about the means.

    Parameters
    ----------
    frames, seen : ndarray of shape (n_features, n_timesteps)
        As in `diag_log_density`.

    post : ndarray of shape (n_components, n_timesteps)
        Weights of the frames for every state.

    means : ndarray of shape (n_components, n_features)
        Origins of the moments: the present means, so that little cancels.

    counts, firsts, seconds : ndarray of shape (n_components, n_features)
        Receive the sums.
    """
    n_components, n_features = means.shape
    for start in range(0, frames.shape[1], TIME_BLOCK):
        stop = min(start + TIME_BLOCK, frames.shape[1])
        size = stop - start
        for k in range(n_components):
            if seen.size == 0:
                count = row_sum(post[k, start:stop])
                for c in range(n_features):
                    counts[k, c] += count
        for c in range(0, n_features, 2):
            e = min(c + 1, n_features - 1)
            row_c, row_e = frames[c, start:stop], frames[e, start:stop]
            for k in range(n_components):
                weights = post[k, start:stop]
                if seen.size > 0:
                    for i in range(c, e + 1):
                        n, s1, s2 = seen_moments(
                            frames[i, start:stop],
                            seen[i, start:stop],
                            weights,
                            means[k, i],
                            size,
                        )
                        counts[k, i] += n
                        firsts[k, i] += s1
                        seconds[k, i] += s2
                else:
                    origin = (means[k, c], means[k, e])
                    a1, a2, b1, b2 = two_channel_moments(
                        row_c, row_e, weights, origin, size
                    )
                    firsts[k, c] += a1
                    seconds[k, c] += a2
                    if e > c:
                        firsts[k, e] += b1
                        seconds[k, e] += b2


@njit(**REORDERED)
def four_products(row_a, row_b, row_c, row_d, weighted):
    """Scalar products of four rows with one."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for t in range(weighted.shape[0]):
        a += weighted[t] * row_a[t]
        b += weighted[t] * row_b[t]
        c += weighted[t] * row_c[t]
        d += weighted[t] * row_d[t]
    return a, b, c, d


@njit(**REORDERED)
def add_products(gaps, weighted, c, second):
    """Add weighted @ gaps[: c + 1].T to second[: c + 1]."""
    n = weighted.shape[0]
    for e in range(0, c + 1, 4):
        # Past the last row the same one is taken again and not counted.
        i, j, k = min(e + 1, c), min(e + 2, c), min(e + 3, c)
        sums = four_products(
            gaps[e, :n], gaps[i, :n], gaps[j, :n], gaps[k, :n], weighted
        )
        for r in range(min(4, c + 1 - e)):
            second[e + r] += sums[r]


@njit(**REORDERED)
def weighted_gaps(row, mean, weights, gaps, weighted):
    """Gaps of a row from the mean, plain and weighted, and the sum of the latter."""
    total = 0.0
    for t in range(row.shape[0]):
        gaps[t] = row[t] - mean
        weighted[t] = weights[t] * gaps[t]
        total += weighted[t]
    return total


@njit(**REORDERED)
def add_full_moments(frames, post, means, counts, firsts, seconds):
    """Add counts, sums and sums of products about the means; see the diagonal case."""
    n_components, n_features = means.shape
    gaps, weighted = np.empty((n_features, TIME_BLOCK)), np.empty(TIME_BLOCK)
    for start in range(0, frames.shape[1], TIME_BLOCK):
        stop = min(start + TIME_BLOCK, frames.shape[1])
        size = stop - start
        for k in range(n_components):
            weights = post[k, start:stop]
            count = row_sum(weights)
            for c in range(n_features):
                counts[k, c] += count
                row = frames[c, start:stop]
                firsts[k, c] += weighted_gaps(
                    row, means[k, c], weights, gaps[c], weighted
                )
                add_products(gaps, weighted[:size], c, seconds[k, c])
    for k in range(n_components):
        for c in range(n_features):
            for e in range(c):
                seconds[k, e, c] = seconds[k, c, e]
