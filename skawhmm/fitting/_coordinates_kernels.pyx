"""Summaries of channels, and their frames in other coordinates; see `_coordinates`."""

import numpy as np

from skawhmm.utils._interruption cimport interrupted

cdef extern from "fitting/_coordinates_kernels.h" nogil:
    const Py_ssize_t LANES
    Py_ssize_t longest_range(const Py_ssize_t* bounds, Py_ssize_t n_ranges)
    void fill_summary(const double* row, Py_ssize_t size, double* summary)
    Py_ssize_t standardize(
        const double* row, Py_ssize_t size, double centre, double scale, double* out
    )
    void fill_seen(double* values, Py_ssize_t size, double* seen)
    int whiten(
        const double* rows,
        Py_ssize_t stride,
        const double* basis,
        Py_ssize_t n_features,
        Py_ssize_t size,
        double* out,
    ) except -1
    int fill_cross_products(
        const double* rows,
        Py_ssize_t stride,
        Py_ssize_t n_features,
        Py_ssize_t size,
        double* padded,
        double* products,
    ) except -1


def channel_summaries(const double[:, ::1] channels, const Py_ssize_t[::1] offsets):
    """Means, variances, least and greatest values and counts of all channels.

    Parameters
    ----------
    channels : ndarray of shape (n_features, n_timesteps)
        Frames channel by channel, NaN where not observed.

    offsets : ndarray of shape (n_sequences + 1,)
        Where the sequences begin and end; none is empty.

    Returns
    -------
    summaries : ndarray of shape (5, n_sequences, n_features)
        In the order above.
    """
    cdef Py_ssize_t n_sequences = offsets.shape[0] - 1, n_features = channels.shape[0]
    cdef Py_ssize_t c, s, k
    cdef double[::1] summary = np.empty(5)
    cdef double[:, :, ::1] summaries = np.empty((5, n_sequences, n_features))
    with nogil:
        for c in range(n_features):
            interrupted()
            for s in range(n_sequences):
                fill_summary(
                    &channels[c, offsets[s]], offsets[s + 1] - offsets[s], &summary[0]
                )
                for k in range(5):
                    summaries[k, s, c] = summary[k]
    return np.asarray(summaries)


def standardized_rows(
    const double[:, ::1] channels,
    const Py_ssize_t[::1] offsets,
    const Py_ssize_t[::1] active,
    const double[:, ::1] centre,
    const double[:, ::1] scale,
):
    """Chosen channels centred, scaled, NaN replaced by 0, and the mask of those.

    Parameters
    ----------
    channels, offsets : ndarray
        As in `channel_summaries`.

    active : ndarray of int of shape (n_active,)
        Which channels.

    centre, scale : ndarray of shape (n_rows, n_features)
        A row per sequence; the last one is that of all that follow.

    Returns
    -------
    result : ndarray of shape (n_active, n_timesteps)
        The values.

    seen : ndarray of shape (n_active, n_timesteps) or (0, 0)
        0 where a value was not observed, else 1; empty if all were.
    """
    cdef Py_ssize_t i, s, r, first, n_unknown = 0
    cdef double[:, ::1] result = np.empty((active.shape[0], channels.shape[1]))
    cdef double[:, ::1] seen
    with nogil:
        for i in range(active.shape[0]):
            interrupted()
            for s in range(offsets.shape[0] - 1):
                r, first = min(s, centre.shape[0] - 1), offsets[s]
                n_unknown += standardize(
                    &channels[active[i], first], offsets[s + 1] - first,
                    centre[r, active[i]], scale[r, active[i]], &result[i, first],
                )
    if n_unknown == 0:
        return np.asarray(result), np.empty((0, 0))
    seen = np.empty((result.shape[0], result.shape[1]))
    with nogil:
        fill_seen(&result[0, 0], result.shape[0] * result.shape[1], &seen[0, 0])
    return np.asarray(result), np.asarray(seen)


def whitened_rows(
    const double[:, ::1] z,
    const Py_ssize_t[::1] offsets,
    const double[:, :, ::1] bases,
):
    """Every sequence multiplied by its own matrix.

    Parameters
    ----------
    z, offsets : ndarray
        As in `channel_summaries`.

    bases : ndarray of shape (n_rows, n_features, n_features)
        A matrix per sequence; the last one is that of all that follow.

    Returns
    -------
    result : ndarray of shape (n_features, n_timesteps)
        The values.
    """
    cdef Py_ssize_t n_features = z.shape[0], stride = z.shape[1], s, first
    cdef double[:, ::1] result = np.empty((n_features, stride))
    with nogil:
        for s in range(offsets.shape[0] - 1 if n_features > 0 else 0):
            first = offsets[s]
            whiten(
                &z[0, first], stride, &bases[min(s, bases.shape[0] - 1), 0, 0],
                n_features, offsets[s + 1] - first, &result[0, first],
            )
    return np.asarray(result)


def second_moments(const double[:, ::1] z, const Py_ssize_t[::1] offsets):
    """Mean products (n_sequences, n_features, n_features) of the channels."""
    cdef Py_ssize_t n_features = z.shape[0], size, s, c, e
    cdef Py_ssize_t longest = longest_range(&offsets[0], offsets.shape[0] - 1)
    cdef double[:, ::1] padded = np.empty((n_features, longest + LANES))
    cdef double[:, :, ::1] moments = np.empty(
        (offsets.shape[0] - 1, n_features, n_features)
    )
    with nogil:
        for s in range(moments.shape[0] if n_features > 0 else 0):
            size = offsets[s + 1] - offsets[s]
            fill_cross_products(
                &z[0, offsets[s]], z.shape[1], n_features, size, &padded[0, 0],
                &moments[s, 0, 0],
            )
            for c in range(n_features):
                for e in range(c + 1):
                    moments[s, c, e] /= size
                    moments[s, e, c] = moments[s, c, e]
    return np.asarray(moments)
