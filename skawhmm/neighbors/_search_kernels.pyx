"""Lower bounds of distances of many pairs in one loop; see `_search`."""

import numpy as np

from libc.math cimport INFINITY, pow, sqrt

from skawhmm.distances._components cimport (
    Rows, carry_chain, conditionals, rows_cost, rows_of
)
from skawhmm.numerics._transport cimport Tree, largest_cost, least_cost, tree_of
from skawhmm.utils._interruption cimport interrupted

from skawhmm.distances._components import make_rows
from skawhmm.numerics._transport import make_workspace

cdef extern from "neighbors/_search_kernels.h" nogil:
    const int C_LANES "LANES"
    void fill_relaxed(
        const float* vectors_a,
        const double* weights_a,
        Py_ssize_t size_a,
        const float* tile,
        const double* weights_b,
        Py_ssize_t size_b,
        Py_ssize_t n_lanes,
        Py_ssize_t size,
        double p,
        float* scratch,
        double* bounds,
    )
    void fill_to_centres(
        const float* vectors_a,
        const double* weights_a,
        Py_ssize_t size_a,
        const float* tile,
        const unsigned char* used,
        Py_ssize_t size_b,
        Py_ssize_t n_lanes,
        Py_ssize_t size,
        double p,
        float* scratch,
        double* costs,
    )
    double squared_row_gap(
        const double* row,
        const double* other,
        const double* vectors,
        Py_ssize_t n_components,
        Py_ssize_t size,
        double* gap,
    )


# Models of a tile.
LANES = C_LANES

cdef extern from *:
    """
    /* Rounding of single precision. */
    #define SINGLE 5.9604644775390625e-8
    """
    const double SINGLE


