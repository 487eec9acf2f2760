"""Exact optimal transport for batches of small problems.

The only module that knows how a plan is found. It sees masses and costs, never models.

States are few, so one problem is tiny and calling a solver costs more than solving:
batches are solved inside one compiled loop. The method is the network simplex on the
spanning tree of a transportation problem: a greedy start on reduced costs, row-wise
pricing, and Cunningham's rule (trees stay strongly feasible), so that degenerate
problems cannot cycle. A tree is kept in a tuple of scratch arrays, the *work*:

0. `left`, 1. `need`: supply and demand that are still unplaced (start only);
2. `price`: dual prices of sources, then sinks; they add up to the cost on the tree;
3. `parent`, 4. `depth`: of each node, -1 for nodes that carry no mass;
5. `degree`, 6. `neighbours`: the tree's adjacency lists;
7. `stack`: nodes still to visit.
"""

import numpy as np
from numba import njit

# What is left of a mass that was split among a few cells is rounding below this share
# of it (a sum of up to a hundred parts is exact to about this).
MASS_ROUNDING = 1e-14

# Prices are sums of up to two costs per state, exact to about this share of the
# largest cost: a cell cheaper by less is not worth a pivot.
PRICE_ROUNDING = 1e-14

# A cell whose reduced cost is below this share of the largest cost may carry mass in
# another optimal plan. Costs of equal states differ by about 1e-15 of scale.
TIE_TOLERANCE = 1e-11


@njit(cache=True, nogil=True, error_model="numpy")
def make_workspace(n_sources, n_sinks):
    """Return the scratch arrays of the solver, to be reused from problem to problem."""
    n_nodes = n_sources + n_sinks
    return (
        np.empty(n_sources),
        np.empty(n_sinks),
        np.empty(n_nodes),
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes, np.int64),
        np.empty((n_nodes, max(n_sources, n_sinks)), np.int64),
        np.empty(n_nodes, np.int64),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def solve_transport(supply, demand, cost, plan, work):
    """Write an optimal plan of one problem into `plan` and its tree into `work`.

    Parameters
    ----------
    supply : ndarray of shape (n_sources,)
        Masses to move; zeros are allowed.

    demand : ndarray of shape (n_sinks,)
        Masses to receive, of the same sum up to rounding.

    cost : ndarray of shape (n_sources, n_sinks)
        Cost of moving a unit of mass.

    plan : ndarray of shape (n_sources, n_sinks)
        Filled with the plan.

    work : tuple of ndarray
        Scratch from `make_workspace`, at least of this size.

    Returns
    -------
    total : float
        Cost of the plan.
    """
    _start(supply, demand, cost, plan, work)
    _build_tree(supply, demand, cost, work)
    improve_plan(cost, plan, work)
    total = 0.0
    for i in range(cost.shape[0]):
        for j in range(cost.shape[1]):
            total += plan[i, j] * cost[i, j]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _start(supply, demand, cost, plan, work):
    """Fill a plan row by row, cheapest cell first by costs less their column minima."""
    left, need, price, _, _, degree, _, _ = work
    n_sources, n_sinks = cost.shape
    for j in range(n_sinks):
        need[j] = demand[j]
        degree[n_sources + j] = 0
        least = cost[0, j]
        for i in range(1, n_sources):
            least = min(least, cost[i, j])
        price[n_sources + j] = least
    for i in range(n_sources):
        left[i] = supply[i]
        degree[i] = 0
        for j in range(n_sinks):
            plan[i, j] = 0.0
    for i in range(n_sources):
        while left[i] > 0:
            least, sink = np.inf, -1
            for j in range(n_sinks):
                if need[j] > 0 and cost[i, j] - price[n_sources + j] < least:
                    least, sink = cost[i, j] - price[n_sources + j], j
            if sink < 0:
                break
            mass = min(left[i], need[sink])
            plan[i, sink] = mass
            _join(i, n_sources + sink, work)
            left[i] -= mass
            need[sink] -= mass
            if left[i] <= MASS_ROUNDING * supply[i]:
                left[i] = 0.0
            if need[sink] <= MASS_ROUNDING * demand[sink]:
                need[sink] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _join(one, other, work):
    degree, neighbours = work[5], work[6]
    neighbours[one, degree[one]] = other
    neighbours[other, degree[other]] = one
    degree[one] += 1
    degree[other] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def _part(one, other, work):
    degree, neighbours = work[5], work[6]
    for node, gone in ((one, other), (other, one)):
        degree[node] -= 1
        last = degree[node]
        for k in range(last):
            if neighbours[node, k] == gone:
                neighbours[node, k] = neighbours[node, last]
                break


