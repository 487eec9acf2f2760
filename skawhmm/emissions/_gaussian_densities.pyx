"""Gaussian log densities and weighted moments; see the declarations."""

from libc.math cimport NAN, log

from skawhmm.utils._interruption cimport interrupted

cdef extern from "emissions/_gaussian_densities.h" nogil:
    const int LANES
    const int TIME_BLOCK
    double log_constant(double rank, double log_det)
    double sum_of(const double* row, Py_ssize_t size)
    double diag_scales(const double* covars, Py_ssize_t n_features, double* scales)
    int add_diag_squares(
        const double* frames,
        Py_ssize_t stride,
        Py_ssize_t n_features,
        Py_ssize_t n_frames,
        const double* means,
        const double* scales,
        Py_ssize_t n_components,
        double* out,
    ) except -1
    void add_seen_squares(
        const double* row,
        const double* seen,
        Py_ssize_t n_frames,
        double mean,
        double scale,
        double norm,
        double* total,
    )
    int fill_full_densities(
        const double* frames,
        Py_ssize_t stride,
        Py_ssize_t n_features,
        Py_ssize_t n_frames,
        const double* means,
        const double* whiteners,
        const double* norms,
        Py_ssize_t n_components,
        double* out,
        double* block,
    ) except -1
    int add_all_moments(
        const double* frames,
        Py_ssize_t stride,
        Py_ssize_t n_features,
        Py_ssize_t n_frames,
        const double* post,
        Py_ssize_t post_stride,
        const double* means,
        Py_ssize_t n_components,
        double* counts,
        double* firsts,
        double* seconds,
    ) except -1
    void add_few_moments(
        const double* frames,
        Py_ssize_t stride,
        Py_ssize_t n_features,
        Py_ssize_t n_frames,
        const double* post,
        Py_ssize_t post_stride,
        const double* means,
        Py_ssize_t n_components,
        double* counts,
        double* firsts,
        double* seconds,
    )
    void add_seen_moments(
        const double* row,
        const double* seen,
        const double* weights,
        Py_ssize_t n_frames,
        double mean,
        double* count,
        double* first,
        double* second,
    )
    int add_product_moments(
        const double* frames,
        Py_ssize_t stride,
        Py_ssize_t n_features,
        Py_ssize_t n_frames,
        const double* post,
        Py_ssize_t post_stride,
        const double* means,
        Py_ssize_t n_components,
        double* counts,
        double* firsts,
        double* seconds,
        double* gaps,
    ) except -1
    int fill_factor(
        const double* covar, double shift, Py_ssize_t size, double* upper
    ) except -1
    int fill_inverse(const double* upper, Py_ssize_t size, double* inverse) except -1


cdef Py_ssize_t densities_size(
    Py_ssize_t n_components, Py_ssize_t n_features, Py_ssize_t n_cells
) noexcept nogil:
    """Length of the scratch that densities and moments need.

    A covariance has `n_cells` numbers: as many as features if it is diagonal.
    """
    return max(n_features * max(n_components, TIME_BLOCK), n_cells)


cdef double log_norm(double rank, double log_det) noexcept nogil:
    """Log of the normalising constant, given the dimension of the support."""
    return log_constant(rank, log_det)


cdef double frame_count(const double* post, Py_ssize_t n_frames) noexcept nogil:
    """Expected frames of a state."""
    return sum_of(post, n_frames)


