import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import pairwise_hmm_distances
from skawhmm.plot import HMMMapDisplay


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


def test_map_connects_neighbours(plt, rng):
    _, distances = plane_distances(rng)
    display = HMMMapDisplay.from_distances(distances, method="mds", n_neighbors=2)
    lines = np.array(display.links_.get_segments())
    assert lines.shape == (60, 2, 2)
    lengths = np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1)
    np.fill_diagonal(distances, np.inf)
    assert_allclose(lengths, np.sort(distances, axis=1)[:, :2].ravel())
    assert display.ax_.get_legend() is None


@pytest.mark.parametrize("n_models", [2, 4])
def test_map_connects_no_model_to_itself(plt, rng, n_models):
    _, distances = plane_distances(rng, n_models)
    display = HMMMapDisplay.from_distances(distances, method="mds", n_neighbors=9)
    assert display.neighbors.shape == (n_models, n_models - 1)
    assert not np.any(display.neighbors == np.arange(n_models)[:, None])


def test_map_places_many_names_next_to_points(plt, rng):
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


def test_map_of_models_equals_map_of_their_distances(plt, make_batch):
    models = make_batch(n_models=12)
    distances = pairwise_hmm_distances(models, alpha=0.5)
    for method in ("tsne", "mds"):
        display = HMMMapDisplay.from_models(models, alpha=0.5, method=method)
        again = HMMMapDisplay.from_distances(distances, method=method)
        assert_array_equal(display.positions, again.positions)
        assert display.positions.shape == (12, 2)


def test_map_rejects_invalid_input(plt):
    with pytest.raises(ValueError, match="must be finite"):
        HMMMapDisplay.from_distances([[0, np.inf], [np.inf, 0]])
    with pytest.raises(ValueError, match="must be a square matrix"):
        HMMMapDisplay.from_distances([[0.0, 1.0]])
    with pytest.raises(ValueError, match="'pca'"):
        HMMMapDisplay.from_distances([[0.0]], method="pca")


@pytest.mark.parametrize("method", ["mds", "tsne"])
def test_map_of_few_models(plt, method):
    for n in (1, 2, 3):
        distances = 1.0 - np.eye(n)
        display = HMMMapDisplay.from_distances(distances, method=method)
        assert display.positions.shape == (n, 2)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_map_of_any_scale(plt, scale):
    distances = np.array([[0, 3, 4], [3, 0, 5], [4, 5, 0.0]])
    small, large = (
        HMMMapDisplay.from_distances(unit * distances, method="mds").positions
        for unit in (1.0, scale)
    )
    assert_allclose(large / scale, small, atol=1e-12)


def test_labels_of_a_map_are_checked(plt):
    distances = 1.0 - np.eye(3)
    for y in (5, "abc", [0, 1], [None, "a", 1]):
        with pytest.raises((TypeError, ValueError), match=r"^y must hold"):
            HMMMapDisplay.from_distances(distances, y, method="mds")
