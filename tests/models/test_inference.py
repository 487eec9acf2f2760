from itertools import pairwise

import numpy as np
import pytest
from helpers import all_paths, log_densities, make_models
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from skawhmm.models._batch import HMMBatch
from skawhmm.models._inference import (
    best_paths,
    log_likelihood,
    posteriors,
    sample_sequences,
)
from skawhmm.numerics._entry_points import fill_exp
from skawhmm.numerics._forward_backward import forward_backward


def check_against_paths(logs, startprob, transmat):
    paths, scores = all_paths(logs, startprob, transmat)
    total = logsumexp(scores)
    fractions = np.exp(scores - total)
    post, moves = np.empty(logs.shape), np.zeros(transmat.shape)
    value = forward_backward(logs, startprob, transmat, post, moves)
    assert_allclose(value, total, rtol=1e-13)
    wanted = np.array([fractions @ (paths == k) for k in range(len(logs))])
    assert_allclose(post, wanted, atol=1e-11)
    wanted_moves = np.zeros(transmat.shape)
    for s, t in pairwise(range(logs.shape[1])):
        np.add.at(wanted_moves, (paths[:, s], paths[:, t]), fractions)
    assert_allclose(moves, wanted_moves, atol=1e-10)


@pytest.mark.parametrize("scale", [1, 30, 300, 3000])
@pytest.mark.parametrize("topology", ["ergodic", "left-to-right", "cycle"])
def test_forward_backward_is_the_sum_over_all_paths(rng, scale, topology):
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
        check_against_paths(logs, startprob, transmat)


def test_impossible_frames_give_minus_infinity_and_no_nan(rng):
    logs = rng.normal(size=(2, 5))
    logs[:, 2] = -np.inf
    post, moves = np.empty((2, 5)), np.zeros((2, 2))
    for transmat in (np.full((2, 2), 0.5), np.eye(2)):
        value = forward_backward(logs, np.array([0.5, 0.5]), transmat, post, moves)
        assert value == -np.inf
        assert_allclose(post.sum(axis=0), 1)


def test_long_sequences_do_not_underflow(rng):
    logs = rng.normal(size=(2, 100_000)) * 5 - 800
    transmat, startprob = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0.4, 0.6])
    post, moves = np.empty(logs.shape), np.zeros((2, 2))
    value = forward_backward(logs, startprob, transmat, post, moves)
    alpha = np.log(startprob) + logs[:, 0]
    for column in logs.T[1:]:
        alpha = np.logaddexp(*(alpha[:, None] + np.log(transmat))) + column
    assert_allclose(value, np.logaddexp(*alpha), rtol=1e-12)
    assert_allclose(post.sum(axis=0), 1, atol=1e-9)
    assert_allclose(moves.sum(), 99_999, rtol=1e-9)


def test_exponentials():
    gaps = np.concatenate([[0, -1e-300, -699, -701, -np.inf], -np.geomspace(1e-9, 690)])
    out = np.empty(len(gaps))
    fill_exp(gaps, out)
    assert_allclose(out, np.where(gaps > -700, np.exp(gaps), 0), rtol=1e-15, atol=0)


@pytest.mark.parametrize("full", [True, False])
def test_inference_on_batches_is_the_sum_over_all_paths(rng, full):
    models = make_models(rng, full=full)
    X = [rng.normal(size=(n, 2)) for n in (4, 1, 5)]
    scores = log_likelihood(models, X)
    paths, path_scores = best_paths(models, X)
    post = posteriors(models, X)
    for i, model in enumerate(models[[n]] for n in range(3)):
        for j, x in enumerate(X):
            logs = log_densities(model, x)
            chain = model.startprobs[0], model.transmats[0]
            routes, values = all_paths(logs, *chain)
            assert_allclose(scores[j, i], logsumexp(values), rtol=1e-12)
            if i == j:
                assert_array_equal(paths[i], routes[values.argmax()])
                assert_allclose(path_scores[i], values.max())
                fractions = np.exp(values - logsumexp(values))
                wanted = np.array([fractions @ (routes == k) for k in range(3)]).T
                assert_allclose(post[i], wanted, atol=1e-12)


def test_scores_depend_on_nothing_else(rng):
    models = make_models(rng, n_models=4)
    X = [rng.normal(size=(n, 2)) for n in (9, 30, 4, 300, 8)]
    scores = log_likelihood(models, X)
    assert_array_equal(log_likelihood(models, X, n_jobs=2), scores)
    assert_array_equal(log_likelihood(models[[2, 0]], X[::-1]), scores[::-1, [2, 0]])


def test_padding_states_change_nothing(rng):
    small, large = make_models(rng, 2, 2), make_models(rng, 1, 4)
    joint = HMMBatch.concatenate([small, large])
    X = [rng.normal(size=(20, 2)) for _ in range(3)]
    assert_array_equal(log_likelihood(joint, X)[:, :2], log_likelihood(small, X))
    assert posteriors(joint, X)[0].shape == (20, 2)


def test_a_single_model_serves_every_sequence(rng):
    models = make_models(rng, 1)
    X = [rng.normal(size=(n, 2)) for n in (3, 5)]
    assert [p.shape for p in posteriors(models, X)] == [(3, 3), (5, 3)]
    assert [len(p) for p in best_paths(models, X)[0]] == [3, 5]


