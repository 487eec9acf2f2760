"""Exact optimal transport for batches of small problems.

The only module that knows how a plan is found. It sees masses and costs, never models.

States are few, so one problem is tiny and calling a solver costs more than solving:
batches are solved inside one compiled loop. The method is the network simplex on the
spanning tree of a transportation problem: a greedy start on reduced costs, row-wise
pricing, and Cunningham's rule (trees stay strongly feasible), so that degenerate
problems cannot cycle. Nodes are the sources, then the sinks.

Problems with the same cost have the same start, too: cells are ranked once, and
each plan is filled in this order. If only the cost changes, the tree of a problem stays
feasible: it is kept, a few numbers per node, and later resumed from there.

Other kernels call `least_cost` and its companions (see the `.pxd`); Python reaches them
one by one in `_entry_points`.
"""

import numpy as np

from libc.math cimport INFINITY

from skawhmm.utils._interruption cimport interrupted

cdef extern from *:
    """
    /* Prices are sums of up to two costs per state, exact to about this fraction of the
       largest cost: a cell cheaper by less is not worth a pivot. */
    #define PRICE_ROUNDING 1e-14

    /* Pivots per node; a few are seen. The bound only guards against rounding. */
    #define MAX_PIVOTS 10000

    /* Rows searched between two checks for Ctrl-C; small problems have none. */
    #define TURNS 64
    """
    const double PRICE_ROUNDING
    const int MAX_PIVOTS, TURNS

# Rows of the scratch array of numbers, and of nodes.
PRICE = 1
DEPTH = 1


def make_workspace(n_sources, n_sinks):
    """Return the scratch arrays of the solver, to be reused from problem to problem."""
    n_nodes = n_sources + n_sinks
    numbers = np.empty((2, n_nodes))
    nodes = np.empty((4 + max(n_sources, n_sinks), n_nodes), np.intc)
    return numbers, nodes


cdef Tree tree_of(double[:, ::1] numbers, int[:, ::1] nodes) noexcept nogil:
    """The arrays of `make_workspace` as the solver reads them."""
    cdef Tree tree
    tree.open, tree.price = &numbers[0, 0], &numbers[1, 0]
    tree.parent, tree.depth = &nodes[0, 0], &nodes[1, 0]
    tree.degree, tree.stack = &nodes[2, 0], &nodes[3, 0]
    tree.neighbours = &nodes[4, 0]
    tree.width = <int>nodes.shape[0] - 4
    return tree


cdef double least_cost(
    const double* supply,
    const double* demand,
    const double* cost,
    int n_sources,
    int n_sinks,
    double* plan,
    const Tree* tree,
) except? -1.0 nogil:
    """Cost of an optimal plan, which is written into `plan`."""
    cdef double total = 0.0
    cdef int cell
    start(supply, demand, cost, n_sources, n_sinks, plan, tree)
    build_tree(supply, demand, cost, n_sources, n_sinks, tree)
    improve(cost, n_sources, n_sinks, plan, tree)
    for cell in range(n_sources * n_sinks):
        total += plan[cell] * cost[cell]
    return total


cdef inline void start(
    const double* supply,
    const double* demand,
    const double* cost,
    int n_sources,
    int n_sinks,
    double* plan,
    const Tree* tree,
) noexcept nogil:
    """Fill a plan row by row, cheapest cell first by costs less their column minima."""
    cdef double* price = tree.price + n_sources
    cdef double* open = tree.open + n_sources
    cdef const double* row
    cdef double left, mass, gap, least
    cdef int i, j, step, sink
    for j in range(n_sinks):
        open[j] = demand[j]
        price[j] = INFINITY
    for i in range(n_sources):
        # A source without mass must not matter: it may be padding.
        if supply[i] > 0:
            row = cost + i * n_sinks
            for j in range(n_sinks):
                if row[j] < price[j]:
                    price[j] = row[j]
    for i in range(n_sources + n_sinks):
        tree.degree[i] = 0
    for i in range(n_sources):
        left = supply[i]
        row = cost + i * n_sinks
        for j in range(n_sinks):
            plan[i * n_sinks + j] = 0.0
        # A step places the rest of the source or closes a sink.
        for step in range(n_sinks):
            if not left > 0:
                break
            least, sink = INFINITY, -1
            for j in range(n_sinks):
                gap = row[j] - price[j]
                if gap < least and open[j] > 0:
                    least, sink = gap, j
            if sink < 0:
                break
            mass = left if left < open[sink] else open[sink]
            plan[i * n_sinks + sink] = mass
            join(i, n_sources + sink, tree)
            left -= mass
            open[sink] -= mass
            if left <= MASS_ROUNDING * supply[i]:
                left = 0.0
            if open[sink] <= MASS_ROUNDING * demand[sink]:
                open[sink] = 0.0


