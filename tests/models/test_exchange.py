"""Models given as dictionaries and named tuples of arrays."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm import HMMBatch


class Emissions(NamedTuple):
    means: np.ndarray
    covs: np.ndarray


class Params(NamedTuple):
    initial: dict
    transitions: dict
    emissions: Emissions


def dynamax_like(models, n):
    """Return a model in the nested tuples in which dynamax keeps it."""
    return Params(
        {"probs": models.startprobs[n]},
        {"transition_matrix": models.transmats[n]},
        Emissions(models.means[n], models.covars[n]),
    )


def test_models_from_plain_arrays(make_batch):
    models = make_batch(3, covariance_type="full")
    info = {"subject": ["ann", "bob", "cat"]}
    wanted = make_batch(3, covariance_type="full", info=info)
    nested = [dynamax_like(models, n) for n in range(3)]
    assert HMMBatch.from_arrays(nested, info=info) == wanted
    assert HMMBatch.from_arrays(nested[1]) == models[1]
    stacked = {
        "transmat_": models.transmats,
        "startprob_": models.startprobs,
        "means_": models.means,
        "covars_": models.covars,
    }
    assert HMMBatch.from_arrays(stacked) == models
    given = HMMBatch.from_arrays(stacked, weights=np.full((3, 3), 1 / 3))
    assert_allclose(given.weights, 1 / 3)
    flat = {"initial_probs": [1.0], "transition_matrix": [[1.0]], "means": [[2.0]]}
    scales = HMMBatch.from_arrays({**flat, "scale_diags": [[3.0]]})
    assert scales.covars[0, 0, 0] == 9.0


def test_other_families_from_plain_arrays():
    chain = [[[0.9, 0.1], [0.1, 0.9]]]
    rates = {"transmats": chain, "rates": [[[1.0], [4.0]]]}
    assert HMMBatch.from_arrays(rates) == HMMBatch.from_rates(chain, rates["rates"])
    probs = {"transmats": chain, "emissions": {"probs": [[[1.0, 0.0], [0.5, 0.5]]]}}
    ours = HMMBatch.from_arrays({**probs, "symbols": "ab"})
    assert ours == HMMBatch.from_emissionprobs(
        chain, probs["emissions"]["probs"], symbols="ab"
    )


@pytest.mark.parametrize(
    ("models", "error", "words"),
    [
        ({"transmats": [[[1.0]]]}, ValueError, "parameters of states"),
        ({"means": [[[1.0]]]}, ValueError, "must hold transmats"),
        ({"transmats": [[[1.0]]], "colour": 1}, ValueError, "known names.*'colour'"),
        (
            {"transmats": [[1.0]], "rates": [[1.0]], "means": [[1.0]]},
            ValueError,
            r"one kind of states, got \['rates'\] and \['means'\]",
        ),
        ([], ValueError, "at least one model"),
        ([3], TypeError, r"models\[0\] must hold arrays by name, got int"),
        (
            [{"transmats": [[1.0]]}, {"transmats": [[1.0]], "rates": [[1.0]]}],
            ValueError,
            "in model 0 and .* in model 1",
        ),
    ],
)
def test_errors_of_plain_arrays(models, error, words):
    with pytest.raises(error, match=words):
        HMMBatch.from_arrays(models)


@pytest.mark.parametrize("models", [3, None, "models"])
def test_mappings_of_arrays_are_named(models):
    with pytest.raises(TypeError, match=r"^models must be a mapping"):
        HMMBatch.from_arrays(models)


@pytest.mark.parametrize(
    "form",
    [
        {"covars": [[[4.0, 1.0], [1.0, 2.0]]] * 2},
        {"emissions": {"cov": [[4.0, 1.0], [1.0, 2.0]]}},
        {"precisions": np.linalg.inv([[[4.0, 1.0], [1.0, 2.0]]] * 2)},
        {"cholesky": np.linalg.cholesky([[[4.0, 1.0], [1.0, 2.0]]] * 2)},
        {
            "cov_diag_factors": [[3.0, 1.0]] * 2,
            "cov_low_rank_factors": [[[1.0], [1.0]]] * 2,
        },
    ],
)
def test_forms_of_matrices(form):
    given = {"transmat": np.eye(2), "means": np.zeros((2, 2)), "startprob": [0.5, 0.5]}
    ours = HMMBatch.from_arrays({**given, **form})
    assert_allclose(ours.covars[0], [[[4.0, 1.0], [1.0, 2.0]]] * 2)


@pytest.mark.parametrize(
    "form",
    [
        {"covars": [[9.0, 9.0], [4.0, 4.0]]},
        {"emissions": {"scales": [3.0, 2.0]}},
        {"scale_diags": [[3.0, 3.0], [2.0, 2.0]]},
        {"precisions": [[1 / 9, 1 / 9], [0.25, 0.25]]},
    ],
)
def test_forms_of_variances(form):
    given = {"transmat": np.eye(2), "means": np.zeros((2, 2)), "startprob": [0.5, 0.5]}
    ours = HMMBatch.from_arrays({**given, **form})
    assert_allclose(ours.covars[0], [[9.0, 9.0], [4.0, 4.0]])


def test_mixtures_become_states_worked_by_hand():
    given = {
        "initial": {"probs": [0.5, 0.5]},
        "transitions": {"transition_matrix": [[0.9, 0.1], [0.2, 0.8]]},
        "emissions": {
            "weights": [[0.25, 0.75], [1.0, 0.0]],
            "means": [[[0.0], [1.0]], [[2.0], [3.0]]],
            "scale_diags": [[[1.0], [2.0]], [[3.0], [4.0]]],
        },
    }
    ours = HMMBatch.from_arrays(given)
    row = [0.9 * 0.25, 0.9 * 0.75, 0.1, 0.0]
    assert_allclose(ours.transmats[0][:2], [row, row])
    assert_allclose(ours.startprobs[0], [0.125, 0.375, 0.5, 0.0])
    assert_allclose(ours.means[0], [[0.0], [1.0], [2.0], [3.0]])
    assert_allclose(ours.covars[0], [[1.0], [4.0], [9.0], [16.0]])


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"scale_diags": [[1.0]], "cov": [[1.0]]}, "covariances in one form"),
        ({"scale_diags": [[1.0]], "covars": [[1.0]]}, "covariances in one form"),
        ({"cov_diag_factors": [[1.0]]}, "covariances in one form"),
        ({"precisions": [[[0.0]]]}, "precisions.* that fit the means"),
        ({"cov": [[1.0, 0.0]] * 3}, "cov.* that fit the means"),
        ({"weights_": [[0.5, 0.5]], "covars": [[1.0]]}, "means of shape .*n_mix"),
    ],
)
def test_errors_of_forms(form, words):
    given = {"transmat": [[1.0]], "means": [[0.0]]}
    with pytest.raises(ValueError, match=rf"^models\[0\] must hold .*{words}"):
        HMMBatch.from_arrays([{**given, **form}])


def test_models_with_other_symbols_are_not_mixed():
    given = {"transmats": [[1.0]], "emissionprobs": [[0.5, 0.5]]}
    pair = [{**given, "symbols": "ab"}, {**given, "symbols": "cd"}]
    with pytest.raises(ValueError, match="same symbols, got others in model 1"):
        HMMBatch.from_arrays(pair)
