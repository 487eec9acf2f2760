"""Matrices in files: what was computed stays, what was cut short is computed again."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm import KL, MAW, HMMBatch, HMMTransformer, pairwise_hmm_distances
from skawhmm.distances import pairwise_hmm_distances_chunked
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


def test_matrix_of_a_killed_process_is_continued(make_batch, tmp_path):
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


def refuse_to_compute(*_):
    raise AssertionError("a finished tile is computed again")


def test_finished_tiles_are_not_computed_again(make_batch, tmp_path, monkeypatch):
    models = make_batch(n_models=40)
    out = tmp_path / "matrix.npy"
    expected = np.array(pairwise_hmm_distances(models, out=out))
    monkeypatch.setattr(MAW, "distances", refuse_to_compute)
    assert_array_equal(pairwise_hmm_distances(models, out=out), expected)


def test_only_changed_tiles_are_computed_again(make_batch, tmp_path, monkeypatch):
    models = make_batch(n_models=40)
    out = tmp_path / "matrix.npy"
    expected = np.array(pairwise_hmm_distances(models, out=out))
    matrix = np.lib.format.open_memmap(out, mode="r+")
    # One entry above the diagonal, one in the mirror image of another tile.
    matrix[0, 0], matrix[-1, 0] = -1.0, -1.0
    matrix.flush()
    computed = []

    def counted(metric, prepared, index_a, index_b):
        models = np.concatenate([index_a, index_b])
        computed.append((models.min(), models.max(), len(index_a)))
        return distances(metric, prepared, index_a, index_b)

    distances = MAW.distances
    monkeypatch.setattr(MAW, "distances", counted)
    assert_array_equal(pairwise_hmm_distances(models, out=out), expected)
    # The upper half of a tile of 16 x 16 models, and a tile of 16 x 8.
    assert computed == [(0, 15, 136), (0, 39, 128)]


def test_a_tile_cut_short_is_not_trusted(make_batch, tmp_path):
    models = make_batch(n_models=40)
    out = tmp_path / "matrix.npy"
    expected = np.array(pairwise_hmm_distances(models, out=out))
    journal = tmp_path / "matrix.npy.journal"
    lines = journal.read_text().rstrip("\n").split("\n")
    # The last record loses its end, as if the machine had stopped while writing it.
    journal.write_text("\n".join(lines)[:-3])
    number = int(lines[-1].split()[0])
    with Journal(out, plan_of(journal)) as opened:
        assert number not in opened.checksums
    assert_array_equal(pairwise_hmm_distances(models, out=out), expected)


def plan_of(journal):
    header = json.loads(journal.read_text().split("\n")[0])
    return {k: v for k, v in header.items() if k not in {"kind", "version"}}


def cut(rng, content):
    return content[: rng.integers(len(content))]


def flipped(rng, content):
    content = bytearray(content)
    for place in rng.integers(len(content), size=rng.integers(1, 4)):
        content[place] ^= 1 << rng.integers(8)
    return bytes(content)


def overwritten(rng, content):
    first = rng.integers(len(content))
    return (
        content[:first]
        + rng.bytes(len(content[first : first + 500]))
        + content[first + 500 :]
    )


def lengthened(rng, content):
    return content + rng.bytes(rng.integers(1, 100))


def with_lines_exchanged(rng, content):
    head, *lines = content.split(b"\n")
    return b"\n".join([head, *rng.permutation(lines).tolist()])


def test_random_faults_are_mended_or_rejected(make_batch, tmp_path):
    rng = np.random.default_rng(0)
    models = make_batch(n_models=40)
    names = ["matrix.npy", "matrix.npy.journal"]
    out = tmp_path / names[0]
    expected = np.array(pairwise_hmm_distances(models, out=out))
    own = [(tmp_path / name).read_bytes() for name in names]
    for name in names:
        (tmp_path / name).unlink()
    pairwise_hmm_distances(make_batch(n_models=40, seed=1), out=out)
    other = [(tmp_path / name).read_bytes() for name in names]
    changes = [
        cut,
        flipped,
        overwritten,
        lengthened,
        with_lines_exchanged,
        lambda _, content: other[content == own[1]],
        lambda *_: None,
    ]
    outcomes = Counter()
    for _ in range(200):
        part, change = rng.integers(2), changes[rng.integers(len(changes))]
        contents = list(own)
        contents[part] = change(rng, contents[part])
        for name, content in zip(names, contents, strict=True):
            (tmp_path / name).unlink(missing_ok=True)
            if content is not None:
                (tmp_path / name).write_bytes(content)
        try:
            found = pairwise_hmm_distances(models, out=out)
        except (ValueError, FileExistsError) as error:
            assert names[0] in str(error)  # noqa: PT017
            outcomes["refused"] += 1
            continue
        assert_array_equal(found, expected)
        assert_array_equal(np.load(out), expected)
        outcomes["mended"] += 1
    assert outcomes.total() == 200
    assert min(outcomes["mended"], outcomes["refused"]) > 20


def test_a_file_has_one_writer_at_a_time(make_batch, tmp_path):
    models = make_batch(n_models=60)
    out = tmp_path / "matrix.npy"
    expected = pairwise_hmm_distances(models)
    _, journal = open_matrix(tmp_path / "other.npy", (2, 2), float, {})
    with journal, pytest.raises(BlockingIOError, match=r"other\.npy.* being written"):
        open_matrix(tmp_path / "other.npy", (2, 2), float, {})
    open_matrix(tmp_path / "other.npy", (2, 2), float, {})[1].close()

    def written(_):
        try:
            return np.array(pairwise_hmm_distances(models, out=out))
        except BlockingIOError:
            return None

    with ThreadPoolExecutor(4) as pool:
        results = [one for one in pool.map(written, range(8)) if one is not None]
    assert results
    for one in (*results, np.load(out)):
        assert_array_equal(one, expected)


def test_two_processes_leave_one_right_file(make_batch, tmp_path):
    models = make_batch(n_models=60)
    models.save(tmp_path / "models.npz")
    out = tmp_path / "matrix.npy"
    command = [sys.executable, "-c", SCRIPT, tmp_path / "models.npz", out]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    writers = [subprocess.Popen(command, **pipes) for _ in range(2)]
    ends = [(*writer.communicate(), writer.returncode) for writer in writers]
    assert 0 in {code for *_, code in ends}
    assert all(code == 0 or b"being written" in stderr for _, stderr, code in ends)
    expected = pairwise_hmm_distances(models, metric="coupling")
    assert_array_equal(np.load(out), expected)


def test_a_file_of_an_earlier_version_is_rejected(make_batch, tmp_path):
    models = make_batch(n_models=5)
    out = tmp_path / "matrix.npy"
    pairwise_hmm_distances(models, out=out)
    journal = tmp_path / "matrix.npy.journal"
    first = json.dumps({"kind": "skawhmm.matrix", "version": 1, "tiles": 1})
    journal.write_text(first + "\n\n0 f4dbdf21\n")
    with pytest.raises(ValueError, match=r"earlier version.*delete it and 'matrix"):
        pairwise_hmm_distances(models, out=out)


FULL_DISK = """
import resource, sys
from pathlib import Path
from skawhmm import HMMBatch, pairwise_hmm_distances
models = HMMBatch.load(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    pairwise_hmm_distances(models, out=sys.argv[2])
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_full_disk_is_an_error_before_the_work(make_batch, tmp_path):
    models = make_batch(n_models=60)
    models.save(tmp_path / "models.npz")
    out = tmp_path / "matrix.npy"
    command = [sys.executable, "-c", FULL_DISK, tmp_path / "models.npz", out]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "needs 28928 bytes, for which there is no room" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "matrix.npy.journal",
        "models.npz",
    ]
    assert_array_equal(
        pairwise_hmm_distances(models, out=out), pairwise_hmm_distances(models)
    )


