"""Kullback-Leibler divergences between Gaussian states, for lists of model pairs."""

import numpy as np

from libc.math cimport INFINITY, log

from skawhmm.utils._interruption cimport interrupted

cdef extern from "emissions/_gaussian_divergences.h" nogil:
    """
    /* A direction with less than this fraction of the largest variance is flat. */
    #define RANK_TOLERANCE 1e-10
    """
    const double RANK_TOLERANCE
    double mean_square(
        const double* mean_a,
        const double* root,
        const double* mean_b,
        const double* direction,
        Py_ssize_t size,
        double* part,
    )

cdef struct State:
    # Mean, covariance factor, and the variances along the eigenvectors (columns).
    const double* mean
    const double* root
    const double* values
    const double* vectors
    # The largest variance, how many are not flat, and the sum of their logarithms.
    double largest
    Py_ssize_t rank
    double log_det


def gaussian_divergences(
    means,
    roots,
    values,
    vectors,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
):
    """Divergences between the states of model pairs.

    Parameters
    ----------
    means, roots, values, vectors : ndarray with a leading axis of models and states
        Means, covariance factors, and eigenvalues and eigenvectors of covariances.

    index_a, index_b : ndarray of shape (n_pairs,)
        The models of each pair.

    Returns
    -------
    divergences : ndarray of shape (n_pairs, n_components, n_components)
        From the states of a to the states of b; infinite unless supports are equal.
    """
    cdef const double[:, :, ::1] centres = np.ascontiguousarray(means)
    cdef const double[:, :, :, ::1] factors = np.ascontiguousarray(roots)
    cdef const double[:, :, ::1] variances = np.ascontiguousarray(values)
    cdef const double[:, :, :, ::1] axes = np.ascontiguousarray(vectors)
    cdef Py_ssize_t n_states = centres.shape[1], size = centres.shape[2], n, i, j
    cdef double[:, :, ::1] divergences = np.empty(
        (index_a.shape[0], n_states, n_states)
    )
    cdef double[::1] part = np.empty(size)
    cdef State a, b
    with nogil:
        for n in range(index_a.shape[0]):
            for i in range(n_states):
                a = state_of(centres, factors, variances, axes, index_a[n], i)
                interrupted()
                for j in range(n_states):
                    if size > 16:
                        interrupted()
                    b = state_of(centres, factors, variances, axes, index_b[n], j)
                    divergences[n, i, j] = divergence(&a, &b, size, &part[0])
    return np.asarray(divergences)


cdef State state_of(
    const double[:, :, ::1] means,
    const double[:, :, :, ::1] roots,
    const double[:, :, ::1] values,
    const double[:, :, :, ::1] vectors,
    Py_ssize_t model,
    Py_ssize_t place,
) noexcept nogil:
    """One state of a model, its variances summed up."""
    cdef State state
    cdef Py_ssize_t c
    state.mean, state.root = &means[model, place, 0], &roots[model, place, 0, 0]
    state.values, state.vectors = &values[model, place, 0], &vectors[model, place, 0, 0]
    state.largest, state.rank, state.log_det = 0.0, 0, 0.0
    for c in range(values.shape[2]):
        state.largest = max(state.largest, state.values[c])
    for c in range(values.shape[2]):
        if state.values[c] > RANK_TOLERANCE * state.largest:
            state.rank += 1
            state.log_det += log(state.values[c])
    return state


cdef double divergence(
    const State* a, const State* b, Py_ssize_t size, double* part
) noexcept nogil:
    """Divergence of one Gaussian from another; `part` is scratch."""
    cdef double total = b.log_det - a.log_det, scale = b.largest, square
    cdef Py_ssize_t c
    if a.rank != b.rank:
        return INFINITY
    for c in range(size):
        scale += a.mean[c] * a.mean[c] + b.mean[c] * b.mean[c]
    for c in range(size):
        square = mean_square(a.mean, a.root, b.mean, b.vectors + c, size, part)
        if b.values[c] > RANK_TOLERANCE * b.largest:
            total += square / b.values[c] - 1
        elif square > RANK_TOLERANCE * scale:
            return INFINITY
    return 0.5 * max(total, 0.0)
