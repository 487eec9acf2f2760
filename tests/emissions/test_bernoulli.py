"""States that emit flags."""

import numpy as np
from numpy.testing import assert_allclose

from skawhmm.emissions import Bernoulli


def test_bernoulli_costs_are_differences_of_probabilities():
    family = Bernoulli().like(np.array([0.2, 0.7])[:, None, None])
    assert_allclose(family.cross(np.array([0]), np.array([1])), 0.25)


def test_moments_are_those_of_a_coin():
    states = Bernoulli().like(np.array([[[0.3]]]))
    mean, variance = (np.ravel(found)[0] for found in states.moments(0, 1))
    assert_allclose([mean, variance], [0.3, 0.21], rtol=1e-12)
