"""Which state each frame belongs to at the start of a fit.

Seeds belong to the sequence: they mix the user's seed with the frames themselves.
"""

import numpy as np

from libc.math cimport INFINITY, isnan, log
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from skawhmm.utils._interruption cimport LITTLE_WORK, interrupted

cdef extern from "fitting/_starts.h" nogil:
    """
    /* Rounds of Lloyd's algorithm, and the fraction of frames that must change in one; EM
       continues where they stop. */
    #define MAX_ROUNDS 6
    #define LEAST_CHANGE 0.02

    /* Frames whose bits enter a seed. */
    #define SEED_FRAMES 32
    """
    const int MAX_ROUNDS
    const double LEAST_CHANGE
    const Py_ssize_t SEED_FRAMES
    const uint64_t STEP
    const uint64_t MIX_A
    const uint64_t MIX_B
    Py_ssize_t longest_range(const Py_ssize_t* bounds, Py_ssize_t n_ranges)
    uint64_t scrambled(uint64_t value)
    double total_of(const double* row, Py_ssize_t size)
    void fill_squared_lengths(
        const double* points, Py_ssize_t n_features, Py_ssize_t n_frames, double* lengths
    )
    int fill_closenesses(
        const double* points,
        const double* centers,
        Py_ssize_t n_centers,
        Py_ssize_t n_features,
        Py_ssize_t n_frames,
        double* doubled,
        double* out,
    ) except -1
    double lower_nearest(
        const double* lengths, const double* nearest, Py_ssize_t n_frames, double* trial
    )
    Py_ssize_t assign(
        const double* scores,
        Py_ssize_t n_labels,
        Py_ssize_t n_frames,
        double* top,
        Py_ssize_t* fresh,
        Py_ssize_t* labels,
    )
    Py_ssize_t means_size(Py_ssize_t n_labels, Py_ssize_t n_features)
    int fill_means(
        const double* points,
        const Py_ssize_t* labels,
        Py_ssize_t n_labels,
        Py_ssize_t n_features,
        Py_ssize_t n_frames,
        double* scratch,
        double* counts,
        double* means,
    ) except -1


# Seeds


def content_seeds(const double[:, ::1] points, const Py_ssize_t[::1] bounds, seed):
    """Seeds made of the first frames of each range and the user's seed.

    The frames say which sequence it is, wherever it stands; a few are enough.

    Parameters
    ----------
    points : ndarray of shape (n_features, n_frames)
        The frames of all ranges.

    bounds : ndarray of shape (n_ranges + 1,)
        Where they begin and end.

    seed : int
        The user's.

    Returns
    -------
    seeds : ndarray of uint64 of shape (n_ranges,)
        States of a random generator.
    """
    cdef uint64_t start = seed & 0xFFFFFFFFFFFFFFFF
    cdef Py_ssize_t n_features = points.shape[0], i, c, n_frames
    cdef double[::1] values = np.empty(n_features * SEED_FRAMES + 1)
    cdef uint64_t[::1] seeds = np.empty(bounds.shape[0] - 1, np.uint64)
    with nogil:
        for i in range(seeds.shape[0]):
            n_frames = min(SEED_FRAMES, bounds[i + 1] - bounds[i])
            for c in range(n_features if n_frames > 0 else 0):
                memcpy(
                    &values[c * n_frames], &points[c, bounds[i]],
                    n_frames * sizeof(double),
                )
            seeds[i] = content_seed(
                <const uint64_t*>&values[0], n_features * n_frames, start
            )
    return np.asarray(seeds)


cdef uint64_t content_seed(
    const uint64_t* bits, Py_ssize_t size, uint64_t seed
) noexcept nogil:
    """Seed made of the bits of numbers and the user's seed."""
    cdef uint64_t a = scrambled(seed + STEP), b = scrambled(<uint64_t>size + MIX_A)
    cdef uint64_t c = scrambled(seed + MIX_B), d = scrambled(<uint64_t>size + STEP)
    cdef Py_ssize_t i
    # Four chains at once, since each waits for its own multiplications.
    for i in range(0, size - 3, 4):
        a = (a ^ bits[i]) * MIX_A
        b = (b ^ bits[i + 1]) * MIX_A
        c = (c ^ bits[i + 2]) * MIX_A
        d = (d ^ bits[i + 3]) * MIX_A
        a ^= a >> 29
        b ^= b >> 29
        c ^= c >> 29
        d ^= d >> 29
    for i in range(size - size % 4, size):
        a = scrambled(a ^ bits[i])
    return scrambled(scrambled(scrambled(a) ^ b) ^ scrambled(scrambled(c) ^ d ^ STEP))


