import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm.classification._dynamics import DynamicsGain
from skawhmm.plot import DynamicsGainDisplay

RESULT = DynamicsGain(
    np.array([0.9, 0.8]),
    np.array([[0.5, 0.6, 0.7], [0.6, 0.6, 0.6]]),
    np.array([10, 10]),
    np.array([10, 10]),
    "balanced accuracy",
)


def test_folds_and_means_are_drawn(plt):
    display = DynamicsGainDisplay.from_gain(RESULT, markersize=11)
    assert_array_equal(display.marks_.get_ydata(), [0.9, 0.8])
    assert display.marks_.get_markersize() == 11
    assert_array_equal(
        display.permuted_marks_.get_ydata(), RESULT.permuted_scores.ravel()
    )
    assert_array_equal(display.permuted_marks_.get_xdata(), [0, 0, 0, 1, 1, 1])
    ends = [segment[:, 1] for segment in display.gains_.get_segments()]
    assert_allclose(np.array(ends, float), [[0.6, 0.9], [0.6, 0.8], [0.6, 0.85]])
    assert_allclose(display.mean_[0].get_ydata().astype(float), [0.85])
    (bar,) = display.mean_[2]
    low, high = bar.get_segments()[0][:, 1].astype(float)
    assert_allclose([low - 0.6, high - 0.6], RESULT.interval)
    labels = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert labels == ["1", "2", "mean"]
    assert display.ax_.get_title().replace("\n", " ") == RESULT.meaning
    assert display.ax_.get_ylabel() == "balanced accuracy"


def test_gain_can_be_drawn_on_other_axes_without_title(plt):
    _, ax = plt.subplots()
    parts = RESULT.scores, RESULT.permuted_scores
    display = DynamicsGainDisplay(*parts, RESULT.interval).plot(ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_title() == ""
    assert ax.get_ylabel() == "score"
    with pytest.raises(ValueError, match=r"interval must contain the mean gain 0\.25"):
        DynamicsGainDisplay(*parts, (0.5, 0.9)).plot(ax=ax)
