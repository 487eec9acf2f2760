"""Densities and probabilities of states that emit symbols or counts; see `_discrete`."""

import numpy as np

from libc.math cimport isnan, lgamma, log
from libc.string cimport memcpy

from skawhmm.numerics._forward_backward cimport log_likelihood, passes_each, passes_size
from skawhmm.utils._interruption cimport LITTLE_WORK, interrupted

cdef extern from *:
    """
    /* A state with less than this many expected frames is empty and keeps its
       parameters. */
    #define EMPTY_COUNT 1e-8
    /* Probabilities below this are 0: their powers would leave the range. */
    #define LEAST_PROBABILITY 1e-100
    """
    const double EMPTY_COUNT
    const double LEAST_PROBABILITY


def fill_log_densities(frames, const double[:, ::1] states, double[:, ::1] out):
    """Fill log densities (n_components, n_timesteps) of frames under states.

    Parameters
    ----------
    frames : ndarray of shape (n_timesteps,) or (n_timesteps, n_channels)
        Symbols or counts.

    states : ndarray of shape (n_components, n_values)
        Parameters.

    out : ndarray of shape (n_components, n_timesteps)
        Receives the result.
    """
    cdef Frames own = frames_of(frames)
    cdef double[:, ::1] logs = np.empty((states.shape[0], states.shape[1]))
    with nogil:
        fill_densities(
            &own, &states[0, 0], states.shape[0], states.shape[1], &logs[0, 0],
            &out[0, 0],
        )


def fill_statistics(
    frames, const double[:, ::1] post, double[:, ::1] sums, double[:, ::1] sizes
):
    """Add expected symbols, or expected counts and numbers of frames, in each state.

    Parameters
    ----------
    frames : ndarray of shape (n_timesteps,) or (n_timesteps, n_channels)
        Symbols or counts.

    post : ndarray of shape (n_components, n_timesteps)
        State probabilities.

    sums, sizes : ndarray of shape (n_components, n_values)
        Changed in place; the second one not for symbols.
    """
    cdef Frames own = frames_of(frames)
    with nogil:
        add_statistics(
            &own, &post[0, 0], sums.shape[0], sums.shape[1], &sums[0, 0], &sizes[0, 0]
        )


def fill_expectations(
    frames,
    const Py_ssize_t[::1] offsets,
    const Py_ssize_t[::1] firsts,
    chains,
    const double[:, :, ::1] states,
    const Py_ssize_t[::1] active,
    expected,
    statistics,
    double[::1] values,
):
    """E step of several models, each with its own sequences.

    Parameters
    ----------
    frames : ndarray of shape (n_frames,) or (n_frames, n_channels)
        Symbols or counts of all models.

    offsets, firsts : ndarray of int
        Where sequences begin and end, and which of these are the bounds of models.

    chains : tuple of ndarray
        Start and transition probabilities of all models.

    states : ndarray of shape (n_models, n_components, n_values)
        Parameters of all models.

    active : ndarray of int of shape (n_active,)
        Which models.

    expected : tuple of ndarray
        Starts, moves and frames per state, one row per active model; zeros that receive
        the sums.

    statistics : tuple of ndarray
        Likewise the sums and, for counts, the sizes of `fill_statistics`.

    values : ndarray of shape (n_active,)
        Receives the log likelihoods.
    """
    cdef Frames whole = frames_of(frames), own
    cdef const double[:, ::1] startprobs = chains[0]
    cdef const double[:, :, ::1] transmats = chains[1]
    cdef double[:, ::1] starts = expected[0]
    cdef double[:, :, ::1] moves = expected[1]
    cdef double[:, ::1] counts = expected[2]
    # Symbols have no sizes.
    cdef double[:, :, ::1] sums = statistics[0]
    cdef double[:, :, ::1] sizes = statistics[len(statistics) - 1]
    cdef Py_ssize_t n_components = states.shape[1], n_values = states.shape[2]
    cdef Py_ssize_t n_frames = 0, longest = 0, n, m, s, k, t
    for n in range(active.shape[0]):
        m = active[n]
        n_frames = max(n_frames, offsets[firsts[m + 1]] - offsets[firsts[m]])
        for s in range(firsts[m], firsts[m + 1]):
            longest = max(longest, offsets[s + 1] - offsets[s])
    cdef double[:, ::1] logs = np.empty((n_components, n_values))
    cdef double[:, :, ::1] rows = np.empty((2, n_components, n_frames))
    cdef double[::1] scratch = np.empty(passes_size(n_components, longest))
    cdef double* densities = &rows[0, 0, 0]
    cdef double* post = &rows[1, 0, 0]
    with nogil:
        for n in range(active.shape[0]):
            interrupted()
            m = active[n]
            own = frames_between(
                &whole, n_values, offsets[firsts[m]], offsets[firsts[m + 1]]
            )
            fill_densities(
                &own, &states[m, 0, 0], n_components, n_values, &logs[0, 0], densities
            )
            values[n] = passes_each(
                densities, own.n_timesteps, &offsets[firsts[m]],
                firsts[m + 1] - firsts[m], &startprobs[m, 0], &transmats[m, 0, 0],
                n_components, post, &starts[n, 0], &moves[n, 0, 0], &scratch[0],
            )
            add_statistics(
                &own, post, n_components, n_values, &sums[n, 0, 0], &sizes[n, 0, 0]
            )
            for k in range(n_components):
                for t in range(own.n_timesteps):
                    counts[n, k] += post[k * own.n_timesteps + t]


