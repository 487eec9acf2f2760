import numpy as np
import ot
import pytest
from helpers import jointly_carried, squared_hellinger
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from skawhmm.distances._components import (
    carried_chains,
    marginal_components,
    transition_components,
)

ORDERS = [0.5, 1, 1.5, 2]

kinds = pytest.mark.parametrize(
    "kind",
    [
        {},
        {"joint": True},
        {"hellinger": True},
        {"joint": True, "hellinger": True},
    ],
    ids=["independent", "joint", "hellinger", "joint hellinger"],
)


def marginal(plan, cost, p):
    return marginal_components(plan[None], cost[None], float(p), np.zeros(1))[0]


def transition(
    weights, transmats, plan, within_a, within_b, p, *, joint=False, hellinger=False
):
    """Component of a pair of models, given the plan and the costs inside of each."""
    weights, transmats = np.array(weights), np.array(transmats)
    return transition_components(
        weights,
        transmats,
        transmats,
        np.array([0]),
        np.array([1]),
        plan[None],
        within_a[None],
        within_b[None],
        float(p),
        joint,
        hellinger,
    )[0]


def quotient(plan, sums):
    return np.divide(plan, sums, out=np.zeros(plan.shape), where=sums > 0)


def literal_transition(
    weights, transmats, plan, within_a, within_b, p, *, joint=False, hellinger=False
):
    """Eq. 9 to 13, or their joint form, a row at a time."""
    forth = quotient(plan, plan.sum(axis=1, keepdims=True))
    back = quotient(plan, plan.sum(axis=0, keepdims=True)).T
    moved_b = forth @ transmats[1] @ back
    moved_a = back @ transmats[0] @ forth
    if joint:
        moved_b = jointly_carried(forth, transmats[1], back)
        moved_a = jointly_carried(back, transmats[0], forth)
    gap = squared_hellinger if hellinger else ot.emd2
    total = 0.0
    for weight, own, other, within in (
        *zip(weights[0], transmats[0], moved_b, [within_a] * len(plan), strict=True),
        *zip(weights[1], transmats[1], moved_a, [within_b] * len(plan), strict=True),
    ):
        if weight > 0:
            total += weight * gap(own, other / other.sum(), within)
    return total ** (1 / p)


def random_pair(rng, size, p):
    weights = rng.dirichlet(np.ones(size), size=2)
    transmats = rng.dirichlet(np.full(size, 0.7), size=(2, size))
    spots = rng.normal(size=(2, size, 2))
    within_a, within_b = (cdist(spot, spot) ** p for spot in spots)
    cost = cdist(*spots) ** p
    return weights, transmats, ot.emd(*weights, cost), within_a, within_b


@pytest.mark.parametrize("p", ORDERS)
def test_marginal_is_the_root_of_the_mean_cost(p, rng):
    plan = rng.dirichlet(np.ones(6)).reshape(2, 3)
    cost = rng.random((2, 3))
    assert_allclose(marginal(plan, cost, p), np.sum(plan * cost) ** (1 / p))


@kinds
@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_transition_against_loops(p, size, kind, rng):
    for _ in range(5):
        pair = random_pair(rng, size, p)
        assert_allclose(
            transition(*pair, p, **kind),
            literal_transition(*pair, p, **kind),
            rtol=1e-10,
            atol=1e-14,
        )


@kinds
@pytest.mark.parametrize("p", ORDERS)
def test_transition_of_a_soft_registration(p, kind, rng):
    # Any plan will do, also one that is no optimal plan.
    weights, transmats, _, *within = random_pair(rng, 4, p)
    pair = weights, transmats, np.outer(*weights), *within
    assert_allclose(
        transition(*pair, p, **kind), literal_transition(*pair, p, **kind), rtol=1e-10
    )


@kinds
@pytest.mark.parametrize("p", ORDERS)
def test_states_without_weight(p, kind, rng):
    weights, transmats, _, *within = random_pair(rng, 4, p)
    weights[0, 1] = weights[1, 2] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    transmats[0, :, 1] = transmats[1, :, 2] = 0
    transmats[0, 1], transmats[1, 2] = np.eye(4)[[1, 2]]
    transmats /= transmats.sum(axis=2, keepdims=True)
    plan = ot.emd(*weights, rng.random((4, 4)))
    pair = weights, transmats, plan, *within
    assert_allclose(
        transition(*pair, p, **kind), literal_transition(*pair, p, **kind), rtol=1e-10
    )


@pytest.mark.parametrize("p", ORDERS)
def test_steps_to_states_without_weight_lose_no_mass(p):
    # The weights are those of a sequence that never came to state 1 of b.
    weights = np.array([[0.5, 0.5], [1.0, 0.0]])
    transmats = np.array([[[0.5, 0.5], [0.5, 0.5]], [[0.4, 0.6], [0.5, 0.5]]])
    plan = np.array([[0.5, 0.0], [0.5, 0.0]])
    within = np.array([[0.0, 1.0], [1.0, 0.0]])
    # On the states of a, b is in both equally often; on the states of b, a is in one.
    expected = 0.6 ** (1 / p)
    assert_allclose(transition(weights, transmats, plan, within, within, p), expected)


