"""The paper read literally, slowly, one small function per equation.

Y. Chen, J. Ye and J. Li, Aggregated Wasserstein Distance and State Registration for
Hidden Markov Models; equation numbers are the paper's. NumPy and SciPy only. A model is
a dict: T (M, M), pi (M,), mu (M, d), Sigma (M, d, d).

Where the text leaves a choice:

- Eq. 12 and 13 take W to the power p, as Remark 4 and Eq. 24 have it;
- Eq. 14 combines the p-th roots; the transition term is the sum of both directions;
- Eq. 21: the coupling is a permutation over n, its ground cost ``|x - y| ** p``;
- 0 / 0 is 0 in conditional plans: a state with pi = 0 plays no part.
"""

import numpy as np
from scipy.linalg import sqrtm
from scipy.optimize import linear_sum_assignment, linprog
from scipy.special import logsumexp


def stationary(T):
    """Stationary distribution of a chain with one recurrent class (GTH), Sec. 2.1."""
    size = len(T)
    reach = np.linalg.matrix_power(np.eye(size) + (T > 0), size) > 0
    recurrent = [
        i for i in range(size) if all(reach[j, i] for j in range(size) if reach[i, j])
    ]
    if not all(reach[recurrent[0], j] for j in recurrent):
        raise ValueError("more than one recurrent class: pi is not unique")
    part = T[np.ix_(recurrent, recurrent)].copy()
    for k in range(len(recurrent) - 1, 0, -1):
        part[:k, k] /= part[k, :k].sum()
        part[:k, :k] += np.outer(part[:k, k], part[k, :k])
    law = np.ones(len(recurrent))
    for k in range(1, len(recurrent)):
        law[k] = law[:k] @ part[:k, k]
    pi = np.zeros(size)
    pi[recurrent] = law / law.sum()
    return pi


def gaussian_cost(mean, covar, other_mean, other_covar):
    """Eq. 2."""
    root = np.real(sqrtm(covar))
    cross = np.real(sqrtm(root @ other_covar @ root))
    squared = np.sum((mean - other_mean) ** 2)
    squared += np.trace(covar + other_covar - 2 * cross)
    return np.sqrt(max(squared, 0.0))


def costs(a, b):
    """Eq. 2 between all states of two models."""
    return np.array(
        [
            [
                gaussian_cost(mean, covar, *other)
                for other in zip(b["mu"], b["Sigma"], strict=True)
            ]
            for mean, covar in zip(a["mu"], a["Sigma"], strict=True)
        ]
    )


def inner_costs(a):
    """Eq. 2 within a model; a state is at 0 from itself, which rounding would miss."""
    cost = costs(a, a)
    np.fill_diagonal(cost, 0.0)
    return cost


def transport(supply, demand, cost):
    """Least cost of a plan with these margins, and the plan: a linear programme."""
    supply, demand = supply / np.sum(supply), demand / np.sum(demand)
    m, n = cost.shape
    rows = np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))])
    scale = cost.max() if cost.max() > 0 else 1.0
    found = linprog(
        cost.ravel() / scale,
        A_eq=rows[:-1],
        b_eq=np.r_[supply, demand][:-1],
        bounds=(0, None),
        method="highs-ds",
        options={
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        },
    )
    assert found.status == 0, found.message
    plan = np.maximum(found.x.reshape(m, n), 0.0)
    return float(np.sum(plan * cost)), plan


def registration(a, b, p, cost):
    """Eq. 3."""
    return transport(a["pi"], b["pi"], cost**p)[1]


def marginal(plan, cost, p):
    """Eq. 5."""
    return np.sum(plan * cost**p) ** (1 / p)


def ratio(x, y):
    """Quotient in which 0 / 0 is 0."""
    shape = np.broadcast(x, y).shape
    return np.divide(x, y, out=np.zeros(shape), where=y != 0)


def carried(plan, T1, T2):
    """Eq. 10 and 9: the first chain on the second's states, and the reverse."""
    forth = ratio(plan, plan.sum(1, keepdims=True))
    back = ratio(plan, plan.sum(0, keepdims=True))
    return back.T @ T1 @ forth, forth @ T2 @ back.T


def chain_cost(pi, T, other, cost, p):
    """Eq. 12 and 13, to the power p, with the costs within the model."""
    return sum(
        weight * max(transport(row, moved, cost**p)[0], 0.0)
        for weight, row, moved in zip(pi, T, other, strict=True)
        if weight > 0
    )


def transition(a, b, plan, p, cost_a, cost_b):
    """Eq. 11."""
    first, second = carried(plan, a["T"], b["T"])
    total = chain_cost(a["pi"], a["T"], second, cost_a, p)
    total += chain_cost(b["pi"], b["T"], first, cost_b, p)
    return total ** (1 / p)


def log_gaussian(x, mean, covar, tolerance=1e-10):
    """Rank and log density on the support of a Gaussian; -inf off the support."""
    values, vectors = np.linalg.eigh(covar)
    largest = max(values.max(), 0.0)
    kept = values > tolerance * largest if largest > 0 else np.zeros(len(values), bool)
    z = (x - mean) @ vectors
    beside = np.linalg.norm(z[:, ~kept], axis=1)
    density = -0.5 * np.sum(z[:, kept] ** 2 / values[kept], axis=1)
    density -= 0.5 * np.sum(np.log(2 * np.pi * values[kept]))
    scale = np.sqrt(largest) + np.linalg.norm(x, axis=1) + 1e-300
    return int(kept.sum()), np.where(beside <= 1e-7 * scale, density, -np.inf)


def posterior(x, a):
    """Eq. 20: one row per point; of singular states those of least rank count."""
    parts = [log_gaussian(x, *state) for state in zip(a["mu"], a["Sigma"], strict=True)]
    ranks = np.array([rank for rank, _ in parts], float)
    with np.errstate(divide="ignore"):
        scores = np.stack([score for _, score in parts], axis=1) + np.log(a["pi"])
    present = np.where(np.isfinite(scores), ranks, np.inf)
    least = present.min(axis=1, keepdims=True)
    scores = np.where(present == least, scores, -np.inf)
    return np.exp(scores - logsumexp(scores, axis=1, keepdims=True))


def sampled_registration(a, b, x, y, p):
    """Eq. 21, with the exact coupling of two samples."""
    cost = np.linalg.norm(x[:, None, :] - y[None, :, :], axis=2) ** p
    i, j = linear_sum_assignment(cost)
    return posterior(x, a)[i].T @ posterior(y, b)[j] / len(x)


def log_likelihood(a, x):
    """Forward recursion in logarithms, from the stationary law."""
    emitted = np.stack(
        [
            -0.5
            * (
                np.sum((x - mean) * np.linalg.solve(covar, (x - mean).T).T, axis=1)
                + np.linalg.slogdet(covar)[1]
                + x.shape[1] * np.log(2 * np.pi)
            )
            for mean, covar in zip(a["mu"], a["Sigma"], strict=True)
        ],
        axis=1,
    )
    with np.errstate(divide="ignore"):
        ahead, steps = np.log(a["pi"]) + emitted[0], np.log(a["T"])
    for row in emitted[1:]:
        ahead = logsumexp(ahead[:, None] + steps, axis=0) + row
    return float(logsumexp(ahead))
