"""Averages of models of every family of states."""

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from skawhmm import (
    JAW,
    HMMBatch,
    HMMKMeans,
    hmm_barycenter,
    pairwise_hmm_distances,
)
from skawhmm.emissions import SimpleEmission
from skawhmm.fitting import MarkovChainTransformer

LEVELS = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))


class Scales(SimpleEmission):
    """A family of a user that is only compared and averaged."""

    name = "scales"
    parameter_names = ("scales",)
    log_densities = statistics = update = log_prior = None
    random_states = common_states = None

    def cross(self, index_a, index_b):
        gaps = self.scales[index_a][:, :, None] - self.scales[index_b][:, None]
        return 2 * (gaps**2).sum(axis=3)

    def averaged(self, models, labels, masses):
        return self.like(self.matched_means(self.scales, models.scales, labels, masses))


def symbols(transmats, rows, **kw):
    return HMMBatch.from_emissionprobs(transmats, rows, symbols="abcd", **kw)


def levels(transmats, rows, **kw):
    return symbols(transmats, rows, symbol_costs=LEVELS, **kw)


def scales(transmats, values, **kw):
    arrays = {"transmats": transmats, "scales": values, **kw}
    return HMMBatch.from_arrays(arrays, emission=Scales())


def gaussian(transmats, values, **kw):
    return HMMBatch(transmats, values, np.ones_like(values), **kw)


def drawn_rows(rng, shape):
    return rng.dirichlet(np.ones(4), size=shape)


def drawn_values(rng, shape):
    return rng.uniform(0, 9, (*shape, 2))


FAMILIES = {
    "symbols": (symbols, drawn_rows),
    "levels": (levels, drawn_rows),
    "counts": (HMMBatch.from_rates, drawn_values),
    "user": (scales, drawn_values),
    "gaussian": (gaussian, drawn_values),
}
families = pytest.mark.parametrize("family", FAMILIES)
seeds = st.integers(0, 10**6)


def drawn(family, seed, n_models=4, n_states=3):
    make, states = FAMILIES[family]
    rng = np.random.default_rng(seed)
    chains = rng.dirichlet(np.full(n_states, 3.0), size=(n_models, n_states))
    return make(chains, states(rng, (n_models, n_states)))


def values_of(models):
    return next(iter(models.emission.parameters.values()))


def relabelled(models, rng):
    """Return the models in another order, with the states of each in another order."""
    parts = []
    for model in rng.permutation(len(models)):
        order = rng.permutation(models.transmats.shape[1])
        arrays = {
            "transmats": models.transmats[[model]][:, order][:, :, order],
            "weights": models.weights[[model]][:, order],
            "startprobs": models.startprobs[[model]][:, order],
        }
        states = (array[[model]][:, order] for array in parameters(models))
        parts.append(
            models[[model]]._changed(emission=models.emission.like(*states), **arrays)
        )
    return HMMBatch.concatenate(parts)


def parameters(models):
    return models.emission.parameters.values()


def gap(a, b):
    return pairwise_hmm_distances(a, b, alpha=0.5, p=2)[0, 0]


@families
@given(seed=seeds)
def test_average_of_copies_is_the_model(family, seed):
    model, rng = drawn(family, seed, 1), np.random.default_rng(seed)
    copies = HMMBatch.concatenate([relabelled(model, rng) for _ in range(3)])
    average, objective = hmm_barycenter(copies)
    assert_allclose(objective[-1], 0, atol=1e-12)
    assert gap(average, model) < 1e-6


@families
@given(seed=seeds)
def test_order_of_models_and_of_states_does_not_matter(family, seed):
    models, rng = drawn(family, seed), np.random.default_rng(seed)
    average, trace = hmm_barycenter(models, update_weights=False)
    other, same = hmm_barycenter(relabelled(models, rng), update_weights=False)
    assert_allclose(same[-1], trace[-1], rtol=1e-6)
    assert gap(average, other) < 1e-5


@families
@given(seed=seeds)
def test_all_weight_on_one_model_gives_that_model(family, seed):
    models = drawn(family, seed, 2)
    for weights, kept in (([1, 0], 0), ([0, 5], 1)):
        average, _ = hmm_barycenter(models, weights)
        assert gap(average, models[kept]) < 1e-6
        indexed, _ = hmm_barycenter(models, weights, registration="identity")
        assert_allclose(indexed.transmats, models[kept].transmats)
        assert_allclose(values_of(indexed), values_of(models[kept]))


@families
@pytest.mark.parametrize("n_components", [None, 2, 4])
@given(seed=seeds)
def test_objective_never_rises_and_ends_at_the_value_of_the_average(
    family, n_components, seed
):
    models = drawn(family, seed, 5)
    weights = np.arange(1, 6) / 15
    average, objective = hmm_barycenter(
        models, weights, n_components=n_components, random_state=0
    )
    assert average.n_components[0] == (n_components or 3)
    assert (np.diff(objective) <= 0).all()
    gaps = pairwise_hmm_distances(average, models, alpha=0, p=2)[0]
    assert_allclose(objective[-1], weights @ gaps**2, rtol=1e-9)
    assert_allclose(average.weights @ average.transmats[0], average.weights)


