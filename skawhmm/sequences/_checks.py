"""Checks of the sequences that users pass as `X`; every error about them."""

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from skawhmm.sequences._checked import CheckedSequences, is_checked
from skawhmm.sequences._forms import (
    check_not_lengths,
    hint_of_foreign,
    is_models,
    is_table,
    looks_like_distances,
    readable,
    warn_of_form,
)
from skawhmm.sequences._names import (
    check_names,
    fitted_names,
    matched_columns,
)
from skawhmm.sequences._tables import (
    are_numbers,
    channel_names,
    matrix,
    numbers,
    open_table,
)
from skawhmm.utils._checks import LARGEST_VALUE
from skawhmm.utils._numbers import wrong_kind

# Hint that an error about the number of channels adds if a matrix was given.
HINT_OF_ROWS = (
    " Rows of a matrix are univariate sequences; write [X] if X is one sequence."
)


def check_input(estimator, X, y=None, *, reset):
    """Return the input of an estimator as a list of checked sequences.

    Sets or checks `n_features_in_`, the number of channels or, for a 2-D array whose
    rows are univariate sequences, the number of columns; and `feature_names_in_`, the
    names of the channels, if the sequences have any.

    Parameters
    ----------
    estimator : estimator
        The estimator that got the input; it stores the form of the input of `fit`.

    X : list of array-like, or array-like of two or three dimensions
        What was given.

    y : array-like, default=None
        Labels; hmmlearn's lengths are recognised and raise an error.

    reset : bool
        Whether this is the input of `fit`; otherwise it is checked against that input.

    Returns
    -------
    sequences : CheckedSequences of ndarray of shape (n_timesteps, n_features)
        The sequences, NaN where values are missing. They carry the channel names of
        the estimator for the estimators nested in it.
    """
    if is_checked(X):
        check_channels(estimator, X.n_features, X.names, reset=reset)
        return X
    if is_models(X):
        raise TypeError(
            f"X must hold sequences for {type(estimator).__name__}, got an HMMBatch."
        )
    takes = getattr(estimator, "_takes_distances", False)
    X, names, units = opened(type(estimator).__name__, readable(X), y, takes=takes)
    if not is_list_of_sequences(X) and getattr(X, "ndim", 2) != 3:
        sequences = _check_rows(estimator, X, reset)
    else:
        with units.naming():
            sequences = check_sequences(X)
        check_channels(estimator, sequences[0].shape[1], names, reset=reset)
        sequences = CheckedSequences(units.grouped(sequences), fitted_names(estimator))
    if reset:
        warn_of_form(X)
    return sequences


def opened(caller, X, y=None, *, takes=False):
    """Return what a user passed as sequences: recordings, names of channels, units.

    Raises if `X` holds distances and the caller does not take them, and if `y` holds
    lengths. What is returned is that of `matched_columns`.
    """
    check_not_lengths(X, y)
    check_not_distances(caller, X, takes=takes)
    return matched_columns(X)


def check_not_distances(caller, X, *, takes=False):
    """Raise if distances are given where sequences are read.

    Parameters
    ----------
    caller : str
        Name of the estimator or function.

    X : object
        The input; arrays in a list are always sequences.

    takes : bool, default=False
        Whether the caller has an option for distances.
    """
    if is_list_of_sequences(X) or not looks_like_distances(X):
        return
    hint = f'If it holds distances, write {caller}(metric="precomputed")'
    if not takes:
        hint = f"{caller} does not take distances; estimators such as "
        hint += 'KNeighborsHMMClassifier(metric="precomputed") do'
    raise ValueError(
        f"X must hold sequences, got an array of shape {np.shape(X)} that is symmetric "
        f"with a zero diagonal, as distances between models are. {hint}. If its rows "
        "are sequences, write list(X)."
    )


def _check_rows(estimator, X, reset):
    """Return the rows of a 2-D array as univariate sequences."""
    checks = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
    X = plain_numbers(X)
    if reset:
        estimator._learned_from = (1, "rows")
    _check_channel_count(
        estimator,
        1,
        HINT_OF_ROWS,
    )
    if estimator._learned_from[1] == "rows":
        # Names of table columns; the rows themselves have one channel.
        X = validate_data(estimator, X, reset=reset, **checks)
        return CheckedSequences(check_sequences(X))
    warn_of_form(X)
    # Sequences in a list have any length, so rows may have any number of columns.
    sequences = check_sequences(check_array(X, input_name="X", **checks))
    check_names(estimator, None, reset=False)
    return CheckedSequences(sequences, fitted_names(estimator))


