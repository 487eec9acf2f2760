"""`partial_fit` and `remove` of estimators that keep reference models."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm import HMMBatch, HMMNoveltyDetector, HMMRetriever, HMMTransformer
from skawhmm.neighbors import _balls


def models(n_models, seed, n_components=3):
    rng = np.random.default_rng(seed)
    shape = n_models, n_components
    # Rounded, so that some distances tie.
    means = rng.normal(size=(*shape, 2)).round(1)
    transmats = rng.dirichlet(np.ones(n_components), shape)
    return HMMBatch(transmats, means, np.ones((*shape, 2)))


def results(estimator, queries):
    if isinstance(estimator, HMMRetriever):
        return [
            *estimator.kneighbors(queries),
            *estimator.kneighbors(),
            *map(np.concatenate, estimator.radius_neighbors(queries, 0.8)),
        ]
    found = estimator.pvalues(queries), estimator.score_samples(queries)
    known = estimator.calibration_scores_, estimator.pvalues()
    return [*found, *known, np.array(estimator.offset_), *estimator._calibration]


def assert_same(grown, anew, queries):
    for one, other in zip(results(grown, queries), results(anew, queries), strict=True):
        assert_array_equal(one, other)


ESTIMATORS = [
    HMMRetriever(4, algorithm="pruned"),
    HMMRetriever(4, algorithm="brute"),
    HMMNoveltyDetector(3, false_alarm_rate=0.1, algorithm="pruned"),
    HMMNoveltyDetector(3, false_alarm_rate=0.1, algorithm="brute"),
    HMMNoveltyDetector(3, false_alarm_rate=0.1, metric="kl"),
    HMMNoveltyDetector(3, false_alarm_rate=0.1, metric="mmd"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_growing_and_shrinking_is_a_fit_anew(estimator, rng):
    queries, known = models(12, seed=9), models(60, seed=0)
    clone = type(estimator)
    grown = clone(**estimator.get_params()).fit(known)
    for round_ in range(4):
        # An index that was used must change with the models.
        results(grown, queries)
        fresh = models(int(rng.integers(1, 40)), seed=20 + round_)
        grown.partial_fit(fresh)
        known = HMMBatch.concatenate([known, fresh])
        anew = clone(**estimator.get_params()).fit(known)
        assert_same(grown, anew, queries)
        gone = rng.choice(len(known), size=len(known) // 3, replace=False)
        grown.remove(gone)
        known = known[np.setdiff1d(np.arange(len(known)), gone)]
        anew = clone(**estimator.get_params()).fit(known)
        assert_same(grown, anew, queries)
        assert grown.n_samples_fit_ == len(known)


@pytest.mark.parametrize("estimator", ESTIMATORS[:3:2], ids=repr)
def test_models_with_more_states_are_added(estimator):
    queries, wide = models(5, seed=9), models(7, seed=3, n_components=4)
    grown = type(estimator)(**estimator.get_params()).fit(models(30, seed=0))
    results(grown, queries)
    grown.partial_fit(wide)
    both = HMMBatch.concatenate([models(30, seed=0), wide])
    anew = type(estimator)(**estimator.get_params()).fit(both)
    assert_same(grown, anew, queries)


def test_the_first_call_is_fit_and_sequences_are_added(make_sequences):
    X, _ = make_sequences(40)
    hmm = HMMTransformer(2, random_state=0)
    grown = HMMNoveltyDetector(2, false_alarm_rate=0.2, hmm=hmm)
    grown.partial_fit(X[:25]).partial_fit(X[25:])
    anew = HMMNoveltyDetector(2, false_alarm_rate=0.2, hmm=hmm).fit(X)
    assert_same(grown, anew, models(4, seed=1, n_components=2))


def test_the_cost_is_that_of_what_is_added(monkeypatch):
    retriever = HMMRetriever(2, algorithm="pruned").fit(models(400, seed=0))
    retriever.kneighbors(models(2, seed=1))
    prepared, planted = [], []
    inner, plant = type(retriever._check_ready()).prepare, _balls.regrouped_balls
    monkeypatch.setattr(
        type(retriever._check_ready()),
        "prepare",
        lambda self, batch: prepared.append(len(batch)) or inner(self, batch),
    )
    monkeypatch.setattr(
        _balls, "regrouped_balls", lambda *args: planted.append(1) or plant(*args)
    )
    for n in range(200):
        retriever.partial_fit(models(1, seed=n + 2))
    assert prepared == [1] * 200
    assert len(planted) <= 2


@pytest.mark.parametrize("estimator", [HMMRetriever(2), HMMNoveltyDetector(2)])
def test_wrong_changes_are_refused_and_change_nothing(estimator):
    known = models(25, seed=0)
    fitted = type(estimator)(**estimator.get_params()).fit(known)
    with pytest.raises(IndexError, match="30"):
        fitted.remove([3, 30])
    with pytest.raises(ValueError, match="indices must leave at least"):
        fitted.remove(slice(None))
    wide = HMMBatch(known.transmats, np.zeros((25, 3, 5)), np.ones((25, 3, 5)))
    with pytest.raises(ValueError, match="5 features"):
        fitted.partial_fit(wide)
    assert fitted.n_samples_fit_ == 25
    distances = np.abs(np.subtract.outer(np.arange(25.0), np.arange(25.0)))
    given = type(estimator)(2, metric="precomputed").fit(distances)
    for method in ("partial_fit", "remove"):
        assert not hasattr(given, method)
        with pytest.raises(AttributeError) as error:
            getattr(given, method)
        assert 'got metric="precomputed"' in str(error.value.__cause__)
