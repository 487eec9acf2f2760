/* The loops over columns that assignments spend their time in. */
#ifndef SKAWHMM_ASSIGNMENT_H
#define SKAWHMM_ASSIGNMENT_H

#include <stdint.h>

#include "_vector.h"

/* A minimum waits for the one before it: each loop keeps four, one per quarter of the
 * columns, and the columns that are left over join the first. */

INTO_VECTOR double least_of_four(double a, double b, double c, double d)
{
    const double one = a < b ? a : b, other = c < d ? c : d;
    return one < other ? one : other;
}

INTO_VECTOR double gap_at(
    const double *restrict row, const double *restrict price, ptrdiff_t j, double least,
    double *restrict gaps)
{
    const double gap = row[j] - price[j];
    gaps[j] = gap;
    return gap < least ? gap : least;
}

/* Fill the gaps between the costs of a row and the prices; return the least. */
VECTOR static double fill_gaps(
    const double *restrict row,
    const double *restrict price,
    ptrdiff_t size,
    double *restrict gaps)
{
    const ptrdiff_t part = size / 4;
    double a = INFINITY, b = INFINITY, c = INFINITY, d = INFINITY;
#pragma omp simd reduction(min : a, b, c, d)
    for (ptrdiff_t j = 0; j < part; j++) {
        a = gap_at(row, price, j, a, gaps);
        b = gap_at(row, price, j + part, b, gaps);
        c = gap_at(row, price, j + 2 * part, c, gaps);
        d = gap_at(row, price, j + 3 * part, d, gaps);
    }
    for (ptrdiff_t j = 4 * part; j < size; j++)
        a = gap_at(row, price, j, a, gaps);
    return least_of_four(a, b, c, d);
}

VECTOR static double least_of(const double *restrict values, ptrdiff_t size)
{
    const ptrdiff_t part = size / 4;
    double a = INFINITY, b = INFINITY, c = INFINITY, d = INFINITY;
#pragma omp simd reduction(min : a, b, c, d)
    for (ptrdiff_t j = 0; j < part; j++) {
        a = values[j] < a ? values[j] : a;
        b = values[j + part] < b ? values[j + part] : b;
        c = values[j + 2 * part] < c ? values[j + 2 * part] : c;
        d = values[j + 3 * part] < d ? values[j + 3 * part] : d;
    }
    for (ptrdiff_t j = 4 * part; j < size; j++)
        a = values[j] < a ? values[j] : a;
    return least_of_four(a, b, c, d);
}

INTO_VECTOR double relaxed_at(
    const double *restrict row,
    const double *restrict price,
    double base,
    ptrdiff_t from,
    ptrdiff_t j,
    double least,
    double *restrict length,
    ptrdiff_t *restrict via)
{
    const double through = base + (row[j] - price[j]);
    const double before = length[j];
    const ptrdiff_t last = via[j];
    const double shortest = through < before ? through : before;
    via[j] = through < before ? from : last;
    length[j] = shortest;
    return shortest < least ? shortest : least;
}

/* Shorten the paths to the columns by way of a row; return the length of the shortest.
 * A column that is settled has price -INFINITY and stays at length INFINITY. */
VECTOR static double relax_columns(
    const double *restrict row,
    const double *restrict price,
    double base,
    ptrdiff_t from,
    ptrdiff_t size,
    double *restrict length,
    ptrdiff_t *restrict via)
{
    const ptrdiff_t part = size / 4;
    double a = INFINITY, b = INFINITY, c = INFINITY, d = INFINITY;
#pragma omp simd reduction(min : a, b, c, d)
    for (ptrdiff_t j = 0; j < part; j++) {
        a = relaxed_at(row, price, base, from, j, a, length, via);
        b = relaxed_at(row, price, base, from, j + part, b, length, via);
        c = relaxed_at(row, price, base, from, j + 2 * part, c, length, via);
        d = relaxed_at(row, price, base, from, j + 3 * part, d, length, via);
    }
    for (ptrdiff_t j = 4 * part; j < size; j++)
        a = relaxed_at(row, price, base, from, j, a, length, via);
    return least_of_four(a, b, c, d);
}

INTO_VECTOR ptrdiff_t rank_at(
    const double *restrict values,
    const ptrdiff_t *restrict ranks,
    double value,
    ptrdiff_t j,
    ptrdiff_t best)
{
    const ptrdiff_t found = values[j] == value ? ranks[j] : PTRDIFF_MAX;
    return found < best ? found : best;
}

/* The column with this value, of several the one with the least rank: ranks are j, and
 * j - size for columns without a row. */
VECTOR static ptrdiff_t column_at(
    const double *restrict values,
    const ptrdiff_t *restrict ranks,
    double value,
    ptrdiff_t size)
{
    const ptrdiff_t part = size / 4;
    ptrdiff_t a = size, b = size, c = size, d = size;
#pragma omp simd reduction(min : a, b, c, d)
    for (ptrdiff_t j = 0; j < part; j++) {
        a = rank_at(values, ranks, value, j, a);
        b = rank_at(values, ranks, value, j + part, b);
        c = rank_at(values, ranks, value, j + 2 * part, c);
        d = rank_at(values, ranks, value, j + 3 * part, d);
    }
    for (ptrdiff_t j = 4 * part; j < size; j++)
        a = rank_at(values, ranks, value, j, a);
    a = a < b ? a : b;
    c = c < d ? c : d;
    a = a < c ? a : c;
    return a < 0 ? a + size : a;
}

/* Begin a phase: no paths, and all columns open at their price. */
VECTOR static void open_columns(
    const double *restrict price,
    ptrdiff_t size,
    double *restrict length,
    double *restrict open_price)
{
    for (ptrdiff_t j = 0; j < size; j++) {
        length[j] = INFINITY;
        open_price[j] = price[j];
    }
}

/* End a phase: the prices of settled columns fall by what is left to the reach. */
VECTOR static void close_columns(
    const double *restrict open_price,
    const double *restrict settled,
    double reach,
    ptrdiff_t size,
    double *restrict price)
{
    for (ptrdiff_t j = 0; j < size; j++) {
        const double fallen = price[j] + (settled[j] - reach);
        price[j] = open_price[j] == -INFINITY ? fallen : price[j];
    }
}

/* Means of neighbouring columns of the mean of two rows. */
VECTOR static void fill_halved(
    const double *restrict one,
    const double *restrict other,
    ptrdiff_t half,
    double *restrict row)
{
    for (ptrdiff_t j = 0; j < half; j++)
        row[j] = (0.25 * one[2 * j] + 0.25 * one[2 * j + 1])
            + (0.25 * other[2 * j] + 0.25 * other[2 * j + 1]);
}

/* Lower prices to what the mean of two rows, which gains that much, would pay. */
VECTOR static void lower_prices(
    const double *restrict one,
    const double *restrict other,
    double gain,
    ptrdiff_t size,
    double *restrict price)
{
    for (ptrdiff_t j = 0; j < size; j++) {
        const double offer = (0.5 * one[j] + 0.5 * other[j]) - gain;
        price[j] = offer < price[j] ? offer : price[j];
    }
}

#endif
