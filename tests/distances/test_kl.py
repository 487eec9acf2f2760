import numpy as np
import pytest
from helpers import gaussian_kl
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import (
    KL,
    HMMBatch,
    HMMTransformer,
    hmm_distance,
    pairwise_hmm_distances,
)
from skawhmm.datasets import load_spoken_digits
from skawhmm.distances._kl import log_ratios, models_on, own_lengths
from skawhmm.emissions import Gaussian
from skawhmm.emissions._gaussian_scores import make_densities, packed_sequences
from skawhmm.emissions._gaussian_scores_kernels import paired_log_likelihoods
from skawhmm.models._inference import chains, sample_sequences

METHODS = ["monte_carlo", "variational", "data"]


def steps_of(method, n_steps):
    """Return the parameters of a method; only one of them draws sequences."""
    drawn = {"n_steps": n_steps} if method == "monte_carlo" else {}
    return {"method": method, **drawn}


def scores(models, sequences, rows, columns):
    _, transmats, sizes = chains(models, None)
    return paired_log_likelihoods(
        packed_sequences(sequences),
        make_densities(models.emission),
        np.array(models.weights),
        transmats,
        sizes,
        np.array(rows),
        np.array(columns),
    )


def with_sequences(models, sequences):
    return HMMBatch(
        models.transmats,
        models.means,
        models.covars,
        weights=models.weights,
        observed=models.observed,
        sequences=sequences,
    )


def drawn(models, n_timesteps=50, seed=0):
    return sample_sequences(
        models, n_timesteps, [(seed, n) for n in range(len(models))]
    )[0]


# Likelihoods


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_likelihoods_match_hmmlearn(covariance_type, make_batch):
    models = make_batch(3, 3, 2, covariance_type)
    sequences = [x[: 20 + 10 * n] for n, x in enumerate(drawn(models))]
    rows, columns = (index.ravel() for index in np.indices((3, 3)))
    actual, ranks = scores(models, sequences, rows, columns)
    expected = [
        models.to_hmmlearn(m).score(sequences[k])
        for k, m in zip(rows, columns, strict=True)
    ]
    assert_allclose(actual, expected, rtol=1e-10)
    assert_array_equal(ranks, 2 * np.array([len(sequences[k]) for k in rows]))


def test_values_that_were_not_observed_do_not_count(make_batch):
    models = make_batch(2, 2, 3)
    sequence = drawn(models)[0].copy()
    sequence[:, 1] = np.nan
    actual, _ = scores(models, [sequence], [0, 0], [0, 1])
    less = models_on(models, np.array([True, False, True]))
    expected, _ = scores(less, [sequence[:, [0, 2]]], [0, 0], [0, 1])
    assert_allclose(actual, expected, rtol=1e-12)


def test_packing_keeps_the_sequences_of_the_caller(make_batch):
    sequence = np.array([[1.0, np.nan], [2.0, 3.0]])
    packed = packed_sequences([sequence, sequence[:1]])
    assert_array_equal(packed.lengths, [2, 1])
    assert_array_equal(packed.starts, [0, 4])
    assert_array_equal(packed.frames, [1, 2, 0, 3, 1, 0])
    assert_array_equal(packed.seen, [1, 1, 0, 1, 1, 0])
    assert np.isnan(sequence[0, 1])


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        ((-3.0, 2), (-5.0, 2), 2.0),
        ((-3.0, 2), (-np.inf, 2), np.inf),
        ((-3.0, 2), (-5.0, 4), np.inf),
        ((-3.0, 4), (-5.0, 2), np.inf),
        ((-np.inf, 2), (-5.0, 2), np.inf),
        ((-np.inf, 2), (-np.inf, 2), np.inf),
    ],
)
def test_log_ratios_are_numbers_or_infinite(own, other, expected):
    own, other = (tuple(np.array([v]) for v in pair) for pair in (own, other))
    assert log_ratios(own, other) == expected


