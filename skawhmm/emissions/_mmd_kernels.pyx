"""Distances between distributions of frames of many pairs; see `_mmd`."""

import numpy as np

from libc.math cimport sqrt

from skawhmm.utils._interruption cimport interrupted

cdef extern from "emissions/_mmd_kernels.h" nogil:
    """
    /* The square of a distance below this fraction of its parts is their rounding. */
    #define SQUARE_ROUNDING 1e-14
    """
    const double SQUARE_ROUNDING
    int fill_diagonal_kernel(
        const double* means_a,
        const double* spreads_a,
        Py_ssize_t n_a,
        const double* means_b,
        const double* spreads_b,
        Py_ssize_t n_b,
        Py_ssize_t size,
        double* kernel,
    ) except -1
    int fill_full_kernel(
        const double* means_a,
        const double* spreads_a,
        Py_ssize_t n_a,
        const double* means_b,
        const double* spreads_b,
        Py_ssize_t n_b,
        Py_ssize_t size,
        double* matrix,
        double* gaps,
        double* kernel,
    ) except -1
    double half_squared_gap(const double* x, const double* y, Py_ssize_t size)


cdef struct PairDistribution:
    # States of one model, and the masses of states or of pairs of states.
    const double* means
    const double* spreads
    const double* masses
    Py_ssize_t n_states


cdef struct Shape:
    # The same for all models: number of states with padding, of channels of a state, of
    # successive frames, and whether covariances are full.
    Py_ssize_t stride
    Py_ssize_t size
    int order
    bint full


def kernel_products(
    means,
    spreads,
    masses,
    const Py_ssize_t[::1] sizes,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
):
    """Scalar products of the distributions of model pairs, in the space of the kernel.

    Parameters
    ----------
    means : ndarray of shape (n_models, n_components, n_features)
        Means over the bandwidth.

    spreads : ndarray of shape (n_models, n_components, n_features[, n_features])
        One half, or half the identity, plus covariances over the squared bandwidth.

    masses : ndarray of shape (n_models, n_components[, n_components])
        Probabilities of states, or of pairs of successive states.

    sizes : ndarray of shape (n_models,)
        Number of states of each model.

    index_a, index_b : ndarray of shape (n_pairs,)
        The models of each pair.

    Returns
    -------
    products : ndarray of shape (n_pairs,)
        Expected kernel between a frame, or two, of a and of b.
    """
    cdef const double[:, :, ::1] places = np.ascontiguousarray(means)
    cdef const double[:, ::1] widths = _flat(spreads)
    cdef const double[:, ::1] probs = _flat(masses)
    cdef Shape shape = shape_of(places, masses.ndim, spreads.ndim)
    cdef double[::1] scratch = make_scratch(shape)
    cdef double[::1] products = np.empty(index_a.shape[0])
    cdef Py_ssize_t n, a, b
    cdef PairDistribution one, two
    with nogil:
        for n in range(index_a.shape[0]):
            interrupted()
            a, b = index_a[n], index_b[n]
            one = PairDistribution(&places[a, 0, 0], &widths[a, 0], &probs[a, 0], sizes[a])
            two = PairDistribution(&places[b, 0, 0], &widths[b, 0], &probs[b, 0], sizes[b])
            products[n] = kernel_product(&one, &two, &shape, &scratch[0])
    return np.asarray(products)


