"""Matrices in files: what was computed stays, what was cut short is computed again."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm import (
    pairwise_hmm_distances,
    pairwise_hmm_distances_chunked,
)
from skawhmm.distances._matrix_file import Journal, open_matrix

SCRIPT = """
import sys
from skawhmm import HMMBatch, pairwise_hmm_distances
from skawhmm.distances import _matrix_file
_matrix_file.SECURING_INTERVAL = 0.01
models = HMMBatch.load(sys.argv[1])
print("ready", flush=True)
pairwise_hmm_distances(models, out=sys.argv[2], metric="coupling")
print("done", flush=True)
"""


def test_a_killed_process_is_taken_up_again(make_batch, tmp_path):
    models = make_batch(n_models=120, n_components=6, n_features=3)
    models.save(tmp_path / "models.npz")
    out = tmp_path / "matrix.npy"
    command = [sys.executable, "-c", SCRIPT, tmp_path / "models.npz", out]
    journal = tmp_path / "matrix.npy.journal"
    sizes = []
    for _ in range(2):
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        before = journal.stat().st_size if journal.exists() else 0
        while process.poll() is None:
            if journal.exists() and journal.stat().st_size > before + 30:
                os.kill(process.pid, signal.SIGKILL)
                break
            time.sleep(0.001)
        process.wait()
        process.stdout.close()
        sizes.append(journal.stat().st_size)
        assert process.returncode == -signal.SIGKILL, "killed before it was finished"
    assert sizes[1] > sizes[0] > 0
    finished = pairwise_hmm_distances(models, out=out, metric="coupling")
    expected = pairwise_hmm_distances(models, metric="coupling")
    assert_array_equal(finished, expected)
    assert_array_equal(np.load(out), expected)


def test_finished_tiles_are_not_computed_again(make_batch, tmp_path):
    models = make_batch(n_models=40)
    out = tmp_path / "matrix.npy"
    expected = np.array(pairwise_hmm_distances(models, out=out))
    matrix = np.lib.format.open_memmap(out, mode="r+")
    matrix[0, 0] = -1.0
    matrix.flush()
    again = pairwise_hmm_distances(models, out=out)
    assert again[0, 0] == -1.0
    assert_array_equal(again[1:], expected[1:])


def test_a_tile_cut_short_is_not_trusted(make_batch, tmp_path):
    models = make_batch(n_models=40)
    out = tmp_path / "matrix.npy"
    expected = np.array(pairwise_hmm_distances(models, out=out))
    journal = tmp_path / "matrix.npy.journal"
    lines = journal.read_text().rstrip("\n").split("\n")
    # The last record loses its end, as if the machine had stopped while writing it.
    journal.write_text("\n".join(lines)[:-3])
    number = int(lines[-1].split()[0])
    assert number not in Journal(out, plan_of(journal)).done
    matrix = np.lib.format.open_memmap(out, mode="r+")
    matrix[-1, -1] = -1.0
    matrix.flush()
    assert_array_equal(pairwise_hmm_distances(models, out=out), expected)


def plan_of(journal):
    import json

    header = json.loads(journal.read_text().split("\n")[0])
    return {k: v for k, v in header.items() if k not in {"kind", "version"}}


def test_a_missing_matrix_is_begun_anew(make_batch, tmp_path):
    models = make_batch(n_models=20)
    out = tmp_path / "matrix.npy"
    expected = np.array(pairwise_hmm_distances(models, out=out))
    out.unlink()
    assert_array_equal(pairwise_hmm_distances(models, out=out), expected)


def test_other_models_or_parameters_are_refused(make_batch, tmp_path):
    models = make_batch(n_models=5)
    out = tmp_path / "matrix.npy"
    pairwise_hmm_distances(models, out=out)
    with pytest.raises(ValueError, match=r"alpha=0\.1.*now.*alpha=0\.2"):
        pairwise_hmm_distances(models, out=out, alpha=0.2)
    with pytest.raises(ValueError, match="other models"):
        pairwise_hmm_distances(models[::-1], out=out)
    with pytest.raises(ValueError, match="dtype"):
        pairwise_hmm_distances(models, out=out, dtype=np.float32)


def test_a_foreign_file_is_not_overwritten(make_batch, tmp_path):
    out = tmp_path / "matrix.npy"
    out.write_bytes(b"precious")
    with pytest.raises(FileExistsError, match="without a journal"):
        pairwise_hmm_distances(make_batch(), out=out)
    assert out.read_bytes() == b"precious"


def test_single_precision_and_arrays_given(make_batch):
    X, Y = make_batch(n_models=6), make_batch(n_models=5, seed=1)
    expected = pairwise_hmm_distances(X, Y)
    single = pairwise_hmm_distances(X, Y, dtype=np.float32)
    assert single.dtype == np.float32
    assert_array_equal(single, expected.astype(np.float32))
    given = np.empty((6, 5))
    assert pairwise_hmm_distances(X, Y, out=given) is given
    assert_array_equal(given, expected)
    for wrong in (np.empty((5, 6)), np.empty((6, 5), int)):
        with pytest.raises(ValueError, match=r"out must be .* shape \(6, 5\)"):
            pairwise_hmm_distances(X, Y, out=wrong)


def test_open_matrix_starts_empty(tmp_path):
    matrix, journal = open_matrix(tmp_path / "a.npy", (2, 3), np.dtype(float), {})
    assert matrix.shape == (2, 3)
    assert journal.done == set()


def test_chunks_make_the_matrix(make_batch):
    X, Y = make_batch(n_models=11), make_batch(n_models=7, seed=1)
    expected = pairwise_hmm_distances(X, Y)
    rows_seen = []
    for rows, distances in pairwise_hmm_distances_chunked(X, Y, max_memory=2e-4):
        assert distances.nbytes <= 200
        assert_array_equal(distances, expected[rows])
        rows_seen.extend(range(rows.start, rows.stop))
    assert rows_seen == list(range(11))
    with pytest.raises(ValueError, match="max_memory"):
        next(pairwise_hmm_distances_chunked(X, max_memory=0))
