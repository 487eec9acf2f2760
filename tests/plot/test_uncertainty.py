import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm import HMMBatch
from skawhmm.groups import distance_interval, stability_curve
from skawhmm.plot import (
    DistanceIntervalDisplay,
    RegistrationIntervalDisplay,
    StabilityDisplay,
)


def test_interval_is_drawn(plt):
    chain = [[0.9, 0.1], [0.1, 0.9]]
    a, b = (HMMBatch([chain], [[[m], [m + 5.0]]], [[[1.0], [1.0]]]) for m in (0.0, 2.0))
    found = distance_interval(a, b, n_timesteps=200, n_resamples=30, random_state=0)
    display = DistanceIntervalDisplay.from_interval(found, bins=9)
    assert sum(bar.get_height() for bar in display.bars_) == 30
    assert_allclose(display.line_.get_xdata(), found.distance)
    (segment,) = display.interval_.lines[2][0].get_segments()
    assert_allclose(segment[:, 0], [found.low, found.high])
    assert display.ax_.get_xlim()[0] < 0
    assert display.interval_.get_label() == "90% interval of the true distance"


def test_stability_curves_are_drawn(rng, plt):
    X = [rng.normal(size=(30, 1)) + n for n in range(3)]
    curve = stability_curve(X, (1, 2), random_state=0)
    display = StabilityDisplay.from_curve(curve)
    drawn = [c.lines[0].get_ydata() for c in display.curves_]
    restarts, halves, held_out, bic, aic = drawn
    assert_allclose(restarts, curve.restarts.mean(axis=1))
    assert_allclose(halves, curve.halves.mean(axis=1))
    assert_allclose(held_out, curve.held_out.mean(axis=1))
    assert_allclose(bic, -curve.bic.mean(axis=1) / 2)
    assert_allclose(aic, -curve.aic.mean(axis=1) / 2)
    for line in display.best_lines_:
        assert_allclose(line.get_xdata(), curve.best_n_components)
    title = display.axes_[0].get_title(loc="left")
    assert title.replace("\n", " ") == curve.recommendation
    plain = StabilityDisplay([1, 2], np.ones((2, 3)), np.ones((2, 3))).plot()
    assert (plain.best_lines_, len(plain.axes_)) == ([], 1)
    assert plain.axes_[0].get_title(loc="left") == ""
    _, ax = plt.subplots()
    assert len(StabilityDisplay.from_curve(curve, ax=ax).curves_) == 2


def test_certain_registrations_are_drawn(plt):
    chances = np.array([[0.93, 0.07, 0.0], [np.nan, np.nan, np.nan]])
    display = RegistrationIntervalDisplay(chances, notes=["split"], names=["x", "y"])
    display.plot(cmap="Greens")
    assert [text.get_text() for text in display.texts_] == ["93 %", "7 %"]
    assert display.ax_.get_xlabel() == "state of y"
    assert display.ax_.get_title().endswith("split")
    ticks = display.ax_.get_xticklabels(), display.ax_.get_yticklabels()
    assert [[t.get_text() for t in side] for side in ticks] == [
        ["0", "1", "2"],
        ["0", "1"],
    ]
    names = (("low", "high"), None)
    display = RegistrationIntervalDisplay(chances, state_names=names).plot()
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["low", "high"]
    with pytest.raises(ValueError, match="names must name the 2 models, got 1"):
        RegistrationIntervalDisplay(chances, names=["x"]).plot()
