import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skawhmm import (
    IAW,
    JAW,
    MAW,
    HMMBatch,
    HMMNoveltyDetector,
    HMMTransformer,
    pairwise_hmm_components,
    pairwise_hmm_distances,
)
from skawhmm.datasets import make_hmm_sequences


def gaps(a, b):
    return np.abs(np.subtract.outer(np.asarray(a, float), np.asarray(b, float)))


def test_a_case_worked_by_hand():
    # Nearest others of 0, 1, 3, 7: at 1, 1, 2, 4. A query at 10 is 3 away.
    known = [0, 1, 3, 7]
    detector = HMMNoveltyDetector(1, metric="precomputed", false_alarm_rate=0.4)
    detector.fit(gaps(known, known))
    assert_allclose(detector.calibration_scores_, [1, 1, 2, 4])
    queries = gaps([10, 12, 1.5], known)
    assert_allclose(detector.score_samples(queries), [-3, -5, -0.5])
    assert_allclose(detector.pvalues(queries), [2 / 5, 1 / 5, 1])
    assert_allclose(detector.pvalues(), [1, 1, 2 / 4, 1 / 4])
    assert_array_equal(detector.predict(queries), [-1, -1, 1])
    # New if at most one training model is as far: more than 2 away.
    assert detector.offset_ == -2


@pytest.mark.parametrize("false_alarm_rate", [0.05, 0.1, 0.3])
def test_new_are_those_with_small_pvalues(false_alarm_rate, make_batch):
    models = make_batch(n_models=60)
    detector = HMMNoveltyDetector(3, false_alarm_rate=false_alarm_rate).fit(models[:40])
    found = detector.pvalues(models[40:])
    assert_array_equal(detector.predict(models[40:]) == -1, found <= false_alarm_rate)
    assert_array_equal(
        detector.decision_function(models[40:]),
        detector.score_samples(models[40:]) - detector.offset_,
    )


def test_pvalues_of_known_models_are_uniform(rng):
    found = []
    for _ in range(200):
        points = rng.normal(size=31)
        known, query = points[:30], points[30:]
        detector = HMMNoveltyDetector(3, metric="precomputed").fit(gaps(known, known))
        found.append(detector.pvalues(gaps(query, known))[0] - rng.random() / 31)
    assert stats.kstest(found, "uniform").pvalue > 0.001


def test_planted_novelty_is_found_and_explained():
    X, _ = make_hmm_sequences(60, separation=0, n_timesteps=200, random_state=0)
    hmm = HMMTransformer(3, random_state=0)
    models = hmm.fit_transform(X)
    moved = models.means[:2].copy()
    moved[:, 1] += 6
    new = HMMBatch(models.transmats[:2], moved, models.covars[:2])
    detector = HMMNoveltyDetector().fit(models[:50])
    assert_array_equal(detector.predict(new), [-1, -1])
    states, transition = detector.explain(new)
    assert_array_equal(states.argmax(axis=1), [1, 1])
    assert (detector.predict(models[50:]) == 1).mean() >= 0.8
    # Fast turns between the same states are a matter of transitions.
    hasty = HMMBatch(np.full((1, 3, 3), 1 / 3), models.means[:1], models.covars[:1])
    states, transition = detector.explain(hasty)
    assert transition[0] > states[0].sum()


@pytest.mark.parametrize("metric", [JAW(), MAW(), IAW(n_samples=32)], ids=str)
@pytest.mark.parametrize("p", [1, 2])
def test_parts_add_up_to_the_score(metric, p, make_batch):
    models = make_batch(n_models=16, n_components=[2, 3] * 8)
    detector = HMMNoveltyDetector(
        3, false_alarm_rate=0.2, metric=metric.set_params(p=p)
    )
    detector.fit(models[:12])
    states, transition = detector.explain(models[12:])
    total = states.sum(axis=1) + transition
    assert_allclose(total, -detector.score_samples(models[12:]))
    # Models with two states have nothing in the third.
    assert_allclose(states[::2, 2], 0)


