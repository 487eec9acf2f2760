"""How fast are IAW, KL and the transition coupling, and how exact is IAW?

IAW is compared with the paper's recipe in POT: 500 independent points of each model,
`ot.dist`, then `ot.emd` or 300 steps of `ot.sinkhorn`. The error is the largest entry
of the difference to the registration by 2500 quasi-random points, averaged over pairs.
KL is compared with a loop over hmmlearn that draws a sequence from one model and scores
it under both, in both directions; the coupling with policy iteration whose transport
problems are solved by `ot.emd`. The difference is the largest one between the two
results; for KL, whose sequences differ, the mean one in units of its standard error.
Both sides of a ratio are measured in the same run.

Run: python benchmarks/bench_distances.py [--jobs N] [--memory] [--figure PATH]
"""

import argparse
import resource
import time
from itertools import combinations

import numpy as np
import ot
from common import make_models, timed
from joblib import Parallel, delayed

from skawhmm import (
    IAW,
    KL,
    TransitionCoupling,
    pairwise_hmm_distances,
    register_states,
)

N_REFERENCE = 2500
N_RECIPE = 500


# IAW


def recipe(models, i, j, coupling, rng, n_samples=N_RECIPE):
    """The registration of one pair as the paper computes it."""
    points, posteriors = [], []
    for n in (i, j):
        weights, means, covars = models.weights[n], models.means[n], models.covars[n]
        states = rng.choice(len(weights), n_samples, p=weights)
        noise = rng.standard_normal((n_samples, means.shape[1]))
        x = means[states] + noise * np.sqrt(covars[states])
        gaps = x[:, None] - means
        logs = np.log(weights) - 0.5 * np.sum(gaps**2 / covars + np.log(covars), axis=2)
        likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
        points.append(x)
        posteriors.append(likelihoods / likelihoods.sum(axis=1, keepdims=True))
    cost = ot.dist(*points, metric="euclidean")
    even = np.full(n_samples, 1 / n_samples)
    if coupling == "exact":
        plan = ot.emd(even, even, cost, numItermax=10**6)
    else:
        plan = ot.sinkhorn(
            even,
            even,
            cost,
            0.05 * cost.mean(),
            method="sinkhorn_log",
            numItermax=300,
            warn=False,
        )
    return posteriors[0].T @ plan @ posteriors[1]


def reference_plans(models, pairs):
    """Registrations by large samples, as a reference."""
    metric = IAW(n_samples=N_REFERENCE, random_state=1000)
    return [register_states(models[i], models[j], metric) for i, j in pairs]


def worst_error(plans, references):
    return np.abs(np.asarray(plans) - np.asarray(references)).max(axis=(1, 2)).mean()


def our_error(models, pairs, references, n_samples):
    errors = []
    for seed in range(3):
        metric = IAW(n_samples=n_samples, random_state=seed)
        plans = [register_states(models[i], models[j], metric) for i, j in pairs]
        errors.append(worst_error(plans, references))
    return np.mean(errors)


def our_seconds(models, n_samples, n_jobs):
    """Seconds per pair for the whole matrix, both components included."""
    metric = IAW(n_samples=n_samples)
    n_pairs = len(models) * (len(models) + 1) / 2
    seconds, _ = timed(
        pairwise_hmm_distances, models, metric=metric, n_jobs=n_jobs, repeats=2
    )
    return seconds / n_pairs


