/* LANES numbers that follow each other, as one value of type Lanes.
 *
 * Partial sums are kept in such values, in registers: GCC keeps arrays of them in memory
 * as soon as there are several.
 */
#ifndef SKAWHMM_LANES_H
#define SKAWHMM_LANES_H

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

#endif
