import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from skawhmm.features import NGrams

TEXTS = ["abab", "aaaa", "cab", "b"]


def counted(text, order, lag):
    """Frequencies of n-grams, counted one at a time."""
    last = lag * (order - 1)
    runs = ["|".join(text[t : t + last + 1 : lag]) for t in range(len(text) - last)]
    return {run: n / len(runs) for run, n in Counter(runs).items()}


@given(
    texts=st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=5),
    order=st.integers(1, 3),
    lag=st.integers(1, 3),
)
def test_entries_are_roots_of_frequencies(texts, order, lag):
    lag = lag if order > 1 else 1
    grams = NGrams(order, lag)
    rows = grams.fit_transform(texts).toarray()
    names = [name.split(",")[0] for name in grams.get_feature_names_out()]
    for text, row in zip(texts, rows, strict=True):
        expected = counted(text, order, lag)
        assert_allclose(row**2, [expected.get(name, 0) for name in names])
    found = {run for text in texts for run in counted(text, order, lag)}
    assert sorted(found) == names


def test_single_symbols_have_no_lag():
    with pytest.raises(ValueError, match="lag must be 1 with order=1"):
        NGrams(1, 2).fit(["abab"])


def test_pairs_two_steps_apart_match_a_count_by_hand():
    grams = NGrams(2, 2, sparse_output=False).fit(["abab"])
    assert list(grams.get_feature_names_out()) == ["a|a, 2 apart", "b|b, 2 apart"]
    # Of the pairs aa, bx and ax only the first is known.
    assert_allclose(grams.transform(["abaxx"]), [[np.sqrt(1 / 3), 0]])


def test_integers_and_strings_give_the_same_entries():
    codes = [np.array(["abc".index(s) for s in x]) for x in TEXTS]
    rows = NGrams(2).fit_transform(TEXTS).toarray()
    assert_array_equal(NGrams(2).fit_transform(codes).toarray(), rows)
    columns = [x[:, None] for x in codes]
    assert_array_equal(NGrams(2).fit_transform(columns).toarray(), rows)
    words = [list(x) for x in TEXTS]
    assert_array_equal(NGrams(2).fit_transform(words).toarray(), rows)


def test_missing_values_are_in_no_pair():
    x = np.array([0, 1, np.nan, 0, 1])
    grams = NGrams(2, sparse_output=False).fit([x])
    assert_array_equal(grams.get_feature_names_out(), ["0|1"])
    assert_allclose(grams.transform([x]), [[1.0]])


def test_max_features_keeps_the_most_common_ngrams():
    grams = NGrams(1, max_features=2).fit(["abc", "ab", "b"])
    assert list(grams.get_feature_names_out()) == ["a", "b"]


def test_short_sequences_and_unknown_symbols_are_zero():
    grams = NGrams(3).fit(TEXTS)
    assert_array_equal(grams.transform(["a", "ab", "xyz"]).toarray(), 0)


def test_sparse_and_dense_output_are_equal():
    rows = NGrams(2).fit_transform(TEXTS)
    assert sparse.issparse(rows)
    dense = NGrams(2, sparse_output=False).fit_transform(TEXTS)
    assert isinstance(dense, np.ndarray)
    assert_array_equal(rows.toarray(), dense)


def test_ngrams_of_large_alphabets_are_numbered_or_refused():
    x = np.arange(3000)
    assert NGrams(5).fit([x, x]).transform([x]).shape == (1, 2996)
    with pytest.raises(ValueError, match="order must be smaller with 3000 symbols"):
        NGrams(6).fit([x])


def test_clones_and_pickles():
    grams = NGrams(2, 3).fit(TEXTS)
    again = pickle.loads(pickle.dumps(grams))
    assert_array_equal(
        again.transform(TEXTS).toarray(), grams.transform(TEXTS).toarray()
    )
    assert clone(grams).get_params() == grams.get_params()


def test_wrong_input():
    with pytest.raises(TypeError, match="got a single str"):
        NGrams().fit("abba")
    with pytest.raises(ValueError, match=r"X\[0\] must hold symbols"):
        NGrams().fit([np.array([0.5, 1.0])])
    with pytest.raises(ValueError, match=r"X\[1\] must have at least 1 symbol"):
        NGrams().fit(["ab", ""])


@pytest.mark.parametrize("order", [63, 2**62])
@pytest.mark.parametrize("text", ["aaaa", "abab"])
def test_orders_beyond_any_number_are_refused(order, text):
    with pytest.raises(ValueError, match="order must be smaller"):
        NGrams(order=order).fit([text])


def test_lags_beyond_the_sequences_find_nothing():
    assert NGrams(order=3, lag=2**62).fit_transform(["abab", "bbaa"]).shape == (2, 0)


def test_small_integers_of_numpy_do_not_overflow(rng):
    X = [rng.integers(0, 12, 300) for _ in range(3)]
    found = NGrams(order=np.int8(3), lag=np.int8(100), sparse_output=False)
    wanted = NGrams(order=3, lag=100, sparse_output=False)
    assert_array_equal(found.fit_transform(X), wanted.fit_transform(X))
