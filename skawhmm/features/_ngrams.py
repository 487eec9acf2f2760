"""Frequencies of symbols and of short runs of them, as vectors."""

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin

from skawhmm._estimator import EstimatorMixin, check_symbol_input
from skawhmm.sequences._symbols import learned_symbols, symbol_codes
from skawhmm.sequences._trials import recordings_of
from skawhmm.utils._checks import check_boolean, check_integer
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._parameters import Unused

# N-grams are numbered by 64-bit integers.
LARGEST_NUMBER = 2**62


class NGrams(EstimatorMixin, TransformerMixin, BaseEstimator):
    """Turn sequences of symbols into square roots of the frequencies of n-grams.

    An n-gram is a run of symbols: one, a pair, a triple, or symbols some steps apart.
    The Euclidean distance between two vectors is, up to a factor, the Hellinger
    distance between the frequencies. Symbols and n-grams that `fit` has not seen are in
    no entry, but count as n-grams of the sequence.

    Parameters
    ----------
    order : int, default=2
        Number of symbols of an n-gram: 1 for symbols, 2 for pairs, 3 for triples.

    lag : int, default=1
        Number of steps from one symbol of an n-gram to the next; 1 if `order` is 1.

    max_features : int, default=20000
        Largest number of n-grams. Those found in most training sequences are kept.

    sparse_output : bool, default=True
        Whether the result is a sparse matrix, or an array.

    Attributes
    ----------
    symbols_ : ndarray of shape (n_symbols,)
        The symbols of the training sequences.

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

    Examples
    --------
    >>> from skawhmm.features import NGrams
    >>> pairs = NGrams(order=2, sparse_output=False)
    >>> pairs.fit_transform(["abab", "aaaa"]).round(2)
    array([[0.  , 0.82, 0.58],
           [1.  , 0.  , 0.  ]])
    >>> pairs.get_feature_names_out()
    array(['a|a', 'a|b', 'b|a'], dtype=object)
    """

    _parameter_checks: ClassVar = {
        **EstimatorMixin._parameter_checks,
        "order": partial(check_integer, low=1),
        "lag": partial(check_integer, low=1),
        "max_features": partial(check_integer, low=1),
        "sparse_output": check_boolean,
    }
    _unused: ClassVar = (Unused(("lag",), "order", lambda order: order == 1),)
    _read_later: ClassVar = frozenset({"sparse_output"})

    def __init__(
        self,
        order: int = 2,
        lag: int = 1,
        *,
        max_features: int = 20000,
        sparse_output: bool = True,
    ) -> None:
        self.order = order
        self.lag = lag
        self.max_features = max_features
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
        self.symbols_ = learned_symbols(recordings_of(sequences)[0])
        # Powers of large orders would not fit into memory.
        order = min(int(self.order), LARGEST_NUMBER.bit_length())
        if max(len(self.symbols_), 2) ** order > LARGEST_NUMBER:
            raise ValueError(
                f"order must be smaller with {len(self.symbols_)} symbols, got "
                f"{self.order!r}: n-grams cannot be numbered."
            )
        numbers, owners, _ = self._numbers(sequences)
        found, inverse = np.unique(numbers, return_inverse=True)
        # Each n-gram counts once per sequence.
        pairs = np.unique(inverse * len(sequences) + owners)
        counts = np.bincount(pairs // len(sequences), minlength=len(found))
        common = np.argsort(-counts, kind="stable")[: self.max_features]
        self._vocabulary = np.sort(found[common])
        return self

    def transform(self, X: Any) -> Any:
        """Return square roots of frequencies.

        Parameters
        ----------
        X : list of str or of array-like of shape (n_timesteps,)
            Sequences in one of the forms that `fit` takes.

        Returns
        -------
        roots : sparse array or ndarray of shape (n_sequences, n_features_out)
            One row per sequence; squares of a row add up to 1 if all its n-grams occur
            in the training sequences.
        """
        self._check_ready()
        sequences = check_symbol_input(self, X, reset=False)
        numbers, owners, totals = self._numbers(sequences)
        known = np.isin(numbers, self._vocabulary)
        place = np.searchsorted(self._vocabulary, numbers[known])
        counts = sparse.coo_array(
            (np.ones(len(place)), (owners[known], place)),
            shape=(len(sequences), len(self._vocabulary)),
        ).tocsr()
        counts.data = np.sqrt(counts.data / np.repeat(totals, np.diff(counts.indptr)))
        return counts if self.sparse_output else counts.toarray()

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """Return the n-grams as text.

        Parameters
        ----------
        input_features : Ignored
            Not used, present for API consistency.

        Returns
        -------
        names : ndarray of str
            The symbols of each n-gram, separated by "|", and the lag if it is not 1,
            for example ``"a|b, 4 apart"``.
        """
        self._check_ready()
        apart = f", {self.lag} apart" if self.lag > 1 else ""
        digits = np.unravel_index(self._vocabulary, [len(self.symbols_)] * self.order)
        runs = self.symbols_[np.stack(digits, axis=1)]
        return np.array(["|".join(map(str, run)) + apart for run in runs], dtype=object)

    def _numbers(self, sequences):
        """Return the n-grams of known symbols, their sequences, and numbers of n-grams.

        An n-gram is a number whose digits are the positions of its symbols in the
        alphabet. The last array counts all n-grams per sequence, of known symbols or
        not.
        """
        recordings, firsts = recordings_of(sequences)
        codes = symbol_codes(recordings, self.symbols_)
        frames = np.concatenate(codes)
        own = np.repeat(np.arange(len(codes)), [len(x) for x in codes])
        # Beyond the last frame, every lag is the same.
        steps = min(int(self.lag), len(frames)) * np.arange(self.order)
        first = np.arange(max(len(frames) - steps[-1], 0))
        # An n-gram ends in the recording in which it begins.
        first = first[own[first] == own[first + steps[-1]]]
        owners = np.repeat(np.arange(len(sequences)), np.diff(firsts))[own]
        runs = frames[first[:, None] + steps]
        # Missing values are in no n-gram; unknown symbols make unknown n-grams.
        seen = (runs != -1).all(axis=1)
        totals = np.bincount(owners[first[seen]], minlength=len(sequences))
        known = (runs >= 0).all(axis=1)
        weights = len(self.symbols_) ** np.arange(self.order)[::-1]
        return runs[known] @ weights, owners[first[known]], totals

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
