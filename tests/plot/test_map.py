import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from skawhmm import (
    AlphaCurveDisplay,
    DistanceMatrixDisplay,
    HMMBatch,
    HMMMapDisplay,
    KNeighborsHMMClassifierCV,
    RegistrationDisplay,
    RetrievalDisplay,
    average_precision,
    pairwise_hmm_distances,
    register_states,
    retrieval_curve,
)


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


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


def test_alpha_curve_draws_again_elsewhere(plt, knn):
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


def crossed(n_features=2, covariance_type="diag"):
    """Two models whose states are listed in opposite order."""
    covars = np.full((2, 2, n_features), 4.0)
    covars[..., 0] = 1.0
    if covariance_type == "full":
        covars = covars[..., None] * np.eye(n_features)
    means = np.zeros((2, 2, n_features))
    means[0, 1] = means[1, 0] = 9.0
    means[1] += 1.0
    return HMMBatch(np.full((2, 2, 2), 0.5), means, covars)


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_registration_draws_states_and_plan(plt, covariance_type):
    models = crossed(covariance_type=covariance_type)
    display = RegistrationDisplay.from_models(models[0], models[1], names=("p", "q"))
    assert_allclose(display.plan, register_states(models[0], models[1]))
    for side, ellipses in enumerate(display.ellipses_):
        centres = [ellipse.get_center() for ellipse in ellipses]
        assert_allclose(centres, models.means[side])
        for ellipse in ellipses:
            # One standard deviation to each side: 2 along the second feature.
            assert_allclose([ellipse.width, ellipse.height], [4, 2])
            assert_allclose(abs(ellipse.angle), 90)
    ends = [line.get_xydata() for line in display.lines_]
    assert_allclose(ends, [[[0, 0], [1, 1]], [[9, 9], [10, 10]]])
    assert len({line.get_linewidth() for line in display.lines_}) == 1
    assert_allclose(display.im_.get_array(), [[0, 0.5], [0.5, 0]])
    states, matrix = display.axes_
    assert [text.get_text() for text in states.get_legend().texts] == ["p", "q"]
    assert [text.get_text() for text in matrix.texts] == ["0.50", "0.50"]
    assert matrix.get_xlabel() == "state of q"


def test_registration_draws_any_number_of_features(plt, make_batch):
    models = crossed(n_features=5)
    display = RegistrationDisplay.from_models(models[0], models[1])
    points = np.concatenate(display.means)
    gaps = np.linalg.norm(points[:, None] - points, axis=2)
    # All states lie on one line; only their widths turn the first axis a little.
    points = models.means.reshape(4, 5)
    assert_allclose(gaps, np.linalg.norm(points[:, None] - points, axis=2), rtol=1e-3)
    assert display.axes_[0].get_xlabel() == "principal axis 0"
    models = crossed(n_features=1)
    display = RegistrationDisplay.from_models(models[0], models[1])
    assert_allclose(display.means[0], [[0, 1], [9, 1]])
    assert_allclose(display.means[1], [[10, 0], [1, 0]])


def test_registration_leaves_out_states_never_visited(plt):
    models = HMMBatch(
        transmats=[[[0.5, 0.5], [0.5, 0.5]], [[1.0]]],
        means=[[[0.0, 0.0], [4.0, 4.0]], [[1.0, 1.0]]],
        covars=[[[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0]]],
    )
    _, ax = plt.subplots()
    display = RegistrationDisplay.from_models(models[0], models[1], ax=ax)
    assert display.plan.shape == (2, 1)
    assert [len(ellipses) for ellipses in display.ellipses_] == [2, 1]
    assert display.axes_ == [ax]
    assert display.im_ is None


def test_registration_without_positions_is_a_matrix(plt):
    display = RegistrationDisplay([[0.25, 0.75]]).plot()
    assert_allclose(display.im_.get_array(), [[0.25, 0.75]])
    assert display.lines_ == []
    costs = np.array([[0.0, 1.0], [1.0, 0.0]])
    chains, states = np.full((2, 2, 2), 0.5), [[0, 1], [1, 0]]
    models = HMMBatch.from_state_costs(chains, costs, states=states)
    display = RegistrationDisplay.from_models(models[0], models[1])
    assert len(display.axes_) == 1


def plane_distances(rng, n_points=30):
    points = rng.normal(size=(n_points, 2)) * [3, 1]
    return points, np.linalg.norm(points[:, None] - points, axis=2)


def test_map_by_scaling_keeps_euclidean_distances(plt, rng):
    _, distances = plane_distances(rng)
    y = np.array(["one", "two", "three"])[np.arange(30) % 3]
    display = HMMMapDisplay.from_distances(distances, y, method="mds")
    drawn = display.positions
    assert_allclose(np.linalg.norm(drawn[:, None] - drawn, axis=2), distances)
    assert list(display.classes_) == ["one", "three", "two"]
    assert_allclose(display.points_[0].get_offsets(), drawn[y == "one"])
    colors = {tuple(part.get_facecolor()[0]) for part in display.points_}
    assert len(colors) == 3
    labels = [text.get_text() for text in display.ax_.get_legend().texts]
    assert labels == ["one", "three", "two"]


def test_map_joins_neighbours(plt, rng):
    _, distances = plane_distances(rng)
    display = HMMMapDisplay.from_distances(distances, method="mds", n_neighbors=2)
    lines = np.array(display.links_.get_segments())
    assert lines.shape == (60, 2, 2)
    lengths = np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1)
    np.fill_diagonal(distances, np.inf)
    assert_allclose(lengths, np.sort(distances, axis=1)[:, :2].ravel())
    assert display.ax_.get_legend() is None


def test_map_writes_many_names_beside_the_points(plt, rng):
    y = np.arange(60) % 20
    display = HMMMapDisplay(rng.normal(size=(60, 2)), y).plot()
    assert display.ax_.get_legend() is None
    assert [text.get_text() for text in display.names_] == [str(k) for k in range(20)]
    place = np.median(display.positions[y == 7], axis=0)
    assert_allclose(display.names_[7].get_position(), place)
    looks = {
        (tuple(part.get_facecolor()[0]), part.get_paths()[0].vertices.tobytes())
        for part in display.points_
    }
    assert len(looks) == 20


def test_map_of_models_is_that_of_their_distances(plt, make_batch):
    models = make_batch(n_models=12)
    distances = pairwise_hmm_distances(models, alpha=0.5)
    for method in ("tsne", "mds"):
        display = HMMMapDisplay.from_models(models, alpha=0.5, method=method)
        again = HMMMapDisplay.from_distances(distances, method=method)
        assert_array_equal(display.positions, again.positions)
        assert display.positions.shape == (12, 2)


def test_map_refuses_what_it_cannot_draw(plt):
    with pytest.raises(ValueError, match="must be finite"):
        HMMMapDisplay.from_distances([[0, np.inf], [np.inf, 0]])
    with pytest.raises(ValueError, match="must be square"):
        HMMMapDisplay.from_distances([[0.0, 1.0]])
    with pytest.raises(ValueError, match="'pca'"):
        HMMMapDisplay.from_distances([[0.0]], method="pca")


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


def test_matplotlib_is_imported_only_to_draw():
    names = ("curves", "map", "matrix", "registration")
    modules = ", ".join(f"skawhmm.plot._{name}" for name in names)
    code = f"import sys, {modules}; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
