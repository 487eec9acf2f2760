"""Costs and divergences between states that emit symbols; see `_categorical`."""

import numpy as np

from libc.math cimport fabs, log

from skawhmm.numerics._transport cimport Tree, least_cost, tree_of
from skawhmm.utils._interruption cimport interrupted

from skawhmm.numerics._transport import make_workspace


def squared_variations(
    states, const Py_ssize_t[::1] index_a, const Py_ssize_t[::1] index_b
):
    """Squared total variation between the states of model pairs.

    It is the least mass that has to move if all symbols are equally far apart.

    Parameters
    ----------
    states : ndarray of shape (n_models, n_components, n_symbols)
        Probabilities of the symbols; a row of zeros is padding.

    index_a, index_b : ndarray of int of shape (n_pairs,)
        The models of each pair.

    Returns
    -------
    cost : ndarray of shape (n_pairs, n_components, n_components)
        Squares; 0 where a state is padding.
    """
    cdef const double[:, :, ::1] probs = np.ascontiguousarray(states)
    cdef Py_ssize_t size = probs.shape[1], n_symbols = probs.shape[2]
    cdef Py_ssize_t n, i, j, s
    cdef const double* row
    cdef const double* other
    cdef double total
    cdef double[:, :, ::1] cost = np.zeros((index_a.shape[0], size, size))
    with nogil:
        for n in range(index_a.shape[0]):
            for i in range(size):
                if i % 8 == 0:
                    interrupted()
                row = &probs[index_a[n], i, 0]
                if is_padding(row, n_symbols):
                    continue
                for j in range(size):
                    other = &probs[index_b[n], j, 0]
                    if is_padding(other, n_symbols):
                        continue
                    total = 0.0
                    for s in range(n_symbols):
                        total += fabs(row[s] - other[s])
                    cost[n, i, j] = (0.5 * total) * (0.5 * total)
    return np.asarray(cost)


cdef inline bint is_padding(const double* row, Py_ssize_t n_symbols) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t s
    for s in range(n_symbols):
        total += row[s]
    return total == 0


cdef struct Masses:
    # The masses of two states that are not 0, the symbols they belong to, and scratch.
    double* supply
    double* demand
    double* cost
    double* plan
    int* sources
    int* sinks
    Tree tree


def squared_transports(
    states,
    symbol_costs,
    bint is_metric,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
):
    """Squared transport costs between the states of model pairs.

    Parameters
    ----------
    states : ndarray of shape (n_models, n_components, n_symbols)
        Probabilities of the symbols; a row of zeros is padding.

    symbol_costs : ndarray of shape (n_symbols, n_symbols)
        Distances between symbols.

    is_metric : bool
        Whether the costs satisfy the triangle inequality. Mass that two states have in
        common then stays in place.

    index_a, index_b : ndarray of int of shape (n_pairs,)
        The models of each pair.

    Returns
    -------
    cost : ndarray of shape (n_pairs, n_components, n_components)
        Squares; 0 where a state is padding.
    """
    cdef const double[:, :, ::1] probs = np.ascontiguousarray(states)
    cdef const double[:, ::1] table = np.ascontiguousarray(symbol_costs)
    cdef Py_ssize_t size = probs.shape[1], n, i, j
    cdef int n_symbols = <int>probs.shape[2]
    cdef const double* row
    cdef const double* other
    cdef double total
    numbers, nodes = make_workspace(n_symbols, n_symbols)
    cdef double[::1] amounts = np.empty(2 * n_symbols * (1 + n_symbols))
    cdef int[::1] symbols = np.empty(2 * n_symbols, np.intc)
    cdef Masses masses
    masses.supply, masses.demand = &amounts[0], &amounts[n_symbols]
    masses.cost = &amounts[2 * n_symbols]
    masses.plan = masses.cost + n_symbols * n_symbols
    masses.sources, masses.sinks = &symbols[0], &symbols[n_symbols]
    masses.tree = tree_of(numbers, nodes)
    cdef double[:, :, ::1] cost = np.zeros((index_a.shape[0], size, size))
    with nogil:
        for n in range(index_a.shape[0]):
            for i in range(size):
                if i % 8 == 0:
                    interrupted()
                row = &probs[index_a[n], i, 0]
                if is_padding(row, n_symbols):
                    continue
                for j in range(size):
                    other = &probs[index_b[n], j, 0]
                    if is_padding(other, n_symbols):
                        continue
                    total = moving_cost(
                        row, other, &table[0, 0], n_symbols, is_metric, &masses
                    )
                    cost[n, i, j] = total * total
    return np.asarray(cost)


cdef double moving_cost(
    const double* row,
    const double* other,
    const double* symbol_costs,
    int n_symbols,
    bint is_metric,
    const Masses* masses,
) except? -1.0 nogil:
    """Cost of transport between two states; if costs are a metric, common mass stays."""
    cdef int n_sources = 0, n_sinks = 0, i, j, s
    cdef double common
    for s in range(n_symbols):
        common = min(row[s], other[s]) if is_metric else 0.0
        if row[s] - common > 0:
            masses.supply[n_sources] = row[s] - common
            masses.sources[n_sources] = s
            n_sources += 1
        if other[s] - common > 0:
            masses.demand[n_sinks] = other[s] - common
            masses.sinks[n_sinks] = s
            n_sinks += 1
    if n_sources == 0 or n_sinks == 0:
        return 0.0
    for i in range(n_sources):
        for j in range(n_sinks):
            masses.cost[i * n_sinks + j] = symbol_costs[
                masses.sources[i] * n_symbols + masses.sinks[j]
            ]
    return least_cost(
        masses.supply, masses.demand, masses.cost, n_sources, n_sinks, masses.plan,
        &masses.tree,
    )


def state_divergences(
    states, const Py_ssize_t[::1] index_a, const Py_ssize_t[::1] index_b
):
    """Kullback-Leibler divergences between the states of model pairs.

    The parameters are those of `squared_variations`.

    Returns
    -------
    divergences : ndarray of shape (n_pairs, n_components, n_components)
        Infinite where a state of a emits a symbol that the state of b never emits.
    """
    cdef const double[:, :, ::1] probs = np.ascontiguousarray(states)
    cdef Py_ssize_t size = probs.shape[1], n, i, j, s
    cdef const double* row
    cdef const double* other
    cdef double total
    cdef double[:, :, ::1] divergences = np.empty((index_a.shape[0], size, size))
    with nogil:
        for n in range(index_a.shape[0]):
            for i in range(size):
                if i % 8 == 0:
                    interrupted()
                row = &probs[index_a[n], i, 0]
                for j in range(size):
                    other = &probs[index_b[n], j, 0]
                    total = 0.0
                    for s in range(probs.shape[2]):
                        if row[s] > 0:
                            total += row[s] * log(row[s] / other[s])
                    # Rounding can push the divergence of equal states below zero.
                    divergences[n, i, j] = max(total, 0.0)
    return np.asarray(divergences)
