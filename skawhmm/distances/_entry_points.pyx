"""Kernels as tests call them, one pair of models at a time.

Nothing else in the package imports this module: its kernels call one another in C.
"""

import numpy as np

from skawhmm.distances._coupling_kernels import make_scratch

from skawhmm.distances._coupling_kernels cimport (
    Scratch,
    eliminate,
    end_of,
    fill_value,
    iterate,
    largest_dense,
    scratch_of,
    start_of,
)


def coupling_value(
    const double[:, ::1] chain_a,
    const double[:, ::1] chain_b,
    const double[:, ::1] cost,
    double gamma,
):
    """Return V of one pair of models, and the couplings of all pairs of rows.

    Parameters
    ----------
    chain_a, chain_b : ndarray of shape (n_components, n_components)
        Transition matrices, of any two sizes.

    cost : ndarray of shape (n_rows, n_columns)
        Cost between the states of a and b.

    gamma : float in [0, 1)
        Weight of the future.

    Returns
    -------
    value : ndarray of shape (n_rows, n_columns)
        The discounted costs.

    policy : ndarray of shape (n_rows * n_columns, n_rows, n_columns)
        The couplings.
    """
    cdef int n_rows = <int>cost.shape[0], n_columns = <int>cost.shape[1]
    cdef int n_cells = n_rows * n_columns, cell
    cdef Py_ssize_t k
    numbers, places, tree_numbers, tree_nodes = make_scratch(
        n_rows, n_columns, largest_dense(n_rows, n_columns, gamma)
    )
    cdef Scratch scratch = scratch_of(
        numbers, places, tree_numbers, tree_nodes, n_rows, n_columns
    )
    cdef double[:, ::1] value = np.empty((n_rows, n_columns))
    cdef double[:, ::1] policy = np.zeros((n_cells, n_cells))
    with nogil:
        fill_value(
            &chain_a[0, 0], &chain_b[0, 0], n_rows, n_columns, &cost[0, 0], n_rows,
            n_columns, gamma, &value[0, 0], &scratch,
        )
        for cell in range(n_cells):
            for k in range(start_of(cell, &scratch), end_of(cell, &scratch)):
                policy[cell, scratch.cells[k]] = scratch.masses[k]
    return np.asarray(value), np.asarray(policy).reshape(n_cells, n_rows, n_columns)


def policy_value(
    const double[:, :, ::1] policy, const double[:, ::1] cost, double gamma, bint dense
):
    """Return V for given couplings, by elimination if `dense`, or else by steps.

    The second number counts the sweeps after these steps.
    """
    cdef int n_rows = <int>cost.shape[0], n_columns = <int>cost.shape[1]
    cdef int n_cells = n_rows * n_columns, cell, k, count
    cdef Py_ssize_t first, sweeps = 0
    numbers, places, tree_numbers, tree_nodes = make_scratch(
        n_rows, n_columns, n_cells if dense else 0
    )
    cdef Scratch scratch = scratch_of(
        numbers, places, tree_numbers, tree_nodes, n_rows, n_columns
    )
    cdef double[:, ::1] value = np.array(cost)
    cdef const double[:, ::1] rows = np.asarray(policy).reshape(n_cells, n_cells)
    for cell in range(n_cells):
        # A plan has fewer cells than the two models have states.
        used = np.flatnonzero(rows[cell])[: scratch.width]
        first = start_of(cell, &scratch)
        for count, k in enumerate(used):
            scratch.cells[first + count] = k
            scratch.masses[first + count] = rows[cell, k]
        scratch.counts[cell] = len(used)
    with nogil:
        if dense:
            eliminate(&cost[0, 0], n_cells, gamma, &value[0, 0], &scratch)
        else:
            sweeps = iterate(&cost[0, 0], n_cells, gamma, &value[0, 0], &scratch)
    return np.asarray(value), sweeps
