"""Decompositions in batches, to the last bit those of one call."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm.numerics import _lapack
from skawhmm.numerics._lapack import batch_size, in_batches


@pytest.mark.parametrize(
    "shape", [(3, 3), (1, 3, 3), (7, 3, 3), (2, 5, 3, 3), (0, 3, 3)]
)
@pytest.mark.parametrize("limits", [(27, 500), (60, 500), (10**9, 500), (10**9, 2)])
@pytest.mark.parametrize(
    "function", [np.linalg.eigh, np.linalg.eigvalsh, np.linalg.svd]
)
def test_batches_do_not_matter(rng, monkeypatch, shape, limits, function):
    values = rng.normal(size=shape)
    values = values + values.swapaxes(-1, -2)
    expected = function(values)
    for name, limit in zip(("BATCH_OPERATIONS", "LARGE_SIZE"), limits, strict=True):
        monkeypatch.setattr(_lapack, name, limit)
    found = in_batches(function, values)
    if not isinstance(expected, tuple):
        expected, found = (expected,), (found,)
    for one, two in zip(found, expected, strict=True):
        assert_array_equal(one, two)


def test_batches_of_large_matrices_are_small():
    sizes = [batch_size(n) for n in (1, 10, 100, 1000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