def check_channels(estimator, n_channels, names=None, *, reset):
    """Set or check the number of channels of arrays, and their names."""
    check_names(estimator, names, reset=reset)
    if reset:
        estimator.n_features_in_ = n_channels
        estimator._learned_from = (n_channels, "sequences")
    else:
        _check_channel_count(estimator, n_channels)


def _check_channel_count(estimator, n_channels, hint=""):
    expected = estimator._learned_from[0]
    if n_channels != expected:
        raise ValueError(
            f"X has {n_channels} features, but {type(estimator).__name__} is expecting "
            f"{expected} features as input.{hint}"
        )


def input_names(estimator, input_features):
    """Return the names of an estimator's input channels.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator.

    input_features : array-like of str of shape (n_features_in_,), or None
        Names given by the caller; not used if `fit` was given a 2-D array, whose rows
        have one channel.

    Returns
    -------
    names : list of str
        The names; by default the names seen by `fit` or, without names, "x0", "x1" and
        so on.
    """
    n_channels, form = estimator._learned_from
    known = fitted_names(estimator)
    names = [f"x{c}" for c in range(n_channels)] if known is None else [*known]
    if input_features is None:
        return names
    given = [str(name) for name in input_features]
    if known is not None and given != names:
        raise ValueError("input_features is not equal to feature_names_in_")
    if len(given) != estimator.n_features_in_:
        raise ValueError(
            "input_features should have length equal to n_features_in_="
            f"{estimator.n_features_in_}, got {len(given)}."
        )
    return given if form == "sequences" else names


def check_sequences(X, *, n_features=None, caller="HMMTransformer"):
    """Return sequences in any accepted form as a list of arrays.

    Parameters
    ----------
    X : list of array-like, or array-like of two or three dimensions
        A list (or object array) of sequences of shape (n_timesteps, n_features) or,
        with one feature, (n_timesteps,); an array of shape (n_sequences, n_timesteps,
        n_features); or an array of shape (n_sequences, n_timesteps) whose rows are
        univariate. In the last two, trailing frames of NaN are padding.

    n_features : int or None
        Number of features expected; None accepts any number that all sequences share.

    caller : str
        Name of the estimator in the message if the number differs.

    Returns
    -------
    sequences : list of ndarray of shape (n_timesteps, n_features)
        C-contiguous float64, without infinities; NaN marks missing values. Arrays that
        already have this form are not copied. Named columns are in the order of the
        first sequence with names. `Trials` stay `Trials`.
    """
    if is_checked(X):
        check_feature_counts(X[:1].split()[0], n_features, caller)
        return X
    X, _, units = matched_columns(readable(X))
    with units.naming():
        if is_list_of_sequences(X):
            sequences = [checked_sequence(x, i) for i, x in enumerate(X)]
        else:
            sequences = unpadded_rows(X)
        if not sequences:
            raise ValueError("X must hold at least one sequence, got none.")
        is_rows = getattr(X, "ndim", 0) == 2
        check_feature_counts(sequences, n_features, caller, HINT_OF_ROWS * is_rows)
        for i, x in enumerate(sequences):
            check_values(x, i)
    return units.grouped(sequences)


def is_list_of_sequences(X):
    """Whether X is a list of sequences, not one array (or nested lists of one)."""
    if isinstance(X, np.ndarray):
        return X.dtype == object and X.ndim == 1
    if not isinstance(X, list | tuple):
        return False
    if len(X) == 0 or any(hasattr(x, "__array__") or _depth(x) != 1 for x in X):
        return True
    # Lists of numbers of different lengths are univariate sequences.
    return len({len(x) for x in X}) > 1


def _depth(x):
    """Return the number of axes of nested lists, judged by their first entries."""
    if hasattr(x, "__array__"):
        return np.ndim(x)
    if not isinstance(x, list | tuple):
        return 0
    return 1 + (_depth(x[0]) if len(x) else 0)


