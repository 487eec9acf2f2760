"""The solver of small transport problems, for kernels that call it."""

cdef extern from *:
    """
    /* What is left of a mass that was split among a few cells is rounding below this
       fraction of it (a sum of up to a hundred parts is exact to about this). */
    #define MASS_ROUNDING 1e-14
    """
    const double MASS_ROUNDING


cdef struct Tree:
    # Masses still to place, and dual prices, which add up to the cost on the cells of
    # the tree. Nodes are the sources, then the sinks.
    double* open
    double* price
    # The spanning tree (depth -1: the node carries no mass), nodes still to visit, and
    # lists of neighbours: `width` places per node, of which `degree` are taken.
    int* parent
    int* depth
    int* degree
    int* stack
    int* neighbours
    int width


cdef struct Ranking:
    # Sources and sinks of the cells of a plan, in the order in which they are filled.
    int* sources
    int* sinks


cdef Tree tree_of(double[:, ::1] numbers, int[:, ::1] nodes) noexcept nogil

cdef double least_cost(
    const double* supply,
    const double* demand,
    const double* cost,
    int n_sources,
    int n_sinks,
    double* plan,
    const Tree* tree,
) except? -1.0 nogil

cdef void price_tree(
    const double* cost, int n_sources, int n_sinks, const Tree* tree
) noexcept nogil

cdef int improve(
    const double* cost, int n_sources, int n_sinks, double* plan, const Tree* tree
) except -1 nogil

cdef void rank_cells(
    const double* cost,
    int n_sources,
    int n_sinks,
    double* keys,
    const Ranking* ranking,
    const Tree* tree,
) noexcept nogil

cdef int fill_ranked(
    const double* supply,
    const double* demand,
    const double* cost,
    int n_sources,
    int n_sinks,
    const Ranking* ranking,
    double* plan,
    const Tree* tree,
) except -1 nogil

cdef int keep_tree(
    int n_sources, int n_sinks, double* plan, int* cells, double* masses,
    const Tree* tree,
) noexcept nogil

cdef int resume_tree(
    const int* cells,
    const double* masses,
    int count,
    const double* cost,
    int n_sources,
    int n_sinks,
    double* plan,
    const Tree* tree,
) except -1 nogil

cdef double largest_cost(
    const double* cost, int n_sources, int n_sinks, const Tree* tree
) noexcept nogil
