import pickle
from itertools import pairwise, product

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import poisson

from skawhmm import HMMBatch, HMMEmbedding
from skawhmm.features._embedding_blocks import block_names, name_fields

WORDS = ["banana", "tomato", "potato", "papaya", "salami", "casino", "a", "no"]
EVERY_BLOCK = ("occupancy", "transitions", "emissions")


@pytest.fixture
def letters():
    return HMMEmbedding((1, 2, 3), 2.0, EVERY_BLOCK, emission="categorical").set_params(
        random_state=0
    )


@pytest.fixture
def counts(rng):
    return [rng.poisson([[2.0, 9.0]] * n) for n in (7, 4, 12, 5)]


def path_statistics(emit, start, transmat):
    """State probabilities and moves by the sum over all paths of states."""
    n_timesteps, n_components = emit.shape
    post, moves = np.zeros(emit.shape), np.zeros(transmat.shape)
    for path in product(range(n_components), repeat=n_timesteps):
        weight = start[path[0]] * emit[np.arange(n_timesteps), path].prod()
        for i, j in pairwise(path):
            weight *= transmat[i, j]
        post[np.arange(n_timesteps), path] += weight
        for i, j in pairwise(path):
            moves[i, j] += weight
    return post / post[0].sum(), moves / post[0].sum()


def test_blocks_of_symbols_are_sums_over_paths(letters):
    letters.set_params(normalize=False).fit(WORDS)
    (vector,) = letters.transform(["panda"])
    names = list(letters.get_feature_names_out())
    models = letters.reference_models_
    symbols = models.emission.symbols
    for r, size in enumerate((1, 2, 3)):
        probs = models.emission.emissionprobs[r, :size]
        seen = [list(symbols).index(s) if s in symbols else None for s in "panda"]
        # The letter d is in no word, and says nothing.
        emit = np.array([np.ones(size) if k is None else probs[:, k] for k in seen])
        post, moves = path_statistics(
            emit, models.startprobs[r, :size], models.transmats[r, :size, :size]
        )
        for k in range(size):
            occupancy = vector[names.index(f"r{r}_occupancy_s{k}")]
            assert_allclose(occupancy**2, post[:, k].mean())
            for j in range(size):
                move = vector[names.index(f"r{r}_transitions_s{k}_s{j}")]
                assert_allclose(move**2, moves[k, j] / 4)
            shares = {s: post[t, k] for t, s in enumerate("panda") if s != "a"}
            for s in "pn":
                emission = vector[names.index(f"r{r}_emissions_s{k}_{s}")]
                assert_allclose(emission**2, shares[s] / 4)


def test_blocks_of_counts_follow_their_formula(counts):
    embedding = HMMEmbedding(
        2, 1.5, "rates", emission="poisson", normalize=False, random_state=0
    )
    vector = embedding.fit(counts).transform(counts[1:2])[0]
    models, x = embedding.reference_models_, counts[1]
    rates = models.emission.rates[0]
    emit = poisson.pmf(x[:, None], rates).prod(axis=2)
    post, _ = path_statistics(emit, models.startprobs[0], models.transmats[0])
    n = post.sum(axis=0)[:, None]
    adapted = (post.T @ x + 1.5 * rates) / (n + 1.5)
    expected = 2 * np.sqrt(n / len(x)) * (np.sqrt(adapted) - np.sqrt(rates))
    assert_allclose(vector, expected.ravel(), rtol=1e-9)


def test_blocks_that_are_roots_are_not_rooted_again(letters):
    plain = letters.set_params(normalize=False).fit_transform(WORDS)
    normal = letters.set_params(normalize=True).transform(WORDS)
    names = letters.get_feature_names_out()
    for r, block in product(range(3), EVERY_BLOCK):
        own = [name.startswith(f"r{r}_{block}") for name in names]
        lengths = np.linalg.norm(plain[:, own], axis=1, keepdims=True)
        # A word of one letter has no transitions.
        lengths[lengths == 0] = 1
        assert_allclose(normal[:, own], plain[:, own] / lengths / 3)


