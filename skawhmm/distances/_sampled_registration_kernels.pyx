"""Couplings of samples for many pairs in one loop; see `_sampled_registration`."""

import numpy as np

from libc.math cimport INFINITY, M_PI, exp, fabs, log, pow

from skawhmm.emissions._gaussian_densities cimport Frames
from skawhmm.emissions._gaussian_scores_kernels cimport (
    Room,
    Stack,
    fill_chain_densities,
    room_of,
    stack_of,
)
from skawhmm.numerics._assignment cimport Matching, assign, matching_of
from skawhmm.utils._interruption cimport interrupted

from skawhmm.emissions._gaussian_scores_kernels import make_room
from skawhmm.numerics._assignment import aligned, make_matching

cdef extern from "distances/_sampled_registration_kernels.h" nogil:
    """
    /* Margins of a projected plan are exact to this; scaling converges linearly, and
       what is left after the last round is spread over the plan. */
    #define MARGIN_ROUNDING 1e-15
    #define MAX_SCALINGS 1000

    /* A smaller sum has lost digits, and a factor that makes it a probability may
       overflow: it counts as nothing. */
    #define LEAST_SUM 1e-290

    /* An entropic coupling is done if its margins are off by less than this, which is
       looked at every few steps, as POT does. */
    #define COUPLED 1e-9
    #define CHECKED_STEPS 10

    /* Factors beyond this are moved to logarithms. */
    #define LARGEST_FACTOR 1e100
    """
    const double COUPLED, LARGEST_FACTOR
    const int CHECKED_STEPS
    const double MARGIN_ROUNDING, LEAST_SUM
    const int MAX_SCALINGS
    void scale_rows(
        const double* kernel,
        const double* factors,
        Py_ssize_t n_samples,
        double* row_factors,
        double* sums,
    )
    void squared_distances(
        const double* x,
        const double* channels,
        Py_ssize_t n_features,
        Py_ssize_t n_samples,
        int rooted,
        double* row,
    )


cdef struct Metric:
    # Angles and codes of the samples of all models, the factors of squared arcs, and
    # tables of squared distances between codes, all of one size.
    const double* angles
    const double* factors
    const Py_ssize_t* codes
    const double* tables
    Py_ssize_t n_angles, n_codes, n_symbols, n_samples


cdef Metric metric_of(parts):
    """Return what is not Euclidean in the distances of frames as pointers."""
    cdef const double[:, :, ::1] angles = parts[0]
    cdef const double[::1] factors = parts[1]
    cdef const Py_ssize_t[:, :, ::1] codes = parts[2]
    cdef const double[:, :, ::1] tables = parts[3]
    cdef Metric metric
    metric.n_samples = angles.shape[1]
    metric.n_angles, metric.n_codes = angles.shape[2], codes.shape[2]
    metric.n_symbols = tables.shape[2]
    metric.angles = metric.factors = metric.tables = NULL
    metric.codes = NULL
    if metric.n_angles > 0:
        metric.angles, metric.factors = &angles[0, 0, 0], &factors[0]
    if metric.n_codes > 0:
        metric.codes, metric.tables = &codes[0, 0, 0], &tables[0, 0, 0]
    return metric


cdef int add_to_row(
    const Metric* metric,
    Py_ssize_t a,
    Py_ssize_t i,
    Py_ssize_t b,
    double* row,
) except -1 nogil:
    """Add the squared arcs and table entries of sample i of a to all samples of b."""
    cdef Py_ssize_t n = metric.n_samples, size = metric.n_symbols, j, k
    cdef const double* table
    cdef double gap
    for k in range(metric.n_angles):
        for j in range(n):
            gap = fabs(
                metric.angles[(a * n + i) * metric.n_angles + k]
                - metric.angles[(b * n + j) * metric.n_angles + k]
            )
            gap = min(gap, 2 * M_PI - gap)
            row[j] += metric.factors[k] * gap * gap
    for k in range(metric.n_codes):
        table = metric.tables + size * (
            k * size + metric.codes[(a * n + i) * metric.n_codes + k]
        )
        for j in range(n):
            row[j] += table[metric.codes[(b * n + j) * metric.n_codes + k]]
    return 0


