#include "_interruption.h"
#include "_vector.h"

#define HALF_CIRCLE 3.141592653589793
#define PLACE 6

/* The first of four nodes around a place in a grid on the integers. */
INTO_VECTOR ptrdiff_t first_node(double place, ptrdiff_t size)
{
    const ptrdiff_t first = (ptrdiff_t)place - 1;
    return first < 0 ? 0 : first > size - 4 ? size - 4 : first;
}

/* Fill the weights of the four nodes; return the first of them. */
INTO_VECTOR ptrdiff_t fill_cubic_weights(
    double place, ptrdiff_t size, double *restrict weights)
{
    const ptrdiff_t first = first_node(place, size);
    const double t = place - first;
    weights[0] = (1 - t) * (2 - t) * (3 - t) / 6;
    weights[1] = t * (2 - t) * (3 - t) / 2;
    weights[2] = t * (t - 1) * (3 - t) / 2;
    weights[3] = t * (t - 1) * (t - 2) / 6;
    return first;
}

/* What the angle between two states adds to their squared distance. A state holds its
 * location, its width and the weights of the width in the grid. */
INTO_VECTOR double turn_cost(
    const double *restrict a,
    const double *restrict b,
    const double *restrict grid,
    ptrdiff_t size)
{
    /* In one order, so that the sum is symmetric to the last bit. */
    const double *narrow = a[1] <= b[1] ? a : b, *wide = a[1] <= b[1] ? b : a;
    double gap = fabs(b[0] - a[0]);
    gap = gap > HALF_CIRCLE ? fabs(gap - 2 * HALF_CIRCLE) : gap;
    const double rest = 1 - gap / HALF_CIRCLE;
    const double place = (1 - sqrt(rest > 0 ? rest : 0)) * (size - 1);
    double weights[4], sums[4] = {0};
    const double *cell = grid + fill_cubic_weights(place, size, weights);
    cell += size * first_node(wide[1] * (size - 1), size);
    cell += size * size * first_node(narrow[1] * (size - 1), size);
    for (int i = 0; i < 4; i++, cell += size * size)
        for (int j = 0; j < 4; j++) {
            const double weight = narrow[2 + i] * wide[2 + j];
            for (int k = 0; k < 4; k++)
                sums[k] += weight * cell[j * size + k];
        }
    for (int k = 0; k < 4; k++)
        sums[k] *= weights[k];
    return gap * gap * ((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/* Add the costs of turns between the states of two models, with angles in [-pi, pi). */
VECTOR
static int add_turn_costs(
    const double *restrict a,
    const double *restrict b,
    const double *restrict grid,
    ptrdiff_t n_components,
    ptrdiff_t n_channels,
    ptrdiff_t size,
    double *restrict cost)
{
    for (ptrdiff_t i = 0; i < n_components; i++) {
        if (interrupted())
            return -1;
        for (ptrdiff_t j = 0; j < n_components; j++)
            for (ptrdiff_t c = 0; c < n_channels; c++)
                cost[i * n_components + j] += turn_cost(
                    a + (i * n_channels + c) * PLACE, b + (j * n_channels + c) * PLACE,
                    grid, size);
    }
    return 0;
}
