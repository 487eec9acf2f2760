"""Neighbouring frames side by side."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from skawhmm import Framewise, HMMTransformer
from skawhmm.sequences import Delays


def test_frames_before_and_after_are_appended(rng):
    x = rng.normal(size=(9, 2))
    (wide,) = Delays(2).fit_transform([x])
    assert wide.shape == (9, 10)
    for step in range(-2, 3):
        own = wide[:, 2 * (step + 2) : 2 * (step + 3)]
        places = np.clip(np.arange(9) + step, 0, 8)
        assert_array_equal(own, x[places])


def test_short_sequences_repeat_their_ends():
    assert_array_equal(Delays(3).fit_transform([[[5.0]]])[0], np.full((1, 7), 5.0))


def test_names_say_the_step():
    tables = [pd.DataFrame({"x": [1.0, 2.0], "z": [3.0, 4.0]})]
    step = Delays(1).fit(tables)
    names = ["x_-1", "z_-1", "x_+0", "z_+0", "x_+1", "z_+1"]
    assert_array_equal(step.get_feature_names_out(), names)


@pytest.mark.parametrize("n", [0, -1, 1.5, "two"])
def test_wrong_numbers_are_rejected(n):
    with pytest.raises((TypeError, ValueError), match=f"n must be .*{n}"):
        Delays(n).fit([[[1.0], [2.0]]])


def switching(rng, n_timesteps=1500):
    """Return an oscillation that changes its frequency, and which it has."""
    fast = np.arange(n_timesteps) // 150 % 2
    phase = np.cumsum(2 * np.pi * np.where(fast, 0.12, 0.05))
    return (np.sin(phase) + 0.2 * rng.normal(size=n_timesteps))[:, None], fast


def agreement(path, labels):
    """Return the fraction of frames on which two labellings of two states agree."""
    same = np.mean(path == labels)
    return max(same, 1 - same)


def test_delays_tell_frequencies_apart_that_frames_do_not(rng):
    x, fast = switching(rng)
    hmm = HMMTransformer(2, "full", random_state=0)
    (path,), _ = hmm.fit_transform([x]).decode([x])
    assert agreement(path, fast) < 0.7
    steps = make_pipeline(Delays(12), Framewise(PCA(6)))
    wide = steps.fit_transform([x])
    (path,), _ = hmm.fit_transform(wide).decode(wide)
    assert agreement(path, fast) > 0.9


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint64])
def test_integers_of_numpy_are_numbers(kind, rng):
    x = rng.normal(size=(9, 2))
    expected = Delays(2).fit_transform([x])[0]
    assert_array_equal(Delays(kind(2)).fit_transform([x])[0], expected)
    names = Delays(2).fit([x]).get_feature_names_out()
    assert_array_equal(Delays(kind(2)).fit([x]).get_feature_names_out(), names)