# The divergence


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_rate_matches_a_loop_over_hmmlearn(covariance_type, make_batch):
    models = make_batch(3, 2, 2, covariance_type)
    actual = pairwise_hmm_distances(models, metric=KL(n_steps=80, symmetric=False))
    seeds = [(0, int(key)) for key in models.keys]
    sequences, _ = sample_sequences(models, 80, seeds, startprobs=models.weights)
    likelihoods = np.array(
        [[models.to_hmmlearn(m).score(x) for m in range(3)] for x in sequences]
    )
    expected = (np.diag(likelihoods)[:, None] - likelihoods) / 80
    assert_allclose(actual, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_symmetric_rate_is_the_mean_of_both_directions(method, make_batch):
    models = with_sequences(make_batch(3), drawn(make_batch(3)))
    one_way = pairwise_hmm_distances(
        models, metric=KL(symmetric=False, **steps_of(method, 100))
    )
    both = pairwise_hmm_distances(
        models, metric="kl", metric_params=steps_of(method, 100)
    )
    assert_array_equal(both, both.T)
    assert not np.allclose(one_way, one_way.T)
    assert_allclose(both, (one_way + one_way.T) / 2, rtol=1e-13)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_divergence_from_itself_is_zero(method, covariance_type, make_batch):
    models = make_batch(4, [3, 1, 2, 3], 2, covariance_type)
    models = with_sequences(models, drawn(models))
    params = steps_of(method, 50)
    distances = pairwise_hmm_distances(models, metric="kl", metric_params=params)
    assert_array_equal(np.diag(distances), np.zeros(4))
    again = pairwise_hmm_distances(models, models, metric="kl", metric_params=params)
    assert_array_equal(np.diag(again), np.zeros(4))


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_rate_of_single_gaussians_nears_the_closed_form(covariance_type, make_batch):
    models = make_batch(2, 1, 2, covariance_type)
    covars = models.emission.full_covars()
    expected = gaussian_kl(
        models.means[0, 0], covars[0, 0], models.means[1, 0], covars[1, 0]
    )
    values = [
        hmm_distance(
            models[0],
            models[1],
            KL(n_steps=2000, symmetric=False, random_state=seed),
        )
        for seed in range(20)
    ]
    error = np.std(values, ddof=1) / np.sqrt(20)
    assert abs(np.mean(values) - expected) < 4 * error
    assert error < 0.05 * expected


def test_rate_converges_as_sequences_grow(make_batch):
    a, b = make_batch(2)
    spreads, means = [], []
    for n_steps in (100, 1600):
        values = [
            hmm_distance(a, b, KL(n_steps=n_steps, random_state=seed))
            for seed in range(40)
        ]
        spreads.append(np.std(values))
        means.append(np.mean(values))
    # A mean of n nearly independent terms: sixteen times the length, a quarter.
    assert 0.12 < spreads[1] / spreads[0] < 0.5
    assert abs(means[0] - means[1]) < 4 * spreads[0] / np.sqrt(40) + 0.01 * means[1]


def test_rate_of_visible_chains_matches_the_chains():
    # Points tell the states apart, so the rate is the entropy of the rows.
    transmats = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.3, 0.7]]])
    models = HMMBatch(transmats, [[[0.0], [1.0]]] * 2, np.zeros((2, 2, 1)))
    rows = np.sum(transmats[0] * np.log(transmats[0] / transmats[1]), axis=1)
    expected = models.weights[0] @ rows
    actual = hmm_distance(models[0], models[1], KL(n_steps=200_000, symmetric=False))
    assert_allclose(actual, expected, atol=0.005)


def test_first_state_is_distributed_by_the_weights(make_batch):
    models = make_batch(2)
    other = HMMBatch(
        models.transmats,
        models.means,
        models.covars,
        startprobs=np.tile([1.0, 0, 0], (2, 1)),
    )
    assert_array_equal(
        pairwise_hmm_distances(other, metric="kl"),
        pairwise_hmm_distances(models, metric="kl"),
    )


def test_equal_random_states_give_equal_distances(make_batch):
    models = make_batch(3)

    def distances(random_state):
        metric = KL(n_steps=40, random_state=random_state)
        return pairwise_hmm_distances(models, metric=metric)

    assert_array_equal(distances(3), distances(3))
    assert not np.array_equal(distances(3), distances(4))
    one, two = (distances(np.random.RandomState(1)) for _ in range(2))
    assert_array_equal(one, two)


# Degenerate models


