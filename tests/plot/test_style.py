import subprocess
import sys

import numpy as np
import pytest

from skawhmm.plot import (
    DistanceMatrixDisplay,
    EffectsDisplay,
    HMMDisplay,
    HMMMapDisplay,
    RegistrationDisplay,
    RetrievalDisplay,
    SequenceDisplay,
    StateSummaryDisplay,
    TransitionGraphDisplay,
)
from skawhmm.plot._style import bar_range


def test_matplotlib_is_imported_only_for_drawing():
    names = ("curves", "explorer", "map", "matrix", "model", "registration", "style")
    modules = ", ".join(f"skawhmm.plot._{name}" for name in names)
    code = f"import sys, {modules}; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("values", [[5.0], [1e30, 1e30], [0.0], [], [1.0, 1.0 + 1e-15]])
def test_histograms_of_equal_values_have_bars_with_a_width(values):
    low, high = bar_range(np.array(values))
    assert np.diff(np.histogram_bin_edges([], bins=40, range=(low, high))).min() > 0
    assert all(low <= value <= high for value in values)


def test_histograms_go_from_the_least_to_the_largest_value():
    assert bar_range(np.array([3.0, -1.0, 2.0])) == (-1.0, 3.0)


ZERO = np.zeros((2, 2))
MATRIX = np.array([[0.0, 1.0], [1.0, 0.0]])
DISPLAYS = {
    "map": HMMMapDisplay(ZERO),
    "matrix": DistanceMatrixDisplay(MATRIX),
    "model": HMMDisplay(np.eye(2), [0.5, 0.5], [1, 0]),
    "sequence": SequenceDisplay(ZERO, [0, 0]),
    "registration": RegistrationDisplay(MATRIX / 2),
    "states": StateSummaryDisplay(ZERO, [0, 1]),
    "graph": TransitionGraphDisplay(ZERO, ZERO, [0.5, 0.5]),
    "effects": EffectsDisplay(["a"], [0], [0], [0], [1]),
}


@pytest.mark.parametrize("name", DISPLAYS)
def test_missing_matplotlib_error_says_how_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "matplotlib.patches", None)
    with pytest.raises(ImportError, match=r'matplotlib: pip install "skawhmm\[plot\]"'):
        DISPLAYS[name].plot()


def test_labels_must_match(plt, make_batch):
    models = make_batch(n_models=3)
    wrong = r"y must hold one label per model \(3 models\), got shape \(2,\)"
    with pytest.raises(ValueError, match=wrong):
        HMMMapDisplay.from_models(models, [0, 1])
    with pytest.raises(ValueError, match=wrong):
        HMMMapDisplay.from_distances(np.zeros((3, 3)), [0, 1])
    with pytest.raises(ValueError, match=wrong):
        HMMMapDisplay(np.zeros((3, 2)), [0, 1]).plot()
    with pytest.raises(ValueError, match=wrong):
        DistanceMatrixDisplay.from_distances(np.zeros((3, 3)), [0, 1])
    with pytest.raises(ValueError, match="groups must hold one label per model"):
        StateSummaryDisplay(np.zeros((3, 2)), [0, 1]).plot()
    with pytest.raises(ValueError, match="labels must hold one label per difference"):
        EffectsDisplay(["a", "b"], [0], [0], [0], [1]).plot()
    with pytest.raises(ValueError, match="names must name the 2 models, got 3 names"):
        RegistrationDisplay(MATRIX / 2, names=["a", "b", "c"]).plot()
    with pytest.raises(ValueError, match="state_names must name the 2 states, got 1 n"):
        HMMDisplay(np.eye(2), [0.5, 0.5], [1, 0], state_names=["x"]).plot()


HOSTILE = [r"$\frac{$", "_x", "", "a$b$c$"]


def texts(figure):
    """Return all text that a figure draws, exactly as drawn."""
    from matplotlib.text import Text

    figure.canvas.draw()
    return [
        text.get_text().replace(r"\$", "$")
        for text in figure.findobj(Text)
        if text.get_visible()
    ]


def legend_texts(ax):
    return [text.get_text().replace(r"\$", "$") for text in ax.get_legend().texts]


def named_displays():
    """Return displays that draw users' labels, and how often each of them is drawn."""
    grid, four = np.zeros((4, 4)), np.arange(8.0).reshape(4, 2)
    far = 1 - np.eye(4)
    chain = np.full((4, 4), 0.25)
    start = [1, 0, 0, 0]
    states = {"state_names": HOSTILE}
    covars = np.tile(np.eye(2), (4, 1, 1))
    planes = {"means": four, "covars": covars, "axis_names": HOSTILE[:2]}
    lines = {
        "means": four[:, :1],
        "covars": covars[:, :1, :1],
        "axis_names": HOSTILE[:1],
    }
    bars = {"bars": four, "bar_names": HOSTILE[:2], "bar_label": HOSTILE[0]}
    effect = TransitionGraphDisplay(grid, grid, start, groups=HOSTILE[:2], **states)
    return {
        "map": HMMMapDisplay(four, HOSTILE),
        "matrix": DistanceMatrixDisplay(far, HOSTILE),
        "plane": HMMDisplay(chain, start, start, **planes, **states),
        "line": HMMDisplay(chain, start, start, **lines, **states),
        "bars": HMMDisplay(chain, start, start, **bars, **states),
        "sequence": SequenceDisplay(
            four, [0, 1, 2, 3], channel_names=HOSTILE[:2], **states
        ),
        "symbols": SequenceDisplay(four[:, :1] % 4, [0, 1, 2, 3], symbols=HOSTILE),
        "registration": RegistrationDisplay(MATRIX / 2, names=HOSTILE[:2]),
        "states": StateSummaryDisplay(four.T, HOSTILE[:2], label=HOSTILE[0], **states),
        "graph": effect,
        "effects": EffectsDisplay(
            HOSTILE, [0] * 4, [0] * 4, [0] * 4, [1] * 4, groups=HOSTILE[:2]
        ),
        "retrieval": RetrievalDisplay([0.0, 1.0], [1.0, 0.5], name=HOSTILE[0]),
    }


@pytest.mark.parametrize("given", [False, True], ids=["new axes", "given axes"])
@pytest.mark.parametrize("name", list(named_displays()))
def test_labels_are_drawn_literally(name, given, plt):
    display = named_displays()[name]
    several = name in {"plane", "line", "bars"}
    ax = plt.subplots(1, 1 + several)[1] if given else None
    display.plot(ax=ax)
    figure = display.figure_ if hasattr(display, "figure_") else plt.gcf()
    drawn = " ".join(texts(figure))
    assert HOSTILE[0] in drawn


@pytest.mark.parametrize("name", ["map", "states", "sequence"])
def test_legends_list_all_labels(name, plt):
    display = named_displays()[name].plot()
    wanted = HOSTILE[:2] if name == "states" else HOSTILE
    assert sorted(map(str.strip, legend_texts(display.ax_))) == sorted(wanted)


def test_legend_lists_curves_whose_name_begins_with_underscore(plt):
    display = RetrievalDisplay([0.0, 1.0], [1.0, 0.5], name="_x").plot()
    assert legend_texts(display.ax_) == [" _x"]
