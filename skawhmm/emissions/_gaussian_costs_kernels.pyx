"""Distances between Gaussian states of many pairs in one loop; see `_gaussian_costs`."""

import numpy as np

from skawhmm.utils._interruption cimport interrupted

cdef extern from "emissions/_gaussian_costs_kernels.h" nogil:
    const int MATRICES
    int add_gaps(
        const double* a,
        const double* b,
        const double* factors,
        Py_ssize_t n_components,
        Py_ssize_t size,
        double* cost,
    ) except -1
    double fill_lane(
        const double* root_a,
        const double* root_b,
        const double* mask_a,
        const double* mask_b,
        Py_ssize_t size,
        double* product,
        double* lane,
    )
    void nuclear_norms(
        double* stack, Py_ssize_t size, double* scratch, double* nuclear
    )


def add_squared_gaps(
    points,
    masks,
    const Py_ssize_t[::1] left,
    const Py_ssize_t[::1] right,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
    double[:, :, ::1] cost,
):
    """Add squared Euclidean distances between the states of model pairs to `cost`.

    Parameters
    ----------
    points : ndarray of shape (n_models, n_components, n_parts * n_features)
        A vector for each state, of one or more parts of n_features each.

    masks : ndarray of shape (n_models, n_features)
        One where a model observed a feature, zero elsewhere.

    left, right : ndarray of shape (n_pairs,)
        The models whose states are compared.

    index_a, index_b : ndarray of shape (n_pairs,)
        The models whose masks apply.

    cost : ndarray of shape (n_pairs, n_components, n_components)
        Changed in place.
    """
    cdef const double[:, :, ::1] vectors = np.ascontiguousarray(points)
    cdef const double[:, ::1] seen = np.ascontiguousarray(masks)
    cdef Py_ssize_t n_components = vectors.shape[1], size = vectors.shape[2]
    cdef Py_ssize_t n_features = seen.shape[1], n, k
    cdef double common
    cdef double[::1] factors = np.empty(size)
    with nogil:
        for n in range(left.shape[0]):
            interrupted()
            common = 0.0
            for k in range(n_features):
                factors[k] = seen[index_a[n], k] * seen[index_b[n], k]
                common += factors[k]
            for k in range(n_features):
                factors[k] *= n_features / common
            for k in range(n_features, size):
                factors[k] = factors[k - n_features]
            add_gaps(
                &vectors[left[n], 0, 0], &vectors[right[n], 0, 0],
                NULL if common == n_features else &factors[0], n_components, size,
                &cost[n, 0, 0],
            )


def vector_spreads(
    roots,
    masks,
    const Py_ssize_t[::1] left,
    const Py_ssize_t[::1] right,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
    double[:, :, ::1] spread,
    double[:, :, ::1] traces,
):
    """Fill the covariance terms and the sums of traces, with a matrix in each lane.

    A term is NaN if the iteration did not converge, which has never been observed.
    """
    cdef const double[:, :, :, ::1] factors = np.ascontiguousarray(roots)
    cdef const double[:, ::1] seen = np.ascontiguousarray(masks)
    cdef Py_ssize_t n_components = factors.shape[1], size = factors.shape[2]
    cdef Py_ssize_t n_cells = n_components * n_components
    cdef Py_ssize_t n_tasks = left.shape[0] * n_cells
    cdef Py_ssize_t block, first, n, i, j, k
    cdef int lane, n_lanes
    cdef double excess
    cdef double[:, :, ::1] stack = np.zeros((size, size, MATRICES))
    cdef double[:, ::1] product = np.empty((size, size))
    cdef double[:, :, ::1] scratch = np.empty((4, size, MATRICES))
    cdef double[::1] nuclear = np.empty(MATRICES)
    with nogil:
        for block in range((n_tasks + MATRICES - 1) // MATRICES):
            interrupted()
            first = block * MATRICES
            n_lanes = <int>min(MATRICES, n_tasks - first)
            for lane in range(n_lanes):
                n, k = (first + lane) // n_cells, (first + lane) % n_cells
                i, j = k // n_components, k % n_components
                traces[n, i, j] = fill_lane(
                    &factors[left[n], i, 0, 0], &factors[right[n], j, 0, 0],
                    &seen[index_a[n], 0], &seen[index_b[n], 0], size, &product[0, 0],
                    &stack[0, 0, lane],
                )
            for lane in range(n_lanes, MATRICES):
                stack[:, :, lane] = 0.0
            nuclear_norms(&stack[0, 0, 0], size, &scratch[0, 0, 0], &nuclear[0])
            for lane in range(n_lanes):
                n, k = (first + lane) // n_cells, (first + lane) % n_cells
                i, j = k // n_components, k % n_components
                # Rounding can push the term of two equal states below zero; NaN stays.
                excess = 1 - 2 * nuclear[lane]
                spread[n, i, j] = 0.0 if excess < 0 else traces[n, i, j] * excess
