"""States that emit positive numbers."""

import numpy as np
import pytest
from emissions.numerical_w2 import numerical_w2, positive
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from skawhmm import HMMBatch, HMMTransformer, hmm_barycenter
from skawhmm.emissions import Gamma


@given(st.tuples(positive, positive), st.tuples(positive, positive))
@settings(max_examples=15, deadline=None)
def test_gamma_costs_are_wasserstein_distances(a, b):
    distributions = [stats.gamma(shape, scale=scale) for shape, scale in (a, b)]
    arrays = [
        np.array([[[distribution.mean()]], [[distribution.std()]]])
        for distribution in distributions
    ]
    means, sds = np.stack(arrays, axis=1)[..., 0]
    family = Gamma().like(means[..., None], sds[..., None], np.zeros((2, 1, 1)))
    cost = np.sqrt(family.cross(np.array([0]), np.array([1]))[0, 0, 0])
    assert_allclose(cost, numerical_w2(*distributions), rtol=1e-3, atol=1e-9)


def test_zero_mass_moves_states_by_their_mean():
    zeros = np.array([0.1, 0.3])[:, None, None]
    ones = np.ones_like(zeros)
    family = Gamma(zero_mass=True).like(5 * ones, 2 * ones, zeros)
    cost = family.cross(np.array([0]), np.array([1]))[0, 0, 0]
    assert_allclose(np.sqrt(cost), 0.2 * 5, rtol=1e-12)


def test_zeros_have_a_probability_of_their_own(rng):
    states = np.cumsum(rng.random(2000) < 0.05) % 2
    x = rng.gamma(4, np.array([1.0, 10.0])[states])
    x[(states == 0) & (rng.random(2000) < 0.3)] = 0
    hmm = HMMTransformer(2, emission=Gamma(zero_mass=True), random_state=0)
    models = hmm.fit_transform([x[:, None]])
    order = np.argsort(models.emission.means[0, :, 0])
    assert_allclose(models.emission.zero_probs[0, order, 0], [0.3, 0.0], atol=0.03)
    assert_allclose(models.emission.means[0, order, 0], [4, 40], rtol=0.1)
    (sample,), (path,) = models.sample(2000, random_state=0)
    assert_allclose((sample[path == order[0]] == 0).mean(), 0.3, atol=0.06)


def test_density_of_zeros_is_a_probability():
    arrays = {"means": [[[2.0]]], "sds": [[[1.0]]], "zero_probs": [[[0.25]]]}
    models = HMMBatch.from_arrays(
        {"transmats": [[[1.0]]], **arrays}, emission=Gamma(zero_mass=True)
    )
    assert_allclose(models.score([[[0.0]]]), np.log(0.25))
    assert_allclose(
        models.score([[[3.0]]]), np.log(0.75) + stats.gamma(4, scale=0.5).logpdf(3.0)
    )


def test_options_are_checked():
    with pytest.raises(TypeError, match="zero_mass"):
        HMMTransformer(2, emission=Gamma(zero_mass="yes")).fit([[[1.0], [2.0]]])


def test_quantiles_and_moments_count_zeros(rng):
    family = Gamma(zero_mass=True)
    states = family.like(*(np.array([[[v]]]) for v in (5.0, 2.0, 0.3)))
    levels = np.array([0.1, 0.29, 0.31, 0.65, 0.99])[:, None]
    path = np.zeros(5, dtype=int)
    # Of the positive part a fraction of (level - 0.3) / 0.7 is below.
    positive_part = stats.gamma(6.25, scale=0.8)
    expected = [0, 0, *positive_part.ppf((levels[2:, 0] - 0.3) / 0.7)]
    assert_allclose(states.frames_at(0, path, levels)[:, 0], expected, rtol=1e-9)
    mean, variance = (np.ravel(found)[0] for found in states.moments(0, 1))
    x = np.where(
        rng.random(400_000) < 0.3, 0, positive_part.rvs(400_000, random_state=rng)
    )
    assert_allclose([mean, variance], [x.mean(), x.var()], rtol=0.02)
    assert_allclose([mean, variance], [3.5, 0.7 * (4 + 25) - 3.5**2], rtol=1e-12)


def test_probabilities_of_zeros_are_averaged():
    ones = np.ones((2, 1, 1))
    zeros = np.array([0.1, 0.3])[:, None, None]
    arrays = {"means": 5 * ones, "sds": 2 * ones, "zero_probs": zeros}
    models = HMMBatch.from_arrays(
        {"transmats": ones, **arrays}, emission=Gamma(zero_mass=True)
    )
    average = hmm_barycenter(models, random_state=0)[0].emission
    assert_allclose(average.zero_probs[0, 0, 0], 0.2, rtol=1e-6)
