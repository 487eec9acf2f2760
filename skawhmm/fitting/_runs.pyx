"""EM runs of many models, without Python between the steps; see `_em`.

A model takes all its steps before the next one begins: its frames stay in a near cache,
and other threads can run meanwhile.
"""

import numpy as np

from libc.string cimport memset

from skawhmm.emissions._state_em cimport StateEM
from skawhmm.fitting._em_kernels cimport chain_log_prior, chain_size, update_chain
from skawhmm.utils._interruption cimport interrupted


def advance_runs(
    StateEM states,
    prior,
    runs,
    rule,
    const Py_ssize_t[::1] n_frames,
    const Py_ssize_t[::1] active,
):
    """Take EM steps of several models until each has ended or waits.

    Parameters
    ----------
    states : StateEM
        E step and M step of the states of all models.

    prior : Model
        What models shrink to, one for each or one for all.

    runs : EMRuns
        One row per model, changed in place. The objective and the number of steps say
        where a model stands.

    rule : Rule
        Constraints of the M step and the stopping rule.

    n_frames : ndarray of int of shape (n_models,)
        Number of frames of each model.

    active : ndarray of int of shape (n_active,)
        Which models.

    Returns
    -------
    waiting : ndarray of int of shape (n_waiting,)
        Models whose M steps `states` must finish before they go on.
    """
    cdef double[:, ::1] startprobs = runs.model.startprob
    cdef double[:, :, ::1] transmats = runs.model.transmat
    cdef const double[:, ::1] prior_starts = prior.startprob
    cdef const double[:, :, ::1] prior_moves = prior.transmat
    cdef double[:, ::1] counts = runs.counts
    cdef double[:, :, ::1] moves = runs.moves
    cdef double[::1] values = runs.log_likelihood
    cdef double[::1] objectives = runs.objective
    cdef long long[::1] n_iter = runs.n_iter
    cdef char[::1] converged = runs.converged.view(np.int8)
    cdef Py_ssize_t n_mix = rule.n_mix
    cdef double relevance = rule.relevance, tol = rule.tol
    cdef long long max_iter = rule.max_iter
    cdef Py_ssize_t size = startprobs.shape[1], n, m, row, n_waiting = 0
    cdef Py_ssize_t[::1] waiting = np.empty(active.shape[0] + 1, np.intp)
    cdef double[::1] starts = np.empty(size)
    cdef double[::1] scratch = np.empty(chain_size(size))
    cdef double before, gain
    with nogil:
        for n in range(active.shape[0]):
            m = active[n]
            row = min(m, prior_starts.shape[0] - 1)
            while True:
                interrupted()
                memset(&starts[0], 0, size * sizeof(double))
                memset(&moves[m, 0, 0], 0, size * size * sizeof(double))
                values[m] = states.expectation(
                    m, &startprobs[m, 0], &transmats[m, 0, 0], &starts[0],
                    &moves[m, 0, 0], &counts[m, 0],
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
                        + states.log_prior(m)
                    )
                # The gain of a sequence that stays impossible is NaN.
                gain = objectives[m] - before
                converged[m] = gain <= tol * n_frames[m]
                if converged[m] or n_iter[m] >= max_iter:
                    break
                update_chain(
                    &starts[0], &moves[m, 0, 0], &prior_starts[row, 0],
                    &prior_moves[row, 0, 0], size, n_mix, relevance, &startprobs[m, 0],
                    &transmats[m, 0, 0], &scratch[0],
                )
                n_iter[m] += 1
                if states.maximization(m, relevance):
                    waiting[n_waiting] = m
                    n_waiting += 1
                    break
    return np.asarray(waiting)[:n_waiting]
