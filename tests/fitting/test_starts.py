from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm.fitting._starts import (
    content_seeds,
    distinct_counts,
    kmeans_starts,
    segment_starts,
    split_starts,
)

STEP, MIX_A, MIX_B = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
WORD = 2**64


def scrambled(value):
    value = (value ^ value >> 30) * MIX_A % WORD
    value = (value ^ value >> 27) * MIX_B % WORD
    return value ^ value >> 31


def expected_seed(frames, seed):
    """The seed of one range, in Python's integers."""
    bits = [int(b) for b in np.ascontiguousarray(frames[:, :32]).view(np.uint64).flat]
    size = len(bits)
    chains = [scrambled(n % WORD) for n in (seed + STEP, size + MIX_A)]
    chains += [scrambled(n % WORD) for n in (seed + MIX_B, size + STEP)]
    whole = size - size % 4
    for i in range(whole):
        value = (chains[i % 4] ^ bits[i]) * MIX_A % WORD
        chains[i % 4] = value ^ value >> 29
    for value in bits[whole:]:
        chains[0] = scrambled(chains[0] ^ value)
    a, b, c, d = chains
    return scrambled(scrambled(scrambled(a) ^ b) ^ scrambled(scrambled(c) ^ d ^ STEP))


@pytest.mark.parametrize("n_features", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", [0, 7, 2**63 + 11])
def test_seeds_mix_the_bits_of_the_first_frames(rng, n_features, seed):
    bounds = np.cumsum([0, 1, 2, 31, 32, 33, 50])
    points = rng.normal(size=(n_features, bounds[-1]))
    expected = [expected_seed(points[:, i:j], seed) for i, j in pairwise(bounds)]
    assert content_seeds(points, bounds, seed).tolist() == expected


def test_distinct_frames_are_counted_up_to_the_limit():
    nan = np.nan
    points = np.array([[0, 1, 0, nan, nan, 2, 2.0], [0, 0, 0, 1, 1, 2, 3]])
    bounds = np.array([0, 3, 5, 7])
    assert_array_equal(distinct_counts(points, bounds, 9), [2, 1, 2])
    assert_array_equal(distinct_counts(points, np.array([0, 7]), 9), [5])
    assert_array_equal(distinct_counts(points, np.array([0, 7]), 4), [4])


def kmeans(points, bounds, states, labels):
    kmeans_starts(points, bounds, 3, states, labels)


def segments(points, bounds, states, labels):
    segment_starts(points, bounds, bounds, 3, states, labels)


def mixtures(points, bounds, states, labels):
    kmeans_starts(points, bounds, 3, states, labels)
    split_starts(points, bounds, 2, states, labels)


@pytest.mark.parametrize("start", [kmeans, segments, mixtures])
def test_labels_do_not_depend_on_the_other_ranges(rng, start):
    bounds = np.cumsum([0, 40, 3, 8, 300, 17])
    points = rng.normal(size=(5, bounds[-1]))
    states = rng.integers(2**63, size=5).astype(np.uint64)
    labels = np.full((3, bounds[-1]), -1)
    start(points, bounds, states.copy(), labels)
    assert labels.min() == 0
    for n, (i, j) in enumerate(pairwise(bounds)):
        part, alone = np.ascontiguousarray(points[:, i:j]), np.full((3, j - i), -1)
        start(part, np.array([0, j - i]), states[n : n + 1].copy(), alone)
        assert_array_equal(alone, labels[:, i:j])


def test_clusters_are_nearest_to_their_means(rng):
    centers = 20 * rng.normal(size=(4, 3))
    truth = rng.permutation(np.repeat(np.arange(4), 30))
    points = np.ascontiguousarray((centers[truth] + rng.normal(size=(120, 3))).T)
    labels = np.empty((5, 120), int)
    states = np.array([3], np.uint64)
    kmeans_starts(points, np.array([0, 120]), 4, states, labels)
    for row in labels:
        means = np.stack([points[:, row == k].mean(axis=1) for k in range(4)])
        gaps = ((points.T[:, None] - means) ** 2).sum(axis=2)
        assert_array_equal(row, gaps.argmin(axis=1))


def kmeans_of(x, n_clusters, state):
    """Labels by k-means++ and six rounds of Lloyd's algorithm, by definition."""
    nearest, centers = np.full(len(x), np.inf), []
    for k in range(n_clusters):
        tried = []
        for _ in range(2 + int(np.log(n_clusters)) if k > 0 else 1):
            state = (state + STEP) % WORD
            level = (scrambled(state) >> 11) / 2**53
            i = int(level * len(x))
            if k > 0:
                i = np.searchsorted(np.cumsum(nearest), level * nearest.sum(), "right")
            gaps = np.minimum(nearest, ((x - x[i]) ** 2).sum(axis=1))
            tried.append((gaps.sum(), i, gaps))
        _, i, nearest = min(tried, key=lambda found: found[0])
        centers.append(x[i])
    labels = np.full(len(x), -1)
    for _ in range(6):
        gaps = ((x[:, None] - np.array(centers)) ** 2).sum(axis=2)
        before, labels = labels, gaps.argmin(axis=1)
        if (labels != before).sum() <= 0.02 * len(x):
            break
        centers = [x[labels == k].mean(axis=0) for k in range(n_clusters)]
    return labels


@pytest.mark.parametrize("n_clusters", [2, 3, 4, 5, 9])
@pytest.mark.parametrize(("n_frames", "n_features"), [(70, 3), (512, 4), (1501, 13)])
def test_labels_are_those_of_the_definition(rng, n_clusters, n_frames, n_features):
    x = rng.normal(size=(n_frames, n_features))
    x += 2 * rng.normal(size=(n_clusters, n_features))[np.arange(n_frames) % n_clusters]
    labels, state = np.empty((1, n_frames), int), np.array([5], np.uint64)
    bounds = np.array([0, n_frames])
    kmeans_starts(np.ascontiguousarray(x.T), bounds, n_clusters, state, labels)
    assert_array_equal(labels[0], kmeans_of(x, n_clusters, 5))


def test_mixture_components_stay_in_their_state(rng):
    points = rng.normal(size=(2, 60))
    bounds, states = np.array([0, 60]), np.array([1], np.uint64)
    before = np.repeat([[0, 1, 2]], 20, axis=1)
    points[:, before[0] == 1] = 1.5
    labels = before.copy()
    split_starts(points, bounds, 3, states, labels)
    assert_array_equal(labels // 3, before)
    # Equal frames cannot be split.
    assert set(labels[before == 1]) == {3}
    assert len(set(labels[before == 0])) == 3
