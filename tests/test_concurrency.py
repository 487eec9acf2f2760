"""Fitted estimators shared by threads, processes and workers: the same answers."""

import multiprocessing
import pickle
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm import (
    HMMBatch,
    HMMEmbedding,
    HMMKMeans,
    HMMRetriever,
    HMMTransformer,
    KNeighborsHMMClassifier,
    make_classifier,
)
from skawhmm.datasets import make_hmm_sequences

N_THREADS = 8

X, Y = make_hmm_sequences(n_sequences=24, n_timesteps=30, random_state=0)
HMM = HMMTransformer(2, random_state=0)


def retrieved(estimator, queries):
    return np.hstack(estimator.kneighbors(queries))


def transformed(estimator, queries):
    return estimator.transform(queries)


def predicted(estimator, queries):
    return estimator.predict(queries)


def found_within(estimator, queries):
    return np.concatenate(estimator.radius_neighbors(queries)[0])


USES = {
    "classifier": (KNeighborsHMMClassifier(3, hmm=HMM), predicted),
    "pruned": (HMMRetriever(3, hmm=HMM, algorithm="pruned"), retrieved),
    "radius": (HMMRetriever(radius=3.0, hmm=HMM, algorithm="pruned"), found_within),
    "coupling": (
        KNeighborsHMMClassifier(3, hmm=HMM, algorithm="pruned", metric="coupling"),
        predicted,
    ),
    "kl": (HMMRetriever(3, hmm=HMM, metric="kl"), retrieved),
    "transformer": (HMMTransformer(2, prior="pooled", random_state=0), transformed),
    "embedding": (HMMEmbedding(2, max_iter=3), transformed),
    "views": (make_classifier(random_state=0), predicted),
    "clusters": (HMMKMeans(2, hmm=HMM, max_iter=3, random_state=0), predicted),
}


@pytest.fixture(scope="module")
def fitted():
    """Return pickles of fitted estimators, to load fresh unused copies."""
    kept = {}

    def pickled(name):
        if name not in kept:
            kept[name] = pickle.dumps(USES[name][0].fit(X, Y))
        return kept[name]

    return pickled


def answers(name, content, parts):
    estimator, use = pickle.loads(content), USES[name][1]
    return [use(estimator, X[part]) for part in parts]


def same(found, expected):
    if isinstance(found, HMMBatch):
        return found == expected
    return np.array_equal(found, expected)


PARTS = [slice(n, n + 6) for n in range(N_THREADS)]


@pytest.mark.parametrize("name", USES)
def test_threads_can_share_an_estimator(fitted, name):
    expected = answers(name, fitted(name), PARTS)
    for _ in range(2):
        estimator, use = pickle.loads(fitted(name)), USES[name][1]
        start = threading.Barrier(N_THREADS)

        def used(part, start=start, use=use, estimator=estimator):
            start.wait()
            return use(estimator, X[part])

        with ThreadPoolExecutor(N_THREADS) as pool:
            found = list(pool.map(used, PARTS))
        assert all(map(same, found, expected))


@pytest.mark.parametrize("name", ["classifier", "pruned", "embedding"])
def test_workers_can_share_an_estimator(fitted, name):
    content = fitted(name)
    expected = answers(name, content, PARTS)
    estimator, use = pickle.loads(content), USES[name][1]
    jobs = [joblib.delayed(use)(estimator, X[part]) for part in PARTS]
    for backend in ("loky", "threading"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert all(map(same, joblib.Parallel()(jobs), expected))


def fitted_models(seed):
    return HMMTransformer(2, random_state=seed).fit_transform(X)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forked_processes_agree(fitted):
    expected = fitted_models(0), answers("pruned", fitted("pruned"), PARTS[:2])
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, context) as pool:
        models = list(pool.map(fitted_models, [0, 0]))
        content = fitted("pruned")
        found = pool.submit(answers, "pruned", content, PARTS[:2]).result()
    assert all(one == expected[0] for one in models)
    assert all(map(same, found, expected[1]))


def test_threads_can_share_a_batch():
    arrays = fitted_models(0)
    expected = arrays.keys, arrays.n_components, arrays.score(X)
    for _ in range(5):
        models = pickle.loads(pickle.dumps(arrays))
        start = threading.Barrier(N_THREADS)

        def read(_, models=models, start=start):
            start.wait()
            return models.keys, models.n_components, models.score(X)

        with ThreadPoolExecutor(N_THREADS) as pool:
            for found in pool.map(read, range(N_THREADS)):
                for one, other in zip(found, expected, strict=True):
                    assert_array_equal(one, other)


@pytest.mark.parametrize("name", USES)
def test_interrupted_fit_leaves_estimator_unchanged(fitted, name, monkeypatch):
    estimator, use = pickle.loads(fitted(name)), USES[name][1]
    before, expected = dict(vars(estimator)), use(estimator, X)
    monkeypatch.setattr("skawhmm.utils._parallel.starmap", interrupted)
    others = [np.hstack([x, x]) for x in X[4:20]]
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(others, 1 - Y[4:20])
    monkeypatch.undo()
    assert {k: v for k, v in vars(estimator).items() if k != "_searched"} == {
        k: v for k, v in before.items() if k != "_searched"
    }
    assert same(use(estimator, X), expected)


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_interrupted_index_is_rebuilt(fitted, monkeypatch):
    retriever = pickle.loads(fitted("pruned"))
    first = retrieved(retriever, X)
    retriever.set_params(alpha=1 / 2)
    monkeypatch.setattr("skawhmm.neighbors._base.SearchIndex", interrupted)
    with pytest.raises(KeyboardInterrupt):
        retriever.kneighbors(X)
    monkeypatch.undo()
    expected = HMMRetriever(3, alpha=1 / 2, hmm=HMM, algorithm="brute").fit(X)
    assert_array_equal(retrieved(retriever, X), retrieved(expected, X))
    assert not np.array_equal(retrieved(retriever, X), first)
