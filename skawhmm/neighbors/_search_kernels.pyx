"""Lower bounds of distances of many pairs in one loop; see `_search`."""

import numpy as np

from libc.math cimport pow, sqrt

from skawhmm.distances._components cimport carry_chain, conditionals
from skawhmm.utils._interruption cimport interrupted

cdef extern from "neighbors/_search_kernels.h" nogil:
    int fill_distances(
        const double* vectors_a,
        const double* vectors_b,
        const Py_ssize_t* index_a,
        const Py_ssize_t* index_b,
        Py_ssize_t n_pairs,
        Py_ssize_t size,
        double* distances,
    ) except -1
    int fill_nearest(
        const double* vectors_a,
        const double* weights_a,
        Py_ssize_t size_a,
        const double* vectors_b,
        const double* weights_b,
        Py_ssize_t size_b,
        Py_ssize_t size,
        double* nearest_a,
        double* nearest_b,
    ) except -1
    double squared_row_gap(
        const double* row,
        const double* other,
        const double* vectors,
        Py_ssize_t n_components,
        Py_ssize_t size,
        double* gap,
    )


def centroid_bounds(
    centroids_a,
    centroids_b,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
):
    """Distances between the mean state vectors of model pairs.

    Parameters
    ----------
    centroids_a, centroids_b : ndarray of shape (n_models, n_dimensions)
        Mean state vectors of the models on each side.

    index_a, index_b : ndarray of int of shape (n_pairs,)
        The models of each pair.

    Returns
    -------
    bounds : ndarray of shape (n_pairs,)
        Lower bounds of the marginal component, p >= 1.
    """
    cdef const double[:, ::1] points_a = np.ascontiguousarray(centroids_a)
    cdef const double[:, ::1] points_b = np.ascontiguousarray(centroids_b)
    cdef double[::1] bounds = np.empty(index_a.shape[0])
    if bounds.shape[0] > 0:
        with nogil:
            fill_distances(
                &points_a[0, 0], &points_b[0, 0], &index_a[0], &index_b[0],
                index_a.shape[0], points_a.shape[1], &bounds[0],
            )
    return np.asarray(bounds)


def relaxed_bounds(
    vectors_a,
    weights_a,
    vectors_b,
    weights_b,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
    double p,
):
    """Costs of the plans that obey one margin only, for model pairs.

    Parameters
    ----------
    vectors_a, weights_a, vectors_b, weights_b : ndarray
        State vectors and state probabilities of the models on each side.

    index_a, index_b : ndarray of int of shape (n_pairs,)
        The models of each pair.

    p : float
        Order of the distance.

    Returns
    -------
    bounds : ndarray of shape (n_pairs,)
        Lower bounds of the marginal component.
    """
    cdef const double[:, :, ::1] points_a = np.ascontiguousarray(vectors_a)
    cdef const double[:, :, ::1] points_b = np.ascontiguousarray(vectors_b)
    cdef const double[:, ::1] laws_a = np.ascontiguousarray(weights_a)
    cdef const double[:, ::1] laws_b = np.ascontiguousarray(weights_b)
    cdef Py_ssize_t size_a = laws_a.shape[1], size_b = laws_b.shape[1], n, a, b
    cdef double[::1] nearest_a = np.empty(size_a)
    cdef double[::1] nearest_b = np.empty(size_b)
    cdef double[::1] bounds = np.empty(index_a.shape[0])
    with nogil:
        for n in range(index_a.shape[0]):
            if n % 64 == 0:
                interrupted()
            a, b = index_a[n], index_b[n]
            fill_nearest(
                &points_a[a, 0, 0], &laws_a[a, 0], size_a, &points_b[b, 0, 0],
                &laws_b[b, 0], size_b, points_a.shape[2], &nearest_a[0], &nearest_b[0],
            )
            bounds[n] = pow(
                max(
                    mean_power(&laws_a[a, 0], &nearest_a[0], size_a, p),
                    mean_power(&laws_b[b, 0], &nearest_b[0], size_b, p),
                ),
                1 / p,
            )
    return np.asarray(bounds)


cdef double mean_power(
    const double* weights, const double* squares, Py_ssize_t size, double p
) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(size):
        if weights[i] > 0:
            total += weights[i] * half_power(squares[i], p)
    return total


cdef inline double half_power(double square, double p) noexcept nogil:
    return sqrt(square) if p == 1 else pow(square, 0.5 * p)


def transition_bounds(
    weights,
    transmats,
    chains,
    vectors,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
    const double[:, :, ::1] plans,
    double p,
    bint joint,
):
    """Lower bounds of the transition component of model pairs, given the plans.

    Parameters
    ----------
    weights, transmats, chains : ndarray
        As in `transition_components`.

    vectors : ndarray of shape (n_models, n_components, n_dimensions)
        State vectors.

    index_a, index_b : ndarray of int of shape (n_pairs,)
        The models of each pair.

    plans : ndarray of shape (n_pairs, n_components, n_components)
        Registrations.

    p : float
        Order of the distance, at least 1.

    joint : bool
        As in `transition_components`, whose rows are compared by transport.

    Returns
    -------
    bounds : ndarray of shape (n_pairs,)
        The bounds.
    """
    cdef const double[:, ::1] masses = np.ascontiguousarray(weights)
    cdef const double[:, :, ::1] steps = np.ascontiguousarray(transmats)
    cdef const double[:, :, ::1] own = np.ascontiguousarray(chains)
    cdef const double[:, :, ::1] points = np.ascontiguousarray(vectors)
    cdef int size = <int>masses.shape[1], n_cells = size * size
    cdef Py_ssize_t n_dimensions = points.shape[2], n, a, b
    cdef double total
    cdef double[::1] scratch = np.empty(4 * n_cells + n_dimensions)
    cdef double* forth = &scratch[0]
    cdef double* back = forth + n_cells
    cdef double* half = back + n_cells
    cdef double* moved = half + n_cells
    cdef double* gap = moved + n_cells
    cdef double[::1] bounds = np.empty(index_a.shape[0])
    with nogil:
        for n in range(index_a.shape[0]):
            interrupted()
            a, b = index_a[n], index_b[n]
            conditionals(&plans[n, 0, 0], size, forth, back)
            carry_chain(forth, &steps[b, 0, 0], back, size, joint, half, moved)
            total = row_gaps(
                &masses[a, 0], &own[a, 0, 0], moved, &points[a, 0, 0], size, n_dimensions,
                p, gap,
            )
            carry_chain(back, &steps[a, 0, 0], forth, size, joint, half, moved)
            total += row_gaps(
                &masses[b, 0], &own[b, 0, 0], moved, &points[b, 0, 0], size, n_dimensions,
                p, gap,
            )
            bounds[n] = pow(total, 1 / p)
    return np.asarray(bounds)


cdef double row_gaps(
    const double* weights,
    const double* chain,
    const double* moved,
    const double* vectors,
    Py_ssize_t size,
    Py_ssize_t n_dimensions,
    double p,
    double* gap,
) except? -1.0 nogil:
    cdef double total = 0.0, squared
    cdef Py_ssize_t i
    for i in range(size):
        if i % 32 == 31:
            interrupted()
        if weights[i] > 0:
            squared = squared_row_gap(
                chain + i * size, moved + i * size, vectors, size, n_dimensions, gap
            )
            total += weights[i] * half_power(squared, p)
    return total