cdef inline double uniform(uint64_t* state) noexcept nogil:
    """Next number in [0, 1) of the generator."""
    state[0] += STEP
    return <double>(scrambled(state[0]) >> 11) / 9007199254740992.0


# Distinct frames


def distinct_count(
    const double[:, ::1] points, Py_ssize_t first, Py_ssize_t last, Py_ssize_t limit
):
    """Count distinct frames in a range, no further than `limit`; NaN equals NaN."""
    return int(distinct_counts(points, np.array([first, last], np.intp), limit)[0])


def distinct_counts(
    const double[:, ::1] points, const Py_ssize_t[::1] bounds, Py_ssize_t limit
):
    """Count the distinct frames of every range, no further than `limit`."""
    cdef Py_ssize_t n_features = points.shape[0], stride = points.shape[1], i
    cdef const double* start = &points[0, 0] if n_features * stride > 0 else NULL
    cdef Py_ssize_t[::1] found = np.empty(max(limit, 1), np.intp)
    cdef Py_ssize_t[::1] counts = np.empty(bounds.shape[0] - 1, np.intp)
    with nogil:
        for i in range(counts.shape[0]):
            counts[i] = n_distinct(
                start + bounds[i], n_features, stride, bounds[i + 1] - bounds[i], limit,
                &found[0],
            )
    return np.asarray(counts)


cdef Py_ssize_t n_distinct(
    const double* points,
    Py_ssize_t n_features,
    Py_ssize_t stride,
    Py_ssize_t n_frames,
    Py_ssize_t limit,
    Py_ssize_t* found,
) except -1 nogil:
    """Count distinct frames, whose channels are `stride` apart; `found` is scratch."""
    cdef Py_ssize_t n_found = 0, t, f
    for t in range(n_frames):
        if n_found == limit:
            break
        if t % 256 == 255:
            interrupted()
        for f in range(n_found):
            if equal_frames(points + t, points + found[f], n_features, stride):
                break
        else:
            found[n_found] = t
            n_found += 1
    return n_found


cdef inline bint equal_frames(
    const double* one, const double* other, Py_ssize_t n_features, Py_ssize_t stride
) noexcept nogil:
    cdef Py_ssize_t c
    for c in range(n_features):
        if one[c * stride] != other[c * stride] and not (
            isnan(one[c * stride]) and isnan(other[c * stride])
        ):
            return False
    return True


# Clusters

cdef struct Work:
    # The frames of one range, channel by channel, and their squared lengths.
    double* points
    double* lengths
    Py_ssize_t n_features
    Py_ssize_t n_frames
    # Centers, those that are tried, how many frames each has, and scratch for them.
    double* centers
    double* tried
    double* counts
    double* doubled
    double* sums
    # Closeness of every frame to each center; one number per frame, for passing use.
    double* scores
    double* nearest
    # Labels found, labels before.
    Py_ssize_t* labels
    Py_ssize_t* before


def _make_work(n_features, n_frames, n_clusters):
    """Return the scratch arrays of a range of at most so many frames."""
    n_features, n_frames = max(n_features, 1), max(n_frames, 1)
    n_clusters = max(n_clusters, 1)
    frames = np.empty((n_features + n_clusters + 2, n_frames))
    # Three arrays of centers, two of one number per center.
    size = n_clusters * (3 * n_features + 2)
    centers = np.empty(size + means_size(n_clusters, n_features))
    return frames, centers, np.empty((2, n_frames), np.intp)


cdef Work work_of(
    double[:, ::1] frames,
    double[::1] centers,
    Py_ssize_t[:, ::1] labels,
    Py_ssize_t n_features,
) noexcept nogil:
    """The arrays of `_make_work` as the kernels read them."""
    cdef Work work
    cdef Py_ssize_t width = max(n_features, 1)
    cdef Py_ssize_t n_clusters = frames.shape[0] - width - 2
    work.lengths, work.nearest = &frames[0, 0], &frames[1, 0]
    work.scores, work.points = &frames[2, 0], &frames[2 + n_clusters, 0]
    work.counts, work.centers = &centers[0], &centers[n_clusters]
    work.tried = work.centers + n_clusters * width
    work.doubled = work.tried + n_clusters * width
    work.sums = work.doubled + n_clusters * (width + 1)
    work.labels, work.before = &labels[0, 0], &labels[1, 0]
    work.n_features = work.n_frames = 0
    return work


