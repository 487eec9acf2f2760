"""EM runs of models with Gaussian states, without Python between the steps.

A model takes all its steps before the next one begins: its frames stay in a near cache,
and other threads can run meanwhile.
"""

import numpy as np

from libc.string cimport memset

from skawhmm.emissions._gaussian_densities cimport Frames
from skawhmm.emissions._gaussian_em_kernels cimport (
    Room,
    States,
    Sums,
    add_expectation,
    cells_of,
    changed_cells_of,
    frames_of,
    log_prior,
    make_room,
    update_model,
)
from skawhmm.fitting._em_kernels cimport chain_log_prior, chain_size, update_chain
from skawhmm.utils._interruption cimport interrupted


def advance_runs(
    data,
    model,
    prior,
    runs,
    rule,
    double floor,
    bint is_pooled,
    const Py_ssize_t[::1] active,
):
    """Take EM steps of several models until each has ended or waits.

    A model waits, after an M step, if some of its covariances have eigenvalues below
    the floor: the caller lifts them and calls again.

    Parameters
    ----------
    data : Data
        The sequences of all models.

    model : Model
        A stack of models, changed in place.

    prior : Model
        What they shrink to, one for each or one for all.

    runs : EMRuns
        One row per model, changed in place. The objective and the number of steps say
        where a model stands.

    rule : Rule
        Constraints of the M step and the stopping rule.

    floor : float
        Least variance.

    is_pooled : bool
        Whether covariances are pooled (over channels, or over states if they are full).

    active : ndarray of int of shape (n_active,)
        Which models.

    Returns
    -------
    waiting : ndarray of int of shape (n_waiting,)
        Models that wait.

    low : ndarray of int of shape (n_low,)
        Which covariances are below the floor, if those of all models were in a row.
    """
    cdef const double[::1] frames = data.frames
    cdef const double[::1] seen = data.seen
    cdef const Py_ssize_t[::1] offsets = data.offsets
    cdef const Py_ssize_t[::1] firsts = data.firsts
    cdef double[:, ::1] startprobs = model.startprob
    cdef double[:, :, ::1] transmats = model.transmat
    cdef double[:, :, ::1] means = model.states[0]
    cdef double* covars = changed_cells_of(model.states[1])
    cdef const double[:, ::1] prior_starts = prior.startprob
    cdef const double[:, :, ::1] prior_moves = prior.transmat
    cdef const double[:, :, ::1] prior_means = prior.states[0]
    cdef const double* prior_covars = cells_of(prior.states[1])
    cdef double[:, ::1] counts = runs.counts
    cdef double[:, :, ::1] moves = runs.moves
    cdef double[::1] values = runs.log_likelihood
    cdef double[::1] objectives = runs.objective
    cdef long long[::1] n_iter = runs.n_iter
    cdef char[::1] converged = runs.converged.view(np.int8)
    cdef Py_ssize_t n_mix = rule.n_mix
    cdef double relevance = rule.relevance, tol = rule.tol
    cdef long long max_iter = rule.max_iter
    cdef Py_ssize_t size = means.shape[1], n_features = means.shape[2]
    cdef Py_ssize_t n_cells = model.states[1][0, 0].size, stride = size * n_cells
    cdef Py_ssize_t n, m, row, k, found, n_waiting = 0, n_low = 0
    cdef Py_ssize_t[::1] waiting = np.empty(active.shape[0] + 1, np.intp)
    cdef Py_ssize_t[::1] low = np.empty(active.shape[0] * size + 1, np.intp)
    cdef double[::1] moments = np.empty(size * (2 * n_features + n_cells + 1))
    cdef double[::1] scratch = np.empty(chain_size(size))
    cdef Frames own
    cdef States states, other
    cdef Sums sums
    cdef double* starts = &moments[0]
    cdef double before, gain
    states.n_components, states.n_features = size, n_features
    states.n_cells, states.is_full = n_cells, model.states[1].ndim == 4
    other = states
    sums.counts = starts + size
    sums.firsts = sums.counts + size * n_features
    sums.seconds = sums.firsts + size * n_features
    cdef Room room = make_room(offsets, firsts, active, &states)
    with nogil:
        for n in range(active.shape[0]):
            m = active[n]
            row = min(m, prior_starts.shape[0] - 1)
            own = frames_of(
                frames, seen, n_features, offsets[firsts[m]], offsets[firsts[m + 1]]
            )
            states.means, states.covars = &means[m, 0, 0], covars + m * stride
            other.means = &prior_means[row, 0, 0]
            other.covars = prior_covars + row * stride
            while True:
                interrupted()
                memset(starts, 0, moments.shape[0] * sizeof(double))
                memset(&moves[m, 0, 0], 0, size * size * sizeof(double))
                values[m] = add_expectation(
                    &own, &offsets[firsts[m]], firsts[m + 1] - firsts[m],
                    &startprobs[m, 0], &transmats[m, 0, 0], &states, starts,
                    &moves[m, 0, 0], &counts[m, 0], &sums, &room.scratch,
                )
                before, objectives[m] = objectives[m], values[m]
                if relevance > 0:
                    objectives[m] += relevance * (
                        chain_log_prior(
                            &startprobs[m, 0], &prior_starts[row, 0], size
                        )
                        + chain_log_prior(
                            &transmats[m, 0, 0], &prior_moves[row, 0, 0], size * size
                        )
                        + log_prior(&states, &other, room.scratch.update)
                    )
                # The gain of a sequence that stays impossible is NaN.
                gain = objectives[m] - before
                converged[m] = gain <= tol * own.n_frames
                if converged[m] or n_iter[m] >= max_iter:
                    break
                update_chain(
                    starts, &moves[m, 0, 0], &prior_starts[row, 0],
                    &prior_moves[row, 0, 0], size, n_mix, relevance, &startprobs[m, 0],
                    &transmats[m, 0, 0], &scratch[0],
                )
                found = update_model(
                    &sums, &other, relevance, floor, is_pooled, &means[m, 0, 0],
                    covars + m * stride, room.scratch.update, &low[n_low],
                )
                n_iter[m] += 1
                if found > 0:
                    for k in range(n_low, n_low + found):
                        low[k] += m * size
                    n_low += found
                    waiting[n_waiting] = m
                    n_waiting += 1
                    break
    return np.asarray(waiting)[:n_waiting], np.asarray(low)[:n_low]