def sample_costs(
    const double[:, :, ::1] points,
    parts,
    Py_ssize_t a,
    Py_ssize_t b,
    const double[::1] mask,
    double p,
    double[:, ::1] cost,
):
    """Fill `cost` with the p-th powers of the distances between two samples.

    Parameters
    ----------
    points, parts : ndarray and tuple
        As in `sampled_registrations`.

    a, b : int
        The models of the samples.

    mask : ndarray of shape (n_features,)
        One where both models observed a feature, zero elsewhere.

    p : float
        The power.

    cost : ndarray of shape (n_samples, n_samples)
        Filled with the powers.
    """
    cdef double[::1] channels = np.empty(points.shape[2] * (points.shape[1] + 1))
    cdef Metric metric = metric_of(parts)
    with nogil:
        fill_costs(points, &metric, a, b, &mask[0], p, channels, cost)


cdef int fill_costs(
    const double[:, :, ::1] points,
    const Metric* metric,
    Py_ssize_t a,
    Py_ssize_t b,
    const double* mask,
    double p,
    double[::1] channels,
    double[:, ::1] cost,
) except -1 nogil:
    """Fill `cost`; see `sample_costs`.

    Scratch holds the observed features of the points of b, one after the other, and
    those of a point of a.
    """
    cdef Py_ssize_t n_samples = points.shape[1], n_features = points.shape[2], i, j, k
    cdef Py_ssize_t n_seen = 0
    cdef double* point = &channels[n_features * n_samples]
    cdef bint is_flat = metric.n_angles == 0 and metric.n_codes == 0
    for k in range(n_features):
        if mask[k] == 0:
            continue
        for j in range(n_samples):
            channels[n_seen * n_samples + j] = points[b, j, k]
        n_seen += 1
    for i in range(n_samples):
        interrupted()
        n_seen = 0
        for k in range(n_features):
            if mask[k] != 0:
                point[n_seen] = points[a, i, k]
                n_seen += 1
        squared_distances(
            point, &channels[0], n_seen, n_samples, p == 1 and is_flat, &cost[i, 0],
        )
        if not is_flat:
            add_to_row(metric, a, i, b, &cost[i, 0])
        if p != 2 and not (p == 1 and is_flat):
            for j in range(n_samples):
                cost[i, j] = pow(cost[i, j], 0.5 * p)


def fill_posteriors(
    const double[:, :, ::1] points,
    const Py_ssize_t[:, ::1] states,
    densities,
    const double[:, ::1] weights,
    const Py_ssize_t[::1] sizes,
    double[:, :, ::1] posteriors,
):
    """Fill the probabilities of the states of each model at its own points.

    Parameters
    ----------
    points : ndarray of shape (n_models, n_samples, n_features)
        Points of each model.

    states : ndarray of int of shape (n_models, n_samples)
        The state that each point was drawn from.

    densities : Densities
        The states of the models, from `make_densities`.

    weights : ndarray of shape (n_models, n_components)
        State probabilities.

    sizes : ndarray of int of shape (n_models,)
        Numbers of states.

    posteriors : ndarray of shape (n_models, n_samples, n_components)
        Filled where there are states.
    """
    cdef Py_ssize_t n_samples = points.shape[1], n_features = points.shape[2]
    cdef Py_ssize_t n, size, t, k
    cdef Stack stack = stack_of(densities)
    numbers, ranks, alive = make_room(densities, n_samples)
    cdef Room room = room_of(numbers, ranks, alive, &stack, n_samples)
    cdef double[:, ::1] channels = np.empty((n_features, n_samples))
    cdef Frames frames
    frames.values, frames.seen = &channels[0, 0], NULL
    frames.n_features, frames.n_frames = n_features, n_samples
    frames.stride = n_samples
    with nogil:
        for n in range(points.shape[0]):
            size = sizes[n]
            for t in range(n_samples):
                for k in range(n_features):
                    channels[k, t] = points[n, t, k]
            # A mixture is a chain whose next state does not depend on the present one.
            for k in range(size * size):
                room.chain[k] = weights[n, k % size]
            fill_chain_densities(
                &frames, &stack, n, size, &weights[n, 0], room.chain, &room
            )
            for t in range(n_samples):
                fill_shares(
                    room.logs + t, n_samples, &weights[n, 0], size, states[n, t],
                    &posteriors[n, t, 0],
                )