def degenerate(full):
    variances = np.array(
        [
            [[1.0, 1.0], [2.0, 1.0]],
            [[1.0, 0.0], [2.0, 0.0]],
            [[2.0, 0.0], [1.0, 0.0]],
            [[0.0, 0.0], [0.0, 0.0]],
            [[0.0, 0.0], [1.0, 1.0]],
        ]
    )
    return HMMBatch(
        np.tile([[0.7, 0.3], [0.3, 0.7]], (5, 1, 1)),
        np.tile([[0.0, 0.0], [1.0, 0.0]], (5, 1, 1)),
        variances[..., None] * np.eye(2) if full else variances,
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_different_supports_are_infinitely_far_apart(method, full, symmetric):
    models = degenerate(full)
    models = with_sequences(models, drawn(models))
    metric = KL(symmetric=symmetric, **steps_of(method, 60))
    distances = pairwise_hmm_distances(models, metric=metric)
    assert not np.isnan(distances).any()
    assert_array_equal(np.diag(distances), np.zeros(5))
    finite = np.isfinite(distances)
    # Only the two models with the same dead channel can be compared.
    expected = np.eye(5, dtype=bool)
    expected[1, 2] = expected[2, 1] = True
    if not symmetric:
        # The last model can do without its point and emit all that the first does.
        expected[0, 4] = True
    assert_array_equal(finite, expected)
    assert distances[1, 2] > 0


def test_dead_channel_that_both_lack_does_not_count(make_batch):
    models = make_batch(2)
    zeros = np.zeros((2, 3, 1))
    flat = HMMBatch(
        models.transmats,
        np.concatenate([models.means, zeros], axis=2),
        np.concatenate([models.covars, zeros], axis=2),
    )
    assert_allclose(
        hmm_distance(flat[0], flat[1], KL(method="variational")),
        hmm_distance(models[0], models[1], KL(method="variational")),
        rtol=1e-9,
    )


@pytest.mark.parametrize("cap", [0, 0.5, 1e6])
@pytest.mark.parametrize("method", METHODS)
def test_cap_replaces_larger_values(cap, method):
    models = degenerate(False)
    models = with_sequences(models, drawn(models))
    params = steps_of(method, 60)
    free = pairwise_hmm_distances(models, metric="kl", metric_params=params)
    params["cap"] = cap
    capped = pairwise_hmm_distances(models, metric="kl", metric_params=params)
    assert_array_equal(capped, np.minimum(free, cap))
    assert np.isfinite(capped).all()


# Sequences of the caller


def test_data_method_uses_the_sequences_of_the_models(make_batch):
    models = make_batch(3)
    sequences = [x[: 10 + 7 * n] for n, x in enumerate(drawn(models, seed=9))]
    models = with_sequences(models, sequences)
    actual = pairwise_hmm_distances(models, metric=KL(method="data", symmetric=False))
    likelihoods = np.array(
        [[models.to_hmmlearn(m).score(x) for m in range(3)] for x in sequences]
    )
    gaps = np.diag(likelihoods)[:, None] - likelihoods
    expected = gaps / np.array([len(x) for x in sequences])[:, None]
    assert_allclose(actual, expected, rtol=1e-9, atol=1e-11)
    parts = pairwise_hmm_distances(
        models[:1], models[1:], metric=KL(method="data", symmetric=False)
    )
    assert_array_equal(parts, actual[:1, 1:])


def test_data_that_no_model_can_emit_gives_no_nan():
    models = HMMBatch(
        np.ones((3, 1, 1)),
        [[[1.0]], [[0.0]], [[0.0]]],
        [[[0.0]], [[0.0]], [[1.0]]],
        sequences=[np.zeros((5, 1))] * 3,
    )
    distances = pairwise_hmm_distances(models, metric=KL(method="data"))
    assert_array_equal(np.isinf(distances), [[1, 1, 1], [1, 0, 1], [1, 1, 0]])


@pytest.mark.parametrize("given", ["neither", "one"])
def test_data_method_needs_sequences(given, make_batch):
    a, b = make_batch(2)
    if given == "one":
        a = with_sequences(a, drawn(a))
    with pytest.raises(ValueError, match=r"needs models that carry their sequences"):
        hmm_distance(a, b, "kl", metric_params={"method": "data"})


# Masks


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_masked_models_are_compared_on_common_features(
    method, covariance_type, make_batch
):
    models = make_batch(3, [2, 3, 2], 4, covariance_type)
    models = with_sequences(models, drawn(models))
    observed = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]], bool)
    masked = HMMBatch(
        models.transmats,
        models.means,
        models.covars,
        weights=models.weights,
        observed=observed,
        sequences=models.sequences,
    )
    metric = KL(**steps_of(method, 100))
    actual = pairwise_hmm_distances(masked, metric=metric)
    for i, j in np.ndindex(3, 3):
        mask = observed[i] & observed[j]
        common = models_on(models, mask)
        expected = hmm_distance(common[i], common[j], metric) * 4 / mask.sum()
        assert_allclose(actual[i, j], expected, rtol=1e-9, atol=1e-12)
    assert_array_equal(np.diag(actual), np.zeros(3))


