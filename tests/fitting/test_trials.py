"""One model from several recordings of a unit: `Trials` in every kind of fit."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from skawhmm import HMMTransformer, Trials
from skawhmm.emissions import Gaussian, Poisson
from skawhmm.fitting import MarkovChainTransformer

COVARIANCE_TYPES = ("diag", "full", "spherical", "tied")
FAMILIES = ("gaussian", "categorical", "poisson")
TOPOLOGIES = ("ergodic", "left-to-right", "linear")


class Counting(Poisson):
    """A family of a user, which EM fits one model at a time."""


def recordings(rng, family="gaussian", lengths=(12, 1, 30, 7, 2, 18), n_features=2):
    """Recordings of a chain that alternates between two states."""
    found = []
    for length in lengths:
        path = np.cumsum(rng.random(length) < 0.3) % 2
        if family == "categorical":
            found.append(
                "".join(np.where(rng.random(length) < 0.8, path, 2).astype(str))
            )
        elif family == "poisson":
            found.append(rng.poisson(2 + 5 * path[:, None], (length, n_features)))
        else:
            found.append(2 * path[:, None] + rng.normal(size=(length, n_features)))
    return found


def units(rng, family="gaussian", n_units=5, **options):
    return [Trials(recordings(rng, family, **options)) for _ in range(n_units)]


def assert_same(one, two):
    """Models are equal to the last bit, counts and info included."""
    for name in ("transmats", "startprobs", "weights"):
        assert_array_equal(getattr(one, name), getattr(two, name))
    for left, right in zip(
        one.emission.parameters.values(), two.emission.parameters.values(), strict=True
    ):
        assert_array_equal(left, right)
    assert_array_equal(one.counts.transitions, two.counts.transitions)
    for name, column in one.info.items():
        assert_array_equal(column, two.info[name])


# hmmlearn as the judge.


def hmmlearn_fit(start, trials, n_iter, covariance_type=None):
    """hmmlearn's model from frames and lengths, from the same start."""
    model = start.to_hmmlearn(0)
    model.n_iter, model.tol, model.init_params = n_iter, -np.inf, ""
    if covariance_type is not None:
        covars = start.covars[0]
        model.covariance_type = covariance_type
        model.covars_prior, model.covars_weight, model.min_covar = 0, 0, 0
        model.covars_ = {
            "diag": covars,
            "full": covars,
            "spherical": covars.mean(axis=-1),
            "tied": covars[0],
        }[covariance_type]
    elif start.emission.name == "poisson":
        model.lambdas_prior, model.lambdas_weight = 0, 0
    frames = np.concatenate([np.asarray(x) for x in trials])
    return model.fit(frames, [len(x) for x in trials])


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_same_start_and_steps_give_hmmlearns_model(rng, covariance_type):
    pytest.importorskip("hmmlearn")
    X = units(rng, n_units=3)
    hmm = HMMTransformer(
        2,
        emission=Gaussian(covariance_type, reg_covar=0),
        init="pooled",
        max_iter=4,
        tol=0,
        random_state=0,
    ).fit(X)
    for x, model in zip(X, hmm.transform(X), strict=True):
        judge = hmmlearn_fit(hmm.pooled_model_, x, 4, covariance_type)
        frames, lengths = np.concatenate([*x]), [len(trial) for trial in x]
        assert model.info["n_iter"][0] == 4
        tight = {"rtol": 1e-9, "atol": 1e-9}
        assert_allclose(model.startprobs[0], judge.startprob_, **tight)
        assert_allclose(model.transmats[0], judge.transmat_, **tight)
        assert_allclose(model.means[0], judge.means_, **tight)
        covars = model.covars[0]
        theirs = judge.covars_
        if covariance_type in {"diag", "spherical"}:
            # hmmlearn repeats the states of spherical models once per channel.
            theirs = np.einsum("kcc->kc", theirs[:: len(theirs) // 2])
        assert_allclose(covars, theirs, **tight)
        assert_allclose(model.score([x])[0, 0], judge.score(frames, lengths), rtol=1e-9)
        assert_allclose(
            model.weights[0], judge.predict_proba(frames, lengths).mean(axis=0), **tight
        )


def test_symbols_give_hmmlearns_model(rng):
    pytest.importorskip("hmmlearn")
    X = units(rng, "categorical", n_units=3)
    hmm = HMMTransformer(
        2, emission="categorical", init="pooled", max_iter=4, tol=0, random_state=0
    ).fit(X)
    for x, model in zip(X, hmm.transform(X), strict=True):
        codes = [np.array([*map(int, text)])[:, None] for text in x]
        judge = hmmlearn_fit(hmm.pooled_model_, codes, 4)
        assert_allclose(model.transmats[0], judge.transmat_, rtol=1e-9, atol=1e-9)
        assert_allclose(model.startprobs[0], judge.startprob_, rtol=1e-9, atol=1e-9)
        assert_allclose(model.emissionprobs[0], judge.emissionprob_, atol=1e-9)


def test_counts_give_hmmlearns_model(rng):
    pytest.importorskip("hmmlearn")
    X = units(rng, "poisson", n_units=3)
    hmm = HMMTransformer(
        2, emission="poisson", init="pooled", max_iter=4, tol=0, random_state=0
    ).fit(X)
    for x, model in zip(X, hmm.transform(X), strict=True):
        judge = hmmlearn_fit(hmm.pooled_model_, x, 4)
        assert_allclose(model.transmats[0], judge.transmat_, rtol=1e-9, atol=1e-9)
        assert_allclose(model.startprobs[0], judge.startprob_, rtol=1e-9, atol=1e-9)
        assert_allclose(model.rates[0], judge.lambdas_, rtol=1e-9)


@pytest.mark.parametrize("engine", ["hmmlearn", "estimator"])
def test_hmmlearns_engine_is_given_lengths(rng, engine):
    hmm = pytest.importorskip("hmmlearn.hmm")
    X = units(rng, n_units=2)
    if engine == "estimator":
        engine = hmm.GaussianHMM(n_iter=3, tol=-np.inf)
        options = {}
    else:
        options = {"max_iter": 3, "tol": 0.0}
    models = HMMTransformer(2, engine=engine, random_state=0, **options).fit_transform(
        X
    )
    lengths = [12, 1, 30, 7, 2, 18]
    # Six trials of 70 frames have 64 transitions; one sequence would have 69.
    assert_allclose(models.counts.transitions.sum(axis=(1, 2)), 70 - len(lengths))
    assert_array_equal(models.info["n_trials"], 6)


# What holds for all families and options.


@pytest.mark.parametrize(
    "options",
    [
        *({"emission": family} for family in FAMILIES),
        {"emission": Counting()},
        *({"covariance_type": kind} for kind in COVARIANCE_TYPES[1:]),
        *({"topology": topology} for topology in TOPOLOGIES[1:]),
        {"emission": "categorical", "topology": "linear"},
        {"init": "pooled"},
        {"prior": "pooled"},
        {"emission": "poisson", "prior": "pooled"},
        {"n_mix": 2},
        {"n_init": 2},
        {"n_components": "bic"},
    ],
    ids=str,
)
def test_one_trial_is_the_same_as_a_sequence(rng, options):
    family = options.get("emission", "gaussian")
    family = family if isinstance(family, str) else "poisson"
    X = [
        x for trials in units(rng, family, n_units=2, lengths=(30, 25)) for x in trials
    ]
    hmm = HMMTransformer(**{"n_components": 2, "random_state": 0, **options})
    assert_same(hmm.fit_transform([Trials([x]) for x in X]), hmm.fit_transform(X))


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_transition_crosses_a_boundary(rng, family, topology):
    X = units(rng, family)
    hmm = HMMTransformer(3, emission=family, topology=topology, random_state=0)
    models = hmm.fit_transform(X)
    assert_allclose(models.counts.states.sum(axis=1), 70)
    assert_allclose(models.counts.transitions.sum(axis=(1, 2)), 64)
    assert_array_equal(models.info["n_timesteps"], 70)
    assert_array_equal(models.info["n_trials"], 6)
    if topology != "ergodic":
        assert_array_equal(models.startprobs, [[1, 0, 0]] * len(X))
        assert not np.tril(models.transmats, -1).any()


@pytest.mark.parametrize("prior", [None, "pooled"])
@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_mean_posteriors_of_all_frames(rng, family, prior):
    X = units(rng, family)
    hmm = HMMTransformer(2, emission=family, prior=prior, random_state=0)
    models = hmm.fit_transform(X)
    for i, post in enumerate(models.predict_proba(X)):
        assert_allclose(np.concatenate(post).mean(axis=0), models.weights[i], atol=1e-9)


def test_start_probabilities_come_from_every_first_frame(rng):
    # Three of four recordings begin at the upper level.
    levels = [[5, 5, 0], [5, 0, 0, 5], [0, 5], [5, 0, 5]]
    x = Trials([np.array(v)[:, None] + rng.normal(0, 0.1, (len(v), 1)) for v in levels])
    model = HMMTransformer(2, random_state=0).fit_transform([x])
    upper = int(model.means[0, 1, 0] > model.means[0, 0, 0])
    assert_allclose(model.startprobs[0, upper], 0.75, atol=1e-6)
    # Up to down: 5 to 0 three times in four steps from the upper level.
    assert_allclose(model.transmats[0, upper, 1 - upper], 3 / 4, atol=1e-6)
    assert_allclose(model.transmats[0, 1 - upper, upper], 3 / 4, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_pooled_model_is_fitted_to_all_trials_of_all_units(rng, family):
    X = units(rng, family, n_units=3)
    flat = [x for trials in X for x in trials]
    hmm = HMMTransformer(2, emission=family, init="pooled", random_state=0)
    assert_same(hmm.fit(X).pooled_model_, hmm.fit(flat).pooled_model_)


def test_model_depends_on_its_own_unit_only(rng):
    X = [*units(rng, n_units=4), rng.normal(size=(20, 2)), *units(rng, n_units=3)]
    hmm = HMMTransformer(2, random_state=0)
    together = hmm.fit_transform(X)
    for i, x in enumerate(X):
        assert_same(together[i], hmm.fit_transform([x]))
    assert_same(together[::-1], hmm.fit_transform(X[::-1]))
    assert_same(together, HMMTransformer(2, random_state=0, n_jobs=2).fit_transform(X))


def test_missing_values_in_some_trials(rng):
    X = units(rng)
    gaps = [Trials([np.array(x) for x in trials]) for trials in X]
    for trials in gaps:
        for x in [*trials][2:]:
            x[rng.random(x.shape) < 0.1] = np.nan
        # A channel that one trial lacks and the others have.
        [*trials][3][:, 1] = np.nan
    hmm = HMMTransformer(2, random_state=0)
    models = hmm.fit_transform(gaps)
    assert models.info["converged"].all()
    assert np.isfinite(models.info["log_likelihood"]).all()
    assert_allclose(models.info["log_likelihood"], np.diagonal(models.score(gaps)))
    with pytest.raises(ValueError, match=r"covariance_type='full'.*X\[0\]"):
        HMMTransformer(2, "full").fit_transform(gaps)


def test_em_does_not_lose_likelihood(rng):
    X = units(rng, n_units=3)
    for topology in TOPOLOGIES:
        values = [
            HMMTransformer(2, topology=topology, max_iter=n, tol=0, random_state=0)
            .fit_transform(X)
            .info["log_likelihood"]
            for n in range(6)
        ]
        assert (np.diff(values, axis=0) > -1e-9 * np.abs(values[0])).all()


def test_states_that_no_single_trial_has_room_for(rng):
    # Twenty trials of two frames visit three levels.
    x = Trials([rng.normal(5 * rng.permutation(3)[:2, None], 0.1) for _ in range(20)])
    model = HMMTransformer(3, random_state=0).fit_transform([x])
    assert_allclose(np.sort(model.means[0, :, 0]), [0, 5, 10], atol=0.1)
    words = Trials(["".join(rng.permutation([*"abc"])[:2]) for _ in range(40)])
    hmm = HMMTransformer(3, emission="categorical", random_state=0, n_init=5)
    assert hmm.fit_transform([words]).n_components[0] == 3


@given(
    st.lists(
        st.lists(st.text("abc", min_size=1, max_size=5), min_size=1, max_size=5),
        min_size=1,
        max_size=4,
    ).filter(lambda X: all(max(map(len, x)) > 1 for x in X))
)
def test_visible_chains_are_counted_per_unit(texts):
    chains = MarkovChainTransformer("abc").fit_transform([Trials(x) for x in texts])
    for i, unit in enumerate(texts):
        starts, moves = np.zeros(3), np.zeros((3, 3))
        for text in unit:
            codes = ["abc".index(letter) for letter in text]
            starts[codes[0]] += 1
            for one, two in pairwise(codes):
                moves[one, two] += 1
        assert_allclose(chains.startprobs[i], starts / len(unit))
        assert_array_equal(chains.counts.transitions[i], moves)
        left = moves.sum(axis=1) > 0
        rows = moves[left] / moves[left].sum(axis=1, keepdims=True)
        assert_allclose(chains.transmats[i, left], rows)
        assert chains.info["n_trials"][i] == len(unit)
        expected = sum(
            counts[counts > 0] @ np.log(probabilities[counts > 0])
            for counts, probabilities in [
                (starts, chains.startprobs[i]),
                *zip(moves, chains.transmats[i], strict=True),
            ]
        )
        assert_allclose(chains.info["log_likelihood"][i], expected, atol=1e-12)


def test_likelihood_of_trials_against_all_paths(rng):
    x = Trials(recordings(rng, lengths=(4, 1, 3)))
    model = HMMTransformer(2, random_state=0).fit_transform([x])
    start = np.log(np.maximum(model.startprobs[0], 1e-300))
    transmat = np.log(np.maximum(model.transmats[0], 1e-300))
    total = 0.0
    for trial in x:
        gaps = (trial[:, None] - model.means[0]) ** 2 / model.covars[0]
        logs = -0.5 * (gaps + np.log(2 * np.pi * model.covars[0])).sum(axis=2)
        values = []
        for path in np.ndindex(*[2] * len(trial)):
            value = start[path[0]] + logs[np.arange(len(trial)), path].sum()
            values.append(value + sum(transmat[i, j] for i, j in pairwise(path)))
        total += logsumexp(values)
    assert_allclose(model.score([x])[0, 0], total)
    assert_allclose(model.info["log_likelihood"][0], total)


def test_face_fixations_have_a_model_per_viewer_and_condition(shared):
    data = np.load(shared("trials_face_fixations.npz"))
    trials = np.split(data["X"], np.cumsum(data["lengths"])[:-1])
    names = [
        f"{unit} {kind}" for unit, kind in zip(data["group"], data["y"], strict=True)
    ]
    X = [
        Trials([trials[i] for i in np.flatnonzero(np.array(names) == name)])
        for name in dict.fromkeys(names)
    ]
    models = HMMTransformer(2, random_state=0).fit_transform(X)
    assert len(models) == 64
    assert models.info["n_trials"].sum() == 1267
    n_single = sum(len(trial) == 1 for trial in trials)
    assert n_single == 139
    assert_allclose(models.counts.transitions.sum(), len(data["X"]) - 1267)
