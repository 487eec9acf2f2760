from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, poisson
from sklearn.base import clone

from skawhmm import HMMEmbedding
from skawhmm.emissions._model import Model
from skawhmm.features import _embedding_statistics
from skawhmm.features._embedding_kernels import weighted_log_scales
from skawhmm.features._embedding_statistics import (
    GAUSSIAN_BLOCKS,
    N_PARTS,
    SYMBOL_BLOCKS,
    GaussianStatistics,
    block_names,
    gaussian_statistics,
    name_fields,
    sampled_pieces,
)
from skawhmm.models._inference import posteriors

WORDS = ["banana", "tomato", "potato", "papaya", "salami", "casino", "a", "no"]
GAUSSIAN = tuple(GAUSSIAN_BLOCKS)


@pytest.fixture
def sequences(make_sequences):
    return make_sequences(n_sequences=9, n_features=3)[0]


@pytest.fixture
def small():
    return HMMEmbedding((1, 2, 3), blocks=GAUSSIAN, random_state=0)


@pytest.fixture
def letters():
    blocks = tuple(SYMBOL_BLOCKS)
    return HMMEmbedding((1, 2, 3), 2.0, blocks, emission="categorical", random_state=0)


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


def parts_of_frames(n_timesteps):
    """Fraction of each frame in each third, by a fine grid of instants."""
    instants = (np.arange(n_timesteps * N_PARTS) + 0.5) / (n_timesteps * N_PARTS)
    parts = np.zeros((N_PARTS, n_timesteps))
    for instant in instants:
        parts[int(instant * N_PARTS), int(instant * n_timesteps)] += 1 / N_PARTS
    return parts


@pytest.mark.parametrize("n_timesteps", [1, 2, 4, 6])
def test_gaussian_statistics_are_sums_over_paths(n_timesteps, sequences, small, rng):
    model = small.fit(sequences)._kind.references[2].model
    x = rng.normal(size=(n_timesteps, 3))
    batch = [(x.T.copy(), np.empty((0, 0)))]
    stats = gaussian_statistics(batch, np.zeros(1, int), model)
    means, covars = model.states
    emit = norm.pdf(x[:, None], means, np.sqrt(covars)).prod(axis=2)
    post, moves = path_statistics(emit, model.startprob, model.transmat)
    weights = parts_of_frames(n_timesteps)[:, :, None] * post
    gaps = x[:, None] - model.states[0]
    assert_allclose(stats.occupancies[0], weights.sum(axis=1), rtol=1e-10)
    assert_allclose(stats.moves[0], moves, rtol=1e-10, atol=1e-14)
    firsts = np.einsum("ptk,tkc->pkc", weights, gaps)
    seconds = np.einsum("ptk,tkc->pkc", weights, gaps**2)
    assert_allclose(stats.firsts[0], firsts, rtol=1e-9, atol=1e-12)
    assert_allclose(stats.seconds[0], seconds, rtol=1e-9, atol=1e-12)


def test_gaussian_blocks_match_their_formulas(sequences):
    embedding = HMMEmbedding(3, 1.5, GAUSSIAN, normalize=False, random_state=0)
    vector = embedding.fit(sequences).transform(sequences[:1])[0]
    reference, r = embedding.reference_models_, 1.5
    x, T = sequences[0], len(sequences[0])
    (post,) = posteriors(reference, [x])
    means, covars = reference.means[0], reference.covars[0]
    n = post.sum(axis=0)[:, None]
    adapted = (r * means + post.T @ x) / (n + r)
    second = (r * (covars + means**2) + post.T @ x**2) / (n + r)
    root = np.sqrt(n / T)
    expected = [
        root * (adapted - means) / np.sqrt(covars),
        root * 0.5 * np.log((second - adapted**2) / covars),
    ]
    for part in parts_of_frames(T):
        weights = post * part[:, None]
        n_part = weights.sum(axis=0)[:, None]
        gaps = (r * means + weights.T @ x) / (n_part + r) - means
        expected.append(np.sqrt(n_part / T) * gaps / np.sqrt(covars))
    expected.append(root)
    size = sum(block.size for block in expected)
    flat = np.concatenate([block.ravel() for block in expected])
    assert_allclose(vector[:size], flat, rtol=1e-7, atol=1e-9)
    assert_allclose((vector[size:] ** 2).sum(), 1)


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
            expected = {s: post[t, k] for t, s in enumerate("panda") if s != "a"}
            for s in "pn":
                emission = vector[names.index(f"r{r}_emissions_s{k}_{s}")]
                assert_allclose(emission**2, expected[s] / 4)


