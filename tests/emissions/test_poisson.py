import pickle

import numpy as np
import ot
import pytest
from hmmlearn.hmm import PoissonHMM
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import poisson

from skawhmm import (
    IAW,
    KL,
    HMMBatch,
    HMMKMedoids,
    HMMTransformer,
    KNeighborsHMMClassifier,
    as_models,
    hmm_distance,
    pairwise_hmm_distances,
)

rates = st.floats(0, 12)


def single(*rates):
    return HMMBatch.from_rates([[[1.0]]] * len(rates), [[rate] for rate in rates])


@pytest.fixture
def models(rng):
    sizes = (3, 2, 1)
    return HMMBatch.from_rates(
        [rng.dirichlet(np.ones(m), m) for m in sizes],
        [rng.uniform(0, 9, (m, 2)) for m in sizes],
    )


@given(rates, rates)
def test_ground_cost_is_exact_transport_between_counts(one, two):
    counts = np.arange(60.0)
    distributions = [poisson.pmf(counts, rate) for rate in (one, two)]
    expected = ot.wasserstein_1d(
        counts,
        counts,
        *(distribution / distribution.sum() for distribution in distributions),
    )
    actual = hmm_distance(single([one]), single([two]), alpha=0)
    assert_allclose(actual, expected, atol=1e-10)


def test_channels_add_up():
    # Both channels at once: every pair of counts of one against every pair of other.
    counts = np.arange(9)
    grid = np.stack(np.meshgrid(counts, counts), axis=-1).reshape(-1, 2)
    distributions = [
        poisson.pmf(grid, rate).prod(axis=1) for rate in ([0.3, 0.8], [0.9, 0.5])
    ]
    cost = np.abs(grid[:, None] - grid).sum(axis=2).astype(float)
    expected = ot.emd2(
        *(distribution / distribution.sum() for distribution in distributions), cost
    )
    both = single([0.3, 0.8], [0.9, 0.5])
    assert_allclose(pairwise_hmm_distances(both, alpha=0)[0, 1], 0.9, atol=1e-12)
    assert_allclose(expected, 0.9, atol=1e-5)


@given(st.lists(rates, min_size=2, max_size=2), st.lists(rates, min_size=2, max_size=2))
def test_scores_match_poisson_log_probabilities(one, two):
    x = np.array([[0, 3], [1, 0], [7, 2]])
    with np.errstate(divide="ignore"):
        expected = [poisson.logpmf(x, rate).sum() for rate in (one, two)]
    assert_allclose(single(one, two).score([x])[0], expected, rtol=1e-10, atol=1e-10)


def test_divergence_of_counts_by_hand():
    x, y = np.array([3.0, 0.0]), np.array([5.0, 2.0])
    expected = 3 * np.log(3 / 5) + 2 + 2
    models = single(x, y)
    metric = KL(method="variational", symmetric=False)
    actual = pairwise_hmm_distances(models, metric=metric)
    assert_allclose(actual, [[0, expected], [np.inf, 0]])
    sampled = KL(n_steps=20_000, symmetric=False)
    actual = pairwise_hmm_distances(models, metric=sampled)
    assert_allclose(actual, [[0, expected], [np.inf, 0]], rtol=0.03)


def test_result_is_an_ordinary_batch(models, tmp_path):
    models.save(tmp_path / "models.npz")
    assert HMMBatch.load(tmp_path / "models.npz") == models
    assert pickle.loads(pickle.dumps(models)) == models
    assert HMMBatch.concatenate([models[:1], models[1:]]) == models
    assert repr(models) == (
        "HMMBatch(n_models=3, n_components=1..3, emission='poisson', n_features=2)"
    )
    for metric in ("maw", "coupling", "kl", IAW(debias=True)):
        distances = pairwise_hmm_distances(models, metric=metric)
        assert_array_equal(distances, distances.T)
        assert_array_equal(distances.diagonal(), 0)
    categorical = HMMBatch.from_emissionprobs([[[1.0]]], [[[1.0]]])
    with pytest.raises(TypeError, match="one kind of states, got poisson and categor"):
        pairwise_hmm_distances(models, categorical)


def test_samples_follow_the_models(models):
    sequences, paths = models.sample(20_000, random_state=0)
    for n, (x, path) in enumerate(zip(sequences, paths, strict=True)):
        assert x.dtype == np.int64
        for k in range(models.n_components[n]):
            rounding = 12 / np.sqrt(np.sum(path == k))
            assert_allclose(
                x[path == k].mean(axis=0), models.rates[n, k], atol=rounding
            )


def test_to_hmmlearn_and_back(models):
    x = models.sample(30, random_state=0)[0][0]
    for n in range(3):
        theirs = models.to_hmmlearn(n)
        assert isinstance(theirs, PoissonHMM)
        assert_allclose(models[n].score([x])[0, 0], theirs.score(x))
        assert as_models(theirs).score([x]) == models[n].score([x])


def test_estimators_take_counts(rng):
    busy = np.repeat(rng.permuted(np.tile([0, 1], (20, 5)), axis=1), 8, axis=1)
    y = np.arange(20) % 2
    X = [
        rng.poisson(1 + (4 + 4 * k) * b)[:, None] for b, k in zip(busy, y, strict=True)
    ]
    hmm = HMMTransformer(2, emission="poisson", random_state=0)
    near = KNeighborsHMMClassifier(1, hmm=hmm).fit(X[:10], y[:10])
    assert_array_equal(near.predict(X[10:]), y[10:])
    labels = HMMKMedoids(2, hmm=hmm).fit_predict(X)
    assert len(set(zip(labels, y, strict=True))) == 2


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([np.array([1.0, 0.5])], r"X\[0\] must hold counts, .* got 0.5"),
        ([np.array([1, 2]), np.array([3, -1])], r"X\[1\] must hold counts, .* got -1"),
    ],
)
def test_values_that_are_not_counts(X, words, models):
    with pytest.raises(ValueError, match=words):
        HMMTransformer(emission="poisson").fit(X)
    with pytest.raises(ValueError, match="X has 1 features, but HMMBatch is expecting"):
        models.score([[1, 2]])


def test_bad_rates():
    with pytest.raises(ValueError, match=r"rates must not be negative, got -1.0 in mo"):
        HMMBatch.from_rates([[[1.0]]], [[[-1.0]]])


def test_counts_that_cannot_be_drawn_are_named():
    models = HMMBatch.from_rates([[[1.0]]], [[[1e30]]])
    with pytest.raises(ValueError, match=r"rates must be at most 1e\+18 .* got 1e\+30"):
        models.sample(3, random_state=0)