cdef void take_range(
    const double[:, ::1] points, Py_ssize_t first, Py_ssize_t last, Work* work
) noexcept nogil:
    """Copy the frames of a range, so that its rows lie one after the other."""
    cdef Py_ssize_t c
    work.n_features, work.n_frames = points.shape[0], last - first
    if last > first:
        for c in range(work.n_features):
            memcpy(
                work.points + c * work.n_frames, &points[c, first],
                work.n_frames * sizeof(double),
            )


cdef Py_ssize_t drawn_index(
    const double* weights, Py_ssize_t size, double level
) noexcept nogil:
    """Index at which the running sum of weights passes a fraction of their total."""
    cdef Py_ssize_t index = 0, t
    level *= total_of(weights, size)
    for t in range(size):
        if weights[t] > 0:
            index = t
            level -= weights[t]
            if level < 0:
                break
    return index


cdef int spread_centers(
    Py_ssize_t n_clusters, uint64_t* state, Work* work
) except -1 nogil:
    """Start centers by k-means++, the best of a few draws for each."""
    cdef Py_ssize_t n_features = work.n_features, n_frames = work.n_frames
    # These are no more than the clusters, for each of which `scores` has a row.
    cdef Py_ssize_t n_draws = 2 + <Py_ssize_t>log(<double>n_clusters)
    cdef Py_ssize_t n_tried = 1, best, candidate, k, draw, c, t
    cdef double total, least
    cdef double* trial
    for t in range(n_frames):
        work.nearest[t] = INFINITY
    for k in range(n_clusters):
        if n_frames > LITTLE_WORK:
            interrupted()
        for draw in range(n_tried):
            if k > 0:
                candidate = drawn_index(work.nearest, n_frames, uniform(state))
            else:
                candidate = min(<Py_ssize_t>(uniform(state) * n_frames), n_frames - 1)
            work.counts[draw] = candidate
            for c in range(n_features):
                work.tried[draw * n_features + c] = work.points[c * n_frames + candidate]
        fill_closenesses(
            work.points, work.tried, n_tried, n_features, n_frames, work.doubled,
            work.scores,
        )
        best, least = 0, INFINITY
        for draw in range(n_tried):
            trial = work.scores + draw * n_frames
            candidate = <Py_ssize_t>work.counts[draw]
            # A frame is not drawn twice, however its distance to itself is rounded.
            trial[candidate] = work.lengths[candidate]
            total = lower_nearest(work.lengths, work.nearest, n_frames, trial)
            if total < least:
                best, least = draw, total
        memcpy(
            work.nearest, work.scores + best * n_frames, n_frames * sizeof(double)
        )
        memcpy(
            work.centers + k * n_features, work.tried + best * n_features,
            n_features * sizeof(double),
        )
        n_tried = n_draws


cdef int move_centers(Py_ssize_t n_clusters, Work* work) except -1 nogil:
    """Put centers on the means of their frames, empty ones on the worst served.

    The frame that an empty center is put on is taken off its cluster's scores.
    """
    cdef Py_ssize_t n_features = work.n_features, n_frames = work.n_frames
    cdef Py_ssize_t k, c, t, worst
    cdef double least, score
    fill_means(
        work.points, work.labels, n_clusters, n_features, n_frames, work.sums,
        work.counts, work.centers,
    )
    for k in range(n_clusters):
        if work.counts[k] > 0:
            continue
        worst, least = 0, INFINITY
        for t in range(n_frames):
            score = work.scores[work.labels[t] * n_frames + t] - work.lengths[t]
            if score < least:
                worst, least = t, score
        for c in range(n_features):
            work.centers[k * n_features + c] = work.points[c * n_frames + worst]
        work.scores[work.labels[worst] * n_frames + worst] = INFINITY


cdef int cluster(Py_ssize_t n_clusters, uint64_t* state, Work* work) except -1 nogil:
    """Label the frames by k-means++ and Lloyd's algorithm."""
    cdef Py_ssize_t n_frames = work.n_frames, t, n_changed
    cdef int rounds
    for t in range(n_frames):
        work.labels[t] = -1 if n_clusters > 1 else 0
    if n_clusters <= 1 or n_frames == 0:
        return 0
    fill_squared_lengths(work.points, work.n_features, n_frames, work.lengths)
    spread_centers(n_clusters, state, work)
    for rounds in range(MAX_ROUNDS):
        if rounds > 0:
            move_centers(n_clusters, work)
        fill_closenesses(
            work.points, work.centers, n_clusters, work.n_features, n_frames,
            work.doubled, work.scores,
        )
        n_changed = assign(
            work.scores, n_clusters, n_frames, work.nearest, work.before, work.labels
        )
        if n_changed <= LEAST_CHANGE * n_frames:
            break


