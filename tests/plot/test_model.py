import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm import HMMBatch
from skawhmm.plot import HMMDisplay

CHAIN = [[0.75, 0.25, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]]


@pytest.fixture
def gaussian():
    return HMMBatch(
        transmats=[CHAIN],
        means=[[[0.0, 5.0, 1.0], [2.0, 5.0, 1.0], [4.0, 5.0, 1.0]]],
        covars=[[[1.0, 4.0, 0.0], [1.0, 1.0, 0.0], [1.0, 9.0, 0.0]]],
        weights=[[0.25, 0.5, 0.25]],
        startprobs=[[0.8, 0.2, 0.0]],
    )


def written(ax):
    return [text.get_text() for text in ax.texts]


def test_graph_shows_transitions_times_and_start(plt, gaussian):
    display = HMMDisplay.from_model(gaussian)
    assert set(display.arrows_) == {(0, 1), (1, 2)}
    strong, weak = (display.arrows_[key].get_linewidth() for key in [(0, 1), (1, 2)])
    assert strong > weak
    assert set(display.starts_) == {0, 1}
    texts = written(display.axes_[1])
    assert {"25 %, 4 steps", "50 %\n10 steps", "25 %\nnever left"} <= {*texts}
    assert {".25", ".10", "start 0.80", "start 0.20"} <= {*texts}
    radii = [state.get_radius() for state in display.states_]
    assert radii[1] > radii[0] == radii[2]


def test_unlikely_transitions_are_left_out(plt, gaussian):
    display = HMMDisplay.from_model(gaussian, threshold=0.21)
    assert set(display.arrows_) == {(0, 1)}
    assert set(display.starts_) == {0}


def test_chosen_channels_are_the_axes(plt, gaussian):
    names = ["speed", "height", "dead"]
    display = HMMDisplay.from_model(gaussian, channels=(1, 0), channel_names=names)
    assert display.axes_[0].get_xlabel() == "height"
    # The frequent state is drawn first.
    first = display.ellipses_[0]
    assert_allclose(first.center, [5, 2])
    assert_allclose([first.width, first.height], [2, 2])


def test_principal_axes_are_computed_from_all_frames(plt, gaussian):
    display = HMMDisplay.from_model(gaussian)
    # Variance of the frames: 3 along channel 0, 3.75 along channel 1, none along 2.
    assert display.axes_[0].get_xlabel().startswith("principal axis 0 (56 %")
    assert_allclose(display.means, [[5, 0], [5, 2], [5, 4]], atol=1e-12)
    assert_allclose(display.covars[2], [[9, 0], [0, 1]], atol=1e-12)


def test_one_channel_is_drawn_as_densities(plt):
    model = HMMBatch([[[0.5, 0.5], [0.5, 0.5]]], [[[0.0], [9.0]]], [[[4.0], [0.0]]])
    display = HMMDisplay.from_model(model, channel_names=["speed"])
    x, y = display.curves_[0].get_data()
    assert_allclose(np.trapezoid(y, x), 0.5, rtol=1e-3)
    assert_allclose(y.max(), 0.5 / np.sqrt(2 * np.pi * 4), rtol=1e-3)
    assert np.isfinite(display.curves_[1].get_ydata()).all()
    assert display.axes_[0].get_xlabel() == "speed"


def test_bars_are_means_in_standard_deviations(plt, gaussian):
    display = HMMDisplay.from_model(gaussian, states="bars", state_names="abc")
    assert_allclose(display.bars[:, 0], np.array([-2, 0, 2]) / np.sqrt(3), atol=1e-12)
    assert_allclose(display.errors[:, 0], np.ones(3) / np.sqrt(3))
    assert_allclose(display.errors[:, 2], 0)
    heights = [bars[0].get_height() for bars in display.bars_]
    assert heights[0] == pytest.approx(-heights[2])
    ticks = [text.get_text() for text in display.axes_[0].get_yticklabels()]
    assert ticks == ["a", "b", "c"]


