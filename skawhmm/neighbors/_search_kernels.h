#include "_interruption.h"
#include "_vector.h"

/* Models are stored in tiles of LANES: number k of the vector of state j of the models of
 * a tile is at `tile[(j * size + k) * LANES + lane]`, so that one register holds it for
 * all of them. */

/* Squared distances between the states of a model and those of the models of a tile;
 * `gaps[(i * size_b + j) * LANES + lane]`. */
INTO_VECTOR void tile_gaps(
    const float *restrict vectors_a,
    ptrdiff_t size_a,
    const float *restrict tile,
    ptrdiff_t size_b,
    ptrdiff_t size,
    float *restrict gaps)
{
    for (ptrdiff_t j = 0; j < size_b; j++) {
        const float *restrict points = tile + j * size * LANES;
        for (ptrdiff_t i = 0; i < size_a; i++) {
            const float *restrict x = vectors_a + i * size;
            float sums[LANES] = {0};
            for (ptrdiff_t k = 0; k < size; k++)
#pragma omp simd
                for (int lane = 0; lane < LANES; lane++) {
                    const float gap = x[k] - points[k * LANES + lane];
                    sums[lane] += gap * gap;
                }
#pragma omp simd
            for (int lane = 0; lane < LANES; lane++)
                gaps[(i * size_b + j) * LANES + lane] = sums[lane];
        }
    }
}

/* Add weighted distances, given their squares, to the power of p. */
INTO_VECTOR void add_powers(
    double *restrict totals,
    const double *restrict weights,
    const float *restrict squares,
    double p)
{
    if (p == 1)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++)
            totals[lane] += weights[lane] * (double)sqrtf(squares[lane]);
    else
        for (int lane = 0; lane < LANES; lane++)
            totals[lane] += weights[lane] * pow(squares[lane], 0.5 * p);
}

INTO_VECTOR void take_least(float *restrict least, const float *restrict values)
{
#pragma omp simd
    for (int lane = 0; lane < LANES; lane++)
        least[lane] = values[lane] < least[lane] ? values[lane] : least[lane];
}

/* Costs of the plans that obey one margin only, between a model and each of a tile;
 * states without weight do not count. `scratch` holds the squared distances of states,
 * as `tile_gaps` gives them, and room for `size_a * LANES` numbers more. */
VECTOR
static void fill_relaxed(
    const float *restrict vectors_a,
    const double *restrict weights_a,
    ptrdiff_t size_a,
    const float *restrict tile,
    const double *restrict weights_b,
    ptrdiff_t size_b,
    ptrdiff_t n_lanes,
    ptrdiff_t size,
    double p,
    float *restrict scratch,
    double *restrict bounds)
{
    float *restrict gaps = scratch, *restrict nearest = gaps + size_a * size_b * LANES;
    double one[LANES] = {0}, two[LANES] = {0}, weights[LANES];
    float least[LANES], far[LANES];
    tile_gaps(vectors_a, size_a, tile, size_b, size, gaps);
    for (ptrdiff_t k = 0; k < size_a * LANES; k++)
        nearest[k] = INFINITY;
    for (ptrdiff_t j = 0; j < size_b; j++) {
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            weights[lane] = lane < n_lanes ? weights_b[lane * size_b + j] : 0.0;
            far[lane] = weights[lane] > 0 ? 0.0f : INFINITY;
            least[lane] = INFINITY;
        }
        for (ptrdiff_t i = 0; i < size_a; i++)
            if (weights_a[i] > 0) {
                const float *restrict gap = gaps + (i * size_b + j) * LANES;
                float counted[LANES];
#pragma omp simd
                for (int lane = 0; lane < LANES; lane++)
                    counted[lane] = gap[lane] + far[lane];
                take_least(least, gap);
                take_least(nearest + i * LANES, counted);
            }
        add_powers(two, weights, least, p);
    }
    for (ptrdiff_t i = 0; i < size_a; i++)
        if (weights_a[i] > 0) {
#pragma omp simd
            for (int lane = 0; lane < LANES; lane++)
                weights[lane] = weights_a[i];
            add_powers(one, weights, nearest + i * LANES, p);
        }
    for (int lane = 0; lane < LANES; lane++) {
        const double most = one[lane] > two[lane] ? one[lane] : two[lane];
        bounds[lane] = p == 1 ? most : pow(most, 1 / p);
    }
}

/* Costs of moving the states of a model to the nearest of the centres of each group of
 * a tile; centres that are not used do not count. */
VECTOR
static void fill_to_centres(
    const float *restrict vectors_a,
    const double *restrict weights_a,
    ptrdiff_t size_a,
    const float *restrict tile,
    const unsigned char *restrict used,
    ptrdiff_t size_b,
    ptrdiff_t n_lanes,
    ptrdiff_t size,
    double p,
    float *restrict scratch,
    double *restrict costs)
{
    float *restrict gaps = scratch, *restrict far = gaps + size_a * size_b * LANES;
    double totals[LANES] = {0}, weights[LANES];
    float least[LANES], counted[LANES];
    tile_gaps(vectors_a, size_a, tile, size_b, size, gaps);
    for (ptrdiff_t j = 0; j < size_b; j++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++)
            far[j * LANES + lane] =
                lane < n_lanes && used[lane * size_b + j] ? 0.0f : INFINITY;
    for (ptrdiff_t i = 0; i < size_a; i++)
        if (weights_a[i] > 0) {
#pragma omp simd
            for (int lane = 0; lane < LANES; lane++) {
                least[lane] = INFINITY;
                weights[lane] = weights_a[i];
            }
            for (ptrdiff_t j = 0; j < size_b; j++) {
#pragma omp simd
                for (int lane = 0; lane < LANES; lane++)
                    counted[lane] =
                        gaps[(i * size_b + j) * LANES + lane] + far[j * LANES + lane];
                take_least(least, counted);
            }
            add_powers(totals, weights, least, p);
        }
    for (ptrdiff_t lane = 0; lane < n_lanes; lane++)
        costs[lane] = p == 1 ? totals[lane] : pow(totals[lane], 1 / p);
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
