from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm.datasets import data_home, load_npz


def test_data_home_is_the_argument_then_the_variable_then_the_cache(monkeypatch):
    monkeypatch.setenv("SKAWHMM_DATA", "somewhere")
    assert data_home("here") == Path("here")
    assert data_home() == Path("somewhere")
    monkeypatch.delenv("SKAWHMM_DATA")
    assert data_home().parts[-2:] == (".cache", "skawhmm")


def save(path, **arrays):
    defaults = {"X": np.arange(10.0).reshape(5, 2), "lengths": [2, 3], "y": ["a", "b"]}
    kept = {k: v for k, v in (defaults | arrays).items() if v is not None}
    np.savez(path, **kept)
    return path


def test_npz_is_cut_into_sequences(tmp_path):
    path = save(tmp_path / "a.npz", split=["train", "test"], fps=30.0)
    bunch = load_npz(path)
    assert_array_equal(bunch.data[0], [[0, 1], [2, 3]])
    assert_array_equal(bunch.data[1], [[4, 5], [6, 7], [8, 9]])
    assert_array_equal(bunch.target, ["a", "b"])
    assert_array_equal(bunch.split, ["train", "test"])
    assert bunch.fps == 30.0
    X, y = load_npz(path, return_X_y=True)
    assert len(X) == len(y) == 2


def test_npz_of_symbols_without_labels(tmp_path):
    path = save(tmp_path / "a.npz", X=np.array([1, 0, 2], "u1"), lengths=[1, 2], y=None)
    bunch = load_npz(path)
    assert bunch.target is None
    assert [x.shape for x in bunch.data] == [(1, 1), (2, 1)]
    assert all(x.dtype.kind == "i" for x in bunch.data)


def test_npz_is_found_by_name_in_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SKAWHMM_DATA", str(tmp_path))
    save(tmp_path / "mine.npz")
    assert len(load_npz("mine").data) == len(load_npz("mine.npz").data) == 2
    with pytest.raises(
        FileNotFoundError, match=r"environment variable SKAWHMM_DATA.*yours.npz"
    ):
        load_npz("yours")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": None}, "expected the arrays X, lengths, got lengths, y"),
        ({"lengths": [2, 2]}, "lengths must sum to the 5 frames of X, got 4"),
        ({"lengths": [0, 5]}, "lengths must be positive integers"),
        ({"lengths": [2.0, 3.0]}, "lengths must be positive integers"),
        ({"X": np.zeros((5, 2, 2))}, r"X must be .*\(5, 2, 2\)"),
        ({"X": np.array(["a"] * 5)}, "X must be a numeric array"),
        ({"y": ["a"]}, r"y must have shape \(2,\)"),
        ({"y": np.array([{}, {}])}, "not a plain .npz file"),
    ],
)
def test_malformed_npz_is_named(tmp_path, arrays, message):
    path = save(tmp_path / "bad.npz", **arrays)
    with pytest.raises(ValueError, match=rf"bad\.npz: {message}"):
        load_npz(path)


@pytest.mark.parametrize("content", [b"", b"not a zip"])
def test_file_that_is_not_an_archive_is_named(tmp_path, content):
    path = tmp_path / "bad.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.npz: not a plain .npz file"):
        load_npz(path)


def test_integers_beyond_int64_are_rejected(tmp_path):
    # They would become negative.
    X = np.array([2**63 + 5, 1], np.uint64)
    path = save(tmp_path / "a.npz", X=X, lengths=[2])
    with pytest.raises(
        ValueError, match=r"integers below 2\*\*63, got 9223372036854775813"
    ):
        load_npz(path)


@pytest.mark.parametrize("kind", ["u1", "<u8", ">u8", "i1"])
def test_unsigned_and_swapped_integers_are_read(tmp_path, kind):
    X, lengths = np.arange(250).astype(kind), np.array([120, 120, 10]).astype(kind)
    bunch = load_npz(save(tmp_path / "a.npz", X=X, lengths=lengths, y=None))
    assert [x.shape for x in bunch.data] == [(120, 1), (120, 1), (10, 1)]
    assert_array_equal(np.concatenate(bunch.data)[:, 0], X)


@pytest.mark.parametrize("shape", [(0, 2), (5, 0)])
def test_frames_without_values_are_rejected(tmp_path, shape):
    lengths = np.array([shape[0]] if shape[0] else [], int)
    with pytest.raises(ValueError, match="X must be a numeric array"):
        load_npz(save(tmp_path / "a.npz", X=np.zeros(shape), lengths=lengths))
