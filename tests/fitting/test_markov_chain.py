from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import (
    KL,
    HMMBatch,
    HMMTransformer,
    KNeighborsHMMClassifier,
    pairwise_hmm_distances,
)
from skawhmm.distances import MMD
from skawhmm.features import HMMClassDistance
from skawhmm.fitting import MarkovChainTransformer

TEXTS = st.lists(st.text("abcd", min_size=1, max_size=30), min_size=1, max_size=5)


def visible(**params):
    return MarkovChainTransformer(**params)


def counted(text, symbols):
    """Count starts, pairs and symbols of a text, one after the other."""
    start, pairs, single = (
        dict.fromkeys(symbols, 0.0),
        {(s, t): 0.0 for s in symbols for t in symbols},
        dict.fromkeys(symbols, 0.0),
    )
    start[text[0]] += 1
    for s in text:
        single[s] += 1
    for s, t in pairwise(text):
        pairs[s, t] += 1
    return start, pairs, single


def frequencies(counts, prior, relevance):
    total = sum(counts.values()) + relevance
    if total == 0:
        return dict(prior)
    return {s: (counts[s] + relevance * prior[s]) / total for s in counts}


def rows(pairs, symbols, priors, relevance):
    return {
        s: frequencies({t: pairs[s, t] for t in symbols}, priors[s], relevance)
        for s in symbols
    }


def as_array(chances, symbols):
    if isinstance(chances[symbols[0]], dict):
        return np.array([[chances[s][t] for t in symbols] for s in symbols])
    return np.array([chances[s] for s in symbols])


@given(TEXTS, st.floats(0.1, 9))
def test_pooled_smoothing_against_a_loop(texts, relevance):
    symbols = sorted(set("".join(texts)))
    hmm = visible(prior="pooled", relevance=relevance).fit(texts)
    models = hmm.transform(texts)
    total = [counted(text, symbols) for text in texts]
    start, pairs, single = (
        {k: sum(part[n][k] for part in total) for k in total[0][n]} for n in range(3)
    )
    even = dict.fromkeys(symbols, 1 / len(symbols))
    average = frequencies(single, even, relevance)
    starts = frequencies(start, average, relevance)
    steps = rows(pairs, symbols, dict.fromkeys(symbols, average), relevance)
    pooled = hmm.pooled_model_
    assert_allclose(pooled.weights[0], as_array(average, symbols))
    assert_allclose(pooled.startprobs[0], as_array(starts, symbols))
    assert_allclose(pooled.transmats[0], as_array(steps, symbols))
    for n, (own_start, own_pairs, own_single) in enumerate(total):
        expected = frequencies(own_start, starts, relevance)
        assert_allclose(models.startprobs[n], as_array(expected, symbols))
        expected = rows(own_pairs, symbols, steps, relevance)
        assert_allclose(models.transmats[n], as_array(expected, symbols))
        expected = frequencies(own_single, average, relevance)
        assert_allclose(models.weights[n], as_array(expected, symbols))
    assert_array_equal(models.emissionprobs, [np.eye(len(symbols))] * len(texts))


def test_counts_by_hand():
    models = visible().fit_transform(["aab", "abc"])
    assert_array_equal(models.weights, [[2 / 3, 1 / 3, 0], [1 / 3] * 3])
    assert_array_equal(models.startprobs, [[1, 0, 0], [1, 0, 0]])
    # Nothing follows "b" in the first text, nor "c" in either: the row is the
    # frequencies of the symbols of the text.
    average = [2 / 3, 1 / 3, 0]
    assert_allclose(models.transmats[0], [[0.5, 0.5, 0], average, average])
    assert_allclose(models.transmats[1], [[0, 1, 0], [0, 0, 1], [1 / 3] * 3])


