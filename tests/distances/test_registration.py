import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

from skawhmm import (
    HMMBatch,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    register_states,
)
from skawhmm.distances._registration import optimal_registrations, power_cost

ORDERS = [0.5, 1, 1.5, 2]


def registration(weights, transmats, cost):
    """Plan between the two models of a pair, under a given cost."""
    index = np.arange(2).reshape(2, 1)
    cost = np.array(cost, dtype=float)[None]
    return optimal_registrations(np.array(weights), np.array(transmats), *index, cost)[
        0
    ]


def look_ahead(transmat_a, transmat_b, cost):
    return np.array([[ot.emd2(a, b, cost) for b in transmat_b] for a in transmat_a])


def least_look_ahead(weights, transmats, cost):
    """The second criterion by linear programming: its least value on optimal plans."""
    size = len(cost)
    ahead = look_ahead(*transmats, cost)
    sums = np.vstack(
        [np.kron(np.eye(size), np.ones(size)), np.kron(np.ones(size), np.eye(size))]
    )
    best = ot.emd2(*weights, cost)
    result = linprog(
        ahead.ravel(),
        A_ub=cost.reshape(1, -1),
        b_ub=[best + 1e-9],
        A_eq=sums[:-1],
        b_eq=np.concatenate(weights)[:-1],
    )
    assert result.status == 0
    return result.fun


def tied_pair(seed, size=3):
    """Weights, rows and costs of small whole numbers: ties are the rule."""
    rng = np.random.default_rng(seed)
    transmats = rng.integers(0, 3, (2, size, size)) + np.eye(size)
    transmats /= transmats.sum(axis=2, keepdims=True)
    weights = rng.integers(1, 3, (2, size)) + 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    spots = rng.integers(0, 3, (2, size))
    return weights, transmats, abs(spots[0][:, None] - spots[1]) + 0.0


@pytest.mark.parametrize("p", ORDERS)
def test_power_cost_is_the_power_of_the_distance(p, rng):
    squared = rng.random((3, 2, 2))
    assert_allclose(power_cost(squared.copy(), p), np.sqrt(squared) ** p, rtol=1e-15)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_tie_rule_never_changes_the_marginal_cost(seed, size):
    weights, transmats, cost = tied_pair(seed, size)
    plan = registration(weights, transmats, cost)
    assert (plan >= 0).all()
    assert_allclose(plan.sum(axis=1), weights[0], atol=1e-14)
    assert_allclose(plan.sum(axis=0), weights[1], atol=1e-14)
    best = ot.emd2(*weights, cost)
    assert_allclose(np.sum(plan * cost), best, atol=1e-10)


@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_tie_rule_takes_the_least_look_ahead(seed, size):
    weights, transmats, cost = tied_pair(seed, size)
    plan = registration(weights, transmats, cost)
    actual = np.sum(plan * look_ahead(*transmats, cost))
    assert_allclose(actual, least_look_ahead(weights, transmats, cost), atol=1e-7)


def test_look_ahead_decides_by_hand():
    # States 0 and 1 emit the same; state 0 stays, state 1 moves on to state 2. The
    # other model has them the other way round.
    rows = [[0.8, 0.0, 0.2], [0.0, 0.4, 0.6], [0.4, 0.4, 0.2]]
    other = np.array(rows)[[1, 0, 2]][:, [1, 0, 2]]
    cost = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    plan = registration(np.full((2, 3), 1 / 3), [rows, other], cost)
    assert_allclose(plan, np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]]) / 3, atol=1e-15)


def test_a_small_gap_is_no_tie():
    # Swapping the first two states looks better ahead, but costs 1e-7 more.
    rows = [[0.8, 0.0, 0.2], [0.0, 0.4, 0.6], [0.4, 0.4, 0.2]]
    other = np.array(rows)[[1, 0, 2]][:, [1, 0, 2]]
    cost = np.array([[0.0, 1e-7, 1.0], [1e-7, 0.0, 1.0], [1.0, 1.0, 0.0]])
    plan = registration(np.full((2, 3), 1 / 3), [rows, other], cost)
    assert_allclose(plan, np.eye(3) / 3, atol=1e-15)


def test_a_far_state_without_weight_makes_no_tie():
    # Slack is measured on the states that take part, not on those that do not.
    rows = [[0.8, 0.0, 0.2, 0], [0.0, 0.4, 0.6, 0], [0.4, 0.4, 0.2, 0], [0, 0, 0, 1]]
    swap = [1, 0, 2, 3]
    other = np.array(rows)[swap][:, swap]
    cost = np.full((4, 4), 1e12)
    cost[:3, :3] = [[0.0, 0.1, 1.0], [0.1, 0.0, 1.0], [1.0, 1.0, 0.0]]
    weights = np.array([[1, 1, 1, 0], [1, 1, 1, 0]]) / 3
    plan = registration(weights, [rows, other], cost)
    assert_allclose(plan, np.diag([1, 1, 1, 0]) / 3, atol=1e-15)


