#include "_vector.h"

/* Fill a row with squared distances between a point x and all points y, whose features
 * are rows of `channels`; then with their square roots if asked for. Over points, not
 * features: sums keep their order and still fill registers. */
VECTOR
static void squared_distances(
    const double *restrict x,
    const double *restrict channels,
    const double *restrict mask,
    ptrdiff_t n_features,
    ptrdiff_t n_samples,
    int rooted,
    double *restrict row)
{
    for (ptrdiff_t j = 0; j < n_samples; j++)
        row[j] = 0.0;
    ptrdiff_t k = 0;
    /* Four features at a time, so that sums are loaded and stored less often. */
    for (; k + 4 <= n_features; k += 4) {
        const double *restrict channel = channels + k * n_samples;
        const double a = x[k], b = x[k + 1], c = x[k + 2], d = x[k + 3];
        const double in_a = mask[k], in_b = mask[k + 1];
        const double in_c = mask[k + 2], in_d = mask[k + 3];
        for (ptrdiff_t j = 0; j < n_samples; j++) {
            const double gap_a = a - channel[j], gap_b = b - channel[j + n_samples];
            const double gap_c = c - channel[j + 2 * n_samples];
            const double gap_d = d - channel[j + 3 * n_samples];
            double sum = row[j];
            sum += gap_a * gap_a * in_a;
            sum += gap_b * gap_b * in_b;
            sum += gap_c * gap_c * in_c;
            sum += gap_d * gap_d * in_d;
            row[j] = sum;
        }
    }
    for (; k < n_features; k++) {
        const double value = x[k], factor = mask[k];
        const double *restrict channel = channels + k * n_samples;
        for (ptrdiff_t j = 0; j < n_samples; j++) {
            const double gap = value - channel[j];
            row[j] += gap * gap * factor;
        }
    }
    if (rooted)
        for (ptrdiff_t j = 0; j < n_samples; j++)
            row[j] = sqrt(row[j]);
}

/* One step of matrix scaling: a factor per row that makes its sum 1 / n_samples, given
 * the factors of the columns, and the sums of the columns that result. */
VECTOR
static void scale_rows(
    const double *restrict kernel,
    const double *restrict factors,
    ptrdiff_t n_samples,
    double *restrict row_factors,
    double *restrict sums)
{
    for (ptrdiff_t j = 0; j < n_samples; j++)
        sums[j] = 0.0;
    for (ptrdiff_t i = 0; i < n_samples; i++) {
        const double *restrict row = kernel + i * n_samples;
        double parts[LANES] = {0};
        ptrdiff_t j = 0;
        for (; j + LANES <= n_samples; j += LANES)
            for (int lane = 0; lane < LANES; lane++)
                parts[lane] += row[j + lane] * factors[j + lane];
        for (int lane = 0; j + lane < n_samples; lane++)
            parts[lane] += row[j + lane] * factors[j + lane];
        const double factor = 1.0 / (n_samples * lane_sum(parts));
        row_factors[i] = factor;
        for (j = 0; j < n_samples; j++)
            sums[j] += factor * row[j];
    }
}
