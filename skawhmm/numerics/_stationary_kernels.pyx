"""Stationary distributions of many chains in one loop; see `_stationary`."""

import numpy as np

from skawhmm.utils._interruption cimport interrupted


def stationary_distributions(
    const double[:, :, ::1] transmats, const double[:, ::1] startprobs
):
    """Return the distributions of all chains, of shape (n_models, n_components)."""
    cdef Py_ssize_t size = startprobs.shape[1], n, i
    cdef double[:, ::1] weights = np.empty((startprobs.shape[0], size))
    cdef double[:, ::1] chain = np.empty((size, size))
    cdef double[:, ::1] block = np.empty((size, size))
    cdef double[:, ::1] vectors = np.empty((3, size))
    cdef char[:, ::1] reach = np.empty((size, size), np.int8)
    cdef Py_ssize_t[:, ::1] states = np.empty((2, size), np.intp)
    with nogil:
        for n in range(startprobs.shape[0]):
            interrupted()
            chain[:] = transmats[n]
            vectors[0] = startprobs[n]
            name_classes(chain, reach, states[0])
            eliminate_transient(chain, vectors[0], states[0])
            fill_distribution(chain, vectors, states, block, weights[n])
    return np.asarray(weights)


cdef int name_classes(
    const double[:, ::1] chain, char[:, ::1] reach, Py_ssize_t[::1] closed
) except -1 nogil:
    """Label each state by the first state of its closed class; -1 if transient."""
    cdef Py_ssize_t size = chain.shape[0], i, j, k, first
    cdef bint returns
    for i in range(size):
        for j in range(size):
            reach[i, j] = chain[i, j] > 0 or i == j
    for k in range(size):
        if k % 32 == 31:
            interrupted()
        for i in range(size):
            if reach[i, k]:
                for j in range(size):
                    reach[i, j] |= reach[k, j]
    for i in range(size):
        returns, first = True, size
        for j in range(size):
            if reach[i, j]:
                returns &= reach[j, i]
                first = min(first, j)
        closed[i] = first if returns else -1


cdef int eliminate_transient(
    double[:, ::1] chain, double[::1] mass, const Py_ssize_t[::1] closed
) except -1 nogil:
    """Move the start mass of transient states to the classes they end in."""
    cdef Py_ssize_t size = chain.shape[0], i, j, k
    cdef double leaving, fraction
    for k in range(size):
        if closed[k] >= 0:
            continue
        if k % 32 == 31:
            interrupted()
        leaving = 0.0
        for j in range(size):
            if j != k:
                leaving += chain[k, j]
        for j in range(size):
            if j == k:
                continue
            fraction = chain[k, j] / leaving if leaving > 0 else 0.0
            mass[j] += mass[k] * fraction
            for i in range(size):
                if i != k:
                    chain[i, j] += chain[i, k] * fraction
        mass[k] = 0.0
        for i in range(size):
            chain[i, k] = 0.0


cdef int fill_distribution(
    const double[:, ::1] chain,
    double[:, ::1] vectors,
    Py_ssize_t[:, ::1] states,
    double[:, ::1] block,
    double[::1] weights,
) except -1 nogil:
    """Write the distribution of a chain with closed classes into `weights`.

    The first row of `vectors` is the mass of each state at the start, the first row of
    `states` the class of each; the others are scratch.
    """
    cdef Py_ssize_t size = chain.shape[0], first, i, j, n_states
    cdef double total = 0.0, fraction
    for i in range(size):
        weights[i] = 0.0
        total += vectors[0, i]
    for first in range(size):
        if states[0, first] != first:
            continue
        n_states, fraction = 0, 0.0
        for i in range(size):
            if states[0, i] == first:
                states[1, n_states] = i
                n_states += 1
                fraction += vectors[0, i]
        fraction /= total
        if fraction == 0:
            continue
        for i in range(n_states):
            for j in range(n_states):
                block[i, j] = chain[states[1, i], states[1, j]]
        fill_class(block, n_states, vectors[1], vectors[2])
        for i in range(n_states):
            weights[states[1, i]] = fraction * vectors[2, i]


cdef int fill_class(
    double[:, ::1] block, Py_ssize_t size, double[::1] leaving, double[::1] found
) except -1 nogil:
    """Write the distribution of one closed class into `found`."""
    cdef Py_ssize_t i, j, k
    cdef double fraction, entering, total = 0.0
    leaving[0] = found[0] = 1.0
    for k in range(size - 1, 0, -1):
        if k % 32 == 31:
            interrupted()
        leaving[k] = 0.0
        for j in range(k):
            leaving[k] += block[k, j]
        for j in range(k):
            fraction = block[k, j] / leaving[k] if leaving[k] > 0 else 0.0
            for i in range(k):
                block[i, j] += block[i, k] * fraction
    for k in range(1, size):
        found[k] = 1.0
        entering = 0.0
        for i in range(k):
            entering += found[i] * block[i, k]
        # The largest weight stays one: ratios of tiny probabilities would overflow.
        if entering > leaving[k]:
            for i in range(k):
                found[i] *= leaving[k] / entering
        else:
            found[k] = entering / leaving[k] if leaving[k] > 0 else 0.0
    for k in range(size):
        total += found[k]
    for k in range(size):
        found[k] /= total
