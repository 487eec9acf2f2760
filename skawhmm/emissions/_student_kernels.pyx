"""Densities and statistics of Student's t states; see `_student`."""

import numpy as np

from libc.math cimport fmin, isnan, log, log1p

from skawhmm.utils._interruption cimport interrupted

# Squared distances in units of a scale are at most this, so that no sum is infinite.
cdef double LARGEST_SQUARE = 1e200

cdef extern from "emissions/_special.h" nogil:
    double digamma(double y)


def fill_student_densities(
    const double[:, ::1] frames,
    const double[:, :, ::1] states,
    const double[:, ::1] norms,
    double[:, ::1] logs,
):
    """Fill log densities of frames under states.

    Parameters
    ----------
    frames : ndarray of shape (n_timesteps, at least n_channels)
        Values; NaN was not observed.

    states : ndarray of shape (3, n_components, n_channels)
        Locations, scales and degrees of freedom.

    norms : ndarray of shape (n_components, n_channels)
        Log densities at the locations.

    logs : ndarray of shape (n_components, n_timesteps)
        Filled with the sums over channels.
    """
    cdef Py_ssize_t k, t, c
    cdef double gap, freedom
    with nogil:
        for k in range(logs.shape[0]):
            for t in range(frames.shape[0]):
                if t % 64 == 0:
                    interrupted()
                logs[k, t] = 0.0
                for c in range(norms.shape[1]):
                    if isnan(frames[t, c]):
                        continue
                    freedom = states[2, k, c]
                    gap = (frames[t, c] - states[0, k, c]) / states[1, k, c]
                    gap = fmin(gap * gap, LARGEST_SQUARE)
                    logs[k, t] += (
                        norms[k, c] - 0.5 * (freedom + 1) * log1p(gap / freedom)
                    )


def student_sums(
    const double[:, ::1] frames,
    const double[:, ::1] post,
    const double[:, :, ::1] states,
):
    r"""Return the sums over frames that an M step needs.

    A t variable is Gaussian with precision :math:`u / \sigma^2`, where u has a gamma
    distribution, also given the frame. Its expected value gives outliers little weight.

    Parameters
    ----------
    frames : ndarray of shape (n_timesteps, 2 * n_channels)
        Values (NaN was not observed), then the spread of each channel.

    post : ndarray of shape (n_components, n_timesteps)
        State probabilities.

    states : ndarray of shape (3, n_components, n_channels)
        Locations, scales and degrees of freedom.

    Returns
    -------
    sums : ndarray of shape (n_components, n_channels, 6)
        Sums, weighted by the probabilities, of 1, u, u d, u d^2 and log u, where d is
        the difference from the location, and of the spreads.
    """
    cdef Py_ssize_t n_channels = states.shape[2], k, t, c
    cdef double weight, gap, freedom, ratio, scale, ahead
    cdef double[:, :, ::1] sums = np.zeros((post.shape[0], n_channels, 6))
    with nogil:
        for k in range(post.shape[0]):
            for c in range(n_channels):
                freedom, scale = states[2, k, c], states[1, k, c]
                ahead = digamma(0.5 * (freedom + 1))
                for t in range(frames.shape[0]):
                    if t % 64 == 0:
                        interrupted()
                    if isnan(frames[t, c]):
                        continue
                    weight, gap = post[k, t], frames[t, c] - states[0, k, c]
                    ratio = freedom + fmin(gap / scale * (gap / scale), LARGEST_SQUARE)
                    sums[k, c, 0] += weight
                    sums[k, c, 4] += weight * (ahead - log(0.5 * ratio))
                    sums[k, c, 5] += weight * frames[t, n_channels + c]
                    weight *= (freedom + 1) / ratio
                    sums[k, c, 1] += weight
                    sums[k, c, 2] += weight * gap
                    sums[k, c, 3] += weight * gap * gap
    return np.asarray(sums)
