#include "_vector.h"

#include <stdint.h>
#include <string.h>

/* Constants of logarithms: 1.5 * 2**52 and its bits, bits of 1 and of sqrt(1/2), rounded
 * down, ln(2) in two parts. Numbers below LEAST_NORMAL are scaled up by 2**100. */
#define ROUNDER 6755399441055744.0
#define ROUNDER_BITS UINT64_C(0x4338000000000000)
#define ONE_BITS UINT64_C(0x3ff0000000000000)
#define ROOT_BITS UINT64_C(0x3fe6a09e00000000)
#define FRACTION_BITS UINT64_C(0x000fffffffffffff)
#define LN2_HIGH 0.6931471803691238
#define LN2_LOW 1.9082149292705877e-10
#define LEAST_NORMAL 1e-300
#define TWO_100 1267650600228229401496703205376.0

/* Logarithm of a positive number, to 1 ulp; infinity and NaN are returned.
 *
 * The range reduction and polynomial of FreeBSD's library, written so that it fills
 * vector registers, which calls of the C library do not. */
INTO_VECTOR double log_of(double number)
{
    const int is_small = number < LEAST_NORMAL;
    const double value = is_small ? number * TWO_100 : number;
    uint64_t bits, shifted;
    double power, f;
    memcpy(&bits, &value, sizeof bits);
    bits += ONE_BITS - ROOT_BITS;
    shifted = (bits >> 52) + ROUNDER_BITS;
    memcpy(&power, &shifted, sizeof power);
    power = power - ROUNDER - (is_small ? 1123.0 : 1023.0);
    bits = (bits & FRACTION_BITS) + ROOT_BITS;
    memcpy(&f, &bits, sizeof f);
    f -= 1.0;
    const double s = f / (2.0 + f), z = s * s, w = z * z, half = 0.5 * f * f;
    const double even = w * (0.3999999999940942 + w * (0.22222198432149784
        + w * 0.15313837699209373));
    const double odd = z * (0.6666666666666735 + w * (0.2857142874366239
        + w * (0.1818357216161805 + w * 0.14798198605116586)));
    const double found =
        s * (half + (odd + even)) + power * LN2_LOW - half + f + power * LN2_HIGH;
    return number < INFINITY ? found : number;
}

/* Roots of the fractions of frames in a state: its frames are the sum of `n_joined`
 * numbers that are `stride` apart. */
INTO_VECTOR double root_weight(
    const double *occupancies, ptrdiff_t stride, ptrdiff_t n_joined, double total)
{
    double weight = 0.0;
    for (ptrdiff_t j = 0; j < n_joined; j++)
        weight += occupancies[j * stride];
    return sqrt(weight / total);
}

/* Channels handled at a time. */
#define CHANNEL_BLOCK 64

/* Add up `n_joined` rows of numbers that are `stride` apart, from a first value. */
INTO_VECTOR void fill_sums(
    const double *restrict rows,
    ptrdiff_t stride,
    ptrdiff_t n_joined,
    ptrdiff_t size,
    double first,
    double *restrict sums)
{
    for (ptrdiff_t c = 0; c < size; c++)
        sums[c] = first;
    for (ptrdiff_t j = 0; j < n_joined; j++)
        for (ptrdiff_t c = 0; c < size; c++)
            sums[c] += rows[j * stride + c];
}

INTO_VECTOR ptrdiff_t block_size(ptrdiff_t first, ptrdiff_t end)
{
    return end - first < CHANNEL_BLOCK ? end - first : CHANNEL_BLOCK;
}

