"""Passes over one chain, for kernels that call them.

Log densities and state probabilities have rows `stride` apart, one per state.
"""

cdef Py_ssize_t passes_size(Py_ssize_t n_components, Py_ssize_t n_timesteps) noexcept nogil

cdef double log_likelihood(
    const double* logs,
    Py_ssize_t stride,
    const double* startprob,
    const double* transmat,
    Py_ssize_t n_components,
    Py_ssize_t n_timesteps,
    double* scratch,
) except? -1.0 nogil

cdef void begin_passes(
    const double* transmat, Py_ssize_t n_components, double* scratch
) noexcept nogil

cdef double passes(
    const double* logs,
    Py_ssize_t stride,
    const double* startprob,
    const double* transmat,
    Py_ssize_t n_components,
    Py_ssize_t n_timesteps,
    double* post,
    double* moves,
    double* scratch,
) except? -1.0 nogil

cdef double passes_each(
    const double* logs,
    Py_ssize_t stride,
    const Py_ssize_t* offsets,
    Py_ssize_t n_sequences,
    const double* startprob,
    const double* transmat,
    Py_ssize_t n_components,
    double* post,
    double* starts,
    double* moves,
    double* scratch,
) except? -1.0 nogil
