"""Models as JSON: exact round trips, files of other programs, and damage."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skawhmm import HMMBatch, HMMTransformer, as_models

DATA = Path(__file__).parent / "data"
CHAIN = [[0.9, 0.1], [0.2, 0.8]]


@given(st.integers(0, 2**32 - 1), st.sampled_from(["diag", "full"]))
def test_round_trips_keep_every_bit(seed, covariance_type):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=3)
    shape = (2,) if covariance_type == "diag" else (2, 2)
    scales = [rng.exponential(size=(size, 1, 1)[: 1 + len(shape)]) for size in sizes]
    models = HMMBatch(
        [rng.dirichlet(np.ones(size), size=size) for size in sizes],
        [rng.normal(size=(size, 2)) for size in sizes],
        [scale * (np.ones(2) if len(shape) == 1 else np.eye(2)) for scale in scales],
        startprobs=[rng.dirichlet(np.ones(size)) for size in sizes],
        info={"x": rng.normal(size=3), "n": [1, 2, 3], "name": ["a", "ä", "c"]},
        feature_names=["x", "y"],
    )
    back = as_models(models.to_json())
    assert back == models
    assert_array_equal(back.keys, models.keys)
    assert back.feature_names == models.feature_names


def test_symbols_counts_and_masks_are_kept():
    symbols = HMMBatch.from_emissionprobs(
        [CHAIN, [[1.0]]],
        [[[0.5, 0.5], [1.0, 0.0]], [[0.3, 0.7]]],
        symbols=["no", "yes"],
        symbol_costs=[[0, 2], [2, 0]],
    )
    rates = HMMBatch.from_rates([CHAIN], [[[1.0, 2.0], [0.0, 3.5]]])
    masked = HMMBatch(
        [CHAIN], np.ones((1, 2, 2)), np.ones((1, 2, 2)), observed=[[True, False]]
    )
    for models in (symbols, rates, masked):
        assert as_models(models.to_json()) == models
    assert as_models(masked.to_json()).observed.tolist() == [[True, False]]


def test_fitted_models_keep_their_counts(make_sequences):
    X, _ = make_sequences(3)
    models = HMMTransformer(2, random_state=0).fit_transform(X)
    back = as_models(models.to_json())
    assert json.loads(models.to_json())["version"] == 2
    assert back == models
    assert_array_equal(back.counts.states, models.counts.states)
    assert_array_equal(back.counts.transitions, models.counts.transitions)


def test_missing_numbers_of_info_are_null():
    models = HMMBatch([[[1.0]]] * 2, [[[0.0]]] * 2, [[[1.0]]] * 2)
    chain = {"transmats": [[1.0]], "means": [[0.0]], "covars": [[1.0]]}
    given_info = HMMBatch(
        **{k: [v] * 2 for k, v in chain.items()}, info={"a": [1.5, np.nan]}
    )
    content = json.loads(given_info.to_json())
    assert content["info"] == {"a": [1.5, None]}
    assert as_models(given_info.to_json()) == given_info != models
    endless = HMMBatch(**{k: [v] for k, v in chain.items()}, info={"a": [np.inf]})
    with pytest.raises(ValueError, match=r"info\['a'\] must be finite.*got inf"):
        endless.to_json()
    dates = HMMBatch(
        **{k: [v] for k, v in chain.items()}, info={"a": np.array(["2020"], "M8[Y]")}
    )
    with pytest.raises(TypeError, match=r"info\['a'\] must hold numbers"):
        dates.to_json()


@pytest.mark.parametrize("program", ["r", "julia"])
def test_files_of_other_programs_are_read(program):
    """The text is what the lines on the page of the model file write."""
    ours = as_models(DATA / f"{program}.json")
    expected = HMMBatch(
        [CHAIN, [[1.0]]],
        [[[0.0], [3.0]], [[1.0]]],
        [[[1.0], [0.5]], [[0.25]]],
        startprobs=[[0.5, 0.5], [1.0]],
        info={"subject": ["ann", "bob"]},
    )
    assert ours == expected


def test_plain_dictionaries_are_read_as_json():
    params = {"transmat": CHAIN, "lambdas_": [[1.0], [2.0]], "startprob": [0.5, 0.5]}
    expected = HMMBatch.from_rates([CHAIN], [[[1.0], [2.0]]], startprobs=[[0.5, 0.5]])
    assert as_models(json.dumps(params)) == expected
    assert len(as_models(json.dumps([params, params]))) == 2


def changed(**changes):
    content = json.loads(
        HMMBatch.from_rates([CHAIN] * 2, [[[1.0], [2.0]]] * 2).to_json()
    )
    content.update(changes)
    return {name: value for name, value in content.items() if value is not None}


def with_entry(**changes):
    content = changed()
    content["models"][1].update(changes)
    return content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (changed(kind="other"), "must hold a skawhmm.HMMBatch, got a other"),
        (changed(version=9), "has version 9 .* reads up to version 2"),
        (changed(version="1"), "an integer from 1, got '1'"),
        (changed(version=None), "an integer from 1, got 'None'"),
        (changed(emission="weibull"), r"known kind, one of .*, got 'weibull'"),
        (changed(emission=["poisson"]), "known kind"),
        (changed(models=None), r"must hold \['models'\]"),
        (changed(models=[]), "list of models that is not empty"),
        (changed(models=[3]), r"models\[0\] of .* arrays by name, got int"),
        (changed(colour=1), r"got \['colour'"),
        (changed(feature_names="abc"), "list of feature_names"),
        (changed(info=[1]), "info columns by name"),
        (changed(info={"a": 1}), r"info\['a'\] of .* must be a list"),
        (changed(info={"a": [1]}), r"info\['a'\] must hold one"),
        (with_entry(colour=[1]), r"models\[1\] of .* got \['colour'"),
        (with_entry(rates=[["1"], ["2"]]), r"rates of models\[1\] of .*strings"),
        (with_entry(rates=[[1.0], [2.0, 3.0]]), r"rates of models\[1\]"),
        (with_entry(rates=[[None], [2.0]]), r"rates"),
        (
            with_entry(rates=[[1e999], [2.0]]),
            "rates must be finite, got inf in model 1",
        ),
        (with_entry(rates=[[10**400], [2.0]]), r"rates of models\[1\]"),
        (with_entry(rates=[[-1.0], [2.0]]), "rates must not be negative.*model 1"),
        (
            with_entry(transmats=[[0.9, 0.2], [0.2, 0.8]]),
            r"transmats must sum to one, got 1\.1.* in model 1, state 0",
        ),
        (with_entry(transmats=[[1.0]]), "rates of model 1 must have shape"),
        (with_entry(transmats={"a": 1}), r"transmats of models\[1\]"),
        (with_entry(**{"counts.states": [1.0, 2.0]}), "as all models or none"),
        (with_entry(observed=[[True]]), "same arrays"),
    ],
)
def test_errors_name_the_place(content, words):
    text = json.dumps(content).replace("Infinity", "1e999")
    with pytest.raises(ValueError, match=words):
        as_models(text)


@pytest.mark.parametrize(
    "text",
    ["{", "[" * 100_000, '{"a": NaN}', '{"a": Infinity}', "{} x", '[{"a": 1'],
)
def test_text_that_is_not_json_is_refused(text):
    with pytest.raises(ValueError, match=r"^models must be JSON"):
        as_models(text)


def test_damaged_text_is_refused_or_read(rng, tmp_path):
    content = HMMBatch([CHAIN], [[[0.0], [3.0]]], [[[1.0], [0.5]]]).to_json().encode()
    path = tmp_path / "models.json"
    for _ in range(300):
        damaged = bytearray(content)
        for place in rng.integers(len(content), size=rng.integers(1, 4)):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            as_models(path)
        except (TypeError, ValueError) as error:
            assert "must" in str(error)  # noqa: PT017


def test_states_without_arrays_have_no_json():
    models = HMMBatch.from_state_costs([[[1.0]]], [[0.0]])
    with pytest.raises(TypeError, match="cannot be saved"):
        models.to_json()
