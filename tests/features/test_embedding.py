import pickle
from itertools import pairwise, product

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline

from skawhmm import HMMBatch, HMMEmbedding, hmm_distance
from skawhmm.features._embedding_blocks import BLOCKS, N_PARTS, relative_statistics
from skawhmm.models._inference import posteriors

EVERY_BLOCK = tuple(BLOCKS)


@pytest.fixture
def sequences(make_sequences):
    return make_sequences(n_sequences=9, n_features=3)[0]


@pytest.fixture
def small():
    return HMMEmbedding((1, 2, 3), blocks=EVERY_BLOCK, random_state=0)


def path_statistics(x, model):
    """Statistics by the sum over all paths of states, weighted by their probability."""
    means, covars = model.states
    n_components = len(means)
    densities = np.exp(-0.5 * (x[:, None] - means) ** 2 / covars) / np.sqrt(
        2 * np.pi * covars
    )
    emit = densities.prod(axis=2)
    post = np.zeros((len(x), n_components))
    moves = np.zeros((n_components, n_components))
    for path in product(range(n_components), repeat=len(x)):
        weight = model.startprob[path[0]]
        for i, j in pairwise(path):
            weight *= model.transmat[i, j]
        weight *= emit[np.arange(len(x)), path].prod()
        post[np.arange(len(x)), path] += weight
        for i, j in pairwise(path):
            moves[i, j] += weight
    return post / post[0].sum(), moves / post[0].sum()


def time_shares(n_timesteps):
    """Share of each frame in each third, by a fine grid of instants."""
    instants = (np.arange(n_timesteps * N_PARTS) + 0.5) / (n_timesteps * N_PARTS)
    shares = np.zeros((N_PARTS, n_timesteps))
    for instant in instants:
        shares[int(instant * N_PARTS), int(instant * n_timesteps)] += 1 / N_PARTS
    return shares


@pytest.mark.parametrize("n_timesteps", [1, 2, 4, 6])
def test_statistics_are_sums_over_paths(n_timesteps, sequences, small, rng):
    model = small.fit(sequences)._kind.references[2].model
    x = rng.normal(size=(n_timesteps, 3))
    stats = relative_statistics([(x.T.copy(), np.empty((0, 0)))], model)
    post, moves = path_statistics(x, model)
    weights = time_shares(n_timesteps)[:, :, None] * post
    gaps = x[:, None] - model.states[0]
    assert_allclose(stats.occupancies[0], weights.sum(axis=1), rtol=1e-10)
    assert_allclose(stats.moves[0], moves, rtol=1e-10, atol=1e-14)
    firsts = np.einsum("ptk,tkc->pkc", weights, gaps)
    seconds = np.einsum("ptk,tkc->pkc", weights, gaps**2)
    assert_allclose(stats.firsts[0], firsts, rtol=1e-9, atol=1e-12)
    assert_allclose(stats.seconds[0], seconds, rtol=1e-9, atol=1e-12)


def test_blocks_follow_their_formulas(sequences):
    embedding = HMMEmbedding(3, 1.5, EVERY_BLOCK, normalize=False, random_state=0)
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
    for share in time_shares(T):
        weights = post * share[:, None]
        n_part = weights.sum(axis=0)[:, None]
        gaps = (r * means + weights.T @ x) / (n_part + r) - means
        expected.append(np.sqrt(n_part / T) * gaps / np.sqrt(covars))
    expected.append(root)
    size = sum(block.size for block in expected)
    flat = np.concatenate([block.ravel() for block in expected])
    assert_allclose(vector[:size], flat, rtol=1e-7, atol=1e-9)
    assert_allclose((vector[size:] ** 2).sum(), 1)


def test_normalized_blocks_have_equal_length(sequences, small):
    vectors = small.fit_transform(sequences)
    names = small.get_feature_names_out()
    assert_allclose(np.linalg.norm(vectors, axis=1), 1)
    for r, block in product(range(3), EVERY_BLOCK):
        part = vectors[:, [name.startswith(f"r{r}_{block}") for name in names]]
        assert_allclose((part**2).sum(axis=1), 1 / (3 * len(EVERY_BLOCK)))


def test_normalized_blocks_are_signed_roots(sequences):
    plain = HMMEmbedding(2, blocks="means", normalize=False, random_state=0)
    raw = plain.fit_transform(sequences)
    rooted = clone(plain).set_params(normalize=True).fit_transform(sequences)
    roots = np.sign(raw) * np.sqrt(np.abs(raw))
    assert_allclose(rooted, roots / np.linalg.norm(roots, axis=1, keepdims=True))


