import tracemalloc
from itertools import pairwise

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

from skawhmm import (
    HMMBatch,
    TransitionCoupling,
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
)
from skawhmm.distances._coupling import discounted_distributions
from skawhmm.distances._entry_points import coupling_value, policy_value

GAMMAS = [0, 0.3, 0.9, 0.99]


def random_problem(rng, n_rows, n_columns):
    chains = [rng.dirichlet(np.ones(m), m) for m in (n_rows, n_columns)]
    return (*chains, rng.random((n_rows, n_columns)))


def linear_programme(chain_a, chain_b, cost, gamma):
    """The largest V with V <= (1 - gamma) c + gamma OT_V, OT in its dual form.

    The variables are V and, for each pair of states, prices u and v of the states that
    may follow, with u_k + v_l <= V_kl.
    """
    n_rows, n_columns = cost.shape
    n_cells, n_prices = cost.size, n_rows + n_columns
    n_variables = n_cells * (1 + n_prices)
    left, right = [], []
    for cell in range(n_cells):
        i, j = divmod(cell, n_columns)
        first = n_cells + cell * n_prices
        row = np.zeros(n_variables)
        row[cell] = 1
        row[first : first + n_rows] = -gamma * chain_a[i]
        row[first + n_rows : first + n_prices] = -gamma * chain_b[j]
        left.append(row)
        right.append((1 - gamma) * cost[i, j])
        for k, m in np.ndindex(n_rows, n_columns):
            row = np.zeros(n_variables)
            row[[first + k, first + n_rows + m]] = 1
            row[k * n_columns + m] = -1
            left.append(row)
            right.append(0)
    aim = np.zeros(n_variables)
    aim[:n_cells] = -1
    solution = linprog(aim, np.array(left), right, bounds=(None, None))
    assert solution.status == 0
    return solution.x[:n_cells].reshape(cost.shape)


def value_iteration(chain_a, chain_b, cost, gamma, tolerance=1e-12):
    value, change = cost, np.inf
    while change > tolerance:
        ahead = [[ot.emd2(a, b, value) for b in chain_b] for a in chain_a]
        fresh = (1 - gamma) * cost + gamma * np.array(ahead)
        change, value = np.abs(fresh - value).max(), fresh
    return value


# The value of a pair


@pytest.mark.parametrize("sizes", [(1, 1), (2, 2), (2, 3), (3, 2), (3, 3)])
@pytest.mark.parametrize("gamma", GAMMAS)
def test_value_solves_the_linear_programme(sizes, gamma, rng):
    for _ in range(4):
        problem = random_problem(rng, *sizes)
        value, _ = coupling_value(*problem, gamma)
        assert_allclose(value, linear_programme(*problem, gamma), atol=1e-8)


@pytest.mark.parametrize("sizes", [(4, 4), (2, 6)])
@pytest.mark.parametrize("gamma", [0.3, 0.8])
def test_value_is_the_limit_of_value_iteration(sizes, gamma, rng):
    problem = random_problem(rng, *sizes)
    value, _ = coupling_value(*problem, gamma)
    assert_allclose(value, value_iteration(*problem, gamma), atol=1e-10)


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99999])
def test_value_is_a_fixed_point_for_many_states(gamma, rng):
    # From twelve states on, sweeps take the place of elimination at small gamma.
    chain_a, chain_b, cost = random_problem(rng, 14, 12)
    value, policy = coupling_value(chain_a, chain_b, cost, gamma)
    ahead = [[ot.emd2(a, b, value) for b in chain_b] for a in chain_a]
    expected = (1 - gamma) * cost + gamma * np.array(ahead)
    assert_allclose(value, expected, atol=1e-11)
    for cell, plan in enumerate(policy):
        i, j = divmod(cell, 12)
        assert_allclose(plan.sum(axis=1), chain_a[i], atol=1e-12)
        assert_allclose(plan.sum(axis=0), chain_b[j], atol=1e-12)


