import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

from skawhmm.numerics._transport import (
    DEPTH,
    PRICE,
    improve_plan,
    make_workspace,
    reprice,
    solve_transport,
)


def solution(supply, demand, cost):
    """Value and plan, with the prices of the sources and of the sinks."""
    cost = np.ascontiguousarray(cost, dtype=float)
    plan = np.full(cost.shape, np.nan)
    numbers, nodes = make_workspace(*cost.shape)
    supply, demand = np.array(supply, dtype=float), np.array(demand, dtype=float)
    value = solve_transport(supply, demand, cost, plan, numbers, nodes)
    prices = np.where(nodes[DEPTH] >= 0, numbers[PRICE], np.nan)
    return value, plan, prices[: len(supply)], prices[len(supply) :]


def linear_programme(supply, demand, cost, allowed=None):
    m, n = cost.shape
    sums = np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))])
    top = np.where(np.ones((m, n)) if allowed is None else allowed, np.inf, 0).ravel()
    result = linprog(
        cost.ravel(),
        A_eq=sums[:-1],
        b_eq=np.r_[supply, demand][:-1],
        bounds=np.stack([np.zeros(m * n), top], axis=1),
        method="highs-ds",
    )
    assert result.status == 0
    return result.fun


def check(supply, demand, cost, rounding=1e-13):
    """Hold a solution to its certificate: feasible, and as good as its prices say."""
    value, plan, low, high = solution(supply, demand, cost)
    total = max(np.sum(supply), np.sum(demand))
    scale = max(cost[np.ix_(supply > 0, demand > 0)].max(), 1e-300)
    assert (plan >= 0).all()
    assert_allclose(plan.sum(axis=1), supply, rtol=0, atol=rounding * total)
    assert_allclose(plan.sum(axis=0), demand, rtol=0, atol=rounding * total)
    gaps = (cost - low[:, None] - high)[np.ix_(supply > 0, demand > 0)]
    assert gaps.min() >= -rounding * scale
    bound = np.nansum(low * supply) + np.nansum(high * demand)
    assert_allclose(value, bound, rtol=0, atol=10 * rounding * scale * total)
    assert_allclose(value, np.sum(plan * cost), rtol=1e-13, atol=0)
    return value


