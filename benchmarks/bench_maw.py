"""How much faster is MAW than a loop over POT?

Each row computes both components of MAW (p = 1) for all pairs of a batch with skawhmm
and, for as many pairs as fit into about a second, with a loop over `ot.emd` and
`ot.emd2`. "same costs": the loop is given the ground costs; skawhmm computes them if
covariances are diagonal and is given them too if they are full. "all": both sides
compute everything; the loop treats each pair of models separately, as in the
definition, with `scipy.linalg.sqrtm`. "all, kept": the loop keeps the roots of
covariances and the costs within a model from pair to pair, as skawhmm does. The
difference is the largest one between the two results.

The last table has the time per pair of JAW, and of MAW with Hellinger rows, as
multiples of MAW. All are computed alternately on one thread, and the fastest run of
each counts, in processor time, which other work on the machine hardly changes.

Run: python benchmarks/bench_maw.py [--jobs N]
"""

import argparse
import time
from itertools import combinations

import numpy as np
import ot
from common import make_models, timed
from scipy.linalg import sqrtm

from skawhmm import JAW, MAW, pairwise_hmm_components

SECONDS = 1.5

# Turns of the distances that are compared with MAW.
TURNS = 40


def loop_components(a, b, cost, within_a, within_b):
    """The paper's definitions, one POT call for each transport problem."""
    plan = ot.emd(a.weights, b.weights, cost)
    marginal = np.sum(plan * cost)
    forth = plan / plan.sum(axis=1, keepdims=True)
    back = plan / plan.sum(axis=0, keepdims=True)
    carried_b = forth @ b.transmat @ back.T
    carried_a = back.T @ a.transmat @ forth
    transition = 0.0
    for model, carried, within in (
        (a, carried_b, within_a),
        (b, carried_a, within_b),
    ):
        rows = zip(model.weights, model.transmat, carried, strict=True)
        for weight, row, other in rows:
            transition += weight * ot.emd2(row, other / other.sum(), within)
    return marginal, transition


def loop_cost(a, b, kept):
    """W2 between all states of two models, by matrix roots."""
    cost = np.empty((len(a.weights), len(b.weights)))
    for i in range(len(cost)):
        for j in range(len(cost)):
            root = a.roots[i] if kept else np.real(sqrtm(a.covars[i]))
            cross = np.real(sqrtm(root @ b.covars[j] @ root))
            spread = np.trace(a.covars[i] + b.covars[j] - 2 * cross)
            gap = np.sum((a.means[i] - b.means[j]) ** 2)
            cost[i, j] = np.sqrt(max(gap + spread, 0))
    return cost


class Model:
    def __init__(self, models, n):
        self.weights, self.transmat = models.weights[n], models.transmats[n]
        self.means, self.covars = models.means[n], models.covars[n]
        if self.covars.ndim == 3:
            self.roots = [np.real(sqrtm(covar)) for covar in self.covars]


def timed_loop(models, what):
    costs = models.emission.ground_costs()
    single = [Model(models, n) for n in range(len(models))]
    own = np.arange(len(models))
    within = np.sqrt(costs.within(own, own))
    pairs, results = list(combinations(range(len(models)), 2)), []
    given = None
    if what == "same costs":
        a, b = np.array(pairs[:2000]).T.copy()
        given = np.sqrt(costs.cross(a, b))
    start = time.perf_counter()
    for n, (i, j) in enumerate(pairs[:2000]):
        a, b = single[i], single[j]
        inside = within[i], within[j]
        if what == "all":
            inside = loop_cost(a, a, kept=False), loop_cost(b, b, kept=False)
        cost = given[n] if given is not None else loop_cost(a, b, what != "all")
        results.append(loop_components(a, b, cost, *inside))
        if time.perf_counter() - start > SECONDS:
            break
    seconds = time.perf_counter() - start
    return seconds / len(results), pairs[: len(results)], np.array(results)


