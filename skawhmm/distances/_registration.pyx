r"""Which state of one model corresponds to which state of another.

A registration is a plan :math:`W` with margins :math:`\pi_a` and :math:`\pi_b`.
"""

import numpy as np

from libc.math cimport INFINITY, pow

from skawhmm.numerics._transport cimport (
    Tree, improve, largest_cost, least_cost, price_tree, tree_of
)
from skawhmm.utils._interruption cimport interrupted

from skawhmm.numerics._transport import make_workspace

cdef extern from *:
    """
    /* A cell whose reduced cost is below this share of the largest cost may carry mass
       in another optimal plan. Costs of equal states differ by about 1e-15 of scale. */
    #define TIE_TOLERANCE 1e-13

    /* A smaller squared distance has lost digits, and shares of it lose more: it is 0. */
    #define LEAST_SQUARED 1e-290
    """
    const double TIE_TOLERANCE, LEAST_SQUARED


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
    r"""Optimal plans between the states of model pairs, ties broken by the next step.

    Where several plans have the least cost, the one is taken that makes the *next*
    states closest too: the least :math:`\sum_{ij} w_{ij} \, OT(T_a[i], T_b[j])`. Two
    states with equal emissions and different rows are told apart by this alone. Of
    those that are still equally good, the one with the least squared costs is taken:
    in one dimension many plans have the same cost, and if states hardly ever change,
    the next states add nothing. Equal states that even this leaves open are registered
    to those that resemble them in their probabilities and in how long they stay: a
    rule that does not depend on the order of the states.

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
    cdef int size = <int>laws.shape[1]
    cdef Py_ssize_t n, a, b
    cdef double largest
    numbers, nodes = make_workspace(size, size)
    inner_numbers, inner_nodes = make_workspace(size, size)
    cdef Tree tree = tree_of(numbers, nodes)
    cdef Tree inner = tree_of(inner_numbers, inner_nodes)
    cdef double[:, :, ::1] plans = np.empty((index_a.shape[0], size, size))
    cdef double[:, ::1] ahead = np.empty((size, size))
    cdef double[:, ::1] squared = np.empty((size, size))
    cdef double[:, ::1] scratch = np.empty((size, size))
    with nogil:
        for n in range(index_a.shape[0]):
            interrupted()
            a, b = index_a[n], index_b[n]
            least_cost(
                &laws[a, 0], &laws[b, 0], &cost[n, 0, 0], size, size,
                &plans[n, 0, 0], &tree,
            )
            if not break_ties:
                continue
            largest = largest_cost(&cost[n, 0, 0], size, size, &tree)
            if not mark_ties(&cost[n, 0, 0], size, largest, &tree, &ahead[0, 0]):
                continue
            look_ahead(
                &chains[a, 0, 0], &chains[b, 0, 0], &cost[n, 0, 0], size,
                &ahead[0, 0], &scratch[0, 0], &inner,
            )
            choose(&ahead[0, 0], size, &plans[n, 0, 0], &tree)
            if not mark_ties(&ahead[0, 0], size, largest, &tree, &squared[0, 0]):
                continue
            square(&cost[n, 0, 0], size, largest, &squared[0, 0])
            choose(&squared[0, 0], size, &plans[n, 0, 0], &tree)
            if not mark_ties(&squared[0, 0], size, 1.0, &tree, &ahead[0, 0]):
                continue
            resemble(
                &laws[a, 0], &laws[b, 0], &chains[a, 0, 0], &chains[b, 0, 0], size,
                &ahead[0, 0],
            )
            choose(&ahead[0, 0], size, &plans[n, 0, 0], &tree)
    return np.asarray(plans)


cdef bint mark_ties(
    const double* cost, int size, double largest, const Tree* tree, double* marks
) noexcept nogil:
    """Mark by 0 the cells that optimal plans may use, by infinity all others.

    `largest` is what rounding is measured by. Returns whether a cell outside of the
    tree is among them.
    """
    cdef double slack = TIE_TOLERANCE * largest
    cdef bint tied = False
    cdef int i, j, sink, cell
    for i in range(size):
        for j in range(size):
            sink, cell = size + j, i * size + j
            marks[cell] = INFINITY
            if tree.depth[i] < 0 or tree.depth[sink] < 0:
                continue
            if tree.parent[i] == sink or tree.parent[sink] == i:
                marks[cell] = 0.0
            elif cost[cell] - tree.price[i] - tree.price[sink] <= slack:
                marks[cell] = 0.0
                tied = True
    return tied


cdef inline int choose(
    const double* cost, int size, double* plan, const Tree* tree
) except -1 nogil:
    """Take the plan of the least cost among those that use marked cells only."""
    price_tree(cost, size, size, tree)
    improve(cost, size, size, plan, tree)


cdef int look_ahead(
    const double* transmat_a,
    const double* transmat_b,
    const double* cost,
    int size,
    double* ahead,
    double* scratch,
    const Tree* tree,
) except -1 nogil:
    """Fill the marked cells with the cost of moving one next state to the other."""
    cdef int i, j
    for i in range(size):
        interrupted()
        for j in range(size):
            if ahead[i * size + j] == 0:
                ahead[i * size + j] = least_cost(
                    transmat_a + i * size, transmat_b + j * size, cost, size, size,
                    scratch, tree,
                )


cdef void square(
    const double* cost, int size, double largest, double* marks
) noexcept nogil:
    """Fill the marked cells with squared costs, in units of the largest one."""
    cdef double share
    cdef int cell
    for cell in range(size * size):
        if marks[cell] == 0 and largest > 0:
            share = cost[cell] / largest
            marks[cell] = share * share


cdef void resemble(
    const double* law_a,
    const double* law_b,
    const double* transmat_a,
    const double* transmat_b,
    int size,
    double* marks,
) noexcept nogil:
    """Fill the marked cells with how much two states differ as states of a chain."""
    cdef double weight, staying
    cdef int i, j
    for i in range(size):
        for j in range(size):
            if marks[i * size + j] == 0:
                weight = law_a[i] - law_b[j]
                staying = transmat_a[i * size + i] - transmat_b[j * size + j]
                marks[i * size + j] = weight * weight + staying * staying