def test_units_and_offsets_of_channels_change_nothing(sequences, small):
    shift, scale = np.array([5.0, -300.0, 0.01]), np.array([1e-3, 40.0, 7.0])
    other = [x * scale + shift for x in sequences]
    # The start is drawn by a seed that depends on the frames' bits: one state has none.
    small.set_params(n_components=1)
    assert_allclose(
        small.fit_transform(sequences), small.fit_transform(other), atol=1e-6
    )


def test_exact_units_change_nothing_at_any_size(sequences, small):
    other = [x * [0.5, 8.0, 1024.0] for x in sequences]
    assert_array_equal(small.fit_transform(sequences), small.fit_transform(other))


def test_a_vector_depends_on_its_sequence_alone(sequences, small):
    sequences[2][3, 1] = np.nan
    sequences[4] = sequences[4][:1]
    whole = small.fit(sequences).transform(sequences)
    order = np.random.default_rng(0).permutation(len(sequences))
    assert_array_equal(small.transform([sequences[i] for i in order]), whole[order])
    for i, x in enumerate(sequences):
        assert_array_equal(small.transform([x])[0], whole[i])


def test_jobs_change_no_bit(make_sequences, small):
    X = make_sequences(n_sequences=150)[0]
    expected = clone(small).fit_transform(X)
    with parallel_config("threading", n_jobs=2):
        assert_array_equal(small.fit_transform(X), expected)


def test_samples_of_the_reference_land_near_the_origin(make_batch):
    batch = make_batch(n_models=1, n_components=3)
    rng = np.random.default_rng(0)
    path = [0]
    for _ in range(8000):
        path.append(rng.choice(3, p=batch.transmats[0, path[-1]]))
    noise = rng.normal(size=(len(path), 2)) * np.sqrt(batch.covars[0][path])
    x = batch.means[0][path] + noise
    embedding = HMMEmbedding(
        3, blocks=("means", "scales"), normalize=False, max_iter=100, random_state=0
    )
    half = embedding.fit([x[:4000]]).transform([x[4000:], x[4000:] + 1.0])
    assert np.linalg.norm(half[0]) < 0.15
    assert np.linalg.norm(half[1]) > 0.5


def test_distances_are_those_between_adapted_models(make_sequences):
    # Around the reference, with registration by identity: R at p = 2, to first order.
    x = make_sequences(n_sequences=1, n_timesteps=(3000, 3000))[0][0]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    embedding = HMMEmbedding(
        2, 1e-9, ("means", "scales"), normalize=False, max_iter=200, tol=0
    )
    embedding.set_params(random_state=0, reg_covar=0.0).fit([x])
    reference = embedding.reference_models_[:1]
    weights, scale = reference.weights[0], np.sqrt(reference.covars[0])
    shift = np.array([0.01, -0.02])
    vectors = embedding.transform([x, x + shift])
    exact = np.sqrt((weights[:, None] * (shift / scale) ** 2).sum())
    assert_allclose(np.linalg.norm(vectors[1] - vectors[0]), exact, rtol=0.05)
    unit = HMMBatch(reference.transmats, reference.means / scale, np.ones((1, 2, 2)))
    other = HMMBatch(
        reference.transmats, (reference.means + shift) / scale, np.ones((1, 2, 2))
    )
    marginal = hmm_distance(unit, other, alpha=0, p=2)
    assert_allclose(marginal, exact, rtol=0.05)


def test_one_frame_is_a_sequence(sequences, small):
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


def test_dead_channels_are_zero_and_change_nothing(sequences, small):
    wide = [
        np.column_stack([x[:, :1], np.full(len(x), 7.0), x[:, 1:]]) for x in sequences
    ]
    vectors = small.fit_transform(wide)
    dead = np.array([name.endswith("_x1") for name in small.get_feature_names_out()])
    assert_array_equal(vectors[:, dead], 0)
    assert_array_equal(vectors[:, ~dead], small.fit_transform(sequences))


def test_all_channels_may_be_dead(small):
    vectors = small.fit_transform([np.ones((4, 2)), np.ones((7, 2))])
    assert np.isfinite(vectors).all()
    assert_array_equal(vectors[0], vectors[1])


