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
)

# Rounds of Lloyd's algorithm, and the share of frames that must change in one; EM
# continues where they stop.
MAX_ROUNDS = 6
LEAST_CHANGE = 0.02
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
def distinct_count(points, limit):
    """Count distinct frames, no further than `limit`."""
    n_features, n_frames = points.shape
    found = np.empty(limit, np.int64)
    n_found = 0
    for t in range(n_frames):
        is_new = True
        for f in range(n_found):
            same = True
            for c in range(n_features):
                if points[c, t] != points[c, found[f]]:
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
def squared_distances(points, center, out):
    """Squared distance of every frame to a point."""
    n_features = points.shape[0]
    out[:] = 0.0
    for c in range(0, n_features, 2):
        # With an odd number of channels the last is its own, weightless, partner.
        e = min(c + 1, n_features - 1)
        scales = (1.0, 1.0 if e > c else 0.0)
        add_squares_of_two(points[c], points[e], (center[c], center[e]), scales, out)


@njit(**KERNEL)
def drawn_index(weights, level):
    """Index at which the running sum of weights passes a share of their total."""
    level *= weights.sum()
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
    centers = np.empty((n_clusters, n_features))
    nearest, trial = np.empty(n_frames), np.empty(n_frames)
    best = np.empty(n_frames)
    first = min(int(uniform(state) * n_frames), n_frames - 1)
    centers[0] = points[:, first]
    squared_distances(points, centers[0], nearest)
    n_trials = 2 + int(np.log(n_clusters))
    for k in range(1, n_clusters):
        best_total = np.inf
        for _ in range(n_trials):
            candidate = drawn_index(nearest, uniform(state))
            squared_distances(points, points[:, candidate].copy(), trial)
            total = 0.0
            for t in range(n_frames):
                trial[t] = min(trial[t], nearest[t])
                total += trial[t]
            if total < best_total:
                best_total = total
                centers[k] = points[:, candidate]
                best[:] = trial
        nearest[:] = best
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
    n_clusters = centers.shape[0]
    everything = np.empty((0, 0))
    post = np.zeros(scores.shape)
    for t in range(labels.shape[0]):
        post[labels[t], t] = 1.0
    counts, firsts = np.zeros(centers.shape), np.zeros(centers.shape)
    seconds = np.zeros(centers.shape)
    add_diag_moments(points, everything, post, centers, counts, firsts, seconds)
    for k in range(n_clusters):
        if counts[k, 0] > 0:
            centers[k] += firsts[k] / counts[k]
        else:
            worst = 0
            for t in range(labels.shape[0]):
                if scores[labels[t], t] < scores[labels[worst], worst]:
                    worst = t
            centers[k] = points[:, worst]
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
        labels[:] = 0
        return labels
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
        cuts.sort()
    for s in range(offsets.shape[0] - 1):
        size = offsets[s + 1] - offsets[s]
        for t in range(size):
            for cut in cuts:
                labels[offsets[s] + t] += (t + 0.5) / size > cut
    halves = np.full((n_components, points.shape[0]), 0.5)
    centers = np.zeros(halves.shape)
    scores, everything = np.zeros((n_components, points.shape[1])), np.empty((0, 0))
    for _ in range(MAX_ROUNDS):
        before = labels.copy()
        move_centers(points, labels, scores, centers)
        diag_log_density(points, everything, centers, halves, scores)
        for s in range(offsets.shape[0] - 1):
            segment_path(scores, offsets[s], offsets[s + 1], labels)
        if (before == labels).all():
            break
    return labels


@njit(**KERNEL)
def mixture_labels(points, labels, n_mix, state):
    """Split the frames of every state further into `n_mix` components."""
    result = labels * n_mix
    for k in range(labels.max() + 1):
        members = np.flatnonzero(labels == k)
        if members.shape[0] > 0:
            part = np.empty((points.shape[0], members.shape[0]))
            for c in range(points.shape[0]):
                part[c] = points[c][members]
            n_parts = distinct_count(part, n_mix)
            result[members] += kmeans_labels(part, n_parts, state)
    return result


@njit(**KERNEL)
def start_labels(points, offsets, n_states, n_mix, order, state):
    """State (and mixture component) of every frame at the start of a fit.

    Parameters
    ----------
    points : ndarray of shape (n_features, n_frames)
        The sequences one after the other.

    offsets : ndarray of shape (n_sequences + 1,)
        Where they begin and end.

    n_states, n_mix : int
        Number of states, and of components in each.

    order : int
        0 if states come in any order; 1 if they follow each other in time, first cut
        evenly; 2 if they do, first cut at random.

    state : ndarray of shape (1,)
        State of the random generator.
    """
    if order > 0:
        labels = segment_labels(points, offsets, n_states, state, order == 1)
    else:
        labels = kmeans_labels(points, n_states, state)
    if n_mix > 1:
        labels = mixture_labels(points, labels, n_mix, state)
    return labels
