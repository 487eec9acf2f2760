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
    SequenceDisplay,
    StateSummaryDisplay,
    TransitionGraphDisplay,
)
from skawhmm.plot._style import bar_range


def test_matplotlib_is_imported_only_to_draw():
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
def test_missing_matplotlib_is_told_how_to_install(name, monkeypatch):
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
