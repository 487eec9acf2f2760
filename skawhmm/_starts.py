"""Which state each frame belongs to at the start of a fit, compiled.

Seeds belong to the sequence: they mix the user's seed with the frames themselves.
"""

import numpy as np
from numba import njit

from skawhmm._densities import (
    KERNEL,
    add_diag_moments,
    add_squares_of_two,
    diag_log_density,
    row_sum,
    window,
)

# Rounds of Lloyd's algorithm, and the share of frames that must change in one; EM
# continues where they stop.
MAX_ROUNDS = 6
LEAST_CHANGE = 0.02
# Frames whose bits enter a seed.
SEED_FRAMES = 32
# Constants of the splitmix64 generator.
STEP = np.uint64(0x9E3779B97F4A7C15)
MIX_A = np.uint64(0xBF58476D1CE4E5B9)
MIX_B = np.uint64(0x94D049BB133111EB)


@njit(**KERNEL)
def mixed(value):
    """Bits of an integer, scrambled."""
    value = (value ^ (value >> np.uint64(30))) * MIX_A
    value = (value ^ (value >> np.uint64(27))) * MIX_B
    return value ^ (value >> np.uint64(31))


@njit(**KERNEL)
def content_seed(values, seed):
    """Seed made of the bits of a flat array and the user's seed."""
    bits = values.view(np.uint64)
    size = bits.shape[0]
    a, b = mixed(np.uint64(seed) + STEP), mixed(np.uint64(size) + MIX_A)
    c, d = mixed(np.uint64(seed) + MIX_B), mixed(np.uint64(size) + STEP)
    # Four chains at once, since each waits for its own multiplications.
    for i in range(0, size - 3, 4):
        a = (a ^ bits[i]) * MIX_A
        b = (b ^ bits[i + 1]) * MIX_A
        c = (c ^ bits[i + 2]) * MIX_A
        d = (d ^ bits[i + 3]) * MIX_A
        a ^= a >> np.uint64(29)
        b ^= b >> np.uint64(29)
        c ^= c >> np.uint64(29)
        d ^= d >> np.uint64(29)
    for i in range(size - size % 4, size):
        a = mixed(a ^ bits[i])
    return mixed(mixed(mixed(a) ^ b) ^ mixed(mixed(c) ^ d ^ STEP))


@njit(**KERNEL)
def uniform(state):
    """Next number in [0, 1) of the generator, whose state is an array of one."""
    state[0] += STEP
    return np.float64(mixed(state[0]) >> np.uint64(11)) / 9007199254740992.0


@njit(**KERNEL)
def distinct_count(points, first, last, limit):
    """Count distinct frames in a range, no further than `limit`; NaN equals NaN."""
    found, n_found = np.empty(limit, np.int64), 0
    for t in range(first, last):
        is_new = True
        for f in range(n_found):
            same = True
            for c in range(points.shape[0]):
                a, b = points[c, t], points[c, found[f]]
                if a != b and not (np.isnan(a) and np.isnan(b)):
                    same = False
                    break
            if same:
                is_new = False
                break
        if is_new:
            found[n_found] = t
            n_found += 1
            if n_found == limit:
                break
    return n_found


@njit(**KERNEL)
def distinct_counts(points, bounds, limit):
    """Count the distinct frames of every range, no further than `limit`."""
    counts = np.empty(bounds.shape[0] - 1, np.int64)
    for i in range(counts.shape[0]):
        counts[i] = distinct_count(points, bounds[i], bounds[i + 1], limit)
    return counts


@njit(**KERNEL)
def squared_distances(points, center, out):
    """Squared distance of every frame to a point."""
    n_features = points.shape[0]
    for t in range(out.shape[0]):
        out[t] = 0.0
    for c in range(0, n_features, 2):
        # With an odd number of channels the last is its own, weightless, partner.
        e = min(c + 1, n_features - 1)
        scales = (1.0, 1.0 if e > c else 0.0)
        add_squares_of_two(points[c], points[e], (center[c], center[e]), scales, out)


@njit(**KERNEL)
def drawn_index(weights, level):
    """Index at which the running sum of weights passes a share of their total."""
    level *= row_sum(weights)
    index = 0
    for t in range(weights.shape[0]):
        if weights[t] > 0:
            index = t
            level -= weights[t]
            if level < 0:
                break
    return index


