import numpy as np
from numpy.testing import assert_allclose

from skawhmm import HMMBatch
from skawhmm.groups import distance_interval, stability_curve
from skawhmm.plot import DistanceIntervalDisplay, StabilityDisplay


def test_interval_is_drawn(plt):
    chain = [[0.9, 0.1], [0.1, 0.9]]
    a, b = (HMMBatch([chain], [[[m], [m + 5.0]]], [[[1.0], [1.0]]]) for m in (0.0, 2.0))
    found = distance_interval(a, b, n_timesteps=200, n_resamples=30, random_state=0)
    display = DistanceIntervalDisplay.from_interval(found, bins=9)
    assert sum(bar.get_height() for bar in display.bars_) == 30
    assert_allclose(display.line_.get_xdata(), found.distance)
    (segment,) = display.interval_.lines[2][0].get_segments()
    assert_allclose(segment[:, 0], [found.low, found.high])
    assert display.interval_.get_label() == "90% interval of the true distance"


def test_stability_curves_are_drawn(rng, plt):
    X = [rng.normal(size=(30, 1)) + n for n in range(3)]
    curve = stability_curve(X, (1, 2), random_state=0)
    display = StabilityDisplay.from_curve(curve)
    restarts, halves = (c.lines[0].get_ydata() for c in display.curves_)
    assert_allclose(restarts, curve.restarts.mean(axis=1))
    assert_allclose(halves, curve.halves.mean(axis=1))
    assert_allclose(display.best_line_.get_xdata(), curve.best_n_components)
    plain = StabilityDisplay([1, 2], np.ones((2, 3)), np.ones((2, 3))).plot()
    assert plain.best_line_ is None
