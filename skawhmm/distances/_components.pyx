r"""The two parts of an aggregated distance, given a registration :math:`W`."""

import numpy as np

from libc.math cimport fabs, pow, sqrt

from skawhmm.numerics._transport cimport MASS_ROUNDING, Tree, least_cost, tree_of
from skawhmm.utils._interruption cimport interrupted

from skawhmm.numerics._transport import make_workspace

cdef extern from *:
    """
    /* States of one model whose cost is below this fraction of its largest one are equal:
       costs of equal states differ from 0 by about 1e-15 of scale. */
    #define EQUAL_STATES 1e-13
    """
    const double EQUAL_STATES


def marginal_components(
    const double[:, :, ::1] plans,
    const double[:, :, ::1] cost,
    double p,
    const double[::1] bias,
):
    r"""Distance between the marginal mixtures, :math:`(\sum_{ij} w_{ij} c_{ij})^{1/p}`.

    Parameters
    ----------
    plans : ndarray of shape (n_pairs, n_components, n_components)
        Registrations :math:`W`.

    cost : ndarray of shape (n_pairs, n_components, n_components)
        Cost :math:`c = W_2^p` between states.

    p : float
        Order of the distance.

    bias : ndarray of shape (n_pairs,)
        What to take off the sums before the root.

    Returns
    -------
    marginal : ndarray of shape (n_pairs,)
        The distances :math:`R`.
    """
    cdef Py_ssize_t n, i, j
    cdef double total
    cdef double[::1] marginal = np.empty(plans.shape[0])
    with nogil:
        for n in range(plans.shape[0]):
            interrupted()
            total = 0.0
            for i in range(plans.shape[1]):
                for j in range(plans.shape[2]):
                    total += plans[n, i, j] * cost[n, i, j]
            marginal[n] = pow(max(total - bias[n], 0.0), 1 / p)
    return np.asarray(marginal)


def transition_components(
    weights,
    transmats,
    chains,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
    const double[:, :, ::1] plans,
    const double[:, :, ::1] within_a,
    const double[:, :, ::1] within_b,
    double p,
    bint joint,
    bint hellinger,
):
    r"""Distance between the transition matrices after registration.

    Each chain is transferred to the states of the other and compared with it row by
    row, by the transport of next states under the cost *within* the model:

    .. math::
        D^p = \sum_i \pi_a[i] \, OT_{C_{aa}}(T_a[i], \tilde T_b[i])
            + \sum_j \pi_b[j] \, OT_{C_{bb}}(T_b[j], \tilde T_a[j])

    or by the squared Hellinger distance
    :math:`h^2(s, t) = \frac12 \sum_k (\sqrt{s_k} - \sqrt{t_k})^2` in place of OT.

    Parameters
    ----------
    weights : ndarray of shape (n_models, n_components)
        State probabilities :math:`\pi`.

    transmats : ndarray of shape (n_models, n_components, n_components)
        Transition matrices :math:`T`, to be transferred.

    chains : ndarray of shape (n_models, n_components, n_components)
        What they are compared with: as above, the transition matrices.

    index_a, index_b : ndarray of shape (n_pairs,)
        The models of each pair.

    plans : ndarray of shape (n_pairs, n_components, n_components)
        Registrations.

    within_a, within_b : ndarray of shape (n_pairs, n_components, n_components)
        Costs :math:`W_2^p` between the states of one model.

    p : float
        Order of the distance.

    joint : bool
        Whether the two ends of a step are transferred together; see `carried_chains`.

    hellinger : bool
        Whether rows are compared by Hellinger distance and not by transport. States
        that emit alike then count as one, as they do in transport.

    Returns
    -------
    transition : ndarray of shape (n_pairs,)
        The distances :math:`D`.
    """
    cdef const double[:, ::1] probs = np.ascontiguousarray(weights)
    cdef const double[:, :, ::1] steps = np.ascontiguousarray(transmats)
    cdef const double[:, :, ::1] own = np.ascontiguousarray(chains)
    cdef int size = <int>probs.shape[1], n_cells = size * size
    cdef Py_ssize_t n, a, b
    cdef double total
    cdef double[::1] matrices = np.empty(4 * n_cells)
    cdef double[::1] transition = np.empty(index_a.shape[0])
    cdef double* forth = &matrices[0]
    cdef double* back = forth + n_cells
    cdef double* half = back + n_cells
    cdef double* moved = half + n_cells
    row_scratch = make_rows(size)
    cdef Rows rows = rows_of(row_scratch, size)
    cdef RowsCost compared = rows_gap if hellinger else rows_cost
    with nogil:
        for n in range(index_a.shape[0]):
            interrupted()
            a, b = index_a[n], index_b[n]
            conditionals(&plans[n, 0, 0], size, forth, back)
            carry_chain(forth, &steps[b, 0, 0], back, size, joint, half, moved)
            total = compared(
                0.0, &probs[a, 0], &own[a, 0, 0], moved, &within_a[n, 0, 0], size, p,
                &rows,
            )
            carry_chain(back, &steps[a, 0, 0], forth, size, joint, half, moved)
            total = compared(
                total, &probs[b, 0], &own[b, 0, 0], moved, &within_b[n, 0, 0], size, p,
                &rows,
            )
            transition[n] = pow(total, 1 / p)
    return np.asarray(transition)


