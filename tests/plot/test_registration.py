import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm import HMMBatch, register_states
from skawhmm.plot import RegistrationDisplay


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
    # All states lie on one line; only their widths rotate the first axis a little.
    points = models.means.reshape(4, 5)
    assert_allclose(gaps, np.linalg.norm(points[:, None] - points, axis=2), rtol=1e-3)
    assert display.axes_[0].get_xlabel() == "principal axis 0"
    models = crossed(n_features=1)
    display = RegistrationDisplay.from_models(models[0], models[1])
    assert_allclose(display.means[0], [[0, 1], [9, 1]])
    assert_allclose(display.means[1], [[10, 0], [1, 0]])


def test_registration_omits_states_never_visited(plt):
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
