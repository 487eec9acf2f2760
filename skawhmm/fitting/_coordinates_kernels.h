#include "_interruption.h"
#include "_rows.h"

/* Sum of squared gaps of the values that are not NaN.
 *
 * Seeds of starts are made of the bits of standardized frames, so the last bit of this
 * sum chooses between starts: value by value, each product fused with the sum, it is
 * the same on every machine, and in earlier versions. */
INTO_VECTOR double squared_spread(
    const double *restrict row, ptrdiff_t size, double centre)
{
    double total = 0.0;
    for (ptrdiff_t t = 0; t < size; t++) {
        const double gap = isnan(row[t]) ? 0.0 : row[t] - centre;
        total = fma(gap, gap, total);
    }
    return total;
}

/* Mean, variance, least and greatest value and number of the values that are not NaN. */
VECTOR
static void fill_summary(const double *restrict row, ptrdiff_t size, double *restrict summary)
{
    double total = 0.0, low = INFINITY, high = -INFINITY;
    ptrdiff_t count = 0;
    for (ptrdiff_t t = 0; t < size; t++) {
        const int seen = !isnan(row[t]);
        const double least = seen ? row[t] : INFINITY, most = seen ? row[t] : -INFINITY;
        total += seen ? row[t] : 0.0;
        low = least < low ? least : low;
        high = most > high ? most : high;
        count += seen;
    }
    summary[0] = count > 0 ? total / count : 0.0;
    summary[1] = count > 0 ? squared_spread(row, size, summary[0]) / count : 0.0;
    summary[2] = low;
    summary[3] = high;
    summary[4] = (double)count;
}

/* A row centred and scaled; return how many of its values are NaN. */
VECTOR
static ptrdiff_t standardize(
    const double *restrict row,
    ptrdiff_t size,
    double centre,
    double scale,
    double *restrict out)
{
    ptrdiff_t n_unknown = 0;
    for (ptrdiff_t t = 0; t < size; t++) {
        out[t] = (row[t] - centre) / scale;
        n_unknown += isnan(out[t]) ? 1 : 0;
    }
    return n_unknown;
}

/* Replace NaN by 0, and fill the mask of the values that are not. */
VECTOR
static void fill_seen(double *restrict values, ptrdiff_t size, double *restrict seen)
{
    for (ptrdiff_t t = 0; t < size; t++) {
        seen[t] = isnan(values[t]) ? 0.0 : 1.0;
        values[t] = isnan(values[t]) ? 0.0 : values[t];
    }
}

/* Frames of one sequence multiplied by a matrix. */
VECTOR
static int whiten(
    const double *restrict rows,
    ptrdiff_t stride,
    const double *restrict basis,
    ptrdiff_t n_features,
    ptrdiff_t size,
    double *restrict out)
{
    for (ptrdiff_t r = 0; r < n_features; r++) {
        if (n_features * size > LITTLE_WORK && interrupted())
            return -1;
        for (ptrdiff_t t = 0; t < size; t++)
            out[r * stride + t] = 0.0;
        add_weighted_rows(
            rows, stride, basis + r * n_features, n_features, size, out + r * stride);
    }
    return 0;
}

/* Sums over frames of the products of channels, below the diagonal and on it. Scratch has
 * room for the rows, each with LANES more: zeros at their ends spare a loop for the rest. */
VECTOR
static int fill_cross_products(
    const double *restrict rows,
    ptrdiff_t stride,
    ptrdiff_t n_features,
    ptrdiff_t size,
    double *restrict padded,
    double *restrict products)
{
    const ptrdiff_t width = (size + LANES - 1) / LANES * LANES;
    for (ptrdiff_t c = 0; c < n_features; c++) {
        for (ptrdiff_t t = 0; t < size; t++)
            padded[c * width + t] = rows[c * stride + t];
        for (ptrdiff_t t = size; t < width; t++)
            padded[c * width + t] = 0.0;
    }
    for (ptrdiff_t c = 0; c < n_features; c++) {
        if (n_features * size > LITTLE_WORK && interrupted())
            return -1;
        for (ptrdiff_t e = 0; e <= c; e++) {
            const double *restrict x = padded + c * width, *restrict y = padded + e * width;
            double sums[LANES] = {0};
            for (ptrdiff_t t = 0; t < width; t += LANES)
                for (int lane = 0; lane < LANES; lane++)
                    sums[lane] += x[t + lane] * y[t + lane];
            products[c * n_features + e] = lane_sum(sums);
        }
    }
    return 0;
}
