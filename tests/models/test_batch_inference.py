"""Scoring, decoding and sampling by the models of a batch."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import KL, HMMBatch, HMMTransformer, Trials, pairwise_hmm_distances


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_score_and_decode_agree_with_hmmlearn(make_batch, covariance_type):
    models = make_batch(n_models=3, covariance_type=covariance_type)
    sequences, _ = models.sample(40, random_state=0)
    scores = models.score(sequences)
    paths, path_scores = models.decode(sequences)
    for m in range(3):
        judge = models.to_hmmlearn(m)
        for n in range(3):
            assert_allclose(scores[n, m], judge.score(sequences[n]))
        expected, path = judge.decode(sequences[m])
        assert_allclose(path_scores[m], expected)
        assert_array_equal(paths[m], path)
        assert_allclose(
            models.predict_proba(sequences)[m],
            judge.predict_proba(sequences[m]),
            atol=1e-300,
        )


def test_samples_have_the_moments_of_the_model(make_batch):
    models = make_batch(n_models=1, n_components=2, covariance_type="full")
    (sequence,), (path,) = models.sample(40_000, random_state=0)
    for k in range(2):
        assert_allclose(np.mean(path == k), models.weights[0, k], atol=0.03)
        frames = sequence[path == k]
        assert_allclose(frames.mean(axis=0), models.means[0, k], atol=0.1)
        assert_allclose(np.cov(frames.T), models.covars[0, k], rtol=0.1, atol=0.1)


def test_a_sample_depends_on_the_model_and_the_seed_alone(make_batch):
    models = make_batch(n_models=4)
    together, _ = models.sample(20, random_state=1)
    alone, _ = models[2].sample(20, random_state=1)
    assert_array_equal(together[2], alone[0])
    other, _ = models[2].sample(20, random_state=2)
    assert not np.array_equal(alone[0], other[0])


def test_one_goes_with_all(make_batch):
    models = make_batch(n_models=3)
    sequences, _ = models.sample(10, random_state=0)
    assert len(models[0].decode(sequences)[0]) == 3
    assert len(models.decode(sequences[:1])[0]) == 3


def test_errors(make_batch):
    models = make_batch(n_models=3)
    sequences, _ = models.sample(10, random_state=0)
    with pytest.raises(ValueError, match=r"per model .3 models.*got 2"):
        models.decode(sequences[:2])
    with pytest.raises(ValueError, match="features"):
        models.score([np.zeros((5, 3))])
    with pytest.raises(
        ValueError, match="n_timesteps must be an integer of at least 1"
    ):
        models.sample(0)


def test_transformer_keeps_sequences_on_request(make_sequences):
    X, _ = make_sequences(n_sequences=4)
    hmm = HMMTransformer(2, random_state=0)
    plain = hmm.fit_transform(X)
    assert plain.sequences is None
    with pytest.raises(ValueError, match=r"keep_sequences=True"):
        pairwise_hmm_distances(plain, metric=KL(method="data"))
    models = hmm.set_params(keep_sequences=True).fit_transform(X)
    for kept, x in zip(models.sequences, X, strict=True):
        assert_array_equal(kept, x)
    distances = pairwise_hmm_distances(models, metric=KL(method="data"))
    scores = models.score(X)
    rate = (scores[0, 0] - scores[0, 1]) / len(X[0])
    rate += (scores[1, 1] - scores[1, 0]) / len(X[1])
    # Likelihoods start from the weights there, from the first state here.
    assert_allclose(distances[0, 1], rate / 2, rtol=0.2)


def test_full_models_need_complete_sequences_for_their_divergence(make_batch):
    gaps = [np.array([[1.0, np.nan], [0.0, 1.0]])] * 2
    models = make_batch(n_models=2, covariance_type="full", sequences=gaps)
    with pytest.raises(
        ValueError, match="full covariances needs sequences without NaN"
    ):
        pairwise_hmm_distances(models, metric=KL(method="data"))


def test_transformer_ignores_set_output():
    hmm = HMMTransformer()
    assert hmm.set_output(transform="pandas") is hmm


def test_pooled_model_has_the_weights_asked_for(make_sequences):
    X, _ = make_sequences(n_sequences=6)
    options = {"prior": "pooled", "topology": "linear", "random_state": 0}
    occupied = HMMTransformer(2, **options).fit(X).pooled_model_
    settled = HMMTransformer(2, weights="stationary", **options).fit(X).pooled_model_
    # A linear chain ends in its last state for good.
    assert_allclose(settled.weights, [[0, 1]], atol=1e-12)
    assert occupied.weights[0, 0] > 0.05
    assert_allclose(occupied.weights.sum(), 1)


def test_trials_are_scored_and_decoded_recording_by_recording(make_batch, rng):
    batch = make_batch(n_models=3)
    X = [
        Trials([rng.normal(size=(n, 2)) for n in (4, 1, 7)]),
        rng.normal(size=(5, 2)),
        Trials([rng.normal(size=(6, 2))]),
    ]
    flat = [*X[0], X[1], *X[2]]
    parts = [[0, 1, 2], [3], [4]]
    each = batch.score(flat)
    assert_allclose(batch.score(X), [each[rows].sum(axis=0) for rows in parts])
    assert_array_equal(batch.score(X, n_jobs=2), batch.score(X))
    paths, scores = batch.decode(X)
    posts = batch.predict_proba(X)
    assert [type(path) for path in paths] == [list, np.ndarray, list]
    for i, rows in enumerate(parts):
        own_paths, own_scores = batch[i].decode([flat[n] for n in rows])
        own_posts = batch[i].predict_proba([flat[n] for n in rows])
        assert_allclose(scores[i], own_scores.sum())
        mine = [paths[i]] if i == 1 else paths[i]
        post = [posts[i]] if i == 1 else posts[i]
        for n in range(len(rows)):
            assert_array_equal(mine[n], own_paths[n])
            assert_array_equal(post[n], own_posts[n])


def test_a_single_unit_is_decoded_by_every_model(make_batch, rng):
    batch = make_batch(n_models=3)
    x = Trials([rng.normal(size=(n, 2)) for n in (4, 3)])
    paths, scores = batch.decode([x])
    assert [len(path) for path in paths] == [2, 2, 2]
    for i in range(3):
        own, score = batch[i].decode([x])
        assert_array_equal(paths[i][1], own[0][1])
        assert scores[i] == score[0]
    assert [len(post) for post in batch[:1].predict_proba([x, x])] == [2, 2]


def test_sampled_trials(make_batch):
    batch = make_batch(n_models=2)
    X, paths = batch.sample(5, n_trials=3, random_state=0)
    more, _ = batch.sample(5, n_trials=4, random_state=0)
    plain, _ = batch.sample(5, random_state=0)
    for x, path, longer, first in zip(X, paths, more, plain, strict=True):
        assert isinstance(x, Trials)
        assert [len(trial) for trial in x] == [len(p) for p in path] == [5, 5, 5]
        assert_array_equal(next(iter(x)), first)
        assert_array_equal([*x], [*longer][:3])
        assert len({trial.tobytes() for trial in x}) == 3
    with pytest.raises(ValueError, match="n_trials"):
        batch.sample(5, n_trials=0)


def test_models_carry_trials(make_sequences):
    X, _ = make_sequences(4)
    X = [Trials([x[:9], x[9:]]) for x in X]
    hmm = HMMTransformer(2, random_state=0, keep_sequences=True)
    models = hmm.fit_transform(X)
    with pytest.raises(ValueError, match="read-only"):
        next(iter(models.sequences[0]))[0, 0] = 1
    chosen = HMMBatch.concatenate([models[3], models[:1]])
    assert_array_equal([*chosen.sequences[0]][1], [*X[3]][1])
    again = HMMBatch(
        models.transmats, models.means, models.covars, sequences=models.sequences
    )
    assert [len(x) for x in again.sequences] == [2] * 4
    wrong = [Trials([np.ones((2, 3))]), *X[1:]]
    with pytest.raises(ValueError, match=r"trial 0 of sequences\[0\]"):
        HMMBatch(models.transmats, models.means, models.covars, sequences=wrong)
