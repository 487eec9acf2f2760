import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from skawhmm import (
    KL,
    MAW,
    HMMBatch,
    HMMKMeans,
    HMMKMedoids,
    HMMTransformer,
    hmm_barycenter,
    pairwise_hmm_distances,
)
from skawhmm.cluster._algorithms import medoid_partition, spread_seeds
from skawhmm.cluster._algorithms_kernels import greedy_medoids

HMM = HMMTransformer(n_components=2, random_state=0)


def make_planted(n_models=80, n_clusters=8, noise=1.0, *, seed=0, **kw):
    """Noisy copies of archetypes with their states in any order, and their labels."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n_clusters, 3, 12))
    scales = rng.uniform(0.5, 1.5, size=means.shape)
    chains = rng.dirichlet(np.ones(3), (n_clusters, 3)) / 2 + np.eye(3) / 2
    y = rng.integers(n_clusters, size=n_models)
    order = rng.permuted(np.tile(np.arange(3), (n_models, 1)), axis=1)
    rows = y[:, None]
    return HMMBatch(
        chains[rows[..., None], order[:, :, None], order[:, None]],
        means[rows, order] + noise * rng.normal(size=(n_models, 3, 12)),
        (scales[rows, order] * np.exp(noise / 2 * rng.normal(size=(n_models, 3, 12))))
        ** 2,
        **kw,
    ), y


@pytest.fixture(scope="module")
def planted():
    return make_planted(info={"name": np.arange(80)})


@pytest.mark.parametrize(("init", "n_init"), [("k-means++", 10), ("medoids", 1)])
def test_kmeans_recovers_planted_clusters(init, n_init, planted):
    models, y = planted
    kmeans = HMMKMeans(8, n_init=n_init, init=init, random_state=0).fit(models)
    assert adjusted_rand_score(y, kmeans.labels_) > 0.93
    # Centres are nearer to their archetypes than single models can be.
    medoids = HMMKMedoids(8, metric=MAW(p=2)).fit(models)
    assert kmeans.inertia_ < np.sum(medoids.transform(models).min(axis=1) ** 2)


def test_medoids_recover_planted_clusters():
    models, y = make_planted(noise=0.5)
    assert adjusted_rand_score(y, HMMKMedoids(8).fit_predict(models)) > 0.95


def test_clusters_that_differ_in_transitions_only(rng):
    y = rng.integers(2, size=30)
    stay = np.array([0.95, 0.6])[y]
    chains = np.stack([[[s, 1 - s], [1 - s, s]] for s in stay])
    means = np.array([[[0.0], [3.0]]]) + 0.1 * rng.normal(size=(30, 2, 1))
    models = HMMBatch(chains, means, np.ones((30, 2, 1)))
    kmeans = HMMKMeans(2, alpha=0.9, random_state=0).fit(models)
    assert adjusted_rand_score(y, kmeans.labels_) == 1
    found = np.sort(kmeans.cluster_centers_.transmats[:, 0, 0])
    assert_allclose(found, [0.6, 0.95], atol=1e-6)


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
@pytest.mark.parametrize("alpha", [0, 0.5])
def test_kmeans_attributes_agree(covariance_type, alpha, make_batch):
    models = make_batch(20, [2, 3] * 10, covariance_type=covariance_type)
    kmeans = HMMKMeans(4, alpha=alpha, random_state=0).fit(models)
    distances = pairwise_hmm_distances(
        models, kmeans.cluster_centers_, alpha=alpha, p=2
    )
    assert kmeans.cluster_centers_.shape == (4,)
    assert_array_equal(kmeans.transform(models), distances)
    assert_array_equal(kmeans.labels_, np.argmin(distances, axis=1))
    assert_array_equal(kmeans.predict(models), kmeans.labels_)
    assert_allclose(kmeans.inertia_, np.sum(distances.min(axis=1) ** 2))
    assert_allclose(kmeans.score(models), -kmeans.inertia_)
    assert kmeans.get_feature_names_out()[0] == "hmmkmeans0"


def test_one_cluster_without_transitions_is_the_barycenter(make_batch):
    models = make_batch(12)
    kmeans = HMMKMeans(1, alpha=0, tol=1e-8, n_init=10, random_state=0).fit(models)
    _, objective = hmm_barycenter(models, tol=1e-8, random_state=0)
    assert_allclose(kmeans.inertia_, 12 * objective[-1], rtol=0.02)


def test_more_rounds_and_starts_never_raise_inertia(planted):
    models, _ = planted
    values = [
        HMMKMeans(8, init="k-means++", max_iter=n, tol=0, random_state=0)
        .fit(models)
        .inertia_
        for n in (1, 2, 4, 50)
    ]
    assert (np.diff(values) <= 0).all()
    assert values[0] > 1.2 * values[-1]
    many = HMMKMeans(
        8, init="k-means++", n_init=4, max_iter=50, tol=0, random_state=0
    ).fit(models)
    assert many.inertia_ <= values[-1]


def test_as_many_clusters_as_models_and_equal_models(make_batch):
    models = make_batch(5)
    kmeans = HMMKMeans(5, random_state=0).fit(models)
    assert sorted(kmeans.labels_) == list(range(5))
    assert kmeans.inertia_ == 0
    same = models[[0, 0, 0, 1]]
    for clusterer in (HMMKMeans(3, random_state=0), HMMKMedoids(3)):
        labels = clusterer.fit_predict(same)
        assert clusterer.inertia_ == 0
        assert labels[0] != labels[3]


def test_seeds_are_different_and_spread(make_batch):
    models = make_batch(6)[[0, 0, 0, 1, 1, 2]]
    for seed in range(20):
        random_state = np.random.RandomState(seed)
        seeds = spread_seeds(models, 3, pairwise_hmm_distances, random_state)
        assert len({int(models.keys[n]) for n in seeds}) == 3
        seeds = spread_seeds(models, 5, pairwise_hmm_distances, random_state)
        assert len(set(seeds)) == 5


def test_kmeans_takes_other_metrics(make_batch):
    models = make_batch(8)
    for metric, p in (("coupling", 2), ("iaw", 2), (MAW(alpha=0.2, p=1), None)):
        kmeans = HMMKMeans(2, metric=metric, random_state=0).fit(models)
        distances = pairwise_hmm_distances(
            models, kmeans.cluster_centers_, metric=metric, p=p
        )
        assert_array_equal(kmeans.labels_, np.argmin(distances, axis=1))


def test_random_state_and_jobs_decide_nothing_else(planted):
    models, _ = planted
    one = HMMKMeans(4, random_state=3).fit(models)
    two = HMMKMeans(4, random_state=3, n_jobs=2).fit(models)
    assert one.cluster_centers_ == two.cluster_centers_
    assert one.inertia_ == two.inertia_


def test_medoids_are_as_good_as_brute_force(rng):
    for _ in range(10):
        points = rng.normal(size=(12, 2))
        distances = np.linalg.norm(points[:, None] - points, axis=2)
        medoids, _ = medoid_partition(distances, 3, 100)
        found = distances[:, medoids].min(axis=1).sum()
        losses = [
            distances[:, list(chosen)].min(axis=1).sum()
            for chosen in combinations(range(12), 3)
        ]
        # A local minimum: no swap of one medoid is better.
        swaps = [
            distances[:, [*np.delete(medoids, k), n]].min(axis=1).sum()
            for k in range(3)
            for n in range(12)
        ]
        assert found <= min(swaps) + 1e-12
        assert found <= 1.05 * min(losses)
        start = greedy_medoids(np.ascontiguousarray(distances.T), 3)
        assert found <= distances[:, start].min(axis=1).sum() + 1e-12


@pytest.mark.parametrize("metric", ["maw", KL(method="variational", symmetric=False)])
def test_medoids_need_little_memory_beside_their_matrix(rng, metric):
    size = 1200
    models = HMMBatch(
        np.ones((size, 1, 1)), rng.normal(size=(size, 1, 1)), [[[1.0]]] * size
    )
    clusterer = HMMKMedoids(3, metric=metric)
    clusterer.fit(models[:20])
    tracemalloc.start()
    clusterer.fit(models)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.3 * 8 * size**2


def test_medoids_of_a_given_matrix_need_no_copy_of_it(rng):
    size = 1600
    distances = np.abs(np.subtract.outer(*rng.normal(size=(2, size))))
    clusterer = HMMKMedoids(3, metric="precomputed")
    tracemalloc.start()
    clusterer.fit(distances)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.7 * distances.nbytes


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1.0, 1e150])
def test_units_of_distances_do_not_change_medoids(rng, scale):
    distances = rng.integers(1, 9, (30, 30)).astype(float)
    np.fill_diagonal(distances, 0.0)
    distances[3, 5] = np.inf
    expected, _ = medoid_partition(distances, 4, 100)
    found, _ = medoid_partition(scale * distances, 4, 100)
    assert_array_equal(found, expected)


def test_medoids_of_a_divergence_that_is_not_symmetric():
    # Everything is near the last column, whose own row is far from all.
    distances = np.full((4, 4), 5.0)
    distances[:, 3], distances[3, :3] = 1.0, 9.0
    np.fill_diagonal(distances, 0)
    medoids = HMMKMedoids(1, metric="precomputed").fit(distances)
    assert medoids.medoid_indices_.tolist() == [3]
    assert medoids.inertia_ == 3


def test_medoids_avoid_infinite_distances():
    distances = np.array(
        [[0, 1, np.inf, np.inf], [1, 0, 9, 9], [np.inf, 9, 0, 1], [np.inf, 9, 1, 0]]
    )
    medoids = HMMKMedoids(2, metric="precomputed").fit(distances)
    assert medoids.labels_.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert np.isfinite(medoids.inertia_)


@pytest.mark.parametrize("metric", ["maw", "kl", MAW(alpha=0.7)])
def test_medoids_attributes_agree(metric, make_batch):
    models = make_batch(12, [2, 3, 4] * 4)
    medoids = HMMKMedoids(3, metric=metric).fit(models)
    distances = pairwise_hmm_distances(models, metric=metric)
    assert_array_equal(medoids.transform(models), distances[:, medoids.medoid_indices_])
    assert_array_equal(medoids.predict(models), medoids.labels_)
    assert_allclose(medoids.inertia_, medoids.transform(models).min(axis=1).sum())
    assert medoids.cluster_centers_ == models[medoids.medoid_indices_]
    given = HMMKMedoids(3, metric="precomputed").fit(distances)
    assert_array_equal(given.medoid_indices_, medoids.medoid_indices_)
    assert_array_equal(given.predict(distances[:5]), medoids.labels_[:5])
    assert given.cluster_centers_ is None


def test_sequences_are_fitted_and_pipelines_work(make_sequences):
    X, y = make_sequences(12, n_timesteps=(150, 200))
    models = HMM.fit_transform(X)
    for clusterer in (
        HMMKMeans(2, alpha=0.9, random_state=0),
        HMMKMedoids(2, alpha=0.9),
    ):
        labels = clusterer.fit_predict(models)
        assert adjusted_rand_score(y, labels) > 0.6
        clusterer.set_params(hmm=HMM)
        assert_array_equal(clusterer.fit_predict(X), labels)
        assert clusterer.hmm_ is not HMM
        assert_array_equal(clusterer.predict(X[:3]), labels[:3])
        clusterer.set_params(hmm=None)
        piped = make_pipeline(HMM, clusterer)
        assert_array_equal(piped.fit_predict(X), labels)
        assert piped.transform(X).shape == (12, 2)


@pytest.mark.parametrize("clusterer", [HMMKMeans, HMMKMedoids])
def test_wrong_number_of_clusters(clusterer, make_batch):
    with pytest.raises(ValueError, match="n_clusters=9 for n_samples=4"):
        clusterer(9).fit(make_batch())
    with pytest.raises(ValueError, match="n_clusters must be an integer of at least 1"):
        clusterer(0).fit(make_batch())


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"init": "best"}, "init must be one of 'k-means\\+\\+', 'medoids', 'random'"),
        ({"n_init": 0}, "n_init must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"alpha": 2.0}, "alpha must be"),
        ({"metric": "far"}, "metric must be one of"),
    ],
)
def test_wrong_parameters_of_kmeans(params, message, make_batch):
    with pytest.raises(ValueError, match=message):
        HMMKMeans(2, **params).fit(make_batch())


def test_infinite_distances_to_centers_raise():
    # A state without spread has no density where another model emits.
    models = HMMBatch(
        np.ones((4, 1, 1)), [[[0.0]], [[1.0]], [[2.0]], [[5.0]]], np.zeros((4, 1, 1))
    )
    with pytest.raises(ValueError, match=r"finite distances.*metric='kl'"):
        HMMKMeans(2, metric="kl", random_state=0).fit(models)


def test_parameters_set_after_fit_are_checked(make_batch):
    models = make_batch(n_models=6)
    clusters = HMMKMedoids(2).fit(models).set_params(alpha=3.0)
    with pytest.raises(ValueError, match="alpha must be a number in"):
        clusters.predict(models)


def test_numbers_of_rounds_do_not_overflow(make_batch):
    models = make_batch(n_models=6)
    given = {"n_init": np.int8(3), "max_iter": np.int8(100), "random_state": 0}
    found = HMMKMeans(2, **given).fit(models)
    wanted = HMMKMeans(2, n_init=3, max_iter=100, random_state=0).fit(models)
    assert_array_equal(found.labels_, wanted.labels_)
    assert found.inertia_ == wanted.inertia_
