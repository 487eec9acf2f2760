/* Loops that fill vector registers, for the instruction set of the machine at hand.
 *
 * VECTOR before a function compiles it for several instruction sets and lets the loader
 * choose; where the compiler or the platform cannot, it is plain code. A function so
 * marked is never inlined: it should hold a whole loop over pairs, not one vector.
 *
 * Arithmetic stays strict, so that all instruction sets give the same bits, but in sums
 * under `#pragma omp simd reduction`: their last bits depend on the width of a register,
 * never on the batch. Such a pragma says that the order of the sum does not matter.
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

#endif
