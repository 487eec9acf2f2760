"""Pruned search gives what a search through everything gives, bit for bit."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm import (
    IAW,
    JAW,
    KL,
    MAW,
    HMMBatch,
    HMMRetriever,
    HMMTransformer,
    KNeighborsHMMClassifier,
    TransitionCoupling,
    pairwise_hmm_components,
    pairwise_hmm_distances,
)
from skawhmm.datasets import load_japanese_vowels, load_spoken_digits
from skawhmm.neighbors._search import (
    Breadth,
    SearchIndex,
    can_prune,
    marginal_parts,
    query_blocks,
)

METRICS = [
    MAW(0.1),
    MAW(0.6, p=2),
    MAW(0.0),
    MAW(0.4, rows="hellinger"),
    JAW(),
    JAW(0.8, p=2),
    JAW(0.9, rows="hellinger"),
    TransitionCoupling(),
    IAW(0.3, n_samples=16),
    IAW(0.3, n_samples=16, sampling="iid"),
    IAW(0.3, n_samples=16, steps="joint", rows="hellinger"),
]


def clustered(n_models, covariance_type="diag", n_components=3, seed=0):
    """Models in groups, as retrieval has them; some are copies of each other."""
    rng = np.random.default_rng(seed)
    shape = n_models, n_components, 4
    group = rng.integers(8, size=n_models)
    means = 3 * rng.normal(size=(8, *shape[1:]))[group] + 0.5 * rng.normal(size=shape)
    covars = rng.uniform(0.2, 1.5, shape)
    if covariance_type == "full":
        roots = rng.normal(size=(*shape, 4))
        covars = roots @ roots.swapaxes(2, 3)
    models = HMMBatch(rng.dirichlet(np.ones(n_components), shape[:2]), means, covars)
    copies = np.arange(n_models)
    copies[1::7] = copies[0::7][: len(copies[1::7])]
    return models[copies]


def expected_neighbors(distances, n_neighbors):
    order = np.lexsort(
        (np.broadcast_to(np.arange(distances.shape[1]), distances.shape), distances),
        axis=1,
    )[:, :n_neighbors]
    return np.take_along_axis(distances, order, axis=1), order


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: str(vars(metric)))
@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_same_neighbors_as_brute_force(metric, covariance_type):
    references = clustered(120, covariance_type)
    queries = clustered(30, covariance_type, seed=1)
    index = SearchIndex(references, metric)
    distances, indices = index.kneighbors(queries, 5)
    every = pairwise_hmm_distances(queries, references, metric)
    expected = expected_neighbors(every, 5)
    assert_array_equal(distances, expected[0])
    assert_array_equal(indices, expected[1])


FITTED = {
    "vowels": lambda: load_japanese_vowels(split="train", return_X_y=True)[0][:150],
    "digits": lambda: load_spoken_digits(return_X_y=True)[0][::20],
}


@pytest.fixture(scope="module", params=sorted(FITTED))
def fitted(request):
    """Models whose state probabilities are not stationary, some of them twice."""
    models = HMMTransformer(3).fit_transform(FITTED[request.param]())
    return HMMBatch.concatenate([models, models[:9]])


@pytest.mark.parametrize(
    "metric",
    [
        TransitionCoupling(),
        TransitionCoupling(p=2, gamma=0.5),
        TransitionCoupling(gamma=0.99),
        MAW(),
        MAW(0.5, p=2),
        MAW(0.4, rows="hellinger"),
        JAW(),
        JAW(0.8, p=2),
        IAW(0.3, n_samples=16),
    ],
    ids=lambda metric: str(vars(metric)),
)
def test_same_neighbors_among_fitted_models(metric, fitted):
    distances, indices = SearchIndex(fitted, metric).kneighbors(fitted, 5)
    every = pairwise_hmm_distances(fitted, metric=metric)
    expected = expected_neighbors(every, 5)
    assert_array_equal(distances, expected[0])
    assert_array_equal(indices, expected[1])


def test_references_are_not_their_own_neighbors_but_copies_are():
    references = clustered(100)
    distances, indices = SearchIndex(references, MAW()).kneighbors(None, 3)
    every = pairwise_hmm_distances(references)
    np.fill_diagonal(every, np.inf)
    expected = expected_neighbors(every, 3)
    assert_array_equal(distances, expected[0])
    assert_array_equal(indices, expected[1])
    assert (distances[:, 0] == 0).any()


@pytest.mark.parametrize("radius", [0.0, 1.0, 1e6])
def test_radius_neighbors(radius):
    references, queries = clustered(80), clustered(20, seed=1)[:10]
    queries = HMMBatch.concatenate([queries, references[:5]])
    index = SearchIndex(references, MAW())
    distances, indices = index.radius_neighbors(queries, radius)
    every = pairwise_hmm_distances(queries, references)
    for row, found, places in zip(every, distances, indices, strict=True):
        assert_array_equal(np.sort(places), np.flatnonzero(row <= radius))
        assert_array_equal(found, row[places])
        assert_array_equal(found, np.sort(found))


def test_queries_with_more_states_or_other_covariances():
    references = clustered(60)
    for queries in (clustered(9, n_components=5), clustered(9, "full", seed=2)):
        found = SearchIndex(references, MAW()).kneighbors(queries, 4)
        every = pairwise_hmm_distances(queries, references)
        expected = expected_neighbors(every, 4)
        assert_array_equal(found[0], expected[0])
        assert_array_equal(found[1], expected[1])


def moved(models, factor, shift):
    """The models in other units, which single precision may not hold."""
    return HMMBatch(
        models.transmats, factor * models.means + shift, factor**2 * models.covars
    )


@pytest.mark.parametrize(("factor", "shift"), [(1e-30, 0), (1e30, 0), (1, 1e9), (0, 3)])
@pytest.mark.parametrize("metric", [MAW(), JAW()], ids=["maw", "jaw"])
def test_units_and_queries_far_from_everything(factor, shift, metric):
    references = moved(clustered(90), factor, shift)
    queries = clustered(12, seed=1)
    queries = HMMBatch.concatenate(
        [
            moved(queries, factor, shift),
            moved(queries, 1, 1e40),
            moved(queries, 1e20, 0),
        ]
    )
    found = SearchIndex(references, metric).kneighbors(queries, 5)
    every = pairwise_hmm_distances(queries, references, metric)
    assert_array_equal(found, expected_neighbors(every, 5))


def test_equal_models_are_neighbors_in_their_order():
    references = clustered(40)[np.repeat([2, 3, 4], 40)]
    distances, indices = SearchIndex(references, MAW()).kneighbors(references[::40], 40)
    assert_array_equal(indices, np.arange(120).reshape(3, 40))
    assert not distances.any()


@pytest.mark.parametrize("metric", [MAW(), JAW(), TransitionCoupling()])
def test_groups_that_became_empty_are_skipped(metric):
    references, queries = clustered(200), clustered(30, seed=1)
    index = SearchIndex(references, metric)
    order, starts = index.balls.order, index.balls.starts
    gone = np.concatenate([order[: starts[2]], order[starts[-2] :]])
    rows = np.delete(np.arange(200), gone)
    index = index.kept(rows)
    assert (np.diff(index.balls.starts) == 0).sum() == 3
    every = pairwise_hmm_distances(queries, references[rows], metric)
    assert_array_equal(index.kneighbors(queries, 5), expected_neighbors(every, 5))
    # Also if the nearest groups to a query, its own, are empty.
    every = pairwise_hmm_distances(references[gone], references[rows], metric)
    found = index.kneighbors(references[gone], 5)
    assert_array_equal(found, expected_neighbors(every, 5))


@pytest.mark.parametrize("metric", [MAW(0.5), JAW()])
@pytest.mark.parametrize("fraction", [0.3, 0.8])
def test_only_neighbors_with_a_large_marginal_part_are_missed(metric, fraction):
    references, queries = clustered(150), clustered(40, seed=1)
    index = SearchIndex(references, metric)
    breadth = Breadth(index.balls.n_groups, fraction)
    found = index.kneighbors(queries, 5, breadth=breadth)
    distances, indices = index.kneighbors(queries, 5)
    marginal, _ = pairwise_hmm_components(queries, references, metric)
    marginal = np.take_along_axis(marginal, indices, axis=1)
    parts = marginal_parts(index, queries, indices)
    np.testing.assert_allclose(parts, metric.marginal_weight * marginal, atol=1e-9)
    is_small = parts <= fraction * distances[:, -1:]
    for row, place, small in zip(found[1], indices, is_small, strict=True):
        assert np.isin(place[small], row).all()
    every = pairwise_hmm_distances(queries, references, metric)
    assert_array_equal(np.take_along_axis(every, found[1], axis=1), found[0])
    assert (np.diff(found[0]) >= 0).all()
    full = Breadth(index.balls.n_groups, 1.0)
    exact = index.kneighbors(queries, 5, breadth=full)
    assert_array_equal(exact, (distances, indices))


@pytest.mark.parametrize(
    "metric",
    [MAW(), MAW(0.5, rows="hellinger"), JAW(), JAW(0.9, rows="hellinger")],
    ids=lambda metric: str(vars(metric)),
)
def test_few_distances_are_computed(metric):
    references = clustered(700)
    index = SearchIndex(references, metric)
    index.kneighbors(references[:70], 5)
    assert index.counts["distance"] < 0.1 * 70 * 700
    # The first 3 times 5 references of a query set its limit.
    examined = index.counts["marginal"] + index.counts["transport"]
    assert index.counts["distance"] <= examined
    # The next search counts anew.
    index.kneighbors(references[:1], 5)
    assert index.counts["distance"] < 100


def test_blocks_of_queries_are_equal_and_as_many_for_each_worker():
    for n_queries, n_jobs, expected in (
        (200, 2, [50] * 4),
        (200, 1, [66, 67, 67]),
        (30, 2, [30]),
        (40, 2, [20, 20]),
        (1, 2, [1]),
    ):
        blocks = query_blocks(n_queries, n_jobs)
        assert sorted(last - first for first, last in blocks) == expected
        assert [first for first, _ in blocks[1:]] == [last for _, last in blocks[:-1]]


def test_jobs_change_nothing():
    references = clustered(150)
    index = SearchIndex(references, MAW())
    one, two = (index.kneighbors(None, 5, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert_array_equal(one[0], two[0])
    assert_array_equal(one[1], two[1])


def test_metrics_and_models_that_can_be_pruned(make_batch):
    models = make_batch()
    assert can_prune(MAW(), models)
    assert not can_prune(MAW(alpha=1), models)
    assert not can_prune(MAW(p=0.5), models)
    assert not can_prune(KL(), models)
    assert can_prune(IAW(), models)
    assert not can_prune(IAW(debias=True), models)
    masked = make_batch(observed=np.array([[True, False]] * 4))
    assert not can_prune(MAW(), masked)


@pytest.fixture
def labelled():
    models = clustered(300)
    return models, np.arange(300) % 3


@pytest.mark.parametrize("params", [{}, {"alpha": 0.6, "p": 2}, {"metric": "coupling"}])
def test_estimators_find_the_same_by_pruning(labelled, params):
    models, y = labelled
    pruned, brute = (
        KNeighborsHMMClassifier(3, algorithm=algorithm, **params).fit(models, y)
        for algorithm in ("pruned", "brute")
    )
    for queries in (clustered(20, seed=1), None):
        assert_array_equal(pruned.kneighbors(queries), brute.kneighbors(queries))
        assert_array_equal(pruned.predict(queries), brute.predict(queries))
    assert 0 < pruned.n_distance_evaluations_ < 0.5 * brute.n_distance_evaluations_
    assert brute.search_counts_ == {"distance": 300 * 300}
    stages = {"group", "member", "transport", "distance"}
    assert stages <= set(pruned.search_counts_) <= stages | {"marginal"}


def test_retriever_radius_by_pruning(labelled):
    models, _ = labelled
    pruned, brute = (
        HMMRetriever(radius=2.0, algorithm=algorithm).fit(models)
        for algorithm in ("pruned", "brute")
    )
    for queries in (clustered(20, seed=1), None):
        one, two = pruned.radius_neighbors(queries), brute.radius_neighbors(queries)
        for side in (0, 1):
            assert len(one[side]) == len(two[side])
            for mine, theirs in zip(one[side], two[side], strict=True):
                assert_array_equal(mine, theirs)
    assert pruned.n_distance_evaluations_ < brute.n_distance_evaluations_


def test_a_changed_alpha_gives_a_new_index(labelled):
    models, y = labelled
    knn = KNeighborsHMMClassifier(3, algorithm="pruned").fit(models, y)
    knn.kneighbors(models[:5])
    knn.set_params(alpha=0.9)
    brute = KNeighborsHMMClassifier(3, algorithm="brute", alpha=0.9).fit(models, y)
    assert_array_equal(knn.kneighbors(models[:5]), brute.kneighbors(models[:5]))


def test_the_index_is_not_pickled(labelled):
    models, y = labelled
    knn = KNeighborsHMMClassifier(3, algorithm="pruned").fit(models, y)
    before = len(pickle.dumps(knn))
    expected = knn.predict(models)
    assert len(pickle.dumps(knn)) == before
    assert_array_equal(pickle.loads(pickle.dumps(knn)).predict(models), expected)


def test_algorithm_errors(labelled):
    models, y = labelled
    with pytest.raises(ValueError, match=r"algorithm must be one of 'auto'"):
        KNeighborsHMMClassifier(algorithm="fast").fit(models, y)
    pattern = r"needs a distance with lower bounds.*'maw'"
    with pytest.raises(ValueError, match=pattern):
        KNeighborsHMMClassifier(algorithm="pruned", p=0.5).fit(models, y)
    knn = KNeighborsHMMClassifier(algorithm="pruned").fit(models, y)
    with pytest.raises(ValueError, match=pattern):
        knn.set_params(alpha=1).predict(models[:2])


def test_models_without_bounds_are_refused(rng):
    symbols = HMMBatch.from_emissionprobs(
        np.full((6, 2, 2), 0.5), rng.dirichlet(np.ones(3), size=(6, 2))
    )
    with pytest.raises(ValueError, match="and Gaussian models"):
        KNeighborsHMMClassifier(algorithm="pruned").fit(symbols, np.arange(6) % 2)


def test_bounds_need_a_symmetric_distance(make_batch):
    class OneWay(MAW):
        symmetric = False

    assert can_prune(MAW(), make_batch())
    assert not can_prune(OneWay(), make_batch())


@pytest.mark.parametrize("metric", ["maw", "jaw"])
def test_queries_with_missing_channels_are_compared_with_all_models(metric, rng):
    references, queries = clustered(150), clustered(20, seed=1)
    observed = rng.random((20, 4)) < 0.6
    observed[:, 0] = True
    queries = HMMBatch(
        queries.transmats, queries.means, queries.covars, observed=observed
    )
    retriever = HMMRetriever(5, metric=metric).fit(references)
    every = pairwise_hmm_distances(queries, references, metric)
    found = retriever.kneighbors(queries)
    assert_array_equal(found, expected_neighbors(every, 5))
    assert not retriever.certified(queries, found[1]).any()
    _, within = retriever.radius_neighbors(queries, 2.0)
    for row, places in zip(every, within, strict=True):
        assert_array_equal(np.sort(places), np.flatnonzero(row <= 2.0))
    for algorithm in ("pruned", "approximate"):
        fixed = HMMRetriever(5, metric=metric, algorithm=algorithm).fit(references)
        with pytest.raises(ValueError, match="observed every feature"):
            fixed.kneighbors(queries)
        with pytest.raises(ValueError, match="observed every feature"):
            fixed.certified(queries, found[1])
