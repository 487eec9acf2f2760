"""Statistics of a sequence under a reference model; see `_embedding_statistics`."""

import numpy as np

from cython cimport floating
from libc.math cimport sqrt

from skawhmm.emissions._gaussian_densities cimport (
    Frames,
    add_diag_moments,
    densities_size,
    diag_log_density,
    frame_count,
)
from skawhmm.numerics._forward_backward cimport begin_passes, passes, passes_size
from skawhmm.utils._interruption cimport interrupted

cdef extern from "features/_embedding_kernels.h" nogil:
    void fill_shifts(
        const double* occupancies,
        const double* counts,
        const double* firsts,
        const double* deviations,
        Py_ssize_t n_joined,
        Py_ssize_t n_components,
        Py_ssize_t n_features,
        double total,
        double relevance,
        double* shifts,
    )
    void fill_log_scales(
        const double* occupancies,
        const double* counts,
        const double* firsts,
        const double* seconds,
        const double* covars,
        Py_ssize_t n_parts,
        Py_ssize_t n_components,
        Py_ssize_t n_features,
        double total,
        double relevance,
        double* logs,
    )
    double total_of(const double* row, Py_ssize_t size, int rooted)
    void fill_single(
        const double* row, Py_ssize_t size, int rooted, double scale, float* out
    )
    void fill_double(
        const double* row, Py_ssize_t size, int rooted, double scale, double* out
    )


def add_statistics(batch, const Py_ssize_t[::1] owners, model, stats):
    """Add the statistics of sequences: one forward-backward pass each.

    Parameters
    ----------
    batch : list of tuple
        The sequences and their masks, of shape (n_features, n_timesteps); masks are
        empty if all is observed.

    owners : ndarray of shape (n_recordings,)
        The row of the statistics that each sequence belongs to.

    model : Model
        The reference.

    stats : GaussianStatistics
        Receives the sums.
    """
    cdef const double[::1] startprob = model.startprob
    cdef const double[:, ::1] transmat = model.transmat
    cdef const double[:, ::1] means = model.states[0]
    cdef const double[:, ::1] covars = model.states[1]
    cdef double[:, :, ::1] occupancies = stats.occupancies
    cdef double[:, :, :, ::1] counts = stats.counts
    cdef double[:, :, :, ::1] firsts = stats.firsts
    cdef double[:, :, :, ::1] seconds = stats.seconds
    cdef double[:, :, ::1] moves
    cdef double* own_moves = NULL
    cdef bint is_counting = stats.moves is not None
    cdef Py_ssize_t n_components = means.shape[0], n_features = means.shape[1]
    cdef Py_ssize_t n_parts = occupancies.shape[1], n_timesteps, n, i, part, k
    cdef Py_ssize_t first, last
    cdef Py_ssize_t longest = max([own.shape[1] for own, _ in batch])
    # The scratch of all sequences is allocated once: many are short.
    cdef double[:, ::1] rows = np.empty((3, n_components * longest))
    cdef Py_ssize_t n_numbers = densities_size(n_components, n_features, n_features)
    cdef double[::1] room = np.empty(max(n_numbers, 1))
    cdef double[::1] scratch = np.empty(passes_size(n_components, longest))
    cdef double* post = &rows[1, 0]
    cdef double* weights = &rows[2, 0]
    # Without a channel that varies there is no first value to point at.
    cdef bint is_empty = n_features == 0
    cdef const double* values = NULL
    cdef const double* centres = NULL if is_empty else &means[0, 0]
    cdef const double* variances = NULL if is_empty else &covars[0, 0]
    cdef const double[:, ::1] frames, seen
    if is_counting:
        moves = stats.moves
    cdef Frames own_frames
    own_frames.n_features = n_features
    begin_passes(&transmat[0, 0], n_components, &scratch[0])
    for n in range(owners.shape[0]):
        frames, seen = batch[n]
        i, n_timesteps = owners[n], frames.shape[1]
        if is_counting:
            own_moves = &moves[i, 0, 0]
        if not is_empty:
            values = &frames[0, 0]
        own_frames.values, own_frames.seen = values, NULL
        if seen.shape[0] > 0:
            own_frames.seen = &seen[0, 0]
        own_frames.stride = own_frames.n_frames = n_timesteps
        with nogil:
            diag_log_density(
                &own_frames, centres, variances, n_components, &rows[0, 0], &room[0]
            )
            passes(
                &rows[0, 0], n_timesteps, &startprob[0], &transmat[0, 0], n_components,
                n_timesteps, post, own_moves, &scratch[0],
            )
            for part in range(n_parts):
                interrupted()
                first = part * n_timesteps // n_parts
                last = ((part + 1) * n_timesteps + n_parts - 1) // n_parts
                own_frames.n_frames = last - first
                if not is_empty:
                    own_frames.values = values + first
                if seen.shape[0] > 0:
                    own_frames.seen = &seen[0, first]
                for k in range(n_components):
                    fill_part(
                        post + k * n_timesteps, n_timesteps, part, n_parts, first, last,
                        weights + k * own_frames.n_frames,
                    )
                    occupancies[i, part, k] += frame_count(
                        weights + k * own_frames.n_frames, own_frames.n_frames
                    )
                if not is_empty:
                    add_diag_moments(
                        &own_frames, weights, own_frames.n_frames, centres,
                        n_components, &counts[i, part, 0, 0], &firsts[i, part, 0, 0],
                        &seconds[i, part, 0, 0],
                    )


