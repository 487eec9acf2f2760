"""Start and transition probabilities of many models in one loop; see `_em`."""

import numpy as np

from libc.math cimport log

from skawhmm.utils._interruption cimport interrupted

cdef extern from *:
    """
    /* A state with less than this many expected moves keeps its row. */
    #define EMPTY_COUNT 1e-8
    /* Transition probabilities below this are 0: their powers would leave the range. */
    #define LEAST_TRANSITION 1e-100
    """
    const double EMPTY_COUNT
    const double LEAST_TRANSITION


def update_chains(
    expected,
    const Py_ssize_t[::1] rows,
    chains,
    priors,
    Py_ssize_t n_mix,
    double relevance,
    const Py_ssize_t[::1] active,
):
    """Start and transition probabilities of the M step of several models, in place.

    Parameters
    ----------
    expected : tuple of ndarray
        Starts and moves, with a leading axis.

    rows, active : ndarray of int of shape (n_active,)
        Which rows of them belong to which models.

    chains, priors : tuple of ndarray
        Start and transition probabilities of a stack of models, changed in place; and
        what they shrink to, one for each or one for all.

    n_mix : int
        Gaussians per state, which are entered in fixed proportions.

    relevance : float
        Weight of the prior, in starts and steps per state.
    """
    cdef const double[:, ::1] starts = expected[0]
    cdef const double[:, :, ::1] moves = expected[1]
    cdef double[:, ::1] startprobs = chains[0]
    cdef double[:, :, ::1] transmats = chains[1]
    cdef const double[:, ::1] prior_starts = priors[0]
    cdef const double[:, :, ::1] prior_moves = priors[1]
    cdef Py_ssize_t size = startprobs.shape[1], n, m, row, prior
    cdef double[::1] scratch = np.empty(chain_size(size))
    with nogil:
        for n in range(rows.shape[0]):
            interrupted()
            m, row = active[n], rows[n]
            prior = min(m, prior_starts.shape[0] - 1)
            update_chain(
                &starts[row, 0], &moves[row, 0, 0], &prior_starts[prior, 0],
                &prior_moves[prior, 0, 0], size, n_mix, relevance, &startprobs[m, 0],
                &transmats[m, 0, 0], &scratch[0],
            )


cdef Py_ssize_t chain_size(Py_ssize_t n_components) noexcept nogil:
    """Length of the scratch that `update_chain` needs."""
    return n_components * (n_components + 2)


cdef void update_chain(
    const double* starts,
    const double* moves,
    const double* prior_starts,
    const double* prior_moves,
    Py_ssize_t size,
    Py_ssize_t n_mix,
    double relevance,
    double* startprob,
    double* transmat,
    double* scratch,
) noexcept nogil:
    """Start and transition probabilities of the M step of one model."""
    cdef double* counts = scratch
    # The start is the last row.
    cdef double* firsts = counts + size * size
    cdef Py_ssize_t i, j
    for j in range(size):
        firsts[j] = starts[j] + relevance * prior_starts[j]
    for i in range(size * size):
        counts[i] = moves[i] + relevance * prior_moves[i]
    if n_mix > 1:
        tie_mixtures(counts, size, n_mix, firsts + size)
    for i in range(size):
        fill_distribution(counts + i * size, size, True, transmat + i * size)
    fill_distribution(firsts, size, False, startprob)


cdef double chain_log_prior(
    const double* probabilities, const double* prior, Py_ssize_t size
) noexcept nogil:
    """Log prior of start or transition probabilities, per step of relevance."""
    cdef double value = 0.0
    cdef Py_ssize_t i
    for i in range(size):
        if prior[i] > 0:
            value += prior[i] * log(max(probabilities[i], LEAST_TRANSITION))
    return value


cdef void fill_distribution(
    const double* counts, Py_ssize_t size, bint may_stay, double* probabilities
) noexcept nogil:
    """Fill in the fractions of counts; if these are too few, the old ones may stay."""
    cdef double total = 0.0, kept = 0.0
    cdef Py_ssize_t j
    for j in range(size):
        total += counts[j]
    for j in range(size):
        if not (may_stay and total < EMPTY_COUNT):
            probabilities[j] = counts[j] / total
        if probabilities[j] < LEAST_TRANSITION:
            probabilities[j] = 0.0
        kept += probabilities[j]
    for j in range(size):
        probabilities[j] /= kept


cdef void tie_mixtures(
    double* counts, Py_ssize_t size, Py_ssize_t n_mix, double* portions
) noexcept nogil:
    """Change counts to what they are if components are entered in fixed proportions.

    The rows are those of the components, and the start.
    """
    cdef Py_ssize_t n_states = size // n_mix
    cdef Py_ssize_t state, other, i, j, first, top, bottom
    cdef double total
    for j in range(size):
        portions[j] = 0.0
        for i in range(size + 1):
            portions[j] += counts[i * size + j]
    for state in range(n_states):
        first, total = state * n_mix, 0.0
        for j in range(first, first + n_mix):
            total += portions[j]
        for j in range(first, first + n_mix):
            portions[j] = portions[j] / total if total > 0 else 1.0 / n_mix
    for other in range(n_states + 1):
        top, bottom = other * n_mix, min((other + 1) * n_mix, size + 1)
        for state in range(n_states):
            first, total = state * n_mix, 0.0
            for i in range(top, bottom):
                for j in range(first, first + n_mix):
                    total += counts[i * size + j]
            for i in range(top, bottom):
                for j in range(first, first + n_mix):
                    counts[i * size + j] = total * portions[j]
