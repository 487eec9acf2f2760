"""Discounted couplings of many pairs of chains in one loop; see `_coupling`."""

import numpy as np

from libc.math cimport INFINITY, fabs, pow

from skawhmm.numerics._transport cimport Tree, least_cost, tree_of

from skawhmm.numerics._transport import make_workspace

cdef extern from "distances/_coupling_kernels.h" nogil:
    """
    /* A round that lowers no value by more than this share of the largest cost is the
       last. */
    #define VALUE_ROUNDING 1e-13

    /* Rounds are few (2 to 6 are seen); the bound only guards against rounding. */
    #define MAX_ROUNDS 100

    /* Sweeps stop at changes of this share of the largest cost, which is rounding. */
    #define SWEEP_ROUNDING 1e-15

    /* Elimination takes n_cells / 3 steps a cell of the matrix, sweeps about this many
       over 1 - gamma, but only over the few cells that carry mass. */
    #define SWEEPS 30

    /* A sweep leaves a share gamma of the error; this many over 1 - gamma leave none. */
    #define MAX_SWEEPS 100
    """
    const double VALUE_ROUNDING, SWEEP_ROUNDING
    const int MAX_ROUNDS, SWEEPS, MAX_SWEEPS
    void reduce_system(double* matrix, double* answer, Py_ssize_t n)


cdef struct Scratch:
    # The value of the last round, and what the linear system is solved with: its
    # matrix, or the masses and places of its entries, and the right-hand side.
    double* before
    double* matrix
    double* answer
    int* cells
    int* counts
    Tree tree


def make_scratch(n_rows, n_columns):
    """Return the scratch arrays of the kernels for models of up to so many states."""
    n_cells = n_rows * n_columns
    numbers = np.empty(n_cells * (2 + max(n_cells, n_rows + n_columns)))
    places = np.empty(n_cells * (1 + n_rows + n_columns), np.intc)
    largest = max(n_rows, n_columns)
    return numbers, places, *make_workspace(largest, largest)


cdef Scratch scratch_of(
    double[::1] numbers,
    int[::1] places,
    double[:, ::1] tree_numbers,
    int[:, ::1] tree_nodes,
    int n_cells,
) noexcept nogil:
    """The arrays of `make_scratch` as the kernels read them."""
    cdef Scratch scratch
    scratch.before, scratch.answer = &numbers[0], &numbers[n_cells]
    scratch.matrix = &numbers[2 * n_cells]
    scratch.counts, scratch.cells = &places[0], &places[n_cells]
    scratch.tree = tree_of(tree_numbers, tree_nodes)
    return scratch


def coupling_distances(
    weights,
    transmats,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
    const double[:, :, ::1] cost,
    double gamma,
    double p,
):
    r"""Discounted transition coupling distances of model pairs.

    Parameters
    ----------
    weights : ndarray of shape (n_models, n_components)
        State probabilities :math:`\pi`.

    transmats : ndarray of shape (n_models, n_components, n_components)
        Transition matrices :math:`T`.

    index_a, index_b : ndarray of shape (n_pairs,)
        The models of each pair.

    cost : ndarray of shape (n_pairs, n_components, n_components)
        Cost :math:`c = W_2^p` between states.

    gamma : float in [0, 1)
        Weight of the future.

    p : float
        Order of the distance.

    Returns
    -------
    distances : ndarray of shape (n_pairs,)
        The distances :math:`D_\gamma`.
    """
    cdef const double[:, ::1] laws = np.ascontiguousarray(weights)
    cdef const double[:, :, ::1] chains = np.ascontiguousarray(transmats)
    cdef int largest = <int>laws.shape[1], n_cells = largest * largest
    cdef int n_rows, n_columns, i, j
    cdef Py_ssize_t n, a, b
    cdef double total
    numbers, places, tree_numbers, tree_nodes = make_scratch(largest, largest)
    cdef Scratch scratch = scratch_of(
        numbers, places, tree_numbers, tree_nodes, n_cells
    )
    cdef double[:, ::1] matrices = np.empty((3, n_cells))
    cdef double[::1] policy = np.empty(n_cells * n_cells)
    cdef double* own = &matrices[0, 0]
    cdef double* value = &matrices[1, 0]
    cdef double* plan = &matrices[2, 0]
    cdef double[::1] distances = np.empty(index_a.shape[0])
    with nogil:
        for n in range(index_a.shape[0]):
            a, b = index_a[n], index_b[n]
            n_rows = used_states(&laws[a, 0], &chains[a, 0, 0], largest)
            n_columns = used_states(&laws[b, 0], &chains[b, 0, 0], largest)
            for i in range(n_rows):
                for j in range(n_columns):
                    own[i * n_columns + j] = cost[n, i, j]
            fill_value(
                &chains[a, 0, 0], &chains[b, 0, 0], largest, largest, own, n_rows,
                n_columns, gamma, value, &policy[0], &scratch,
            )
            total = least_cost(
                &laws[a, 0], &laws[b, 0], value, n_rows, n_columns, plan,
                &scratch.tree,
            )
            distances[n] = pow(total, 1 / p)
    return np.asarray(distances)


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
    cdef int n_cells = n_rows * n_columns
    numbers, places, tree_numbers, tree_nodes = make_scratch(n_rows, n_columns)
    cdef Scratch scratch = scratch_of(
        numbers, places, tree_numbers, tree_nodes, n_cells
    )
    cdef double[:, ::1] value = np.empty((n_rows, n_columns))
    cdef double[:, :, ::1] policy = np.empty((n_cells, n_rows, n_columns))
    with nogil:
        fill_value(
            &chain_a[0, 0], &chain_b[0, 0], n_rows, n_columns, &cost[0, 0], n_rows,
            n_columns, gamma, &value[0, 0], &policy[0, 0, 0], &scratch,
        )
    return np.asarray(value), np.asarray(policy)


