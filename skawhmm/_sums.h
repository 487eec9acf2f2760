/* Sums over frames that fill vector registers, in an order of their own.
 *
 * What is left of a row beyond a multiple of LANES is added as the last LANES numbers,
 * those that were added before times 0.
 */
#ifndef SKAWHMM_SUMS_H
#define SKAWHMM_SUMS_H

#include "_lanes.h"

/* 1 for the last lanes, 0 for those before. */
INTO_VECTOR Lanes last_lanes(ptrdiff_t count)
{
    static const double steps[2 * LANES] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    return lanes_at(steps + count);
}

INTO_VECTOR double row_sum(const double *restrict row, ptrdiff_t size)
{
    Lanes sums = lanes_of(0.0);
    ptrdiff_t t = 0;
    if (size < LANES) {
        double total = 0.0;
        for (; t < size; t++)
            total += row[t];
        return total;
    }
    for (; t + LANES <= size; t += LANES)
        sums = lanes_sum(sums, lanes_at(row + t));
    if (t < size) {
        const Lanes rest = lanes_at(row + size - LANES);
        sums = lanes_sum(sums, lanes_product(last_lanes(size - t), rest));
    }
    return lanes_total(sums);
}

/* Rows whose products with another one are summed side by side: the sums then do not
 * wait for each other. */
#define ROWS 4

/* Scalar products of a row with ROWS others. */
INTO_VECTOR void row_products(
    const double *restrict row,
    const double *const *others,
    ptrdiff_t size,
    double *restrict products)
{
    Lanes sums[ROWS];
    ptrdiff_t t = 0;
    if (size < LANES) {
        for (int r = 0; r < ROWS; r++) {
            products[r] = 0.0;
            for (t = 0; t < size; t++)
                products[r] += row[t] * others[r][t];
        }
        return;
    }
    for (int r = 0; r < ROWS; r++)
        sums[r] = lanes_of(0.0);
    for (; t + LANES <= size; t += LANES) {
        const Lanes values = lanes_at(row + t);
        for (int r = 0; r < ROWS; r++)
            sums[r] = lanes_sum(sums[r], lanes_product(values, lanes_at(others[r] + t)));
    }
    if (t < size) {
        const Lanes rest = lanes_at(row + size - LANES);
        const Lanes values = lanes_product(last_lanes(size - t), rest);
        for (int r = 0; r < ROWS; r++) {
            const Lanes other = lanes_at(others[r] + size - LANES);
            sums[r] = lanes_sum(sums[r], lanes_product(values, other));
        }
    }
    for (int r = 0; r < ROWS; r++)
        products[r] = lanes_total(sums[r]);
}

#endif
