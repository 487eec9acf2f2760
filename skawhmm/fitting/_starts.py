"""Which state each frame belongs to at the start of a fit, compiled.

Seeds belong to the sequence: they mix the user's seed with the frames themselves.
"""

import numpy as np
from numba import njit

from skawhmm.emissions._gaussian_densities import (
    add_products,
    add_projection,
    add_squares,
    row_sum,
)
from skawhmm.numerics._forward_backward import window
from skawhmm.utils._compile import KERNEL

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
def squared_norms(points):
    """Squared length of every frame."""
    norms = np.zeros(points.shape[1])
    for c in range(points.shape[0]):
        add_squares(points[c], 1.0, norms.shape[0], norms)
    return norms


@njit(**KERNEL)
def fill_closeness(points, center, doubled, out):
    """Squared length of every frame less its squared distance to a point.

    Which of several points is the nearest depends on nothing else, and it takes a
    third of the operations; `doubled` is scratch of the size of the point.
    """
    total = 0.0
    for c in range(center.shape[0]):
        doubled[c] = 2.0 * center[c]
        total += center[c] * center[c]
    for t in range(out.shape[0]):
        out[t] = -total
    add_projection(points, doubled, center.shape[0], out.shape[0], out)


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
def spread_centers(points, norms, n_clusters, state):
    """Start centers by k-means++, the best of a few draws for each."""
    n_features, n_frames = points.shape
    centers, center = np.empty((n_clusters, n_features)), np.empty(n_features)
    nearest, best = np.full(n_frames, np.inf), np.empty(n_frames)
    trial, doubled = np.empty(n_frames), np.empty(n_features)
    for k in range(n_clusters):
        best_total = np.inf
        for _ in range(2 + int(np.log(n_clusters)) if k > 0 else 1):
            if k > 0:
                candidate = drawn_index(nearest, uniform(state))
            else:
                candidate = min(int(uniform(state) * n_frames), n_frames - 1)
            for c in range(n_features):
                center[c] = points[c, candidate]
            fill_closeness(points, center, doubled, trial)
            # A frame is not drawn twice, however its distance to itself is rounded.
            trial[candidate] = norms[candidate]
            for t in range(n_frames):
                trial[t] = min(max(norms[t] - trial[t], 0.0), nearest[t])
            total = row_sum(trial)
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
def move_centers(points, norms, labels, scores, centers):
    """Put centers on the means of their frames, empty ones on the worst served.

    Parameters
    ----------
    points, norms : ndarray of shape (n_features, n_frames) and (n_frames,)
        Frames and their squared lengths.

    labels : ndarray of int of shape (n_frames,)
        Cluster of every frame.

    scores : ndarray of shape (n_clusters, n_frames)
        Closeness to the present centers.

    centers : ndarray of shape (n_clusters, n_features)
        Changed in place.
    """
    n_clusters, n_features = centers.shape
    member = np.empty(labels.shape[0])
    for k in range(n_clusters):
        for t in range(labels.shape[0]):
            member[t] = 1.0 if labels[t] == k else 0.0
        count = row_sum(member)
        if count > 0:
            for c in range(n_features):
                centers[k, c] = 0.0
            add_products(points, member, n_features - 1, centers[k])
            for c in range(n_features):
                centers[k, c] /= count
        else:
            worst, least = 0, np.inf
            for t in range(labels.shape[0]):
                if scores[labels[t], t] - norms[t] < least:
                    worst, least = t, scores[labels[t], t] - norms[t]
            for c in range(n_features):
                centers[k, c] = points[c, worst]
            scores[labels[worst], worst] = np.inf


@njit(**KERNEL)
def fill_scores(points, centers, scores):
    """Fill the closeness (n_clusters, n_frames) of frames to centers."""
    doubled = np.empty(points.shape[0])
    for k in range(centers.shape[0]):
        fill_closeness(points, centers[k], doubled, scores[k])


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
    norms = squared_norms(points)
    centers = spread_centers(points, norms, n_clusters, state)
    scores = np.empty((n_clusters, points.shape[1]))
    for _ in range(MAX_ROUNDS):
        fill_scores(points, centers, scores)
        if assign(scores, labels) <= LEAST_CHANGE * labels.shape[0]:
            break
        move_centers(points, norms, labels, scores, centers)
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
    centers, norms = np.zeros((n_components, points.shape[0])), squared_norms(points)
    scores = np.zeros((n_components, points.shape[1]))
    for _ in range(MAX_ROUNDS):
        before, n_changed = labels.copy(), 0
        move_centers(points, norms, labels, scores, centers)
        fill_scores(points, centers, scores)
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