@pytest.mark.parametrize("full", [True, False])
def test_dead_channel_is_left_out_on_its_support(rng, full):
    models = make_models(rng, 2, full=full)
    means = np.concatenate([models.means, np.full((2, 3, 1), 0.3)], axis=2)
    shape = (2, 3, 3, 3) if full else (2, 3, 3)
    covars = np.zeros(shape)
    covars[(..., *(slice(2),) * (len(shape) - 2))] = models.covars
    flat = HMMBatch(models.transmats, means, covars, startprobs=models.startprobs)
    x = rng.normal(size=(10, 2))
    on = np.column_stack([x, np.full(10, 0.3)])
    off = on.copy()
    off[4, 2] = 0.31
    scores = log_likelihood(flat, [on, off])
    assert_allclose(scores[0], log_likelihood(models, [x])[0])
    assert_array_equal(scores[1], -np.inf)
    assert np.isfinite(posteriors(flat, [on, off])[1]).all()


def test_rotated_flat_state_has_the_density_of_its_plane(rng):
    basis = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    plane = basis[:, :2]
    covar = plane @ np.diag([2.0, 0.5]) @ plane.T
    centre = np.array([5.0, -3.0, 1e3])
    model = HMMBatch(np.ones((1, 1, 1)), centre[None, None], covar[None, None])
    z = rng.normal(size=(7, 2))
    wanted = multivariate_normal([0, 0], np.diag([2.0, 0.5])).logpdf(z).sum()
    on = centre + z @ plane.T
    scores = log_likelihood(model, [on, on + 0.01 * basis[:, 2]])
    assert_allclose(scores[0, 0], wanted, rtol=1e-9)
    assert scores[1, 0] == -np.inf


def test_the_flattest_support_wins():
    # State 0 is a point at the origin, state 1 a standard Gaussian.
    model = HMMBatch(
        np.full((1, 2, 2), 0.5), np.zeros((1, 2, 1)), np.array([[[0.0], [1.0]]])
    )
    post = posteriors(model, [np.array([[0.0], [0.5], [0.0]])])[0]
    assert_allclose(post, [[1, 0], [0, 1], [1, 0]])


def test_missing_values_are_left_out(rng):
    models = make_models(rng, 2, full=False)
    x = rng.normal(size=(6, 2))
    x[2, 1] = np.nan
    logs = np.empty((3, 6))
    for k in range(3):
        terms = -0.5 * (
            np.log(2 * np.pi * models.covars[0, k])
            + (x - models.means[0, k]) ** 2 / models.covars[0, k]
        )
        logs[k] = np.nansum(terms, axis=1)
    _, scores = all_paths(logs, models.startprobs[0], models.transmats[0])
    assert_allclose(log_likelihood(models, [x])[0, 0], logsumexp(scores))


def test_unobserved_channel_does_not_count(rng):
    models = make_models(rng, 1, n_features=1, full=False)
    means = np.concatenate([models.means, np.zeros((1, 3, 1))], axis=2)
    covars = np.concatenate([models.covars, np.zeros((1, 3, 1))], axis=2)
    x = rng.normal(size=(8, 2))
    for stored in (covars, covars[..., None] * np.eye(2)):
        masked = HMMBatch(
            models.transmats,
            means,
            stored,
            startprobs=models.startprobs,
            observed=[[True, False]],
        )
        wanted = log_likelihood(models, [x[:, :1]])
        assert_allclose(log_likelihood(masked, [x]), wanted)


@pytest.mark.parametrize("full", [True, False])
def test_samples_follow_their_model(rng, full):
    models = make_models(rng, 2, 2, full=full)
    sequences, paths = sample_sequences(models, 40_000, [(1,), (2,)])
    for i, (x, path) in enumerate(zip(sequences, paths, strict=True)):
        moves = np.zeros((2, 2))
        np.add.at(moves, (path[:-1], path[1:]), 1)
        moves /= moves.sum(axis=1, keepdims=True)
        assert_allclose(moves, models.transmats[i], atol=0.03)
        for k in range(2):
            covar = models.covars[i, k] if full else np.diag(models.covars[i, k])
            assert_allclose(x[path == k].mean(axis=0), models.means[i, k], atol=0.1)
            assert_allclose(np.cov(x[path == k].T), covar, atol=0.12)


def test_samples_belong_to_their_seed(rng):
    models = make_models(rng, 3)
    first, _ = sample_sequences(models, [5, 6, 7], [(1,), (2,), (3,)])
    again, _ = sample_sequences(models[[2, 0]], [7, 5], [(3,), (1,)])
    assert_array_equal(again[0], first[2])
    assert_array_equal(again[1], first[0])


@pytest.mark.parametrize("n_components", [1, 2, 3, 4, 6])
def test_expected_moves_agree_with_the_state_probabilities(rng, n_components):
    """Also on sequences so long and rough that weights are scaled many times."""
    for n_timesteps in (2, 40, 3000):
        logs = 20 * rng.normal(size=(n_components, n_timesteps))
        transmat = rng.dirichlet(np.ones(n_components), n_components)
        startprob = np.full(n_components, 1 / n_components)
        post, moves = np.empty(logs.shape), np.zeros(transmat.shape)
        forward_backward(logs, startprob, transmat, post, moves)
        assert_allclose(post.sum(axis=0), 1)
        assert_allclose(moves.sum(axis=1), post[:, :-1].sum(axis=1), atol=1e-9)
        assert_allclose(moves.sum(axis=0), post[:, 1:].sum(axis=1), atol=1e-9)
