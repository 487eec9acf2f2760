#include "_interruption.h"
#include "_vector.h"

/* Bring a matrix of n rows to triangular form, the right-hand side with it. Rows are
 * combined element by element, so the bits are those of a plain loop. Returns -1 if it
 * was interrupted. */
VECTOR
static int reduce_system(double *restrict matrix, double *restrict answer, ptrdiff_t n)
{
    for (ptrdiff_t k = 0; k < n; k++) {
        const double *restrict pivot = matrix + k * n;
        if (interrupted())
            return -1;
        for (ptrdiff_t i = k + 1; i < n; i++) {
            double *restrict row = matrix + i * n;
            if (row[k] != 0) {
                const double factor = row[k] / pivot[k];
#pragma omp simd
                for (ptrdiff_t j = k + 1; j < n; j++)
                    row[j] -= factor * pivot[j];
                answer[i] -= factor * answer[k];
            }
        }
    }
    return 0;
}
