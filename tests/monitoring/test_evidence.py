import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import kstest

from skawhmm.monitoring import _evidence
from skawhmm.monitoring._evidence import WEIGHTS, Evidence, Ranks


def test_pvalues_worked_by_hand():
    ranks = Ranks([1.0, 2.0, 2.0, 5.0])
    # Of five scores, that of the query included, none is above 9, one above 3.
    assert ranks.pvalue(9.0, 0.5) == pytest.approx(0.5 / 5)
    assert ranks.pvalue(3.0, 1.0) == pytest.approx(2 / 5)
    # Two scores tie with the query.
    assert ranks.pvalue(2.0, 0.5) == pytest.approx((1 + 0.5 * 3) / 5)
    ranks.add(2.0)
    assert ranks.pvalue(2.0, 1.0) == pytest.approx(5 / 6)


def test_successive_pvalues_of_exchangeable_scores_are_independent_and_uniform():
    # Few calibration scores, with ties. If scores were ranked among those only, the
    # p-values of a stream would depend on each other.
    means, all_pvalues = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        ranks = Ranks(rng.integers(0, 6, 4))
        pvalues = []
        for score in rng.integers(0, 6, 40):
            pvalues.append(ranks.pvalue(score, 1 - rng.random()))
            ranks.add(score)
        all_pvalues += pvalues
        means.append(np.mean(pvalues))
    assert kstest(all_pvalues, "uniform").pvalue > 0.01
    # Means of 40 independent uniform numbers vary by 1 / sqrt(12 * 40).
    assert np.std(means) == pytest.approx(1 / np.sqrt(480), rel=0.15)


@given(st.integers(0, 1000), st.integers(1, 600))
def test_merged_cells_never_make_a_pvalue_smaller(seed, size):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=size).round(int(rng.integers(0, 3)))
    whole, merged = Ranks(scores), Ranks(scores)
    merged._merge()
    assert merged.counts.sum() == size
    for score in [*rng.choice(scores, 5), *rng.normal(size=5)]:
        exact, bound = (ranks.pvalue(score, 0.5) for ranks in (whole, merged))
        assert exact <= bound + 1e-15
        # At most a hundredth more scores count as above, and one more for ties.
        assert bound <= exact * 1.011 + 1 / (size + 1)


def test_memory_does_not_grow_with_the_number_of_scores(monkeypatch):
    monkeypatch.setattr(_evidence, "MOST_CELLS", 1500)
    rng = np.random.default_rng(0)
    ranks = Ranks([])
    for score in rng.normal(size=6000):
        ranks.add(score)
    assert ranks.counts.sum() == 6000
    assert len(ranks.counts) <= 1500
    assert np.all(ranks.lows <= ranks.highs)
    assert np.all(ranks.highs[:-1] < ranks.lows[1:])


def gains_of(pvalues, rate=0.01):
    evidence = Evidence(rate)
    return np.array([evidence.gains(pvalue) for pvalue in pvalues])


def test_bets_have_mean_one():
    assert WEIGHTS.sum() == pytest.approx(1)
    # With p = q ** 10 the integrals have no pole; the midpoint rule is then exact
    # enough, but for the step of the first bet.
    edges = (np.arange(200_000) + 0.5) / 200_000
    integrals = (gains_of(edges**10) * 10 * edges[:, None] ** 9).mean(axis=0)
    assert_allclose(integrals, 1, rtol=1e-3)


def test_one_tiny_pvalue_is_enough_for_an_alarm():
    evidence = Evidence(0.01)
    assert evidence.add(0.004, 0.0) >= 100
    evidence.restart()
    assert evidence.add(0.0041, 0.0) < 100


def test_evidence_is_the_sum_of_products_over_all_starts():
    rng = np.random.default_rng(0)
    pvalues = rng.random(12) ** 2
    evidence = Evidence(0.01)
    gains = gains_of(pvalues)
    for t, pvalue in enumerate(pvalues):
        value = evidence.add(pvalue, float(t))
        products = np.array([gains[j : t + 1].prod(axis=0) for j in range(t + 1)])
        assert_allclose(value, WEIGHTS @ products.sum(axis=0))
        # The best start of the leading bet.
        leading = int(np.argmax(WEIGHTS * products.sum(axis=0)))
        assert evidence.began == np.argmax(products[:, leading])
    evidence.restart()
    assert_allclose(evidence.add(0.5, 0.0), WEIGHTS @ gains_of([0.5])[0])


def test_evidence_grows_by_one_per_uniform_pvalue_on_average():
    rng = np.random.default_rng(1)
    # The last bet has the least variance; the expectation is the same for all.
    final = []
    for _ in range(4000):
        evidence = Evidence(0.01)
        for pvalue in rng.random(10):
            evidence.add(pvalue, 0.0)
        final.append(evidence.sums[-1])
    error = np.std(final) / np.sqrt(len(final))
    assert abs(np.mean(final) - 10) < 4 * error
    assert error < 0.5
