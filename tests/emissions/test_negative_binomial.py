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
