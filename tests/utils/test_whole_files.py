"""A file is the old one or the new one, whoever writes and whatever fails."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from skawhmm import HMMBatch
from skawhmm.utils._whole_files import whole_file


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    def write():
        with whole_file(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_errors_name_the_file_and_not_its_draft(tmp_path):
    path = tmp_path / "missing" / "a.txt"
    with pytest.raises(FileNotFoundError) as told, whole_file(path):
        pass
    assert told.value.filename == str(path)


def test_two_writers_leave_one_whole_file(make_batch, tmp_path):
    path = tmp_path / "models.npz"
    batches = [make_batch(n_models=n, seed=n) for n in range(1, 9)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda batch: batch.save(path), batches * 5))
    found = HMMBatch.load(path)
    assert any(found == batch for batch in batches)
    assert os.listdir(tmp_path) == ["models.npz"]


@pytest.mark.skipif(os.name == "nt", reason="Windows replaces no read-only files")
def test_a_read_only_file_is_replaced_whole_or_kept(make_batch, tmp_path):
    # The folder decides whether a file can be replaced.
    path = tmp_path / "models.npz"
    make_batch(2).save(path)
    path.chmod(0o400)
    make_batch(3).save(path)
    assert HMMBatch.load(path) == make_batch(3)
