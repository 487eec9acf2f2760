"""Start values of states."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm.emissions._starts import MOST_FRAMES, clustered_posteriors, unit_points


def test_clusters_that_are_far_apart_are_found(rng):
    labels = rng.integers(3, size=300)
    points = 20.0 * np.eye(3)[labels] + rng.normal(size=(300, 3))
    post = clustered_posteriors(points, 3, rng)
    assert_allclose(post.sum(axis=0), 1)
    found = post.argmax(axis=0)
    assert len({*zip(labels, found, strict=True)}) == 3


def test_points_that_are_equal_have_clusters():
    post = clustered_posteriors(np.ones((10, 2)), 3, np.random.default_rng(0))
    assert_allclose(post.sum(axis=0), 1)
    assert (post > 0).all()


def test_many_frames_join_the_clusters_of_few(rng):
    points = np.repeat([[0.0], [9.0]], MOST_FRAMES, axis=0)
    points += rng.normal(size=points.shape)
    post = clustered_posteriors(points, 2, rng)
    halves = post[0].reshape(2, -1).round(2)
    assert_array_equal(halves, halves[:, :1].repeat(MOST_FRAMES, axis=1))
    assert halves[0, 0] != halves[1, 0]


def test_points_have_unit_variance_in_all(rng):
    points = unit_points(np.column_stack([9 * rng.normal(size=(50, 2)), np.ones(50)]))
    assert_allclose(points.var(axis=0).sum(), 1)
    assert_allclose(points.mean(axis=0), 0, atol=1e-12)