@pytest.mark.parametrize("p", ORDERS)
def test_two_states_by_hand(p):
    weights = np.full((2, 2), 0.5)
    transmats = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]])
    within_a = np.array([[0.0, 2.0], [2.0, 0.0]]) ** p
    within_b = np.array([[0.0, 3.0], [3.0, 0.0]]) ** p
    plan = np.eye(2) / 2
    # Each row moves 0.4 from one state to the other, in both models.
    expected = (0.4 * 2**p + 0.4 * 3**p) ** (1 / p)
    actual = transition(weights, transmats, plan, within_a, within_b, p)
    assert_allclose(actual, expected)


def test_each_direction_uses_its_own_weights():
    transmats = np.array([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]])
    weights = np.array([[0.8, 0.2], [0.3, 0.7]])
    plan, within = np.eye(2) / 2, 1 - np.eye(2)
    # Only the second rows differ, by 0.5.
    assert_allclose(transition(weights, transmats, plan, within, within, 1), 0.45)


@kinds
def test_equal_chains_are_at_distance_zero(kind, rng):
    weights, transmats, _, within, _ = random_pair(rng, 5, 1)
    weights[1], transmats[1] = weights[0], transmats[0]
    pair = weights, transmats, np.diag(weights[0]), within, within
    for p in ORDERS:
        assert transition(*pair, p, **kind) == 0


def test_a_chain_that_stays_is_transferred_as_computed_by_hand():
    # State 0 of a is half of state 0 of b and all of state 1.
    plan = np.array([[0.25, 0.25], [0.5, 0.0]])
    transmat = np.array([[0.8, 0.2], [0.6, 0.4]])
    (moved,) = carried_chains(transmat[None], plan[None], True)
    # From state 0 of a: in state 0 of b with 1/2, from where 0.2 leads to state 1 of
    # b, which is state 0 of a; in state 1 with 1/2, from where 0.6 leads to state 0.
    stays = 0.5 * 0.8 + 0.5 * 0.4
    leaves = 0.5 * 0.6 * 2 / 3
    assert_allclose(moved, [[1 - leaves, leaves], [0.2, 0.8]])
    assert 1 - leaves >= stays
    (moved,) = carried_chains(transmat[None], plan[None], False)
    assert_allclose(moved[1], [0.2 + 0.8 / 3, 0.8 * 2 / 3])


@pytest.mark.parametrize("p", ORDERS)
def test_hellinger_rows_by_hand(p):
    weights = np.full((2, 2), 0.5)
    transmats = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.36, 0.64], [0.64, 0.36]]])
    pair = weights, transmats, np.eye(2) / 2, 1 - np.eye(2), 1 - np.eye(2)
    # In all four rows the affinity is 0.6, whatever the states cost.
    expected = (2 * (1 - 0.6)) ** (1 / p)
    assert_allclose(transition(*pair, p, hellinger=True), expected)


def test_hellinger_merges_states_with_equal_emissions():
    weights = np.full((2, 3), 1 / 3)
    one = np.array([[0.2, 0.3, 0.5]] * 3)
    other = np.array([[0.5, 0.0, 0.5]] * 3)
    within = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    pair = weights, np.array([one, other]), np.eye(3) / 3
    assert transition(*pair, within, within, 1, hellinger=True) == 0
    apart = 1 - np.eye(3)
    assert transition(*pair, apart, apart, 1, hellinger=True) > 0.1


@pytest.mark.parametrize("size", [1, 2, 6])
def test_jointly_transferred_rows_are_probabilities(size, rng):
    weights, transmats, plan, *_ = random_pair(rng, size, 1)
    forth, back = plan / weights[0][:, None], (plan / weights[1]).T
    moved = carried_chains(transmats, np.stack([plan.T, plan]), True)
    expected = [
        jointly_carried(back, transmats[0], forth),
        jointly_carried(forth, transmats[1], back),
    ]
    assert_allclose(moved, expected, atol=1e-14)
    assert_allclose(moved.sum(axis=2), 1, atol=1e-14)


@pytest.mark.parametrize("size", [1, 2, 6])
def test_transferred_rows_are_probabilities(size, rng):
    weights, transmats, plan, *_ = random_pair(rng, size, 1)
    forth, back = plan / weights[0][:, None], (plan / weights[1]).T
    moved = carried_chains(transmats, np.stack([plan.T, plan]), False)
    assert_allclose(moved[1], forth @ transmats[1] @ back, atol=1e-14)
    assert_allclose(moved[0], back @ transmats[0] @ forth, atol=1e-14)
    assert_allclose(moved.sum(axis=2), 1, atol=1e-14)


def test_states_without_mass_in_the_plan_have_no_steps():
    plan = np.array([[0.0, 0.0], [0.25, 0.75]])
    transmat = np.array([[0.9, 0.1], [0.4, 0.6]])
    (moved,) = carried_chains(transmat[None], plan[None], False)
    # All steps lead to state 1, which stands for both states of the model.
    assert_array_equal(moved, [[0, 0], [0, 1]])
