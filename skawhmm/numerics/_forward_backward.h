#include "_interruption.h"
#include "_sums.h"

#include <stdint.h>
#include <string.h>

/* A state whose scaled forward weight falls below this may be lost to underflow ... */
#define LOST_WEIGHT 1e-200
/* ... which does no harm if every state is reached from every other with more than
 * this, */
#define SAFE_TRANSITION 1e-50
/* ... or if the products of forward and backward weights keep this much of the whole. */
#define LEAST_OVERLAP 1e-100
/* Weights that sum to less are scaled up. */
#define LEAST_TOTAL 1e-30
/* Terms of a sum below exp(-SMALL_LOG) of the largest one are less than rounding. */
#define SMALL_LOG 40.0

/* Frames handled at a time: their densities stay in the first cache. */
#define PASS_BLOCK 256

/* Up to this many states, weights stay in registers. */
#define SMALL_CHAIN 4

/* Constants of exponentials: 1.5 * 2**52 and its bits, log2(e), ln(2) in two parts. */
#define ROUNDER 6755399441055744.0
#define ROUNDER_BITS INT64_C(0x4338000000000000)
#define LOG2_E 1.4426950408889634
#define LN2_HIGH 0.6931471803691238
#define LN2_LOW 1.9082149292705877e-10

/* Exponential of a number of at most 0, to 2 ulp; 0 below -700, or for NaN.
 *
 * The usual range reduction and Taylor polynomial, written so that it fills vector
 * registers, which calls of the C library do not. */
INTO_VECTOR double exp_of(double gap)
{
    const double value = gap > -708.0 ? gap : -708.0;
    /* Adding the constant rounds to an integer, which the low bits then hold. */
    const double shifted = value * LOG2_E + ROUNDER;
    const double whole = shifted - ROUNDER;
    const double r = (value - whole * LN2_HIGH) - whole * LN2_LOW;
    int64_t bits;
    double power, total = 1 / 6227020800.0;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (int64_t)((uint64_t)(bits - ROUNDER_BITS + 1023) << 52);
    memcpy(&power, &bits, sizeof power);
    total = total * r + 1 / 479001600.0;
    total = total * r + 1 / 39916800.0;
    total = total * r + 1 / 3628800.0;
    total = total * r + 1 / 362880.0;
    total = total * r + 1 / 40320.0;
    total = total * r + 1 / 5040.0;
    total = total * r + 1 / 720.0;
    total = total * r + 1 / 120.0;
    total = total * r + 1 / 24.0;
    total = total * r + 1 / 6.0;
    total = total * r + 1 / 2.0;
    total = total * r + 1.0;
    total = total * r + 1.0;
    return gap > -700.0 ? total * power : 0.0;
}

VECTOR
static void fill_exps(const double *restrict gaps, ptrdiff_t size, double *restrict out)
{
    for (ptrdiff_t t = 0; t < size; t++)
        out[t] = exp_of(gaps[t]);
}

/* Densities relative to the best state of each frame, and the logs of those. */
VECTOR
static int relative_densities(
    const double *restrict logs,
    ptrdiff_t stride,
    ptrdiff_t n_components,
    ptrdiff_t n_timesteps,
    double *restrict emit,
    double *restrict tops)
{
    for (ptrdiff_t first = 0; first < n_timesteps; first += PASS_BLOCK) {
        if (first > 0 && interrupted())
            return -1;
        const ptrdiff_t rest = n_timesteps - first;
        const ptrdiff_t size = rest < PASS_BLOCK ? rest : PASS_BLOCK;
        double *restrict top = tops + first;
        for (ptrdiff_t t = 0; t < size; t++)
            top[t] = logs[first + t];
        for (ptrdiff_t k = 1; k < n_components; k++) {
            const double *restrict row = logs + k * stride + first;
            for (ptrdiff_t t = 0; t < size; t++)
                top[t] = top[t] > row[t] ? top[t] : row[t];
        }
        for (ptrdiff_t k = 0; k < n_components; k++) {
            const double *restrict row = logs + k * stride + first;
            double *restrict out = emit + k * n_timesteps + first;
            for (ptrdiff_t t = 0; t < size; t++)
                out[t] = exp_of(row[t] - top[t]);
        }
    }
    return 0;
}

