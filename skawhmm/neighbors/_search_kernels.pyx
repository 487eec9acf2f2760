"""Lower bounds of distances of many pairs in one loop; see `_search`."""

import numpy as np

from libc.math cimport INFINITY, pow, sqrt

from skawhmm.distances._components cimport carry_chain, conditionals
from skawhmm.numerics._transport cimport Tree, least_cost, tree_of
from skawhmm.utils._interruption cimport interrupted

from skawhmm.numerics._transport import make_workspace

cdef extern from "neighbors/_search_kernels.h" nogil:
    int fill_relaxed(
        const float* vectors_a,
        const double* weights_a,
        Py_ssize_t size_a,
        const float* vectors_b,
        const double* weights_b,
        Py_ssize_t size_b,
        Py_ssize_t n_models,
        Py_ssize_t size,
        double p,
        float* nearest,
        double* bounds,
    ) except -1
    int fill_group_bounds(
        const float* vectors_a,
        const double* weights_a,
        Py_ssize_t size_a,
        const float* centres,
        const float* radii,
        Py_ssize_t size_b,
        Py_ssize_t n_groups,
        Py_ssize_t size,
        double p,
        double* bounds,
        double* to_centres,
    ) except -1
    void fill_gaps(
        const float* vectors_a,
        Py_ssize_t size_a,
        const float* vectors_b,
        Py_ssize_t size_b,
        Py_ssize_t size,
        float* gaps,
    )
    double member_bound(
        const double* weights_a,
        Py_ssize_t size_a,
        const float* gaps,
        const double* weights_b,
        const unsigned short* balls,
        const float* reaches,
        Py_ssize_t size_b,
        double p,
    )
    float point_set_gap(const float* a, const float* b, size_t length)
    double squared_row_gap(
        const double* row,
        const double* other,
        const double* vectors,
        Py_ssize_t n_components,
        Py_ssize_t size,
        double* gap,
    )


# Where engines find the distance of models that are stored as vectors.
POINT_SET_GAP = <size_t>&point_set_gap

# The largest number of points of such a vector.
MOST_POINTS = 256


def relaxed_bounds(
    const float[:, :, ::1] vectors_a,
    const double[:, ::1] weights_a,
    const float[:, :, ::1] vectors_b,
    const double[:, ::1] weights_b,
    double p,
):
    """Costs of the plans that obey one margin only, for all models of two batches.

    Parameters
    ----------
    vectors_a, weights_a, vectors_b, weights_b : ndarray
        State vectors (float32) and state probabilities of the models on each side.

    p : float
        Order of the distance.

    Returns
    -------
    bounds : ndarray of shape (n_models_a, n_models_b)
        Lower bounds of the marginal component.
    """
    cdef Py_ssize_t size_a = vectors_a.shape[1], size_b = vectors_b.shape[1], n
    cdef float[::1] nearest = np.empty(size_a + size_b, np.float32)
    cdef double[:, ::1] bounds = np.empty((vectors_a.shape[0], vectors_b.shape[0]))
    if bounds.shape[0] > 0 and bounds.shape[1] > 0:
        with nogil:
            for n in range(bounds.shape[0]):
                fill_relaxed(
                    &vectors_a[n, 0, 0], &weights_a[n, 0], size_a, &vectors_b[0, 0, 0],
                    &weights_b[0, 0], size_b, bounds.shape[1], vectors_a.shape[2], p,
                    &nearest[0], &bounds[n, 0],
                )
    return np.asarray(bounds)


