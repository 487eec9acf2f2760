import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm.numerics._entry_points import max_entropy_plan

seeds = st.integers(0, 2**32 - 1)


def plan_and_marks(seed, n_sources, n_sinks, smallest):
    """A plan with masses of many sizes, and marks of more cells than it uses."""
    rng = np.random.default_rng(seed)
    used = rng.random((n_sources, n_sinks)) < rng.choice([0.3, 0.6, 1])
    used[0, 0] = True
    sizes = 10.0 ** rng.integers(smallest, 1, used.shape)
    plan = np.where(used, rng.integers(1, 3, used.shape) * sizes, 0)
    marked = used | (rng.random(used.shape) < rng.choice([0.1, 0.5, 1]))
    return plan / plan.sum(), np.where(marked, 0, np.inf)


@given(seeds, st.integers(1, 7), st.integers(1, 7), st.sampled_from([0, -4, -11]))
def test_margins_stay_and_masses_are_products(seed, n_sources, n_sinks, smallest):
    plan, marks = plan_and_marks(seed, n_sources, n_sinks, smallest)
    even = max_entropy_plan(marks, plan)
    assert (even >= 0).all()
    assert_allclose(even.sum(axis=0), plan.sum(axis=0), rtol=2e-14)
    assert_allclose(even.sum(axis=1), plan.sum(axis=1), rtol=2e-14)
    # The greatest entropy: the derivative, log w + 1, is u_i + v_j on all cells in use.
    i, j = np.nonzero(even)
    assert (marks[i, j] == 0).all()
    potentials = np.hstack([np.eye(n_sources)[i], np.eye(n_sinks)[j]])
    logs = np.log(even[i, j])
    fitted = potentials @ np.linalg.lstsq(potentials, logs)[0]
    assert_allclose(fitted, logs, atol=1e-10)


@given(seeds, st.integers(1, 5), st.integers(1, 5))
def test_every_plan_on_the_marked_cells_gives_the_same(seed, n_sources, n_sinks):
    plan, marks = plan_and_marks(seed, n_sources, n_sinks, -2)
    other = even = max_entropy_plan(marks, plan)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        # Move mass around a square of marked cells, as far as there is mass.
        i, k = rng.integers(n_sources, size=2)
        j, m = rng.integers(n_sinks, size=2)
        if i != k and j != m and (marks[[i, i, k, k], [j, m, j, m]] == 0).all():
            mass = min(other[i, m], other[k, j])
            other = other.copy()
            other[[i, k], [j, m]] += mass
            other[[i, k], [m, j]] -= mass
    assert_allclose(max_entropy_plan(marks, other), even, atol=1e-12)


def test_product_where_all_cells_are_marked(rng):
    supply, demand = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4))
    plan = np.zeros((3, 4))
    left, open_ = supply.copy(), demand.copy()
    for i, j in np.ndindex(3, 4):
        plan[i, j] = min(left[i], open_[j])
        left[i] -= plan[i, j]
        open_[j] -= plan[i, j]
    even = max_entropy_plan(np.zeros((3, 4)), plan)
    assert_allclose(even, np.outer(supply, demand), rtol=1e-12)


@pytest.mark.parametrize("rest", [0.0, 1e-17])
def test_cells_that_no_plan_can_use_stay_empty(rest):
    # Mass cannot come back from the second sink; what rounding leaves does not count.
    plan = np.array([[0.5 - rest, rest], [0.0, 0.5]])
    marks = np.array([[0.0, 0.0], [np.inf, 0.0]])
    assert_array_equal(max_entropy_plan(marks, plan), plan)


def test_small_masses_are_found_in_few_steps():
    # Rows and columns scaled in turn would take some 1e9 steps.
    plan = np.array([[0.5 - 2e-9, 1e-9, 1e-9], [0, 0.25, 0], [0, 0, 0.25]])
    marks = np.where(plan > 0, 0, np.inf)
    marks[1, 2] = marks[2, 1] = 0
    even = max_entropy_plan(marks, plan)
    expected = plan.copy()
    expected[1:, 1:] = 0.125
    assert_allclose(even, expected, rtol=1e-6, atol=1e-15)


def test_masses_whose_products_underflow_stay():
    plan = np.diag([1.0, 1e-200, 1e-200])
    marks = np.full((3, 3), np.inf)
    marks[0, 0] = 0
    marks[1:, 1:] = 0
    assert_array_equal(max_entropy_plan(marks, plan), plan)
