"""Properties of MAW and related distances, on models that Hypothesis draws.

Unless a property concerns the marginal component alone, it holds with steps registered
independently (MAW) or jointly (JAW), and with rows compared by transport or by
Hellinger distance; Hypothesis draws these too.

`models` are in general position. `tied_models` sit on a grid of whole numbers, with
repeated states, repeated rows and singular covariances; where several registrations
are best, the transition component may depend on which one is taken, so that fewer
properties hold for them.
"""

import numpy as np
from helpers import random_model
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, special_ortho_group

from skawhmm import (
    HMMBatch,
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    register_states,
)

orders = st.sampled_from([0.5, 1, 1.5, 2])
metric_orders = st.sampled_from([1, 1.5, 2])
seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from(
    [
        {"steps": steps, "rows": rows}
        for steps in ("independent", "joint")
        for rows in ("transport", "hellinger")
    ]
)


@st.composite
def arrays(draw, n_models, max_size=4, covariance_types=("diag", "full")):
    """Arrays of models with states in general position, of unequal sizes."""
    rng = np.random.default_rng(draw(seeds))
    n_features = draw(st.integers(1, 3))
    covariance_type = draw(st.sampled_from(covariance_types))
    sizes = draw(
        st.lists(st.integers(1, max_size), min_size=n_models, max_size=n_models)
    )
    return [random_model(rng, size, n_features, covariance_type) for size in sizes]


@st.composite
def tied_models(draw, n_models, max_size=4):
    """A batch of models on a grid."""
    n_features = draw(st.integers(1, 2))
    batches = []
    for _ in range(n_models):
        size = draw(st.integers(1, max_size))
        whole = st.integers(0, 2)

        def numbers(*shape, whole=whole):
            count = int(np.prod(shape))
            values = draw(st.lists(whole, min_size=count, max_size=count))
            return np.reshape(values, shape).astype(float)

        transmat = numbers(size, size)
        transmat[transmat.sum(axis=1) == 0] = 1
        transmat /= transmat.sum(axis=1, keepdims=True)
        means, scales = numbers(size, n_features), numbers(size, n_features)
        batches.append(HMMBatch([transmat], [means], [scales**2]))
    return batches


def batch(model, **arguments):
    return HMMBatch(*([array] for array in model), **arguments)


def components(a, b, p, kind=None):
    return np.array(pairwise_hmm_components(a, b, p=p, metric_params=kind)).ravel()


def assert_same(actual, expected, scale=1.0, rtol=1e-8):
    # At p = 1/2 the root of a rounding error is squared back: it stays small.
    assert_allclose(actual, expected, rtol=rtol, atol=1e-9 * scale)


@given(arrays(2), orders, st.floats(0, 1))
def test_symmetry_to_the_last_bit(pair, p, alpha):
    a, b = map(batch, pair)
    forth = hmm_distance(a, b, alpha=alpha, p=p)
    assert forth == hmm_distance(b, a, alpha=alpha, p=p)
    assert_array_equal(register_states(a, b, p=p), register_states(b, a, p=p).T)


@given(tied_models(2), orders, kinds)
def test_symmetry_to_the_last_bit_with_ties(pair, p, kind):
    assert_array_equal(components(*pair, p, kind), components(*pair[::-1], p, kind))


@given(tied_models(2), orders, kinds)
def test_components_are_finite_and_not_negative(pair, p, kind):
    values = components(*pair, p, kind)
    assert np.isfinite(values).all()
    assert (values >= 0).all()


@given(arrays(1, max_size=6), orders, kinds)
def test_distance_to_itself_is_zero(models, p, kind):
    a = batch(models[0])
    assert (components(a, batch(models[0]), p, kind) <= 1e-12).all()


@given(tied_models(1, max_size=5), orders, kinds)
def test_distance_to_itself_is_zero_with_ties(models, p, kind):
    assert (components(models[0], models[0], p, kind) <= 1e-12).all()


