import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMBatch
from skawhmm.datasets import make_hmm_sequences, make_model_sequences

FAMILIES = ["means", "covariances", "transitions"]


def lagged_products(X):
    return np.mean([x[1:].T @ x[:-1] / (len(x) - 1) for x in X], axis=0)


@pytest.mark.parametrize("differ_in", FAMILIES)
def test_sequences_have_the_requested_shapes(differ_in):
    X, y = make_hmm_sequences(
        7, n_classes=3, n_features=4, n_timesteps=(5, 9), differ_in=differ_in
    )
    assert_array_equal(y, [0, 1, 2, 0, 1, 2, 0])
    assert all(x.dtype == np.float64 and x.shape[1] == 4 for x in X)
    assert all(5 <= len(x) <= 9 for x in X)


@pytest.mark.parametrize("n_features", [1, 2])
@pytest.mark.parametrize("n_components", [1, 2, 6])
def test_small_models(n_features, n_components):
    X, _ = make_hmm_sequences(
        4, n_components=n_components, n_features=n_features, n_timesteps=3
    )
    assert [x.shape for x in X] == [(3, n_features)] * 4


@pytest.mark.parametrize("differ_in", FAMILIES)
def test_a_sequence_does_not_depend_on_how_many_are_drawn(differ_in):
    few, _ = make_hmm_sequences(5, differ_in=differ_in, random_state=3)
    many, _ = make_hmm_sequences(50, differ_in=differ_in, random_state=3)
    for a, b in zip(few, many, strict=False):
        assert_array_equal(a, b)


@pytest.mark.parametrize(
    "make_state",
    [lambda: 5, lambda: np.random.RandomState(5), lambda: np.random.default_rng(5)],
)
def test_equal_states_give_equal_sequences(make_state):
    first, _ = make_hmm_sequences(3, random_state=make_state())
    again, _ = make_hmm_sequences(3, random_state=make_state())
    other, _ = make_hmm_sequences(3, random_state=6)
    for a, b, c in zip(first, again, other, strict=True):
        assert_array_equal(a, b)
        assert a.shape != c.shape or np.all(a != c)


def test_sequences_of_one_call_are_independent():
    X, _ = make_hmm_sequences(
        200, n_classes=1, n_components=1, n_timesteps=50, random_state=0
    )
    values = np.stack(X)[..., 0]
    correlations = np.corrcoef(values)[np.triu_indices(200, 1)]
    # Independent series of 50 samples have correlations of variance 1 / 49.
    assert_allclose(np.mean(correlations**2), 1 / 49, rtol=0.1)


def test_classes_are_equal_without_separation():
    drawn = [
        make_hmm_sequences(6, differ_in=differ_in, separation=0.0, random_state=1)[0]
        for differ_in in FAMILIES
    ]
    for a, b, c in zip(*drawn, strict=True):
        assert_allclose(a, b)
        assert_allclose(a, c)


def test_transition_classes_differ_only_in_order():
    X, y = make_hmm_sequences(
        200, differ_in="transitions", n_timesteps=500, random_state=0
    )
    groups = [[x for x, label in zip(X, y, strict=True) if label == k] for k in (0, 1)]
    means = [np.concatenate(group).mean(axis=0) for group in groups]
    covars = [np.cov(np.concatenate(group).T) for group in groups]
    assert_allclose(means[0], means[1], atol=0.1)
    assert_allclose(covars[0], covars[1], atol=0.25)
    products = [lagged_products(group) for group in groups]
    assert np.abs(products[0] - products[1]).min() > 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_sequences": 0}, "n_sequences must be an integer of at least 1, got 0"),
        ({"differ_in": "mean"}, "differ_in must be one of"),
        ({"separation": -1.0}, "separation must be a number in"),
        ({"separation": np.nan}, "separation must be a number in"),
        ({"n_timesteps": (9, 5)}, r"n_timesteps must satisfy .*\(9, 5\)"),
        ({"n_timesteps": 0}, "n_timesteps must satisfy"),
        ({"n_timesteps": 10**400}, "n_timesteps must satisfy .* got 1000"),
        ({"n_sequences": 10**400}, r"n_sequences must be .* below 2\*\*63, got 1000"),
        ({"separation": 10**400}, "separation must be a number in .* got 1000"),
        ({"separation": 1e200}, "separation must be smaller, got 1e.200"),
        ({"differ_in": "covariances", "separation": 1e4}, "separation must be smaller"),
        ({"random_state": "a"}, "random_state must be"),
        ({"random_state": True}, "random_state must be .* got True"),
        ({"n_components": 1, "differ_in": "transitions"}, "n_components must be"),
    ],
)
def test_wrong_values_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_hmm_sequences(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [{"n_classes": 2.0}, {"separation": "1"}, {"n_timesteps": 5.5}],
)
def test_wrong_types_are_named(arguments):
    (name,) = arguments
    with pytest.raises(TypeError, match=f"{name} must be"):
        make_hmm_sequences(**arguments)


def test_chains_with_several_closed_classes_start_as_their_models_say():
    transmats = np.array([[[1, 0, 0], [0, 1, 0], [0.7, 0.2, 0.1]]])
    means, covars = np.array([[[0.0], [10.0], [20.0]]]), np.full((1, 3, 1), 1e-6)
    arrays = {"transmats": transmats, "means": means, "covars": covars}
    X, _ = make_model_sequences(arrays, 4000, n_timesteps=1, random_state=0)
    found = np.bincount(np.round(np.ravel(X) / 10).astype(int), minlength=3) / 4000
    wanted = HMMBatch(**arrays, startprobs=np.full((1, 3), 1 / 3)).weights[0]
    # Five standard deviations of a fraction.
    assert np.abs(found - wanted).max() < 5 * np.sqrt(0.25 / 4000)
    assert wanted[0] > 0.55
