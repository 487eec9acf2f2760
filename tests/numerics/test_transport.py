import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

from skawhmm.numerics._entry_points import (
    improve_plan,
    keep_plan,
    ranked_cells,
    reprice,
    resume_plan,
    solve_ranked,
    solve_transport,
)
from skawhmm.numerics._transport import DEPTH, PRICE, make_workspace


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
    # The last demand is negligible relative to the sums, yet must do no harm.
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


# Many problems of one cost, and one problem of many costs


def check_state(supply, demand, cost, plan, numbers, nodes, rounding=1e-13):
    """Hold plan and tree in the scratch to certificate and strong feasibility."""
    m, scale = len(supply), max(cost[np.ix_(supply > 0, demand > 0)].max(), 1e-300)
    assert (plan >= 0).all()
    assert_allclose(plan.sum(axis=1), supply, rtol=0, atol=rounding)
    assert_allclose(plan.sum(axis=0), demand, rtol=0, atol=rounding)
    gaps = cost - numbers[PRICE, :m, None] - numbers[PRICE, m:]
    assert gaps[np.ix_(supply > 0, demand > 0)].min() >= -rounding * scale
    parent, depth = nodes[0], nodes[DEPTH]
    assert_array_equal(depth >= 0, np.r_[supply, demand] > 0)
    assert depth[np.flatnonzero(supply)[0]] == 0
    below = np.flatnonzero(depth > 0)
    assert_array_equal(depth[below], depth[parent[below]] + 1)
    inside = np.zeros(plan.shape, bool)
    for node in below:
        cell = (node, parent[node] - m) if node < m else (parent[node], node - m)
        inside[cell] = True
        # Cells that carry no mass point towards the root.
        assert plan[cell] > 0 or node < m
    assert_array_equal(plan[~inside], 0)


def split(masses, n, rng):
    """Masses that are multiples of 1/64: sums have no rounding, and parts tie."""
    return rng.multinomial(64, MASSES[masses](rng, n)) / 64


@pytest.mark.parametrize("masses", ["random", "equal", "sparse", "one"])
@pytest.mark.parametrize("costs", COSTS)
def test_ranked_start_and_resumed_trees(costs, masses, rng):
    for _ in range(8):
        m, n = rng.integers(1, 33, 2)
        supply, demand = split(masses, m, rng), split(masses, n, rng)
        cost, plan = COSTS[costs](rng, m, n), np.zeros((m, n))
        numbers, nodes = make_workspace(m, n)
        places = ranked_cells(cost, numbers, nodes)
        solve_ranked(supply, demand, cost, places, plan, numbers, nodes)
        check_state(supply, demand, cost, plan, numbers, nodes)
        for _ in range(3):
            cells, kept = keep_plan(plan, numbers, nodes)
            assert_array_equal(plan, 0)
            assert len(cells) == np.count_nonzero(supply) + np.count_nonzero(demand) - 1
            # The scratch serves another problem in between.
            solution(demand, supply, cost.T)
            numbers[:], nodes[:] = -7.0, -7
            cost = COSTS[costs](rng, m, n)
            before = np.sum(kept * cost.ravel()[cells])
            changed = resume_plan(cells, kept, cost, plan, numbers, nodes)
            check_state(supply, demand, cost, plan, numbers, nodes)
            value, scale = np.sum(plan * cost), max(cost.max(), 1e-300)
            expected = scale * ot.emd2(supply, demand, cost / scale)
            assert_allclose(value, expected, rtol=1e-11, atol=1e-13 * scale)
            assert changed or value == pytest.approx(before, rel=1e-14)


@pytest.mark.parametrize("costs", ["random", "constant", "few values", "sums", "line"])
@pytest.mark.parametrize("masses", ["random", "equal", "one"])
def test_an_optimal_tree_is_resumed_without_a_change(costs, masses, rng):
    for _ in range(20):
        m, n = rng.integers(1, 12, 2)
        supply, demand = MASSES[masses](rng, m), MASSES[masses](rng, n)
        cost, plan = COSTS[costs](rng, m, n), np.zeros((m, n))
        numbers, nodes = make_workspace(m, n)
        places = ranked_cells(cost, numbers, nodes)
        solve_ranked(supply, demand, cost, places, plan, numbers, nodes)
        expected = plan.copy()
        cells, kept = keep_plan(plan, numbers, nodes)
        assert not resume_plan(cells, kept, cost, plan, numbers, nodes)
        assert_array_equal(plan, expected)
        again, same = keep_plan(plan, numbers, nodes)
        assert_array_equal(again, cells)
        assert_array_equal(same, kept)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 2), (8, 4), (16, 16)])
def test_cells_are_ranked_by_cost_less_means(shape, rng):
    # Whole numbers and sizes that are powers of two: no rounding, and many ties.
    cost = rng.integers(0, 4, shape).astype(float)
    numbers, nodes = make_workspace(*shape)
    sources, sinks = ranked_cells(cost, numbers, nodes)
    keys = cost - cost.mean(axis=0) - cost.mean(axis=1, keepdims=True)
    expected = np.argsort(keys, axis=None, kind="stable")
    assert_array_equal(sources * shape[1] + sinks, expected)


def test_ranked_start_filled_by_hand():
    # Less the means the cost is -2, 0; 0, -2 plus a number: the diagonal comes first.
    cost, plan = np.array([[1.0, 2.0], [5.0, 2.0]]), np.zeros((2, 2))
    numbers, nodes = make_workspace(2, 2)
    places = ranked_cells(cost, numbers, nodes)
    assert_array_equal(places, [[0, 1, 0, 1], [0, 1, 1, 0]])
    supply, demand = np.array([0.75, 0.25]), np.array([0.5, 0.5])
    solve_ranked(supply, demand, cost, places, plan, numbers, nodes)
    assert_array_equal(plan, [[0.5, 0.25], [0.0, 0.25]])
    cells, kept = keep_plan(plan, numbers, nodes)
    assert_array_equal(np.sort(cells), [0, 1, 3])
    assert resume_plan(cells, kept, cost[:, ::-1].copy(), plan, numbers, nodes)
    assert_array_equal(plan, [[0.25, 0.5], [0.25, 0.0]])