/* What the passes read and write: relative densities, forward and backward weights, and
 * the latter times the densities, all of shape (n_components, n_timesteps); factors
 * divided out of backward weights, of shape (n_timesteps,). */
typedef struct {
    const double *emit;
    double *alpha;
    double *beta;
    double *ahead;
    double *shrink;
} Weights;

/* Two numbers in one register: of the forward and of the backward pass. */
#if defined(__GNUC__)
typedef double Pair __attribute__((vector_size(16)));
#define PAIR(forward, backward) ((Pair){forward, backward})
#define FORWARD(pair) ((pair)[0])
#define BACKWARD(pair) ((pair)[1])
INTO_VECTOR Pair pair_sum(Pair a, Pair b) { return a + b; }
INTO_VECTOR Pair pair_product(Pair a, Pair b) { return a * b; }
#else
typedef struct {
    double forward, backward;
} Pair;
#define PAIR(forward, backward) ((Pair){forward, backward})
#define FORWARD(pair) ((pair).forward)
#define BACKWARD(pair) ((pair).backward)
INTO_VECTOR Pair pair_sum(Pair a, Pair b)
{
    return PAIR(a.forward + b.forward, a.backward + b.backward);
}
INTO_VECTOR Pair pair_product(Pair a, Pair b)
{
    return PAIR(a.forward * b.forward, a.backward * b.backward);
}
#endif

/* Sum of up to SMALL_CHAIN pairs, two by two. */
INTO_VECTOR Pair pairs_sum(const Pair *terms, const int size)
{
    Pair total = terms[0];
    if (size > 1)
        total = pair_sum(total, terms[1]);
    if (size == 3)
        total = pair_sum(total, terms[2]);
    if (size == 4)
        total = pair_sum(total, pair_sum(terms[2], terms[3]));
    return total;
}

/* Both passes of a chain whose size the compiler knows; see `scaled_passes`.
 *
 * Backward weights times densities have the recursion of forward weights, with the
 * transposed matrix: a pair of both takes one instruction. */
INTO_VECTOR double known_passes(
    const int size,
    const double *restrict startprob,
    const double *restrict transmat,
    ptrdiff_t n_timesteps,
    const Weights *weights)
{
    const double *restrict emit = weights->emit;
    double *restrict alpha = weights->alpha, *restrict beta = weights->beta;
    double *restrict ahead = weights->ahead, *restrict shrink = weights->shrink;
    const ptrdiff_t last = n_timesteps - 1;
    Pair moves[SMALL_CHAIN][SMALL_CHAIN], state[SMALL_CHAIN];
    double log_scale = 0.0, total = 0.0;
    for (int j = 0; j < size; j++) {
        for (int i = 0; i < size; i++)
            moves[j][i] = PAIR(transmat[i * size + j], transmat[j * size + i]);
        const double first = startprob[j] * emit[j * n_timesteps];
        const double end = emit[j * n_timesteps + last];
        state[j] = PAIR(first, end);
        alpha[j * n_timesteps] = first;
        beta[j * n_timesteps + last] = 1.0;
        ahead[j * n_timesteps + last] = end;
    }
    for (ptrdiff_t t = 0; t < n_timesteps; t++)
        shrink[t] = 1.0;
    for (ptrdiff_t t = 1; t < n_timesteps; t++) {
        const ptrdiff_t s = last - t;
        Pair reach[SMALL_CHAIN];
        for (int j = 0; j < size; j++) {
            Pair terms[SMALL_CHAIN];
            for (int i = 0; i < size; i++)
                terms[i] = pair_product(moves[j][i], state[i]);
            reach[j] = pairs_sum(terms, size);
        }
        for (int j = 0; j < size; j++) {
            const double *row = emit + j * n_timesteps;
            state[j] = pair_product(reach[j], PAIR(row[t], row[s]));
        }
        const double gone = FORWARD(pairs_sum(state, size));
        const double left = BACKWARD(pairs_sum(reach, size));
        if (!(gone >= LEAST_TOTAL && left >= LEAST_TOTAL)) {
            if (!(gone > 0 && left > 0))
                return -INFINITY;
            const double down = gone < LEAST_TOTAL ? gone : 1.0;
            shrink[s] = left < LEAST_TOTAL ? left : 1.0;
            log_scale += log(down);
            for (int j = 0; j < size; j++) {
                state[j] = PAIR(FORWARD(state[j]) / down, BACKWARD(state[j]) / shrink[s]);
                reach[j] = PAIR(0.0, BACKWARD(reach[j]) / shrink[s]);
            }
        }
        for (int j = 0; j < size; j++) {
            alpha[j * n_timesteps + t] = FORWARD(state[j]);
            beta[j * n_timesteps + s] = BACKWARD(reach[j]);
            ahead[j * n_timesteps + s] = BACKWARD(state[j]);
        }
    }
    total = FORWARD(pairs_sum(state, size));
    return log_scale + log(total);
}