cdef void fill_shares(
    const double* logs,
    Py_ssize_t stride,
    const double* weights,
    Py_ssize_t size,
    Py_ssize_t origin,
    double* fractions,
) noexcept nogil:
    """Fill the probabilities of states, given log densities and weights.

    Rounding may push a point off the support of a flat state. If it is then on none, it
    belongs to the state that it was drawn from.
    """
    cdef double top = -INFINITY, total = 0.0
    cdef Py_ssize_t k
    for k in range(size):
        fractions[k] = logs[k * stride] + log(weights[k])
        top = max(top, fractions[k])
    if top == -INFINITY:
        for k in range(size):
            fractions[k] = 1.0 if k == origin else 0.0
        return
    for k in range(size):
        fractions[k] = exp(fractions[k] - top)
        total += fractions[k]
    for k in range(size):
        fractions[k] /= total


def sampled_registrations(
    const double[:, :, ::1] points,
    parts,
    const double[:, :, ::1] posteriors,
    masks,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
    double p,
):
    """Registrations of model pairs by an exact coupling of their samples.

    Parameters
    ----------
    points : ndarray of shape (n_models, n_samples, n_features)
        A sample of each model.

    parts : tuple of ndarray
        What else distances of frames depend on: angles of shape (n_models, n_samples,
        n_angles), the factors of their squared arcs, codes of shape (n_models,
        n_samples, n_codes) and, for each of these, a table of squared distances.

    posteriors : ndarray of shape (n_models, n_samples, n_components)
        Probabilities of the states of its model at each point.

    masks : ndarray of shape (n_models, n_features)
        One where a model observed a feature, zero elsewhere.

    index_a, index_b : ndarray of shape (n_pairs,)
        The models of each pair.

    p : float
        Points are compared by the p-th power of their distance.

    Returns
    -------
    plans : ndarray of shape (n_pairs, n_components, n_components)
        The registrations; their margins are the mean posteriors.
    """
    cdef const double[:, ::1] seen = np.ascontiguousarray(masks)
    cdef Py_ssize_t n_samples = points.shape[1], n_features = points.shape[2]
    cdef Py_ssize_t size = posteriors.shape[2], n, a, b, k
    # On a line the sorted coupling is optimal for every convex cost.
    cdef Metric metric = metric_of(parts)
    cdef bint on_line = (
        n_features == 1 and p >= 1 and metric.n_angles == 0 and metric.n_codes == 0
    )
    cdef Py_ssize_t n_ranked = points.shape[0] if on_line else 0
    cdef Py_ssize_t n_costs = 0 if on_line else n_samples
    cdef const Py_ssize_t[:, ::1] order = np.argsort(
        np.asarray(points)[:n_ranked, :, 0], axis=1, kind="stable"
    )
    cdef double[:, ::1] cost = aligned((n_costs, n_costs))
    cdef double[::1] channels = aligned(n_features * (n_samples + 1))
    cdef double[::1] mask = np.empty(n_features)
    cdef Py_ssize_t[::1] matches = np.empty(n_samples, np.intp)
    numbers, places = make_matching(n_samples)
    cdef Matching state = matching_of(numbers, places)
    cdef double[:, :, ::1] plans = np.zeros((index_a.shape[0], size, size))
    with nogil:
        for n in range(index_a.shape[0]):
            interrupted()
            a, b = index_a[n], index_b[n]
            if on_line:
                for k in range(n_samples):
                    matches[order[a, k]] = order[b, k]
            else:
                for k in range(n_features):
                    mask[k] = seen[a, k] * seen[b, k]
                fill_costs(points, &metric, a, b, &mask[0], p, channels, cost)
                assign(&cost[0, 0], n_samples, &matches[0], &state)
            add_matches(posteriors[a], posteriors[b], matches, plans[n])
    return np.asarray(plans) / n_samples


