"""Log densities and likelihoods of many models in one loop; see `_gaussian_scores`."""

import numpy as np

from libc.math cimport INFINITY, fabs, sqrt
from libc.string cimport memcpy

from skawhmm.emissions._gaussian_densities cimport (
    Frames,
    densities_size,
    diag_log_density,
    full_log_density,
)
from skawhmm.numerics._forward_backward cimport log_likelihood, passes_size
from skawhmm.numerics._paths_kernels cimport keep_least_rank
from skawhmm.utils._interruption cimport interrupted

cdef extern from *:
    """
    /* Relative distance at which a frame still counts as lying on a state's support. */
    #define SUPPORT_TOLERANCE 1e-7
    """
    const double SUPPORT_TOLERANCE


cdef Stack stack_of(densities):
    """The states of a stack of models, as pointers."""
    cdef const double[:, :, ::1] means = densities.means
    cdef const double[:, ::1] norms = densities.norms
    cdef const double[:, :, ::1] scales = densities.scales
    cdef Stack stack
    stack.n_components, stack.n_features = means.shape[1], means.shape[2]
    stack.is_full = densities.factors.ndim == 4
    stack.n_cells = stack.n_features * (stack.n_features if stack.is_full else 1)
    stack.means, stack.norms = &means[0, 0, 0], &norms[0, 0]
    stack.scales = &scales[0, 0, 0]
    stack.factors, stack.nulls = cells_of(densities.factors), cells_of(densities.nulls)
    return stack


cdef const double* cells_of(array) except NULL:
    cdef const double[:, :, ::1] rows
    cdef const double[:, :, :, ::1] matrices
    if array.ndim == 3:
        rows = array
        return &rows[0, 0, 0]
    matrices = array
    return &matrices[0, 0, 0, 0]


def make_room(densities, n_timesteps):
    """Return scratch for sequences of at most this many frames, for `room_of`."""
    n_components, n_features = densities.means.shape[1:]
    size = (n_components + n_features) * n_timesteps
    size += n_components * (n_components + n_features)
    n_cells = int(np.prod(densities.factors.shape[2:]))
    size += densities_size(n_components, n_features, n_cells)
    size += passes_size(n_components, n_timesteps)
    return np.empty(size), np.empty(n_components, np.intp), np.empty(
        2 * n_components, np.int8
    )


cdef Room room_of(
    double[::1] numbers,
    Py_ssize_t[::1] ranks,
    char[::1] alive,
    const Stack* stack,
    Py_ssize_t n_timesteps,
) noexcept nogil:
    """Scratch as pointers into what `make_room` returned."""
    cdef Py_ssize_t n_components = stack.n_components, n_features = stack.n_features
    cdef Room room
    room.logs = &numbers[0]
    room.gaps = room.logs + n_components * n_timesteps
    room.means = room.gaps + n_features * n_timesteps
    room.chain = room.means + n_components * n_features
    room.densities = room.chain + n_components * n_components
    room.passes = room.densities + densities_size(
        n_components, n_features, stack.n_cells
    )
    room.ranks, room.alive = &ranks[0], &alive[0]
    return room


cdef Py_ssize_t fill_chain_densities(
    const Frames* frames,
    const Stack* stack,
    Py_ssize_t i,
    Py_ssize_t size,
    const double* startprob,
    const double* transmat,
    const Room* room,
) except -1 nogil:
    """Fill log densities under the first `size` states of model i.

    Only the flattest supports are kept. `room.logs` gets rows of `frames.n_frames`.
    Returns the dimension of the supports, summed over frames.
    """
    cdef Py_ssize_t k, t, total, least, most
    fill_model_densities(frames, stack, i, size, NULL, room)
    fill_ranks(stack, i, size, room.ranks)
    least = most = room.ranks[0]
    for k in range(size):
        least, most = min(least, room.ranks[k]), max(most, room.ranks[k])
    if least == most:
        return least * frames.n_frames
    keep_least_rank(
        room.logs, room.ranks, startprob, transmat, size, frames.n_frames, room.alive
    )
    total = 0
    for t in range(frames.n_frames):
        least = most
        for k in range(size):
            if room.logs[k * frames.n_frames + t] > -INFINITY:
                least = min(least, room.ranks[k])
        total += least
    return total


