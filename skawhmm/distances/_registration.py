r"""Which state of one model corresponds to which state of another.

A registration is a plan :math:`W` with margins :math:`\pi_a` and :math:`\pi_b`.
"""

import numpy as np
from numba import njit

from skawhmm.numerics._transport import (
    DEPTH,
    PARENT,
    PRICE,
    TIE_TOLERANCE,
    improve_plan,
    largest_cost,
    make_workspace,
    reprice,
    solve_transport,
)
from skawhmm.utils._compile import KERNEL


@njit(**KERNEL)
def power_cost(squared, p):
    r"""Return :math:`W_2^p` for an array of :math:`W_2^2`, in place."""
    flat = squared.reshape(-1)
    for k in range(flat.size):
        if p == 1:
            flat[k] = np.sqrt(flat[k])
        elif p != 2:
            flat[k] **= 0.5 * p
    return squared


@njit(**KERNEL)
def optimal_registrations(weights, transmats, index_a, index_b, cost):
    r"""Optimal plans between the states of model pairs, ties broken by the next step.

    If several plans have the least cost, the one is taken that also brings the *next*
    states closest: the least :math:`\sum_{ij} w_{ij} \, OT(T_a[i], T_b[j])`. Two
    states with equal emissions and different rows are told apart by this alone.

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

    Returns
    -------
    plans : ndarray of shape (n_pairs, n_components, n_components)
        The plans.
    """
    size = weights.shape[1]
    plans = np.empty(cost.shape)
    numbers, nodes = make_workspace(size, size)
    inner_numbers, inner_nodes = make_workspace(size, size)
    ahead, scratch = np.empty((size, size)), np.empty((size, size))
    for n in range(index_a.size):
        a, b = index_a[n], index_b[n]
        solve_transport(weights[a], weights[b], cost[n], plans[n], numbers, nodes)
        if _mark_ties(cost[n], numbers, nodes, ahead):
            _look_ahead(
                transmats[a],
                transmats[b],
                cost[n],
                ahead,
                scratch,
                inner_numbers,
                inner_nodes,
            )
            reprice(ahead, numbers, nodes)
            improve_plan(ahead, plans[n], numbers, nodes)
    return plans


@njit(**KERNEL)
def _mark_ties(cost, numbers, nodes, ahead):
    """Mark by 0 the cells that optimal plans may use, by infinity all others.

    Return whether a cell outside the tree is among them.
    """
    size = cost.shape[0]
    slack = TIE_TOLERANCE * largest_cost(cost, nodes)
    tied = False
    for i in range(size):
        for j in range(size):
            sink = size + j
            ahead[i, j] = np.inf
            if nodes[DEPTH, i] < 0 or nodes[DEPTH, sink] < 0:
                continue
            gap = cost[i, j] - numbers[PRICE, i] - numbers[PRICE, sink]
            if nodes[PARENT, i] == sink or nodes[PARENT, sink] == i:
                ahead[i, j] = 0.0
            elif gap <= slack:
                ahead[i, j] = 0.0
                tied = True
    return tied


@njit(**KERNEL)
def _look_ahead(transmat_a, transmat_b, cost, ahead, scratch, numbers, nodes):
    """Fill the marked cells with the cost between the rows of the next states."""
    for i in range(cost.shape[0]):
        for j in range(cost.shape[1]):
            if ahead[i, j] == 0:
                ahead[i, j] = solve_transport(
                    transmat_a[i], transmat_b[j], cost, scratch, numbers, nodes
                )
