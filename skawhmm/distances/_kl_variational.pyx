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

from skawhmm.utils._interruption cimport interrupted

cdef extern from *:
    """
    /* Growth of V that is even among states to this fraction is taken as the rate; of equal
       models it is up to twice this, and taken as 0. */
    #define RATE_TOLERANCE 1e-9
    #define MAX_STEPS 2000

    /* Alternating updates of phi and psi stop when the minimum falls by less than this. */
    #define INNER_TOLERANCE 1e-11
    #define MAX_UPDATES 500

    /* A fraction that is possible but too small for a number is this: it may grow again,
       and what divides by it is finite. */
    #define LEAST_FRACTION 2.2250738585072014e-308

    /* Couplings of all pairs of states go on where they were in the step before, if they
       are no more than this many numbers; with more states they start anew. */
    #define KEPT_SHARES (1 << 24)
    """
    const double RATE_TOLERANCE
    const int MAX_STEPS
    const double INNER_TOLERANCE
    const int MAX_UPDATES
    const double LEAST_FRACTION
    const Py_ssize_t KEPT_SHARES

cdef struct Chain:
    # The states that a path may come to, one after the other.
    double* weights
    double* transmat
    Py_ssize_t size


cdef struct Work:
    # Divergences of states; V before and after a step; how much less each V before is
    # likely than the least of its row, and these.
    double* divergence
    double* value
    double* fresh
    double* likely
    double* least
    # Couplings of the rows of each pair of states, or of one pair; one of the weights;
    # column sums.
    double* psi
    double* start
    double* fractions


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
        Divergences of the states of a from the states of b.

    index_a, index_b : ndarray of shape (n_pairs,)
        The models of each pair.

    lengths : ndarray of shape (n_models,)
        Lengths of the sequences of models with an end; 0 if sequences never end.

    Returns
    -------
    rates : ndarray of shape (n_pairs,)
        The bounds, infinite where the supports of the models differ.
    """
    cdef const double[:, ::1] probs = np.ascontiguousarray(weights)
    cdef const double[:, :, ::1] chains = np.ascontiguousarray(transmats)
    cdef const double[:, :, ::1] costs = np.ascontiguousarray(divergences)
    cdef Py_ssize_t size = probs.shape[1], n
    cdef const Py_ssize_t[:, ::1] reached = reached_states(probs, chains, index_a, index_b)
    cdef double[:, :, ::1] matrices = np.empty((7, size, size))
    cdef double[:, ::1] vectors = np.empty((4, size))
    cdef double[::1] psi = make_couplings(reached, index_a, index_b)
    cdef double[::1] rates = np.empty(index_a.shape[0])
    cdef Work work
    cdef Chain a, b
    a.weights, a.transmat = &vectors[0, 0], &matrices[0, 0, 0]
    b.weights, b.transmat = &vectors[1, 0], &matrices[1, 0, 0]
    work.divergence, work.likely = &matrices[2, 0, 0], &matrices[3, 0, 0]
    work.value, work.fresh = &matrices[4, 0, 0], &matrices[5, 0, 0]
    work.start, work.psi = &matrices[6, 0, 0], &psi[0]
    work.least, work.fractions = &vectors[2, 0], &vectors[3, 0]
    with nogil:
        for n in range(rates.shape[0]):
            interrupted()
            take_chain(probs[index_a[n]], chains[index_a[n]], reached[index_a[n]], &a)
            take_chain(probs[index_b[n]], chains[index_b[n]], reached[index_b[n]], &b)
            take_costs(
                costs[n], reached[index_a[n]], reached[index_b[n]], work.divergence
            )
            rates[n] = rate(&a, &b, lengths[index_a[n]], &work)
    return np.asarray(rates)


cdef reached_states(
    const double[:, ::1] probs,
    const double[:, :, ::1] chains,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
):
    """Return how many states a path of each model may come to, then which.

    Padding is never reached. Models that are in no pair are left out.
    """
    cdef Py_ssize_t size = probs.shape[1], m, i
    cdef Py_ssize_t[:, ::1] reached = np.zeros((probs.shape[0], size + 1), np.intp)
    cdef Py_ssize_t[::1] used = np.union1d(index_a, index_b).astype(np.intp)
    cdef unsigned char[::1] known = np.empty(size, np.uint8)
    cdef Py_ssize_t n
    with nogil:
        for n in range(used.shape[0]):
            m = used[n]
            fill_reached(probs[m], chains[m], known)
            for i in range(size):
                if known[i]:
                    reached[m, 0] += 1
                    reached[m, reached[m, 0]] = i
    return np.asarray(reached)


cdef int fill_reached(
    const double[::1] weights, const double[:, ::1] transmat, unsigned char[::1] reached
) except -1 nogil:
    """Whether a path may come to each state."""
    cdef Py_ssize_t size = weights.shape[0], rounds, i, j
    for i in range(size):
        reached[i] = weights[i] > 0
    for rounds in range(size):
        interrupted()
        for i in range(size):
            if reached[i]:
                for j in range(size):
                    reached[j] |= transmat[i, j] > 0


cdef make_couplings(reached, index_a, index_b):
    """Return room for the couplings of all pairs of states, if they are kept, or one."""
    counts = np.asarray(reached)[:, 0]
    n_cells = np.append(counts[index_a] * counts[index_b], 1)
    kept = np.where(is_kept(n_cells), n_cells, 1) * n_cells
    return np.empty(kept.max())


cdef is_kept(n_cells):
    return n_cells * n_cells <= KEPT_SHARES


cdef void take_chain(
    const double[::1] weights,
    const double[:, ::1] transmat,
    const Py_ssize_t[::1] reached,
    Chain* chain,
) noexcept nogil:
    """Copy the states of a chain that are reached."""
    cdef Py_ssize_t size = reached[0], i, j
    chain.size = size
    for i in range(size):
        chain.weights[i] = weights[reached[i + 1]]
        for j in range(size):
            chain.transmat[i * size + j] = transmat[reached[i + 1], reached[j + 1]]


cdef void take_costs(
    const double[:, ::1] costs,
    const Py_ssize_t[::1] reached_a,
    const Py_ssize_t[::1] reached_b,
    double* taken,
) noexcept nogil:
    """Copy the divergences between states that are reached."""
    cdef Py_ssize_t size = reached_b[0], i, j
    for i in range(reached_a[0]):
        for j in range(size):
            taken[i * size + j] = costs[reached_a[i + 1], reached_b[j + 1]]


cdef double rate(
    const Chain* a, const Chain* b, Py_ssize_t length, Work* work
) except? -1.0 nogil:
    """Grow V until it grows evenly.

    Each step goes half way only, so that periodic chains settle too; the growth is
    measured over a whole step. Where chains fall into parts that grow unevenly, the
    weights say how much of each part there is.
    """
    cdef Py_ssize_t n_cells = a.size * b.size, i
    cdef bint kept = n_cells * n_cells <= KEPT_SHARES
    cdef double least, after, before
    cdef int steps
    memcpy(work.value, work.divergence, n_cells * sizeof(double))
    memcpy(work.fresh, work.divergence, n_cells * sizeof(double))
    if kept:
        for i in range(n_cells):
            fill_outer(
                a.transmat + i // b.size * a.size, b.transmat + i % b.size * b.size,
                a.size, b.size, work.psi + i * n_cells,
            )
    if least_of(work.value, n_cells) == INFINITY:
        return INFINITY
    if length > 0:
        return mean_growth(a, b, length, kept, work)
    for steps in range(MAX_STEPS):
        # Only differences of V matter: near 0 it keeps its digits.
        least = least_of(work.fresh, n_cells)
        for i in range(n_cells):
            work.value[i] = 0.5 * (work.value[i] + work.fresh[i]) - least
        if grow(a, b, kept, work):
            break
    if least_of(work.fresh, n_cells) == INFINITY:
        return INFINITY
    before = coupled_weights(a, b, work.value, work)
    after = coupled_weights(a, b, work.fresh, work)
    if after == INFINITY:
        return INFINITY
    return after - before if after - before > 2 * RATE_TOLERANCE else 0.0


cdef double mean_growth(
    const Chain* a, const Chain* b, Py_ssize_t length, bint kept, Work* work
) except? -1.0 nogil:
    """What V grows by a step on average, over sequences of one length.

    Once V grows evenly, the steps that are left add what one step adds.
    """
    cdef Py_ssize_t n_cells = a.size * b.size, left = length - 1, steps
    cdef double total
    for steps in range(min(left, MAX_STEPS)):
        if grow(a, b, kept, work):
            break
        memcpy(work.value, work.fresh, n_cells * sizeof(double))
        left -= 1
    total = coupled_weights(a, b, work.value, work)
    if left > 0 and total < INFINITY:
        grow(a, b, kept, work)
        total += left * (coupled_weights(a, b, work.fresh, work) - total)
    return total / length if total > 2 * RATE_TOLERANCE * length else 0.0


cdef inline void fill_outer(
    const double* row_a,
    const double* row_b,
    Py_ssize_t size_a,
    Py_ssize_t size_b,
    double* outer,
) noexcept nogil:
    cdef Py_ssize_t k, m
    for k in range(size_a):
        for m in range(size_b):
            if row_a[k] > 0 and row_b[m] > 0:
                outer[k * size_b + m] = max(row_a[k] * row_b[m], LEAST_FRACTION)
            else:
                outer[k * size_b + m] = 0.0


cdef inline double least_of(const double* values, Py_ssize_t size) noexcept nogil:
    cdef double least = INFINITY
    cdef Py_ssize_t i
    for i in range(size):
        least = min(least, values[i])
    return least


cdef bint grow(
    const Chain* a, const Chain* b, bint kept, Work* work
) except -1 nogil:
    """Fill V after a step from V before; return whether it grew evenly, or nowhere."""
    cdef Py_ssize_t n_cells = a.size * b.size, i
    cdef const double* row_a
    cdef const double* row_b
    cdef double* psi
    cdef double low = INFINITY, high = -INFINITY, growth
    fill_likely(work.value, a.size, b.size, work)
    for i in range(n_cells):
        row_a = a.transmat + i // b.size * a.size
        row_b = b.transmat + i % b.size * b.size
        psi = work.psi + (i * n_cells if kept else 0)
        if not kept:
            fill_outer(row_a, row_b, a.size, b.size, psi)
        work.fresh[i] = work.divergence[i] + coupled_divergence(
            row_a, row_b, work.value, a.size, b.size, psi, work
        )
        if work.fresh[i] < INFINITY:
            growth = work.fresh[i] - work.value[i]
            low, high = min(low, growth), max(high, growth)
    if high == -INFINITY:
        return True
    return high - low <= RATE_TOLERANCE * max(fabs(high), 1.0)


cdef double coupled_weights(
    const Chain* a, const Chain* b, const double* value, Work* work
) except? -1.0 nogil:
    """F of the weights of two chains."""
    fill_outer(a.weights, b.weights, a.size, b.size, work.start)
    fill_likely(value, a.size, b.size, work)
    return coupled_divergence(
        a.weights, b.weights, value, a.size, b.size, work.start, work
    )


cdef void fill_likely(
    const double* value, Py_ssize_t size_a, Py_ssize_t size_b, Work* work
) noexcept nogil:
    """Fill the least value of each row, and exponentials of what others are above it.

    They serve all pairs of states and all updates.
    """
    cdef Py_ssize_t k, m
    for k in range(size_a):
        work.least[k] = least_of(value + k * size_b, size_b)
        for m in range(size_b):
            work.likely[k * size_b + m] = exp(work.least[k] - value[k * size_b + m])


cdef double coupled_divergence(
    const double* row_a,
    const double* row_b,
    const double* value,
    Py_ssize_t size_a,
    Py_ssize_t size_b,
    double* psi,
    Work* work,
) except? -1.0 nogil:
    """Minimum F of the coupled divergence of two rows; `psi` starts and ends there."""
    cdef Py_ssize_t k, m
    cdef double before = INFINITY, total = 0.0, least, mass, fraction
    cdef double* fractions = work.fractions
    cdef double* row
    cdef const double* values
    cdef int updates
    for updates in range(MAX_UPDATES):
        if updates % 16 == 0:
            interrupted()
        total = 0.0
        for m in range(size_b):
            fractions[m] = 0.0
        for k in range(size_a):
            row, values = psi + k * size_b, value + k * size_b
            if row_a[k] <= 0:
                continue
            least = INFINITY
            for m in range(size_b):
                if row[m] > 0:
                    least = min(least, values[m])
            if least == INFINITY:
                return INFINITY
            mass = 0.0
            for m in range(size_b):
                if values[m] == INFINITY:
                    row[m] = 0.0
                elif row[m] > 0:
                    # The best phi given psi stands in its place.
                    fraction = (
                        work.likely[k * size_b + m] if least == work.least[k]
                        else exp(least - values[m])
                    )
                    row[m] = max(row[m] * fraction, LEAST_FRACTION)
                    mass += row[m]
            total += row_a[k] * (log(row_a[k] / mass) + least)
            for m in range(size_b):
                if row[m] > 0:
                    row[m] = max(row[m] * (row_a[k] / mass), LEAST_FRACTION)
                    fractions[m] += row[m]
        for k in range(size_a):
            row = psi + k * size_b
            for m in range(size_b):
                if row[m] > 0:
                    # In this order nothing is above 1, however small the fractions are.
                    row[m] = max(row[m] / fractions[m] * row_b[m], LEAST_FRACTION)
        if before - total <= INNER_TOLERANCE * max(fabs(total), 1.0):
            break
        before = total
    return total
