import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMBatch, HMMTransformer, Trials
from skawhmm.emissions import (
    Bernoulli,
    ByChannel,
    Gamma,
    Gaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
    VonMises,
)

BLOCKS = [
    ("level", Gaussian("full"), [0, 1]),
    ("step", Gamma(), [2]),
    ("turn", VonMises(), [3]),
]
FAMILIES = {
    "poisson": Poisson(),
    "categorical": "categorical",
    "gamma": Gamma(),
    "vonmises": VonMises(),
    "bernoulli": Bernoulli(),
    "negative_binomial": NegativeBinomial(),
    "student": StudentT(),
    "by_channel": ByChannel(BLOCKS),
}
KINDS = ["diag", "full", *FAMILIES]


def recording(kind, rng, n_timesteps=600, n_states=2):
    """Frames of a process whose states change every ten frames."""
    states = np.repeat(rng.integers(0, n_states, n_timesteps // 10), 10)
    if kind == "categorical":
        probs = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
        return [rng.choice([*"abc"], p=probs[k]) for k in states]
    z = np.repeat(states[:, None], 2, axis=1)
    draws = {
        "diag": lambda: rng.normal(4.0 * z, 1 + 0.5 * z),
        "poisson": lambda: rng.poisson(1 + 7 * z),
        "gamma": lambda: rng.gamma(2 + 6 * z, 1 + 2.0 * z),
        "vonmises": lambda: rng.vonmises(-1.5 + 3 * z, 2 + z),
        "bernoulli": lambda: 1.0 * (rng.random(z.shape) < 0.1 + 0.8 * z),
        "negative_binomial": lambda: rng.negative_binomial(3 + 2 * z, 0.6 - 0.45 * z),
        "student": lambda: 5.0 * z + rng.standard_t(4, z.shape) * (1 + 0.5 * z),
    }
    if kind == "by_channel":
        parts = (draws[name]() for name in ("diag", "gamma", "vonmises"))
        return np.concatenate([*parts], axis=1)[:, [0, 1, 2, 4]]
    return draws["diag" if kind == "full" else kind]()


def transformer(kind, n_states=2, **params):
    options = {"random_state": 0, "tol": 1e-9, "max_iter": 500, **params}
    if kind in FAMILIES:
        return HMMTransformer(n_states, emission=FAMILIES[kind], n_init=2, **options)
    return HMMTransformer(n_states, kind, **options)


def truth():
    chain = [[0.9, 0.1], [0.2, 0.8]]
    return HMMBatch([chain], [[[0.0, 1.0], [4.0, -1.0]]], np.ones((1, 2, 2)))


@pytest.mark.parametrize("kind", KINDS)
def test_updates_approach_the_fit_to_all_frames(kind, tmp_path):
    rng = np.random.default_rng(5)
    parts = Trials([recording(kind, rng) for _ in range(4)])
    first, *others = parts
    whole = transformer(kind).fit_transform([parts])
    alone = models = transformer(kind).fit_transform([first])
    for x in others:
        # All that an update needs is in a file.
        models.save(tmp_path / "models.npz")
        models = HMMBatch.load(tmp_path / "models.npz").updated([x])
    best = whole.score([parts])[0, 0]
    gaps = [best - batch.score([parts])[0, 0] for batch in (alone, models)]
    # The symbols overlap, so the states of older frames were not known well.
    assert gaps[0] > 3
    assert -1e-6 < gaps[1] < (0.1 if kind == "categorical" else 0.01) * gaps[0]
    assert_allclose(models.counts.states.sum(), 2400)
    assert_allclose(models.counts.transitions.sum(), 2396)
    assert_array_equal(models.info["n_timesteps"], [2400])
    assert_array_equal(models.info["n_trials"], [4])


@pytest.mark.parametrize("kind", KINDS)
def test_one_state_is_the_fit_to_all_frames(kind):
    # With one state nothing is hidden. Counts and parameters are then sufficient for
    # exponential families; shapes of counts and degrees of freedom are close.
    rng = np.random.default_rng(6)
    x, y = (recording(kind, rng, n_states=1) for _ in range(2))
    models = transformer(kind, 1).fit_transform([x]).updated([y])
    whole = transformer(kind, 1).fit_transform([Trials([x, y])])
    rtol = 0.02 if kind in {"negative_binomial", "student"} else 1e-7
    for name, wanted in whole.emission.parameters.items():
        found = models.emission.parameters[name]
        assert_allclose(found, wanted, rtol=rtol, atol=rtol, err_msg=name)
    gap = whole.score([x])[0, 0] + whole.score([y])[0, 0]
    gap -= models.score([x])[0, 0] + models.score([y])[0, 0]
    assert abs(gap) < 0.01


def test_new_recordings_may_begin_with_another_state():
    # After one recording, the start probability of the other state is 0.
    rng = np.random.default_rng(0)
    low, high = (rng.normal(level, 1, (100, 1)) for level in (0.0, 9.0))
    models = transformer("diag").fit_transform([np.concatenate([low, high, low])])
    assert_allclose(np.sort(models.startprobs[0]), [0, 1], atol=1e-12)
    found = models.updated([np.concatenate([high, low])])
    assert_allclose(found.startprobs, [[0.5, 0.5]], atol=1e-9)


def test_left_to_right_chains_stay_so():
    rng = np.random.default_rng(0)
    levels = np.repeat([0.0, 4.0, 8.0], 40)
    x, y = (rng.normal(levels, 1)[:, None] for _ in range(2))
    models = transformer("diag", 3, topology="left-to-right").fit_transform([x])
    found = models.updated([y])
    assert_array_equal(found.startprobs, models.startprobs)
    assert_array_equal(np.tril(found.transmats[0], -1), 0)
    # New frames that begin in the middle do not change the order either.
    assert_array_equal(models.updated([y[50:]]).startprobs, models.startprobs)


def test_missing_values_count_by_channel():
    # One state; a channel that was observed in half of the new frames.
    x, y = np.array([[0.0, 0.0], [2.0, 2.0]]), np.array([[4.0, 4.0], [4.0, np.nan]])
    found = HMMTransformer(1).fit_transform([x]).updated([y])
    assert_allclose(found.means[0, 0], [2.5, 2.0])
    assert_allclose(found.covars[0, 0], [np.var([0, 2, 4, 4]), np.var([0, 2, 4])])


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
    x, y = (truth().sample(300, random_state=s)[0][0] for s in (0, 1))
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
    X = [truth().sample(300, random_state=s)[0][0] for s in range(3)]
    models = HMMTransformer(2, random_state=0).fit_transform(X)
    models.save(tmp_path / "models.npz")
    loaded = HMMBatch.load(tmp_path / "models.npz")
    assert loaded.updated(X[::-1]) == models.updated(X[::-1])
    # The result for one model does not depend on the others.
    one = models[1:2].updated([X[1]])
    assert_array_equal(one.means[0], models.updated(X[::-1]).means[1])


def test_wrong_updates():
    model = truth()
    x = model.sample(50, random_state=0)[0][0]
    with pytest.raises(ValueError, match="must have counts"):
        model.updated([x])
    models = HMMTransformer(2, random_state=0).fit_transform([x, x[::-1]])
    with pytest.raises(ValueError, match=r"one sequence per model \(2 models\), got 1"):
        models.updated([x])
    with pytest.raises(ValueError, match=r"forgetting must be"):
        models.updated([x, x], forgetting=1.0)
