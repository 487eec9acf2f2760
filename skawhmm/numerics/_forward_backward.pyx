"""Forward and backward passes over one chain, given log densities.

Log densities have shape (n_components, n_timesteps); minus infinity marks a frame that
a state cannot emit. Nothing here knows what the emissions are.
"""

import numpy as np

from libc.math cimport INFINITY, exp, isfinite, log

from skawhmm.utils._interruption cimport interrupted

cdef extern from "numerics/_forward_backward.h" nogil:
    const double SAFE_TRANSITION
    const double SMALL_LOG
    const int SMALL_CHAIN

    ctypedef struct Weights:
        const double* emit
        double* alpha
        double* beta
        double* ahead
        double* shrink

    Py_ssize_t padded_size(Py_ssize_t n_components)
    void fill_exps(const double* gaps, Py_ssize_t size, double* out)
    int relative_densities(
        const double* logs,
        Py_ssize_t stride,
        Py_ssize_t n_components,
        Py_ssize_t n_timesteps,
        double* emit,
        double* tops,
    ) except -1
    double scaled_forward(
        const double* emit,
        const double* startprob,
        const double* transmat,
        Py_ssize_t n_components,
        Py_ssize_t n_timesteps,
        double* scratch,
        int* lost,
    ) except? -1.0
    double small_passes(
        const double* startprob,
        const double* transmat,
        Py_ssize_t n_components,
        Py_ssize_t n_timesteps,
        const Weights* weights,
    )
    void fill_padded(
        const double* transmat, Py_ssize_t n_components, double* padded
    )
    double scaled_passes(
        const double* startprob,
        Py_ssize_t n_components,
        Py_ssize_t n_timesteps,
        const Weights* weights,
        double* scratch,
    ) except? -1.0
    Py_ssize_t fill_posteriors(
        const Weights* weights,
        Py_ssize_t n_components,
        Py_ssize_t n_timesteps,
        double* post,
        Py_ssize_t stride,
    ) except -1
    int add_moves(
        const Weights* weights,
        const double* transmat,
        Py_ssize_t n_components,
        Py_ssize_t n_timesteps,
        double* moves,
    ) except -1


def log_likelihood_of(logs, startprob, transmat):
    """Log likelihood of one sequence, by the fast pass if that is exact."""
    cdef const double[:, ::1] densities = np.ascontiguousarray(logs)
    cdef const double[::1] start = np.ascontiguousarray(startprob)
    cdef const double[:, ::1] chain = np.ascontiguousarray(transmat)
    cdef Py_ssize_t n_components = densities.shape[0]
    cdef Py_ssize_t n_timesteps = densities.shape[1]
    cdef double[::1] scratch = np.empty(passes_size(n_components, n_timesteps))
    cdef double value
    with nogil:
        value = log_likelihood(
            &densities[0, 0], n_timesteps, &start[0], &chain[0, 0], n_components,
            n_timesteps, &scratch[0],
        )
    return value


def forward_backward(
    logs, startprob, transmat, double[:, ::1] post, double[:, ::1] moves
):
    """Log likelihood; fills state probabilities, adds expected transitions.

    Parameters
    ----------
    logs : ndarray of shape (n_components, n_timesteps)
        Log densities.

    startprob, transmat : ndarray
        The chain.

    post : ndarray of shape (n_components, n_timesteps)
        Receives the state probabilities given the sequence.

    moves : ndarray of shape (n_components, n_components)
        Expected transitions are added to it.

    Returns
    -------
    log_likelihood : float
        Minus infinity if no path of states can emit the sequence; impossible frames are
        then skipped.
    """
    offsets = np.array([0, post.shape[1]])
    starts = np.zeros(post.shape[0])
    return forward_backward_each(
        logs, offsets, startprob, transmat, post, starts, moves
    )


def forward_backward_each(
    logs,
    const Py_ssize_t[::1] offsets,
    startprob,
    transmat,
    double[:, ::1] post,
    double[::1] starts,
    double[:, ::1] moves,
):
    """`forward_backward` of several sequences; returns their log likelihood.

    Parameters
    ----------
    logs : ndarray of shape (n_components, n_frames)
        Log densities of the sequences one after the other.

    offsets : ndarray of shape (n_sequences + 1,)
        Where they begin and end.

    startprob, transmat, post, moves : ndarray
        As in `forward_backward`, for all frames.

    starts : ndarray of shape (n_components,)
        The state probabilities of first frames are added to it.
    """
    cdef const double[:, ::1] densities = np.ascontiguousarray(logs)
    cdef const double[::1] start = np.ascontiguousarray(startprob)
    cdef const double[:, ::1] chain = np.ascontiguousarray(transmat)
    cdef Py_ssize_t n_components = densities.shape[0], n_frames = densities.shape[1]
    cdef Py_ssize_t longest = np.diff(offsets).max()
    cdef double[::1] scratch = np.empty(passes_size(n_components, longest))
    cdef double value
    with nogil:
        value = passes_each(
            &densities[0, 0], n_frames, &offsets[0], offsets.shape[0] - 1, &start[0],
            &chain[0, 0], n_components, &post[0, 0], &starts[0], &moves[0, 0],
            &scratch[0],
        )
    return value


