"""Archives that lie about themselves are refused before they cost memory."""

import io
import pickle
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm import HMMBatch
from skawhmm.datasets import load_npz, load_timit
from skawhmm.utils._archives import (
    MIN_UNPACKED,
    archived_arrays,
    is_inside,
    member_bytes,
    open_archive,
    stored_array,
)


def npy(array, **changes):
    """Return an array as a file whose header may be false."""
    file = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array) | changes
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


def write(path, files, kind=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_arrays_are_what_numpy_reads(tmp_path, rng):
    arrays = {
        "a": rng.normal(size=(3, 4)),
        "b": np.asfortranarray(rng.integers(9, size=(2, 3, 4))),
        "c": np.array(["x", "yz"]),
        "d": np.zeros((0, 3)),
        "e": np.array(1.5),
        "f": np.array([True, False]),
    }
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)
        found = archived_arrays(tmp_path / "a.npz")
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype
            assert_array_equal(found[name], array)
            assert found[name].flags.writeable


def test_a_bomb_is_refused(tmp_path):
    path = write(tmp_path / "a.npz", {"X.npy": bytes(MIN_UNPACKED + 1)})
    assert path.stat().st_size < 20_000
    with pytest.raises(ValueError, match=r"unpack to 16777217 bytes, at most 16777216"):
        open_archive(path)
    for read in (HMMBatch.load, load_npz, load_timit):
        with pytest.raises(ValueError, match="unpack to"):
            read(path)


def test_a_false_size_is_found_without_unpacking(tmp_path):
    path = write(tmp_path / "a.zip", {"X.npy": bytes(MIN_UNPACKED)})
    content = path.read_bytes()
    true, false = (n.to_bytes(4, "little") for n in (MIN_UNPACKED, 1000))
    path.write_bytes(content.replace(true, false))
    with (
        open_archive(path) as archive,
        pytest.raises(ValueError, match=r"'X\.npy' cannot be unpacked"),
    ):
        member_bytes(archive, "X.npy")


@pytest.mark.parametrize(
    "shape", [(10**9, 8), (2**62, 4), (2**40, 2**40), (-1,), (-2, -2), (5,)]
)
def test_a_false_shape_is_refused(shape):
    with pytest.raises(ValueError, match="bytes for the shape"):
        stored_array(npy(np.ones(4), shape=shape), "X")


def test_a_shape_of_truth_values_is_read_as_integers():
    assert stored_array(npy(np.ones(1), shape=(True, True)), "X").shape == (1, 1)


def test_an_empty_array_has_a_sensible_shape():
    with pytest.raises(ValueError, match="cannot have the shape"):
        stored_array(npy(np.ones(0), shape=(0, 10**15)), "X")
    assert stored_array(npy(np.ones((0, 3))), "X").shape == (0, 3)


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("a/b.wav", True),
        ("a..b/c", True),
        ("../a", False),
        ("a/../../b", False),
        ("/etc/passwd", False),
        ("..\\a", False),
        ("C:\\a", False),
        ("C:a", False),
    ],
)
def test_names_that_lead_outside_are_refused(tmp_path, name, inside):
    assert is_inside(name) is inside
    path = write(tmp_path / "a.zip", {name: b"0 1 sh"})
    if inside:
        open_archive(path).close()
        return
    with pytest.raises(ValueError, match="outside of the archive"):
        load_timit(path)


def test_models_are_not_saved_under_such_names(tmp_path):
    models = HMMBatch([[[1.0]]], [[[0.0]]], [[[1.0]]], info={"a/../../b": [1]})
    with pytest.raises(ValueError, match="another folder"):
        models.save(tmp_path / "a.npz")


def test_an_empty_batch_is_not_saved(tmp_path):
    models = HMMBatch([[[1.0]]], [[[0.0]]], [[[1.0]]])
    with pytest.raises(ValueError, match="must hold models, got none"):
        models[:0].save(tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


class Fatal:
    def __reduce__(self):
        return pytest.fail, ("code of a file was run",)


def test_no_code_is_run(tmp_path):
    objects = np.array([Fatal()], dtype=object)
    header = npy(np.ones(0), descr="|O", shape=(1,))
    path = write(tmp_path / "a.npz", {"X.npy": header + pickle.dumps(objects)})
    for read in (HMMBatch.load, load_npz):
        with pytest.raises(ValueError, match="holds objects"):
            read(path)


def test_other_ways_to_pack_are_refused(tmp_path):
    path = write(tmp_path / "a.npz", {"X.npy": npy(np.ones(3))}, zipfile.ZIP_LZMA)
    with pytest.raises(ValueError, match="packed in a way that is not read"):
        archived_arrays(path)


def test_lengths_that_overflow_are_refused(tmp_path):
    lengths = np.array([2**63 - 1, 2**63 - 1, 7])
    np.savez(tmp_path / "a.npz", X=np.ones((5, 1)), lengths=lengths)
    with pytest.raises(ValueError, match=f"got {2**64 + 5}"):
        load_npz(tmp_path / "a.npz")


def test_text_with_characters_that_do_not_exist_is_refused():
    file = io.BytesIO()
    np.save(file, np.array(["ab"]))
    content = file.getvalue()[:-4] + b"\xff\xff\xff\x7f"
    with pytest.raises(ValueError, match="'y' holds text with characters"):
        stored_array(content, "y")