def test_symbols_and_counts_are_bars(plt):
    chain = [[[0.9, 0.1], [0.1, 0.9]]]
    probabilities = [[[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]]]
    symbols = HMMBatch.from_emissionprobs(chain, probabilities, symbols="acg")
    display = HMMDisplay.from_model(symbols)
    assert_allclose(display.bars, probabilities[0])
    ticks = [text.get_text() for text in display.axes_[0].get_xticklabels()]
    assert ticks == ["a", "c", "g"]
    heights = [[bar.get_height() for bar in bars] for bars in display.bars_]
    assert_allclose(heights, np.array(probabilities[0]) * 0.8 / 0.7)
    counts = HMMBatch.from_rates(chain, [[[1.0, 8.0], [4.0, 2.0]]])
    display = HMMDisplay.from_model(counts, channel_names=["left", "right"])
    assert_allclose(display.bars, counts.rates[0])
    assert display.bar_names == ["left", "right"]


def test_states_without_shape_are_drawn_as_graph_only(plt):
    chain = [[[0.9, 0.1], [0.1, 0.9]]]
    model = HMMBatch.from_state_costs(
        chain, lambda x, y: abs(x - y), states=[[1.0, 5.0]]
    )
    display = HMMDisplay.from_model(model)
    assert len(display.axes_) == 1
    assert len(display.states_) == 2


def test_padding_and_channels_not_observed_are_left_out(plt):
    models = HMMBatch(
        transmats=[[[0.9, 0.1], [0.1, 0.9]], [[1.0]]],
        means=[[[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]], [[1.0, 2.0, 3.0]]],
        covars=[np.ones((2, 3)), np.ones((1, 3))],
        observed=[[True, False, True], [True, True, True]],
    )
    display = HMMDisplay.from_model(models[0])
    assert display.axes_[0].get_ylabel() == "channel 2"
    assert len(HMMDisplay.from_model(models[1]).states_) == 1
    bars = HMMDisplay.from_model(models[0], states="bars").bars
    assert np.isnan(bars[:, 1]).all()
    with pytest.raises(ValueError, match=r"two of the observed channels \[0, 2\]"):
        HMMDisplay.from_model(models[0], channels=(0, 1))


def test_single_axes_shows_the_graph(plt, gaussian):
    _, ax = plt.subplots()
    display = HMMDisplay.from_model(gaussian, ax=ax)
    assert display.axes_ == [ax]
    assert not display.ellipses_
    again = display.plot(plt.subplots(1, 2)[1])
    assert len(again.ellipses_) == 3


def test_invalid_arguments_are_named(plt, gaussian):
    with pytest.raises(ValueError, match="state_names must name the 3 states, got 2"):
        HMMDisplay.from_model(gaussian, state_names=["a", "b"])
    with pytest.raises(ValueError, match="channel_names must name the 3 channels"):
        HMMDisplay.from_model(gaussian, channel_names=["a"])
    with pytest.raises(ValueError, match="model must hold one model, got 2"):
        HMMDisplay.from_model(HMMBatch.concatenate([gaussian, gaussian]))
    with pytest.raises(ValueError, match="states must be one of"):
        HMMDisplay.from_model(gaussian, states="ellipse")
    with pytest.raises(ValueError, match="channels must be None unless"):
        HMMDisplay.from_model(gaussian, states="bars", channels=(0, 1))
    counts = HMMBatch.from_rates([[[1.0]]], [[[1.0]]])
    with pytest.raises(ValueError, match=r"needs Gaussian states, got .*'poisson'"):
        HMMDisplay.from_model(counts, states="gaussian")


def test_successive_states_are_drawn_next_to_each_other(plt):
    chain = np.zeros((4, 4))
    chain[[1, 2, 0, 3], [2, 0, 3, 1]] = 0.9
    np.fill_diagonal(chain, 0.1)
    display = HMMDisplay(chain, np.full(4, 0.25), [0, 0.7, 0.3, 0]).plot()
    places = np.array([state.center for state in display.states_])
    assert_allclose(places[[1, 2, 0, 3]], [[0, 1], [1, 0], [0, -1], [-1, 0]], atol=1e-9)


@pytest.mark.parametrize("name", ["transmat", "weights", "startprob"])
@pytest.mark.parametrize("value", [-0.1, 1e14, np.nan])
def test_parameters_must_be_probabilities(plt, name, value):
    values = {"transmat": np.eye(2), "weights": [0.5, 0.5], "startprob": [1.0, 0.0]}
    values[name] = np.full(np.shape(values[name]), value)
    with pytest.raises(ValueError, match=f"{name} must hold probabilities, got"):
        HMMDisplay(**values).plot()
