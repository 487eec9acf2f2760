r"""Discounted transition coupling: how far two chains stay apart when run together.

For states i of a and j of b let :math:`V_{ij}` be the discounted cost of running both
chains from there, coupled as well as possible:

.. math::
    V_{ij} = (1 - \gamma) c_{ij} + \gamma \, OT_V(T_a[i], T_b[j]) ,
    \qquad D_\gamma^p = \min_{W \in \Pi(\pi_a, \pi_b)} \langle W, V \rangle .

Solved by policy iteration: given the couplings of all rows, V is the solution of a
linear system; given V, each row coupling is a transport problem. V falls at every
round, and since there are finitely many extreme couplings it stops after a few.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skawhmm.distances._prepared import prepare_models
from skawhmm.distances._registration import power_cost
from skawhmm.models._batch import HMMBatch
from skawhmm.numerics._jit_transport import make_workspace, solve_transport
from skawhmm.utils._checks import check_real
from skawhmm.utils._compile import KERNEL

# Nearer to 1 the present cost is lost in rounding.
MAX_GAMMA = 1 - 1e-9

# A round that lowers no value by more than this share of the largest cost is the last.
VALUE_ROUNDING = 1e-13

# Rounds are few (2 to 6 are seen); the bound only guards against rounding.
MAX_ROUNDS = 100

# Sweeps stop at changes of this share of the largest cost, which is rounding.
SWEEP_ROUNDING = 1e-15

# Elimination takes n_cells / 3 steps a cell of the matrix, sweeps about this many over
# 1 - gamma, but only over the few cells that carry mass.
SWEEPS = 30


@njit(**KERNEL)
def coupling_distances(weights, transmats, index_a, index_b, cost, gamma, p):
    r"""Discounted transition coupling distances of model pairs.

    Parameters
    ----------
    weights : ndarray of shape (n_models, n_components)
        State probabilities :math:`\pi`.

    transmats : ndarray of shape (n_models, n_components, n_components)
        Transition matrices :math:`T`.

    index_a, index_b : ndarray of shape (n_pairs,)
        The models of each pair.

    cost : ndarray of shape (n_pairs, n_components, n_components)
        Cost :math:`c = W_2^p` between states.

    gamma : float in [0, 1)
        Weight of the future.

    p : float
        Order of the distance.

    Returns
    -------
    distances : ndarray of shape (n_pairs,)
        The distances :math:`D_\gamma`.
    """
    largest = weights.shape[1]
    distances = np.empty(index_a.size)
    values, plans = np.empty(largest**2), np.empty(largest**2)
    policies = np.empty(largest**4)
    numbers, nodes = make_workspace(largest, largest)
    for n in range(index_a.size):
        a, b = index_a[n], index_b[n]
        rows = _used_states(weights[a], transmats[a])
        columns = _used_states(weights[b], transmats[b])
        n_cells = rows * columns
        value = values[:n_cells].reshape(rows, columns)
        plan = plans[:n_cells].reshape(rows, columns)
        policy = policies[: n_cells**2].reshape(n_cells, rows, columns)
        coupling_value(
            transmats[a, :rows, :rows],
            transmats[b, :columns, :columns],
            np.ascontiguousarray(cost[n, :rows, :columns]),
            gamma,
            value,
            policy,
            numbers,
            nodes,
        )
        total = solve_transport(
            weights[a, :rows], weights[b, :columns], value, plan, numbers, nodes
        )
        distances[n] = total ** (1 / p)
    return distances


@njit(**KERNEL)
def _used_states(weights, transmat):
    """Count the states up to the last one that a path can reach.

    Padding is left out, so that nothing depends on the other models of a batch.
    """
    used = 1
    for i in range(weights.size):
        for j in range(weights.size):
            if weights[j] > 0 or (i != j and transmat[i, j] > 0):
                used = max(used, j + 1)
    return used


@njit(**KERNEL)
def coupling_value(chain_a, chain_b, cost, gamma, value, policy, numbers, nodes):
    """Fill `value` with V of one pair of models and `policy` with the row couplings."""
    n_rows, n_columns = cost.shape
    n_cells = n_rows * n_columns
    value[:] = cost
    slack = VALUE_ROUNDING * cost.max()
    gain = np.inf
    rounds = 0
    while gain > slack and rounds < MAX_ROUNDS:
        for i in range(n_rows):
            for j in range(n_columns):
                cell = i * n_columns + j
                solve_transport(
                    chain_a[i], chain_b[j], value, policy[cell], numbers, nodes
                )
        before = value.copy()
        if (1 - gamma) * n_cells**2 <= 3 * SWEEPS * (n_rows + n_columns):
            _eliminate(policy, cost, gamma, value)
        else:
            _sweep(policy, cost, gamma, value)
        # The first round starts from a value that no policy has, which may rise.
        gain = np.inf if rounds == 0 else (before - value).max()
        rounds += 1


@njit(**KERNEL)
def _eliminate(policy, cost, gamma, value):
    """Solve (I - gamma P) V = (1 - gamma) c; diagonal dominance needs no pivots."""
    n_cells = policy.shape[0]
    matrix = -gamma * policy.reshape(n_cells, n_cells)
    answer = (1 - gamma) * cost.reshape(-1)
    for k in range(n_cells):
        matrix[k, k] += 1.0
    for k in range(n_cells):
        for i in range(k + 1, n_cells):
            if matrix[i, k] != 0:
                factor = matrix[i, k] / matrix[k, k]
                for j in range(k + 1, n_cells):
                    matrix[i, j] -= factor * matrix[k, j]
                answer[i] -= factor * answer[k]
    flat = value.reshape(-1)
    for k in range(n_cells - 1, -1, -1):
        total = answer[k]
        for j in range(k + 1, n_cells):
            total -= matrix[k, j] * flat[j]
        flat[k] = total / matrix[k, k]


@njit(**KERNEL)
def _sweep(policy, cost, gamma, value):
    """Solve the same system by sweeps over the few cells that each coupling uses."""
    n_rows, n_columns = cost.shape
    n_cells = n_rows * n_columns
    cells = np.empty((n_cells, n_rows + n_columns), np.int64)
    masses = np.empty((n_cells, n_rows + n_columns))
    counts = np.zeros(n_cells, np.int64)
    for cell in range(n_cells):
        for k in range(n_cells):
            mass = policy[cell, k // n_columns, k % n_columns]
            if mass > 0:
                cells[cell, counts[cell]], masses[cell, counts[cell]] = k, mass
                counts[cell] += 1
    flat, base = value.reshape(-1), cost.reshape(-1)
    least, change = SWEEP_ROUNDING * cost.max(), np.inf
    while change > least:
        change = 0.0
        for cell in range(n_cells):
            ahead = 0.0
            for k in range(counts[cell]):
                ahead += masses[cell, k] * flat[cells[cell, k]]
            fresh = (1 - gamma) * base[cell] + gamma * ahead
            change = max(change, abs(fresh - flat[cell]))
            flat[cell] = fresh


class TransitionCoupling:
    """Discounted cost of running both chains together, coupled as well as possible.

    A pseudometric for p >= 1 that has no `alpha` to tune. With ``gamma=0`` it is the
    marginal component of MAW; the closer `gamma` is to 1, the more dynamics count.

    Parameters
    ----------
    p : float in (0, 2], default=1
        Order of the distance.

    gamma : float in [0, 1), default=0.9
        Weight of the future.
    """

    symmetric = True
    marginal_share = 1.0
    transition_share = 0.0

    def __init__(self, p: float = 1, *, gamma: float = 0.9) -> None:
        self.p = check_real("p", p, 0, 2, include_low=False)
        self.gamma = check_real("gamma", gamma, 0, MAX_GAMMA)

    def prepare(self, models: HMMBatch) -> Any:
        """Return what the pairs of `models` share.

        Parameters
        ----------
        models : HMMBatch
            The models.

        Returns
        -------
        prepared : PreparedModels
            For the other method.
        """
        return prepare_models(models)

    def distances(
        self, prepared: Any, index_a: NDArray[np.int64], index_b: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the distance of each pair.

        Parameters
        ----------
        prepared : PreparedModels
            From `prepare`.

        index_a, index_b : ndarray of int of shape (n_pairs,)
            The models of each pair.

        Returns
        -------
        distances : ndarray of shape (n_pairs,)
            The distances.
        """
        cost = power_cost(prepared.costs.cross(index_a, index_b), self.p)
        return coupling_distances(
            prepared.weights,
            prepared.transmats,
            index_a,
            index_b,
            cost,
            self.gamma,
            self.p,
        )
