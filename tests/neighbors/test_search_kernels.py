"""Each bound stays below what it bounds, on any models."""

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import (
    JAW,
    MAW,
    HMMBatch,
    pairwise_hmm_components,
    pairwise_hmm_distances,
)
from skawhmm.distances._prepared import prepare_models
from skawhmm.distances._registration import optimal_registrations, power_cost
from skawhmm.neighbors._balls import make_balls, points_of, state_vectors
from skawhmm.neighbors._search_kernels import (
    costs_to_centres,
    from_tiles,
    group_survivors,
    in_tiles,
    relaxed_bounds,
    state_balls,
    transition_bounds,
)

# Bounds and components are rounded differently, the first in single precision.
SLACK = 1 + 1e-9
SINGLE_SLACK = 1 + 1e-5


def pairs_of(models):
    return (index.copy() for index in np.triu_indices(len(models)))


@st.composite
def batches(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = 4, draw(st.integers(1, 4)), draw(st.integers(1, 3))
    concentration = draw(st.sampled_from([0.1, 1.0, 10.0]))
    transmats = rng.dirichlet(np.full(shape[1], concentration), shape[:2])
    covars = rng.uniform(0, 2, shape) * (rng.random(shape) < 0.9)
    if draw(st.booleans()):
        roots = rng.normal(size=(*shape, shape[2]))
        covars = roots @ roots.swapaxes(2, 3)
    return HMMBatch(transmats, rng.normal(size=shape), covars)


def single(models):
    """State vectors in single precision, and state probabilities."""
    return state_vectors(models).astype(np.float32), np.array(models.weights)


@given(batches(), st.sampled_from([1.0, 1.5, 2.0]))
def test_relaxed_bound_is_below_the_marginal_component(models, p):
    marginal = pairwise_hmm_components(models, p=p)[0]
    vectors, weights = single(models)
    relaxed = relaxed_bounds(vectors, weights, in_tiles(vectors), weights, p)
    # Self-distances are rounding on both sides.
    assert np.all(relaxed <= SINGLE_SLACK * marginal + 1e-5)


@given(batches(), batches(), st.sampled_from([1.0, 1.5, 2.0]), st.integers(1, 3))
def test_cost_to_centres_less_spread_is_below_the_transport(models, others, p, cut):
    size = max(models.means.shape[2], others.means.shape[2])
    (vectors, weights), (points, probs) = (single(x) for x in (models, others))
    vectors, points = (
        np.concatenate(
            [
                np.pad(half, ((0, 0), (0, 0), (0, size - half.shape[2])))
                for half in both
            ],
            axis=2,
        )
        for both in (np.split(x, 2, axis=2) for x in (vectors, points))
    )
    starts = np.array([0, cut, 4])
    centres, used, spreads = state_balls(points, probs, starts, 2, p)
    costs = costs_to_centres(vectors, weights, in_tiles(centres), used, p)
    gaps = np.linalg.norm(
        vectors[:, None, :, None].astype(float) - points[None, :, None], axis=4
    )
    transport = [
        [ot.emd2(a, b, gap**p) ** (1 / p) for b, gap in zip(probs, row, strict=True)]
        for a, row in zip(weights, gaps, strict=True)
    ]
    transport = np.array(transport)
    for group in (0, 1):
        members = slice(starts[group], starts[group + 1])
        bounds = costs[:, [group]] - spreads[members]
        assert np.all(bounds <= SINGLE_SLACK * transport[:, members] + 1e-5)


@given(st.integers(0, 20), st.integers(1, 3), st.integers(1, 5))
def test_tiles_hold_all_vectors(n_models, size, n_dimensions):
    vectors = np.random.default_rng(0).normal(size=(n_models, size, n_dimensions))
    vectors = vectors.astype(np.float32)
    tiles = in_tiles(vectors)
    assert tiles.shape == (-(-n_models // 8), size, n_dimensions, 8)
    assert_array_equal(from_tiles(tiles, n_models), vectors)


@given(batches(), batches(), st.sampled_from([1.0, 1.5, 2.0]))
def test_relaxed_bound_matches_formula(models, others, p):
    (vectors, weights), (points, probs) = (single(x) for x in (models, others))
    size = min(vectors.shape[2], points.shape[2])
    vectors, points = vectors[:, :, :size].copy(), points[:, :, :size].copy()
    gaps = np.linalg.norm(
        vectors[:, None, :, None].astype(float) - points[None, :, None], axis=4
    )
    far = np.where(probs[None, :, None] > 0, gaps, np.inf).min(axis=3)
    near = np.where(weights[:, None, :, None] > 0, gaps, np.inf).min(axis=2)
    one = (weights[:, None] * far**p).sum(axis=2)
    two = (probs * near**p).sum(axis=2)
    actual = relaxed_bounds(vectors, weights, in_tiles(points), probs, p)
    expected = np.maximum(one, two) ** (1 / p)
    assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def survivors(models, metric, limit, *, weights=(1.0, 0.0)):
    """All models against all groups, with places turned into indices."""
    groups = make_balls(models, metric)
    points = points_of(models, metric, groups.origin, groups.scale)
    costs = costs_to_centres(
        points.vectors, points.margins, groups.centres, groups.used, metric.p
    )
    n_groups = groups.n_groups
    model = np.repeat(np.arange(len(models)), n_groups)
    group = np.tile(np.arange(n_groups), len(models))
    limits = np.full(len(models), limit / groups.scale)
    found = group_survivors(
        points,
        groups,
        model,
        group,
        costs,
        limits,
        limits,
        metric.p,
        *weights,
        getattr(metric, "steps", None) == "joint",
    )
    return found[0], groups.order[found[1]], found[2] * groups.scale, *found[3:]


@given(batches(), st.sampled_from([MAW(0.3), JAW(0.6)]))
def test_bound_with_transitions_is_the_distance_where_it_is_certain(models, metric):
    if models.covariance_type == "full":
        models = HMMBatch(
            models.transmats, models.means, np.diagonal(models.covars, 0, 2, 3)
        )
    weights = metric.marginal_weight, metric.transition_weight
    a, b, bounds, is_certain, _ = survivors(models, metric, np.inf, weights=weights)
    assert a.size == len(models) ** 2
    distances = pairwise_hmm_distances(models, metric=metric)[a, b]
    # The chains are rounded, too.
    assert np.all(bounds <= SINGLE_SLACK * distances + 1e-5)
    assert_allclose(bounds[is_certain], distances[is_certain], rtol=1e-4, atol=1e-5)


def test_most_plans_are_certain_and_ties_are_not(rng):
    models = HMMBatch(
        rng.dirichlet(np.ones(3), (30, 3)),
        rng.normal(size=(30, 3, 4)),
        rng.uniform(0.5, 2, (30, 3, 4)),
    )
    weights = JAW().marginal_weight, JAW().transition_weight
    is_certain = survivors(models, JAW(), np.inf, weights=weights)[3]
    assert is_certain.mean() > 0.95
    # Equal states leave several plans of the least cost.
    means = np.repeat(models.means[:, :1], 3, axis=1)
    models = HMMBatch(models.transmats, means, np.ones((30, 3, 4)))
    assert not survivors(models, JAW(), np.inf, weights=weights)[3].any()


@given(batches(), st.sampled_from([1.0, 1.5, 2.0]))
def test_transport_bound_is_below_the_marginal_component(models, p):
    marginal = pairwise_hmm_components(models, p=p)[0]
    a, b, bounds, *_ = survivors(models, MAW(p=p), np.inf)
    assert bounds.size == marginal.size
    assert np.all(bounds <= SINGLE_SLACK * marginal[a, b] + 1e-5)
    if models.covariance_type == "diag":
        # State vectors then have the distances of the states.
        assert_allclose(bounds, marginal[a, b], rtol=1e-4, atol=1e-4)


@given(batches(), st.sampled_from([1.0, 2.0]), st.floats(0.1, 3))
def test_survivors_are_the_pairs_within_limits(models, p, limit):
    marginal = pairwise_hmm_components(models, p=p)[0]
    a, b, bounds, _, counts = survivors(models, MAW(p=p), limit)
    assert np.all(bounds <= 1.000001 * limit)
    assert bounds.size <= counts[1] <= counts[0] <= marginal.size
    kept = np.zeros(marginal.shape, bool)
    kept[a, b] = True
    assert kept[marginal < (1 - 1e-5) * limit - 1e-5].all()


def test_transport_bound_counts_mass_that_changes_states():
    # The same two states at 0 and 4, visited 3/4 and 1/4 of the time or vice versa:
    # half of the mass moves by 4, which relaxed bounds do not see.
    chains = [[[0.75, 0.25], [0.75, 0.25]], [[0.25, 0.75], [0.25, 0.75]]]
    models = HMMBatch(chains, [[[0.0], [4.0]]] * 2, np.ones((2, 2, 1)))
    a, b, bounds, _, counts = survivors(models, MAW(), 1.9)
    assert counts == (4, 4)
    assert_array_equal(a, b)
    assert_allclose(bounds, 0, atol=1e-6)
    bounds = survivors(models, MAW(), np.inf)[2]
    assert_allclose(np.sort(bounds), [0, 0, 2, 2], atol=1e-5)


def test_balls_of_states_by_hand():
    # Two models with states near 0 and near 10; the last state has no weight.
    vectors = np.array([[[0], [10], [5]], [[12], [2], [5]]], np.float32)
    weights = np.array([[0.5, 0.5, 0], [0.5, 0.5, 0]])
    starts = np.array([0, 2])
    centres, used, spreads = state_balls(vectors, weights, starts, 3, 1.0)
    assert_array_equal(used, [[1, 1, 0]])
    assert_allclose(centres[0, :2, 0], [1, 11])
    assert_allclose(spreads, [1, 1], rtol=1e-5)
    assert np.all(spreads > 1)
    query = np.array([[[5.0]]], np.float32), np.ones((1, 1))
    costs = costs_to_centres(*query, in_tiles(centres), used, 1.0)
    assert_allclose(costs, [[4]])


@given(batches(), st.sampled_from([1.0, 1.5, 2.0]), st.booleans())
def test_bound_of_the_transition_component(models, p, joint):
    a, b = pairs_of(models)
    prepared = prepare_models(models)
    cost = power_cost(prepared.costs.cross(a, b), p)
    plans = optimal_registrations(models.weights, models.transmats, a, b, cost)
    bound = transition_bounds(
        models.weights,
        models.transmats,
        prepared.chains,
        state_vectors(models),
        a,
        b,
        plans,
        p,
        joint,
    )
    metric = "jaw" if joint else "maw"
    transition = pairwise_hmm_components(models, metric=metric, p=p)[1][a, b]
    # Rounding of the rows counts with its p-th root.
    assert np.all(bound <= SLACK * transition + 1e-6)


def test_bounds_are_tight_for_one_state(make_batch):
    models = make_batch(n_models=5, n_components=1, n_features=3)
    a, b = pairs_of(models)
    marginal = pairwise_hmm_components(models)[0][a, b]
    vectors, weights = single(models)
    tiles = in_tiles(vectors)
    bounds = relaxed_bounds(vectors, weights, tiles, weights, 1.0)[a, b]
    assert_allclose(bounds, marginal, rtol=1e-5, atol=1e-6)


def test_relaxed_bound_by_hand():
    # States at 0 and 4 against one at 1: each state of a goes to the only one of b,
    # and the only one of b to the nearer of a.
    models = HMMBatch(
        [[[0.5, 0.5], [0.5, 0.5]], [[1.0]]],
        [[[0.0], [4.0]], [[1.0]]],
        [[[1.0], [1.0]], [[1.0]]],
    )
    vectors, weights = single(models)
    tiles = in_tiles(vectors)
    bounds = relaxed_bounds(vectors[:1], weights[:1], tiles, weights, 1.0)
    assert_allclose(bounds, [[0, 0.5 * 1 + 0.5 * 3]])


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_state_vectors_hold_means_and_deviations(make_batch, covariance_type):
    models = make_batch(covariance_type=covariance_type)
    variances = np.array(models.covars)
    if covariance_type == "full":
        variances = np.einsum("nkdd->nkd", variances)
    vectors = state_vectors(models)
    assert_allclose(vectors[..., :2], models.means)
    assert_allclose(vectors[..., 2:] ** 2, variances)
