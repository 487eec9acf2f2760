r"""Which state of one model corresponds to which state of another.

A registration is a plan :math:`W` with margins :math:`\pi_a` and :math:`\pi_b`. Most
pairs of models have one plan of the least cost. If there are several, further criteria
choose among them: the costs one step ahead, those of all steps ahead, and entropy. None
depends on the order of the states, and the last one leaves a single plan. The proofs
are in `docs/registration_proofs.md`.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, pow

from skawhmm.distances._coupling_kernels cimport (
    Scratch, fill_value, largest_dense, scratch_of
)
from skawhmm.numerics._max_entropy cimport (
    Face, face_of, find_components, maximize_entropy
)
from skawhmm.numerics._transport cimport (
    MASS_ROUNDING, Tree, improve, largest_cost, least_cost, price_tree, tree_of
)

from skawhmm.distances._coupling_kernels import make_scratch
from skawhmm.numerics._max_entropy import make_face
from skawhmm.numerics._transport import make_workspace

cdef extern from *:
    """
    /* A cell whose reduced cost is below this share of the largest cost may carry mass
       in another optimal plan. Costs of equal states differ by about 1e-15 of scale. */
    #define TIE_TOLERANCE 1e-13

    /* The same for costs ahead. These are costs of transports, exact to some 1e-14 of
       the largest cost, and prices are sums of up to two of them per state. */
    #define AHEAD_TOLERANCE 1e-11

    /* Weight of the future. With one half, values lose no digits, and a difference that
       is 30 steps ahead still exceeds the tolerance. */
    #define DISCOUNT 0.5

    /* With more states, all steps ahead take seconds per pair: what the next step does
       not decide is then left to the entropy. */
    #define MAX_STATES 64

    /* A smaller squared distance has lost digits, and shares of it lose more: it is 0. */
    #define LEAST_SQUARED 1e-290
    """
    const double TIE_TOLERANCE, AHEAD_TOLERANCE, DISCOUNT, LEAST_SQUARED
    const int MAX_STATES


cdef struct Pair:
    # Two models, the cost between their states, and their registration.
    const double* law_a
    const double* law_b
    const double* chain_a
    const double* chain_b
    const double* cost
    double* plan
    int size


cdef struct Stages:
    # The tree of the plan, marked cells (0, others infinite), and their costs ahead.
    Tree tree
    double* marks
    double* ahead
    # For transport between rows.
    Tree rows_tree
    double* rows_plan
    # For values: the states that are reached, and their chains and costs.
    int* states_a
    int* states_b
    double* reached_a
    double* reached_b
    double* reached_cost
    double* value
    Scratch scratch
    # For the entropy.
    Face face


def power_cost(squared, double p):
    r"""Return :math:`W_2^p` for an array of :math:`W_2^2`, in place."""
    cdef double[::1] flat = squared.reshape(-1)
    cdef Py_ssize_t k
    with nogil:
        for k in range(flat.shape[0]):
            if flat[k] < LEAST_SQUARED:
                flat[k] = 0.0
    if p == 1:
        return np.sqrt(squared, out=squared)
    if p != 2:
        with nogil:
            for k in range(flat.shape[0]):
                flat[k] = pow(flat[k], 0.5 * p)
    return squared


def optimal_registrations(
    weights,
    transmats,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
    const double[:, :, ::1] cost,
    bint break_ties=True,
):
    r"""Optimal plans between the states of model pairs, whatever the order of states.

    Where several plans have the least cost, those are kept that make the *next* states
    closest too: the least :math:`\sum_{ij} w_{ij} \, OT(T_a[i], T_b[j])`. Two states
    with equal emissions and different rows are distinguished by this alone. Of those
    that are still equally good, the ones with the least :math:`\sum_{ij} w_{ij} V_{ij}`
    are kept, V being the discounted cost of all steps ahead (see `_coupling`), and of
    these the plan of the greatest entropy is taken, which is unique.

    Parameters
    ----------
    weights : ndarray of shape (n_models, n_components)
        State probabilities.

    transmats : ndarray of shape (n_models, n_components, n_components)
        Transition matrices.

    index_a, index_b : ndarray of shape (n_pairs,)
        The models of each pair.

    cost : ndarray of shape (n_pairs, n_components, n_components)
        Cost between states of a and b.

    break_ties : bool, default=True
        Whether to choose among plans of the least cost. The cost of the plan does not
        depend on it.

    Returns
    -------
    plans : ndarray of shape (n_pairs, n_components, n_components)
        The plans.
    """
    cdef const double[:, ::1] laws = np.ascontiguousarray(weights)
    cdef const double[:, :, ::1] chains = np.ascontiguousarray(transmats)
    cdef int size = <int>laws.shape[1], few = min(size, MAX_STATES)
    cdef Py_ssize_t n, a, b
    cdef Pair pair
    cdef Stages stages
    cdef double[:, ::1] matrices = np.empty((7, size * size))
    cdef int[:, ::1] states = np.empty((2, size), np.intc)
    cdef double[:, :, ::1] plans = np.empty((index_a.shape[0], size, size))
    numbers, nodes = make_workspace(size, size)
    rows_numbers, rows_nodes = make_workspace(size, size)
    face_numbers, face_nodes = make_face(size)
    values, places, tree_numbers, tree_nodes = make_scratch(
        few, few, largest_dense(few, few, DISCOUNT)
    )
    stages.tree = tree_of(numbers, nodes)
    stages.rows_tree = tree_of(rows_numbers, rows_nodes)
    stages.face = face_of(face_numbers, face_nodes, size)
    stages.scratch = scratch_of(values, places, tree_numbers, tree_nodes, few, few)
    stages.marks, stages.ahead = &matrices[0, 0], &matrices[1, 0]
    stages.rows_plan, stages.value = &matrices[2, 0], &matrices[3, 0]
    stages.reached_a, stages.reached_b = &matrices[4, 0], &matrices[5, 0]
    stages.reached_cost = &matrices[6, 0]
    stages.states_a, stages.states_b = &states[0, 0], &states[1, 0]
    pair.size = size
    with nogil:
        for n in range(index_a.shape[0]):
            a, b = index_a[n], index_b[n]
            pair.law_a, pair.chain_a = &laws[a, 0], &chains[a, 0, 0]
            pair.law_b, pair.chain_b = &laws[b, 0], &chains[b, 0, 0]
            pair.cost, pair.plan = &cost[n, 0, 0], &plans[n, 0, 0]
            least_cost(
                pair.law_a, pair.law_b, pair.cost, size, size, pair.plan, &stages.tree
            )
            if break_ties:
                choose_plan(&pair, &stages)
    return np.asarray(plans)


cdef void choose_plan(const Pair* pair, Stages* stages) noexcept nogil:
    """Replace a plan of the least cost by the one that all criteria leave."""
    cdef int size = pair.size
    cdef double scale = largest_cost(pair.cost, size, size, &stages.tree)
    if not mark_ties(pair.cost, size, TIE_TOLERANCE * scale, stages):
        return
    look_ahead(pair, stages)
    improve_marked(pair, stages)
    if not mark_ties(stages.ahead, size, AHEAD_TOLERANCE * scale, stages):
        return
    if not find_components(stages.marks, pair.plan, size, size, &stages.face):
        return
    if rows_differ(pair, &stages.face):
        scale = look_far_ahead(pair, stages)
        if scale >= 0:
            improve_marked(pair, stages)
            mark_ties(stages.ahead, size, AHEAD_TOLERANCE * scale, stages)
            find_components(stages.marks, pair.plan, size, size, &stages.face)
    maximize_entropy(stages.marks, size, size, pair.plan, &stages.face)


cdef bint mark_ties(
    const double* cost, int size, double slack, const Stages* stages
) noexcept nogil:
    """Mark by 0 the cells that plans of the least cost may use, by infinity all others.

    Return whether a cell outside of the tree is among them.
    """
    cdef const Tree* tree = &stages.tree
    cdef bint tied = False
    cdef int i, j, sink, cell
    for i in range(size):
        for j in range(size):
            sink, cell = size + j, i * size + j
            stages.marks[cell] = INFINITY
            if tree.depth[i] < 0 or tree.depth[sink] < 0:
                continue
            if tree.parent[i] == sink or tree.parent[sink] == i:
                stages.marks[cell] = 0.0
            elif cost[cell] - tree.price[i] - tree.price[sink] <= slack:
                stages.marks[cell] = 0.0
                tied = True
    return tied


cdef void improve_marked(const Pair* pair, const Stages* stages) noexcept nogil:
    """Take a plan of the least cost ahead among those that use marked cells only."""
    price_tree(stages.ahead, pair.size, pair.size, &stages.tree)
    improve(stages.ahead, pair.size, pair.size, pair.plan, &stages.tree)


cdef void look_ahead(const Pair* pair, const Stages* stages) noexcept nogil:
    """Fill `ahead` with the costs of moving one next state to the other."""
    cdef int size = pair.size, i, j, cell = 0
    for i in range(size):
        for j in range(size):
            stages.ahead[cell] = INFINITY
            if stages.marks[cell] == 0:
                stages.ahead[cell] = least_cost(
                    pair.chain_a + i * size, pair.chain_b + j * size, pair.cost, size,
                    size, stages.rows_plan, &stages.rows_tree,
                )
            cell += 1


cdef bint rows_differ(const Pair* pair, const Face* face) noexcept nogil:
    """Whether steps after the next one can decide between the plans that are left.

    They cannot if within each component the states of one model have equal rows: values
    are then sums of a function of the one state and one of the other.
    """
    cdef int i
    for i in range(pair.size):
        if (
            face.component[i] == i
            and face.spare[i] > 0
            and not equal_rows(pair.chain_a, pair.size, face.component, i)
            and not equal_rows(pair.chain_b, pair.size, face.component + pair.size, i)
        ):
            return True
    return False


cdef bint equal_rows(
    const double* chain, int size, const int* component, int label
) noexcept nogil:
    """Whether all states of a component have the same row."""
    cdef int first = -1, i, k
    for i in range(size):
        if component[i] != label:
            continue
        if first < 0:
            first = i
        for k in range(size):
            if fabs(chain[i * size + k] - chain[first * size + k]) > MASS_ROUNDING:
                return False
    return True


cdef double look_far_ahead(const Pair* pair, Stages* stages) noexcept nogil:
    """Fill `ahead` with the discounted costs of all steps.

    Return the largest cost between states that can be reached, or -1 if there are too
    many of them.
    """
    cdef int size = pair.size, i, j, cell
    cdef int n_rows = reach(pair.law_a, pair.chain_a, size, stages.states_a)
    cdef int n_columns = reach(pair.law_b, pair.chain_b, size, stages.states_b)
    cdef double largest = 0.0
    if n_rows > MAX_STATES or n_columns > MAX_STATES:
        return -1.0
    among(pair.chain_a, size, stages.states_a, n_rows, stages.reached_a)
    among(pair.chain_b, size, stages.states_b, n_columns, stages.reached_b)
    for i in range(n_rows):
        for j in range(n_columns):
            cell = stages.states_a[i] * size + stages.states_b[j]
            stages.reached_cost[i * n_columns + j] = pair.cost[cell]
            largest = max(largest, pair.cost[cell])
    fill_value(
        stages.reached_a, stages.reached_b, n_rows, n_columns, stages.reached_cost,
        n_rows, n_columns, DISCOUNT, stages.value, &stages.scratch,
    )
    for cell in range(size * size):
        stages.ahead[cell] = INFINITY
    for i in range(n_rows):
        for j in range(n_columns):
            cell = stages.states_a[i] * size + stages.states_b[j]
            if stages.marks[cell] == 0:
                stages.ahead[cell] = stages.value[i * n_columns + j]
    return largest


cdef int reach(
    const double* law, const double* chain, int size, int* states
) noexcept nogil:
    """List the states that a model can be in, in their order, and count them."""
    cdef int count = 0, before = -1, i, j
    for j in range(size):
        states[j] = law[j] > 0
    # `states` tells which are reached, until nothing is added.
    while count > before:
        before = count
        count = 0
        for i in range(size):
            if states[i]:
                count += 1
                for j in range(size):
                    if chain[i * size + j] > 0:
                        states[j] = True
    count = 0
    for j in range(size):
        if states[j]:
            states[count] = j
            count += 1
    return count


cdef void among(
    const double* chain, int size, const int* states, int count, double* reached
) noexcept nogil:
    """Write the chain among some of its states into `reached`."""
    cdef int i, j
    for i in range(count):
        for j in range(count):
            reached[i * count + j] = chain[states[i] * size + states[j]]
