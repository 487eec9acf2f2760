"""EM of Gaussian states, many models in one loop; see `_gaussian_em`."""

import numpy as np

from libc.math cimport log

from skawhmm.emissions._gaussian_densities cimport (
    Frames,
    add_diag_moments,
    add_full_moments,
    cholesky,
    cholesky_whitener,
    densities_size,
    diag_log_density,
    frame_count,
    full_log_density,
    log_norm,
)
from skawhmm.numerics._forward_backward cimport passes_each, passes_size
from skawhmm.utils._interruption cimport interrupted

cdef extern from "emissions/_gaussian_em_kernels.h" nogil:
    """
    /* A state with less than this many expected frames is empty and keeps its
       parameters. */
    #define EMPTY_COUNT 1e-8
    """
    const double EMPTY_COUNT
    void fill_shrunk(
        const double* seconds,
        const double* prior,
        const double* gaps,
        double gap,
        double relevance,
        Py_ssize_t size,
        double* shrunk,
    )
    void fill_spread(
        const double* seconds,
        const double* steps,
        double step,
        double total,
        Py_ssize_t size,
        double* covars,
        double* shared,
    )


cdef const double* cells_of(array) except NULL:
    """Pointer to covariances of a stack of models, which may be read-only."""
    cdef const double[:, :, ::1] variances
    cdef const double[:, :, :, ::1] matrices
    if array.ndim == 3:
        variances = array
        return &variances[0, 0, 0]
    matrices = array
    return &matrices[0, 0, 0, 0]


cdef double* changed_cells_of(array) except NULL:
    """Writable pointer to an array with the shape of the covariances of a stack."""
    cdef double[:, :, ::1] variances
    cdef double[:, :, :, ::1] matrices
    if array.ndim == 3:
        variances = array
        return &variances[0, 0, 0]
    matrices = array
    return &matrices[0, 0, 0, 0]


cdef Frames frames_of(
    const double[::1] flat,
    const double[::1] seen,
    Py_ssize_t n_features,
    Py_ssize_t first,
    Py_ssize_t last,
) noexcept nogil:
    """The frames first to last of a flat array, and their mask."""
    cdef Frames frames
    frames.values, frames.seen = &flat[first * n_features], NULL
    if seen.shape[0] > 0:
        frames.seen = &seen[first * n_features]
    frames.stride = frames.n_frames = last - first
    frames.n_features = n_features
    return frames


def fill_expectations(
    const double[::1] frames,
    const double[::1] seen,
    const Py_ssize_t[::1] offsets,
    const Py_ssize_t[::1] firsts,
    chains,
    states,
    const Py_ssize_t[::1] active,
    expected,
    moments,
    double[::1] values,
):
    """E step of several models, each with its own sequences.

    Parameters
    ----------
    frames, seen : ndarray of shape (n_frames * n_features,)
        The frames of each model, flat; their mask, empty if all was observed.

    offsets, firsts : ndarray of int
        Where sequences begin and end, and which of these are the bounds of models.

    chains, states : tuple of ndarray
        Start and transition probabilities; means and covariances of all models.

    active : ndarray of int of shape (n_active,)
        Which models.

    expected : tuple of ndarray
        Starts, moves and frames per state, one row per active model; zeros that receive
        the sums.

    moments : Moments
        Likewise.

    values : ndarray of shape (n_active,)
        Receives the log likelihoods.
    """
    cdef const double[:, ::1] startprobs = chains[0]
    cdef const double[:, :, ::1] transmats = chains[1]
    cdef const double[:, :, ::1] means = states[0]
    cdef const double* covars = cells_of(states[1])
    cdef double[:, ::1] starts = expected[0]
    cdef double[:, :, ::1] moves = expected[1]
    cdef double[:, ::1] sizes = expected[2]
    cdef double[:, :, ::1] counts = moments.counts
    cdef double[:, :, ::1] sums = moments.firsts
    cdef double* seconds = changed_cells_of(moments.seconds)
    cdef Py_ssize_t n_components = means.shape[1], n_features = means.shape[2]
    cdef Py_ssize_t n_cells = states[1][0, 0].size, n, m
    cdef Frames own
    cdef States model
    cdef Sums total
    model.n_components, model.n_features = n_components, n_features
    model.n_cells, model.is_full = n_cells, states[1].ndim == 4
    cdef Room room = make_room(offsets, firsts, active, &model)
    with nogil:
        for n in range(active.shape[0]):
            interrupted()
            m = active[n]
            own = frames_of(
                frames, seen, n_features, offsets[firsts[m]], offsets[firsts[m + 1]]
            )
            model.means = &means[m, 0, 0]
            model.covars = covars + m * n_components * n_cells
            total.counts, total.firsts = &counts[n, 0, 0], &sums[n, 0, 0]
            total.seconds = seconds + n * n_components * n_cells
            values[n] = add_expectation(
                &own, &offsets[firsts[m]], firsts[m + 1] - firsts[m], &startprobs[m, 0],
                &transmats[m, 0, 0], &model, &starts[n, 0], &moves[n, 0, 0],
                &sizes[n, 0], &total, &room.scratch,
            )


