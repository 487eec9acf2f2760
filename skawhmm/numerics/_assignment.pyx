"""Exact assignment of equally many points, compiled.

Shortest augmenting paths, grown from all free rows at once, whose loops over columns fill
vector registers. First prices of the columns come from a problem of half the size, in
which neighbouring rows and columns are averaged, and that in turn from one of half its
size. Any prices lead to a cheapest assignment; good ones, which it has if neighbours are
near to each other, leave few rows free and make their paths short.
`benchmarks/bench_kernels.py` prints the time beside scipy's `linear_sum_assignment`.
"""

import numpy as np

from libc.math cimport INFINITY

from skawhmm.utils._interruption cimport interrupted

cdef extern from "numerics/_assignment.h" nogil:
    """
    /* Rounds in which free rows take columns, before paths are looked for. */
    #define N_ROUNDS 3

    /* Smaller problems are not halved. */
    #define LEAST_HALVED 16

    /* Numbers in a cache line, at whose beginning arrays begin. */
    #define CACHE_LINE 8

    /* Arrays of one number or place per column. */
    #define N_NUMBERS 4
    #define N_PLACES 7
    """
    const int N_ROUNDS
    const Py_ssize_t LEAST_HALVED, CACHE_LINE, N_NUMBERS, N_PLACES
    double fill_gaps(
        const double* row, const double* price, Py_ssize_t size, double* gaps
    )
    double least_of(const double* values, Py_ssize_t size)
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
        const double* values, const Py_ssize_t* ranks, double value, Py_ssize_t size
    )
    void open_columns(
        const double* price, Py_ssize_t size, double* length, double* open_price
    )
    void close_columns(
        const double* open_price,
        const double* settled,
        double reach,
        Py_ssize_t size,
        double* price,
    )
    void fill_halved(
        const double* one, const double* other, Py_ssize_t half, double* row
    )
    void lower_prices(
        const double* one,
        const double* other,
        double gain,
        Py_ssize_t size,
        double* price,
    )


cdef struct Level:
    # Prices of the columns; lengths of paths to them, prices and lengths of a phase.
    double* price
    double* gap
    double* open_price
    double* settled
    # Row of each column, -1 for none; ranks, which put columns without a row first; rows
    # on the shortest paths to columns. Rows without a column; the tree of each row, and
    # the column without a row that each tree has reached.
    Py_ssize_t* rows
    Py_ssize_t* ranks
    Py_ssize_t* via
    Py_ssize_t* free
    Py_ssize_t* trees
    Py_ssize_t* ends
    # The halved problem: its costs and matches, and scratch for it.
    Py_ssize_t* columns
    double* halved
    Matching rest


