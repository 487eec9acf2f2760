#include <stdint.h>

#include "_interruption.h"
#include "_lanes.h"
#include "_rows.h"

/* Constants of the splitmix64 generator. */
#define STEP UINT64_C(0x9E3779B97F4A7C15)
#define MIX_A UINT64_C(0xBF58476D1CE4E5B9)
#define MIX_B UINT64_C(0x94D049BB133111EB)

/* Bits of an integer, scrambled. */
static inline uint64_t scrambled(uint64_t value)
{
    value = (value ^ (value >> 30)) * MIX_A;
    value = (value ^ (value >> 27)) * MIX_B;
    return value ^ (value >> 31);
}

VECTOR
static double total_of(const double *restrict row, ptrdiff_t size)
{
    return row_sum(row, size);
}

/* Squared length of every frame; the channels are rows of `points`. */
VECTOR
static void fill_squared_lengths(
    const double *restrict points,
    ptrdiff_t n_features,
    ptrdiff_t n_frames,
    double *restrict lengths)
{
    for (ptrdiff_t t = 0; t < n_frames; t++)
        lengths[t] = 0.0;
    for (ptrdiff_t c = 0; c < n_features; c++) {
        const double *restrict row = points + c * n_frames;
        for (ptrdiff_t t = 0; t < n_frames; t++)
            lengths[t] += row[t] * row[t];
    }
}

/* Frames handled at a time: what several centers read of them stays in a near cache. */
#define FRAME_BLOCK 512

/* Centers handled at a time: a frame is read once for all of them. */
#define CENTERS 4

/* Add four weighted rows to the closenesses to `n_centers` centers, whose weights are
 * `step` numbers apart. */
INTO_VECTOR void add_four_rows(
    const int n_centers,
    const double *restrict rows,
    const double *restrict weights,
    ptrdiff_t step,
    ptrdiff_t stride,
    ptrdiff_t size,
    double *restrict out)
{
#pragma omp simd
    for (ptrdiff_t t = 0; t < size; t++)
        for (int k = 0; k < n_centers; k++) {
            const double *weight = weights + k * step;
            out[k * stride + t] += (weight[0] * rows[t] + weight[1] * rows[stride + t]) +
                                   (weight[2] * rows[2 * stride + t] +
                                    weight[3] * rows[3 * stride + t]);
        }
}

/* Closenesses of some frames to `n_centers` centers; see `fill_closenesses`. */
INTO_VECTOR void fill_some_closenesses(
    const int n_centers,
    const double *restrict points,
    const double *restrict doubled,
    const double *restrict lengths,
    ptrdiff_t n_features,
    ptrdiff_t stride,
    ptrdiff_t size,
    double *restrict out)
{
    const ptrdiff_t whole = n_features - n_features % 4;
    for (int k = 0; k < n_centers; k++)
        for (ptrdiff_t t = 0; t < size; t++)
            out[k * stride + t] = -lengths[k];
    for (ptrdiff_t c = 0; c < whole; c += 4)
        add_four_rows(
            n_centers, points + c * stride, doubled + c, n_features, stride, size, out);
    for (int k = 0; k < n_centers; k++)
        add_weighted_rows(
            points + whole * stride, stride, doubled + k * n_features + whole,
            n_features - whole, size, out + k * stride);
}

/* Squared lengths of the frames less their squared distances to each of the centers.
 *
 * Which of several centers is the nearest depends on nothing else, and it takes a third
 * of the operations. `doubled` is scratch of the size of the centers and of one number
 * for each. Returns -1 if it was interrupted. */
VECTOR
static int fill_closenesses(
    const double *restrict points,
    const double *restrict centers,
    ptrdiff_t n_centers,
    ptrdiff_t n_features,
    ptrdiff_t n_frames,
    double *restrict doubled,
    double *restrict out)
{
    double *restrict lengths = doubled + n_centers * n_features;
    for (ptrdiff_t k = 0; k < n_centers; k++) {
        lengths[k] = 0.0;
        for (ptrdiff_t c = k * n_features; c < (k + 1) * n_features; c++) {
            doubled[c] = 2.0 * centers[c];
            lengths[k] += centers[c] * centers[c];
        }
    }
    for (ptrdiff_t t = 0; t < n_frames; t += FRAME_BLOCK) {
        const ptrdiff_t size = n_frames - t < FRAME_BLOCK ? n_frames - t : FRAME_BLOCK;
        if (n_frames > LITTLE_WORK && interrupted())
            return -1;
        for (ptrdiff_t k = 0; k < n_centers; k += CENTERS) {
            const double *twice = doubled + k * n_features;
            double *some = out + k * n_frames + t;
#define FILL(n_centers)                                                                    \
    fill_some_closenesses(                                                                 \
        n_centers, points + t, twice, lengths + k, n_features, n_frames, size, some)
            switch (n_centers - k) {
            case 1:
                FILL(1);
                break;
            case 2:
                FILL(2);
                break;
            case 3:
                FILL(3);
                break;
            default:
                FILL(4);
            }
#undef FILL
        }
    }
    return 0;
}

/* Turn closenesses to one more center into squared distances to the nearest center;
 * return their sum. */
