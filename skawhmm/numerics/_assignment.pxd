"""The solver of assignments, for kernels that call it."""


cdef struct Matching:
    # Scratch of a problem and of the halved ones that give its first prices.
    double* numbers
    Py_ssize_t* places


cdef Matching matching_of(double[::1] numbers, Py_ssize_t[::1] places) noexcept nogil

cdef int assign(
    const double* cost, Py_ssize_t size, Py_ssize_t* columns, const Matching* scratch
) except -1 nogil
