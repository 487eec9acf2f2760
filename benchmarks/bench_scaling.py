"""How long would ten and a hundred million models take?

Measured are the time to fit a model, its bytes, the time of a distance, and the time
and the full distances of a query of the pruned search in collections of growing size.
The estimates multiply them by the number of models; the share of a collection that a
query looks at falls as it grows, so that of the largest one measured is an upper
estimate. Models are of 3 states and 13 channels, in 50 kinds.

Run: python benchmarks/bench_scaling.py [--largest N] [--jobs N]
"""

import argparse
import time

import numpy as np

from skawhmm import MAW, HMMBatch, HMMTransformer, pairwise_hmm_distances
from skawhmm._search import SearchIndex

N_KINDS, N_COMPONENTS, N_FEATURES, N_TIMESTEPS = 50, 3, 13, 100
N_QUERIES, N_NEIGHBORS = 64, 5


def make_models(n_models, seed=0):
    """Models scattered around those of a few kinds."""
    rng = np.random.default_rng(seed)
    shape = (N_COMPONENTS, N_FEATURES)
    kinds = 2 * np.random.default_rng(0).normal(size=(N_KINDS, *shape))
    means = kinds[rng.integers(N_KINDS, size=n_models)]
    means = means + rng.normal(scale=0.5, size=(n_models, *shape))
    covars = rng.uniform(0.2, 2, (n_models, *shape))
    transmats = rng.dirichlet(np.ones(N_COMPONENTS), (n_models, N_COMPONENTS))
    return HMMBatch(transmats, means, covars)


def seconds_of(function, *args, **kwargs):
    start = time.perf_counter()
    function(*args, **kwargs)
    return time.perf_counter() - start


def fit_seconds(n_jobs):
    """Seconds to fit one model to a sequence."""
    rng = np.random.default_rng(0)
    X = list(rng.normal(size=(300, N_TIMESTEPS, N_FEATURES)))
    hmm = HMMTransformer(N_COMPONENTS, random_state=0, n_jobs=n_jobs)
    hmm.fit_transform(X[:2])
    return seconds_of(hmm.fit_transform, X) / len(X)


def pair_seconds(n_jobs):
    """Seconds of one distance."""
    models = make_models(1000)
    pairwise_hmm_distances(models[:2])
    seconds = seconds_of(pairwise_hmm_distances, models, n_jobs=n_jobs)
    return seconds / (len(models) * (len(models) - 1) / 2)


def query_costs(n_models, n_jobs):
    """Seconds and full distances of one query."""
    index = SearchIndex(make_models(n_models), MAW())
    queries = make_models(N_QUERIES, seed=1)
    index.kneighbors(queries[:2], N_NEIGHBORS)
    seconds = seconds_of(index.kneighbors, queries, N_NEIGHBORS, n_jobs=n_jobs)
    return seconds / N_QUERIES, index.counts["distance"] / N_QUERIES


def duration(seconds):
    """Seconds, in words."""
    for size, unit in ((365 * 86400, "years"), (86400, "days"), (3600, "hours")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} seconds"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--largest", type=int, default=80_000)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()

    fit, pair = fit_seconds(args.jobs), pair_seconds(args.jobs)
    model_bytes = make_models(1000).nbytes / 1000
    print(
        f"M = {N_COMPONENTS}, d = {N_FEATURES}, T = {N_TIMESTEPS}, {args.jobs} threads"
    )
    print(f"fit, ms a model        {fit * 1e3:10.3f}")
    print(f"model, bytes           {model_bytes:10.0f}")
    print(f"distance, us a pair    {pair * 1e6:10.2f}")

    print("\n   models  all pairs of a query, ms  pruned, ms  full distances  share")
    n_models, query, full = args.largest // 16, 0.0, 0.0
    while n_models <= args.largest:
        query, full = query_costs(n_models, args.jobs)
        print(
            f"{n_models:9} {n_models * pair * 1e3:25.1f} {query * 1e3:11.2f} "
            f"{full:15.1f} {full / n_models:6.2%}",
            flush=True,
        )
        n_models *= 4

    print(f"\nestimates; a query: {args.largest} models' time in proportion")
    print("   models       fitting     memory, GB    a query, s       all pairs")
    for n_models in (10**7, 10**8):
        scaled = query * n_models / args.largest
        print(
            f"{n_models:9.0e} {duration(n_models * fit):>13} "
            f"{n_models * model_bytes / 1e9:14.1f} {scaled:13.2f} "
            f"{duration(n_models**2 / 2 * pair):>15}"
        )


if __name__ == "__main__":
    main()
