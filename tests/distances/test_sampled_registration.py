import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_normal

from skawhmm import HMMBatch
from skawhmm.distances._sampled_registration import (
    independent_draws,
    metric_parts,
    mixture_posteriors,
    ordered_samples,
    stratified_counts,
    stratified_draws,
)
from skawhmm.distances._sampled_registration_kernels import (
    entropic_coupling,
    project_registrations,
    sample_costs,
    sampled_registrations,
    smoothed_registrations,
)
from skawhmm.emissions import Gaussian

ONE, TWO = np.array([0]), np.array([1])


def random_weights(rng, n_models, size):
    return rng.dirichlet(np.ones(size), n_models)


# Draws


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=8).filter(any),
    st.integers(1, 300),
)
def test_counts_sum_up_and_are_near_the_proportions(shares, n_samples):
    weights = np.array([shares]) / sum(shares)
    counts = stratified_counts(weights, n_samples)
    assert counts.sum() == n_samples
    assert np.abs(counts - weights * n_samples).max() < 1 + 1e-9
    assert not counts[weights == 0].any()


def test_equal_remainders_go_to_the_earlier_states():
    weights = np.array([[0.25, 0.25, 0.25, 0.25]])
    assert_array_equal(stratified_counts(weights, 6), [[2, 2, 1, 1]])


def test_proportions_that_are_integers_up_to_rounding():
    weights = np.array([[0.1, 0.2, 0.7]])
    assert_array_equal(stratified_counts(weights, 10), [[1, 2, 7]])


def test_stratified_draws_have_exact_proportions(rng):
    weights = random_weights(rng, 3, 4)
    states, normals = stratified_draws(weights, 100, 2, 0, np.array([1, 2, 3]))
    assert normals.shape == (3, 100, 2)
    for row, expected in zip(states, stratified_counts(weights, 100), strict=True):
        assert_array_equal(np.bincount(row, minlength=4), expected)


@pytest.mark.parametrize("n_features", [1, 3, 39])
def test_stratified_draws_are_more_even_than_independent_ones(n_features):
    weights, keys = np.full((20, 2), 0.5), np.arange(20)
    errors = []
    for draw in (stratified_draws, independent_draws):
        normals = draw(weights, 256, n_features, 0, keys)[1]
        errors.append(np.sqrt(np.mean(normals.mean(axis=1) ** 2)))
        assert_allclose(np.var(normals), 1, atol=0.05)
    assert errors[0] < 0.3 * errors[1]


@pytest.mark.parametrize("draw", [stratified_draws, independent_draws])
@pytest.mark.parametrize("n_samples", [1, 2, 3, 100, 256])
def test_draws_depend_on_the_content_and_the_seed_alone(draw, n_samples, rng):
    keys = [7, 2**63 + 5, 9, 2**64 - 1, 0]
    weights, keys = random_weights(rng, 5, 3), np.array(keys, dtype=np.uint64)
    states, normals = draw(weights, n_samples, 2, 3, keys)
    order = rng.permutation(5)
    again = draw(weights[order], n_samples, 2, 3, keys[order])
    assert_array_equal(again[0], states[order])
    assert_array_equal(again[1], normals[order])
    # Padding adds states without weight.
    padded = draw(np.pad(weights, [(0, 0), (0, 2)]), n_samples, 2, 3, keys)
    assert_array_equal(padded[0], states)
    assert_array_equal(padded[1], normals)
    assert not np.array_equal(draw(weights, n_samples, 2, 4, keys)[1], normals)
    assert not np.array_equal(normals[0], normals[1])


@pytest.mark.parametrize("draw", [stratified_draws, independent_draws])
def test_states_without_weight_are_never_drawn(draw):
    weights = np.array([[0.0, 0.4, 0.0, 0.6, 0.0]])
    states, normals = draw(weights, 300, 1, 0, np.array([5]))
    assert set(np.unique(states)) == {1, 3}
    assert np.isfinite(normals).all()


def test_independent_draws_have_the_proportions_on_average():
    weights = np.tile([[0.2, 0.5, 0.3]], (200, 1))
    states, _ = independent_draws(weights, 100, 1, 0, np.arange(200))
    shares = np.bincount(states.ravel()) / states.size
    assert_allclose(shares, weights[0], atol=5 * 0.5 / np.sqrt(states.size))


