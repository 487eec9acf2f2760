from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm.fitting._coordinates import (
    _semidefinite,
    channel_scales,
    make_coordinates,
)
from skawhmm.fitting._coordinates_kernels import (
    channel_summaries,
    second_moments,
    standardized_rows,
    whitened_rows,
)
from skawhmm.numerics._lapack import in_batches

BOUNDS = np.cumsum([0, 1, 7, 8, 100, 33])


def parts(array):
    return [array[:, i:j] for i, j in pairwise(BOUNDS)]


@pytest.fixture(params=[0.0, 0.3], ids=["complete", "gappy"])
def channels(request, rng):
    channels = 5 + rng.normal(size=(4, BOUNDS[-1]))
    channels[rng.random(channels.shape) < request.param] = np.nan
    channels[:, BOUNDS[:-1]] = 5 + rng.normal(size=(4, 5))
    return channels


def test_summaries_skip_what_was_not_observed(channels):
    actual = channel_summaries(channels, BOUNDS)
    functions = (np.nanmean, np.nanvar, np.nanmin, np.nanmax)
    expected = [[f(part, axis=1) for part in parts(channels)] for f in functions]
    assert_allclose(actual[:4], expected, rtol=1e-13, atol=1e-13)
    counts = [np.isfinite(part).sum(axis=1) for part in parts(channels)]
    assert_array_equal(actual[4], counts)


def test_a_channel_without_values_has_no_summary():
    summary = channel_summaries(np.full((1, 3), np.nan), np.array([0, 3]))
    assert_array_equal(summary.ravel(), [0, 0, np.inf, -np.inf, 0])


def test_channels_are_standardized_by_sequence(channels, rng):
    centre, scale = rng.normal(size=(5, 4)), rng.uniform(1, 2, size=(5, 4))
    active = np.array([0, 2, 3])
    actual, seen = standardized_rows(channels, BOUNDS, active, centre, scale)
    expected = np.concatenate(
        [
            ((part.T - centre[s]) / scale[s]).T[active]
            for s, part in enumerate(parts(channels))
        ],
        axis=1,
    )
    known = np.isfinite(expected)
    assert_array_equal(actual, np.where(known, expected, 0))
    assert_array_equal(seen, known if not known.all() else np.empty((0, 0)))


def test_one_row_of_coordinates_serves_all(channels, rng):
    centre, scale = rng.normal(size=(1, 4)), rng.uniform(1, 2, size=(1, 4))
    rows = [np.repeat(part, 5, axis=0) for part in (centre, scale)]
    active = np.arange(4)
    one = standardized_rows(channels, BOUNDS, active, centre, scale)
    each = standardized_rows(channels, BOUNDS, active, *rows)
    assert_array_equal(one[0], each[0])


@pytest.mark.parametrize("n_features", [1, 2, 3, 4, 7])
def test_moments_and_whitening_are_matrix_products(rng, n_features):
    z = rng.normal(size=(n_features, BOUNDS[-1]))
    bases = rng.normal(size=(5, n_features, n_features))
    moments = [part @ part.T / part.shape[1] for part in parts(z)]
    assert_allclose(second_moments(z, BOUNDS), moments, atol=1e-13)
    white = [basis @ part for basis, part in zip(bases, parts(z), strict=True)]
    assert_allclose(
        whitened_rows(z, BOUNDS, bases), np.concatenate(white, axis=1), atol=1e-13
    )


def test_sequences_do_not_depend_on_each_other(channels, rng):
    z, bases = rng.normal(size=channels.shape), rng.normal(size=(5, 4, 4))
    summaries = channel_summaries(channels, BOUNDS)
    moments = second_moments(z, BOUNDS)
    white = parts(whitened_rows(z, BOUNDS, bases))
    for s, (raw, part) in enumerate(zip(parts(channels), parts(z), strict=True)):
        alone, rows = np.array([0, part.shape[1]]), part.copy()
        assert_array_equal(channel_summaries(raw.copy(), alone)[:, 0], summaries[:, s])
        assert_array_equal(second_moments(rows, alone)[0], moments[s])
        assert_array_equal(whitened_rows(rows, alone, bases[s : s + 1]), white[s])


def test_whitening_does_not_depend_on_the_choice_of_eigenvectors(rng):
    # Two frames leave one direction with variance, and any basis of the others will do.
    X = rng.normal(size=(6, 3))
    channels, offsets = np.ascontiguousarray(X.T[:, :2].repeat(3, axis=1)), [0, 6]
    scales = channel_scales(channels, np.array(offsets), "full")
    found = make_coordinates(channels, np.array(offsets), scales, "full")
    assert_array_equal(found.basis, found.basis.swapaxes(1, 2))
    assert_array_equal(found.inverse, found.inverse.swapaxes(1, 2))
    assert_allclose(found.basis @ found.inverse, np.eye(3)[None], atol=1e-9)


def test_eigenvalues_are_taken_of_doubtful_covariances_only(rng, monkeypatch):
    sizes = []

    def counted(function, stack):
        sizes.append(len(stack))
        return in_batches(function, stack)

    monkeypatch.setattr("skawhmm.fitting._coordinates.in_batches", counted)
    local = np.stack([np.cov(rng.normal(size=(3, 50))) for _ in range(4)])[None]
    back = rng.normal(size=(1, 1, 3, 3))
    product = back.swapaxes(-1, -2) @ local @ back
    assert_array_equal(_semidefinite(product.copy(), local, back), product)
    assert sizes == []
    # Nearly equal channels: products cancel, and lose more digits than are allowed.
    local[0, 2] += 1e20 * np.outer([1, -1, 0], [1, -1, 0])
    back = np.ones((1, 1, 3, 3)) + 1e-10 * rng.normal(size=(3, 3))
    product = back.swapaxes(-1, -2) @ local @ back
    product = (product + product.swapaxes(-1, -2)) / 2
    found = _semidefinite(product.copy(), local, back)
    assert sizes == [1]
    least = np.linalg.eigvalsh(found)[..., 0]
    assert (least >= -1e-9 * np.abs(found).max(axis=(-2, -1))).all()
    assert_array_equal(found[0, [0, 1, 3]], product[0, [0, 1, 3]])
