"""The solver of assignments, for kernels that call it."""


cdef struct Matching:
    # Prices of the columns and the rows matched with them, -1 for none; rows without a
    # match; scratch for rows, and for the paths that end in each column.
    double* price
    double* gap
    double* open_price
    double* settled
    Py_ssize_t* rows
    Py_ssize_t* free
    Py_ssize_t* via
    Py_ssize_t* scratch


cdef Matching matching_of(double[:, ::1] numbers, Py_ssize_t[:, ::1] places) noexcept nogil

cdef int assign(
    const double* cost, Py_ssize_t size, Py_ssize_t* columns, const Matching* state
) except -1 nogil