def masked_mmd_gaps(
    means,
    spreads,
    const double[:, ::1] masks,
    masses,
    const Py_ssize_t[::1] sizes,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
):
    """Squared distances between distributions of model pairs on their common features.

    Parameters
    ----------
    means, spreads, masses, sizes, index_a, index_b : ndarray
        As in `kernel_products`.

    masks : ndarray of shape (n_models, n_features)
        One where a model observed a feature, zero elsewhere.

    Returns
    -------
    gaps : ndarray of shape (n_pairs,)
        Squares; squared distances between frames are scaled up by n_features /
        n_common.
    """
    cdef const double[:, :, ::1] places = np.ascontiguousarray(means)
    cdef const double[:, ::1] widths = _flat(spreads)
    cdef const double[:, ::1] probs = _flat(masses)
    cdef Shape shape = shape_of(places, masses.ndim, spreads.ndim)
    cdef Shape lean
    cdef double[::1] scratch = make_scratch(shape)
    cdef double[:, ::1] points = np.empty((2, shape.stride * shape.size))
    cdef double[:, ::1] squares = np.empty((2, widths.shape[1]))
    cdef Py_ssize_t[::1] common = np.empty(shape.size, np.intp)
    cdef double[::1] gaps = np.empty(index_a.shape[0])
    cdef Py_ssize_t n, a, b, k
    cdef PairDistribution one, two
    cdef double factor
    with nogil:
        for n in range(index_a.shape[0]):
            interrupted()
            a, b = index_a[n], index_b[n]
            lean = shape
            lean.size = 0
            for k in range(shape.size):
                if masks[a, k] > 0 and masks[b, k] > 0:
                    common[lean.size] = k
                    lean.size += 1
            factor = shape.size / <double>lean.size
            one = PairDistribution(&points[0, 0], &squares[0, 0], &probs[a, 0], sizes[a])
            two = PairDistribution(&points[1, 0], &squares[1, 0], &probs[b, 0], sizes[b])
            pack(&places[a, 0, 0], &widths[a, 0], sizes[a], &shape, &common[0],
                 lean.size, factor, &points[0, 0], &squares[0, 0])
            pack(&places[b, 0, 0], &widths[b, 0], sizes[b], &shape, &common[0],
                 lean.size, factor, &points[1, 0], &squares[1, 0])
            gaps[n] = squared_distance(
                kernel_product(&one, &one, &lean, &scratch[0]),
                kernel_product(&two, &two, &lean, &scratch[0]),
                kernel_product(&one, &two, &lean, &scratch[0]),
            )
    return np.asarray(gaps)


def mmd_gaps(
    const double[::1] own,
    const double[::1] products,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
):
    """Squared distances from scalar products: of models with themselves, of pairs."""
    cdef double[::1] gaps = np.empty(index_a.shape[0])
    cdef Py_ssize_t n
    with nogil:
        for n in range(index_a.shape[0]):
            gaps[n] = squared_distance(own[index_a[n]], own[index_b[n]], products[n])
    return np.asarray(gaps)


def symbol_mmd_gaps(
    states,
    masses,
    const Py_ssize_t[::1] models,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
):
    """Squared Hellinger distances between distributions of symbols of model pairs.

    Parameters
    ----------
    states : ndarray of shape (n_models, n_components, n_symbols)
        Probabilities of the symbols.

    masses : ndarray of shape (n_models, n_components[, n_components])
        Probabilities of states, or of pairs of successive states.

    models : ndarray of shape (n_used,)
        The models that occur in pairs.

    index_a, index_b : ndarray of shape (n_pairs,)
        Places of each pair in `models`.

    Returns
    -------
    gaps : ndarray of shape (n_pairs,)
        One minus the overlap, for one symbol or for two successive ones.
    """
    cdef const double[:, :, ::1] probs = np.ascontiguousarray(states)
    cdef const double[:, ::1] weights = _flat(masses)
    cdef Py_ssize_t size = probs.shape[1], n_symbols = probs.shape[2], n
    cdef Py_ssize_t n_values = n_symbols if masses.ndim == 2 else n_symbols * n_symbols
    cdef double[:, ::1] roots = np.zeros((models.shape[0], n_values))
    cdef double[::1] row = np.empty(n_symbols)
    cdef double[::1] gaps = np.empty(index_a.shape[0])
    cdef bint single = masses.ndim == 2
    with nogil:
        for n in range(models.shape[0]):
            interrupted()
            if single:
                add_rows(
                    &weights[models[n], 0], &probs[models[n], 0, 0], size, n_symbols,
                    &roots[n, 0],
                )
            else:
                add_pairs(
                    &weights[models[n], 0], &probs[models[n], 0, 0], size, n_symbols,
                    &row[0], &roots[n, 0],
                )
            take_roots(&roots[n, 0], n_values)
        for n in range(index_a.shape[0]):
            interrupted()
            gaps[n] = half_squared_gap(
                &roots[index_a[n], 0], &roots[index_b[n], 0], n_values
            )
    return np.asarray(gaps)


def _flat(stack):
    """Return an array as rows, one per model."""
    return np.ascontiguousarray(stack).reshape(len(stack), -1)


cdef Shape shape_of(const double[:, :, ::1] means, int mass_axes, int spread_axes):
    cdef Shape shape
    shape.stride, shape.size = means.shape[1], means.shape[2]
    shape.order, shape.full = mass_axes - 1, spread_axes == 4
    return shape


