"""Sequences of symbols: readers, alphabets, encoding, and their errors."""

import numpy as np

from skawhmm.sequences._checked import CheckedSequences, is_checked
from skawhmm.sequences._checks import unpadded_rows
from skawhmm.sequences._forms import SERIES, package_type, readable
from skawhmm.sequences._missing import MISSING, is_missing, string_array
from skawhmm.sequences._trials import Trials, split_units

# Number of symbols that a message lists.
SHOWN_SYMBOLS = 8

# Largest integer symbol. Sequences are stored as floats, which represent all integers
# up to this one exactly.
LARGEST_SYMBOL = 2**53 - 1


def holds_symbols(X):
    """Whether X is a list of texts, or of sequences of strings, and not of numbers."""
    if isinstance(X, CheckedSequences):
        return X.is_text
    if package_type(X) in SERIES:
        X = readable(X)
    if isinstance(X, np.ndarray):
        if X.dtype.kind == "U":
            return X.ndim == 1
        if X.dtype != object or X.ndim != 1:
            return False
    elif not isinstance(X, list | tuple):
        return False
    return len(X) > 0 and all(_is_text(x) for x in X)


def _is_text(x):
    if isinstance(x, str):
        return True
    if isinstance(x, Trials):
        return all(map(_is_text, x))
    if hasattr(x, "__array__"):
        array = np.asarray(x)
        if array.dtype == object:
            # pandas stores strings as objects.
            return array.ndim == 1 and any(isinstance(value, str) for value in array)
        return array.dtype.kind == "U"
    return isinstance(x, list | tuple) and any(isinstance(value, str) for value in x)


def symbol_sequences(X):
    """Return sequences of symbols as arrays of one axis.

    Parameters
    ----------
    X : list of str or array-like, or array-like of two or three dimensions
        A list of texts (every character is a symbol), of sequences of strings, or of
        sequences of integers, of shape (n_timesteps,) or (n_timesteps, 1); or an array
        whose rows are sequences of integers, with trailing NaN as padding.

    Returns
    -------
    sequences : list of ndarray of shape (n_timesteps,)
        Strings, empty where missing; or float64 with integer values, NaN where
        missing. `Trials` stay `Trials`.
    """
    X, units = X.split() if isinstance(X, CheckedSequences) else split_units(X)
    with units.naming():
        return units.grouped(_symbol_recordings(X))


def _symbol_recordings(X):
    if is_checked(X, text=True):
        return [x[:, 0] for x in X]
    if isinstance(X, str):
        raise TypeError(
            "X must be a list of sequences of symbols, got a single str. A single text "
            "is given as a list of one."
        )
    if not np.isscalar(X):
        X = readable(X)
    is_array = isinstance(X, np.ndarray) and X.dtype != object and X.ndim > 1
    if is_array and X.dtype.kind != "U":
        X = unpadded_rows(X)
    try:
        sequences = [_symbols_of(x, i) for i, x in enumerate(X)]
    except TypeError as error:
        raise ValueError(
            f"X must be a list of sequences of symbols, got {type(X).__name__}."
        ) from error
    if not sequences:
        raise ValueError("X must hold at least one sequence, got none.")
    kinds = {x.dtype.kind for x in sequences}
    if len(kinds) > 1:
        raise ValueError(
            "All sequences in X must hold strings or all integers, got both."
        )
    return sequences


def _symbols_of(x, i):
    array = np.array(list(x)) if isinstance(x, str) else _symbol_array(x, i)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"X[{i}] must be a sequence of symbols of shape (n_timesteps,), got shape "
            f"{array.shape}. Several symbols per frame are channels of ByChannel; "
            'numbers are fitted with emission="gaussian".'
        )
    if not array.size:
        raise ValueError(f"X[{i}] must have at least 1 symbol, got none.")
    if array.dtype == object:
        array = string_array(array) if _holds_strings(array) else _as_numbers(array, i)
    if array.dtype.kind == "U":
        if (array == MISSING).all():
            raise ValueError(f"X[{i}] must have at least 1 observed symbol, got none.")
        return array
    if array.dtype.kind not in "iuf":
        raise ValueError(
            f"X[{i}] must hold symbols, which are strings or integers, got "
            f"{array.dtype}."
        )
    values = array.astype(np.float64)
    seen = values[~np.isnan(values)]
    if not seen.size:
        raise ValueError(f"X[{i}] must have at least 1 observed value, got only NaN.")
    wrong = seen[(np.rint(seen) != seen) | np.isinf(seen)]
    if wrong.size:
        raise ValueError(
            f"X[{i}] must hold symbols, which are strings or integers, got {wrong[0]}."
        )
    large = seen[np.abs(seen) > LARGEST_SYMBOL]
    if large.size:
        raise ValueError(
            f"X[{i}] must hold integers of size below 2**53, or strings, got "
            f"{large[0]:.17g}. Write such symbols as strings: str(symbol)."
        )
    return values