cdef Py_ssize_t passes_size(
    Py_ssize_t n_components, Py_ssize_t n_timesteps
) noexcept nogil:
    """Length of the scratch that passes over `n_timesteps` frames need."""
    return (4 * n_components + 2) * n_timesteps + small_size(n_components)


cdef void begin_passes(
    const double* transmat, Py_ssize_t n_components, double* scratch
) noexcept nogil:
    """Fill the scratch with what the passes over several sequences share."""
    if n_components > SMALL_CHAIN:
        fill_padded(transmat, n_components, scratch)


cdef inline Py_ssize_t small_size(Py_ssize_t n_components) noexcept nogil:
    return (2 * n_components + 4) * padded_size(n_components)


cdef double passes_each(
    const double* logs,
    Py_ssize_t stride,
    const Py_ssize_t* offsets,
    Py_ssize_t n_sequences,
    const double* startprob,
    const double* transmat,
    Py_ssize_t n_components,
    double* post,
    double* starts,
    double* moves,
    double* scratch,
) except? -1.0 nogil:
    """`passes` of several sequences; the probabilities of first states are added.

    The first frame belongs to the first sequence, wherever the offsets begin.
    """
    cdef double total = 0.0
    cdef Py_ssize_t s, k, first
    begin_passes(transmat, n_components, scratch)
    for s in range(n_sequences):
        interrupted()
        first = offsets[s] - offsets[0]
        total += passes(
            logs + first, stride, startprob, transmat, n_components,
            offsets[s + 1] - offsets[s], post + first, moves, scratch,
        )
        for k in range(n_components):
            starts[k] += post[k * stride + first]
    return total


cdef double passes(
    const double* logs,
    Py_ssize_t stride,
    const double* startprob,
    const double* transmat,
    Py_ssize_t n_components,
    Py_ssize_t n_timesteps,
    double* post,
    double* moves,
    double* scratch,
) except? -1.0 nogil:
    """Log likelihood of one sequence; see `forward_backward`.

    Without `moves`, transitions are not counted. `begin_passes` has filled the scratch for
    this chain, once for all sequences.
    """
    cdef Py_ssize_t size = n_components * n_timesteps, t
    cdef double* small = scratch
    cdef double* emit = scratch + small_size(n_components)
    cdef double* tops = emit + 4 * size
    cdef Weights weights
    cdef double value
    cdef bint is_kept = False
    weights.emit, weights.alpha, weights.beta = emit, emit + size, emit + 2 * size
    weights.ahead, weights.shrink = emit + 3 * size, tops + n_timesteps
    relative_densities(logs, stride, n_components, n_timesteps, emit, tops)
    if n_components <= SMALL_CHAIN:
        value = small_passes(startprob, transmat, n_components, n_timesteps, &weights)
    else:
        value = scaled_passes(startprob, n_components, n_timesteps, &weights, small)
    for t in range(n_timesteps):
        value += tops[t]
    if isfinite(value):
        is_kept = not fill_posteriors(
            &weights, n_components, n_timesteps, post, stride
        )
    # If this much is left, weights that underflowed are less than rounding.
    if not is_kept:
        value = log_passes(
            logs, stride, startprob, transmat, n_components, n_timesteps, post, moves,
            small, emit, weights.alpha,
        )
        begin_passes(transmat, n_components, scratch)
        return value
    if moves != NULL:
        add_moves(&weights, transmat, n_components, n_timesteps, moves)
    return value


cdef double log_likelihood(
    const double* logs,
    Py_ssize_t stride,
    const double* startprob,
    const double* transmat,
    Py_ssize_t n_components,
    Py_ssize_t n_timesteps,
    double* scratch,
) except? -1.0 nogil:
    """Log likelihood of one sequence; see `log_likelihood_of`."""
    cdef Py_ssize_t size = n_components * n_timesteps, t, k
    cdef double* small = scratch
    cdef double* emit = scratch + small_size(n_components)
    cdef double* tops = emit + size
    cdef double value, top = 0.0, least = INFINITY
    cdef int lost
    cdef bint possible
    relative_densities(logs, stride, n_components, n_timesteps, emit, tops)
    value = scaled_forward(
        emit, startprob, transmat, n_components, n_timesteps, small, &lost
    )
    for t in range(n_timesteps):
        top += tops[t]
    for k in range(n_components * n_components):
        least = min(least, transmat[k])
    if isfinite(top) and (not lost or least > SAFE_TRANSITION):
        return top + value
    copy_logs(logs, stride, n_components, n_timesteps, emit)
    fill_logs(transmat, n_components * n_components, small)
    value = log_forward(
        emit, startprob, small, n_components, n_timesteps, emit + size,
        small + n_components * n_components, &possible,
    )
    return value if possible else -INFINITY


