"""Densities and probabilities of states that emit symbols or counts; see `_discrete`."""

import numpy as np

cimport cython
from libc.math cimport isnan, lgamma, log
from libc.string cimport memcpy, memset

from skawhmm.emissions._state_em cimport StateEM
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
    cdef Frames whole = frames_of(frames)
    cdef const double[:, ::1] startprobs = chains[0]
    cdef const double[:, :, ::1] transmats = chains[1]
    cdef double[:, ::1] starts = expected[0]
    cdef double[:, :, ::1] moves = expected[1]
    cdef double[:, ::1] counts = expected[2]
    # Symbols have no sizes.
    cdef double[:, :, ::1] sums = statistics[0]
    cdef double[:, :, ::1] sizes = statistics[len(statistics) - 1]
    cdef Py_ssize_t n_components = states.shape[1], n_values = states.shape[2]
    cdef Py_ssize_t n_frames = 0, longest = 0, n, m, s
    for n in range(active.shape[0]):
        m = active[n]
        n_frames = max(n_frames, offsets[firsts[m + 1]] - offsets[firsts[m]])
        for s in range(firsts[m], firsts[m + 1]):
            longest = max(longest, offsets[s + 1] - offsets[s])
    cdef double[:, ::1] logs = np.empty((n_components, n_values))
    cdef double[:, :, ::1] rows = np.empty((2, n_components, n_frames))
    cdef double[::1] scratch = np.empty(passes_size(n_components, longest))
    with nogil:
        for n in range(active.shape[0]):
            interrupted()
            m = active[n]
            values[n] = add_expectation(
                &whole, &offsets[firsts[m]], firsts[m + 1] - firsts[m],
                &startprobs[m, 0], &transmats[m, 0, 0], &states[m, 0, 0], n_components,
                n_values, &starts[n, 0], &moves[n, 0, 0], &counts[n, 0],
                &sums[n, 0, 0], &sizes[n, 0, 0], &logs[0, 0], &rows[0, 0, 0],
                &scratch[0],
            )


cdef double add_expectation(
    const Frames* frames,
    const Py_ssize_t* offsets,
    Py_ssize_t n_sequences,
    const double* startprob,
    const double* transmat,
    const double* states,
    Py_ssize_t n_components,
    Py_ssize_t n_values,
    double* starts,
    double* moves,
    double* counts,
    double* sums,
    double* sizes,
    double* logs,
    double* rows,
    double* scratch,
) except? -1.0 nogil:
    """E step of one model; returns its log likelihood, adds what is expected.

    Its sequences are those between `offsets` of all frames. The last three arguments
    are scratch, of which `rows` has two rows per state.
    """
    cdef Frames own = frames_between(frames, n_values, offsets[0], offsets[n_sequences])
    cdef double* post = rows + n_components * own.n_timesteps
    cdef double value
    cdef Py_ssize_t k, t
    fill_densities(&own, states, n_components, n_values, logs, rows)
    value = passes_each(
        rows, own.n_timesteps, offsets, n_sequences, startprob, transmat, n_components,
        post, starts, moves, scratch,
    )
    add_statistics(&own, post, n_components, n_values, sums, sizes)
    for k in range(n_components):
        for t in range(own.n_timesteps):
            counts[k] += post[k * own.n_timesteps + t]
    return value


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
    cdef Py_ssize_t k
    cdef double[:, ::1] fractions = np.array(fallback)
    with nogil:
        for k in range(counts.shape[0]):
            normalize(&counts[k, 0], counts.shape[1], &fractions[k, 0])
    return np.asarray(fractions)


cdef void normalize(
    const double* counts, Py_ssize_t size, double* fractions
) noexcept nogil:
    """Fill in the fractions of counts, unless there are too few."""
    cdef double total = 0.0, kept = 0.0
    cdef Py_ssize_t j
    for j in range(size):
        total += counts[j]
    for j in range(size):
        if not total < EMPTY_COUNT:
            fractions[j] = counts[j] / total
        if fractions[j] < LEAST_PROBABILITY:
            fractions[j] = 0.0
        kept += fractions[j]
    for j in range(size):
        fractions[j] /= kept


def mean_rates(
    const double[:, ::1] sums, const double[:, ::1] sizes, const double[:, ::1] fallback
):
    """Return mean counts; states and channels with too few frames keep the old rates.

    Parameters
    ----------
    sums, sizes, fallback : ndarray of shape (n_components, n_channels)
        Expected counts, the numbers of frames that hold them, and the rates so far.
    """
    cdef Py_ssize_t k
    cdef double[:, ::1] rates = np.array(fallback)
    with nogil:
        for k in range(sums.shape[0]):
            divide(&sums[k, 0], &sizes[k, 0], sums.shape[1], &rates[k, 0])
    return np.asarray(rates)


