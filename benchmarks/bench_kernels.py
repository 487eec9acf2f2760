"""How fast is each kernel, and how fast was it when numba compiled it at first use?

Each row measures one kernel and a reference that computes the same, alternately in one
run on one thread; the least processor time of each counts. "ratio" is the reference's
time over ours. "numba" is that ratio in the last version whose kernels numba compiled,
and "new/old" the quotient of both: above 1, today's kernel is faster. Ratios transfer
between machines better than times, though not perfectly.

Transport, MAW, IAW and coupling are compared with loops over POT, which are given the
ground costs; EM steps, fits and scores with loops over hmmlearn; the rest with NumPy,
SciPy and scikit-learn.

Run: python benchmarks/bench_kernels.py [--rows WORD] [--rounds N] [--json PATH]
"""

import argparse
import json
import logging
import os
import time
import warnings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import ot  # noqa: E402
from bench_distances import loop_coupling, recipe  # noqa: E402
from bench_fit import (  # noqa: E402
    FitOptions,
    default_loop,
    fit_models,
    make_data,
    prepared,
    runs_from,
    started_loop,
)
from bench_maw import Model, loop_components, make_models  # noqa: E402
from scipy.optimize import linear_sum_assignment  # noqa: E402
from scipy.spatial.distance import cdist  # noqa: E402
from sklearn.cluster import KMeans  # noqa: E402

from skawhmm import IAW, MAW, TransitionCoupling  # noqa: E402
from skawhmm.distances._registration import optimal_registrations  # noqa: E402
from skawhmm.emissions import Gaussian  # noqa: E402
from skawhmm.fitting._gaussian_fit import start_labels  # noqa: E402
from skawhmm.numerics._entry_points import fill_exp, solve_assignment  # noqa: E402

# Ratios of the version whose kernels numba compiled, by `--json` of this script in that
# version's tree, on the machine and in the hour in which the new ones were first
# measured: two cores of an AMD EPYC with AVX2, nothing else running.
NUMBA = {
    "transport, M = 3": 172.41,
    "transport, M = 8": 23.30,
    "transport, M = 16": 7.12,
    "MAW, M = 3, d = 12": 676.08,
    "MAW, M = 3, d = 39": 611.88,
    "MAW, M = 8, d = 12": 131.85,
    "MAW, M = 8, d = 39": 127.84,
    "MAW, M = 8, d = 8, full": 30.64,
    "coupling, M = 3": 239.01,
    "coupling, M = 8": 27.87,
    "IAW, 256 points, d = 2": 0.55,
    "IAW, 256 points, d = 12": 2.72,
    "EM step, M = 3, d = 12, T = 100": 56.53,
    "EM step, M = 3, d = 12, T = 800": 23.64,
    "EM step, M = 3, d = 39, T = 100": 38.12,
    "EM step, M = 3, d = 39, T = 800": 18.08,
    "EM step, M = 8, d = 39, T = 100": 21.69,
    "EM step, M = 8, d = 39, T = 800": 16.72,
    "EM step, M = 3, d = 12, T = 300, full": 30.29,
    "whole fit, M = 3, d = 12, T = 100": 13.32,
    "whole fit, M = 3, d = 39, T = 800": 14.20,
    "whole fit, M = 3, d = 12, T = 300, full": 10.29,
    "starts, M = 3, d = 12, T = 300": 41.67,
    "scores, M = 3, d = 12, T = 300": 31.64,
    "exponentials, M = 8, T = 800": 3.27,
    "diagonal costs, M = 8, d = 39": 3.67,
    "assignment, n = 256": 3.68,
}

# Each side repeats its work for at least this long; the fastest round counts.
SECONDS = 0.2
STEPS = 10


# Distances


def random_pairs(n_models, n_pairs, seed=0):
    a, b = np.random.default_rng(seed).integers(n_models, size=(2, n_pairs))
    return a, b


def root_costs(models, a, b):
    return np.sqrt(models.emission.ground_costs().cross(a, b))


def transport(n_components):
    """Problems solved, ties looked at, and `ot.emd`."""
    models = make_models(200, n_components, 12, "diag")
    weights, transmats = np.array(models.weights), np.array(models.transmats)
    a, b = random_pairs(200, 4000)
    cost = root_costs(models, a, b)

    def ours():
        optimal_registrations(weights, transmats, a, b, cost)

    def theirs():
        for n in range(100):
            ot.emd(weights[a[n]], weights[b[n]], cost[n])

    return ours, a.size, theirs, 100


