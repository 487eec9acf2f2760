#include "_vector.h"

/* Scrambled bits of an integer, as in the splitmix64 generator. */
#include <stdint.h>

#define STEP UINT64_C(0x9E3779B97F4A7C15)
#define MIX_A UINT64_C(0xBF58476D1CE4E5B9)
#define MIX_B UINT64_C(0x94D049BB133111EB)

static inline uint64_t scrambled(uint64_t value)
{
    value = (value ^ (value >> 30)) * MIX_A;
    value = (value ^ (value >> 27)) * MIX_B;
    return value ^ (value >> 31);
}

/* Channels that a loop over frames reads at once. */
#define ROWS 4

INTO_VECTOR double row_sum(const double *restrict row, ptrdiff_t size)
{
    double sums[LANES] = {0};
    ptrdiff_t t = 0;
    for (; t + LANES <= size; t += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += row[t + lane];
    for (int lane = 0; t + lane < size; lane++)
        sums[lane] += row[t + lane];
    return lane_sum(sums);
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

INTO_VECTOR void closeness(
    const double *restrict points,
    const double *restrict center,
    ptrdiff_t n_features,
    ptrdiff_t n_frames,
    double *restrict out)
{
    double length = 0.0;
    ptrdiff_t c = 0;
    for (ptrdiff_t k = 0; k < n_features; k++)
        length += center[k] * center[k];
    for (ptrdiff_t t = 0; t < n_frames; t++)
        out[t] = -length;
    for (; c + ROWS <= n_features; c += ROWS) {
        const double *restrict row_0 = points + c * n_frames;
        const double *restrict row_1 = row_0 + n_frames;
        const double *restrict row_2 = row_1 + n_frames;
        const double *restrict row_3 = row_2 + n_frames;
        const double weight_0 = 2 * center[c], weight_1 = 2 * center[c + 1];
        const double weight_2 = 2 * center[c + 2], weight_3 = 2 * center[c + 3];
        for (ptrdiff_t t = 0; t < n_frames; t++)
            out[t] += (weight_0 * row_0[t] + weight_1 * row_1[t]) +
                      (weight_2 * row_2[t] + weight_3 * row_3[t]);
    }
    for (; c < n_features; c++) {
        const double *restrict row = points + c * n_frames;
        const double weight = 2 * center[c];
        for (ptrdiff_t t = 0; t < n_frames; t++)
            out[t] += weight * row[t];
    }
}

/* Squared lengths of the frames less their squared distances to each of the centers.
 *
 * Which of several centers is the nearest depends on nothing else, and it takes a third
 * of the operations. */
VECTOR
static void fill_closenesses(
    const double *restrict points,
    const double *restrict centers,
    ptrdiff_t n_centers,
    ptrdiff_t n_features,
    ptrdiff_t n_frames,
    double *restrict out)
{
    for (ptrdiff_t k = 0; k < n_centers; k++)
        closeness(points, centers + k * n_features, n_features, n_frames, out + k * n_frames);
}

/* Turn closenesses into squared distances to the nearest center so far, with one more
 * center; return their sum. */
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
 * changed. `top` is scratch. */
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

/* Mean of the frames that have a label; return how many those are. If there are none the
 * mean is left as it is. `member` is scratch. */
VECTOR
static double fill_mean(
    const double *restrict points,
    const ptrdiff_t *restrict labels,
    ptrdiff_t label,
    ptrdiff_t n_features,
    ptrdiff_t n_frames,
    double *restrict member,
    double *restrict mean)
{
    for (ptrdiff_t t = 0; t < n_frames; t++)
        member[t] = labels[t] == label ? 1.0 : 0.0;
    const double count = row_sum(member, n_frames);
    for (ptrdiff_t c = 0; count > 0 && c < n_features; c++) {
        const double *restrict row = points + c * n_frames;
        double sums[LANES] = {0};
        ptrdiff_t t = 0;
        for (; t + LANES <= n_frames; t += LANES)
            for (int lane = 0; lane < LANES; lane++)
                sums[lane] += member[t + lane] * row[t + lane];
        for (int lane = 0; t + lane < n_frames; lane++)
            sums[lane] += member[t + lane] * row[t + lane];
        mean[c] = lane_sum(sums) / count;
    }
    return count;
}
