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


def test_ts_reads_numbers_to_predict(tmp_path):
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