def fill_likelihoods(
    frames,
    const double[:, :, ::1] states,
    const double[:, ::1] startprobs,
    const double[:, :, ::1] transmats,
    const Py_ssize_t[::1] sizes,
    const Py_ssize_t[::1] models,
    double[::1] out,
):
    """Fill the log likelihoods of one sequence under some models of a stack.

    Parameters
    ----------
    frames : ndarray of shape (n_timesteps,) or (n_timesteps, n_channels)
        Symbols or counts.

    states, startprobs, transmats, sizes : ndarray with a leading axis of models
        Parameters, and the numbers of states.

    models : ndarray of int of shape (n_chosen,)
        Which models.

    out : ndarray of shape (n_chosen,)
        Receives the result.
    """
    cdef Frames own = frames_of(frames)
    cdef Py_ssize_t n_components = states.shape[1], n_values = states.shape[2]
    cdef Py_ssize_t n, i, k, size
    cdef double[:, ::1] logs = np.empty((n_components, n_values))
    cdef double[:, ::1] densities = np.empty((n_components, own.n_timesteps))
    cdef double[:, ::1] chain = np.empty((n_components, n_components))
    cdef double[::1] scratch = np.empty(passes_size(n_components, own.n_timesteps))
    with nogil:
        for n in range(models.shape[0]):
            interrupted()
            i = models[n]
            size = sizes[i]
            fill_densities(
                &own, &states[i, 0, 0], size, n_values, &logs[0, 0], &densities[0, 0]
            )
            for k in range(size):
                memcpy(
                    &chain[0, 0] + k * size, &transmats[i, k, 0], size * sizeof(double)
                )
            out[n] = log_likelihood(
                &densities[0, 0], own.n_timesteps, &startprobs[i, 0], &chain[0, 0],
                size, own.n_timesteps, &scratch[0],
            )


cdef struct Frames:
    # Codes of symbols (below 0: not observed), or counts in channels (NaN: not
    # observed); the other is NULL.
    const Py_ssize_t* codes
    const double* counts
    Py_ssize_t n_timesteps


cdef Frames frames_of(array):
    """Frames as pointers into an array of symbols or of counts."""
    cdef const Py_ssize_t[::1] codes
    cdef const double[:, ::1] counts
    cdef Frames frames
    frames.codes, frames.counts = NULL, NULL
    frames.n_timesteps = array.shape[0]
    if array.ndim == 1:
        codes = array
        frames.codes = &codes[0]
    else:
        counts = array
        frames.counts = &counts[0, 0]
    return frames