cdef Room make_room(
    const Py_ssize_t[::1] offsets,
    const Py_ssize_t[::1] firsts,
    const Py_ssize_t[::1] active,
    const States* model,
):
    """Scratch for the largest of some models, which have the shapes of `model`."""
    cdef Py_ssize_t n_components = model.n_components, n_features = model.n_features
    cdef Py_ssize_t n_cells = model.n_cells, n_frames = 0, longest = 0, n, m, s
    cdef Room room = Room()
    for n in range(active.shape[0]):
        m = active[n]
        n_frames = max(n_frames, offsets[firsts[m + 1]] - offsets[firsts[m]])
        for s in range(firsts[m], firsts[m + 1]):
            longest = max(longest, offsets[s + 1] - offsets[s])
    room.rows = np.empty((2, n_components, n_frames))
    room.factors = np.empty(n_components * (n_cells + 1))
    room.densities = np.empty(densities_size(n_components, n_features, n_cells))
    room.weights = np.empty(passes_size(n_components, longest))
    room.update = np.empty(3 * n_features + 2 * n_cells)
    room.scratch.logs, room.scratch.post = &room.rows[0, 0, 0], &room.rows[1, 0, 0]
    room.scratch.whiteners = &room.factors[0]
    room.scratch.norms = &room.factors[n_components * n_cells]
    room.scratch.densities, room.scratch.passes = &room.densities[0], &room.weights[0]
    room.scratch.update = &room.update[0]
    return room


cdef double add_expectation(
    const Frames* frames,
    const Py_ssize_t* offsets,
    Py_ssize_t n_sequences,
    const double* startprob,
    const double* transmat,
    const States* model,
    double* starts,
    double* moves,
    double* sizes,
    const Sums* sums,
    const Scratch* scratch,
) except? -1.0 nogil:
    """E step of one model; returns its log likelihood, adds its expected statistics."""
    cdef Py_ssize_t k
    cdef double value
    fill_densities(frames, model, scratch)
    value = passes_each(
        scratch.logs, frames.n_frames, offsets, n_sequences, startprob, transmat,
        model.n_components, scratch.post, starts, moves, scratch.passes,
    )
    add_moments(frames, model, sums, scratch)
    # Where values are missing, moments of a channel count fewer frames.
    for k in range(model.n_components):
        sizes[k] = frame_count(scratch.post + k * frames.n_frames, frames.n_frames)
    return value


cdef int fill_densities(
    const Frames* frames, const States* model, const Scratch* scratch
) except -1 nogil:
    """Fill log densities (n_components, n_frames) under the states of one model."""
    cdef Py_ssize_t size = model.n_features, n_cells = model.n_cells, k
    cdef double log_det
    if not model.is_full:
        diag_log_density(
            frames, model.means, model.covars, model.n_components, scratch.logs,
            scratch.densities,
        )
        return 0
    for k in range(model.n_components):
        log_det = cholesky_whitener(
            model.covars + k * n_cells, size, scratch.whiteners + k * n_cells,
            scratch.densities,
        )
        scratch.norms[k] = log_norm(size, log_det)
    full_log_density(
        frames, model.means, scratch.whiteners, scratch.norms, model.n_components,
        scratch.logs, scratch.densities,
    )


