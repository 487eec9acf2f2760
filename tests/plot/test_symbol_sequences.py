import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMTransformer
from skawhmm.datasets import make_hmm_sequences
from skawhmm.plot import (
    MedoidSequencesDisplay,
    SequenceFrequencyDisplay,
    SequenceIndexDisplay,
    StateDistributionDisplay,
)
from skawhmm.utils._colors import COLORS

LIVES = ["SSWW", "SWWW", "SSSH", "SWWW", "SWH"]
GROUPS = ["east", "east", "west", "west", "west"]
texts = st.lists(st.text("SWH", min_size=1, max_size=6), min_size=1, max_size=8)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def drawn(rows):
    """Return the rectangles of rows as first time, top, width, height and colour."""
    boxes = [path.get_extents().bounds for path in rows.get_paths()]
    return [
        (*np.round(box, 6).tolist(), tuple(color))
        for box, color in zip(boxes, rows.get_facecolors(), strict=True)
    ]


def test_index_draws_one_box_per_spell():
    display = SequenceIndexDisplay.from_sequences(["SSW", "S"], symbols="SW", start=10)
    school, work = map(to_rgba, COLORS[:2])
    assert drawn(display.rows_[0]) == [
        (9.5, 0.5, 2.0, 1.0, school),
        (11.5, 0.5, 1.0, 1.0, work),
        (9.5, 1.5, 1.0, 1.0, school),
    ]


def test_missing_symbols_are_grey_and_in_the_legend():
    lives = [["S", None, "W"], ["S", "W", "W"]]
    display = SequenceIndexDisplay.from_sequences(lives)
    assert to_rgba("0.85") in [box[-1] for box in drawn(display.rows_[0])]
    labels = [text.get_text() for text in display.legend_.get_texts()]
    assert labels == ["S", "W", "missing"]
    whole = SequenceIndexDisplay.from_sequences(lives[1:])
    assert [text.get_text() for text in whole.legend_.get_texts()] == ["S", "W"]


@pytest.mark.parametrize(
    "display",
    [SequenceIndexDisplay, SequenceFrequencyDisplay, StateDistributionDisplay],
)
def test_times_on_the_axis_are_whole(display):
    (ax,) = display.from_sequences(LIVES).axes_
    ax.figure.canvas.draw()  # the layout decides how many ticks there are
    ticks = ax.get_xticks()
    assert_array_equal(ticks, np.round(ticks))


def test_index_sorts_by_symbols_or_numbers():
    order = {
        sort: SequenceIndexDisplay.from_sequences(LIVES, sort=sort).order_.tolist()
        for sort in (None, "start", "end")
    }
    assert order[None] == [0, 1, 2, 3, 4]
    # The alphabet is H, S, W.
    assert order["start"] == [2, 0, 4, 1, 3]
    assert order["end"] == [2, 4, 0, 1, 3]
    numbers = [3.0, 1, 2, 0, 4]
    by_number = SequenceIndexDisplay.from_sequences(LIVES, sort=numbers)
    assert by_number.order_.tolist() == [3, 1, 2, 0, 4]


def test_groups_are_panels():
    display = SequenceIndexDisplay.from_sequences(LIVES, GROUPS)
    titles = [ax.get_title() for ax in display.axes_]
    assert titles == ["east (n = 2)", "west (n = 3)"]
    assert display.order_.tolist() == [0, 1, 2, 3, 4]
    _, axes = plt.subplots(1, 2)
    assert SequenceIndexDisplay(LIVES, GROUPS).plot(axes).axes_ == [*axes]
    with pytest.raises(ValueError, match="one axes per panel, 2, got 1"):
        SequenceIndexDisplay.from_sequences(LIVES, GROUPS, ax=axes[0])


def test_distribution_by_hand():
    lives = [["S", "W"], ["S", None], ["W"]]
    display = StateDistributionDisplay.from_sequences(lives, symbols=["S", "W", "H"])
    assert_allclose(display.frequencies_, [[[2 / 3, 1 / 3, 0], [0, 1, 0]]])
    entropy = -(2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3)) / np.log(3)
    assert_allclose(display.entropies_, [[entropy, 0]])


@given(texts)
def test_distributions_sum_to_one_and_weigh_sequences_equally(lives):
    whole = StateDistributionDisplay(lives, symbols="SWH").plot()
    assert_allclose(whole.frequencies_.sum(axis=2), 1)
    twice = StateDistributionDisplay(lives * 2, symbols="SWH").plot()
    assert_allclose(twice.frequencies_, whole.frequencies_)
    assert (whole.entropies_ >= -1e-12).all()
    assert (whole.entropies_ <= 1 + 1e-12).all()
    plt.close("all")


def test_times_that_no_sequence_reaches_have_no_distribution():
    display = StateDistributionDisplay.from_sequences(["SS", "S"], ["a", "b"])
    assert np.isnan(display.frequencies_[1, 1]).all()


def test_heights_are_frequencies():
    display = SequenceFrequencyDisplay.from_sequences(LIVES, max_rows=2)
    assert_array_equal(display.counts_[0], [2, 1])
    assert_array_equal(display.examples_[0], [1, 0])
    ticks = [text.get_text() for text in display.axes_[0].get_yticklabels()]
    assert ticks == ["40 %", "20 %"]
    assert display.axes_[0].get_ylabel() == "60 % of the sequences"


@given(texts)
def test_all_frequencies_count_every_sequence(lives):
    display = SequenceFrequencyDisplay(lives, max_rows=len(lives)).plot()
    found = {lives[i]: n for i, n in zip(display.examples_[0], display.counts_[0])}  # noqa: B905
    assert found == {life: lives.count(life) for life in lives}
    plt.close("all")


def test_medoid_is_nearest_to_its_group(rng):
    points = rng.normal(size=5)
    distances = np.abs(points[:, None] - points)
    display = MedoidSequencesDisplay.from_sequences(LIVES, GROUPS, distances=distances)
    for k, group in enumerate(["east", "west"]):
        members = [i for i in range(5) if GROUPS[i] == group]
        means = {i: np.mean([distances[i, j] for j in members]) for i in members}
        assert display.medoids_[k] == min(means, key=means.get)
        assert_allclose(display.mean_distances_[k], min(means.values()))
    with pytest.raises(ValueError, match="one row per sequence, 5, got 4"):
        MedoidSequencesDisplay.from_sequences(LIVES, distances=distances[:4, :4])


def test_paths_of_hidden_states_are_drawn():
    X, _ = make_hmm_sequences(4, n_features=2, random_state=0)
    models = HMMTransformer(2, random_state=0).fit_transform(X)
    paths, _ = models.decode(X)
    display = StateDistributionDisplay.from_sequences(paths)
    assert_array_equal(display.symbols_, [0, 1])


def test_names_and_colors_of_many_symbols():
    lives = ["abcdefghijklmnopqrstuvwxyz"]
    assert len({*map(to_rgba, SequenceIndexDisplay(lives).plot().colors_)}) == 26
    named = SequenceIndexDisplay.from_sequences(LIVES, names=["home", "school", "work"])
    labels = [text.get_text() for text in named.legend_.get_texts()]
    assert labels == ["home", "school", "work"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"sort": "up"}, "sort must be 'start', 'end'.*got 'up'"),
        ({"sort": [1, 2]}, "sort must have shape"),
        ({"names": ["a"]}, "names must name the 3 symbols, got 1"),
        ({"symbols": "SW"}, "holds the symbol 'H'"),
        ({"y": ["a"]}, "y must"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        SequenceIndexDisplay.from_sequences(LIVES, **params)