def test_a_missing_channel_is_zero(sequences, small):
    gone = [x.copy() for x in sequences]
    gone[3][:, 2] = np.nan
    vectors = small.fit(sequences).transform(gone)
    assert np.isfinite(vectors).all()
    missing = [name.endswith("_x2") for name in small.get_feature_names_out()]
    assert_array_equal(vectors[3, missing], 0)
    assert np.isfinite(small.fit_transform(gone)).all()


def test_mixture_references_have_no_memory(sequences):
    embedding = HMMEmbedding((2, 4), reference="mixture", random_state=0)
    transmats = embedding.fit(sequences).reference_models_.transmats
    for size, transmat in zip((2, 4), transmats, strict=True):
        assert_allclose(transmat[:size], np.tile(transmat[0], (size, 1)))


def test_few_distinct_frames_give_few_states():
    embedding = HMMEmbedding((4, 8), random_state=0)
    X = [np.array([[0.0], [1.0], [0.0]]), np.array([[2.0], [1.0]])]
    assert embedding.fit_transform(X).shape == (2, 2 * 3 * 5)


def test_references_learn_from_a_sample(make_sequences):
    X = make_sequences(n_sequences=20, n_timesteps=(300, 900))[0]
    embedding = HMMEmbedding(3, n_frames=1000, random_state=0).fit(X)
    again = clone(embedding).fit(X)
    assert_array_equal(embedding.transform(X), again.transform(X))
    other = clone(embedding).set_params(random_state=1).fit(X)
    assert not np.array_equal(embedding.transform(X), other.transform(X))


def test_single_precision_halves_the_memory(sequences, small):
    double = small.fit_transform(sequences)
    single = small.set_params(dtype=np.float32).fit_transform(sequences)
    assert single.dtype == np.float32
    assert_allclose(single, double, atol=1e-6)


def test_names_and_data_frames(sequences, small):
    pytest.importorskip("pandas")
    frame = small.set_output(transform="pandas").fit_transform(sequences)
    names = small.get_feature_names_out(["a", "b", "c"])
    assert len(set(names)) == frame.shape[1]
    assert names[0] == "r0_means_s0_a"
    assert list(frame.columns) == list(small.get_feature_names_out())
    with pytest.raises(ValueError, match=r"input_features .*n_features_in_=3, got 1"):
        small.get_feature_names_out(["a"])


def test_pickling(sequences, small):
    expected = small.fit_transform(sequences)
    again = pickle.loads(pickle.dumps(small))
    assert_array_equal(again.transform(sequences), expected)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_components": 0}, ValueError, "n_components must be an integer of at .* 0"),
        ({"n_components": ()}, ValueError, "n_components must hold at least 1"),
        ({"n_components": (2.5,)}, TypeError, "n_components must be an integer"),
        ({"relevance": 0}, ValueError, r"relevance must be a number in \(0, inf\)"),
        ({"blocks": ()}, ValueError, "blocks must name at least 1"),
        ({"blocks": ("mean",)}, ValueError, "blocks must be .* 'mean'"),
        ({"reference": "gmm"}, ValueError, "reference must be .* 'gmm'"),
        ({"n_frames": 0}, ValueError, "n_frames must be an integer"),
        ({"max_iter": 0}, ValueError, "max_iter must be an integer"),
        ({"reg_covar": -1.0}, ValueError, "reg_covar must be a number"),
        ({"dtype": np.int64}, ValueError, "dtype must be numpy.float32 or"),
        ({"dtype": None}, TypeError, "dtype must be numpy.float32 or"),
    ],
)
def test_wrong_parameters(params, error, message, sequences):
    with pytest.raises(error, match=message):
        HMMEmbedding(**params).fit(sequences)


def test_models_and_wrong_widths_are_refused(sequences, small, make_batch):
    with pytest.raises(TypeError, match="must hold sequences for HMMEmbedding"):
        small.fit(make_batch())
    with pytest.raises(ValueError, match="X has 2 features, but HMMEmbedding"):
        small.fit(sequences).transform([x[:, :2] for x in sequences])


def test_vectors_feed_a_linear_classifier(make_sequences):
    X, y = make_sequences(n_sequences=40, n_timesteps=(30, 60))
    pipe = make_pipeline(HMMEmbedding(3, random_state=0), RidgeClassifierCV())
    assert clone(pipe).fit(X[:24], y[:24]).predict(X[24:]).shape == (16,)