class GivenCosts:
    """Ground costs computed beforehand, for the rows that compare transport alone."""

    def __init__(self, costs, index_a, index_b):
        self.saved = costs.cross(index_a, index_b)
        self.costs = costs

    def cross(self, index_a, _):
        return self.saved[: index_a.size].copy()

    def within(self, index_a, index_b):
        return self.costs.within(index_a, index_b)


def timed_transport(models, n_jobs):
    """Seconds per pair for everything but the ground cost, on `n_jobs` threads."""
    from joblib import Parallel, delayed

    metric = MAW()
    prepared = metric.prepare(models)
    a, b = (np.tile(index, 40) for index in np.triu_indices(len(models), 1))
    a, b = a[:8000], b[:8000]
    given = prepared._replace(costs=GivenCosts(prepared.costs, a, b))
    blocks = [slice(k, k + 500) for k in range(0, 8000, 500)]

    def run():
        Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(metric.components)(given, a[block], b[block]) for block in blocks
        )

    return timed(run, repeats=3)[0] / a.size


def timed_batch(models, n_jobs):
    n_pairs = len(models) * (len(models) + 1) / 2
    seconds, result = timed(pairwise_hmm_components, models, n_jobs=n_jobs, repeats=3)
    return seconds / n_pairs, result


def print_kin(shapes):
    """Print what the distances with other steps or rows cost in times of MAW."""
    kin = {"JAW": JAW(), "Hellinger": MAW(rows="hellinger")}
    print()
    print("  M   d  type   MAW us/pair" + "".join(f"  {name}/MAW" for name in kin))
    for n_components, n_features, kind, n_models in shapes:
        models = make_models(n_models, n_components, n_features, kind)
        seconds = dict.fromkeys(["MAW", *kin], np.inf)
        for _ in range(TURNS):
            for name, metric in {"MAW": MAW(), **kin}.items():
                start = time.process_time()
                pairwise_hmm_components(models, metric=metric)
                spent = time.process_time() - start
                seconds[name] = min(seconds[name], spent)
        n_pairs = n_models * (n_models + 1) / 2
        ratios = [seconds[name] / seconds["MAW"] for name in kin]
        print(
            f"{n_components:3d} {n_features:3d}  {kind}  "
            f"{seconds['MAW'] / n_pairs * 1e6:12.2f}"
            f"  {ratios[0]:7.2f}  {ratios[1]:13.2f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    n_jobs = parser.parse_args().jobs
    rows = [
        ("same costs", 2, 39, "diag", 800),
        ("same costs", 3, 39, "diag", 800),
        ("same costs", 5, 39, "diag", 500),
        ("same costs", 8, 8, "full", 120),
        ("same costs", 16, 8, "full", 60),
        ("all", 2, 12, "full", 300),
        ("all", 3, 12, "full", 200),
        ("all", 8, 8, "full", 120),
        ("all, kept", 2, 12, "full", 300),
        ("all, kept", 3, 12, "full", 200),
        ("all, kept", 8, 8, "full", 120),
    ]
    print(f"skawhmm on {n_jobs} threads, POT loop on one")
    print("costs       M   d  type   POT us/pair  skawhmm us/pair   ratio  difference")
    for what, n_components, n_features, kind, n_models in rows:
        models = make_models(n_models, n_components, n_features, kind)
        pairwise_hmm_components(models[:3])
        slow, pairs, expected = timed_loop(models, what)
        fast, (marginal, transition) = timed_batch(models, n_jobs)
        if what == "same costs" and kind == "full":
            fast = timed_transport(models, n_jobs)
        i, j = np.array(pairs).T
        actual = np.stack([marginal[i, j], transition[i, j]], axis=1)
        print(
            f"{what:10} {n_components:2d} {n_features:3d}  {kind}  {slow * 1e6:12.1f}"
            f"  {fast * 1e6:15.2f}  {slow / fast:6.0f}"
            f"  {np.abs(actual - expected).max():10.1e}"
        )
    shapes = [(2, 39, "diag", 200), (3, 39, "diag", 200), (8, 12, "diag", 100)]
    print_kin([*shapes, (8, 8, "full", 60), (16, 12, "diag", 50)])


if __name__ == "__main__":
    main()
