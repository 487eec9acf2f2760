"""Sums over the models of many centres in one loop; see `_averaging`."""

import numpy as np

from skawhmm.distances._components cimport carry_chain, conditionals
from skawhmm.numerics._transport cimport Tree, least_cost, tree_of
from skawhmm.utils._interruption cimport interrupted

from skawhmm.numerics._transport import make_workspace


def priced_weights(
    weights,
    model_weights,
    const Py_ssize_t[::1] labels,
    const double[::1] fractions,
    const double[:, :, ::1] cost,
):
    """Return the objective of each centre, and its slope in the weights of the centre.

    Parameters
    ----------
    weights : ndarray of shape (n_centers, n_components)
        Weights of the centres.

    model_weights : ndarray of shape (n_models, n_components)
        Weights of the models.

    labels, fractions : ndarray of shape (n_models,)
        The centre of each model, and its weight in the average.

    cost : ndarray of shape (n_models, n_components, n_components)
        Squared costs from the states of the centre to the states of the model.

    Returns
    -------
    values : ndarray of shape (n_centers,)
        Mean costs of optimal plans.

    slopes : ndarray of shape (n_centers, n_components)
        Mean prices of the states, up to a constant for each centre.
    """
    cdef const double[:, ::1] masses = np.ascontiguousarray(weights)
    cdef const double[:, ::1] pair_distributions = np.ascontiguousarray(model_weights)
    cdef int size = <int>masses.shape[1], i
    cdef Py_ssize_t n, center
    cdef double total
    numbers, nodes = make_workspace(size, size)
    cdef Tree tree = tree_of(numbers, nodes)
    cdef double[:, ::1] plan = np.empty((size, size))
    cdef double[::1] values = np.zeros(masses.shape[0])
    cdef double[:, ::1] slopes = np.zeros((masses.shape[0], size))
    with nogil:
        for n in range(labels.shape[0]):
            interrupted()
            center = labels[n]
            total = least_cost(
                &masses[center, 0], &pair_distributions[n, 0], &cost[n, 0, 0], size, size,
                &plan[0, 0], &tree,
            )
            values[center] += fractions[n] * total
            for i in range(size):
                if masses[center, i] > 0:
                    slopes[center, i] += fractions[n] * tree.price[i]
    return np.asarray(values), np.asarray(slopes)


def averaged_chains(
    const double[:, :, ::1] plans,
    transmats,
    startprobs,
    const Py_ssize_t[::1] labels,
    const double[::1] fractions,
    weights,
):
    """Return the mean of chains transferred to the states of their centres.

    The two ends of a step are transferred jointly, so that the mean of chains that
    stay in their states does, too.

    Parameters
    ----------
    plans : ndarray of shape (n_models, n_components, n_components)
        Plans from the centre of each model to the model.

    transmats : ndarray of shape (n_models, n_components, n_components)
        Transition matrices of the models.

    startprobs : ndarray of shape (n_models, n_components)
        Start probabilities of the models.

    labels, fractions : ndarray of shape (n_models,)
        The centre of each model, and its weight in the average.

    weights : ndarray of shape (n_centers, n_components)
        Weights of the centres.

    Returns
    -------
    chains : ndarray of shape (n_centers, n_components, n_components)
        Transition matrices of the centres. States without weight loop.

    starts : ndarray of shape (n_centers, n_components)
        Start probabilities of the centres: the weights, where no model starts in a
        state that has weight.
    """
    cdef const double[:, :, ::1] steps = np.ascontiguousarray(transmats)
    cdef const double[:, ::1] first = np.ascontiguousarray(startprobs)
    cdef const double[:, ::1] masses = np.ascontiguousarray(weights)
    cdef int size = <int>masses.shape[1]
    cdef Py_ssize_t n_centers = masses.shape[0], n, i, j, k
    cdef double[:, :, ::1] matrices = np.empty((4, size, size))
    cdef double[:, ::1] back = matrices[1], moved = matrices[3]
    cdef double[:, :, ::1] chains = np.zeros((n_centers, size, size))
    cdef double[:, ::1] starts = np.zeros((n_centers, size))
    with nogil:
        for n in range(plans.shape[0]):
            interrupted()
            k = labels[n]
            conditionals(&plans[n, 0, 0], size, &matrices[0, 0, 0], &back[0, 0])
            carry_chain(
                &matrices[0, 0, 0], &steps[n, 0, 0], &back[0, 0], size, True,
                &matrices[2, 0, 0], &moved[0, 0],
            )
            for i in range(size):
                for j in range(size):
                    chains[k, i, j] += fractions[n] * moved[i, j]
            for j in range(size):
                for i in range(size):
                    starts[k, i] += fractions[n] * first[n, j] * back[j, i]
        for k in range(n_centers):
            if not normalise(starts[k]):
                starts[k] = masses[k]
            for i in range(size):
                if not normalise(chains[k, i]):
                    chains[k, i, i] = 1.0
    return np.asarray(chains), np.asarray(starts)


cdef bint normalise(double[::1] row) noexcept nogil:
    """Scale a row to sum to one; return whether its sum is positive, as it must be."""
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(row.shape[0]):
        total += row[i]
    if total > 0:
        for i in range(row.shape[0]):
            row[i] /= total
    return total > 0
