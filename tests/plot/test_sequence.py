import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm import HMMBatch, HMMTransformer
from skawhmm.fitting import MarkovChainTransformer
from skawhmm.plot import (
    HMMDisplay,
    RegistrationDisplay,
    SequenceDisplay,
    StateSummaryDisplay,
)
from skawhmm.sequences._names import named_frames


@pytest.fixture
def model():
    return HMMBatch(
        transmats=[[[0.9, 0.1], [0.1, 0.9]]],
        means=[[[0.0, 0.0], [5.0, 1.0]]],
        covars=[[[1.0, 1.0], [1.0, 1.0]]],
    )


def test_visits_are_coloured_by_state(plt, model):
    x = np.array([[0.0, 0], [5, 1], [5, 1], [0, 0], [0, 0.5]])
    display = SequenceDisplay.from_model(model, x, state_names=["low", "high"])
    assert list(display.path) == [0, 1, 1, 0, 0]
    edges = [span.get_extents().transformed(display.ax_.transData.inverted()) for span
             in display.spans_]  # fmt: skip
    assert_allclose([edge.x0 for edge in edges], [-0.5, 0.5, 2.5])
    assert_allclose([edge.x1 for edge in edges], [0.5, 2.5, 4.5])
    colors = [span.get_facecolor()[:3] for span in display.spans_]
    assert colors[0] == colors[2] != colors[1]
    texts = [text.get_text() for text in display.ax_.get_legend().texts]
    assert texts == ["low", "high"]


def test_legend_lists_states_in_order(plt, model):
    x = np.array([[5.0, 1], [0, 0]])
    display = SequenceDisplay.from_model(model, x)
    texts = [text.get_text() for text in display.ax_.get_legend().texts]
    assert texts == ["state 0", "state 1"]


def test_each_channel_has_its_own_strip(plt, model):
    x = np.array([[0.0, 3], [np.nan, 3], [4, 3], [2, 3]])
    display = SequenceDisplay(x, [0, 0, 1, 1], channel_names=["speed", "flat"]).plot()
    speed, flat = (line.get_ydata() for line in display.lines_)
    assert_allclose(speed, [-0.43, np.nan, 0.43, 0])
    assert_allclose(flat, -1)
    ticks = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert ticks == ["speed", "flat"]
    assert [text.get_text() for text in display.ax_.texts[:2]] == ["4", "0"]


def test_channels_that_vary_most_are_drawn(plt, rng):
    scales = np.array([1, 9, 1, 8, 7, 6, 5, 4, 3, 2])
    x = rng.normal(size=(50, 10)) * scales
    model = HMMTransformer(2, keep_sequences=True, random_state=0).fit_transform([x])
    display = SequenceDisplay.from_model(model)
    chosen = [1, 3, 4, 5, 6, 7, 8, 9]
    assert_allclose(display.sequence, x[:, chosen])
    assert display.channel_names == [f"channel {k}" for k in chosen]
    display = SequenceDisplay.from_model(model, channels=[2, 0])
    assert_allclose(display.sequence, x[:, [2, 0]])


def test_symbols_are_named(plt):
    model = HMMBatch.from_emissionprobs(
        transmats=[[[0.8, 0.2], [0.2, 0.8]]],
        emissionprobs=[[[0.8, 0.1, 0.1], [0.0, 0.5, 0.5]]],
        symbols="acg",
        sequences=["aacg"],
    )
    display = SequenceDisplay.from_model(model)
    assert_allclose(display.lines_[0].get_ydata(), [0, 0, 1, 2])
    ticks = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert ticks == ["a", "c", "g"]
    assert list(SequenceDisplay.from_model(model, "caa").path) == [1, 0, 0]


def test_counts_are_drawn(plt):
    model = HMMBatch.from_rates([[[0.5, 0.5], [0.5, 0.5]]], [[[1.0], [9.0]]])
    display = SequenceDisplay.from_model(model, np.array([[0], [9], [1]]))
    assert list(display.path) == [0, 1, 0]


def test_invalid_arguments_are_named(plt, model):
    x = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"path must hold one label per frame \(3 fr"):
        SequenceDisplay(x, [0, 1]).plot()
    with pytest.raises(ValueError, match="sequence must be given"):
        SequenceDisplay.from_model(model)
    with pytest.raises(ValueError, match="state_names must name the 2 states"):
        SequenceDisplay.from_model(model, x, state_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="channel_names must name the 2 channels"):
        SequenceDisplay.from_model(model, x, channel_names=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"channels .* below 2, got \[2\]"):
        SequenceDisplay.from_model(model, x, channels=[2])
    with pytest.raises(ValueError, match="features"):
        SequenceDisplay.from_model(model, np.zeros((3, 5)))


def test_channels_have_the_names_of_the_model(plt, rng):
    names = ("temp", "vib")
    hmm = HMMTransformer(2, keep_sequences=True, random_state=0)
    x = named_frames(rng.normal(size=(30, 2)), names)
    model = hmm.fit_transform([x])
    assert SequenceDisplay.from_model(model).channel_names == [*names]
    assert SequenceDisplay.from_model(model, x).channel_names == [*names]
    own = SequenceDisplay.from_model(model, channel_names=["a", "b"])
    assert own.channel_names == ["a", "b"]
    with pytest.raises(ValueError, match="must be in the same order"):
        SequenceDisplay.from_model(model, x[:, ::-1])
    assert HMMDisplay.from_model(model).axis_names == names
    both = RegistrationDisplay.from_models(model, model)
    assert both.axes_[0].get_xlabel() == "temp"
    assert both.axes_[0].get_ylabel() == "vib"


def test_states_of_visible_chains_are_called_by_their_symbols():
    texts = ["aabbaab", "abbbba"]
    models = MarkovChainTransformer().fit_transform(texts)
    display = SequenceDisplay.from_model(models[0], texts[0])
    labels = [text.get_text() for text in display.ax_.get_legend().texts]
    assert labels == ["a", "b"]
    assert HMMDisplay.from_model(models[0]).state_names == ["a", "b"]
    given = HMMDisplay.from_model(models[0], state_names=["first", "second"])
    assert given.state_names == ["first", "second"]
    summary = StateSummaryDisplay.from_models(models, ["x", "y"], reference=None)
    assert summary.state_names == ["a", "b"]
    pair = RegistrationDisplay.from_models(models[0], models[1])
    assert [t.get_text() for t in pair.axes_[-1].get_xticklabels()] == ["a", "b"]


def test_registration_keeps_the_numbers_of_visited_states():
    chain = [[0.5, 0.0, 0.5], [0.5, 0.0, 0.5], [0.5, 0.0, 0.5]]
    means, covars = [[[0.0, 0], [9, 9], [3, 1]]], np.ones((1, 3, 2))
    # No path reaches state 1.
    model = HMMBatch([chain], means, covars)
    display = RegistrationDisplay.from_models(model, model)
    assert [t.get_text() for t in display.axes_[-1].get_xticklabels()] == ["0", "2"]
