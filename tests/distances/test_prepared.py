"""Steps to states that a model does not visit say nothing."""

import os

import numpy as np
import pytest
from helpers import random_model
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import (
    IAW,
    JAW,
    KL,
    MAW,
    HMMBatch,
    HMMTransformer,
    hmm_barycenter,
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
)
from skawhmm.datasets import load_basic_motions, load_japanese_vowels, load_npz
from skawhmm.distances._prepared import VISITED_FRACTION, visited_chains

METRICS = {
    "maw": MAW,
    "jaw": JAW,
    "hellinger": lambda **order: JAW(rows="hellinger", **order),
}
seeds = st.integers(0, 2**32 - 1)


def visited(weights, transmat):
    return visited_chains(np.array([weights]), np.array([transmat]))[0]


def test_steps_to_states_of_probability_zero_are_left_out():
    chain = visited([1.0, 0.0], [[0.5, 0.5], [0.7, 0.3]])
    assert_allclose(chain, [[1, 0], [1, 0]])
    chain = visited([0.5, 0.5, 0.0], [[0.4, 0.2, 0.4], [0, 0.5, 0.5], [0, 0, 1]])
    assert_allclose(chain[:2], [[2 / 3, 1 / 3, 0], [0, 1, 0]])
    # Nothing is left of the last row: the state stays.
    assert_allclose(chain[2], [0, 0, 1])


def test_factor_by_hand():
    # Steps lead to state 1 with 0.2, and half of what makes it visited is there.
    weight = VISITED_FRACTION * 0.2 / 2
    distribution = np.array([1 - weight, weight])
    transmat = np.array([[0.8, 0.2], [0.8, 0.2]])
    assert_allclose(visited(distribution, transmat)[0], np.array([0.8, 0.05]) / 0.85)


def test_chains_of_visited_states_are_the_same_object(make_batch):
    models = make_batch(5, [1, 2, 3, 4, 3])
    weights, transmats = np.array(models.weights), np.array(models.transmats)
    assert visited_chains(weights, transmats) is transmats


def test_the_result_does_not_jump_where_states_begin_to_be_visited():
    transmat = np.array([[0.6, 0.4], [0.5, 0.5]])
    weights = np.geomspace(1e-9, 0.4, 2000)
    rows = np.array([visited([1 - w, w], transmat)[0] for w in weights])
    assert np.all(np.diff(rows[:, 1]) >= -1e-15)
    assert np.abs(np.diff(rows[:, 1])).max() < 0.01
    assert rows[0, 1] < 1e-9
    assert_allclose(rows[-1], transmat[0])


@given(
    seeds,
    st.sampled_from([0.5, 1, 1.5, 2]),
    st.sampled_from(sorted(METRICS)),
    st.sampled_from([0.0, 1e-300, 1e-30, 1e-16]),
)
def test_states_that_are_reached_but_never_visited_do_not_matter(seed, p, name, tiny):
    rng = np.random.default_rng(seed)
    transmat, means, covars = random_model(rng, 3, 2, "diag")
    plain = HMMBatch([transmat], [means], [covars])
    other = HMMBatch(*([part] for part in random_model(rng, 4, 2, "diag")))
    # A quarter of all steps lead to a state far away in which nobody ever is.
    wide = np.zeros((4, 4))
    wide[:3, :3], wide[:3, 3], wide[3] = 0.75 * transmat, 0.25, 0.25
    longer = HMMBatch(
        [wide],
        [np.vstack([means, [[50.0, -50.0]]])],
        [np.vstack([covars, [[9.0, 9.0]]])],
        weights=[[*(plain.weights[0] * (1 - tiny)), tiny]],
    )
    metric = METRICS[name](p=p)
    for one, two in ((longer, other), (longer, plain), (longer, longer)):
        short = plain if two is longer else two
        actual = np.array(pairwise_hmm_components(one, two, metric=metric))
        expected = np.array(pairwise_hmm_components(plain, short, metric=metric))
        assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("metric", ["maw", "jaw", "iaw"])
def test_smallest_model_with_a_state_that_is_never_visited(metric):
    model = HMMBatch(
        [[[0.5, 0.5], [1.0, 0.0]]],
        [[[0.0], [1.0]]],
        [[[1.0], [1.0]]],
        weights=[[1.0, 0.0]],
    )
    assert hmm_distance(model, model, metric, alpha=1) == 0


def test_padding_changes_no_bit(make_batch):
    weights = [0.7, 0.3 - 1e-7, 1e-7]
    model = HMMBatch(
        [np.random.default_rng(0).dirichlet(np.ones(3), 3)],
        [np.eye(3)],
        [np.ones((3, 3))],
        weights=[weights],
    )
    other = make_batch(2, [2, 9], n_features=3)
    metric = JAW()
    alone = hmm_distance(model, other[0], metric)
    both = HMMBatch.concatenate([model, other])
    assert pairwise_hmm_distances(both, metric=metric)[0, 1] == alone


