r"""Variational upper bound of the Kullback-Leibler rate between hidden Markov models.

The bound of Hershey, Olsen and Rennie couples the states of the two chains: with
:math:`K_{ij}` the divergence between the emissions of states i and j,

.. math::
    V_{ij} \leftarrow K_{ij} + F_V(T_a[i], T_b[j]) , \qquad
    F_V(\pi, \omega) = \min_{\phi, \psi}
        \sum_{kl} \phi_{kl} \Bigl(\log \frac{\phi_{kl}}{\psi_{kl}} + V_{kl}\Bigr) ,

where :math:`\phi` has row sums :math:`\pi` and :math:`\psi` column sums :math:`\omega`.
The rate is what V grows by a step. It needs no sample. Of a model with an end, which has
a length n, it is :math:`F_V(\pi_a, \pi_b) / n` with V after n - 1 steps.
"""

import numpy as np

from libc.math cimport INFINITY, exp, fabs, log
from libc.string cimport memcpy

cdef extern from *:
    """
    /* Growth of V that is even among states to this share is taken as the rate; of equal
       models it is up to twice this, and taken as 0. */
    #define RATE_TOLERANCE 1e-9
    #define MAX_STEPS 2000

    /* Alternating updates of phi and psi stop when the minimum falls by less than this. */
    #define INNER_TOLERANCE 1e-11
    #define MAX_UPDATES 500

    /* A share that is possible but too small for a number is this: it may grow again,
       and what divides by it is finite. */
    #define LEAST_SHARE 2.2250738585072014e-308
    """
    const double RATE_TOLERANCE
    const int MAX_STEPS
    const double INNER_TOLERANCE
    const int MAX_UPDATES
    const double LEAST_SHARE

cdef struct Chain:
    const double* weights
    const double* transmat

cdef struct Work:
    # V before and after a step, and which pairs of states can occur together.
    double* value
    double* fresh
    unsigned char* pairs
    unsigned char* reached_a
    unsigned char* reached_b
    # Couplings of the rows of each pair of states, one of the weights, column sums.
    double* psi
    double* start
    double* shares
    Py_ssize_t size


def variational_rates(
    weights,
    transmats,
    divergences,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
    const Py_ssize_t[::1] lengths,
):
    """Upper bounds of the divergence rates of models a from models b.

    Parameters
    ----------
    weights : ndarray of shape (n_models, n_components)
        Probabilities of the first state.

    transmats : ndarray of shape (n_models, n_components, n_components)
        Transition matrices.

    divergences : ndarray of shape (n_pairs, n_components, n_components)
        Divergences of the states of a from those of b.

    index_a, index_b : ndarray of shape (n_pairs,)
        The models of each pair.

    lengths : ndarray of shape (n_models,)
        Lengths of the sequences of models with an end; 0 if sequences never end.

    Returns
    -------
    rates : ndarray of shape (n_pairs,)
        The bounds, infinite where the supports of the models differ.
    """
    cdef const double[:, ::1] laws = np.ascontiguousarray(weights)
    cdef const double[:, :, ::1] chains = np.ascontiguousarray(transmats)
    cdef const double[:, :, ::1] costs = np.ascontiguousarray(divergences)
    cdef Py_ssize_t size = laws.shape[1], n
    cdef double[:, :, :, ::1] psi = np.empty((size, size, size, size))
    cdef double[:, :, ::1] values = np.empty((3, size, size))
    cdef double[::1] shares = np.empty(size)
    cdef unsigned char[:, ::1] flags = np.empty((size + 2, size), np.uint8)
    cdef double[::1] rates = np.empty(index_a.shape[0])
    cdef Work work
    cdef Chain a, b
    work.value, work.fresh = &values[0, 0, 0], &values[1, 0, 0]
    work.reached_a, work.reached_b, work.pairs = &flags[0, 0], &flags[1, 0], &flags[2, 0]
    work.psi, work.start, work.shares = &psi[0, 0, 0, 0], &values[2, 0, 0], &shares[0]
    work.size = size
    with nogil:
        for n in range(rates.shape[0]):
            a.weights, a.transmat = &laws[index_a[n], 0], &chains[index_a[n], 0, 0]
            b.weights, b.transmat = &laws[index_b[n], 0], &chains[index_b[n], 0, 0]
            rates[n] = rate(&a, &b, &costs[n, 0, 0], lengths[index_a[n]], &work)
    return np.asarray(rates)


