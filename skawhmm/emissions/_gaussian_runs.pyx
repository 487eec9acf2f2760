"""Gaussian states in compiled EM runs; see `_state_em`."""

import numpy as np

cimport cython
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
from skawhmm.emissions._state_em cimport StateEM

from skawhmm.emissions._gaussian_em import recomposed


@cython.auto_pickle(False)
cdef class GaussianEM(StateEM):
    """EM of Gaussian states of several models.

    A model waits, after an M step, if some of its covariances have eigenvalues below
    the floor: LAPACK lifts them.

    Parameters
    ----------
    data : Data
        The sequences of all models.

    states, prior : tuple of ndarray
        Means and covariances of all models, changed in place; and what they shrink to,
        one for each or one for all.

    floor : float
        Least variance.

    is_pooled : bool
        Whether covariances are pooled (over channels, or over states if they are full).
    """

    cdef object covariances
    cdef double floor
    cdef bint is_pooled
    cdef const double[::1] frames
    cdef const double[::1] seen
    cdef const Py_ssize_t[::1] offsets
    cdef const Py_ssize_t[::1] firsts
    cdef double[:, :, ::1] means
    cdef double* covars
    cdef const double[:, :, ::1] prior_means
    cdef object prior_covariances
    cdef const double* prior_covars
    cdef States shape
    cdef Room room
    cdef Sums sums
    cdef double[::1] moments
    cdef Py_ssize_t[::1] low
    cdef Py_ssize_t n_low

    def __init__(self, data, states, prior, double floor, bint is_pooled):
        self.floor, self.is_pooled = floor, is_pooled
        self.frames, self.seen = data.frames, data.seen
        self.offsets, self.firsts = data.offsets, data.firsts
        self.means, self.covariances = states
        self.covars = changed_cells_of(self.covariances)
        self.prior_means, self.prior_covariances = prior
        self.prior_covars = cells_of(self.prior_covariances)
        cdef Py_ssize_t n_models = self.means.shape[0], size = self.means.shape[1]
        cdef Py_ssize_t n_features = self.means.shape[2]
        self.shape.n_components, self.shape.n_features = size, n_features
        self.shape.is_full = self.covariances.ndim == 4
        self.shape.n_cells = n_features * n_features if self.shape.is_full else n_features
        every = np.arange(n_models)
        self.room = make_room(self.offsets, self.firsts, every, &self.shape)
        self.moments = np.empty(size * (2 * n_features + self.shape.n_cells))
        self.sums.counts = &self.moments[0]
        self.sums.firsts = self.sums.counts + size * n_features
        self.sums.seconds = self.sums.firsts + size * n_features
        self.low, self.n_low = np.empty(n_models * size, np.intp), 0

    cdef States states_of(self, Py_ssize_t m) noexcept nogil:
        cdef States states = self.shape
        states.means = &self.means[m, 0, 0]
        states.covars = self.covars + m * states.n_components * states.n_cells
        return states

    cdef States prior_of(self, Py_ssize_t m) noexcept nogil:
        cdef Py_ssize_t row = min(m, self.prior_means.shape[0] - 1)
        cdef States states = self.shape
        states.means = &self.prior_means[row, 0, 0]
        states.covars = self.prior_covars + row * states.n_components * states.n_cells
        return states

    cdef double expectation(
        self,
        Py_ssize_t m,
        const double* startprob,
        const double* transmat,
        double* starts,
        double* moves,
        double* counts,
    ) except? -1.0 nogil:
        cdef Py_ssize_t first = self.firsts[m], last = self.firsts[m + 1]
        cdef const Py_ssize_t* offsets = &self.offsets[first]
        cdef States states = self.states_of(m)
        cdef Frames own = frames_of(
            self.frames, self.seen, states.n_features, offsets[0], offsets[last - first]
        )
        memset(&self.moments[0], 0, self.moments.shape[0] * sizeof(double))
        return add_expectation(
            &own, offsets, last - first, startprob, transmat, &states, starts, moves,
            counts, &self.sums, &self.room.scratch,
        )

    cdef double log_prior(self, Py_ssize_t m) except? -1.0 nogil:
        cdef States states = self.states_of(m), prior = self.prior_of(m)
        return log_prior(&states, &prior, self.room.scratch.update)

    cdef int maximization(self, Py_ssize_t m, double relevance) except -1 nogil:
        cdef States prior = self.prior_of(m)
        cdef Py_ssize_t stride = prior.n_components * prior.n_cells
        cdef Py_ssize_t* low = &self.low[0] + self.n_low
        cdef Py_ssize_t found = update_model(
            &self.sums, &prior, relevance, self.floor, self.is_pooled,
            &self.means[m, 0, 0], self.covars + m * stride, self.room.scratch.update,
            low,
        )
        cdef Py_ssize_t k
        for k in range(found):
            low[k] += m * prior.n_components
        self.n_low += found
        return found > 0

    def resume(self):
        """Lift the eigenvalues of the models that wait."""
        low = np.asarray(self.low)[: self.n_low]
        cells = np.unravel_index(low, self.covariances.shape[:2])
        self.covariances[cells] = recomposed(self.covariances[cells], self.floor)
        self.n_low = 0
