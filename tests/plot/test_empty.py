"""Errors name what a display cannot draw, before a figure is made."""

import numpy as np
import pytest

import skawhmm as sk

NOTHING = np.empty(0)
DISPLAYS = [
    ("alphas", lambda: sk.plot.AlphaCurveDisplay(NOTHING, np.empty((0, 0)), NOTHING)),
    ("scores", lambda: sk.plot.AlphaCurveDisplay([0, 1], np.zeros((3, 1)), [1])),
    ("recall", lambda: sk.plot.RetrievalDisplay(NOTHING, NOTHING)),
    ("precision", lambda: sk.plot.RetrievalDisplay([0, 1], [1])),
    ("distances", lambda: sk.plot.DistanceMatrixDisplay(np.empty((0, 0)))),
    ("y", lambda: sk.plot.DistanceMatrixDisplay(np.eye(2), [1])),
    ("scores", lambda: sk.plot.DynamicsGainDisplay(NOTHING, np.empty((0, 2)), (0, 1))),
    ("permuted_scores", lambda: sk.plot.DynamicsGainDisplay([1.0], [1.0], (0, 1))),
    ("interval", lambda: sk.plot.DynamicsGainDisplay([1.0], [[1.0]], 0.1)),
    ("low", lambda: sk.plot.EffectsDisplay(["a"], [1], [1, 2], [1], [1])),
    ("null_distribution", lambda: sk.plot.GroupTestDisplay(1.0, NOTHING, 0.5)),
    ("positions", lambda: sk.plot.HMMMapDisplay(np.empty((0, 2)))),
    ("plan", lambda: sk.plot.RegistrationDisplay(np.empty((0, 0)))),
    ("replicates", lambda: sk.plot.DistanceIntervalDisplay(1, 1, 0, 2, NOTHING)),
    ("n_components", lambda: sk.plot.StabilityDisplay([], NOTHING, NOTHING)),
    ("restarts", lambda: sk.plot.StabilityDisplay([1, 2], np.eye(2), [1, 2])),
    ("values", lambda: sk.plot.StateSummaryDisplay(np.empty((0, 2)), [])),
    ("groups", lambda: sk.plot.StateSummaryDisplay(np.eye(2), [0])),
    ("differences", lambda: sk.plot.TransitionGraphDisplay(np.empty((0, 0)), [], [])),
    ("occupancy", lambda: sk.plot.TransitionGraphDisplay(np.eye(2), np.eye(2), [1])),
]


@pytest.mark.parametrize(("name", "make"), DISPLAYS)
def test_inputs_that_cannot_be_drawn_are_named(plt, name, make):
    with pytest.raises((TypeError, ValueError), match=f"^{name} must"):
        make().plot()
    assert not plt.get_fignums()
