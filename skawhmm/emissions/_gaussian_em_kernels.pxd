"""EM of one model with Gaussian states, for kernels that call it."""

from skawhmm.emissions._gaussian_densities cimport Frames


cdef struct States:
    # Means and covariances of one model; the latter are variances, or matrices, of
    # `n_cells` numbers per state.
    const double* means
    const double* covars
    Py_ssize_t n_components
    Py_ssize_t n_features
    Py_ssize_t n_cells
    bint is_full


cdef struct Sums:
    # Moments of the frames of each state of one model, about its mean.
    double* counts
    double* firsts
    double* seconds


cdef struct Scratch:
    # Log densities and state probabilities of all frames of a model; whitening matrices
    # and logs of normalising constants; what densities and passes need, and the M step
    # and priors.
    double* logs
    double* post
    double* whiteners
    double* norms
    double* densities
    double* passes
    double* update


cdef class Room:
    # Owns what a `Scratch` points to.
    cdef double[:, :, ::1] rows
    cdef double[::1] factors
    cdef double[::1] densities
    cdef double[::1] weights
    cdef double[::1] update
    cdef Scratch scratch


cdef const double* cells_of(array) except NULL

cdef double* changed_cells_of(array) except NULL

cdef Room make_room(
    const Py_ssize_t[::1] offsets,
    const Py_ssize_t[::1] firsts,
    const Py_ssize_t[::1] active,
    const States* model,
)

cdef Frames frames_of(
    const double[::1] flat,
    const double[::1] seen,
    Py_ssize_t n_features,
    Py_ssize_t first,
    Py_ssize_t last,
) noexcept nogil

cdef double add_expectation(
    const Frames* frames,
    const Py_ssize_t* offsets,
    Py_ssize_t n_sequences,
    const double* startprob,
    const double* transmat,
    const States* model,
    double* starts,
    double* moves,
    double* sizes,
    const Sums* sums,
    const Scratch* scratch,
) except? -1.0 nogil

cdef Py_ssize_t update_model(
    const Sums* sums,
    const States* prior,
    double relevance,
    double floor,
    bint is_pooled,
    double* means,
    double* covars,
    double* scratch,
    Py_ssize_t* low,
) except -1 nogil

cdef double log_prior(
    const States* model, const States* prior, double* scratch
) except? -1.0 nogil
