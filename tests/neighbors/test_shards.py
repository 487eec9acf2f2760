"""Several files that are searched as one."""

import os
import time

import joblib
import numpy as np
import pytest
from neighbors.test_approximate import clustered

from skawhmm import HMMBatch, HMMRetriever
from skawhmm.neighbors import HMMShards


@pytest.fixture(scope="module")
def collection():
    return clustered(700), clustered(20, seed=1)


def same(one, two):
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def saved_shards(models, folder, cuts, **params):
    paths = []
    for first, last in zip([0, *cuts], [*cuts, len(models)], strict=True):
        paths.append(folder / f"{first}.npz")
        HMMRetriever(**params).fit(models[first:last]).save(paths[-1])
    return paths


@pytest.mark.parametrize("metric", ["maw", "jaw", "coupling"])
def test_shards_are_searched_as_one(collection, tmp_path, metric):
    models, queries = collection
    # Copies, so that there are ties between files, and one small file.
    models = HMMBatch.concatenate([models, models[:40], queries[:3]])
    queries = HMMBatch.concatenate([queries[:6], models[:4]])
    paths = saved_shards(models, tmp_path, [2, 600], n_neighbors=5, metric=metric)
    whole = HMMRetriever(5, metric=metric).fit(models)
    for n_jobs in (1, 2):
        shards = HMMShards(paths, n_jobs=n_jobs)
        assert shards.n_samples_fit_ == len(models)
        assert same(shards.kneighbors(queries), whole.kneighbors(queries))
        found = shards.radius_neighbors(queries, 2.0)
        wanted = whole.radius_neighbors(queries, 2.0)
        for one, two in zip(found, wanted, strict=True):
            assert same(one, two)


def test_shards_on_dask(collection, tmp_path):
    distributed = pytest.importorskip("distributed")
    models, queries = collection
    paths = saved_shards(models, tmp_path, [200, 400], n_neighbors=4, metric="jaw")
    wanted = HMMRetriever(4, metric="jaw").fit(models).kneighbors(queries)
    with (
        distributed.Client(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as client,
        joblib.parallel_config("dask", client=client),
    ):
        assert same(HMMShards(paths).kneighbors(queries), wanted)


def test_a_shard_that_was_replaced_is_read_again(collection, tmp_path):
    models, queries = collection
    (path,) = saved_shards(models[:100], tmp_path, [], n_neighbors=2)
    HMMShards([path]).kneighbors(queries)
    time.sleep(0.01)
    HMMRetriever(2).fit(models[100:]).save(path)
    wanted = HMMRetriever(2).fit(models[100:]).kneighbors(queries)
    assert same(HMMShards([path]).kneighbors(queries), wanted)


def test_shards_that_differ(collection, tmp_path):
    models, queries = collection
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    HMMRetriever(2).fit(models[:100]).save(one)
    for other, message in (
        (HMMRetriever(2, metric="jaw").fit(models[100:]), "metric='maw'"),
        (HMMRetriever(2).fit(clustered(9, n_features=2)), "n_features"),
        (HMMRetriever(2, metric="mmd").fit(models[100:]), "learns nothing"),
    ):
        other.save(two)
        os.utime(two, ns=(0, hash(message) % 10**9))
        with pytest.raises(ValueError, match=message):
            HMMShards([one, two])
    with pytest.raises(TypeError, match="paths must be a list"):
        HMMShards(one)
    with pytest.raises(TypeError, match="paths must be a list"):
        HMMShards([])
    with pytest.raises(ValueError, match="n_neighbors = 101"):
        HMMShards([one]).kneighbors(queries, 101)
    with pytest.raises(TypeError, match="X"):
        HMMShards([one]).kneighbors([[1.0]])
