import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import (
    MAW,
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    register_states,
)
from skawhmm.distances._resolve import METRICS, resolve_metric


class MeanGap:
    """A distance of a user: how far the overall means are apart."""

    symmetric = True

    def prepare(self, models):
        return np.einsum("nm,nmd->nd", models.weights, models.means)

    def distances(self, prepared, index_a, index_b):
        return np.linalg.norm(prepared[index_a] - prepared[index_b], axis=1)


class Drift(MeanGap):
    """One that depends on the order."""

    symmetric = False

    def distances(self, prepared, index_a, index_b):
        return (prepared[index_b] - prepared[index_a])[:, 0]


def test_name_becomes_an_object():
    metric = resolve_metric("maw", alpha=0.3, p=2)
    assert isinstance(metric, MAW)
    assert (metric.alpha, metric.p) == (0.3, 2)


@pytest.mark.parametrize("name", sorted(METRICS))
def test_every_metric_follows_the_protocol(name, make_batch):
    metric = resolve_metric(name)
    models = make_batch(3)
    prepared = metric.prepare(models)
    values = metric.distances(prepared, np.array([0, 1, 2]), np.array([1, 1, 0]))
    assert values.shape == (3,)
    assert metric.symmetric in {True, False}


def test_an_object_stays_unchanged():
    metric = MeanGap()
    assert resolve_metric(metric) is metric


@pytest.mark.parametrize(
    ("metric", "names"),
    [
        (MAW(0.3), ["alpha", "p", "metric_params"]),
        (MeanGap(), ["alpha", "p", "metric_params"]),
        ("kl", ["alpha", "p"]),
        ("mmd", ["alpha", "p"]),
        ("coupling", ["alpha"]),
    ],
    ids=["object", "user's", "kl", "mmd", "coupling"],
)
def test_parameters_that_a_distance_does_not_have_are_rejected(metric, names):
    values = {"alpha": 0.1, "p": 1, "metric_params": {"steps": "joint"}}
    for name in names:
        with pytest.raises(ValueError, match=f"^{name} must be None with metric="):
            resolve_metric(metric, **{name: values[name]})


def test_implied_values_replace_defaults_only():
    implied = {"alpha": 0, "p": 2}
    assert resolve_metric("maw", implied=implied) == MAW(0, 2)
    assert resolve_metric("maw", p=1.5, implied=implied) == MAW(0, 1.5)
    assert resolve_metric(MAW(), implied=implied) == MAW()
    assert resolve_metric("kl", implied=implied) == resolve_metric("kl")


def test_a_distance_of_the_user(make_batch):
    models = make_batch(30, n_features=3)
    overall = (models.weights[..., None] * models.means).sum(axis=1)
    expected = np.linalg.norm(overall[:, None] - overall, axis=2)
    assert_allclose(pairwise_hmm_distances(models, metric=MeanGap()), expected)
    assert_allclose(hmm_distance(models[0], models[1], MeanGap()), expected[0, 1])


def test_a_distance_that_depends_on_the_order(make_batch):
    models = make_batch(30)
    distances = pairwise_hmm_distances(models, metric=Drift())
    assert_array_equal(distances, -distances.T)
    assert np.abs(distances).max() > 0
    other = make_batch(7, seed=1)
    forth = pairwise_hmm_distances(models, other, Drift())
    back = pairwise_hmm_distances(other, models, Drift())
    assert_array_equal(forth, -back.T)


@pytest.mark.parametrize(
    ("metric", "error", "words"),
    [
        ("far", ValueError, r"metric must be one of 'maw'.*got 'far'\.$"),
        ("mawx", ValueError, r"got 'mawx'\. Did you mean 'maw'\?"),
        ("MAW", ValueError, r"got 'MAW'\. Did you mean 'maw'\?"),
        (None, TypeError, "metric must be one of 'maw'.*got None"),
        (MAW, TypeError, "metric must be one of 'maw'.*got <class"),
        (max, TypeError, "symmetric, prepare and distances"),
    ],
)
def test_unknown_metric(metric, error, words, make_batch):
    with pytest.raises(error, match=words):
        pairwise_hmm_distances(make_batch(), metric=metric)


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, np.inf])
def test_alpha_out_of_range(value, make_batch):
    with pytest.raises(ValueError, match=r"alpha must be a number in \[0, 1\], got"):
        pairwise_hmm_distances(make_batch(), alpha=value)
    with pytest.raises(ValueError, match=r"alpha must be a number in \[0, 1\], got"):
        MAW(alpha=value)


