import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMBatch, HMMTransformer, hmm_distance, register_states
from skawhmm.datasets import make_hmm_sequences
from skawhmm.groups import distance_interval, stability_curve

CHAIN = [[0.9, 0.1], [0.2, 0.8]]


def model(means, chain=CHAIN, **more):
    return HMMBatch(
        [chain], [np.reshape(means, (-1, 1))], [np.ones((len(means), 1))], **more
    )


@pytest.mark.parametrize("means", [[0, 4], [1, 6]])
def test_intervals_cover_the_true_distance(means):
    # The distance between two fits is far too large if the truth is 0.
    one, two = model([0, 4]), model(means)
    true = hmm_distance(one, two, metric="jaw")
    hmm = HMMTransformer(2, random_state=0)
    hits, sizes = 0, []
    for seed in range(30):
        pair = HMMBatch.concatenate([one, two])
        X = pair.sample(200, random_state=seed)[0]
        # Equal models draw the same sequence from the same seed.
        X[1] = two.sample(200, random_state=1000 + seed)[0][0]
        fits = hmm.fit_transform(X)
        found = distance_interval(fits[0], fits[1], n_resamples=60, random_state=seed)
        hits += found.low <= true <= found.high
        sizes.append((found.distance, found.estimate))
    assert hits / 30 >= 0.85
    distance, estimate = np.mean(sizes, axis=0)
    assert abs(estimate - true) < abs(distance - true)


def test_parts_of_the_interval():
    one, two = model([0, 4]), model([7, 3], [[0.8, 0.2], [0.1, 0.9]])
    found = distance_interval(one, two, n_timesteps=400, random_state=0)
    assert found.distance == hmm_distance(one, two, metric="jaw")
    squares = found.replicates**2
    center = 2 * found.distance**2 - squares.mean()
    assert_allclose(found.estimate, np.sqrt(center))
    margin = 1.6448536 * squares.std(ddof=1)
    assert_allclose([found.low**2, found.high**2], [center - margin, center + margin])
    assert_allclose(found.registration, register_states(one, two, metric="jaw"))
    # States are those of the two models: the first of one is the second of the other.
    assert found.registration_low[0, 1] > 0.4
    assert found.registration_high[0, 0] < 0.2
    assert (found.registration_low <= found.registration_high).all()
    assert found.nearer is None
    # The square of the distance has a wider interval at a higher confidence.
    wide = distance_interval(one, two, n_timesteps=400, confidence=0.99, random_state=0)
    assert wide.low < found.low < found.high < wide.high


def test_intervals_are_shorter_for_longer_sequences():
    one, two = model([0, 4]), model([1, 5])
    short, long = (
        distance_interval(one, two, n_timesteps=length, random_state=0)
        for length in (100, 1600)
    )
    assert long.replicates.std() < short.replicates.std() / 2
    assert long.high - long.low < short.high - short.low


def test_nearer_is_the_fraction_of_replicates_closer_to_b():
    a, b, c = model([0, 4]), model([0.5, 4.5]), model([3, 9])
    options = {"n_timesteps": 300, "n_resamples": 50, "random_state": 0}
    assert distance_interval(a, b, c, **options).nearer > 0.99
    assert distance_interval(a, c, b, **options).nearer < 0.01
    twin = distance_interval(a, b, model([0.5, 4.5]), **options).nearer
    assert 0.2 < twin < 0.8


def test_replicates_depend_on_the_seed_and_on_the_block_length():
    X = model([0, 4]).sample(150, random_state=0)[0]
    X += model([2, 4]).sample(90, random_state=1)[0]
    fits = HMMTransformer(2, random_state=0, keep_sequences=True).fit_transform(X)
    options = {"n_resamples": 20}
    one, two, three = (
        distance_interval(fits[0], fits[1], random_state=seed, **options)
        for seed in (0, 0, 1)
    )
    assert_array_equal(one.replicates, two.replicates)
    assert not np.array_equal(one.replicates, three.replicates)
    blocks = distance_interval(
        fits[0], fits[1], method="block", random_state=0, **options
    )
    assert blocks.distance == one.distance
    assert 0.3 < blocks.replicates.mean() / one.replicates.mean() < 3
    whole = distance_interval(
        fits[0], fits[1], method="block", block_length=150, random_state=0, **options
    )
    assert_allclose(whole.replicates, whole.distance)


