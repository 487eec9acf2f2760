"""Properties of distances between models with channels of several kinds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import (
    JAW,
    MAW,
    HMMBatch,
    TransitionCoupling,
    pairwise_hmm_components,
    pairwise_hmm_distances,
)
from skawhmm.emissions import (
    Bernoulli,
    ByChannel,
    Categorical,
    Gamma,
    Gaussian,
    NegativeBinomial,
    VonMises,
)

BLOCKS = [
    ("step", Gamma(zero_mass=True), [0]),
    ("turn", VonMises(), [1, 2]),
    ("level", Gaussian(), [3]),
    ("mode", Categorical([0, 1, 2]), [4]),
    ("flag", Bernoulli(), [5]),
    ("calls", NegativeBinomial(), [6]),
]
SCALE = {"step": 2.0, "turn": 0.7, "level": 1.5, "mode": 0.4, "flag": 0.5, "calls": 3.0}
DISTANCES = pytest.mark.parametrize(
    "metric", [MAW(0.3), MAW(0.5, 2), JAW(), TransitionCoupling()]
)

# Distances on the circle are interpolated, to less than this fraction.
CIRCLE_ERROR = 1e-3


def drawn(seed, n_models=3, n_components=3, columns=slice(None)):
    """Return arrays of models with random states."""
    rng, shape = np.random.default_rng(seed), (n_models, n_components, 1)
    twice = (n_models, n_components, 2)
    return {
        "weights": rng.dirichlet(np.full(n_components, 2.0), n_models),
        "transmats": rng.dirichlet(np.ones(n_components), shape[:2]),
        "step.means": rng.uniform(0.5, 5, shape),
        "step.sds": rng.uniform(0.3, 4, shape),
        "step.zero_probs": rng.uniform(0, 0.3, shape),
        "turn.locations": rng.uniform(-np.pi, np.pi, twice),
        "turn.concentrations": 10 ** rng.uniform(-2, 2, twice),
        "level.means": rng.normal(0, 2, shape),
        "level.covars": rng.uniform(0.2, 3, shape),
        "mode.emissionprobs": rng.dirichlet(np.ones(3), shape[:2]),
        "flag.probabilities": rng.random(shape),
        "calls.means": rng.uniform(1, 9, shape),
        "calls.shapes": rng.uniform(0.5, 9, shape),
    }


def batch(arrays, blocks=BLOCKS, *, stationary=False):
    """Return the models; their state probabilities are given, or stationary."""
    arrays = dict(arrays)
    weights = arrays.pop("weights")
    weights = None if stationary else weights
    emission = ByChannel(blocks, scale=SCALE)
    return HMMBatch.from_arrays(arrays, weights=weights, emission=emission)


def with_states(arrays, order):
    """Return the arrays with the states in another order."""
    changed = {name: values[:, order] for name, values in arrays.items()}
    changed["transmats"] = changed["transmats"][:, :, order]
    return changed


def values(models, metric):
    return pairwise_hmm_distances(models, metric=metric)


@DISTANCES
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_distances_are_symmetric_and_zero_for_equal_models(metric, seed):
    arrays = drawn(seed)
    models = batch(arrays)
    D = values(HMMBatch.concatenate([models, models]), metric)
    assert_array_equal(D, D.T)
    assert (D >= 0).all()
    assert_allclose(np.diag(D[:3, 3:]), 0, atol=1e-7)
    assert (D[:3, :3][~np.eye(3, dtype=bool)] > 0).all()


@DISTANCES
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_order_of_states_changes_nothing(metric, seed):
    arrays = drawn(seed)
    order = np.random.default_rng(seed).permutation(3)
    both = [batch(arrays), batch(with_states(arrays, order))]
    D = values(HMMBatch.concatenate(both), metric)
    assert_allclose(D[:3, 3:], D[:3, :3], rtol=1e-9, atol=1e-7)


# JAW keeps states that stay, and a step to a clone is not a stay.
@pytest.mark.parametrize("metric", [MAW(0.3), MAW(0.5, 2), TransitionCoupling()])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_cloned_states_change_nothing(metric, seed):
    arrays = drawn(seed)
    # Half of the probability of state 0 belongs to its clone, the last state.
    clones = with_states(arrays, [0, 1, 2, 0])
    clones["weights"] = clones["weights"] * [0.5, 1, 1, 0.5]
    clones["transmats"] = clones["transmats"] * [0.5, 1, 1, 0.5]
    D = values(HMMBatch.concatenate([batch(arrays), batch(clones)]), metric)
    assert_allclose(np.diag(D[:3, 3:]), 0, atol=1e-6)
    assert_allclose(D[:3, 3:], D[:3, :3], rtol=1e-6, atol=1e-6)


@DISTANCES
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_pairs_do_not_depend_on_their_batch(metric, seed):
    models = batch(drawn(seed, 5))
    D = values(models, metric)
    assert_array_equal(values(models[[4, 1]], metric)[0, 1], D[4, 1])
    padded = HMMBatch.concatenate([models, batch(drawn(seed, 1, 6))])
    assert_array_equal(values(padded, metric)[:5, :5], D)


@DISTANCES
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_order_of_blocks_changes_only_rounding(metric, seed):
    arrays = drawn(seed)
    D = values(batch(arrays), metric)
    turned = values(batch(arrays, BLOCKS[::-1]), metric)
    assert_allclose(turned, D, rtol=1e-9, atol=1e-9)


@given(seed=st.integers(0, 10**6), angle=st.floats(-10, 10))
@settings(max_examples=20, deadline=None)
def test_turned_circles_and_moved_levels_change_nothing(seed, angle):
    arrays = drawn(seed)
    moved = dict(arrays)
    moved["turn.locations"] = arrays["turn.locations"] + angle
    moved["level.means"] = arrays["level.means"] + 7.0
    assert_allclose(
        values(batch(moved), MAW(0.3)), values(batch(arrays), MAW(0.3)), rtol=1e-6
    )


@pytest.mark.parametrize("p", [1, 2])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_marginal_component_is_a_metric(p, seed):
    R, D = pairwise_hmm_components(batch(drawn(seed, 6)), metric=MAW(p=p))
    ways = R[:, :, None] + R[None, :, :]
    assert (ways.min(axis=1) * (1 + CIRCLE_ERROR) >= R).all()
    assert (D >= 0).all()


@given(seed=st.integers(0, 10**6), alpha=st.floats(0, 1))
@settings(max_examples=15, deadline=None)
def test_distances_mix_their_components(seed, alpha):
    models = batch(drawn(seed))
    R, D = pairwise_hmm_components(models, metric=MAW())
    found = values(models, MAW(alpha))
    assert_allclose(found, (1 - alpha) * R + alpha * D, rtol=1e-12, atol=1e-15)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_coupling_grows_from_the_marginal_component(seed):
    models = batch(drawn(seed), stationary=True)
    least, _ = pairwise_hmm_components(models, metric=MAW())
    near, far = (values(models, TransitionCoupling(gamma=g)) for g in (0.3, 0.9))
    assert (near >= least - 1e-9).all()
    assert (far >= near - 1e-9).all()


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_scales_divide_the_costs_of_their_block(seed):
    models = batch(drawn(seed))
    pair = np.array([0, 1]), np.array([1, 2])
    total = sum(
        models.emission.block(name).ground_costs().cross(*pair) / scale**2
        for name, scale in SCALE.items()
    )
    assert_allclose(models.emission.cross(*pair), total, rtol=1e-12)
