"""Approximate search: recall, certificates, models that come and go."""

import numpy as np
import pytest

from skawhmm import HMMBatch, HMMRetriever, pairwise_hmm_distances
from skawhmm.neighbors._points import PointIndex, PointUnits, point_units
from skawhmm.neighbors._search import marginal_parts
from skawhmm.neighbors._search_kernels import in_tiles, relaxed_bounds


def clustered(n_models, n_components=3, n_features=4, seed=0, n_groups=12):
    rng = np.random.default_rng(seed)
    shape = n_models, n_components, n_features
    centres = 3 * np.random.default_rng(7).normal(size=(n_groups, *shape[1:]))
    return HMMBatch(
        rng.dirichlet(np.ones(n_components), shape[:2]),
        centres[rng.integers(n_groups, size=n_models)] + rng.normal(size=shape) / 2,
        rng.uniform(0.3, 1.5, shape),
    )


@pytest.fixture(scope="module")
def collection():
    return clustered(900), clustered(60, seed=1)


def recall(found, true):
    return np.mean([np.isin(t, f).mean() for f, t in zip(found, true, strict=True)])


@pytest.mark.parametrize(
    "params", [{"metric": "maw"}, {"metric": "jaw"}, {"metric": "mmd"}]
)
def test_recall_is_near_what_fit_says(collection, params):
    models, queries = collection
    fast = HMMRetriever(5, **params, algorithm="approximate").fit(models)
    distances, indices = fast.kneighbors(queries)
    true = HMMRetriever(5, **params, algorithm="brute").fit(models).kneighbors(queries)
    assert fast.recall_ >= 0.9
    assert recall(indices, true[1]) >= 0.97
    assert fast.n_distance_evaluations_ < len(queries) * len(models) / 2
    # The distances are those of the pairs, whatever was found.
    every = pairwise_hmm_distances(queries, models, params["metric"])
    assert np.array_equal(np.take_along_axis(every, indices, axis=1), distances)


@pytest.mark.parametrize("metric", ["maw", "jaw", "coupling"])
def test_certificates_are_never_false_and_notice_what_is_missing(collection, metric):
    models, queries = collection
    # Some queries are far from everything.
    far = HMMBatch(queries.transmats[:9], queries.means[:9] + 1e6, queries.covars[:9])
    queries = HMMBatch.concatenate([queries, far])
    fast = HMMRetriever(3, metric=metric, algorithm="approximate").fit(models)
    true = HMMRetriever(4, metric=metric, algorithm="brute").fit(models)
    _, nearest = true.kneighbors(queries)
    assert fast.certified(queries, nearest[:, :3]).all()
    # The third is missing, the fourth is given instead.
    wrong = nearest[:, [0, 1, 3]]
    assert not fast.certified(queries, wrong).any()
    found = fast.kneighbors(queries, return_distance=False)
    right = (found == nearest[:, :3]).all(axis=1)
    assert np.array_equal(fast.certified(queries, found), right)
    # A retriever that searches exactly can say it, too.
    assert true.set_params(algorithm="pruned").certified(queries, nearest).all()


def test_fit_keeps_the_marginal_part_of_nearly_all_neighbors(collection):
    models, queries = collection
    fast = HMMRetriever(5, metric="jaw", algorithm="approximate").fit(models)
    index = fast._index(fast._resolved_metric())
    assert 0.5 < index.marginal_fraction < 1
    distances, indices = index.exact.kneighbors(queries, 5)
    parts = marginal_parts(index.exact, queries, indices)
    assert np.mean(parts > index.marginal_fraction * distances[:, -1:]) < 0.02
    # If the distance is its marginal component, all of a distance may be marginal.
    fast = HMMRetriever(5, alpha=0, algorithm="approximate").fit(models)
    assert fast._index(fast._resolved_metric()).marginal_fraction >= 1 - 1e-9


def test_a_model_as_near_as_a_given_one_is_not_certified(collection):
    models, _ = collection
    twice = HMMBatch.concatenate([models, models[:50]])
    fast = HMMRetriever(1, algorithm="approximate").fit(twice)
    assert not fast.certified(models[:50], np.arange(50)[:, None]).any()
    both = np.stack([np.arange(50), 900 + np.arange(50)], axis=1)
    assert fast.certified(models[:50], both).all()


