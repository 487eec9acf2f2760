"""Discounted couplings of many pairs of chains in one loop; see `_coupling`.

The couplings of all pairs of rows are kept as the cells of their spanning trees: fewer
than the two models have states, per pair of states. From the second round on, each
transport problem starts from the tree that it had: only its cost has changed.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, pow

from skawhmm.numerics._transport cimport (
    fill_ranked, keep_tree, least_cost, rank_cells, resume_tree, tree_of
)
from skawhmm.utils._interruption cimport interrupted

from skawhmm.numerics._transport import make_workspace

cdef extern from "distances/_coupling_kernels.h" nogil:
    """
    /* Masses are exact to some 1e-15, which moves values by this over 1 - gamma. A round
       that lowers none by more than ten times this fraction of the largest cost is the
       last. */
    #define VALUE_ROUNDING 1e-14

    /* Rounds are few (2 to 6 are seen); the bound only guards against rounding. */
    #define MAX_ROUNDS 100

    /* Steps and sweeps stop at changes of this fraction of the largest cost, which is
       rounding. */
    #define SWEEP_ROUNDING 1e-15

    /* Elimination takes n_cells / 3 steps a cell of the matrix, and many at a time.
       Steps touch only the few cells that carry mass, some tens of times. */
    #define STEPS 900

    /* Some chains (cycles) need 1 / (1 - gamma) steps: beyond this gamma, elimination is
       preferred for more states, too. */
    #define STEADY_GAMMA 0.99

    /* Steps of one descent; 5 to 60 are seen. A second descent corrects the rounding of
       the first, and goes on where the steps were not enough. */
    #define MAX_STEPS 100
    #define MAX_DESCENTS 3

    /* A sweep leaves a fraction gamma of the error; this many over 1 - gamma leave none. */
    #define MAX_SWEEPS 100
    """
    const double VALUE_ROUNDING, SWEEP_ROUNDING, STEADY_GAMMA
    const int MAX_ROUNDS, STEPS, MAX_STEPS, MAX_DESCENTS, MAX_SWEEPS
    int reduce_system(double* matrix, double* answer, Py_ssize_t n) except -1


# Arrays of one number per pair of states in the scratch: all but masses and matrix.
cdef int N_VECTORS = 9


def make_scratch(int n_rows, int n_columns, Py_ssize_t n_dense):
    """Return the scratch arrays of the kernels for models of up to so many states.

    Linear systems of up to `n_dense` unknowns are solved by elimination.
    """
    cdef Py_ssize_t n_cells = n_rows * n_columns, width = n_rows + n_columns
    numbers = np.zeros(n_cells * (N_VECTORS + width) + n_dense * n_dense)
    places = np.empty(n_cells * (3 + width), np.intc)
    largest = max(n_rows, n_columns)
    return numbers, places, *make_workspace(largest, largest)


cdef Scratch scratch_of(
    double[::1] numbers,
    int[::1] places,
    double[:, ::1] tree_numbers,
    int[:, ::1] tree_nodes,
    int n_rows,
    int n_columns,
) noexcept nogil:
    """The arrays of `make_scratch` as the kernels read them."""
    cdef Scratch scratch
    cdef Py_ssize_t n_cells = n_rows * n_columns
    scratch.width = n_rows + n_columns
    scratch.before, scratch.answer = &numbers[0], &numbers[n_cells]
    scratch.gap, scratch.shadow = &numbers[2 * n_cells], &numbers[3 * n_cells]
    scratch.course, scratch.moved = &numbers[4 * n_cells], &numbers[5 * n_cells]
    scratch.turned, scratch.stay = &numbers[6 * n_cells], &numbers[7 * n_cells]
    scratch.plan, scratch.masses = &numbers[8 * n_cells], &numbers[9 * n_cells]
    # One past the end if nothing is eliminated, and then not read.
    scratch.matrix = scratch.masses + n_cells * scratch.width
    scratch.counts, scratch.ranking.sources = &places[0], &places[n_cells]
    scratch.ranking.sinks, scratch.cells = &places[2 * n_cells], &places[3 * n_cells]
    scratch.tree = tree_of(tree_numbers, tree_nodes)
    return scratch


cdef bint eliminates(int n_rows, int n_columns, double gamma) noexcept nogil:
    """Whether V of two models of so many states is better found by elimination."""
    cdef double n_cells = <double>n_rows * n_columns, fraction = 1.0
    if gamma > STEADY_GAMMA:
        fraction = (1 - gamma) / (1 - STEADY_GAMMA)
    return fraction * n_cells * n_cells <= STEPS * (n_rows + n_columns)


cdef Py_ssize_t largest_dense(int n_rows, int n_columns, double gamma) noexcept nogil:
    """Unknowns of the largest system, up to these sizes, that elimination solves."""
    cdef Py_ssize_t largest = 0
    cdef int i, j
    for i in range(1, n_rows + 1):
        for j in range(1, n_columns + 1):
            if eliminates(i, j, gamma):
                largest = max(largest, i * j)
    return largest


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
    cdef const double[:, ::1] probs = np.ascontiguousarray(weights)
    cdef const double[:, :, ::1] chains = np.ascontiguousarray(transmats)
    cdef int largest = <int>probs.shape[1], n_cells = largest * largest
    cdef int n_rows, n_columns, i, j
    cdef Py_ssize_t n, a, b
    cdef double total
    numbers, places, tree_numbers, tree_nodes = make_scratch(
        largest, largest, largest_dense(largest, largest, gamma)
    )
    cdef Scratch scratch = scratch_of(
        numbers, places, tree_numbers, tree_nodes, largest, largest
    )
    cdef double[:, ::1] matrices = np.empty((3, n_cells))
    cdef double* own = &matrices[0, 0]
    cdef double* value = &matrices[1, 0]
    cdef double* plan = &matrices[2, 0]
    cdef double[::1] distances = np.empty(index_a.shape[0])
    with nogil:
        for n in range(index_a.shape[0]):
            interrupted()
            a, b = index_a[n], index_b[n]
            n_rows = used_states(&probs[a, 0], &chains[a, 0, 0], largest)
            n_columns = used_states(&probs[b, 0], &chains[b, 0, 0], largest)
            for i in range(n_rows):
                for j in range(n_columns):
                    own[i * n_columns + j] = cost[n, i, j]
            fill_value(
                &chains[a, 0, 0], &chains[b, 0, 0], largest, largest, own, n_rows,
                n_columns, gamma, value, &scratch,
            )
            total = least_cost(
                &probs[a, 0], &probs[b, 0], value, n_rows, n_columns, plan,
                &scratch.tree,
            )
            distances[n] = pow(total, 1 / p)
    return np.asarray(distances)


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


cdef int fill_value(
    const double* chain_a,
    const double* chain_b,
    int stride_a,
    int stride_b,
    const double* cost,
    int n_rows,
    int n_columns,
    double gamma,
    double* value,
    Scratch* scratch,
) except -1 nogil:
    """Fill `value` with V of one pair of models and the scratch with its couplings."""
    cdef int n_cells = n_rows * n_columns, cell, rounds = 0
    cdef double gain = INFINITY, largest = cost[0], slack
    for cell in range(n_cells):
        value[cell] = cost[cell]
        largest = max(largest, cost[cell])
    slack = VALUE_ROUNDING * largest / (1 - gamma)
    scratch.width = n_rows + n_columns
    rank_cells(
        cost, n_rows, n_columns, scratch.before, &scratch.ranking, &scratch.tree
    )
    while gain > slack and rounds < MAX_ROUNDS:
        # If no coupling changes, the value is already theirs.
        if not couple_rows(
            chain_a, chain_b, stride_a, stride_b, value, n_rows, n_columns, rounds > 0,
            scratch,
        ):
            break
        for cell in range(n_cells):
            scratch.before[cell] = value[cell]
        if eliminates(n_rows, n_columns, gamma):
            eliminate(cost, n_cells, gamma, value, scratch)
        else:
            iterate(cost, n_cells, gamma, value, scratch)
        # The first round starts from a value that no policy has, which may rise.
        if rounds > 0:
            gain = -INFINITY
            for cell in range(n_cells):
                gain = max(gain, scratch.before[cell] - value[cell])
        rounds += 1


cdef int couple_rows(
    const double* chain_a,
    const double* chain_b,
    int stride_a,
    int stride_b,
    const double* value,
    int n_rows,
    int n_columns,
    bint resumed,
    const Scratch* scratch,
) except -1 nogil:
    """Fill the scratch with the best couplings of all rows; return whether any is new.

    All problems have the same cost, `value`. Those of the round before are resumed.
    """
    cdef bint changed = not resumed
    cdef Py_ssize_t first
    cdef int cell = 0, i, j
    for i in range(n_rows):
        interrupted()
        for j in range(n_columns):
            first = start_of(cell, scratch)
            if not resumed:
                fill_ranked(
                    chain_a + i * stride_a, chain_b + j * stride_b, value, n_rows,
                    n_columns, &scratch.ranking, scratch.plan, &scratch.tree,
                )
            elif resume_tree(
                scratch.cells + first, scratch.masses + first, scratch.counts[cell],
                value, n_rows, n_columns, scratch.plan, &scratch.tree,
            ):
                changed = True
            scratch.counts[cell] = keep_tree(
                n_rows, n_columns, scratch.plan, scratch.cells + first,
                scratch.masses + first, &scratch.tree,
            )
            cell += 1
    return changed


cdef int eliminate(
    const double* cost,
    int n_cells,
    double gamma,
    double* value,
    const Scratch* scratch,
) except -1 nogil:
    """Solve (I - gamma P) V = (1 - gamma) c; diagonal dominance needs no pivots."""
    cdef double* matrix = scratch.matrix
    cdef double* answer = scratch.answer
    cdef Py_ssize_t cell, size = n_cells
    cdef int j, k
    cdef double total
    for cell in range(size * size):
        matrix[cell] = 0.0
    for k in range(n_cells):
        for cell in range(start_of(k, scratch), end_of(k, scratch)):
            matrix[k * size + scratch.cells[cell]] = -gamma * scratch.masses[cell]
        matrix[k * size + k] += 1.0
        answer[k] = (1 - gamma) * cost[k]
    reduce_system(matrix, answer, size)
    for k in range(n_cells - 1, -1, -1):
        total = answer[k]
        for j in range(k + 1, n_cells):
            total -= matrix[k * size + j] * value[j]
        value[k] = total / matrix[k * size + k]


cdef Py_ssize_t iterate(
    const double* cost,
    int n_cells,
    double gamma,
    double* value,
    const Scratch* scratch,
) except -1 nogil:
    """Solve the same system with the cells that carry mass only; count the sweeps.

    A descent takes few steps but is not known to end for every chain: it counts only if
    it closes the gaps. Sweeps end for every chain, and the last confirms the solution.
    """
    cdef double largest = cost[0], least, far, near
    cdef int cell, descent
    for cell in range(n_cells):
        largest = max(largest, cost[cell])
    least = SWEEP_ROUNDING * largest
    far = largest_gap(value, cost, n_cells, gamma, scratch)
    for descent in range(MAX_DESCENTS):
        if not far > least:
            break
        descend(value, n_cells, gamma, far, least, scratch)
        near = largest_gap(scratch.answer, cost, n_cells, gamma, scratch)
        if not near < far:
            break
        far = near
        for cell in range(n_cells):
            value[cell] = scratch.answer[cell]
    return sweep(cost, n_cells, gamma, least, value, scratch)


cdef inline double mean_ahead(
    int cell, const double* value, const Scratch* scratch
) noexcept nogil:
    """The mean of `value` one step after a pair of states."""
    cdef double ahead = 0.0
    cdef Py_ssize_t k
    for k in range(start_of(cell, scratch), end_of(cell, scratch)):
        ahead += scratch.masses[k] * value[scratch.cells[k]]
    return ahead


cdef void turn(
    const double* vector, int n_cells, double gamma, double* turned,
    const Scratch* scratch,
) noexcept nogil:
    """Fill `turned` with (I - gamma P) times a vector, over the diagonal."""
    cdef int cell
    for cell in range(n_cells):
        turned[cell] = (
            vector[cell] - gamma * mean_ahead(cell, vector, scratch)
        ) / scratch.stay[cell]


cdef inline double product(
    const double* one, const double* other, int size
) noexcept nogil:
    cdef double total = 0.0
    cdef int k
    for k in range(size):
        total += one[k] * other[k]
    return total


cdef double largest_gap(
    const double* value,
    const double* cost,
    int n_cells,
    double gamma,
    const Scratch* scratch,
) noexcept nogil:
    """By how much the equations fail, at most; fill the scratch with all the gaps."""
    cdef double largest = 0.0
    cdef int cell
    for cell in range(n_cells):
        scratch.gap[cell] = (1 - gamma) * cost[cell] - value[cell]
        scratch.gap[cell] += gamma * mean_ahead(cell, value, scratch)
        if not fabs(scratch.gap[cell]) < INFINITY:
            return INFINITY
        largest = max(largest, fabs(scratch.gap[cell]))
    return largest


cdef int descend(
    const double* value,
    int n_cells,
    double gamma,
    double scale,
    double least,
    const Scratch* scratch,
) except -1 nogil:
    """Go from `value` towards the solution by BiCGSTAB, as far as `answer`.

    Equations are divided by their diagonal, so that states that are rarely left do not
    slow it down, and numbers by the largest gap, so that none overflows. Where a value
    is right from the start because cost and value are zero for good, it stays zero.
    """
    cdef double* gap = scratch.gap
    cdef double* course = scratch.course
    cdef double* moved = scratch.moved
    cdef double* turned = scratch.turned
    cdef double along = 1.0, across = 1.0, weight = 1.0, last, back, square
    cdef double change
    cdef Py_ssize_t k
    cdef int cell, step = 0
    for cell in range(n_cells):
        scratch.stay[cell] = 1.0
        for k in range(start_of(cell, scratch), end_of(cell, scratch)):
            if scratch.cells[k] == cell:
                scratch.stay[cell] = 1 - gamma * scratch.masses[k]
        gap[cell] /= scale * scratch.stay[cell]
        scratch.shadow[cell] = gap[cell]
        course[cell] = moved[cell] = 0.0
        scratch.answer[cell] = value[cell]
    change = product(gap, gap, n_cells)
    least /= scale
    # A division by zero ends the loop: what is not finite fails the test.
    while least * least < change < INFINITY and step < MAX_STEPS:
        interrupted()
        step += 1
        last = weight
        weight = product(scratch.shadow, gap, n_cells)
        back = weight / last * (along / across)
        for cell in range(n_cells):
            course[cell] = gap[cell] + back * (course[cell] - across * moved[cell])
        turn(course, n_cells, gamma, moved, scratch)
        along = weight / product(scratch.shadow, moved, n_cells)
        for cell in range(n_cells):
            gap[cell] -= along * moved[cell]
        turn(gap, n_cells, gamma, turned, scratch)
        square = product(turned, turned, n_cells)
        # No gap is left after half a step.
        across = product(turned, gap, n_cells) / square if square > 0 else 0.0
        for cell in range(n_cells):
            scratch.answer[cell] += scale * (
                along * course[cell] + across * gap[cell]
            )
            gap[cell] -= across * turned[cell]
        change = product(gap, gap, n_cells)


cdef Py_ssize_t sweep(
    const double* cost,
    int n_cells,
    double gamma,
    double least,
    double* value,
    const Scratch* scratch,
) except -1 nogil:
    """Set each value to its cost now and the mean ahead, until none changes.

    A sweep leaves at most a fraction gamma of the error. Return how many it took.
    """
    cdef Py_ssize_t most = <Py_ssize_t>(MAX_SWEEPS / (1 - gamma)), left = most
    cdef double change = INFINITY, fresh
    cdef int cell
    while change > least and left > 0:
        interrupted()
        change = 0.0
        left -= 1
        for cell in range(n_cells):
            fresh = (1 - gamma) * cost[cell] + gamma * mean_ahead(cell, value, scratch)
            change = max(change, fabs(fresh - value[cell]))
            value[cell] = fresh
    return most - left