def test_a_number_is_added_to_every_count():
    models = visible(prior=0.5).fit_transform(["aab"])
    assert_allclose(models.weights, [[2.5 / 4, 1.5 / 4]])
    assert_allclose(models.transmats, [[[0.5, 0.5], [0.5, 0.5]]])
    assert_allclose(models.startprobs, [[1.5 / 2, 0.5 / 2]])
    more = visible(prior=1).fit_transform(["aaab"])
    assert_allclose(more.transmats, [[[3 / 5, 2 / 5], [0.5, 0.5]]])


@given(TEXTS, st.sampled_from([None, "pooled", 0.3]))
def test_likelihood_is_that_of_the_model(texts, prior):
    models = visible(prior=prior).fit_transform(texts)
    expected = models.score(texts).diagonal()
    assert_allclose(models.info["log_likelihood"], expected, atol=1e-9)
    assert_array_equal(models.info["n_timesteps"], [len(text) for text in texts])
    assert_array_equal(models.info["n_iter"], 0)
    assert models.info["converged"].all()


@given(TEXTS)
def test_counts_are_the_most_likely_chain(texts):
    hmm = visible().fit(texts)
    models = hmm.transform(texts)
    changed = 0.9 * models.transmats + 0.1 / len(hmm.symbols_)
    other = HMMBatch.from_emissionprobs(
        changed,
        models.emissionprobs,
        symbols=hmm.symbols_,
        startprobs=models.startprobs,
    )
    found = models.info["log_likelihood"]
    assert (found >= other.score(texts).diagonal() - 1e-9).all()


@pytest.mark.parametrize("prior", [None, "pooled", 0.5])
def test_a_chain_does_not_depend_on_other_chains(prior):
    texts = ["abca", "cab", "bbbb", "a"]
    hmm = visible(prior=prior).fit(texts)
    models = hmm.transform(texts)
    assert hmm.transform([texts[2], texts[0]]) == models[[2, 0]]


def test_paths_are_the_symbols():
    hmm = visible(prior="pooled")
    models = hmm.fit_transform(["abcab", "bca"])
    assert_array_equal(models.decode(["abcab", "bca"])[0][0], [0, 1, 2, 0, 1])


@pytest.mark.parametrize("prior", ["pooled", 0.5])
@pytest.mark.parametrize("method", ["monte_carlo", "variational", "data"])
def test_smoothed_chains_have_finite_divergences(prior, method):
    texts = ["aabab", "abcabc", "c", "ddda", "bd"]
    hmm = visible(prior=prior, keep_sequences=True)
    models = hmm.fit_transform(texts)
    distances = pairwise_hmm_distances(models, metric=KL(method=method))
    assert np.isfinite(distances).all()
    assert distances[~np.eye(5, dtype=bool)].max() > 0.05
    bare = visible(keep_sequences=True).fit_transform(texts)
    far = pairwise_hmm_distances(bare, metric=KL(method=method))
    assert np.isinf(far[0, 2])


def test_symbols_of_the_alphabet_that_never_occur_are_possible():
    texts = ["abab", "aabb"]
    hmm = visible(symbols="abz", prior="pooled").fit(texts)
    models = hmm.transform([*texts, "zz"])
    assert (models.transmats > 0).all()
    assert (models.weights > 0).all()
    distances = pairwise_hmm_distances(models, metric=KL(method="variational"))
    assert np.isfinite(distances).all()


def test_unknown_symbols_raise():
    hmm = visible(prior="pooled").fit(["abab"])
    with pytest.raises(ValueError, match=r"X\[1\] holds the symbol 'z', which is not"):
        hmm.transform(["ab", "az"])


def test_single_symbols_are_sequences():
    bare = visible(symbols="ab").fit_transform(["b"])
    assert_array_equal(bare.weights, [[0, 1]])
    assert_array_equal(bare.transmats, [[[0, 1], [0, 1]]])
    hmm = visible(prior="pooled").fit(["ab", "ba"])
    # Nothing was counted, so that the rows are those of the pooled chain.
    assert_array_equal(hmm.transform(["b"]).transmats, hmm.pooled_model_.transmats)


