"""MAW against frozen numbers, and against a slow reading of the paper's equations.

The frozen cases and what made them are in `tests/oracle`. A model is a dict: T,
pi, mu, Sigma; equation numbers are the paper's.
"""

import numpy as np
import ot
import pytest
from helpers import case_models, case_weights, jointly_carried, squared_hellinger
from numpy.testing import assert_allclose
from scipy.linalg import sqrtm
from scipy.optimize import linprog

from skawhmm import MAW, HMMBatch, pairwise_hmm_components, register_states
from skawhmm.distances._components import (
    carried_chains,
    transition_components,
)

ORDERS = (0.5, 1, 1.5, 2)
ALPHAS = (0, 0.1, 0.5, 1)


def literal_cost(one, two):
    """Eq. 2."""
    cost = np.empty((len(one["pi"]), len(two["pi"])))
    for i, (mean, covar) in enumerate(zip(one["mu"], one["Sigma"], strict=True)):
        for j, (other, spread) in enumerate(zip(two["mu"], two["Sigma"], strict=True)):
            root = sqrtm(covar)
            cross = np.real(sqrtm(root @ spread @ root))
            squared = np.sum((mean - other) ** 2)
            squared += np.trace(covar) + np.trace(spread) - 2 * np.trace(cross)
            cost[i, j] = np.sqrt(max(squared, 0))
    return cost