def group_bounds(
    const float[:, :, ::1] vectors,
    const double[:, ::1] weights,
    const float[:, :, ::1] centres,
    const float[:, ::1] radii,
    double p,
):
    """Lower bounds of `relaxed_bounds` between models and all models of groups.

    Parameters
    ----------
    vectors, weights : ndarray
        State vectors (float32) and state probabilities of the models.

    centres, radii : ndarray of float32
        Balls that contain the state vectors of each group; a negative radius stands for
        no ball.

    p : float
        Order of the distance.

    Returns
    -------
    bounds : ndarray of shape (n_models, n_groups)
        The bounds.

    to_centres : ndarray of shape (n_models, n_groups)
        Costs to the centres, by which groups are ranked.
    """
    cdef Py_ssize_t n
    cdef double[:, ::1] to_centres = np.empty((vectors.shape[0], centres.shape[0]))
    cdef double[:, ::1] bounds = np.empty((vectors.shape[0], centres.shape[0]))
    with nogil:
        for n in range(bounds.shape[0]):
            fill_group_bounds(
                &vectors[n, 0, 0], &weights[n, 0], vectors.shape[1], &centres[0, 0, 0],
                &radii[0, 0], centres.shape[1], bounds.shape[1], vectors.shape[2], p,
                &bounds[n, 0], &to_centres[n, 0],
            )
    return np.asarray(bounds), np.asarray(to_centres)


def state_balls(
    const float[:, :, ::1] vectors,
    const double[:, ::1] weights,
    const Py_ssize_t[::1] starts,
    Py_ssize_t n_steps,
):
    """Balls that contain the state vectors of the models of each group.

    The vectors are divided among as many balls as models have states, by k-means that
    starts from the states of the first model of a group.

    Parameters
    ----------
    vectors, weights : ndarray
        State vectors (float32) and state probabilities of the models, group by group. States
        without weight do not count.

    starts : ndarray of int of shape (n_groups + 1,)
        Where each group begins.

    n_steps : int
        Steps of k-means.

    Returns
    -------
    centres : ndarray of float32 of shape (n_groups, n_components, n_dimensions)
        Centres of the balls.

    radii : ndarray of float32 of shape (n_groups, n_components)
        Their radii, rounded up; -1 for a ball without states.

    balls : ndarray of uint16 of shape (n_models, n_components)
        Which ball each state is in.

    reaches : ndarray of float32 of shape (n_models, n_components)
        The distance of each state to the centre of its ball, rounded up.
    """
    cdef Py_ssize_t n_groups = starts.shape[0] - 1, n_components = vectors.shape[1]
    cdef Py_ssize_t size = vectors.shape[2], g, n, i, j, k, step
    cdef float[:, :, ::1] centres = np.array(np.asarray(vectors)[np.asarray(starts)[:-1]])
    cdef float[:, ::1] radii = np.empty((n_groups, n_components), np.float32)
    cdef double[:, ::1] sums = np.empty((n_components, size + 1))
    cdef unsigned short[:, ::1] balls = np.zeros((vectors.shape[0], n_components), np.uint16)
    cdef float[:, ::1] reaches = np.zeros((vectors.shape[0], n_components), np.float32)
    cdef double gap
    with nogil:
        for g in range(n_groups):
            for step in range(n_steps + 1):
                sums[:, :] = 0.0
                radii[g, :] = -1.0
                for n in range(starts[g], starts[g + 1]):
                    if n % 64 == 0:
                        interrupted()
                    for i in range(n_components):
                        if weights[n, i] > 0:
                            j = nearest_centre(vectors[n, i], centres[g], &gap)
                            # Rounded up, from single precision.
                            reaches[n, i] = <float>(1.000001 * gap)
                            balls[n, i] = <unsigned short>j
                            radii[g, j] = max(radii[g, j], reaches[n, i])
                            sums[j, size] += 1
                            for k in range(size):
                                sums[j, k] += vectors[n, i, k]
                for j in range(n_components):
                    if step < n_steps and sums[j, size] > 0:
                        for k in range(size):
                            centres[g, j, k] = <float>(sums[j, k] / sums[j, size])
    return (
        np.asarray(centres), np.asarray(radii), np.asarray(balls), np.asarray(reaches)
    )


