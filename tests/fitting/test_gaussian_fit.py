import itertools
from dataclasses import replace

import numpy as np
import pytest
from hmmlearn.hmm import GMMHMM, GaussianHMM
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm.datasets import (
    data_home,
    load_japanese_vowels,
    load_npz,
    load_spoken_digits,
)
from skawhmm.emissions import Gaussian
from skawhmm.fitting._base import make_batch, state_weights
from skawhmm.fitting._coordinates import pooled_coordinates
from skawhmm.fitting._em import FitOptions, Rule, Steps, model_at, run_em
from skawhmm.fitting._gaussian_fit import gaussian_data, n_parameters, start_models
from skawhmm.fitting._pooled import fit_pooled
from skawhmm.fitting._starts import kmeans_starts, segment_starts
from skawhmm.fitting._transformer import fit_models, gaussian_fits
from skawhmm.models._inference import log_likelihood

COVARIANCE_TYPES = ["diag", "full", "spherical", "tied"]


def draw(rng, n_timesteps=200, n_features=3, n_components=3, gap=3.0, stay=0.9):
    """A sequence from a sticky chain with well separated states."""
    others = (1 - stay) / max(n_components - 1, 1)
    transmat = np.full((n_components, n_components), others)
    np.fill_diagonal(transmat, stay if n_components > 1 else 1)
    means = gap * rng.normal(size=(n_components, n_features))
    scales = rng.uniform(0.5, 1.5, size=means.shape)
    path = np.zeros(n_timesteps, int)
    for t in range(1, n_timesteps):
        path[t] = rng.choice(n_components, p=transmat[path[t - 1]])
    x = means[path] + scales[path] * rng.normal(size=(n_timesteps, n_features))
    return x, path, means, scales


def draws(rng, n, **kwargs):
    return [draw(rng, **kwargs)[0] for _ in range(n)]


def batch_of(fits, **kwargs):
    """The batch that fits of Gaussian states make."""
    return make_batch(fits, FitOptions().template, **kwargs)


def arrays_of(fit):
    """All parameters of a fitted model."""
    return (*fit.model[:2], *fit.model.states)


def fit_sequence(x, options, pooled=None):
    """The fit of one sequence."""
    return gaussian_fits([x], options, pooled)[0]


def problem(x, options, n_states=3):
    """Frames, data and start values of a sequence."""
    channels = x.T.copy()
    coordinates = pooled_coordinates(channels, options.covariance_type)
    z, seen = coordinates.standardized(channels)
    frames = coordinates.frames(z)
    data = gaussian_data(frames, seen, np.array([0, len(x)]))
    start, _ = start_models(z, data, n_states, options)
    return frames, data, start


def objectives(options, data, start, prior, n_steps):
    """Objective at the start and after each of some steps of EM."""
    values, model = [], start
    steps = Steps(options.template, data, options.rule, prior)
    for max_iter in [0] + n_steps * [1]:
        runs = run_em(steps, model, max_iter=max_iter, tol=-np.inf)
        assert runs.n_iter[0] == max_iter
        model = runs.model
        values.append(runs.objective[0])
    return np.array(values)


