"""Discounted couplings of one pair of chains, for other kernels."""

from skawhmm.numerics._transport cimport Ranking, Tree


cdef struct Scratch:
    # The value of the last round, and of the couplings of each pair of states `counts`
    # cells with their masses, at every `width` places.
    double* before
    double* masses
    int* cells
    int* counts
    int width
    # What the linear system is solved with: a matrix and its right-hand side, or
    # vectors, one number per pair of states each.
    double* matrix
    double* answer
    double* gap
    double* shadow
    double* course
    double* moved
    double* turned
    double* stay
    # For the transport problems; the plan is zero between them.
    double* plan
    Ranking ranking
    Tree tree


cdef Scratch scratch_of(
    double[::1] numbers,
    int[::1] places,
    double[:, ::1] tree_numbers,
    int[:, ::1] tree_nodes,
    int n_rows,
    int n_columns,
) noexcept nogil

cdef Py_ssize_t largest_dense(int n_rows, int n_columns, double gamma) noexcept nogil

cdef int fill_value(
    const double* chain_a,
    const double* chain_b,
    int stride_a,
    int stride_b,
    const double* cost,
    int n_rows,
    int n_columns,
    double gamma,
    double* value,
    Scratch* scratch,
) except -1 nogil

cdef int eliminate(
    const double* cost,
    int n_cells,
    double gamma,
    double* value,
    const Scratch* scratch,
) except -1 nogil

cdef Py_ssize_t iterate(
    const double* cost,
    int n_cells,
    double gamma,
    double* value,
    const Scratch* scratch,
) except -1 nogil


cdef inline Py_ssize_t start_of(int cell, const Scratch* scratch) noexcept nogil:
    """Where the coupling of a pair of states starts among all cells and masses."""
    return <Py_ssize_t>cell * scratch.width


cdef inline Py_ssize_t end_of(int cell, const Scratch* scratch) noexcept nogil:
    """Where it ends; its cells are fewer than `width`, see `keep_tree`."""
    return start_of(cell, scratch) + scratch.counts[cell]
