"""Files of models: those written by earlier releases are still read."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm import HMMBatch

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
}


@pytest.mark.parametrize("name", EARLIER)
def test_files_of_version_1_are_read(name):
    expected, loaded = EARLIER[name](), HMMBatch.load(DATA / f"{name}.npz")
    assert loaded == expected
    assert_array_equal(loaded.keys, expected.keys)
    assert loaded.info.keys() == expected.info.keys()


@pytest.mark.parametrize("name", EARLIER)
def test_files_are_still_written_as_version_1(name, tmp_path):
    EARLIER[name]().save(tmp_path / "models.npz")
    with (
        np.load(DATA / f"{name}.npz") as earlier,
        np.load(tmp_path / "models.npz") as now,
    ):
        assert sorted(now) == sorted(earlier)
        for part in earlier:
            assert_array_equal(now[part], earlier[part])
