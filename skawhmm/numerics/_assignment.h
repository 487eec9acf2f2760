/* The loops over columns that assignments spend their time in.
 *
 * Costs are rounded to whole numbers from 0 to LARGEST_COST: minima of such numbers fill
 * vector registers in every compiler, twice as many fit into one as of doubles, and sums
 * of them are exact. Prices of a solution differ by at most three times the largest cost,
 * and paths to open columns are at most six times as long. */
#ifndef SKAWHMM_ASSIGNMENT_H
#define SKAWHMM_ASSIGNMENT_H

#include <stdint.h>

#include "_vector.h"

#define LARGEST_COST (1 << 26)

/* Longer than any path, yet shorter than one to a column at the price SHUT. */
#define FAR (1 << 29)
#define SHUT (-(1 << 30))

INTO_VECTOR int32_t lesser(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* The least gap between the costs of a row and the prices. */
VECTOR static int32_t least_gap(
    const int32_t *restrict row, const int32_t *restrict price, ptrdiff_t size)
{
    int32_t least = FAR;
    for (ptrdiff_t j = 0; j < size; j++)
        least = lesser(least, row[j] - price[j]);
    return least;
}

/* The first column with the least gap, of several one without a row; and the least gap of
 * the others, FAR if there are none. */
VECTOR static ptrdiff_t best_column(
    const int32_t *restrict row,
    const int32_t *restrict price,
    const int32_t *restrict rows,
    int32_t least,
    ptrdiff_t size,
    int32_t *next_least)
{
    int32_t best = INT32_MAX, n_best = 0, next = FAR;
    for (int32_t j = 0; j < (int32_t)size; j++) {
        const int32_t gap = row[j] - price[j], is_more = gap != least;
        best = lesser(best, j + (is_more << 30) + ((rows[j] >= 0) << 29));
        next = lesser(next, gap + ((1 - is_more) << 29));
        n_best += 1 - is_more;
    }
    *next_least = n_best > 1 ? least : next;
    return best & ((1 << 29) - 1);
}

VECTOR static int32_t least_of(const int32_t *restrict values, ptrdiff_t size)
{
    int32_t least = FAR;
    for (ptrdiff_t j = 0; j < size; j++)
        least = lesser(least, values[j]);
    return least;
}

/* Shorten the paths to the columns by way of a row; return the length of the shortest.
 * A settled column, at the price SHUT, stays FAR. */
VECTOR static int32_t relax_columns(
    const int32_t *restrict row,
    const int32_t *restrict price,
    int32_t base,
    int32_t from,
    ptrdiff_t size,
    int32_t *restrict length,
    int32_t *restrict via)
{
    int32_t least = FAR;
    for (ptrdiff_t j = 0; j < size; j++) {
        const int32_t through = base + (row[j] - price[j]);
        const int32_t before = length[j], last = via[j];
        via[j] = through < before ? from : last;
        length[j] = lesser(through, before);
        least = lesser(least, length[j]);
    }
    return least;
}

/* Count the columns with this value, and fill up to three in order: the first, what is
 * left of their sum, and the last. Without branches, which would be guessed wrong. */
VECTOR static ptrdiff_t find_three(
    const int32_t *restrict values, int32_t value, ptrdiff_t size, int32_t *restrict found)
{
    int32_t n_found = 0, first = INT32_MAX, last = 0;
    uint32_t sum = 0;
    for (int32_t j = 0; j < (int32_t)size; j++) {
        const int32_t is_found = values[j] == value, place = is_found ? j : 0;
        n_found += is_found;
        sum += (uint32_t)place;
        first = lesser(first, j + ((1 - is_found) << 29));
        last = place > last ? place : last;
    }
    found[0] = first;
    found[1] = n_found == 2 ? last : (int32_t)(sum - (uint32_t)first - (uint32_t)last);
    found[2] = last;
    return n_found;
}

/* Fill the columns with this value; return how many there are. */
static ptrdiff_t find_columns(
    const int32_t *values, int32_t value, ptrdiff_t size, int32_t *found)
{
    ptrdiff_t n_found = find_three(values, value, size, found);
    if (n_found <= 3)
        return n_found;
    n_found = 0;
    for (ptrdiff_t j = 0; j < size; j++) {
        found[n_found] = (int32_t)j;
        n_found += values[j] == value;
    }
    return n_found;
}

/* Begin a phase: no paths, and all columns open at their price. */
VECTOR static void open_columns(
    const int32_t *restrict price,
    ptrdiff_t size,
    int32_t *restrict length,
    int32_t *restrict open_price)
{
    for (ptrdiff_t j = 0; j < size; j++) {
        length[j] = FAR;
        open_price[j] = price[j];
    }
}

/* End a phase: the prices of settled columns fall by what is left to the reach. */
VECTOR static void close_columns(
    const int32_t *restrict open_price,
    const int32_t *restrict settled,
    int32_t reach,
    ptrdiff_t size,
    int32_t *restrict price)
{
    for (ptrdiff_t j = 0; j < size; j++) {
        const int32_t fallen = price[j] + (settled[j] - reach);
        price[j] = open_price[j] == SHUT ? fallen : price[j];
    }
}

/* Means of neighbouring columns of the mean of two rows. */
VECTOR static void fill_halved(
    const int32_t *restrict one,
    const int32_t *restrict other,
    ptrdiff_t half,
    int32_t *restrict row)
{
    for (ptrdiff_t j = 0; j < half; j++)
        row[j] = (one[2 * j] + one[2 * j + 1] + other[2 * j] + other[2 * j + 1]) >> 2;
}

/* Lower prices to what the mean of two rows, which gains that much, would pay. */
VECTOR static void lower_prices(
    const int32_t *restrict one,
    const int32_t *restrict other,
    int32_t gain,
    ptrdiff_t size,
    int32_t *restrict price)
{
    for (ptrdiff_t j = 0; j < size; j++)
        price[j] = lesser(price[j], ((one[j] + other[j]) >> 1) - gain);
}

/* Widen the range of each column by what a row leaves beyond its share. */
VECTOR static void widen_ranges(
    const double *restrict row,
    double share,
    ptrdiff_t size,
    double *restrict low,
    double *restrict high)
{
    for (ptrdiff_t j = 0; j < size; j++) {
        const double rest = row[j] - share;
        low[j] = rest < low[j] ? rest : low[j];
        high[j] = rest > high[j] ? rest : high[j];
    }
}

/* Round what a row leaves beyond its share and those of the columns. What is not a number
 * counts as the largest cost. */
VECTOR static void round_costs(
    const double *restrict row,
    double share,
    const double *restrict low,
    double scale,
    ptrdiff_t size,
    int32_t *restrict rounded)
{
    for (ptrdiff_t j = 0; j < size; j++) {
        double rest = ((row[j] - share) - low[j]) * scale;
        rest = rest < LARGEST_COST ? rest : LARGEST_COST;
        rounded[j] = (int32_t)rest;
    }
}

/* Lower prices to what a row would pay, where that is lower beyond rounding. */
VECTOR static void lower_exactly(
    const double *restrict row,
    double share,
    double rounding,
    ptrdiff_t size,
    double *restrict price)
{
    for (ptrdiff_t j = 0; j < size; j++) {
        const double offer = row[j] - share;
        price[j] = offer + rounding < price[j] ? offer : price[j];
    }
}

#endif
