import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skawhmm import HMMBatch
from skawhmm.emissions._gaussian_scores import LOG_TWO_PI, log_volume, make_densities


def norm_of(covar):
    model = HMMBatch([[[1.0]]], [[np.zeros(len(covar))]], [[covar]])
    return make_densities(model.emission).norms[0, 0]


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_constants_of_flat_states_are_those_of_their_eigenvalues(seed, rank):
    factor = np.random.default_rng(seed).normal(size=(6, rank)) + 3 * np.eye(6, rank)
    values = np.linalg.svd(factor, compute_uv=False) ** 2
    expected = -0.5 * (rank * LOG_TWO_PI + np.log(values).sum())
    assert_allclose(norm_of(factor @ factor.T), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("small", [1e-3, 1e-8, 1e-20, 1e-100])
def test_constants_of_flat_states_with_unlike_channels(small):
    # Two small channels that are equal, and a large one: the rank is 2, and the
    # eigenvalues are 1 and 2 * small**2.
    covar = np.zeros((3, 3))
    covar[0, 0], covar[1:, 1:] = 1.0, small**2
    expected = -0.5 * (2 * LOG_TWO_PI + np.log(2) + 2 * np.log(small))
    assert_allclose(norm_of(covar), expected, rtol=1e-12)


def test_constant_of_a_point_is_one():
    assert norm_of(np.zeros((2, 2))) == 0


def test_volume_by_hand():
    # The diagonal of a square whose sides are 3 and 4 long.
    vectors = np.sqrt([[0.5], [0.5]])
    actual = log_volume(vectors, np.array([3.0, 4.0]))
    assert_allclose(actual, np.log(np.sqrt(12.5)))