def test_integers_costs_and_weights():
    X = [[3, 5, 3, 3], [5, 5]]
    models = visible(weights="uniform").fit_transform(X)
    assert models.emission.symbols.tolist() == [3, 5]
    assert_array_equal(models.weights, [[0.5, 0.5], [0, 1]])
    still = visible(weights="stationary", prior=1.0).fit_transform(X)
    assert_allclose(
        np.einsum("ni,nij->nj", still.weights, still.transmats), still.weights
    )
    costs = [[0, 1, 4], [1, 0, 1], [4, 1, 0]]
    far = visible(costs=costs).fit_transform([[0, 0], [2, 2]])
    assert pairwise_hmm_distances(far, alpha=0)[0, 1] == 4


def test_order_of_symbols_is_classified():
    rng = np.random.default_rng(0)
    forward, y = [], []
    for n in range(40):
        text = "".join("abc"[(k + (rng.random() < 0.2)) % 3] for k in range(30))
        forward.append(text if n % 2 else text[::-1])
        y.append(n % 2)
    knn = KNeighborsHMMClassifier(1, metric=MMD(), hmm=visible(prior="pooled"))
    assert knn.fit(forward[:20], y[:20]).score(forward[20:], y[20:]) == 1


def test_a_chain_per_class():
    X, y = ["abababab", "babababa", "aabbaabb", "abbaabba"], [0, 0, 1, 1]
    hmm = visible(symbols="ab")
    step = HMMClassDistance(metric="mmd", hmm=hmm).fit(X, y)
    assert step.transform(X).argmin(axis=1).tolist() == y


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        ({"prior": 0}, ValueError, r"prior must be a number in \(0, inf\), got 0"),
        ({"prior": -1.0}, ValueError, "prior must be a number"),
        ({"prior": "flat"}, ValueError, "prior must be None, 'pooled' .* got 'flat'"),
        ({"prior": [1]}, TypeError, "prior must be a number"),
        ({"relevance": 2.0}, ValueError, "relevance must be 4.0 with prior=None"),
        ({"weights": "equal"}, ValueError, "weights must be one of .* got 'equal'"),
        ({"symbols": "aa"}, ValueError, "symbols must be distinct, got 'a' twice"),
        ({"costs": [[0, 1], [2, 0]]}, ValueError, "costs must be symmetric"),
        ({"symbols": "ab", "costs": [[0]]}, ValueError, "costs must have shape"),
        ({"keep_sequences": 3}, TypeError, "keep_sequences"),
    ],
)
def test_wrong_parameters(params, error, text):
    hmm = visible().set_params(**params)
    with pytest.raises(error, match=text):
        hmm.fit(["ab"])


@pytest.mark.parametrize("prior", [None, "pooled"])
def test_missing_symbols_raise(prior):
    X = [[0.0, 1.0, np.nan, 1.0]]
    with pytest.raises(ValueError, match="needs sequences without NaN, got 1 NaN"):
        visible(prior=prior).fit_transform(X)


@pytest.mark.parametrize("prior", [np.uint8(100), np.float16(0.1)])
def test_priors_of_numpy_count_as_those_of_python(prior, rng):
    X = [rng.integers(0, 12, 40) for _ in range(3)]
    found = visible(prior=prior).fit_transform(X)
    assert found == visible(prior=prior.item()).fit_transform(X)


@pytest.mark.parametrize("given", ["symbols", "letters"])
def test_hidden_models_name_the_transformer_of_visible_chains(given):
    with pytest.raises(ValueError, match=f"got '{given}'. MarkovChainTransformer"):
        HMMTransformer(given, emission="categorical").fit(["ab"])
    with pytest.raises(ValueError, match=r"prior must be .* 'pooled', got 0\.5"):
        HMMTransformer(2, emission="categorical", prior=0.5).fit(["ab"])
