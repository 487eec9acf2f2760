import numpy as np
import pytest
from hmmlearn.hmm import CategoricalHMM, PoissonHMM
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMBatch, HMMTransformer, Trials
from skawhmm.emissions import Categorical, Poisson
from skawhmm.emissions._model import Data, Model
from skawhmm.fitting._em import Rule, Steps, model_at, run_em, stacked

CHAIN = np.array([[0.9, 0.1, 0.0], [0.1, 0.7, 0.2], [0.0, 0.2, 0.8]])
PROBS = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.0, 0.1, 0.4, 0.5]])
RATES = np.array([[1.0, 8.0], [5.0, 5.0], [9.0, 0.5]])


def drawn(kind, n_timesteps, n_sequences=1, seed=0):
    make = HMMBatch.from_rates if kind == "poisson" else HMMBatch.from_emissionprobs
    states = RATES if kind == "poisson" else PROBS
    model = make([CHAIN], [states])
    return [
        model.sample(n_timesteps, random_state=seed + n)[0][0]
        for n in range(n_sequences)
    ]


def frames_of(x, kind):
    return x.astype(float) if kind == "poisson" else x[:, 0].astype(np.int64)


def random_start(rng, kind):
    states = rng.dirichlet(np.ones(4), 3)
    if kind == "poisson":
        states = rng.uniform(0.5, 10, (3, 2))
    return Model(rng.dirichlet(np.ones(3)), rng.dirichlet(3 * np.ones(3), 3), (states,))


def steps_of(kind, frames, offsets, prior=None, relevance=0.0):
    family = Poisson() if kind == "poisson" else Categorical(np.arange(4))
    data = Data(frames, None, offsets, np.array([0, len(offsets) - 1]))
    prior = None if prior is None else stacked([prior])
    return Steps(family, data, Rule(relevance=relevance), prior)


def history_of(steps, start, n_iter):
    """Objective at the start and after each step, and how EM ended."""
    runs = run_em(steps, stacked([start]), max_iter=0)
    values = [runs.objective[0]]
    for _ in range(n_iter):
        runs = run_em(steps, runs.model, max_iter=1, tol=-np.inf)
        values.append(runs.objective[0])
    return np.array(values), runs


@pytest.mark.parametrize("kind", ["categorical", "poisson"])
@pytest.mark.parametrize("n_iter", [1, 3, 20, 100])
def test_fit_is_hmmlearns_from_the_same_start(rng, kind, n_iter):
    X = drawn(kind, 200, 3)
    start = random_start(rng, kind)
    theirs = (PoissonHMM if kind == "poisson" else CategoricalHMM)(
        3, init_params="", n_iter=n_iter, tol=-np.inf
    )
    theirs.startprob_, theirs.transmat_ = start.startprob, start.transmat
    if kind == "poisson":
        theirs.lambdas_ = start.states[0]
    else:
        theirs.emissionprob_ = start.states[0]
    theirs.fit(np.concatenate(X), [200] * 3)
    frames = np.concatenate([frames_of(x, kind) for x in X])
    offsets = np.array([0, 200, 400, 600])
    steps = steps_of(kind, frames, offsets)
    runs = run_em(steps, stacked([start]), max_iter=n_iter, tol=-np.inf)
    ours = model_at(runs.model, 0)
    assert runs.n_iter[0] == n_iter
    history, _ = history_of(steps, start, n_iter)
    assert_allclose(history[:-1], theirs.monitor_.history, rtol=1e-9)
    expected = theirs.score(np.concatenate(X), [200] * 3)
    assert_allclose(runs.log_likelihood[0], expected, rtol=1e-9)
    assert_allclose(ours.transmat, theirs.transmat_, atol=1e-7)
    states = theirs.lambdas_ if kind == "poisson" else theirs.emissionprob_
    assert_allclose(ours.states[0], states, atol=1e-6)
    assert_allclose(runs.counts.sum(), len(frames))


@pytest.mark.parametrize("kind", ["categorical", "poisson"])
@given(st.integers(0, 10**6), st.sampled_from([0.0, 3.0]))
def test_objective_never_falls(kind, seed, relevance):
    rng = np.random.default_rng(seed)
    x = frames_of(drawn(kind, 40, seed=seed)[0], kind)
    start, prior = random_start(rng, kind), random_start(rng, kind)
    offsets = np.array([0, 15, 40])
    history, _ = history_of(steps_of(kind, x, offsets, prior, relevance), start, 20)
    assert (np.diff(history) >= -1e-9 * np.abs(history[:-1])).all()


