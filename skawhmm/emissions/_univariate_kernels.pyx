"""Densities, statistics and shapes of univariate states; see `_univariate`."""

import numpy as np

from libc.math cimport INFINITY

from skawhmm.utils._interruption cimport interrupted

cdef extern from "emissions/_special.h" nogil:
    """
    /* A frame with a log density below this is impossible. */
    #define IMPOSSIBLE -1e250
    /* Steps of Newton's method; less than ten are seen. */
    #define MAX_STEPS 100
    /* A step that changes less than this fraction is the last. */
    #define STEP_ROUNDING 1e-15
    """
    const double IMPOSSIBLE, STEP_ROUNDING
    const int MAX_STEPS
    void log_gap(double y, double* value, double* slope)
    double bessel_ratio(double x)


def fill_linear_densities(
    const double[:, ::1] frames, const double[:, ::1] factors, double[:, ::1] logs
):
    """Fill log densities that are linear in features of the frames.

    Parameters
    ----------
    frames : ndarray of shape (n_timesteps, n_values)
        Features of the frames; all are 0 where nothing was observed.

    factors : ndarray of shape (n_components, n_values)
        Factors of the features in each state.

    logs : ndarray of shape (n_components, n_timesteps)
        Filled with the sums of products; minus infinity for impossible frames.
    """
    cdef Py_ssize_t k, t, f
    cdef double total
    with nogil:
        for k in range(logs.shape[0]):
            for t in range(frames.shape[0]):
                if t % 256 == 0:
                    interrupted()
                total = 0.0
                for f in range(frames.shape[1]):
                    total += factors[k, f] * frames[t, f]
                logs[k, t] = total if total > IMPOSSIBLE else -INFINITY


def weighted_sums(const double[:, ::1] frames, const double[:, ::1] post):
    """Return the sums of features over the frames of each state.

    Parameters
    ----------
    frames : ndarray of shape (n_timesteps, n_values)
        Features of the frames.

    post : ndarray of shape (n_components, n_timesteps)
        State probabilities.

    Returns
    -------
    sums : ndarray of shape (n_components, n_values)
        Sums weighted by the probabilities.
    """
    cdef Py_ssize_t k, t, f
    cdef double[:, ::1] sums = np.zeros((post.shape[0], frames.shape[1]))
    with nogil:
        for k in range(post.shape[0]):
            for t in range(frames.shape[0]):
                if t % 256 == 0:
                    interrupted()
                for f in range(frames.shape[1]):
                    sums[k, f] += post[k, t] * frames[t, f]
    return np.asarray(sums)


def gamma_shapes(gaps):
    r"""Return the shapes y of gamma distributions by maximum likelihood.

    They solve :math:`\log y - \psi(y) = g`, where g is the log of the mean minus the
    mean of the logs. As :math:`1 / 2y < \log y - \psi(y) < 1 / y`, the solution lies
    between 1 / 2g and 1 / g. The left side is convex and decreasing, so Newton's
    method, started at the lower end, increases to the solution without overshooting.

    Parameters
    ----------
    gaps : ndarray
        The gaps g; those that are not positive give infinite shapes.

    Returns
    -------
    shapes : ndarray of the same shape
        The shapes.
    """
    flat = np.ascontiguousarray(gaps, dtype=float).ravel()
    cdef const double[::1] given = flat
    cdef double[::1] shapes = np.empty(flat.size)
    cdef double y, value, slope, step
    cdef Py_ssize_t n
    cdef int steps
    with nogil:
        for n in range(given.shape[0]):
            if given[n] <= 0:
                shapes[n] = INFINITY
                continue
            y = 0.5 / given[n]
            for steps in range(MAX_STEPS):
                log_gap(y, &value, &slope)
                step = (given[n] - value) / slope
                if not step > STEP_ROUNDING * y:
                    break
                y += step
            shapes[n] = min(y, 1 / given[n])
    return np.asarray(shapes).reshape(np.shape(gaps))


def vonmises_concentrations(lengths):
    r"""Return the concentrations of von Mises distributions by maximum likelihood.

    They solve :math:`A(x) = I_1(x) / I_0(x) = R`. By the bounds of Amos (1974),

    .. math::
        \frac{x}{1/2 + \sqrt{x^2 + 9/4}} < A(x) < \frac{x}{1/2 + \sqrt{x^2 + 1/4}} ,

    so that :math:`x > R / (1 - R^2)`. A is concave and increasing: Newton's method,
    started there, increases to the solution without overshooting it or the other bound.

    Parameters
    ----------
    lengths : ndarray
        Mean resultant lengths R, from 0 to 1.

    Returns
    -------
    concentrations : ndarray of the same shape
        The concentrations, infinite for R = 1.
    """
    flat = np.ascontiguousarray(lengths, dtype=float).ravel()
    cdef const double[::1] given = flat
    cdef double[::1] found = np.empty(flat.size)
    cdef double x, ratio, step, short, high
    cdef Py_ssize_t n
    cdef int steps
    with nogil:
        for n in range(given.shape[0]):
            short = (1 - given[n]) * (1 + given[n])
            if given[n] <= 0 or short <= 0:
                found[n] = INFINITY if short <= 0 else 0.0
                continue
            x = given[n] / short
            high = x * (0.5 + (0.25 + 2 * short) ** 0.5)
            for steps in range(MAX_STEPS):
                ratio = bessel_ratio(x)
                step = (given[n] - ratio) / (1 - ratio * ratio - ratio / x)
                if not step > STEP_ROUNDING * x:
                    break
                x = min(x + step, high)
            found[n] = x
    return np.asarray(found).reshape(np.shape(lengths))


def bessel_ratios(concentrations):
    """Return the ratios of the Bessel functions I1 and I0."""
    flat = np.ascontiguousarray(concentrations, dtype=float).ravel()
    cdef const double[::1] given = flat
    cdef double[::1] ratios = np.empty(flat.size)
    cdef Py_ssize_t n
    with nogil:
        for n in range(given.shape[0]):
            ratios[n] = bessel_ratio(given[n])
    return np.asarray(ratios).reshape(np.shape(concentrations))