/* `scaled_passes` for at most SMALL_CHAIN states. */
VECTOR
static double small_passes(
    const double *restrict startprob,
    const double *restrict transmat,
    ptrdiff_t n_components,
    ptrdiff_t n_timesteps,
    const Weights *weights)
{
    switch (n_components) {
    case 1:
        return known_passes(1, startprob, transmat, n_timesteps, weights);
    case 2:
        return known_passes(2, startprob, transmat, n_timesteps, weights);
    case 3:
        return known_passes(3, startprob, transmat, n_timesteps, weights);
    default:
        return known_passes(4, startprob, transmat, n_timesteps, weights);
    }
}

/* Length of the scratch that `scaled_passes` needs in addition to the weights. */
INTO_VECTOR ptrdiff_t padded_size(ptrdiff_t n_components)
{
    return (n_components + LANES - 1) / LANES * LANES;
}

/* Fill a matrix of transitions and its transpose with rows of padded size, one after the
 * other: what `scaled_passes` multiplies with. */
VECTOR
static void fill_padded(
    const double *restrict transmat, ptrdiff_t n_components, double *restrict padded)
{
    const ptrdiff_t width = padded_size(n_components);
    double *restrict forth = padded, *restrict back = padded + n_components * width;
    for (ptrdiff_t i = 0; i < n_components; i++)
        for (ptrdiff_t j = 0; j < width; j++) {
            const int inside = j < n_components;
            forth[i * width + j] = inside ? transmat[i * n_components + j] : 0.0;
            back[i * width + j] = inside ? transmat[j * n_components + i] : 0.0;
        }
}

/* Products of a vector with a matrix whose rows are padded to `width`. */
INTO_VECTOR void carry(
    const double *restrict vector,
    const double *restrict matrix,
    ptrdiff_t size,
    ptrdiff_t width,
    double *restrict out)
{
    ptrdiff_t first = 0;
    /* Two sums at a time: each waits for its last step. */
    for (; first + 2 * LANES <= width; first += 2 * LANES) {
        const double *restrict row = matrix + first;
        Lanes a = lanes_product(lanes_of(vector[0]), lanes_at(row));
        Lanes b = lanes_product(lanes_of(vector[0]), lanes_at(row + LANES));
        for (ptrdiff_t i = 1; i < size; i++) {
            const Lanes weight = lanes_of(vector[i]);
            row += width;
            a = lanes_sum(a, lanes_product(weight, lanes_at(row)));
            b = lanes_sum(b, lanes_product(weight, lanes_at(row + LANES)));
        }
        set_lanes(out + first, a);
        set_lanes(out + first + LANES, b);
    }
    if (first < width) {
        const double *restrict row = matrix + first;
        Lanes sums = lanes_product(lanes_of(vector[0]), lanes_at(row));
        for (ptrdiff_t i = 1; i < size; i++) {
            row += width;
            sums = lanes_sum(sums, lanes_product(lanes_of(vector[i]), lanes_at(row)));
        }
        set_lanes(out + first, sums);
    }
}

/* Forward and backward pass, scaled up whenever the weights become small.
 *
 * The passes are independent and run in one loop, since each alone would spend most of
 * its time waiting for its previous step. Returns the logarithm of the likelihood,
 * relative as the densities; minus infinity if all weights of a frame fell out of
 * range; -1 if they were interrupted. Scratch holds what `fill_padded` fills, and has room
 * for 4 more vectors of padded size. */
