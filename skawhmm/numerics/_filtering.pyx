"""States of one chain given the frames so far, given log densities.

Each frame updates the probabilities of the states, so a frame never changes what was
found before it.
"""

import numpy as np

from libc.math cimport INFINITY, exp, log

from skawhmm.utils._interruption cimport interrupted

cdef extern from *:
    """
    /* A sum of probabilities above this has lost nothing that fell out of range. */
    #define LEAST_SUM 1e-280
    """
    const double LEAST_SUM


def filter_frames(
    const double[:, :] logs,
    const Py_ssize_t[:, :] ranks,
    const double[:, ::1] transmat,
    double[::1] ahead,
    double[:, ::1] proba,
    double[::1] surprise,
):
    """Fill the state probabilities of frames given earlier frames, and their surprise.

    Parameters
    ----------
    logs : ndarray of shape (n_components, n_timesteps)
        Log densities of the states, minus infinity for frames that they cannot emit.

    ranks : ndarray of int of shape (n_components, n_timesteps)
        Dimensions of the supports of the states. A frame on the flattest of them has
        infinitely more density there.

    transmat : ndarray of shape (n_components, n_components)
        Transition probabilities.

    ahead : ndarray of shape (n_components,)
        Log probabilities of the states of the first frame. Replaced by the log
        probabilities for the frame after the last one.

    proba : ndarray of shape (n_timesteps, n_components)
        Receives the probabilities of the states of each frame.

    surprise : ndarray of shape (n_timesteps,)
        Receives minus the log density of each frame given earlier frames. It is
        infinite if no state that can be reached emits the frame, which is then skipped.
    """
    cdef Py_ssize_t n_components = logs.shape[0], n_timesteps = logs.shape[1], t, k
    cdef double[::1] scratch = np.empty(n_components)
    cdef Py_ssize_t[::1] dims = np.empty(n_components, np.intp)
    cdef double[:, ::1] log_transmat = np.empty((n_components, n_components))
    with nogil:
        for t in range(n_components):
            for k in range(n_components):
                log_transmat[t, k] = log(transmat[t, k])
        for t in range(n_timesteps):
            if t % 64 == 63:
                interrupted()
            for k in range(n_components):
                scratch[k], dims[k] = logs[k, t], ranks[k, t]
            surprise[t] = filter_step(
                &scratch[0], &dims[0], n_components, &ahead[0], &proba[t, 0]
            )
            step_ahead(
                &transmat[0, 0], &log_transmat[0, 0], n_components, &proba[t, 0],
                &ahead[0], &scratch[0],
            )


cdef double filter_step(
    double* logs,
    const Py_ssize_t* ranks,
    Py_ssize_t n_components,
    double* ahead,
    double* proba,
) noexcept nogil:
    """Take a frame into account: `ahead` and `proba` become those given the frame."""
    cdef Py_ssize_t least = -1, k
    cdef double top = -INFINITY, total = 0.0
    for k in range(n_components):
        logs[k] += ahead[k]
        if logs[k] > -INFINITY and (least < 0 or ranks[k] < least):
            least = ranks[k]
    for k in range(n_components):
        # An impossible frame says nothing about the states.
        if least >= 0:
            ahead[k] = logs[k] if ranks[k] == least else -INFINITY
        top = max(top, ahead[k])
    for k in range(n_components):
        proba[k] = exp(ahead[k] - top)
        total += proba[k]
    for k in range(n_components):
        proba[k] /= total
        ahead[k] = ahead[k] - top - log(total)
    return -(top + log(total)) if least >= 0 else INFINITY


cdef void step_ahead(
    const double* transmat,
    const double* log_transmat,
    Py_ssize_t n_components,
    const double* proba,
    double* ahead,
    double* now,
) noexcept nogil:
    """Advance log probabilities of states to the next frame."""
    cdef Py_ssize_t i, j
    cdef double total, top
    for i in range(n_components):
        now[i] = ahead[i]
    for j in range(n_components):
        total = 0.0
        for i in range(n_components):
            total += proba[i] * transmat[i * n_components + j]
        if total > LEAST_SUM:
            ahead[j] = log(total)
            continue
        top = -INFINITY
        for i in range(n_components):
            top = max(top, now[i] + log_transmat[i * n_components + j])
        ahead[j] = top
        if top > -INFINITY:
            total = 0.0
            for i in range(n_components):
                total += exp(now[i] + log_transmat[i * n_components + j] - top)
            ahead[j] = top + log(total)