def maw(n_components, n_features, covariance_type):
    """Both components, ours with the costs between states, POT's without."""
    models = make_models(60, n_components, n_features, covariance_type)
    a, b = random_pairs(60, 1000)
    metric = MAW()
    ready = metric.prepare(models)
    single = [Model(models, n) for n in range(60)]
    cost, own = root_costs(models, a, b), np.arange(60)
    within = root_costs(models, own, own)

    def theirs():
        for n in range(20):
            i, j = a[n], b[n]
            loop_components(single[i], single[j], cost[n], within[i], within[j])

    return lambda: metric.components(ready, a, b), a.size, theirs, 20


def coupling(n_components):
    models = make_models(60, n_components, 12, "diag")
    a, b = random_pairs(60, 100)
    metric = TransitionCoupling(gamma=0.9)
    ready = metric.prepare(models)
    cost = root_costs(models, a, b)

    def theirs():
        for n in range(3):
            loop_coupling(models, cost[n], a[n], b[n], 0.9)

    return lambda: metric.distances(ready, a, b), a.size, theirs, 3


def iaw(n_features):
    """Registrations by 256 points per model, drawn beforehand, and POT's recipe."""
    models = make_models(12, 3, n_features, "diag")
    a, b = random_pairs(12, 20)
    metric = IAW(n_samples=256)
    ready = metric.prepare(models)
    rng = np.random.default_rng(0)

    def theirs():
        for n in range(3):
            recipe(models, a[n], b[n], "exact", rng, n_samples=256)

    return lambda: metric.components(ready, a, b), a.size, theirs, 3


def diagonal_costs(n_components, n_features):
    models = make_models(60, n_components, n_features, "diag")
    a, b = random_pairs(60, 2000)
    costs = models.emission.ground_costs()
    points = np.concatenate([models.means, np.sqrt(models.covars)], axis=2)

    def theirs():
        for n in range(200):
            cdist(points[a[n]], points[b[n]], "sqeuclidean")

    return lambda: costs.cross(a, b), a.size, theirs, 200


def assignment(size):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, size, 12))
    cost, columns = cdist(x, y), np.empty(size, np.intp)

    def ours():
        solve_assignment(cost, columns)

    return ours, 1, lambda: linear_sum_assignment(cost), 1


# Fits