@pytest.mark.parametrize("sizes", [(3, 3), (5, 2), (11, 12)])
@pytest.mark.parametrize("gamma", [0, 0.5, 0.9, 0.99])
def test_steps_and_elimination_agree(sizes, gamma, rng):
    chain_a, chain_b, cost = random_problem(rng, *sizes)
    _, policy = coupling_value(chain_a, chain_b, cost, gamma)
    value, _ = policy_value(policy, cost, gamma, dense=True)
    stepped, _ = policy_value(policy, cost, gamma, dense=False)
    assert_allclose(value, stepped, atol=1e-12)
    matrix = np.eye(cost.size) - gamma * policy.reshape(cost.size, cost.size)
    expected = np.linalg.solve(matrix, (1 - gamma) * cost.ravel())
    assert_allclose(value.ravel(), expected, atol=1e-12)


CHAINS = {
    "random": lambda rng, m: rng.dirichlet(np.full(m, 0.5), m),
    "sparse": lambda rng, m: rng.dirichlet(np.full(m, 0.05), m),
    "sticky": lambda rng, m: 0.9 * np.eye(m) + 0.1 * rng.dirichlet(np.ones(m), m),
    "identity": lambda _, m: np.eye(m),
    "cycle": lambda _, m: np.roll(np.eye(m), 1, axis=1),
    "permutation": lambda rng, m: np.eye(m)[rng.permutation(m)],
    "left-right": lambda rng, m: (
        (stay := np.append(rng.uniform(0.5, 0.95, m - 1), 1.0)) * np.eye(m)
        + np.diag(1 - stay[:-1], 1)
    ),
    "uniform": lambda _, m: np.full((m, m), 1 / m),
    # Multiples of 1/16: all partial sums of two rows tie.
    "split": lambda rng, m: rng.multinomial(16, np.ones(m) / m, m) / 16,
}
# Both ways to find V: elimination up to twelve states.
MANY = [(5, 9), (20, 24), (36, 13)]


@pytest.mark.parametrize("sizes", MANY)
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("ties", [False, True])
def test_value_of_many_states_is_a_fixed_point(sizes, chain, ties, rng):
    n_rows, n_columns = sizes
    chain_a, chain_b = CHAINS[chain](rng, n_rows), CHAINS["split"](rng, n_columns)
    cost = rng.integers(0, 3, sizes) / 2 if ties else rng.random(sizes)
    for gamma in (0.9, 0.99):
        value, policy = coupling_value(chain_a, chain_b, cost, gamma)
        ahead = [[ot.emd2(a, b, value) for b in chain_b] for a in chain_a]
        expected = (1 - gamma) * cost + gamma * np.array(ahead)
        assert_allclose(value, expected, rtol=0, atol=1e-13)
        of_policy = np.einsum("nij,ij->n", policy, value).reshape(sizes)
        assert_allclose(value, (1 - gamma) * cost + gamma * of_policy, atol=1e-14)
        rows = np.repeat(chain_a, n_columns, axis=0)
        columns = np.tile(chain_b, (n_rows, 1))
        assert policy.min() >= 0
        assert_allclose(policy.sum(axis=2), rows, rtol=0, atol=1e-14)
        assert_allclose(policy.sum(axis=1), columns, rtol=0, atol=1e-14)
        assert np.count_nonzero(policy, axis=(1, 2)).max() < n_rows + n_columns


def policy_iteration(chain_a, chain_b, cost, gamma):
    """The rounds of `coupling_value`, literally."""
    value, last = cost, None
    while last is None or np.max(last - value) > 1e-12:
        policy = [ot.emd(a, b, value).ravel() for a in chain_a for b in chain_b]
        system = np.eye(cost.size) - gamma * np.array(policy)
        fresh = np.linalg.solve(system, (1 - gamma) * cost.ravel())
        last = None if value is cost else value
        value = fresh.reshape(cost.shape)
    return value


