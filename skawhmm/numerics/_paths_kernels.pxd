"""Possible paths of states, for kernels that score sequences."""

cdef int keep_least_rank(
    double* logs,
    const Py_ssize_t* ranks,
    const double* startprob,
    const double* transmat,
    Py_ssize_t n_components,
    Py_ssize_t n_timesteps,
    char* alive,
) except -1 nogil