def checked_sequence(x, i):
    """Return one member of a list as a float64 array of two dimensions."""
    # The usual case, quick to recognise.
    is_ready = type(x) is np.ndarray and x.dtype == np.float64 and x.flags.aligned
    array = x if is_ready else numbers(_member_array(x, i), f"X[{i}]")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        number = " Write [X] if X is one univariate sequence." * (array.ndim == 0)
        raise ValueError(
            f"X[{i}] must have shape (n_timesteps, n_features), got {array.shape}."
            f"{number}{_hint_of_trials(i) * (array.ndim == 3)}"
        )
    return np.ascontiguousarray(array)


def _member_array(x, i):
    """Return one member of a list as an array of any type."""
    wanted = f"X[{i}] must be an array of numbers of shape (n_timesteps, n_features)"
    if is_table(x):
        table = open_table(x)
        return matrix(table, channel_names(table, None, table.levels))
    if sparse.issparse(x):
        raise TypeError(f"{wanted}, got a sparse matrix. Use X[{i}].toarray().")
    is_plain = isinstance(x, np.ndarray | list | tuple) or hasattr(x, "__array__")
    is_number = x is not None and np.isscalar(x) and not isinstance(x, bytes)
    if isinstance(x, str):
        raise TypeError(f"{wanted}, got a text.{_hint_of_symbols(x)}")
    if not is_plain and not is_number:
        raise TypeError(f"{wanted}, got a {type(x).__name__}.{hint_of_foreign(x)}")
    if isinstance(x, np.ma.MaskedArray):
        return x
    try:
        array = np.asarray(x)
    except ValueError as error:
        sizes = sorted({_n_values(row) for row in x})
        raise ValueError(
            f"{wanted}, got rows of different sizes {sizes}.{_hint_of_trials(i)}"
        ) from error
    if array.dtype.kind == "U" and not hasattr(x, "__array__"):
        # NumPy turns numbers in a list with a string into strings.
        array = np.array(x, dtype=object)
    if wrong_kind(array) is not None and _hint_of_symbols(array):
        raise ValueError(f"{wanted}, got {wrong_kind(array)}.{_hint_of_symbols(array)}")
    return array


def _n_values(row):
    """Return the number of values of a row, which may be a scalar or nested."""
    if isinstance(row, list | tuple):
        return sum(map(_n_values, row))
    return np.size(row)


def _hint_of_trials(i):
    return f" Several recordings of one unit are given as Trials(X[{i}])."


def _hint_of_symbols(x):
    """Return a hint for text given where numbers are needed."""
    is_text = isinstance(x, str) or (
        isinstance(x, np.ndarray) and str(wrong_kind(x)).startswith("strings")
    )
    if not is_text:
        return ""
    if not isinstance(x, str) and are_numbers(x):
        return " Convert texts to numbers first, for example by x.astype(float)."
    return (
        ' HMMTransformer(emission="categorical") fits symbols; '
        'make_classifier("categorical") and make_regressor("categorical") learn from '
        "them."
    )


def plain_numbers(X):
    """Return an array of numbers, with NaN for masked values, or raise.

    Parameters
    ----------
    X : array-like of two or three dimensions
        The input; scikit-learn reports problems with its shape.

    Returns
    -------
    X : ndarray or array-like
        Masked values are NaN.
    """
    if isinstance(X, np.ma.MaskedArray):
        return numbers(X, "X")
    if isinstance(X, list | tuple):
        try:
            array = np.asarray(X)
        except ValueError as error:
            raise ValueError(
                "X must be a list of arrays of shape (n_timesteps, n_features), or an "
                "array, got nested lists whose lengths differ within a sequence."
            ) from error
        # NumPy turns numbers in a list with a string into strings.
        X = np.array(X, dtype=object) if array.dtype.kind == "U" else array
    if not isinstance(X, np.ndarray):
        return X
    if X.ndim == 1:
        raise ValueError(
            "X must be a list of arrays, or an array of 2 or 3 axes, got a 1D array. "
            "Reshape your data: [X] if it is one univariate sequence."
        )
    wrong = wrong_kind(X)
    if wrong is not None:
        # scikit-learn's own checks expect these first words.
        start = "Complex data not supported: " * wrong.startswith("complex")
        hint = _hint_of_symbols(X)
        raise ValueError(f"{start}X must hold numbers, got {wrong}.{hint}")
    if X.dtype == object:
        try:
            return X.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            # scikit-learn's own checks expect Python's message, here in parentheses.
            raise TypeError(f"X must hold numbers only ({error}).") from error
    return X