def test_averages_do_not_follow_steps_to_states_that_are_not_visited():
    model = HMMBatch(
        [[[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]]],
        [[[0.0], [4.0], [8.0]]],
        np.ones((1, 3, 1)),
        weights=[[0.5, 0.5, 0.0]],
    )
    models = HMMBatch.concatenate([model, model])
    average, _ = hmm_barycenter(models, update_weights=False)
    expected = [[0.75, 0.25], [0.25, 0.75]]
    assert_allclose(average.transmats[0, :2, :2], expected)


def relabelled(models, rng):
    """Return the models with the states of each in an order of its own."""
    orders = [rng.permutation(n) for n in models.n_components]
    return HMMBatch(
        [t[np.ix_(o, o)] for t, o in zip(models.transmats, orders, strict=True)],
        [m[o] for m, o in zip(models.means, orders, strict=True)],
        [c[o] for c, o in zip(models.covars, orders, strict=True)],
        weights=[w[o] for w, o in zip(models.weights, orders, strict=True)],
    )


@pytest.fixture(scope="module", params=["walks", "timit"])
def fitted(request):
    """Models with eight states of sequences so short that few states are visited."""
    if request.param == "timit":
        home = os.environ.get("SKAWHMM_DATA")
        if not home:
            pytest.skip("SKAWHMM_DATA is not set: no TIMIT sample")
        X = load_npz(f"{home}/timit_nltk_mfcc39_25_10.npz").data[::60]
    else:
        rng = np.random.default_rng(0)
        X = [
            rng.normal(size=(rng.integers(3, 12), 3)).cumsum(axis=0) for _ in range(60)
        ]
    models = HMMTransformer(8, prior="pooled", random_state=0).fit_transform(X)
    assert np.mean(models.weights < 1e-6) > 0.3
    return models


@pytest.mark.parametrize("name", sorted(METRICS))
@pytest.mark.parametrize(("p", "rounding"), [(1, 1e-7), (2, 1e-4)])
def test_properties_hold_on_fitted_models(fitted, name, p, rounding):
    metric = METRICS[name](p=p)
    components = np.array(pairwise_hmm_components(fitted, metric=metric))
    scale = np.median(components, axis=(1, 2))
    diagonals = components.diagonal(axis1=1, axis2=2).max(axis=1)
    assert np.all(diagonals <= 1e-9 * scale)
    moved = relabelled(fitted, np.random.default_rng(1))
    again = np.array(pairwise_hmm_components(moved, metric=metric))
    gaps = np.abs(again - components).max(axis=(1, 2)) / scale
    # Roots of rows, and of order p, magnify the rounding of small probabilities.
    assert gaps[0] < 1e-9
    assert gaps[1] < (1e-4 if name == "hellinger" else rounding)
    same = np.array(pairwise_hmm_components(fitted[:20], moved[:20], metric=metric))
    across = same.diagonal(axis1=1, axis2=2).max(axis=1) / scale
    assert np.all(across < (1e-3 if name == "hellinger" or p == 2 else 1e-6))


def test_debiased_iaw_of_fitted_models_is_zero_on_itself(fitted):
    metric = IAW(0.5, debias=True, n_samples=32)
    some = fitted[:10]
    distances = pairwise_hmm_distances(some, metric=metric)
    # Its registration of a model with itself is symmetric up to the projection.
    assert np.diagonal(distances).max() <= 1e-6 * np.median(distances)
    assert_array_equal(distances, distances.T)


REAL = {
    "vowels": lambda: load_japanese_vowels(return_X_y=True)[0][::40],
    "motions": lambda: load_basic_motions(return_X_y=True)[0][::5],
}


@pytest.fixture(scope="module", params=sorted(REAL))
def real(request):
    """Models of packaged data, shrunk to a pooled model with eight states."""
    hmm = HMMTransformer(8, prior="pooled", random_state=0)
    return hmm.fit_transform(REAL[request.param]())


@pytest.mark.parametrize(
    ("metric", "p"),
    [("maw", 1), ("maw", 2), ("jaw", 1), ("coupling", 1), ("mmd", None)],
)
def test_properties_hold_on_models_of_real_data(real, metric, p):
    distances = pairwise_hmm_distances(real, metric=metric, p=p)
    scale = np.median(distances)
    assert np.diagonal(distances).max() <= 1e-9 * scale
    assert_array_equal(distances, distances.T)
    moved = relabelled(real, np.random.default_rng(1))
    again = pairwise_hmm_distances(moved, metric=metric, p=p)
    assert_allclose(again, distances, atol=1e-9 * scale)


def test_variational_bound_of_models_of_real_data_with_themselves(real):
    metric = KL(method="variational")
    pairs = np.arange(len(real)), np.arange(len(real))
    assert_array_equal(metric.distances(metric.prepare(real), *pairs), 0)