def in_tiles(const float[:, :, ::1] vectors):
    """State vectors of models in tiles, the form in which kernels compare them.

    Parameters
    ----------
    vectors : ndarray of float32 of shape (n_models, n_components, n_dimensions)
        State vectors.

    Returns
    -------
    tiles : ndarray of float32 of shape (n_tiles, n_components, n_dimensions, LANES)
        The same, with the models of a tile in the last axis; zero behind the last one.
    """
    cdef Py_ssize_t n_models = vectors.shape[0], n, j, k
    cdef float[:, :, :, ::1] tiles = np.zeros(
        ((n_models + C_LANES - 1) // C_LANES, *np.shape(vectors)[1:], C_LANES), np.float32
    )
    with nogil:
        for n in range(n_models):
            for j in range(vectors.shape[1]):
                for k in range(vectors.shape[2]):
                    tiles[n // C_LANES, j, k, n % C_LANES] = vectors[n, j, k]
    return np.asarray(tiles)


def from_tiles(tiles, n_models):
    """Return the state vectors, (n_models, n_components, n_dimensions), of tiles."""
    vectors = tiles.transpose(0, 3, 1, 2).reshape(-1, *tiles.shape[1:3])
    return np.ascontiguousarray(vectors[:n_models])


def relaxed_bounds(
    const float[:, :, ::1] vectors,
    const double[:, ::1] weights,
    const float[:, :, :, ::1] tiles,
    const double[:, ::1] probs,
    double p,
):
    """Costs of the plans that obey one margin only, for all models of two batches.

    Parameters
    ----------
    vectors, weights : ndarray
        State vectors (float32) and state probabilities of the models of one batch.

    tiles, probs : ndarray
        State vectors of the others, in tiles, and their state probabilities.

    p : float
        Order of the distance.

    Returns
    -------
    bounds : ndarray of shape (n_models, n_others)
        Lower bounds of the marginal component.
    """
    cdef Py_ssize_t size_a = vectors.shape[1], size_b = tiles.shape[1], n, t, lane
    cdef Py_ssize_t n_others = probs.shape[0], n_lanes
    cdef float[::1] scratch = np.empty((size_b + 1) * (size_a + 1) * C_LANES, np.float32)
    cdef double[::1] costs = np.empty(C_LANES)
    cdef double[:, ::1] bounds = np.empty((vectors.shape[0], n_others))
    with nogil:
        for n in range(vectors.shape[0]):
            for t in range((n_others + C_LANES - 1) // C_LANES):
                interrupted()
                n_lanes = min(n_others - t * C_LANES, <Py_ssize_t>C_LANES)
                fill_relaxed(
                    &vectors[n, 0, 0], &weights[n, 0], size_a, &tiles[t, 0, 0, 0],
                    &probs[t * C_LANES, 0], size_b, n_lanes, tiles.shape[2], p,
                    &scratch[0], &costs[0],
                )
                for lane in range(n_lanes):
                    bounds[n, t * C_LANES + lane] = costs[lane]
    return np.asarray(bounds)


def costs_to_centres(
    const float[:, :, ::1] vectors,
    const double[:, ::1] weights,
    const float[:, :, :, ::1] centres,
    const unsigned char[:, ::1] used,
    double p,
):
    """Costs of moving the states of models to the nearest centres of groups.

    Parameters
    ----------
    vectors, weights : ndarray
        State vectors (float32) and state probabilities of the models.

    centres : ndarray of float32
        Centres of the groups, in tiles.

    used : ndarray of uint8 of shape (n_groups, n_components)
        Whether a centre belongs to its group.

    p : float
        Order of the distance.

    Returns
    -------
    costs : ndarray of shape (n_models, n_groups)
        The costs.
    """
    cdef Py_ssize_t size_a = vectors.shape[1], size_b = used.shape[1], n, t
    cdef Py_ssize_t n_groups = used.shape[0], n_lanes
    cdef float[::1] scratch = np.empty((size_b + 1) * (size_a + 1) * C_LANES, np.float32)
    cdef double[:, ::1] costs = np.empty((vectors.shape[0], n_groups))
    with nogil:
        for n in range(vectors.shape[0]):
            for t in range((n_groups + C_LANES - 1) // C_LANES):
                interrupted()
                n_lanes = min(n_groups - t * C_LANES, <Py_ssize_t>C_LANES)
                fill_to_centres(
                    &vectors[n, 0, 0], &weights[n, 0], size_a, &centres[t, 0, 0, 0],
                    &used[t * C_LANES, 0], size_b, n_lanes, centres.shape[2], p, &scratch[0],
                    &costs[n, t * C_LANES],
                )
    return np.asarray(costs)


def state_balls(
    const float[:, :, ::1] vectors,
    const double[:, ::1] weights,
    const Py_ssize_t[::1] starts,
    Py_ssize_t n_steps,
    double p,
):
    """Centres of the states of the models of each group, and how far these are.

    The vectors are divided among as many centres as models have states, by k-means that
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

    p : float
        Order of the distance.

    Returns
    -------
    centres : ndarray of float32 of shape (n_groups, n_components, n_dimensions)
        The centres.

    used : ndarray of uint8 of shape (n_groups, n_components)
        Whether a centre is the nearest one of a state.

    spreads : ndarray of float32 of shape (n_models,)
        The cost of moving the states of each model to the nearest centres, rounded up.
    """
    cdef Py_ssize_t n_groups = starts.shape[0] - 1, n_components = vectors.shape[1]
    cdef Py_ssize_t size = vectors.shape[2], g, n, i, j, k, step
    cdef float[:, :, ::1] centres = np.array(np.asarray(vectors)[np.asarray(starts)[:-1]])
    cdef unsigned char[:, ::1] used = np.zeros((n_groups, n_components), np.uint8)
    cdef double[:, ::1] sums = np.empty((n_components, size + 1))
    cdef float[::1] spreads = np.zeros(vectors.shape[0], np.float32)
    # Costs to centres are rounded by less, so that differences stay bounds.
    cdef double gap, total, upwards = 1.000001 + 2 * (size + 16) * SINGLE
    with nogil:
        for g in range(n_groups):
            for step in range(n_steps + 1):
                sums[:, :] = 0.0
                for n in range(starts[g], starts[g + 1]):
                    if n % 64 == 0:
                        interrupted()
                    total = 0.0
                    for i in range(n_components):
                        if weights[n, i] > 0:
                            j = nearest_centre(vectors[n, i], centres[g], &gap)
                            total += weights[n, i] * (gap if p == 1 else pow(gap, p))
                            sums[j, size] += 1
                            for k in range(size):
                                sums[j, k] += vectors[n, i, k]
                    total = total if p == 1 else pow(total, 1 / p)
                    spreads[n] = <float>(upwards * total)
                for j in range(n_components):
                    used[g, j] = sums[j, size] > 0
                    if step < n_steps and sums[j, size] > 0:
                        for k in range(size):
                            centres[g, j, k] = <float>(sums[j, k] / sums[j, size])
    return np.asarray(centres), np.asarray(used), np.asarray(spreads)


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


cdef struct Chain:
    # A model of which the transition component is needed: state probabilities,
    # transition matrix, and costs between its states.
    const double* weights
    const double* steps
    const double* within


cdef struct Carried:
    # Scratch for chains that are transferred, and for the comparison of their rows.
    double* forth
    double* back
    double* half
    double* moved
    Rows rows


def group_survivors(
    queries,
    groups,
    const Py_ssize_t[::1] model,
    const Py_ssize_t[::1] group,
    const double[:, ::1] to_centres,
    const double[::1] limits,
    const double[::1] marginal_limits,
    double p,
    double marginal_weight,
    double transition_weight,
    bint joint,
):
    """Pairs of a query and a member of a group whose bounds are within a limit.

    The bounds are the cost to the centres less the spread of the member, the one by
    `relaxed_bounds`, the optimal transport of the state vectors, and, if the best plan
    is certain, the transition component under it.

    Parameters
    ----------
    queries : Points
        The models that are compared.

    groups : Balls
        The groups.

    model, group : ndarray of int of shape (n_comparisons,)
        Each model that is compared, and the group it is compared with.

    to_centres : ndarray of shape (n_models, n_groups)
        Costs of the models to the centres of groups.

    limits, marginal_limits : ndarray of shape (n_models,)
        Largest bound of a pair that is kept, and largest part of it that the marginal
        component may take.

    p : float
        Order of the distance.

    marginal_weight, transition_weight : float
        Weights of the components in the bound. The second is 0 unless state vectors are
        as far from each other as states, both models have the same number of states, and
        p = 1.

    joint : bool
        As in `transition_components`, whose rows are compared by transport.

    Returns
    -------
    model, other : ndarray of int of shape (n_pairs,)
        The pairs that are kept, in the order of the comparisons; members by their place.

    bounds : ndarray of shape (n_pairs,)
        Their bounds.

    is_certain : ndarray of bool of shape (n_pairs,)
        Whether the transition component is part of the bound.

    counts : tuple of int
        How many pairs were in a tile that was compared, and how many plans were made.
    """
    cdef const float[:, :, ::1] vectors = queries.vectors
    cdef const double[:, ::1] weights = queries.margins
    cdef const double[:, :, ::1] chains_a = queries.chains
    cdef const double[:, :, ::1] within_a = queries.within
    cdef const float[:, :, :, ::1] tiles = groups.tiles
    cdef const double[:, ::1] probs = groups.margins
    cdef const float[::1] spreads = groups.spreads
    cdef const float[:, :, ::1] chains = groups.chains
    cdef const float[:, ::1] apart = groups.apart
    cdef const Py_ssize_t[::1] starts = groups.starts
    cdef Py_ssize_t size_a = vectors.shape[1], size_b = tiles.shape[1]
    cdef Py_ssize_t size = tiles.shape[2], n_cells = size_a * size_b
    cdef Py_ssize_t r, a, b, g, k, t, first, last, lane, total = 0, count = 0
    cdef Py_ssize_t n_relaxed = 0, n_plans = 0
    for r in range(model.shape[0]):
        total += starts[group[r] + 1] - starts[group[r]]
    numbers, nodes = make_workspace(size_a, size_b)
    cdef Tree tree = tree_of(numbers, nodes)
    cdef float[::1] scratch = np.empty((size_b + 1) * (size_a + 1) * C_LANES, np.float32)
    cdef double[::1] relaxed = np.empty(C_LANES)
    cdef double[::1] cells = np.empty(2 * n_cells)
    cdef double[::1] own = np.empty(2 * size_b * size_b)
    cdef double[::1] matrices = np.empty(4 * n_cells)
    cdef Carried carried
    carried.forth, carried.back = &matrices[0], &matrices[n_cells]
    carried.half, carried.moved = &matrices[2 * n_cells], &matrices[3 * n_cells]
    row_scratch = make_rows(size_b)
    carried.rows = rows_of(row_scratch, <int>size_b)
    cdef Chain one, two
    two.steps, two.within = &own[0], &own[size_b * size_b]
    cdef double bound, most, near, largest = groups.largest
    cdef double fraction = 2 * (size_a + size_b) * SINGLE
    cdef bint certain
    cdef Py_ssize_t[::1] kept_a = np.empty(total, np.intp)
    cdef Py_ssize_t[::1] kept_b = np.empty(total, np.intp)
    cdef double[::1] bounds = np.empty(total)
    cdef unsigned char[::1] sure = np.empty(total, np.uint8)
    with nogil:
        for r in range(model.shape[0]):
            a, g = model[r], group[r]
            most = marginal_limits[a] / marginal_weight
            near = to_centres[a, g] - most
            for t in range(starts[g] // C_LANES, (starts[g + 1] + C_LANES - 1) // C_LANES):
                interrupted()
                first = max(starts[g], t * C_LANES)
                last = min(starts[g + 1], (t + 1) * C_LANES)
                # Those that follow have smaller spreads.
                if spreads[first] < near:
                    break
                fill_relaxed(
                    &vectors[a, 0, 0], &weights[a, 0], size_a, &tiles[t, 0, 0, 0],
                    &probs[t * C_LANES, 0], size_b,
                    min(probs.shape[0] - t * C_LANES, <Py_ssize_t>C_LANES), size, p,
                    &scratch[0], &relaxed[0],
                )
                n_relaxed += last - first
                for b in range(first, last):
                    lane = b - t * C_LANES
                    if relaxed[lane] > most:
                        continue
                    n_plans += 1
                    for k in range(n_cells):
                        cells[k] = half_power(scratch[k * C_LANES + lane], p)
                    bound = least_cost(
                        &weights[a, 0], &probs[b, 0], &cells[0], <int>size_a, <int>size_b,
                        &cells[n_cells], &tree,
                    )
                    bound = marginal_weight * (bound if p == 1 else pow(bound, 1 / p))
                    if bound > marginal_limits[a]:
                        continue
                    certain = False
                    if transition_weight > 0:
                        certain = is_certain(
                            &cells[0], <int>size_b, fraction * (
                                (size + 16) * largest_cost(
                                    &cells[0], <int>size_a, <int>size_b, &tree
                                ) + 4 * sqrt(<double>size) * largest
                            ), &tree,
                        )
                    if certain:
                        load_chain(chains[b], apart[b], &own[0])
                        one.weights, two.weights = &weights[a, 0], &probs[b, 0]
                        one.steps, one.within = &chains_a[a, 0, 0], &within_a[a, 0, 0]
                        bound += transition_weight * transition(
                            &one, &two, &cells[n_cells], <int>size_b, joint,
                            (limits[a] - bound) / transition_weight, &carried
                        )
                    if bound <= limits[a]:
                        kept_a[count], kept_b[count] = a, b
                        bounds[count], sure[count] = bound, certain
                        count += 1
    return (
        np.array(kept_a[:count]), np.array(kept_b[:count]), np.array(bounds[:count]),
        np.array(sure[:count]).view(bool), (n_relaxed, n_plans),
    )


cdef bint is_certain(
    const double* cost, int size, double slack, const Tree* tree
) noexcept nogil:
    """Whether a plan of the least cost stays the only one under costs of more digits.

    It does if every cell outside of its tree costs more than the tree by the rounding
    of as many cells as a cycle has.
    """
    cdef int i, j
    for i in range(size):
        for j in range(size):
            if tree.depth[i] < 0 or tree.depth[size + j] < 0:
                continue
            if tree.parent[i] == size + j or tree.parent[size + j] == i:
                continue
            if cost[i * size + j] - tree.price[i] - tree.price[size + j] <= slack:
                return False
    return True


cdef void load_chain(
    const float[:, ::1] chain, const float[::1] apart, double* own
) noexcept nogil:
    """Write a transition matrix, its rows summing to one, and costs between states."""
    cdef Py_ssize_t size = chain.shape[0], i, j, k = 0
    cdef double* within = own + size * size
    cdef double total
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += chain[i, j]
        for j in range(size):
            own[i * size + j] = chain[i, j] / total if total > 0 else 0.0
        within[i * size + i] = 0.0
        for j in range(i):
            within[i * size + j] = within[j * size + i] = apart[k]
            k += 1


cdef double transition(
    const Chain* a,
    const Chain* b,
    const double* plan,
    int size,
    bint joint,
    double limit,
    const Carried* carried,
) except? -1.0 nogil:
    """The transition component of two models under a registration, for p = 1.

    Above a limit, the part that compares the states of the first model is enough.
    """
    cdef double* forth = carried.forth
    cdef double* back = carried.back
    cdef double total
    conditionals(plan, size, forth, back)
    carry_chain(forth, b.steps, back, size, joint, carried.half, carried.moved)
    total = rows_cost(
        0.0, a.weights, a.steps, carried.moved, a.within, size, 1.0, &carried.rows
    )
    if total > limit:
        return total
    carry_chain(back, a.steps, forth, size, joint, carried.half, carried.moved)
    return rows_cost(
        total, b.weights, b.steps, carried.moved, b.within, size, 1.0, &carried.rows
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
