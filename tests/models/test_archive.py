"""Files of models: those written by earlier releases are still read."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm import HMMBatch, as_models
from skawhmm.emissions import (
    Bernoulli,
    ByChannel,
    Categorical,
    Gamma,
    NegativeBinomial,
    StudentT,
    VonMises,
)
from skawhmm.emissions._registry import STORED_FAMILIES
from skawhmm.models._archive import VERSION
from skawhmm.models._counts import Counts

DATA = Path(__file__).parent / "data"
CHAIN = [[[0.9, 0.1], [0.2, 0.8]]]
OTHER_CHAIN = [[[0.5, 0.5], [0.25, 0.75]]]
# What the files were written from.
EARLIER = {
    "gaussian_diag": lambda: HMMBatch(
        [*CHAIN, [[1.0]]],
        [[[0.0], [3.0]], [[1.0]]],
        [[[1.0], [0.5]], [[0.25]]],
        observed=[[True], [True]],
        info={"label": ["a", "b"], "n": [1, 2]},
    ),
    "gaussian_full": lambda: HMMBatch(
        CHAIN,
        [[[0.0, 1.0], [3.0, 2.0]]],
        [[[[1.0, 0.5], [0.5, 2.0]], [[1.0, 0.0], [0.0, 0.0]]]],
        weights=[[0.25, 0.75]],
        startprobs=[[1.0, 0.0]],
    ),
    "categorical": lambda: HMMBatch.from_emissionprobs(
        OTHER_CHAIN,
        [[[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]],
        symbols=["a", "b", "c"],
        symbol_costs=[[0, 1, 2], [1, 0, 1], [2, 1, 0]],
    ),
    "poisson": lambda: HMMBatch.from_rates(
        OTHER_CHAIN, [[[1.0, 2.0], [3.0, 0.5]]], info={"id": [7]}
    ),
    "masked": lambda: HMMBatch(
        CHAIN,
        [[[0.0, 1.0], [3.0, 2.0]]],
        [[[1.0, 2.0], [0.5, 0.0]]],
        observed=[[True, False]],
        feature_names=["x", "y"],
    ),
}
STATES = {
    Gamma(zero_mass=True): {
        "means": [[[2.0], [5.0]]],
        "sds": [[[1.0], [2.0]]],
        "zero_probs": [[[0.25], [0.0]]],
    },
    VonMises(): {"locations": [[[0.5], [-3.0]]], "concentrations": [[[2.0], [0.0]]]},
    Bernoulli(): {"probabilities": [[[0.25], [1.0]]]},
    NegativeBinomial(): {"means": [[[2.0], [0.0]]], "shapes": [[[1.5], [4.0]]]},
    StudentT(): {
        "locations": [[[0.0], [3.0]]],
        "scales": [[[1.0], [0.5]]],
        "dofs": [[[4.0], [8.0]]],
    },
    ByChannel(
        [("step", Gamma(), [1]), ("mode", Categorical([3, 4]), [0])],
        scale={"step": 2.0, "mode": 0.5},
    ): {
        "step.means": [[[2.0], [5.0]]],
        "step.sds": [[[1.0], [2.0]]],
        "step.zero_probs": [[[0.0], [0.0]]],
        "mode.emissionprobs": [[[0.25, 0.75], [1.0, 0.0]]],
    },
}
EARLIER |= {
    family.name: lambda family=family, states=states: HMMBatch.from_arrays(
        {"transmats": OTHER_CHAIN, **states}, emission=family
    )
    for family, states in STATES.items()
}
COUNTS = Counts(np.array([[6.0, 4.0]]), np.array([[[5.0, 1.0], [1.0, 2.0]]]))
# Models with expected counts, which came with version 2.
COUNTED = {
    name: (lambda make=make, counts=counts: make()._changed(counts=counts))
    for name, make, counts in (
        (
            "gaussian_counts",
            EARLIER["gaussian_diag"],
            Counts(
                np.array([[6.5, 3.5], [4.0, 0.0]]),
                np.array([[[5.0, 0.5], [1.0, 2.5]], [[3.0, 0.0], [0.0, 0.0]]]),
            ),
        ),
        *(
            (f"{name}_counts", EARLIER[name], COUNTS)
            for name in (
                "categorical",
                "poisson",
                *(family.name for family in STATES),
            )
        ),
    )
}
STORED = {**EARLIER, **COUNTED}


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.parametrize("name", STORED)
def test_stored_files_are_read_for_ever(name, suffix):
    expected, loaded = STORED[name](), as_models(DATA / f"{name}{suffix}")
    assert loaded == expected
    assert_array_equal(loaded.keys, expected.keys)
    assert loaded.info.keys() == expected.info.keys()
    assert loaded.feature_names == expected.feature_names
    assert (loaded.counts is None) == (name in EARLIER)


def test_stored_files_cover_all_families_and_versions():
    found = {
        (content["emission"], content["version"])
        for content in (json.loads((DATA / f"{n}.json").read_text()) for n in STORED)
    }
    assert found == {
        (name, version) for name in STORED_FAMILIES for version in (1, VERSION)
    }


@pytest.mark.parametrize("name", STORED)
def test_json_is_written_as_in_the_stored_files(name):
    assert STORED[name]().to_json() == (DATA / f"{name}.json").read_text().strip()


@pytest.mark.parametrize("name", STORED)
def test_files_are_written_like_the_stored_files(name, tmp_path):
    STORED[name]().save(tmp_path / "models.npz")
    with (
        np.load(DATA / f"{name}.npz") as earlier,
        np.load(tmp_path / "models.npz") as now,
    ):
        assert sorted(now) == sorted(earlier)
        for part in earlier:
            assert_array_equal(now[part], earlier[part])
