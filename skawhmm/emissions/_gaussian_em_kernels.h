#include "_vector.h"

/* A row of sums of products about the mean, plus the sums of the prior. */
VECTOR
static void fill_shrunk(
    const double *restrict seconds,
    const double *restrict prior,
    const double *restrict gaps,
    double gap,
    double relevance,
    ptrdiff_t size,
    double *restrict shrunk)
{
    for (ptrdiff_t e = 0; e < size; e++)
        shrunk[e] = seconds[e] + relevance * (prior[e] + gap * gaps[e]);
}

/* A row of covariances about a mean that moved by a step; it is added to the covariances
 * pooled over states, times the weight of this state. */
VECTOR
static void fill_spread(
    const double *restrict seconds,
    const double *restrict steps,
    double step,
    double total,
    ptrdiff_t size,
    double *restrict covars,
    double *restrict shared)
{
    for (ptrdiff_t e = 0; e < size; e++) {
        covars[e] = seconds[e] / total - step * steps[e];
        shared[e] += total * covars[e];
    }
}
