"""The solver of assignments, for kernels that call it."""

from libc.stdint cimport int32_t


cdef struct Matching:
    # Scratch of a problem and of the halved ones that give its first prices.
    double* numbers
    int32_t* places


cdef Matching matching_of(double[::1] numbers, int32_t[::1] places) noexcept nogil

cdef int assign(
    const double* cost, Py_ssize_t size, Py_ssize_t* columns, const Matching* scratch
) except -1 nogil