cdef double rate(
    const Chain* a,
    const Chain* b,
    const double* divergence,
    Py_ssize_t length,
    Work* work,
) noexcept nogil:
    """Grow V until it grows evenly.

    Each step goes half way only, so that periodic chains settle too; the growth is
    measured over a whole step. Where chains fall into parts that grow unevenly, the
    weights say how much of each part there is.
    """
    cdef Py_ssize_t size = work.size, n_cells = work.size * work.size, i
    cdef double least, after, before
    cdef int steps
    fill_reached(a, size, work.reached_a)
    fill_reached(b, size, work.reached_b)
    for i in range(n_cells):
        work.pairs[i] = work.reached_a[i // size] and work.reached_b[i % size]
        work.value[i] = divergence[i] if work.pairs[i] else INFINITY
        fill_outer(
            a.transmat + i // size * size, b.transmat + i % size * size, size,
            work.psi + i * n_cells,
        )
    if least_of(work.value, n_cells) == INFINITY:
        return INFINITY
    if length > 0:
        return mean_growth(a, b, divergence, length, work)
    memcpy(work.fresh, work.value, n_cells * sizeof(double))
    for steps in range(MAX_STEPS):
        # Only differences of V matter: near 0 it keeps its digits.
        least = least_of(work.fresh, n_cells)
        for i in range(n_cells):
            work.value[i] = 0.5 * (work.value[i] + work.fresh[i]) - least
        if grow(a, b, divergence, work):
            break
    if least_of(work.fresh, n_cells) == INFINITY:
        return INFINITY
    after = from_start(a, b, work.fresh, work)
    if after == INFINITY:
        return INFINITY
    before = from_start(a, b, work.value, work)
    return after - before if after - before > 2 * RATE_TOLERANCE else 0.0


cdef double mean_growth(
    const Chain* a,
    const Chain* b,
    const double* divergence,
    Py_ssize_t length,
    Work* work,
) noexcept nogil:
    """What V grows by a step on average, over sequences of one length.

    Once V grows evenly, the steps that are left add what one step adds.
    """
    cdef Py_ssize_t size = work.size, n_cells = work.size * work.size
    cdef Py_ssize_t left = length - 1, steps
    cdef double total
    memcpy(work.fresh, work.value, n_cells * sizeof(double))
    for steps in range(min(left, MAX_STEPS)):
        if grow(a, b, divergence, work):
            break
        memcpy(work.value, work.fresh, n_cells * sizeof(double))
        left -= 1
    total = from_start(a, b, work.value, work)
    if left > 0 and total < INFINITY:
        grow(a, b, divergence, work)
        total += left * (from_start(a, b, work.fresh, work) - total)
    return total / length if total > 2 * RATE_TOLERANCE * length else 0.0


cdef double from_start(
    const Chain* a, const Chain* b, const double* value, Work* work
) noexcept nogil:
    """Couple the first states of both chains, given V."""
    fill_outer(a.weights, b.weights, work.size, work.start)
    return coupled_divergence(
        a.weights, b.weights, value, work.size, work.start, work.shares
    )


cdef void fill_reached(
    const Chain* chain, Py_ssize_t size, unsigned char* reached
) noexcept nogil:
    """Whether a path may come to each state; padding is never reached."""
    cdef Py_ssize_t rounds, i, j
    for i in range(size):
        reached[i] = chain.weights[i] > 0
    for rounds in range(size):
        for i in range(size):
            if reached[i]:
                for j in range(size):
                    reached[j] |= chain.transmat[i * size + j] > 0


cdef inline void fill_outer(
    const double* row_a, const double* row_b, Py_ssize_t size, double* outer
) noexcept nogil:
    cdef Py_ssize_t k, m
    for k in range(size):
        for m in range(size):
            if row_a[k] > 0 and row_b[m] > 0:
                outer[k * size + m] = max(row_a[k] * row_b[m], LEAST_SHARE)
            else:
                outer[k * size + m] = 0.0


cdef inline double least_of(const double* values, Py_ssize_t size) noexcept nogil:
    cdef double least = INFINITY
    cdef Py_ssize_t i
    for i in range(size):
        least = min(least, values[i])
    return least


cdef bint grow(
    const Chain* a, const Chain* b, const double* divergence, Work* work
) noexcept nogil:
    """Fill V after a step from V before; return whether it grew evenly, or nowhere."""
    cdef Py_ssize_t size = work.size, i
    cdef double low = INFINITY, high = -INFINITY, growth
    for i in range(size * size):
        if not work.pairs[i]:
            continue
        work.fresh[i] = divergence[i] + coupled_divergence(
            a.transmat + i // size * size, b.transmat + i % size * size, work.value,
            size, work.psi + i * size * size, work.shares,
        )
        if work.fresh[i] < INFINITY:
            growth = work.fresh[i] - work.value[i]
            low, high = min(low, growth), max(high, growth)
    if high == -INFINITY:
        return True
    return high - low <= RATE_TOLERANCE * max(fabs(high), 1.0)


cdef double coupled_divergence(
    const double* row_a,
    const double* row_b,
    const double* value,
    Py_ssize_t size,
    double* psi,
    double* shares,
) noexcept nogil:
    """Minimum F of the coupled divergence of two rows; `psi` starts and ends there."""
    cdef Py_ssize_t k, m
    cdef double before = INFINITY, total = 0.0, least, mass
    cdef double* row
    cdef const double* values
    cdef int updates
    for updates in range(MAX_UPDATES):
        total = 0.0
        for k in range(size):
            row, values = psi + k * size, value + k * size
            if row_a[k] <= 0:
                for m in range(size):
                    row[m] = 0.0
                continue
            least = INFINITY
            for m in range(size):
                if row[m] > 0:
                    least = min(least, values[m])
            if least == INFINITY:
                return INFINITY
            mass = 0.0
            for m in range(size):
                if values[m] == INFINITY:
                    row[m] = 0.0
                elif row[m] > 0:
                    # The best phi given psi stands in its place.
                    row[m] = max(row[m] * exp(least - values[m]), LEAST_SHARE)
                    mass += row[m]
            total += row_a[k] * (log(row_a[k] / mass) + least)
            for m in range(size):
                if row[m] > 0:
                    row[m] = max(row[m] * (row_a[k] / mass), LEAST_SHARE)
        for m in range(size):
            shares[m] = 0.0
        for k in range(size):
            for m in range(size):
                shares[m] += psi[k * size + m]
        for k in range(size):
            row = psi + k * size
            for m in range(size):
                if row[m] > 0:
                    # In this order nothing is above 1, however small the shares are.
                    row[m] = max(row[m] / shares[m] * row_b[m], LEAST_SHARE)
        if before - total <= INNER_TOLERANCE * max(fabs(total), 1.0):
            break
        before = total
    return total