def em_step(n_components, n_features, n_timesteps, covariance_type="diag"):
    """EM steps from our start values, the same number on both sides."""
    options = FitOptions(
        n_components=n_components,
        template=Gaussian(covariance_type),
        max_iter=STEPS,
        tol=-np.inf,
    )
    X = make_data(max(8000 // n_timesteps, 4), n_timesteps, n_features, n_components)
    group, starts = prepared(X, options)
    few, few_starts = prepared(X[:2], options)

    def ours():
        runs_from(group, starts, options)

    def theirs():
        started_loop(few, few_starts, options, [STEPS] * 2)

    return ours, STEPS * len(X), theirs, STEPS * 2


def whole_fit(n_components, n_features, n_timesteps, covariance_type):
    """Fits with the defaults of each side."""
    options = FitOptions(n_components, Gaussian(covariance_type))
    X = make_data(40, n_timesteps, n_features, n_components)
    few = X[:3]
    return lambda: fit_models(X, options), 40, lambda: default_loop(few, options), 3


def starts(n_components, n_features, n_timesteps):
    """Two labellings per sequence by k-means, with the same number of iterations."""
    options = FitOptions(n_components=n_components)
    X = make_data(40, n_timesteps, n_features, n_components)
    group, _ = prepared(X, options)
    offsets = group.data.bounds

    def ours():
        start_labels(group.points, offsets, offsets, n_components, 2, options)

    def theirs():
        for x in X[:3]:
            KMeans(n_components, n_init=2, max_iter=6, random_state=0).fit(x)

    return ours, 40, theirs, 3


def scores(n_components, n_features, n_timesteps):
    models = make_models(20, n_components, n_features, "diag")
    X = make_data(20, n_timesteps, n_features, n_components)
    judges = [models.to_hmmlearn(n) for n in range(2)]

    def theirs():
        for judge, x in zip(judges, X, strict=False):
            judge.score(x)

    return lambda: models.score(X), 400, theirs, 2


def exponentials(size):
    gaps = -np.random.default_rng(0).exponential(20, size)
    out = np.empty(size)
    return lambda: fill_exp(gaps, out), 1, lambda: np.exp(gaps, out=out), 1


ROWS = {
    "transport, M = 3": (transport, 3),
    "transport, M = 8": (transport, 8),
    "transport, M = 16": (transport, 16),
    "MAW, M = 3, d = 12": (maw, 3, 12, "diag"),
    "MAW, M = 3, d = 39": (maw, 3, 39, "diag"),
    "MAW, M = 8, d = 12": (maw, 8, 12, "diag"),
    "MAW, M = 8, d = 39": (maw, 8, 39, "diag"),
    "MAW, M = 8, d = 8, full": (maw, 8, 8, "full"),
    "coupling, M = 3": (coupling, 3),
    "coupling, M = 8": (coupling, 8),
    "IAW, 256 points, d = 2": (iaw, 2),
    "IAW, 256 points, d = 12": (iaw, 12),
    "EM step, M = 3, d = 12, T = 100": (em_step, 3, 12, 100),
    "EM step, M = 3, d = 12, T = 800": (em_step, 3, 12, 800),
    "EM step, M = 3, d = 39, T = 100": (em_step, 3, 39, 100),
    "EM step, M = 3, d = 39, T = 800": (em_step, 3, 39, 800),
    "EM step, M = 8, d = 39, T = 100": (em_step, 8, 39, 100),
    "EM step, M = 8, d = 39, T = 800": (em_step, 8, 39, 800),
    "EM step, M = 3, d = 12, T = 300, full": (em_step, 3, 12, 300, "full"),
    "whole fit, M = 3, d = 12, T = 100": (whole_fit, 3, 12, 100, "diag"),
    "whole fit, M = 3, d = 39, T = 800": (whole_fit, 3, 39, 800, "diag"),
    "whole fit, M = 3, d = 12, T = 300, full": (whole_fit, 3, 12, 300, "full"),
    "starts, M = 3, d = 12, T = 300": (starts, 3, 12, 300),
    "scores, M = 3, d = 12, T = 300": (scores, 3, 12, 300),
    "exponentials, M = 8, T = 800": (exponentials, 6400),
    "diagonal costs, M = 8, d = 39": (diagonal_costs, 8, 39),
    "assignment, n = 256": (assignment, 256),
}


def processor_seconds(function, seconds):
    """Mean processor time of a call, over enough calls to take a few seconds."""
    n_calls, start = 0, time.process_time()
    while True:
        function()
        n_calls += 1
        spent = time.process_time() - start
        if spent >= seconds:
            return spent / n_calls


def measured(row, rounds, seconds):
    """Fewest seconds per unit of our kernel and of its reference, run alternately."""
    make, *arguments = row
    ours, n_ours, theirs, n_theirs = make(*arguments)
    for side in (ours, theirs):
        side()
    times = [
        (processor_seconds(ours, seconds), processor_seconds(theirs, seconds))
        for _ in range(rounds)
    ]
    least = np.min(times, axis=0)
    return least[0] / n_ours, least[1] / n_theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="", help="only rows that contain this")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--json", metavar="PATH", help="write the ratios here")
    args = parser.parse_args()
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=UserWarning)
    ratios = {}
    print(f"{'':40} {'ours, us':>10} {'other, us':>10} {'ratio':>7} numba  new/old")
    for name, row in ROWS.items():
        if args.rows not in name:
            continue
        ours, theirs = measured(row, args.rounds, args.seconds)
        ratios[name] = theirs / ours
        before = NUMBA.get(name, np.nan)
        print(
            f"{name:40} {1e6 * ours:10.2f} {1e6 * theirs:10.1f} {theirs / ours:7.2f} "
            f"{before:6.2f} {theirs / ours / before:7.2f}",
            flush=True,
        )
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({name: round(ratio, 3) for name, ratio in ratios.items()}, file)


if __name__ == "__main__":
    main()
