"""Ctrl-C at random moments stops the work and does no damage."""

import random
import signal
import subprocess
import sys
import time
from ast import literal_eval
from pathlib import Path

import numpy as np
import pytest

from skawhmm import IAW, HMMBatch, pairwise_hmm_distances

SCRIPT = Path(__file__).with_name("interruptions.py")
LONG_WORK = Path(__file__).with_name("long_work.py")
# The promised time, in seconds; work that checks for signals takes a tenth.
PROMISED = 2.0
QUICK = ("divergences", "grid_search", "search", "refit", "file")
WORK = (*QUICK, "fit", "pooled_fit", "pairs", "clustering", "medoids", "views")

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no timer that sends signals"
)


def check_interruptions(n_trials, names):
    command = [sys.executable, "-W", "error", SCRIPT, str(n_trials), "0", *names]
    lines = subprocess.run(command, capture_output=True, check=True, text=True)
    found = [line.split(" ", 2) for line in lines.stdout.splitlines()]
    assert [name for name, *_ in found] == list(names)
    total = 0
    for name, state, counts in found:
        outcomes = literal_eval(counts)
        assert state == "usable", name
        assert outcomes.keys() <= {"interrupted", "finished"}, name
        total += outcomes.get("interrupted", 0)
    assert total >= len(names) * n_trials / 4


def test_work_can_be_interrupted():
    check_interruptions(3, QUICK)


@pytest.mark.faults
def test_work_can_be_interrupted_many_times():
    check_interruptions(60, WORK)


def interrupted_work(*names):
    """Interrupt long work by signals; yield its name and how long it then went on."""
    command = [sys.executable, "-W", "error", LONG_WORK, *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            start, name = line.split()
            assert start == "start", line
            time.sleep(random.uniform(0.1, 2.0))
            sent = time.time()
            process.send_signal(signal.SIGINT)
            how, when = process.stdout.readline().split()
            assert how == "interrupted", f"{name} took too little time"
            yield name, float(when) - sent
    assert process.returncode == 0


def test_kernel_can_be_interrupted():
    [(_, once), (_, again)] = interrupted_work("divergence_bound")
    # Without an interruption it takes minutes.
    assert max(once, again) < 20


# Interrupts the first sampled distance of a process while SciPy reads a table.
FIRST_SAMPLES = """
import os, signal
import numpy as np
from skawhmm import IAW, HMMBatch, pairwise_hmm_distances

load = np.load

def interrupted_load(*arguments, **options):
    os.kill(os.getpid(), signal.SIGINT)
    return load(*arguments, **options)

chains = np.full((2, 2, 2), 0.5)
models = HMMBatch(chains, np.arange(8.0).reshape(2, 2, 2) ** 2, np.ones((2, 2, 2)))
np.load = interrupted_load
try:
    print(pairwise_hmm_distances(models, metric=IAW(n_samples=64))[0, 1])
except KeyboardInterrupt:
    print("interrupted")
np.load = load
print(pairwise_hmm_distances(models, metric=IAW(n_samples=64))[0, 1])
"""


def test_first_samples_can_be_interrupted():
    command = [sys.executable, "-W", "error", "-c", FIRST_SAMPLES]
    printed = subprocess.run(command, capture_output=True, check=True, text=True)
    how, distance = printed.stdout.split()
    assert (how, printed.stderr) == ("interrupted", "")
    chains = np.full((2, 2, 2), 0.5)
    models = HMMBatch(chains, np.arange(8.0).reshape(2, 2, 2) ** 2, np.ones((2, 2, 2)))
    expected = pairwise_hmm_distances(models, metric=IAW(n_samples=64))[0, 1]
    assert float(distance) == expected


@pytest.mark.faults
def test_every_kernel_stops_within_the_promised_time():
    random.seed(0)
    delays = list(interrupted_work())
    assert [(name, delay) for name, delay in delays if delay > PROMISED] == []
    assert len(delays) > 80
