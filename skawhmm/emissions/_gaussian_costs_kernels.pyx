"""Distances between Gaussian states of many pairs in one loop; see `_gaussian_costs`."""

import numpy as np

cdef extern from "emissions/_gaussian_costs_kernels.h" nogil:
    const int ROTATED
    void add_gaps(
        const double* a,
        const double* b,
        const double* factors,
        Py_ssize_t n_components,
        Py_ssize_t size,
        double* cost,
    )
    void nuclear_norms(
        double* stack, Py_ssize_t size, double* norms, double* nuclear
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


def rotated_spreads(
    roots,
    masks,
    const Py_ssize_t[::1] left,
    const Py_ssize_t[::1] right,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
    double[:, :, ::1] spread,
    double[:, :, ::1] traces,
):
    """Fill the covariance terms and the sums of traces, by Jacobi rotations."""
    cdef const double[:, :, :, ::1] factors = np.ascontiguousarray(roots)
    cdef const double[:, ::1] seen = np.ascontiguousarray(masks)
    cdef Py_ssize_t n_components = factors.shape[1], size = factors.shape[2]
    cdef Py_ssize_t n_cells = n_components * n_components
    cdef Py_ssize_t n_tasks = left.shape[0] * n_cells
    cdef Py_ssize_t block, first, n, i, j, k
    cdef int lane, n_lanes
    cdef double scale
    cdef double[:, :, ::1] stack = np.zeros((size, size, ROTATED))
    cdef double[:, ::1] product = np.empty((size, size))
    cdef double[:, ::1] norms = np.empty((size, ROTATED))
    cdef double[::1] nuclear = np.empty(ROTATED)
    with nogil:
        for block in range((n_tasks + ROTATED - 1) // ROTATED):
            first = block * ROTATED
            n_lanes = <int>min(ROTATED, n_tasks - first)
            for lane in range(n_lanes):
                n, k = (first + lane) // n_cells, (first + lane) % n_cells
                i, j = k // n_components, k % n_components
                traces[n, i, j] = cross_product(
                    &factors[left[n], i, 0, 0], &factors[right[n], j, 0, 0],
                    &seen[index_a[n], 0], &seen[index_b[n], 0], size, &product[0, 0],
                )
                # Fourth powers follow: without the scale, tiny variances underflow.
                scale = 1 / traces[n, i, j] if traces[n, i, j] > 0 else 0.0
                for i in range(size):
                    for j in range(size):
                        stack[i, j, lane] = product[i, j] * scale
            for lane in range(n_lanes, ROTATED):
                stack[:, :, lane] = 0.0
            nuclear_norms(&stack[0, 0, 0], size, &norms[0, 0], &nuclear[0])
            for lane in range(n_lanes):
                n, k = (first + lane) // n_cells, (first + lane) % n_cells
                i, j = k // n_components, k % n_components
                # Rounding can push the term of two equal states below zero.
                spread[n, i, j] = traces[n, i, j] * max(1 - 2 * nuclear[lane], 0.0)


cdef double cross_product(
    const double* root_a,
    const double* root_b,
    const double* mask_a,
    const double* mask_b,
    Py_ssize_t size,
    double* product,
) noexcept nogil:
    """Write the product of two factors on common features; return both traces' sum."""
    cdef Py_ssize_t f, p, k
    cdef const double* row_a
    cdef const double* row_b
    cdef double traces = 0.0
    for k in range(size * size):
        product[k] = 0.0
    for f in range(size):
        if mask_a[f] * mask_b[f] == 0:
            continue
        row_a, row_b = root_a + f * size, root_b + f * size
        for p in range(size):
            traces += row_a[p] * row_a[p] + row_b[p] * row_b[p]
            for k in range(size):
                product[p * size + k] += row_a[p] * row_b[k]
    return traces
