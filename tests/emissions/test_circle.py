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


def assigned(a, b, n=1000):
    """Return the distance of evenly spaced quantiles by an optimal assignment."""
    levels = (np.arange(n) + 0.5) / n
    x, y = (mu + vonmises_quantiles(0.0, kappa, levels) for mu, kappa in (a, b))
    gaps = np.abs(np.angle(np.exp(1j * (x[:, None] - y)))) ** 2
    rows, columns = linear_sum_assignment(gaps)
    return np.sqrt(gaps[rows, columns].mean())


def shifted(a, b, n=4000):
    """Return the least distance over shifts, by the quantiles of cells of levels."""
    nodes, weights = np.polynomial.legendre.leggauss(4)
    levels = (np.arange(n)[:, None] + 0.5 + 0.5 * nodes) / n
    x, y = (
        mu + vonmises_quantiles(0.0, kappa, levels.ravel()).reshape(n, -1)
        for mu, kappa in (a, b)
    )
    turns = 2 * np.pi * (np.arange(-n, 2 * n) // n)
    longer = np.tile(y, (3, 1)) + turns[:, None]

    def gap(shift):
        return np.mean((x - longer[n + shift : 2 * n + shift]) ** 2 @ weights / 2)

    low, high = -n, n
    while high - low > 2:
        third = (high - low) // 3 or 1
        left, right = low + third, high - third
        if gap(left) <= gap(right):
            high = right
        else:
            low = left
    below, here, above = (gap(low + k) for k in range(3))
    curvature = below - 2 * here + above
    gain = (below - above) ** 2 / (8 * curvature) if curvature > 1e-12 else 0.0
    return np.sqrt(max(here - gain, 0.0))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((0.3, 0.02), (-2.0, 50.0)),
        ((0.0, 0.0), (1.0, 200.0)),
        ((0.0, 0.3), (3.0, 4.0)),
        ((0.0, 1.0), (1.5, 1.2)),
        ((-1.0, 4.0), (2.1, 9.0)),
        ((0.0, 30.0), (-np.pi, 40.0)),
        ((0.5, 2.0), (0.5, 8.0)),
    ],
)
def test_costs_are_those_of_an_assignment(a, b):
    assert_allclose(cost(a, b), assigned(a, b), rtol=1e-3)


@given(st.tuples(angles, concentrations), st.tuples(angles, concentrations))
@settings(max_examples=60, deadline=None)
def test_costs_are_the_least_over_shifts(a, b):
    assert_allclose(cost(a, b), shifted(a, b), rtol=2e-3, atol=1e-6)


@given(concentrations, st.floats(-0.1, 0.1))
@settings(max_examples=40, deadline=None)
def test_costs_of_similar_states_keep_their_digits(kappa, change):
    # Quantiles are right to 1e-6. Similar states differ most in their tails, where
    # both rules have few nodes.
    a, b = (0.0, kappa), (0.0, kappa * np.exp(change))
    assert_allclose(cost(a, b), shifted(a, b), rtol=5e-3, atol=1e-6)


def test_costs_grow_with_the_angle():
    for kappas in ([0.1, 0.2], [2.0, 3.0], [1e3, 2e3], [1e4, 1.0]):
        gaps = np.linspace(0, np.pi - 1e-9, 400)
        found = [cost((0.0, kappas[0]), (gap, kappas[1])) for gap in gaps]
        assert (np.diff(found) >= 0).all()


@given(st.tuples(angles, concentrations), st.tuples(angles, concentrations))
@settings(max_examples=60, deadline=None)
def test_costs_are_symmetric_and_turn_with_the_circle(a, b):
    assert cost(a, b) == cost(b, a)
    turned = [((mu + 2.0 + np.pi) % (2 * np.pi) - np.pi, kappa) for mu, kappa in (a, b)]
    assert_allclose(cost(*turned), cost(a, b), rtol=1e-6, atol=1e-6)
    assert cost(a, a) == 0


@given(st.floats(-2.5, 2.5), st.floats(100, 5000))
def test_concentrated_states_are_points_on_the_circle(angle, kappa):
    gap = abs(angle)
    assert_allclose(cost((0.0, kappa), (angle, kappa)), gap, rtol=1e-3, atol=1e-6)


@given(angles, angles)
def test_uniform_states_are_equal_wherever_they_are(a, b):
    assert cost((a, 0.0), (b, 0.0)) == 0


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


@pytest.mark.parametrize("kappa", [2.0, 4.0, 8.0, 15.0])
def test_quantiles_have_their_probability_far_in_the_tail(kappa):
    beyond = np.geomspace(1e-12, 1e-3, 40)
    found = vonmises_quantiles(0.0, kappa, 1 - beyond)
    assert_allclose(stats.vonmises(kappa).cdf(-found), beyond, rtol=2e-3, atol=1e-13)