@pytest.mark.parametrize("chain", ["random", "sticky", "left-right", "split"])
def test_value_matches_literal_policy_iteration(chain, rng):
    for sizes in ((4, 6), (20, 16)):
        chains = [CHAINS[chain](rng, m) for m in sizes]
        cost = rng.random(sizes)
        value, _ = coupling_value(*chains, cost, 0.9)
        assert_allclose(value, policy_iteration(*chains, cost, 0.9), rtol=1e-12)


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("gamma", [0.5, 0.99, 0.9995])
def test_steps_find_the_value_of_all_kinds_of_chains(chain, gamma, rng):
    chains = [CHAINS[chain](rng, m) for m in (12, 11)]
    cost = rng.random((12, 11))
    _, policy = coupling_value(*chains, cost, gamma)
    value, n_sweeps = policy_value(policy, cost, gamma, dense=False)
    # Sweeps only confirm the value, unless a chain runs in a circle.
    assert n_sweeps <= 5 or chain in ("cycle", "permutation")
    matrix = np.eye(cost.size) - gamma * policy.reshape(cost.size, cost.size)
    expected = np.linalg.solve(matrix, (1 - gamma) * cost.ravel())
    assert_allclose(value.ravel(), expected, rtol=0, atol=2e-15 / (1 - gamma))


def test_two_pairs_of_states_that_take_turns():
    # V0 = V1 / 2 and V1 = 1 / 2 + V0 / 2; half a step closes the gap with no rest.
    policy = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    value, n_sweeps = policy_value(policy, np.array([[0.0, 1.0]]), 0.5, dense=False)
    assert_allclose(value, [[1 / 3, 2 / 3]], rtol=1e-15)
    assert n_sweeps <= 3


@pytest.mark.parametrize("size", [4, 20])
@pytest.mark.parametrize("power", [-900, -300, 300, 660])
def test_value_scales_with_the_cost_to_the_last_bit(size, power, rng):
    chain_a, chain_b, cost = random_problem(rng, size, size)
    value, policy = coupling_value(chain_a, chain_b, cost, 0.9)
    scaled, same = coupling_value(chain_a, chain_b, 2.0**power * cost, 0.9)
    assert_array_equal(scaled, 2.0**power * value)
    assert_array_equal(same, policy)


def test_memory_grows_with_the_cube_of_the_states(rng):
    models = HMMBatch(
        rng.dirichlet(np.ones(40), (2, 40)),
        rng.normal(size=(2, 40, 2)),
        np.ones((2, 40, 2)),
    )
    tracemalloc.start()
    try:
        hmm_distance(models[0], models[1], "coupling")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A number per pair of pairs of states would be 20 MB.
    assert peak < 5e6


# The distance


@pytest.mark.parametrize("p", [0.5, 1, 2])
@pytest.mark.parametrize("gamma", GAMMAS)
def test_distance_transports_the_weights_at_the_value(p, gamma, make_batch):
    models = make_batch(2, [3, 2], 2, "full")
    costs = models.emission.ground_costs()
    cost = costs.cross(np.array([0]), np.array([1]))[0, :, :2] ** (p / 2)
    chain_a, chain_b = models.transmats[0], models.transmats[1, :2, :2]
    value = linear_programme(chain_a, chain_b, cost, gamma)
    total = ot.emd2(models.weights[0], models.weights[1, :2], value)
    actual = hmm_distance(
        models[0], models[1], "coupling", p=p, metric_params={"gamma": gamma}
    )
    assert_allclose(actual, total ** (1 / p), rtol=1e-6)


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2])
def test_distance_without_future_is_the_marginal_component(p, make_batch):
    models = make_batch(5, [1, 2, 3, 4, 3])
    marginal, _ = pairwise_hmm_components(models, p=p)
    actual = pairwise_hmm_distances(models, metric=TransitionCoupling(p, gamma=0))
    assert_allclose(actual, marginal, rtol=1e-12)


def batch_of(seed, sizes):
    rng = np.random.default_rng(seed)
    return HMMBatch(
        [rng.dirichlet(np.full(m, 0.7), m) for m in sizes],
        [rng.integers(0, 3, size=(m, 2)).astype(float) for m in sizes],
        [rng.uniform(0, 1, size=(m, 2)).round(1) for m in sizes],
    )


SIZES = st.lists(st.integers(1, 4), min_size=3, max_size=3)


@given(st.integers(0, 10**6), SIZES, st.sampled_from([0.5, 1, 2]))
def test_distance_grows_with_gamma(seed, sizes, p):
    models = batch_of(seed, sizes)
    matrices = [
        pairwise_hmm_distances(models, metric=TransitionCoupling(p, gamma=gamma))
        for gamma in (0, 0.2, 0.5, 0.9, 0.99)
    ]
    scale = matrices[-1].max()
    for less, more in pairwise(matrices):
        assert np.all(less <= more + 1e-9 * scale)