@given(arrays(2), orders, kinds, st.randoms())
def test_labels_of_states_do_not_matter(pair, p, kind, random):
    (transmat, means, covars), other = pair[0], batch(pair[1])
    order = random.sample(range(len(means)), len(means))
    relabelled = transmat[np.ix_(order, order)], means[order], covars[order]
    a, same = batch(pair[0]), batch(relabelled)
    assert_same(components(same, other, p, kind), components(a, other, p, kind))
    assert (components(a, same, p, kind) <= 1e-12).all()
    assert_allclose(
        register_states(same, other, p=p),
        register_states(a, other, p=p)[order],
        atol=1e-12,
    )


def with_twin(model, state, share):
    """Split a state into two with equal emissions and transitions."""
    transmat, means, covars = model
    order = [*range(len(means)), state]
    transmat = transmat[np.ix_(order, order)].copy()
    transmat[:, state] *= share
    transmat[:, -1] *= 1 - share
    return transmat, means[order], covars[order]


@given(arrays(2), orders, kinds, st.floats(0.05, 0.95), st.data())
def test_splitting_a_state_leaves_the_marginal_component_unchanged(
    pair, p, kind, share, data
):
    state = data.draw(st.integers(0, len(pair[0][1]) - 1))
    a, other, cloned = (
        batch(pair[0]),
        batch(pair[1]),
        batch(with_twin(pair[0], state, share)),
    )
    assert_same(components(cloned, other, p, kind)[0], components(a, other, p, kind)[0])
    assert (components(cloned, a, p, kind) <= 1e-6).all()


@given(arrays(1), st.floats(0.05, 0.95), orders, kinds, st.data())
def test_cloning_a_state_where_states_match_one_to_one(models, share, p, kind, data):
    # Where states are split by the registration, its choice among equal plans shows.
    _, means, covars = models[0]
    rng = np.random.default_rng(data.draw(seeds))
    state = data.draw(st.integers(0, len(means) - 1))
    a = batch(models[0])
    rows = rng.dirichlet(np.ones(len(means)), size=len(means))
    near = batch((rows, means + 1e-3, covars), weights=a.weights)
    cloned = batch(with_twin(models[0], state, share))
    assert_same(
        components(cloned, near, p, kind), components(a, near, p, kind), rtol=1e-6
    )


@given(arrays(2), orders, kinds, st.data())
def test_states_of_probability_zero_do_not_matter(pair, p, kind, data):
    (transmat, means, covars), other = pair[0], batch(pair[1])
    size = len(means)
    place = data.draw(st.integers(0, size))
    rng = np.random.default_rng(data.draw(seeds))
    # Nothing leads to the new state, which lies far away and leads anywhere.
    wide = np.insert(np.insert(transmat, place, 0, axis=1), place, 0, axis=0)
    wide[place] = rng.dirichlet(np.ones(size + 1))
    longer = (
        wide,
        np.insert(means, place, 1e5, axis=0),
        np.insert(covars, place, covars[0] * 1e4, axis=0),
    )
    a, same = batch(pair[0]), batch(longer)
    assert same.weights[0, place] == 0
    assert_same(components(same, other, p, kind), components(a, other, p, kind))
    plan = register_states(same, other, p=p)
    assert_array_equal(plan[place], 0)
    kept = np.delete(plan, place, axis=0)
    assert_allclose(kept, register_states(a, other, p=p), atol=1e-12)


@given(arrays(2), orders, kinds, st.floats(-100, 100))
def test_translation(pair, p, kind, shift):
    moved = [(transmat, means + shift, covars) for transmat, means, covars in pair]
    expected = components(*map(batch, pair), p, kind)
    assert_same(components(*map(batch, moved), p, kind), expected)


def test_translation_far_away_with_unequal_sizes():
    # Padding states stay at the origin; they must not set the scale.
    rng = np.random.default_rng(0)
    for _ in range(20):
        pair = [random_model(rng, size, 2, "diag") for size in (2, 4)]
        moved = [(transmat, means + 1e6, covars) for transmat, means, covars in pair]
        for p in (0.5, 1, 2):
            expected = components(*map(batch, pair), p)
            actual = components(*map(batch, moved), p)
            assert_allclose(actual, expected, rtol=1e-6)


