import subprocess
import sys

import numpy as np
import pytest

from skawhmm.plot._style import bar_range


def test_matplotlib_is_imported_only_to_draw():
    names = ("curves", "explorer", "map", "matrix", "registration", "style")
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