def hmmlearn_from(start, frames, covariance_type, n_iter):
    """hmmlearn's fit from the same start, without its priors."""
    means, covars = start.states
    model = GaussianHMM(
        len(means),
        covariance_type,
        n_iter=n_iter,
        tol=-np.inf,
        init_params="",
        covars_prior=0,
        covars_weight=0,
        min_covar=0,
    )
    model.startprob_, model.transmat_ = start.startprob, start.transmat
    model.means_ = means
    model.covars_ = {
        "diag": covars,
        "full": covars,
        "spherical": covars[:, 0],
        "tied": covars[0],
    }[covariance_type]
    return model.fit(frames.T)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_same_start_and_steps_give_hmmlearns_model(rng, covariance_type):
    options = FitOptions(template=Gaussian(covariance_type, reg_covar=0), tol=0)
    for x in draws(rng, 3, gap=1.0):
        frames, data, start = problem(x, options)
        for n_iter in (1, 7):
            steps = Steps(options.template, data, options.rule)
            runs = run_em(steps, start, max_iter=n_iter)
            model = model_at(runs.model, 0)
            judge = hmmlearn_from(model_at(start, 0), frames, covariance_type, n_iter)
            assert runs.n_iter[0] == n_iter
            value = runs.log_likelihood[0]
            assert_allclose(value, judge.score(frames.T), rtol=1e-9)
            assert_allclose(model.transmat, judge.transmat_, rtol=1e-6, atol=1e-12)
            assert_allclose(model.states[0], judge.means_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_log_likelihood_of_raw_frames(rng, covariance_type):
    x = draw(rng, gap=1.0)[0] * [1e-3, 1.0, 1e4] + [1e3, 0.0, -1e5]
    options = FitOptions(template=Gaussian(covariance_type))
    if covariance_type == "spherical":
        x = x / [1e-3, 1.0, 1e4]
    fit = fit_sequence(x, options)
    models = batch_of([fit])
    assert_allclose(log_likelihood(models, [x])[0, 0], fit.log_likelihood, rtol=1e-9)
    pytest.importorskip("hmmlearn")
    assert_allclose(models.to_hmmlearn(0).score(x), fit.log_likelihood, rtol=1e-6)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("relevance", [0.0, 3.0])
@pytest.mark.parametrize("n_mix", [1, 2])
def test_objective_never_falls(rng, covariance_type, relevance, n_mix):
    # The floor is high enough to bind.
    options = FitOptions(
        template=Gaussian(covariance_type, reg_covar=0.1), n_mix=n_mix, tol=0
    )
    for x in draws(rng, 4, n_timesteps=60, gap=0.5):
        _, data, start = problem(x, options)
        means, covars = start.states
        prior = start._replace(states=(means + 0.3, covars))
        options = replace(options, relevance=relevance)
        history = objectives(options, data, start, prior, 60)
        assert np.diff(history).min() > -1e-9 * abs(history[-1])
        assert history[-1] > history[0]


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_known_models_are_recovered(rng, covariance_type):
    x, path, means, scales = draw(rng, 6000)
    if covariance_type in {"spherical", "tied"}:
        scales = np.ones_like(scales)
        x = means[path] + rng.normal(size=x.shape)
    fit = fit_sequence(x, FitOptions(template=Gaussian(covariance_type)))
    match = [np.abs(fit.model.states[0] - m).sum(axis=1).argmin() for m in means]
    assert sorted(match) == [0, 1, 2]
    assert_allclose(fit.model.states[0][match], means, atol=0.15)
    covars = fit.model.states[1][match]
    if covars.ndim == 3:
        covars = np.diagonal(covars, axis1=1, axis2=2)
    assert_allclose(covars, scales**2, rtol=0.15)
    assert_allclose(np.diag(fit.model.transmat), 0.9, atol=0.04)
    counts = np.bincount(path, minlength=3) / len(path)
    assert_allclose(fit.weights[match], counts, atol=0.02)


def test_full_covariances_are_recovered_in_badly_scaled_units(rng):
    mix = rng.normal(size=(3, 3)) * [[1e-4], [1.0], [1e4]]
    x, _, means, scales = draw(rng, 6000)
    fit = fit_sequence(x @ mix.T + 1e6, FitOptions(template=Gaussian("full")))
    match = [
        np.abs(np.linalg.solve(mix, (fit.model.states[0] - 1e6).T).T - m)
        .sum(1)
        .argmin()
        for m in means
    ]
    inverse = np.linalg.inv(mix)
    covars = inverse @ fit.model.states[1][match] @ inverse.T
    assert_allclose(covars, scales[..., None] ** 2 * np.eye(3), atol=0.25)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_a_fit_depends_on_its_sequence_alone(rng, covariance_type):
    X = [draw(rng, n_timesteps=n, gap=1.0)[0] for n in (50, 3, 80, 200, 51, 90)]
    options = FitOptions(template=Gaussian(covariance_type), seed=3)
    batch = batch_of(fit_models(X, options))
    order = [4, 0, 5, 1, 3, 2]
    for other in (
        batch_of(fit_models([X[i] for i in order], options)),
        batch_of(fit_models([X[i] for i in order], options, n_jobs=2)),
    ):
        for name in ("transmats", "means", "covars", "weights", "startprobs"):
            assert_array_equal(getattr(other, name), getattr(batch, name)[order])
        for name, column in batch.info.items():
            assert_array_equal(other.info[name], column[order])
    alone = batch_of([fit_sequence(X[3], options)])
    assert_array_equal(alone.means, batch.means[[3]])


def test_restarts_keep_the_best(rng):
    X = draws(rng, 10, n_timesteps=60, gap=0.7)
    one, five = (fit_models(X, FitOptions(4, n_init=n)) for n in (1, 5))
    gains = [
        b.log_likelihood - a.log_likelihood for a, b in zip(one, five, strict=True)
    ]
    assert min(gains) >= 0
    assert max(gains) > 0


def test_stopping_rule(rng):
    x = draw(rng, gap=0.5)[0]
    loose = fit_sequence(x, FitOptions(tol=1e-2))
    tight = fit_sequence(x, FitOptions(tol=1e-7, max_iter=1000))
    short = fit_sequence(x, FitOptions(tol=1e-7, max_iter=3))
    assert loose.converged
    assert tight.converged
    assert not short.converged
    assert short.n_iter == 3
    assert loose.n_iter < tight.n_iter < 1000
    assert loose.log_likelihood <= tight.log_likelihood


@pytest.mark.parametrize("n_mix", [1, 2])
def test_topologies(rng, n_mix):
    means = np.repeat([[0.0, 0.0], [4.0, -4.0], [8.0, 0.0]], 30, axis=0)
    x = means + rng.normal(size=means.shape)
    for topology, n_moves in (("linear", 5), ("left-to-right", 6)):
        fit = fit_sequence(x, FitOptions(3, topology=topology, n_mix=n_mix))
        transmat = (
            fit.model.transmat.reshape(3, n_mix, 3, n_mix).sum(axis=3).mean(axis=1)
        )
        assert_array_equal(transmat[np.tril_indices(3, -1)], 0)
        assert (transmat > 0).sum() <= n_moves
        assert transmat[2, 2] == 1
        assert_allclose(fit.model.startprob.reshape(3, n_mix).sum(axis=1), [1, 0, 0])
        assert_allclose(fit.weights.reshape(3, n_mix).sum(axis=1), 1 / 3, atol=0.02)
        assert_allclose(transmat[0, 1], 1 / 30, atol=0.01)


def test_mixture_has_the_likelihood_of_hmmlearns_mixture(rng):
    x = draw(rng, 300, n_components=4)[0]
    fit = fit_sequence(x, FitOptions(2, n_mix=2))
    # Entered in fixed proportions: rows of the split states of one state are equal, and
    # so are the fractions within each target.
    transmat = fit.model.transmat.reshape(2, 2, 2, 2)
    assert_allclose(transmat[:, 0], transmat[:, 1])
    fractions = transmat[:, 0] / transmat[:, 0].sum(axis=2, keepdims=True)
    assert_allclose(fractions[0], fractions[1])
    judge = GMMHMM(2, 2, covariance_type="diag", init_params="")
    judge.startprob_ = fit.model.startprob.reshape(2, 2).sum(axis=1)
    judge.transmat_ = transmat[:, 0].sum(axis=2)
    judge.weights_ = fractions[0]
    judge.means_ = fit.model.states[0].reshape(2, 2, 3)
    judge.covars_ = fit.model.states[1].reshape(2, 2, 3)
    assert_allclose(judge.score(x), fit.log_likelihood)


@pytest.mark.parametrize("criterion", ["bic", "aic"])
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_criteria_match_hmmlearns(rng, criterion, covariance_type):
    x = draw(rng, 200, n_components=2)[0]
    options = FitOptions(4, criterion=criterion, template=Gaussian(covariance_type))
    fit = fit_sequence(x, options)
    fits = {
        n: fit_sequence(x, FitOptions(n, Gaussian(covariance_type)))
        for n in range(1, 5)
    }
    values = {}
    for n, other in fits.items():
        judge = batch_of([other]).to_hmmlearn(0)
        if covariance_type in {"diag", "full"}:
            wanted = sum(GaussianHMM._get_n_fit_scalars_per_param(judge).values())
            assert n_parameters(n, 3, options) == wanted
        price = np.log(len(x)) if criterion == "bic" else 2
        values[n] = price * n_parameters(n, 3, options) - 2 * other.log_likelihood
    assert fit.n_states == min(values, key=values.get)


def test_bic_finds_the_number_of_states(rng):
    X = [draw(rng, 400, n_components=n, gap=5.0)[0] for n in (1, 2, 3, 4)]
    fits = fit_models(X, FitOptions(6, criterion="bic"))
    assert [fit.n_states for fit in fits] == [1, 2, 3, 4]
    batch = batch_of(fits)
    assert_array_equal(batch.n_components, [1, 2, 3, 4])
    assert_allclose(np.diag(log_likelihood(batch, X)), batch.info["log_likelihood"])


def test_pooled_fit_is_a_fixed_point_of_hmmlearns_steps(rng):
    x = draw(rng, 400, gap=4.0)[0]
    X = np.split(x, [100, 130, 300])
    lengths = [len(part) for part in X]
    pooled = fit_pooled(X, FitOptions(3, tol=1e-9, max_iter=500))
    judge = GaussianHMM(3, n_iter=20, tol=-np.inf, init_params="", covars_prior=0)
    judge.startprob_, judge.transmat_ = pooled.model.startprob, pooled.model.transmat
    judge.means_, judge.covars_ = pooled.model.states[0], pooled.model.states[1]
    assert_allclose(pooled.log_likelihood, judge.score(x, lengths))
    judge.fit(x, lengths)
    assert_allclose(pooled.log_likelihood, judge.score(x, lengths), rtol=1e-6)
    assert_allclose(pooled.model.states[0], judge.means_, atol=1e-2)


def test_pooled_fit_does_not_depend_on_jobs(rng, monkeypatch):
    monkeypatch.setattr("skawhmm.fitting._pooled.POOL_BLOCK", 100)
    X = draws(rng, 8, n_timesteps=70)
    one, two = (fit_pooled(X, FitOptions(3), n_jobs=n) for n in (1, 2))
    assert_array_equal(one.model.states[0], two.model.states[0])
    monkeypatch.setattr("skawhmm.fitting._pooled.POOL_BLOCK", 10_000)
    assert_allclose(fit_pooled(X, FitOptions(3)).model.states[0], one.model.states[0])


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_relevance_goes_from_the_sequence_to_the_pool(rng, covariance_type):
    X = np.split(draw(rng, 500)[0], 5)
    options = FitOptions(3, Gaussian(covariance_type), tol=1e-9, max_iter=300)
    pooled = fit_pooled(X, options)
    x = X[2]
    strong = fit_sequence(
        x, FitOptions(3, Gaussian(covariance_type), relevance=1e9), pooled
    )
    for got, wanted in zip(arrays_of(strong), arrays_of(pooled), strict=True):
        assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
    weak = FitOptions(
        3, Gaussian(covariance_type), relevance=1e-9, tol=1e-9, max_iter=300
    )
    free = fit_sequence(x, options, pooled)
    tied = fit_sequence(x, weak, pooled)
    assert_allclose(tied.log_likelihood, free.log_likelihood, rtol=1e-3)
    middle = fit_sequence(
        x, FitOptions(3, Gaussian(covariance_type), relevance=4.0), pooled
    )
    assert strong.log_likelihood < middle.log_likelihood < free.log_likelihood + 1e-6


def test_adaptation_is_the_conjugate_update(rng):
    # With one state the posterior mode has a closed form.
    X = draws(rng, 4, n_components=1)
    options = FitOptions(1, Gaussian("full"), relevance=5.0)
    pooled = fit_pooled(X, options)
    x = rng.normal(size=(12, 3)) + 2
    fit = fit_sequence(x, options, pooled)
    mean, covar = pooled.model.states[0][0], pooled.model.states[1][0]
    wanted = (5 * mean + x.sum(axis=0)) / 17
    scatter = (x - wanted).T @ (x - wanted)
    scatter += 5 * (covar + np.outer(mean - wanted, mean - wanted))
    assert_allclose(fit.model.states[0][0], wanted)
    assert_allclose(fit.model.states[1][0], scatter / 17, rtol=1e-8)


def test_pooled_start_makes_states_correspond(rng):
    means = 4 * rng.normal(size=(3, 2))
    X = []
    for _ in range(10):
        path = np.repeat(rng.permutation(3), 20)
        X.append(means[path] + rng.normal(size=(60, 2)))
    options = FitOptions(3)
    pooled = fit_pooled(X, options)
    fits = fit_models(X, options, pooled=pooled)
    for fit in fits:
        assert_allclose(fit.model.states[0], pooled.model.states[0], atol=1.0)


def test_kmeans_finds_clusters_and_empty_ones_are_filled(rng):
    centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
    truth = np.repeat(np.arange(4), 25)
    points = (centers[truth] + rng.normal(size=(100, 2))).T.copy()
    for seed in range(20):
        labels = np.empty((1, 100), int)
        bounds, states = np.array([0, 100]), np.array([seed], np.uint64)
        kmeans_starts(points, bounds, 4, states, labels)
        pairs = set(zip(labels[0].tolist(), truth.tolist(), strict=True))
        assert len(pairs) == 4


def test_segments_are_the_best_cuts(rng):
    points = rng.normal(size=(2, 12)) + np.repeat([0.0, 3.0, -2.0], 4)
    best = np.inf
    for a, b in itertools.combinations(range(1, 12), 2):
        parts = np.split(points, [a, b], axis=1)
        cost = sum(((p - p.mean(axis=1, keepdims=True)) ** 2).sum() for p in parts)
        if cost < best:
            best, cuts = cost, (a, b)
    labels, bounds = np.empty((1, 12), int), np.array([0, 12])
    segment_starts(points, bounds, bounds, 3, np.array([0], np.uint64), labels)
    assert_array_equal(labels[0], np.repeat([0, 1, 2], np.diff([0, *cuts, 12])))


def check_valid(fit, n_features):
    model = fit.model
    assert all(np.isfinite(part).all() for part in arrays_of(fit))
    assert_allclose(model.transmat.sum(axis=1), 1)
    assert_allclose(model.startprob.sum(), 1)
    assert_allclose(fit.weights.sum(), 1)
    assert model.states[0].shape[1] == n_features
    assert np.isfinite(fit.log_likelihood)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_constant_channels_keep_variance_zero(rng, covariance_type):
    x = draw(rng)[0]
    value = 0.1 + 0.2
    padded = np.insert(x, 1, value, axis=1)
    fit = fit_sequence(padded, FitOptions(template=Gaussian(covariance_type)))
    check_valid(fit, 4)
    covars = fit.model.states[1]
    if covars.ndim == 3:
        assert_array_equal(covars[:, 1], 0)
        assert_array_equal(covars[:, :, 1], 0)
    assert_array_equal(covars[:, 1], 0)
    assert_array_equal(fit.model.states[0][:, 1], value)
    plain = fit_sequence(x, FitOptions(template=Gaussian(covariance_type)))
    assert_array_equal(np.delete(fit.model.states[0], 1, axis=1), plain.model.states[0])
    assert_allclose(log_likelihood(batch_of([fit]), [padded]), fit.log_likelihood)


@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_collinear_channels(rng, covariance_type):
    x = draw(rng)[0]
    x = np.column_stack([x, x[:, 0] - 2 * x[:, 1], x[:, 0].astype(np.float32)])
    fit = fit_sequence(x, FitOptions(template=Gaussian(covariance_type)))
    check_valid(fit, 5)
    for covar in fit.model.states[1]:
        values = np.linalg.eigvalsh(covar)
        assert values[0] > -1e-12 * values[-1]
        assert values[1] < 1e-5 * values[-1]
    score = log_likelihood(batch_of([fit]), [x])
    assert_allclose(score, fit.log_likelihood, rtol=1e-3)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_hostile_sequences(rng, covariance_type):
    x = draw(rng, 60)[0]
    outlier = x.copy()
    outlier[30] = 1e6
    two_values = np.repeat(x[:2], [20, 30], axis=0)
    cases = {
        "outlier": outlier,
        "huge": x * 1e140,
        "tiny": x * 1e-140,
        "two values": two_values,
        "still": np.full((9, 3), 7.0),
        "one frame": x[:1],
        "two frames": x[:2],
        "three frames": x[:3],
        "offset": x + 1e9,
        "integers": np.round(x),
        "binary": (x > 0).astype(float),
        "wide": rng.normal(size=(30, 200)),
    }
    for name, case in cases.items():
        fit = fit_sequence(case, FitOptions(template=Gaussian(covariance_type)))
        check_valid(fit, case.shape[1])
        spread = np.ptp(case, axis=0).max()
        assert fit.model.states[1].max() <= max(spread**2, 1e-300), name
        assert fit.n_states == min(3, len(np.unique(case, axis=0))), name


def test_sequences_of_one_frame_are_points():
    fit = fit_sequence(np.array([[1.0, 2.0]]), FitOptions(3, Gaussian("full")))
    assert_array_equal(fit.model.states[0], [[1, 2]])
    assert_array_equal(fit.model.states[1], 0)
    assert_array_equal(fit.weights, [1])


def test_empty_states_get_weight_zero_and_are_never_entered(rng):
    x = draw(rng, n_components=2, gap=5.0)[0]
    options = FitOptions(3)
    pooled = fit_pooled([x], options)
    pooled.model.states[0][1] = 1e6
    fit = fit_sequence(x, options, pooled)
    assert fit.weights[1] == 0
    assert_array_equal(fit.model.transmat[[0, 2], 1], 0)
    assert fit.model.startprob[1] == 0
    assert_allclose(fit.model.transmat.sum(axis=1), 1)
    assert fit.model.states[1].max() < 10 * x.var(axis=0).max()


def test_uniform_weights_leave_empty_states_at_zero():
    fractions = [np.array([0.7, 0.0, 0.3]), np.array([0.0, 1.0])]
    uniform = state_weights(fractions, "uniform")
    assert_array_equal(uniform[0], [0.5, 0, 0.5])
    assert_array_equal(uniform[1], [0, 1])
    assert state_weights(fractions, "occupancy") is fractions
    assert state_weights(fractions, "stationary") is None


def test_missing_channels(rng):
    x = draw(rng)[0]
    gap = np.insert(x, 1, np.nan, axis=1)
    for covariance_type in COVARIANCE_TYPES:
        options = FitOptions(template=Gaussian(covariance_type))
        fit, plain = fit_sequence(gap, options), fit_sequence(x, options)
        assert_array_equal(fit.observed, [True, False, True, True])
        assert_array_equal(fit.model.states[0][:, 1], 0)
        assert_array_equal(fit.model.states[1][:, 1], 0)
        assert_array_equal(
            np.delete(fit.model.states[0], 1, axis=1), plain.model.states[0]
        )
    batch = batch_of([fit], mask_missing=True)
    assert_array_equal(batch.observed, [[True, False, True, True]])
    assert batch_of([fit]).observed is None


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
def test_scattered_missing_values(rng, covariance_type):
    x, _, means, _ = draw(rng, 3000, gap=6.0)
    holes = x.copy()
    holes[rng.random(x.shape) < 0.3] = np.nan
    holes[100:103] = np.nan
    options = FitOptions(template=Gaussian(covariance_type), n_init=4)
    fit = fit_sequence(holes, options)
    match = [np.abs(fit.model.states[0] - m).sum(axis=1).argmin() for m in means]
    assert_allclose(fit.model.states[0][match], means, atol=0.2)
    assert_allclose(log_likelihood(batch_of([fit]), [holes]), fit.log_likelihood)
    _, data, start = problem(holes, options)
    history = objectives(options, data, start, start, 40)
    assert np.diff(history).min() > -1e-9 * abs(history[-1])


def test_pooled_model_meets_channels_it_has_not_seen(rng):
    X = draws(rng, 4)
    train = [np.insert(x, 1, 2.0, axis=1) for x in X]
    new = np.insert(draw(rng)[0], 1, rng.normal(size=200), axis=1)
    for covariance_type in COVARIANCE_TYPES:
        options = FitOptions(3, Gaussian(covariance_type), relevance=4.0)
        pooled = fit_pooled(train, options)
        adapted = fit_sequence(new, options, pooled)
        free = fit_sequence(new, FitOptions(3, Gaussian(covariance_type)), pooled)
        check_valid(adapted, 4)
        check_valid(free, 4)
        wanted = (4 * 2.0 + new[:, 1].sum()) / 204
        assert_allclose(adapted.model.states[0][:, 1], wanted)


def test_long_and_wide_sequences_do_not_underflow(rng):
    long = draw(rng, 100_000, n_features=2)[0]
    wide = draw(rng, 150, n_features=200, gap=2.0)[0]
    for x in (long, wide):
        fit = fit_sequence(x, FitOptions(3, max_iter=10))
        check_valid(fit, x.shape[1])
        assert (fit.weights > 0.05).all()


def motions():
    """Return recordings of sensors, of which some stand still."""
    if not (data_home() / "cmu_mocap329_30fps.npz").exists():
        pytest.skip("needs cmu_mocap329_30fps.npz in the folder named by SKAWHMM_DATA")
    X = load_npz("cmu_mocap329_30fps").data
    return [np.ascontiguousarray(x[:, 20:40]) for x in X]


def small_motions():
    """Return what `motions` does, but generated: pieces of joints that stand still."""
    rng = np.random.default_rng(0)
    X = []
    for n in range(30):
        times = np.arange(rng.integers(40, 160))[:, None]
        speeds = rng.uniform(0.05, 0.3, size=8)
        x = 30 * np.sin(speeds * times + rng.uniform(0, 6, size=8))
        x += rng.normal(size=x.shape)
        x[:, n % 8] = 12.5
        X.append(x)
    return X


@pytest.mark.parametrize(
    ("load", "covariance_type"),
    [
        (lambda: load_japanese_vowels().data, "diag"),
        (lambda: load_japanese_vowels().data, "full"),
        (lambda: load_spoken_digits().data, "diag"),
        (small_motions, "diag"),
        (small_motions, "full"),
        (motions, "diag"),
        (motions, "full"),
    ],
)
def test_real_data(load, covariance_type):
    X = load()[::5]
    fits = fit_models(X, FitOptions(3, Gaussian(covariance_type)))
    for x, fit in zip(X, fits, strict=True):
        check_valid(fit, x.shape[1])
        still = np.ptp(x, axis=0) == 0
        if covariance_type == "diag":
            assert_array_equal(fit.model.states[1][:, still], 0)
            assert (fit.model.states[1][:, ~still] > 0).all()


def test_rule_fields_are_in_order():
    options = FitOptions(template=Gaussian("tied"))
    assert options.rule == Rule(1, 0.0, 100, 1e-5)
    assert options.template.pooled_covars
    assert options.template.floor == 1e-4