def twin_states(rng, covariance_type, n_twins=2):
    """One model whose first states emit the same and move on differently."""
    size, n_features = n_twins + 2, 3
    means = rng.normal(size=(size, n_features))
    roots = rng.normal(size=(size, n_features, n_features))
    covars = roots @ roots.swapaxes(1, 2)
    if covariance_type == "diag":
        covars = np.diagonal(covars, axis1=1, axis2=2).copy()
    if covariance_type == "singular":
        roots[:, :, 1:] = 0
        covars = roots @ roots.swapaxes(1, 2)
    means[:n_twins], covars[:n_twins] = means[0], covars[0]
    transmat = rng.dirichlet(np.ones(size), size=size)
    return transmat, means, covars


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("covariance_type", ["diag", "full", "singular"])
def test_self_distance_of_models_with_equal_states(p, covariance_type):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        transmat, means, covars = twin_states(rng, covariance_type, 2 + seed % 3)
        models = HMMBatch([transmat], [means], [covars])
        order = rng.permutation(len(means))
        relabelled = HMMBatch(
            [transmat[np.ix_(order, order)]], [means[order]], [covars[order]]
        )
        for other in (models, relabelled):
            marginal, transition = pairwise_hmm_components(models, other, p=p)
            assert marginal[0, 0] <= 1e-12
            assert transition[0, 0] <= 1e-12


def test_rows_that_differ_two_steps_ahead_only():
    # States 0 and 1 emit the same and step to 2 and 3, which emit the same, too.
    transmat = [
        [0, 0, 1, 0, 0],
        [0, 0, 0, 1, 0],
        [0.5, 0, 0, 0, 0.5],
        [0, 0.9, 0, 0, 0.1],
        [0.3, 0.7, 0, 0, 0],
    ]
    means = np.array([[0.0], [0.0], [1.0], [1.0], [5.0]])
    models = HMMBatch([transmat], [means], [np.ones((5, 1))])
    marginal, transition = pairwise_hmm_components(models, models)
    assert marginal[0, 0] <= 1e-12
    assert transition[0, 0] <= 1e-12


def test_zero_weight_rows_of_the_plan_are_zero():
    a = HMMBatch([[[0.5, 0.5], [0.5, 0.5]]], [[[0.0], [1.0]]], [[[1.0], [1.0]]])
    b = HMMBatch(
        [[[0.0, 1.0], [0.0, 1.0]]],
        [[[0.0], [1.0]]],
        [[[1.0], [1.0]]],
        startprobs=[[1.0, 0.0]],
    )
    assert_array_equal(register_states(a, b), [[0, 0.5], [0, 0.5]])


def test_equal_states_are_told_apart_by_their_probabilities():
    # All costs are 0, and no state is left: only probabilities tell which is which.
    still, same = np.eye(2), np.zeros((2, 1))
    a, b = (
        HMMBatch([still], [same], [same + 1], weights=[weights])
        for weights in ([0.3, 0.7], [0.7, 0.3])
    )
    assert_allclose(register_states(a, b), [[0, 0.3], [0.7, 0]], atol=1e-15)


def test_equal_states_are_told_apart_by_how_long_they_stay():
    chain = np.array([[0.8, 0.2], [0.4, 0.6]])
    same, even = np.zeros((2, 1)), [[0.5, 0.5]]
    a, b = (
        HMMBatch([rows], [same], [same + 1], weights=even)
        for rows in (chain, chain[::-1, ::-1])
    )
    assert_allclose(register_states(a, b), [[0, 0.5], [0.5, 0]], atol=1e-15)


def renamed(rng, models):
    order = rng.permutation(models.means.shape[1])
    return HMMBatch(
        models.transmats[:, order][:, :, order],
        models.means[:, order],
        models.covars[:, order],
        weights=models.weights[:, order],
    )


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("rows", ["dense", "cycle", "still"])
@pytest.mark.parametrize("metric", ["maw", "jaw"])
def test_equal_states_may_be_renamed(metric, rows, p):
    size = 4
    for seed in range(15):
        rng = np.random.default_rng(seed)
        chains = {
            "dense": rng.dirichlet(np.ones(size), size=(5, size)),
            "cycle": np.tile(np.roll(np.eye(size), 1, axis=1), (5, 1, 1)),
            "still": np.tile(np.eye(size), (5, 1, 1)),
        }[rows]
        means, covars = rng.normal(size=(5, size, 2)), rng.random((5, size, 2)) + 0.5
        means[:, -1], covars[:, -1] = means[:, 0], covars[:, 0]
        weights = rng.dirichlet(np.ones(size), size=5)
        models = HMMBatch(chains, means, covars, weights=weights)
        options = {"metric": metric, "alpha": 1, "p": p}
        expected = pairwise_hmm_distances(models, **options)
        found = pairwise_hmm_distances(renamed(rng, models), **options)
        assert_allclose(found, expected, rtol=0, atol=1e-9)
