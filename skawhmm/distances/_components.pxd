"""Chains transferred to other states, for kernels that compare or average them."""

from skawhmm.numerics._transport cimport Tree


cdef struct Rows:
    # Scratch for transport between two rows: costs and a plan, what the one row has
    # more than the other and less, and in which states.
    double* cost
    double* plan
    double* surplus
    double* deficit
    int* sources
    int* sinks
    Tree tree


cdef Rows rows_of(scratch, int size)

cdef double rows_cost(
    double total,
    const double* weights,
    const double* chain,
    const double* other,
    const double* within,
    int size,
    double p,
    const Rows* rows,
) except? -1.0 nogil

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