cdef int diag_log_density(
    const Frames* frames,
    const double* means,
    const double* covars,
    Py_ssize_t n_components,
    double* out,
    double* scratch,
) except -1 nogil:
    """Fill the log density of every frame under states with diagonal covariance.

    A variance of 0 adds nothing, as on a flat support.
    """
    cdef Py_ssize_t n_features = frames.n_features, n_frames = frames.n_frames
    cdef Py_ssize_t k, c, t
    cdef const double* covar
    cdef double norm
    cdef double* scales = scratch
    for k in range(n_components):
        if n_frames > TIME_BLOCK:
            interrupted()
        norm = diag_scales(covars + k * n_features, n_features, scales + k * n_features)
        for t in range(n_frames):
            out[k * n_frames + t] = norm if frames.seen == NULL else 0.0
    if frames.seen == NULL:
        add_diag_squares(
            frames.values, frames.stride, n_features, n_frames, means, scales,
            n_components, out,
        )
        return 0
    for c in range(n_features):
        if n_frames > TIME_BLOCK:
            interrupted()
        for k in range(n_components):
            covar = covars + k * n_features + c
            norm = log_constant(1, log(covar[0])) if covar[0] > 0 else 0.0
            add_seen_squares(
                frames.values + c * frames.stride, frames.seen + c * frames.stride,
                n_frames, means[k * n_features + c], scales[k * n_features + c], norm,
                out + k * n_frames,
            )


cdef int full_log_density(
    const Frames* frames,
    const double* means,
    const double* whiteners,
    const double* norms,
    Py_ssize_t n_components,
    double* out,
    double* scratch,
) except -1 nogil:
    """Fill the log density of every frame under states with full covariance.

    Whiteners are matrices A with A covars A^T = I on the support and rows of 0 off it;
    norms are the logarithms of the normalising constants.
    """
    fill_full_densities(
        frames.values, frames.stride, frames.n_features, frames.n_frames, means,
        whiteners, norms, n_components, out, scratch,
    )


cdef int add_diag_moments(
    const Frames* frames,
    const double* post,
    Py_ssize_t post_stride,
    const double* means,
    Py_ssize_t n_components,
    double* counts,
    double* firsts,
    double* seconds,
) except -1 nogil:
    """Add weighted counts, sums and sums of squares about the means.

    The weights of the frames for every state are `post`. The origins of the moments are
    the present means, so that little cancels.
    """
    cdef Py_ssize_t k, c, cell
    cdef const double* seen
    if frames.seen == NULL and frames.n_frames >= LANES:
        add_all_moments(
            frames.values, frames.stride, frames.n_features, frames.n_frames, post,
            post_stride, means, n_components, counts, firsts, seconds,
        )
        return 0
    if frames.seen == NULL:
        add_few_moments(
            frames.values, frames.stride, frames.n_features, frames.n_frames, post,
            post_stride, means, n_components, counts, firsts, seconds,
        )
        return 0
    for c in range(frames.n_features):
        if frames.n_frames > TIME_BLOCK:
            interrupted()
        seen = frames.seen + c * frames.stride
        for k in range(n_components):
            cell = k * frames.n_features + c
            add_seen_moments(
                frames.values + c * frames.stride, seen, post + k * post_stride,
                frames.n_frames, means[cell], counts + cell, firsts + cell,
                seconds + cell,
            )


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
) except -1 nogil:
    """Add counts, sums and sums of products about the means; see the diagonal case."""
    cdef Py_ssize_t size = frames.n_features, k, c, e
    cdef double* second
    add_product_moments(
        frames.values, frames.stride, size, frames.n_frames, post, post_stride, means,
        n_components, counts, firsts, seconds, scratch,
    )
    for k in range(n_components):
        second = seconds + k * size * size
        for c in range(size):
            for e in range(c):
                second[e * size + c] = second[c * size + e]


cdef int cholesky(
    const double* covar, double shift, Py_ssize_t size, double* upper
) except -1 nogil:
    """Fill the transposed Cholesky factor of covar - shift * I, if there is one.

    Returns whether it exists. Entries below the diagonal are left unchanged.
    """
    return fill_factor(covar, shift, size, upper)


cdef double cholesky_whitener(
    const double* covar, Py_ssize_t size, double* whitener, double* upper
) except? -1.0 nogil:
    """Fill the inverse Cholesky factor; returns the log determinant.

    The log determinant is NaN if the matrix is not positive definite. `upper` is
    scratch.
    """
    cdef Py_ssize_t j
    cdef double log_det = 0.0
    if not fill_factor(covar, 0.0, size, upper):
        return NAN
    fill_inverse(upper, size, whitener)
    for j in range(size):
        log_det += 2 * log(upper[j * size + j])
    return log_det