cdef int add_moments(
    const Frames* frames, const States* model, const Sums* sums, const Scratch* scratch
) except -1 nogil:
    """Add the moments of the frames about the means, weighted by `scratch.post`."""
    if not model.is_full:
        add_diag_moments(
            frames, scratch.post, frames.n_frames, model.means, model.n_components,
            sums.counts, sums.firsts, sums.seconds,
        )
    else:
        add_full_moments(
            frames, scratch.post, frames.n_frames, model.means, model.n_components,
            sums.counts, sums.firsts, sums.seconds, scratch.densities,
        )


def fill_given(
    const double[::1] frames,
    const double[::1] seen,
    const Py_ssize_t[::1] offsets,
    const Py_ssize_t[::1] firsts,
    const Py_ssize_t[::1] labels,
    states,
    allowed,
    expected,
    moments,
):
    """Statistics of frames whose states are given: within-state moments, counted steps.

    Parameters
    ----------
    frames, seen, offsets, firsts : ndarray
        As in `fill_expectations`.

    labels : ndarray of int of shape (n_frames,)
        State of every frame.

    states : tuple of ndarray
        Means and covariances of a stack of one model: one state, repeated, that all
        frames belong to at first.

    allowed : tuple of ndarray
        1 for starts and transitions that the topology allows, else 0.

    expected, moments : tuple of ndarray
        Starts and moves, and moments, one row per model; zeros that receive the sums.
    """
    cdef const double[:, :, ::1] means = states[0]
    cdef const double[::1] open_starts = allowed[0]
    cdef const double[:, ::1] open_moves = allowed[1]
    cdef double[:, ::1] starts = expected[0]
    cdef double[:, :, ::1] moves = expected[1]
    cdef double[:, :, ::1] counts = moments.counts
    cdef double[:, :, ::1] sums = moments.firsts
    cdef double* seconds = changed_cells_of(moments.seconds)
    cdef Py_ssize_t n_components = means.shape[1], n_features = means.shape[2]
    cdef Py_ssize_t n_models = firsts.shape[0] - 1, n_frames = 0, m
    cdef Frames own
    cdef States model
    cdef Sums total
    cdef Scratch scratch
    for m in range(n_models):
        n_frames = max(n_frames, offsets[firsts[m + 1]] - offsets[firsts[m]])
    model.n_features, model.is_full = n_features, states[1].ndim == 4
    model.n_cells = n_features * n_features if model.is_full else n_features
    cdef double[:, ::1] post = np.empty((n_components, n_frames))
    cdef double[::1] room = np.empty(
        densities_size(n_components, n_features, model.n_cells)
    )
    scratch.post, scratch.densities = &post[0, 0], &room[0]
    model.means, model.n_components = &means[0, 0, 0], n_components
    with nogil:
        for m in range(n_models):
            interrupted()
            own = frames_of(
                frames, seen, n_features, offsets[firsts[m]], offsets[firsts[m + 1]]
            )
            total.counts, total.firsts = &counts[m, 0, 0], &sums[m, 0, 0]
            total.seconds = seconds + m * n_components * model.n_cells
            mark_states(
                &labels[offsets[firsts[m]]], own.n_frames, n_components, scratch.post
            )
            count_steps(offsets, firsts[m], firsts[m + 1], labels, starts[m], moves[m])
            keep_open(open_starts, open_moves, starts[m], moves[m])
            add_moments(&own, &model, &total, &scratch)


cdef void mark_states(
    const Py_ssize_t* labels,
    Py_ssize_t n_frames,
    Py_ssize_t n_components,
    double* post,
) noexcept nogil:
    """Fill state probabilities that are 1 for the state of a frame, else 0."""
    cdef Py_ssize_t k, t
    for k in range(n_components):
        for t in range(n_frames):
            post[k * n_frames + t] = 1.0 if labels[t] == k else 0.0