@given(arrays(2, covariance_types=["full"]), orders, kinds, seeds)
def test_rotation(pair, p, kind, seed):
    n_features = pair[0][1].shape[1]
    turn = np.eye(1)
    if n_features > 1:
        turn = special_ortho_group.rvs(n_features, random_state=seed % 2**31)
    turned = [
        (transmat, means @ turn.T, turn @ covars @ turn.T)
        for transmat, means, covars in pair
    ]
    expected = components(*map(batch, pair), p, kind)
    assert_same(components(*map(batch, turned), p, kind), expected, rtol=1e-6)


@given(arrays(2), orders, kinds, st.sampled_from([1e-6, 0.3, 7.0, 1e6]))
def test_scale(pair, p, kind, scale):
    scaled = [
        (transmat, scale * means, scale**2 * covars) for transmat, means, covars in pair
    ]
    marginal, transition = components(*map(batch, pair), p, kind)
    actual = components(*map(batch, scaled), p, kind)
    assert_same(actual[0], scale * marginal, scale)
    # Hellinger distances have no unit.
    unit = 1 if kind["rows"] == "hellinger" else scale
    assert_same(actual[1], unit * transition, unit)


@given(tied_models(2), orders)
def test_margins_of_the_registration(pair, p):
    a, b = pair
    plan = register_states(a, b, p=p)
    assert plan.shape == (a.n_components[0], b.n_components[0])
    assert (plan >= 0).all()
    assert_allclose(plan.sum(axis=1), a.weights[0], atol=1e-13)
    assert_allclose(plan.sum(axis=0), b.weights[0], atol=1e-13)


def mixture_cdf(model, x):
    scales = np.sqrt(model.covars[0, :, 0])
    return norm.cdf((x[:, None] - model.means[0, :, 0]) / scales) @ model.weights[0]


def mixture_distance(a, b, p):
    """W_p between the marginal mixtures on the line, from their quantiles."""
    x = np.linspace(-15, 15, 60_001)
    levels = (np.arange(20_000) + 0.5) / 20_000
    quantiles = [np.interp(levels, mixture_cdf(model, x), x) for model in (a, b)]
    return np.mean(np.abs(quantiles[0] - quantiles[1]) ** p) ** (1 / p)


@given(seeds, metric_orders)
def test_marginal_bounds_the_distance_of_mixtures_on_the_line(seed, p):
    rng = np.random.default_rng(seed)
    a, b = (batch(random_model(rng, size, 1, "diag")) for size in (2, 3))
    assert mixture_distance(a, b, p) <= components(a, b, p)[0] + 1e-4


def test_the_bound_is_met_by_a_translation(rng):
    transmat, means, covars = random_model(rng, 3, 1, "diag")
    a, b = batch((transmat, means, covars)), batch((transmat, means + 0.01, covars))
    assert_allclose(components(a, b, 1)[0], mixture_distance(a, b, 1), rtol=1e-3)


@given(arrays(1), metric_orders, st.data())
def test_triangle_inequality_of_the_marginal(model, p, data):
    n_features = model[0][1].shape[1]
    rng = np.random.default_rng(data.draw(seeds))
    others = [
        batch(random_model(rng, size, n_features, "diag"))
        for size in data.draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    ]
    trio = [batch(model[0]), *others]
    marginal = np.array([[components(a, b, p)[0] for b in trio] for a in trio])
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        assert marginal[i, k] <= marginal[i, j] + marginal[j, k] + 1e-9


@given(tied_models(3), metric_orders)
def test_triangle_inequality_of_the_marginal_with_ties(trio, p):
    marginal = np.array([[components(a, b, p)[0] for b in trio] for a in trio])
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        # A tie is a gap below 1e-11 of the largest cost, of which a root is taken.
        assert marginal[i, k] <= marginal[i, j] + marginal[j, k] + 1e-5


@given(arrays(2), orders, kinds, st.floats(0, 1))
def test_distance_is_linear_in_alpha(pair, p, kind, alpha):
    a, b = map(batch, pair)
    marginal, transition = components(a, b, p, kind)
    actual = pairwise_hmm_distances(a, b, alpha=alpha, p=p, metric_params=kind)[0, 0]
    assert_allclose(actual, (1 - alpha) * marginal + alpha * transition, rtol=1e-14)
