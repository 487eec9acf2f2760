import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer

from skawhmm.features import NGrams, _ngrams

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


texts_of_words = st.lists(st.text("abcd", min_size=1, max_size=12), min_size=1)


@given(texts=texts_of_words, low=st.integers(1, 4), more=st.integers(0, 3))
def test_a_range_of_orders_has_the_columns_of_each_order(texts, low, more):
    both = NGrams((low, low + more)).fit(texts)
    alone = [NGrams(n).fit(texts) for n in range(low, low + more + 1)]
    rows = np.hstack([grams.transform(texts).toarray() for grams in alone])
    assert_array_equal(both.transform(texts).toarray(), rows)
    names = np.concatenate([grams.get_feature_names_out() for grams in alone])
    assert_array_equal(both.get_feature_names_out(), names)


@given(texts=texts_of_words, idf=st.booleans())
def test_hashed_and_exact_columns_agree_if_nothing_collides(texts, idf):
    exact = NGrams((1, 3), idf=idf).fit_transform(texts).toarray()
    rows = NGrams((1, 3), idf=idf, n_features=2**16).fit_transform(texts)
    assert rows.shape == (len(texts), 2**16)
    used = rows[:, np.unique(rows.indices)].toarray()
    assume(used.shape == exact.shape)
    assert_allclose(used @ used.T, exact @ exact.T, atol=1e-12)


def test_ngrams_of_a_hashed_column_are_counted_together():
    rows = NGrams((1, 2), n_features=1).fit_transform(["abab", "aabbb"])
    # One column has all frequencies of both orders.
    assert_allclose(rows.toarray() ** 2, [[2.0], [2.0]])
    names = NGrams(2, n_features=3).fit(["abab"]).get_feature_names_out()
    assert list(names) == ["#0", "#1", "#2"]


@given(texts=texts_of_words, order=st.integers(1, 3))
def test_inverse_document_frequencies_are_those_of_scikit_learn(texts, order):
    plain = NGrams(order).fit_transform(texts)
    assume(plain.shape[1] > 0)
    wanted = TfidfTransformer().fit(plain).transform(plain).toarray()
    found = NGrams(order, idf=True, sparse_output=False)
    assert_allclose(found.fit_transform(texts), wanted)


def test_blocks_of_sequences_change_nothing(monkeypatch):
    whole = NGrams((1, 3), idf=True, max_features=7).fit(TEXTS)
    monkeypatch.setattr(_ngrams, "BLOCK_SYMBOLS", 5)
    parts = NGrams((1, 3), idf=True, max_features=7).fit(TEXTS)
    assert_array_equal(parts.get_feature_names_out(), whole.get_feature_names_out())
    assert_array_equal(
        parts.transform(TEXTS).toarray(), whole.transform(TEXTS).toarray()
    )


@pytest.mark.parametrize("order", [1, (1, 1)])
def test_single_symbols_have_no_lag(order):
    with pytest.raises(ValueError, match="lag must be 1 with order="):
        NGrams(order, 2).fit(["abab"])


def test_wrong_orders_and_numbers_of_columns():
    for order, message in {
        (1, 2, 3): r"order must be .* a pair .*got \(1, 2, 3\)",
        (3, 2): r"order must be .*smaller one first, got \(3, 2\)",
        (0, 2): r"order\[0\] must be an integer of at least 1, got 0",
    }.items():
        with pytest.raises(ValueError, match=message):
            NGrams(order).fit(TEXTS)
    with pytest.raises(TypeError, match=r"order\[1\] must be an integer .*'two'"):
        NGrams((1, "two")).fit(TEXTS)
    with pytest.raises(ValueError, match="max_features must be 20000 with n_features"):
        NGrams(2, n_features=8, max_features=4).fit(TEXTS)


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


def test_ngrams_of_large_alphabets_have_columns_and_names(rng):
    # 3000**6 n-grams have no exact 64-bit numbers.
    X = [rng.integers(0, 3000, 400), np.arange(3000)]
    exact, hashed = NGrams(5).fit(X), NGrams(6).fit(X)
    assert exact.transform(X).shape == (2, 396 + 2996)
    assert hashed.transform(X).shape == (2, 395 + 2995)
    names = {"|".join(map(str, x[t : t + 6])) for x in X for t in range(len(x) - 5)}
    assert set(hashed.get_feature_names_out()) == names


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
def test_orders_beyond_the_sequences_find_nothing(order, text):
    assert NGrams(order).fit_transform([text, text]).shape == (2, 0)
    assert NGrams((1, order)).fit_transform([text]).shape[1] > 0
    assert NGrams(order, n_features=3, idf=True).fit_transform([text]).nnz == 0


def test_lags_beyond_the_sequences_find_nothing():
    assert NGrams(order=3, lag=2**62).fit_transform(["abab", "bbaa"]).shape == (2, 0)


def test_small_integers_of_numpy_do_not_overflow(rng):
    X = [rng.integers(0, 12, 300) for _ in range(3)]
    found = NGrams(order=np.int8(3), lag=np.int8(100), sparse_output=False)
    wanted = NGrams(order=3, lag=100, sparse_output=False)
    assert_array_equal(found.fit_transform(X), wanted.fit_transform(X))
