"""What holds for all families with independent channels."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import digamma, i0e, i1e

from skawhmm import (
    IAW,
    JAW,
    KL,
    HMMBatch,
    HMMTransformer,
    TransitionCoupling,
    hmm_barycenter,
    pairwise_hmm_distances,
)
from skawhmm.emissions import (
    Bernoulli,
    Gamma,
    NegativeBinomial,
    StudentT,
    VonMises,
)
from skawhmm.emissions._model import Model
from skawhmm.emissions._univariate_kernels import (
    bessel_ratios,
    gamma_shapes,
    vonmises_concentrations,
)
from skawhmm.fitting._em import Rule, Steps

# A template, the parameters of two states that are far apart, and SciPy's distribution.
FAMILIES = {
    "gamma": (
        Gamma(),
        {"means": (2.0, 24.0), "sds": (1.4, 8.5), "zero_probs": (0.0, 0.0)},
        lambda mean, sd, _: stats.gamma((mean / sd) ** 2, scale=sd**2 / mean),
    ),
    "vonmises": (
        VonMises(),
        {"locations": (0.0, 2.5), "concentrations": (1.5, 6.0)},
        lambda angle, kappa: stats.vonmises(kappa, loc=angle),
    ),
    "bernoulli": (
        Bernoulli(),
        {"probabilities": (0.1, 0.9)},
        stats.bernoulli,
    ),
    "negative_binomial": (
        NegativeBinomial(),
        {"means": (3.0, 200.0), "shapes": (2.0, 5.0)},
        lambda mean, shape: stats.nbinom(shape, shape / (shape + mean)),
    ),
    "student": (
        StudentT(),
        {"locations": (0.0, 6.0), "scales": (1.0, 2.0), "dofs": (3.0, 8.0)},
        lambda location, scale, dof: stats.t(dof, location, scale),
    ),
}
CHAIN = [[0.95, 0.05], [0.05, 0.95]]
ALL = pytest.mark.parametrize("name", FAMILIES)


def batch(name, n_features=1, template=None):
    """Return a model with the two states, the same in each channel."""
    own, parameters, _ = FAMILIES[name]
    arrays = {"transmats": [CHAIN]}
    for key, values in parameters.items():
        arrays[key] = [np.repeat(np.array(values)[:, None], n_features, axis=1)]
    return HMMBatch.from_arrays(arrays, emission=template or own)


def drawn(name, n_sequences=4, n_timesteps=300, seed=0, n_features=1):
    """Return sequences drawn from the model with the two states."""
    models = batch(name, n_features)
    return [
        models.sample(n_timesteps, random_state=i + 1000 * seed)[0][0]
        for i in range(n_sequences)
    ]


def scipy_logs(name, k, x):
    _, parameters, make = FAMILIES[name]
    distribution = make(*(values[k] for values in parameters.values()))
    return (
        distribution.logpmf
        if hasattr(distribution.dist, "logpmf")
        else distribution.logpdf
    )(x)


@ALL
def test_log_densities_are_those_of_scipy(name):
    models, x = batch(name), drawn(name, 1)[0]
    logs = models.emission.densities(
        0, models._checked([x])[0], models.startprobs[0], models.transmats[0]
    )
    for k in range(2):
        assert_allclose(logs[k], scipy_logs(name, k, x)[:, 0], rtol=1e-9, atol=1e-9)


@ALL
def test_channels_are_independent(name):
    x = drawn(name, 1, n_features=3)[0]
    models, one = batch(name, 3), batch(name)
    chain = models.startprobs[0], models.transmats[0]
    logs = models.emission.densities(0, models._checked([x])[0], *chain)
    parts = [
        one.emission.densities(0, one._checked([x[:, [c]]])[0], *chain)
        for c in range(3)
    ]
    assert_allclose(logs, sum(parts), rtol=1e-12)


@ALL
def test_samples_follow_their_distribution(name):
    models = batch(name)
    x = models.emission.drawn(0, np.ones(4000, int), np.random.default_rng(0))[:, 0]
    _, parameters, make = FAMILIES[name]
    distribution = make(*(values[1] for values in parameters.values()))
    if hasattr(distribution.dist, "pmf"):
        assert_allclose(x.mean(), distribution.mean(), rtol=0.03)
        assert_allclose(x.std(), distribution.std(), rtol=0.05)
    elif name == "vonmises":
        own = stats.vonmises(parameters["concentrations"][1])
        around = (x - parameters["locations"][1] + np.pi) % (2 * np.pi) - np.pi
        assert stats.kstest(around, own.cdf).pvalue > 0.01
    else:
        assert stats.kstest(x, distribution.cdf).pvalue > 0.01


def em_values(family, X, states, *, relevance=0.0, n_steps=15):
    """Return the objective after each EM step from given states."""
    data = family.data(family.checked(X, caller="test"), [0, len(X)])
    start = Model(
        np.array([[0.5, 0.5]]),
        np.array([[[0.6, 0.4], [0.3, 0.7]]]),
        tuple(np.array(part)[None] for part in states),
    )
    steps = Steps(family, data, Rule(relevance=relevance), start)
    model = Model(*(np.array(p) for p in start[:2]), tuple(map(np.array, start.states)))
    only, values = np.array([0]), []
    for _ in range(n_steps):
        value, expected = steps.expectation(model, only)
        values.append(value[0] + steps.log_priors(model, only)[0])
        steps.maximization(expected, only, model, only)
    return np.array(values), model


@ALL
@pytest.mark.parametrize("relevance", [0.0, 20.0])
def test_em_never_lowers_the_objective(name, relevance):
    family = FAMILIES[name][0]
    X = drawn(name, 3, 200)
    frames = family.data(family.checked(X, caller="test")).frames
    for seed in range(4):
        states = family.random_states(frames, 2, np.random.default_rng(seed))
        values, _ = em_values(family, X, states, relevance=relevance)
        assert (np.diff(values) > -1e-8 * np.abs(values[:-1])).all()
        assert values[-1] > values[0]


@ALL
def test_an_m_step_of_one_state_is_the_maximum_of_the_likelihood(name):
    family = FAMILIES[name][0]
    path = np.zeros(400, int)
    x = batch(name).emission.drawn(0, path, np.random.default_rng(0))
    frames = family.frames(family.checked([x], caller="test")[0])
    states = family.common_states(frames)
    for _ in range(60):
        found = family.statistics(frames, np.ones((1, len(x))), states)
        states = family.update(found, states, states, 0.0)
    best = family.log_densities(frames, states).sum()
    for part in range(len(states)):
        for factor in (0.99, 1.01):
            other = [np.array(array) for array in states]
            other[part] = other[part] * factor
            assert family.log_densities(frames, tuple(other)).sum() <= best + 1e-6


@ALL
def test_fits_recover_parameters(name):
    models = HMMTransformer(2, emission=name, random_state=0, n_init=2)
    models = models.fit_transform(drawn(name, 2, 3000))
    first = next(iter(FAMILIES[name][1]))
    for n in range(2):
        order = np.argsort(models.emission.parameters[first][n, :, 0])
        for key, values in FAMILIES[name][1].items():
            found = models.emission.parameters[key][n, order, 0]
            assert_allclose(found, values, rtol=0.35, atol=0.12, err_msg=key)
    assert models.info["converged"].all()


@ALL
def test_a_prior_alone_is_what_the_states_become(name):
    family, parameters, _ = FAMILIES[name]
    prior = tuple(np.array(values)[:, None] for values in parameters.values())
    x = drawn(name, 1, 5)[0]
    _, model = em_values(family, [x], prior, relevance=1e7, n_steps=4)
    for part, values in zip(model.states, prior, strict=True):
        assert_allclose(part[0], values, rtol=2e-2, atol=1e-3)


@ALL
def test_missing_values_are_skipped(name):
    x = drawn(name, 1, n_features=2)[0].astype(float)
    models = batch(name, 2)
    with_gaps = x.copy()
    with_gaps[::3, 1] = np.nan
    chain = models.startprobs[0], models.transmats[0]
    logs = models.emission.densities(0, models._checked([with_gaps])[0], *chain)
    full = models.emission.densities(0, models._checked([x])[0], *chain)
    one = batch(name).emission.densities(0, models._checked([x])[0][:, :1], *chain)
    assert_allclose(logs[:, 1::3], full[:, 1::3], rtol=1e-12)
    assert_allclose(logs[:, ::3], one[:, ::3], rtol=1e-12)
    fitted = HMMTransformer(2, emission=name, random_state=0).fit_transform([with_gaps])
    assert np.isfinite(fitted.info["log_likelihood"]).all()


@ALL
def test_a_channel_without_values_is_an_error(name):
    x = drawn(name, 1, n_features=2)[0].astype(float)
    x[:, 1] = np.nan
    with pytest.raises(ValueError, match=r"X\[0\].*channel 1"):
        HMMTransformer(2, emission=name).fit_transform([x])


@ALL
def test_constant_channels_have_a_model(name):
    x = np.ones((30, 1))
    models = HMMTransformer(1, emission=name, random_state=0).fit_transform([x, x])
    assert np.isfinite(models.info["log_likelihood"]).all()
    assert_allclose(pairwise_hmm_distances(models), 0, atol=1e-12)


@ALL
@pytest.mark.parametrize(
    "params",
    [
        {"prior": "pooled"},
        {"init": "pooled"},
        {"topology": "left-to-right"},
        {"n_components": "bic"},
    ],
)
def test_every_way_of_fitting_knows_the_family(name, params):
    X = drawn(name, 3, 100)
    hmm = HMMTransformer(2, emission=name, random_state=0).set_params(**params)
    models = hmm.fit_transform(X)
    assert np.isfinite(models.info["log_likelihood"]).all()
    assert_allclose(
        models.info["log_likelihood"], np.diagonal(models.score(X)), rtol=1e-3
    )


@ALL
@pytest.mark.parametrize(
    "metric", ["maw", JAW(), TransitionCoupling(), KL(n_steps=500)]
)
def test_distances_have_the_usual_properties(name, metric):
    models = HMMTransformer(2, emission=name, random_state=0).fit_transform(
        drawn(name, 4, 80)
    )
    D = pairwise_hmm_distances(models, metric=metric)
    assert_allclose(D, D.T)
    assert (D >= 0).all()
    assert_allclose(np.diag(D), 0, atol=1e-9)
    assert (D[np.triu_indices(4, 1)] > 0).all()


@ALL
def test_quantiles_are_frames_at_their_levels(name):
    models, levels = batch(name), np.linspace(0.023, 0.977, 49)
    _, parameters, make = FAMILIES[name]
    for k in range(2):
        found = models.emission.frames_at(0, np.full(49, k), levels[:, None])[:, 0]
        distribution = make(*(values[k] for values in parameters.values()))
        expected = distribution.ppf(levels)
        if name == "vonmises":
            expected = (expected + np.pi) % (2 * np.pi) - np.pi
        assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@ALL
def test_iaw_matches_states_of_models_in_another_order(name):
    models = batch(name)
    arrays = {key: [v[0, ::-1]] for key, v in models.emission.parameters.items()}
    turned = HMMBatch.from_arrays(
        {"transmats": [CHAIN], **arrays}, emission=FAMILIES[name][0]
    )
    both = HMMBatch.concatenate([models, turned])
    far = pairwise_hmm_distances(both, metric=IAW(alpha=0, debias=True))[0, 1]
    least = np.sqrt(models.emission.cross(np.array([0]), np.array([0]))[0, 0, 1])
    assert far < 0.2 * least


@pytest.mark.parametrize("name", ["gamma", "vonmises", "bernoulli"])
def test_divergences_are_mean_log_ratios(name):
    models = batch(name)
    x = models.emission.drawn(0, np.zeros(40_000, int), np.random.default_rng(0))
    logs = [scipy_logs(name, k, x) for k in range(2)]
    index = np.array([0])
    found = models.emission.divergences(index, index)[0]
    assert_allclose(found[0, 1], np.mean(logs[0] - logs[1]), rtol=0.05)
    assert_allclose(np.diag(found), 0, atol=1e-9)
    rates = pairwise_hmm_distances(
        HMMBatch.concatenate([models, models]), metric=KL(method="variational")
    )
    assert_allclose(rates, 0, atol=1e-9)


@pytest.mark.parametrize("name", ["negative_binomial", "student"])
def test_divergences_without_closed_form_are_said_so(name):
    with pytest.raises(TypeError, match=f"'{name}'"):
        pairwise_hmm_distances(batch(name), metric=KL(method="variational"))


@ALL
def test_mmd_says_that_there_is_no_kernel(name):
    with pytest.raises(TypeError, match=f"'{name}'"):
        pairwise_hmm_distances(batch(name), metric="mmd")


@ALL
def test_files_and_pickles_keep_models(name, tmp_path):
    models = HMMTransformer(2, emission=name, random_state=0).fit_transform(
        drawn(name, 2, 60)
    )
    path = tmp_path / "models.npz"
    models.save(path)
    assert HMMBatch.load(path) == models
    assert pickle.loads(pickle.dumps(models)) == models
    assert repr(models).count(name) == 1


@ALL
def test_padding_changes_no_distance(name):
    X = drawn(name, 3, 80)
    two = HMMTransformer(2, emission=name, random_state=0).fit_transform(X)
    three = HMMTransformer(3, emission=name, random_state=0).fit_transform(X)
    both = HMMBatch.concatenate([two, three])
    assert_array_equal(
        pairwise_hmm_distances(both)[:3, :3], pairwise_hmm_distances(two)
    )


@ALL
def test_the_average_of_equal_models_is_the_model(name):
    models = batch(name, 2)
    average, _ = hmm_barycenter(HMMBatch.concatenate([models, models]))
    for key, values in models.emission.parameters.items():
        found = np.sort(average.emission.parameters[key], axis=1)
        assert_allclose(found, np.sort(values, axis=1), rtol=1e-2, atol=1e-6)


@ALL
def test_averaged_states_are_closer_than_either_state(name):
    family, parameters, _ = FAMILIES[name]
    arrays = [np.array(values)[:, None, None] for values in parameters.values()]
    ends = family.like(*arrays)
    center = ends[:1].averaged(ends, np.zeros(2, int), np.full((2, 1, 1), 0.5))
    both = type(family).concatenate([ends, center])
    here, there = np.array([0, 1]), np.array([2, 2])
    total = both.cross(here, there).sum()
    assert total < ends.cross(np.array([0]), np.array([1])).sum()
    # The average of two points on a line has half their squared distance.
    assert total >= 0.5 * ends.cross(np.array([0]), np.array([1])).sum() - 1e-9


@ALL
def test_merging_equal_states_changes_nothing(name):
    models = batch(name, 2)
    merged = models.emission.merged(np.array([[[1.0, 0.0], [0.0, 1.0]]]))
    for key, values in models.emission.parameters.items():
        assert_allclose(merged.parameters[key], values, rtol=1e-9, atol=1e-9)


@ALL
def test_tables_describe_states(name):
    columns = batch(name, 2)._described()
    n_parameters = len(FAMILIES[name][1])
    assert len(columns) == 2 * n_parameters
    assert all(values.shape == (1, 2) for values in columns.values())


# Newton's method


@given(st.floats(-11, 3))
@settings(max_examples=60)
def test_gamma_shapes_solve_their_equation(power):
    gap = 10.0**power
    (shape,) = gamma_shapes(np.array([gap]))
    assert 0.5 / gap <= shape <= 1 / gap
    if shape < 1e4:
        assert_allclose(np.log(shape) - digamma(shape), gap, rtol=1e-9)


@given(st.floats(0, 1 - 1e-9))
@settings(max_examples=60)
def test_concentrations_solve_their_equation(length):
    (found,) = vonmises_concentrations(np.array([length]))
    assert_allclose(i1e(found) / i0e(found), length, atol=1e-14)


def test_bessel_ratios_are_those_of_scipy():
    x = np.geomspace(1e-6, 1e6, 200)
    assert_allclose(bessel_ratios(x), i1e(x) / i0e(x), rtol=1e-13)


def test_solvers_at_their_limits():
    assert_array_equal(gamma_shapes(np.array([0.0, -1.0])), np.inf)
    assert_array_equal(vonmises_concentrations(np.array([0.0, 1.0])), [0.0, np.inf])


# Mistakes


@pytest.mark.parametrize(
    ("emission", "x", "match"),
    [
        (Gamma(), [[1.0], [-2.0]], r"X\[0\].*negative.*-2"),
        (Gamma(), [[1.0], [0.0]], r"X\[0\].*positive.*1 zeros.*zero_mass=True"),
        (Bernoulli(), [[1.0], [2.0]], r"X\[0\].*0 or 1.*2"),
        (NegativeBinomial(), [[1.0], [0.5]], r"X\[0\].*counts.*0\.5"),
    ],
)
def test_values_that_no_state_emits(emission, x, match):
    with pytest.raises(ValueError, match=match):
        HMMTransformer(1, emission=emission).fit_transform([x])


@pytest.mark.parametrize(
    ("emission", "arrays", "match"),
    [
        (Gamma(), {"means": 0, "sds": 1, "zero_probs": 0}, "means must be positive"),
        (Gamma(), {"means": 1, "sds": -1, "zero_probs": 0}, "sds must be positive"),
        (Gamma(), {"means": 1, "sds": 1, "zero_probs": 0.1}, "zero_mass=True.*0.1"),
        (Gamma(True), {"means": 1, "sds": 1, "zero_probs": 1.5}, "zero_probs.*1.5"),
        (VonMises(), {"locations": 1, "concentrations": -1}, "concentrations.*-1"),
        (Bernoulli(), {"probabilities": 1.5}, "probabilities must be at most 1.*1.5"),
        (NegativeBinomial(), {"means": -1, "shapes": 1}, "means.*negative.*-1"),
        (NegativeBinomial(), {"means": 1, "shapes": 0}, "shapes must be positive"),
        (StudentT(), {"locations": 0, "scales": 0, "dofs": 3}, "scales.*positive"),
        (StudentT(), {"locations": 0, "scales": 1, "dofs": 2}, "dofs.*above 2.*2"),
    ],
)
def test_parameters_that_no_state_has(emission, arrays, match):
    given_arrays = {name: [[[float(v)]]] for name, v in arrays.items()}
    with pytest.raises(ValueError, match=match):
        HMMBatch.from_arrays(
            {"transmats": [[[1.0]]], **given_arrays}, emission=emission
        )
