"""The frozen cases against the literal equations that made them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracle import reference
from oracle.cases import N_CASES, load, model

ORDERS = (0.5, 1, 1.5, 2)
ALPHAS = np.array([0, 0.1, 0.5, 1])
# Roots of singular matrices by SciPy are not accurate.
SINGULAR = ("sing_missing", "sing_rotated", "sing_mixed")


@pytest.fixture(scope="module")
def cases():
    return load()


@pytest.fixture(params=range(0, N_CASES, 5))
def case(cases, request):
    return cases[request.param]


def test_there_are_all_cases_of_all_families(cases):
    assert len(cases) == N_CASES
    assert len({case["family"] for case in cases}) == 15


def test_stationary_distributions_and_costs(case):
    a, b = model(case, 1), model(case, 2)
    for one in (a, b):
        assert_allclose(reference.stationary(one["T"]), one["pi"], atol=1e-12)
    if case["family"] not in SINGULAR:
        slack = float(case["w2sq_tol"]) + 1e-12 * case["C12"].max() ** 2
        assert_allclose(reference.costs(a, b) ** 2, case["C12"] ** 2, atol=slack)


def test_maw(case):
    a, b = model(case, 1), model(case, 2)
    for k, p in enumerate(ORDERS):
        if not case["tie"][k]:
            plan = reference.registration(a, b, p, case["C12"])
            assert_allclose(plan, case["W"][k], atol=1e-8)
        plan = case["W"][k]
        within = case["C11"], case["C22"]
        marginal = reference.marginal(plan, case["C12"], p)
        transition = reference.transition(a, b, plan, p, *within)
        assert abs(marginal - case["R"][k]) <= case["R_tol"][k]
        assert abs(transition - case["D"][k]) <= case["D_tol"][k]
        mixed = (1 - ALPHAS) * marginal + ALPHAS * transition
        assert (np.abs(mixed - case["MAW"][k]) <= case["MAW_tol"][k]).all()
        first, second = reference.carried(plan, a["T"], b["T"])
        assert_allclose(first, case["T1t"][k], atol=1e-10)
        assert_allclose(second, case["T2t"][k], atol=1e-10)


def test_iaw(case):
    a, b = model(case, 1), model(case, 2)
    assert_allclose(reference.posterior(case["X"], a), case["post1"], atol=1e-8)
    for k, p in enumerate(ORDERS):
        if not case["itie"][k]:
            plan = reference.sampled_registration(a, b, case["X"], case["Y"], p)
            assert_allclose(plan, case["iW"][k], atol=1e-8)
        plan = case["iW"][k]
        marginal = reference.marginal(plan, case["C12"], p)
        assert abs(marginal - case["iR"][k]) <= case["iR_tol"][k]


def test_likelihoods(case):
    if case["iaw_kind"] != "regular":
        return
    a, b = model(case, 1), model(case, 2)
    pairs = ((a, "O1"), (b, "O1"), (b, "O2"), (a, "O2"))
    for (one, name), wanted in zip(pairs, case["loglik"], strict=True):
        found = reference.log_likelihood(one, case[name])
        assert_allclose(found, wanted, rtol=1e-8, atol=1e-6)
