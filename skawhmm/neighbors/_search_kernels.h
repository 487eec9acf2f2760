#include "_interruption.h"
#include "_vector.h"

/* Squared Euclidean distance of two vectors of single precision. */
INTO_VECTOR float single_gap(
    const float *restrict x, const float *restrict y, ptrdiff_t size)
{
    float sums[LANES] = {0};
    ptrdiff_t k = 0;
    for (; k + LANES <= size; k += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const float gap = x[k + lane] - y[k + lane];
            sums[lane] += gap * gap;
        }
    for (int lane = 0; k + lane < size; lane++) {
        const float gap = x[k + lane] - y[k + lane];
        sums[lane] += gap * gap;
    }
    return ((sums[0] + sums[4]) + (sums[2] + sums[6]))
        + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

INTO_VECTOR double mean_power(
    const double *restrict weights, const float *restrict squares, ptrdiff_t size, double p)
{
    double total = 0.0;
    for (ptrdiff_t i = 0; i < size; i++)
        if (weights[i] > 0)
            total += weights[i]
                * (p == 1 ? sqrt((double)squares[i]) : pow(squares[i], 0.5 * p));
    return total;
}

/* Costs of the plans that obey one margin only, between one model a and each of several
 * models b that follow each other in memory; states without weight do not count. */
VECTOR
static int fill_relaxed(
    const float *restrict vectors_a,
    const double *restrict weights_a,
    ptrdiff_t size_a,
    const float *restrict vectors_b,
    const double *restrict weights_b,
    ptrdiff_t size_b,
    ptrdiff_t n_models,
    ptrdiff_t size,
    double p,
    float *restrict nearest,
    double *restrict bounds)
{
    float *nearest_a = nearest, *nearest_b = nearest + size_a;
    for (ptrdiff_t n = 0; n < n_models; n++) {
        if ((n % 256 == 0 || size_a * size_b * size > LITTLE_WORK) && interrupted())
            return -1;
        for (ptrdiff_t j = 0; j < size_b; j++)
            nearest_b[j] = INFINITY;
        for (ptrdiff_t i = 0; i < size_a; i++) {
            nearest_a[i] = INFINITY;
            for (ptrdiff_t j = 0; weights_a[i] > 0 && j < size_b; j++)
                if (weights_b[j] > 0) {
                    const float gap =
                        single_gap(vectors_a + i * size, vectors_b + j * size, size);
                    nearest_a[i] = gap < nearest_a[i] ? gap : nearest_a[i];
                    nearest_b[j] = gap < nearest_b[j] ? gap : nearest_b[j];
                }
        }
        const double one = mean_power(weights_a, nearest_a, size_a, p);
        const double two = mean_power(weights_b, nearest_b, size_b, p);
        const double most = one > two ? one : two;
        bounds[n] = p == 1 ? most : pow(most, 1 / p);
        vectors_b += size_b * size;
        weights_b += size_b;
    }
    return 0;
}

/* The same between one model and groups of models: the states of a group are within
 * balls with the given radii. Only the margin of the model counts. The costs to the
 * centres of the balls are no bounds. */
VECTOR
static int fill_group_bounds(
    const float *restrict vectors_a,
    const double *restrict weights_a,
    ptrdiff_t size_a,
    const float *restrict centres,
    const float *restrict radii,
    ptrdiff_t size_b,
    ptrdiff_t n_groups,
    ptrdiff_t size,
    double p,
    double *restrict bounds,
    double *restrict to_centres)
{
    for (ptrdiff_t n = 0; n < n_groups; n++) {
        double total = 0.0, gaps = 0.0;
        if ((n % 256 == 0 || size_a * size_b * size > LITTLE_WORK) && interrupted())
            return -1;
        for (ptrdiff_t i = 0; i < size_a; i++)
            if (weights_a[i] > 0) {
                float nearest = INFINITY, least = INFINITY;
                for (ptrdiff_t j = 0; j < size_b; j++)
                    if (radii[j] >= 0) {
                        const float gap = sqrtf(single_gap(
                            vectors_a + i * size, centres + j * size, size));
                        least = gap < least ? gap : least;
                        nearest = gap - radii[j] < nearest ? gap - radii[j] : nearest;
                    }
                if (nearest > 0)
                    total += weights_a[i] * (p == 1 ? nearest : pow(nearest, p));
                gaps += weights_a[i] * least;
            }
        bounds[n] = p == 1 ? total : pow(total, 1 / p);
        to_centres[n] = gaps;
        centres += size_b * size;
        radii += size_b;
    }
    return 0;
}

/* Squared distances between the states of two models. */
VECTOR
static void fill_gaps(
    const float *restrict vectors_a,
    ptrdiff_t size_a,
    const float *restrict vectors_b,
    ptrdiff_t size_b,
    ptrdiff_t size,
    float *restrict gaps)
{
    for (ptrdiff_t i = 0; i < size_a; i++)
        for (ptrdiff_t j = 0; j < size_b; j++)
            gaps[i * size_b + j] =
                single_gap(vectors_a + i * size, vectors_b + j * size, size);
}

/* The bound of a group for one of its models: each state counts with its own distance
 * to the centre of its ball, in place of the radius. `gaps` are squared distances of the
 * states of a to the centres. */
static double member_bound(
    const double *restrict weights_a,
    ptrdiff_t size_a,
    const float *restrict gaps,
    const double *restrict weights_b,
    const unsigned short *restrict balls,
    const float *restrict reaches,
    ptrdiff_t size_b,
    double p)
{
    double total = 0.0;
    for (ptrdiff_t i = 0; i < size_a; i++)
        if (weights_a[i] > 0) {
            float nearest = INFINITY;
            for (ptrdiff_t j = 0; j < size_b; j++)
                if (weights_b[j] > 0) {
                    const float gap = gaps[i * size_b + balls[j]] - reaches[j];
                    nearest = gap < nearest ? gap : nearest;
                }
            if (nearest > 0)
                total += weights_a[i] * (p == 1 ? nearest : pow(nearest, p));
        }
    return p == 1 ? total : pow(total, 1 / p);
}

/* States of a model beyond these are not part of its vector. */
#define MOST_POINTS 256

/* Relaxed transport between two models in the form that an engine stores: the number of
 * points, which is the same for both, their weights, the points. An engine calls it
 * from threads of its own. */
VECTOR
static float point_set_gap(const float *restrict a, const float *restrict b, size_t length)
{
    const ptrdiff_t n_points = (ptrdiff_t)a[0];
    const ptrdiff_t size = ((ptrdiff_t)length - 1 - n_points) / n_points;
    const float *weights_a = a + 1, *weights_b = b + 1;
    const float *points_a = weights_a + n_points, *points_b = weights_b + n_points;
    float nearest_b[MOST_POINTS], one = 0.0f, two = 0.0f;
    for (ptrdiff_t j = 0; j < n_points; j++)
        nearest_b[j] = INFINITY;
    for (ptrdiff_t i = 0; i < n_points; i++)
        if (weights_a[i] > 0) {
            float nearest = INFINITY;
            for (ptrdiff_t j = 0; j < n_points; j++)
                if (weights_b[j] > 0) {
                    const float gap =
                        single_gap(points_a + i * size, points_b + j * size, size);
                    nearest = gap < nearest ? gap : nearest;
                    nearest_b[j] = gap < nearest_b[j] ? gap : nearest_b[j];
                }
            one += weights_a[i] * sqrtf(nearest);
        }
    for (ptrdiff_t j = 0; j < n_points; j++)
        if (weights_b[j] > 0)
            two += weights_b[j] * sqrtf(nearest_b[j]);
    return one > two ? one : two;
}

/* Squared distance of the means of the state vectors under two rows of chains. */
VECTOR
static double squared_row_gap(
    const double *restrict row,
    const double *restrict other,
    const double *restrict vectors,
    ptrdiff_t n_components,
    ptrdiff_t size,
    double *restrict gap)
{
    double sums[LANES] = {0};
    ptrdiff_t k = 0;
    for (k = 0; k < size; k++)
        gap[k] = 0.0;
    for (ptrdiff_t s = 0; s < n_components; s++) {
        const double share = row[s] - other[s];
        for (k = 0; k < size; k++)
            gap[k] += share * vectors[s * size + k];
    }
    for (k = 0; k + LANES <= size; k += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += gap[k + lane] * gap[k + lane];
    for (int lane = 0; k + lane < size; lane++)
        sums[lane] += gap[k + lane] * gap[k + lane];
    return lane_sum(sums);
}
