"""Pictures of what states emit in single channels."""

import numpy as np
import pytest
from helpers import MIXED_BLOCKS, mixed_frames
from numpy.testing import assert_allclose

from skawhmm import HMMBatch, HMMTransformer
from skawhmm.emissions import (
    ByChannel,
    Gamma,
)
from skawhmm.plot import HMMDisplay

BLOCKS = [("step", Gamma(zero_mass=True), [0]), *MIXED_BLOCKS[1:]]
KINDS = [
    "curve",
    "rose",
    "curve",
    "curve",
    "bars",
    "points",
    "points",
    "curve",
    "points",
]


@pytest.fixture
def mixed(rng):
    busy = np.arange(200) // 25 % 2
    x = mixed_frames(rng, busy)
    x[rng.random(200) < 0.05, 0] = 0
    hmm = HMMTransformer(2, emission=ByChannel(BLOCKS), random_state=0)
    return hmm.fit_transform([x]), x


def test_every_kind_of_channel_has_a_panel(plt, mixed):
    model, x = mixed
    display = HMMDisplay.from_model(model, [x])
    display.figure_.canvas.draw()
    assert [panel["kind"] for panel in display.panels] == KINDS
    assert [ax.name == "polar" for ax in display.panels_] == [
        k == "rose" for k in KINDS
    ]
    assert display.panels[0]["note"].startswith("zeros: ")
    assert display.panels_[1].get_title() == "channel 1"


def test_curves_are_densities_times_fractions_of_time(plt, mixed):
    model, x = mixed
    for panel in HMMDisplay.from_model(model, [x]).panels:
        heights = np.asarray(panel["heights"])
        if panel["kind"] == "bars":
            assert_allclose(heights.sum(axis=1), 1)
            assert_allclose(panel["histogram"].sum(), 1)
            continue
        if panel["kind"] == "points":
            areas = heights.sum(axis=1)
            assert_allclose(
                panel["histogram"].sum() * np.diff(panel["edges"])[0], 1, 0.03
            )
        else:
            areas = np.trapezoid(heights, panel["places"], axis=1)
            bars = np.sum(panel["histogram"] * np.diff(panel["edges"]))
            assert 0.93 < bars <= 1 + 1e-12
        lost = 0.07 if "note" in panel else 0.03
        assert_allclose(areas, model.weights[0], atol=lost)


def test_full_covariances_have_marginal_distributions():
    covars = [[[[4.0, 1.0], [1.0, 9.0]]]]
    model = HMMBatch([[[1.0]]], [[[1.0, 2.0]]], covars)
    one = model.emission.of_channel(1)
    assert_allclose(one.means, [[[2.0]]])
    assert_allclose(one.covars, [[[9.0]]])


def test_gaussian_states_are_drawn_by_channel_on_request(plt, rng):
    X = [rng.normal(size=(50, 3))]
    model = HMMTransformer(2, random_state=0).fit_transform(X)
    assert not HMMDisplay.from_model(model).panels_
    assert len(HMMDisplay.from_model(model, states="channels").panels_) == 3
    assert len(HMMDisplay.from_model(model, X, channels=[2]).panels_) == 1
    with pytest.raises(ValueError, match=r"observed channels \[0, 1, 2\], got 3"):
        HMMDisplay.from_model(model, X, channels=[3])
    with pytest.raises(ValueError, match="X must be None unless states are drawn by"):
        HMMDisplay.from_model(model, X, states="bars")


def test_states_without_a_known_kind_have_no_channels(plt):
    model = HMMBatch.from_state_costs(
        [[[0.9, 0.1], [0.1, 0.9]]], lambda x, y: abs(x - y), states=[[1.0, 5.0]]
    )
    with pytest.raises(ValueError, match=r"states='channels' needs .*'custom'"):
        HMMDisplay.from_model(model, states="channels")