def policy_value(
    const double[:, :, ::1] policy, const double[:, ::1] cost, double gamma, bint swept
):
    """Return V for given couplings, by elimination or, if `swept`, by sweeps."""
    cdef int n_rows = <int>cost.shape[0], n_columns = <int>cost.shape[1]
    cdef int n_cells = n_rows * n_columns
    numbers, places, tree_numbers, tree_nodes = make_scratch(n_rows, n_columns)
    cdef Scratch scratch = scratch_of(
        numbers, places, tree_numbers, tree_nodes, n_cells
    )
    cdef double[:, ::1] value = np.array(cost)
    with nogil:
        if swept:
            sweep(
                &policy[0, 0, 0], &cost[0, 0], n_cells, n_rows + n_columns, gamma,
                &value[0, 0], &scratch,
            )
        else:
            eliminate(
                &policy[0, 0, 0], &cost[0, 0], n_cells, gamma, &value[0, 0], &scratch
            )
    return np.asarray(value)


cdef int used_states(
    const double* weights, const double* transmat, int size
) noexcept nogil:
    """Count the states up to the last one that a path can reach.

    Padding is left out, so that nothing depends on the other models of a batch.
    """
    cdef int used = 1, i, j
    for i in range(size):
        for j in range(size):
            if weights[j] > 0 or (i != j and transmat[i * size + j] > 0):
                used = max(used, j + 1)
    return used


cdef void fill_value(
    const double* chain_a,
    const double* chain_b,
    int stride_a,
    int stride_b,
    const double* cost,
    int n_rows,
    int n_columns,
    double gamma,
    double* value,
    double* policy,
    const Scratch* scratch,
) noexcept nogil:
    """Fill `value` with V of one pair of models and `policy` with the row couplings."""
    cdef int n_cells = n_rows * n_columns, cell, i, j, rounds = 0
    cdef double gain = INFINITY, largest = cost[0], slack
    for cell in range(n_cells):
        value[cell] = cost[cell]
        largest = max(largest, cost[cell])
    slack = VALUE_ROUNDING * largest
    while gain > slack and rounds < MAX_ROUNDS:
        for i in range(n_rows):
            for j in range(n_columns):
                least_cost(
                    chain_a + i * stride_a, chain_b + j * stride_b, value, n_rows,
                    n_columns, policy + (i * n_columns + j) * n_cells, &scratch.tree,
                )
        for cell in range(n_cells):
            scratch.before[cell] = value[cell]
        if (1 - gamma) * n_cells * n_cells <= 3 * SWEEPS * (n_rows + n_columns):
            eliminate(policy, cost, n_cells, gamma, value, scratch)
        else:
            sweep(policy, cost, n_cells, n_rows + n_columns, gamma, value, scratch)
        # The first round starts from a value that no policy has, which may rise.
        if rounds > 0:
            gain = -INFINITY
            for cell in range(n_cells):
                gain = max(gain, scratch.before[cell] - value[cell])
        rounds += 1


cdef void eliminate(
    const double* policy,
    const double* cost,
    int n_cells,
    double gamma,
    double* value,
    const Scratch* scratch,
) noexcept nogil:
    """Solve (I - gamma P) V = (1 - gamma) c; diagonal dominance needs no pivots."""
    cdef double* matrix = scratch.matrix
    cdef double* answer = scratch.answer
    cdef Py_ssize_t cell, size = n_cells
    cdef int j, k
    cdef double total
    for cell in range(size * size):
        matrix[cell] = -gamma * policy[cell]
    for k in range(n_cells):
        matrix[k * size + k] += 1.0
        answer[k] = (1 - gamma) * cost[k]
    reduce_system(matrix, answer, size)
    for k in range(n_cells - 1, -1, -1):
        total = answer[k]
        for j in range(k + 1, n_cells):
            total -= matrix[k * size + j] * value[j]
        value[k] = total / matrix[k * size + k]


cdef void sweep(
    const double* policy,
    const double* cost,
    int n_cells,
    int width,
    double gamma,
    double* value,
    const Scratch* scratch,
) noexcept nogil:
    """Solve the same system by sweeps over the few cells that each coupling uses.

    A plan has fewer cells than the two models have states, which is `width`.
    """
    cdef double* masses = scratch.matrix
    cdef Py_ssize_t left = <Py_ssize_t>(MAX_SWEEPS / (1 - gamma)), size = n_cells
    cdef int cell, k, count
    cdef double largest = cost[0], least, change = INFINITY, ahead, fresh
    for cell in range(n_cells):
        largest = max(largest, cost[cell])
        count = 0
        for k in range(n_cells):
            if policy[cell * size + k] > 0 and count < width:
                scratch.cells[cell * width + count] = k
                masses[cell * width + count] = policy[cell * size + k]
                count += 1
        scratch.counts[cell] = count
    least = SWEEP_ROUNDING * largest
    while change > least and left > 0:
        change = 0.0
        left -= 1
        for cell in range(n_cells):
            ahead = 0.0
            for k in range(scratch.counts[cell]):
                ahead += (
                    masses[cell * width + k] * value[scratch.cells[cell * width + k]]
                )
            fresh = (1 - gamma) * cost[cell] + gamma * ahead
            change = max(change, fabs(fresh - value[cell]))
            value[cell] = fresh
