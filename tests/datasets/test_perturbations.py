import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import fractional_matrix_power

from skawhmm.datasets import (
    make_model_sequences,
    make_seed_models,
    make_table1_models,
)

FAMILIES = ["means", "covariances", "transitions"]


def example_models():
    return {
        "transmats": np.array([[[0.9, 0.1], [0.3, 0.7]]]),
        "means": np.array([[[0.0, 0.0], [100.0, 50.0]]]),
        "covars": np.array([[[[2.0, 1.0], [1.0, 3.0]], [[1.0, 0.0], [0.0, 4.0]]]]),
    }


def test_long_sequences_recover_the_model():
    models = example_models()
    (x,), _ = make_model_sequences(models, 1, n_timesteps=60_000, random_state=0)
    states = (x[:, 0] > 50).astype(int)
    counts = np.zeros((2, 2))
    np.add.at(counts, (states[:-1], states[1:]), 1)
    transmat = counts / counts.sum(axis=1, keepdims=True)
    assert_allclose(transmat, models["transmats"][0], atol=0.01)
    for k in range(2):
        assert_allclose(x[states == k].mean(axis=0), models["means"][0, k], atol=0.05)
        assert_allclose(np.cov(x[states == k].T), models["covars"][0, k], atol=0.15)


def test_first_state_has_the_stationary_distribution():
    X, _ = make_model_sequences(example_models(), 4000, n_timesteps=1, random_state=0)
    assert_allclose(np.mean([x[0, 0] > 50 for x in X]), 0.25, atol=0.02)


def test_diagonal_covariances_are_read_as_variances():
    diagonal = {
        "transmats": np.ones((1, 1, 1)),
        "means": np.zeros((1, 1, 2)),
        "covars": np.array([[[4.0, 0.0]]]),
    }
    full = diagonal | {"covars": np.array([[[[4.0, 0.0], [0.0, 0.0]]]])}
    (x,), _ = make_model_sequences(diagonal, 1, n_timesteps=5000, random_state=0)
    (z,), _ = make_model_sequences(full, 1, n_timesteps=5000, random_state=0)
    assert_allclose(x.std(axis=0), [2, 0], atol=0.06)
    assert_allclose(z.std(axis=0), [2, 0], atol=0.06)


