import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm.emissions._gaussian_costs import covariance_roots
from skawhmm.numerics._stationary import stationary_distribution


def stationary(transmat, start=None):
    transmat = np.array(transmat, dtype=float)
    if start is None:
        start = np.full(len(transmat), 1 / len(transmat))
    return stationary_distribution(transmat[None], np.array(start, dtype=float)[None])[
        0
    ]


def cesaro_limit(transmat, start):
    """Long-run mean of start @ transmat**t, the limit of the lazy chain."""
    lazy = (np.eye(len(transmat)) + transmat) / 2
    for _ in range(60):
        lazy = lazy @ lazy
        lazy /= lazy.sum(axis=1, keepdims=True)
    return start @ lazy


@pytest.mark.parametrize("n_components", [1, 2, 3, 8, 30])
def test_stationary_distribution_is_invariant(n_components, rng):
    transmat = rng.dirichlet(np.ones(n_components), size=n_components)
    weights = stationary(transmat)
    assert_allclose(weights @ transmat, weights, rtol=1e-13)
    assert_allclose(weights.sum(), 1, rtol=1e-15)


@pytest.mark.parametrize("leave", [0.3, 1e-8, 1e-15, 1e-200, 1e-300])
@pytest.mark.parametrize("come_back", [0.7, 1e-12, 1e-250])
def test_two_states_keep_full_relative_accuracy(leave, come_back):
    weights = stationary([[1 - leave, leave], [come_back, 1 - come_back]])
    expected = np.array([1, leave / come_back])
    if leave > come_back:
        expected = np.array([come_back / leave, 1])
    assert_allclose(weights, expected / expected.sum(), rtol=1e-14)


def test_ratios_that_overflow_leave_no_nan():
    # Detailed balance: weights grow by 1e200 a state, past the range of floats.
    weights = stationary([[0.5, 0.5, 0], [1e-200, 0.5, 0.5], [0, 1e-200, 1]])
    assert_allclose(weights, [0, 0.5e-200 * 4, 1], rtol=1e-14)
    weights = stationary([[1, 1e-200, 0], [0.5, 0.5, 1e-200], [0, 0.5, 0.5]])
    assert_allclose(weights, [1, 2e-200, 0], rtol=1e-14)


def test_a_path_too_rare_for_a_float_leaves_no_nan():
    # From state 1, state 0 is reached with probability 1e-400 a step.
    weights = stationary([[0.5, 0.5, 0], [0, 1, 1e-200], [1e-200, 1, 0]])
    assert_allclose(weights, [0, 1, 1e-200], rtol=1e-14)
    transient = stationary(
        [[0, 1, 1e-200, 0], [1, 0, 0, 1e-200], [0, 0, 1, 0], [0, 0, 0, 1]],
        [1, 0, 0, 0],
    )
    assert np.isfinite(transient).all()


def test_periodic_chain_has_a_stationary_distribution():
    assert_array_equal(stationary(np.roll(np.eye(4), 1, axis=1)), np.full(4, 0.25))


def test_absorbing_state_takes_everything():
    assert_array_equal(
        stationary([[0.5, 0.4, 0.1], [0.3, 0.6, 0.1], [0, 0, 1]]), [0, 0, 1]
    )


def test_start_decides_between_closed_classes():
    # From state 1 the chain ends in state 0 or in the class {2, 3} with 1:3.
    transmat = [[1, 0, 0, 0], [0.1, 0.6, 0.3, 0], [0, 0, 0.5, 0.5], [0, 0, 0.25, 0.75]]
    assert_allclose(stationary(transmat, [0, 1, 0, 0]), [0.25, 0, 0.25, 0.5])
    assert_allclose(stationary(transmat, [1, 0, 0, 0]), [1, 0, 0, 0])
    assert_allclose(stationary(transmat, [0.5, 0, 0.5, 0]), [0.5, 0, 1 / 6, 1 / 3])


def test_start_does_not_matter_with_one_closed_class(rng):
    transmat = rng.dirichlet(np.ones(3), size=3)
    assert_allclose(
        stationary(transmat, [1, 0, 0]), stationary(transmat, [0, 0.5, 0.5]), rtol=1e-14
    )


@given(st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.randoms())))
def test_any_sparse_chain_against_its_powers(drawn):
    size, random = drawn
    transmat = np.zeros((size, size))
    for row in transmat:
        for k in random.sample(range(size), random.randint(1, min(size, 2))):
            row[k] = random.randint(1, 4)
    transmat /= transmat.sum(axis=1, keepdims=True)
    start = np.array([random.randint(0, 3) for _ in range(size)]) + 0.0
    start[random.randrange(size)] += 1
    start /= start.sum()
    assert_allclose(
        stationary(transmat, start), cesaro_limit(transmat, start), atol=1e-11
    )


def test_a_model_does_not_depend_on_the_rest_of_its_batch(rng):
    transmats = rng.dirichlet(np.ones(4), size=(5, 4))
    start = np.full((5, 4), 0.25)
    together = stationary_distribution(transmats, start)
    for n in range(5):
        assert_array_equal(together[n], stationary(transmats[n]))


@pytest.mark.parametrize("n_features", [1, 2, 7])
@pytest.mark.parametrize("rank", [0, 1, 7])
def test_roots_give_the_covariance_back(n_features, rank, rng):
    factors = rng.normal(size=(3, 2, n_features, min(rank, n_features)))
    covars = factors @ factors.swapaxes(2, 3)
    roots = covariance_roots(covars)
    assert_allclose(roots @ roots.swapaxes(2, 3), covars, atol=1e-13)
    norms = np.linalg.norm(roots, axis=2)
    assert (np.diff(norms, axis=-1) <= 0).all()
