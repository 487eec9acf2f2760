import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from skawhmm import KNeighborsHMMClassifierCV
from skawhmm.neighbors import average_precision, retrieval_curve
from skawhmm.plot import AlphaCurveDisplay, RetrievalDisplay


@pytest.fixture
def knn(make_batch):
    models = make_batch(n_models=20)
    return KNeighborsHMMClassifierCV(n_neighbors=[1, 3]).fit(models, np.arange(20) % 2)


def test_alpha_curve_draws_path_and_grid(plt, knn):
    display = AlphaCurveDisplay.from_estimator(knn, linewidth=3)
    exact, grid = display.lines_
    assert_array_equal(exact.get_xdata()[::2], knn.alpha_path_["alphas"][:-1])
    assert_array_equal(exact.get_ydata()[1::2], knn.alpha_path_["scores"])
    assert_array_equal(grid.get_xdata(), knn.alphas_)
    assert_array_equal(grid.get_ydata(), knn.scores_[:, 1])
    assert grid.get_linewidth() == 3
    assert_allclose(display.best_line_.get_xdata(), knn.alpha_)
    assert display.ax_.get_ylabel() == "leave-one-out accuracy"
    assert display.figure_ is display.ax_.figure


def test_alpha_curve_can_be_drawn_on_other_axes(plt, knn):
    display = AlphaCurveDisplay(knn.alphas_, knn.scores_, knn.n_neighbors_tried_)
    _, ax = plt.subplots()
    assert display.plot(ax=ax).ax_ is ax
    assert_array_equal(display.lines_[0].get_ydata(), knn.scores_[:, 0])
    assert display.best_line_ is None
    with pytest.raises(NotFittedError):
        AlphaCurveDisplay.from_estimator(KNeighborsHMMClassifierCV())


def test_retrieval_draws_the_curve(plt, rng):
    distances, y = rng.random((12, 12)), np.arange(12) % 3
    _, ax = plt.subplots()
    display = RetrievalDisplay.from_distances(distances, y, name="MAW", ax=ax)
    recall, precision = retrieval_curve(distances, y)
    assert_array_equal(display.line_.get_xdata(), recall)
    assert_array_equal(display.line_.get_ydata(), precision)
    score = average_precision(distances, y).mean()
    assert display.line_.get_label() == f"MAW (mAP = {score:.2f})"
    assert display.ax_ is ax
    assert display.plot(name="again").line_.get_label().startswith("again (")
    bare = RetrievalDisplay(recall, precision).plot()
    assert bare.ax_.get_legend() is None
