import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm import HMMEmbedding, HMMTransformer, KNeighborsHMMClassifier
from skawhmm.emissions import Categorical
from skawhmm.sequences._symbols import (
    check_symbols,
    encoded,
    holds_symbols,
    learned_symbols,
    symbol_sequences,
)

FORMS = {
    "texts": ["abca", "cb"],
    "tuple": ("abca", "cb"),
    "array of texts": np.array(["abca", "cb"]),
    "objects": np.array(["abca", "cb"], dtype=object),
    "lists": [["a", "b", "c", "a"], ["c", "b"]],
    "arrays": [np.array(list("abca")), np.array(list("cb"))],
    "columns": [np.array(list("abca"))[:, None], np.array(list("cb"))[:, None]],
    "strings in objects": [np.array(["a", "b", "c", "a"], object), ["c", "b"]],
}
NUMBERS = {
    "arrays": [np.array([3, 5, 9, 3]), np.array([9, 5])],
    "lists": [[3, 5, 9, 3], [9, 5]],
    "bytes": [np.array([3, 5, 9, 3], np.uint8), np.array([9, 5], np.uint8)],
    "columns": [np.array([[3.0], [5], [9], [3]]), np.array([[9.0], [5]])],
    "rows": np.array([[3, 5, 9, 3], [9, 5, np.nan, np.nan]]),
    "stack": np.array([[3, 5, 9, 3], [9, 5, np.nan, np.nan]])[..., None],
}


@pytest.mark.parametrize("X", FORMS.values(), ids=FORMS)
def test_strings_come_in_many_forms(X):
    sequences = symbol_sequences(X)
    symbols = learned_symbols(sequences)
    assert symbols.tolist() == ["a", "b", "c"]
    codes = encoded(sequences, symbols)
    assert [x.ravel().tolist() for x in codes] == [[0, 1, 2, 0], [2, 1]]


@pytest.mark.parametrize("X", NUMBERS.values(), ids=NUMBERS)
def test_integers_come_in_many_forms(X):
    sequences = symbol_sequences(X)
    symbols = learned_symbols(sequences)
    assert symbols.tolist() == [3, 5, 9]
    codes = encoded(sequences, symbols)
    assert [x.ravel().tolist() for x in codes] == [[0, 1, 2, 0], [2, 1]]
    assert not holds_symbols(X)


def test_an_alphabet_keeps_its_order():
    symbols = check_symbols("cab")
    codes = encoded(symbol_sequences(["abc"]), symbols)[0]
    assert_array_equal(codes[:, 0], [1, 2, 0])
    assert check_symbols(range(3)).tolist() == [0, 1, 2]


def test_words_may_differ_in_length():
    symbols = np.array(["nor", "no"])
    codes = encoded(symbol_sequences([["no", "nor"], ["no"]]), symbols)
    assert [x.ravel().tolist() for x in codes] == [[1, 0], [1]]
    with pytest.raises(ValueError, match="holds the symbol 'north'"):
        encoded(symbol_sequences([["no", "north"]]), symbols)


def test_unobserved_values_stay_unobserved():
    codes = encoded(symbol_sequences([np.array([2, np.nan, 4])]), np.array([4, 2]))[0]
    assert_array_equal(codes[:, 0], [1, np.nan, 0])


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([], "at least one sequence, got none"),
        (3, "must be a list of sequences of symbols, got int"),
        (["ab", ""], r"X\[1\] must have at least 1 symbol"),
        (["ab", [1, 2]], "strings or all integers, got both"),
        ([[0.5, 1.0]], r"X\[0\] must hold symbols, .* got 0.5"),
        ([[np.inf]], r"X\[0\] must hold symbols, .* got inf"),
        ([[1j]], r"X\[0\] must hold symbols, .* got complex"),
        ([np.array(["a", 1], object)], r"X\[0\] must hold symbols, .* got int"),
        ([[np.nan]], r"X\[0\] must have at least 1 observed value, got only NaN"),
        ([np.zeros((3, 2))], r"X\[0\] must be a sequence of symbols .* \(3, 2\)"),
    ],
)
def test_values_that_are_not_symbols(X, words):
    with pytest.raises(ValueError, match=words):
        HMMTransformer(emission="categorical").fit(X)


def test_a_single_text_is_not_a_list():
    with pytest.raises(TypeError, match="given as a list of one"):
        HMMTransformer(emission="categorical").fit("abba")


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (
            ["ab", "abx"],
            r"X\[1\] holds the symbol 'x', .* the 2 symbols 'a', 'b'\. All",
        ),
        ([[0, 1]], r"X\[0\] holds the symbol 0, .* the 2 symbols 'a', 'b'\."),
    ],
)
def test_symbols_that_training_did_not_have(X, words):
    hmm = HMMTransformer(2, emission="categorical").fit(["abba"])
    with pytest.raises(ValueError, match=words):
        hmm.transform(X)


def test_many_symbols_are_not_all_listed():
    hmm = HMMTransformer(2, emission=Categorical("abcdefghijkl"))
    with pytest.raises(ValueError, match=r"the 12 symbols 'a', .* 'h', \.\.\.\. All"):
        hmm.fit(["xyz"])


def test_texts_do_not_count_as_numbers():
    with pytest.raises(ValueError, match=r"X\[0\] must be an array of numbers"):
        KNeighborsHMMClassifier(1).fit(["ab", "ba"], [0, 1])


@pytest.mark.parametrize("form", [np.array, tuple, list])
def test_strings_in_objects_are_symbols(form):
    words = ["abba", "bab"]
    objects = [form(np.array([*word], object)) for word in words]
    embedding = HMMEmbedding((1, 2), emission="categorical", random_state=0)
    assert_array_equal(embedding.fit_transform(objects), embedding.fit_transform(words))


@pytest.mark.parametrize(
    "symbols",
    [
        np.array([2**60, 2**60 + 1, 1]),
        np.array([2**64 - 1, 2**64 - 2], np.uint64),
        [2**53, 1],
        [-(2**53), 1],
        [10**400, 1],
        np.array([10**400, 1], object),
    ],
    ids=range(6),
)
def test_integers_that_floats_cannot_tell_apart_are_refused(symbols):
    with pytest.raises(ValueError, match=r"X\[0\] must hold integers .* below 2\*\*53"):
        symbol_sequences([symbols])


@pytest.mark.parametrize("symbols", [[2**53, 1], np.array([2**64 - 1], "u8")])
def test_alphabets_of_such_integers_are_refused(symbols):
    with pytest.raises(
        ValueError, match=r"symbols must hold integers .* below 2\*\*53"
    ):
        check_symbols(symbols)


def test_the_largest_integers_are_symbols():
    sequences = symbol_sequences([[2**53 - 1, 2**53 - 2, 1 - 2**53]])
    assert learned_symbols(sequences).tolist() == [1 - 2**53, 2**53 - 2, 2**53 - 1]
