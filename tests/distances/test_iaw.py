import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from skawhmm import (
    IAW,
    MAW,
    HMMBatch,
    HMMTransformer,
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    register_states,
)
from skawhmm.emissions import Gaussian

POWERS = [0.5, 1, 1.5, 2]
OPTIONS = [
    {},
    {"sampling": "iid"},
    {"coupling": "sinkhorn", "n_samples": 32},
    {"debias": True},
    {"n_samples": 7},
]


def separated(make_batch, n_models=3, n_components=3, covariance_type="diag"):
    """Models whose states never overlap, with small differences between models."""
    models = make_batch(n_models, n_components, 2, covariance_type)
    places = 100.0 * np.arange(models.means.shape[1])[:, None]
    return HMMBatch(
        models.transmats, models.means + places, models.covars, weights=models.weights
    )


def overlapping(n_models=2, n_features=1, seed=0):
    rng = np.random.default_rng(seed)
    shape = (n_models, 3, n_features)
    return HMMBatch(
        rng.dirichlet(np.full(3, 2.0), shape[:2]),
        rng.normal(size=shape),
        rng.uniform(0.5, 1.5, shape),
    )


# Registration


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_registration_has_the_weights_as_margins(options, covariance_type, make_batch):
    a, b = make_batch(2, [4, 2], 3, covariance_type)
    plan = register_states(a, b, "iaw", metric_params=options)
    assert plan.shape == (4, 2)
    assert plan.min() >= 0
    assert_allclose(plan.sum(axis=1), a.weights[0], atol=1e-13)
    assert_allclose(plan.sum(axis=0), b.weights[0, :2], atol=1e-13)


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.integers(1, 40))
def test_registration_has_the_weights_as_margins_whatever_the_sample(
    seed, size_a, size_b, n_samples
):
    rng = np.random.default_rng(seed)
    sizes = (size_a, size_b)
    models = HMMBatch(
        [rng.dirichlet(np.full(m, 0.5), m) for m in sizes],
        [rng.normal(size=(m, 2)) for m in sizes],
        # Variance 0 now and then: Dirac states and dead channels.
        [rng.uniform(size=(m, 2)) * (rng.random((m, 2)) > 0.2) for m in sizes],
    )
    params = {"n_samples": n_samples}
    plan = register_states(models[0], models[1], "iaw", metric_params=params)
    assert_allclose(plan.sum(axis=1), models.weights[0, :size_a], atol=1e-13)
    assert_allclose(plan.sum(axis=0), models.weights[1, :size_b], atol=1e-13)