cdef void count_steps(
    const Py_ssize_t[::1] offsets,
    Py_ssize_t first,
    Py_ssize_t last,
    const Py_ssize_t[::1] labels,
    double[::1] starts,
    double[:, ::1] moves,
) noexcept nogil:
    """Count the starts and moves of some sequences."""
    cdef Py_ssize_t s, t
    for s in range(first, last):
        starts[labels[offsets[s]]] += 1.0
        for t in range(offsets[s] + 1, offsets[s + 1]):
            moves[labels[t - 1], labels[t]] += 1.0


cdef void keep_open(
    const double[::1] open_starts,
    const double[:, ::1] open_moves,
    double[::1] starts,
    double[:, ::1] moves,
) noexcept nogil:
    """Drop what the topology forbids; half a count per row keeps the rest possible."""
    cdef Py_ssize_t size = starts.shape[0], i, j
    cdef double n_open
    for i in range(size):
        starts[i] = starts[i] + 1.0 / size if open_starts[i] > 0 else 0.0
        n_open = 0.0
        for j in range(size):
            n_open += open_moves[i, j]
        for j in range(size):
            moves[i, j] = (moves[i, j] + 0.5 / n_open) * open_moves[i, j]


def fill_updates(
    moments,
    const Py_ssize_t[::1] rows,
    states,
    prior,
    double relevance,
    double floor,
    bint is_pooled,
    const Py_ssize_t[::1] active,
):
    """M step of the states of several models, in place, but for the floor of matrices.

    Parameters
    ----------
    moments : Moments
        Expected moments, with a leading axis.

    rows, active : ndarray of int of shape (n_active,)
        Which rows of them belong to which models.

    states, prior : tuple of ndarray
        Means and covariances of all models, changed in place; what they shrink to, one
        for each or one for all.

    relevance : float
        Weight of the prior in frames per state.

    floor : float
        Least variance.

    is_pooled : bool
        Whether covariances are pooled (over channels, or over states if they are full).

    Returns
    -------
    low : ndarray of int of shape (n_low,)
        Flat indices of the matrices with eigenvalues below the floor.
    """
    cdef double[:, :, ::1] means = states[0]
    cdef const double[:, :, ::1] prior_means = prior[0]
    cdef double* covars = changed_cells_of(states[1])
    cdef const double* prior_covars = cells_of(prior[1])
    cdef double[:, :, ::1] counts = moments.counts
    cdef double[:, :, ::1] firsts = moments.firsts
    cdef double* seconds = changed_cells_of(moments.seconds)
    cdef Py_ssize_t n_components = means.shape[1], n_features = means.shape[2]
    cdef bint is_full = states[1].ndim == 4
    cdef Py_ssize_t n_cells = n_features * n_features if is_full else n_features
    cdef Py_ssize_t n, m, k, row, stride = n_components * n_cells
    cdef Sums sums
    cdef States other
    cdef double[::1] scratch = np.empty(3 * n_features + n_cells)
    cdef Py_ssize_t[::1] low = np.empty(rows.shape[0] * n_components + 1, np.intp)
    cdef Py_ssize_t n_low = 0, first
    other.n_components, other.n_features = n_components, n_features
    other.n_cells, other.is_full = n_cells, is_full
    with nogil:
        for n in range(rows.shape[0]):
            interrupted()
            m, row = active[n], min(active[n], prior_means.shape[0] - 1)
            sums.counts = &counts[rows[n], 0, 0]
            sums.firsts = &firsts[rows[n], 0, 0]
            sums.seconds = seconds + rows[n] * stride
            other.means = &prior_means[row, 0, 0]
            other.covars = prior_covars + row * stride
            first = n_low
            n_low += update_model(
                &sums, &other, relevance, floor, is_pooled, &means[m, 0, 0],
                covars + m * stride, &scratch[0], &low[first],
            )
            for k in range(first, n_low):
                low[k] += m * n_components
    return np.asarray(low)[:n_low]