def test_zeros_are_written_where_space_cannot_be_allocated(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    matrix, journal = open_matrix(tmp_path / "a.npy", (500, 300), float, {})
    journal.close()
    assert not matrix.any()
    assert np.load(tmp_path / "a.npy").shape == (500, 300)


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such mode there")
def test_a_folder_that_cannot_be_written_is_an_error(make_batch, tmp_path):
    with pytest.raises(OSError, match=r"matrix\.npy"):
        pairwise_hmm_distances(make_batch(), out=tmp_path / "missing" / "matrix.npy")
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(PermissionError, match=r"matrix\.npy"):
        pairwise_hmm_distances(make_batch(), out=folder / "matrix.npy")


class Scaled:
    """A distance of a user, with an array too long for its repr."""

    symmetric = True

    def __init__(self, scales):
        self.scales = scales

    def prepare(self, models):
        return models.means

    def distances(self, prepared, index_a, index_b):
        gaps = (prepared[index_a] - prepared[index_b]).sum(axis=(1, 2))
        return np.abs(gaps) * self.scales.sum()


def test_another_job_is_rejected(make_batch, make_sequences, tmp_path):
    models = make_batch(n_models=3)
    scales = np.ones(5000)
    fitted = HMMTransformer(2).fit_transform(make_sequences()[0])
    arrays = fitted.transmats, fitted.means, fitted.covars
    first, second = (
        HMMBatch(*arrays, sequences=make_sequences(seed=seed)[0]) for seed in (0, 1)
    )
    states = [[[0.0], [1.0]], [[2.0], [3.0]]]
    chains = np.full((2, 2, 2), 0.5)

    def compared_by(power):
        return HMMBatch.from_state_costs(
            chains, lambda x, y: np.abs(x - y)[:, 0] ** power, states=states
        )

    jobs = [
        ((first, KL(method="data")), (second, KL(method="data"))),
        (
            (models, Scaled(scales)),
            (models, Scaled(np.where(scales.cumsum() == 2500, 2, 1))),
        ),
        ((compared_by(1), MAW()), (compared_by(2), MAW())),
        (
            (models, KL(n_steps=5, random_state=np.random.RandomState(0))),
            (models, KL(n_steps=5, random_state=np.random.RandomState(1))),
        ),
    ]
    for n, (one, two) in enumerate(jobs):
        out = tmp_path / f"{n}.npy"
        expected = np.array(pairwise_hmm_distances(one[0], metric=one[1], out=out))
        assert not np.array_equal(
            pairwise_hmm_distances(two[0], metric=two[1]), expected
        )
        with pytest.raises(ValueError, match="other models or parameters"):
            pairwise_hmm_distances(two[0], metric=two[1], out=out)


def test_a_distance_that_cannot_be_identified_is_rejected(make_batch, tmp_path):
    out = tmp_path / "matrix.npy"
    with pytest.raises(ValueError, match=r"random_state of KL .* got None"):
        pairwise_hmm_distances(make_batch(), metric=KL(random_state=None), out=out)
    metric = Scaled(np.ones(3))
    metric.lock = threading.Lock()
    with pytest.raises(ValueError, match=r"the content of _thread\.lock cannot"):
        pairwise_hmm_distances(make_batch(), metric=metric, out=out)
    assert not list(tmp_path.iterdir())


def test_missing_matrix_is_computed_again(make_batch, tmp_path):
    models = make_batch(n_models=20)
    out = tmp_path / "matrix.npy"
    expected = np.array(pairwise_hmm_distances(models, out=out))
    out.unlink()
    assert_array_equal(pairwise_hmm_distances(models, out=out), expected)


def test_other_models_or_parameters_are_rejected(make_batch, tmp_path):
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
    assert journal.checksums == {}
    journal.close()


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


def test_a_journal_nested_without_end_is_named(make_batch, tmp_path):
    out = tmp_path / "matrix.npy"
    pairwise_hmm_distances(make_batch(n_models=4), out=out)
    (tmp_path / "matrix.npy.journal").write_text("[" * 100_000 + "\n")
    with pytest.raises(ValueError, match="has a journal that cannot be read"):
        pairwise_hmm_distances(make_batch(n_models=4), out=out)