cdef void fill_ranks(
    const Stack* stack, Py_ssize_t i, Py_ssize_t size, Py_ssize_t* ranks
) noexcept nogil:
    """Fill the dimension of the support of every state of one model."""
    cdef Py_ssize_t width = stack.n_cells // stack.n_features, k, r
    cdef const double* row
    for k in range(size):
        ranks[k] = 0
        for r in range(stack.n_features):
            row = stack.factors + (i * stack.n_components + k) * stack.n_cells
            ranks[k] += is_any(row + r * width, width)


cdef inline bint is_any(const double* values, Py_ssize_t size) noexcept nogil:
    """Whether one of the values is not 0."""
    cdef Py_ssize_t c
    for c in range(size):
        if values[c] != 0:
            return True
    return False


cdef int fill_model_densities(
    const Frames* frames,
    const Stack* stack,
    Py_ssize_t i,
    Py_ssize_t size,
    const double* origin,
    const Room* room,
) except -1 nogil:
    """Fill log densities of the frames under one model, on and off the supports.

    Frames are centred at the origin, or at their mean if it is NULL.
    """
    cdef Py_ssize_t n_features = stack.n_features, n_cells = stack.n_cells, k, c
    cdef Py_ssize_t state = i * stack.n_components
    cdef const double* means = stack.means + state * n_features
    cdef Frames centred
    cdef double centre
    if not stack.is_full:
        diag_log_density(
            frames, means, stack.factors + state * n_cells, size, room.logs,
            room.densities,
        )
    else:
        # Far from the origin the whitened frames would lose digits.
        centred.values, centred.seen = room.gaps, NULL
        centred.stride = centred.n_frames = frames.n_frames
        centred.n_features = n_features
        for c in range(n_features):
            centre = centred_channel(
                frames, c, origin, room.gaps + c * frames.n_frames
            )
            for k in range(size):
                room.means[k * n_features + c] = means[k * n_features + c] - centre
        full_log_density(
            &centred, room.means, stack.factors + state * n_cells, stack.norms + state,
            size, room.logs, room.densities,
        )
    for k in range(size):
        if is_any(stack.nulls + (state + k) * n_cells, n_cells):
            if stack.is_full:
                leave_full_support(
                    frames, stack, state + k, room.logs + k * frames.n_frames
                )
            else:
                leave_diag_support(
                    frames, stack, state + k, room.logs + k * frames.n_frames
                )


cdef double centred_channel(
    const Frames* frames, Py_ssize_t c, const double* origin, double* gaps
) noexcept nogil:
    """Fill a channel minus its centre (the origin, or the mean); return the centre."""
    cdef const double* row = frames.values + c * frames.stride
    cdef double total = 0.0, count = 0.0, centre = 0.0
    cdef Py_ssize_t t
    for t in range(frames.n_frames):
        total += row[t]
        count += 1.0 if frames.seen == NULL else frames.seen[c * frames.stride + t]
    if origin != NULL:
        centre = origin[c]
    elif count > 0:
        centre = total / count
    for t in range(frames.n_frames):
        gaps[t] = row[t] - centre
    return centre


cdef int leave_diag_support(
    const Frames* frames, const Stack* stack, Py_ssize_t state, double* out
) except -1 nogil:
    """Set the log density of a state to minus infinity off its support."""
    cdef Py_ssize_t n_features = stack.n_features, c, t, cell
    cdef const double* means = stack.means + state * n_features
    cdef const double* nulls = stack.nulls + state * n_features
    cdef double gap, size, value
    for t in range(frames.n_frames):
        if t % 64 == 63:
            interrupted()
        gap = size = 0.0
        for c in range(n_features):
            cell = c * frames.stride + t
            value = frames.values[cell]
            size += value * value
            if nulls[c] > 0 and (frames.seen == NULL or frames.seen[cell] > 0):
                gap = max(gap, fabs(value - means[c]))
        if gap > SUPPORT_TOLERANCE * (stack.scales[state * n_features] + sqrt(size)):
            out[t] = -INFINITY


