import pickle

import numpy as np
import pytest
from helpers import all_paths, log_densities, make_models
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, poisson

from skawhmm import HMMBatch, HMMTransformer, Trials
from skawhmm.emissions import (
    Bernoulli,
    ByChannel,
    Gamma,
    Gaussian,
    NegativeBinomial,
    Poisson,
    SimpleEmission,
    StudentT,
    VonMises,
)
from skawhmm.models import Forecast, HMMStream
from skawhmm.numerics._filtering import filter_frames


class Laplace(SimpleEmission):
    """A family of a user, whose densities round as NumPy does."""

    name = "laplace"
    parameter_names = ("centres",)

    def log_densities(self, frames, states):
        gaps = np.linalg.norm(frames[None] - states[0][:, None], axis=2)
        return -gaps - np.log(2 * np.pi)

    statistics = update = log_prior = random_states = common_states = None

    def cross(self, index_a, index_b):
        raise NotImplementedError


CHAIN = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.3, 0.0, 0.7]])


def models_of(kind):
    rng = np.random.default_rng(3)
    if kind in {"diag", "full"}:
        return make_models(rng, n_models=1, full=kind == "full")
    if kind == "poisson":
        return HMMBatch.from_rates([CHAIN], rng.uniform(0.5, 9, (1, 3, 2)))
    if kind == "categorical":
        probs = rng.dirichlet(np.ones(4), (1, 3))
        return HMMBatch.from_emissionprobs([CHAIN], probs, symbols="abcd")
    arrays, emission = other_states(kind, rng)
    return HMMBatch.from_arrays({"transmats": CHAIN, **arrays}, emission=emission)


def other_states(kind, rng):
    """Arrays of three states with two channels, and their family."""

    def between(low, high, n_features=2):
        return rng.uniform(low, high, (3, n_features))

    def steps(n_features=2, zeros=0.0):
        means, sds = between(1, 6, n_features), between(0.5, 2, n_features)
        return {"means": means, "sds": sds, "zero_probs": np.full(means.shape, zeros)}

    def turns(n_features=2):
        places, peaks = between(-3, 3, n_features), between(0.5, 5, n_features)
        return {"locations": places, "concentrations": peaks}

    if kind == "by_channel":
        roots = rng.normal(size=(3, 2, 2))
        levels = {"means": between(-3, 3), "covars": roots @ roots.swapaxes(1, 2)}
        counts = {"rates": between(1, 9, 1)}
        blocks = {
            "step": (Gamma(), [0], steps(1)),
            "turn": (VonMises(), [1], turns(1)),
            "level": (Gaussian("full"), [2, 3], levels),
            "count": (Poisson(), [4], counts),
        }
        arrays = {
            f"{name}.{part}": array
            for name, (_, _, own) in blocks.items()
            for part, array in own.items()
        }
        named = [(name, family, own) for name, (family, own, _) in blocks.items()]
        return arrays, ByChannel(named, scale=None)
    return {
        "gamma": lambda: (steps(), Gamma()),
        "gamma with zeros": lambda: (steps(zeros=0.3), Gamma(zero_mass=True)),
        "vonmises": lambda: (turns(), VonMises()),
        "bernoulli": lambda: ({"probabilities": between(0.1, 0.9)}, Bernoulli()),
        "negative_binomial": lambda: (
            {"means": between(1, 9), "shapes": between(1, 5)},
            NegativeBinomial(),
        ),
        "student": lambda: (
            {
                "locations": between(-3, 3),
                "scales": between(0.5, 2),
                "dofs": between(5, 9),
            },
            StudentT(),
        ),
        "laplace": lambda: ({"centres": rng.normal(size=(3, 2))}, Laplace()),
    }[kind]()


KINDS = [
    "diag",
    "full",
    "poisson",
    "categorical",
    "gamma",
    "gamma with zeros",
    "vonmises",
    "bernoulli",
    "negative_binomial",
    "student",
    "by_channel",
    "laplace",
]


def drawn(model, n_timesteps, seed=0):
    if model.emission.name == "laplace":
        return np.random.default_rng(seed).normal(size=(n_timesteps, 2))
    return model.sample(n_timesteps, random_state=seed)[0][0]


