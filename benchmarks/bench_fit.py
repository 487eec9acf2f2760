"""Fitting many models: our batch against a loop over hmmlearn.

Run with ``python benchmarks/bench_fit.py [--sequences N] [--memory]``. Both sides use
one thread and take turns; times are processor times. "2 threads" is the ratio of wall
times when our side fits all sequences on two. The first table compares defaults with
defaults. The second starts both from our start values and lets hmmlearn make as
many steps as our fit did (without a floor: short sequences run it into singular
states). "as good" is the share of sequences whose log likelihood is at least that of
hmmlearn, up to 1e-6 of its size; "gap" is the median relative difference.
"""

import argparse
import logging
import os
import resource
import time
from functools import partial

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
from hmmlearn.hmm import GaussianHMM  # noqa: E402

from skawhmm._coordinates import make_coordinates  # noqa: E402
from skawhmm._fitting import fit_models, fit_sequence, make_batch  # noqa: E402
from skawhmm._single_fit import FitOptions, climbed, start_model  # noqa: E402

SIZES = [
    (100, 2, 2, "full"),
    (300, 12, 3, "diag"),
    (300, 12, 3, "full"),
    (800, 39, 3, "diag"),
    (20, 12, 3, "diag"),
]


def make_data(n_sequences, n_timesteps, n_features, n_components, seed=0):
    """Sequences from sticky chains whose states overlap a little."""
    rng = np.random.default_rng(seed)
    X = []
    for _ in range(n_sequences):
        transmat = 0.8 * np.eye(n_components)
        transmat += 0.2 * rng.dirichlet(np.ones(n_components), n_components)
        gap = 1.5 * np.sqrt(2 / n_features)
        means = gap * rng.normal(size=(n_components, n_features))
        scales = rng.uniform(0.5, 1.5, size=means.shape)
        path = np.zeros(n_timesteps, int)
        for t in range(1, n_timesteps):
            path[t] = rng.choice(n_components, p=transmat[path[t - 1]])
        noise = rng.normal(size=(n_timesteps, n_features))
        X.append(means[path] + scales[path] * noise)
    return X


def seconds(function, X):
    """Processor time of a function on every item, and the results."""
    start = time.process_time()
    results = [function(x) for x in X]
    return time.process_time() - start, results


def compare(ours, theirs, X):
    """Times and results of both sides, in turns of ten items."""
    totals, results = np.zeros(2), ([], [])
    for first in range(0, len(X), 10):
        for side, function in enumerate((ours, theirs)):
            duration, part = seconds(function, X[first : first + 10])
            totals[side] += duration
            results[side].extend(part)
    return totals, results


def score(model, x):
    """hmmlearn's log likelihood, its rows of 0 made loops."""
    empty = model.transmat_.sum(axis=1) == 0
    model.transmat_[empty] = np.eye(len(empty))[empty]
    return model.score(x)


def prepared(x, options):
    """Coordinates, frames, start values and number of steps of one of our fits."""
    channels = x.T.copy()
    coordinates = make_coordinates(channels, options.covariance_type)
    z, seen = coordinates.standardized(channels)
    frames, offsets = coordinates.frames(z), np.array([0, len(x)])
    start, _ = start_model(z, frames, seen, offsets, options.n_components, options, 0)
    fit = climbed(frames, seen, [(start, 0)], coordinates, options)
    return x, coordinates, frames, seen, start, max(fit.n_iter, 1)


def started_fit(item, options):
    """Our fit from given start values."""
    _, coordinates, frames, seen, start, _ = item
    return climbed(frames, seen, [(start, 0)], coordinates, options)


def started_loop(item, options):
    """hmmlearn's fit from the same start values, as many steps as ours."""
    x, coordinates, _, _, start, n_steps = item
    model = GaussianHMM(
        options.n_components,
        options.covariance_type,
        n_iter=n_steps,
        tol=-np.inf,
        init_params="",
        covars_prior=0,
        covars_weight=0,
        min_covar=0,
    )
    model.startprob_, model.transmat_ = start.startprob, start.transmat
    model.means_, model.covars_ = coordinates.raw_emissions(start)
    return model.fit(x)


def print_table(title, n_sequences, same_start):
    print(f"\n{title}")
    print(
        f"{'(T, d, M, type)':22} {'hmmlearn':>9} {'ours':>8} {'ratio':>6} "
        f"{'hmmlearn':>10} {'ours':>10} {'as good':>8} {'gap':>8}"
        f"{'' if same_start else ' 2 threads'}"
    )
    print(f"{'':22} {'ms':>9} {'ms':>8} {'':6} {'mean log likelihood':>21}")
    for size in SIZES:
        X = make_data(n_sequences, *size[:3])
        options = FitOptions(n_components=size[2], covariance_type=size[3])
        items, ours, theirs = X, fit_sequence, default_fit
        if same_start:
            items = [prepared(x, options) for x in X]
            ours, theirs = started_fit, started_loop
        ours, theirs = (partial(side, options=options) for side in (ours, theirs))
        ours(items[0])
        times, (fits, judges) = compare(ours, theirs, items)
        values = np.array([fit.log_likelihood for fit in fits])
        others = np.array([score(judge, x) for judge, x in zip(judges, X, strict=True)])
        gaps = (values - others) / np.abs(others)
        both = ""
        if not same_start:
            start = time.perf_counter()
            fit_models(X, options, n_jobs=2)
            both = f"{times[1] / (time.perf_counter() - start):9.1f}"
        print(
            f"{size!s:22} {1e3 * times[1] / n_sequences:9.2f} "
            f"{1e3 * times[0] / n_sequences:8.3f} {times[1] / times[0]:6.1f} "
            f"{np.mean(others):10.2f} {np.mean(values):10.2f} "
            f"{np.mean(gaps >= -1e-6):8.1%} {np.median(np.abs(gaps)):8.1e} {both}"
        )


def default_fit(x, options):
    """hmmlearn's fit with its own defaults."""
    shape = options.n_components, options.covariance_type
    return GaussianHMM(*shape, random_state=0).fit(x)


def print_memory():
    X = make_data(200, 300, 12, 3) * 100
    options = FitOptions(n_components=3)
    fit_models(X[:2], options)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    models = make_batch(fit_models(X, options, n_jobs=-1))
    duration = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    names = ("transmats", "means", "covars", "weights", "startprobs")
    stored = sum(getattr(models, name).nbytes for name in names)
    print(
        f"\n{len(X)} sequences of (300, 12), M = 3, diag: {duration:.1f} s with all "
        f"cores, {(after - before) / 1024:.0f} MB above the data, of which the models "
        f"hold {stored / 2**20:.0f} MB"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=100)
    parser.add_argument("--memory", action="store_true")
    arguments = parser.parse_args()
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    print_table("Defaults against defaults", arguments.sequences, False)
    print_table("Same start, same number of steps", arguments.sequences, True)
    if arguments.memory:
        print_memory()


if __name__ == "__main__":
    main()
