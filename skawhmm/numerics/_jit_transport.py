"""Exact optimal transport for batches of small problems.

The only module that knows how a plan is found. It sees masses and costs, never models.

Models have few states, so a problem is tiny, and calling a solver takes longer than
solving: batches are solved inside one compiled loop. The method is the network simplex
on the spanning tree of a transportation problem: a greedy start on reduced costs,
row-wise pricing, and Cunningham's rule (trees stay strongly feasible), so that
degenerate problems cannot cycle. Nodes are the sources, then the sinks.
"""

import numpy as np
from numba import njit

from skawhmm.utils._compile import KERNEL

# What is left of a mass that was split among a few cells is rounding below this share
# of it (a sum of up to a hundred parts is exact to about this).
MASS_ROUNDING = 1e-14

# Prices are sums of up to two costs per state, exact to about this share of the
# largest cost: a cell cheaper by less is not worth a pivot.
PRICE_ROUNDING = 1e-14

# A cell whose reduced cost is below this share of the largest cost may carry mass in
# another optimal plan. Costs of equal states differ by about 1e-15 of scale.
TIE_TOLERANCE = 1e-13

# Rows of the scratch array of numbers: masses still to place, and dual prices, which
# add up to the cost on the cells of the tree.
OPEN, PRICE = 0, 1

# Rows of the scratch array of nodes: the tree (depth -1: the node carries no mass),
# nodes still to visit, and lists of neighbours, of which degree entries are valid.
PARENT, DEPTH, DEGREE, STACK, NEIGHBOUR = 0, 1, 2, 3, 4


@njit(**KERNEL)
def make_workspace(n_sources, n_sinks):
    """Return the scratch arrays of the solver, to be reused from problem to problem.

    There are two arrays rather than one per quantity: a compiled function passes an
    array on as half a dozen words, which matters for problems this small.
    """
    n_nodes = n_sources + n_sinks
    numbers = np.empty((2, n_nodes))
    nodes = np.empty((NEIGHBOUR + max(n_sources, n_sinks), n_nodes), np.int64)
    return numbers, nodes


@njit(**KERNEL)
def solve_transport(supply, demand, cost, plan, numbers, nodes):
    """Write an optimal plan of one problem into `plan` and its tree into the scratch.

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

    numbers, nodes : ndarray
        Scratch from `make_workspace`, at least of this size.

    Returns
    -------
    total : float
        Cost of the plan.
    """
    _start(supply, demand, cost, plan, numbers, nodes)
    _build_tree(supply, demand, cost, numbers, nodes)
    improve_plan(cost, plan, numbers, nodes)
    total = 0.0
    for i in range(cost.shape[0]):
        for j in range(cost.shape[1]):
            total += plan[i, j] * cost[i, j]
    return total


@njit(**KERNEL)
def _start(supply, demand, cost, plan, numbers, nodes):
    """Fill a plan row by row, cheapest cell first by costs less their column minima."""
    n_sources, n_sinks = cost.shape
    for j in range(n_sinks):
        sink = n_sources + j
        numbers[OPEN, sink] = demand[j]
        nodes[DEGREE, sink] = 0
        least = np.inf
        for i in range(n_sources):
            # A source without mass must not matter: it may be padding.
            if supply[i] > 0:
                least = min(least, cost[i, j])
        numbers[PRICE, sink] = least
    for i in range(n_sources):
        nodes[DEGREE, i] = 0
        left = supply[i]
        for j in range(n_sinks):
            plan[i, j] = 0.0
        while left > 0:
            least, sink = np.inf, -1
            for j in range(n_sinks):
                gap = cost[i, j] - numbers[PRICE, n_sources + j]
                if gap < least and numbers[OPEN, n_sources + j] > 0:
                    least, sink = gap, j
            if sink < 0:
                break
            need = numbers[OPEN, n_sources + sink]
            mass = min(left, need)
            plan[i, sink] = mass
            _join(i, n_sources + sink, nodes)
            left -= mass
            need -= mass
            if left <= MASS_ROUNDING * supply[i]:
                left = 0.0
            if need <= MASS_ROUNDING * demand[sink]:
                need = 0.0
            numbers[OPEN, n_sources + sink] = need


@njit(**KERNEL)
def _join(one, other, nodes):
    nodes[NEIGHBOUR + nodes[DEGREE, one], one] = other
    nodes[NEIGHBOUR + nodes[DEGREE, other], other] = one
    nodes[DEGREE, one] += 1
    nodes[DEGREE, other] += 1


@njit(**KERNEL)
def _part(one, other, nodes):
    for node, gone in ((one, other), (other, one)):
        last = NEIGHBOUR + nodes[DEGREE, node] - 1
        k = NEIGHBOUR
        while nodes[k, node] != gone:
            k += 1
        nodes[k, node] = nodes[last, node]
        nodes[DEGREE, node] -= 1