def test_gaussian_roots_are_not_rooted_again(make_sequences):
    X = make_sequences()[0]
    embedding = HMMEmbedding(3, blocks=("occupancy", "transitions"), random_state=0)
    rows = embedding.fit_transform(X) * np.sqrt(2)
    plain = embedding.set_params(normalize=False).transform(X)
    assert_allclose(rows, plain, rtol=1e-12, atol=1e-15)


def test_default_blocks():
    names = HMMEmbedding(2, emission="categorical").fit(WORDS).get_feature_names_out()
    assert {name.split("_")[1] for name in names} == {"transitions", "emissions"}
    wrong = HMMEmbedding(2, blocks="means", emission="categorical")
    with pytest.raises(ValueError, match=r"blocks must be one of .*'emissions'.*means"):
        wrong.fit(WORDS)


def test_references_learn_what_follows_what():
    # Two states in turn: the likelihood of a chain, not of a mixture.
    X = ["ab" * 30, "ba" * 30]
    chain = HMMEmbedding(2, emission="categorical", random_state=0).fit(X)
    transmat = chain.reference_models_.transmats[0]
    assert_allclose(transmat, [[0, 1], [1, 0]], atol=0.05)
    mixture = HMMEmbedding(
        2, emission="categorical", reference="mixture", random_state=0
    ).fit(X)
    rows = mixture.reference_models_.transmats[0]
    assert_allclose(rows[0], rows[1])


def test_references_are_models(letters):
    models = letters.fit(WORDS).reference_models_
    assert isinstance(models, HMMBatch)
    assert np.isfinite(models.score(["tomato"])).all()
    assert list(models.emission.symbols) == sorted(set("".join(WORDS)))


def test_a_vector_depends_on_its_sequence_alone(letters):
    whole = letters.fit(WORDS).transform(WORDS)
    for word, row in zip(WORDS, whole, strict=True):
        assert_array_equal(letters.transform([word])[0], row)
    with parallel_config("threading", n_jobs=2):
        assert_array_equal(letters.transform(WORDS * 40), np.tile(whole, (40, 1)))


def test_unknown_symbols_only_are_finite(letters):
    assert np.isfinite(letters.fit(WORDS).transform(["xyz", "w"])).all()


def test_one_symbol_is_an_alphabet():
    rows = HMMEmbedding((2, 3), emission="categorical").fit_transform(["aaa", "a"])
    assert np.isfinite(rows).all()


def test_pickling(letters):
    expected = letters.fit_transform(WORDS)
    assert_array_equal(pickle.loads(pickle.dumps(letters)).transform(WORDS), expected)


def test_counts_are_checked(counts):
    embedding = HMMEmbedding(2, emission="poisson", random_state=0).fit(counts)
    with pytest.raises(ValueError, match=r"X\[0\] must hold counts"):
        embedding.transform([np.full((3, 2), 0.5)])
    with pytest.raises(ValueError, match="X has 1 features, but HMMEmbedding"):
        embedding.transform([np.ones((3, 1))])


@pytest.mark.parametrize("block", ["means", "thirds", "occupancy", "emissions"])
def test_names_can_be_read(block):
    names = [f"r2_{name}" for name in block_names(block, 2, ["x0_lag4", "x1"])]
    fields = [name_fields(name) for name in names]
    assert {f["reference"] for f in fields} == {"r2"}
    assert {f["block"] for f in fields} == {block}
    assert {f["state"] for f in fields} == {"s0", "s1"}
    channels = {None} if block == "occupancy" else {"x0_lag4", "x1"}
    assert {f.get("channel") for f in fields} == channels


def test_transitions_have_no_channel():
    assert name_fields("r0_transitions_s1_s2") == {
        "reference": "r0",
        "block": "transitions",
        "state": "s1",
    }
    assert name_fields("a|b") == {}
