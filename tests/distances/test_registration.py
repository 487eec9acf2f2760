import numpy as np
import ot
import pytest
from helpers import cloned, reordered, tied_batch, tied_model
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

from skawhmm import (
    JAW,
    MAW,
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


def test_a_small_gap_is_not_a_tie():
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


def test_states_without_any_difference_are_registered_evenly():
    # All costs are 0 and no state is left: nothing decides between the plans.
    still, same = np.eye(2), np.zeros((2, 1))
    a, b = (
        HMMBatch([still], [same], [same + 1], weights=[weights])
        for weights in ([0.3, 0.7], [0.6, 0.4])
    )
    assert_allclose(register_states(a, b), np.outer([0.3, 0.7], [0.6, 0.4]), rtol=1e-15)


@pytest.mark.parametrize("n_steps", [2, 10, 25])
def test_cycle_of_equal_states_has_distance_zero_in_any_order(n_steps):
    # All states are equal but one. The next step distinguishes the state before it; the
    # others are registered evenly.
    transmat = np.roll(np.eye(n_steps + 1), 1, axis=1)
    means = np.eye(n_steps + 1)[:, :1]
    order = np.random.default_rng(0).permutation(n_steps + 1)
    models = HMMBatch(
        [transmat, transmat[np.ix_(order, order)]],
        [means, means[order]],
        np.ones((2, n_steps + 1, 1)),
    )
    plan = register_states(models[0], models[1])[:, np.argsort(order)]
    expected = np.full((n_steps + 1, n_steps + 1), 1 / max(n_steps - 1, 1))
    for known in (0, n_steps):
        expected[known], expected[:, known], expected[known, known] = 0, 0, 1
    assert_allclose(plan, expected / (n_steps + 1), atol=1e-12)
    for steps in ("independent", "joint"):
        metric = MAW(alpha=1, steps=steps)
        assert pairwise_hmm_distances(models, metric=metric).max() <= 1e-12


def test_only_as_much_is_evened_out_as_costs_allow():
    # The middle states of a are as close to one as to the other state of b.
    spots = np.array([[0.0, 1.0, 1.0, 2.0], [0.0, 0.0, 2.0, 2.0]])
    cost = abs(spots[0][:, None] - spots[1])
    plan = registration(np.full((2, 4), 0.25), np.full((2, 4, 4), 0.25), cost)
    first, middle = [1 / 8, 1 / 8, 0, 0], np.full(4, 1 / 16)
    assert_allclose(plan, [first, middle, middle, first[::-1]], atol=1e-15)


def face_of_plans(weights, criteria):
    """Bounds on the mass of each cell in plans that are the best by all criteria."""
    size = len(weights[0])
    sums = np.vstack(
        [np.kron(np.eye(size), np.ones(size)), np.kron(np.ones(size), np.eye(size))]
    )
    equal = {"A_eq": sums[:-1], "b_eq": np.concatenate(weights)[:-1]}
    rows, limits = np.empty((0, size * size)), []
    for criterion in criteria:
        upper = {"A_ub": rows, "b_ub": limits} if limits else {}
        best = linprog(criterion.ravel(), **upper, **equal)
        assert best.status == 0
        rows = np.vstack([rows, criterion.ravel()])
        limits = [*limits, best.fun + 1e-9]
    return np.reshape(
        [
            -linprog(-cell, A_ub=rows, b_ub=limits, **equal).fun
            for cell in np.eye(size * size)
        ],
        (size, size),
    )


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_plan_is_the_most_even_one_that_all_criteria_leave(seed, size):
    weights, transmats, cost = tied_pair(seed, size)
    criteria = [cost, look_ahead(*transmats, cost), cost**2]
    plan = registration(weights, transmats, cost)
    most = face_of_plans(weights, criteria)
    # It uses each cell that any of these plans uses, and there it is u_i v_j. Masses of
    # such plans are multiples of some 1e-2.
    used = most > 1e-3
    assert_array_equal(plan > 1e-9, used)
    i, j = np.nonzero(used)
    potentials = np.hstack([np.eye(size)[i], np.eye(size)[j]])
    logs = np.log(plan[used])
    fitted = potentials @ np.linalg.lstsq(potentials, logs)[0]
    assert_allclose(fitted, logs, atol=1e-9)


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


# Transition matrices and means of models with equal states.
CYCLES = {
    "three states": (0.7, [0.5, 1.0, 0.5], 0.3, [0.5, 1.0, 1.0]),
    "nothing in common": (0.9, [0.0, 0.0, 0.0], 0.5, [0.0, 3.0, 2.0]),
    "four states": (0.25, [1.0, 0.0, 2.0, 0.0], 0.25, [1.0, 0.0, 0.0, 0.0]),
    "six states": (0.5, [2.0, 0.0, 2.0, 1.0, 0.0, 1.0], 0.25, [0.0, 2, 0, 0, 0, 1]),
}


@pytest.mark.parametrize(
    "metric", [MAW(0.5), JAW(rows="hellinger")], ids=["maw", "jaw"]
)
@pytest.mark.parametrize("name", CYCLES)
def test_states_of_a_cycle_may_be_renamed(name, metric):
    stay_a, means_a, stay_b, means_b = CYCLES[name]
    size, rng = len(means_a), np.random.default_rng(0)
    step = np.roll(np.eye(size), 1, axis=1)
    models = [
        (
            stay * np.eye(size) + (1 - stay) * step,
            np.array(means, dtype=float)[:, None],
            np.ones((size, 1)),
            np.full(size, 1 / size),
        )
        for stay, means in ((stay_a, means_a), (stay_b, means_b))
    ]
    expected = pairwise_hmm_distances(tied_batch(*models), metric=metric)
    for _ in range(20):
        moved = [reordered(model, rng.permutation(size)) for model in models]
        found = pairwise_hmm_distances(tied_batch(*moved), metric=metric)
        assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


seeds = st.integers(0, 2**32 - 1)
metrics = st.builds(
    MAW,
    alpha=st.sampled_from([0, 0.5, 1]),
    p=st.sampled_from([0.5, 1, 2]),
    rows=st.sampled_from(["transport", "hellinger"]),
    steps=st.sampled_from(["independent", "joint"]),
)


def assert_close_powers(found, expected, metric):
    """Compare p-th powers of components: the roots of sums near 0 are not as exact."""
    # The root of a probability that rounds to 0 or 1e-17.
    slack = {"hellinger": 3e-8, "transport": 1e-10}[metric.rows]
    assert_allclose(
        np.power(found, metric.p), np.power(expected, metric.p), rtol=1e-9, atol=slack
    )


@given(seeds, st.integers(1, 6), metrics)
def test_models_with_equal_states_may_be_reordered(seed, size, metric):
    rng = np.random.default_rng(seed)
    models = [tied_model(rng, size) for _ in range(2)]
    moved = [reordered(model, rng.permutation(size)) for model in models]
    expected = pairwise_hmm_components(tied_batch(*models), metric=metric)
    found = pairwise_hmm_components(tied_batch(*moved), metric=metric)
    assert_close_powers(found, expected, metric)
    assert_array_equal(np.swapaxes(found, 1, 2), found)
    for model, copy in zip(models, moved, strict=True):
        own = pairwise_hmm_components(tied_batch(model, copy), metric=metric)
        assert_close_powers(own, np.zeros((2, 2, 2)), metric)


@given(seeds, st.integers(1, 5), metrics.filter(lambda m: m.steps == "independent"))
def test_equal_states_may_be_split(seed, size, metric):
    rng = np.random.default_rng(seed)
    models = [tied_model(rng, size) for _ in range(2)]
    split = [
        cloned(model, rng.integers(size), rng.choice([0.5, 0.2])) for model in models
    ]
    expected = pairwise_hmm_components(tied_batch(*models), metric=metric)
    found = pairwise_hmm_components(tied_batch(*split), metric=metric)
    assert_close_powers(found, expected, metric)


def test_many_equal_states_may_be_reordered():
    # More states than those for which all steps ahead are compared.
    rng, size = np.random.default_rng(3), 70
    step = np.roll(np.eye(size), 1, axis=1)
    models = [
        (
            step,
            rng.integers(0, 2, (size, 1)) + 0.0,
            np.ones((size, 1)),
            step[0] * 0 + 1 / size,
        )
        for _ in range(2)
    ]
    moved = [reordered(model, rng.permutation(size)) for model in models]
    expected = pairwise_hmm_components(tied_batch(*models))
    found = pairwise_hmm_components(tied_batch(*moved))
    assert expected[1][0, 1] > 0.01
    assert_allclose(found, expected, atol=1e-10)
