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
    for (ptrdiff_t k = 0; k < n_features; k++) {
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