cdef Py_ssize_t nearest_centre(
    const float[::1] x, const float[:, ::1] centres, double* gap
) noexcept nogil:
    """The centre that is nearest to a vector; writes its distance into `gap`."""
    cdef Py_ssize_t j, k, best = 0
    cdef double total, least = INFINITY
    for j in range(centres.shape[0]):
        total = 0.0
        for k in range(x.shape[0]):
            total += (<double>x[k] - centres[j, k]) * (<double>x[k] - centres[j, k])
        if total < least:
            least, best = total, j
    gap[0] = sqrt(least)
    return best


def group_survivors(
    const float[:, :, ::1] vectors,
    const double[:, ::1] weights,
    groups,
    const Py_ssize_t[::1] model,
    const Py_ssize_t[::1] group,
    const double[::1] limits,
    double p,
):
    """Pairs of a model and a member of a group whose bounds are within a limit.

    Three bounds are tried: the distance to the balls that the states of the member are
    in, the bound by `relaxed_bounds`, and the optimal transport of the state vectors.

    Parameters
    ----------
    vectors, weights : ndarray
        State vectors (float32) and state probabilities of the models.

    groups : Balls
        The groups.

    model, group : ndarray of int of shape (n_comparisons,)
        Each model that is compared, and the group it is compared with.

    limits : ndarray of shape (n_models,)
        Largest bound of a pair that is kept.

    p : float
        Order of the distance.

    Returns
    -------
    model, other : ndarray of int of shape (n_pairs,)
        The pairs that are kept, in the order of the comparisons; members by their place.

    bounds : ndarray of shape (n_pairs,)
        Costs of their optimal plans.

    n_relaxed : int
        How many pairs the second bound was computed for.
    """
    cdef const float[:, :, ::1] points = groups.vectors
    cdef const double[:, ::1] probs = groups.margins
    cdef const float[:, :, ::1] centres = groups.centres
    cdef const unsigned short[:, ::1] balls = groups.balls
    cdef const float[:, ::1] reaches = groups.reaches
    cdef const Py_ssize_t[::1] starts = groups.starts
    cdef Py_ssize_t size_a = vectors.shape[1], size_b = points.shape[1]
    cdef Py_ssize_t size = vectors.shape[2], n_cells = size_a * size_b
    cdef Py_ssize_t r, a, b, g, k, total = 0, count = 0, n_relaxed = 0
    for r in range(model.shape[0]):
        total += starts[group[r] + 1] - starts[group[r]]
    numbers, nodes = make_workspace(size_a, size_b)
    cdef Tree tree = tree_of(numbers, nodes)
    cdef float[::1] nearest = np.empty(size_a + size_b, np.float32)
    cdef float[::1] gaps = np.empty(2 * n_cells, np.float32)
    cdef double[::1] cells = np.empty(2 * n_cells)
    cdef double bound = 0.0
    cdef Py_ssize_t[::1] kept_a = np.empty(total, np.intp)
    cdef Py_ssize_t[::1] kept_b = np.empty(total, np.intp)
    cdef double[::1] bounds = np.empty(total)
    with nogil:
        for r in range(model.shape[0]):
            a, g = model[r], group[r]
            fill_gaps(
                &vectors[a, 0, 0], size_a, &centres[g, 0, 0], size_b, size, &gaps[0]
            )
            for k in range(n_cells):
                gaps[k] = <float>sqrt(gaps[k])
            for b in range(starts[g], starts[g + 1]):
                if b % 256 == 0:
                    interrupted()
                if member_bound(
                    &weights[a, 0], size_a, &gaps[0], &probs[b, 0], &balls[b, 0],
                    &reaches[b, 0], size_b, p,
                ) > limits[a]:
                    continue
                n_relaxed += 1
                fill_relaxed(
                    &vectors[a, 0, 0], &weights[a, 0], size_a, &points[b, 0, 0],
                    &probs[b, 0], size_b, 1, size, p, &nearest[0], &bound,
                )
                if bound > limits[a]:
                    continue
                fill_gaps(
                    &vectors[a, 0, 0], size_a, &points[b, 0, 0], size_b, size,
                    &gaps[n_cells],
                )
                for k in range(n_cells):
                    cells[k] = half_power(gaps[n_cells + k], p)
                bound = least_cost(
                    &weights[a, 0], &probs[b, 0], &cells[0], <int>size_a, <int>size_b,
                    &cells[n_cells], &tree,
                )
                bound = bound if p == 1 else pow(bound, 1 / p)
                if bound <= limits[a]:
                    kept_a[count], kept_b[count], bounds[count] = a, b, bound
                    count += 1
    return (
        np.array(kept_a[:count]), np.array(kept_b[:count]), np.array(bounds[:count]),
        n_relaxed,
    )