cdef Py_ssize_t update_model(
    const Sums* sums,
    const States* prior,
    double relevance,
    double floor,
    bint is_pooled,
    double* means,
    double* covars,
    double* scratch,
    Py_ssize_t* low,
) except -1 nogil:
    """M step of the states of one model; returns how many matrices are too small.

    Their states are written to `low`: they have eigenvalues below the floor. Scratch
    has room for three means and a covariance.
    """
    cdef Py_ssize_t n_low = 0, k
    if not prior.is_full:
        diag_update(sums, prior, relevance, floor, is_pooled, means, covars)
        return 0
    full_update(sums, prior, relevance, is_pooled, means, covars, scratch)
    for k in range(prior.n_components):
        if not cholesky(covars + k * prior.n_cells, floor, prior.n_features, scratch):
            low[n_low] = k
            n_low += 1
    return n_low


cdef void diag_update(
    const Sums* sums,
    const States* prior,
    double relevance,
    double floor,
    bint is_pooled,
    double* means,
    double* covars,
) noexcept nogil:
    """Means and variances of the M step; floors are a constraint, not an addition."""
    cdef Py_ssize_t size = prior.n_features, k, c, cell
    cdef double spread, weight, total, gap, step, second
    for k in range(prior.n_components):
        spread = weight = 0.0
        for c in range(size):
            cell = k * size + c
            total = sums.counts[cell] + relevance
            if total < EMPTY_COUNT:
                continue
            gap = prior.means[cell] - means[cell]
            step = (sums.firsts[cell] + relevance * gap) / total
            second = sums.seconds[cell]
            second += relevance * (prior.covars[cell] + gap * gap)
            means[cell] += step
            covars[cell] = max(second / total - step * step, floor)
            spread += total * (second / total - step * step)
            weight += total
        if is_pooled and weight > 0:
            for c in range(size):
                covars[k * size + c] = max(spread / weight, floor)


cdef void full_update(
    const Sums* sums,
    const States* prior,
    double relevance,
    bint is_pooled,
    double* means,
    double* covars,
    double* scratch,
) noexcept nogil:
    """Means and covariance matrices of the M step, whatever their eigenvalues."""
    cdef Py_ssize_t size = prior.n_features, n_cells = prior.n_cells, k, c, cell
    cdef double* step = scratch
    cdef double* gap = scratch + size
    cdef double* room = scratch + 2 * size
    cdef double* shared = scratch + 3 * size
    cdef double total, weight = 0.0
    for c in range(n_cells):
        shared[c] = 0.0
    for k in range(prior.n_components):
        total = sums.counts[k * size] + relevance
        if total < EMPTY_COUNT:
            continue
        for c in range(size):
            cell = k * size + c
            gap[c] = prior.means[cell] - means[cell]
            step[c] = (sums.firsts[cell] + relevance * gap[c]) / total
            means[cell] += step[c]
        for c in range(size):
            cell = k * n_cells + c * size
            # Without relevance the prior may be the model itself.
            if relevance > 0:
                fill_shrunk(
                    sums.seconds + cell, prior.covars + cell, gap, gap[c], relevance,
                    size, room,
                )
            fill_spread(
                room if relevance > 0 else sums.seconds + cell, step, step[c], total,
                size, covars + cell, shared + c * size,
            )
        weight += total
    if is_pooled:
        for k in range(prior.n_components):
            for c in range(n_cells):
                covars[k * n_cells + c] = shared[c] / weight


def is_below(const double[:, :, ::1] covars, double floor):
    """Return whether some eigenvalue of each matrix is below the floor."""
    cdef Py_ssize_t size = covars.shape[1], n
    low = np.empty(covars.shape[0], bool)
    cdef char[::1] is_low = low.view(np.int8)
    cdef double[:, ::1] upper = np.empty((size, size))
    with nogil:
        for n in range(covars.shape[0]):
            interrupted()
            is_low[n] = not cholesky(&covars[n, 0, 0], floor, size, &upper[0, 0])
    return low


