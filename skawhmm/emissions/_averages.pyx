"""Sums over the states of models that are matched with the states of averages."""

import numpy as np

from skawhmm.utils._interruption cimport interrupted


def matched_sums(masses, labels, values, Py_ssize_t n_rows):
    """Return the weight of each average, and the weighted sum of its vectors.

    Parameters
    ----------
    masses : ndarray of shape (n_models, n_components, n_components)
        Weight of each state (last axis) in each state of the average of its model.

    labels : ndarray of int of shape (n_models,)
        The row of averages that each model belongs to.

    values : ndarray of shape (n_models, n_components, n_values)
        A vector for each state of the models.

    n_rows : int
        Number of rows of averages.

    Returns
    -------
    mass : ndarray of shape (n_rows, n_components)
        Sums of the weights.

    sums : ndarray of shape (n_rows, n_components, n_values)
        Sums of the vectors.
    """
    cdef const double[:, :, ::1] matched = np.ascontiguousarray(masses)
    cdef const double[:, :, ::1] vectors = np.ascontiguousarray(values)
    cdef const Py_ssize_t[::1] rows = np.ascontiguousarray(labels, dtype=np.intp)
    cdef Py_ssize_t size = matched.shape[1], n, i, j, k, row
    cdef double weight
    cdef double[:, ::1] mass = np.zeros((n_rows, size))
    cdef double[:, :, ::1] sums = np.zeros((n_rows, size, vectors.shape[2]))
    with nogil:
        for n in range(matched.shape[0]):
            row = rows[n]
            for i in range(size):
                if i % 8 == 0:
                    interrupted()
                for j in range(size):
                    weight = matched[n, i, j]
                    if weight > 0:
                        mass[row, i] += weight
                        for k in range(vectors.shape[2]):
                            sums[row, i, k] += weight * vectors[n, j, k]
    return np.asarray(mass), np.asarray(sums)