cdef int leave_full_support(
    const Frames* frames, const Stack* stack, Py_ssize_t state, double* out
) except -1 nogil:
    """Set the log density of a state to minus infinity off its support."""
    cdef Py_ssize_t n_features = stack.n_features, n_cells = stack.n_cells, r, c, t
    cdef const double* means = stack.means + state * n_features
    cdef const double* scales = stack.scales + state * n_features
    cdef const double* nulls = stack.nulls + state * n_cells
    cdef double spread = is_any(stack.factors + state * n_cells, n_cells)
    cdef double gap, size, part, value
    for t in range(frames.n_frames):
        if t % 64 == 63:
            interrupted()
        gap = size = 0.0
        for r in range(n_features):
            value = frames.values[r * frames.stride + t] / scales[r]
            size += value * value
            part = 0.0
            for c in range(n_features):
                value = frames.values[c * frames.stride + t] - means[c]
                part += nulls[r * n_features + c] * value
            gap = max(gap, fabs(part))
        if gap > SUPPORT_TOLERANCE * (spread + sqrt(size)):
            out[t] = -INFINITY


def chain_densities(
    const double[:, ::1] frames,
    const double[:, ::1] seen,
    densities,
    Py_ssize_t i,
    startprob,
    transmat,
):
    """Log densities under one model of a stack, only the flattest supports kept.

    Parameters
    ----------
    frames, seen : ndarray of shape (n_features, n_timesteps)
        Raw frames with 0 where not observed, and the mask (or an empty one).

    densities : Densities
        Of a stack of models.

    i : int
        The model.

    startprob, transmat : ndarray
        Its chain, without padding.

    Returns
    -------
    logs : ndarray of shape (n_components, n_timesteps)
        Log densities.
    """
    cdef const double[::1] start = np.ascontiguousarray(startprob)
    cdef const double[:, ::1] chain = np.ascontiguousarray(transmat)
    cdef Frames own = sequence_of(frames, seen)
    cdef Stack stack = stack_of(densities)
    numbers, ranks, alive = make_room(densities, own.n_frames)
    cdef Room room = room_of(numbers, ranks, alive, &stack, own.n_frames)
    cdef double[:, ::1] logs = np.empty((start.shape[0], own.n_frames))
    room.logs = &logs[0, 0]
    with nogil:
        fill_chain_densities(
            &own, &stack, i, start.shape[0], &start[0], &chain[0, 0], &room
        )
    return np.asarray(logs)


def frame_densities(
    const double[:, ::1] frames,
    const double[:, ::1] seen,
    densities,
    Py_ssize_t i,
    Py_ssize_t size,
):
    """Log densities under the states of one model, each frame on its own.

    Parameters
    ----------
    frames, seen, densities, i :
        As in `chain_densities`.

    size : int
        Number of states of the model, without padding.

    Returns
    -------
    logs : ndarray of shape (size, n_timesteps)
        Log densities. Other frames do not change those of a frame by a bit.

    ranks : ndarray of int of shape (size,)
        Dimensions of the supports of the states.
    """
    cdef const double[::1] origin = densities.means[i, :size].mean(axis=0)
    cdef Frames own = sequence_of(frames, seen)
    cdef Stack stack = stack_of(densities)
    numbers, ranks, alive = make_room(densities, own.n_frames)
    cdef Room room = room_of(numbers, ranks, alive, &stack, own.n_frames)
    cdef double[:, ::1] logs = np.empty((size, own.n_frames))
    room.logs = &logs[0, 0]
    with nogil:
        fill_model_densities(&own, &stack, i, size, &origin[0], &room)
        fill_ranks(&stack, i, size, room.ranks)
    return np.asarray(logs), ranks[:size]


cdef Frames sequence_of(
    const double[:, ::1] frames, const double[:, ::1] seen
) noexcept nogil:
    """One sequence and its mask, which may be empty."""
    cdef Frames own
    own.values, own.seen = &frames[0, 0], NULL
    if seen.shape[0] > 0:
        own.seen = &seen[0, 0]
    own.n_features, own.n_frames = frames.shape[0], frames.shape[1]
    own.stride = own.n_frames
    return own


