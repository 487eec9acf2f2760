"""How does the work grow with the number of models?

The first tables are about queries for the five nearest neighbours by MAW and by JAW (M
= 3, d = 12, diagonal) among N models in groups, and by MAW among models of spoken
digits with random changes, by pruned and by full search: time with two workers, CPU
time of one, pairs that each bound examined, memory of the index. Then follows the time
of a pair by IAW. With ``--sizes`` this is all, for other numbers of models. Otherwise
the neighbours of all models follow, the pairs per second for one and two workers, the
memory of a matrix that is written to a file, and what these costs amount to for ten and
a hundred million models. The time of a query is extrapolated in proportion to the size
of the collection, which is an upper estimate.

With ``--approximate N ...``, only approximate search is measured, by MAW, JAW and, up
to 100 000 models, MMD, which has no bounds: recall, the time of a query, the size of
the file and the time to open it; then an engine alone (usearch, if it is installed)
on the same vectors, with states in the order of their first coordinate.

Run: python benchmarks/bench_scale.py [--full] [--sizes N ...] [--figure PATH]
     [--approximate N ...]
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import ot
from common import timed
from scipy.spatial.distance import cdist

from skawhmm import (
    IAW,
    JAW,
    MAW,
    HMMBatch,
    HMMRetriever,
    HMMTransformer,
    pairwise_hmm_distances,
)
from skawhmm.datasets import load_spoken_digits
from skawhmm.distances import MMD
from skawhmm.neighbors._points import point_units
from skawhmm.neighbors._search import SearchIndex

N_QUERIES = 200

# Candidates that the bare engine is asked for.
ENGINE_CANDIDATES = 64

# A distance without bounds is compared with all distances up to so many models.
MOST_UNBOUNDED = 100_000


def grouped_models(n_models, n_components=3, n_features=12, n_groups=200, seed=0):
    """Models in groups, so that every query has close neighbours."""
    rng = np.random.default_rng(seed)
    shape = n_models, n_components, n_features
    centres = 2 * np.random.default_rng(0).normal(size=(n_groups, *shape[1:]))
    means = centres[rng.integers(n_groups, size=n_models)]
    return HMMBatch(
        rng.dirichlet(np.full(n_components, 3.0), shape[:2]),
        means + 0.5 * rng.normal(size=shape),
        rng.uniform(0.3, 1.5, shape),
    )


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def exponent(sizes, values):
    return np.polyfit(np.log(sizes), np.log(values), 1)[0]


def digit_models(n_models, seed=0):
    """Models of spoken digits, repeated with random changes of means and chains."""
    sequences = load_spoken_digits(return_X_y=True)[0][::4]
    hmm = HMMTransformer(3, random_state=0, n_jobs=2)
    models = hmm.fit_transform(sequences)
    rng = np.random.default_rng(seed)
    models = models[rng.integers(len(models), size=n_models)]
    spread = 0.5 * np.sqrt(models.covars)
    chains = models.transmats + 0.05 * rng.dirichlet(np.ones(3), (n_models, 3))
    return HMMBatch(
        chains / chains.sum(axis=2, keepdims=True),
        models.means + spread * rng.normal(size=models.means.shape),
        models.covars,
    )


def query_rows(sizes, metric, make_models=grouped_models):
    """Print a row per number of models; return sizes, times, numbers of distances."""
    print(f"\n{type(metric).__name__}, {make_models.__name__.replace('_', ' ')}")
    print(
        "      N  index s  ms/query  CPU ms  brute ms    groups  members    plans"
        "  marginal  distances  same  index/models  MB peak"
    )
    rows = []
    queries = make_models(N_QUERIES, seed=1)
    for size in sizes:
        models = make_models(size)
        build, index = timed(SearchIndex, models, metric, n_jobs=2)
        start = time.process_time()
        index.kneighbors(queries, 5, n_jobs=1)
        cpu = time.process_time() - start
        fast, found = timed(index.kneighbors, queries, 5, n_jobs=2, repeats=3)
        slow, every = timed(pairwise_hmm_distances, queries[:10], models, metric)
        expected = np.argsort(every, axis=1, kind="stable")[:, :5]
        same = np.array_equal(expected, found[1][:10])
        stages = ("group", "member", "transport", "marginal", "distance")
        counts = [index.counts[stage] / N_QUERIES for stage in stages]
        memory = sum(np.asarray(x).nbytes for x in index.balls) + index.keys.nbytes
        times = [1e3 * fast / N_QUERIES, 1e3 * cpu / N_QUERIES, 1e2 * slow]
        rows.append((size, *times, counts[-1]))
        print(
            f"{size:7d}  {build:7.2f}  {times[0]:8.2f}  {times[1]:6.2f}"
            f"  {times[2]:8.2f}  {counts[0]:8.0f} {counts[1]:8.0f}"
            f"  {counts[2]:7.0f}"
            f"  {counts[3]:8.0f}  {counts[4]:9.1f}"
            f"  {same!s:>4}  {memory / models.nbytes:12.2f}  {peak_megabytes():7.0f}"
        )
    rows = np.array(rows)
    if len(rows) > 1:
        names = ("time of a query", "its CPU time", "time by brute force", "distances")
        for name, column in zip(names, rows.T[1:], strict=True):
            power = exponent(rows[:, 0], column)
            last = np.log(column[-1] / column[-2]) / np.log(rows[-1, 0] / rows[-2, 0])
            print(
                f"  {name}: exponent of N {power:.2f}, {4**power:.2f} times per 4 "
                f"times the models; from the last but one to the last {4**last:.2f}"
            )
    return rows[:, [0, 1, 3, 4]]


def approximate_rows(sizes, metric):
    """Print approximate search, the bare engine beside it, and files, per size."""
    print(f"\n{type(metric).__name__}, approximate search for five neighbours:")
    print(
        "      N  fit s  recall in fit  recall  groups  candidates  ms/query"
        "  certified  certificate ms  file MB  open ms  same"
    )
    queries = grouped_models(N_QUERIES, seed=1)
    for size in sizes:
        models = grouped_models(size)
        retriever = HMMRetriever(5, metric=metric, algorithm="approximate", n_jobs=2)
        build, _ = timed(retriever.fit, models)
        index = retriever._index(metric)
        if index.exact is None:
            every = pairwise_hmm_distances(queries, models, metric, n_jobs=2)
            true = np.argsort(every, axis=1, kind="stable")[:, :5]
        else:
            true = index.exact.kneighbors(queries, 5, n_jobs=2)[1]
        taken, found = timed(retriever.kneighbors, queries, repeats=3)
        proof, proven = timed(retriever.certified, queries, found[1])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "retriever.npz"
            retriever.save(path)
            opened, loaded = timed(HMMRetriever.load, path)
            same = np.array_equal(loaded.kneighbors(queries)[1], found[1])
            n_bytes = path.stat().st_size
        each = 1e3 / N_QUERIES
        print(
            f"{size:7d}  {build:5.1f}  {retriever.recall_:13.3f}"
            f"  {recall(true, found[1]):6.3f}  {index.n_groups:6d}"
            f"  {index.n_candidates:10d}  {each * taken:8.2f}"
            f"  {proven.mean():9.2f}  {each * proof:14.2f}  {n_bytes / 1e6:7.0f}"
            f"  {1e3 * opened:7.1f}  {same!s:>4}",
            flush=True,
        )


def recall(true, found):
    """Return the fraction of the true neighbours that were found."""
    pairs = zip(true, found, strict=True)
    return np.mean([np.isin(*pair).mean() for pair in pairs])


def engine_rows(sizes):
    """Print how well usearch alone finds the neighbours by MAW, on the same points."""
    print("\nusearch alone, MAW:\n      N  fit s  recall  ms/query")
    try:
        from usearch.index import Index
    except ModuleNotFoundError:
        print("  not installed")
        return
    queries = grouped_models(N_QUERIES, seed=1)
    for size in sizes:
        models = grouped_models(size)
        true = SearchIndex(models, MAW(), n_jobs=2).kneighbors(queries, 5, n_jobs=2)[1]
        units = point_units(models, MAW())
        data, asked = (ordered_points(batch, units) for batch in (models, queries))
        graph = Index(ndim=data.shape[1], metric="l2sq", dtype="f32")
        build, _ = timed(graph.add, np.arange(len(data)), data, threads=2)
        taken, found = timed(
            graph.search, asked, ENGINE_CANDIDATES, threads=2, repeats=3
        )
        print(
            f"{size:7d}  {build:5.1f}  {recall(true, found.keys):6.3f}"
            f"  {1e3 / N_QUERIES * taken:8.2f}",
            flush=True,
        )


def ordered_points(models, units):
    """Return a vector per model: its points in the order of their first coordinate."""
    points = units.points(models)[0]
    order = np.argsort(points[:, :, 0], axis=1)[:, :, None]
    return np.take_along_axis(points, order, axis=1).reshape(len(models), -1)


def sampled():
    """Print the time of a pair by IAW, and of POT for its entropic coupling."""
    print("\nIAW, ms of CPU per pair:")
    for n_features in (2, 12):
        models = grouped_models(30, n_features=n_features)
        for metric in (
            IAW(),
            IAW(coupling="sinkhorn", sampling="iid", n_samples=500),
            IAW(coupling="sinkhorn", sampling="iid", n_samples=1000),
        ):
            start = time.process_time()
            n_pairs = 15 if metric.coupling == "exact" else 3
            index = np.arange(n_pairs)
            metric.distances(metric.prepare(models), index, 15 + index)
            taken = 1e3 * (time.process_time() - start) / n_pairs
            print(
                f"  d = {n_features:2d}, {metric.n_samples:4d} points, "
                f"{metric.coupling}: {taken:.2f}"
            )
        for n_samples in (500, 1000):
            points, _ = IAW(n_samples=n_samples, sampling="iid").samples(models[:2], 0)
            even = np.full(n_samples, 1 / n_samples)
            start = time.process_time()
            cost = cdist(*points)
            ot.sinkhorn(
                even,
                even,
                cost,
                0.05 * cost.mean(),
                method="sinkhorn_log",
                numItermax=300,
                warn=False,
            )
            taken = 1e3 * (time.process_time() - start)
            print(f"  d = {n_features:2d}, {n_samples:4d} points, POT: {taken:.2f}")


def all_neighbors(sizes):
    print("\nNeighbours of all N models (2 workers):")
    seconds = []
    for size in sizes:
        retriever = HMMRetriever(5, algorithm="pruned", n_jobs=2).fit(
            grouped_models(size)
        )
        taken, _ = timed(retriever.kneighbors)
        seconds.append(taken)
        fraction = retriever.n_distance_evaluations_ / size**2
        print(f"{size:7d}  {taken:7.2f} s  {100 * fraction:.3f} % of all distances")
    print(f"exponent of N: {exponent(sizes, seconds):.2f} (2 for all pairs)")


def shapes():
    print("\nMicroseconds per query, N = 2000, by states M and features d:")
    for n_components, n_features in (
        (2, 12),
        (3, 12),
        (5, 12),
        (8, 12),
        (3, 3),
        (3, 39),
    ):
        models = grouped_models(2000, n_components, n_features)
        queries = grouped_models(N_QUERIES, n_components, n_features, seed=1)
        index = SearchIndex(models, MAW())
        taken, _ = timed(index.kneighbors, queries, 5)
        computed = index.counts["distance"] / N_QUERIES
        print(
            f"  M = {n_components}, d = {n_features:2d}: {1e6 * taken / N_QUERIES:7.0f}"
            f"  ({computed:.0f} full distances)"
        )


def workers():
    models = grouped_models(3000)
    print("\nPairs per second, all pairs of 3000 models:")
    for n_jobs in (1, 2):
        taken, _ = timed(pairwise_hmm_distances, models, n_jobs=n_jobs)
        rate = 3000 * 3001 / 2 / taken
        print(f"  {n_jobs} worker(s): {rate:,.0f}")
    return rate


def matrix_in_a_file(size):
    models = grouped_models(size)
    before = peak_megabytes()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "matrix.npy"
        taken, _ = timed(
            pairwise_hmm_distances, models, out=out, dtype="float32", n_jobs=2
        )
        print(
            f"\n{size} x {size} float32 in a file: {taken:.0f} s, "
            f"{out.stat().st_size / 2**20:.0f} MB on disk; peak memory rose by "
            f"{peak_megabytes() - before:.0f} MB, pages of the file included"
        )


def estimates(rows, rate):
    """Extrapolate from the measured costs."""
    sequences = list(np.random.default_rng(0).normal(size=(400, 100, 12)))
    hmm = HMMTransformer(3, random_state=0, n_jobs=2).fit(sequences)
    hmm.transform(sequences[:2])
    fit = timed(hmm.transform, sequences)[0] / len(sequences)
    size = grouped_models(1000).nbytes / 1000
    largest, query = rows[-1][0], rows[-1][1] / 1e3
    print(f"\nA fit (100 frames, 2 workers): {1e3 * fit:.2f} ms; a model: {size:.0f} B")
    print("      N      fitting    memory   a query    all pairs")
    for n_models in (10**7, 10**8):
        print(
            f"  {n_models:.0e}  {fit * n_models / 3600:7.1f} h  "
            f"{size * n_models / 1e9:5.0f} GB  {query * n_models / largest:6.1f} s  "
            f"{n_models**2 / 2 / rate / 86400 / 365:9.1f} y"
        )


def draw(rows, path):
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    sizes, fast, slow, computed = rows.T
    axes[0].loglog(sizes, slow, "o-", color="#D55E00", label="all models")
    axes[0].loglog(sizes, fast, "s-", color="#0072B2", label="pruned")
    axes[0].set(xlabel="number of models", ylabel="ms per query")
    axes[1].loglog(sizes, sizes, "o-", color="#D55E00", label="all models")
    axes[1].loglog(sizes, computed, "s-", color="#0072B2", label="pruned")
    axes[1].set(xlabel="number of models", ylabel="full distances per query")
    for ax in axes:
        ax.legend(frameon=False)
    plt.savefig(path, dpi=150)
    print(f"figure: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="up to 100 000 models")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of models")
    parser.add_argument(
        "--approximate", type=int, nargs="+", help="only approximate search"
    )
    parser.add_argument("--figure", help="where to save a log-log figure")
    args = parser.parse_args()
    if args.approximate:
        for metric in (MAW(), JAW()):
            approximate_rows(args.approximate, metric)
        small = [size for size in args.approximate if size <= MOST_UNBOUNDED]
        approximate_rows(small, MMD())
        engine_rows(args.approximate)
        return
    sizes = [1000, 3000, 10_000, 20_000] + ([50_000, 100_000] if args.full else [])
    warm = grouped_models(600)
    SearchIndex(warm, MAW()).kneighbors(warm[:5], 5)
    pairwise_hmm_distances(warm[:5])
    rows = query_rows(args.sizes or sizes, MAW())
    query_rows(args.sizes or sizes, JAW())
    query_rows(args.sizes or sizes, MAW(), digit_models)
    sampled()
    if args.sizes:
        return
    all_neighbors(sizes[:4] if args.full else sizes[:3])
    shapes()
    rate = workers()
    matrix_in_a_file(20_000 if args.full else 4000)
    estimates(rows, rate)
    if args.figure:
        draw(rows, args.figure)


if __name__ == "__main__":
    main()
