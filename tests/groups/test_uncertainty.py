import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMBatch, HMMTransformer, hmm_distance, register_states
from skawhmm.groups import distance_interval

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


@pytest.mark.parametrize("name", ["n_timesteps", "block_length"])
@pytest.mark.parametrize("method", ["parametric", "block"])
def test_lengths_are_checked_with_every_method(name, method, make_batch):
    a, b = make_batch(2)
    with pytest.raises(ValueError, match=f"^{name} must be an integer of at least 1"):
        distance_interval(a, b, method=method, **{name: 0})


def test_first_argument_must_be_a_batch(make_batch):
    with pytest.raises(TypeError, match=r"^a must be an HMMBatch, got NoneType"):
        distance_interval(None, make_batch(1))


def test_equivalence_is_the_upper_end_of_the_interval():
    one, two = model([0, 4]), model([3, 8])
    found = distance_interval(one, two, n_timesteps=300, random_state=0)
    assert_allclose(found.within(found.high), 0.05, atol=1e-9)
    assert_allclose(found.within(found.estimate), 0.5, atol=1e-9)
    assert found.within(5) < 1e-6
    assert found.within(0.01) > 0.9
    for delta in (0, -1, np.nan, "far"):
        with pytest.raises((TypeError, ValueError), match="delta must be a"):
            found.within(delta)


def test_equivalence_is_rarely_found_at_the_margin():
    # The true distance is the margin: at most 5 % should be called equivalent.
    one, two = model([0, 4]), model([1, 5])
    true = hmm_distance(one, two, metric="jaw")
    said = 0
    for seed in range(40):
        X = [m.sample(150, random_state=seed)[0][0] for m in (one, two)]
        fits = HMMTransformer(2, random_state=0).fit_transform(X)
        found = distance_interval(fits[0], fits[1], n_resamples=40, random_state=seed)
        said += found.within(true) <= 0.05
    assert said <= 7  # of 40 at 5 %: 7 or less in 99.9 % of the cases
