import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm.emissions import Emission


@given(seed=st.integers(0, 10**6), n_values=st.integers(1, 3))
def test_matched_means_are_weighted_means_of_the_models_of_a_row(seed, n_values):
    rng = np.random.default_rng(seed)
    own, values = (
        rng.normal(size=(2, 3, n_values, 2)),
        rng.normal(size=(5, 3, n_values, 2)),
    )
    labels = rng.integers(2, size=5)
    masses = rng.random((5, 3, 3)) * (rng.random((5, 3, 3)) < 0.5)
    means = Emission.matched_means(own, values, labels, masses)
    for row in range(2):
        for i in range(3):
            weights = masses[labels == row, i].ravel()
            if weights.sum() > 0:
                states = values[labels == row].reshape(-1, n_values, 2)
                expected = np.average(states, axis=0, weights=weights)
                assert_allclose(means[row, i], expected, atol=1e-12)
            else:
                assert_array_equal(means[row, i], own[row, i])