def test_symbols_counts_and_a_transformer_of_ones_own():
    probs = [[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]]
    texts = [
        HMMBatch.from_emissionprobs([CHAIN], [rows], symbols="abc")
        for rows in (probs, probs[::-1])
    ]
    options = {"n_timesteps": 200, "n_resamples": 10, "random_state": 0}
    assert distance_interval(*texts, **options).distance > 0
    counts = [HMMBatch.from_rates([CHAIN], [[[1.0], [r]]]) for r in (5.0, 9.0)]
    assert distance_interval(*counts, **options).high > 0
    hmm = HMMTransformer(4, random_state=0)
    rich = distance_interval(model([0, 4]), model([1, 4]), hmm=hmm, **options)
    plain = distance_interval(model([0, 4]), model([1, 4]), **options)
    assert not np.array_equal(rich.replicates, plain.replicates)
    kl = distance_interval(model([0, 4]), model([1, 4]), metric="kl", **options)
    assert kl.registration is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_timesteps": None}, "n_timesteps must be the length .* info of a"),
        ({"n_timesteps": 0}, "n_timesteps must be an integer"),
        ({"method": "jackknife"}, "method must be one of"),
        (
            {"method": "block", "n_timesteps": None},
            "method='block' needs models that keep .* got a without",
        ),
        ({"method": "block"}, "n_timesteps must be None with method='block'"),
        ({"block_length": 5}, "block_length must be None with method='parametric'"),
        ({"n_resamples": 1}, "n_resamples must be an integer of at least 2"),
        ({"confidence": 0}, "confidence must be a number"),
        ({"hmm": 3}, "hmm must be None or a transformer"),
        ({"metric": "far"}, "metric must be one of"),
        ({"b": np.ones(3)}, "b must be an HMMBatch"),
        ({"c": model([0, 1])[[0, 0]]}, "c must hold one model, got 2"),
    ],
    ids=str,
)
def test_bad_input_is_named(change, message):
    arguments = {"a": model([0, 4]), "b": model([1, 4]), "n_timesteps": 50, **change}
    with pytest.raises((TypeError, ValueError), match=message):
        distance_interval(**arguments)


@pytest.fixture(scope="module")
def curve():
    X, _ = make_hmm_sequences(
        8, n_classes=8, n_timesteps=300, separation=2, random_state=3
    )
    return stability_curve(X, range(1, 6), random_state=0)


def test_the_true_number_of_states_is_found(curve):
    assert_array_equal(curve.n_components, [1, 2, 3, 4, 5])
    assert curve.best_n_components == 3
    assert curve.halves.shape == curve.restarts.shape == (5, 8)
    assert_allclose(curve.restarts[0], 1)
    assert (curve.restarts <= 1).all()
    assert curve.halves[2].mean() > curve.halves[4].mean()


def test_table_and_text_of_a_stability_curve(curve):
    pytest.importorskip("pandas")
    frame = curve.to_frame()
    assert_allclose(frame["halves"], curve.halves.mean(axis=1))
    assert_allclose(
        frame["restarts_error"], curve.restarts.std(axis=1, ddof=1) / np.sqrt(8)
    )
    assert repr(curve).endswith("best_n_components=3")
    assert len(repr(curve).split("\n")) == 7


def test_agreement_of_halves_is_relative_to_other_sequences():
    # One state, so that models are means and deviations: with alpha = 0 the distance
    # is that of two Gaussians, and halves of a sequence are 1 apart, others 10.
    X = [np.r_[[0.0, 2.0], [1.0, 3.0]], np.r_[[10.0, 12.0], [11.0, 13.0]]]
    curve = stability_curve(X, 1, alpha=0, random_state=0)
    assert_allclose(curve.halves[0], [1 - 1 / 11, 1 - 1 / 9])


def test_symbols_have_a_curve():
    texts = ["ababababab" * 4, "aabbaabbaabb" * 3, "abbbabbbabbb" * 3]
    hmm = HMMTransformer(emission="categorical")
    curve = stability_curve(texts, (1, 2), hmm=hmm, random_state=0)
    assert curve.halves.shape == (2, 3)


@pytest.mark.parametrize(
    ("X", "change", "message"),
    [
        ([np.zeros((9, 1))], {}, "X must hold at least 2 sequences, got 1"),
        ([np.ones((9, 1)), np.ones((1, 1))], {}, r"at least 2 frames, got 1 in X\[1\]"),
        (None, {"n_components": 0}, "n_components must be an integer"),
        (None, {"n_components": "few"}, "n_components must be an integer"),
        (None, {"n_components": ()}, "n_components must hold at least 1"),
        (None, {"hmm": 3}, "hmm must be"),
        (None, {"alpha": 2}, "alpha must be"),
    ],
    ids=str,
)
def test_bad_curves_are_named(X, change, message):
    X = [np.arange(9.0)[:, None]] * 2 if X is None else X
    with pytest.raises((TypeError, ValueError), match=message):
        stability_curve(X, **{"n_components": 1, **change})


@pytest.mark.parametrize("name", ["n_timesteps", "block_length"])
@pytest.mark.parametrize("method", ["parametric", "block"])
def test_lengths_are_checked_with_every_method(name, method, make_batch):
    a, b = make_batch(2)
    with pytest.raises(ValueError, match=f"^{name} must be an integer of at least 1"):
        distance_interval(a, b, method=method, **{name: 0})


def test_first_argument_must_be_a_batch(make_batch):
    with pytest.raises(TypeError, match=r"^a must be an HMMBatch, got NoneType"):
        distance_interval(None, make_batch(1))