@njit(**KERNEL)
def _build_tree(supply, demand, cost, numbers, nodes):
    """Hang the pieces of the start below each other by cells that carry no mass.

    A piece is hung by one of its sources, so that an empty cell always points towards
    the root: this is what makes the tree strongly feasible.
    """
    n_sources, n_sinks = cost.shape
    for node in range(n_sources + n_sinks):
        nodes[DEPTH, node] = -1
    root = -1
    for i in range(n_sources):
        if supply[i] <= 0 or nodes[DEPTH, i] >= 0:
            continue
        if root < 0:
            root = i
            numbers[PRICE, i] = 0.0
            _hang(i, -1, cost, numbers, nodes)
            continue
        least, sink = np.inf, -1
        for j in range(n_sinks):
            gap = cost[i, j] - numbers[PRICE, n_sources + j]
            if nodes[DEPTH, n_sources + j] >= 0 and gap < least:
                least, sink = gap, n_sources + j
        _join(i, sink, nodes)
        _hang(i, sink, cost, numbers, nodes)
    for j in range(n_sinks):
        # A demand lost in the rounding of the sums: it hangs below any source.
        if demand[j] > 0 and nodes[DEPTH, n_sources + j] < 0:
            _join(root, n_sources + j, nodes)
            _hang(n_sources + j, root, cost, numbers, nodes)


@njit(**KERNEL)
def _hang(top, above, cost, numbers, nodes):
    """Put node `top` below `above`: set parent, depth and price of it and all under."""
    n_sources = cost.shape[0]
    nodes[PARENT, top] = above
    nodes[STACK, 0] = top
    size = 1
    while size > 0:
        size -= 1
        node = nodes[STACK, size]
        above = nodes[PARENT, node]
        if above < 0:
            nodes[DEPTH, node] = 0
        else:
            nodes[DEPTH, node] = nodes[DEPTH, above] + 1
            if node < n_sources:
                length = cost[node, above - n_sources]
            else:
                length = cost[above, node - n_sources]
            numbers[PRICE, node] = length - numbers[PRICE, above]
        for k in range(NEIGHBOUR, NEIGHBOUR + nodes[DEGREE, node]):
            below = nodes[k, node]
            if below != above:
                nodes[PARENT, below] = node
                nodes[STACK, size] = below
                size += 1


@njit(**KERNEL)
def reprice(cost, numbers, nodes):
    """Set the prices of the tree anew, for another cost."""
    for node in range(cost.shape[0]):
        if nodes[DEPTH, node] == 0:
            _hang(node, -1, cost, numbers, nodes)


@njit(**KERNEL)
def improve_plan(cost, plan, numbers, nodes):
    """Pivot until no cell can lower the cost of `plan`, whose tree is in the scratch.

    Cells of infinite cost never enter the plan.
    """
    n_sources, n_sinks = cost.shape
    slack = PRICE_ROUNDING * largest_cost(cost, nodes)
    unchanged, i = 0, 0
    while unchanged < n_sources:
        least, sink = -slack, -1
        if nodes[DEPTH, i] >= 0:
            for j in range(n_sinks):
                gap = cost[i, j] - numbers[PRICE, i] - numbers[PRICE, n_sources + j]
                if gap < least and nodes[DEPTH, n_sources + j] >= 0:
                    least, sink = gap, j
        if sink >= 0:
            _pivot(i, sink, cost, plan, numbers, nodes)
            unchanged = 0
        else:
            unchanged += 1
            i = i + 1 if i + 1 < n_sources else 0


@njit(**KERNEL)
def largest_cost(cost, nodes):
    """Return the largest finite cost between nodes that carry mass."""
    n_sources, n_sinks = cost.shape
    largest = 0.0
    for i in range(n_sources):
        if nodes[DEPTH, i] >= 0:
            for j in range(n_sinks):
                if largest < cost[i, j] < np.inf and nodes[DEPTH, n_sources + j] >= 0:
                    largest = cost[i, j]
    return largest


@njit(**KERNEL)
def _pivot(source, sink, cost, plan, numbers, nodes):
    """Bring the cell (source, sink) into the tree and drop the cell it empties."""
    n_sources = cost.shape[0]
    low_a, low_b = source, n_sources + sink
    mass_a, mass_b = np.inf, np.inf
    out_a, out_b = -1, -1
    # Flow falls on the cells above sinks on the sink's side and above sources on the
    # source's. Of equal falls, the last one met from the apex along the cycle leaves.
    a, b = low_a, low_b
    while a != b:
        if nodes[DEPTH, a] >= nodes[DEPTH, b]:
            above = nodes[PARENT, a]
            if a < n_sources and plan[a, above - n_sources] < mass_a:
                mass_a, out_a = plan[a, above - n_sources], a
            a = above
        else:
            above = nodes[PARENT, b]
            if b >= n_sources and plan[above, b - n_sources] <= mass_b:
                mass_b, out_b = plan[above, b - n_sources], b
            b = above
    if mass_b <= mass_a:
        mass, out, low, above = mass_b, out_b, low_b, low_a
    else:
        mass, out, low, above = mass_a, out_a, low_a, low_b
    _shift(low_a, a, -mass, plan, nodes)
    _shift(low_b, a, mass, plan, nodes)
    plan[source, sink] += mass
    gone = nodes[PARENT, out]
    if out < n_sources:
        plan[out, gone - n_sources] = 0.0
    else:
        plan[gone, out - n_sources] = 0.0
    _part(out, gone, nodes)
    _join(low, above, nodes)
    _hang(low, above, cost, numbers, nodes)


@njit(**KERNEL)
def _shift(low, apex, mass, plan, nodes):
    """Change the flows from node `low` up to `apex`: sources by mass, sinks against."""
    n_sources = plan.shape[0]
    while low != apex:
        above = nodes[PARENT, low]
        if low < n_sources:
            plan[low, above - n_sources] += mass
        else:
            plan[above, low - n_sources] -= mass
        low = above
