import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm.emissions import Gaussian
from skawhmm.emissions._model import Data, Model


@pytest.mark.parametrize("n_frames", [1, 3, 7, 8, 9, 40])
@pytest.mark.parametrize("n_features", [1, 5, 64, 67])
def test_moments_are_the_same_with_a_mask_of_observed_frames(rng, n_frames, n_features):
    frames = rng.normal(size=n_frames * n_features)
    model = Model(
        rng.dirichlet(np.ones(3), 1),
        rng.dirichlet(np.ones(3), (1, 3)),
        (rng.normal(size=(1, 3, n_features)), np.full((1, 3, n_features), 40.0)),
    )
    place = np.array([0, n_frames]), np.array([0, 1])
    found, wanted = (
        Gaussian().expectations(Data(frames, seen, *place), model, np.arange(1))[1]
        for seen in (np.empty(0), np.ones(frames.size))
    )
    for one, other in zip(found.statistics, wanted.statistics, strict=True):
        assert_allclose(one, other, rtol=1e-10, atol=1e-13)
    assert_allclose(found.statistics.counts.sum(axis=1), n_frames)
    means = model.states[0][0]
    x = frames.reshape(n_features, n_frames)
    # All states together, whatever their probabilities.
    sums = found.statistics.firsts + found.statistics.counts * means
    assert_allclose(sums[0].sum(axis=0), x.sum(axis=1), atol=1e-12)
