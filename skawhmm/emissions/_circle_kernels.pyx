"""Quantiles and costs of states on the circle; see `_circle`."""

import numpy as np

from libc.math cimport asin, cos, exp, sqrt

from skawhmm.utils._interruption cimport interrupted

cdef extern from "emissions/_circle_kernels.h" nogil:
    """
    /* Panels of the table from which quantiles are interpolated. */
    #define PANELS 256
    /* Densities end where they are below exp(-42) of their peak. */
    #define REACH 4.6
    /* Half the distance of the two Gauss-Legendre nodes of an interval of length 2. */
    #define NODE 0.5773502691896257
    """
    const int PANELS
    const double REACH, NODE
    int add_circle_gaps(
        const double* a,
        const double* b,
        Py_ssize_t n_components,
        Py_ssize_t n_channels,
        Py_ssize_t size,
        double* cost,
    ) except -1


def circle_costs(
    const double[:, :, :, ::1] points,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
    double[:, :, ::1] cost,
):
    """Add squared distances on the circle between the states of model pairs.

    Parameters
    ----------
    points : ndarray of shape (n_models, n_components, n_channels, 1 + 2 * n_cells)
        Location of each state, then means and deviations of its quantiles.

    index_a, index_b : ndarray of int of shape (n_pairs,)
        The models of each pair.

    cost : ndarray of shape (n_pairs, n_components, n_components)
        Changed in place.
    """
    cdef Py_ssize_t n, n_cells = (points.shape[3] - 1) // 2
    with nogil:
        for n in range(index_a.shape[0]):
            add_circle_gaps(
                &points[index_a[n], 0, 0, 0], &points[index_b[n], 0, 0, 0],
                points.shape[1], points.shape[2], n_cells, &cost[n, 0, 0],
            )


def fill_cells(const double[::1] concentrations, double[:, ::1] cells):
    """Fill means and deviations of the quantiles of von Mises distributions around 0.

    Parameters
    ----------
    concentrations : ndarray of shape (n_states,)
        Their concentrations.

    cells : ndarray of shape (n_states, 2 * n_cells)
        Filled with the means, then the deviations, of the quantiles in cells of equal
        probability.
    """
    cdef Py_ssize_t n_cells = cells.shape[1] // 2, half = n_cells // 2, n, k
    cdef double[:, ::1] table = np.empty((3, PANELS + 1))
    cdef double low, high, middle, spread
    with nogil:
        for n in range(concentrations.shape[0]):
            interrupted()
            fill_table(concentrations[n], &table[0, 0])
            for k in range(half):
                low = upper_quantile(&table[0, 0], (k + 0.5 - 0.5 * NODE) / n_cells)
                high = upper_quantile(&table[0, 0], (k + 0.5 + 0.5 * NODE) / n_cells)
                middle, spread = 0.5 * (low + high), 0.5 * (high - low)
                cells[n, half + k], cells[n, half - 1 - k] = middle, -middle
                cells[n, n_cells + half + k] = spread
                cells[n, n_cells + half - 1 - k] = spread


def quantiles(double concentration, const double[::1] levels):
    """Return quantiles of a von Mises distribution around 0."""
    cdef double[:, ::1] table = np.empty((3, PANELS + 1))
    cdef double[::1] found = np.empty(levels.shape[0])
    cdef double level
    cdef Py_ssize_t n
    with nogil:
        fill_table(concentration, &table[0, 0])
        for n in range(levels.shape[0]):
            level = levels[n] - 0.5
            found[n] = upper_quantile(&table[0, 0], level if level > 0 else -level)
            if level < 0:
                found[n] = -found[n]
    return np.asarray(found)


cdef void fill_table(double concentration, double* table) noexcept nogil:
    """Fill angles, probabilities between 0 and them, and densities, of an upper half."""
    cdef double ratio = REACH / sqrt(max(concentration, 1e-12))
    cdef double width = 2 * asin(min(1.0, ratio)) / PANELS, middle
    cdef double* sums = table + PANELS + 1
    cdef double* densities = sums + PANELS + 1
    cdef int k
    sums[0] = 0.0
    for k in range(PANELS + 1):
        table[k] = k * width
        densities[k] = density(concentration, table[k])
        if k > 0:
            middle = (k - 0.5) * width
            sums[k] = sums[k - 1] + 0.5 * width * (
                density(concentration, middle - 0.5 * NODE * width)
                + density(concentration, middle + 0.5 * NODE * width)
            )
    for k in range(PANELS + 1):
        densities[k] *= 0.5 / sums[PANELS]
    for k in range(PANELS):
        sums[k] *= 0.5 / sums[PANELS]
    sums[PANELS] = 0.5


cdef inline double density(double concentration, double angle) noexcept nogil:
    return exp(concentration * (cos(angle) - 1))


cdef double upper_quantile(const double* table, double level) noexcept nogil:
    """Return the angle up to which, from 0, there is the probability `level`.

    Angles are interpolated by the cubic with the right slopes at both ends of a panel,
    or linearly where it might not be monotone.
    """
    cdef const double* sums = table + PANELS + 1
    cdef const double* densities = sums + PANELS + 1
    cdef int low = 0, high = PANELS, middle
    cdef double width = table[1], rise, place, left, right, rest
    while high - low > 1:
        middle = (low + high) // 2
        if sums[middle] <= level:
            low = middle
        else:
            high = middle
    rise = sums[high] - sums[low]
    if rise <= 0:
        return table[high]
    place = (level - sums[low]) / rise
    left, right = rise / densities[low], rise / densities[high]
    if not (left < 3 * width and right < 3 * width):
        return table[low] + place * width
    rest = 1 - place
    return (
        table[low]
        + place * place * (3 - 2 * place) * width
        + place * rest * (rest * left - place * right)
    )