def test_registration_before_projection_matches_the_paper(make_batch, monkeypatch):
    monkeypatch.setattr("skawhmm.distances._iaw.project_registrations", lambda *_: None)
    a, b = models = make_batch(2)
    metric = IAW(n_samples=50)
    plan = register_states(a, b, metric)
    points, posteriors = metric.samples(models, 0)
    x, y = linear_sum_assignment(cdist(*points))
    expected = posteriors[0][x].T @ posteriors[1][y] / 50
    assert_allclose(plan, expected, atol=1e-13)
    assert not np.allclose(plan.sum(axis=1), a.weights[0], atol=1e-6)


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("options", OPTIONS[:3])
def test_agrees_with_maw_where_states_do_not_overlap(
    covariance_type, p, options, make_batch
):
    models = separated(make_batch, covariance_type=covariance_type)
    # Equal weights, so that every point of a state has a partner in its own.
    weights = np.full((3, 3), 1 / 3)
    models = HMMBatch(models.transmats, models.means, models.covars, weights=weights)
    if "sampling" in options:
        # Independent samples miss the weights, so that a few points cross over.
        plans = [
            register_states(models[0], models[1], metric)
            for metric in (MAW(p=p), IAW(p=p, sampling="iid", n_samples=400))
        ]
        assert_allclose(*plans, atol=0.05)
        return
    # Entropy lets a few points cross over too.
    tolerance = 0.2 if "coupling" in options else 1e-10
    options = {**options, "n_samples": 96}
    exact = pairwise_hmm_components(models, p=p)
    sampled = pairwise_hmm_components(models, metric="iaw", p=p, metric_params=options)
    for actual, expected in zip(sampled, exact, strict=True):
        assert_allclose(actual, expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("p", [1, 2])
def test_registration_converges_on_a_line(p):
    models = overlapping()

    def plan(n_samples, seed=0):
        params = {"n_samples": n_samples, "random_state": seed}
        return register_states(models[0], models[1], "iaw", p=p, metric_params=params)

    exact = plan(2**16)
    errors = [
        np.mean([np.abs(plan(n, seed) - exact).max() for seed in range(1, 9)])
        for n in (32, 512, 8192)
    ]
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    assert errors[2] < 1e-3


def test_registration_converges_in_the_plane():
    models = overlapping(n_features=2)

    def plan(n_samples, seed, sampling="sobol"):
        params = {"n_samples": n_samples, "random_state": seed, "sampling": sampling}
        return register_states(models[0], models[1], "iaw", metric_params=params)

    exact = np.mean([plan(768, seed) for seed in range(100, 104)], axis=0)
    errors = [
        np.mean([np.abs(plan(n, seed) - exact).max() for seed in range(8)])
        for n in (16, 64, 256)
    ]
    assert errors[0] > 1.5 * errors[1] > 2.25 * errors[2]
    loose = [np.abs(plan(256, seed, "iid") - exact).max() for seed in range(8)]
    assert np.mean(loose) > 1.5 * errors[2]


def test_converged_registration_does_not_depend_on_the_parametrisation():
    # One Gaussian, and the same one as a mixture of two equal halves: the marginal
    # mixtures are equal, so the registration must be the product of the weights.
    halves = [[[0.0], [0.0]], [[0.0], [0.0]]]
    models = HMMBatch(
        [[[0.9, 0.1], [0.1, 0.9]], [[0.3, 0.7], [0.3, 0.7]]],
        halves,
        np.ones((2, 2, 1)),
    )
    plan = register_states(models[0], models[1], "iaw")
    assert_allclose(plan, np.outer(models.weights[0], models.weights[1]), atol=1e-12)


@pytest.mark.parametrize("p", POWERS)
def test_marginal_is_never_below_the_marginal_of_maw(p):
    models = overlapping(5, 2)
    least, _ = pairwise_hmm_components(models, p=p)
    params = {"n_samples": 64}
    actual, _ = pairwise_hmm_components(models, metric="iaw", p=p, metric_params=params)
    assert np.all(actual >= least - 1e-12)
    assert actual.max() > least.max()


# Samples


@pytest.mark.parametrize("sampling", ["sobol", "iid"])
@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_samples_follow_the_marginal_mixture(sampling, covariance_type, make_batch):
    models = make_batch(2, 3, 2, covariance_type)
    points, _ = IAW(n_samples=20000, sampling=sampling).samples(models, 0)
    covars = models.emission.full_covars()
    for n in range(2):
        weights, means = models.weights[n], models.means[n]
        mean = weights @ means
        second = covars[n] + means[:, :, None] * means[:, None, :]
        covar = np.einsum("k,kfg->fg", weights, second) - np.outer(mean, mean)
        scale = np.sqrt(np.trace(covar))
        assert_allclose(points[n].mean(axis=0), mean, atol=0.03 * scale)
        assert_allclose(np.cov(points[n].T), covar, atol=0.05 * scale**2)


def test_random_state_is_what_samples_are_derived_from(make_batch):
    models = make_batch(3)

    def distances(random_state):
        params = {"random_state": random_state, "n_samples": 40}
        return pairwise_hmm_distances(models, metric="iaw", metric_params=params)

    assert_array_equal(distances(3), distances(3))
    assert not np.array_equal(distances(3), distances(4))
    one, two = (distances(np.random.RandomState(1)) for _ in range(2))
    assert_array_equal(one, two)
    assert not np.array_equal(distances(None), distances(None))


def test_samples_of_a_random_state_are_shared_by_all_pairs(make_batch):
    # An instance is asked once: otherwise the matrix would not be of one kind.
    models = make_batch(3)
    rng = np.random.RandomState(0)
    params = {"random_state": rng, "debias": True}
    distances = pairwise_hmm_distances(models, metric="iaw", metric_params=params)
    assert_array_equal(np.diag(distances), np.zeros(3))


# Bias


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("covariance_type", ["diag", "full"])
@pytest.mark.parametrize("options", [{}, {"sampling": "iid"}, {"coupling": "sinkhorn"}])
def test_debiased_distance_to_itself_is_zero(p, covariance_type, options, make_batch):
    models = make_batch(3, [3, 1, 2], 2, covariance_type)
    params = {"n_samples": 32, "debias": True, **options}
    both = pairwise_hmm_components(models, metric="iaw", p=p, metric_params=params)
    for part in both:
        # The entropic coupling of a sample with itself is symmetric in the limit only.
        slack = 0.01 if "coupling" in options else 0
        assert np.diag(part).max() <= slack
        assert part.min() >= 0
        assert part[np.triu_indices(3, 1)].min() > 0


def test_biased_distance_to_itself_is_not_zero(make_batch):
    # By definition: overlapping states are registered with each other.
    a = make_batch(1)
    assert hmm_distance(a, a, "iaw") > 0.01


def test_debiased_marginal_subtracts_the_self_terms():
    models = overlapping(3, 2)
    raw, _ = pairwise_hmm_components(models, metric="iaw", p=2)
    params = {"debias": True}
    less, _ = pairwise_hmm_components(models, metric="iaw", p=2, metric_params=params)
    own = np.diag(raw) ** 2
    expected = raw**2 - (own[:, None] + own) / 2
    assert_allclose(less**2, np.maximum(expected, 0), atol=1e-12)


def test_debiasing_keeps_the_transition_signal():
    slow, fast = [[0.95, 0.05], [0.05, 0.95]], [[0.5, 0.5], [0.5, 0.5]]
    models = HMMBatch([slow, slow, fast], [[[0.0], [1.0]]] * 3, np.ones((3, 2, 1)))
    # The samples of the two slow models are those of one content: they are equal.
    _, transition = pairwise_hmm_components(
        models, metric="iaw", metric_params={"debias": True}
    )
    assert_array_equal(transition[0, :2], [0, 0])
    assert transition[0, 2] > 0.02


# Degenerate states


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
@pytest.mark.parametrize("options", OPTIONS)
def test_singular_covariances_give_numbers(covariance_type, options):
    variances = np.array(
        [
            [[1.0, 0.0], [0.5, 0.0]],
            [[1.0, 1.0], [2.0, 1.0]],
            [[0.0, 0.0], [0.0, 0.0]],
            [[0.0, 0.0], [1.0, 1.0]],
        ]
    )
    covars = variances
    if covariance_type == "full":
        turn = np.array([[0.6, -0.8], [0.8, 0.6]])
        covars = turn @ (variances[..., None] * np.eye(2)) @ turn.T
    models = HMMBatch(
        np.tile([[0.7, 0.3], [0.3, 0.7]], (4, 1, 1)),
        np.tile([[0.0, 0.0], [1.0, 2.0]], (4, 1, 1)),
        covars,
    )
    both = pairwise_hmm_components(models, metric="iaw", metric_params=options)
    assert np.isfinite(both).all()
    assert np.min(both) >= 0
    if not options:
        # States of the third model are points: registered as by transport.
        exact = pairwise_hmm_components(models[2])
        sampled = pairwise_hmm_components(models[2], metric="iaw")
        assert_allclose(sampled, exact, atol=1e-7)


@pytest.mark.filterwarnings("ignore:X was read as 8 sequences")
@pytest.mark.parametrize("options", OPTIONS)
def test_models_of_binary_data_have_finite_distances(options):
    # Channels that are constant in a state leave variances of the size of rounding.
    rng = np.random.default_rng(1)
    X = [(rng.random((6, 8)) < 0.5).astype(float) for _ in range(8)]
    hmm = HMMTransformer(4, emission=Gaussian("full", reg_covar=0), random_state=0)
    models = hmm.fit_transform(X)
    assert np.linalg.matrix_rank(models.covars).min() < 8
    both = pairwise_hmm_components(models, metric="iaw", metric_params=options)
    assert np.isfinite(both).all()


def test_masked_models_are_registered_on_common_features(make_batch):
    models = separated(make_batch)
    means = np.concatenate([models.means, models.means[:, :, :1]], axis=2)
    covars = np.concatenate([models.covars, models.covars[:, :, :1]], axis=2)
    observed = np.array([[True, True, False], [True, False, True], [True, True, True]])
    weights = np.full((3, 3), 1 / 3)
    masked = HMMBatch(
        models.transmats, means, covars, weights=weights, observed=observed
    )
    params = {"n_samples": 96}
    assert_allclose(
        pairwise_hmm_components(masked, metric="iaw", metric_params=params),
        pairwise_hmm_components(masked),
        atol=1e-9,
    )
    params["debias"] = True
    both = pairwise_hmm_components(masked, metric="iaw", metric_params=params)
    assert_array_equal(np.einsum("cnn->cn", both), np.zeros((2, 3)))


# Options


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ({"n_samples": 0}, ValueError, "n_samples must be an integer of at least 1"),
        ({"n_samples": 2.5}, TypeError, "n_samples must be an integer of at least 1"),
        ({"n_samples": True}, TypeError, "n_samples must be an integer"),
        ({"sampling": "halton"}, ValueError, "sampling must be one of 'sobol', 'iid'"),
        ({"coupling": 1}, ValueError, "coupling must be one of 'exact', 'sinkhorn'"),
        ({"random_state": -1}, ValueError, "random_state must be an integer from 0"),
        ({"random_state": "a"}, ValueError, "random_state must be"),
        ({"debias": 1}, TypeError, "debias must be True or False, got 1"),
        ({"n_points": 3}, ValueError, "metric_params of 'iaw' may be"),
        ({"alpha": 0.3}, ValueError, "metric_params of 'iaw' may be"),
        (["n_samples"], TypeError, "metric_params must be a dict or None, got list"),
    ],
)
def test_bad_options(params, error, words, make_batch):
    with pytest.raises(error, match=words):
        pairwise_hmm_distances(make_batch(2), metric="iaw", metric_params=params)


def test_metric_params_with_an_object_are_rejected(make_batch):
    with pytest.raises(
        ValueError, match=r"metric_params must be None with metric=IAW\(\)"
    ):
        pairwise_hmm_distances(make_batch(2), metric=IAW(), metric_params={"p": 2})


def test_object_and_name_give_the_same(make_batch):
    models = make_batch(3)
    options = {"n_samples": 30, "sampling": "iid", "debias": True, "random_state": 5}
    assert_array_equal(
        pairwise_hmm_distances(
            models, metric="iaw", alpha=0.4, p=2, metric_params=options
        ),
        pairwise_hmm_distances(models, metric=IAW(0.4, 2, **options)),
    )
