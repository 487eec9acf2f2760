#include "_interruption.h"
#include "_sums.h"

/* Frames handled at a time: a few channels of a block stay in the first cache. */
#define TIME_BLOCK 512

/* A matrix of more channels takes long. */
#define MANY_FEATURES 32

#define LOG_TWO_PI 1.8378770664093453

/* Variances outside these bounds, or products of variances, are not multiplied on. */
#define LEAST_FACTOR 1e-100
#define LARGEST_FACTOR 1e100

INTO_VECTOR ptrdiff_t block_size(ptrdiff_t first, ptrdiff_t n_frames)
{
    return n_frames - first < TIME_BLOCK ? n_frames - first : TIME_BLOCK;
}

/* Log of the normalising constant, given the dimension and the log determinant. */
INTO_VECTOR double log_constant(double rank, double log_det)
{
    return -0.5 * (rank * LOG_TWO_PI + log_det);
}

/* Expected frames of a state. */
VECTOR
static double sum_of(const double *restrict row, ptrdiff_t size)
{
    return row_sum(row, size);
}

/* Factors of squared gaps from the means, and the log of the normalising constant. */
static double diag_scales(
    const double *restrict covars, ptrdiff_t n_features, double *restrict scales)
{
    double log_det = 0.0, product = 1.0;
    ptrdiff_t n_seen = 0;
    for (ptrdiff_t c = 0; c < n_features; c++) {
        const double covar = covars[c];
        scales[c] = 0.0;
        if (!(covar > 0))
            continue;
        scales[c] = -0.5 / covar;
        n_seen++;
        /* Logarithms take most of the time of a short sequence: few are enough. */
        if (covar > LEAST_FACTOR && covar < LARGEST_FACTOR)
            product *= covar;
        else
            log_det += log(covar);
        if (!(product > LEAST_FACTOR && product < LARGEST_FACTOR)) {
            log_det += log(product);
            product = 1.0;
        }
    }
    log_det += log(product);
    return log_constant((double)n_seen, log_det);
}

/* Add the scaled squared gaps of all channels from the means of states. Frames have
 * rows `stride` apart, results rows of `n_frames`. */
VECTOR
static int add_diag_squares(
    const double *restrict frames,
    ptrdiff_t stride,
    ptrdiff_t n_features,
    ptrdiff_t n_frames,
    const double *restrict means,
    const double *restrict scales,
    ptrdiff_t n_components,
    double *restrict out)
{
    for (ptrdiff_t first = 0; first < n_frames; first += TIME_BLOCK) {
        const ptrdiff_t size = block_size(first, n_frames);
        if (first > 0 && interrupted())
            return -1;
        ptrdiff_t c = 0;
        for (; c + 4 <= n_features; c += 4)
            for (ptrdiff_t k = 0; k < n_components; k++) {
                const double *restrict a = frames + c * stride + first;
                const double *restrict b = a + stride, *restrict d = b + stride;
                const double *restrict e = d + stride;
                const double *mean = means + k * n_features + c;
                const double *scale = scales + k * n_features + c;
                const double mean_a = mean[0], mean_b = mean[1];
                const double mean_d = mean[2], mean_e = mean[3];
                const double scale_a = scale[0], scale_b = scale[1];
                const double scale_d = scale[2], scale_e = scale[3];
                double *restrict total = out + k * n_frames + first;
                for (ptrdiff_t t = 0; t < size; t++) {
                    const double gap_a = a[t] - mean_a, gap_b = b[t] - mean_b;
                    const double gap_d = d[t] - mean_d, gap_e = e[t] - mean_e;
                    total[t] += (scale_a * gap_a * gap_a + scale_b * gap_b * gap_b)
                        + (scale_d * gap_d * gap_d + scale_e * gap_e * gap_e);
                }
            }
        for (; c < n_features; c++)
            for (ptrdiff_t k = 0; k < n_components; k++) {
                const double *restrict row = frames + c * stride + first;
                const double mean = means[k * n_features + c];
                const double scale = scales[k * n_features + c];
                double *restrict total = out + k * n_frames + first;
                for (ptrdiff_t t = 0; t < size; t++) {
                    const double gap = row[t] - mean;
                    total[t] += scale * gap * gap;
                }
            }
    }
    return 0;
}

/* Add the log densities of one channel under one state where it was observed (`seen` is
 * 0 or 1). */
VECTOR
static void add_seen_squares(
    const double *restrict row,
    const double *restrict seen,
    ptrdiff_t n_frames,
    double mean,
    double scale,
    double norm,
    double *restrict total)
{
    for (ptrdiff_t t = 0; t < n_frames; t++) {
        const double gap = row[t] - mean;
        total[t] += seen[t] * (scale * gap * gap + norm);
    }
}

