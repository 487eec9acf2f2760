"""EM of Gaussian states among other blocks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm.emissions import ByChannel, Gaussian
from skawhmm.emissions._model import Data, Model
from skawhmm.fitting._em import Rule, Steps


@pytest.mark.parametrize("kind", ["diag", "full"])
def test_em_steps_of_a_gaussian_block_are_those_of_the_family(rng, kind):
    x = rng.normal(size=(200, 2)) + 2 * (rng.random((200, 1)) < 0.5)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    covars = np.eye(2) if kind == "full" else np.ones(2)
    start = Model(
        np.array([[0.5, 0.5]]),
        np.array([[[0.7, 0.3], [0.4, 0.6]]]),
        (np.array([[[-0.5, 0.0], [0.5, 0.3]]]), np.array([[covars, covars]])),
    )
    found = []
    only = np.array([0])
    block = ByChannel([("all", Gaussian(kind), [0, 1])])
    for family, data in (
        (block, block.data([x])),
        (Gaussian(kind), _gaussian_data(x)),
    ):
        steps = Steps(family, data, Rule(relevance=3.0), start)
        model = Model(*map(np.array, start[:2]), tuple(map(np.array, start.states)))
        for _ in range(5):
            values, expected = steps.expectation(model, only)
            steps.maximization(expected, only, model, only)
        found.append((values, *model.states))
    for ours, theirs in zip(*found, strict=True):
        assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)


def _gaussian_data(x):
    # One channel after the other, in one array.
    frames = np.ascontiguousarray(x.T).ravel()
    return Data(frames, np.empty(0), np.array([0, len(x)]), np.array([0, 1]))
