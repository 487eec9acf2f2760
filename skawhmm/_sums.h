/* Sums over frames that fill vector registers, in an order of their own.
 *
 * LANES numbers that follow each other are one value of type Lanes. Sums are kept in
 * such values, in registers: GCC keeps arrays of partial sums in memory as soon as there
 * are several of them. What is left of a row beyond a multiple of LANES is added as the
 * last LANES numbers, those that were added before times 0.
 */
#ifndef SKAWHMM_SUMS_H
#define SKAWHMM_SUMS_H

#include "_vector.h"

#include <string.h>

#if defined(__GNUC__)
/* Lanes are compiled into their callers: how they would be passed does not matter. */
#pragma GCC diagnostic ignored "-Wpsabi"
typedef double Quad __attribute__((vector_size(32)));
INTO_VECTOR Quad quad_of(double x) { return (Quad){x, x, x, x}; }
INTO_VECTOR Quad quad_sum(Quad a, Quad b) { return a + b; }
INTO_VECTOR Quad quad_gap(Quad a, Quad b) { return a - b; }
INTO_VECTOR Quad quad_product(Quad a, Quad b) { return a * b; }
#define QUAD_AT(quad, k) ((quad)[k])
#else
typedef struct {
    double at[4];
} Quad;
#define QUAD_AT(quad, k) ((quad).at[k])
INTO_VECTOR Quad quad_of(double x)
{
    const Quad result = {{x, x, x, x}};
    return result;
}
#define QUAD_OPERATION(name, sign)                       \
    INTO_VECTOR Quad name(Quad a, Quad b)                \
    {                                                    \
        Quad result;                                     \
        for (int k = 0; k < 4; k++)                      \
            result.at[k] = a.at[k] sign b.at[k];         \
        return result;                                   \
    }
QUAD_OPERATION(quad_sum, +)
QUAD_OPERATION(quad_gap, -)
QUAD_OPERATION(quad_product, *)
#endif

typedef struct {
    Quad low, high;
} Lanes;

INTO_VECTOR Lanes lanes_of(double x)
{
    const Lanes result = {quad_of(x), quad_of(x)};
    return result;
}

INTO_VECTOR Lanes lanes_at(const double *row)
{
    Lanes result;
    memcpy(&result.low, row, sizeof result.low);
    memcpy(&result.high, row + LANES / 2, sizeof result.high);
    return result;
}

INTO_VECTOR void set_lanes(double *row, Lanes lanes)
{
    memcpy(row, &lanes.low, sizeof lanes.low);
    memcpy(row + LANES / 2, &lanes.high, sizeof lanes.high);
}

INTO_VECTOR Lanes lanes_sum(Lanes a, Lanes b)
{
    const Lanes result = {quad_sum(a.low, b.low), quad_sum(a.high, b.high)};
    return result;
}

INTO_VECTOR Lanes lanes_gap(Lanes a, Lanes b)
{
    const Lanes result = {quad_gap(a.low, b.low), quad_gap(a.high, b.high)};
    return result;
}

INTO_VECTOR Lanes lanes_product(Lanes a, Lanes b)
{
    const Lanes result = {quad_product(a.low, b.low), quad_product(a.high, b.high)};
    return result;
}

INTO_VECTOR double lanes_total(Lanes a)
{
    const Quad sums = quad_sum(a.low, a.high);
    return (QUAD_AT(sums, 0) + QUAD_AT(sums, 2)) + (QUAD_AT(sums, 1) + QUAD_AT(sums, 3));
}

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
