"""Costs of states with blocks of channels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm.emissions import (
    ByChannel,
    Categorical,
    Gamma,
    Gaussian,
    Poisson,
    VonMises,
)
from skawhmm.emissions._block_costs import BlockCosts

PAIR = np.array([0, 1, 0]), np.array([1, 2, 2])


@pytest.fixture
def family(rng):
    """States of three models with blocks that are points, and others."""
    parts = (
        ("step", Gamma(), rng.uniform(1, 2, (2, 3, 2, 1))),
        ("turn", VonMises(), rng.uniform(0, 3, (2, 3, 2, 1))),
        ("mode", Categorical(np.array([0, 1])), rng.dirichlet([1, 1], (1, 3, 2))),
        ("calls", Poisson(), rng.uniform(1, 9, (1, 3, 2, 2))),
        ("plain", Gaussian(), rng.uniform(1, 2, (2, 3, 2, 2))),
    )
    columns = [[0], [1], [2], [3, 4], [5, 6]]
    blocks = [
        (name, template, own)
        for (name, template, _), own in zip(parts, columns, strict=True)
    ]
    arrays = [[*values] for _, _, values in parts]
    arrays[0].append(np.zeros((3, 2, 1)))
    scale = {"step": 2.0, "turn": 0.5, "mode": 0.3, "calls": 4.0, "plain": 1.5}
    template = ByChannel(blocks, scale=scale)
    return template.like(*(array for part in arrays for array in part))


def test_costs_are_sums_over_blocks(family):
    total = sum(
        family.block(name).cross(*PAIR) / scale**2
        for name, scale in family.scale.items()
    )
    assert_allclose(family.cross(*PAIR), total, rtol=1e-12)


def test_rows_and_concatenations_keep_costs(family):
    costs = family.ground_costs()
    turned = costs[[2, 0, 1]]
    assert_allclose(
        turned.cross(np.array([1, 2]), np.array([2, 0])),
        costs.cross(np.array([0, 1]), np.array([1, 2])),
    )
    both = BlockCosts.concatenate([costs[:1], costs[1:]])
    assert_allclose(both.cross(*PAIR), costs.cross(*PAIR))
    assert_allclose(both.within(*PAIR), costs.within(*PAIR))


def test_costs_inside_models_are_symmetric(family):
    own = family.ground_costs().within(np.arange(3), np.arange(3))
    assert_allclose(own, own.swapaxes(1, 2))
    assert_allclose(np.diagonal(own, axis1=1, axis2=2), 0)
