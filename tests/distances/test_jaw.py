"""What sets JAW apart; the properties it has in common with MAW are in `test_maw`."""

import numpy as np
import ot
import pytest
from helpers import jointly_carried, random_model
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import (
    IAW,
    JAW,
    MAW,
    HMMBatch,
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    register_states,
)
from skawhmm.distances._components import carried_chains

orders = st.sampled_from([0.5, 1, 1.5, 2])
seeds = st.integers(0, 2**32 - 1)
row_kinds = st.sampled_from(["transport", "hellinger"])


def random_pair(seed, sizes, n_features=2):
    rng = np.random.default_rng(seed)
    return HMMBatch(
        *zip(
            *(random_model(rng, size, n_features, "diag") for size in sizes),
            strict=True,
        )
    )


def carried(models, p=1):
    """Return the chain of the second model on the states of the first, and the plan."""
    plan = np.zeros(models.transmats.shape[1:])
    part = register_states(models[0], models[1], p=p)
    plan[: part.shape[0], : part.shape[1]] = part
    return carried_chains(models.transmats[1:], plan[None], True)[0], plan


@given(seeds, st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_state_probabilities_are_stationary_for_the_transferred_chain(seed, sizes):
    models = random_pair(seed, sizes)
    moved, _ = carried(models)
    size = sizes[0]
    assert_allclose(moved[:size].sum(axis=1), 1, atol=1e-12)
    assert_allclose(models.weights[0] @ moved, models.weights[0], atol=1e-12)


@given(seeds, st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_a_chain_stays_as_often_as_its_states_do(seed, sizes):
    # A step of b stays in its state with a certain probability, and the carried one
    # with at least as much: steps between states of b may also stay in one of a.
    models = random_pair(seed, sizes)
    moved, _ = carried(models)
    stays = models.weights[1] @ np.diagonal(models.transmats[1])
    assert models.weights[0] @ np.diagonal(moved) >= stays - 1e-12


@given(seeds, st.integers(1, 6), orders, row_kinds)
def test_a_permutation_gives_the_value_of_maw(seed, size, p, rows):
    rng = np.random.default_rng(seed)
    transmat, means, covars = random_model(rng, size, 2, "diag")
    order = rng.permutation(size)
    a = HMMBatch([transmat], [means], [covars])
    b = HMMBatch(
        [rng.dirichlet(np.ones(size), size)],
        [means[order] + 1e-3],
        [covars[order]],
        weights=a.weights[:, order],
    )
    plan = register_states(a, b, p=p)
    assert np.count_nonzero(plan) == size
    one, two = (
        pairwise_hmm_components(a, b, metric=metric(p=p, rows=rows))
        for metric in (MAW, JAW)
    )
    assert_allclose(one, two, rtol=1e-12, atol=1e-15)


@given(seeds, st.integers(2, 5), orders, row_kinds)
def test_states_in_pairs_of_equal_weight_give_the_value_of_maw(seed, size, p, rows):
    # Doubly stochastic chains have equal weights.
    rng = np.random.default_rng(seed)
    eyes = np.eye(size)[[rng.permutation(size) for _ in range(2 * size)]]
    shares = rng.dirichlet(np.ones(2 * size), 2)
    transmats = np.einsum("ns,sij->nij", shares, eyes)
    means = 9.0 * np.arange(size)[:, None] + rng.normal(size=(2, size, 1))
    models = HMMBatch(transmats, means, np.ones((2, size, 1)))
    assert_allclose(models.weights, 1 / size)
    one, two = (
        pairwise_hmm_components(models, metric=metric(p=p, rows=rows))
        for metric in (MAW, JAW)
    )
    assert_allclose(one, two, rtol=1e-12, atol=1e-15)


def test_maw_and_iaw_are_the_paper_s_unless_steps_are_joint(make_batch):
    models = make_batch(6, [1, 2, 3, 3, 4, 2])
    assert_array_equal(
        pairwise_hmm_distances(models, metric=MAW(0.5, steps="joint")),
        pairwise_hmm_distances(models, metric=JAW()),
    )
    assert_array_equal(
        pairwise_hmm_distances(models, metric=JAW(0.1, steps="independent")),
        pairwise_hmm_distances(models, metric=MAW()),
    )
    independent, joint = (
        pairwise_hmm_components(models, metric=IAW(steps=steps, n_samples=32))
        for steps in ("independent", "joint")
    )
    assert_array_equal(independent[0], joint[0])
    assert np.abs(independent[1] - joint[1]).max() > 0.01


@pytest.mark.parametrize("rows", ["transport", "hellinger"])
def test_joint_steps_of_iaw_by_its_own_registration(rows, make_batch):
    models = make_batch(2, 3)
    metric = IAW(steps="joint", rows=rows, n_samples=32)
    plan = register_states(models[0], models[1], metric)
    forth, back = plan / plan.sum(1, keepdims=True), (plan / plan.sum(0)).T
    own = np.arange(2)
    within = np.sqrt(models.emission.ground_costs().within(own, own))
    total = 0.0
    for n, moved in enumerate(
        [
            jointly_carried(forth, models.transmats[1], back),
            jointly_carried(back, models.transmats[0], forth),
        ]
    ):
        for weight, row, other in zip(
            models.weights[n], models.transmats[n], moved, strict=True
        ):
            gap = ot.emd2(row, other / other.sum(), within[n])
            if rows == "hellinger":
                gap = 1 - np.sum(np.sqrt(row * other))
            total += weight * gap
    actual = pairwise_hmm_components(models, metric=metric)[1][0, 1]
    assert_allclose(actual, total, rtol=1e-9)


@pytest.mark.parametrize("rows", ["transport", "hellinger"])
def test_debiased_iaw_with_joint_steps_is_zero_between_equal_models(rows, make_batch):
    models = make_batch(5, [1, 2, 3, 4, 3])
    metric = IAW(0.5, steps="joint", rows=rows, debias=True, n_samples=32)
    distances = pairwise_hmm_distances(models, metric=metric)
    assert_allclose(np.diagonal(distances), 0, atol=1e-12)


def test_two_sticky_chains_by_hand():
    # Both stay with probability 0.9. Of state 0 of b, half belongs to state 0 of a and
    # a third of the rest to state 1: the plan is [[1/2, 0], [1/6, 1/3]].
    models = HMMBatch(
        [[[0.9, 0.1], [0.1, 0.9]], [[0.95, 0.05], [0.1, 0.9]]],
        [[[0.0], [3.0]], [[0.0], [3.0]]],
        np.ones((2, 2, 1)),
    )
    plan = register_states(models[0], models[1])
    assert_allclose(plan, [[1 / 2, 0], [1 / 6, 1 / 3]])
    # b on the states of a: forth is [[1, 0], [1/3, 2/3]], back [[3/4, 1/4], [0, 1]].
    # Row 0: 0.95 stays and 0.05 goes to state 1. Row 1: a third is in state 0 of b,
    # of which 0.95 stays and 0.05 goes to state 1; two thirds are in state 1 of b, of
    # which 0.9 stays and 0.1 goes to state 0 of b, that is 3/4 and 1/4.
    to_first = 2 / 3 * 0.1 * 3 / 4
    moved_b = np.array([[0.95, 0.05], [to_first, 1 - to_first]])
    # a on the states of b: forth is [[3/4, 1/4], [0, 1]], back [[1, 0], [1/3, 2/3]].
    # Row 0: 3/4 are in state 0 of a, of which 0.1 goes to state 1, that is 2/3 to state
    # 1 of b; 1/4 is in state 1, of which 0.1 goes to state 0. Row 1: 0.1 goes to 0.
    to_second = 3 / 4 * 0.1 * 2 / 3
    moved_a = np.array([[1 - to_second, to_second], [0.1, 0.9]])
    expected = 3 * (
        np.sum([0.5, 0.5] * np.abs(models.transmats[0] - moved_b)[:, 0])
        + np.sum([2 / 3, 1 / 3] * np.abs(models.transmats[1] - moved_a)[:, 0])
    )
    assert_allclose(expected, 3 * (0.5 * 0.05 + 0.5 * 0.05 + 0 + 0))
    marginal, transition = pairwise_hmm_components(models, metric="jaw")
    assert_allclose(transition[0, 1], expected)
    assert_allclose(marginal[0, 1], 3 / 6)
    assert_allclose(hmm_distance(models[0], models[1], "jaw"), 0.25 + 0.075)
    # MAW takes the same chains for more different than their states.
    assert pairwise_hmm_components(models)[1][0, 1] > 5 * expected


def test_joint_transition_component_of_sticky_chains_is_small():
    # Models that stay with probability 0.95 and differ in the weights of their states
    # only: the joint component tells what differs, which is little.
    def sticky(weights):
        jump = 0.05 * np.tile(weights, (len(weights), 1))
        return 0.95 * np.eye(len(weights)) + jump

    weights = [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3]]
    models = HMMBatch(
        [sticky(row) for row in weights],
        [[[0.0], [4.0], [8.0]]] * 2,
        np.ones((2, 3, 1)),
    )
    assert_allclose(models.weights, weights)
    joint, independent = (
        pairwise_hmm_components(models, metric=metric)[1][0, 1]
        for metric in ("jaw", "maw")
    )
    assert joint < 0.1
    assert independent > 1


def test_rare_transitions_count_by_hellinger(make_batch):
    # Of two changes of the same size, transport sees no difference.
    base = np.array([[0.5, 0.5, 0.0], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]])
    rare, common = base.copy(), base.copy()
    rare[0] = [0.45, 0.5, 0.05]
    common[0] = [0.45, 0.55, 0.0]
    means, covars = np.zeros((3, 3, 3)), np.ones((3, 3, 3))
    means[:] = 2 * np.eye(3)
    models = HMMBatch(
        [base, rare, common], means, covars, weights=np.full((3, 3), 1 / 3)
    )
    transport, hellinger = (
        pairwise_hmm_components(models, metric=JAW(rows=rows))[1][0]
        for rows in ("transport", "hellinger")
    )
    assert_allclose(transport[1], transport[2])
    assert hellinger[1] > 10 * hellinger[2]


def test_jaw_mixes_its_components_by_alpha(make_batch):
    models = make_batch(5)
    marginal, transition = pairwise_hmm_components(models, metric="jaw")
    for alpha in (0, 0.3, 1):
        assert_array_equal(
            pairwise_hmm_distances(models, metric="jaw", alpha=alpha),
            (1 - alpha) * marginal + alpha * transition,
        )