def by_paths(logs, startprob, transmat):
    """Filtered probabilities and surprise as sums over all paths of each prefix."""
    proba, totals = [], [0.0]
    for t in range(1, logs.shape[1] + 1):
        paths, scores = all_paths(logs[:, :t], startprob, transmat)
        totals.append(logsumexp(scores))
        weights = np.exp(scores - totals[-1])
        proba.append([weights @ (paths[:, -1] == k) for k in range(len(logs))])
    return np.array(proba), -np.diff(totals)


def kernel_results(logs, startprob, transmat, ranks=None):
    proba, surprise = np.empty(logs.T.shape), np.empty(logs.shape[1])
    with np.errstate(divide="ignore"):
        ahead = np.log(startprob)
    ranks = np.zeros(logs.shape, np.intp) if ranks is None else ranks
    filter_frames(logs, ranks, transmat, ahead, proba, surprise)
    return proba, surprise, ahead


@pytest.mark.parametrize("scale", [1, 30, 300, 3000])
@pytest.mark.parametrize("topology", ["ergodic", "left-to-right", "cycle"])
def test_filtering_is_the_sum_over_all_paths_so_far(rng, scale, topology):
    # Large scales leave the range of float64; zeros in the chain make that matter.
    for _ in range(5):
        logs = scale * rng.normal(size=(3, 6))
        transmat = rng.dirichlet(np.ones(3), 3)
        startprob = rng.dirichlet(np.ones(3))
        if topology == "left-to-right":
            transmat, startprob = np.triu(transmat), np.array([1.0, 0, 0])
        if topology == "cycle":
            transmat = np.roll(np.eye(3), 1, axis=1)
        transmat = transmat / transmat.sum(axis=1, keepdims=True)
        proba, surprise, _ = kernel_results(logs, startprob, transmat)
        wanted_proba, wanted_surprise = by_paths(logs, startprob, transmat)
        assert_allclose(proba, wanted_proba, atol=1e-12)
        assert_allclose(surprise, wanted_surprise, rtol=1e-11, atol=1e-11)


def test_two_frames_worked_by_hand():
    # Start 1/2, 1/2; densities 3 and 1, then 1 and 2; the chain stays with 3/4.
    logs = np.log([[3.0, 1.0], [1.0, 2.0]])
    transmat = np.array([[0.75, 0.25], [0.25, 0.75]])
    proba, surprise, ahead = kernel_results(logs, np.array([0.5, 0.5]), transmat)
    assert_allclose(proba, [[3 / 4, 1 / 4], [5 / 11, 6 / 11]])
    assert_allclose(np.exp(-surprise), [2, 5 / 8 + 2 * 3 / 8])
    assert_allclose(np.exp(ahead), [21 / 44, 23 / 44])


@pytest.mark.parametrize("kind", KINDS)
def test_results_do_not_depend_on_what_follows(kind):
    model = models_of(kind)
    x = drawn(model, 300)
    proba, surprise = model.filter_proba([x])[0], model.surprise([x])[0]
    other = drawn(model, 300, seed=1)
    for t in (1, 2, 3, 17, 64, 255, 256, 257, 299):
        later = np.concatenate([x[:t], other[t:]])
        for changed in (x[:t], later):
            assert_array_equal(model.filter_proba([changed])[0][:t], proba[:t])
            assert_array_equal(model.surprise([changed])[0][:t], surprise[:t])


@pytest.mark.parametrize(
    "kind", [k for k in KINDS if k not in {"categorical", "laplace"}]
)
def test_a_later_gap_changes_no_bit_of_earlier_frames(kind):
    model = models_of(kind)
    x = drawn(model, 40)
    gappy = x.astype(float)
    gappy[[20, 25, 30], [0, 1, 0]] = np.nan
    gappy[33] = np.nan
    whole, cut = model.surprise([x])[0], model.surprise([gappy])[0]
    assert_array_equal(whole[:20], cut[:20])
    assert cut[33] == pytest.approx(0, abs=1e-14)
    assert np.isfinite(cut).all()
    stream = model.stream()
    assert_array_equal([stream.update(frame)[1] for frame in gappy], cut)


