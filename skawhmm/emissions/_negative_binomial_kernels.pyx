"""Densities, statistics and shapes of negative binomial states."""

import numpy as np

from libc.math cimport INFINITY, exp, isnan, lgamma, log, log1p

from skawhmm.utils._interruption cimport interrupted

cdef extern from "emissions/_special.h" nogil:
    """
    /* Steps of the search for a shape, which halve an interval of log shapes. */
    #define BISECTIONS 60
    """
    const int BISECTIONS
    double digamma(double y)


def fill_count_densities(
    const double[:, ::1] frames,
    const double[:, ::1] means,
    const double[:, ::1] shapes,
    const double[:, :, ::1] table,
    double[:, ::1] logs,
):
    """Fill log probabilities of counts under states.

    Parameters
    ----------
    frames : ndarray of shape (n_timesteps, n_channels)
        Counts; NaN was not observed.

    means, shapes : ndarray of shape (n_components, n_channels)
        Parameters of the states.

    table : ndarray of shape (n_components, n_channels, n_small)
        Log probabilities of the counts below n_small.

    logs : ndarray of shape (n_components, n_timesteps)
        Filled with the sums over channels.
    """
    cdef Py_ssize_t k, t, c
    cdef double count, shape, mean
    with nogil:
        for k in range(logs.shape[0]):
            for t in range(frames.shape[0]):
                if t % 64 == 0:
                    interrupted()
                logs[k, t] = 0.0
                for c in range(frames.shape[1]):
                    count = frames[t, c]
                    if isnan(count):
                        continue
                    if count < table.shape[2]:
                        logs[k, t] += table[k, c, <Py_ssize_t>count]
                        continue
                    shape, mean = shapes[k, c], means[k, c]
                    if mean == 0:
                        logs[k, t] = -INFINITY
                        continue
                    logs[k, t] += (
                        lgamma(count + shape) - lgamma(shape) - lgamma(count + 1)
                        - shape * log1p(mean / shape) - count * log1p(shape / mean)
                    )


def count_sums(
    const double[:, ::1] frames,
    const double[:, ::1] post,
    const double[:, ::1] shapes,
    const double[::1] edges,
):
    r"""Return the sums over frames that an M step needs.

    The log probability of a count x has the term :math:`\sum_{j < x} \log(r + j)` in
    the shape r. The integers j are put into bins from `edges[b]` to `edges[b + 1]`. In
    bins of one integer nothing is lost. In others, :math:`\log(r + j)` is at least
    :math:`\frac{s + e}{s + j} \log(r + e)` plus a constant, for the first integer e of
    the bin, and equal if r is the present shape s: an M step that raises the bound
    raises the likelihood by at least as much.

    Parameters
    ----------
    frames : ndarray of shape (n_timesteps, n_channels)
        Counts; NaN was not observed.

    post : ndarray of shape (n_components, n_timesteps)
        State probabilities.

    shapes : ndarray of shape (n_components, n_channels)
        Present shapes s.

    edges : ndarray of shape (n_bins + 1,)
        First integers of the bins; all counts are below the last.

    Returns
    -------
    sums : ndarray of shape (n_components, n_channels, 2 + n_bins)
        Sums, weighted by the probabilities, of 1, of the counts, and of the factors of
        the logarithms of each bin.
    """
    cdef Py_ssize_t n_bins = edges.shape[0] - 1, n_channels = frames.shape[1]
    cdef Py_ssize_t k, t, c, b
    cdef double count, above, first
    cdef Py_ssize_t[:, ::1] bins = np.empty((frames.shape[0], n_channels), np.intp)
    cdef double[::1] inside = np.empty(n_bins)
    cdef double[:, :, ::1] sums = np.zeros((post.shape[0], n_channels, 2 + n_bins))
    with nogil:
        for t in range(frames.shape[0]):
            for c in range(n_channels):
                bins[t, c] = bin_of(frames[t, c], edges)
        for k in range(post.shape[0]):
            for c in range(n_channels):
                interrupted()
                inside[:] = 0.0
                for t in range(frames.shape[0]):
                    count, b = frames[t, c], bins[t, c]
                    if isnan(count):
                        continue
                    sums[k, c, 0] += post[k, t]
                    sums[k, c, 1] += post[k, t] * count
                    inside[b] += post[k, t]
                    if count > edges[b]:
                        sums[k, c, 2 + b] += post[k, t] * bin_part(
                            edges[b], count, shapes[k, c]
                        )
                above = 0.0
                for b in range(n_bins - 1, -1, -1):
                    if above > 0:
                        sums[k, c, 2 + b] += above * bin_part(
                            edges[b], edges[b + 1], shapes[k, c]
                        )
                    above += inside[b]
    return np.asarray(sums)