cdef make_scratch(Shape shape):
    """Return room for the kernel and two products of it, a matrix, and a vector."""
    n_cells, size = shape.stride * shape.stride, shape.size
    return np.empty(3 * n_cells + (size * size + size if shape.full else 0))


cdef inline double squared_distance(
    double own_a, double own_b, double product
) noexcept nogil:
    cdef double square = own_a + own_b - 2 * product
    return square if square > SQUARE_ROUNDING * (own_a + own_b) else 0.0


cdef double kernel_product(
    const PairDistribution* a, const PairDistribution* b, const Shape* shape, double* scratch
) except? -1.0 nogil:
    """Scalar product of two distributions, by the kernel between their states."""
    cdef Py_ssize_t n_a = a.n_states, n_b = b.n_states, size = shape.size
    cdef Py_ssize_t n_cells = shape.stride * shape.stride, i, j, k, l
    cdef double* kernel = scratch
    cdef double* left = scratch + n_cells
    cdef double* right = scratch + 2 * n_cells
    cdef double* rest = scratch + 3 * n_cells
    cdef double total = 0.0
    if shape.full:
        fill_full_kernel(
            a.means, a.spreads, n_a, b.means, b.spreads, n_b, size, rest,
            rest + size * size, kernel,
        )
    else:
        fill_diagonal_kernel(
            a.means, a.spreads, n_a, b.means, b.spreads, n_b, size, kernel
        )
    if shape.order == 1:
        for i in range(n_a):
            for j in range(n_b):
                total += a.masses[i] * b.masses[j] * kernel[i * n_b + j]
        return total
    for i in range(n_a * n_b):
        left[i] = right[i] = 0.0
    # The kernel of the first frames times the pairs of b, the pairs of a times the
    # kernel of the second frames: both have one row per first state of a, and one
    # column per second state of b.
    for i in range(n_a):
        if i % 32 == 31:
            interrupted()
        for k in range(n_b):
            for l in range(n_b):
                left[i * n_b + l] += (
                    kernel[i * n_b + k] * b.masses[k * shape.stride + l]
                )
        for j in range(n_a):
            for l in range(n_b):
                right[i * n_b + l] += (
                    a.masses[i * shape.stride + j] * kernel[j * n_b + l]
                )
    for i in range(n_a * n_b):
        total += left[i] * right[i]
    return total


cdef void pack(
    const double* means,
    const double* spreads,
    Py_ssize_t n_states,
    const Shape* shape,
    const Py_ssize_t* common,
    Py_ssize_t n_common,
    double factor,
    double* points,
    double* squares,
) noexcept nogil:
    """Copy the states of a model on some features, distances scaled up by a factor."""
    cdef Py_ssize_t size = shape.size, i, k, l
    cdef double half
    for i in range(n_states):
        for k in range(n_common):
            points[i * n_common + k] = sqrt(factor) * means[i * size + common[k]]
            if not shape.full:
                squares[i * n_common + k] = (
                    0.5 + factor * (spreads[i * size + common[k]] - 0.5)
                )
                continue
            for l in range(n_common):
                half = 0.5 if k == l else 0.0
                squares[(i * n_common + k) * n_common + l] = half + factor * (
                    spreads[(i * size + common[k]) * size + common[l]] - half
                )


cdef void add_rows(
    const double* weights,
    const double* rows,
    Py_ssize_t n_rows,
    Py_ssize_t size,
    double* total,
) noexcept nogil:
    """Add rows times their weights to `total`."""
    cdef Py_ssize_t i, s
    for i in range(n_rows):
        if weights[i] > 0:
            for s in range(size):
                total[s] += weights[i] * rows[i * size + s]


cdef int add_pairs(
    const double* weights,
    const double* rows,
    Py_ssize_t n_rows,
    Py_ssize_t size,
    double* row,
    double* total,
) except -1 nogil:
    """Add outer products of rows times the weights of their pairs to `total`."""
    cdef Py_ssize_t i, s, t
    for i in range(n_rows):
        interrupted()
        # Distribution of the symbol after state i; its product with the symbol of i.
        for s in range(size):
            row[s] = 0.0
        add_rows(weights + i * n_rows, rows, n_rows, size, row)
        for s in range(size):
            if rows[i * size + s] > 0:
                for t in range(size):
                    total[s * size + t] += rows[i * size + s] * row[t]


cdef void take_roots(double* values, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t s
    for s in range(size):
        values[s] = sqrt(values[s])
