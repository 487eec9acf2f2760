"""Exact assignment of equally many points, compiled.

Costs are rounded to whole numbers, and that problem is solved exactly: by shortest
augmenting paths, grown from all free rows at once, whose loops over columns fill vector
registers. Its prices, unrounded, then prove that the assignment is also a cheapest one
of the costs themselves, or the problem that they leave is rounded more finely.

First prices of the columns come from a problem of half the size, in which neighbouring
rows and columns are averaged, and that in turn from one of half its size. Any prices
lead to a cheapest assignment; good ones, which it has if neighbours are near to each
other, leave few rows free and make their paths short.
`benchmarks/bench_kernels.py` prints the time beside scipy's `linear_sum_assignment`.
"""

import numpy as np

from libc.math cimport INFINITY, frexp, ldexp
from libc.stdint cimport int32_t

from skawhmm.utils._interruption cimport interrupted

cdef extern from "numerics/_assignment.h" nogil:
    """
    /* Rounds in which free rows take columns, before paths are looked for. */
    #define N_ROUNDS 3

    /* Smaller problems are not halved. */
    #define LEAST_HALVED 16

    /* A proof looks at each row three or four times; it is given up long after that. */
    #define MOST_LOOKS 16

    /* Bits of a cost below the largest one that a finer rounding would not change, and
       the rounding of a price, as a fraction of the largest cost. */
    #define COST_BITS 52
    #define PRICE_ROUNDING 0x1p-50

    /* Costs that differ by less are not rounded more finely: scales stay finite. */
    #define LEAST_RANGE 1e-280

    /* Bytes in a cache line, at whose beginning arrays begin. */
    #define CACHE_LINE 64

    /* Arrays of one double, and of one whole number, per column. */
    #define N_NUMBERS 5
    #define N_PLACES 11
    """
    const int N_ROUNDS, MOST_LOOKS, COST_BITS
    const double PRICE_ROUNDING, LEAST_RANGE
    const Py_ssize_t LEAST_HALVED, CACHE_LINE, N_NUMBERS, N_PLACES
    const int32_t LARGEST_COST, FAR, SHUT
    int32_t least_gap(const int32_t* row, const int32_t* price, Py_ssize_t size)
    Py_ssize_t best_column(
        const int32_t* row,
        const int32_t* price,
        const int32_t* rows,
        int32_t least,
        Py_ssize_t size,
        int32_t* next_least,
    )
    int32_t least_of(const int32_t* values, Py_ssize_t size)
    int32_t relax_columns(
        const int32_t* row,
        const int32_t* price,
        int32_t base,
        int32_t via_row,
        Py_ssize_t size,
        int32_t* length,
        int32_t* via,
    )
    Py_ssize_t find_columns(
        const int32_t* values,
        int32_t value,
        Py_ssize_t size,
        int32_t* found,
    )
    void open_columns(
        const int32_t* price, Py_ssize_t size, int32_t* length, int32_t* open_price
    )
    void close_columns(
        const int32_t* open_price,
        const int32_t* settled,
        int32_t reach,
        Py_ssize_t size,
        int32_t* price,
    )
    void fill_halved(
        const int32_t* one, const int32_t* other, Py_ssize_t half, int32_t* row
    )
    void lower_prices(
        const int32_t* one,
        const int32_t* other,
        int32_t gain,
        Py_ssize_t size,
        int32_t* price,
    )
    void widen_ranges(
        const double* row, double share, Py_ssize_t size, double* low, double* high
    )
    void round_costs(
        const double* row,
        double share,
        const double* low,
        double scale,
        Py_ssize_t size,
        int32_t* rounded,
    )
    void lower_exactly(
        const double* row,
        double share,
        double rounding,
        Py_ssize_t size,
        double* price,
    )


cdef struct Bounds:
    # Shares of the rows in their costs; least and largest rests in the columns. Prices
    # of the columns, and what they were when their rows were last looked at.
    double* shares
    double* low
    double* high
    double* price
    double* seen


cdef struct Level:
    # Costs; prices of the columns; lengths of paths to them, prices and lengths of a
    # phase.
    int32_t* cost
    int32_t* price
    int32_t* gap
    int32_t* open_price
    int32_t* settled
    # Column of each row and row of each column, -1 for none; rows on the shortest paths
    # to columns. Rows without a column; the tree of each row, and the column without a
    # row that each tree has reached. Columns found.
    int32_t* columns
    int32_t* rows
    int32_t* via
    int32_t* free
    int32_t* trees
    int32_t* ends
    int32_t* found
    # Where the halved problem begins.
    int32_t* rest