def bench_iaw(n_jobs, n_features, n_pairs=3):
    """Print the table of one dimension; return errors and times for the figure."""
    models = make_models(16, 3, n_features)
    pairs = list(combinations(range(5), 2))[:n_pairs]
    references = reference_plans(models, pairs)
    rng = np.random.default_rng(1)
    rows = []
    for coupling in ("exact", "sinkhorn"):
        # The entropic recipe is run once, the exact one three times.
        repeats = 3 if coupling == "exact" else 1
        start = time.perf_counter()
        plans = [
            [recipe(models, i, j, coupling, rng) for i, j in pairs]
            for _ in range(repeats)
        ]
        seconds = (time.perf_counter() - start) / (repeats * n_pairs)
        error = np.mean([worst_error(plan, references) for plan in plans])
        rows.append((f"POT {coupling}, {N_RECIPE} iid points", seconds, error))
    for n_samples in (64, 128, 256, 512):
        seconds = our_seconds(models, n_samples, n_jobs)
        error = our_error(models, pairs, references, n_samples)
        rows.append((f"skawhmm, {n_samples} points", seconds, error))
    print(f"\nIAW, M = 3, d = {n_features} diagonal")
    print(
        "                               us/pair  error of W   POT exact  POT sinkhorn"
    )
    for name, seconds, error in rows:
        ratios = ""
        if name.startswith("skawhmm"):
            ratios = "".join(f"{rows[k][1] / seconds:11.1f}x" for k in range(2))
        print(f"{name:28} {seconds * 1e6:9.0f}  {error:10.4f} {ratios}")
    return rows


# KL


def loop_kl(models, n_steps, seed):
    """Both directions, drawn and scored by hmmlearn."""
    total = 0.0
    for one, other in (models, models[::-1]):
        x, _ = one.sample(n_steps, random_state=seed)
        total += (one.score(x) - other.score(x)) / n_steps
    return total / 2


def bench_kl(n_jobs):
    print("\nKL, both directions, against hmmlearn's sample and score")
    print(" M   d  type     n   hmmlearn us/pair  skawhmm us/pair   ratio  difference")
    for n_components, n_features, kind, n_steps, n_models in (
        (2, 2, "full", 2000, 60),
        (3, 12, "diag", 2000, 60),
        (3, 39, "diag", 2000, 40),
        (3, 12, "full", 2000, 40),
    ):
        models = make_models(n_models, n_components, n_features, kind)
        n_pairs = n_models * (n_models + 1) / 2
        pairwise_hmm_distances(models[:2], metric=KL(n_steps=10))
        pairs = list(combinations(range(4), 2))
        theirs = [models.to_hmmlearn(n) for n in range(4)]
        start = time.perf_counter()
        slow = np.array(
            [
                [loop_kl((theirs[i], theirs[j]), n_steps, seed) for i, j in pairs]
                for seed in range(3)
            ]
        )
        loop = (time.perf_counter() - start) / slow.size
        metric = KL(n_steps=n_steps)
        seconds, matrix = timed(
            pairwise_hmm_distances, models, metric=metric, n_jobs=n_jobs, repeats=2
        )
        fast = seconds / n_pairs
        ours = np.array([matrix[i, j] for i, j in pairs])
        off = np.abs(ours - slow.mean(axis=0)) / (slow.std(axis=0, ddof=1) * 2 / 3**0.5)
        print(
            f"{n_components:2d} {n_features:3d}  {kind} {n_steps:6d} {loop * 1e6:17.0f}"
            f" {fast * 1e6:16.1f} {loop / fast:7.0f}  {off.mean():6.1f} SE"
        )


# Coupling


def loop_coupling(models, cost, i, j, gamma):
    """Policy iteration with POT's solver and numpy's linear algebra."""
    chain_a, chain_b = models.transmats[i], models.transmats[j]
    size, value = len(chain_a), cost
    while True:
        policy = np.array(
            [ot.emd(a, b, value).ravel() for a in chain_a for b in chain_b]
        )
        system = np.eye(size**2) - gamma * policy
        fresh = np.linalg.solve(system, (1 - gamma) * cost.ravel()).reshape(size, size)
        if np.abs(fresh - value).max() <= 1e-12:
            return ot.emd2(models.weights[i], models.weights[j], fresh)
        value = fresh


