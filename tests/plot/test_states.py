import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm.plot import StateSummaryDisplay


def test_points_are_models_and_lines_are_means(make_batch, plt):
    models = make_batch(n_models=9)
    groups = np.array(list("aab") * 3)
    display = StateSummaryDisplay.from_models(
        models, groups, reference=None, state_names=["x", "y", "z"]
    )
    drawn = display.points_[0].get_offsets()
    own = models.weights[groups == "a"]
    assert_allclose(np.sort(drawn[:, 1]), np.sort(own.ravel()))
    # Points are drawn near their state, and groups side by side.
    assert np.abs(drawn[:, 0] - np.round(drawn[:, 0])).max() < 0.5
    means = display.means_[0].lines[0].get_ydata()
    assert_allclose(means, own.mean(axis=0))
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["x", "y", "z"]
    legend = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert legend == ["a", "b"]


@pytest.mark.parametrize("measure", ["occupancy", "dwell_time", "visits"])
def test_models_are_aligned_to_common_states(measure, make_batch, plt):
    models = make_batch(6, [2, 3, 3, 2, 3, 3], info={"group": list("ab") * 3})
    display = StateSummaryDisplay.from_models(
        models, "group", measure, reference=models[1]
    )
    missing = np.isnan(display.values).any(axis=1)
    assert missing.tolist() == [
        measure != "occupancy" and n in {0, 3} for n in range(6)
    ]
    with pytest.raises(ValueError, match="measure must be one of"):
        StateSummaryDisplay.from_models(models, "group", "speed")
    with pytest.raises(ValueError, match="groups must hold one label per model"):
        StateSummaryDisplay.from_models(models, [0, 1])


def test_errors_are_standard_errors(plt):
    values = np.array([[1.0], [3.0], [np.nan], [8.0]])
    display = StateSummaryDisplay(values, [0, 0, 0, 1], label="y").plot()
    (segment,) = display.means_[0].lines[2][0].get_segments()
    assert_allclose(segment[:, 1], [2 - 2 * 1, 2 + 2 * 1])
    assert display.ax_.get_ylabel() == "y"