def test_two_chains_of_symbols_by_hand():
    # The second model has its states in the other order. Both are in each state half of
    # the time, so that states are matched one to one.
    models = HMMBatch.from_emissionprobs(
        [[[0.9, 0.1], [0.1, 0.9]], [[0.7, 0.3], [0.3, 0.7]]],
        [[[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]], [[0.2, 0.2, 0.6], [0.5, 0.5, 0.0]]],
    )
    average, objective = hmm_barycenter(models, [3, 1])
    assert_allclose(average.emissionprobs[0], [[0.8, 0.2, 0.0], [0.05, 0.2, 0.75]])
    assert_allclose(average.transmats[0], [[0.85, 0.15], [0.15, 0.85]])
    # Total variations of matched states: 0.4 and 0.2, of which the average is a quarter
    # away from the first model and three quarters away from the second.
    squares = (0.4**2 + 0.2**2) / 2
    assert_allclose(objective[-1], squares * (3 / 4 / 16 + 1 / 4 * 9 / 16))


def test_two_chains_of_counts_by_hand():
    chains = [[[0.9, 0.1], [0.1, 0.9]], [[0.7, 0.3], [0.3, 0.7]]]
    models = HMMBatch.from_rates(
        chains, [[[1.0, 0.0], [9.0, 4.0]], [[5.0, 4.0], [3.0, 0.0]]]
    )
    average, objective = hmm_barycenter(models)
    assert_allclose(average.rates[0], [[2.0, 0.0], [7.0, 4.0]])
    assert_allclose(average.transmats[0], [[0.8, 0.2], [0.2, 0.8]])
    # Rates of matched states differ by 2 and 4, and the average is half way.
    assert_allclose(objective[-1], (1.0**2 + 2.0**2) / 2)


@pytest.mark.parametrize("family", ["symbols", "levels", "counts", "user"])
@given(seed=seeds)
def test_nothing_is_closer_to_two_models_than_their_average(family, seed):
    # Distances between states are norms of differences: the average of two is half way.
    models = drawn(family, seed, 2, 1)
    average, objective = hmm_barycenter(models)
    between = pairwise_hmm_distances(models[:1], models[1:], alpha=0, p=2)[0, 0]
    assert_allclose(objective[-1], between**2 / 4, rtol=1e-5, atol=1e-12)
    gaps = pairwise_hmm_distances(average, models, alpha=0, p=2)[0]
    assert_allclose(gaps, between / 2, rtol=1e-3, atol=1e-9)


def squared_moves(row, rows):
    """Return squared transport costs between levels, by POT."""
    return np.array([ot.emd2(row, other, LEVELS) for other in rows]) ** 2


@given(seed=seeds)
def test_average_of_levels_is_as_close_as_the_barycenter_of_pot(seed):
    models = drawn("levels", seed, 5, 1)
    rows, weights = models.emissionprobs[:, 0], np.arange(1, 6) / 15
    average, objective = hmm_barycenter(models, weights)
    actual = weights @ squared_moves(average.emissionprobs[0, 0], rows)
    assert_allclose(objective[-1], actual, rtol=1e-9)
    center = ot.lp.barycenter(rows.T, LEVELS**2, weights)
    for other in (center / center.sum(), weights @ rows, *rows):
        assert actual <= (1 + 1e-5) * (weights @ squared_moves(other, rows))


def test_average_of_levels_moves_probability_instead_of_mixing_it():
    rows = np.eye(4)[[0, 2]][:, None]
    average, objective = hmm_barycenter(levels(np.ones((2, 1, 1)), rows))
    assert_allclose(average.emissionprobs[0, 0], [0, 1, 0, 0], atol=1e-9)
    assert_allclose(objective[-1], 1)
    average, _ = hmm_barycenter(symbols(np.ones((2, 1, 1)), rows))
    assert_allclose(average.emissionprobs[0, 0], [0.5, 0, 0.5, 0])


@given(seed=seeds)
def test_symbols_at_equal_distances_are_averaged_as_by_default(seed):
    models = drawn("symbols", seed)
    costs = 3 * (1 - np.eye(4))
    same = symbols(models.transmats, models.emissionprobs, symbol_costs=costs)
    one, two = (hmm_barycenter(m, update_weights=False) for m in (models, same))
    assert_allclose(one[0].emissionprobs, two[0].emissionprobs)
    assert_allclose(9 * one[1][-1], two[1][-1])


