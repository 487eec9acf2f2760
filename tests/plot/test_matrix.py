import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm.plot import DistanceMatrixDisplay


def test_matrix_is_ordered_by_label(plt):
    y = np.array(["b", "a", "b", "a", "a"])
    distances = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    distances[0, 1] = np.inf
    display = DistanceMatrixDisplay.from_distances(distances, y)
    assert_array_equal(display.order_, [1, 3, 4, 0, 2])
    drawn = display.im_.get_array()
    assert_array_equal(
        drawn.mask, np.isinf(distances[display.order_][:, display.order_])
    )
    assert drawn[0, 1] == 2
    assert_allclose(display.ax_.get_xticks(), [1, 3.5])
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["a", "b"]
    assert_allclose(display.lines_[0].get_xdata(), 2.5)
    assert display.colorbar_.ax.get_ylabel() == "distance"
    plain = DistanceMatrixDisplay(distances).plot()
    assert_array_equal(plain.order_, range(5))
