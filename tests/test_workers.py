"""Workers that die: the same result or a readable error, never a hang."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("lost_workers.py")

# In seconds, far more than needed: anything that takes longer hangs.
PATIENCE = 240

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL"),
]


def outcomes(backend, *names):
    """Return how many workers were killed during each kind of work, and its end."""
    done = subprocess.run(
        [sys.executable, SCRIPT, backend, *names],
        capture_output=True,
        check=True,
        text=True,
        timeout=PATIENCE,
    )
    found = [line.split(" ", 3) for line in done.stdout.splitlines()]
    assert [name for name, *_ in found] == list(names)
    assert {state for _, state, *_ in found} == {"usable"}
    return {name: (int(n_killed), end) for name, _, n_killed, end in found}


def test_killed_dask_worker_does_not_change_results():
    pytest.importorskip("distributed", reason="dask is not installed")
    found = outcomes("dask", "fit", "embedding", "file")
    assert found == dict.fromkeys(("fit", "embedding", "file"), (1, "the same"))


def test_task_that_kills_dask_workers_raises():
    # Joblib's loop for dask used to wait forever.
    pytest.importorskip("distributed", reason="dask is not installed")
    _, end = outcomes("dask", "deadly")["deadly"]
    # The error depends on what died first, and on how soon new workers start.
    words = (
        "KilledWorker: Attempted to run task",
        "CancelledError: Workers died",
        "TimeoutError: DaskDistributedBackend has no worker after",
    )
    assert end.startswith(words)


def test_search_that_loses_a_dask_worker_terminates():
    # scikit-learn's own loop does not start lost tasks again.
    pytest.importorskip("distributed", reason="dask is not installed")
    n_killed, end = outcomes("dask", "grid_search")["grid_search"]
    assert n_killed == 1
    assert end == "the same" or "cancelled" in end


def test_killed_joblib_process_raises():
    _, end = outcomes("loky", "deadly")["deadly"]
    assert end.startswith("TerminatedWorkerError: A worker process managed by")