def test_masks_that_agree_leave_closed_forms():
    observed = np.array([[True, True, False], [True, False, True]])
    covars = np.array([[[1.0, 1.0, 0.0]], [[2.0, 0.0, 1.0]]])
    models = HMMBatch(
        np.ones((2, 1, 1)), [[[0.0, 5, 0]], [[1.0, 0, 7]]], covars, observed=observed
    )
    one = np.eye(1)
    expected = 3 * gaussian_kl(np.zeros(1), one, np.ones(1), 2 * one)
    actual = hmm_distance(
        models[0], models[1], KL(method="variational", symmetric=False)
    )
    assert_allclose(actual, expected, rtol=1e-8)


# Options


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        (
            {"method": "exact"},
            ValueError,
            "method must be one of 'monte_carlo', 'variational', 'data'",
        ),
        ({"n_steps": 0}, ValueError, "n_steps must be an integer of at least 1"),
        ({"n_steps": 10.0}, TypeError, "n_steps must be an integer of at least 1"),
        ({"cap": -1}, ValueError, r"cap must be a number in \[0, inf\]"),
        ({"cap": "big"}, TypeError, "cap must be a number"),
        ({"symmetric": 2}, TypeError, "symmetric must be True or False, got 2"),
        ({"random_state": -1}, ValueError, "random_state must be an integer"),
        ({"n_samples": 10}, ValueError, "metric_params of 'kl' may be"),
        ({"p": 1}, ValueError, "metric_params of 'kl' may be"),
    ],
)
def test_bad_options(params, error, words, make_batch):
    with pytest.raises(error, match=words):
        pairwise_hmm_distances(make_batch(2), metric="kl", metric_params=params)


@pytest.mark.parametrize("method", ["variational", "data"])
@pytest.mark.parametrize("params", [{"n_steps": 50}, {"random_state": 3}], ids=str)
def test_parameters_of_sampling_are_rejected_by_methods_without_samples(method, params):
    (name,) = params
    with pytest.raises(ValueError, match=f"{name} must be .* with method='{method}'"):
        KL(method=method, **params)


# Models with an end


def words(rng, n_words=4, n_each=8):
    """Return sequences through four states; only the last is common to all words."""
    centres = rng.normal(0, 2, (n_words, 4, 2))
    centres[:, -1] = 0
    y = np.repeat(np.arange(n_words), n_each)
    X = []
    for word in y:
        frames = np.repeat(centres[word], rng.integers(4, 9, 4), axis=0)
        X.append(frames + rng.normal(size=frames.shape))
    return X, y


@pytest.mark.parametrize("method", ["monte_carlo", "variational"])
@pytest.mark.parametrize("topology", ["linear", "left-to-right"])
def test_nearest_neighbour_has_the_same_word(method, topology, rng):
    X, y = words(rng)
    states = Gaussian(reg_covar=0.1)
    hmm = HMMTransformer(4, emission=states, topology=topology, random_state=0)
    models = hmm.fit_transform(X)
    assert_allclose(own_lengths(models), models.info["n_timesteps"], rtol=0.15)
    distances = pairwise_hmm_distances(models, metric=KL(method=method))
    np.fill_diagonal(distances, np.inf)
    assert np.mean(y[distances.argmin(axis=1)] == y) > 0.8


def test_spoken_digits_are_recognised_about_as_well_as_by_their_own_sequences():
    X, y = load_spoken_digits(return_X_y=True)
    chosen = np.concatenate([np.flatnonzero(y == digit)[:8] for digit in np.unique(y)])
    X, y = [X[i] for i in chosen], y[chosen]
    hmm = HMMTransformer(
        4, topology="linear", prior="pooled", keep_sequences=True, random_state=0
    )
    models = hmm.fit_transform(X)
    found = {}
    for method in ("monte_carlo", "data"):
        distances = pairwise_hmm_distances(models, metric=KL(method=method))
        np.fill_diagonal(distances, np.inf)
        found[method] = np.mean(y[distances.argmin(axis=1)] == y)
    assert found["monte_carlo"] > found["data"] - 0.1


def ended(stays, startprobs=None, length=None):
    """Return a chain through visible states that stays so long in each but the last."""
    size = len(stays) + 1
    chain = np.eye(size)
    for n, stay in enumerate(stays):
        chain[n, n : n + 2] = 1 - 1 / stay, 1 / stay
    starts = np.eye(size)[0] if startprobs is None else np.array(startprobs)
    visits, now = np.zeros(size), starts
    for _ in range(length):
        visits, now = visits + now, now @ chain
    means = np.arange(size, dtype=float)[:, None]
    return HMMBatch(
        [chain],
        [means],
        [np.zeros((size, 1))],
        weights=[visits / length],
        startprobs=[starts],
    )