def test_sequences_follow_the_order_of_the_models():
    models = make_table1_models("means", step=100.0)
    X, y = make_model_sequences(models, 3, n_timesteps=4, random_state=0)
    assert_array_equal(y, np.repeat(np.arange(5), 3))
    assert_array_equal([int(x.mean() // 100) for x in X], y + 1)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("means", np.zeros((2, 2)), r"models\['means'\] must have shape"),
        ("transmats", np.ones((1, 3, 3)) / 3, r"models\['transmats'\] must have shape"),
        ("covars", np.ones((1, 2, 3)), r"models\['covars'\] must have shape"),
        ("transmats", np.ones((1, 2, 2)), "transmats must sum to one"),
        ("covars", -np.ones((1, 2, 2)), "covars must not be negative"),
        ("covars", [[[[1.0, 2], [2, 1]]] * 2], "covars must be"),
        ("covars", [[[[1.0, 0.5], [0, 1]]] * 2], "covars must be"),
        ("means", np.full((1, 2, 2), np.nan), "means must be finite"),
    ],
)
def test_malformed_models_are_named(name, value, message):
    with pytest.raises(ValueError, match=message):
        make_model_sequences(example_models() | {name: value})


def test_table1_means_match_the_paper():
    models = make_table1_models("means", step=0.4)
    expected = [[[2 + i * 0.4] * 2, [5 + i * 0.4] * 2] for i in range(1, 6)]
    assert_allclose(models.means, expected)
    assert_allclose(models.covars, np.tile(np.eye(2), (5, 2, 1, 1)))
    assert_allclose(models.transmats, np.tile([[0.8, 0.2], [0.2, 0.8]], (5, 1, 1)))


def test_table1_covariances_are_powers_of_one_matrix():
    models = make_table1_models("covariances", step=0.6, random_state=0)
    first = models.covars[0, 0] / 0.2
    for i in range(5):
        power = 0.2 * np.linalg.matrix_power(first, i + 1)
        assert_allclose(models.covars[i], [power, power])
    assert_allclose(first, first.T)
    # A third of the step gives the cube root, since the random matrix is the same.
    third = make_table1_models("covariances", step=0.2, random_state=0)
    assert_allclose(third.covars[0, 0], 0.2 * fractional_matrix_power(first, 1 / 3))


def test_table1_transitions_move_away_from_the_common_matrix_with_the_step():
    base = np.array([[0.8, 0.2], [0.2, 0.8]])
    small = make_table1_models("transitions", step=0.2, random_state=0).transmats
    large = make_table1_models("transitions", step=0.6, random_state=0).transmats
    assert_allclose(large.sum(axis=-1), 1)
    assert_allclose(large - base, 3 * (small - base))
    many = make_table1_models("transitions", 1, n_models=4000, random_state=0).transmats
    assert_allclose(many.mean(axis=0), base, atol=0.01)
    # The beta distribution with parameters 8 and 2 has variance .16 / 11.
    assert_allclose(many.var(axis=0), 0.16 / 11, rtol=0.1)


@pytest.mark.parametrize("differ_in", FAMILIES)
@pytest.mark.parametrize("size", [(3, 3), (5, 8), (8, 5)])
def test_seed_models_are_valid_and_differ_in_one_parameter(differ_in, size):
    n_components, n_features = size
    models = make_seed_models(
        differ_in,
        scale=0.5,
        n_components=n_components,
        n_features=n_features,
        random_state=0,
    )
    parts = {
        "means": models.means,
        "covariances": models.covars,
        "transitions": models.transmats,
    }
    for name, part in parts.items():
        assert np.all(part == part[:1]) == (name != differ_in)
    assert models.transmats.shape == (6, n_components, n_components)
    assert models.means.shape == (6, n_components, n_features)
    assert_allclose(models.transmats.sum(axis=-1), 1)
    assert np.all(np.linalg.eigvalsh(models.covars) > 0)


@pytest.mark.parametrize("differ_in", FAMILIES)
def test_seed_models_are_equal_at_scale_zero(differ_in):
    models = make_seed_models(differ_in, scale=0.0, random_state=0)
    for part in models.values():
        assert_allclose(part, np.broadcast_to(part[0], part.shape))


def test_scale_of_means_is_a_variance():
    models = make_seed_models("means", 0.3, n_models=4000, random_state=0)
    assert_allclose(models.means.var(axis=0), 0.3, rtol=0.1)


def test_covariance_factors_are_positive_with_variance_a_tenth():
    models = make_seed_models("means", n_components=4000, n_features=1, n_models=1)
    factors = models.covars.ravel()
    assert np.all(factors > 0)
    assert_allclose(factors.mean(), 1, atol=0.03)
    assert_allclose(factors.var(), 0.1, rtol=0.15)


def test_seed_covariances_mix_the_identity_and_a_wishart_matrix():
    models = make_seed_models("covariances", 0.4, n_models=4000, random_state=0)
    # Within a model the states' covariances are multiples of one matrix.
    ratios = models.covars / models.covars[:, :1]
    assert_allclose(ratios, ratios[:1, :, :1, :1] * np.ones_like(ratios))
    scaled = models.covars.mean(axis=0)
    expected = 0.6 + 0.4 * 10
    assert_allclose(
        scaled / scaled[:, :1, :1], np.tile(np.eye(3), (3, 1, 1)), atol=0.05
    )
    same = make_seed_models("covariances", 0.0, n_models=1, random_state=0)
    assert_allclose(scaled[:, 0, 0] / same.covars[0, :, 0, 0], expected, rtol=0.05)


def test_seed_transitions_move_away_from_the_common_matrix_with_the_scale():
    models = make_seed_models("transitions", 0.25, n_models=4000, random_state=0)
    base = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    assert_allclose(models.transmats.mean(axis=0), 0.75 * base + 0.25 / 3, atol=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_seed_models("means", -1.0), "scale must be a number in"),
        (lambda: make_seed_models("transitions", 1.5), r"scale must be .*\[0, 1\]"),
        (lambda: make_seed_models("covariances", n_features=11), "n_features must be"),
        (lambda: make_seed_models("mu"), "differ_in must be one of"),
        (lambda: make_table1_models("transitions", 1.1), "step must be a number in"),
        (lambda: make_table1_models("mu"), "differ_in must be one of"),
        (lambda: make_table1_models([]), "differ_in must be one of"),
        (lambda: make_table1_models("means", 10**400), "step must be a number in"),
        (
            lambda: make_table1_models("means", 1e200),
            "step must be smaller, got 1e.200",
        ),
        (lambda: make_table1_models("covariances", 1e3), "step must be smaller"),
        (lambda: make_seed_models("means", 1e300), "scale must be smaller"),
    ],
)
def test_wrong_families_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_arrays_that_are_missing_or_too_large_for_floats_are_named():
    with pytest.raises(ValueError, match=r"without \['covars'\]"):
        make_model_sequences({"transmats": np.eye(2)[None], "means": np.eye(2)[None]})
    models = example_models() | {"means": [[[10**400, 1], [1, 1]]]}
    with pytest.raises(ValueError, match=r"models\['means'\] must be an array of num"):
        make_model_sequences(models)