def make_matching(size):
    """Return the scratch arrays of the solver, to be reused from problem to problem."""
    n_numbers, n_places = N_NUMBERS * size, 0
    while size > 0:
        n_places += padded(size * size) + N_PLACES * padded(size)
        size = size // 2 if size >= LEAST_HALVED else 0
    return aligned(n_numbers), aligned(n_places, np.int32)


def aligned(shape, dtype=np.float64):
    """Return an uninitialized array that begins with a cache line."""
    size, item = int(np.prod(shape)), np.dtype(dtype).itemsize
    raw = np.empty(size + CACHE_LINE // item, dtype)
    first = -raw.ctypes.data % CACHE_LINE // item
    return raw[first : first + size].reshape(shape)


cdef inline Py_ssize_t padded(Py_ssize_t size) noexcept nogil:
    """Whole cache lines of whole numbers of four bytes."""
    cdef Py_ssize_t line = CACHE_LINE // 4
    return (size + line - 1) // line * line


cdef Matching matching_of(double[::1] numbers, int32_t[::1] places) noexcept nogil:
    """The arrays of `make_matching` as the solver reads them."""
    cdef Matching scratch
    scratch.numbers, scratch.places = &numbers[0], &places[0]
    return scratch


cdef Bounds bounds_of(Py_ssize_t size, double* numbers) noexcept nogil:
    cdef Bounds bounds
    bounds.shares, bounds.low = numbers, numbers + size
    bounds.high, bounds.price = numbers + 2 * size, numbers + 3 * size
    bounds.seen = numbers + 4 * size
    return bounds


cdef Level level_of(Py_ssize_t size, int32_t* places) noexcept nogil:
    """The arrays of a problem of this size."""
    cdef Py_ssize_t length = padded(size)
    cdef int32_t* first = places + padded(size * size)
    cdef Level level
    level.cost, level.price, level.gap = places, first, first + length
    level.open_price, level.settled = first + 2 * length, first + 3 * length
    level.columns, level.rows = first + 4 * length, first + 5 * length
    level.via, level.free = first + 6 * length, first + 7 * length
    level.trees, level.ends = first + 8 * length, first + 9 * length
    level.found = first + 10 * length
    level.rest = first + N_PLACES * length
    return level


# Costs


cdef int assign(
    const double* cost, Py_ssize_t size, Py_ssize_t* columns, const Matching* scratch
) except -1 nogil:
    """Write a cheapest assignment into `columns`.

    Costs are finite. The prices of the rounded problem bound the least total cost from
    below, to within one unit per row. A match that alone exceeds its prices by more is in
    no cheapest assignment, so that a finer rounding may cut costs off there.
    """
    cdef Bounds bounds = bounds_of(size, scratch.numbers)
    cdef Level level = level_of(size, scratch.places)
    cdef Py_ssize_t i
    cdef double scale = 0.0, rounding = 0.0
    cdef int bits = bits_of(LARGEST_COST) - 1, exponent = 0
    for i in range(size):
        bounds.shares[i] = 0.0
    while True:
        fill_ranges(cost, size, &bounds)
        if scale == 0.0:
            exponent = exponent_of(&bounds, size, &rounding)
            scale = ldexp(1.0, bits - exponent)
        for i in range(size):
            round_costs(
                cost + i * size, bounds.shares[i], bounds.low, scale, size,
                level.cost + i * size,
            )
        assign_rounded(size, &level)
        add_prices(size, scale, &level, &bounds)
        if bits >= COST_BITS or is_cheapest(cost, size, rounding, &level, &bounds):
            break
        bits += max(1, bits_of(LARGEST_COST) - 1 - bits_of(size))
        scale = ldexp(1.0, bits - exponent)
    for i in range(size):
        columns[i] = level.columns[i]


cdef inline int bits_of(Py_ssize_t number) noexcept nogil:
    """Bits of a positive whole number."""
    cdef int exponent
    frexp(<double>number, &exponent)
    return exponent


cdef int fill_ranges(
    const double* cost, Py_ssize_t size, const Bounds* bounds
) except -1 nogil:
    """Fill the least and the largest cost of each column, beyond the rows' shares."""
    cdef Py_ssize_t i, j
    interrupted()
    for j in range(size):
        bounds.low[j], bounds.high[j] = INFINITY, -INFINITY
    for i in range(size):
        widen_ranges(
            cost + i * size, bounds.shares[i], size, bounds.low, bounds.high
        )


cdef int exponent_of(
    const Bounds* bounds, Py_ssize_t size, double* rounding
) noexcept nogil:
    """The exponent of the widest range, and the rounding of the largest cost."""
    cdef double widest = LEAST_RANGE, largest = 0.0, width
    cdef int exponent
    cdef Py_ssize_t j
    for j in range(size):
        width = bounds.high[j] - bounds.low[j]
        if 0 <= width < INFINITY:
            widest = max(widest, width)
            largest = max(largest, max(bounds.high[j], -bounds.low[j]))
    rounding[0] = PRICE_ROUNDING * largest
    frexp(widest, &exponent)
    return exponent


cdef void add_prices(
    Py_ssize_t size, double scale, const Level* level, const Bounds* bounds
) noexcept nogil:
    """Fill the prices of the columns, and add to the shares of the rows."""
    cdef Py_ssize_t i, j
    for i in range(size):
        j = level.columns[i]
        bounds.shares[i] += (level.cost[i * size + j] - level.price[j]) / scale
        bounds.price[i] = bounds.low[i] + level.price[i] / scale


cdef int is_cheapest(
    const double* cost,
    Py_ssize_t size,
    double rounding,
    const Level* level,
    const Bounds* bounds,
) except -1 nogil:
    """Whether there are prices at which each row prefers its own column.

    Those of the rounded problem are all but right. A column falls to what another row
    would pay for it, and so may those that its own row prefers then, until all are
    content. Chains of exchanges that gain something would let prices fall for ever.
    """
    cdef double* price = bounds.price
    cdef Py_ssize_t i, j, n_looks = 0, n_before = -1
    for j in range(size):
        bounds.seen[j] = INFINITY
    while n_looks > n_before:
        interrupted()
        if n_looks > MOST_LOOKS * size:
            return False
        n_before = n_looks
        for i in range(size):
            j = level.columns[i]
            if price[j] != bounds.seen[j]:
                bounds.seen[j] = price[j]
                n_looks += 1
                lower_exactly(
                    cost + i * size, cost[i * size + j] - price[j], rounding, size, price
                )
    return True


# Rounded costs


cdef int assign_rounded(Py_ssize_t size, const Level* level) except -1 nogil:
    """Fill a cheapest assignment of the rounded costs, and its prices."""
    cdef Py_ssize_t n_free = size, k
    fill_prices(size, level)
    for k in range(size):
        level.columns[k] = level.rows[k] = -1
        level.free[k] = k
    for k in range(N_ROUNDS):
        n_free = take_columns(n_free, size, level)
    while n_free > 0:
        interrupted()
        n_free = augment(n_free, size, level)


cdef int fill_prices(Py_ssize_t size, const Level* level) except -1 nogil:
    """Fill the highest prices at which rows are content that gain what the rows of the
    halved problem do.

    In a small problem they are the least costs of the columns. Prices are at most 0.
    """
    cdef int32_t* price = level.price
    cdef const int32_t* row
    cdef Py_ssize_t i, j
    cdef int32_t gain, highest = -FAR
    for j in range(size):
        price[j] = FAR
    if size >= LEAST_HALVED:
        fill_averaged_prices(size, level)
        for j in range(size):
            level.settled[j], price[j] = price[j], FAR
    for i in range(size):
        row, gain = level.cost + i * size, 0
        if size >= LEAST_HALVED:
            gain = least_gap(row, level.settled, size)
        lower_prices(row, row, gain, size, price)
    for j in range(size):
        highest = max(highest, price[j])
    for j in range(size):
        price[j] -= highest


cdef int fill_averaged_prices(Py_ssize_t size, const Level* level) except -1 nogil:
    """Lower prices until the averaged rows of the halved problem are content."""
    cdef Level halved = level_of(size // 2, level.rest)
    cdef const int32_t* row
    cdef Py_ssize_t half = size // 2, i, j
    cdef int32_t gain
    for i in range(half):
        row = level.cost + 2 * i * size
        fill_halved(row, row + size, half, halved.cost + i * half)
    assign_rounded(half, &halved)
    for i in range(half):
        row, j = level.cost + 2 * i * size, halved.columns[i]
        gain = halved.cost[i * half + j] - halved.price[j]
        lower_prices(row, row + size, gain, size, level.price)


cdef Py_ssize_t take_columns(
    Py_ssize_t n_free, Py_ssize_t size, const Level* level
) noexcept nogil:
    """Let free rows take their best columns, at prices at which the next are as good.

    Return how many rows are then free.
    """
    cdef const int32_t* row
    cdef Py_ssize_t i, j, k, n_left = 0
    cdef int32_t least, next_least, loser
    for k in range(n_free):
        i = level.free[k]
        row = level.cost + i * size
        least = least_gap(row, level.price, size)
        j = best_column(row, level.price, level.rows, least, size, &next_least)
        loser = level.rows[j]
        if loser >= 0 and next_least == least:
            continue
        if next_least < FAR:
            level.price[j] -= next_least - least
        level.columns[i], level.rows[j] = j, i
        if loser >= 0:
            level.columns[loser] = -1
    for i in range(size):
        if level.columns[i] < 0:
            level.free[n_left] = i
            n_left += 1
    return n_left


cdef Py_ssize_t augment(
    Py_ssize_t n_free, Py_ssize_t size, const Level* level
) noexcept nogil:
    """Match free rows by cheapest chains of exchanges; return how many are left.

    The shortest paths from all free rows form trees, one per free row, which grow until
    half of them have reached a column without a row.
    """
    cdef const int32_t* row
    cdef Py_ssize_t i, j, k, n_found, n_wanted = (n_free + 1) // 2, n_open = n_free
    cdef int32_t length = FAR, reached = 0, base
    open_columns(level.price, size, level.gap, level.open_price)
    for k in range(n_free):
        i = level.free[k]
        row = level.cost + i * size
        level.trees[i], level.ends[k] = k, -1
        base = -least_gap(row, level.price, size)
        length = relax_columns(
            row, level.open_price, base, i, size, level.gap, level.via
        )
    while True:
        reached = length
        n_found = find_columns(level.gap, length, size, level.found)
        n_found = settle(n_found, length, &n_wanted, &n_open, level)
        if n_wanted <= 0 or n_open == 0:
            break
        if n_found == 0:
            length = least_of(level.gap, size)
        for k in range(n_found):
            j = level.found[k]
            i = level.rows[j]
            row = level.cost + i * size
            base = reached - (row[j] - level.price[j])
            length = relax_columns(
                row, level.open_price, base, i, size, level.gap, level.via
            )
    close_columns(level.open_price, level.settled, reached, size, level.price)
    return exchange(n_free, level)


cdef Py_ssize_t settle(
    Py_ssize_t n_found,
    int32_t length,
    Py_ssize_t* n_wanted,
    Py_ssize_t* n_open,
    const Level* level,
) noexcept nogil:
    """Settle the columns found at this length; keep those that have a row.

    Return how many have one. Columns without a row are counted off, and so are the
    trees that had not reached any before.
    """
    cdef Py_ssize_t n_kept = 0, k
    cdef int32_t i, j, tree
    for k in range(n_found):
        j = level.found[k]
        i, tree = level.rows[j], level.trees[level.via[j]]
        level.settled[j] = length
        level.gap[j], level.open_price[j] = FAR, SHUT
        if i >= 0:
            level.trees[i] = tree
            level.found[n_kept] = j
            n_kept += 1
            continue
        n_open[0] -= 1
        if level.ends[tree] < 0:
            level.ends[tree] = j
            n_wanted[0] -= 1
    return n_kept


cdef Py_ssize_t exchange(Py_ssize_t n_free, const Level* level) noexcept nogil:
    """Move rows along the paths that trees have found; return how many are left free."""
    cdef Py_ssize_t n_left = 0, k
    cdef int32_t i, j
    for k in range(n_free):
        j = level.ends[k]
        if j < 0:
            level.free[n_left] = level.free[k]
            n_left += 1
            continue
        while True:
            i = level.via[j]
            level.rows[j] = i
            level.columns[i], j = j, level.columns[i]
            if i == level.free[k]:
                break
    return n_left


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
