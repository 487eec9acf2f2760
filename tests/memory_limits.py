"""Ask for more memory than there is: ``python tests/memory_limits.py``.

It prints how each kind of work ended, and whether anything was changed. It runs in a
separate process, because its memory is limited.
"""

import resource
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np

from skawhmm import (
    HMMBatch,
    HMMEmbedding,
    HMMKMedoids,
    HMMRetriever,
    HMMTransformer,
    KNeighborsHMMClassifier,
    KNeighborsHMMClassifierCV,
    hmm_group_test,
    make_classifier,
    pairwise_hmm_components,
    pairwise_hmm_distances,
)
from skawhmm.features import _embedding_statistics
from skawhmm.plot import HMMMapDisplay

mpl.use("agg")

# References learn from all frames.
_embedding_statistics.MAX_FRAMES = 10**7
# Memory that the work may take in addition to the process, in bytes.
MEMORY = 60_000_000


def batch(n_models):
    rng = np.random.default_rng(0)
    chain, variances = np.full((n_models, 2, 2), 0.5), np.ones((n_models, 2, 1))
    return HMMBatch(chain, rng.normal(size=(n_models, 2, 1)), variances)


RNG = np.random.default_rng(0)
MANY, FEW = batch(20_000), batch(30)
# Too long for a second copy of one of them, and for their concatenation.
LONG = [RNG.normal(size=(1_000_000, 12)) for _ in range(2)]
SHORT = [RNG.normal(size=(100, 12)) for _ in range(6)]
FOLDER = tempfile.TemporaryDirectory()
LARGE, SAVED = Path(FOLDER.name) / "large.npz", Path(FOLDER.name) / "saved.npz"


def labels(items):
    return np.arange(len(items)) % 2


def tested(models):
    return hmm_group_test(models, labels(models))


def neighbors(models):
    return HMMRetriever(3, algorithm="brute").fit(models).kneighbors()


def predicted(models):
    knn = KNeighborsHMMClassifier(3, algorithm="brute")
    return knn.fit(models, labels(models)).predict(models)


# Functions called with much data, and with little.
CALLS = {
    "matrix": (pairwise_hmm_distances, MANY, FEW),
    "components": (pairwise_hmm_components, MANY, FEW),
    "map": (HMMMapDisplay.from_models, MANY, FEW),
    "test": (tested, MANY, FEW),
    "neighbors": (neighbors, MANY, FEW),
    "classifier": (predicted, MANY, FEW),
    "load": (HMMBatch.load, LARGE, SAVED),
}
# Estimators fitted to much data after a fit to little, and how they are used.
POOLED = HMMTransformer(2, prior="pooled", random_state=0)
FITS = {
    "classifier_cv": (KNeighborsHMMClassifierCV(), "predict", MANY, FEW),
    "medoids": (HMMKMedoids(2), "predict", MANY, FEW),
    "pooled": (POOLED, "transform", LONG, SHORT),
    "embedding": (HMMEmbedding(2, random_state=0), "transform", LONG, SHORT),
    "views": (make_classifier(random_state=0), "predict", LONG, SHORT),
}


def limit_memory():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    used = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def outcome(work, *args):
    try:
        work(*args)
    except MemoryError as error:
        return f"MemoryError: {error}"
    return "finished"


def same(found, expected):
    if isinstance(found, HMMBatch):
        return found == expected
    return np.array_equal(found, expected)


def report(name, kept, end):
    print(name, "kept" if kept else "changed", end, sep="\t", flush=True)  # noqa: T201


def main():
    FEW.save(SAVED)
    covars = np.tile(np.eye(1000), (8, 1, 1, 1))
    HMMBatch(np.ones((8, 1, 1)), np.zeros((8, 1, 1000)), covars).save(LARGE)
    del covars
    # The first calls import what they need.
    for work, _, few in CALLS.values():
        work(few)
    distances, answers = pairwise_hmm_distances(FEW), {}
    for name, (estimator, method, _, few) in FITS.items():
        answers[name] = getattr(estimator.fit(few, labels(few)), method)(few)
    limit_memory()
    for name, (work, much, _) in CALLS.items():
        end = outcome(work, much)
        report(name, same(pairwise_hmm_distances(FEW), distances), end)
    for name, (estimator, method, much, few) in FITS.items():
        before = dict(vars(estimator))
        end = outcome(estimator.fit, much, labels(much))
        kept = all(vars(estimator)[key] is value for key, value in before.items())
        answer = getattr(estimator, method)(few)
        report(name, kept and same(answer, answers[name]), end)


if __name__ == "__main__":
    main()
    FOLDER.cleanup()