def test_blocks_of_counts_match_their_formula(counts):
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


def test_normalized_blocks_have_equal_length(sequences, small):
    vectors = small.fit_transform(sequences)
    names = small.get_feature_names_out()
    assert_allclose(np.linalg.norm(vectors, axis=1), 1)
    for r, block in product(range(3), GAUSSIAN):
        part = vectors[:, [name.startswith(f"r{r}_{block}") for name in names]]
        assert_allclose((part**2).sum(axis=1), 1 / (3 * len(GAUSSIAN)))


def test_normalized_blocks_are_signed_roots(sequences):
    plain = HMMEmbedding(2, blocks="means", normalize=False, random_state=0)
    raw = plain.fit_transform(sequences)
    rooted = clone(plain).set_params(normalize=True).fit_transform(sequences)
    roots = np.sign(raw) * np.sqrt(np.abs(raw))
    assert_allclose(rooted, roots / np.linalg.norm(roots, axis=1, keepdims=True))


def test_normalization_takes_no_root_of_roots_of_symbols(letters):
    plain = letters.set_params(normalize=False).fit_transform(WORDS)
    normal = letters.set_params(normalize=True).transform(WORDS)
    names = letters.get_feature_names_out()
    for r, block in product(range(3), SYMBOL_BLOCKS):
        own = [name.startswith(f"r{r}_{block}") for name in names]
        lengths = np.linalg.norm(plain[:, own], axis=1, keepdims=True)
        # A word of one letter has no transitions.
        lengths[lengths == 0] = 1
        assert_allclose(normal[:, own], plain[:, own] / lengths / 3)


def test_normalization_takes_no_root_of_gaussian_roots(make_sequences):
    X = make_sequences()[0]
    embedding = HMMEmbedding(3, blocks=("occupancy", "transitions"), random_state=0)
    rows = embedding.fit_transform(X) * np.sqrt(2)
    plain = embedding.set_params(normalize=False).transform(X)
    assert_allclose(rows, plain, rtol=1e-12, atol=1e-15)


def test_rows_of_mixture_references_are_equal(sequences):
    embedding = HMMEmbedding((2, 4), reference="mixture", random_state=0)
    transmats = embedding.fit(sequences).reference_models_.transmats
    for size, transmat in zip((2, 4), transmats, strict=True):
        assert_allclose(transmat[:size], np.tile(transmat[0], (size, 1)))


def test_chains_learn_the_order_of_symbols_and_mixtures_do_not():
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


def test_few_distinct_frames_give_few_states():
    embedding = HMMEmbedding((4, 8), random_state=0)
    X = [np.array([[0.0], [1.0], [0.0]]), np.array([[2.0], [1.0]])]
    assert embedding.fit_transform(X).shape == (2, 2 * 3 * 5)


def test_references_learn_from_a_sample_of_many_frames(make_sequences, monkeypatch):
    monkeypatch.setattr(_embedding_statistics, "MAX_FRAMES", 1000)
    X = make_sequences(n_sequences=20, n_timesteps=(300, 900))[0]
    pieces = sampled_pieces(X, np.random.RandomState(0))
    assert sum(map(len, pieces)) == 1000
    assert all(any(np.shares_memory(piece, x) for x in X) for piece in pieces)
    embedding = HMMEmbedding(3, random_state=0).fit(X)
    again = clone(embedding).fit(X)
    assert_array_equal(embedding.transform(X), again.transform(X))
    other = clone(embedding).set_params(random_state=1).fit(X)
    assert not np.array_equal(embedding.transform(X), other.transform(X))


