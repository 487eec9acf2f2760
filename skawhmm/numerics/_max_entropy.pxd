"""The plan of the greatest entropy on a face, for kernels that call it."""

cdef struct Face:
    # The component of each node (sources, then sinks; -1: none) and, by component, the
    # number of cells that could be left out; then a queue and marks of the search.
    int* component
    int* spare
    int* queue
    int* seen
    # Nodes of one component with their margins, gaps and changes, and the conductances
    # between its sources.
    int* sources
    int* sinks
    double* supply
    double* demand
    double* gap
    double* change
    double* degree
    double* between


cdef Face face_of(double[::1] numbers, int[::1] nodes, int size) noexcept nogil

cdef bint find_components(
    const double* marks,
    const double* plan,
    int n_sources,
    int n_sinks,
    const Face* face,
) noexcept nogil

cdef void maximize_entropy(
    const double* marks, int n_sources, int n_sinks, double* plan, const Face* face
) noexcept nogil
