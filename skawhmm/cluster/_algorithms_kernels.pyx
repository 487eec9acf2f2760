"""Medoids of clusters, by kernels; see `_algorithms`."""

import numpy as np

from libc.math cimport INFINITY

from skawhmm.utils._interruption cimport interrupted

cdef extern from *:
    """
    /* A swap must lower the loss by more than this fraction of it, so that rounding cannot
       make two swaps undo each other for ever. */
    #define LOSS_ROUNDING 1e-12
    """
    const double LOSS_ROUNDING


def greedy_medoids(
    const double[:, :] columns,
    Py_ssize_t n_clusters,
    double scale=1.0,
    double most=INFINITY,
):
    """Return medoids chosen one by one, each to lower the sum of distances the most.

    Parameters
    ----------
    columns : ndarray of shape (n_models, n_models)
        Distances to each candidate, by rows.

    n_clusters : int
        Number of medoids.

    scale, most : float, default=1.0, infinity
        Distances are multiplied by one, then no more than the other.

    Returns
    -------
    medoids : ndarray of shape (n_clusters,)
        Different models.
    """
    cdef Py_ssize_t size = columns.shape[0], k, n, candidate, best
    cdef double total, least
    cdef Py_ssize_t[::1] medoids = np.empty(n_clusters, np.intp)
    cdef char[::1] taken = np.zeros(size, np.int8)
    cdef double[::1] nearest = np.full(size, np.inf)
    with nogil:
        for k in range(n_clusters):
            least, best = INFINITY, -1
            for candidate in range(size):
                if taken[candidate]:
                    continue
                interrupted()
                total = 0.0
                for n in range(size):
                    total += min(nearest[n], min(scale * columns[candidate, n], most))
                if best < 0 or total < least:
                    least, best = total, candidate
            medoids[k], taken[best] = best, True
            for n in range(size):
                nearest[n] = min(nearest[n], min(scale * columns[best, n], most))
    return np.asarray(medoids)


def swap_medoids(
    const double[:, :] columns,
    Py_ssize_t[::1] medoids,
    Py_ssize_t max_iter,
    double scale=1.0,
    double most=INFINITY,
):
    """Swap medoids for other models as long as the sum of distances falls, in place.

    FasterPAM (Schubert and Rousseeuw, 2021): for a candidate the gains of swapping it
    with each of the medoids are found in one pass over the models, and the best swap is
    made at once if it gains.

    Parameters
    ----------
    columns : ndarray of shape (n_models, n_models)
        Distances to each candidate, by rows.

    medoids : ndarray of shape (n_clusters,)
        Changed in place.

    max_iter : int
        Largest number of rounds over all candidates.

    scale, most : float, default=1.0, infinity
        As in `greedy_medoids`.

    Returns
    -------
    n_iter : int
        Number of rounds, the last one without a swap unless there were `max_iter`.
    """
    cdef Py_ssize_t size = columns.shape[0], n_clusters = medoids.shape[0]
    cdef Py_ssize_t step = 0, last = 0, candidate, n, k, worst
    cdef double total = 0.0, shared, own, new, gain
    if n_clusters == 1:
        # The greedy start is exact.
        return 1
    cdef Py_ssize_t[::1] first = np.empty(size, np.intp)
    cdef double[:, ::1] reach = np.empty((2, size))
    cdef double[::1] losses = np.empty(n_clusters)
    cdef double[::1] change = np.empty(n_clusters)
    with nogil:
        rank_medoids(columns, medoids, scale, most, first, reach, losses)
        for n in range(size):
            total += reach[0, n]
        for step in range(max_iter * size):
            candidate = step % size
            if step - last >= size:
                break
            interrupted()
            if is_among(candidate, medoids):
                continue
            shared = 0.0
            change[:] = losses
            for n in range(size):
                own, new = reach[0, n], min(scale * columns[candidate, n], most)
                if new < own:
                    shared += new - own
                    change[first[n]] += own - reach[1, n]
                elif new < reach[1, n]:
                    change[first[n]] += new - reach[1, n]
            worst = 0
            for k in range(1, n_clusters):
                if change[k] < change[worst]:
                    worst = k
            gain = change[worst] + shared
            if gain < -LOSS_ROUNDING * total:
                medoids[worst] = candidate
                rank_medoids(columns, medoids, scale, most, first, reach, losses)
                total += gain
                last = step
    return min(step // size + 1, max_iter)


cdef bint is_among(Py_ssize_t candidate, const Py_ssize_t[::1] medoids) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(medoids.shape[0]):
        if medoids[k] == candidate:
            return True
    return False


cdef void rank_medoids(
    const double[:, :] columns,
    const Py_ssize_t[::1] medoids,
    double scale,
    double most,
    Py_ssize_t[::1] first,
    double[:, ::1] reach,
    double[::1] losses,
) noexcept nogil:
    """Set the nearest medoid of each model, and what removing a medoid would cost.

    `reach` holds the distances to the nearest medoid and to the next.
    """
    cdef Py_ssize_t n, k, best
    cdef double distance, nearest, second
    for k in range(medoids.shape[0]):
        losses[k] = 0.0
    for n in range(first.shape[0]):
        nearest, second, best = INFINITY, INFINITY, 0
        for k in range(medoids.shape[0]):
            distance = min(scale * columns[medoids[k], n], most)
            if distance < nearest:
                best, nearest, second = k, distance, nearest
            elif distance < second:
                second = distance
        first[n], reach[0, n], reach[1, n] = best, nearest, second
        losses[best] += second - nearest
