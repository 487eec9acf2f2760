"""Kill workers while they compute: ``python tests/lost_workers.py dask fit file``.

The arguments are the back end of joblib and the names of the work. It prints how each
kind of work ended. It runs in a separate process, which can be killed if it hangs.
"""

import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import joblib
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from skawhmm import (
    MAW,
    HMMEmbedding,
    HMMTransformer,
    PairwiseHMMDistance,
    pairwise_hmm_distances,
)
from skawhmm.datasets import make_hmm_sequences

FOLDER = tempfile.TemporaryDirectory()
MATRIX = Path(FOLDER.name) / "matrix.npy"


# Created only in the main process: workers import this module too.
@cache
def sequences():
    return make_hmm_sequences(n_sequences=200, n_timesteps=100, random_state=0)


@cache
def models():
    return HMMTransformer(5, random_state=0).fit_transform(sequences()[0])


@cache
def frames():
    return np.random.default_rng(0).normal(size=(200, 1000, 4))


def fit(n_jobs):
    hmm = HMMTransformer(6, n_init=4, random_state=0, n_jobs=n_jobs)
    return hmm.fit_transform(sequences()[0]).means


def embedding(n_jobs):
    vectors = HMMEmbedding(8, max_iter=5, random_state=0, n_jobs=n_jobs)
    return vectors.fit(frames()).transform(frames())


def file(n_jobs):
    out = None if n_jobs == 1 else MATRIX
    found = pairwise_hmm_distances(models(), metric="coupling", n_jobs=n_jobs, out=out)
    return np.array(found)


def grid_search(n_jobs):
    steps = make_pipeline(
        HMMTransformer(3, random_state=0),
        PairwiseHMMDistance(),
        KNeighborsClassifier(metric="precomputed"),
    )
    grid = {"hmmtransformer__n_components": [2, 3, 4]}
    search = GridSearchCV(steps, grid, cv=3, n_jobs=n_jobs, error_score="raise")
    return search.fit(*sequences()).cv_results_["mean_test_score"]


class Deadly(MAW):
    """MAW that kills the process of every worker, as if it ran out of memory."""

    def distances(self, prepared, index_a, index_b):
        if index_a.min() > 0 and os.getpid() != int(os.environ["OWN_PROCESS"]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().distances(prepared, index_a, index_b)


def deadly(n_jobs):
    out = None if n_jobs == 1 else MATRIX
    return np.array(
        pairwise_hmm_distances(models()[:60], metric=Deadly(), n_jobs=n_jobs, out=out)
    )


@contextmanager
def killed(workers):
    """Kill a worker as soon as one is at work."""
    deaths, over = [], threading.Event()

    def kill():
        while not (deaths or over.is_set()):
            time.sleep(0.005)
            for worker in workers()[:1]:
                os.kill(worker, signal.SIGKILL)
                deaths.append(worker)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield deaths
    finally:
        over.set()
        thread.join()


@contextmanager
def dask(n_failures):
    """Yield what finds the workers with tasks, and what waits for all workers."""
    import dask
    import distributed

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": n_failures}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):

        def workers():
            tasks = client.processing()
            return [
                nanny.pid
                for nanny in cluster.workers.values()
                if nanny.pid and tasks.get(nanny.worker_address)
            ]

        yield workers, partial(client.wait_for_workers, 2)


@contextmanager
def loky(_):
    with joblib.parallel_config(backend="loky"):
        yield list, lambda: None


def ended(work, workers, expected):
    """Return how work ended, and how many workers were killed meanwhile."""
    with killed(workers) as deaths:
        try:
            found = work(2)
        except Exception as error:
            # The error for a lost worker varies: the tests say which ones are right.
            text = " ".join(str(error).split())
            return f"{type(error).__name__}: {text}", len(deaths)
    same = np.array_equal(found, expected)
    return "the same" if same else "another result", len(deaths)


def main(backend, *names):
    os.environ["OWN_PROCESS"] = str(os.getpid())
    # To try a deadly task on further workers only takes time. Three is dask's number.
    n_failures = 0 if "deadly" in names else 3
    with globals()[backend](n_failures) as (workers, ready):
        for work in (globals()[name] for name in names):
            MATRIX.unlink(missing_ok=True)
            Path(f"{MATRIX}.journal").unlink(missing_ok=True)
            expected = work(1)
            ready()
            busy = list if work is deadly else workers
            outcome, deaths = ended(work, busy, expected)
            # The same work can be done after the failure, also resumed.
            n_jobs = None if work is deadly else 2
            with joblib.parallel_config(backend="threading"):
                same = np.array_equal(work(n_jobs), expected)
            state = "usable" if same else "spoilt"
            print(work.__name__, state, deaths, outcome, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
