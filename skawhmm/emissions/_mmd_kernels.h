#include "_interruption.h"
#include "_vector.h"

/* Fill the kernel between the states of two models with diagonal covariances.
 *
 * Means are divided by the bandwidth, and spreads are one half plus the variance over
 * its square, so that the covariance of x - y, with the kernel's own, is their sum. It
 * is at least 1: a product that leaves the range is a kernel value of 0. */
VECTOR
static int fill_diagonal_kernel(
    const double *restrict means_a,
    const double *restrict spreads_a,
    ptrdiff_t n_a,
    const double *restrict means_b,
    const double *restrict spreads_b,
    ptrdiff_t n_b,
    ptrdiff_t size,
    double *restrict kernel)
{
    for (ptrdiff_t i = 0; i < n_a; i++) {
        if (n_b * size > LITTLE_WORK && interrupted())
            return -1;
        for (ptrdiff_t j = 0; j < n_b; j++) {
            const double *x = means_a + i * size, *s = spreads_a + i * size;
            const double *y = means_b + j * size, *t = spreads_b + j * size;
            double sums[LANES] = {0}, volumes[LANES] = {1, 1, 1, 1, 1, 1, 1, 1};
            ptrdiff_t k = 0;
            for (; k + LANES <= size; k += LANES)
                for (int lane = 0; lane < LANES; lane++) {
                    const double gap = x[k + lane] - y[k + lane];
                    const double spread = s[k + lane] + t[k + lane];
                    sums[lane] += gap * gap / spread;
                    volumes[lane] *= spread;
                }
            for (int lane = 0; k + lane < size; lane++) {
                const double gap = x[k + lane] - y[k + lane];
                const double spread = s[k + lane] + t[k + lane];
                sums[lane] += gap * gap / spread;
                volumes[lane] *= spread;
            }
            double volume = 1.0;
            for (int lane = 0; lane < LANES; lane++)
                volume *= volumes[lane];
            kernel[i * n_b + j] = exp(-0.5 * lane_sum(sums)) / sqrt(volume);
        }
    }
    return 0;
}

/* The same for full covariances: `spreads` holds half the identity plus the covariance
 * over the square of the bandwidth. `matrix` and `gaps` are scratch.
 *
 * The sum of two spreads is brought to triangular form, which leaves the factors of
 * its determinant on the diagonal. It is symmetric, with eigenvalues of at least 1:
 * the upper half is enough, and no pivots are needed. */
VECTOR
static int fill_full_kernel(
    const double *restrict means_a,
    const double *restrict spreads_a,
    ptrdiff_t n_a,
    const double *restrict means_b,
    const double *restrict spreads_b,
    ptrdiff_t n_b,
    ptrdiff_t size,
    double *restrict matrix,
    double *restrict gaps,
    double *restrict kernel)
{
    for (ptrdiff_t i = 0; i < n_a; i++)
        for (ptrdiff_t j = 0; j < n_b; j++) {
            const double *s = spreads_a + i * size * size;
            const double *t = spreads_b + j * size * size;
            double total = 0.0, volume = 1.0;
            if (size * size * size > LITTLE_WORK && interrupted())
                return -1;
            for (ptrdiff_t k = 0; k < size * size; k++)
                matrix[k] = s[k] + t[k];
            for (ptrdiff_t k = 0; k < size; k++)
                gaps[k] = means_a[i * size + k] - means_b[j * size + k];
            for (ptrdiff_t k = 0; k < size; k++) {
                const double *restrict pivot = matrix + k * size;
                const double gap = gaps[k];
                for (ptrdiff_t r = k + 1; r < size; r++) {
                    double *restrict row = matrix + r * size;
                    const double factor = pivot[r] / pivot[k];
#pragma omp simd
                    for (ptrdiff_t c = r; c < size; c++)
                        row[c] -= factor * pivot[c];
                    gaps[r] -= factor * gap;
                }
                total += gap * gap / pivot[k];
                volume *= pivot[k];
            }
            kernel[i * n_b + j] = exp(-0.5 * total) / sqrt(volume);
        }
    return 0;
}

/* Half the squared distance of two vectors. */
VECTOR
static double half_squared_gap(
    const double *restrict x, const double *restrict y, ptrdiff_t size)
{
    return 0.5 * squared_gap(x, y, size);
}