VECTOR
static double scaled_passes(
    const double *restrict startprob,
    ptrdiff_t n_components,
    ptrdiff_t n_timesteps,
    const Weights *weights,
    double *restrict scratch)
{
    const double *restrict emit = weights->emit;
    double *restrict alpha = weights->alpha, *restrict beta = weights->beta;
    double *restrict ahead = weights->ahead, *restrict shrink = weights->shrink;
    const ptrdiff_t last = n_timesteps - 1, width = padded_size(n_components);
    const double *restrict forth = scratch, *restrict back = forth + n_components * width;
    double *restrict forward = scratch + 2 * n_components * width;
    double *restrict backward = forward + width;
    double *restrict reach = backward + width, *restrict left = reach + width;
    double log_scale = 0.0, total = 0.0;
    for (ptrdiff_t i = 0; i < n_components; i++) {
        forward[i] = startprob[i] * emit[i * n_timesteps];
        backward[i] = emit[i * n_timesteps + last];
        alpha[i * n_timesteps] = forward[i];
        beta[i * n_timesteps + last] = 1.0;
        ahead[i * n_timesteps + last] = backward[i];
    }
    shrink[last] = 1.0;
    for (ptrdiff_t t = 1; t < n_timesteps; t++) {
        const ptrdiff_t s = last - t;
        if (t % 64 == 0 && interrupted())
            return -1.0;
        double gone = 0.0, size = 0.0;
        carry(forward, forth, n_components, width, reach);
        carry(backward, back, n_components, width, left);
        for (ptrdiff_t j = 0; j < n_components; j++) {
            forward[j] = reach[j] * emit[j * n_timesteps + t];
            backward[j] = left[j] * emit[j * n_timesteps + s];
            alpha[j * n_timesteps + t] = forward[j];
            beta[j * n_timesteps + s] = left[j];
            ahead[j * n_timesteps + s] = backward[j];
            gone += forward[j];
            size += left[j];
        }
        shrink[s] = 1.0;
        if (!(gone >= LEAST_TOTAL && size >= LEAST_TOTAL)) {
            if (!(gone > 0 && size > 0))
                return -INFINITY;
            const double down = gone < LEAST_TOTAL ? gone : 1.0;
            shrink[s] = size < LEAST_TOTAL ? size : 1.0;
            log_scale += log(down);
            for (ptrdiff_t j = 0; j < n_components; j++) {
                forward[j] /= down;
                backward[j] /= shrink[s];
                alpha[j * n_timesteps + t] = forward[j];
                beta[j * n_timesteps + s] /= shrink[s];
                ahead[j * n_timesteps + s] = backward[j];
            }
        }
    }
    for (ptrdiff_t j = 0; j < n_components; j++)
        total += forward[j];
    return log_scale + log(total);
}

/* State probabilities from the weights of both passes; forward weights are scaled so
 * that products with weights ahead are transition probabilities. Returns the number of
 * frames in which too little is left of the products of the weights, or -1 if it was
 * interrupted. */
VECTOR
static ptrdiff_t fill_posteriors(
    const Weights *weights,
    ptrdiff_t n_components,
    ptrdiff_t n_timesteps,
    double *restrict post,
    ptrdiff_t stride)
{
    double sums[PASS_BLOCK], factors[PASS_BLOCK];
    int64_t n_lost = 0;
    for (ptrdiff_t first = 0; first < n_timesteps; first += PASS_BLOCK) {
        if (first > 0 && interrupted())
            return -1;
        const ptrdiff_t rest = n_timesteps - first;
        const ptrdiff_t size = rest < PASS_BLOCK ? rest : PASS_BLOCK;
        const double *restrict shrink = weights->shrink + first;
        for (ptrdiff_t t = 0; t < size; t++)
            sums[t] = 0.0;
        for (ptrdiff_t k = 0; k < n_components; k++) {
            const double *restrict alpha = weights->alpha + k * n_timesteps + first;
            const double *restrict beta = weights->beta + k * n_timesteps + first;
            double *restrict row = post + k * stride + first;
            for (ptrdiff_t t = 0; t < size; t++) {
                row[t] = alpha[t] * beta[t];
                sums[t] += row[t];
            }
        }
        for (ptrdiff_t t = 0; t < size; t++) {
            n_lost += sums[t] > LEAST_OVERLAP ? 0 : 1;
            factors[t] = 1 / (sums[t] * shrink[t]);
            sums[t] = 1 / sums[t];
        }
        for (ptrdiff_t k = 0; k < n_components; k++) {
            double *restrict alpha = weights->alpha + k * n_timesteps + first;
            double *restrict row = post + k * stride + first;
            for (ptrdiff_t t = 0; t < size; t++) {
                row[t] *= sums[t];
                alpha[t] *= factors[t];
            }
        }
    }
    return n_lost;
}

