"""Paths of states of one chain: possible ones, the best, random ones; see `_paths`."""

import numpy as np

from libc.math cimport INFINITY, log

from skawhmm.utils._interruption cimport interrupted


cdef int keep_least_rank(
    double* logs,
    const Py_ssize_t* ranks,
    const double* startprob,
    const double* transmat,
    Py_ssize_t n_components,
    Py_ssize_t n_timesteps,
    char* alive,
) except -1 nogil:
    """Drop, frame by frame, reachable states that a flatter state outweighs.

    Where the supports of states differ in dimension, a frame on the flattest of them
    has infinitely more density there. The log densities are changed in place; `alive`
    is scratch for two numbers per state.
    """
    cdef char* following = alive + n_components
    cdef Py_ssize_t i, j, t, least, most = ranks[0]
    for j in range(n_components):
        alive[j] = startprob[j] > 0
        most = max(most, ranks[j])
    for t in range(n_timesteps):
        if t % 64 == 63:
            interrupted()
        least = most
        for j in range(n_components):
            if alive[j] and logs[j * n_timesteps + t] > -INFINITY:
                least = min(least, ranks[j])
        for j in range(n_components):
            following[j] = False
            if not alive[j] or ranks[j] > least:
                logs[j * n_timesteps + t] = -INFINITY
        for i in range(n_components):
            if logs[i * n_timesteps + t] > -INFINITY:
                for j in range(n_components):
                    following[j] |= transmat[i * n_components + j] > 0
        for j in range(n_components):
            alive[j] = following[j]


def best_path(logs, startprob, transmat, Py_ssize_t[::1] path):
    """Fill the most probable path of states; returns its log probability.

    Parameters
    ----------
    logs : ndarray of shape (n_components, n_timesteps)
        Log densities.

    startprob, transmat : ndarray
        The chain.

    path : ndarray of int of shape (n_timesteps,)
        Receives the states.
    """
    cdef const double[:, ::1] densities = np.ascontiguousarray(logs)
    cdef const double[::1] start = np.ascontiguousarray(startprob)
    cdef const double[:, ::1] chain = np.ascontiguousarray(transmat)
    cdef Py_ssize_t n_components = densities.shape[0]
    cdef Py_ssize_t n_timesteps = densities.shape[1], i, j, t, origin
    cdef double[:, ::1] log_transmat = np.empty((n_components, n_components))
    cdef double[::1] score = np.empty(n_components)
    cdef double[::1] following = np.empty(n_components)
    cdef Py_ssize_t[:, ::1] back = np.empty((n_timesteps, n_components), np.intp)
    cdef double value, best
    with nogil:
        for i in range(n_components):
            score[i] = log(start[i]) + densities[i, 0]
            for j in range(n_components):
                log_transmat[i, j] = log(chain[i, j])
        for t in range(1, n_timesteps):
            if t % 64 == 0:
                interrupted()
            for j in range(n_components):
                best, origin = -INFINITY, 0
                for i in range(n_components):
                    value = score[i] + log_transmat[i, j]
                    if value > best:
                        best, origin = value, i
                following[j] = best + densities[j, t]
                back[t, j] = origin
            score[:] = following
        origin = 0
        for j in range(1, n_components):
            if score[j] > score[origin]:
                origin = j
        path[n_timesteps - 1] = origin
        for t in range(n_timesteps - 1, 0, -1):
            path[t - 1] = back[t, path[t]]
    return score[origin]


def random_path(
    const double[::1] startprob,
    const double[:, ::1] transmat,
    const double[::1] uniforms,
    Py_ssize_t[::1] path,
):
    """Fill a path of states drawn from the chain by inversion.

    Parameters
    ----------
    startprob : ndarray of shape (n_components,)
        Start probabilities.

    transmat : ndarray of shape (n_states, n_states)
        Transition probabilities; those beyond n_components are padding.

    uniforms : ndarray of shape (n_timesteps,)
        Numbers in [0, 1).

    path : ndarray of int of shape (n_timesteps,)
        Receives the states.
    """
    cdef Py_ssize_t n_components = startprob.shape[0], j, t, state
    cdef const double* row = &startprob[0]
    cdef double level, total
    with nogil:
        for t in range(path.shape[0]):
            if t % 1024 == 0:
                interrupted()
            total, state = 0.0, 0
            for j in range(n_components):
                total += row[j]
            level = uniforms[t] * total
            for j in range(n_components):
                if row[j] > 0:
                    state = j
                    level -= row[j]
                    if level < 0:
                        break
            path[t] = state
            row = &transmat[state, 0]
