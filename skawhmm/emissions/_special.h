/* Functions of gamma and von Mises distributions that their M steps need. */
#ifndef SKAWHMM_SPECIAL_H
#define SKAWHMM_SPECIAL_H

#include <math.h>

/* From here on the asymptotic series are exact to rounding. */
#define LARGE_SHAPE 10.0
#define LARGE_CONCENTRATION 200.0

/* Steps of the backward recurrence of Bessel ratios; enough for all concentrations
 * below LARGE_CONCENTRATION. */
#define RECURRENCE_STEPS 200

/* log(y) - digamma(y), accurate for large y as well, and its derivative. */
static inline void log_gap(double y, double *value, double *slope)
{
    double sum = 0.0, squares = 0.0;
    const double first = y;
    while (y < LARGE_SHAPE) {
        sum += 1 / y;
        squares += 1 / (y * y);
        y += 1;
    }
    const double r = 1 / y, q = r * r;
    const double tail =
        r / 2 + q * (1.0 / 12 - q * (1.0 / 120 - q * (1.0 / 252 - q / 240)));
    const double tail_slope =
        -q / 2 - q * r * (1.0 / 6 - q * (1.0 / 30 - q * (1.0 / 42 - q / 30)));
    *value = tail + sum + (first < y ? log(first / y) : 0.0);
    *slope = tail_slope - squares + (first < y ? 1 / first - 1 / y : 0.0);
}

/* digamma(y) for y > 0. */
static inline double digamma(double y)
{
    double value, slope;
    log_gap(y, &value, &slope);
    return log(y) - value;
}

/* Ratio of the Bessel functions I1 and I0. */
static inline double bessel_ratio(double x)
{
    if (x > LARGE_CONCENTRATION) {
        const double r = 1 / x;
        return 1 - r * (0.5 + r * (0.125 + r * (0.125 + r * (25.0 / 128 + r * 13.0 / 32))));
    }
    /* The ratio of orders n + 1 and n, from a bound far up and downwards. */
    const int top = RECURRENCE_STEPS;
    double ratio = x / (top + 0.5 + sqrt(x * x + (top + 1.5) * (top + 1.5)));
    for (int n = top - 1; n >= 0; n--)
        ratio = x / (2.0 * (n + 1) + x * ratio);
    return ratio;
}

#endif
