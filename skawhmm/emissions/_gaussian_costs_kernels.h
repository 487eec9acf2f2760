#include "_vector.h"

INTO_VECTOR double weighted_gap(
    const double *restrict x,
    const double *restrict y,
    const double *restrict factors,
    ptrdiff_t size)
{
    double sums[LANES] = {0};
    ptrdiff_t k = 0;
    for (; k + LANES <= size; k += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const double gap = x[k + lane] - y[k + lane];
            sums[lane] += gap * gap * factors[k + lane];
        }
    for (int lane = 0; k + lane < size; lane++) {
        const double gap = x[k + lane] - y[k + lane];
        sums[lane] += gap * gap * factors[k + lane];
    }
    return lane_sum(sums);
}

/* Add the squared distances between the states of two models to `cost`, each squared
 * difference times a factor; NULL for factors of one, which change no bit. */
VECTOR
static void add_gaps(
    const double *restrict a,
    const double *restrict b,
    const double *restrict factors,
    ptrdiff_t n_components,
    ptrdiff_t size,
    double *restrict cost)
{
    for (ptrdiff_t i = 0; i < n_components; i++)
        for (ptrdiff_t j = 0; j < n_components; j++) {
            const double *x = a + i * size, *y = b + j * size;
            cost[i * n_components + j] +=
                factors ? weighted_gap(x, y, factors, size) : squared_gap(x, y, size);
        }
}

/* Matrices rotated side by side. Few enough that a stack of them stays in the cache. */
#define ROTATED 16

/* Columns with a smaller cosine count as orthogonal: the sum of their norms is then
 * exact to the square of it. */
#define ORTHOGONAL_COSINE 1e-8

/* Jacobi sweeps converge quadratically; more than ten are never seen. */
#define MAX_SWEEPS 40

INTO_VECTOR void squared_norms(
    const double *restrict stack, ptrdiff_t size, double *restrict norms)
{
    for (ptrdiff_t p = 0; p < size; p++) {
        double sums[ROTATED] = {0};
        for (ptrdiff_t k = 0; k < size; k++)
            for (int lane = 0; lane < ROTATED; lane++) {
                const double value = stack[(p * size + k) * ROTATED + lane];
                sums[lane] += value * value;
            }
        for (int lane = 0; lane < ROTATED; lane++)
            norms[p * ROTATED + lane] = sums[lane];
    }
}

/* Make two vectors of each lane orthogonal; return whether a lane needed it. */
INTO_VECTOR int rotate(
    double *restrict x,
    double *restrict y,
    ptrdiff_t size,
    double *restrict norm_x,
    double *restrict norm_y)
{
    double dot[ROTATED] = {0}, sine[ROTATED], cosine[ROTATED], needed = 0;
    for (ptrdiff_t k = 0; k < size; k++)
        for (int lane = 0; lane < ROTATED; lane++)
            dot[lane] += x[k * ROTATED + lane] * y[k * ROTATED + lane];
    for (int lane = 0; lane < ROTATED; lane++) {
        const double square = dot[lane] * dot[lane];
        const double limit = norm_x[lane] * norm_y[lane];
        needed += square > ORTHOGONAL_COSINE * ORTHOGONAL_COSINE * limit ? 1.0 : 0.0;
    }
    if (needed == 0)
        return 0;
    for (int lane = 0; lane < ROTATED; lane++) {
        const double square = dot[lane] * dot[lane];
        const double limit = norm_x[lane] * norm_y[lane];
        const double half = 0.5 * (norm_y[lane] - norm_x[lane]);
        const double root = sqrt(half * half + square);
        const double below = half >= 0 ? half + root : half - root;
        const double ratio = dot[lane] / below;
        const double tangent =
            square > ORTHOGONAL_COSINE * ORTHOGONAL_COSINE * limit ? ratio : 0.0;
        cosine[lane] = 1.0 / sqrt(1.0 + tangent * tangent);
        sine[lane] = cosine[lane] * tangent;
        norm_x[lane] -= tangent * dot[lane];
        norm_y[lane] += tangent * dot[lane];
    }
    for (ptrdiff_t k = 0; k < size; k++)
        for (int lane = 0; lane < ROTATED; lane++) {
            const double one = x[k * ROTATED + lane], two = y[k * ROTATED + lane];
            x[k * ROTATED + lane] = cosine[lane] * one - sine[lane] * two;
            y[k * ROTATED + lane] = sine[lane] * one + cosine[lane] * two;
        }
    return 1;
}

/* Sum of the singular values of each matrix stack[:, :, lane], by Jacobi rotations.
 *
 * One-sided rotations keep the small values of singular matrices to full accuracy, and
 * with a matrix in each lane they are faster than a LAPACK call for each matrix. A
 * lane's arithmetic does not depend on its neighbours. */
VECTOR
static void nuclear_norms(
    double *restrict stack, ptrdiff_t size, double *restrict norms, double *restrict nuclear)
{
    for (int sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        int rotated = 0;
        squared_norms(stack, size, norms);
        for (ptrdiff_t p = 0; p < size - 1; p++)
            for (ptrdiff_t q = p + 1; q < size; q++)
                rotated |= rotate(
                    stack + p * size * ROTATED,
                    stack + q * size * ROTATED,
                    size,
                    norms + p * ROTATED,
                    norms + q * ROTATED);
        if (!rotated)
            break;
    }
    squared_norms(stack, size, norms);
    for (int lane = 0; lane < ROTATED; lane++)
        nuclear[lane] = 0.0;
    for (ptrdiff_t p = 0; p < size; p++)
        for (int lane = 0; lane < ROTATED; lane++)
            nuclear[lane] += sqrt(norms[p * ROTATED + lane]);
}