cdef int add_matches(
    const double[:, ::1] posterior_a,
    const double[:, ::1] posterior_b,
    const Py_ssize_t[::1] matches,
    double[:, ::1] plan,
) except -1 nogil:
    """Add what matched points have in common to the plan of their states."""
    cdef Py_ssize_t size = plan.shape[0], i, j, k
    cdef const double* other
    for k in range(matches.shape[0]):
        if k % 64 == 0:
            interrupted()
        other = &posterior_b[matches[k], 0]
        for i in range(size):
            for j in range(size):
                plan[i, j] += posterior_a[k, i] * other[j]


def smoothed_registrations(
    const double[:, :, ::1] points,
    parts,
    const double[:, :, ::1] posteriors,
    masks,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
    double p,
    double reg,
    int n_iterations,
):
    """Registrations of model pairs by an entropic coupling of their samples.

    Parameters
    ----------
    points, parts, posteriors, masks, index_a, index_b, p : ndarray, tuple and float
        As in `sampled_registrations`.

    reg : float
        Strength of the entropy, as a fraction of the mean cost.

    n_iterations : int
        Largest number of iterations.

    Returns
    -------
    plans : ndarray of shape (n_pairs, n_components, n_components)
        The registrations.
    """
    cdef const double[:, ::1] seen = np.ascontiguousarray(masks)
    cdef Py_ssize_t n_samples = points.shape[1], n_features = points.shape[2]
    cdef Py_ssize_t size = posteriors.shape[2], n, a, b, k
    cdef Metric metric = metric_of(parts)
    cdef double[:, ::1] cost = np.empty((n_samples, n_samples))
    cdef double[:, ::1] coupling = np.empty((n_samples, n_samples))
    cdef double[:, ::1] scratch = np.empty((5, n_samples))
    cdef double[::1] channels = aligned(n_features * (n_samples + 1))
    cdef double[::1] mask = np.empty(n_features)
    cdef double[:, :, ::1] plans = np.zeros((index_a.shape[0], size, size))
    with nogil:
        for n in range(index_a.shape[0]):
            a, b = index_a[n], index_b[n]
            for k in range(n_features):
                mask[k] = seen[a, k] * seen[b, k]
            fill_costs(points, &metric, a, b, &mask[0], p, channels, cost)
            couple_smoothly(cost, reg, n_iterations, scratch, coupling)
            add_coupled(coupling, posteriors[a], posteriors[b], plans[n])
    return np.asarray(plans)


def entropic_coupling(double[:, ::1] cost, double reg, int n_iterations):
    """Return the entropic coupling of two samples; `cost` is scaled in place."""
    coupling = np.empty((cost.shape[0], cost.shape[0]))
    couple_smoothly(cost, reg, n_iterations, np.empty((5, cost.shape[0])), coupling)
    return coupling


