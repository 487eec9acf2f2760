"""Ctrl-C at random moments ends work, and spoils nothing."""

import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("interruptions.py")
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
def test_work_can_be_interrupted_often():
    check_interruptions(60, WORK)