cdef void copy_logs(
    const double* logs,
    Py_ssize_t stride,
    Py_ssize_t n_components,
    Py_ssize_t n_timesteps,
    double* copied,
) noexcept nogil:
    """Copy log densities, so that rows follow each other and may be changed."""
    cdef Py_ssize_t k, t
    for k in range(n_components):
        for t in range(n_timesteps):
            copied[k * n_timesteps + t] = logs[k * stride + t]


cdef void fill_logs(
    const double* values, Py_ssize_t size, double* out
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(size):
        out[k] = log(values[k])


cdef double log_sum_exp(const double* values, Py_ssize_t size) noexcept nogil:
    """Logarithm of the sum of exponentials."""
    cdef double top = -INFINITY, total = 0.0
    cdef Py_ssize_t k
    for k in range(size):
        top = max(top, values[k])
    if top == -INFINITY:
        return top
    for k in range(size):
        if values[k] > top - SMALL_LOG:
            total += exp(values[k] - top)
    return top + log(total)


cdef double log_forward(
    double* logs,
    const double* startprob,
    const double* log_transmat,
    Py_ssize_t n_components,
    Py_ssize_t n_timesteps,
    double* alpha,
    double* terms,
    bint* possible,
) except? -1.0 nogil:
    """Forward pass in logarithms: no underflow, at several times the cost.

    Frames that no state can emit are skipped: their log densities become 0 in place,
    and `possible` reports them. The weights of the states of a frame are contiguous.
    """
    cdef Py_ssize_t i, j, t
    cdef const double* before = alpha
    cdef double* now = alpha
    cdef double top
    possible[0] = True
    for t in range(n_timesteps):
        if t % 64 == 0:
            interrupted()
        now = alpha + t * n_components
        top = -INFINITY
        for j in range(n_components):
            now[j] = log(startprob[j])
            if t > 0:
                for i in range(n_components):
                    terms[i] = before[i] + log_transmat[i * n_components + j]
                now[j] = log_sum_exp(terms, n_components)
            top = max(top, now[j] + logs[j * n_timesteps + t])
        for j in range(n_components):
            if top == -INFINITY:
                logs[j * n_timesteps + t] = 0.0
            now[j] += logs[j * n_timesteps + t]
        possible[0] = possible[0] and top > -INFINITY
        before = now
    return log_sum_exp(now, n_components)


cdef double log_passes(
    const double* given,
    Py_ssize_t stride,
    const double* startprob,
    const double* transmat,
    Py_ssize_t n_components,
    Py_ssize_t n_timesteps,
    double* post,
    double* moves,
    double* small,
    double* logs,
    double* alpha,
) except? -1.0 nogil:
    """Both passes in logarithms; see `passes`. The last three arguments are scratch."""
    cdef Py_ssize_t n_cells = n_components * n_components, i, j, t
    cdef double* log_transmat = small
    cdef double* beta = log_transmat + n_cells
    cdef double* ahead = beta + n_components
    cdef double* terms = ahead + n_components
    cdef double value, gain, total
    cdef bint possible
    copy_logs(given, stride, n_components, n_timesteps, logs)
    fill_logs(transmat, n_cells, log_transmat)
    value = log_forward(
        logs, startprob, log_transmat, n_components, n_timesteps, alpha, terms,
        &possible,
    )
    for j in range(n_components):
        beta[j] = 0.0
    for t in range(n_timesteps - 1, -1, -1):
        if t % 64 == 0:
            interrupted()
        if t < n_timesteps - 1:
            for j in range(n_components):
                ahead[j] = logs[j * n_timesteps + t + 1] + beta[j]
            for i in range(n_components):
                for j in range(n_components):
                    terms[j] = log_transmat[i * n_components + j] + ahead[j]
                    gain = alpha[t * n_components + i] + terms[j] - value
                    if moves != NULL and gain > -700:
                        moves[i * n_components + j] += exp(gain)
                beta[i] = log_sum_exp(terms, n_components)
        total = 0.0
        for j in range(n_components):
            post[j * stride + t] = exp(alpha[t * n_components + j] + beta[j] - value)
            total += post[j * stride + t]
        for j in range(n_components):
            post[j * stride + t] /= total
    return value if possible else -INFINITY
