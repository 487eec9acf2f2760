"""Exact assignment of equally many points, compiled.

The method of Jonker and Volgenant: column reduction, reduction transfer, two rounds of
augmenting row reduction, then shortest augmenting paths for the rows still free, whose
loops over columns fill vector registers. `benchmarks/bench_kernels.py` prints its time
beside scipy's `linear_sum_assignment`, which starts from nothing; it also runs
inside the compiled loop over pairs.
"""

import numpy as np

from libc.math cimport INFINITY

from skawhmm.utils._interruption cimport interrupted

cdef extern from "numerics/_assignment.h" nogil:
    """
    /* Rounds of row reduction visit at most this many rows for each free one: with
       equal costs the reduction may otherwise pass rows round in circles. */
    #define MAX_VISITS 5
    """
    const Py_ssize_t MAX_VISITS
    double relax_columns(
        const double* row,
        const double* price,
        double base,
        Py_ssize_t via_row,
        Py_ssize_t size,
        double* length,
        Py_ssize_t* via,
    )
    Py_ssize_t column_at(
        const double* length, const Py_ssize_t* rows, double least, Py_ssize_t size
    )


def make_matching(size):
    """Return the scratch arrays of the solver, to be reused from problem to problem."""
    return np.empty((4, size)), np.empty((4, size), np.intp)


cdef Matching matching_of(
    double[:, ::1] numbers, Py_ssize_t[:, ::1] places
) noexcept nogil:
    """The arrays of `make_matching` as the solver reads them."""
    cdef Matching state
    state.price, state.gap = &numbers[0, 0], &numbers[1, 0]
    state.open_price, state.settled = &numbers[2, 0], &numbers[3, 0]
    state.rows, state.free = &places[0, 0], &places[1, 0]
    state.via, state.scratch = &places[2, 0], &places[3, 0]
    return state


cdef int assign(
    const double* cost, Py_ssize_t size, Py_ssize_t* columns, const Matching* state
) except -1 nogil:
    """Write a cheapest assignment into `columns`."""
    cdef Py_ssize_t n_free = reduce_columns(cost, size, columns, state)
    cdef Py_ssize_t k
    for k in range(2):
        n_free = reduce_rows(cost, size, columns, n_free, state)
    for k in range(n_free):
        interrupted()
        augment(state.free[k], cost, size, columns, state)


cdef Py_ssize_t reduce_columns(
    const double* cost, Py_ssize_t size, Py_ssize_t* columns, const Matching* state
) noexcept nogil:
    """Give each column to its cheapest row if that is free; return how many rows are.

    A row with one match hands its advantage over the next best column to the price.
    """
    cdef double* price = state.price
    cdef Py_ssize_t* best = state.via
    cdef Py_ssize_t* matches = state.scratch
    cdef const double* row
    cdef Py_ssize_t i, j, n_free = 0
    cdef double least
    for j in range(size):
        price[j], best[j] = cost[j], 0
    for i in range(1, size):
        row = cost + i * size
        for j in range(size):
            if row[j] < price[j]:
                price[j], best[j] = row[j], i
    for i in range(size):
        columns[i] = -1
        matches[i] = 0
    for j in range(size - 1, -1, -1):
        matches[best[j]] += 1
        state.rows[j] = -1
        if columns[best[j]] < 0:
            columns[best[j]], state.rows[j] = j, best[j]
    for i in range(size):
        if matches[i] == 0:
            state.free[n_free] = i
            n_free += 1
        elif matches[i] == 1:
            least = INFINITY
            row = cost + i * size
            for j in range(size):
                if j != columns[i] and row[j] - price[j] < least:
                    least = row[j] - price[j]
            if least < INFINITY:
                price[columns[i]] -= least
    return n_free


cdef Py_ssize_t reduce_rows(
    const double* cost,
    Py_ssize_t size,
    Py_ssize_t* columns,
    Py_ssize_t n_free,
    const Matching* state,
) except -1 nogil:
    """Let free rows take their best column, at a price at which the next is as good."""
    cdef Py_ssize_t n_left = 0, k = 0, visits = 0, limit = MAX_VISITS * n_free
    cdef Py_ssize_t i, j, one, two, loser
    cdef double first, second, gap
    cdef double* price = state.price
    cdef Py_ssize_t* rows = state.rows
    cdef const double* row
    while k < n_free:
        i = state.free[k]
        k += 1
        visits += 1
        if visits % 64 == 0:
            interrupted()
        first, second, one, two = INFINITY, INFINITY, -1, -1
        row = cost + i * size
        for j in range(size):
            gap = row[j] - price[j]
            if gap < second:
                if gap < first:
                    second, two = first, one
                    first, one = gap, j
                else:
                    second, two = gap, j
        if one < 0:
            # No finite cost: any column that is left over will do.
            state.free[n_left] = i
            n_left += 1
            continue
        loser = rows[one]
        if first < second < INFINITY:
            price[one] -= second - first
        elif loser >= 0 and two >= 0:
            one = two
            loser = rows[one]
        columns[i], rows[one] = one, i
        if loser >= 0:
            columns[loser] = -1
            if first < second and visits < limit:
                k -= 1
                state.free[k] = loser
            else:
                state.free[n_left] = loser
                n_left += 1
    return n_left


cdef void augment(
    Py_ssize_t start,
    const double* cost,
    Py_ssize_t size,
    Py_ssize_t* columns,
    const Matching* state,
) noexcept nogil:
    """Match row `start` by the cheapest chain of exchanges."""
    cdef double* price = state.price
    cdef double* gap = state.gap
    cdef double* open_price = state.open_price
    cdef double* settled = state.settled
    cdef Py_ssize_t* via = state.via
    cdef Py_ssize_t* rows = state.rows
    cdef Py_ssize_t i = start, j, column = 0, step
    cdef double length = 0.0, base = 0.0
    for j in range(size):
        gap[j], via[j] = INFINITY, start
        open_price[j], settled[j] = price[j], INFINITY
    # Each step settles a column, the last one that of a free row.
    for step in range(size):
        length = relax_columns(cost + i * size, open_price, base, i, size, gap, via)
        column = column_at(gap, rows, length, size)
        i = rows[column]
        if i < 0:
            break
        base = length - (cost[i * size + column] - price[column])
        settled[column] = length
        gap[column], open_price[column] = INFINITY, -INFINITY
    for j in range(size):
        if open_price[j] == -INFINITY:
            price[j] += settled[j] - length
    for step in range(size):
        i = via[column]
        rows[column] = i
        columns[i], column = column, columns[i]
        if i == start:
            break