COSTS = {
    "random": lambda rng, m, n: rng.random((m, n)),
    "constant": lambda _, m, n: np.full((m, n), 0.3),
    "zero": lambda _, m, n: np.zeros((m, n)),
    "few values": lambda rng, m, n: 0.1 * rng.integers(0, 3, (m, n)),
    # Every plan is optimal, up to rounding: what prices say is rounding only.
    "sums": lambda rng, m, n: rng.random((m, 1)) + rng.random(n),
    "nearly sums": lambda rng, m, n: (
        0.1 * rng.integers(0, 5, (m, 1))
        + 0.7 * rng.integers(0, 5, n)
        + 1e-14 * (rng.random((m, n)) < 0.1)
    ),
    "line": lambda rng, m, n: abs(
        0.1 * rng.integers(0, 4, (m, 1)) - 0.1 * rng.integers(0, 4, n)
    ),
    "repeated rows": lambda rng, m, n: rng.random((3, n))[rng.integers(0, 3, m)],
    "many sizes": lambda rng, m, n: 10.0 ** rng.uniform(-12, 0, (m, n)),
    "tiny": lambda rng, m, n: 1e-150 * rng.random((m, n)),
    "huge": lambda rng, m, n: 1e150 * rng.random((m, n)),
}
MASSES = {
    "random": lambda rng, n: rng.dirichlet(np.ones(n)),
    "equal": lambda _, n: np.full(n, 1 / n),
    "whole": lambda rng, n: rng.integers(0, 4, n) + (np.arange(n) == n // 2),
    "sparse": lambda rng, n: rng.dirichlet(np.full(n, 0.05)),
    "many sizes": lambda rng, n: 10.0 ** rng.uniform(-300, 0, n),
    "one": lambda rng, n: np.eye(n)[rng.integers(n)],
}


@pytest.mark.parametrize("masses", MASSES)
@pytest.mark.parametrize("costs", COSTS)
def test_certificate_of_adversarial_problems(costs, masses, rng):
    for _ in range(25):
        m, n = rng.integers(1, 33, 2)
        supply, demand = MASSES[masses](rng, m), MASSES[masses](rng, n)
        check(supply / supply.sum(), demand / demand.sum(), COSTS[costs](rng, m, n))


@pytest.mark.parametrize("masses", ["random", "equal", "sparse", "one"])
@pytest.mark.parametrize("costs", ["random", "few values", "line", "repeated rows"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (2, 2), (3, 5), (16, 16), (32, 20)])
def test_value_against_pot(costs, masses, shape, rng):
    supply, demand = (MASSES[masses](rng, n) for n in shape)
    cost = COSTS[costs](rng, *shape)
    expected = ot.emd2(supply, demand, cost)
    assert_allclose(check(supply, demand, cost), expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("costs", ["random", "few values"])
@pytest.mark.parametrize("shape", [(2, 3), (4, 4), (6, 3)])
def test_value_against_a_linear_programme(costs, shape, rng):
    for _ in range(3):
        supply, demand = (MASSES["random"](rng, n) for n in shape)
        cost = COSTS[costs](rng, *shape)
        expected = linear_programme(supply, demand, cost)
        assert_allclose(check(supply, demand, cost), expected, atol=1e-9)


def test_a_problem_solved_by_hand():
    value, plan, *_ = solution([0.6, 0.4], [0.5, 0.5], [[1.0, 2.0], [5.0, 1.0]])
    assert_allclose(plan, [[0.5, 0.1], [0.0, 0.4]], atol=1e-15)
    assert_allclose(value, 0.5 + 0.2 + 0.4)


small = st.integers(1, 5)


@given(small, small, st.data())
def test_whole_numbers(m, n, data):
    # Assignments with repeated costs: as degenerate as problems get.
    numbers = st.integers(0, 3)
    cost = data.draw(st.lists(numbers, min_size=m * n, max_size=m * n))
    supply = np.array(data.draw(st.lists(numbers, min_size=m, max_size=m)), float)
    demand = np.array(data.draw(st.lists(numbers, min_size=n, max_size=n)), float)
    gap = supply.sum() - demand.sum()
    demand[0] += max(gap, 0)
    supply[0] += max(-gap, 0)
    if supply.sum() == 0:
        return
    cost = np.reshape(cost, (m, n)).astype(float)
    value = check(supply, demand, cost)
    expected = linear_programme(supply, demand, cost)
    assert_allclose(value, expected, atol=1e-9)
    assert value == round(value)


@pytest.mark.parametrize("error", [1e-16, -1e-16, 1e-15, -1e-15, 1e-13, -1e-13])
def test_sums_that_differ_by_rounding(error, rng):
    for n in (1, 2, 3, 8, 32):
        supply, demand = rng.dirichlet(np.ones(n), size=2)
        cost = rng.random((n, n))
        expected = ot.emd2(supply, demand, cost)
        demand[-1] *= 1 + error
        demand[0] += error * 1e-3
        value, plan, *_ = solution(supply, np.maximum(demand, 0), cost)
        assert (plan >= 0).all()
        assert_allclose(value, expected, rtol=1e-11)


def test_masses_lost_in_rounding():
    # The last demand is nothing beside the sums, yet it must not do harm.
    cost = np.array([[0.0, 1.0, 7.0], [1.0, 0.0, 5.0]])
    for tiny in (1e-17, 1e-300, 5e-324):
        value, plan, *_ = solution([0.5, 0.5], [0.5, 0.5, tiny], cost)
        assert_allclose(plan[:, :2], np.eye(2) / 2)
        assert value < 1e-15
        value, plan, *_ = solution([0.5, 0.5, tiny], [0.5, 0.5], cost.T[:, ::1])
        assert_allclose(plan[:2], np.eye(2) / 2)
        assert value < 1e-15


@pytest.mark.parametrize("costs", ["random", "few values", "sums"])
def test_nodes_without_mass_change_no_bit(costs, rng):
    for _ in range(20):
        m, n = rng.integers(1, 6, 2)
        supply, demand = rng.dirichlet(np.ones(m)), rng.dirichlet(np.ones(n))
        cost = COSTS[costs](rng, m, n)
        value, plan, *_ = solution(supply, demand, cost)
        for far in (0.0, 1e9):
            wide = np.full((m + 2, n + 3), far)
            wide[1 : m + 1, :n] = cost
            padded = solution(np.pad(supply, (1, 1)), np.pad(demand, (0, 3)), wide)
            assert padded[0] == value
            assert_array_equal(padded[1][1 : m + 1, :n], plan)
            assert_array_equal(padded[1][[0, -1]], 0)
            assert_array_equal(padded[1][:, n:], 0)


def test_scratch_is_reused_from_problem_to_problem(rng):
    numbers, nodes = make_workspace(9, 9)
    for _ in range(30):
        m, n = rng.integers(1, 10, 2)
        supply, demand = rng.dirichlet(np.ones(m)), rng.dirichlet(np.ones(n))
        cost, plan = rng.random((m, n)), np.empty((m, n))
        value = solve_transport(supply, demand, cost, plan, numbers, nodes)
        fresh, fresh_plan, *_ = solution(supply, demand, cost)
        assert value == fresh
        assert_array_equal(plan, fresh_plan)


def test_scaling_the_cost_by_two_scales_the_value(rng):
    supply, demand = rng.dirichlet(np.ones(8), size=2)
    cost = rng.random((8, 8))
    value, plan, *_ = solution(supply, demand, cost)
    double, same, *_ = solution(supply, demand, 2**40 * cost)
    assert double == 2**40 * value
    assert_array_equal(same, plan)


def test_plan_improved_for_another_cost(rng):
    # Cells of infinite cost stay empty; the tree of the first cost is the start.
    for _ in range(40):
        m, n = rng.integers(2, 7, 2)
        supply = np.ones(m) / m if rng.random() < 0.5 else rng.dirichlet(np.ones(m))
        demand = np.ones(n) / n if rng.random() < 0.5 else rng.dirichlet(np.ones(n))
        cost, plan = rng.integers(0, 2, (m, n)) + 0.0, np.empty((m, n))
        numbers, nodes = make_workspace(m, n)
        solve_transport(supply, demand, cost, plan, numbers, nodes)
        gaps = cost - numbers[PRICE, :m, None] - numbers[PRICE, m:]
        allowed = gaps <= 1e-12
        ahead = np.where(allowed, rng.integers(0, 5, (m, n)) + 0.0, np.inf)
        reprice(ahead, numbers, nodes)
        improve_plan(ahead, plan, numbers, nodes)
        assert_array_equal(plan[~allowed], 0)
        assert (plan >= 0).all()
        assert_allclose(plan.sum(axis=1), supply, atol=1e-14)
        assert_allclose(plan.sum(axis=0), demand, atol=1e-14)
        value = np.sum(plan[allowed] * ahead[allowed])
        finite = np.where(allowed, ahead, 0)
        expected = linear_programme(supply, demand, finite, allowed)
        assert_allclose(value, expected, atol=1e-9)
