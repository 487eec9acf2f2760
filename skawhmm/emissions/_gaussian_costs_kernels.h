#include "_interruption.h"
#include "_vector.h"

INTO_VECTOR double weighted_gap(
    const double *restrict x,
    const double *restrict y,
    const double *restrict factors,
    ptrdiff_t size)
{
    double sums[LANES] = {0};
    ptrdiff_t k = 0;
    for (; k + LANES <= size; k += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const double gap = x[k + lane] - y[k + lane];
            sums[lane] += gap * gap * factors[k + lane];
        }
    for (int lane = 0; k + lane < size; lane++) {
        const double gap = x[k + lane] - y[k + lane];
        sums[lane] += gap * gap * factors[k + lane];
    }
    return lane_sum(sums);
}

/* Add the squared distances between the states of two models to `cost`, each squared
 * difference times a factor; NULL for factors of one, which change no bit. */
VECTOR
static int add_gaps(
    const double *restrict a,
    const double *restrict b,
    const double *restrict factors,
    ptrdiff_t n_components,
    ptrdiff_t size,
    double *restrict cost)
{
    for (ptrdiff_t i = 0; i < n_components; i++) {
        if (n_components * size > LITTLE_WORK && interrupted())
            return -1;
        for (ptrdiff_t j = 0; j < n_components; j++) {
            const double *x = a + i * size, *y = b + j * size;
            cost[i * n_components + j] +=
                factors ? weighted_gap(x, y, factors, size) : squared_gap(x, y, size);
        }
    }
    return 0;
}

/* Singular values of many small matrices, one in each lane.
 *
 * A matrix is brought to bidiagonal form by reflections; the squares q of its diagonal
 * and e of what is above are then transformed by the differential quotient-difference
 * algorithm with shifts (dqds), which finds the smallest value first. Shifts are
 * Laguerre's lower bounds of the smallest value, from the traces of the inverse and of
 * its square, which cost no subtraction: they are never too large, and convergence is
 * cubic. All lanes take the same steps, and those that are done keep what they have, so
 * that a lane's arithmetic does not depend on its neighbours.
 *
 * Matrices are scaled so that their values sum to a half at most: errors are absolute. */
#define MATRICES 16

/* An entry e counts as zero below this fraction of the value next to it, or below the
 * square of what is lost in rounding. */
#define NEGLIGIBLE 1e-20
#define LOST 1e-36

/* Quotients stay above this, which is far below rounding: it is divided by them. */
#define LEAST 1e-40

/* Relative rounding of the traces, and of a step. */
#define TRACE_ROUNDING 1e-13
#define STEP_ROUNDING 1e-10

/* Rounds for one value; less than ten are seen. Lanes that need more are given up. */
#define MAX_ROUNDS 40

/* Replace the head of a vector by the head of its reflection; `norms` is squared. */
INTO_VECTOR void make_reflection(
    double *restrict head, const double *restrict norms, double *restrict factors)
{
#pragma omp simd
    for (int lane = 0; lane < MATRICES; lane++) {
        const double norm = sqrt(norms[lane]);
        const double below = norms[lane] + norm * fabs(head[lane]);
        const double factor = 1.0 / below;
        factors[lane] = below > 0 ? factor : 0.0;
        head[lane] = head[lane] >= 0 ? head[lane] + norm : head[lane] - norm;
    }
}

/* Reflect a vector of `count` entries, `step` numbers apart. */
INTO_VECTOR void reflect(
    const double *restrict reflection,
    double *restrict vector,
    ptrdiff_t count,
    ptrdiff_t step,
    const double *restrict factors)
{
    double shares[MATRICES] = {0};
    for (ptrdiff_t i = 0; i < count; i++)
#pragma omp simd
        for (int lane = 0; lane < MATRICES; lane++)
            shares[lane] += reflection[i * step + lane] * vector[i * step + lane];
#pragma omp simd
    for (int lane = 0; lane < MATRICES; lane++)
        shares[lane] *= factors[lane];
    for (ptrdiff_t i = 0; i < count; i++)
#pragma omp simd
        for (int lane = 0; lane < MATRICES; lane++)
            vector[i * step + lane] -= shares[lane] * reflection[i * step + lane];
}

INTO_VECTOR void squared_norms(
    const double *restrict vector, ptrdiff_t count, ptrdiff_t step, double *restrict norms)
{
    double sums[MATRICES] = {0};
    for (ptrdiff_t i = 0; i < count; i++)
#pragma omp simd
        for (int lane = 0; lane < MATRICES; lane++)
            sums[lane] += vector[i * step + lane] * vector[i * step + lane];
#pragma omp simd
    for (int lane = 0; lane < MATRICES; lane++)
        norms[lane] = sums[lane];
}

