/* Loops that fill vector registers, for the instruction set of the machine at hand.
 *
 * VECTOR before a function compiles it for several instruction sets and lets the loader
 * choose; where the compiler or the platform cannot, it is plain code. A function so
 * marked is never inlined: it should hold a whole loop over pairs, not one vector.
 *
 * Arithmetic stays strict: the order of a sum is the one that is written. A sum that is
 * to fill registers is written as LANES partial sums, added up by `lane_sum`, so that
 * the bits are the same on every machine and for every batch:
 *
 *     double sums[LANES] = {0};
 *     ptrdiff_t k = 0;
 *     for (; k + LANES <= n; k += LANES)
 *         for (int lane = 0; lane < LANES; lane++)
 *             sums[lane] += x[k + lane] * y[k + lane];
 *     for (int lane = 0; k + lane < n; lane++)
 *         sums[lane] += x[k + lane] * y[k + lane];
 *     total = lane_sum(sums);
 */
#ifndef SKAWHMM_VECTOR_H
#define SKAWHMM_VECTOR_H

#include <math.h>
#include <stddef.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ >= 12
#define VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define VECTOR
#endif

/* Helpers of such functions must be compiled into them to be vectors, too. */
#if defined(__GNUC__)
#define INTO_VECTOR static inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#define INTO_VECTOR static __forceinline
#define restrict __restrict
#else
#define INTO_VECTOR static inline
#endif

#define LANES 8

INTO_VECTOR double lane_sum(const double *sums)
{
    double halves[LANES / 2];
    for (int lane = 0; lane < LANES / 2; lane++)
        halves[lane] = sums[lane] + sums[lane + LANES / 2];
    return (halves[0] + halves[2]) + (halves[1] + halves[3]);
}

/* Squared Euclidean distance of two vectors. */
INTO_VECTOR double squared_gap(
    const double *restrict x, const double *restrict y, ptrdiff_t size)
{
    double sums[LANES] = {0};
    ptrdiff_t k = 0;
    for (; k + LANES <= size; k += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const double gap = x[k + lane] - y[k + lane];
            sums[lane] += gap * gap;
        }
    for (int lane = 0; k + lane < size; lane++) {
        const double gap = x[k + lane] - y[k + lane];
        sums[lane] += gap * gap;
    }
    return lane_sum(sums);
}

#endif
