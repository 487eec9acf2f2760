/* The two loops over columns that shortest augmenting paths spend their time in. */
#ifndef SKAWHMM_ASSIGNMENT_H
#define SKAWHMM_ASSIGNMENT_H

#include "_vector.h"

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
    double least = INFINITY;
#pragma omp simd reduction(min : least)
    for (ptrdiff_t j = 0; j < size; j++) {
        const double through = base + (row[j] - price[j]);
        const double before = length[j];
        const ptrdiff_t last = via[j];
        const double shortest = through < before ? through : before;
        via[j] = through < before ? from : last;
        length[j] = shortest;
        least = shortest < least ? shortest : least;
    }
    return least;
}

/* The first column at that length, if there are several one without a row. */
VECTOR static ptrdiff_t column_at(
    const double *restrict length,
    const ptrdiff_t *restrict rows,
    double least,
    ptrdiff_t size)
{
    ptrdiff_t best = size;
#pragma omp simd reduction(min : best)
    for (ptrdiff_t j = 0; j < size; j++) {
        const ptrdiff_t rank = rows[j] < 0 ? j - size : j;
        const ptrdiff_t found = length[j] == least ? rank : size;
        best = found < best ? found : best;
    }
    return best < 0 ? best + size : best;
}

#endif