def _holds_strings(values):
    """Whether values are strings, some of which may be missing."""
    is_text = [isinstance(v, str) for v in values if not is_missing(v)]
    return all(is_text) and len(is_text) > 0


def _symbol_array(x, i):
    """Return one sequence as an array; numbers mixed with strings stay numbers."""
    if isinstance(x, np.ma.MaskedArray):
        return np.ma.filled(x.astype(np.float64), np.nan)
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ValueError(
            f"X[{i}] must be a sequence of symbols, got nested lists of unequal length."
            f" Several recordings of one unit are given as Trials(X[{i}])."
        ) from error
    if array.dtype.kind != "U" or hasattr(x, "__array__"):
        return array
    # NumPy turns numbers and NaN in a list with a string into strings.
    values = np.array(x, object)
    if not _holds_strings(values.ravel()):
        number = next(v for v in values.ravel() if not isinstance(v, str))
        raise ValueError(
            f"X[{i}] must hold strings or integers, got strings and numbers, such as "
            f"{number!r}. Missing symbols are None, NaN or empty strings."
        )
    return values


def _as_numbers(array, i):
    try:
        return array.astype(np.float64)
    except OverflowError as error:
        raise ValueError(
            f"X[{i}] must hold integers of size below 2**53, or strings, got an "
            "integer beyond the range of floats. Write such symbols as strings: "
            "str(symbol)."
        ) from error
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X[{i}] must hold symbols, which are strings or integers, got "
            f"{next(type(v).__name__ for v in array if not isinstance(v, str))}."
        ) from error


def learned_symbols(sequences):
    """Return the symbols that occur in sequences, in sorted order."""
    found = np.unique(np.concatenate([np.unique(x) for x in sequences]))
    if found.dtype.kind == "U":
        return found[found != MISSING]
    return found[~np.isnan(found)].astype(np.int64)


def check_symbols(symbols):
    """Return an alphabet as an array.

    Parameters
    ----------
    symbols : str or array-like of shape (n_symbols,)
        Distinct characters, strings or integers.

    Returns
    -------
    symbols : ndarray of shape (n_symbols,)
        The alphabet in the order given.
    """
    array = np.array(list(symbols) if isinstance(symbols, str) else symbols)
    if array.ndim != 1 or array.dtype.kind not in "iuU" or not array.size:
        raise ValueError(
            "symbols must list the strings or integers that may occur, got "
            f"{array.dtype} of shape {array.shape}."
        )
    if array.dtype.kind != "U" and max(map(abs, array.tolist())) > LARGEST_SYMBOL:
        raise ValueError(
            "symbols must hold integers of size below 2**53, or strings, got "
            f"{max(array.tolist(), key=abs)}."
        )
    if len(np.unique(array)) < len(array):
        values, counts = np.unique(array, return_counts=True)
        raise ValueError(
            f"symbols must be distinct, got {values[counts > 1][0].item()!r} twice."
        )
    return array if array.dtype.kind == "U" else array.astype(np.int64)


def symbol_codes(sequences, symbols):
    """Return symbols as their positions in the alphabet.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps,)
        From `symbol_sequences`.

    symbols : ndarray of shape (n_symbols,)
        The alphabet.

    Returns
    -------
    codes : list of ndarray of shape (n_timesteps,)
        Positions, counted from 0; -1 for missing symbols, -2 for symbols that are not
        in the alphabet.
    """
    order = np.argsort(symbols)
    alphabet = symbols[order]
    codes = []
    for x in sequences:
        own = np.full(len(x), -2)
        own[x == MISSING if x.dtype.kind == "U" else np.isnan(x)] = -1
        if (x.dtype.kind == "U") == (symbols.dtype.kind == "U"):
            place = np.minimum(np.searchsorted(alphabet, x), len(alphabet) - 1)
            own = np.where(alphabet[place] == x, order[place], own)
        codes.append(own)
    return codes


def encoded(sequences, symbols):
    """Return symbols as positions in the alphabet, or raise if a symbol is unknown.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps,)
        From `symbol_sequences`.

    symbols : ndarray of shape (n_symbols,)
        The alphabet.

    Returns
    -------
    codes : list of ndarray of shape (n_timesteps, 1)
        Positions, counted from 0, as float64; NaN stays NaN.
    """
    codes = symbol_codes(sequences, symbols)
    for i, (x, own) in enumerate(zip(sequences, codes, strict=True)):
        if own.min() == -2:
            shown = ", ".join(repr(s.item()) for s in symbols[:SHOWN_SYMBOLS])
            more = ", ..." if len(symbols) > SHOWN_SYMBOLS else ""
            strange = x[own == -2][0].item()
            strange = int(strange) if isinstance(strange, float) else strange
            raise ValueError(
                f"X[{i}] holds the symbol {strange!r}, which is not among the "
                f"{len(symbols)} symbols {shown}{more}. All symbols that may occur can "
                "be given as emission=Categorical(symbols) or "
                "MarkovChainTransformer(symbols)."
            )
    return [np.where(own < 0, np.nan, own)[:, None] for own in codes]