/* Fill q and e of each matrix stack[:, :, lane]; the stack is scratch afterwards. */
INTO_VECTOR void bidiagonalise(
    double *restrict stack, ptrdiff_t size, double *restrict q, double *restrict e)
{
    const ptrdiff_t across = MATRICES, down = size * MATRICES;
    double factors[MATRICES];
    for (ptrdiff_t k = 0; k < size; k++) {
        double *corner = stack + k * down + k * across;
        const ptrdiff_t left = size - k;
        squared_norms(corner, left, down, q + k * MATRICES);
        make_reflection(corner, q + k * MATRICES, factors);
        for (ptrdiff_t j = 1; j < left; j++)
            reflect(corner, corner + j * across, left, down, factors);
        if (left == 1)
            break;
        squared_norms(corner + across, left - 1, across, e + k * MATRICES);
        if (left == 2)
            continue;
        make_reflection(corner + across, e + k * MATRICES, factors);
        for (ptrdiff_t i = 1; i < left; i++)
            reflect(
                corner + across, corner + i * down + across, left - 1, across, factors);
    }
}

/* Mark by one the rows up to `last` that are coupled with it, in lanes in which it is
 * coupled with any; count them. Return whether there is such a lane. */
INTO_VECTOR int mark_rows(
    const double *restrict q,
    const double *restrict e,
    const double *restrict shifts,
    ptrdiff_t last,
    double *restrict active,
    double *restrict counts)
{
    double open = 0;
    for (ptrdiff_t k = last - 1; k >= 0; k--) {
        const ptrdiff_t row = k * MATRICES, next = row + MATRICES;
#pragma omp simd
        for (int lane = 0; lane < MATRICES; lane++) {
            const double value = q[next + lane] + shifts[next + lane];
            const double before = k == last - 1 ? 1.0 : active[next + lane];
            active[row + lane] = e[row + lane] > NEGLIGIBLE * value + LOST ? before : 0.0;
            counts[lane] = k == last - 1 ? 2 * active[row + lane]
                                         : counts[lane] + active[row + lane];
        }
    }
    for (int lane = 0; lane < MATRICES; lane++) {
        active[last * MATRICES + lane] = active[(last - 1) * MATRICES + lane];
        open += active[last * MATRICES + lane];
    }
    return open > 0;
}

/* Fill `steps` with lower bounds of the smallest value of the marked rows. */
INTO_VECTOR void fill_steps(
    const double *restrict q,
    const double *restrict e,
    const double *restrict active,
    const double *restrict counts,
    ptrdiff_t last,
    double *restrict steps)
{
    double diagonal[MATRICES] = {0}, above[MATRICES] = {0};
    double traces[MATRICES] = {0}, squares[MATRICES] = {0};
    for (ptrdiff_t k = 0; k <= last; k++) {
        const ptrdiff_t row = k * MATRICES, before = k > 0 ? row - MATRICES : row;
#pragma omp simd
        for (int lane = 0; lane < MATRICES; lane++) {
            const double inverse = active[row + lane] / q[row + lane];
            const double join = k > 0 ? active[before + lane] * e[before + lane] : 0.0;
            const double old = diagonal[lane];
            /* The diagonal of the inverse, and the sum of squares above it. */
            above[lane] = join * inverse * (above[lane] + old * old);
            diagonal[lane] = (1 + join * old) * inverse;
            traces[lane] += diagonal[lane];
            squares[lane] += diagonal[lane] * diagonal[lane] + 2 * above[lane];
        }
    }
#pragma omp simd
    for (int lane = 0; lane < MATRICES; lane++) {
        const double count = counts[lane], total = count * squares[lane];
        const double spread = (count - 1) * (total - traces[lane] * traces[lane]);
        const double root =
            sqrt((spread > 0 ? spread : 0.0) + TRACE_ROUNDING * count * total);
        const double step = count / (traces[lane] + root) * (1 - STEP_ROUNDING);
        /* Except where the traces overflow: the smallest value is lost in rounding. */
        steps[lane] = step > 0 && step < 1 ? step : 0.0;
    }
}