def kmeans_starts(
    const double[:, ::1] points,
    const Py_ssize_t[::1] bounds,
    Py_ssize_t n_states,
    uint64_t[::1] states,
    Py_ssize_t[:, ::1] labels,
):
    """Fill labels by k-means++ and Lloyd's algorithm in each of several ranges.

    Parameters
    ----------
    points : ndarray of shape (n_features, n_frames)
        The frames of all ranges.

    bounds : ndarray of shape (n_ranges + 1,)
        Where they begin and end.

    n_states : int
        Number of clusters; if it exceeds that of distinct frames, some stay empty.

    states : ndarray of uint64 of shape (n_ranges,)
        States of their random generators; changed in place.

    labels : ndarray of int of shape (n_candidates, n_frames)
        Receives as many labellings as it has rows.
    """
    cdef Py_ssize_t n_ranges = bounds.shape[0] - 1, i, r
    cdef Py_ssize_t longest = longest_range(&bounds[0], n_ranges)
    frames, centers, found = _make_work(points.shape[0], longest, n_states)
    cdef Work work = work_of(frames, centers, found, points.shape[0])
    with nogil:
        for i in range(n_ranges):
            interrupted()
            take_range(points, bounds[i], bounds[i + 1], &work)
            for r in range(labels.shape[0]):
                cluster(n_states, &states[i], &work)
                put_labels(&work, bounds[i], labels[r])


cdef void put_labels(
    const Work* work, Py_ssize_t first, Py_ssize_t[::1] labels
) noexcept nogil:
    cdef Py_ssize_t t
    for t in range(work.n_frames):
        labels[first + t] = work.labels[t]


def split_starts(
    const double[:, ::1] points,
    const Py_ssize_t[::1] bounds,
    Py_ssize_t n_mix,
    uint64_t[::1] states,
    Py_ssize_t[:, ::1] labels,
):
    """Split the frames of every state further into `n_mix` components, in place.

    The parameters are those of `kmeans_starts`; labels come in as those of states.
    """
    cdef Py_ssize_t n_ranges = bounds.shape[0] - 1, i, r, k, n_states
    cdef Py_ssize_t longest = longest_range(&bounds[0], n_ranges)
    frames, centers, found = _make_work(points.shape[0], longest, n_mix)
    cdef Work work = work_of(frames, centers, found, points.shape[0])
    cdef Py_ssize_t[::1] members = np.empty(longest, np.intp)
    cdef Py_ssize_t[::1] distinct = np.empty(max(n_mix, 1), np.intp)
    cdef Py_ssize_t[::1] before = np.empty(points.shape[1], np.intp)
    with nogil:
        for r in range(labels.shape[0]):
            before[:] = labels[r]
            for i in range(n_ranges):
                n_states = 0
                for k in range(bounds[i], bounds[i + 1]):
                    n_states = max(n_states, before[k] + 1)
                for k in range(n_states):
                    interrupted()
                    take_members(
                        points, bounds[i], bounds[i + 1], before, k, members, &work
                    )
                    split(n_mix, &states[i], &distinct[0], &work)
                    put_components(&work, k * n_mix, members, labels[r])


cdef void take_members(
    const double[:, ::1] points,
    Py_ssize_t first,
    Py_ssize_t last,
    const Py_ssize_t[::1] labels,
    Py_ssize_t label,
    Py_ssize_t[::1] members,
    Work* work,
) noexcept nogil:
    """Copy the frames of a range that have a label; their places become `members`."""
    cdef Py_ssize_t n_members = 0, t, c, m
    for t in range(first, last):
        if labels[t] == label:
            members[n_members] = t
            n_members += 1
    work.n_features, work.n_frames = points.shape[0], n_members
    for c in range(work.n_features):
        for m in range(n_members):
            work.points[c * n_members + m] = points[c, members[m]]


cdef int split(
    Py_ssize_t n_mix, uint64_t* state, Py_ssize_t* distinct, Work* work
) except -1 nogil:
    """Cluster the frames of one state, into no more parts than it has distinct ones."""
    cdef Py_ssize_t n_parts = n_distinct(
        work.points, work.n_features, work.n_frames, work.n_frames, n_mix, distinct
    )
    cluster(n_parts, state, work)


cdef void put_components(
    const Work* work,
    Py_ssize_t offset,
    const Py_ssize_t[::1] members,
    Py_ssize_t[::1] labels,
) noexcept nogil:
    cdef Py_ssize_t m
    for m in range(work.n_frames):
        labels[members[m]] = offset + work.labels[m]


# Segments


