import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm.datasets import load_ts

HEADER = """# a comment
@problemName Toy
@timeStamps false
@univariate false
@classLabel true up down
@data
"""


def write(folder, text, name="toy.ts"):
    path = folder / name
    path.write_text(text)
    return path


def test_ts_reads_dimensions_labels_and_missing_values(tmp_path):
    path = write(tmp_path, HEADER + "1,2,?:4,5e1,-6:up\n\n7:NaN:down\n")
    bunch = load_ts(path)
    assert_allclose(bunch.data[0], [[1, 4], [2, 50], [np.nan, -6]])
    assert_allclose(bunch.data[1], [[7, np.nan]])
    assert_array_equal(bunch.target, ["up", "down"])
    assert bunch.target_names == ["up", "down"]
    assert bunch.problem_name == "Toy"
    assert_array_equal(bunch.split, ["", ""])


def test_ts_reads_regression_targets(tmp_path):
    bunch = load_ts(write(tmp_path, "@targetLabel true\n@data\n1,2:0.5\n3,4:-1\n"))
    assert_allclose(bunch.target, [0.5, -1])
    assert_allclose(bunch.data[1], [[3], [4]])


def test_ts_without_labels(tmp_path):
    bunch = load_ts(write(tmp_path, "@classLabel false\n@data\n1,2\n"))
    assert bunch.target is None
    assert_allclose(bunch.data[0], [[1], [2]])


def test_ts_folder_has_both_parts(tmp_path):
    write(tmp_path, HEADER + "1:2:up\n3:4:down\n", "Toy_TRAIN.ts")
    with pytest.raises(ValueError, match=r"expected one file .*_TEST"):
        load_ts(tmp_path)
    write(tmp_path, HEADER + "5:6:up\n", "Toy_TEST.ts")
    bunch = load_ts(tmp_path)
    assert_array_equal(bunch.split, ["train", "train", "test"])
    X, y = load_ts(tmp_path, return_X_y=True)
    assert_allclose(np.vstack(X), [[1, 2], [3, 4], [5, 6]])
    assert_array_equal(y, ["up", "down", "up"])
    write(tmp_path, HEADER + "5:up\n", "Toy_TEST.ts")
    with pytest.raises(ValueError, match="different numbers of dimensions"):
        load_ts(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "1,2:3,4:up\n1,x:3,4:up\n", "line 8: could not convert string"),
        (HEADER + "1,2:3,4,5:up\n", r"line 7: .* one length, got \[2, 3\]"),
        (HEADER + "1,2:3,4:left\n", "line 7: label 'left' is not one of"),
        (HEADER + "1,2:3,4:up\n1,2:up\n", "line 8: expected 2 dimensions, got 1"),
        (HEADER + "1,2\n", "line 7: expected a label"),
        (HEADER, "expected cases"),
        ("@dimensions 2\n@data\n1,2\n", "line 3: expected 2 dimensions, got 1"),
        ("1,2:up\n", "line 1: expected a line beginning with @"),
        ("@timeStamps true\n", "line 1: time stamps are not supported"),
        ("@\n", "line 1: expected a line beginning with @"),
        ("@univariate true\n@data\n1:5\n", "line 3: expected 1 dimensions, got 2"),
        ("@dimension 2\n@data\n1,2\n", "line 3: expected 2 dimensions, got 1"),
        ("@data\n1,1_0\n", "line 2: expected numbers, got '1,1_0'"),
        ("@data\n1,1e999\n", "line 2: expected finite numbers, got infinity"),
        ("@data\n(0,1),(1,2)\n", "line 2: could not convert"),
        ("@data\n1,,2\n", "line 2: could not convert"),
        ("@classLabel\n", "line 1: expected true or false after @classlabel"),
        ("@targetLabel true\n@data\n1:up\n", "line 3: could not convert"),
    ],
)
def test_malformed_ts_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=rf"toy\.ts(, |: ){message}"):
        load_ts(write(tmp_path, text))


def test_absent_ts_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"SKAWHMM_DATA.*timeseriesclassificat"):
        load_ts(tmp_path / "none.ts")


def test_labels_keep_non_ascii_letters(tmp_path):
    # With replacement characters, the two labels would be equal.
    header = "# déjà\n@classLabel true é è\n@data\n"
    path = tmp_path / "toy.ts"
    path.write_bytes((header + "1:é\n2:è\n").encode("latin-1"))
    with pytest.raises(ValueError, match=r"toy\.ts, line 2: expected UTF-8"):
        load_ts(path)
    path.write_bytes(
        header.encode("latin-1")[:7] + (header[7:] + "1:é\n2:è\n").encode()
    )
    assert load_ts(path).target.tolist() == ["é", "è"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_valid_variants_are_read(tmp_path, newline, bom):
    text = (
        "#comment\n@problemName a b\n@missing true\n@timestamps FALSE\n"
        '@univariate False\n@equalLength false\n@CLASSLABEL True "x y "z"\n@DATA\n'
        '# a comment between the cases\n 1 , ? :-3,NaN:"x\n1e-3:?:"z"\n'
    )
    path = tmp_path / "toy.ts"
    path.write_bytes((bom + text.replace("\n", newline)).encode())
    bunch = load_ts(path)
    assert_array_equal(bunch.data[0], [[1, -3], [np.nan, np.nan]])
    assert_array_equal(bunch.data[1], [[1e-3, np.nan]])
    assert bunch.target.tolist() == ['"x', '"z"']


def test_parts_must_have_labels_of_one_kind(tmp_path):
    write(tmp_path, "@classLabel true a\n@data\n1:a\n", "Toy_TRAIN.ts")
    for header, label in [("@targetLabel true", ":5"), ("@classLabel false", "")]:
        write(tmp_path, f"{header}\n@data\n1{label}\n", "Toy_TEST.ts")
        with pytest.raises(ValueError, match="must all have class labels"):
            load_ts(tmp_path)
    write(tmp_path, "@classLabel true b a\n@data\n1:b\n", "Toy_TEST.ts")
    assert load_ts(tmp_path).target_names == ["a", "b"]