cdef void divide(
    const double* sums, const double* sizes, Py_ssize_t size, double* rates
) noexcept nogil:
    """Fill in the means of the channels that have enough frames."""
    cdef Py_ssize_t c
    for c in range(size):
        if not sizes[c] < EMPTY_COUNT:
            rates[c] = sums[c] / sizes[c]


def log_prior_of(
    const double[:, ::1] prior, const double[:, ::1] states, bint are_rates
):
    """Return the log prior of states per frame of relevance, up to a constant.

    Parameters
    ----------
    prior, states : ndarray of shape (n_components, n_values)
        Probabilities of symbols, or rates.

    are_rates : bool
        Which of the two.
    """
    return states_log_prior(
        &prior[0, 0], &states[0, 0], prior.shape[0] * prior.shape[1], are_rates
    )


cdef double states_log_prior(
    const double* prior, const double* states, Py_ssize_t size, bint are_rates
) noexcept nogil:
    """Sum of prior values times logs of values, less the rates."""
    cdef double value = 0.0
    cdef Py_ssize_t j
    for j in range(size):
        if prior[j] > 0:
            value += prior[j] * log(max(states[j], LEAST_PROBABILITY))
        if are_rates:
            value -= states[j]
    return value


@cython.auto_pickle(False)
cdef class DiscreteEM(StateEM):
    """EM of states that emit symbols or counts.

    Parameters
    ----------
    data : Data
        The sequences of all models.

    states, prior : ndarray of shape (n_models, n_components, n_values)
        Parameters of all models, changed in place; and what they shrink to, one for
        each or one for all.
    """

    cdef object owned
    cdef Frames frames
    cdef const Py_ssize_t[::1] offsets
    cdef const Py_ssize_t[::1] firsts
    cdef double[:, :, ::1] states
    cdef const double[:, :, ::1] prior
    cdef double[:, ::1] logs
    cdef double[:, :, ::1] rows
    cdef double[::1] scratch
    cdef double[:, :, ::1] statistics

    def __init__(self, data, double[:, :, ::1] states, const double[:, :, ::1] prior):
        self.owned, self.frames = data.frames, frames_of(data.frames)
        self.offsets, self.firsts = data.offsets, data.firsts
        self.states, self.prior = states, prior
        cdef Py_ssize_t n_components = states.shape[1], n_values = states.shape[2]
        longest, most = np.diff(data.offsets).max(), np.diff(data.bounds).max()
        self.logs = np.empty((n_components, n_values))
        self.rows = np.empty((2, n_components, most))
        self.scratch = np.empty(passes_size(n_components, longest))
        self.statistics = np.empty((2, n_components, n_values))

    cdef double expectation(
        self,
        Py_ssize_t m,
        const double* startprob,
        const double* transmat,
        double* starts,
        double* moves,
        double* counts,
    ) except? -1.0 nogil:
        cdef Py_ssize_t size = self.states.shape[1] * self.states.shape[2]
        memset(&self.statistics[0, 0, 0], 0, 2 * size * sizeof(double))
        memset(counts, 0, self.states.shape[1] * sizeof(double))
        return add_expectation(
            &self.frames, &self.offsets[self.firsts[m]],
            self.firsts[m + 1] - self.firsts[m], startprob, transmat,
            &self.states[m, 0, 0], self.states.shape[1], self.states.shape[2], starts,
            moves, counts, &self.statistics[0, 0, 0], &self.statistics[1, 0, 0],
            &self.logs[0, 0], &self.rows[0, 0, 0], &self.scratch[0],
        )

    cdef double log_prior(self, Py_ssize_t m) except? -1.0 nogil:
        cdef Py_ssize_t row = min(m, self.prior.shape[0] - 1)
        return states_log_prior(
            &self.prior[row, 0, 0], &self.states[m, 0, 0],
            self.states.shape[1] * self.states.shape[2], self.frames.counts != NULL,
        )

    cdef int maximization(self, Py_ssize_t m, double relevance) except -1 nogil:
        cdef Py_ssize_t row = min(m, self.prior.shape[0] - 1), k, j
        cdef Py_ssize_t n_values = self.states.shape[2]
        cdef double* sums
        cdef double* sizes
        for k in range(self.states.shape[1]):
            sums, sizes = &self.statistics[0, k, 0], &self.statistics[1, k, 0]
            for j in range(n_values):
                sums[j] += relevance * self.prior[row, k, j]
                sizes[j] += relevance
            if self.frames.counts == NULL:
                normalize(sums, n_values, &self.states[m, k, 0])
            else:
                divide(sums, sizes, n_values, &self.states[m, k, 0])
        return 0
