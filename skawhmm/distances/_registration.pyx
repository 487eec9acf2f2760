r"""Which state of one model corresponds to which state of another.

A registration is a plan :math:`W` with margins :math:`\pi_a` and :math:`\pi_b`. Most
pairs of models have one plan of the least cost. If there are several, further criteria
choose among them: the costs one step ahead, squared costs, and entropy. None depends on
the order of the states, and the last one leaves a single plan. The proofs are in
`docs/registration_proofs.md`.
"""

import numpy as np

from libc.math cimport INFINITY, pow

from skawhmm.numerics._max_entropy cimport (
    Face, face_of, find_components, maximize_entropy
)
from skawhmm.numerics._transport cimport (
    Tree, improve, largest_cost, least_cost, price_tree, tree_of
)
from skawhmm.utils._interruption cimport interrupted

from skawhmm.numerics._max_entropy import make_face
from skawhmm.numerics._transport import make_workspace

cdef extern from *:
    """
    /* A cell whose reduced cost is below this fraction of the largest cost may carry mass
       in another optimal plan. Costs of equal states differ by about 1e-15 of scale. */
    #define TIE_TOLERANCE 1e-13

    /* The same for costs ahead. These are costs of transports, exact to some 1e-14 of
       the largest cost, and prices are sums of up to two of them per state. */
    #define AHEAD_TOLERANCE 1e-11

    /* A smaller squared distance has lost digits, and fractions of it lose more: it is 0. */
    #define LEAST_SQUARED 1e-290
    """
    const double TIE_TOLERANCE, AHEAD_TOLERANCE, LEAST_SQUARED


cdef struct Pair:
    # Two models, the cost between their states, and their registration.
    const double* probs_a
    const double* probs_b
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
    that are still equally good, the ones with the least squared costs are kept, which
    prefer short moves to a long one, and of these the plan of the greatest entropy is
    taken, which is unique.

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
    cdef const double[:, ::1] probs = np.ascontiguousarray(weights)
    cdef const double[:, :, ::1] chains = np.ascontiguousarray(transmats)
    cdef int size = <int>probs.shape[1]
    cdef Py_ssize_t n, a, b
    cdef Pair pair
    cdef Stages stages
    cdef double[:, ::1] matrices = np.empty((3, size * size))
    cdef double[:, :, ::1] plans = np.empty((index_a.shape[0], size, size))
    numbers, nodes = make_workspace(size, size)
    rows_numbers, rows_nodes = make_workspace(size, size)
    face_numbers, face_nodes = make_face(size)
    stages.tree = tree_of(numbers, nodes)
    stages.rows_tree = tree_of(rows_numbers, rows_nodes)
    stages.face = face_of(face_numbers, face_nodes, size)
    stages.marks, stages.ahead = &matrices[0, 0], &matrices[1, 0]
    stages.rows_plan = &matrices[2, 0]
    pair.size = size
    with nogil:
        for n in range(index_a.shape[0]):
            interrupted()
            a, b = index_a[n], index_b[n]
            pair.probs_a, pair.chain_a = &probs[a, 0], &chains[a, 0, 0]
            pair.probs_b, pair.chain_b = &probs[b, 0], &chains[b, 0, 0]
            pair.cost, pair.plan = &cost[n, 0, 0], &plans[n, 0, 0]
            least_cost(
                pair.probs_a, pair.probs_b, pair.cost, size, size, pair.plan, &stages.tree
            )
            if break_ties:
                choose_plan(&pair, &stages)
    return np.asarray(plans)


cdef int choose_plan(const Pair* pair, Stages* stages) except -1 nogil:
    """Replace a plan of the least cost by the one that all criteria leave."""
    cdef int size = pair.size
    cdef double scale = largest_cost(pair.cost, size, size, &stages.tree)
    if not mark_ties(pair.cost, size, TIE_TOLERANCE * scale, stages):
        return 0
    look_ahead(pair, stages)
    improve_marked(pair, stages)
    if not mark_ties(stages.ahead, size, AHEAD_TOLERANCE * scale, stages):
        return 0
    fill_squares(pair, scale, stages)
    improve_marked(pair, stages)
    if not mark_ties(stages.ahead, size, AHEAD_TOLERANCE, stages):
        return 0
    if find_components(stages.marks, pair.plan, size, size, &stages.face):
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


cdef int improve_marked(const Pair* pair, const Stages* stages) except -1 nogil:
    """Take a plan of the least cost ahead among those that use marked cells only."""
    price_tree(stages.ahead, pair.size, pair.size, &stages.tree)
    improve(stages.ahead, pair.size, pair.size, pair.plan, &stages.tree)


cdef int look_ahead(const Pair* pair, const Stages* stages) except -1 nogil:
    """Fill `ahead` with the costs of moving one next state to the other."""
    cdef int size = pair.size, i, j, cell = 0
    for i in range(size):
        interrupted()
        for j in range(size):
            stages.ahead[cell] = INFINITY
            if stages.marks[cell] == 0:
                stages.ahead[cell] = least_cost(
                    pair.chain_a + i * size, pair.chain_b + j * size, pair.cost, size,
                    size, stages.rows_plan, &stages.rows_tree,
                )
            cell += 1


cdef void fill_squares(
    const Pair* pair, double scale, const Stages* stages
) noexcept nogil:
    """Fill `ahead` with the squared costs of marked cells, in units of the largest."""
    cdef int cell
    cdef double ratio
    for cell in range(pair.size * pair.size):
        stages.ahead[cell] = INFINITY
        if stages.marks[cell] == 0:
            ratio = pair.cost[cell] / scale if scale > 0 else 0.0
            stages.ahead[cell] = ratio * ratio