/* Transform the marked rows by one step of dqds. */
INTO_VECTOR void transform(
    double *restrict q,
    double *restrict e,
    double *restrict shifts,
    const double *restrict active,
    const double *restrict steps,
    ptrdiff_t last)
{
    double rest[MATRICES], lowest[MATRICES] = {0};
#pragma omp simd
    for (int lane = 0; lane < MATRICES; lane++)
        rest[lane] = q[lane] - steps[lane];
    for (ptrdiff_t k = 0; k < last; k++) {
        const ptrdiff_t row = k * MATRICES, next = row + MATRICES;
#pragma omp simd
        for (int lane = 0; lane < MATRICES; lane++) {
            const int moves = active[row + lane] != 0;
            const double top = rest[lane] + e[row + lane];
            const double ratio = q[next + lane] / top;
            const double below = rest[lane] * ratio - steps[lane];
            const double kept = e[row + lane] * ratio;
            const double bound = top < LEAST ? LEAST : top;
            const double low = rest[lane] < lowest[lane] ? rest[lane] : lowest[lane];
            lowest[lane] = moves ? low : lowest[lane];
            rest[lane] = moves ? below : q[next + lane] - steps[lane];
            e[row + lane] = moves ? kept : e[row + lane];
            q[row + lane] = moves ? bound : q[row + lane];
            shifts[row + lane] += moves ? steps[lane] : 0.0;
        }
    }
    q += last * MATRICES, shifts += last * MATRICES, active += last * MATRICES;
#pragma omp simd
    for (int lane = 0; lane < MATRICES; lane++) {
        const int moves = active[lane] != 0;
        const double bound = rest[lane] < LEAST ? LEAST : rest[lane];
        const double low = rest[lane] < lowest[lane] ? rest[lane] : lowest[lane];
        /* A step that was too large, which bounds never are, leaves no number. */
        const double value = low < -LOST ? NAN : bound;
        q[lane] = moves ? value : q[lane];
        shifts[lane] += moves ? steps[lane] : 0.0;
    }
}

/* Add the values of the first two rows, or of the only one: the sum of two values is
 * the root of the sum of their squares and of twice their product. */
INTO_VECTOR void add_last_values(
    const double *restrict q,
    const double *restrict e,
    const double *restrict shifts,
    ptrdiff_t size,
    double *restrict nuclear)
{
    for (int lane = 0; lane < MATRICES; lane++) {
        const double first = q[lane] + shifts[lane];
        if (size == 1) {
            nuclear[lane] = sqrt(first);
            continue;
        }
        const double low = q[MATRICES + lane], shift = shifts[MATRICES + lane];
        const double sum = q[lane] + low + e[lane];
        const double product = q[lane] * low + shift * (sum + shift);
        const double joint = sqrt(sum + 2 * shift + 2 * sqrt(product));
        const int joined = e[lane] > NEGLIGIBLE * (low + shift) + LOST;
        nuclear[lane] += joined ? joint : sqrt(first) + sqrt(low + shift);
    }
}

/* Write the product of two factors on common features, over the sum of both traces, into
 * a lane of the stack; return that sum. Without the scale, tiny variances underflow. */
VECTOR
static double fill_lane(
    const double *restrict root_a,
    const double *restrict root_b,
    const double *restrict mask_a,
    const double *restrict mask_b,
    ptrdiff_t size,
    double *restrict product,
    double *restrict lane)
{
    double traces = 0.0;
    for (ptrdiff_t k = 0; k < size * size; k++)
        product[k] = 0.0;
    for (ptrdiff_t f = 0; f < size; f++) {
        const double *restrict a = root_a + f * size, *restrict b = root_b + f * size;
        if (mask_a[f] * mask_b[f] == 0)
            continue;
        for (ptrdiff_t p = 0; p < size; p++) {
            traces += a[p] * a[p] + b[p] * b[p];
            for (ptrdiff_t k = 0; k < size; k++)
                product[p * size + k] += a[p] * b[k];
        }
    }
    const double scale = traces > 0 ? 1 / traces : 0.0;
    for (ptrdiff_t k = 0; k < size * size; k++)
        lane[k * MATRICES] = product[k] * scale;
    return traces;
}

/* Sum of the singular values of each matrix stack[:, :, lane], NaN if it was not found.
 * `scratch` has room for four numbers per row and lane. */
VECTOR
static void nuclear_norms(
    double *restrict stack,
    ptrdiff_t size,
    double *restrict scratch,
    double *restrict nuclear)
{
    double *q = scratch, *e = q + size * MATRICES;
    double *shifts = e + size * MATRICES, *active = shifts + size * MATRICES;
    double counts[MATRICES], steps[MATRICES];
    bidiagonalise(stack, size, q, e);
    for (ptrdiff_t k = 0; k < size * MATRICES; k++) {
        q[k] = q[k] > LEAST ? q[k] : LEAST;
        shifts[k] = 0.0;
    }
    for (int lane = 0; lane < MATRICES; lane++)
        nuclear[lane] = 0.0;
    for (ptrdiff_t last = size - 1; last > 1; last--) {
        int open = 1;
        for (int round = 0; open && round <= MAX_ROUNDS; round++) {
            open = mark_rows(q, e, shifts, last, active, counts);
            if (open && round < MAX_ROUNDS) {
                fill_steps(q, e, active, counts, last, steps);
                transform(q, e, shifts, active, steps, last);
            }
        }
        for (int lane = 0; lane < MATRICES; lane++) {
            const ptrdiff_t place = last * MATRICES + lane;
            const double value = sqrt(q[place] + shifts[place]);
            nuclear[lane] += open && active[place] != 0 ? NAN : value;
        }
    }
    add_last_values(q, e, shifts, size, nuclear);
}