def literal_transport(supply, demand, cost):
    m, n = cost.shape
    sums = [np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))]
    result = linprog(
        cost.ravel(),
        A_eq=np.vstack(sums)[:-1],
        b_eq=np.concatenate([supply, demand])[:-1],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0
    return result.x.reshape(m, n)


def row_transport(row, other, within):
    return np.sum(literal_transport(row, other, within) * within)


def literal_maw(one, two, p, steps="independent", rows="transport"):
    """Eq. 3, 5 and 9 to 13: registration, marginal and transition component."""
    cost = literal_cost(one, two) ** p
    plan = literal_transport(one["pi"], two["pi"], cost)
    forth = plan / plan.sum(axis=1, keepdims=True)
    back = (plan / plan.sum(axis=0, keepdims=True)).T
    carry = jointly_carried if steps == "joint" else lambda f, t, b: f @ t @ b
    gap = squared_hellinger if rows == "hellinger" else row_transport
    total = 0.0
    for model, carried in (
        (one, carry(forth, two["T"], back)),
        (two, carry(back, one["T"], forth)),
    ):
        within = literal_cost(model, model) ** p
        np.fill_diagonal(within, 0)
        for weight, row, moved in zip(model["pi"], model["T"], carried, strict=True):
            total += weight * gap(row, moved / moved.sum(), within)
    return plan, np.sum(plan * cost) ** (1 / p), total ** (1 / p)


def stationary_model(rng, size, n_features):
    transmat = rng.dirichlet(np.ones(size), size=size)
    roots = rng.normal(size=(size, n_features, n_features))
    values, vectors = np.linalg.eig(transmat.T)
    weights = np.real(vectors[:, np.argmax(np.real(values))])
    return {
        "T": transmat,
        "pi": weights / weights.sum(),
        "mu": rng.normal(size=(size, n_features)),
        "Sigma": roots @ roots.swapaxes(1, 2) + 0.1 * np.eye(n_features),
    }


def batch(*models):
    return HMMBatch(
        [model["T"] for model in models],
        [model["mu"] for model in models],
        [model["Sigma"] for model in models],
        weights=[model["pi"] for model in models],
    )


@pytest.mark.parametrize("rows", ["transport", "hellinger"])
@pytest.mark.parametrize("steps", ["independent", "joint"])
@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize(
    ("sizes", "n_features"), [((1, 1), 1), ((2, 3), 1), ((3, 3), 2), ((5, 4), 3)]
)
def test_maw_against_the_equations(sizes, n_features, p, steps, rows):
    kind = {"steps": steps, "rows": rows}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        one, two = (stationary_model(rng, size, n_features) for size in sizes)
        plan, marginal, transition = literal_maw(one, two, p, **kind)
        models = batch(one, two)
        actual = pairwise_hmm_components(models, p=p, metric_params=kind)
        assert_allclose(register_states(models[0], models[1], p=p), plan, atol=1e-8)
        assert_allclose(actual[0][0, 1], marginal, rtol=1e-7)
        assert_allclose(actual[1][0, 1], transition, rtol=1e-6, atol=1e-9)


def test_marginal_against_pot(rng):
    # POT knows the transport between mixtures whose cost is the squared distance.
    for _ in range(5):
        one, two = stationary_model(rng, 3, 2), stationary_model(rng, 4, 2)
        squared = ot.gmm.gmm_ot_loss(
            one["mu"], two["mu"], one["Sigma"], two["Sigma"], one["pi"], two["pi"]
        )
        marginal, _ = pairwise_hmm_components(batch(one), batch(two), p=2)
        assert_allclose(marginal[0, 0] ** 2, squared, rtol=1e-7)
        plan = ot.gmm.gmm_ot_plan(
            one["mu"], two["mu"], one["Sigma"], two["Sigma"], one["pi"], two["pi"]
        )
        assert_allclose(register_states(batch(one), batch(two), p=2), plan, atol=1e-10)


def test_stationary_distribution(case):
    models = case_models(case)
    for k, expected in enumerate(case_weights(case)):
        actual = models.weights[k, : len(expected)]
        assert_allclose(actual, expected, rtol=1e-9, atol=1e-300)


def test_ground_cost(case):
    costs = case_models(case).emission.ground_costs()
    zero, one = np.array([0]), np.array([1])
    for name, actual in (
        ("C12", costs.cross(zero, one)),
        ("C11", costs.within(zero, one)),
        ("C22", costs.within(one, zero)),
    ):
        expected = case[name]
        part = actual[0][: expected.shape[0], : expected.shape[1]]
        # The roots of the covariances bring an error of their own.
        rounding = 1e-14 * expected.max() ** 2
        atol = float(case["w2sq_tol"]) + rounding
        assert_allclose(part, expected**2, rtol=1e-12, atol=atol)


def test_components(case):
    models = case_models(case, weights=case_weights(case))
    for k, p in enumerate(ORDERS):
        marginal, transition = pairwise_hmm_components(models, p=p)
        tolerance = float(case["R_tol"][k])
        assert_allclose(marginal[0, 1], case["R"][k], rtol=0, atol=tolerance)
        if case["tie"][k]:
            continue
        plan = register_states(models[0], models[1], p=p)
        assert_allclose(plan, case["W"][k], rtol=0, atol=1e-8)
        tolerance = float(case["D_tol"][k])
        assert_allclose(transition[0, 1], case["D"][k], rtol=0, atol=tolerance)
        for m, alpha in enumerate(ALPHAS):
            metric = MAW(alpha=alpha, p=p)
            prepared = metric.prepare(models)
            value = metric.distances(prepared, np.array([0]), np.array([1]))[0]
            tolerance = float(case["MAW_tol"][k, m])
            assert_allclose(value, case["MAW"][k, m], rtol=0, atol=tolerance)


def test_transition_given_the_plan(case):
    # Held for ties, too: with the stored registration there is no choice.
    models = case_models(case, weights=case_weights(case))
    size = models.transmats.shape[1]
    for k, p in enumerate(ORDERS):
        plan, *within = (
            np.pad(array, [(0, size - side) for side in array.shape])[None]
            for array in (case["W"][k], case["C11"] ** p, case["C22"] ** p)
        )
        index = np.array([0]), np.array([1])
        chains = models.transmats, models.transmats
        actual = transition_components(
            models.weights, *chains, *index, plan, *within, float(p), False, False
        )
        tolerance = float(case["D_tol"][k])
        assert_allclose(actual[0], case["D"][k], rtol=0, atol=tolerance)


def test_transferred_chains_given_the_plan(case):
    models = case_models(case)
    size = models.transmats.shape[1]
    for k in range(len(ORDERS)):
        plan = case["W"][k]
        plan = np.pad(plan, [(0, size - side) for side in plan.shape])
        # The chain of the first model on the states of the second, and back.
        moved = carried_chains(models.transmats, np.stack([plan.T, plan]), False)
        for chain, expected in zip(
            moved, (case["T1t"][k], case["T2t"][k]), strict=True
        ):
            part = chain[: len(expected), : len(expected)]
            assert_allclose(part, expected, rtol=0, atol=1e-9)
