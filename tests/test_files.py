"""Damaged files are read or rejected: no crash, no code execution, little memory."""

import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("mutations.py")

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the limit of memory is that of Linux"
)


def check_mutations(n_files, seed):
    command = [sys.executable, SCRIPT, str(n_files), str(seed)]
    found = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    lines = [line.split(" ", 1) for line in found.splitlines()]
    kinds = {kind: literal_eval(outcomes) for kind, outcomes in lines}
    assert len(kinds) == 11
    for kind, outcomes in kinds.items():
        assert outcomes.keys() <= {"read", "refused"}, kind
        assert sum(outcomes.values()) == n_files


def test_damaged_files_are_read_or_rejected():
    check_mutations(60, 0)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(1, 4))
def test_many_damaged_files_are_read_or_rejected(seed):
    check_mutations(500, seed)
