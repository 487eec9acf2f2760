#include "_interruption.h"
#include "_vector.h"

#define CIRCLE 6.283185307179586

/* Sum of the squared differences of x and y + offset. */
INTO_VECTOR double offset_gap(
    const double *restrict x, const double *restrict y, double offset, ptrdiff_t size)
{
    double sums[LANES] = {0};
    ptrdiff_t k = 0;
    for (; k + LANES <= size; k += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const double gap = x[k + lane] - y[k + lane] - offset;
            sums[lane] += gap * gap;
        }
    for (int lane = 0; k + lane < size; lane++) {
        const double gap = x[k + lane] - y[k + lane] - offset;
        sums[lane] += gap * gap;
    }
    return lane_sum(sums);
}

/* Mean squared difference of quantiles, those of b `offset` further on the circle and
 * shifted by `shift` cells. States hold the means of their cells, then their deviations. */
INTO_VECTOR double shifted_gap(
    const double *restrict a,
    const double *restrict b,
    double offset,
    ptrdiff_t shift,
    ptrdiff_t size)
{
    const double turn = shift < 0 ? offset - CIRCLE : offset;
    const ptrdiff_t first = shift < 0 ? shift + size : shift;
    const ptrdiff_t rest = size - first;
    double total = offset_gap(a, b + first, turn, rest);
    total += offset_gap(a + rest, b, turn + CIRCLE, first);
    total += offset_gap(a + size, b + size + first, 0.0, rest);
    total += offset_gap(a + size + rest, b + size, 0.0, first);
    return total / size;
}

/* Squared 2-Wasserstein distance on the circle of two states in one channel.
 *
 * The mean squared difference is convex in the shift (Delon, Salomon and Sobolevskii
 * 2010). Whole shifts are searched by Newton steps between bounds. Between them a parabola
 * is fitted on either side of the best one, whose curvature is that of the points outside:
 * if both states are concentrated, the best one is a kink. */
INTO_VECTOR double circle_gap(
    const double *restrict a, const double *restrict b, double offset, ptrdiff_t size)
{
    ptrdiff_t low = -size + 3, high = size - 3, shift = 0;
    double before, here, after;
    for (;;) {
        before = shifted_gap(a, b, offset, shift - 1, size);
        here = shifted_gap(a, b, offset, shift, size);
        after = shifted_gap(a, b, offset, shift + 1, size);
        if (before >= here && after >= here)
            break;
        if (after < here)
            low = shift + 1;
        else
            high = shift - 1;
        const double curvature = before - 2 * here + after;
        const double step = curvature > 0 ? 0.5 * (before - after) / curvature : 0.0;
        const double next = shift + floor(step + 0.5);
        shift = next < low ? low : next > high ? high : (ptrdiff_t)next;
        if (low >= high) {
            shift = low;
            here = shifted_gap(a, b, offset, shift, size);
            before = shifted_gap(a, b, offset, shift - 1, size);
            after = shifted_gap(a, b, offset, shift + 1, size);
            break;
        }
    }
    const double first = shifted_gap(a, b, offset, shift - 2, size);
    const double last = shifted_gap(a, b, offset, shift + 2, size);
    const double curvature = 0.5 * (first - 2 * before + 2 * here - 2 * after + last);
    const double side = (before < after ? before : after) - here - 0.5 * curvature;
    const double gain = side < 0 && curvature > 0 ? side * side / (2 * curvature) : 0.0;
    /* Rounding can push the distance of equal states below zero. */
    return gain < here ? here - gain : 0.0;
}

/* Add the squared distances between the states of two models to `cost`. A state holds for
 * each channel its location and, for each of `size` cells of equal probability, the mean
 * and the deviation of its quantiles. */
VECTOR
static int add_circle_gaps(
    const double *restrict a,
    const double *restrict b,
    ptrdiff_t n_components,
    ptrdiff_t n_channels,
    ptrdiff_t size,
    double *restrict cost)
{
    const ptrdiff_t width = 1 + 2 * size;
    for (ptrdiff_t i = 0; i < n_components; i++)
        for (ptrdiff_t j = 0; j < n_components; j++) {
            double total = 0.0;
            if (interrupted())
                return -1;
            for (ptrdiff_t c = 0; c < n_channels; c++) {
                const double *x = a + (i * n_channels + c) * width;
                const double *y = b + (j * n_channels + c) * width;
                double offset = y[0] - x[0];
                offset -= CIRCLE * floor(offset / CIRCLE + 0.5);
                total += circle_gap(x + 1, y + 1, offset, size);
            }
            cost[i * n_components + j] += total;
        }
    return 0;
}