/* Add weights @ block to the buffer, four channels at a time. */
INTO_VECTOR void add_projection(
    const double *restrict block,
    const double *restrict weights,
    ptrdiff_t n_features,
    ptrdiff_t size,
    double *restrict buffer)
{
    ptrdiff_t c = 0;
    for (; c + 4 <= n_features; c += 4) {
        const double *restrict a = block + c * TIME_BLOCK, *restrict b = a + TIME_BLOCK;
        const double *restrict d = b + TIME_BLOCK, *restrict e = d + TIME_BLOCK;
        const double w_a = weights[c], w_b = weights[c + 1];
        const double w_d = weights[c + 2], w_e = weights[c + 3];
        for (ptrdiff_t t = 0; t < size; t++)
            buffer[t] += (w_a * a[t] + w_b * b[t]) + (w_d * d[t] + w_e * e[t]);
    }
    for (; c < n_features; c++) {
        const double *restrict row = block + c * TIME_BLOCK;
        const double weight = weights[c];
        for (ptrdiff_t t = 0; t < size; t++)
            buffer[t] += weight * row[t];
    }
}

/* Log density of every frame under every state with full covariance; see
 * `full_log_density`. Scratch has room for a block of all channels. */
VECTOR
static int fill_full_densities(
    const double *restrict frames,
    ptrdiff_t stride,
    ptrdiff_t n_features,
    ptrdiff_t n_frames,
    const double *restrict means,
    const double *restrict whiteners,
    const double *restrict norms,
    ptrdiff_t n_components,
    double *restrict out,
    double *restrict block)
{
    double buffer[TIME_BLOCK];
    for (ptrdiff_t first = 0; first < n_frames; first += TIME_BLOCK) {
        const ptrdiff_t size = block_size(first, n_frames);
        for (ptrdiff_t c = 0; c < n_features; c++)
            for (ptrdiff_t t = 0; t < size; t++)
                block[c * TIME_BLOCK + t] = frames[c * stride + first + t];
        for (ptrdiff_t k = 0; k < n_components; k++) {
            double *restrict total = out + k * n_frames + first;
            if ((first > 0 || n_features > MANY_FEATURES) && interrupted())
                return -1;
            for (ptrdiff_t t = 0; t < size; t++)
                total[t] = norms[k];
            for (ptrdiff_t r = 0; r < n_features; r++) {
                const double *weights = whiteners + (k * n_features + r) * n_features;
                ptrdiff_t n_used = n_features;
                double shift = 0.0;
                while (n_used > 0 && weights[n_used - 1] == 0)
                    n_used--;
                if (n_used == 0)
                    continue;
                for (ptrdiff_t c = 0; c < n_used; c++)
                    shift -= weights[c] * means[k * n_features + c];
                for (ptrdiff_t t = 0; t < size; t++)
                    buffer[t] = shift;
                add_projection(block, weights, n_used, size, buffer);
                for (ptrdiff_t t = 0; t < size; t++)
                    total[t] += -0.5 * buffer[t] * buffer[t];
            }
        }
    }
    return 0;
}

/* Weighted sums of the gaps of a channel from a mean, and of their squares. */
typedef struct {
    Lanes first, second;
} Moments;

INTO_VECTOR void add_gaps(
    Moments *moments, const double *restrict row, Lanes weights, Lanes mean)
{
    const Lanes gaps = lanes_gap(lanes_at(row), mean);
    const Lanes parts = lanes_product(weights, gaps);
    moments->first = lanes_sum(moments->first, parts);
    moments->second = lanes_sum(moments->second, lanes_product(parts, gaps));
}

/* Add the moments of two channels about their means. Fewer than LANES frames must have
 * others before them. */
INTO_VECTOR void add_two_moments(
    const double *restrict a,
    const double *restrict b,
    const double *restrict weights,
    ptrdiff_t n_frames,
    Lanes mean_a,
    Lanes mean_b,
    double *restrict firsts,
    double *restrict seconds)
{
    const ptrdiff_t n_rest = n_frames % LANES, last = n_frames - LANES;
    Moments of_a = {lanes_of(0.0), lanes_of(0.0)}, of_b = of_a;
    for (ptrdiff_t t = 0; t <= last; t += LANES) {
        const Lanes weight = lanes_at(weights + t);
        add_gaps(&of_a, a + t, weight, mean_a);
        add_gaps(&of_b, b + t, weight, mean_b);
    }
    if (n_rest > 0) {
        const Lanes weight = lanes_product(last_lanes(n_rest), lanes_at(weights + last));
        add_gaps(&of_a, a + last, weight, mean_a);
        add_gaps(&of_b, b + last, weight, mean_b);
    }
    firsts[0] += lanes_total(of_a.first);
    seconds[0] += lanes_total(of_a.second);
    if (a != b) {
        firsts[1] += lanes_total(of_b.first);
        seconds[1] += lanes_total(of_b.second);
    }
}

