#include "_vector.h"

/* Sum of the absolute entries of a row, or of their squares if they are roots. */
VECTOR
static double total_of(const double *restrict row, ptrdiff_t size, int rooted)
{
    double sums[LANES] = {0};
    const ptrdiff_t whole = size - size % LANES;
    if (rooted) {
        for (ptrdiff_t j = 0; j < whole; j += LANES)
            for (int lane = 0; lane < LANES; lane++)
                sums[lane] += row[j + lane] * row[j + lane];
        for (ptrdiff_t j = whole; j < size; j++)
            sums[j - whole] += row[j] * row[j];
    } else {
        for (ptrdiff_t j = 0; j < whole; j += LANES)
            for (int lane = 0; lane < LANES; lane++)
                sums[lane] += fabs(row[j + lane]);
        for (ptrdiff_t j = whole; j < size; j++)
            sums[j - whole] += fabs(row[j]);
    }
    return lane_sum(sums);
}

/* Fill a row with the scaled entries of another, or with their signed square roots. */
#define FILL_ROW(name, number)                                                             \
    VECTOR                                                                                 \
    static void name(                                                                      \
        const double *restrict row,                                                        \
        ptrdiff_t size,                                                                    \
        int rooted,                                                                        \
        double scale,                                                                      \
        number *restrict out)                                                              \
    {                                                                                      \
        if (rooted)                                                                        \
            for (ptrdiff_t j = 0; j < size; j++)                                           \
                out[j] = (number)(row[j] * scale);                                         \
        else                                                                               \
            for (ptrdiff_t j = 0; j < size; j++)                                           \
                out[j] = (number)(copysign(sqrt(fabs(row[j])), row[j]) * scale);           \
    }

FILL_ROW(fill_single, float)
FILL_ROW(fill_double, double)
#undef FILL_ROW