cdef void fill_part(
    const double* post,
    Py_ssize_t n_timesteps,
    Py_ssize_t part,
    Py_ssize_t n_parts,
    Py_ssize_t first,
    Py_ssize_t last,
    double* weights,
) noexcept nogil:
    """Fill the weights of the frames first to last in a part of a sequence.

    The frame in which a part ends belongs to it by the fraction of its duration, so that
    parts have equal weight at any length, down to one frame.
    """
    cdef Py_ssize_t begin = part * n_timesteps, end = begin + n_timesteps, t
    cdef double overlap
    for t in range(first, last):
        weights[t - first] = post[t]
        if t == first or t == last - 1:
            overlap = min(n_parts * (t + 1), end) - max(n_parts * t, begin)
            weights[t - first] *= overlap / n_parts


def weighted_shifts(stats, covars, double relevance, bint whole):
    """Shifts of adapted means, times the roots of the states' weights.

    Parameters
    ----------
    stats : GaussianStatistics
        Statistics of a batch of sequences.

    covars : ndarray of shape (n_components, n_features)
        Variances of the reference.

    relevance : float
        Weight of the reference as a prior, in frames.

    whole : bool
        Whether parts are added up first; otherwise each part has shifts of its own.

    Returns
    -------
    shifts : ndarray of shape (n_sequences, n_parts, n_components, n_features)
        In deviations of the reference; one part if they are added up.
    """
    cdef const double[:, :, ::1] occupancies = stats.occupancies
    cdef const double[:, :, :, ::1] counts = stats.counts
    cdef const double[:, :, :, ::1] firsts = stats.firsts
    cdef const double[:, ::1] deviations = np.sqrt(covars)
    cdef Py_ssize_t n_parts = occupancies.shape[1], n_joined = 1, i, part
    cdef double total
    if whole:
        n_joined, n_parts = n_parts, 1
    cdef double[:, :, :, ::1] shifts = np.empty(
        (counts.shape[0], n_parts, counts.shape[2], counts.shape[3])
    )
    if shifts.size == 0:
        return np.asarray(shifts)
    with nogil:
        for i in range(shifts.shape[0]):
            interrupted()
            total = frames_of(occupancies, i)
            for part in range(n_parts):
                fill_shifts(
                    &occupancies[i, part, 0], &counts[i, part, 0, 0],
                    &firsts[i, part, 0, 0], &deviations[0, 0], n_joined,
                    shifts.shape[2], shifts.shape[3], total, relevance,
                    &shifts[i, part, 0, 0],
                )
    return np.asarray(shifts)


def weighted_log_scales(stats, const double[:, ::1] covars, double relevance):
    """Logarithms of adapted deviations, times the roots of the states' weights.

    The parameters are those of `weighted_shifts`; parts are added up.

    Returns
    -------
    logs : ndarray of shape (n_sequences, n_components, n_features)
        Logarithms of the ratios to the deviations of the reference.
    """
    cdef const double[:, :, ::1] occupancies = stats.occupancies
    cdef const double[:, :, :, ::1] counts = stats.counts
    cdef const double[:, :, :, ::1] firsts = stats.firsts
    cdef const double[:, :, :, ::1] seconds = stats.seconds
    cdef double[:, :, ::1] logs = np.empty(
        (counts.shape[0], counts.shape[2], counts.shape[3])
    )
    cdef Py_ssize_t i
    if logs.size == 0:
        return np.asarray(logs)
    with nogil:
        for i in range(logs.shape[0]):
            interrupted()
            fill_log_scales(
                &occupancies[i, 0, 0], &counts[i, 0, 0, 0], &firsts[i, 0, 0, 0],
                &seconds[i, 0, 0, 0], &covars[0, 0], occupancies.shape[1],
                logs.shape[1], logs.shape[2], frames_of(occupancies, i), relevance,
                &logs[i, 0, 0],
            )
    return np.asarray(logs)


cdef double frames_of(
    const double[:, :, ::1] occupancies, Py_ssize_t i
) noexcept nogil:
    """Number of frames of a sequence."""
    cdef double total = 0.0
    cdef Py_ssize_t part, k
    for part in range(occupancies.shape[1]):
        for k in range(occupancies.shape[2]):
            total += occupancies[i, part, k]
    return total


def fill_normalized(
    const double[:, ::1] rows, bint rooted, double length, floating[:, ::1] out,
    Py_ssize_t column,
):
    """Fill columns with rows of a given length.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        The rows. If all entries are 0, they stay 0.

    rooted : bool
        Whether the entries are roots already; otherwise they are replaced by their
        signed square roots first.

    length : float
        The length.

    out : ndarray of shape (n_rows, at least column + n_columns), single or double
        Receives the rows.

    column : int
        Column of `out` that receives their first entries.
    """
    cdef Py_ssize_t n_columns = rows.shape[1], i
    cdef double scale
    cdef floating* own
    if rows.shape[0] == 0 or n_columns == 0:
        return
    with nogil:
        for i in range(rows.shape[0]):
            interrupted()
            own = &out[i, column]
            scale = total_of(&rows[i, 0], n_columns, rooted)
            scale = length / sqrt(scale) if scale > 0 else 0.0
            if floating is float:
                fill_single(&rows[i, 0], n_columns, rooted, scale, own)
            else:
                fill_double(&rows[i, 0], n_columns, rooted, scale, own)