/* Add weighted counts, sums and sums of squares about the means of the states, of at
 * least LANES frames. */
VECTOR
static int add_all_moments(
    const double *restrict frames,
    ptrdiff_t stride,
    ptrdiff_t n_features,
    ptrdiff_t n_frames,
    const double *restrict post,
    ptrdiff_t post_stride,
    const double *restrict means,
    ptrdiff_t n_components,
    double *restrict counts,
    double *restrict firsts,
    double *restrict seconds)
{
    for (ptrdiff_t k = 0; k < n_components; k++) {
        const double count = row_sum(post + k * post_stride, n_frames);
        for (ptrdiff_t c = 0; c < n_features; c++)
            counts[k * n_features + c] += count;
    }
    for (ptrdiff_t first = 0; first < n_frames; first += TIME_BLOCK) {
        if (first > 0 && interrupted())
            return -1;
        for (ptrdiff_t c = 0; c < n_features; c += 2) {
            /* With an odd number of channels the last is its own partner. */
            const ptrdiff_t e = c + 1 < n_features ? c + 1 : c;
            for (ptrdiff_t k = 0; k < n_components; k++) {
                const ptrdiff_t cell = k * n_features + c;
                add_two_moments(
                    frames + c * stride + first,
                    frames + e * stride + first,
                    post + k * post_stride + first,
                    block_size(first, n_frames),
                    lanes_of(means[cell]),
                    lanes_of(means[k * n_features + e]),
                    firsts + cell,
                    seconds + cell);
            }
        }
    }
    return 0;
}

/* Channels handled at a time if there are few frames. */
#define CHANNEL_BLOCK 64

/* The same for fewer than LANES frames: channels fill the registers. */
VECTOR
static void add_few_moments(
    const double *restrict frames,
    ptrdiff_t stride,
    ptrdiff_t n_features,
    ptrdiff_t n_frames,
    const double *restrict post,
    ptrdiff_t post_stride,
    const double *restrict means,
    ptrdiff_t n_components,
    double *restrict counts,
    double *restrict firsts,
    double *restrict seconds)
{
    double values[LANES][CHANNEL_BLOCK];
    for (ptrdiff_t first = 0; first < n_features; first += CHANNEL_BLOCK) {
        const ptrdiff_t rest = n_features - first;
        const ptrdiff_t size = rest < CHANNEL_BLOCK ? rest : CHANNEL_BLOCK;
        for (ptrdiff_t c = 0; c < size; c++)
            for (ptrdiff_t t = 0; t < n_frames; t++)
                values[t][c] = frames[(first + c) * stride + t];
        for (ptrdiff_t k = 0; k < n_components; k++) {
            const ptrdiff_t cell = k * n_features + first;
            const double *restrict mean = means + cell;
            double *restrict count = counts + cell, *restrict sum = firsts + cell;
            double *restrict square = seconds + cell;
            for (ptrdiff_t t = 0; t < n_frames; t++) {
                const double weight = post[k * post_stride + t];
                for (ptrdiff_t c = 0; c < size; c++) {
                    const double gap = values[t][c] - mean[c];
                    count[c] += weight;
                    sum[c] += weight * gap;
                    square[c] += weight * gap * gap;
                }
            }
        }
    }
}

/* The same of one channel where it was observed, and the weighted count. */
VECTOR
static void add_seen_moments(
    const double *restrict row,
    const double *restrict seen,
    const double *restrict weights,
    ptrdiff_t n_frames,
    double mean,
    double *restrict count,
    double *restrict first,
    double *restrict second)
{
    const ptrdiff_t n_rest = n_frames % LANES, last = n_frames - LANES;
    Moments moments = {lanes_of(0.0), lanes_of(0.0)};
    Lanes counts = lanes_of(0.0), means = lanes_of(mean);
    if (n_frames < LANES) {
        for (ptrdiff_t t = 0; t < n_frames; t++) {
            const double gap = row[t] - mean;
            const double weight = weights[t] * seen[t];
            *count += weight;
            *first += weight * gap;
            *second += weight * gap * gap;
        }
        return;
    }
    for (ptrdiff_t t = 0; t <= last; t += LANES) {
        const Lanes weight = lanes_product(lanes_at(weights + t), lanes_at(seen + t));
        counts = lanes_sum(counts, weight);
        add_gaps(&moments, row + t, weight, means);
    }
    if (n_rest > 0) {
        const Lanes rest = lanes_product(last_lanes(n_rest), lanes_at(weights + last));
        const Lanes weight = lanes_product(rest, lanes_at(seen + last));
        counts = lanes_sum(counts, weight);
        add_gaps(&moments, row + last, weight, means);
    }
    *count += lanes_total(counts);
    *first += lanes_total(moments.first);
    *second += lanes_total(moments.second);
}

