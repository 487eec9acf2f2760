"""Densities and moments of Gaussian states in blocks of channels."""

import numpy as np

from libc.math cimport M_PI, isnan, log

from skawhmm.utils._interruption cimport interrupted


def fill_diag_densities(
    const double[:, ::1] frames,
    const double[:, ::1] means,
    const double[:, ::1] variances,
    double[:, ::1] logs,
):
    """Fill log densities under diagonal covariances.

    Parameters
    ----------
    frames : ndarray of shape (n_timesteps, n_channels)
        Values; NaN was not observed.

    means, variances : ndarray of shape (n_components, n_channels)
        Parameters of the states.

    logs : ndarray of shape (n_components, n_timesteps)
        Filled with the log densities.
    """
    cdef Py_ssize_t k, t, c
    cdef double[:, ::1] norms = np.log(2 * np.pi * np.asarray(variances))
    cdef double gap
    with nogil:
        for k in range(logs.shape[0]):
            for t in range(frames.shape[0]):
                if t % 256 == 0:
                    interrupted()
                logs[k, t] = 0.0
                for c in range(frames.shape[1]):
                    if not isnan(frames[t, c]):
                        gap = frames[t, c] - means[k, c]
                        logs[k, t] -= 0.5 * (norms[k, c] + gap * gap / variances[k, c])


def fill_full_densities(
    const double[:, ::1] frames,
    const double[:, ::1] means,
    const double[:, :, ::1] whiteners,
    double[:, ::1] logs,
):
    """Fill log densities under full covariances.

    Parameters
    ----------
    frames : ndarray of shape (n_timesteps, n_channels)
        Values.

    means : ndarray of shape (n_components, n_channels)
        Means of the states.

    whiteners : ndarray of shape (n_components, n_channels, n_channels)
        Inverses of the lower Cholesky factors of the covariances.

    logs : ndarray of shape (n_components, n_timesteps)
        Filled with the log densities.
    """
    cdef Py_ssize_t size = frames.shape[1], k, t, c, d
    cdef double total, norm
    with nogil:
        for k in range(logs.shape[0]):
            norm = -0.5 * size * log(2 * M_PI)
            for c in range(size):
                norm += log(whiteners[k, c, c])
            for t in range(frames.shape[0]):
                if t % 64 == 0:
                    interrupted()
                logs[k, t] = norm
                for c in range(size):
                    total = 0.0
                    for d in range(c + 1):
                        total += whiteners[k, c, d] * (frames[t, d] - means[k, d])
                    logs[k, t] -= 0.5 * total * total


def diag_moments(
    const double[:, ::1] frames,
    const double[:, ::1] post,
    const double[:, ::1] means,
):
    """Return counts, sums and sums of squares of differences from the means.

    Parameters
    ----------
    frames : ndarray of shape (n_timesteps, n_channels)
        Values; NaN was not observed.

    post : ndarray of shape (n_components, n_timesteps)
        State probabilities.

    means : ndarray of shape (n_components, n_channels)
        Present means of the states.

    Returns
    -------
    moments : ndarray of shape (n_components, 3, n_channels)
        The sums, weighted by the probabilities.
    """
    cdef Py_ssize_t k, t, c
    cdef double gap
    cdef double[:, :, ::1] moments = np.zeros((post.shape[0], 3, frames.shape[1]))
    with nogil:
        for k in range(post.shape[0]):
            for t in range(frames.shape[0]):
                if t % 256 == 0:
                    interrupted()
                for c in range(frames.shape[1]):
                    if not isnan(frames[t, c]):
                        gap = frames[t, c] - means[k, c]
                        moments[k, 0, c] += post[k, t]
                        moments[k, 1, c] += post[k, t] * gap
                        moments[k, 2, c] += post[k, t] * gap * gap
    return np.asarray(moments)


def full_moments(
    const double[:, ::1] frames,
    const double[:, ::1] post,
    const double[:, ::1] means,
):
    """Return counts, sums and sums of products of differences from the means.

    The parameters are those of `diag_moments`, without missing values.

    Returns
    -------
    moments : ndarray of shape (n_components, 2 + n_channels, n_channels)
        The sums, weighted by the probabilities: counts, then differences, then the
        rows of their products.
    """
    cdef Py_ssize_t size = frames.shape[1], k, t, c, d
    cdef double gap
    cdef double[:, :, ::1] moments = np.zeros((post.shape[0], 2 + size, size))
    with nogil:
        for k in range(post.shape[0]):
            for t in range(frames.shape[0]):
                if t % 64 == 0:
                    interrupted()
                for c in range(size):
                    gap = post[k, t] * (frames[t, c] - means[k, c])
                    moments[k, 0, c] += post[k, t]
                    moments[k, 1, c] += gap
                    for d in range(c + 1):
                        moments[k, 2 + c, d] += gap * (frames[t, d] - means[k, d])
            for c in range(size):
                for d in range(c):
                    moments[k, 2 + d, c] = moments[k, 2 + c, d]
    return np.asarray(moments)