/* Shifts of the means of one sequence; `n_joined` parts are added up. */
VECTOR
static void fill_shifts(
    const double *restrict occupancies,
    const double *restrict counts,
    const double *restrict firsts,
    const double *restrict deviations,
    ptrdiff_t n_joined,
    ptrdiff_t n_components,
    ptrdiff_t n_features,
    double total,
    double relevance,
    double *restrict shifts)
{
    const ptrdiff_t size = n_components * n_features;
    double count[CHANNEL_BLOCK], first[CHANNEL_BLOCK];
    for (ptrdiff_t k = 0; k < n_components; k++) {
        const double root = root_weight(occupancies + k, n_components, n_joined, total);
        const ptrdiff_t end = (k + 1) * n_features;
        for (ptrdiff_t cell = end - n_features; cell < end; cell += CHANNEL_BLOCK) {
            const ptrdiff_t n = block_size(cell, end);
            fill_sums(counts + cell, size, n_joined, n, 0.0, count);
            fill_sums(firsts + cell, size, n_joined, n, 0.0, first);
            for (ptrdiff_t c = 0; c < n; c++)
                shifts[cell + c] =
                    root * first[c] / ((count[c] + relevance) * deviations[cell + c]);
        }
    }
}

/* Logarithms of the ratios of the deviations of one sequence, whose parts are added
 * up. */
VECTOR
static void fill_log_scales(
    const double *restrict occupancies,
    const double *restrict counts,
    const double *restrict firsts,
    const double *restrict seconds,
    const double *restrict covars,
    ptrdiff_t n_parts,
    ptrdiff_t n_components,
    ptrdiff_t n_features,
    double total,
    double relevance,
    double *restrict logs)
{
    const ptrdiff_t size = n_components * n_features;
    double count[CHANNEL_BLOCK], first[CHANNEL_BLOCK], second[CHANNEL_BLOCK];
    for (ptrdiff_t k = 0; k < n_components; k++) {
        const double root =
            0.5 * root_weight(occupancies + k, n_components, n_parts, total);
        const ptrdiff_t end = (k + 1) * n_features;
        for (ptrdiff_t cell = end - n_features; cell < end; cell += CHANNEL_BLOCK) {
            const ptrdiff_t n = block_size(cell, end);
            fill_sums(counts + cell, size, n_parts, n, relevance, count);
            fill_sums(firsts + cell, size, n_parts, n, 0.0, first);
            fill_sums(seconds + cell, size, n_parts, n, 0.0, second);
            for (ptrdiff_t c = 0; c < n; c++) {
                const double gap = first[c] / count[c];
                /* The prior's part is exact; the rest is a variance that rounding may
                 * push below 0. */
                const double prior = relevance / count[c];
                const double ratio =
                    (second[c] / count[c] - gap * gap) / covars[cell + c] + prior;
                logs[cell + c] = root * log_of(prior > ratio ? prior : ratio);
            }
        }
    }
}

/* Sum of the absolute entries of a row, or of their squares if they are roots. */
VECTOR
static double total_of(const double *restrict row, ptrdiff_t size, int rooted)
{
    double sums[LANES] = {0};
    const ptrdiff_t whole = size - size % LANES;
    if (rooted) {
        for (ptrdiff_t j = 0; j < whole; j += LANES)
            for (int lane = 0; lane < LANES; lane++)
                sums[lane] += row[j + lane] * row[j + lane];
        for (ptrdiff_t j = whole; j < size; j++)
            sums[j - whole] += row[j] * row[j];
    } else {
        for (ptrdiff_t j = 0; j < whole; j += LANES)
            for (int lane = 0; lane < LANES; lane++)
                sums[lane] += fabs(row[j + lane]);
        for (ptrdiff_t j = whole; j < size; j++)
            sums[j - whole] += fabs(row[j]);
    }
    return lane_sum(sums);
}

/* Fill a row with the scaled entries of another, or with their signed square roots. */
#define FILL_ROW(name, number)                                                             \
    VECTOR                                                                                 \
    static void name(                                                                      \
        const double *restrict row,                                                        \
        ptrdiff_t size,                                                                    \
        int rooted,                                                                        \
        double scale,                                                                      \
        number *restrict out)                                                              \
    {                                                                                      \
        if (rooted)                                                                        \
            for (ptrdiff_t j = 0; j < size; j++)                                           \
                out[j] = (number)(row[j] * scale);                                         \
        else                                                                               \
            for (ptrdiff_t j = 0; j < size; j++)                                           \
                out[j] = (number)(copysign(sqrt(fabs(row[j])), row[j]) * scale);           \
    }

FILL_ROW(fill_single, float)
FILL_ROW(fill_double, double)
#undef FILL_ROW