def test_parts_of_one_neighbour_are_costs_of_states():
    chain = [[0.5, 0.5], [0.5, 0.5]]
    known = HMMBatch(
        [chain] * 2, [[[0.0], [5.0]], [[50.0], [90.0]]], np.ones((2, 2, 1))
    )
    query = HMMBatch([chain], [[[6.0], [0.0]]], np.ones((1, 2, 1)))
    detector = HMMNoveltyDetector(1, false_alarm_rate=0.4, alpha=0.25).fit(known)
    states, transition = detector.explain(query)
    assert_allclose(states, [[0.75 * 0.5, 0]])
    wanted = pairwise_hmm_components(query, known[:1], metric="jaw")[1]
    assert_allclose(transition, 0.25 * wanted[0])


def test_searches_and_inputs_agree(make_batch):
    models = make_batch(n_models=50)
    known, new = models[:40], models[40:]
    wanted = HMMNoveltyDetector(4).fit(known).score_samples(new)
    for change in ({"algorithm": "pruned"}, {"n_jobs": 2}):
        found = HMMNoveltyDetector(4, **change).fit(known).score_samples(new)
        assert_array_equal(found, wanted)
    matrix = pairwise_hmm_distances(known, metric="jaw")
    given = HMMNoveltyDetector(4, metric="precomputed").fit(matrix)
    queries = pairwise_hmm_distances(new, known, metric="jaw")
    assert_array_equal(given.score_samples(queries), wanted)
    stack = np.stack(pairwise_hmm_components(known, metric="jaw"), axis=2)
    mixed = HMMNoveltyDetector(4, metric="precomputed", alpha=0.5).fit(stack)
    assert_array_equal(mixed.calibration_scores_, given.calibration_scores_)
    order = np.random.default_rng(0).permutation(40)
    turned = HMMNoveltyDetector(4).fit(known[order])
    assert_allclose(turned.pvalues(new), HMMNoveltyDetector(4).fit(known).pvalues(new))


def test_too_few_models_raise_a_warning(make_batch):
    models = make_batch(n_models=12)
    with pytest.warns(UserWarning, match="at least 19 training models, got 12"):
        detector = HMMNoveltyDetector(3).fit(models)
    assert_array_equal(detector.predict(models), 1)
    with pytest.raises(ValueError, match="n_neighbors = 6, n_samples = 5"):
        HMMNoveltyDetector(5).fit(models[:5])


def test_explain_rejects_metrics_without_registration(make_batch):
    models = make_batch(n_models=12)
    for metric, X in (("coupling", models), ("precomputed", np.zeros((12, 12)))):
        detector = HMMNoveltyDetector(3, false_alarm_rate=0.1, metric=metric).fit(X)
        with pytest.raises(TypeError, match=f"metric must register .* got '{metric}'"):
            detector.explain(X)


# Training models as queries


def agrees_with_pvalues(detector, training):
    """Assert that all methods judge the training models among the others."""
    pvalues, false_alarm_rate = detector.pvalues(), detector.false_alarm_rate
    wanted = np.where(pvalues <= false_alarm_rate, -1, 1)
    assert_array_equal(detector.pvalues(training), pvalues)
    assert_array_equal(detector.predict(training), wanted)
    assert_array_equal(detector.decision_function(training) < 0, wanted == -1)
    assert_array_equal(-detector.score_samples(training), detector.calibration_scores_)
    assert_array_equal(detector.fit_predict(training), wanted)


def test_far_training_sequence_is_new(rng):
    Z = [rng.normal(0, 1, (30, 2)) for _ in range(40)] + [rng.normal(100, 1, (30, 2))]
    hmm = HMMTransformer(2, random_state=0)
    detector = HMMNoveltyDetector(n_neighbors=1, hmm=hmm)
    assert detector.fit_predict(Z)[-1] == -1
    assert_allclose(detector.pvalues()[-1], 1 / 41)
    agrees_with_pvalues(detector, Z)
    assert detector.predict(Z[-1:]) == -1
    states, transition = detector.explain(Z)
    total = states.sum(axis=1) + transition
    assert_allclose(total, detector.calibration_scores_)


