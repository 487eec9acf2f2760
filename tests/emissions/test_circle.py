"""Distances on the circle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import linear_sum_assignment

from skawhmm.emissions import VonMises
from skawhmm.emissions._circle import vonmises_quantiles

angles = st.floats(-np.pi, np.pi, exclude_max=True)
concentrations = st.floats(-2, 2).map(lambda power: 10.0**power)
PAIR = np.array([0]), np.array([1])


def cost(a, b):
    """Return the distance of two states, given by angle and concentration."""
    states = np.array([a, b]).T[:, :, None, None]
    return np.sqrt(VonMises().like(*states).cross(*PAIR)[0, 0, 0])


def assigned(a, b, n=200):
    """Return the distance of evenly spaced quantiles by an optimal assignment."""
    levels = (np.arange(n) + 0.5) / n
    x, y = (mu + stats.vonmises(kappa).ppf(levels) for mu, kappa in (a, b))
    gaps = np.abs(np.angle(np.exp(1j * (x[:, None] - y)))) ** 2
    rows, columns = linear_sum_assignment(gaps)
    return np.sqrt(gaps[rows, columns].mean())


@given(st.tuples(angles, concentrations), st.tuples(angles, concentrations))
@settings(max_examples=12, deadline=None)
def test_costs_are_those_of_an_assignment(a, b):
    # 200 points leave an error of about one part in a hundred in the tails.
    assert_allclose(cost(a, b), assigned(a, b), rtol=0.02, atol=0.01)


@given(st.tuples(angles, concentrations), st.tuples(angles, concentrations))
@settings(max_examples=60, deadline=None)
def test_costs_are_symmetric_and_turn_with_the_circle(a, b):
    assert_allclose(cost(a, b), cost(b, a), rtol=1e-9, atol=1e-9)
    turned = [((mu + 2.0 + np.pi) % (2 * np.pi) - np.pi, kappa) for mu, kappa in (a, b)]
    assert_allclose(cost(*turned), cost(a, b), rtol=1e-6, atol=1e-6)
    assert cost(a, a) == 0


@given(st.floats(-2.5, 2.5), st.floats(100, 5000))
def test_concentrated_states_are_points_on_the_circle(angle, kappa):
    gap = abs(angle)
    assert_allclose(cost((0.0, kappa), (angle, kappa)), gap, rtol=1e-3, atol=1e-6)


@given(angles, angles)
def test_uniform_states_are_equal_wherever_they_are(a, b):
    assert cost((a, 0.0), (b, 0.0)) < 1e-6


def test_uniform_and_concentrated_states():
    # A point and the uniform distribution: the root mean square of the arc.
    assert_allclose(cost((1.0, 1e6), (0.0, 0.0)), np.pi / np.sqrt(3), rtol=1e-3)


def test_states_at_opposite_sides():
    # One half moves up and the other down, each from and to the near side.
    near = np.pi - 2 * 0.01 * np.sqrt(2 / np.pi)
    assert_allclose(cost((0.0, 1e4), (-np.pi, 1e4)), near, rtol=1e-4)


@pytest.mark.parametrize("kappa", [1e-3, 0.1, 1.0, 5.0, 40.0])
def test_quantiles_are_those_of_scipy(kappa):
    levels = np.linspace(0.001, 0.999, 101)
    found = vonmises_quantiles(0.5, kappa, levels)
    assert_allclose(found, 0.5 + stats.vonmises(kappa).ppf(levels), atol=1e-6)