cdef Py_ssize_t bin_of(double count, const double[::1] edges) noexcept nogil:
    """Return the bin that a count is in; 0 if it was not observed."""
    cdef Py_ssize_t low = 0, high = edges.shape[0] - 1, middle
    if isnan(count):
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        if edges[middle] <= count:
            low = middle
        else:
            high = middle
    return low


cdef double bin_part(double first, double last, double shape) noexcept nogil:
    """Return the factor of a bin's logarithm for its integers below `last`."""
    if last == first + 1:
        return 1.0
    return (shape + first) * (digamma(shape + last) - digamma(shape + first))


def count_shapes(
    const double[:, :, ::1] sums,
    const double[:, ::1] means,
    const double[:, ::1] before,
    const double[::1] edges,
    double low,
    double high,
):
    r"""Return the likeliest shapes, given sums over frames.

    With the mean :math:`m`, the sum over bins :math:`\sum_b A_b \log(r + e_b)` and n
    frames, the derivative of the bound is :math:`\sum_b A_b / (r + e_b) - n \log(1 + m /
    r)`. Its sign is searched between `low` and `high`, at which shapes end if it does
    not change.

    Parameters
    ----------
    sums : ndarray of shape (n_components, n_channels, 2 + n_bins)
        From `count_sums`.

    means, before : ndarray of shape (n_components, n_channels)
        Means of the states, and their present shapes.

    edges : ndarray of shape (n_bins + 1,)
        First integers of the bins.

    low, high : float
        Least and largest shape.

    Returns
    -------
    shapes : ndarray of shape (n_components, n_channels)
        The shapes, at least as likely as the present ones.
    """
    cdef Py_ssize_t n_bins = edges.shape[0] - 1, k, c
    cdef double[:, ::1] shapes = np.empty((means.shape[0], means.shape[1]))
    cdef double left, right, middle
    cdef const double* own
    cdef int step
    with nogil:
        for k in range(means.shape[0]):
            for c in range(means.shape[1]):
                interrupted()
                own, left, right = &sums[k, c, 0], log(low), log(high)
                if means[k, c] == 0:
                    shapes[k, c] = before[k, c]
                    continue
                if shape_slope(own, means[k, c], &edges[0], n_bins, high) >= 0:
                    left = right
                elif shape_slope(own, means[k, c], &edges[0], n_bins, low) <= 0:
                    right = left
                for step in range(BISECTIONS):
                    middle = 0.5 * (left + right)
                    if not left < middle < right:
                        break
                    if shape_slope(
                        own, means[k, c], &edges[0], n_bins, exp(middle)
                    ) > 0:
                        left = middle
                    else:
                        right = middle
                middle = exp(0.5 * (left + right))
                if shape_value(own, means[k, c], &edges[0], n_bins, middle) < (
                    shape_value(own, means[k, c], &edges[0], n_bins, before[k, c])
                ):
                    middle = before[k, c]
                shapes[k, c] = middle
    return np.asarray(shapes)


cdef double shape_slope(
    const double* sums,
    double mean,
    const double* edges,
    Py_ssize_t n_bins,
    double shape,
) noexcept nogil:
    """Return the derivative of the bound of the log likelihood in the shape."""
    cdef double total = -sums[0] * log1p(mean / shape)
    cdef Py_ssize_t b
    for b in range(n_bins):
        if sums[2 + b] > 0:
            total += sums[2 + b] / (shape + edges[b])
    return total


cdef double shape_value(
    const double* sums,
    double mean,
    const double* edges,
    Py_ssize_t n_bins,
    double shape,
) noexcept nogil:
    """Return the bound of the log likelihood, up to a constant."""
    cdef double total = -sums[0] * shape * log1p(mean / shape)
    cdef Py_ssize_t b
    for b in range(n_bins):
        if sums[2 + b] > 0:
            total += sums[2 + b] * log((shape + edges[b]) / (shape + mean))
    return total - (sums[1] - factor_sum(sums, n_bins)) * log(shape + mean)


cdef double factor_sum(const double* sums, Py_ssize_t n_bins) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t b
    for b in range(n_bins):
        total += sums[2 + b]
    return total
