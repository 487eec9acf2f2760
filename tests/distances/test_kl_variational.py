import tracemalloc

import numpy as np
import pytest
from helpers import gaussian_kl
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import KL, HMMBatch, hmm_distance, pairwise_hmm_distances
from skawhmm.emissions._gaussian_divergences import gaussian_divergences

BOUND = KL(method="variational", symmetric=False)


def random_batch(seed, sizes=(2, 3), n_features=2, spread=1.0):
    rng = np.random.default_rng(seed)
    factors = [rng.normal(size=(m, n_features, n_features)) for m in sizes]
    return HMMBatch(
        [rng.dirichlet(np.ones(m), m) for m in sizes],
        [spread * rng.normal(size=(m, n_features)) for m in sizes],
        [f @ f.swapaxes(1, 2) + 0.2 * np.eye(n_features) for f in factors],
    )


def chain_kl(models):
    """Rate between two chains whose states are seen."""
    a, b = models.transmats
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = np.where(a > 0, a * np.log(a / b), 0).sum(axis=1)
    return models.weights[0] @ rows


def seen_states(transmats, **kw):
    size = len(transmats[0])
    means = np.tile(np.arange(size, dtype=float)[:, None], (len(transmats), 1, 1))
    return HMMBatch(transmats, means, np.zeros((len(transmats), size, 1)), **kw)


def prepared_states(models):
    values, vectors = np.linalg.eigh(models.emission.full_covars())
    values = np.maximum(values, 0)
    roots = vectors * np.sqrt(values)[..., None, :]
    return np.array(models.means), roots, values, vectors


@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_divergences_of_states_match_gaussians(n_features):
    models = random_batch(0, (3, 3), n_features)
    pair = np.array([0]), np.array([1])
    actual = gaussian_divergences(*prepared_states(models), *pair)[0]
    expected = [
        [
            gaussian_kl(
                models.means[0, i],
                models.covars[0, i],
                models.means[1, j],
                models.covars[1, j],
            )
            for j in range(3)
        ]
        for i in range(3)
    ]
    assert_allclose(actual, expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_bound_is_exact_for_single_states(seed):
    models = random_batch(seed, (1, 1), 3)
    expected = gaussian_kl(
        models.means[0, 0], models.covars[0, 0], models.means[1, 0], models.covars[1, 0]
    )
    assert_allclose(hmm_distance(models[0], models[1], BOUND), expected, rtol=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_bound_is_above_the_rate(seed):
    models = random_batch(seed, spread=(0.3, 1, 4)[seed % 3])
    bound = hmm_distance(models[0], models[1], BOUND)
    drawn = [
        hmm_distance(
            models[0],
            models[1],
            KL(n_steps=4000, symmetric=False, random_state=k),
        )
        for k in range(12)
    ]
    error = np.std(drawn, ddof=1) / np.sqrt(12)
    assert bound > np.mean(drawn) - 3 * error
    # Where states hardly overlap nothing is lost.
    if seed % 3 == 2:
        assert bound < 1.5 * np.mean(drawn) + 3 * error


@pytest.mark.parametrize("size", [2, 3, 5])
def test_bound_is_exact_where_states_are_seen(size, rng):
    models = seen_states(rng.dirichlet(np.ones(size), (2, size)))
    assert_allclose(
        hmm_distance(models[0], models[1], BOUND), chain_kl(models), rtol=1e-7
    )


def test_bound_of_many_states_needs_little_memory(rng):
    size = 66
    models = seen_states(rng.dirichlet(np.ones(size), (2, size)))
    tracemalloc.start()
    bound = hmm_distance(models[0], models[1], BOUND)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert_allclose(bound, chain_kl(models), rtol=1e-7)
    # Couplings of all pairs of states would be 152 MB.
    assert peak < 20e6


def test_bound_is_exact_for_periodic_chains():
    swap = [[0.0, 1.0], [1.0, 0.0]]
    models = seen_states([swap, [[0.3, 0.7], [0.6, 0.4]]])
    expected = -(np.log(0.7) + np.log(0.6)) / 2
    assert_allclose(hmm_distance(models[0], models[1], BOUND), expected, rtol=1e-7)


def test_bound_of_a_transition_that_the_other_lacks_is_infinite():
    models = seen_states([[[0.5, 0.5], [0.5, 0.5]], [[0.0, 1.0], [1.0, 0.0]]])
    assert hmm_distance(models[0], models[1], BOUND) == np.inf
    assert np.isfinite(hmm_distance(models[1], models[0], BOUND))


def test_parts_of_a_chain_count_by_their_weights():
    still = np.eye(2)
    models = HMMBatch(
        [still, still],
        [[[0.0], [100.0]], [[0.0], [101.0]]],
        np.ones((2, 2, 1)),
        weights=[[0.25, 0.75]] * 2,
    )
    # A quarter of the paths stays where both models agree, the rest half a unit off.
    actual = hmm_distance(models[0], models[1], BOUND)
    assert_allclose(actual, 0.75 * 0.5, rtol=1e-5)


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 10.0])
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_bound_of_equal_models_is_zero(spread, size):
    for seed in range(5):
        a = random_batch(seed, (size,), 2, spread)
        assert hmm_distance(a, a, BOUND) == 0