cdef Frames frames_between(
    const Frames* frames, Py_ssize_t n_channels, Py_ssize_t first, Py_ssize_t last
) noexcept nogil:
    """The frames first to last; `n_channels` is not used for symbols."""
    cdef Frames part
    part.codes, part.counts = frames.codes, frames.counts
    part.n_timesteps = last - first
    if frames.counts == NULL:
        part.codes = frames.codes + first
    else:
        part.counts = frames.counts + first * n_channels
    return part


cdef int add_statistics(
    const Frames* frames,
    const double* post,
    Py_ssize_t n_components,
    Py_ssize_t n_values,
    double* sums,
    double* sizes,
) except -1 nogil:
    """Add the statistics of frames; see `fill_statistics`."""
    cdef Py_ssize_t n_timesteps = frames.n_timesteps, k, t, c, code
    cdef const double* row
    cdef double count
    for k in range(n_components):
        row = post + k * n_timesteps
        if n_timesteps > LITTLE_WORK:
            interrupted()
        for t in range(n_timesteps):
            if frames.counts == NULL:
                code = frames.codes[t]
                if code >= 0:
                    sums[k * n_values + code] += row[t]
                continue
            for c in range(n_values):
                count = frames.counts[t * n_values + c]
                if not isnan(count):
                    sums[k * n_values + c] += row[t] * count
                    sizes[k * n_values + c] += row[t]


cdef int fill_densities(
    const Frames* frames,
    const double* states,
    Py_ssize_t n_components,
    Py_ssize_t n_values,
    double* logs,
    double* out,
) except -1 nogil:
    """Fill log densities, rows of all timesteps; `logs` is scratch."""
    cdef Py_ssize_t n_timesteps = frames.n_timesteps, k, t, c, code
    cdef double count, ways, part
    for c in range(n_components * n_values):
        logs[c] = log(states[c])
    for k in range(n_components):
        if n_timesteps > LITTLE_WORK:
            interrupted()
        for t in range(n_timesteps):
            code = frames.codes[t] if frames.counts == NULL else -1
            out[k * n_timesteps + t] = logs[k * n_values + code] if code >= 0 else 0.0
    if frames.counts == NULL:
        return 0
    for t in range(n_timesteps):
        if t % 64 == 63:
            interrupted()
        for c in range(n_values):
            count = frames.counts[t * n_values + c]
            if isnan(count):
                continue
            ways = lgamma(count + 1.0)
            for k in range(n_components):
                # A rate of 0 makes a count of 0 certain.
                part = count * logs[k * n_values + c] if count > 0 else 0.0
                out[k * n_timesteps + t] += part - states[k * n_values + c] - ways


def normalized(const double[:, ::1] counts, const double[:, ::1] fallback):
    """Return fractions of counts; with too few counts the old ones stay.

    Parameters
    ----------
    counts, fallback : ndarray of shape (n_components, n_values)
        Expected counts, and the fractions so far.
    """
    cdef Py_ssize_t size = counts.shape[1], k, j
    cdef double total, kept
    cdef double[:, ::1] fractions = np.empty((counts.shape[0], size))
    with nogil:
        for k in range(counts.shape[0]):
            total = kept = 0.0
            for j in range(size):
                total += counts[k, j]
            for j in range(size):
                fractions[k, j] = (
                    fallback[k, j] if total < EMPTY_COUNT else counts[k, j] / total
                )
                if fractions[k, j] < LEAST_PROBABILITY:
                    fractions[k, j] = 0.0
                kept += fractions[k, j]
            for j in range(size):
                fractions[k, j] /= kept
    return np.asarray(fractions)


def shared_log(const double[:, ::1] prior, const double[:, ::1] states):
    """Return the sum over states of prior probabilities times logs of probabilities."""
    cdef double value = 0.0
    cdef Py_ssize_t k, j
    with nogil:
        for k in range(prior.shape[0]):
            for j in range(prior.shape[1]):
                if prior[k, j] > 0:
                    value += prior[k, j] * log(max(states[k, j], LEAST_PROBABILITY))
    return value