@pytest.mark.parametrize("kind", ["categorical", "poisson"])
def test_a_long_sequence_shows_its_model(kind):
    X = drawn(kind, 20_000)
    models = HMMTransformer(3, emission=kind, n_init=3, random_state=0).fit_transform(X)
    states = models.rates if kind == "poisson" else models.emissionprobs
    truth = RATES if kind == "poisson" else PROBS
    order = [np.abs(states[0] - row).sum(axis=1).argmin() for row in truth]
    assert sorted(order) == [0, 1, 2]
    assert_allclose(states[0][order], truth, atol=0.15 if kind == "poisson" else 0.03)
    assert_allclose(models.transmats[0][order][:, order], CHAIN, atol=0.03)
    assert models.info["converged"][0]


@pytest.mark.parametrize("kind", ["categorical", "poisson"])
@pytest.mark.parametrize("prior", [None, "pooled"])
def test_a_fit_does_not_depend_on_other_sequences_or_jobs(kind, prior):
    X = drawn(kind, 50, 9)
    hmm = HMMTransformer(3, emission=kind, prior=prior, random_state=0).fit(X)
    models = hmm.transform(X)
    order = [7, 2, 2, 0]
    assert hmm.transform([X[i] for i in order]) == models[order]
    assert hmm.set_params(n_jobs=2).transform(X) == models
    assert_allclose(models.info["log_likelihood"], models.score(X).diagonal())