# Posteriors


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_posteriors_match_the_mixture(covariance_type, make_batch, rng):
    models = make_batch(3, [3, 1, 2], 2, covariance_type)
    points = rng.normal(size=(3, 20, 2))
    drawn = np.zeros(points.shape[:2], int)
    posteriors = mixture_posteriors(models, points, drawn)
    for n, size in enumerate(models.n_components):
        covars = models.covars[n]
        if covariance_type == "diag":
            covars = covars[..., None] * np.eye(2)
        joint = np.stack(
            [
                models.weights[n, k]
                * multivariate_normal(models.means[n, k], covars[k]).pdf(points[n])
                for k in range(size)
            ],
            axis=1,
        )
        expected = joint / joint.sum(axis=1, keepdims=True)
        assert_allclose(posteriors[n, :, :size], expected, atol=1e-12)
        assert not posteriors[n, :, size:].any()


@pytest.mark.parametrize("full", [False, True])
def test_flattest_state_has_the_point(full):
    variances = np.array([[[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]])
    covars = variances[..., None] * np.eye(2) if full else variances
    means = np.zeros((1, 3, 2))
    models = HMMBatch(np.full((1, 3, 3), 1 / 3), means, covars)
    points = np.array([[[0.5, 0.5], [0.5, 0.0], [0.0, 0.0]]])
    drawn = np.zeros(points.shape[:2], int)
    assert_array_equal(mixture_posteriors(models, points, drawn)[0], np.eye(3))


def test_flat_state_without_weight_has_no_point():
    models = HMMBatch(
        [[[1.0, 0.0], [1.0, 0.0]]],
        np.zeros((1, 2, 1)),
        [[[1.0], [0.0]]],
        weights=[[1.0, 0.0]],
    )
    points = np.array([[[0.0], [1.0]]])
    drawn = np.zeros(points.shape[:2], int)
    assert_array_equal(mixture_posteriors(models, points, drawn)[0], [[1, 0], [1, 0]])


def test_posteriors_far_away_are_finite():
    models = HMMBatch(
        np.full((1, 2, 2), 0.5), [[[0.0], [1.0]]], np.full((1, 2, 1), 1e-6)
    )
    points = np.array([[[1e6], [-1e6], [0.5]]])
    drawn = np.zeros(points.shape[:2], int)
    posteriors = mixture_posteriors(models, points, drawn)[0]
    assert_allclose(posteriors, [[0, 1], [1, 0], [0.5, 0.5]], atol=1e-12)


# Couplings


def no_parts(points):
    """Return what distances of points depend on besides them: nothing."""
    return metric_parts(Gaussian(), points)[1]


@pytest.mark.parametrize("p", [0.5, 1, 2])
def test_angles_and_symbols_are_added_to_squared_distances(p, rng):
    points, angles = rng.normal(size=(2, 9, 2)), rng.uniform(-np.pi, np.pi, (2, 9, 1))
    codes, table = rng.integers(0, 3, (2, 9, 1)), rng.random((3, 3))
    parts = angles, np.array([0.5]), codes.astype(np.intp), table[None]
    cost = np.empty((9, 9))
    sample_costs(points, parts, 0, 1, np.ones(2), p, cost)
    arcs = np.angle(np.exp(1j * (angles[0] - angles[1].T))) ** 2
    squares = cdist(*points) ** 2 + 0.5 * arcs + table[codes[0], codes[1].T]
    assert_allclose(cost, squares ** (p / 2), rtol=1e-12)


@pytest.mark.parametrize("n_features", range(1, 10))
@pytest.mark.parametrize("p", [0.5, 1, 1.3, 2])
def test_sample_costs_are_powers_of_distances(n_features, p, rng):
    points = rng.normal(size=(2, 30, n_features))
    x, y = points
    cost = np.empty((30, 30))
    sample_costs(points, no_parts(points), 0, 1, np.ones(n_features), p, cost)
    assert_allclose(cost, cdist(x, y) ** p)
    mask = (np.arange(n_features) % 2 == 0).astype(float)
    sample_costs(points, no_parts(points), 0, 1, mask, p, cost)
    assert_allclose(cost, cdist(x[:, ::2], y[:, ::2]) ** p)
    # Without a feature in common all points are in one place.
    sample_costs(points, no_parts(points), 0, 1, np.zeros(n_features), p, cost)
    assert_array_equal(cost, 0)


@pytest.mark.parametrize("n_features", [1, 2, 5])
@pytest.mark.parametrize("p", [0.5, 1, 2])
def test_registration_comes_from_a_cheapest_assignment(n_features, p, rng):
    points = rng.normal(size=(2, 40, n_features))
    posteriors = rng.dirichlet(np.ones(3), (2, 40))
    masks = np.ones((2, n_features))
    plan = sampled_registrations(
        points, no_parts(points), posteriors, masks, ONE, TWO, p
    )[0]
    if n_features == 1 and p == 1:
        # On a line many assignments cost the same: the sorted one is meant.
        x, y = np.argsort(points[0, :, 0]), np.argsort(points[1, :, 0])
    else:
        x, y = linear_sum_assignment(cdist(*points) ** p)
    expected = posteriors[0][x].T @ posteriors[1][y] / 40
    assert_allclose(plan, expected, atol=1e-14)
    assert_allclose(plan.sum(axis=1), posteriors[0].mean(axis=0))
    assert_allclose(plan.sum(axis=0), posteriors[1].mean(axis=0))


@pytest.mark.parametrize("p", [1, 1.5, 2])
def test_sorted_coupling_of_a_line_costs_as_little_as_the_assignment(p, rng):
    points = rng.normal(size=(2, 60, 1)) * [[[1.0]], [[2.0]]]
    # Posteriors that name the point give the coupling itself.
    posteriors = np.stack([np.eye(60), np.eye(60)])
    plan = sampled_registrations(
        points, no_parts(points), posteriors, np.ones((2, 1)), ONE, TWO, p
    )[0]
    cost = cdist(*points) ** p
    least = cost[linear_sum_assignment(cost)].mean()
    assert_allclose(np.sum(plan * cost), least, rtol=1e-12)
    wide = np.concatenate([points, np.zeros((2, 60, 1))], axis=2)
    flat = sampled_registrations(
        wide, no_parts(wide), posteriors, np.ones((2, 2)), ONE, TWO, p
    )[0]
    assert_allclose(np.sum(flat * cost), least, rtol=1e-12)
    if p > 1:
        assert_allclose(flat, plan)


@pytest.mark.parametrize("function", ["exact", "entropic"])
def test_channels_that_one_model_lacks_do_not_couple(function, rng):
    points = rng.normal(size=(2, 30, 3))
    posteriors = rng.dirichlet(np.ones(2), (2, 30))
    masks = np.array([[1.0, 1, 0], [1, 0, 1]])
    extra = () if function == "exact" else (0.1, 300)
    solve = sampled_registrations if function == "exact" else smoothed_registrations
    plan = solve(points, no_parts(points), posteriors, masks, ONE, TWO, 2.0, *extra)
    changed = points.copy()
    changed[:, :, 1:] = rng.normal(size=(2, 30, 2))
    assert_array_equal(
        solve(changed, no_parts(changed), posteriors, masks, ONE, TWO, 2.0, *extra),
        plan,
    )
    changed[:, :, 0] = rng.normal(size=(2, 30))
    assert not np.allclose(
        solve(changed, no_parts(changed), posteriors, masks, ONE, TWO, 2.0, *extra),
        plan,
    )


def test_entropic_coupling_nears_the_exact_one(rng):
    points = rng.normal(size=(2, 40, 2)) + np.array([[[0.0, 0]], [[1, 0]]])
    right = 1 / (1 + np.exp(-3 * points[:, :, :1]))
    posteriors = np.concatenate([1 - right, right], axis=2)
    args = points, no_parts(points), posteriors, np.ones((2, 2)), ONE, TWO, 2.0
    exact = sampled_registrations(*args)[0]
    errors = [
        np.abs(smoothed_registrations(*args, reg, 300)[0] - exact).max()
        for reg in (1.0, 0.1, 0.01)
    ]
    assert errors[0] > 3 * errors[1] > 9 * errors[2]


@pytest.mark.parametrize("reg", [0.5, 0.05, 0.001])
@pytest.mark.parametrize("far", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("n_iterations", [1, 7, 300])
def test_entropic_coupling_is_that_of_pot(reg, far, n_iterations, rng):
    # With a few points far away, exponentials of costs are out of range.
    x, y = rng.normal(size=(2, 45, 2))
    x[0] += far
    y[:20] += 0.1 * far
    cost, even = cdist(x, y), np.full(45, 1 / 45)
    expected = ot.sinkhorn(
        even,
        even,
        cost,
        reg * cost.mean(),
        method="sinkhorn_log",
        numItermax=n_iterations,
        warn=False,
    )
    actual = entropic_coupling(cost.copy(), reg, n_iterations)
    assert_allclose(actual, expected, rtol=1e-6, atol=1e-10)


def test_smoothed_registration_couples_posteriors(rng):
    points = rng.normal(size=(2, 30, 3))
    posteriors = rng.dirichlet(np.ones(3), (2, 30))
    args = points, no_parts(points), posteriors, np.ones((2, 3)), ONE, TWO, 1.5
    coupling = entropic_coupling(cdist(*points) ** 1.5, 0.1, 300)
    expected = posteriors[0].T @ coupling @ posteriors[1]
    assert_allclose(smoothed_registrations(*args, 0.1, 300)[0], expected)


def test_entropic_coupling_of_equal_points_is_finite():
    points = np.zeros((2, 10, 2))
    posteriors = np.full((2, 10, 2), 0.5)
    plan = smoothed_registrations(
        points, no_parts(points), posteriors, np.ones((2, 2)), ONE, TWO, 1.0, 0.05, 300
    )
    assert_allclose(plan, np.full((1, 2, 2), 0.25))


# Projection


def projected(plan, weights_a, weights_b):
    size = max(len(weights_a), len(weights_b))
    weights = np.zeros((2, size))
    weights[0, : len(weights_a)] = weights_a
    weights[1, : len(weights_b)] = weights_b
    plans = np.zeros((1, size, size))
    plans[0, : plan.shape[0], : plan.shape[1]] = plan
    project_registrations(plans, weights, ONE, TWO)
    return plans[0], weights


@given(st.integers(1, 6), st.integers(1, 6), st.floats(0, 0.9), st.integers(0, 10**6))
def test_projection_has_the_margins(n_rows, n_columns, zeros, seed):
    rng = np.random.default_rng(seed)
    plan = rng.random((n_rows, n_columns)) * (rng.random((n_rows, n_columns)) > zeros)
    plan /= max(plan.sum(), 1e-300)
    plan, weights = projected(
        plan, rng.dirichlet(np.ones(n_rows)), rng.dirichlet(np.ones(n_columns))
    )
    assert plan.min() >= 0
    assert_allclose(plan.sum(axis=1), weights[0], atol=1e-13)
    assert_allclose(plan.sum(axis=0), weights[1], atol=1e-13)


def test_projection_is_a_scaling_of_rows_and_columns(rng):
    plan = rng.dirichlet(np.ones(9)).reshape(3, 3)
    result, _ = projected(plan, *rng.dirichlet(np.ones(3), 2))
    ratio = np.log(result / plan)
    # A sum of a row and a column effect has no interaction.
    centred = ratio - ratio.mean(axis=0) - ratio.mean(axis=1, keepdims=True)
    assert_allclose(centred, np.full((3, 3), centred[0, 0]), atol=1e-12)


def test_projection_of_a_plan_with_the_margins_changes_nothing(rng):
    plan = rng.dirichlet(np.ones(12)).reshape(3, 4)
    result, _ = projected(plan, plan.sum(axis=1), plan.sum(axis=0))
    assert_allclose(result[:3], plan, atol=1e-15)


@pytest.mark.parametrize("hardly", [0.0, 8e-323, 1e-300, 1e-200])
def test_projection_has_the_margins_if_a_state_is_hardly_sampled(hardly):
    plan = np.array([[1.0, 0.0], [0.0, hardly]])
    result, _ = projected(plan, [0.9, 0.1], [0.8, 0.2])
    assert_allclose(result.sum(axis=1), [0.9, 0.1])
    assert_allclose(result.sum(axis=0), [0.8, 0.2])


@pytest.mark.parametrize("n_samples", [1, 2, 7, 60])
def test_order_of_samples_does_not_change_registrations(n_samples, rng):
    points, posteriors = rng.normal(size=(2, 2, n_samples, 3))
    posteriors = np.abs(posteriors) / np.abs(posteriors).sum(axis=2, keepdims=True)
    angles = rng.uniform(0, 6, (2, n_samples, 1))
    codes = rng.integers(0, 3, (2, n_samples, 1))
    parts = angles, np.ones(1), codes, 0.01 * rng.random((1, 3, 3))
    pairs = np.ones((2, 3)), ONE, TWO, 1.0
    plain = sampled_registrations(points, parts, posteriors, *pairs)
    samples = ordered_samples(points, parts, posteriors)
    assert_allclose(sampled_registrations(*samples, *pairs), plain, rtol=1e-12)
    if n_samples > 2:
        assert np.abs(samples[0] - points).max() > 0
