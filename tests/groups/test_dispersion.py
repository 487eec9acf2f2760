from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from skawhmm import hmm_group_test
from skawhmm.groups._dispersion import permuted_radii, spatial_median

pytestmark = pytest.mark.filterwarnings(
    "ignore:The groups also differ in spread", "ignore:There are only"
)


def gaps(points):
    points = np.asarray(points, dtype=float).reshape(len(points), -1)
    return cdist(points, points)


def spread(points, group, **more):
    more = {"n_permutations": 199, "random_state": 0, **more}
    return hmm_group_test(gaps(points), group, **more).dispersion


def test_the_statistic_is_an_analysis_of_variance_of_radii(rng):
    group = np.repeat([0, 1, 2], [5, 7, 9])
    points = rng.normal(size=(21, 3)) * (1 + group[:, None])
    radii = np.empty(21)
    for g in range(3):
        own = points[group == g]
        radii[group == g] = np.linalg.norm(own - own.mean(axis=0), axis=1)
    wanted = stats.f_oneway(*(radii[group == g] for g in range(3))).statistic
    assert_allclose(spread(points, group).statistic, wanted)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_radii_are_those_of_explicit_residuals(seed):
    rng = np.random.default_rng(seed)
    points, basis = rng.normal(size=(9, 4)), np.linalg.qr(rng.normal(size=(9, 3)))[0]
    rows = np.array([rng.permutation(9) for _ in range(5)])
    found = permuted_radii(points @ points.T, basis, rows)
    for radii, row in zip(found, rows, strict=True):
        moved = basis[row]
        left = points - moved @ (moved.T @ points)
        assert_allclose(radii, np.linalg.norm(left, axis=1), atol=1e-7)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_spatial_median_has_the_least_sum_of_distances(seed):
    points = np.random.default_rng(seed).standard_t(2, size=(8, 2))
    found = spatial_median(points @ points.T) @ points

    def total(center):
        return np.linalg.norm(points - center, axis=1).sum()

    best = minimize(total, points.mean(axis=0), method="Nelder-Mead").fun
    assert total(found) <= best * (1 + 1e-3)


def test_permuted_deviations_are_taken_from_medians():
    # In one dimension the spatial median is the median, and all orders can be listed.
    group = np.repeat([0, 1], [3, 5])
    values = np.array([0.0, 1.0, 30.0, 5.0, 6.0, 8.0, 9.0, 70.0])
    left = values - np.array([1.0, 8.0])[group]
    wanted = []
    for chosen in combinations(range(8), 3):
        own = np.isin(np.arange(8), chosen)
        radii = [np.abs(part - part.mean()) for part in (left[own], left[~own])]
        wanted.append(stats.f_oneway(*radii).statistic)
    null = spread(values, group, n_permutations=99).null_distribution
    gap = np.abs(null[:, None] - np.array(wanted)[None]).min(axis=1)
    assert (gap <= 1e-3 * (1 + null)).all()


def test_centres_may_be_anywhere(rng):
    group = np.repeat([0, 1], [8, 12])
    points = rng.normal(size=(20, 2))
    moved = points + np.outer(group, [50.0, 3.0])
    one, two = spread(points, group), spread(moved, group)
    assert_allclose(one.statistic, two.statistic)
    assert_allclose(one.pvalue, two.pvalue, atol=0.1)


def test_strata_and_covariates_have_no_part_in_it(rng):
    site = np.repeat([0, 1], 12)
    group = np.r_[np.repeat([0, 1], [8, 4]), np.repeat([0, 1], [4, 8])]
    age, noise = rng.normal(size=24), rng.normal(size=(24, 3))
    more = {"strata": site, "covariates": age, "n_permutations": 2999}
    plain = spread(noise, group, **more)
    shifted = noise + 30 * site[:, None] + np.outer(age, [5.0, 1.0, 0.0])
    found = spread(shifted, group, **more)
    assert_allclose(found.statistic, plain.statistic)
    assert_allclose(found.pvalue, plain.pvalue, atol=0.04)


def test_pairs_compare_the_spread_of_whole_groups(rng):
    pair, group = np.tile(np.arange(30), 2), np.repeat([0, 1], 30)
    points = rng.normal(size=(60, 2)) * np.where(group, 4.0, 1.0)[:, None]
    assert spread(points, group, strata=pair).pvalue == 0.005
    # Within pairs, deviations mirror each other. Here a third group makes them
    # incomplete, and nothing is left to compare.
    third = np.r_[np.repeat([0, 1], 10), np.repeat([1, 2], 10), np.repeat([2, 0], 10)]
    pairs = np.concatenate([np.tile(np.arange(10), 2) + 10 * k for k in range(3)])
    result = hmm_group_test(
        gaps(points), third, strata=pairs, n_permutations=99, random_state=0
    )
    assert result.dispersion is None
    assert result.missing["dispersion"] == "no stratum has more than two units"
    assert "not tested: dispersion (no stratum" in repr(result)
    assert list(result.all_tests) == ["distance"]


def heavy(rng):
    group = np.repeat([0, 1], [6, 14])
    return rng.standard_t(2, size=(20, 1)) + 9 * group[:, None], group, {}


def pairs(rng):
    pair, group = np.tile(np.arange(12), 2), np.repeat([0, 1], 12)
    points = 2 * rng.normal(size=(12, 2))[pair] + rng.normal(size=(24, 2))
    return points, group, {"strata": pair}


def far_sites(rng):
    site = np.repeat([0, 1], 12)
    group = np.r_[np.repeat([0, 1], [9, 3]), np.repeat([0, 1], [3, 9])]
    return 30 * site[:, None] + rng.normal(size=(24, 2)), group, {"strata": site}


@pytest.mark.parametrize("draw", [heavy, pairs, far_sites])
def test_the_level_is_held(draw, rng):
    n_draws = 300
    found = 0
    for seed in range(n_draws):
        points, group, more = draw(rng)
        test = spread(points, group, n_permutations=59, random_state=seed, **more)
        found += test.pvalue <= 0.05
    low, high = stats.binom(n_draws, 0.05).ppf([0.0005, 0.9995])
    assert low <= found <= high


def test_equal_spreads_of_two_units_each_are_not_significant():
    # All radii within a group are equal, in every arrangement.
    test = spread([0, 1, 10, 12], list("aabb"))
    assert test.pvalue > 0.2