@pytest.mark.parametrize(
    "options", [{"init": "pooled"}, {"prior": "pooled"}, {"n_components": "bic"}, {}]
)
def test_training_sequences_are_recognised_whatever_the_fit(options):
    X, _ = make_hmm_sequences(12, random_state=0)
    hmm = HMMTransformer(**{"n_components": 2, **options})
    detector = HMMNoveltyDetector(2, false_alarm_rate=0.2, hmm=hmm).fit(X)
    pvalues = detector.pvalues()
    assert_array_equal(detector.pvalues(X), pvalues)
    assert_array_equal(detector.pvalues(X[5:6]), pvalues[5:6])


@settings(max_examples=60, deadline=None)
@given(
    points=st.lists(st.integers(0, 6) | st.just(np.inf), min_size=4, max_size=25),
    queries=st.lists(st.integers(0, 9) | st.just(np.inf), min_size=1, max_size=9),
    n_neighbors=st.integers(1, 3),
    false_alarm_rate=st.sampled_from([0.04, 0.1, 0.2, 0.25, 0.3, 0.5, 0.9, 0.99]),
)
@pytest.mark.filterwarnings("ignore:false_alarm_rate=:UserWarning")
def test_labels_follow_pvalues_among_ties_and_infinite_distances(
    points, queries, n_neighbors, false_alarm_rate
):
    def distances(a, b):
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(gaps(a, b), nan=0, posinf=np.inf)

    known = distances(points, points)
    detector = HMMNoveltyDetector(
        n_neighbors, false_alarm_rate=false_alarm_rate, metric="precomputed"
    )
    agrees_with_pvalues(detector.fit(known), known)
    # A model beside the training models, which may tie with any of them.
    other = distances(queries, points) + 1
    farther = [
        np.sum(detector.calibration_scores_ >= np.sort(row)[:n_neighbors].mean())
        for row in other
    ]
    pvalues = (np.array(farther) + 1) / (len(points) + 1)
    assert_array_equal(detector.pvalues(other), pvalues)
    assert_array_equal(detector.predict(other) == -1, pvalues <= false_alarm_rate)
    assert_array_equal(
        detector.decision_function(other) < 0, pvalues <= false_alarm_rate
    )


@settings(max_examples=25, deadline=None)
@given(
    copies=st.lists(st.integers(0, 9), min_size=4, max_size=16),
    n_neighbors=st.integers(1, 3),
    false_alarm_rate=st.sampled_from([0.1, 0.25, 0.5]),
    metric=st.sampled_from(["jaw", "maw", "coupling"]),
)
@pytest.mark.filterwarnings("ignore:false_alarm_rate=:UserWarning")
def test_training_models_are_compared_with_the_others(
    copies, n_neighbors, false_alarm_rate, metric
):
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(2), (10, 2))
    models = HMMBatch(rows, rng.normal(size=(10, 2, 1)), np.ones((10, 2, 1)))[copies]
    detector = HMMNoveltyDetector(
        n_neighbors, false_alarm_rate=false_alarm_rate, metric=metric
    ).fit(models)
    agrees_with_pvalues(detector, models)
    for n in range(len(copies)):
        # Equal models stay neighbours of each other, none is its own.
        others = np.delete(np.arange(len(copies)), n)
        row = pairwise_hmm_distances(models[n], models[others], metric=metric)[0]
        wanted = np.sort(row)[:n_neighbors].mean()
        assert_allclose(-detector.score_samples(models[n]), wanted, atol=1e-12)


def test_models_are_the_same_with_and_without_their_sequences(make_batch):
    models = make_batch(n_models=12)
    kept = HMMBatch(
        models.transmats,
        models.means,
        models.covars,
        weights=models.weights,
        startprobs=models.startprobs,
        sequences=[np.zeros((3, models.n_features))] * 12,
    )
    detector = HMMNoveltyDetector(2, false_alarm_rate=0.2).fit(kept)
    assert_array_equal(detector.pvalues(models), detector.pvalues())