def test_average_of_visible_chains_by_hand():
    chains = MarkovChainTransformer().fit_transform(["aaab", "abbb", "abab"])
    average, _ = hmm_barycenter(chains, [1, 1, 2], registration="identity")
    assert_array_equal(average.emissionprobs[0], np.eye(2))
    # The chains are in a for 3/4, 1/4 and 1/2 of the time, and leave it for b with 1/3,
    # 1 and 1.
    time = np.array([3 / 4, 1 / 4, 2 / 2])
    leaves = time @ [1 / 3, 1, 1] / time.sum()
    assert_allclose(average.weights[0], [1 / 2, 1 / 2])
    assert_allclose(average.transmats[0, 0], [1 - leaves, leaves])
    assert_allclose(average.startprobs[0], [1, 0])


@families
@given(seed=seeds)
def test_average_by_index_is_stationary_and_ignores_the_order_of_models(family, seed):
    models = drawn(family, seed)
    average, objective = hmm_barycenter(models, registration="identity")
    assert_allclose(average.weights[0], models.weights.mean(axis=0))
    assert_allclose(average.weights @ average.transmats[0], average.weights)
    pairs = models.weights[:, :, None] * models.transmats
    own = average.weights[0, :, None] * average.transmats[0]
    assert_allclose(own, pairs.mean(axis=0))
    other, same = hmm_barycenter(models[[2, 0, 3, 1]], registration="identity")
    assert_allclose(other.transmats, average.transmats)
    assert_allclose(values_of(other), values_of(average))
    gaps = pairwise_hmm_distances(average, models, alpha=0, p=2)[0]
    assert_allclose(objective, [np.mean(gaps**2)], atol=1e-12)
    assert_allclose(same, objective)


def test_states_without_weight_are_averaged_by_index_all_the_same():
    chains = [[[1.0, 0.0], [0.2, 0.8]], [[1.0, 0.0], [0.6, 0.4]]]
    weights = [[1.0, 0.0], [1.0, 0.0]]
    models = symbols(chains, np.eye(4)[[[0, 1], [0, 2]]], weights=weights)
    average, _ = hmm_barycenter(models, registration="identity")
    assert_allclose(average.transmats[0], [[1, 0], [0.4, 0.6]])
    assert_allclose(average.emissionprobs[0], [[1, 0, 0, 0], [0, 0.5, 0.5, 0]])


def test_average_by_index_needs_equal_numbers_of_states_and_nothing_of_the_search():
    models = HMMBatch.from_rates([[[1.0]], np.eye(2)], [[[1.0]], [[1.0], [2.0]]])
    with pytest.raises(ValueError, match=r"registration='identity' .* got 1 and 2"):
        hmm_barycenter(models, registration="identity")
    with pytest.raises(ValueError, match="n_components must be None with registration"):
        hmm_barycenter(models[:1], n_components=1, registration="identity")
    with pytest.raises(ValueError, match=r"registration must be .* got 'index'"):
        hmm_barycenter(models, registration="index")


@pytest.mark.parametrize("family", ["symbols", "levels", "counts", "user"])
def test_kmeans_recovers_planted_clusters(family):
    rng = np.random.default_rng(0)
    centers, y = drawn(family, 1, 3), np.arange(30) % 3
    make, states = FAMILIES[family]
    values = 0.8 * values_of(centers)[y] + 0.2 * states(rng, (30, 3))
    models = relabelled_each(make(centers.transmats[y], values), rng)
    kmeans = HMMKMeans(3, alpha=0, random_state=0).fit(models)
    assert adjusted_rand_score(y, kmeans.labels_) == 1
    for label in range(3):
        own = models[kmeans.labels_ == label]
        best = hmm_barycenter(own, random_state=0)[1][-1]
        gaps = pairwise_hmm_distances(
            kmeans.cluster_centers_[label], own, alpha=0, p=2
        )[0]
        assert np.mean(gaps**2) < 1.1 * best


def relabelled_each(models, rng):
    return HMMBatch.concatenate([relabelled(model, rng) for model in models])


def test_kmeans_by_index_keeps_the_symbols_of_visible_chains():
    fast = ["ab" * 20, "ab" * 20 + "b", "aab" + "ab" * 20]
    slow = ["aaabbb" * 8, "aaaabbb" * 8, "bbbaaa" * 9]
    chains = MarkovChainTransformer().fit_transform(fast + slow)
    metric = JAW(0.9, p=2, registration="identity", rows="hellinger")
    kmeans = HMMKMeans(2, metric=metric, random_state=0).fit(chains)
    assert adjusted_rand_score([0, 0, 0, 1, 1, 1], kmeans.labels_) == 1
    for label in range(2):
        center = kmeans.cluster_centers_[label]
        assert_array_equal(center.emissionprobs[0], np.eye(2))
        own = chains[kmeans.labels_ == label]
        expected, _ = hmm_barycenter(own, registration="identity")
        assert_allclose(center.transmats, expected.transmats)
