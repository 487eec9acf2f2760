import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm.emissions import Categorical, Poisson
from skawhmm.emissions._model import Data, Expected, Model
from skawhmm.emissions._simple import SimpleEmission

N_MODELS = 4


def stack_and_data(kind, seed, n_states=3):
    """Several models, each with sequences of its own, some frames not observed."""
    rng = np.random.default_rng(seed)
    n_trials = rng.integers(1, 4, N_MODELS)
    lengths = rng.integers(1, 30, n_trials.sum())
    offsets, firsts = np.cumsum([0, *lengths]), np.cumsum([0, *n_trials])
    missing = rng.random(offsets[-1]) < 0.1
    if kind == "categorical":
        family, states = Categorical("abcd"), rng.dirichlet(np.ones(4), (N_MODELS, 3))
        frames = np.where(missing, -1, rng.integers(0, 4, offsets[-1]))
    else:
        family, states = Poisson(), rng.uniform(0.5, 9, (N_MODELS, 3, 2))
        frames = rng.poisson(4.0, (offsets[-1], 2)).astype(float)
        frames[missing, 1] = np.nan
    chain = (
        rng.dirichlet(np.ones(3), N_MODELS),
        rng.dirichlet(np.ones(3), (N_MODELS, 3)),
    )
    return family, Data(frames, None, offsets, firsts), Model(*chain, (states,))


@pytest.mark.parametrize("kind", ["categorical", "poisson"])
@given(seed=st.integers(0, 10**6), active=st.sets(st.integers(0, 3), min_size=1))
def test_compiled_steps_are_those_of_one_model_after_the_other(kind, seed, active):
    family, data, model = stack_and_data(kind, seed)
    active = np.array(sorted(active))
    values, expected = family.expectations(data, model, active)
    plain_values, plain = SimpleEmission.expectations(family, data, model, active)
    assert_array_equal(values, plain_values)
    for found, wanted in zip(
        (*expected[:3], *expected.statistics),
        (*plain[:3], *plain.statistics),
        strict=True,
    ):
        assert_allclose(found, wanted, rtol=1e-12)
    moved, other = (Model(*model[:2], (model.states[0].copy(),)) for _ in range(2))
    prior = Model(*(part[:1] for part in model[:2]), (model.states[0][:1],))
    rows = np.arange(len(active))[::-1].copy()
    family.updates(plain, rows, moved, prior, 2.0, active[rows])
    SimpleEmission.updates(family, plain, rows, other, prior, 2.0, active[rows])
    assert_array_equal(moved.states[0], other.states[0])
    idle = np.setdiff1d(np.arange(N_MODELS), active)
    assert_array_equal(moved.states[0][idle], model.states[0][idle])


def test_expected_symbols_of_certain_states():
    family = Categorical("ab")
    frames = np.array([0, 1, -1, 1])
    data = Data(frames, None, np.array([0, 4]), np.array([0, 1]))
    states = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    model = Model(np.full((1, 2), 0.5), np.full((1, 2, 2), 0.5), (states,))
    (value,), expected = family.expectations(data, model, np.arange(1))
    assert isinstance(expected, Expected)
    # The third frame was not observed: each state has half of it.
    assert_allclose(expected.counts, [[1.5, 2.5]])
    assert_allclose(expected.statistics[0], [[[1, 0], [0, 2]]])
    assert_allclose(expected.moves, [[[0, 1.5], [0.5, 1]]])
    assert_allclose(value, 3 * np.log(0.5))
