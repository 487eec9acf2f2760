"""Quantiles and costs of states on the circle; see `_circle`."""

import numpy as np

from libc.math cimport asin, exp, sin, sqrt

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
    int add_turn_costs(
        const double* a,
        const double* b,
        const double* grid,
        Py_ssize_t n_components,
        Py_ssize_t n_channels,
        Py_ssize_t size,
        double* cost,
    ) except -1


def add_turns(
    const double[:, :, :, ::1] places,
    const double[:, :, ::1] grid,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
    double[:, :, ::1] cost,
):
    """Add what differences of angles cost between the states of model pairs.

    Parameters
    ----------
    places : ndarray of shape (n_models, n_components, n_channels, 6)
        Location and width of each state, and the weights of its width in the grid.

    grid : ndarray of shape (size, size, size)
        From `turn_grid`.

    index_a, index_b : ndarray of int of shape (n_pairs,)
        The models of each pair.

    cost : ndarray of shape (n_pairs, n_components, n_components)
        Changed in place.
    """
    cdef Py_ssize_t n
    with nogil:
        for n in range(index_a.shape[0]):
            add_turn_costs(
                &places[index_a[n], 0, 0, 0], &places[index_b[n], 0, 0, 0],
                &grid[0, 0, 0], places.shape[1], places.shape[2], grid.shape[0],
                &cost[n, 0, 0],
            )


def upper_quantiles(const double[::1] concentrations, const double[::1] levels):
    """Return angles x such that von Mises distributions have P(0 < angle < x) = level.

    Parameters
    ----------
    concentrations : ndarray of shape (n_states,)
        Their concentrations.

    levels : ndarray of shape (n_levels,)
        Probabilities from 0 to 1/2.

    Returns
    -------
    angles : ndarray of shape (n_states, n_levels)
        The angles, in [0, pi].
    """
    cdef double[:, ::1] table = np.empty((3, PANELS + 1))
    cdef double[:, ::1] found = np.empty((concentrations.shape[0], levels.shape[0]))
    cdef Py_ssize_t n, k
    with nogil:
        for n in range(concentrations.shape[0]):
            interrupted()
            fill_table(concentrations[n], &table[0, 0])
            for k in range(levels.shape[0]):
                found[n, k] = upper_quantile(&table[0, 0], levels[k])
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
    cdef double half = sin(0.5 * angle)
    return exp(-2 * concentration * half * half)


cdef double upper_quantile(const double* table, double level) noexcept nogil:
    """Return the angle x with probability `level` between 0 and x.

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
