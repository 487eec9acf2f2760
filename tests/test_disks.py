"""Disks that are full or read-only: errors in words, and no file is lost or left."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent

pytestmark = pytest.mark.faults

# A disk of 1 MB, a folder that nobody may write to, and one without a place for a file.
SMALL = 'mount -t tmpfs -o size=1m none "$1"'
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"'
NO_ROOM = 'mount -t tmpfs -o nr_inodes=1 none "$1"'


def run(mounts, *command):
    """Run a command that alone sees some folders changed, or skip the test."""
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
    # Nothing that was half written complains later.
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


def test_a_full_disk_is_an_error_in_words(tmp_path):
    found = ends("full", SMALL, tmp_path)
    for work, name in NAMES.items():
        assert re.fullmatch(rf"OSError: .*No space left .*{name}'", found[work][0])
    matrix = r"OSError: .*needs 720128 bytes, for which there is no room.*matrix\.npy"
    assert re.match(matrix, found["matrix"][0])
    # A matrix that has its room is finished when its journal has some, too.
    assert re.fullmatch(r"OSError: .*No space.*\.npy\.journal'", found["journal"][0])
    # A matrix that is there is read.
    assert found["old_matrix"] == ("finished", "")


def test_a_read_only_folder_is_an_error_in_words(tmp_path):
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
def test_no_folder_is_needed_to_run(tmp_path, backend, shared):
    mounts = {tmp_path: READ_ONLY}
    if shared is not None:
        # Where processes keep what they share.
        mounts["/dev/shm"] = shared
    places = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR")
    named = [f"{place}={tmp_path}" for place in (*places, "JOBLIB_TEMP_FOLDER")]
    done = run(mounts, "env", *named, sys.executable, FOLDER / "first_run.py", backend)
    assert done.stdout == "1.0 True\n"
    assert ("serial mode" in done.stderr) == (shared is not None)
