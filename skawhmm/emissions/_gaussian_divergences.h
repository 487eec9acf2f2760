#include "_vector.h"

/* Mean square, about the mean of Gaussian b, of the coordinate of Gaussian a along a
 * direction. Entries of the direction are `size` apart, as in a column of eigenvectors;
 * `root` holds the rows of a's covariance factor; `part` is scratch of the size of one
 * row. */
VECTOR
static double mean_square(
    const double *restrict mean_a,
    const double *restrict root,
    const double *restrict mean_b,
    const double *restrict direction,
    ptrdiff_t size,
    double *restrict part)
{
    double gap = 0.0, sums[LANES] = {0};
    ptrdiff_t k = 0;
    for (ptrdiff_t i = 0; i < size; i++)
        part[i] = 0.0;
    for (ptrdiff_t f = 0; f < size; f++) {
        const double weight = direction[f * size];
        const double *restrict row = root + f * size;
        gap += weight * (mean_a[f] - mean_b[f]);
        for (ptrdiff_t i = 0; i < size; i++)
            part[i] += weight * row[i];
    }
    for (; k + LANES <= size; k += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += part[k + lane] * part[k + lane];
    for (int lane = 0; k + lane < size; lane++)
        sums[lane] += part[k + lane] * part[k + lane];
    return gap * gap + lane_sum(sums);
}