def composed(const double[:, ::1] values, const double[:, :, ::1] vectors):
    """Return symmetric matrices with given eigenvalues and eigenvectors.

    Written as loops, since the rounding of a matrix product depends on the batch size.
    """
    cdef Py_ssize_t size = values.shape[1], n, r, c, e
    cdef double[:, :, ::1] matrices = np.zeros((values.shape[0], size, size))
    with nogil:
        for n in range(values.shape[0]):
            for c in range(size):
                interrupted()
                for e in range(c + 1):
                    for r in range(size):
                        matrices[n, c, e] += (
                            values[n, r] * vectors[n, c, r] * vectors[n, e, r]
                        )
                    matrices[n, e, c] = matrices[n, c, e]
    return np.asarray(matrices)


def log_priors(states, prior, const Py_ssize_t[::1] active):
    """Log priors of the states of some models, per frame of relevance.

    Parameters
    ----------
    states, prior : tuple of ndarray
        Means and covariances of all models; what they shrink to, one for each or one
        for all.

    active : ndarray of int of shape (n_active,)
        Which models.

    Returns
    -------
    values : ndarray of shape (n_active,)
        One per model, up to a constant.
    """
    cdef const double[:, :, ::1] means = states[0]
    cdef const double[:, :, ::1] prior_means = prior[0]
    cdef const double* covars = cells_of(states[1])
    cdef const double* prior_covars = cells_of(prior[1])
    cdef Py_ssize_t n_components = means.shape[1], n_features = means.shape[2]
    cdef bint is_full = states[1].ndim == 4
    cdef Py_ssize_t n_cells = n_features * n_features if is_full else n_features
    cdef Py_ssize_t n, m, row, stride = n_components * n_cells
    cdef States model, other
    cdef double[::1] scratch = np.empty(2 * n_cells)
    cdef double[::1] values = np.empty(active.shape[0])
    model.n_components, model.n_features = n_components, n_features
    model.n_cells, model.is_full = n_cells, is_full
    with nogil:
        for n in range(active.shape[0]):
            interrupted()
            m, row = active[n], min(active[n], prior_means.shape[0] - 1)
            model.means, model.covars = &means[m, 0, 0], covars + m * stride
            other.means = &prior_means[row, 0, 0]
            other.covars = prior_covars + row * stride
            values[n] = log_prior(&model, &other, &scratch[0])
    return np.asarray(values)


cdef double log_prior(
    const States* model, const States* prior, double* scratch
) except? -1.0 nogil:
    """Log prior at the states of one model; scratch has room for two covariances."""
    cdef Py_ssize_t size = model.n_features, n_cells = model.n_cells, k
    cdef double value = 0.0
    for k in range(model.n_components):
        if model.is_full:
            value -= 0.5 * full_gap(
                model.means + k * size, model.covars + k * n_cells,
                prior.means + k * size, prior.covars + k * n_cells, size, scratch,
                scratch + n_cells,
            )
        else:
            value -= 0.5 * diag_gap(
                model.means + k * size, model.covars + k * n_cells,
                prior.means + k * size, prior.covars + k * n_cells, size,
            )
    return value


cdef double diag_gap(
    const double* mean,
    const double* covar,
    const double* prior_mean,
    const double* prior_covar,
    Py_ssize_t size,
) noexcept nogil:
    """Minus twice the log prior of a state with diagonal covariance."""
    cdef double value = 0.0, gap
    cdef Py_ssize_t c
    for c in range(size):
        gap = prior_mean[c] - mean[c]
        value += log(covar[c]) + (prior_covar[c] + gap * gap) / covar[c]
    return value


cdef double full_gap(
    const double* mean,
    const double* covar,
    const double* prior_mean,
    const double* prior_covar,
    Py_ssize_t size,
    double* whitener,
    double* upper,
) except? -1.0 nogil:
    """Minus twice the log prior of a state with full covariance."""
    cdef double value = cholesky_whitener(covar, size, whitener, upper)
    cdef double whitened
    cdef Py_ssize_t r, c, e
    for r in range(size):
        if r % 32 == 31:
            interrupted()
        whitened = 0.0
        for c in range(r + 1):
            whitened += whitener[r * size + c] * (prior_mean[c] - mean[c])
            for e in range(r + 1):
                value += (
                    whitener[r * size + c] * whitener[r * size + e]
                    * prior_covar[c * size + e]
                )
        value += whitened * whitened
    return value
