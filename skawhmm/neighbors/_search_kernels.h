#include "_interruption.h"
#include "_vector.h"

/* Distances between pairs of vectors. */
VECTOR
static int fill_distances(
    const double *restrict vectors_a,
    const double *restrict vectors_b,
    const ptrdiff_t *restrict index_a,
    const ptrdiff_t *restrict index_b,
    ptrdiff_t n_pairs,
    ptrdiff_t size,
    double *restrict distances)
{
    for (ptrdiff_t n = 0; n < n_pairs; n++) {
        if (n % 256 == 255 && interrupted())
            return -1;
        distances[n] = sqrt(squared_gap(
            vectors_a + index_a[n] * size, vectors_b + index_b[n] * size, size));
    }
    return 0;
}

/* Squared distances of the states of each model to the nearest state of the other one;
 * states without weight do not count. */
VECTOR
static int fill_nearest(
    const double *restrict vectors_a,
    const double *restrict weights_a,
    ptrdiff_t size_a,
    const double *restrict vectors_b,
    const double *restrict weights_b,
    ptrdiff_t size_b,
    ptrdiff_t size,
    double *restrict nearest_a,
    double *restrict nearest_b)
{
    for (ptrdiff_t j = 0; j < size_b; j++)
        nearest_b[j] = INFINITY;
    for (ptrdiff_t i = 0; i < size_a; i++) {
        double nearest = INFINITY;
        if (size_b * size > LITTLE_WORK && interrupted())
            return -1;
        for (ptrdiff_t j = 0; weights_a[i] > 0 && j < size_b; j++)
            if (weights_b[j] > 0) {
                const double gap =
                    squared_gap(vectors_a + i * size, vectors_b + j * size, size);
                nearest = gap < nearest ? gap : nearest;
                nearest_b[j] = gap < nearest_b[j] ? gap : nearest_b[j];
            }
        nearest_a[i] = nearest;
    }
    return 0;
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
