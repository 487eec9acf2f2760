import pickle

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline

from skawhmm import HMMBatch, HMMEmbedding, hmm_distance
from skawhmm.features import _embedding_statistics

WORDS = ["banana", "tomato", "potato", "papaya", "salami", "casino", "a", "no"]
EVERY_BLOCK = ("means", "scales", "thirds", "occupancy", "transitions")


@pytest.fixture
def sequences(make_sequences):
    return make_sequences(n_sequences=9, n_features=3)[0]


@pytest.fixture
def small():
    return HMMEmbedding((1, 2, 3), blocks=EVERY_BLOCK, random_state=0)


@pytest.fixture
def letters():
    blocks = ("occupancy", "transitions", "emissions")
    return HMMEmbedding((1, 2, 3), 2.0, blocks, emission="categorical", random_state=0)


@pytest.fixture
def counts(rng):
    return [rng.poisson([[2.0, 9.0]] * n) for n in (7, 4, 12, 5)]


def test_units_and_offsets_of_channels_change_nothing(sequences, small):
    shift, scale = np.array([5.0, -300.0, 0.01]), np.array([1e-3, 40.0, 7.0])
    other = [x * scale + shift for x in sequences]
    # The start is drawn by a seed that depends on the frames' bits: one state has none.
    small.set_params(n_components=1)
    assert_allclose(
        small.fit_transform(sequences), small.fit_transform(other), atol=1e-6
    )


def test_powers_of_two_as_units_change_no_bit(sequences, small):
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


def test_a_vector_of_symbols_depends_on_its_sequence_alone(letters):
    whole = letters.fit(WORDS).transform(WORDS)
    for word, row in zip(WORDS, whole, strict=True):
        assert_array_equal(letters.transform([word])[0], row)
    with parallel_config("threading", n_jobs=2):
        assert_array_equal(letters.transform(WORDS * 40), np.tile(whole, (40, 1)))


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


def test_distances_are_those_between_adapted_models(make_sequences, monkeypatch):
    monkeypatch.setattr(_embedding_statistics, "TOLERANCE", 0)
    monkeypatch.setattr(_embedding_statistics, "LEAST_VARIANCE", 0)
    # Around the reference, with registration by identity: R at p = 2, to first order.
    x = make_sequences(n_sequences=1, n_timesteps=(3000, 3000))[0][0]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    embedding = HMMEmbedding(
        2, 1e-9, ("means", "scales"), normalize=False, max_iter=200, random_state=0
    ).fit([x])
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


def test_blocks_depend_on_the_emission():
    names = HMMEmbedding(2, emission="categorical").fit(WORDS).get_feature_names_out()
    assert {name.split("_")[1] for name in names} == {"transitions", "emissions"}
    wrong = HMMEmbedding(2, blocks="means", emission="categorical")
    with pytest.raises(ValueError, match=r"blocks must be one of .*'emissions'.*means"):
        wrong.fit(WORDS)


def test_references_are_models(letters):
    models = letters.fit(WORDS).reference_models_
    assert isinstance(models, HMMBatch)
    assert np.isfinite(models.score(["tomato"])).all()
    assert list(models.emission.symbols) == sorted(set("".join(WORDS)))


def test_vectors_of_unknown_symbols_are_finite(letters):
    assert np.isfinite(letters.fit(WORDS).transform(["xyz", "w"])).all()


def test_alphabets_of_one_symbol_are_accepted():
    rows = HMMEmbedding((2, 3), emission="categorical").fit_transform(["aaa", "a"])
    assert np.isfinite(rows).all()


def test_single_precision_rounds_the_vectors(sequences, small):
    double = small.fit_transform(sequences)
    single = small.set_params(dtype=np.float32).fit_transform(sequences)
    assert single.dtype == np.float32
    assert_allclose(single, double, atol=1e-6)


def test_data_frames_have_feature_names(sequences, small):
    pytest.importorskip("pandas")
    frame = small.set_output(transform="pandas").fit_transform(sequences)
    names = small.get_feature_names_out(["a", "b", "c"])
    assert len(set(names)) == frame.shape[1]
    assert names[0] == "r0_means_s0_a"
    assert list(frame.columns) == list(small.get_feature_names_out())
    with pytest.raises(ValueError, match=r"input_features .*n_features_in_=3, got 1"):
        small.get_feature_names_out(["a"])


def test_pickled_embeddings_give_the_same_vectors(sequences, small):
    expected = small.fit_transform(sequences)
    again = pickle.loads(pickle.dumps(small))
    assert_array_equal(again.transform(sequences), expected)


def test_pickled_embeddings_of_symbols_give_the_same_vectors(letters):
    expected = letters.fit_transform(WORDS)
    assert_array_equal(pickle.loads(pickle.dumps(letters)).transform(WORDS), expected)


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
        ({"max_iter": 0}, ValueError, "max_iter must be an integer"),
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


def test_counts_are_checked(counts):
    embedding = HMMEmbedding(2, emission="poisson", random_state=0).fit(counts)
    with pytest.raises(ValueError, match=r"X\[0\] must hold counts"):
        embedding.transform([np.full((3, 2), 0.5)])
    with pytest.raises(ValueError, match="X has 1 features, but HMMEmbedding"):
        embedding.transform([np.ones((3, 1))])


def test_vectors_feed_a_linear_classifier(make_sequences):
    X, y = make_sequences(n_sequences=40, n_timesteps=(30, 60))
    pipe = make_pipeline(HMMEmbedding(3, random_state=0), RidgeClassifierCV())
    assert clone(pipe).fit(X[:24], y[:24]).predict(X[24:]).shape == (16,)
