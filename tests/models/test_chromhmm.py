"""Text models of ChromHMM, written by hand as its manual describes them."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from skawhmm import as_models, hmm_distance

MODEL = """\
2\t2\tE\t-1234.5\t200
probinit\t1\t0.25
probinit\t2\t0.75
transitionprobs\t1\t1\t0.9
transitionprobs\t1\t2\t0.1
transitionprobs\t2\t1\t0.2
transitionprobs\t2\t2\t0.8
emissionprobs\t1\t0\tH3K4me3\t0\t0.7
emissionprobs\t1\t0\tH3K4me3\t1\t0.3
emissionprobs\t1\t1\tH3K27ac\t0\t0.9
emissionprobs\t1\t1\tH3K27ac\t1\t0.1
emissionprobs\t2\t0\tH3K4me3\t0\t0.2
emissionprobs\t2\t0\tH3K4me3\t1\t0.8
emissionprobs\t2\t1\tH3K27ac\t0\t0.5
emissionprobs\t2\t1\tH3K27ac\t1\t0.5
"""
CHANCES = np.array([[0.3, 0.1], [0.8, 0.5]])


@pytest.fixture
def file_of(tmp_path):
    def write(text, name="model_2.txt"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_marks_keep_their_likelihood(file_of, rng):
    ours = as_models(file_of(MODEL))
    assert ours.symbols.tolist() == ["00", "01", "10", "11"]
    assert_allclose(ours.startprobs, [[0.25, 0.75]])
    marks = rng.integers(2, size=(12, 2))
    logs = np.log(np.where(marks[:, None], CHANCES, 1 - CHANCES)).sum(axis=2)
    forward = np.log([0.25, 0.75]) + logs[0]
    for row in logs[1:]:
        moves = np.log([[0.9, 0.1], [0.2, 0.8]])
        forward = logsumexp(forward[:, None] + moves, axis=0) + row
    texts = ["".join(map(str, row)) for row in marks]
    assert_allclose(ours.score([texts])[0, 0], logsumexp(forward), rtol=1e-12)


def test_distance_of_states_is_the_sum_of_differences_of_chances(file_of):
    # Both marks of one-state models are moved by their difference, 0.5 and 0.4.
    one = "1\t2\tE\nprobinit\t1\t1\ntransitionprobs\t1\t1\t1\n"

    def model(first, second):
        rows = [
            f"emissionprobs\t1\t{m}\tmark{m}\t{v}\t{p if v else 1 - p}\n"
            for m, p in enumerate((first, second))
            for v in (0, 1)
        ]
        return as_models(file_of(one + "".join(rows)))

    assert_allclose(hmm_distance(model(0.3, 0.1), model(0.8, 0.5), alpha=0), 0.9)


def test_transitions_that_are_not_listed_have_probability_zero(file_of):
    text = MODEL.replace("transitionprobs\t1\t2\t0.1\n", "").replace("0.9\n", "1\n", 1)
    assert_allclose(as_models(file_of(text)).transmats[0], [[1, 0], [0.2, 0.8]])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("2\t2\tE", "two\t2\tE", "first line has the numbers of states and marks"),
        ("2\t2\tE", "9999999\t2\tE", "first line has the numbers of states and marks"),
        ("probinit\t1\t0.25", "probinit\t1", "line 2 of .* got 'probinit 1'"),
        ("probinit\t1\t0.25", "probinit\t1\tmuch", "line 2 of .* numbers, got 'much'"),
        ("probinit\t1\t0.25", "probinit\t3\t0.25", "line 2 of .* count within"),
        (
            "probinit\t1\t0.25",
            "probinit\t1\t0.3",
            "startprobs must sum to one, got 1.05",
        ),
        ("probinit\t1\t0.25", "probinit\t1\tnan", "startprobs must be finite"),
        ("1\t1\t0.9\n", "1\t1\t0.8\n", "transmats must sum to one, got 0.9.*state 0"),
        ("H3K4me3\t1\t0.8", "H3K4me3\t1\t0.9", "got 1.1 in state 2, mark 0"),
        ("2\t0\tH3K4me3\t1", "2\t0\tH3K9me3\t1", "mark 0 as before, 'H3K4me3'"),
    ],
)
def test_errors_name_the_line_or_the_state(old, new, words, file_of):
    assert old in MODEL
    with pytest.raises(ValueError, match=words):
        as_models(file_of(MODEL.replace(old, new, 1)))


def test_too_many_marks_are_an_error(file_of):
    rows = [
        f"emissionprobs\t1\t{m}\tm{m}\t{v}\t0.5\n" for m in range(9) for v in (0, 1)
    ]
    text = "1\t9\tE\nprobinit\t1\t1\ntransitionprobs\t1\t1\t1\n" + "".join(rows)
    with pytest.raises(TypeError, match=r"at most 8 marks .*, got 9"):
        as_models(file_of(text))


def test_models_of_other_marks_are_not_mixed(file_of):
    other = re.sub(r"emissionprobs\t\d\t1.*\n", "", MODEL).replace("2\t2\tE", "2\t1\tE")
    paths = [file_of(MODEL), file_of(other, "other.txt")]
    with pytest.raises(ValueError, match="same symbol"):
        as_models(paths)