@njit(**KERNEL)
def spread_centers(points, n_clusters, state):
    """Start centers by k-means++, the best of a few draws for each."""
    n_features, n_frames = points.shape
    centers, center = np.empty((n_clusters, n_features)), np.empty(n_features)
    nearest, best = np.full(n_frames, np.inf), np.empty(n_frames)
    trial = np.empty(n_frames)
    for k in range(n_clusters):
        best_total = np.inf
        for _ in range(2 + int(np.log(n_clusters)) if k > 0 else 1):
            if k > 0:
                candidate = drawn_index(nearest, uniform(state))
            else:
                candidate = min(int(uniform(state) * n_frames), n_frames - 1)
            for c in range(n_features):
                center[c] = points[c, candidate]
            squared_distances(points, center, trial)
            total = 0.0
            for t in range(n_frames):
                trial[t] = min(trial[t], nearest[t])
                total += trial[t]
            if total < best_total:
                best_total = total
                best, trial = trial, best
                for c in range(n_features):
                    centers[k, c] = center[c]
        nearest, best = best, nearest
    return centers


@njit(**KERNEL)
def assign(scores, labels):
    """Label every frame by its best score; returns how many labels changed."""
    n_changed = 0
    for t in range(labels.shape[0]):
        label, top = 0, scores[0, t]
        for k in range(1, scores.shape[0]):
            if scores[k, t] > top:
                label, top = k, scores[k, t]
        n_changed += label != labels[t]
        labels[t] = label
    return n_changed


@njit(**KERNEL)
def move_centers(points, labels, scores, centers):
    """Put centers on the means of their frames, empty ones on the worst served."""
    n_clusters, n_features = centers.shape
    post, everything = np.zeros(scores.shape), np.empty((0, 0))
    for t in range(labels.shape[0]):
        post[labels[t], t] = 1.0
    counts, firsts = np.zeros(centers.shape), np.zeros(centers.shape)
    seconds = np.zeros(centers.shape)
    add_diag_moments(points, everything, post, centers, counts, firsts, seconds)
    for k in range(n_clusters):
        if counts[k, 0] > 0:
            for c in range(n_features):
                centers[k, c] += firsts[k, c] / counts[k, c]
        else:
            worst = 0
            for t in range(labels.shape[0]):
                if scores[labels[t], t] < scores[labels[worst], worst]:
                    worst = t
            for c in range(n_features):
                centers[k, c] = points[c, worst]
            scores[labels[worst], worst] = np.inf


@njit(**KERNEL)
def kmeans_labels(points, n_clusters, state):
    """Cluster of every frame, by k-means++ and Lloyd's algorithm.

    Parameters
    ----------
    points : ndarray of shape (n_features, n_frames)
        At least one channel and one frame.

    n_clusters : int
        At most the number of distinct frames, else some clusters stay empty.

    state : ndarray of shape (1,)
        State of the random generator.
    """
    labels = np.full(points.shape[1], -1)
    if n_clusters == 1:
        return labels + 1
    centers = spread_centers(points, n_clusters, state)
    # With these variances the log density is minus the squared distance.
    halves = np.full(centers.shape, 0.5)
    scores, everything = np.empty((n_clusters, points.shape[1])), np.empty((0, 0))
    for _ in range(MAX_ROUNDS):
        diag_log_density(points, everything, centers, halves, scores)
        if assign(scores, labels) <= LEAST_CHANGE * labels.shape[0]:
            break
        move_centers(points, labels, scores, centers)
    return labels


@njit(**KERNEL)
def segment_path(scores, first, last, labels):
    """Best way to cut one sequence into consecutive states 0, 1, 2, ..."""
    n_components, n_frames = scores.shape[0], last - first
    value = np.full(n_components, -np.inf)
    stepped = np.zeros((n_frames, n_components), np.bool_)
    value[0] = scores[0, first]
    for t in range(1, n_frames):
        for k in range(n_components - 1, -1, -1):
            if k > 0 and value[k - 1] > value[k]:
                stepped[t, k] = True
                value[k] = value[k - 1]
            value[k] += scores[k, first + t]
    k = min(n_components, n_frames) - 1
    for t in range(n_frames - 1, -1, -1):
        labels[first + t] = k
        k -= stepped[t, k]