@given(st.integers(0, 10**6), st.permutations(range(3)))
def test_labels_of_states_do_not_matter(seed, order):
    models = random_batch(seed, (3, 2))
    order = np.array(order)
    moved = HMMBatch(
        models.transmats[:1, order][:, :, order],
        models.means[:1, order],
        models.covars[:1, order],
    )
    assert_allclose(
        hmm_distance(moved, models[1], BOUND),
        hmm_distance(models[0], models[1], BOUND),
        rtol=1e-6,
        atol=1e-7,
    )


def test_padding_and_unreached_states_do_not_matter():
    models = random_batch(0, (2, 2))
    alone = hmm_distance(*models, BOUND)
    padded = HMMBatch.concatenate([models, random_batch(1, (5,))])
    distances = pairwise_hmm_distances(padded, metric=BOUND)
    assert distances[0, 1] == alone
    size = slice(2)
    grown = HMMBatch(
        [[[*row, 0.0] for row in models.transmats[0, size, size]] + [[0, 0, 1.0]]],
        [[*models.means[0, size], [50.0, 50.0]]],
        [[*models.covars[0, size], np.eye(2)]],
        weights=[[*models.weights[0, size], 0.0]],
    )
    assert_allclose(hmm_distance(grown, models[1], BOUND), alone, rtol=1e-12)


def test_states_that_a_row_never_takes_do_not_overflow():
    # The second model never goes where the first is at home: far, but not infinitely.
    models = HMMBatch(
        [[[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]],
        [[[0.0], [100.0]]] * 2,
        np.ones((2, 2, 1)),
        weights=[[0.5, 0.5]] * 2,
    )
    # Every second frame is 100 units off; which one it is takes nothing.
    actual = hmm_distance(models[0], models[1], BOUND)
    assert_allclose(actual, 2500 - np.log(2), rtol=1e-3)


@pytest.mark.parametrize("gap", [37.5, 37.8, 38.0, 38.3, 38.6])
def test_fractions_below_the_range_of_floats_do_not_overflow(gap):
    # Paired with the first state, the second takes exp(-gap**2 / 2) of a step.
    model = HMMBatch(
        [[[0.5, 0.5], [1.0, 0.0]]],
        [[[0.0], [gap]]],
        np.ones((1, 2, 1)),
        weights=[[1.0, 0.0]],
    )
    assert hmm_distance(model, model, BOUND) == 0


def test_matrix_of_bounds_is_symmetric_on_request():
    models = random_batch(3, (2, 3, 1, 2))
    metric = KL(method="variational")
    distances = pairwise_hmm_distances(models, metric=metric)
    assert_array_equal(distances, distances.T)
    assert_array_equal(np.diag(distances), np.zeros(4))
    assert distances[np.triu_indices(4, 1)].min() > 0
