"""Kernels as tests and benchmarks call them, one problem at a time.

Nothing else in the package imports this module: its kernels call one another in C.
"""

import numpy as np

from skawhmm.numerics._assignment import make_matching
from skawhmm.numerics._max_entropy import make_face

from skawhmm.numerics._assignment cimport Matching, assign, matching_of
from skawhmm.numerics._max_entropy cimport (
    Face,
    face_of,
    find_components,
    maximize_entropy,
)
from skawhmm.numerics._transport cimport (
    Ranking,
    Tree,
    fill_ranked,
    improve,
    keep_tree,
    least_cost,
    price_tree,
    rank_cells,
    resume_tree,
    tree_of,
)

cdef extern from "numerics/_forward_backward.h" nogil:
    void fill_exps(const double* gaps, Py_ssize_t size, double* out)


def solve_transport(
    const double[::1] supply,
    const double[::1] demand,
    const double[:, ::1] cost,
    double[:, ::1] plan,
    double[:, ::1] numbers,
    int[:, ::1] nodes,
):
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
    cdef Tree tree = tree_of(numbers, nodes)
    cdef int n_sources = <int>cost.shape[0], n_sinks = <int>cost.shape[1]
    return least_cost(
        &supply[0], &demand[0], &cost[0, 0], n_sources, n_sinks, &plan[0, 0], &tree
    )


def reprice(const double[:, ::1] cost, double[:, ::1] numbers, int[:, ::1] nodes):
    """Recompute the prices of the tree for another cost."""
    cdef Tree tree = tree_of(numbers, nodes)
    price_tree(&cost[0, 0], <int>cost.shape[0], <int>cost.shape[1], &tree)


def improve_plan(
    const double[:, ::1] cost,
    double[:, ::1] plan,
    double[:, ::1] numbers,
    int[:, ::1] nodes,
):
    """Pivot until no cell can lower the cost of `plan`, whose tree is in the scratch.

    Cells of infinite cost never enter the plan.
    """
    cdef Tree tree = tree_of(numbers, nodes)
    cdef int n_sources = <int>cost.shape[0], n_sinks = <int>cost.shape[1]
    improve(&cost[0, 0], n_sources, n_sinks, &plan[0, 0], &tree)


def ranked_cells(const double[:, ::1] cost, double[:, ::1] numbers, int[:, ::1] nodes):
    """Return sources and sinks of all cells, the best first, for `solve_ranked`."""
    cdef Tree tree = tree_of(numbers, nodes)
    cdef int n_sources = <int>cost.shape[0], n_sinks = <int>cost.shape[1]
    cdef double[::1] keys = np.empty(n_sources * n_sinks)
    cdef int[:, ::1] places = np.empty((2, n_sources * n_sinks), np.intc)
    cdef Ranking ranking
    ranking.sources, ranking.sinks = &places[0, 0], &places[1, 0]
    rank_cells(&cost[0, 0], n_sources, n_sinks, &keys[0], &ranking, &tree)
    return np.asarray(places)


def solve_ranked(
    const double[::1] supply,
    const double[::1] demand,
    const double[:, ::1] cost,
    int[:, ::1] places,
    double[:, ::1] plan,
    double[:, ::1] numbers,
    int[:, ::1] nodes,
):
    """Solve like `solve_transport`, from a start in the order of `ranked_cells`.

    `plan` must be zero before.
    """
    cdef Tree tree = tree_of(numbers, nodes)
    cdef Ranking ranking
    ranking.sources, ranking.sinks = &places[0, 0], &places[1, 0]
    fill_ranked(
        &supply[0], &demand[0], &cost[0, 0], <int>cost.shape[0], <int>cost.shape[1],
        &ranking, &plan[0, 0], &tree,
    )


def keep_plan(double[:, ::1] plan, double[:, ::1] numbers, int[:, ::1] nodes):
    """Return cells and masses of the tree in the scratch, and set `plan` to zero."""
    cdef Tree tree = tree_of(numbers, nodes)
    cdef int n_sources = <int>plan.shape[0], n_sinks = <int>plan.shape[1], count
    cdef int[::1] cells = np.empty(n_sources + n_sinks, np.intc)
    cdef double[::1] masses = np.empty(n_sources + n_sinks)
    count = keep_tree(n_sources, n_sinks, &plan[0, 0], &cells[0], &masses[0], &tree)
    return np.asarray(cells)[:count], np.asarray(masses)[:count]


def resume_plan(
    const int[::1] cells,
    const double[::1] masses,
    const double[:, ::1] cost,
    double[:, ::1] plan,
    double[:, ::1] numbers,
    int[:, ::1] nodes,
):
    """Improve a kept plan for another cost; return whether it could be improved.

    `plan` must be zero before.
    """
    cdef Tree tree = tree_of(numbers, nodes)
    return resume_tree(
        &cells[0], &masses[0], <int>cells.shape[0], &cost[0, 0], <int>cost.shape[0],
        <int>cost.shape[1], &plan[0, 0], &tree,
    )


def max_entropy_plan(const double[:, ::1] marks, plan):
    """Return the plan of the greatest entropy with the margins of a given one.

    Parameters
    ----------
    marks : ndarray of shape (n_sources, n_sinks)
        0 for the cells that may be used.

    plan : ndarray of shape (n_sources, n_sinks)
        A plan that uses these cells only.

    Returns
    -------
    even : ndarray of shape (n_sources, n_sinks)
        The plan of the greatest entropy. If there is only one plan, it is unchanged.
    """
    cdef double[:, ::1] even = np.array(plan)
    cdef int n_sources = <int>even.shape[0], n_sinks = <int>even.shape[1]
    cdef int size = max(n_sources, n_sinks)
    numbers, nodes = make_face(size)
    cdef Face face = face_of(numbers, nodes, size)
    with nogil:
        if find_components(&marks[0, 0], &even[0, 0], n_sources, n_sinks, &face):
            maximize_entropy(&marks[0, 0], n_sources, n_sinks, &even[0, 0], &face)
    return np.asarray(even)


def solve_assignment(const double[:, ::1] cost, Py_ssize_t[::1] columns):
    """Write the column given to each row by a cheapest assignment into `columns`.

    Parameters
    ----------
    cost : ndarray of shape (n_points, n_points)
        Cost of each match.

    columns : ndarray of int of shape (n_points,)
        Filled with the matches.
    """
    numbers, places = make_matching(cost.shape[0])
    cdef Matching state = matching_of(numbers, places)
    with nogil:
        assign(&cost[0, 0], cost.shape[0], &columns[0], &state)


def fill_exp(const double[::1] gaps, double[::1] out):
    """Fill exponentials of numbers of at most 0, to 2 ulp; below -700 they are 0."""
    with nogil:
        fill_exps(&gaps[0], gaps.shape[0], &out[0])