VECTOR
static double lower_nearest(
    const double *restrict lengths,
    const double *restrict nearest,
    ptrdiff_t n_frames,
    double *restrict trial)
{
    for (ptrdiff_t t = 0; t < n_frames; t++) {
        const double gap = lengths[t] - trial[t];
        const double squared = gap > 0 ? gap : 0.0;
        trial[t] = squared < nearest[t] ? squared : nearest[t];
    }
    return row_sum(trial, n_frames);
}

/* Label every frame by its best score, the first of equal ones; return how many labels
 * changed. `top` and `fresh` are scratch of the size of the labels. */
VECTOR
static ptrdiff_t assign(
    const double *restrict scores,
    ptrdiff_t n_labels,
    ptrdiff_t n_frames,
    double *restrict top,
    ptrdiff_t *restrict fresh,
    ptrdiff_t *restrict labels)
{
    ptrdiff_t n_changed = 0;
    for (ptrdiff_t t = 0; t < n_frames; t++) {
        top[t] = scores[t];
        fresh[t] = 0;
    }
    for (ptrdiff_t k = 1; k < n_labels; k++) {
        const double *restrict row = scores + k * n_frames;
        for (ptrdiff_t t = 0; t < n_frames; t++) {
            const int better = row[t] > top[t];
            top[t] = better ? row[t] : top[t];
            fresh[t] = better ? k : fresh[t];
        }
    }
    for (ptrdiff_t t = 0; t < n_frames; t++) {
        n_changed += fresh[t] != labels[t];
        labels[t] = fresh[t];
    }
    return n_changed;
}

/* Add rows times the frames with each of `n_labels` labels to sums of LANES numbers;
 * those of one channel are `step` numbers apart from those of the next. */
INTO_VECTOR void add_to_lanes(
    const int n_labels,
    const double *restrict points,
    const double *restrict members,
    ptrdiff_t n_features,
    ptrdiff_t stride,
    ptrdiff_t size,
    ptrdiff_t step,
    double *restrict sums)
{
    const ptrdiff_t whole = size - size % LANES;
    for (ptrdiff_t c = 0; c < n_features; c++) {
        const double *restrict row = points + c * stride;
        double *restrict own = sums + c * step;
        Lanes totals[CENTERS];
        for (int k = 0; k < n_labels; k++)
            totals[k] = lanes_at(own + k * LANES);
        for (ptrdiff_t t = 0; t < whole; t += LANES) {
            const Lanes values = lanes_at(row + t);
            for (int k = 0; k < n_labels; k++) {
                const Lanes member = lanes_at(members + k * FRAME_BLOCK + t);
                totals[k] = lanes_sum(totals[k], lanes_product(member, values));
            }
        }
        for (int k = 0; k < n_labels; k++) {
            set_lanes(own + k * LANES, totals[k]);
            for (ptrdiff_t t = whole; t < size; t++)
                own[k * LANES + t - whole] += members[k * FRAME_BLOCK + t] * row[t];
        }
    }
}

/* Numbers of scratch that `fill_means` needs. */
static inline ptrdiff_t means_size(ptrdiff_t n_labels, ptrdiff_t n_features)
{
    return n_labels * FRAME_BLOCK + (n_features + 1) * n_labels * LANES;
}

/* Means of the frames that have each label, and how many those are. If there are none a
 * mean is left as it is. Returns -1 if it was interrupted. */
VECTOR
static int fill_means(
    const double *restrict points,
    const ptrdiff_t *restrict labels,
    ptrdiff_t n_labels,
    ptrdiff_t n_features,
    ptrdiff_t n_frames,
    double *restrict scratch,
    double *restrict counts,
    double *restrict means)
{
    double *restrict members = scratch;
    double *restrict sums = members + n_labels * FRAME_BLOCK;
    const ptrdiff_t step = n_labels * LANES;
    double *restrict sizes = sums + n_features * step;
    for (ptrdiff_t n = 0; n < (n_features + 1) * step; n++)
        sums[n] = 0.0;
    for (ptrdiff_t first = 0; first < n_frames; first += FRAME_BLOCK) {
        const ptrdiff_t rest = n_frames - first;
        const ptrdiff_t size = rest < FRAME_BLOCK ? rest : FRAME_BLOCK;
        if (n_frames > LITTLE_WORK && interrupted())
            return -1;
        for (ptrdiff_t k = 0; k < n_labels; k++) {
            double *restrict member = members + k * FRAME_BLOCK;
            for (ptrdiff_t t = 0; t < size; t++) {
                member[t] = labels[first + t] == k ? 1.0 : 0.0;
                sizes[k * LANES + t % LANES] += member[t];
            }
        }
        for (ptrdiff_t k = 0; k < n_labels; k += CENTERS) {
            const double *some = members + k * FRAME_BLOCK;
            double *own = sums + k * LANES;
#define ADD(n_labels)                                                                      \
    add_to_lanes(n_labels, points + first, some, n_features, n_frames, size, step, own)
            switch (n_labels - k) {
            case 1:
                ADD(1);
                break;
            case 2:
                ADD(2);
                break;
            case 3:
                ADD(3);
                break;
            default:
                ADD(4);
            }
#undef ADD
        }
    }
    for (ptrdiff_t k = 0; k < n_labels; k++) {
        counts[k] = lane_sum(sizes + k * LANES);
        for (ptrdiff_t c = 0; counts[k] > 0 && c < n_features; c++)
            means[k * n_features + c] = lane_sum(sums + c * step + k * LANES) / counts[k];
    }
    return 0;
}