def test_distances_without_bounds_certify_nothing(collection):
    models, queries = collection
    fast = HMMRetriever(3, metric="mmd", algorithm="approximate").fit(models[:200])
    found = fast.kneighbors(queries[:5], return_distance=False)
    assert not fast.certified(queries[:5], found).any()


def test_equal_models_are_found_in_their_order(collection):
    models, _ = collection
    many = HMMBatch.concatenate([models[:100], *[models[:1]] * 300, models[:100]])
    fast = HMMRetriever(6, algorithm="approximate").fit(many)
    distances, indices = fast.kneighbors(models[:1])
    assert indices[0].tolist() == [0, 100, 101, 102, 103, 104]
    assert distances[0].tolist() == [0.0] * 6
    # None of the training models is its own neighbour.
    indices = fast.kneighbors(return_distance=False)
    assert indices[0].tolist() == [100, 101, 102, 103, 104, 105]
    assert not (indices == np.arange(len(many))[:, None]).any()


@pytest.mark.parametrize("n_models", [1, 3, 30])
def test_few_models_and_all_of_them_as_neighbors(n_models):
    models, queries = clustered(n_models), clustered(4, seed=1)
    fast = HMMRetriever(n_models, algorithm="approximate").fit(models)
    true = HMMRetriever(n_models, algorithm="brute").fit(models)
    for found, wanted in zip(
        fast.kneighbors(queries), true.kneighbors(queries), strict=True
    ):
        assert np.array_equal(found, wanted)
    assert fast.recall_ == 1
    with pytest.raises(ValueError, match=f"n_neighbors = {n_models + 1}"):
        fast.kneighbors(queries, n_models + 1)


def test_models_come_and_go(collection):
    models, queries = collection
    fast = HMMRetriever(5, algorithm="approximate").fit(models[:600])
    fast.partial_fit(models[600:]).remove(np.arange(0, 900, 10))
    left = models[np.arange(900) % 10 > 0]
    true = HMMRetriever(5, algorithm="brute").fit(left)
    wanted = true.kneighbors(queries, return_distance=False)
    assert recall(fast.kneighbors(queries, return_distance=False), wanted) >= 0.97
    # Most are removed: the index is made anew.
    fast.remove(np.arange(700))
    wanted = true.remove(np.arange(700)).kneighbors(queries, return_distance=False)
    assert recall(fast.kneighbors(queries, return_distance=False), wanted) >= 0.97


def test_queries_with_other_numbers_of_states_and_other_covariances(collection):
    models, _ = collection
    true = HMMRetriever(5, algorithm="brute").fit(models)
    fast = HMMRetriever(5, algorithm="approximate").fit(models)
    for size in (1, 5):
        queries = clustered(10, size, seed=2)
        wanted = true.kneighbors(queries, return_distance=False)
        assert recall(fast.kneighbors(queries, return_distance=False), wanted) > 0.6
    some = clustered(10, seed=3)
    full = HMMBatch(some.transmats, some.means, some.covars[..., None] * np.eye(4))
    found, wanted = fast.kneighbors(full), true.kneighbors(full)
    assert recall(found[1], wanted[1]) >= 0.97


def test_points_do_not_depend_on_the_order_of_states(collection):
    models, _ = collection
    units = point_units(models, HMMRetriever()._resolved_metric())
    order = [2, 0, 1]
    turned = HMMBatch(
        models.transmats[:5][:, order][:, :, order],
        models.means[:5, order],
        models.covars[:5, order],
    )
    one, two = units.points(models[:5]), units.points(turned)
    gaps = relaxed_bounds(*one, in_tiles(two[0]), two[1], 1.0)
    assert np.allclose(np.diagonal(gaps), 0, atol=1e-5)
    assert np.all(gaps[~np.eye(5, dtype=bool)] > 0.01)