@pytest.mark.parametrize("kind", ["diag", "full"])
def test_missing_channels_are_integrated_out(kind):
    model = models_of(kind)
    x = drawn(model, 5)
    x[[1, 3], [0, 1]] = np.nan
    covars = model.covars[0]
    covars = covars if kind == "full" else covars[..., None] * np.eye(2)
    logs = np.empty((3, 5))
    for t, frame in enumerate(x):
        seen = ~np.isnan(frame)
        for k in range(3):
            part = covars[k][np.ix_(seen, seen)]
            normal = multivariate_normal(model.means[0, k, seen], part)
            logs[k, t] = normal.logpdf(frame[seen])
    wanted = by_paths(logs, model.startprobs[0], model.transmats[0])
    assert_allclose(model.filter_proba([x])[0], wanted[0], atol=1e-12)
    assert_allclose(model.surprise([x])[0], wanted[1], rtol=1e-12)
    # What sees all frames agrees: likelihood, smoothed probabilities, the best path.
    assert_allclose(model.score([x])[0, 0], -wanted[1].sum(), rtol=1e-12)
    paths, scores = all_paths(logs, model.startprobs[0], model.transmats[0])
    best, log_probs = model.decode([x])
    assert_array_equal(best[0], paths[np.argmax(scores)])
    assert_allclose(log_probs, scores.max(), rtol=1e-12)
    weights = np.exp(scores - logsumexp(scores))
    smoothed = [[weights @ (p == k) for k in range(3)] for p in paths.T]
    assert_allclose(model.predict_proba([x])[0], smoothed, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_surprise_adds_up_to_the_likelihood(kind):
    model = models_of(kind)
    x = drawn(model, 200)
    total = model.surprise([x])[0].sum()
    assert_allclose(total, -model.score([x])[0, 0], rtol=1e-12)
    last = model.filter_proba([x])[0][-1]
    assert_allclose(last, model.predict_proba([x])[0][-1], atol=1e-12)


@pytest.mark.parametrize("full", [True, False])
def test_batches_of_models_with_unequal_numbers_of_states(rng, full):
    models = make_models(rng, n_models=3, full=full)
    wide = make_models(rng, n_models=1, n_components=4, full=full)
    both = HMMBatch.concatenate([models, wide])
    X = [rng.normal(size=(n, 2)) for n in (4, 1, 5, 3)]
    for model, x, proba in zip([*models, *wide], X, both.filter_proba(X), strict=True):
        logs = log_densities(model, x)
        wanted = by_paths(logs, model.startprobs[0], model.transmats[0])
        assert_allclose(proba, wanted[0], atol=1e-11)


def test_a_frame_on_a_flat_support_outweighs_all_others():
    # The first state is a point; a frame on it can only come from there.
    model = HMMBatch([[[0.5, 0.5], [0.5, 0.5]]], [[[1.0], [0.0]]], [[[0.0], [1.0]]])
    X = [[1.0, 0.3, 1.0]]
    assert_allclose(model.filter_proba(X)[0][:, 0], [1, 0, 1])
    assert_allclose(-model.surprise(X)[0].sum(), model.score(X)[0, 0])


def test_impossible_frames_are_infinitely_surprising_and_passed_over():
    model = HMMBatch.from_emissionprobs(
        [[[0.9, 0.1], [0.2, 0.8]]], [[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]], symbols="abc"
    )
    surprise = model.surprise(["abca"])[0]
    assert_array_equal(np.isinf(surprise), [False, False, True, False])
    proba = model.filter_proba(["abca"])[0]
    assert_allclose(proba.sum(axis=1), 1)
    assert_allclose(proba[2], proba[1] @ model.transmats[0])


@pytest.mark.parametrize("kind", KINDS)
def test_streams_give_the_rows_of_whole_sequences(kind):
    model = models_of(kind)
    x = drawn(model, 60)
    stream = model.stream()
    assert isinstance(stream, HMMStream)
    rows = []
    for t, frame in enumerate(x):
        if t == 30:
            stream = pickle.loads(pickle.dumps(stream))
        rows.append(stream.update(frame))
    assert stream.n_frames == 60
    proba, surprise = zip(*rows, strict=True)
    assert_allclose(proba, model.filter_proba([x])[0], atol=1e-12)
    assert_allclose(surprise, model.surprise([x])[0], rtol=1e-12)
    assert_array_equal(stream.probabilities, proba[-1])


def test_a_rejected_frame_leaves_the_stream_unchanged():
    stream, twin = models_of("diag").stream(), models_of("diag").stream()
    with pytest.raises(ValueError, match=r"frame must have shape \(2,\).*got.*\(3,\)"):
        stream.update([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="frame must not hold infinite values"):
        stream.update([1.0, np.inf])
    after, before = stream.update([0.5, 0.1]), twin.update([0.5, 0.1])
    assert_array_equal(after[0], before[0])
    assert stream.n_frames == 1


@pytest.mark.parametrize("kind", KINDS[:3] + KINDS[4:6] + KINDS[7:11])
def test_forecasts_agree_with_sampling(kind):
    model = models_of(kind)
    x = drawn(model, 30)
    forecast = model.forecast([x], steps=3)
    assert isinstance(forecast, Forecast)
    samples = np.array(forecast.sample(20_000, random_state=0)[0])
    assert samples.shape == (20_000, 3, model.n_features)
    means, covars = forecast.means[0], forecast.covariances[0]
    # Angles have no mean.
    known = ~np.isnan(means[0])
    assert_array_equal(np.flatnonzero(~known), [1] if kind == "by_channel" else [])
    assert np.isnan(covars[:, ~known]).all()
    samples, means = samples[..., known], means[:, known]
    covars = covars[:, known][..., known]
    spread = np.sqrt(np.einsum("scc->sc", covars))
    # Means of 20 000 draws are within 5 of their standard errors.
    assert np.all(np.abs(samples.mean(axis=0) - means) < 0.036 * spread)
    for step in range(3):
        units = spread[step, :, None] * spread[step]
        found = np.cov(samples[:, step].T) / units
        assert_allclose(found, covars[step] / units, atol=0.06)


def test_forecasts_of_counts_and_symbols():
    counts = models_of("poisson")
    forecast = counts.forecast([drawn(counts, 20)], steps=2)
    rates, weights = counts.rates[0], forecast.probabilities[0]
    assert_allclose(forecast.means[0], weights @ rates)
    square = np.array([[poisson(r).moment(2) for r in row] for row in rates])
    variances = weights @ square - forecast.means[0] ** 2
    assert_allclose(np.einsum("scc->sc", forecast.covariances[0]), variances)
    symbols = models_of("categorical")
    forecast = symbols.forecast([drawn(symbols, 20)], steps=3)
    assert {*forecast.sample(1, random_state=0)[0][0].ravel()} <= {*"abcd"}
    with pytest.raises(TypeError, match=r"means and covariances.*categorical"):
        forecast.means  # noqa: B018


@given(st.integers(0, 10_000), st.integers(1, 30))
def test_distant_forecasts_approach_the_stationary_distribution(seed, n_timesteps):
    rng = np.random.default_rng(seed)
    model = make_models(rng, n_models=1, full=False)
    x = rng.normal(size=(n_timesteps, 2))
    forecast = model.forecast([x], steps=400)
    assert_allclose(forecast.probabilities.sum(axis=2), 1)
    assert_allclose(forecast.probabilities[0, -1], model.weights[0], atol=1e-6)


@pytest.mark.parametrize("steps", [0, -1, 1.5])
def test_steps_must_be_a_positive_integer(steps):
    with pytest.raises((TypeError, ValueError), match="steps must be"):
        models_of("diag").forecast([np.zeros((3, 2))], steps=steps)


def test_trials_are_filtered_one_by_one():
    model = models_of("diag")
    first, second = drawn(model, 8), drawn(model, 5, seed=1)
    proba = model.filter_proba([Trials([first, second]), first])
    assert_array_equal(proba[0][1], model.filter_proba([second])[0])
    assert_array_equal(proba[0][0], proba[1])
    assert [len(x) for x in model.surprise([Trials([first, second])])[0]] == [8, 5]
    with pytest.raises(TypeError, match=r"X\[0\] must be one recording.*Trials"):
        model.forecast([Trials([first, second])])


@pytest.mark.parametrize(
    ("frame", "match"),
    [
        (2.0, "frame must hold flags, which are 0 or 1, got 2"),
        (1j, "frame must hold numbers, got complex"),
        ("a", "frame must hold numbers, got strings"),
        ([0, 1], r"frame must have shape \(1,\)"),
    ],
)
def test_wrong_frames_of_a_stream_are_named(frame, match):
    x = [[0.0], [1.0], [1.0], [0.0]]
    model = HMMTransformer(1, emission="bernoulli").fit_transform([x])
    with pytest.raises(ValueError, match=match):
        model.stream().update(frame)