@njit(**KERNEL)
def segment_labels(points, offsets, n_components, state, evenly):
    """State of every frame when states follow each other in time.

    Parameters
    ----------
    points : ndarray of shape (n_features, n_frames)
        The sequences one after the other.

    offsets : ndarray of shape (n_sequences + 1,)
        Where they begin and end.

    n_components : int
        Number of states.

    state : ndarray of shape (1,)
        State of the random generator.

    evenly : bool
        Whether the first cuts are at equal distances, else at random.
    """
    labels = np.zeros(points.shape[1], np.int64)
    cuts = np.arange(1, n_components) / n_components
    if not evenly:
        for k in range(cuts.shape[0]):
            cuts[k] = uniform(state)
    for s in range(offsets.shape[0] - 1):
        size = offsets[s + 1] - offsets[s]
        for t in range(size):
            for cut in cuts:
                labels[offsets[s] + t] += (t + 0.5) / size > cut
    halves = np.full((n_components, points.shape[0]), 0.5)
    centers = np.zeros(halves.shape)
    scores, everything = np.zeros((n_components, points.shape[1])), np.empty((0, 0))
    for _ in range(MAX_ROUNDS):
        before, n_changed = labels.copy(), 0
        move_centers(points, labels, scores, centers)
        diag_log_density(points, everything, centers, halves, scores)
        for s in range(offsets.shape[0] - 1):
            segment_path(scores, offsets[s], offsets[s + 1], labels)
        for t in range(labels.shape[0]):
            n_changed += labels[t] != before[t]
        if n_changed == 0:
            break
    return labels


@njit(**KERNEL)
def kmeans_starts(points, bounds, n_states, states, labels):
    """Fill labels (n_candidates, n_frames) by k-means in each of several ranges.

    Parameters
    ----------
    points : ndarray of shape (n_features, n_frames)
        The frames of all ranges.

    bounds : ndarray of shape (n_ranges + 1,)
        Where they begin and end.

    n_states : int
        Number of clusters.

    states : ndarray of shape (n_ranges, 1)
        States of their random generators.

    labels : ndarray of int of shape (n_candidates, n_frames)
        Receives as many labellings as it has rows.
    """
    for i in range(bounds.shape[0] - 1):
        part = window(points, bounds[i], bounds[i + 1])
        for r in range(labels.shape[0]):
            found = kmeans_labels(part, n_states, states[i])
            for t in range(found.shape[0]):
                labels[r, bounds[i] + t] = found[t]


@njit(**KERNEL)
def segment_starts(points, offsets, bounds, n_states, states, labels):
    """Fill labels by cuts in time, the first evenly; see `kmeans_starts`.

    The sequences between the `offsets` are each cut into all states; the ranges between
    the `bounds` hold one or more of them.
    """
    s = 0
    for i in range(bounds.shape[0] - 1):
        first = s
        while offsets[s] < bounds[i + 1]:
            s += 1
        inner = offsets[first : s + 1] - bounds[i]
        part = window(points, bounds[i], bounds[i + 1])
        for r in range(labels.shape[0]):
            found = segment_labels(part, inner, n_states, states[i], r == 0)
            for t in range(found.shape[0]):
                labels[r, bounds[i] + t] = found[t]


@njit(**KERNEL)
def split_starts(points, bounds, n_mix, states, labels):
    """Split the frames of every state further into `n_mix` components, in place."""
    for i in range(bounds.shape[0] - 1):
        first, last = bounds[i], bounds[i + 1]
        for r in range(labels.shape[0]):
            n_states = 0
            for t in range(first, last):
                n_states = max(n_states, labels[r, t] + 1)
            before = labels[r, first:last].copy()
            for k in range(n_states):
                members = first + np.flatnonzero(before == k)
                part = np.empty((points.shape[0], members.shape[0]))
                for c in range(points.shape[0]):
                    for m in range(members.shape[0]):
                        part[c, m] = points[c, members[m]]
                if members.shape[0] > 0:
                    n_parts = distinct_count(part, 0, members.shape[0], n_mix)
                    found = kmeans_labels(part, n_parts, states[i])
                    for m in range(members.shape[0]):
                        labels[r, members[m]] = k * n_mix + found[m]


@njit(**KERNEL)
def content_seeds(points, bounds, seed):
    """Seeds made of the first frames of each range and the user's seed, shape (n, 1).

    The frames say which sequence it is, wherever it stands; a few are enough.
    """
    seeds = np.empty((bounds.shape[0] - 1, 1), np.uint64)
    for i in range(seeds.shape[0]):
        last = min(bounds[i] + SEED_FRAMES, bounds[i + 1])
        part = window(points, bounds[i], last)
        seeds[i, 0] = content_seed(part.ravel(), seed)
    return seeds