@pytest.mark.parametrize("kind", ["categorical", "poisson"])
@pytest.mark.parametrize("n_components", [3, "bic"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_units_of_a_block_do_not_change_each_other(kind, n_components):
    X = [drawn(kind, n, seed=n)[0] for n in (40, 7, 300, 3)]
    X += [np.full_like(X[0], X[0][0]), Trials(drawn(kind, 30, 3))]
    emission = Categorical(range(4)) if kind == "categorical" else "poisson"
    hmm = HMMTransformer(n_components, emission=emission, n_init=2, random_state=0)
    together = hmm.fit_transform(X)
    for i, x in enumerate(X):
        alone = hmm.fit_transform([x])
        size = int(alone.n_components[0])
        assert together.n_components[i] == size
        for name in ("transmats", "startprobs", "weights"):
            found = getattr(together, name)[i]
            found = found[(slice(size),) * found.ndim]
            assert_array_equal(found, getattr(alone, name)[0])
        for name in ("log_likelihood", "n_iter", "converged"):
            assert together.info[name][i] == alone.info[name][0]


@pytest.mark.parametrize("kind", ["categorical", "poisson"])
def test_weights_are_fractions_of_frames(kind):
    X = drawn(kind, 80, 2)
    models = HMMTransformer(2, emission=kind, random_state=0).fit_transform(X)
    fractions = [post.mean(axis=0) for post in models.predict_proba(X)]
    assert_allclose(models.weights, fractions, atol=1e-9)
    still = HMMTransformer(2, emission=kind, weights="stationary", random_state=0)
    weights = still.fit_transform(X).weights
    assert_allclose(np.einsum("ni,nij->nj", weights, models.transmats), weights)


@pytest.mark.parametrize("kind", ["categorical", "poisson"])
def test_a_pooled_model_keeps_short_sequences_near(kind):
    X = drawn(kind, 100, 10)
    hmm = HMMTransformer(3, emission=kind, prior="pooled", random_state=0).fit(X)
    near = hmm.transform([X[0][:3]])
    pooled = hmm.pooled_model_
    assert len(pooled) == 1
    far = HMMTransformer(3, emission=kind, random_state=0).fit(X).transform([X[0][:3]])
    key = "rates" if kind == "poisson" else "emissionprobs"
    gaps = [np.abs(getattr(m, key) - getattr(pooled, key)).max() for m in (near, far)]
    assert gaps[0] < gaps[1]
    hmm = HMMTransformer(3, emission=kind, init="pooled", random_state=0).fit(X)
    own = hmm.transform(X)
    assert (own.info["log_likelihood"] > pooled.score(X)[:, 0]).all()
    strong = HMMTransformer(
        3, emission=kind, prior="pooled", relevance=1e9, random_state=0
    ).fit(X)
    held, first = strong.transform(X[:1]), strong.pooled_model_
    assert_allclose(getattr(held, key), getattr(first, key), atol=1e-5)


@pytest.mark.parametrize("kind", ["categorical", "poisson"])
@pytest.mark.parametrize("topology", ["linear", "left-to-right"])
def test_states_that_come_in_order(rng, kind, topology):
    states = np.repeat([0, 1, 2], 40)
    x = rng.poisson(RATES[states])
    if kind == "categorical":
        x = np.array([rng.choice(4, p=PROBS[k]) for k in states])
    hmm = HMMTransformer(3, emission=kind, topology=topology, random_state=0)
    models = hmm.fit_transform([x])
    assert_array_equal(np.tril(models.transmats[0], -1), 0)
    assert models.transmats[0, 0, 2] == 0 or topology != "linear"
    assert_array_equal(models.startprobs[0], [1, 0, 0])
    assert_allclose(models.weights[0], 1 / 3, atol=0.08)
    path = models.decode([x])[0][0]
    assert np.mean(path == states) > 0.9


@pytest.mark.parametrize("kind", ["categorical", "poisson"])
def test_a_criterion_finds_the_number_of_states(kind):
    X = drawn(kind, 3000)
    hmm = HMMTransformer("bic", emission=kind, random_state=0)
    assert hmm.fit_transform(X).n_components[0] == 3
    one = [np.random.default_rng(0).integers(0, 2, 300)]
    assert hmm.fit_transform(one).n_components[0] == 1


def test_unobserved_values_are_left_out(rng):
    x = drawn("poisson", 400)[0].astype(float)
    holes = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    models = HMMTransformer(3, emission="poisson", random_state=0).fit_transform(
        [x, holes]
    )
    rates = [rates[rates[:, 0].argsort()] for rates in models.rates]
    assert_allclose(*rates, atol=0.8)
    single = HMMTransformer(1, emission="categorical").fit_transform(
        [np.array([0, 1, np.nan, 1, np.nan])]
    )
    assert_allclose(single.emissionprobs[0, 0], [1 / 3, 2 / 3])
    assert_allclose(single.info["log_likelihood"], [np.log(1 / 3) + 2 * np.log(2 / 3)])


@pytest.mark.parametrize("kind", ["categorical", "poisson"])
def test_sequences_that_do_not_vary_or_are_short(kind):
    hmm = HMMTransformer(3, emission=kind, random_state=0)
    with pytest.warns(UserWarning, match="fewer distinct frames"):
        models = hmm.fit_transform([np.array([4, 4, 4, 4]), np.array([4, 7])])
    assert_array_equal(models.n_components, [1, 2])
    assert np.isfinite(models.info["log_likelihood"]).all()


def test_unused_symbols_and_given_alphabets():
    hmm = HMMTransformer(2, emission=Categorical("abc"), random_state=0)
    models = hmm.fit_transform(["abab", "aabb"])
    assert_array_equal(models.emissionprobs[..., 2], 0)
    assert hmm.symbols_.tolist() == ["a", "b", "c"]
    costs = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    numbered = HMMTransformer(1, emission=Categorical(costs=costs))
    assert numbered.fit([[0, 1]]).symbols_.tolist() == [0, 1, 2]
    assert_array_equal(numbered.transform([[0, 1]]).emission.costs, costs)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"emission": "beta"}, "emission must be one of 'gaussian', 'categorical'"),
        ({"n_mix": 2}, "n_mix must be 1 with emission='categorical', where .*, got 2"),
        (
            {"engine": "hmmlearn"},
            "engine must be 'batched' with emission='categorical'",
        ),
        ({"emission": Categorical("abc", costs=[[0]])}, "costs must have shape"),
        ({"emission": Categorical(3)}, "symbols must list the strings or integers"),
        ({"emission": Categorical(costs=3)}, "costs must be a square array"),
    ],
)
def test_bad_parameters(params, words):
    with pytest.raises(ValueError, match=words):
        HMMTransformer(**{"emission": "categorical", **params}).fit(["ab"])


def test_runs_that_are_not_scored_have_the_same_models(rng):
    frames = frames_of(drawn("poisson", 60)[0], "poisson")
    steps = steps_of("poisson", frames, np.array([0, 60]))
    start = stacked([random_start(rng, "poisson")])
    for max_iter in (1, 4):
        scored = run_em(steps, start, max_iter=max_iter, tol=-np.inf)
        other = run_em(steps, start, max_iter=max_iter, tol=-np.inf, is_scored=False)
        for one, two in zip(scored.model.states, other.model.states, strict=True):
            assert_array_equal(one, two)
        assert_array_equal(scored.model.transmat, other.model.transmat)
        assert_array_equal(scored.n_iter, other.n_iter)
        # Counts and likelihoods are those of one step less.
        before = run_em(steps, start, max_iter=max_iter - 1, tol=-np.inf)
        assert_array_equal(other.counts, before.counts)
        assert_array_equal(other.log_likelihood, before.log_likelihood)