@given(
    st.integers(0, 10**6),
    SIZES,
    st.sampled_from([1, 1.5, 2]),
    st.sampled_from([0.3, 0.9]),
)
def test_distance_is_a_pseudometric(seed, sizes, p, gamma):
    models = batch_of(seed, sizes)
    metric = TransitionCoupling(p, gamma=gamma)
    distances = pairwise_hmm_distances(models, metric=metric)
    assert_array_equal(distances, distances.T)
    assert np.isfinite(distances).all()
    slack = 1e-7 * distances.max()
    assert np.diag(distances).max() <= slack
    for k in range(3):
        through = distances[:, k, None] + distances[k]
        assert np.all(distances <= through + slack)


@pytest.mark.parametrize("p", [0.5, 1, 2])
@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_distance_to_itself_is_zero(p, covariance_type, make_batch):
    models = make_batch(6, [1, 2, 3, 12, 13, 24], 2, covariance_type)
    distances = pairwise_hmm_distances(models, metric=TransitionCoupling(p))
    assert_array_equal(np.diag(distances), np.zeros(6))


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_cloned_states_do_not_matter(share, make_batch):
    models = make_batch(2, 3)
    clone = [0, 1, 2, 2]
    transmat = models.transmats[0][clone][:, clone]
    transmat[:, 2] *= share
    transmat[:, 3] *= 1 - share
    cloned = HMMBatch([transmat], models.means[:1, clone], models.covars[:1, clone])
    assert hmm_distance(cloned, models[0], "coupling") < 1e-12
    assert_allclose(
        hmm_distance(cloned, models[1], "coupling"),
        hmm_distance(models[0], models[1], "coupling"),
        rtol=1e-10,
    )


def test_labels_and_unused_states_do_not_matter(make_batch):
    models = make_batch(2, 3)
    distance = hmm_distance(*models, "coupling")
    order = np.array([2, 0, 1])
    moved = HMMBatch(
        models.transmats[:1, order][:, :, order],
        models.means[:1, order],
        models.covars[:1, order],
    )
    assert_allclose(hmm_distance(moved, models[1], "coupling"), distance, rtol=1e-12)
    grown = np.eye(4)
    grown[:3, :3] = models.transmats[0]
    bigger = HMMBatch(
        [grown],
        [[*models.means[0], [1e3, 1e3]]],
        [[*models.covars[0], [1.0, 1.0]]],
        weights=[[*models.weights[0], 0.0]],
    )
    assert_allclose(hmm_distance(bigger, models[1], "coupling"), distance, rtol=1e-12)


def test_a_pair_does_not_depend_on_its_batch(make_batch):
    models = make_batch(6, [3, 14, 1, 20, 12, 14])
    metric = TransitionCoupling(gamma=0.95)
    distances = pairwise_hmm_distances(models, metric=metric)
    again = pairwise_hmm_distances(models, metric=metric, n_jobs=2)
    assert_array_equal(distances, again)
    order = np.array([4, 1, 5, 0, 3, 2])
    for i, j in ((0, 1), (1, 3), (2, 3), (1, 5), (3, 4)):
        assert hmm_distance(models[i], models[j], metric) == distances[i, j]
        some = pairwise_hmm_distances(models[[i]], models[order], metric=metric)
        assert some[0, np.flatnonzero(order == j)[0]] == distances[i, j]


def test_models_that_differ_in_transitions_only_have_positive_distance():
    transmats = [[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]]
    models = HMMBatch(transmats, [[[0.0], [1.0]]] * 2, np.ones((2, 2, 1)))
    assert hmm_distance(*models, "coupling", metric_params={"gamma": 0}) == 0
    assert hmm_distance(*models, "coupling") > 0.1


def test_distance_scales_with_the_observations(make_batch):
    models = make_batch(2)
    scaled = HMMBatch(models.transmats, 8 * models.means, 64 * models.covars)
    assert_allclose(
        hmm_distance(*scaled, "coupling"), 8 * hmm_distance(*models, "coupling")
    )