cdef int couple_smoothly(
    double[:, ::1] cost,
    double reg,
    int n_iterations,
    double[:, ::1] scratch,
    double[:, ::1] coupling,
) except -1 nogil:
    """Fill the entropic coupling of two samples, by Sinkhorn's iterations.

    Most of them scale rows and columns of a matrix of exponentials. The first one, and
    those where a sum leaves the range of numbers, are done with logarithms.
    """
    cdef Py_ssize_t size = cost.shape[0], i, j
    cdef double mean = 0.0, off, level
    cdef double* row_logs = &scratch[0, 0]
    cdef double* column_logs = &scratch[1, 0]
    cdef double* rows = &scratch[2, 0]
    cdef double* columns = &scratch[3, 0]
    cdef double* sums = &scratch[4, 0]
    cdef bint fresh = False
    cdef int step
    for i in range(size):
        row_logs[i] = 0.0
        for j in range(size):
            mean += cost[i, j]
    mean /= size * size
    for i in range(size):
        for j in range(size):
            cost[i, j] /= reg * mean if mean > 0 else 1.0
    for step in range(n_iterations):
        interrupted()
        if not fresh:
            scale_logs(cost, row_logs, column_logs)
            fill_exponentials(cost, row_logs, column_logs, coupling, sums)
            for i in range(size):
                rows[i] = columns[i] = 1.0
            fresh = True
        else:
            for j in range(size):
                columns[j] = 1.0 / (size * sums[j])
            scale_rows(&coupling[0, 0], columns, size, rows, sums)
        fresh = in_range(rows, size) and in_range(columns, size) and in_range(sums, size)
        if not fresh:
            absorb(rows, row_logs, size)
        elif step % CHECKED_STEPS == 0:
            off = 0.0
            for j in range(size):
                level = sums[j] * columns[j] - 1.0 / size
                off += level * level
            if off < COUPLED * COUPLED:
                break
    if not fresh:
        scale_logs(cost, row_logs, column_logs)
        fill_exponentials(cost, row_logs, column_logs, coupling, sums)
        return 0
    for i in range(size):
        for j in range(size):
            coupling[i, j] *= rows[i] * columns[j]


cdef bint in_range(const double* values, Py_ssize_t size) noexcept nogil:
    """Whether all values are far from overflow and underflow."""
    cdef Py_ssize_t i
    for i in range(size):
        if not 1 / LARGEST_FACTOR < values[i] < LARGEST_FACTOR:
            return False
    return True


cdef void absorb(const double* factors, double* logs, Py_ssize_t size) noexcept nogil:
    """Move factors to logarithms, as far as they are numbers."""
    cdef Py_ssize_t i
    for i in range(size):
        if 0 < factors[i] < INFINITY:
            logs[i] += log(factors[i])


cdef int scale_logs(
    const double[:, ::1] cost, double* row_logs, double* column_logs
) except -1 nogil:
    """One iteration with logarithms: columns, then rows."""
    cdef Py_ssize_t size = cost.shape[0], i, j
    cdef double top, total
    for j in range(size):
        top, total = -INFINITY, 0.0
        for i in range(size):
            top = max(top, row_logs[i] - cost[i, j])
        for i in range(size):
            total += exp(row_logs[i] - cost[i, j] - top)
        column_logs[j] = -log(<double>size) - top - log(total)
    for i in range(size):
        interrupted()
        top, total = -INFINITY, 0.0
        for j in range(size):
            top = max(top, column_logs[j] - cost[i, j])
        for j in range(size):
            total += exp(column_logs[j] - cost[i, j] - top)
        row_logs[i] = -log(<double>size) - top - log(total)


cdef int fill_exponentials(
    const double[:, ::1] cost,
    const double* row_logs,
    const double* column_logs,
    double[:, ::1] coupling,
    double* sums,
) except -1 nogil:
    """Fill the coupling that logarithms make, and the sums of its columns."""
    cdef Py_ssize_t size = cost.shape[0], i, j
    for j in range(size):
        sums[j] = 0.0
    for i in range(size):
        interrupted()
        for j in range(size):
            coupling[i, j] = exp(row_logs[i] + column_logs[j] - cost[i, j])
            sums[j] += coupling[i, j]


