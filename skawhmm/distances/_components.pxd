"""Chains transferred to other states, for kernels that compare or average them."""

cdef void conditionals(
    const double* plan, int size, double* forth, double* back
) noexcept nogil

cdef int carry_chain(
    const double* forth,
    const double* transmat,
    const double* back,
    int size,
    bint joint,
    double* half,
    double* moved,
) except -1 nogil
