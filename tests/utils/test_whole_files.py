"""A file is the old one or the new one, whatever fails while it is written."""

import os
import socket
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from skawhmm import HMMBatch, pairwise_hmm_distances
from skawhmm.plot import HMMMapDisplay
from skawhmm.utils._whole_files import whole_file

on_posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")


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
    assert stat.S_IMODE(path.stat().st_mode) == 0o400


def save(models, path):
    models.save(path)


def to_html(models, path):
    HMMMapDisplay.from_models(models, method="mds").to_html(path)


def matrix(models, path):
    pairwise_hmm_distances(models, out=path)


WRITERS = [save, to_html, matrix]


@on_posix
@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("exists", [True, False])
def test_links_stay_links_and_their_files_are_written(
    make_batch, tmp_path, write, exists
):
    models = make_batch(n_models=4)
    target, link = tmp_path / "there" / "file", tmp_path / "link"
    target.parent.mkdir()
    if exists:
        write(make_batch(n_models=4), target)
    link.symlink_to("there/file")
    write(models, link)
    assert os.readlink(link) == "there/file"
    assert target.is_file()
    content = target.read_bytes()
    # A second call, by the other name, finds the same file.
    write(models, target)
    assert len(target.read_bytes()) == len(content)
    assert sorted(os.listdir(tmp_path)) == ["link", "there"]


@on_posix
@pytest.mark.parametrize("write", WRITERS)
def test_pipes_and_sockets_are_refused(make_batch, tmp_path, write):
    models = make_batch(n_models=4)
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "matrix.journal")
    (tmp_path / "link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for path in (tmp_path / "pipe", tmp_path / "link", tmp_path / "socket"):
            with pytest.raises(ValueError, match="regular file") as told:
                write(models, path)
            assert repr(str(path)) in str(told.value)
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    with pytest.raises(ValueError, match=r"matrix\.journal"):
        matrix(models, tmp_path / "matrix")


@on_posix
@pytest.mark.parametrize("write", WRITERS)
def test_folders_and_links_in_a_circle_are_named(make_batch, tmp_path, write):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links") as told:
        write(make_batch(n_models=4), tmp_path / "loop")
    assert told.value.filename == str(tmp_path / "loop")
    with pytest.raises(IsADirectoryError) as told:
        write(make_batch(n_models=4), tmp_path)
    assert told.value.filename == str(tmp_path)
    assert os.listdir(tmp_path) == ["loop"]


@on_posix
@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_the_permissions_of_a_file_are_kept(make_batch, tmp_path, write, mode):
    path = tmp_path / "file"
    write(make_batch(n_models=4), path)
    path.chmod(mode)
    write(make_batch(n_models=4), path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@on_posix
def test_a_draft_is_never_more_readable_than_its_file(tmp_path):
    path = tmp_path / "file"
    path.touch(0o600)
    with whole_file(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid(), reason="needs root")
def test_root_keeps_the_owner_of_a_file(tmp_path):
    path = tmp_path / "file"
    path.touch()
    os.chown(path, 1234, 5678)
    with whole_file(path) as file:
        file.write(b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 5678)


@on_posix
def test_an_owner_that_cannot_be_kept_does_no_harm(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    path = tmp_path / "file"
    path.touch(0o600)
    with whole_file(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_longest_names_can_be_written(tmp_path):
    path = tmp_path / ("é" * 125)
    with whole_file(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