@njit(cache=True, nogil=True, error_model="numpy")
def _build_tree(supply, demand, cost, work):
    """Hang the pieces of the start below each other by cells that carry no mass.

    A piece is hung by one of its sources, so that an empty cell always points towards
    the root: this is what makes the tree strongly feasible.
    """
    price, depth = work[2], work[4]
    n_sources, n_sinks = cost.shape
    depth[: n_sources + n_sinks] = -1
    root = -1
    for i in range(n_sources):
        if supply[i] <= 0 or depth[i] >= 0:
            continue
        if root < 0:
            root = i
            price[i] = 0.0
            _hang(i, -1, cost, work)
            continue
        least, sink = np.inf, -1
        for j in range(n_sinks):
            node = n_sources + j
            if depth[node] >= 0 and cost[i, j] - price[node] < least:
                least, sink = cost[i, j] - price[node], node
        _join(i, sink, work)
        _hang(i, sink, cost, work)
    for j in range(n_sinks):
        # A demand lost in the rounding of the sums: it hangs below any source.
        if demand[j] > 0 and depth[n_sources + j] < 0:
            _join(root, n_sources + j, work)
            _hang(n_sources + j, root, cost, work)


@njit(cache=True, nogil=True, error_model="numpy")
def _hang(top, above, cost, work):
    """Put node `top` below `above`: set parent, depth and price of it and all under."""
    _, _, price, parent, depth, degree, neighbours, stack = work
    n_sources = cost.shape[0]
    parent[top] = above
    stack[0] = top
    size = 1
    while size > 0:
        size -= 1
        node = stack[size]
        above = parent[node]
        if above < 0:
            depth[node] = 0
        else:
            depth[node] = depth[above] + 1
            if node < n_sources:
                price[node] = cost[node, above - n_sources] - price[above]
            else:
                price[node] = cost[above, node - n_sources] - price[above]
        for k in range(degree[node]):
            below = neighbours[node, k]
            if below != above:
                parent[below] = node
                stack[size] = below
                size += 1


@njit(cache=True, nogil=True, error_model="numpy")
def reprice(cost, work):
    """Set the prices of the tree in `work` anew, for another cost."""
    parent, depth = work[3], work[4]
    for node in range(cost.shape[0]):
        if depth[node] >= 0 and parent[node] < 0:
            _hang(node, -1, cost, work)


@njit(cache=True, nogil=True, error_model="numpy")
def improve_plan(cost, plan, work):
    """Pivot until no cell can lower the cost of `plan`, whose tree is in `work`.

    Cells of infinite cost never enter the plan.
    """
    price, depth = work[2], work[4]
    n_sources, n_sinks = cost.shape
    slack = PRICE_ROUNDING * _largest_finite(cost)
    unchanged, i = 0, 0
    while unchanged < n_sources:
        least, sink = -slack, -1
        if depth[i] >= 0:
            for j in range(n_sinks):
                gap = cost[i, j] - price[i] - price[n_sources + j]
                if gap < least and depth[n_sources + j] >= 0:
                    least, sink = gap, j
        if sink >= 0:
            _pivot(i, sink, cost, plan, work)
            unchanged = 0
        else:
            unchanged += 1
            i = i + 1 if i + 1 < n_sources else 0


@njit(cache=True, nogil=True, error_model="numpy")
def _largest_finite(cost):
    largest = 0.0
    for i in range(cost.shape[0]):
        for j in range(cost.shape[1]):
            if largest < cost[i, j] < np.inf:
                largest = cost[i, j]
    return largest


@njit(cache=True, nogil=True, error_model="numpy")
def _pivot(source, sink, cost, plan, work):
    """Bring the cell (source, sink) into the tree and drop the cell it empties."""
    parent, depth = work[3], work[4]
    n_sources = cost.shape[0]
    low_a, low_b = source, n_sources + sink
    mass_a, mass_b = np.inf, np.inf
    out_a, out_b = -1, -1
    # Flow falls on the cells above sinks on the sink's side and above sources on the
    # source's. Of equal falls, the last one met from the apex along the cycle leaves.
    a, b = low_a, low_b
    while a != b:
        if depth[a] >= depth[b]:
            if a < n_sources and plan[a, parent[a] - n_sources] < mass_a:
                mass_a, out_a = plan[a, parent[a] - n_sources], a
            a = parent[a]
        else:
            if b >= n_sources and plan[parent[b], b - n_sources] <= mass_b:
                mass_b, out_b = plan[parent[b], b - n_sources], b
            b = parent[b]
    apex = a
    if mass_b <= mass_a:
        mass, out, low, above = mass_b, out_b, low_b, low_a
    else:
        mass, out, low, above = mass_a, out_a, low_a, low_b
    _shift(low_a, apex, -mass, plan, work)
    _shift(low_b, apex, mass, plan, work)
    plan[source, sink] += mass
    gone = parent[out]
    if out < n_sources:
        plan[out, gone - n_sources] = 0.0
    else:
        plan[gone, out - n_sources] = 0.0
    _part(out, gone, work)
    _join(low, above, work)
    _hang(low, above, cost, work)


@njit(cache=True, nogil=True, error_model="numpy")
def _shift(low, apex, mass, plan, work):
    """Change the flows from node `low` up to `apex`: sources by mass, sinks against."""
    parent = work[3]
    n_sources = plan.shape[0]
    while low != apex:
        above = parent[low]
        if low < n_sources:
            plan[low, above - n_sources] += mass
        else:
            plan[above, low - n_sources] -= mass
        low = above