def bench_coupling(n_jobs, gamma=0.9):
    print(f"\nTransition coupling, gamma = {gamma}, against policy iteration with POT")
    print(" M   d   POT us/pair  skawhmm us/pair   ratio  difference")
    sizes = {2: 400, 3: 300, 5: 120, 8: 60, 12: 24, 16: 12, 32: 4, 64: 3}
    for n_components, n_models in sizes.items():
        models = make_models(n_models, n_components, 12)
        metric = TransitionCoupling(gamma=gamma)
        pairwise_hmm_distances(models[:2], metric=metric)
        seconds, matrix = timed(
            pairwise_hmm_distances, models, metric=metric, n_jobs=n_jobs, repeats=2
        )
        fast = seconds / (n_models * (n_models + 1) / 2)
        costs = models.emission.ground_costs()
        pairs, results = list(combinations(range(n_models), 2))[:300], []
        given = np.sqrt(costs.cross(*np.array(pairs).T.copy()))
        start = time.perf_counter()
        for (i, j), cost in zip(pairs, given, strict=True):
            results.append(loop_coupling(models, cost, i, j, gamma))
            if time.perf_counter() - start > 1.5:
                break
        slow = (time.perf_counter() - start) / len(results)
        i, j = np.array(pairs[: len(results)]).T.copy()
        print(
            f"{n_components:2d}  12 {slow * 1e6:13.0f} {fast * 1e6:16.1f}"
            f" {slow / fast:7.0f} {np.abs(matrix[i, j] - results).max():11.1e}"
        )


# Memory


def bench_memory(n_jobs, n_models=2000, n_features=39, n_steps=2000):
    """Print the peak of memory of KL at full size, from the tiles that it works on."""
    models = make_models(n_models, 3, n_features)
    metric = KL(n_steps=n_steps)
    pairwise_hmm_distances(models[:2], metric=KL(n_steps=10))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    prepared = metric.prepare(models)
    edge = KL.max_tile
    side = np.arange(edge)
    tiles = [(side, edge * (k + 1) + side) for k in range(2 * n_jobs)]
    # All tiles have the same size, so the peak does not depend on their number.
    Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(metric.distances)(prepared, np.repeat(a, edge), np.tile(b, edge))
        for a, b in tiles
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    matrix = n_models**2 * 8
    print(f"\nKL, {n_models} x {n_models} models, n = {n_steps}, d = {n_features}")
    print(f"before the first tile {before / 1e3:8.0f} MB")
    print(f"peak on {n_jobs} threads     {peak / 1e3:8.0f} MB")
    print(f"with the matrix       {peak / 1e3 + matrix / 1e6:8.0f} MB")


def draw(rows_by_dimension, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots(1, len(rows_by_dimension), sharey=True)
    for ax, (n_features, rows) in zip(axes, rows_by_dimension.items(), strict=True):
        ours = [row for row in rows if row[0].startswith("skawhmm")]
        times, errors = zip(*[row[1:] for row in ours], strict=True)
        ax.loglog(np.array(times) * 1e3, errors, marker="o", label="skawhmm")
        for (name, seconds, error), marker in zip(rows[:2], "s^", strict=True):
            ax.loglog(seconds * 1e3, error, marker, label=name)
        ax.set(title=f"d = {n_features}", xlabel="milliseconds per pair")
    axes[0].set_ylabel("error of W")
    axes[0].legend()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--memory", action="store_true", help="memory of KL, and only it"
    )
    parser.add_argument("--figure", metavar="PATH", help="save error against time here")
    args = parser.parse_args()
    if args.memory:
        bench_memory(args.jobs)
        return
    print(f"skawhmm on {args.jobs} threads, the others by their defaults")
    rows = {d: bench_iaw(args.jobs, d) for d in (2, 12)}
    if args.figure:
        draw(rows, args.figure)
    bench_kl(args.jobs)
    bench_coupling(args.jobs)


if __name__ == "__main__":
    main()
