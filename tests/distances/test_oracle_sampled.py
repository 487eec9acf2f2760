"""Frozen cases of IAW (from stored samples) and KL (from stored sequences)."""

import numpy as np
import pytest
from helpers import case_models, case_weights
from numpy.testing import assert_allclose

from skawhmm.distances._components import marginal_components, transition_components
from skawhmm.distances._kl import log_ratios
from skawhmm.distances._registration import power_cost
from skawhmm.distances._sampled_registration import (
    metric_parts,
    mixture_posteriors,
)
from skawhmm.distances._sampled_registration_kernels import (
    sampled_registrations,
)
from skawhmm.emissions._gaussian_scores import make_densities, packed_sequences
from skawhmm.emissions._gaussian_scores_kernels import paired_log_likelihoods
from skawhmm.models._inference import chains

POWERS = (0.5, 1.0, 1.5, 2.0)
ALPHAS = np.array([0, 0.1, 0.5, 1])


def test_posteriors_match_the_oracle(case):
    models = case_models(case, weights=case_weights(case))
    points = np.stack([case["X"], case["Y"]])
    drawn = np.zeros(points.shape[:2], int)
    posteriors = mixture_posteriors(models, points, drawn)
    for n, name in enumerate(("1", "2")):
        size = len(case["pi" + name])
        assert_allclose(posteriors[n, :, :size], case["post" + name], atol=1e-8)
        assert not posteriors[n, :, size:].any()


@pytest.mark.parametrize("q", range(4), ids=[f"p={p}" for p in POWERS])
def test_iaw_matches_the_oracle(case, q):
    models, p = case_models(case, weights=case_weights(case)), POWERS[q]
    points = np.stack([case["X"], case["Y"]])
    a, b = np.array([0]), np.array([1])
    masks = np.ones((2, points.shape[2]))
    drawn = np.zeros(points.shape[:2], int)
    posteriors = mixture_posteriors(models, points, drawn)
    _, parts = metric_parts(models.emission, points)
    plan = sampled_registrations(points, parts, posteriors, masks, a, b, p)
    if case["itie"][q]:
        # Several assignments are optimal: only the margins of W are determined.
        means = posteriors.mean(axis=1)
        assert_allclose(plan[0].sum(axis=1), means[0], atol=1e-12)
        assert_allclose(plan[0].sum(axis=0), means[1], atol=1e-12)
        return
    costs = models.emission.ground_costs()
    cost = power_cost(costs.cross(a, b), p)
    marginal = marginal_components(plan, cost, p, np.zeros(1))[0]
    transition = transition_components(
        models.weights,
        models.transmats,
        models.transmats,
        a,
        b,
        plan,
        power_cost(costs.within(a, b), p),
        power_cost(costs.within(b, a), p),
        p,
        False,
        False,
    )[0]
    sizes = slice(len(case["pi1"])), slice(len(case["pi2"]))
    assert_allclose(plan[0][sizes], case["iW"][q], atol=1e-7)
    assert abs(marginal - case["iR"][q]) <= case["iR_tol"][q]
    assert abs(transition - case["iD"][q]) <= case["iD_tol"][q]
    distances = (1 - ALPHAS) * marginal + ALPHAS * transition
    assert np.all(np.abs(distances - case["IAW"][q]) <= case["IAW_tol"][q])


def test_kl_matches_the_oracle(case):
    models = case_models(case, weights=case_weights(case))
    packed = packed_sequences([case["O1"], case["O2"]])
    _, transmats, sizes = chains(models, None)
    scores, ranks = paired_log_likelihoods(
        packed,
        make_densities(models.emission),
        np.array(models.weights),
        transmats,
        sizes,
        np.array([0, 0, 1, 1]),
        np.array([0, 1, 1, 0]),
    )
    rates = log_ratios((scores[[0, 2]], ranks[[0, 2]]), (scores[[1, 3]], ranks[[1, 3]]))
    rates /= packed.lengths
    assert not np.isnan(rates).any()
    defined = ~np.isnan(case["KL"])
    assert_allclose(
        rates[defined], case["KL"][defined], rtol=1e-8, atol=1e-8, equal_nan=False
    )
