"""Start and transition probabilities of one model, for kernels that call them."""

cdef Py_ssize_t chain_size(Py_ssize_t n_components) noexcept nogil

cdef void update_chain(
    const double* starts,
    const double* moves,
    const double* prior_starts,
    const double* prior_moves,
    Py_ssize_t size,
    Py_ssize_t n_mix,
    double relevance,
    double* startprob,
    double* transmat,
    double* scratch,
) noexcept nogil

cdef double chain_log_prior(
    const double* probabilities, const double* prior, Py_ssize_t size
) noexcept nogil