cdef double score(
    const Frames* frames,
    const Stack* stack,
    Py_ssize_t i,
    Py_ssize_t size,
    const double* startprob,
    const double* transmat,
    const Room* room,
    Py_ssize_t* rank,
) except? -1.0 nogil:
    """Log likelihood under model i, whose matrix is padded; writes the dimension."""
    cdef Py_ssize_t k
    for k in range(size):
        memcpy(
            room.chain + k * size, transmat + k * stack.n_components,
            size * sizeof(double),
        )
    rank[0] = fill_chain_densities(
        frames, stack, i, size, startprob, room.chain, room
    )
    return log_likelihood(
        room.logs, frames.n_frames, startprob, room.chain, size, frames.n_frames,
        room.passes,
    )


def score_models(
    const double[:, ::1] frames,
    const double[:, ::1] seen,
    densities,
    const double[:, ::1] startprobs,
    const double[:, :, ::1] transmats,
    const Py_ssize_t[::1] sizes,
    const Py_ssize_t[::1] models,
    double[::1] out,
):
    """Fill the log likelihoods of one sequence under some models of a stack.

    Parameters
    ----------
    frames, seen, densities :
        As in `chain_densities`.

    startprobs, transmats, sizes : ndarray
        Start probabilities, transition matrices and numbers of states.

    models : ndarray of int of shape (n_chosen,)
        Which models.

    out : ndarray of shape (n_chosen,)
        Receives the result.
    """
    cdef Frames own = sequence_of(frames, seen)
    cdef Stack stack = stack_of(densities)
    numbers, ranks, alive = make_room(densities, own.n_frames)
    cdef Room room = room_of(numbers, ranks, alive, &stack, own.n_frames)
    cdef Py_ssize_t n, i, rank
    with nogil:
        for n in range(models.shape[0]):
            interrupted()
            i = models[n]
            out[n] = score(
                &own, &stack, i, sizes[i], &startprobs[i, 0], &transmats[i, 0, 0],
                &room, &rank,
            )


def paired_log_likelihoods(
    packed,
    densities,
    const double[:, ::1] startprobs,
    const double[:, :, ::1] transmats,
    const Py_ssize_t[::1] sizes,
    const Py_ssize_t[::1] sequence,
    const Py_ssize_t[::1] model,
):
    """Log likelihood and dimension of support of sequences under models.

    Parameters
    ----------
    packed : PackedSequences
        The sequences.

    densities : Densities
        The states of the models, from `make_densities`.

    startprobs, transmats, sizes : ndarray
        Start probabilities, transition matrices and numbers of states.

    sequence, model : ndarray of int of shape (n_pairs,)
        Which sequence is scored under which model.

    Returns
    -------
    scores : ndarray of shape (n_pairs,)
        Log likelihoods, with respect to volume on the supports of the states.

    ranks : ndarray of int of shape (n_pairs,)
        Dimensions of these supports, summed over frames. Likelihoods of different
        ranks cannot be compared: one model is infinitely less likely.
    """
    cdef const double[::1] frames = packed.frames
    cdef const double[::1] seen = packed.seen
    cdef const Py_ssize_t[::1] starts = packed.starts
    cdef const Py_ssize_t[::1] lengths = packed.lengths
    cdef const unsigned char[::1] gappy = packed.gappy
    cdef Py_ssize_t longest = packed.lengths.max(), n, k, m
    cdef Frames own
    cdef Stack stack = stack_of(densities)
    numbers, ranks, alive = make_room(densities, longest)
    cdef Room room = room_of(numbers, ranks, alive, &stack, longest)
    cdef double[::1] scores = np.empty(sequence.shape[0])
    cdef Py_ssize_t[::1] dimensions = np.empty(sequence.shape[0], np.intp)
    own.n_features = stack.n_features
    with nogil:
        for n in range(sequence.shape[0]):
            interrupted()
            k, m = sequence[n], model[n]
            own.values, own.seen = &frames[starts[k]], NULL
            if gappy[k]:
                own.seen = &seen[starts[k]]
            own.stride = own.n_frames = lengths[k]
            scores[n] = score(
                &own, &stack, m, sizes[m], &startprobs[m, 0], &transmats[m, 0, 0],
                &room, &dimensions[n],
            )
    return np.asarray(scores), np.asarray(dimensions)
