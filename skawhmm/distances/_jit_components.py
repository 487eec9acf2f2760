r"""The two components of an aggregated distance, given a registration :math:`W`."""

import numpy as np
from numba import njit

from skawhmm.numerics._jit_transport import (
    MASS_ROUNDING,
    make_workspace,
    solve_transport,
)
from skawhmm.utils._compile import KERNEL


@njit(**KERNEL)
def marginal_components(plans, cost, p, bias):
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
        Subtracted from the sums before the root is taken.

    Returns
    -------
    marginal : ndarray of shape (n_pairs,)
        The distances :math:`R`.
    """
    marginal = np.empty(plans.shape[0])
    for n in range(plans.shape[0]):
        total = 0.0
        for i in range(plans.shape[1]):
            for j in range(plans.shape[2]):
                total += plans[n, i, j] * cost[n, i, j]
        marginal[n] = max(total - bias[n], 0.0) ** (1 / p)
    return marginal


@njit(**KERNEL)
def transition_components(
    weights, transmats, chains, index_a, index_b, plans, within_a, within_b, p
):
    r"""Distance between the transition matrices after registration.

    Each chain is carried over to the states of the other and compared with it row by
    row, by the transport of next states under the cost *within* the model:

    .. math::
        D^p = \sum_i \pi_a[i] \, OT_{C_{aa}}(T_a[i], \tilde T_b[i])
            + \sum_j \pi_b[j] \, OT_{C_{bb}}(T_b[j], \tilde T_a[j])

    Parameters
    ----------
    weights : ndarray of shape (n_models, n_components)
        State probabilities :math:`\pi`.

    transmats : ndarray of shape (n_models, n_components, n_components)
        Transition matrices :math:`T`, to be carried over.

    chains : ndarray of shape (n_models, n_components, n_components)
        What they are compared with: in the formula above, the transition matrices.

    index_a, index_b : ndarray of shape (n_pairs,)
        The models of each pair.

    plans : ndarray of shape (n_pairs, n_components, n_components)
        Registrations.

    within_a, within_b : ndarray of shape (n_pairs, n_components, n_components)
        Costs :math:`W_2^p` between the states of one model.

    p : float
        Order of the distance.

    Returns
    -------
    transition : ndarray of shape (n_pairs,)
        The distances :math:`D`.
    """
    size = weights.shape[1]
    transition = np.empty(index_a.size)
    forth, back = np.empty((size, size)), np.empty((size, size))
    half, moved = np.empty((size, size)), np.empty((size, size))
    masses, cells, numbers, nodes = make_row_workspace(size)
    for n in range(index_a.size):
        a, b = index_a[n], index_b[n]
        conditional_plans(plans[n], forth, back)
        carried_chain(forth, transmats[b], back, half, moved)
        total = 0.0
        for i in range(size):
            if weights[a, i] > 0:
                total += weights[a, i] * row_cost(
                    chains[a],
                    moved,
                    i,
                    within_a[n],
                    p,
                    masses,
                    cells,
                    numbers,
                    nodes,
                )
        carried_chain(back, transmats[a], forth, half, moved)
        for j in range(size):
            if weights[b, j] > 0:
                total += weights[b, j] * row_cost(
                    chains[b],
                    moved,
                    j,
                    within_b[n],
                    p,
                    masses,
                    cells,
                    numbers,
                    nodes,
                )
        transition[n] = total ** (1 / p)
    return transition


@njit(**KERNEL)
def carried_chains(transmats, plans):
    """Carry the chain of each model over to its own states by a plan of its own.

    Parameters
    ----------
    transmats : ndarray of shape (n_models, n_components, n_components)
        Transition matrices.

    plans : ndarray of shape (n_models, n_components, n_components)
        Registrations of each model with itself.

    Returns
    -------
    chains : ndarray of shape (n_models, n_components, n_components)
        The chains, blurred in the same way as by a registration.
    """
    size = transmats.shape[1]
    chains = np.empty(transmats.shape)
    forth, back = np.empty((size, size)), np.empty((size, size))
    half = np.empty((size, size))
    for n in range(transmats.shape[0]):
        conditional_plans(plans[n], forth, back)
        carried_chain(forth, transmats[n], back, half, chains[n])
    return chains


@njit(**KERNEL)
def conditional_plans(plan, forth, back):
    """Normalise a plan by its own margins, 0 / 0 being 0.

    `forth[i]` is the law of the state of b given state i of a, `back[j]` that of the
    state of a given state j of b.
    """
    for i in range(plan.shape[0]):
        total = 0.0
        for j in range(plan.shape[1]):
            total += plan[i, j]
        for j in range(plan.shape[1]):
            forth[i, j] = plan[i, j] / total if total > 0 else 0.0
    for j in range(plan.shape[1]):
        total = 0.0
        for i in range(plan.shape[0]):
            total += plan[i, j]
        for i in range(plan.shape[0]):
            back[j, i] = plan[i, j] / total if total > 0 else 0.0


@njit(**KERNEL)
def carried_chain(forth, transmat, back, half, moved):
    """Write the chain of the other model on the states of this one into `moved`.

    Rows are scaled to sum to one: they lose mass only if the other model moves to
    states of weight 0.
    """
    size = forth.shape[0]
    _product(forth, transmat, half)
    _product(half, back, moved)
    for i in range(size):
        total = 0.0
        for k in range(size):
            total += moved[i, k]
        if total > 0 and abs(total - 1) > MASS_ROUNDING:
            for k in range(size):
                moved[i, k] /= total


@njit(**KERNEL)
def _product(left, right, out):
    for i in range(left.shape[0]):
        for k in range(right.shape[1]):
            out[i, k] = 0.0
        for j in range(left.shape[1]):
            # Plans are sparse, and an exact zero adds nothing.
            if left[i, j] != 0:
                for k in range(right.shape[1]):
                    out[i, k] += left[i, j] * right[j, k]


@njit(**KERNEL)
def make_row_workspace(size):
    """Return the scratch arrays of `row_cost`: masses, costs and plans, the tree."""
    numbers, nodes = make_workspace(size, size)
    return np.empty((2, size)), np.empty((2, size * size)), numbers, nodes


@njit(**KERNEL)
def row_cost(chain, other, row, within, p, masses, cells, numbers, nodes):
    """Cost of moving a row of one chain to that of the other, within one model.

    For p <= 1 the cost is a metric, and mass that both rows share stays where it is:
    only the differences are moved, which at least halves the problem.
    """
    size = chain.shape[1]
    n_sources, n_sinks = 0, 0
    for k in range(size):
        gap = chain[row, k] - other[row, k]
        # The names of the states wait in a row of the scratch that is used later.
        if gap > MASS_ROUNDING:
            masses[0, n_sources], nodes[0, n_sources] = gap, k
            n_sources += 1
        elif gap < -MASS_ROUNDING:
            masses[1, n_sinks], nodes[1, n_sinks] = -gap, k
            n_sinks += 1
    if n_sources == 0 or n_sinks == 0:
        return 0.0
    if p > 1:
        plan = cells[1].reshape(size, size)
        return solve_transport(chain[row], other[row], within, plan, numbers, nodes)
    if n_sources == 1 or n_sinks == 1:
        # One source, or one sink, leaves a single plan.
        total = 0.0
        for i in range(n_sources):
            for j in range(n_sinks):
                mass = min(masses[0, i], masses[1, j])
                total += mass * within[nodes[0, i], nodes[1, j]]
        return total
    cost = cells[0, : n_sources * n_sinks].reshape(n_sources, n_sinks)
    plan = cells[1, : n_sources * n_sinks].reshape(n_sources, n_sinks)
    for i in range(n_sources):
        for j in range(n_sinks):
            cost[i, j] = within[nodes[0, i], nodes[1, j]]
    supply, demand = masses[0, :n_sources], masses[1, :n_sinks]
    return solve_transport(supply, demand, cost, plan, numbers, nodes)
