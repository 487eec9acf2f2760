"""Compiled EM runs take the steps of `run_em`, to the last bit."""

import numpy as np
import pytest
from fitting.test_em import drawn, frames_of, random_start
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMTransformer
from skawhmm.emissions import Categorical, Gaussian, Poisson
from skawhmm.emissions._model import Data, Model
from skawhmm.fitting._em import Rule, Steps, em_runs, run_em, stacked
from skawhmm.fitting._gaussian_fit import gaussian_data


def check_runs(family, data, rule, starts):
    """Compare compiled runs with steps that are taken one by one."""
    found = em_runs(family, data, rule, starts)
    expected = run_em(Steps(family, data, rule, starts), starts)
    for name in ("counts", "moves", "log_likelihood", "n_iter", "converged"):
        assert_array_equal(getattr(found, name), getattr(expected, name))
    assert_allclose(found.objective, expected.objective, rtol=1e-12)
    for part in (0, 1):
        assert_array_equal(found.model[part], expected.model[part])
    for a, b in zip(found.model.states, expected.model.states, strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("kind", ["categorical", "poisson"])
@given(st.integers(0, 10**6), st.sampled_from([0.0, 3.0]))
def test_symbols_and_counts(kind, seed, relevance):
    rng = np.random.default_rng(seed)
    X = [frames_of(x, kind) for x in drawn(kind, 12, 5, seed=seed)]
    X = [x[: rng.integers(2, 13)] for x in X]
    if kind == "poisson":
        X[0][0, 0] = np.nan
    else:
        X[0][0] = -1
    # Units of two sequences, one, and two.
    offsets = np.cumsum([0, *map(len, X)])
    data = Data(np.concatenate(X), None, offsets, np.array([0, 2, 3, 5]))
    family = Poisson() if kind == "poisson" else Categorical(np.arange(4))
    rule = Rule(relevance=relevance, max_iter=int(rng.integers(0, 30)))
    starts = stacked([random_start(rng, kind) for _ in range(3)])
    check_runs(family, data, rule, starts)


@pytest.mark.parametrize("covariance_type", ["diag", "spherical", "full", "tied"])
@given(st.integers(0, 10**6), st.sampled_from([0.0, 3.0]))
def test_gaussian_states(covariance_type, seed, relevance):
    rng = np.random.default_rng(seed)
    # So few frames that eigenvalues are lifted.
    lengths = rng.integers(2, 9, size=5)
    offsets = np.cumsum([0, *lengths])
    frames = rng.normal(size=(2, offsets[-1])).round(1)
    seen = np.empty((0, 0))
    if covariance_type in {"diag", "spherical"}:
        seen = (rng.random(frames.shape) < 0.8).astype(float)
        frames *= seen
    data = gaussian_data(frames, seen, offsets, [0, 2, 3, 5])
    family = Gaussian(covariance_type, reg_covar=1e-2)
    covars = np.ones((3, 2, 2))
    if family.is_full:
        covars = covars[..., None] * np.eye(2)
    starts = Model(
        rng.dirichlet(np.ones(2), 3),
        rng.dirichlet(np.ones(2), (3, 2)),
        (rng.normal(size=(3, 2, 2)), covars),
    )
    rule = Rule(relevance=relevance, max_iter=int(rng.integers(0, 30)))
    check_runs(family, data, rule, starts)


def test_what_a_subclass_defines_is_called_by_em():
    class Halved(Poisson):
        def update(self, statistics, states, prior, relevance):
            (rates,) = super().update(statistics, states, prior, relevance)
            return (rates / 2,)

    X = drawn("poisson", 30)
    plain, halved = (
        HMMTransformer(1, emission=family, max_iter=1, random_state=0)
        for family in (Poisson(), Halved())
    )
    expected = plain.fit_transform(X).rates / 2
    assert_allclose(halved.fit_transform(X).rates, expected)
