"""Gaussian log densities and weighted moments, for kernels that call them.

Frames lie in memory channel by channel, so that every inner loop runs over time and
needs no shuffling. Nothing here knows about chains.
"""


cdef struct Frames:
    # Finite values (n_features, n_frames), those not observed arbitrary, and whether
    # each was observed, 1 or 0; NULL if all were. Rows are `stride` apart.
    const double* values
    const double* seen
    Py_ssize_t stride
    Py_ssize_t n_features
    Py_ssize_t n_frames


cdef Py_ssize_t densities_size(
    Py_ssize_t n_components, Py_ssize_t n_features, Py_ssize_t n_cells
) noexcept nogil

cdef double log_norm(double rank, double log_det) noexcept nogil

cdef double frame_count(const double* post, Py_ssize_t n_frames) noexcept nogil

cdef int diag_log_density(
    const Frames* frames,
    const double* means,
    const double* covars,
    Py_ssize_t n_components,
    double* out,
    double* scratch,
) except -1 nogil

cdef int full_log_density(
    const Frames* frames,
    const double* means,
    const double* whiteners,
    const double* norms,
    Py_ssize_t n_components,
    double* out,
    double* scratch,
) except -1 nogil

cdef int add_diag_moments(
    const Frames* frames,
    const double* post,
    Py_ssize_t post_stride,
    const double* means,
    Py_ssize_t n_components,
    double* counts,
    double* firsts,
    double* seconds,
) except -1 nogil

cdef int add_full_moments(
    const Frames* frames,
    const double* post,
    Py_ssize_t post_stride,
    const double* means,
    Py_ssize_t n_components,
    double* counts,
    double* firsts,
    double* seconds,
    double* scratch,
) except -1 nogil

cdef int cholesky(
    const double* covar, double shift, Py_ssize_t size, double* upper
) except -1 nogil

cdef double cholesky_whitener(
    const double* covar, Py_ssize_t size, double* whitener, double* upper
) except? -1.0 nogil
