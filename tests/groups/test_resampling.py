import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMBatch
from skawhmm.groups._resampling import check_resampling, drawn_refits


def mixed_models():
    """Three models of 2, 3 and 2 states, fitted to 60 to 120 frames."""
    sizes = (2, 3, 2)
    return HMMBatch(
        transmats=[np.full((n, n), 1 / n) for n in sizes],
        means=[9.0 * np.arange(n)[:, None] + k for k, n in enumerate(sizes)],
        covars=[np.ones((n, 1)) for n in sizes],
        info={"n_timesteps": [60, 90, 120]},
    )


def test_refits_are_like_their_models():
    models = mixed_models()
    refits = drawn_refits(models, 4, 0)
    assert [len(part) for part in refits] == [4, 4, 4]
    for n, part in enumerate(refits):
        assert_array_equal(part.n_components, models.n_components[n])
        assert_array_equal(part.info["n_timesteps"], models.info["n_timesteps"][n])
        size = models.n_components[n]
        means = np.sort(part.means[:, :size, 0], axis=1).mean(axis=0)
        assert_allclose(means, models.means[n, :size, 0], atol=0.6)


def test_refits_of_a_model_do_not_depend_on_the_others():
    models = mixed_models()
    together, alone = drawn_refits(models, 3, 7)[1], drawn_refits(models[1], 3, 7)[0]
    assert_array_equal(together.means, alone.means)
    other = drawn_refits(models[1], 3, 8)[0]
    assert not np.array_equal(other.means, alone.means)


def test_lengths_are_those_of_the_data():
    given = check_resampling("parametric", None, None, 3, None, 0, 0)
    refits = given.refits(mixed_models()[2], "a")
    assert_array_equal(refits.info["n_timesteps"], [120] * 3)
    given = check_resampling("parametric", 31, None, 3, None, 0, 0)
    refits = given.refits(mixed_models()[2], "a")
    assert_array_equal(refits.info["n_timesteps"], [31] * 3)
    with pytest.raises(ValueError, match="block_length must be None"):
        check_resampling("parametric", None, 3, 3, None, 0, 0)