cdef int add_coupled(
    const double[:, ::1] coupling,
    const double[:, ::1] posterior_a,
    const double[:, ::1] posterior_b,
    double[:, ::1] plan,
) except -1 nogil:
    """Add what a coupling of two samples makes of the posteriors.

    Written out, as the rounding of a matrix product depends on how many states the
    other models of the batch have.
    """
    cdef Py_ssize_t n_samples = posterior_a.shape[0], size = posterior_a.shape[1]
    cdef Py_ssize_t i, j, s, t
    cdef double ahead
    for s in range(n_samples):
        interrupted()
        for j in range(size):
            ahead = 0.0
            for t in range(n_samples):
                ahead += coupling[s, t] * posterior_b[t, j]
            for i in range(size):
                plan[i, j] += posterior_a[s, i] * ahead


def project_registrations(
    double[:, :, ::1] plans,
    weights,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
):
    """Scale plans, in place, so that their margins are the weights of the models.

    Rows and columns are scaled in turn. A plan with zeros may have no scaling with
    these margins; what is then left to place is spread evenly over what is short.

    Parameters
    ----------
    plans : ndarray of shape (n_pairs, n_components, n_components)
        Registrations, changed in place.

    weights : ndarray of shape (n_models, n_components)
        State probabilities.

    index_a, index_b : ndarray of shape (n_pairs,)
        The models of each pair.
    """
    cdef const double[:, ::1] probs = np.ascontiguousarray(weights)
    cdef Py_ssize_t size = probs.shape[1], n
    cdef double[:, ::1] short = np.empty((2, size))
    with nogil:
        for n in range(plans.shape[0]):
            project(
                &plans[n, 0, 0], &probs[index_a[n], 0], &probs[index_b[n], 0], size,
                &short[0, 0], &short[1, 0],
            )


cdef int project(
    double* plan,
    const double* weights_a,
    const double* weights_b,
    Py_ssize_t size,
    double* short_a,
    double* short_b,
) except -1 nogil:
    """Scale one plan to its margins; see `project_registrations`."""
    cdef Py_ssize_t i, j
    cdef double off, missing = 0.0
    cdef int scalings
    for scalings in range(MAX_SCALINGS):
        if scalings % 16 == 0:
            interrupted()
        off = scale_lines(plan, size, size, 1, weights_a, False)
        scale_lines(plan, size, 1, size, weights_b, False)
        if off <= MARGIN_ROUNDING:
            break
    scale_lines(plan, size, size, 1, weights_a, True)
    scale_lines(plan, size, 1, size, weights_b, True)
    for i in range(size):
        short_a[i] = weights_a[i] - line_sum(plan + i * size, size, 1)
        short_b[i] = weights_b[i] - line_sum(plan + i, size, size)
    for i in range(size):
        missing += short_a[i]
    if missing > 0:
        for i in range(size):
            for j in range(size):
                plan[i * size + j] += (
                    max(short_a[i], 0.0) * max(short_b[j], 0.0) / missing
                )


cdef double scale_lines(
    double* plan,
    Py_ssize_t size,
    Py_ssize_t line,
    Py_ssize_t step,
    const double* sums,
    bint only_down,
) noexcept nogil:
    """Scale each line to its sum (or down to it); return how far the worst one was.

    Lines are rows or columns: `line` and `step` are the distances in memory from one
    to the next, and from entry to entry.
    """
    cdef Py_ssize_t i, j
    cdef double total, factor, off = 0.0
    for i in range(size):
        total = line_sum(plan + i * line, size, step)
        off = max(off, fabs(total - sums[i]))
        if total > sums[i] or (total > LEAST_SUM and not only_down):
            factor = sums[i] / total
            for j in range(size):
                plan[i * line + j * step] *= factor
    return off


cdef inline double line_sum(
    const double* line, Py_ssize_t size, Py_ssize_t step
) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t j
    for j in range(size):
        total += line[j * step]
    return total
