#include "_vector.h"

/* Add the squared gaps of four features to the sums of a row; or return their roots. */
INTO_VECTOR void add_four(
    const double *restrict x,
    const double *restrict channel,
    ptrdiff_t n_samples,
    int rooted,
    double *restrict row)
{
    for (ptrdiff_t j = 0; j < n_samples; j++) {
        const double a = x[0] - channel[j], b = x[1] - channel[j + n_samples];
        const double c = x[2] - channel[j + 2 * n_samples];
        const double d = x[3] - channel[j + 3 * n_samples];
        double sum = row[j];
        sum += a * a;
        sum += b * b;
        sum += c * c;
        sum += d * d;
        row[j] = rooted ? sqrt(sum) : sum;
    }
}

INTO_VECTOR void add_one(
    double x,
    const double *restrict channel,
    ptrdiff_t n_samples,
    int rooted,
    double *restrict row)
{
    for (ptrdiff_t j = 0; j < n_samples; j++) {
        const double gap = x - channel[j], sum = row[j] + gap * gap;
        row[j] = rooted ? sqrt(sum) : sum;
    }
}

/* Fill a row with squared distances between a point x and all points y, whose features
 * are rows of `channels`; or with their square roots. Over points, not features: sums
 * keep their order and still fill registers. Four features at a time, so that sums are
 * loaded and stored less often; roots while the last ones are added, as the processor
 * has a part of its own for them. */
VECTOR
static void squared_distances(
    const double *restrict x,
    const double *restrict channels,
    ptrdiff_t n_features,
    ptrdiff_t n_samples,
    int rooted,
    double *restrict row)
{
    const ptrdiff_t plain = rooted ? n_features - 1 : n_features;
    ptrdiff_t k = 0;
    for (ptrdiff_t j = 0; j < n_samples; j++)
        row[j] = 0.0;
    for (; k + 4 <= plain; k += 4)
        add_four(x + k, channels + k * n_samples, n_samples, 0, row);
    if (rooted && k + 4 == n_features) {
        add_four(x + k, channels + k * n_samples, n_samples, 1, row);
        return;
    }
    for (; k < plain; k++)
        add_one(x[k], channels + k * n_samples, n_samples, 0, row);
    if (k < n_features)
        add_one(x[k], channels + k * n_samples, n_samples, 1, row);
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
