"""States that emit overdispersed counts."""

import numpy as np
from numpy.testing import assert_allclose

from skawhmm.emissions import Gamma, NegativeBinomial


def test_negative_binomial_costs_become_those_of_rates():
    means, shapes = np.array([3.0, 7.5]), np.array([1e6, 1e6])
    family = NegativeBinomial().like(means[:, None, None], shapes[:, None, None])
    cost = family.cross(np.array([0]), np.array([1]))[0, 0, 0]
    assert_allclose(np.sqrt(cost), 4.5, rtol=1e-5)


def test_negative_binomial_costs_are_those_of_gamma_rates():
    means, shapes = np.array([3.0, 7.5])[:, None, None], np.array([2.0, 0.7])
    counts = NegativeBinomial().like(means, shapes[:, None, None])
    sds = means / np.sqrt(shapes[:, None, None])
    rates = Gamma().like(means, sds, np.zeros_like(means))
    pair = np.array([0]), np.array([1])
    assert_allclose(counts.cross(*pair), rates.cross(*pair), rtol=1e-12)


def test_merged_states_have_the_moments_of_the_mixture():
    arrays = (np.array(values)[None, :, None] for values in ([2.0, 6.0], [4.0, 3.0]))
    merged = NegativeBinomial().like(*arrays).merged(np.array([[[0.25, 0.75]]]))
    mean, variance = (np.ravel(found)[0] for found in merged.moments(0, 1))
    # Second moments are 7 and 54.
    assert_allclose([mean, variance], [5, 0.25 * 7 + 0.75 * 54 - 25], rtol=1e-9)
