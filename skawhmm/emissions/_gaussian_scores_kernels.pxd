"""Log densities under given Gaussian states, for kernels that call them."""

from skawhmm.emissions._gaussian_densities cimport Frames


cdef struct Stack:
    # What `make_densities` returned, of a stack of models with `n_components` states
    # each, some of them padding. Factors and nulls have `n_cells` numbers per state.
    const double* means
    const double* factors
    const double* norms
    const double* scales
    const double* nulls
    Py_ssize_t n_components
    Py_ssize_t n_features
    Py_ssize_t n_cells
    bint is_full


cdef struct Room:
    # Scratch for the log densities of a sequence, the frames and means about its
    # centre, the transition matrix without padding, what densities and passes need,
    # the dimensions of supports, and which states are reached.
    double* logs
    double* gaps
    double* means
    double* chain
    double* densities
    double* passes
    Py_ssize_t* ranks
    char* alive


cdef Stack stack_of(densities)

cdef Room room_of(double[::1] numbers, Py_ssize_t[::1] ranks, char[::1] alive, const Stack* stack, Py_ssize_t n_timesteps) noexcept nogil

cdef Py_ssize_t fill_chain_densities(
    const Frames* frames,
    const Stack* stack,
    Py_ssize_t i,
    Py_ssize_t size,
    const double* startprob,
    const double* transmat,
    const Room* room,
) except -1 nogil
