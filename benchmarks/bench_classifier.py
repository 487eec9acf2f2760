"""How does a fit of the recommended classifier grow with the number of sequences?

Time and memory of `make_classifier` and of aeon's MiniRocket, fitted to N sequences of
40 frames and 3 channels in 4 classes, and their accuracy on a thousand others. Each
row is a process of its own, with one worker and one thread. Memory is the peak of the
process less what it had with the sequences loaded. The last line has the exponents of
N, fitted to the times.

Run: python benchmarks/bench_classifier.py [--sizes N ...] [--rows ours minirocket]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402

from skawhmm import make_classifier  # noqa: E402
from skawhmm.datasets import make_hmm_sequences  # noqa: E402

SIZES = [1000, 3000, 10_000, 30_000, 100_000]
N_OTHERS = 1000


def peak_megabytes():
    """Largest memory that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def classifier(row):
    """The classifier of a row, and the form of its sequences."""
    if row == "ours":
        return make_classifier(random_state=0), list
    from aeon.classification.convolution_based import MiniRocketClassifier

    def channels_first(X):
        return np.ascontiguousarray(np.swapaxes(X, 1, 2))

    model = MiniRocketClassifier(random_state=0)
    # The compiler runs before the measurement.
    model.fit(np.random.default_rng(0).normal(size=(8, 3, 40)), np.arange(8) % 2)
    return MiniRocketClassifier(random_state=0), channels_first


def measured(row, size):
    """Seconds of a fit, its memory, milliseconds per query, accuracy."""
    X, y = make_hmm_sequences(
        size + N_OTHERS, n_classes=4, n_features=3, n_timesteps=40, random_state=0
    )
    model, form = classifier(row)
    X, others = form(X[:size]), form(X[size:])
    before = peak_megabytes()
    start = time.perf_counter()
    model.fit(X, y[:size])
    seconds = time.perf_counter() - start
    rose = peak_megabytes() - before
    start = time.perf_counter()
    hits = model.predict(others) == y[size:]
    query = (time.perf_counter() - start) / N_OTHERS
    return [seconds, rose, 1000 * query, hits.mean()]


def in_process(row, size):
    """The same, measured by a process of its own; None if that did not finish."""
    command = [sys.executable, __file__, "--one", row, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def print_curve(rows, sizes):
    """Print a line per size and the exponents of the times."""
    print(f"{'':12}{'N':>8}{'fit s':>9}{'MB':>7}{'ms/query':>10}{'accuracy':>10}")
    for row in rows:
        times = []
        for size in sizes:
            found = in_process(row, size)
            if found is None:
                print(f"{row:12}{size:8}  did not finish", flush=True)
                continue
            seconds, rose, query, accuracy = found
            times.append((size, seconds))
            print(
                f"{row:12}{size:8}{seconds:9.1f}{rose:7.0f}{query:10.2f}{accuracy:10.3f}",
                flush=True,
            )
        if len(times) > 1:
            slope = np.polyfit(*np.log(np.transpose(times)), 1)[0]
            print(f"{row:12}exponent of N: {slope:.2f}")


def main():
    """Read the options and print the curve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rows", nargs="+", default=["ours", "minirocket"])
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measured(args.one[0], int(args.one[1]))))
        return
    print_curve(args.rows, args.sizes)


if __name__ == "__main__":
    main()
