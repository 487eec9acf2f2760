"""Sums over frames for kernels that numba compiles."""

from numba import njit

from skawhmm.utils._compile import REORDERED


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


@njit(**REORDERED)
def row_sum(row):
    """Sum of a row."""
    total = 0.0
    for value in row:
        total += value
    return total


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