def make_matching(size):
    """Return the scratch arrays of the solver, to be reused from problem to problem."""
    n_numbers = n_places = 0
    while size > 0:
        n_numbers += N_NUMBERS * padded(size) + padded((size // 2) ** 2)
        n_places += N_PLACES * padded(size)
        size = size // 2 if size >= LEAST_HALVED else 0
    return aligned(n_numbers), aligned(n_places, np.intp)


def aligned(shape, dtype=np.float64):
    """Return an uninitialized array of 8-byte items that begins with a cache line."""
    size = int(np.prod(shape))
    raw = np.empty(size + CACHE_LINE, dtype)
    first = (CACHE_LINE - raw.ctypes.data // 8 % CACHE_LINE) % CACHE_LINE
    return raw[first : first + size].reshape(shape)


cdef inline Py_ssize_t padded(Py_ssize_t size) noexcept nogil:
    return (size + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE


cdef Matching matching_of(double[::1] numbers, Py_ssize_t[::1] places) noexcept nogil:
    """The arrays of `make_matching` as the solver reads them."""
    cdef Matching scratch
    scratch.numbers, scratch.places = &numbers[0], &places[0]
    return scratch


cdef Level level_of(Py_ssize_t size, const Matching* scratch) noexcept nogil:
    """The arrays of a problem of this size."""
    cdef Py_ssize_t length = padded(size), half = size // 2
    cdef double* numbers = scratch.numbers
    cdef Py_ssize_t* places = scratch.places
    cdef Level level
    level.price, level.gap = numbers, numbers + length
    level.open_price, level.settled = numbers + 2 * length, numbers + 3 * length
    level.rows, level.ranks, level.via = places, places + length, places + 2 * length
    level.free, level.trees = places + 3 * length, places + 4 * length
    level.ends, level.columns = places + 5 * length, places + 6 * length
    level.halved = numbers + N_NUMBERS * length
    level.rest.numbers = level.halved + padded(half * half)
    level.rest.places = places + N_PLACES * length
    return level


cdef int assign(
    const double* cost, Py_ssize_t size, Py_ssize_t* columns, const Matching* scratch
) except -1 nogil:
    """Write a cheapest assignment into `columns`; its prices come first in `scratch`."""
    cdef Level level = level_of(size, scratch)
    cdef Py_ssize_t n_free = size, n_before, k
    fill_prices(cost, size, &level)
    for k in range(size):
        columns[k], level.free[k] = -1, k
        level.rows[k], level.ranks[k] = -1, k - size
    for k in range(N_ROUNDS):
        n_free = take_columns(n_free, cost, size, columns, &level)
    n_before = n_free + 1
    # Costs that are not finite may leave rows without a path.
    while 0 < n_free < n_before:
        interrupted()
        n_before = n_free
        n_free = augment(n_free, cost, size, columns, &level)
    fill_up(n_free, size, columns, &level)


cdef int fill_prices(
    const double* cost, Py_ssize_t size, const Level* level
) except -1 nogil:
    """Fill the prices at which the averaged rows of the halved problem are content.

    In a small problem a price is the least cost of its column.
    """
    cdef double* price = level.price
    cdef double* halved = level.halved
    cdef const double* row
    cdef Py_ssize_t half = size // 2, i, j
    cdef double gain
    for j in range(size):
        price[j] = INFINITY
    if size < LEAST_HALVED:
        for i in range(size):
            lower_prices(cost + i * size, cost + i * size, 0.0, size, price)
        return 0
    for i in range(half):
        row = cost + 2 * i * size
        fill_halved(row, row + size, half, halved + i * half)
    assign(halved, half, level.columns, &level.rest)
    for i in range(half):
        row, j = cost + 2 * i * size, level.columns[i]
        gain = halved[i * half + j] - level.rest.numbers[j]
        lower_prices(row, row + size, gain, size, price)


cdef Py_ssize_t take_columns(
    Py_ssize_t n_free,
    const double* cost,
    Py_ssize_t size,
    Py_ssize_t* columns,
    const Level* level,
) noexcept nogil:
    """Let free rows take their best columns, at prices at which the next are as good.

    Return how many rows are then free.
    """
    cdef double* price = level.price
    cdef double* gap = level.gap
    cdef Py_ssize_t i, j, k, loser, n_left = 0
    cdef double least, next_least
    for k in range(n_free):
        i = level.free[k]
        least = fill_gaps(cost + i * size, price, size, gap)
        j = column_at(gap, level.ranks, least, size)
        if j == size:
            continue
        gap[j] = INFINITY
        next_least = least_of(gap, size)
        loser = level.rows[j]
        if loser >= 0 and next_least == least:
            continue
        if next_least < INFINITY:
            price[j] -= next_least - least
        columns[i], level.rows[j], level.ranks[j] = j, i, j
        if loser >= 0:
            columns[loser] = -1
    for i in range(size):
        if columns[i] < 0:
            level.free[n_left] = i
            n_left += 1
    return n_left


cdef Py_ssize_t augment(
    Py_ssize_t n_free,
    const double* cost,
    Py_ssize_t size,
    Py_ssize_t* columns,
    const Level* level,
) noexcept nogil:
    """Match free rows by cheapest chains of exchanges; return how many are left.

    The shortest paths from all free rows form trees, one per free row, which grow until
    half of them have reached a column without a row.
    """
    cdef double* price = level.price
    cdef double* gap = level.gap
    cdef double* open_price = level.open_price
    cdef Py_ssize_t i, j, k, step, tree, n_wanted = (n_free + 1) // 2
    cdef double length = INFINITY, reached = 0.0, base
    open_columns(price, size, gap, open_price)
    for k in range(n_free):
        i = level.free[k]
        level.trees[i], level.ends[k] = k, -1
        base = fill_gaps(cost + i * size, price, size, level.settled)
        length = relax_columns(
            cost + i * size, open_price, -base, i, size, gap, level.via
        )
    for step in range(size):
        j = column_at(gap, level.ranks, length, size)
        if j == size or length == INFINITY:
            break
        i, tree = level.rows[j], level.trees[level.via[j]]
        level.settled[j] = reached = length
        gap[j], open_price[j] = INFINITY, -INFINITY
        if i >= 0:
            level.trees[i] = tree
            base = length - (cost[i * size + j] - price[j])
            length = relax_columns(
                cost + i * size, open_price, base, i, size, gap, level.via
            )
            continue
        if level.ends[tree] < 0:
            level.ends[tree] = j
            n_wanted -= 1
            if n_wanted == 0:
                break
        length = least_of(gap, size)
    close_columns(open_price, level.settled, reached, size, price)
    return exchange(n_free, size, columns, level)


cdef Py_ssize_t exchange(
    Py_ssize_t n_free, Py_ssize_t size, Py_ssize_t* columns, const Level* level
) noexcept nogil:
    """Move rows along the paths that trees have found; return how many are left free."""
    cdef Py_ssize_t n_left = 0, i, j, k, step
    for k in range(n_free):
        j = level.ends[k]
        if j < 0:
            level.free[n_left] = level.free[k]
            n_left += 1
            continue
        level.ranks[j] = j
        for step in range(size):
            i = level.via[j]
            level.rows[j] = i
            columns[i], j = j, columns[i]
            if i == level.free[k]:
                break
    return n_left


cdef void fill_up(
    Py_ssize_t n_free, Py_ssize_t size, Py_ssize_t* columns, const Level* level
) noexcept nogil:
    """Give rows that are still free any columns that are left."""
    cdef Py_ssize_t j, k = 0
    for j in range(size):
        if level.rows[j] < 0 and k < n_free:
            columns[level.free[k]] = j
            k += 1


# Neighbours


def neighbouring_order(const double[:, :, ::1] points):
    """Order the points of each model so that neighbours in the order are near.

    The points are halved along the channel in which they spread most, then each half,
    and so on. The first part has a power of two of points, so that points 2k and 2k + 1
    are never parted before the last halving.

    Parameters
    ----------
    points : ndarray of shape (n_models, n_samples, n_features)
        Points of each model.

    Returns
    -------
    order : ndarray of int of shape (n_models, n_samples)
        Indices of the points in their new order.
    """
    cdef Py_ssize_t n_samples = points.shape[1], n_features = points.shape[2], n, k
    cdef Py_ssize_t[:, ::1] order = np.empty((points.shape[0], n_samples), np.intp)
    with nogil:
        for n in range(points.shape[0]):
            interrupted()
            for k in range(n_samples):
                order[n, k] = k
            halve(&points[n, 0, 0], n_features, &order[n, 0], n_samples)
    return np.asarray(order)


cdef void halve(
    const double* points, Py_ssize_t n_features, Py_ssize_t* order, Py_ssize_t size
) noexcept nogil:
    """Order some points; see `neighbouring_order`."""
    cdef Py_ssize_t half = 1, widest = 0, c, k
    cdef double low, high, value, width = -1.0
    if size <= 2:
        return
    while 2 * half < size:
        half *= 2
    for c in range(n_features):
        low, high = INFINITY, -INFINITY
        for k in range(size):
            value = points[order[k] * n_features + c]
            low, high = min(low, value), max(high, value)
        if high - low > width:
            width, widest = high - low, c
    part(points + widest, n_features, order, size, half)
    halve(points, n_features, order, half)
    halve(points, n_features, order + half, size - half)


cdef void part(
    const double* values,
    Py_ssize_t stride,
    Py_ssize_t* order,
    Py_ssize_t size,
    Py_ssize_t n_least,
) noexcept nogil:
    """Put the points with the `n_least` least values first, by Hoare's selection."""
    cdef Py_ssize_t first = 0, last = size - 1, i, j
    cdef double pivot
    while first < last:
        pivot = values[order[(first + last) // 2] * stride]
        i, j = first, last
        while i <= j:
            while values[order[i] * stride] < pivot:
                i += 1
            while values[order[j] * stride] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if n_least - 1 <= j:
            last = j
        elif n_least - 1 >= i:
            first = i
        else:
            return