def test_sequences_of_one_frame_have_finite_vectors(sequences, small):
    vectors = small.fit(sequences).transform([x[:1] for x in sequences])
    assert np.isfinite(vectors).all()
    names = small.get_feature_names_out()
    # Each third of a frame says the same about it.
    thirds = [
        vectors[:, [name.startswith(f"r2_thirds_part{p}") for name in names]]
        for p in range(N_PARTS)
    ]
    assert_array_equal(thirds[0], thirds[1])
    moves = vectors[:, ["transitions" in name for name in names]]
    assert_array_equal(moves, 0)


def test_constant_channels_are_zero_and_change_nothing(sequences, small):
    wide = [
        np.column_stack([x[:, :1], np.full(len(x), 7.0), x[:, 1:]]) for x in sequences
    ]
    vectors = small.fit_transform(wide)
    dead = np.array([name.endswith("_x1") for name in small.get_feature_names_out()])
    assert_array_equal(vectors[:, dead], 0)
    assert_array_equal(vectors[:, ~dead], small.fit_transform(sequences))


def test_all_channels_may_be_constant(small):
    vectors = small.fit_transform([np.ones((4, 2)), np.ones((7, 2))])
    assert np.isfinite(vectors).all()
    assert_array_equal(vectors[0], vectors[1])


def test_missing_channels_are_zero(sequences, small):
    gone = [x.copy() for x in sequences]
    gone[3][:, 2] = np.nan
    vectors = small.fit(sequences).transform(gone)
    assert np.isfinite(vectors).all()
    missing = [name.endswith("_x2") for name in small.get_feature_names_out()]
    assert_array_equal(vectors[3, missing], 0)
    assert np.isfinite(small.fit_transform(gone)).all()


@pytest.mark.parametrize("block", ["means", "thirds", "occupancy", "emissions"])
def test_fields_are_read_from_names(block):
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


def test_log_scales_match_logarithms_at_any_size():
    seconds, covars = 10.0 ** np.mgrid[-150:151:50, -150:151:50].reshape(2, 1, 1, -1)
    shape = (1, *seconds.shape)
    for count, relevance in ((1.0, 2.0), (1e8, 1e-300)):
        counts, firsts = np.full(shape, count), np.zeros(shape)
        stats = GaussianStatistics(
            np.ones((1, 1, 1)), counts, firsts, seconds[None], None
        )
        logs = weighted_log_scales(stats, covars[0], relevance)
        total = count + relevance
        ratios = seconds / total / covars + relevance / total
        assert_allclose(logs, 0.5 * np.log(ratios), rtol=1e-15, atol=1e-16)


def test_a_sequence_off_the_scale_changes_no_other(rng):
    # Jumps that are all but impossible: only logarithms of the weights have digits.
    n_states = 6
    transmat = np.full((n_states, n_states), 1e-300) + np.eye(n_states)
    transmat /= transmat.sum(axis=1, keepdims=True)
    means = 1e4 * np.arange(n_states)[:, None] * np.ones(2)
    states = means, np.ones((n_states, 2))
    model = Model(np.full(n_states, 1 / n_states), transmat, states)
    wild = means[rng.permutation(n_states)].T.copy()
    usual = rng.normal(means[2, 0], size=(2, 9))
    nothing = np.empty((0, 0))
    both = gaussian_statistics([(wild, nothing), (usual, nothing)], np.arange(2), model)
    alone = gaussian_statistics([(usual, nothing)], np.arange(1), model)
    for part, own in zip(both, alone, strict=True):
        assert_array_equal(part[1:], own)
    assert_allclose(both.moves[0].sum(), n_states - 1)
    # The rest does not depend on whether transitions are counted.
    batch = [(wild, nothing), (usual, nothing)]
    fewer = gaussian_statistics(batch, np.arange(2), model, with_moves=False)
    assert fewer.moves is None
    for part, own in zip(both[:-1], fewer[:-1], strict=True):
        assert_array_equal(part, own)