def exact_rate(a, b, length):
    """Return the divergence per step of visible chains over `length` steps."""
    rows = np.array([discrete_kl(p, q) for p, q in zip(a[1], b[1], strict=True)])
    total, now = discrete_kl(a[0], b[0]), a[0]
    for _ in range(length - 1):
        total, now = total + now @ rows, now @ a[1]
    return total / length


def discrete_kl(p, q):
    some = p > 0
    return np.sum(p[some] * np.log(p[some] / q[some]))


def test_length_is_where_the_chain_has_spent_its_weights():
    # Of three and two expected steps, a sequence of 400 holds all.
    assert_allclose(own_lengths(ended([3, 2], length=400)), 400)
    chain = [[0.5, 0.5], [0.5, 0.5]]
    free = HMMBatch([chain], [[[0.0], [1.0]]], np.ones((1, 2, 1)))
    assert own_lengths(free) == np.inf
    # States that are left for good do not matter if they have no weight,
    loop = [[0.5, 0.5], [0.0, 1.0]]
    still = HMMBatch([loop], [[[0.0], [1.0]]], np.ones((1, 2, 1)))
    assert_array_equal(still.weights, [[0, 1]])
    assert own_lengths(still) == np.inf
    # nor if no sequence starts there.
    late = HMMBatch(
        [loop],
        [[[0.0], [1.0]]],
        np.ones((1, 2, 1)),
        weights=[[0.5, 0.5]],
        startprobs=[[0.0, 1.0]],
    )
    assert own_lengths(late) == np.inf


@pytest.mark.parametrize("length", [60, 500, 9000])
def test_rate_of_chains_with_an_end_matches_their_sequences(length):
    a = ended([30, 20], length=length)
    b = ended([5, 40], startprobs=[0.9, 0.1, 0], length=length)
    length = int(np.rint(own_lengths(a)[0]))
    chain_a, chain_b = ((m.startprobs[0], m.transmats[0]) for m in (a, b))
    wanted = exact_rate(chain_a, chain_b, length)
    bound = hmm_distance(a, b, KL(method="variational", symmetric=False))
    assert_allclose(bound, wanted, rtol=1e-6, atol=2e-9)
    many = KL(n_steps=1500 * length, symmetric=False)
    assert_allclose(hmm_distance(a, b, many), wanted, rtol=0.1)


@pytest.mark.parametrize("method", ["monte_carlo", "variational"])
def test_value_of_a_pair_with_ends_does_not_depend_on_the_batch(
    method, make_batch, rng
):
    X, _ = words(rng, n_each=1)
    linear = HMMTransformer(4, topology="linear", random_state=0).fit_transform(X)
    free = make_batch(3, 2, 2)
    models = HMMBatch.concatenate([linear._bare(), free])
    metric = KL(n_steps=100) if method == "monte_carlo" else KL(method=method)
    whole = pairwise_hmm_distances(models, metric=metric)
    assert_array_equal(whole, whole.T)
    assert_array_equal(np.diag(whole), 0)
    order = rng.permutation(len(models))
    shuffled = pairwise_hmm_distances(models[order], metric=metric)
    assert_array_equal(shuffled, whole[np.ix_(order, order)])
    part = pairwise_hmm_distances(models[[1]], models[[5, 0]], metric=metric)
    assert_array_equal(part, whole[[1]][:, [5, 0]])


# Estimates below 0


def test_distances_are_not_negative():
    # The second model explains the sequence of the first better than the first does.
    models = HMMBatch(
        np.ones((2, 1, 1)),
        [[[0.0]], [[5.0]]],
        np.ones((2, 1, 1)),
        sequences=[np.full((4, 1), 5.0), np.full((4, 1), 5.0)],
    )
    for symmetric in (False, True):
        metric = KL(method="data", symmetric=symmetric)
        assert (pairwise_hmm_distances(models, metric=metric) >= 0).all()
    near = HMMBatch(
        np.ones((20, 1, 1)),
        np.linspace(0, 1e-6, 20)[:, None, None],
        np.ones((20, 1, 1)),
    )
    assert (pairwise_hmm_distances(near, metric=KL(n_steps=10)) >= 0).all()
