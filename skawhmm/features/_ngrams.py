"""Frequencies of n-grams of symbols, as vectors."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin

from skawhmm._estimator import EstimatorMixin, check_symbol_input
from skawhmm.sequences._symbols import learned_symbols, symbol_codes
from skawhmm.sequences._trials import recordings_of
from skawhmm.utils._checks import (
    check_boolean,
    check_integer,
    check_optional,
)
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._parameters import Unused

# N-gram numbers of up to this many bits are exact: their digits are the symbols.
NUMBER_BITS = 62
# Multiplier and shifts of a 64-bit hash (the finalizer of SplitMix64).
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIXING = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
LAST_SHIFT = np.uint64(31)
# Symbols whose n-grams are counted at a time, which bounds the memory of `fit`.
BLOCK_SYMBOLS = 2**20


def check_order(name, value):
    """Return the least and the largest order that `value` names, or raise."""
    wanted = f"{name} must be an integer of at least 1, or a pair of them"
    if not isinstance(value, list | tuple | np.ndarray):
        number = check_integer(name, value, 1)
        return number, number
    if len(value) != 2:
        raise ValueError(f"{wanted}, the least and the largest, got {value!r}.")
    low, high = (check_integer(f"{name}[{n}]", v, 1) for n, v in enumerate(value))
    if low > high:
        raise ValueError(f"{wanted}, the smaller one first, got {value!r}.")
    return low, high


class NGrams(EstimatorMixin, TransformerMixin, BaseEstimator):
    r"""Turn sequences of symbols into square roots of the frequencies of n-grams.

    An n-gram is a run of symbols: one, a pair, a triple, a longer word, or symbols some
    steps apart. The Euclidean distance between two vectors is, up to a factor, the
    Hellinger distance between the frequencies. N-grams that `fit` has not seen have no
    entry, but count towards the total number of n-grams of a sequence.

    Parameters
    ----------
    order : int or pair of int, default=2
        Number of symbols of an n-gram: 1 for symbols, 2 for pairs, 3 for triples; or
        the least and the largest number, ``(1, 6)`` for all words of up to 6 symbols.
        Frequencies are relative to all n-grams of the same order in the sequence.

    lag : int, default=1
        Number of steps from one symbol of an n-gram to the next; 1 if `order` is 1.

    max_features : int, default=20000
        Largest number of n-grams; the ones found in most training sequences are kept.

    n_features : int, default=None
        Number of hashed columns: every n-gram is assigned to one of them by its hash,
        and n-grams in the same column are counted together. `fit` then keeps no list of
        n-grams, and `max_features` must keep its default. By default there is no
        hashing: every n-gram has its own column.

    idf : bool, default=False
        Whether to multiply entries by :math:`1 + \log\frac{1 + n}{1 + n_j}`, the
        inverse document frequency of an n-gram in :math:`n_j` of :math:`n` training
        sequences, and to scale every row to length 1. Rare n-grams then count more, and
        long sequences count no more than short ones.

    sparse_output : bool, default=True
        Whether to return a sparse matrix instead of an array.

    Attributes
    ----------
    symbols_ : ndarray of shape (n_symbols,)
        The symbols of the training sequences.

    idf_ : ndarray of shape (n_features_out,)
        Inverse document frequencies; None unless `idf` is True.

    n_features_in_ : int
        Number of features of a frame, which is 1; number of columns if `fit` was given
        a 2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Name of the channel, if `fit` was given sequences that have names; names of the
        columns, if it was given a data frame.

    See Also
    --------
    HMMEmbedding : Statistics under hidden Markov models, for longer memory.
    make_classifier : Classifier that combines both for symbols.

    Notes
    -----
    If there are more than :math:`2^{62}` possible n-grams, they are identified by a
    64-bit hash: among a million different n-grams, two collide with probability
    :math:`3 \cdot 10^{-8}`.

    Examples
    --------
    >>> from skawhmm.features import NGrams
    >>> pairs = NGrams(order=2, sparse_output=False)
    >>> pairs.fit_transform(["abab", "aaaa"]).round(2)
    array([[0.  , 0.82, 0.58],
           [1.  , 0.  , 0.  ]])
    >>> pairs.get_feature_names_out()
    array(['a|a', 'a|b', 'b|a'], dtype=object)

    Words of one to three letters; words that occur in all texts count least:

    >>> words = NGrams(order=(1, 3), idf=True).fit(["banana", "bandana", "cabaret"])
    >>> names = words.get_feature_names_out()
    >>> [str(name) for name in names[words.idf_ == words.idf_.min()]]
    ['a', 'b', 'b|a']
    """

    _parameter_checks: ClassVar = {
        **EstimatorMixin._parameter_checks,
        "order": check_order,
        "lag": partial(check_integer, low=1),
        "max_features": partial(check_integer, low=1),
        "n_features": partial(check_optional, check=partial(check_integer, low=1)),
        "idf": check_boolean,
        "sparse_output": check_boolean,
    }
    _unused: ClassVar = (
        Unused(("lag",), "order", lambda order: check_order("order", order)[1] == 1),
        Unused(("max_features",), "n_features", lambda count: count is not None),
    )
    _read_later: ClassVar = frozenset({"sparse_output"})

    def __init__(
        self,
        order: int | Sequence[int] = 2,
        lag: int = 1,
        *,
        max_features: int = 20000,
        n_features: int | None = None,
        idf: bool = False,
        sparse_output: bool = True,
    ) -> None:
        self.order = order
        self.lag = lag
        self.max_features = max_features
        self.n_features = n_features
        self.idf = idf
        self.sparse_output = sparse_output

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike | None = None) -> "NGrams":
        """Learn which n-grams occur.

        Parameters
        ----------
        X : list of str or of array-like of shape (n_timesteps,)
            Training sequences of symbols: texts, strings or integers; also an array
            whose rows are sequences of integers, with trailing NaN as padding.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : NGrams
            The fitted transformer.
        """
        self._begin_fit()
        sequences = check_symbol_input(self, X, y, reset=True)
        recordings, _ = recordings_of(sequences)
        self.symbols_ = learned_symbols(recordings)
        low, high = check_order("order", self.order)
        # No n-gram is longer than the longest recording.
        n_symbols = max(map(len, recordings))
        longest = 1 + (n_symbols - 1) // int(self.lag)
        self._orders = range(low, min(high, longest) + 1)
        self._gap = min(int(self.lag), n_symbols)
        codes = unit_codes(sequences, self.symbols_, self._gap)
        largest = max(self._orders, default=1)
        self._digits, self._base = symbol_digits(len(self.symbols_), largest)
        self._vocabulary = []
        if self.n_features is None:
            found = [learned_words(codes, n, *self._reading) for n in self._orders]
            self._vocabulary = most_common(found, self.max_features)
        self.idf_: Any = None
        if self.idf:
            rarity = (1 + len(codes)) / (1 + self._document_counts(codes))
            self.idf_ = 1 + np.log(rarity)
        return self

    def transform(self, X: Any) -> Any:
        """Return square roots of n-gram frequencies, one row per sequence.

        Parameters
        ----------
        X : list of str or of array-like of shape (n_timesteps,)
            Sequences in one of the forms that `fit` takes.

        Returns
        -------
        roots : sparse array or ndarray of shape (n_sequences, n_features_out)
            One row per sequence. The squares of the n-grams of one order add up to 1
            if all of them occur in the training sequences; with `idf`, the squares of
            a row do.
        """
        self._check_ready()
        sequences = check_symbol_input(self, X, reset=False)
        rows = self._frequencies(unit_codes(sequences, self.symbols_, self._gap))
        rows.data = np.sqrt(rows.data)
        if self.idf:
            rows.data *= self.idf_[rows.indices]
            lengths = np.sqrt(rows.multiply(rows).sum(axis=1))
            # Rows without an entry stay 0.
            rows.data /= np.repeat(lengths, np.diff(rows.indptr))
        return rows if self.sparse_output else rows.toarray()

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """Return the n-gram of each column as text.

        Parameters
        ----------
        input_features : Ignored
            Not used, present for API consistency.

        Returns
        -------
        names : ndarray of str
            The symbols of each n-gram, separated by "|", and the lag if it is not 1,
            for example ``"a|b, 4 apart"``; "#0", "#1" and so on for hashed columns.
        """
        self._check_ready()
        if self.n_features is not None:
            return np.array([f"#{n}" for n in range(self.n_features)], dtype=object)
        apart = f", {self.lag} apart" if self.lag > 1 else ""
        names = [
            "|".join(map(str, run)) + (apart if len(run) > 1 else "")
            for words in self._vocabulary
            for run in self.symbols_[words.codes]
        ]
        return np.array(names, dtype=object)

    @property
    def _n_columns(self):
        if self.n_features is not None:
            return int(self.n_features)
        return sum(len(words.numbers) for words in self._vocabulary)

    @property
    def _reading(self):
        """The arguments of `numbered_words` after the order."""
        return int(self.lag), self._digits, self._base

    def _document_counts(self, codes):
        """Return the numbers of training sequences with an entry in each column."""
        counts = np.zeros(self._n_columns)
        if self.n_features is None:
            counts[:] = np.hstack(
                [[], *(words.n_sequences for words in self._vocabulary)]
            )
            return counts
        for block in symbol_blocks(codes):
            columns = self._frequencies(block).indices
            counts += np.bincount(columns, minlength=len(counts))
        return counts

    def _frequencies(self, codes):
        """Return frequencies among n-grams of the same order, as sparse rows."""
        parts = []
        for n, order in enumerate(self._orders):
            numbers, owners, _, totals = numbered_words(codes, order, *self._reading)
            if self.n_features is None:
                vocabulary = self._vocabulary[n].numbers
                known = np.isin(numbers, vocabulary)
                columns, owners = (
                    np.searchsorted(vocabulary, numbers[known]),
                    owners[known],
                )
                width = len(vocabulary)
            else:
                mixed = mixed_bits(mixed_bits(numbers) + np.uint64(order))
                columns, width = mixed % np.uint64(self.n_features), self._n_columns
            part = counted(owners, columns.astype(np.int64), (len(codes), width))
            part = part.tocsr()
            part.data /= np.repeat(totals, np.diff(part.indptr))
            parts.append(part)
        if not parts:
            return sparse.csr_array((len(codes), self._n_columns))
        if self.n_features is None:
            return sparse.csr_array(sparse.hstack(parts, format="csr"))
        return sum(parts[1:], start=parts[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


class Words(NamedTuple):
    """N-grams of one order: numbers in ascending order, symbols and frequencies.

    `codes` has one row per n-gram with the alphabet positions of its symbols;
    `n_sequences` is the number of training sequences that contain it.
    """

    numbers: np.ndarray
    codes: np.ndarray
    n_sequences: np.ndarray


def unit_codes(sequences, symbols, gap):
    """Return the codes of each unit, with missing values between its recordings.

    The gap is as wide as the lag, so that any n-gram that spans two recordings contains
    a missing value.
    """
    recordings, firsts = recordings_of(sequences)
    codes = symbol_codes(recordings, symbols)
    if len(codes) == len(sequences):
        return codes
    missing = np.full(gap, -1)
    return [
        np.concatenate([part for own in codes[i:j] for part in (missing, own)][1:])
        for i, j in pairwise(firsts)
    ]


def symbol_blocks(codes):
    """Yield lists of consecutive sequences with a bounded number of symbols."""
    block: list[np.ndarray] = []
    size = 0
    for own in codes:
        if block and size + len(own) > BLOCK_SYMBOLS:
            yield block
            block, size = [], 0
        block.append(own)
        size += len(own)
    yield block


def symbol_digits(n_symbols, order):
    """Return a 64-bit number per symbol and the base, which together number n-grams.

    The number of an n-gram is a polynomial in the base with the numbers of its symbols
    as coefficients. Numbers up to `NUMBER_BITS` bits are exact and in alphabetical
    order; larger ones are taken modulo 2**64 and serve as a hash.
    """
    symbols = np.arange(n_symbols, dtype=np.uint64)
    if order * np.log2(max(n_symbols, 2)) <= NUMBER_BITS:
        return symbols, np.uint64(max(n_symbols, 2))
    return mixed_bits(symbols + GOLDEN), GOLDEN


def mixed_bits(numbers):
    """Return a bijective hash of 64-bit numbers (the finalizer of SplitMix64)."""
    for shift, factor in MIXING:
        numbers = (numbers ^ (numbers >> shift)) * factor
    return numbers ^ (numbers >> LAST_SHIFT)


def numbered_words(codes, order, lag, digits, base):
    """Return the n-grams of known symbols of some sequences.

    Parameters
    ----------
    codes : list of ndarray of int
        Positions of symbols in the alphabet; -1 if not observed, -2 if not known.

    order, lag : int
        Number of symbols, and of steps from one to the next.

    digits, base : ndarray of uint64, uint64
        From `symbol_digits`.

    Returns
    -------
    numbers : ndarray of uint64 of shape (n_words,)
        One number per n-gram of known symbols.

    owners : ndarray of int of shape (n_words,)
        The sequence of each of them.

    words : ndarray of int of shape (n_words,)
        The position of the first symbol of each in the concatenated sequences.

    totals : ndarray of int of shape (n_sequences,)
        Number of observed n-grams per sequence, of known symbols or not.
    """
    frames = np.concatenate(codes)
    owners = np.repeat(np.arange(len(codes)), [len(x) for x in codes])
    n_first = max(len(frames) - (order - 1) * lag, 0)
    known, seen = np.ones(n_first, dtype=bool), np.ones(n_first, dtype=bool)
    numbers = np.zeros(n_first, dtype=np.uint64)
    for step in range(0, order * lag if n_first else 0, lag):
        symbols = frames[step : step + n_first]
        numbers = numbers * base + digits[symbols]
        known &= symbols >= 0
        # No n-gram contains a missing value; unknown symbols make unknown n-grams.
        seen &= symbols != -1
    # An n-gram must end in the sequence in which it begins.
    last = owners[len(frames) - n_first :]
    inside = owners[:n_first] == last
    totals = np.bincount(last[seen & inside], minlength=len(codes))
    places = np.flatnonzero(known & inside)
    return numbers[places], owners[places], places, totals


def counted(owners, columns, shape):
    """Return how often pairs of a row and a column occur; rows must be ascending."""
    ones = np.ones(len(columns))
    # Column by column, rows are already in order; row by row, columns need sorting.
    return sparse.coo_array((ones, (owners, columns)), shape).tocsc()


def learned_words(codes, order, lag, digits, base):
    """Return the n-grams of one order that occur in sequences, as `Words`."""
    found = []
    for block in symbol_blocks(codes):
        numbers, owners, places, _ = numbered_words(block, order, lag, digits, base)
        distinct, first, inverse = np.unique(
            numbers, return_index=True, return_inverse=True
        )
        steps = lag * np.arange(order)
        words = np.concatenate(block)[places[first][:, None] + steps]
        # Each n-gram counts once per sequence.
        table = counted(owners, inverse, (len(block), len(distinct)))
        found.append(Words(distinct, words, np.diff(table.indptr)))
    numbers, words, counts = (np.concatenate(part) for part in zip(*found, strict=True))
    distinct, first, inverse = np.unique(
        numbers, return_index=True, return_inverse=True
    )
    total = np.bincount(inverse, counts, minlength=len(distinct))
    return Words(distinct, words[first], total)


def most_common(found, n_words):
    """Return the most common n-grams across all orders, listed by order."""
    counts = np.concatenate([np.empty(0), *(words.n_sequences for words in found)])
    kept = np.zeros(len(counts), dtype=bool)
    kept[np.argsort(-counts, kind="stable")[:n_words]] = True
    ends = np.cumsum([len(words.numbers) for words in found], dtype=int)
    return [
        Words(*(part[kept[end - len(part) : end]] for part in words))
        for words, end in zip(found, ends, strict=True)
    ]
