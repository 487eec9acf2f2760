#include <stdint.h>

#include "_interruption.h"
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

/* Squared lengths of the frames less their squared distances to each of the centers.
 *
 * Which of several centers is the nearest depends on nothing else, and it takes a third
 * of the operations. `doubled` is scratch of the size of a center. Returns -1 if it was
 * interrupted. */
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
    for (ptrdiff_t k = 0; k < n_centers; k++) {
        const double *restrict center = centers + k * n_features;
        double *restrict row = out + k * n_frames, length = 0.0;
        if (n_frames > LITTLE_WORK && interrupted())
            return -1;
        for (ptrdiff_t c = 0; c < n_features; c++) {
            doubled[c] = 2.0 * center[c];
            length += center[c] * center[c];
        }
        for (ptrdiff_t t = 0; t < n_frames; t++)
            row[t] = -length;
        add_weighted_rows(points, n_frames, doubled, n_features, n_frames, row);
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

/* Mean of the frames that have a label; return how many those are. If there are none the
 * mean is left as it is. `member` is scratch of the size of the labels. */
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
    for (ptrdiff_t c = 0; count > 0 && c < n_features; c++)
        mean[c] = row_product(member, points + c * n_frames, n_frames) / count;
    return count;
}
