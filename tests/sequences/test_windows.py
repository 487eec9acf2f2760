import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.pipeline import make_pipeline

from skawhmm import HMMKMeans, HMMTransformer
from skawhmm.sequences import WindowList, Windows


def recording(n_timesteps, n_features=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n_timesteps, n_features))


def test_windows_of_two_recordings():
    X = [recording(10), recording(7)]
    windows = Windows(length=4, step=3).fit_transform(X)
    assert_array_equal(windows.info["recording"], [0, 0, 0, 1, 1])
    assert_array_equal(windows.info["start"], [0, 3, 6, 0, 3])
    assert_array_equal(windows.info["end"], [4, 7, 10, 4, 7])
    assert_array_equal(windows[2], X[0][6:10])
    assert_array_equal(windows.lengths, [10, 7])


@given(
    st.integers(1, 12),
    st.none() | st.integers(1, 15),
    st.none() | st.integers(1, 12),
    st.integers(12, 60),
)
def test_windows_never_look_beyond_their_end(length, step, min_length, n_timesteps):
    x = recording(n_timesteps)
    cutter = Windows(length, step, min_length=min_length)
    windows = cutter.transform([x])
    least = length if min_length is None else min(min_length, length)
    for window, start, end in zip(
        windows, windows.info["start"], windows.info["end"], strict=True
    ):
        assert_array_equal(window, x[start:end])
        assert least <= len(window) <= length
        # What follows may be cut off.
        assert_array_equal(cutter.transform([x[:end]])[-1], window)
    assert np.all(np.diff(windows.info["end"]) == (length if step is None else step))
    assert n_timesteps - windows.info["end"][-1] < (length if step is None else step)


def test_shorter_windows_at_the_start_hold_recorded_frames_only():
    windows = Windows(6, 2, min_length=2).fit_transform([recording(9)])
    assert_array_equal(windows.info["start"], [0, 0, 0, 2])
    assert_array_equal(windows.info["end"], [2, 4, 6, 8])


def test_values_of_windows_on_frames():
    windows = Windows(length=4, step=2).fit_transform([recording(9), recording(4)])
    known, other = windows.per_frame([5, 6, 7, 8])
    assert_array_equal(known, [-1, -1, -1, 5, 5, 6, 6, 7, 7])
    assert_array_equal(other, [-1, -1, -1, 8])
    # Middles of the windows are at 1.5, 3.5 and 5.5.
    center, _ = windows.per_frame([5.0, 6.0, 7.0, 8.0], align="center")
    assert_array_equal(center, [5, 5, 5, 6, 6, 7, 7, 7, 7])
    names, _ = windows.per_frame(["a", "b", "c", "d"])
    assert names.tolist() == [None, None, None, "a", "a", "b", "b", "c", "c"]
    gaps, _ = windows.per_frame([5.0, 6.0, 7.0, 8.0])
    assert np.isnan(gaps[:3]).all()


def test_models_know_their_windows():
    steps = make_pipeline(Windows(30, 10), HMMTransformer(2, random_state=0))
    models = steps.fit_transform([recording(70), recording(40)])
    assert_array_equal(models.info["start"], [0, 10, 20, 30, 40, 0, 10])
    assert_array_equal(models[-2:].info["recording"], [1, 1])
    assert_array_equal(models.info["end"] - models.info["start"], 30)
    labels = HMMKMeans(2, random_state=0).fit_predict(models)
    assert labels.shape == (7,)


def test_windows_of_texts():
    windows = Windows(3).fit_transform(["abcabcx", "bca"])
    assert ["".join(np.ravel(w)) for w in windows] == ["abc", "abc", "bca"]
    hmm = HMMTransformer(1, emission="categorical", random_state=0)
    assert_array_equal(hmm.fit_transform(windows).info["recording"], [0, 0, 1])


def test_windows_keep_the_names_of_channels():
    frame = pd.DataFrame(recording(20), columns=["x", "y"])
    windows = Windows(10).fit_transform([frame])
    assert windows[1].feature_names == ("x", "y")
    restored = pickle.loads(pickle.dumps(windows))
    assert isinstance(restored, WindowList)
    assert_array_equal(restored.info["end"], windows.info["end"])


def test_a_window_longer_than_a_recording():
    with pytest.raises(ValueError, match=r"length must be at most.*50 and X\[1\].*20"):
        Windows(50).fit_transform([recording(60), recording(20)])


@pytest.mark.parametrize(
    "params", [{"length": 0}, {"length": 2.5}, {"step": 0}, {"min_length": -1}]
)
def test_parameters_must_be_positive_integers(params):
    (name,) = params
    with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
        Windows(**params).fit_transform([recording(300)])


def test_values_must_be_one_per_window():
    windows = Windows(5).fit_transform([recording(10)])
    with pytest.raises(ValueError, match=r"values must hold one.*\(2,\).*\(3,\)"):
        windows.per_frame([1, 2, 3])
    with pytest.raises(ValueError, match="align must be"):
        windows.per_frame([1, 2], align="start")