def test_points_by_hand():
    model = HMMBatch([[[0.5, 0.5], [0.25, 0.75]]], [[[1.0], [4.0]]], [[[4.0], [9.0]]])
    units = PointUnits(np.zeros(2), 1.0, 3.0, 2.0)
    points, probs = units.points(model)
    assert np.allclose(probs, [[1 / 3, 2 / 3]])
    # Mean and standard deviation, twice those after a step, 2 * 3 times probability.
    assert np.allclose(points[0], [[1, 2, 5, 5, 2], [4, 3, 6.5, 5.5, 4]])


def test_candidates_are_the_members_of_the_nearest_groups(collection):
    models, queries = collection
    index = PointIndex.make(models, HMMRetriever()._resolved_metric())
    some = queries[:7]
    every = index.candidates(some, index.balls.n_groups, 1)
    for rows in every:
        assert np.array_equal(np.sort(rows), np.arange(len(models)))
    group = np.empty(len(models), int)
    sizes = np.diff(index.balls.starts)
    group[index.balls.order] = np.repeat(np.arange(len(sizes)), sizes)
    for rows, best in zip(index.candidates(some, 3, 1), every, strict=True):
        assert 1 <= len(np.unique(group[rows])) <= 3
        assert len(rows) == sizes[np.unique(group[rows])].sum()
        # In the same order, the nearest first.
        assert np.array_equal(best[np.isin(best, rows)], rows)
    # Small groups do not leave a query without as many models as it needs.
    assert min(map(len, index.candidates(some, 1, 300))) >= 300


def test_all_groups_and_candidates_give_the_exact_neighbors(collection):
    models, queries = collection
    for metric in ("jaw", "mmd"):
        fast = HMMRetriever(5, metric=metric, algorithm="approximate").fit(models)
        index = fast._index(fast._resolved_metric())
        index.n_groups, index.n_candidates = index._all_groups, len(models)
        index.marginal_fraction = 1.0
        true = HMMRetriever(5, metric=metric, algorithm="brute").fit(models)
        for x in (queries, None):
            assert np.array_equal(fast.kneighbors(x), true.kneighbors(x))


def test_bad_input(collection):
    models, queries = collection
    with pytest.raises(ValueError, match=r"min_recall must be 0\.99 with algorithm"):
        HMMRetriever(min_recall=0.5).fit(models)
    with pytest.raises(ValueError, match="metric='precomputed'"):
        HMMRetriever(metric="precomputed", algorithm="approximate").fit(
            np.zeros((9, 9))
        )
    symbols = HMMBatch.from_emissionprobs([np.eye(2)] * 9, [np.eye(2)] * 9)
    with pytest.raises(ValueError, match="'categorical'"):
        HMMRetriever(2, algorithm="approximate").fit(symbols)
    seen = np.ones((60, 4), bool)
    seen[0, 0] = False
    gaps = HMMBatch(queries.transmats, queries.means, queries.covars, observed=seen)
    with pytest.raises(ValueError, match="observed every feature"):
        HMMRetriever(2, algorithm="approximate").fit(gaps)
    fast = HMMRetriever(2, algorithm="approximate").fit(models)
    with pytest.raises(ValueError, match="radius_neighbors needs algorithm"):
        fast.radius_neighbors(queries)
    for wrong in (np.zeros(60, int), np.zeros((60, 2)), np.zeros((3, 2), int)):
        with pytest.raises(ValueError, match="indices must hold integers"):
            fast.certified(queries, wrong)
    with pytest.raises(ValueError, match="from 0 to 899, got 900 to 900"):
        fast.certified(queries, np.full((60, 2), 900))
    with pytest.raises(AttributeError, match="algorithm='auto'"):
        _ = HMMRetriever().fit(models).recall_


def test_unreached_recall_raises_a_warning(collection, monkeypatch):
    monkeypatch.setattr("skawhmm.neighbors._approximate.MOST_CANDIDATES", 2)
    retriever = HMMRetriever(5, metric="mmd", min_recall=1.0, algorithm="approximate")
    with pytest.warns(UserWarning, match="below min_recall=1.0"):
        retriever.fit(collection[0])
    assert retriever.recall_ < 1
