import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMBatch
from skawhmm.groups import HMMAligner, state_effects
from skawhmm.plot import EffectsDisplay, TransitionGraphDisplay
from skawhmm.utils._colors import COLORS

to_hex = pytest.importorskip("matplotlib.colors").to_hex


def make_effects(n_groups=2, **options):
    rng = np.random.default_rng(0)
    group = np.repeat(list("abc")[:n_groups], 10)
    stay = np.where(group == "b", 0.8, 0.6) + rng.normal(0, 0.03, len(group))
    models = HMMBatch(
        [[[0.9, 0.1], [1 - s, s]] for s in stay],
        rng.normal([[0.0], [5.0]], 0.3, (len(group), 2, 1)),
        np.ones((len(group), 2, 1)),
    )
    return state_effects(
        models, group, reference=None, n_permutations=99, random_state=0, **options
    )


def test_forest_has_a_row_per_difference(plt):
    effects = make_effects()
    display = EffectsDisplay.from_effects(effects, state_names=["calm", "busy"])
    columns = effects.columns
    assert len(display.labels) == len(columns["measure"])
    row = int(np.flatnonzero((columns["state"] == 1) & (columns["next_state"] == 1))[0])
    place = display.labels.index("busy → busy")
    assert_allclose(display.points_[place].get_xdata(), columns["standardized"][row])
    # The interval of the difference, in standard deviations.
    ends = display.lines_[place].get_xdata()
    ratio = columns["standardized"][row] / columns["difference"][row]
    assert_allclose(ends, [columns["low"][row] * ratio, columns["high"][row] * ratio])
    assert "mean_0 of calm" in display.labels
    assert display.ax_.get_xlabel() == "b minus a, in standard deviations"


def test_forest_shows_match_confidence(plt):
    parts = ["x", "y"], [1, -1], [0.5, -2], [2, -0.5], [0.01, 0.01]
    display = EffectsDisplay(*parts, match=[0.934, np.nan]).plot()
    assert [text.get_text() for text in display.texts_] == ["93%", ""]
    assert EffectsDisplay(*parts).plot().texts_ == []
    with pytest.raises(ValueError, match="match must have shape"):
        EffectsDisplay(*parts, match=[1]).plot()
    models = make_effects().models
    sized = HMMBatch(
        models.transmats,
        models.means,
        models.covars,
        info={"n_timesteps": np.full(20, 50)},
    )
    aligner = HMMAligner(n_resamples=3, random_state=0).fit(sized)
    group, options = np.repeat(list("ab"), 10), {"random_state": 0}
    effects = state_effects(
        sized, group, reference=aligner, n_permutations=99, **options
    )
    drawn = EffectsDisplay.from_effects(effects)
    assert "occupancy of state 0" in drawn.labels
    assert "dwell time of state 1" in drawn.labels
    place = drawn.labels.index("occupancy of state 0")
    sure = np.nanmean(aligner.match_confidence_[:, 0])
    assert drawn.texts_[place].get_text() == f"{sure:.0%}"


def test_colours_show_which_group_has_more(plt):
    display = EffectsDisplay(
        ["x", "y", "z"], [1, -1, 1], [0.5, -2, -1], [2, -0.5, 3], [0.01, 0.01, 0.5]
    ).plot()
    colors = [to_hex(line.get_color()).upper() for line in display.lines_]
    assert colors[:2] == [COLORS[1], COLORS[0]]
    assert colors[2] not in COLORS
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["x", "y", "z"]


def test_most_significant_rows_and_any_pair_of_groups(plt):
    effects = make_effects(3)
    display = EffectsDisplay.from_effects(effects, ("b", "c"), max_rows=2)
    assert len(display.lines_) == 2
    assert display.groups == ("b", "c")
    assert "1 → 1" in EffectsDisplay.from_effects(effects).labels
    for change, message in (
        ({"groups": ("c", "d")}, r"groups must be one of the pairs .*'b', 'c'.*'d'"),
        ({"state_names": ["calm"]}, "state_names must name the 2 states, got 1"),
        ({"max_rows": 0}, "max_rows must be"),
        ({"significance": 2}, "significance must be"),
    ):
        with pytest.raises(ValueError, match=message):
            EffectsDisplay.from_effects(effects, **change)


def test_groups_in_reverse_order_change_the_sign(plt):
    effects = make_effects(3)
    one, other = (
        EffectsDisplay.from_effects(effects, pair) for pair in ("bc", tuple("cb"))
    )
    assert one.ax_.get_xlabel().startswith("c minus b")
    assert other.ax_.get_xlabel().startswith("b minus c")
    assert_array_equal(other.difference, -one.difference)
    assert_array_equal(other.low, -one.high)
    assert_array_equal(other.high, -one.low)
    assert_array_equal(other.pvalue, one.pvalue)
    graphs = [
        TransitionGraphDisplay.from_effects(effects, pair) for pair in ("bc", "cb")
    ]
    assert_array_equal(graphs[0].differences, -graphs[1].differences)


def test_graph_shows_the_transitions_that_differ(plt):
    effects = make_effects()
    display = TransitionGraphDisplay.from_effects(effects, state_names=["calm", "busy"])
    # Transitions from the first state are the same in all models.
    assert set(display.arrows_) == {(1, 0), (1, 1)}
    ring, arrow = display.arrows_[1, 1], display.arrows_[1, 0]
    assert to_hex(ring.get_edgecolor()).upper() == COLORS[1]
    assert to_hex(arrow.get_edgecolor()).upper() == COLORS[0]
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == ["calm", "busy"]
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["more in a", "more in b", "p > 0.05"]


def test_widths_and_sizes_are_proportional_to_their_values(plt):
    differences = np.array([[0.0, 0.2, -0.1], [0.1, np.nan, 0.0], [0.05, 0.0, 0.0]])
    pvalues = np.full((3, 3), 0.01)
    pvalues[2, 0] = 0.4
    places = [[0, 0], [4, 0], [0, 3]]
    display = TransitionGraphDisplay(
        differences, pvalues, [0.6, 0.3, 0.1], positions=places
    ).plot()
    assert set(display.arrows_) == {(0, 1), (0, 2), (1, 0), (2, 0)}
    widths = {cell: arrow.get_linewidth() for cell, arrow in display.arrows_.items()}
    assert widths[0, 1] > widths[0, 2] == widths[1, 0] > widths[2, 0]
    radii = [state.get_radius() for state in display.states_]
    assert radii[0] > radii[1] > radii[2]
    assert_allclose([state.get_center() for state in display.states_], places)
    with pytest.raises(ValueError, match=r"positions must have shape \(3, 2\)"):
        TransitionGraphDisplay(differences, pvalues, [1, 1, 1], positions=[1]).plot()


def test_graph_needs_transitions(plt):
    with pytest.raises(ValueError, match="effects must hold transitions"):
        TransitionGraphDisplay.from_effects(make_effects(measures="occupancy"))