/* Add expected transitions, given the forward weights that `fill_posteriors` left. */
VECTOR
static int add_moves(
    const Weights *weights,
    const double *restrict transmat,
    ptrdiff_t n_components,
    ptrdiff_t n_timesteps,
    double *restrict moves)
{
    for (ptrdiff_t i = 0; i < n_components; i++) {
        if (n_timesteps > LITTLE_WORK && interrupted())
            return -1;
        for (ptrdiff_t first = 0; first < n_components; first += ROWS) {
            const double *others[ROWS];
            double products[ROWS];
            /* Past the last row, that row is read again and not counted. */
            for (int r = 0; r < ROWS; r++) {
                const ptrdiff_t j = first + r < n_components ? first + r : first;
                others[r] = weights->ahead + j * n_timesteps + 1;
            }
            row_products(weights->alpha + i * n_timesteps, others, n_timesteps - 1, products);
            for (int r = 0; r < ROWS && first + r < n_components; r++) {
                const ptrdiff_t cell = i * n_components + first + r;
                moves[cell] += transmat[cell] * products[r];
            }
        }
    }
    return 0;
}

INTO_VECTOR double known_forward(
    const ptrdiff_t size,
    const double *restrict emit,
    const double *restrict startprob,
    const double *restrict transmat,
    ptrdiff_t n_timesteps,
    double *restrict alpha,
    double *restrict reach,
    int *lost)
{
    double log_likelihood = 0.0;
    for (ptrdiff_t j = 0; j < size; j++)
        reach[j] = startprob[j];
    for (ptrdiff_t t = 0; t < n_timesteps; t++) {
        double total = 0.0;
        if (size > SMALL_CHAIN && t % 64 == 63 && interrupted())
            return -1.0;
        for (ptrdiff_t j = 0; j < size; j++) {
            alpha[j] = reach[j] * emit[j * n_timesteps + t];
            *lost |= alpha[j] < LOST_WEIGHT && reach[j] > 0;
            total += alpha[j];
        }
        if (total < LEAST_TOTAL || t == n_timesteps - 1) {
            if (!(total > 0)) {
                *lost = 1;
                return -INFINITY;
            }
            log_likelihood += log(total);
            for (ptrdiff_t j = 0; j < size; j++)
                alpha[j] /= total;
        }
        for (ptrdiff_t j = 0; j < size; j++) {
            double sum = 0.0;
            for (ptrdiff_t i = 0; i < size; i++)
                sum += alpha[i] * transmat[i * size + j];
            reach[j] = sum;
        }
    }
    return log_likelihood;
}

/* Forward pass, scaled up whenever the weights become small.
 *
 * Returns the logarithm of the likelihood, relative as the densities, and writes whether
 * a state that can be reached fell out of range; returns -1 if it was interrupted.
 * Scratch has room for two vectors. */
static double scaled_forward(
    const double *restrict emit,
    const double *restrict startprob,
    const double *restrict transmat,
    ptrdiff_t n_components,
    ptrdiff_t n_timesteps,
    double *restrict scratch,
    int *lost)
{
    double alpha[SMALL_CHAIN], reach[SMALL_CHAIN];
    *lost = 0;
    switch (n_components) {
    case 2:
        return known_forward(2, emit, startprob, transmat, n_timesteps, alpha, reach, lost);
    case 3:
        return known_forward(3, emit, startprob, transmat, n_timesteps, alpha, reach, lost);
    case 4:
        return known_forward(4, emit, startprob, transmat, n_timesteps, alpha, reach, lost);
    default:
        return known_forward(
            n_components, emit, startprob, transmat, n_timesteps, scratch,
            scratch + n_components, lost);
    }
}
