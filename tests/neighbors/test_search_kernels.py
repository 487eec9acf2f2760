"""Each bound stays below what it bounds, on any models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skawhmm import HMMBatch, pairwise_hmm_components
from skawhmm.distances._prepared import prepare_models
from skawhmm.distances._registration import optimal_registrations, power_cost
from skawhmm.neighbors._search import state_vectors
from skawhmm.neighbors._search_kernels import (
    centroid_bounds,
    relaxed_bounds,
    transition_bounds,
)

# Bounds and components are rounded differently.
SLACK = 1 + 1e-9


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


@given(batches(), st.sampled_from([1.0, 1.5, 2.0]))
def test_bounds_of_the_marginal_component(models, p):
    a, b = pairs_of(models)
    marginal = pairwise_hmm_components(models, p=p)[0][a, b]
    vectors, weights = state_vectors(models), models.weights
    centroids = np.einsum("nk,nkd->nd", weights, vectors)
    centroid = centroid_bounds(centroids, centroids, a, b)
    relaxed = relaxed_bounds(vectors, weights, vectors, weights, a, b, p)
    # Self-distances are rounding on both sides.
    assert np.all(centroid <= SLACK * marginal + 1e-12)
    assert np.all(relaxed <= SLACK * marginal + 1e-12)


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
    vectors, weights = state_vectors(models), models.weights
    assert_allclose(centroid_bounds(vectors[:, 0], vectors[:, 0], a, b), marginal)
    assert_allclose(
        relaxed_bounds(vectors, weights, vectors, weights, a, b, 1.0), marginal
    )


def test_relaxed_bound_by_hand():
    # States at 0 and 4 against one at 1: each state of a goes to the only one of b,
    # and the only one of b to the nearer of a.
    models = HMMBatch(
        [[[0.5, 0.5], [0.5, 0.5]], [[1.0]]],
        [[[0.0], [4.0]], [[1.0]]],
        [[[1.0], [1.0]], [[1.0]]],
    )
    vectors, weights = state_vectors(models), models.weights
    index = np.array([0]), np.array([1])
    bound = relaxed_bounds(vectors, weights, vectors, weights, *index, 1.0)
    assert_allclose(bound, [0.5 * 1 + 0.5 * 3])
    centroids = np.einsum("nk,nkd->nd", weights, vectors)
    assert_allclose(centroid_bounds(centroids, centroids, *index), [1.0])


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_state_vectors_hold_means_and_deviations(make_batch, covariance_type):
    models = make_batch(covariance_type=covariance_type)
    variances = np.array(models.covars)
    if covariance_type == "full":
        variances = np.einsum("nkdd->nkd", variances)
    vectors = state_vectors(models)
    assert_allclose(vectors[..., :2], models.means)
    assert_allclose(vectors[..., 2:] ** 2, variances)