@pytest.mark.parametrize("value", [0, -1, 2.5, np.nan, np.inf])
def test_p_out_of_range(value, make_batch):
    a, b = make_batch()[0], make_batch()[1]
    words = r"p must be a number in \(0, 2\], got"
    for call in (pairwise_hmm_distances, pairwise_hmm_components):
        with pytest.raises(ValueError, match=words):
            call(make_batch(), p=value)
    for call in (hmm_distance, register_states):
        with pytest.raises(ValueError, match=words):
            call(a, b, p=value)


@pytest.mark.parametrize("value", ["1", None, [1], True, 1j])
def test_numbers_of_a_wrong_type(value):
    with pytest.raises(TypeError, match="alpha must be a number"):
        MAW(alpha=value)
    with pytest.raises(TypeError, match="p must be a number"):
        MAW(p=value)


def test_numpy_numbers_are_numbers(make_batch):
    models = make_batch()
    expected = pairwise_hmm_distances(models, alpha=0.5, p=2)
    actual = pairwise_hmm_distances(models, alpha=np.float32(0.5), p=np.int64(2))
    assert_array_equal(actual, expected)


def test_metric_params_that_do_not_exist(make_batch):
    for params in ({"beta": 1}, {"alpha": 0.2}):
        with pytest.raises(
            ValueError,
            match=r"of 'maw' may be \['registration', 'rows', 'steps'\], got",
        ):
            pairwise_hmm_distances(make_batch(), metric_params=params)


def test_components_of_a_distance_without_any(make_batch):
    models = make_batch()
    with pytest.raises(TypeError, match="marginal and a transition component"):
        pairwise_hmm_components(models, metric=MeanGap())
    with pytest.raises(TypeError, match=r"register states, got .* no registrations"):
        register_states(models[0], models[1], MeanGap())


@pytest.mark.parametrize("p", [0.5, 1, 2])
@pytest.mark.parametrize("alpha", [0, 0.1, 0.5, 1])
def test_distance_is_linear_in_alpha(alpha, p, make_batch):
    models = make_batch(5, covariance_type="full")
    marginal, transition = pairwise_hmm_components(models, p=p)
    distances = pairwise_hmm_distances(models, alpha=alpha, p=p)
    assert_array_equal(distances, (1 - alpha) * marginal + alpha * transition)


def test_arguments_override_nothing_in_an_object(make_batch):
    models = make_batch()
    metric = MAW(alpha=0.7, p=2)
    expected = pairwise_hmm_distances(models, alpha=0.7, p=2)
    assert_array_equal(pairwise_hmm_distances(models, metric=metric), expected)


@pytest.mark.parametrize(("name", "alpha"), [("maw", 0.1), ("iaw", 0.1), ("jaw", 0.5)])
def test_each_distance_has_its_own_alpha(name, alpha, make_batch):
    assert resolve_metric(name, alpha=None, p=1).alpha == alpha
    assert resolve_metric(name, alpha=0.3, p=1).alpha == 0.3
    models = make_batch(4)
    assert_array_equal(
        pairwise_hmm_distances(models, metric=name),
        pairwise_hmm_distances(models, metric=name, alpha=alpha),
    )


@pytest.mark.parametrize("name", ["kl", "coupling"])
def test_distances_without_components_take_no_alpha(name):
    assert not hasattr(resolve_metric(name), "alpha")


@pytest.mark.parametrize("name", ["maw", "iaw", "jaw"])
@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"steps": "both"}, "steps must be one of 'independent', 'joint'.*got 'both'"),
        ({"steps": None}, "steps must be one of 'independent', 'joint'.*got None"),
        ({"rows": "l2"}, "rows must be one of 'transport', 'hellinger'.*got 'l2'"),
    ],
)
def test_unknown_steps_and_rows(name, params, words, make_batch):
    with pytest.raises(ValueError, match=words):
        pairwise_hmm_distances(make_batch(), metric=name, metric_params=params)