/* Add counts, sums and sums of products about the means, the latter below the diagonal
 * only. Scratch has room for a block of all channels. */
VECTOR
static int add_product_moments(
    const double *restrict frames,
    ptrdiff_t stride,
    ptrdiff_t n_features,
    ptrdiff_t n_frames,
    const double *restrict post,
    ptrdiff_t post_stride,
    const double *restrict means,
    ptrdiff_t n_components,
    double *restrict counts,
    double *restrict firsts,
    double *restrict seconds,
    double *restrict gaps)
{
    double weighted[TIME_BLOCK];
    for (ptrdiff_t first = 0; first < n_frames; first += TIME_BLOCK) {
        const ptrdiff_t size = block_size(first, n_frames);
        for (ptrdiff_t k = 0; k < n_components; k++) {
            const double *restrict weights = post + k * post_stride + first;
            const double count = row_sum(weights, size);
            if ((first > 0 || n_features > MANY_FEATURES) && interrupted())
                return -1;
            for (ptrdiff_t c = 0; c < n_features; c++) {
                const ptrdiff_t cell = k * n_features + c;
                const double *restrict row = frames + c * stride + first;
                const double mean = means[cell];
                double *restrict gap = gaps + c * TIME_BLOCK;
                for (ptrdiff_t t = 0; t < size; t++) {
                    gap[t] = row[t] - mean;
                    weighted[t] = weights[t] * gap[t];
                }
                counts[cell] += count;
                firsts[cell] += row_sum(weighted, size);
                for (ptrdiff_t e = 0; e <= c; e += ROWS) {
                    const double *others[ROWS];
                    double products[ROWS];
                    /* Past the last row, that row is read again and not counted. */
                    for (int r = 0; r < ROWS; r++)
                        others[r] = gaps + (e + r < c ? e + r : c) * TIME_BLOCK;
                    row_products(weighted, others, size, products);
                    for (int r = 0; r < ROWS && e + r <= c; r++)
                        seconds[cell * n_features + e + r] += products[r];
                }
            }
        }
    }
    return 0;
}

/* Fill the upper triangle of the transposed Cholesky factor of covar - shift * I;
 * returns whether there is one, or -1 if it was interrupted. A row is subtracted from all
 * later rows at once: scalar products would wait for numbers just stored. */
VECTOR
static int fill_factor(
    const double *restrict covar, double shift, ptrdiff_t size, double *restrict upper)
{
    for (ptrdiff_t i = 0; i < size; i++) {
        for (ptrdiff_t c = i; c < size; c++)
            upper[i * size + c] = covar[c * size + i];
        upper[i * size + i] -= shift;
    }
    for (ptrdiff_t j = 0; j < size; j++) {
        double *restrict row = upper + j * size;
        if (j > 0 && size > MANY_FEATURES && interrupted())
            return -1;
        if (!(row[j] > 0))
            return 0;
        const double root = sqrt(row[j]);
        row[j] = root;
        for (ptrdiff_t c = j + 1; c < size; c++)
            row[c] /= root;
        for (ptrdiff_t i = j + 1; i < size; i++) {
            double *restrict other = upper + i * size;
            const double factor = row[i];
            for (ptrdiff_t c = i; c < size; c++)
                other[c] -= factor * row[c];
        }
    }
    return 1;
}

/* Fill the inverse of a Cholesky factor, given its transpose. */
VECTOR
static int fill_inverse(
    const double *restrict upper, ptrdiff_t size, double *restrict inverse)
{
    for (ptrdiff_t i = 0; i < size; i++) {
        double *restrict row = inverse + i * size;
        if (i > 0 && size > MANY_FEATURES && interrupted())
            return -1;
        const double root = upper[i * size + i];
        for (ptrdiff_t j = 0; j < size; j++)
            row[j] = 0.0;
        for (ptrdiff_t c = 0; c < i; c++) {
            const double *restrict other = inverse + c * size;
            const double factor = upper[c * size + i];
            for (ptrdiff_t j = 0; j <= c; j++)
                row[j] -= factor * other[j];
        }
        for (ptrdiff_t j = 0; j < i; j++)
            row[j] /= root;
        row[i] = 1 / root;
    }
    return 0;
}
