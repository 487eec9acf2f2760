"""Costs and divergences between states that emit counts; see `_poisson`."""

import numpy as np

from libc.math cimport fabs, log

from skawhmm.utils._interruption cimport interrupted


def squared_rate_gaps(
    states, const Py_ssize_t[::1] index_a, const Py_ssize_t[::1] index_b
):
    r"""Squared 1-Wasserstein distances between the states of model pairs.

    The larger of two Poisson variables is the smaller plus an independent one, so that
    no coupling moves mass both ways and :math:`W_1 = |\lambda - \lambda'|`. Channels
    are independent and counts are compared by the sum of their differences, hence the
    distances of the channels add up. This is exact.

    Parameters
    ----------
    states : ndarray of shape (n_models, n_components, n_channels)
        Rates.

    index_a, index_b : ndarray of int of shape (n_pairs,)
        The models of each pair.

    Returns
    -------
    cost : ndarray of shape (n_pairs, n_components, n_components)
        Squares.
    """
    cdef const double[:, :, ::1] rates = np.ascontiguousarray(states)
    cdef Py_ssize_t size = rates.shape[1], n, i, j, c
    cdef double total
    cdef double[:, :, ::1] cost = np.empty((index_a.shape[0], size, size))
    with nogil:
        for n in range(index_a.shape[0]):
            for i in range(size):
                if i % 8 == 0:
                    interrupted()
                for j in range(size):
                    total = 0.0
                    for c in range(rates.shape[2]):
                        total += fabs(rates[index_a[n], i, c] - rates[index_b[n], j, c])
                    cost[n, i, j] = total * total
    return np.asarray(cost)


def rate_divergences(
    states, const Py_ssize_t[::1] index_a, const Py_ssize_t[::1] index_b
):
    """Kullback-Leibler divergences between the states of model pairs.

    The parameters are those of `squared_rate_gaps`.

    Returns
    -------
    divergences : ndarray of shape (n_pairs, n_components, n_components)
        Infinite where a rate is 0 in b only.
    """
    cdef const double[:, :, ::1] rates = np.ascontiguousarray(states)
    cdef Py_ssize_t size = rates.shape[1], n, i, j, c
    cdef double total, rate, other
    cdef double[:, :, ::1] divergences = np.empty((index_a.shape[0], size, size))
    with nogil:
        for n in range(index_a.shape[0]):
            for i in range(size):
                if i % 8 == 0:
                    interrupted()
                for j in range(size):
                    total = 0.0
                    for c in range(rates.shape[2]):
                        rate = rates[index_a[n], i, c]
                        other = rates[index_b[n], j, c]
                        total += other - rate
                        if rate > 0:
                            total += rate * log(rate / other)
                    # Rounding can push the divergence of equal states below zero.
                    divergences[n, i, j] = max(total, 0.0)
    return np.asarray(divergences)