def carried_chains(transmats, const double[:, :, ::1] plans, bint joint):
    r"""Transfer chains to other states, each by a plan of its own.

    With :math:`F_i` the distribution of the state of the model given the other state i,
    and :math:`B_j` of the other state given state j of the model, the two ends of a
    step are registered independently, :math:`\tilde T = F T B`, or jointly, by one
    random map of states:

    .. math::
        \tilde T_{ik} = \sum_j F_{ij} \Bigl( \sum_{l \ne j} T_{jl} B_{lk}
            + T_{jj} [i = k] \Bigr)

    so that a chain that stays in its state stays after the registration too. Rows are
    scaled to one: they lose mass only where the model steps to states to which it gives
    no weight.

    Parameters
    ----------
    transmats : ndarray of shape (n_models, n_components, n_components)
        Transition matrices.

    plans : ndarray of shape (n_models, n_components, n_components)
        Registrations of other states (rows) with the states of each model (columns).

    joint : bool
        Whether the two ends of a step are registered jointly.

    Returns
    -------
    chains : ndarray of shape (n_models, n_components, n_components)
        The chains on the other states.
    """
    cdef const double[:, :, ::1] steps = np.ascontiguousarray(transmats)
    cdef int size = <int>steps.shape[1], n_cells = size * size
    cdef Py_ssize_t n
    cdef double[::1] scratch = np.empty(3 * n_cells)
    cdef double* forth = &scratch[0]
    cdef double* back = forth + n_cells
    cdef double* half = back + n_cells
    cdef double[:, :, ::1] chains = np.empty((steps.shape[0], size, size))
    with nogil:
        for n in range(steps.shape[0]):
            interrupted()
            conditionals(&plans[n, 0, 0], size, forth, back)
            carry_chain(
                forth, &steps[n, 0, 0], back, size, joint, half, &chains[n, 0, 0]
            )
    return np.asarray(chains)


cdef void conditionals(
    const double* plan, int size, double* forth, double* back
) noexcept nogil:
    """Normalise a plan by its own margins, 0 / 0 being 0.

    Row i of `forth` is the distribution of the state of b given state i of a, row j of
    `back` the distribution of the state of a given state j of b.
    """
    cdef int i, j
    cdef double total
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += plan[i * size + j]
        for j in range(size):
            forth[i * size + j] = plan[i * size + j] / total if total > 0 else 0.0
    for j in range(size):
        total = 0.0
        for i in range(size):
            total += plan[i * size + j]
        for i in range(size):
            back[j * size + i] = plan[i * size + j] / total if total > 0 else 0.0


cdef int carry_chain(
    const double* forth,
    const double* transmat,
    const double* back,
    int size,
    bint joint,
    double* half,
    double* moved,
) except -1 nogil:
    """Write the chain of the other model into `moved`; see `carried_chains`."""
    cdef int i, k
    cdef double total
    multiply(forth, transmat, size, joint, half)
    multiply(half, back, size, False, moved)
    for i in range(size):
        if joint:
            total = 0.0
            for k in range(size):
                total += forth[i * size + k] * transmat[k * size + k]
            moved[i * size + i] += total
        total = 0.0
        for k in range(size):
            total += moved[i * size + k]
        if total > 0 and fabs(total - 1) > MASS_ROUNDING:
            for k in range(size):
                moved[i * size + k] /= total


cdef inline int multiply(
    const double* left, const double* right, int size, bint hollow, double* out
) except -1 nogil:
    """Write the product into `out`; `hollow` takes the diagonal of `right` for 0."""
    cdef int i, j, k
    cdef double fraction
    for i in range(size):
        if i % 32 == 31:
            interrupted()
        for k in range(size):
            out[i * size + k] = 0.0
        for j in range(size):
            fraction = left[i * size + j]
            # Plans are sparse, and an exact zero adds nothing.
            if fraction != 0:
                for k in range(j if hollow else size):
                    out[i * size + k] += fraction * right[j * size + k]
                for k in range(j + 1 if hollow else size, size):
                    out[i * size + k] += fraction * right[j * size + k]