def unpadded_rows(X):
    """Return the sequences in an array of two or three axes, without padding."""
    array = check_array(
        plain_numbers(X),
        dtype=np.float64,
        allow_nd=True,
        ensure_all_finite=False,
        input_name="X",
    )
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3:
        raise ValueError(
            "X must be a list of arrays, or an array of shape (n_sequences, "
            "n_timesteps, n_features) or (n_sequences, n_timesteps), got shape "
            f"{array.shape}. Several recordings of one unit are given as Trials."
        )
    sequences = []
    for x in array:
        filled = np.flatnonzero(~np.isnan(x).all(axis=1))
        last = filled[-1] + 1 if len(filled) else 0
        sequences.append(np.ascontiguousarray(x[:last]))
    return sequences


def check_feature_counts(sequences, n_features, caller, hint=""):
    """Raise unless all sequences have the same, expected number of features.

    `hint` is appended to the error about an unexpected number.
    """
    sizes = sorted({x.shape[1] for x in sequences})
    if len(sizes) > 1:
        rows = {len(x) for x in sequences}
        hint = ""
        if len(rows) == 1 and len(sequences) > 1:
            hint = (
                f" All have {rows.pop()} rows: if channels come before time, as in "
                'aeon, write: X, ids = as_sequences(X, layout="channels_first").'
            )
        first = next(
            i for i, x in enumerate(sequences) if x.shape[1] != sequences[0].shape[1]
        )
        raise ValueError(
            f"All sequences in X must have the same number of features, got {sizes}; "
            f"the first that differs from X[0] is X[{first}].{hint}"
        )
    if sizes[0] == 0:
        raise ValueError("The sequences in X must have at least 1 feature, got 0.")
    if n_features is not None and sizes[0] != n_features:
        raise ValueError(
            f"X has {sizes[0]} features, but {caller} is expecting {n_features} "
            f"features as input.{hint}"
        )


def check_values(x, i):
    """Raise unless a sequence has frames and its values are not infinite."""
    if len(x) == 0:
        raise ValueError(
            f"X[{i}] must have at least 1 timestep with an observed value, got none."
        )
    # One pass decides for almost all sequences.
    peak = max(x.max(), -x.min())
    if peak <= LARGEST_VALUE:
        return
    if np.isnan(peak):
        seen = x[~np.isnan(x)]
        if len(seen) == 0:
            raise ValueError(
                f"X[{i}] must have at least 1 observed value, got only NaN."
            )
        peak = np.abs(seen).max()
    if np.isinf(peak):
        raise ValueError(
            f"X[{i}] must not contain infinity; use NaN for values not observed."
        )
    if peak > LARGEST_VALUE:
        raise ValueError(
            f"X[{i}] must hold values of size at most {LARGEST_VALUE:g}, got {peak:g}."
        )


def check_complete(sequences, reason):
    """Raise if an observed channel of a sequence has missing values."""
    for i, x in enumerate(sequences):
        gaps = np.isnan(x)
        if gaps.any() and (gaps.any(axis=0) & ~gaps.all(axis=0)).any():
            channel = int(np.flatnonzero(gaps.any(axis=0) & ~gaps.all(axis=0))[0])
            raise ValueError(
                f"{reason} needs every value of a channel or none, got "
                f"{int(gaps[:, channel].sum())} NaN among {len(x)} values of channel "
                f"{channel} of X[{i}]."
            )


def check_no_missing(sequences, reason):
    """Raise if a sequence has any missing value."""
    for i, x in enumerate(sequences):
        gaps = np.isnan(x)
        if gaps.any():
            channel = int(np.flatnonzero(gaps.any(axis=0))[0])
            raise ValueError(
                f"{reason} needs sequences without NaN, got "
                f"{int(gaps[:, channel].sum())} NaN in channel {channel} of X[{i}]."
            )
