import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMBatch, HMMTransformer, Trials

CHAIN = [[0.9, 0.1], [0.2, 0.8]]


def truth(kind):
    if kind == "poisson":
        return HMMBatch.from_rates([CHAIN], [[[1.0, 4.0], [6.0, 2.0]]])
    if kind == "categorical":
        probs = [[[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]]
        return HMMBatch.from_emissionprobs([CHAIN], probs, symbols="abc")
    covars = np.ones((1, 2, 2))
    if kind == "full":
        covars = np.array([[[[1.0, 0.5], [0.5, 1.0]], [[1.0, -0.3], [-0.3, 0.5]]]])
    return HMMBatch([CHAIN], [[[0.0, 1.0], [4.0, -1.0]]], covars)


def transformer(kind):
    options = {"random_state": 0, "tol": 1e-8, "max_iter": 300}
    if kind in {"poisson", "categorical"}:
        return HMMTransformer(2, emission=kind, n_init=3, **options)
    return HMMTransformer(2, kind, **options)


@pytest.mark.parametrize("kind", ["diag", "full", "poisson", "categorical"])
def test_updates_approach_the_fit_to_all_frames(kind):
    parts = truth(kind).sample(1200, n_trials=4, random_state=1)[0][0]
    first, *others = parts
    whole = transformer(kind).fit_transform([parts])
    alone = models = transformer(kind).fit_transform([first])
    for x in others:
        models = models.updated([x])
    best = whole.score([parts])[0, 0]
    gaps = [best - batch.score([parts])[0, 0] for batch in (alone, models)]
    # The symbols overlap, so the states of older frames were not known well.
    assert -1e-6 < gaps[1] < (0.3 if kind == "categorical" else 0.002) * gaps[0]
    assert_allclose(models.counts.states.sum(), 4800)
    assert_allclose(models.counts.transitions.sum(), 4796)
    assert_array_equal(models.info["n_timesteps"], [4800])
    assert_array_equal(models.info["n_trials"], [4])


def test_an_m_step_on_both_sets_of_frames_worked_by_hand():
    # One state: the mean and variance of all frames, whatever the order.
    old, new = np.array([[0.0], [2.0]]), np.array([[4.0], [4.0], [10.0]])
    models = HMMTransformer(1).fit_transform([old]).updated([new])
    every = np.concatenate([old, new])
    assert_allclose(models.means[0, 0], every.mean(axis=0))
    assert_allclose(models.covars[0, 0], every.var(axis=0))
    half = HMMTransformer(1).fit_transform([old]).updated([new], forgetting=0.5)
    weights = [0.5, 0.5, 1, 1, 1]
    mean = np.average(every, axis=0, weights=weights)
    assert_allclose(half.means[0, 0], mean)
    variance = np.average((every - mean) ** 2, axis=0, weights=weights)
    assert_allclose(half.covars[0, 0], variance)
    assert_allclose(half.counts.states, [[4.0]])


def test_missing_values_and_trials():
    rng = np.random.default_rng(0)
    x, y = (truth("diag").sample(300, random_state=s)[0][0] for s in (0, 1))
    models = HMMTransformer(2, random_state=0).fit_transform([x])
    y[rng.random(y.shape) < 0.2] = np.nan
    found = models.updated([Trials([y[:100], y[100:]])])
    assert np.isfinite(found.means).all()
    assert_array_equal(found.info["n_trials"], [3])
    assert_allclose(found.counts.transitions.sum(), 299 + 99 + 199)
    full = HMMTransformer(2, "full", random_state=0).fit_transform([x])
    with pytest.raises(ValueError, match=r"NaN|missing"):
        full.updated([y])


def test_files_hold_all_that_an_update_needs(tmp_path):
    X = [truth("diag").sample(300, random_state=s)[0][0] for s in range(3)]
    models = HMMTransformer(2, random_state=0).fit_transform(X)
    models.save(tmp_path / "models.npz")
    loaded = HMMBatch.load(tmp_path / "models.npz")
    assert loaded.updated(X[::-1]) == models.updated(X[::-1])
    # The result for one model does not depend on the others.
    one = models[1:2].updated([X[1]])
    assert_array_equal(one.means[0], models.updated(X[::-1]).means[1])


def test_wrong_updates():
    model = truth("diag")
    x = model.sample(50, random_state=0)[0][0]
    with pytest.raises(ValueError, match="must have counts"):
        model.updated([x])
    models = HMMTransformer(2, random_state=0).fit_transform([x, x[::-1]])
    with pytest.raises(ValueError, match=r"one sequence per model \(2 models\), got 1"):
        models.updated([x])
    with pytest.raises(ValueError, match=r"forgetting must be"):
        models.updated([x, x], forgetting=1.0)
