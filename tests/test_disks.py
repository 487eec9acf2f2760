"""Disks that are full or read-only: readable errors, no lost or leftover files."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent

pytestmark = pytest.mark.faults

# A disk of 1 MB, a read-only folder, and a disk without space for another file.
SMALL = 'mount -t tmpfs -o size=1m none "$1"'
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"'
NO_ROOM = 'mount -t tmpfs -o nr_inodes=1 none "$1"'


def run(mounts, *command):
    """Run a command with its own view of some folders, or skip the test."""
    for place, mount in reversed(mounts.items()):
        script = f'{mount} || exit 77; shift; exec "$@"'
        command = ("sh", "-c", script, "sh", place, *command)
    if not shutil.which("unshare"):
        pytest.skip("unshare, which makes a disk for one process, is missing")
    command = ("unshare", "--user", "--map-root-user", "--mount", *command)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode == 77 or done.stderr.startswith("unshare:"):
        pytest.skip(f"this user may not mount disks: {done.stderr}")
    assert done.returncode == 0, done.stderr
    return done


def ends(fault, mount, folder):
    done = run({folder: mount}, sys.executable, FOLDER / "writers.py", fault, folder)
    # No half-written file causes an error later.
    assert not done.stderr
    found = [line.split("\t") for line in done.stdout.splitlines()]
    assert {state for _, state, *_ in found} == {"kept"}
    return {name: (end, words) for name, _, end, words in found}


NAMES = {
    "models": "models.npz",
    "page": "map.html",
    "new_models": "new.npz",
    "new_page": "new.html",
}


def test_full_disk_raises_readable_error(tmp_path):
    found = ends("full", SMALL, tmp_path)
    for work, name in NAMES.items():
        assert re.fullmatch(rf"OSError: .*No space left .*{name}'", found[work][0])
    matrix = r"OSError: .*needs 720128 bytes, for which there is no room.*matrix\.npy"
    assert re.match(matrix, found["matrix"][0])
    # A matrix with reserved space is finished once there is space for its journal.
    assert re.fullmatch(r"OSError: .*No space.*\.npy\.journal'", found["journal"][0])
    # An existing matrix is read.
    assert found["old_matrix"] == ("finished", "")


def test_read_only_folder_raises_readable_error(tmp_path):
    command = [sys.executable, FOLDER / "writers.py", "not_yet", tmp_path]
    subprocess.run(command, check=True)
    found = ends("read_only", READ_ONLY, tmp_path)
    names = {**NAMES, "matrix": "matrix", "old_matrix": "old"}
    for work, name in names.items():
        assert re.match(rf"OSError: .*Read-only .*/{name}", found[work][0]), work


@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.parametrize(
    "shared", [None, READ_ONLY, NO_ROOM], ids=["usual", "read_only", "full"]
)
def test_runs_without_a_writable_folder(tmp_path, backend, shared):
    mounts = {tmp_path: READ_ONLY}
    if shared is not None:
        # Where processes keep shared data.
        mounts["/dev/shm"] = shared
    places = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR")
    named = [f"{place}={tmp_path}" for place in (*places, "JOBLIB_TEMP_FOLDER")]
    done = run(mounts, "env", *named, sys.executable, FOLDER / "first_run.py", backend)
    assert done.stdout == "1.0 True\n"
    assert ("serial mode" in done.stderr) == (shared is not None)