def segment_starts(
    const double[:, ::1] points,
    const Py_ssize_t[::1] offsets,
    const Py_ssize_t[::1] bounds,
    Py_ssize_t n_states,
    uint64_t[::1] states,
    Py_ssize_t[:, ::1] labels,
):
    """Fill labels by cuts in time, the first ones evenly spaced; see `kmeans_starts`.

    The sequences between the `offsets` are each cut into all states; the ranges between
    the `bounds` hold one or more of them.
    """
    cdef Py_ssize_t n_ranges = bounds.shape[0] - 1, n_sequences = offsets.shape[0] - 1
    cdef Py_ssize_t first, last = 0, i, r
    cdef Py_ssize_t longest = longest_range(&bounds[0], n_ranges)
    frames, centers, found = _make_work(points.shape[0], longest, n_states)
    cdef Work work = work_of(frames, centers, found, points.shape[0])
    cdef double[::1] values = np.empty(n_states)
    cdef unsigned char[:, ::1] stepped = np.empty((longest, n_states), np.uint8)
    with nogil:
        for i in range(n_ranges):
            first = last
            while last < n_sequences and offsets[last] < bounds[i + 1]:
                last += 1
            interrupted()
            take_range(points, bounds[i], bounds[i + 1], &work)
            for r in range(labels.shape[0]):
                first_cuts(offsets[first : last + 1], &states[i], r == 0, values, &work)
                segment(offsets[first : last + 1], values, stepped, &work)
                put_labels(&work, bounds[i], labels[r])


cdef int first_cuts(
    const Py_ssize_t[::1] offsets,
    uint64_t* state,
    bint evenly,
    double[::1] cuts,
    Work* work,
) except -1 nogil:
    """Cut every sequence at the same places, evenly spaced or drawn at random."""
    cdef Py_ssize_t n_states = cuts.shape[0], s, t, k, first, size
    for k in range(n_states - 1):
        cuts[k] = <double>(k + 1) / n_states if evenly else uniform(state)
    for s in range(offsets.shape[0] - 1):
        first, size = offsets[s] - offsets[0], offsets[s + 1] - offsets[s]
        for t in range(size):
            if t % 1024 == 1023:
                interrupted()
            work.labels[first + t] = 0
            for k in range(n_states - 1):
                work.labels[first + t] += (t + 0.5) / size > cuts[k]


cdef int segment(
    const Py_ssize_t[::1] offsets,
    double[::1] values,
    unsigned char[:, ::1] stepped,
    Work* work,
) except -1 nogil:
    """Move centers and cuts in turn until the cuts stay."""
    cdef Py_ssize_t n_states = values.shape[0], n_frames = work.n_frames
    cdef Py_ssize_t s, t, n_changed
    cdef int rounds
    if n_frames == 0:
        return 0
    fill_squared_lengths(work.points, work.n_features, n_frames, work.lengths)
    for t in range(n_states * n_frames):
        work.scores[t] = 0.0
    for rounds in range(MAX_ROUNDS):
        memcpy(work.before, work.labels, n_frames * sizeof(Py_ssize_t))
        move_centers(n_states, work)
        fill_closenesses(
            work.points, work.centers, n_states, work.n_features, n_frames,
            work.doubled, work.scores,
        )
        for s in range(offsets.shape[0] - 1):
            segment_path(
                offsets[s] - offsets[0], offsets[s + 1] - offsets[0], values, stepped,
                work,
            )
        n_changed = 0
        for t in range(n_frames):
            n_changed += work.labels[t] != work.before[t]
        if n_changed == 0:
            break


cdef int segment_path(
    Py_ssize_t first,
    Py_ssize_t last,
    double[::1] values,
    unsigned char[:, ::1] stepped,
    Work* work,
) except -1 nogil:
    """Label one sequence by the best way to cut it into states 0, 1, 2, ..."""
    cdef Py_ssize_t n_states = values.shape[0], n_frames = last - first, k, t
    cdef const double* scores = work.scores + first
    if n_frames == 0:
        return 0
    for k in range(n_states):
        values[k] = scores[0] if k == 0 else -INFINITY
    for t in range(1, n_frames):
        if t % 1024 == 0:
            interrupted()
        for k in range(n_states - 1, -1, -1):
            stepped[t, k] = k > 0 and values[k - 1] > values[k]
            if stepped[t, k]:
                values[k] = values[k - 1]
            values[k] += scores[k * work.n_frames + t]
    k = min(n_states, n_frames) - 1
    for t in range(n_frames - 1, 0, -1):
        work.labels[first + t] = k
        k -= stepped[t, k]
    work.labels[first] = k
