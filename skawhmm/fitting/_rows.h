/* Sums over channels and over frames; channels are rows, `stride` numbers apart. */
#ifndef SKAWHMM_ROWS_H
#define SKAWHMM_ROWS_H

#include "_vector.h"

/* Length of the longest range between bounds. */
static inline ptrdiff_t longest_range(const ptrdiff_t *bounds, ptrdiff_t n_ranges)
{
    ptrdiff_t longest = 0;
    for (ptrdiff_t i = 0; i < n_ranges; i++)
        if (bounds[i + 1] - bounds[i] > longest)
            longest = bounds[i + 1] - bounds[i];
    return longest;
}

INTO_VECTOR double row_sum(const double *restrict row, ptrdiff_t size)
{
    double sums[LANES] = {0};
    ptrdiff_t t = 0;
    for (; t + LANES <= size; t += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += row[t + lane];
    for (int lane = 0; t + lane < size; lane++)
        sums[lane] += row[t + lane];
    return lane_sum(sums);
}

/* Add a weighted sum of rows to `out`, four rows at a time, then two, then one. */
INTO_VECTOR void add_weighted_rows(
    const double *restrict rows,
    ptrdiff_t stride,
    const double *restrict weights,
    ptrdiff_t n_rows,
    ptrdiff_t size,
    double *restrict out)
{
    ptrdiff_t r = 0;
    for (; r + 4 <= n_rows; r += 4) {
        const double *restrict row_0 = rows + r * stride;
        const double *restrict row_1 = row_0 + stride;
        const double *restrict row_2 = row_1 + stride;
        const double *restrict row_3 = row_2 + stride;
        const double weight_0 = weights[r], weight_1 = weights[r + 1];
        const double weight_2 = weights[r + 2], weight_3 = weights[r + 3];
        for (ptrdiff_t t = 0; t < size; t++)
            out[t] += (weight_0 * row_0[t] + weight_1 * row_1[t]) +
                      (weight_2 * row_2[t] + weight_3 * row_3[t]);
    }
    for (; r + 2 <= n_rows; r += 2) {
        const double *restrict row_0 = rows + r * stride;
        const double *restrict row_1 = row_0 + stride;
        const double weight_0 = weights[r], weight_1 = weights[r + 1];
        for (ptrdiff_t t = 0; t < size; t++)
            out[t] += weight_0 * row_0[t] + weight_1 * row_1[t];
    }
    for (; r < n_rows; r++) {
        const double *restrict row = rows + r * stride;
        const double weight = weights[r];
        for (ptrdiff_t t = 0; t < size; t++)
            out[t] += weight * row[t];
    }
}

INTO_VECTOR double row_product(
    const double *restrict x, const double *restrict y, ptrdiff_t size)
{
    double sums[LANES] = {0};
    ptrdiff_t t = 0;
    for (; t + LANES <= size; t += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += x[t + lane] * y[t + lane];
    for (int lane = 0; t + lane < size; lane++)
        sums[lane] += x[t + lane] * y[t + lane];
    return lane_sum(sums);
}

#endif