def make_rows(size):
    """Return the scratch arrays that comparisons of rows use, to be reused."""
    masses, states = np.empty(2 * (size + size * size)), np.empty(2 * size, np.intc)
    return masses, states, *make_workspace(size, size)


cdef Rows rows_of(scratch, int size):
    """The arrays of `make_rows`, which must live on, as the comparisons read them."""
    cdef double[::1] masses = scratch[0]
    cdef int[::1] states = scratch[1]
    cdef Rows rows
    rows.surplus, rows.deficit = &masses[0], &masses[size]
    rows.cost, rows.plan = &masses[2 * size], &masses[2 * size + size * size]
    rows.sources, rows.sinks = &states[0], &states[size]
    rows.tree = tree_of(scratch[2], scratch[3])
    return rows


ctypedef double (*RowsCost)(
    double,
    const double*,
    const double*,
    const double*,
    const double*,
    int,
    double,
    const Rows*,
) except? -1.0 nogil


cdef double rows_cost(
    double total,
    const double* weights,
    const double* chain,
    const double* other,
    const double* within,
    int size,
    double p,
    const Rows* rows,
) except? -1.0 nogil:
    """`total` and the mean cost of moving the rows of one chain to the other's."""
    cdef int i
    for i in range(size):
        if i % 32 == 31:
            interrupted()
        if weights[i] > 0:
            total += weights[i] * row_cost(
                chain + i * size, other + i * size, within, size, p, rows
            )
    return total


cdef inline double row_cost(
    const double* row,
    const double* other,
    const double* within,
    int size,
    double p,
    const Rows* rows,
) except? -1.0 nogil:
    """Cost of moving a row of one chain to that of the other, within one model.

    For p <= 1 the cost is a metric, and mass that both rows share stays where it is:
    only the differences are moved, which at least halves the problem.
    """
    cdef int i, j, k, n_sources = 0, n_sinks = 0
    cdef double gap, total = 0.0
    for k in range(size):
        gap = row[k] - other[k]
        if gap > MASS_ROUNDING:
            rows.surplus[n_sources], rows.sources[n_sources] = gap, k
            n_sources += 1
        elif gap < -MASS_ROUNDING:
            rows.deficit[n_sinks], rows.sinks[n_sinks] = -gap, k
            n_sinks += 1
    if n_sources == 0 or n_sinks == 0:
        return 0.0
    if p > 1:
        return least_cost(row, other, within, size, size, rows.plan, &rows.tree)
    if n_sources == 1 or n_sinks == 1:
        # One source, or one sink, leaves a single plan.
        for i in range(n_sources):
            for j in range(n_sinks):
                total += (
                    min(rows.surplus[i], rows.deficit[j])
                    * within[rows.sources[i] * size + rows.sinks[j]]
                )
        return total
    for i in range(n_sources):
        for j in range(n_sinks):
            rows.cost[i * n_sinks + j] = within[rows.sources[i] * size + rows.sinks[j]]
    return least_cost(
        rows.surplus, rows.deficit, rows.cost, n_sources, n_sinks, rows.plan,
        &rows.tree,
    )


cdef double rows_gap(
    double total,
    const double* weights,
    const double* chain,
    const double* other,
    const double* within,
    int size,
    double p,
    const Rows* rows,
) except? -1.0 nogil:
    """`total` and the mean squared Hellinger distance of the rows of two chains."""
    cdef int i, k, l
    cdef double slack = 0.0
    for k in range(size):
        for l in range(size):
            # States without weight may be padding, which must not set the scale.
            if weights[k] > 0 and weights[l] > 0:
                slack = max(slack, within[k * size + l])
    slack *= EQUAL_STATES
    # The first of the states that emit alike stands for all of them.
    for k in range(size):
        rows.sources[k] = k
        for l in range(k):
            if within[k * size + l] <= slack:
                rows.sources[k] = rows.sources[l]
                break
    for i in range(size):
        if weights[i] > 0:
            total += weights[i] * squared_hellinger(
                chain + i * size, other + i * size, size, rows
            )
    return total


cdef inline double squared_hellinger(
    const double* row, const double* other, int size, const Rows* rows
) noexcept nogil:
    """Squared Hellinger distance of two rows, states added to those they stand for."""
    cdef int k
    cdef double gap, total = 0.0
    for k in range(size):
        rows.surplus[k] = rows.deficit[k] = 0.0
    for k in range(size):
        rows.surplus[rows.sources[k]] += row[k]
        rows.deficit[rows.sources[k]] += other[k]
    for k in range(size):
        # Of masses that differ by rounding, the roots near zero differ by far more.
        if fabs(rows.surplus[k] - rows.deficit[k]) > MASS_ROUNDING:
            gap = sqrt(rows.surplus[k]) - sqrt(rows.deficit[k])
            total += gap * gap
    return 0.5 * total