cdef void rank_cells(
    const double* cost,
    int n_sources,
    int n_sinks,
    double* keys,
    const Ranking* ranking,
    const Tree* tree,
) noexcept nogil:
    """Rank cells by their cost less the means of their row and of their column.

    A cell is good if the others of its row and column are worse: starts in this order
    need about half the pivots of those by cost. Costs are finite.
    """
    cdef int cell = 0, n_cells = n_sources * n_sinks, i, j
    cdef double* of_source = tree.price
    cdef double* of_sink = tree.price + n_sources
    for i in range(n_sources + n_sinks):
        tree.price[i] = 0.0
    for i in range(n_sources):
        for j in range(n_sinks):
            of_source[i] += cost[i * n_sinks + j] / n_sinks
            of_sink[j] += cost[i * n_sinks + j] / n_sources
    for i in range(n_sources):
        for j in range(n_sinks):
            keys[cell] = cost[cell] - of_source[i] - of_sink[j]
            ranking.sinks[cell] = cell
            cell += 1
    # Heapsort, in place and without recursion.
    for i in range(n_cells // 2 - 1, -1, -1):
        sift(keys, i, n_cells, ranking.sinks)
    for i in range(n_cells - 1, 0, -1):
        cell, ranking.sinks[i] = ranking.sinks[i], ranking.sinks[0]
        ranking.sinks[0] = cell
        sift(keys, 0, i, ranking.sinks)
    for i in range(n_cells):
        cell = ranking.sinks[i]
        ranking.sources[i] = cell // n_sinks
        ranking.sinks[i] = cell - ranking.sources[i] * n_sinks


cdef inline void sift(const double* keys, int top, int size, int* heap) noexcept nogil:
    """Sift the cell at place `top` of a heap down."""
    cdef int moved = heap[top], below = 2 * top + 1
    # `below` at least doubles, and is below `size` where it is read.
    while below < size:
        if below + 1 < size and comes_after(keys, heap[below + 1], heap[below]):
            below += 1
        if not comes_after(keys, heap[below], moved):
            break
        heap[top] = heap[below]
        top = below
        below = 2 * top + 1
    heap[top] = moved


cdef inline bint comes_after(const double* keys, int one, int other) noexcept nogil:
    """Whether a cell has a larger key than another, or the same and a later place."""
    return keys[one] > keys[other] or (keys[one] == keys[other] and one > other)


cdef int fill_ranked(
    const double* supply,
    const double* demand,
    const double* cost,
    int n_sources,
    int n_sinks,
    const Ranking* ranking,
    double* plan,
    const Tree* tree,
) except -1 nogil:
    """Write an optimal plan into `plan`, which is zero before."""
    cdef double* left = tree.open
    cdef double* open = tree.open + n_sources
    cdef double mass
    cdef int sources = 0, sinks = 0, i, j, k
    for i in range(n_sources):
        left[i] = supply[i]
        sources += supply[i] > 0
    for j in range(n_sinks):
        open[j] = demand[j]
        sinks += demand[j] > 0
    for i in range(n_sources + n_sinks):
        tree.degree[i] = 0
    # Each cell that is filled closes its source or its sink, which gets no more cells:
    # the cells form no cycle.
    for k in range(n_sources * n_sinks):
        if sources == 0 or sinks == 0:
            break
        i, j = ranking.sources[k], ranking.sinks[k]
        if left[i] > 0 and open[j] > 0:
            mass = left[i] if left[i] < open[j] else open[j]
            plan[i * n_sinks + j] = mass
            join(i, n_sources + j, tree)
            left[i] -= mass
            open[j] -= mass
            if left[i] <= MASS_ROUNDING * supply[i]:
                left[i] = 0.0
                sources -= 1
            if open[j] <= MASS_ROUNDING * demand[j]:
                open[j] = 0.0
                sinks -= 1
    build_tree(supply, demand, cost, n_sources, n_sinks, tree)
    improve(cost, n_sources, n_sinks, plan, tree)


cdef int keep_tree(
    int n_sources, int n_sinks, double* plan, int* cells, double* masses,
    const Tree* tree,
) noexcept nogil:
    """Write the cells of the tree and their masses, zeros too; return their number.

    `plan` is set to zero. Each node has at most one cell above it, so there are fewer
    cells than nodes.
    """
    cdef int count = 0, node
    for node in range(n_sources + n_sinks):
        if tree.depth[node] > 0:
            cells[count] = cell_above(node, n_sources, n_sinks, tree)
            masses[count] = plan[cells[count]]
            plan[cells[count]] = 0.0
            count += 1
    return count


cdef int resume_tree(
    const int* cells,
    const double* masses,
    int count,
    const double* cost,
    int n_sources,
    int n_sinks,
    double* plan,
    const Tree* tree,
) except -1 nogil:
    """Improve a plan of `keep_tree`, by another cost; return whether that was possible.

    `plan` is zero before. The tree is feasible and stays strongly so if it hangs from
    the same root, which is the first source that carries mass.
    """
    cdef int root = n_sources, node, k
    for node in range(n_sources + n_sinks):
        tree.degree[node] = 0
        tree.depth[node] = -1
    for k in range(count):
        node = cells[k] // n_sinks
        root = min(root, node)
        plan[cells[k]] = masses[k]
        join(node, n_sources + cells[k] - node * n_sinks, tree)
    if root == n_sources:
        return False
    tree.price[root] = 0.0
    hang(root, -1, cost, n_sources, n_sinks, tree)
    return improve(cost, n_sources, n_sinks, plan, tree)


cdef inline int cell_above(
    int node, int n_sources, int n_sinks, const Tree* tree
) noexcept nogil:
    """The cell that joins a node to its parent."""
    if node < n_sources:
        return node * n_sinks + tree.parent[node] - n_sources
    return tree.parent[node] * n_sinks + node - n_sources


cdef inline void join(int one, int other, const Tree* tree) noexcept nogil:
    tree.neighbours[one * tree.width + tree.degree[one]] = other
    tree.neighbours[other * tree.width + tree.degree[other]] = one
    tree.degree[one] += 1
    tree.degree[other] += 1


cdef inline void part(int node, int gone, const Tree* tree) noexcept nogil:
    """Take `gone` off the neighbours of `node`."""
    cdef int* neighbours = tree.neighbours + node * tree.width
    cdef int k
    tree.degree[node] -= 1
    for k in range(tree.degree[node]):
        if neighbours[k] == gone:
            neighbours[k] = neighbours[tree.degree[node]]
            break


cdef inline void build_tree(
    const double* supply,
    const double* demand,
    const double* cost,
    int n_sources,
    int n_sinks,
    const Tree* tree,
) noexcept nogil:
    """Hang the pieces of the start below each other by cells that carry no mass.

    A piece is hung by one of its sources, so that an empty cell always points towards
    the root: this is what makes the tree strongly feasible.
    """
    cdef int i, j, sink, root = -1
    cdef double gap, least
    for i in range(n_sources + n_sinks):
        tree.depth[i] = -1
    for i in range(n_sources):
        if not supply[i] > 0 or tree.depth[i] >= 0:
            continue
        if root < 0:
            root = i
            tree.price[i] = 0.0
            hang(i, -1, cost, n_sources, n_sinks, tree)
            continue
        least, sink = INFINITY, -1
        for j in range(n_sinks):
            gap = cost[i * n_sinks + j] - tree.price[n_sources + j]
            if tree.depth[n_sources + j] >= 0 and gap < least:
                least, sink = gap, n_sources + j
        # Without a finite cost the source cannot take part.
        if sink >= 0:
            join(i, sink, tree)
            hang(i, sink, cost, n_sources, n_sinks, tree)
    for j in range(n_sinks):
        # A demand lost in the rounding of the sums: it hangs below any source.
        if demand[j] > 0 and tree.depth[n_sources + j] < 0 and root >= 0:
            join(root, n_sources + j, tree)
            hang(n_sources + j, root, cost, n_sources, n_sinks, tree)


cdef inline void hang(
    int top, int above, const double* cost, int n_sources, int n_sinks, const Tree* tree
) noexcept nogil:
    """Put node `top` below `above`: set parent, depth and price of it and all under."""
    cdef int size = 1, node, below, k
    cdef const int* neighbours
    cdef double length
    tree.parent[top] = above
    tree.stack[0] = top
    while size > 0:
        size -= 1
        node = tree.stack[size]
        above = tree.parent[node]
        if above < 0:
            tree.depth[node] = 0
        else:
            tree.depth[node] = tree.depth[above] + 1
            length = cost[cell_above(node, n_sources, n_sinks, tree)]
            tree.price[node] = length - tree.price[above]
        neighbours = tree.neighbours + node * tree.width
        for k in range(tree.degree[node]):
            below = neighbours[k]
            if below != above:
                tree.parent[below] = node
                tree.stack[size] = below
                size += 1


cdef void price_tree(
    const double* cost, int n_sources, int n_sinks, const Tree* tree
) noexcept nogil:
    """Recompute the prices of the tree for another cost."""
    cdef int node
    for node in range(n_sources):
        if tree.depth[node] == 0:
            hang(node, -1, cost, n_sources, n_sinks, tree)


cdef int improve(
    const double* cost, int n_sources, int n_sinks, double* plan, const Tree* tree
) except -1 nogil:
    """Pivot until no cell can lower the cost of `plan`.

    Return whether there was a pivot.
    """
    cdef double slack = PRICE_ROUNDING * largest_cost(cost, n_sources, n_sinks, tree)
    cdef double gap, least
    cdef int unchanged = 0, turns = 0, i = 0, j, sink
    cdef Py_ssize_t most = <Py_ssize_t>MAX_PIVOTS * (n_sources + n_sinks), left = most
    while unchanged < n_sources and left > 0:
        turns += 1
        if turns == TURNS:
            turns = 0
            interrupted()
        least, sink = -slack, -1
        if tree.depth[i] >= 0:
            for j in range(n_sinks):
                gap = cost[i * n_sinks + j] - tree.price[i] - tree.price[n_sources + j]
                if gap < least and tree.depth[n_sources + j] >= 0:
                    least, sink = gap, j
        if sink >= 0 and pivot(i, sink, cost, n_sources, n_sinks, plan, tree):
            unchanged = 0
            left -= 1
        else:
            unchanged += 1
            i = i + 1 if i + 1 < n_sources else 0
    return left < most


cdef double largest_cost(
    const double* cost, int n_sources, int n_sinks, const Tree* tree
) noexcept nogil:
    """The largest finite cost between nodes that carry mass."""
    cdef double largest = 0.0
    cdef const double* row
    cdef int i, j
    for i in range(n_sources):
        if tree.depth[i] >= 0:
            row = cost + i * n_sinks
            for j in range(n_sinks):
                if largest < row[j] < INFINITY and tree.depth[n_sources + j] >= 0:
                    largest = row[j]
    return largest


cdef inline bint pivot(
    int source,
    int sink,
    const double* cost,
    int n_sources,
    int n_sinks,
    double* plan,
    const Tree* tree,
) noexcept nogil:
    """Bring the cell (source, sink) into the tree and drop the cell it empties.

    Return whether that was possible. It always is if costs and masses are finite; if
    prices overflow, the cell may be in the tree already or join two trees.
    """
    cdef int low_a = source, low_b = n_sources + sink
    cdef int out_a = -1, out_b = -1, a = low_a, b = low_b
    cdef int above, out, low, gone
    cdef double mass_a = INFINITY, mass_b = INFINITY, mass
    # Flow falls on the cells above sinks on the sink's side and above sources on the
    # source's. Of equal falls, the last one met from the apex along the cycle leaves.
    while a != b:
        if tree.depth[a] >= tree.depth[b]:
            above = tree.parent[a]
            if above < 0:
                return False
            if a < n_sources and plan[a * n_sinks + above - n_sources] < mass_a:
                mass_a, out_a = plan[a * n_sinks + above - n_sources], a
            a = above
        else:
            above = tree.parent[b]
            if above < 0:
                return False
            if b >= n_sources and plan[above * n_sinks + b - n_sources] <= mass_b:
                mass_b, out_b = plan[above * n_sinks + b - n_sources], b
            b = above
    if mass_b <= mass_a:
        mass, out, low, above = mass_b, out_b, low_b, low_a
    else:
        mass, out, low, above = mass_a, out_a, low_a, low_b
    if out < 0 or tree.parent[low_a] == low_b or tree.parent[low_b] == low_a:
        return False
    shift(low_a, a, -mass, n_sources, n_sinks, plan, tree)
    shift(low_b, a, mass, n_sources, n_sinks, plan, tree)
    plan[source * n_sinks + sink] += mass
    gone = tree.parent[out]
    plan[cell_above(out, n_sources, n_sinks, tree)] = 0.0
    part(out, gone, tree)
    part(gone, out, tree)
    join(low, above, tree)
    hang(low, above, cost, n_sources, n_sinks, tree)
    return True


cdef inline void shift(
    int low, int apex, double mass, int n_sources, int n_sinks, double* plan,
    const Tree* tree,
) noexcept nogil:
    """Change the flows from node `low` up to `apex`: sources by mass, sinks against."""
    cdef int cell
    while low != apex:
        cell = cell_above(low, n_sources, n_sinks, tree)
        plan[cell] += mass if low < n_sources else -mass
        low = tree.parent[low]
