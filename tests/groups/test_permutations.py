import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skawhmm.groups._permutations import (
    f_ratios,
    holm,
    permuted,
    permuted_rows,
    pvalues,
    quadratic_forms,
    warn_of_few_arrangements,
)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 99))
def test_permutations_stay_within_strata(strata, seed):
    strata = np.unique(strata, return_inverse=True)[1][::-1]
    rows = permuted_rows(strata, 7, np.random.default_rng(seed))
    assert_array_equal(np.sort(rows, axis=1), np.tile(np.arange(len(strata)), (7, 1)))
    assert_array_equal(strata[rows], np.tile(strata, (7, 1)))


def test_all_arrangements_come_up_equally_often(rng):
    rows = permuted_rows(np.array([1, 0, 1, 0, 1]), 12000, rng)
    _, counts = np.unique(rows, axis=0, return_counts=True)
    assert len(counts) == 12
    assert stats.chisquare(counts).pvalue > 1e-4


def test_quadratic_forms_match_permuted_directions(rng):
    matrices, basis = rng.normal(size=(2, 6, 6)), rng.normal(size=(6, 3))
    rows = permuted_rows(np.zeros(6, int), 5, rng)
    forms = quadratic_forms(matrices, basis, rows)
    for n, row in enumerate(rows):
        for k, matrix in enumerate(matrices):
            wanted = np.diag(basis[row].T @ matrix @ basis[row])
            assert_allclose(forms[n, k], wanted)


def test_draws_do_not_depend_on_their_number_or_the_workers():
    def rows_of(_, rows):
        return rows

    strata = np.zeros(5, int)
    many = permuted(rows_of, (), strata, 600, (0, 1))
    assert_array_equal(permuted(rows_of, (), strata, 300, (0, 1)), many[:300])
    assert_array_equal(permuted(rows_of, (), strata, 600, (0, 1), n_jobs=2), many)
    assert not np.array_equal(permuted(rows_of, (), strata, 600, (0, 2)), many)


def test_few_arrangements_are_warned_of_and_any_number_can_be_counted():
    with pytest.warns(UserWarning, match="only 4 different .* below 0.25"):
        warn_of_few_arrangements(np.array([[3, 1]]))
    # Of 20 arrangements, half differ only by the names of the groups.
    with pytest.warns(UserWarning, match="only 10 different .* below 0.1"):
        warn_of_few_arrangements(np.array([[3, 3]]))
    # 20 partitions allow p = 0.05.
    warn_of_few_arrangements(np.array([[19, 1]]))
    # More arrangements than the largest float.
    warn_of_few_arrangements(np.full((32, 2), 100))


def test_pvalues_count_the_observed_arrangement_and_ties():
    null = np.array([1.0, 2.0, 3.0 - 1e-13, 4.0])
    assert pvalues(np.array(3.0), null) == 3 / 5
    assert pvalues(np.array(9.0), null) == 1 / 5
    assert pvalues(np.array(1e-32), np.array([0.0, 1.0, 2.0])) == 1
    assert pvalues(np.array(np.inf), np.array([np.inf, 1.0, 2.0])) == 1 / 2


def test_a_negative_residual_is_the_most_extreme():
    # Effects of 1, 8 and 11 of 10: the last leave less than nothing.
    forms = np.array([[1.0], [8.0], [11.0]])
    ratios, order = f_ratios(forms, np.full(3, 10.0), 1, 4)
    assert_allclose(ratios, [4 / 9, 16, np.inf])
    assert_allclose(order, [0.1, 0.8, 1.1])


def test_holm_on_a_case_worked_by_hand():
    # 0.01 * 4, 0.02 * 3, then 0.03 * 2 and 0.03 * 1, which may not fall.
    assert_allclose(holm(np.array([0.03, 0.01, 0.03, 0.02])), [0.06, 0.04, 0.06, 0.06])
    assert_allclose(holm(np.array([0.6, 0.7])), [1, 1])