@pytest.mark.parametrize("gamma", [0.999999, 1 - 1e-9])
def test_distance_converges_for_gamma_near_one(gamma, make_batch):
    models = make_batch(2, [3, 12])
    params = {"gamma": gamma}
    distance = hmm_distance(*models, "coupling", metric_params=params)
    near = hmm_distance(*models, "coupling", metric_params={"gamma": 0.9999})
    assert_allclose(distance, near, rtol=1e-3)


def test_masked_models_are_compared_on_common_features(make_batch):
    models = make_batch(2, 3, 3)
    observed = np.array([[True, True, False], [True, True, True]])
    masked = HMMBatch(models.transmats, models.means, models.covars, observed=observed)
    common = HMMBatch(models.transmats, models.means[..., :2], models.covars[..., :2])
    assert_allclose(
        hmm_distance(*masked, "coupling"),
        np.sqrt(3 / 2) * hmm_distance(*common, "coupling"),
    )


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ({"gamma": 1}, ValueError, r"gamma must be a number in \[0, 0.999999999\]"),
        ({"gamma": -0.1}, ValueError, r"gamma must be a number in \[0, "),
        ({"gamma": np.nan}, ValueError, "gamma must be a number"),
        ({"gamma": "0.9"}, TypeError, "gamma must be a number"),
        ({"gamma": True}, TypeError, "gamma must be a number"),
        ({"alpha": 0.5}, ValueError, r"metric_params of 'coupling' may be \['gamma'\]"),
    ],
)
def test_bad_options(params, error, words, make_batch):
    with pytest.raises(error, match=words):
        pairwise_hmm_distances(make_batch(2), metric="coupling", metric_params=params)


@pytest.mark.parametrize("p", [0, -1, 2.5, "1"])
def test_bad_order(p, make_batch):
    with pytest.raises((ValueError, TypeError), match=r"p must be a number in \(0, 2"):
        pairwise_hmm_distances(make_batch(2), metric="coupling", p=p)


# The lower bound


def test_discounted_distributions_match_the_series(rng):
    weights, chains = rng.dirichlet(np.ones(3), 4), rng.dirichlet(np.ones(3), (4, 3))
    occupancies, now = np.zeros((4, 3)), weights
    for t in range(400):
        occupancies += 0.1 * 0.9**t * now
        now = np.einsum("ni,nij->nj", now, chains)
    assert_allclose(
        discounted_distributions(weights, chains, 0.9), occupancies, rtol=1e-12
    )
    assert_allclose(discounted_distributions(weights, chains, 0.0), weights, rtol=1e-15)


def test_the_marginal_component_bounds_stationary_models_only():
    # Both chains fall into one state and stay: they differ at the first step only,
    # which has a share 1 - gamma of the time.
    models = HMMBatch(
        [[[0.0, 1.0], [0.0, 1.0]]] * 2,
        [[[0.0], [5.0]], [[8.0], [5.0]]],
        np.ones((2, 2, 1)),
        weights=[[1.0, 0.0], [1.0, 0.0]],
    )
    assert pairwise_hmm_components(models)[0][0, 1] == 8.0
    distance = hmm_distance(models[0], models[1], TransitionCoupling(gamma=0.9))
    assert_allclose(distance, 0.8)
    occupancies = discounted_distributions(models.weights, models.transmats, 0.9)
    assert_allclose(occupancies, [[0.1, 0.9]] * 2)


@given(st.integers(0, 2**32 - 1), st.sampled_from(GAMMAS), st.sampled_from([1.0, 2.0]))
def test_transport_of_discounted_distributions_is_a_lower_bound(seed, gamma, p):
    rng = np.random.default_rng(seed)
    models = HMMBatch(
        rng.dirichlet(np.full(3, 0.3), (4, 3)),
        rng.normal(size=(4, 3, 2)),
        rng.random((4, 3, 2)),
        weights=rng.dirichlet(np.full(3, 0.3), 4),
    )
    metric = TransitionCoupling(p, gamma=gamma)
    occupancies = HMMBatch(
        models.transmats,
        models.means,
        models.covars,
        weights=metric.prepare(models).margins,
    )
    bound, _ = pairwise_hmm_components(occupancies, p=p)
    distances = pairwise_hmm_distances(models, metric=metric)
    assert np.all(bound <= distances + 1e-9)
