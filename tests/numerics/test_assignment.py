import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from skawhmm.numerics._assignment import neighbouring_order
from skawhmm.numerics._entry_points import solve_assignment


def assignment(cost):
    columns = np.full(len(cost), -7)
    solve_assignment(np.ascontiguousarray(cost, dtype=float), columns)
    return columns


def check_optimal(cost):
    columns = assignment(cost)
    assert_array_equal(np.sort(columns), np.arange(len(cost)))
    total = cost[np.arange(len(cost)), columns].sum()
    least = cost[linear_sum_assignment(cost)].sum()
    assert_allclose(total, least, rtol=1e-12, atol=1e-12 * np.abs(cost).max())
    return columns


@pytest.mark.parametrize(
    "size", [*range(1, 14), 16, 31, 32, 33, 64, 100, 127, 200, 256, 300]
)
@pytest.mark.parametrize("p", [0.5, 1, 2])
def test_assignment_of_points_is_optimal(size, p, rng):
    points = rng.normal(size=(2, size, 3))
    points[1] += 0.5
    check_optimal(cdist(*points) ** p)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 20, 60, 150])
@pytest.mark.parametrize("largest", [1, 2, 5, 1000])
def test_assignment_of_integer_costs_is_optimal(size, largest, rng):
    check_optimal(rng.integers(0, largest, (size, size), endpoint=True).astype(float))


@pytest.mark.parametrize("size", [1, 2, 7, 40, 120])
def test_assignment_of_repeated_points_is_optimal(size, rng):
    # Samples of Dirac states repeat a few points.
    places = rng.integers(0, 3, size=(2, size)).astype(float)
    check_optimal(np.abs(places[0][:, None] - places[1]))


@pytest.mark.parametrize("value", [0.0, 1.0, -2.5, 1e300, 1e-300])
def test_equal_costs_give_any_assignment(value):
    columns = assignment(np.full((30, 30), value))
    assert_array_equal(np.sort(columns), np.arange(30))


@pytest.mark.parametrize("size", [1, 2, 3, 10, 50, 120])
def test_assignment_of_products_is_reversed(size):
    # Machol and Wien: hard for methods that reduce rows and columns first.
    ranks = np.arange(1.0, size + 1)
    assert_array_equal(assignment(np.outer(ranks, ranks)), np.arange(size)[::-1])


def test_equal_points_are_matched_with_themselves(rng):
    points = rng.normal(size=(80, 2))
    assert_array_equal(assignment(cdist(points, points)), np.arange(80))
    order = rng.permutation(80)
    assert_array_equal(order[assignment(cdist(points, points[order]))], np.arange(80))


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
def test_assignment_does_not_depend_on_scale(scale, rng):
    # A power of two scales without rounding.
    scale = 2.0 ** np.round(np.log2(scale))
    cost = rng.random((40, 40))
    assert_array_equal(assignment(cost * scale), assignment(cost))


@pytest.mark.parametrize("size", [2, 9, 60, 200])
@pytest.mark.parametrize("fine", [1e-6, 1e-9, 1e-12])
def test_differences_far_below_the_largest_cost_decide(size, fine, rng):
    # Many assignments are cheapest up to `fine`, which the first rounding loses.
    whole = rng.integers(0, 3, (size, size)).astype(float)
    rest = rng.integers(0, 256, (size, size)) * (2.0 ** np.round(np.log2(fine)))
    rows = np.arange(size)
    columns, best = assignment(whole + rest), linear_sum_assignment(whole + rest)[1]
    assert whole[rows, columns].sum() == whole[rows, best].sum()
    assert rest[rows, columns].sum() == rest[rows, best].sum()


@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6])
def test_assignment_of_clouds_that_are_far_apart_is_optimal(distance, rng):
    points = rng.normal(size=(2, 120, 3))
    cost = cdist(points[0], points[1] + distance)
    assert_array_equal(assignment(cost), linear_sum_assignment(cost)[1])


def test_sizes_with_few_columns_at_one_length_and_with_many(rng):
    # Costs of few values put several columns at the same length.
    for n_values in (2, 3, 4, 8, 50):
        for size in (5, 17, 70):
            check_optimal(rng.integers(0, n_values, (size, size)) * np.sqrt(2))


def test_negative_costs_and_shifts_of_rows_are_allowed(rng):
    cost = rng.normal(size=(50, 50))
    columns = check_optimal(cost)
    # Adding to a row changes no optimal assignment.
    assert_array_equal(assignment(cost + 10 * rng.random((50, 1))), columns)


@given(
    st.integers(1, 7).flatmap(
        lambda n: arrays(float, (n, n), elements=st.integers(-3, 3).map(float))
    )
)
def test_assignment_of_small_tied_costs_is_optimal(cost):
    check_optimal(cost)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_costs_that_are_not_finite_still_give_each_row_a_column(value, rng):
    cost = rng.random((40, 40))
    cost[3] = value
    cost[:, 7] = value
    assert_array_equal(np.sort(assignment(cost)), np.arange(40))


def test_neighbours_in_the_order_are_near():
    points = np.array([[[0.0, 5.0], [10.0, 5.0], [1.0, 5.1], [11.0, 5.0], [0.5, 5.2]]])
    order = neighbouring_order(points)[0]
    # Four points come first, as many as the greatest power of two below five.
    assert_array_equal(np.sort(order[:2]), [0, 4])
    assert_array_equal(np.sort(order[2:4]), [1, 2])
    assert order[4] == 3


@given(st.integers(1, 40), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_order_has_each_point_once_and_halves_are_apart(size, n_features, seed):
    points = np.random.default_rng(seed).integers(-3, 4, (2, size, n_features)) * 1.0
    for x, order in zip(points, neighbouring_order(points), strict=True):
        assert_array_equal(np.sort(order), np.arange(size))
        half = 1 << max(size - 1, 0).bit_length() - 1 if size > 2 else size
        widest = np.argmax(np.ptp(x, axis=0))
        first, last = x[order[:half], widest], x[order[half:], widest]
        assert len(last) == 0 or first.max() <= last.min()
