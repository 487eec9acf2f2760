"""The same bits on threads, processes and a dask cluster that loses a worker."""

import os
import pickle
import signal
import sys
import threading
import time
from concurrent.futures import CancelledError

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm import (
    MAW,
    HMMTransformer,
    PairwiseHMMDistance,
    pairwise_hmm_distances,
)
from skawhmm.neighbors._search import SearchIndex
from skawhmm.utils._interruption import check_wanted
from skawhmm.utils._parallel import (
    MAX_RETRIES,
    Shared,
    completed,
    even_ranges,
)


def test_tasks_are_completed_in_order():
    shared = 10
    results = completed(lambda s, k: s + k, shared, [(3,), (1,)], n_jobs=2)
    assert list(results) == [13, 11]


def test_one_job_stays_in_this_process(monkeypatch):
    # The dask back end would take it: a fit by many small steps crawled, and hung if a
    # worker died.
    monkeypatch.setattr("skawhmm.utils._parallel.Parallel", None)
    results = completed(lambda s, k: s + k, 10, [(3,)], n_jobs=1)
    assert list(results) == [13]


def test_lost_tasks_are_handed_out_again():
    calls = []

    def fails_first(_, k):
        calls.append(k)
        if k == 2 and calls.count(2) <= 2:
            raise CancelledError
        return k

    tasks = [(k,) for k in range(4)]
    found = completed(fails_first, None, tasks, n_jobs=2)
    assert list(found) == [0, 1, 2, 3]
    assert calls.count(0) == 1
    assert calls.count(2) == 3


def test_tasks_that_are_always_lost_end_in_an_error():
    calls = []

    def fails(_, k):
        calls.append(k)
        raise CancelledError

    with pytest.raises(CancelledError, match=r"^Workers died .*repeated 3 times"):
        list(completed(fails, None, [(0,)] * 2, n_jobs=2))
    assert calls.count(0) == MAX_RETRIES + 1


@pytest.mark.parametrize("copies", [0, 1])
def test_shared_data_tell_their_size(copies):
    shared = Shared((np.zeros(1250), abs))
    for _ in range(copies):
        shared = pickle.loads(pickle.dumps(shared))
    assert 10_000 <= sys.getsizeof(shared) < 11_000


def test_shared_data_are_aligned_wherever_a_message_puts_them(rng):
    value = {"C": rng.normal(size=(2, 3)), "F": np.ones((3, 2), order="F"), "f": abs}
    value |= {"empty": np.empty((0, 4)), "strided": rng.normal(size=9)[::2]}
    buffers = []
    rest = pickle.dumps(Shared(value), 5, buffer_callback=buffers.append)
    moved = [np.frombuffer(b" " + bytes(x.raw()), np.uint8)[1:] for x in buffers]
    assert any(x.ctypes.data % 2 for x in moved)
    received = pickle.loads(rest, buffers=moved)
    assert received.value["f"] is abs
    for key in ("C", "F", "empty", "strided"):
        assert received.value[key].flags.aligned
        assert_array_equal(received.value[key], value[key])


def test_aligned_data_are_not_copied(rng):
    values = rng.normal(size=100)
    buffers = []
    rest = pickle.dumps(Shared([values]), 5, buffer_callback=buffers.append)
    received = pickle.loads(rest, buffers=buffers)
    assert np.shares_memory(received.value[0], values)


# Forked processes of a process with threads are what this back end is.
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_back_ends_agree(make_batch, make_sequences, backend):
    models = make_batch(n_models=40, covariance_type="full")
    sequences, _ = make_sequences(n_sequences=20)
    hmm = HMMTransformer(2, prior="pooled", random_state=0)
    expected = pairwise_hmm_distances(models), hmm.fit_transform(sequences)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert_array_equal(pairwise_hmm_distances(models), expected[0])
        assert hmm.fit_transform(sequences) == expected[1]


# joblib warns of tasks that nobody waits for.
ABANDONED = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@ABANDONED
def test_tasks_are_made_when_they_are_needed():
    class Tasks:
        def __len__(self):
            return 10**12

        def __getitem__(self, k):
            return (k,)

    results = completed(lambda s, k: s + k, 10, Tasks(), n_jobs=2)
    assert [next(results) for _ in range(3)] == [10, 11, 12]
    results.close()


@ABANDONED
def test_threads_stop_when_the_caller_is_gone():
    began, ended = threading.Event(), threading.Event()

    def endless(shared):
        began.set()
        try:
            while True:
                check_wanted()
                time.sleep(0.01)
        finally:
            ended.set()

    def quick(shared, k):
        return endless(shared) if k else began.wait(60)

    results = completed(quick, None, [(0,), (1,)], n_jobs=2)
    next(results)
    assert not ended.is_set()
    results.close()
    assert ended.wait(60)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


@pytest.mark.filterwarnings("default")
def test_dask_cluster_gives_the_same_bits(cluster, make_batch, make_sequences):
    models = make_batch(n_models=60, n_features=4)
    index = SearchIndex(models, MAW())
    sequences, _ = make_sequences(n_sequences=10)
    hmm = HMMTransformer(n_components=2, random_state=0).fit(sequences)
    expected = pairwise_hmm_distances(models), index.kneighbors(None, 3)
    with joblib.parallel_config(backend="dask"):
        distances = pairwise_hmm_distances(models, n_jobs=-1)
        found = index.kneighbors(None, 3, n_jobs=-1)
        fitted = hmm.set_params(n_jobs=-1).transform(sequences)
    assert_array_equal(distances, expected[0])
    assert_array_equal(found[0], expected[1][0])
    assert_array_equal(found[1], expected[1][1])
    assert fitted == hmm.set_params(n_jobs=1).transform(sequences)


@pytest.mark.filterwarnings("default")
def test_a_killed_worker_costs_nothing_but_time(cluster, make_batch, tmp_path):
    class Deadly(MAW):
        """MAW whose first tile with these rows ends the process of its worker."""

        def distances(self, prepared, index_a, index_b):
            if index_a.min() > 0 and alive.exists():
                alive.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().distances(prepared, index_a, index_b)

    alive = tmp_path / "alive"
    models = make_batch(n_models=60)
    expected = pairwise_hmm_distances(models, metric=Deadly())
    alive.touch()
    with joblib.parallel_config(backend="dask"):
        distances = pairwise_hmm_distances(models, metric=Deadly(), n_jobs=-1)
    assert not alive.exists()
    assert_array_equal(distances, expected)


@pytest.mark.parametrize("change", [{"n_jobs": 0}, {"verbose": "x"}])
def test_how_work_is_done_is_checked_after_fit_too(change, make_batch):
    fitted = PairwiseHMMDistance().fit(make_batch(3)).set_params(**change)
    with pytest.raises((TypeError, ValueError), match=rf"^{next(iter(change))} must"):
        fitted.transform(make_batch(2, seed=1))


def test_more_jobs_than_tasks_are_not_started():
    # joblib would start all of these threads.
    found = completed(lambda s, k: s + k, 6, [(1,), (2,)], n_jobs=2**62)
    assert [*found] == [7, 8]


def test_ranges_of_many_jobs_do_not_overflow():
    assert even_ranges([1] * 300, np.int8(100), per_job=4) == even_ranges(
        [1] * 300, 100, per_job=4
    )