cdef inline double half_power(double square, double p) noexcept nogil:
    return sqrt(square) if p == 1 else pow(square, 0.5 * p)


def transition_bounds(
    weights,
    transmats,
    chains,
    vectors,
    const Py_ssize_t[::1] index_a,
    const Py_ssize_t[::1] index_b,
    const double[:, :, ::1] plans,
    double p,
    bint joint,
):
    """Lower bounds of the transition component of model pairs, given the plans.

    Parameters
    ----------
    weights, transmats, chains : ndarray
        As in `transition_components`.

    vectors : ndarray of shape (n_models, n_components, n_dimensions)
        State vectors.

    index_a, index_b : ndarray of int of shape (n_pairs,)
        The models of each pair.

    plans : ndarray of shape (n_pairs, n_components, n_components)
        Registrations.

    p : float
        Order of the distance, at least 1.

    joint : bool
        As in `transition_components`, whose rows are compared by transport.

    Returns
    -------
    bounds : ndarray of shape (n_pairs,)
        The bounds.
    """
    cdef const double[:, ::1] masses = np.ascontiguousarray(weights)
    cdef const double[:, :, ::1] steps = np.ascontiguousarray(transmats)
    cdef const double[:, :, ::1] own = np.ascontiguousarray(chains)
    cdef const double[:, :, ::1] points = np.ascontiguousarray(vectors)
    cdef int size = <int>masses.shape[1], n_cells = size * size
    cdef Py_ssize_t n_dimensions = points.shape[2], n, a, b
    cdef double total
    cdef double[::1] scratch = np.empty(4 * n_cells + n_dimensions)
    cdef double* forth = &scratch[0]
    cdef double* back = forth + n_cells
    cdef double* half = back + n_cells
    cdef double* moved = half + n_cells
    cdef double* gap = moved + n_cells
    cdef double[::1] bounds = np.empty(index_a.shape[0])
    with nogil:
        for n in range(index_a.shape[0]):
            interrupted()
            a, b = index_a[n], index_b[n]
            conditionals(&plans[n, 0, 0], size, forth, back)
            carry_chain(forth, &steps[b, 0, 0], back, size, joint, half, moved)
            total = row_gaps(
                &masses[a, 0], &own[a, 0, 0], moved, &points[a, 0, 0], size, n_dimensions,
                p, gap,
            )
            carry_chain(back, &steps[a, 0, 0], forth, size, joint, half, moved)
            total += row_gaps(
                &masses[b, 0], &own[b, 0, 0], moved, &points[b, 0, 0], size, n_dimensions,
                p, gap,
            )
            bounds[n] = pow(total, 1 / p)
    return np.asarray(bounds)


cdef double row_gaps(
    const double* weights,
    const double* chain,
    const double* moved,
    const double* vectors,
    Py_ssize_t size,
    Py_ssize_t n_dimensions,
    double p,
    double* gap,
) except? -1.0 nogil:
    cdef double total = 0.0, squared
    cdef Py_ssize_t i
    for i in range(size):
        if i % 32 == 31:
            interrupted()
        if weights[i] > 0:
            squared = squared_row_gap(
                chain + i * size, moved + i * size, vectors, size, n_dimensions, gap
            )
            total += weights[i] * half_power(squared, p)
    return total
