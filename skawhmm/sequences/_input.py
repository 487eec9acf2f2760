"""What users pass as `X`: models, sequences, or the rows of an array."""

import os
from importlib.metadata import version

import joblib
import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_memory, validate_data

from skawhmm.sequences._checks import check_sequences, is_list_of_sequences
from skawhmm.sequences._symbols import holds_symbols, symbol_sequences
from skawhmm.utils._checks import check_models, check_targets


def is_models(X):
    """Whether X is a batch of models, not sequences."""
    return hasattr(X, "emission")


def check_input(estimator, X, *, reset):
    """Return `X` as a batch of models or a list of sequences.

    Sets or checks `n_features_in_`: the number of channels or, for a 2-D array whose
    rows are univariate sequences, the number of columns.

    Parameters
    ----------
    estimator : estimator
        Whose input it is.

    X : HMMBatch, list of array-like, or array-like of two or three dimensions
        What was given.

    reset : bool
        Whether this is the input of `fit`, else it must be like it.

    Returns
    -------
    X : HMMBatch or list of ndarray of shape (n_timesteps, n_features)
        Models are returned as they are, texts as columns of characters, if there is
        something to turn them into models.
    """
    if is_models(X):
        checked = check_models("X", X)
        n_channels = X.n_features
    elif holds_symbols(X) and hasattr(estimator, "hmm"):
        checked, n_channels = [x[:, None] for x in symbol_sequences(X)], 1
    elif is_list_of_sequences(X) or getattr(X, "ndim", 2) == 3:
        checked = check_sequences(X)
        n_channels = checked[0].shape[1]
    else:
        return _check_rows(estimator, X, reset)
    if reset:
        estimator.n_features_in_ = n_channels
        vars(estimator).pop("feature_names_in_", None)
        estimator._learned_from = (n_channels, "sequences")
    _check_channels(estimator, n_channels)
    return checked


def _check_rows(estimator, X, reset):
    """Return the rows of a 2-D array as univariate sequences."""
    checks = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
    if reset:
        estimator._learned_from = (1, "rows")
    _check_channels(estimator, 1)
    if estimator._learned_from[1] == "rows":
        return check_sequences(validate_data(estimator, X, reset=reset, **checks))
    # Sequences in a list have any length, so rows may have any number of columns.
    return check_sequences(check_array(X, input_name="X", **checks))


def _check_channels(estimator, n_channels):
    expected = estimator._learned_from[0]
    if n_channels != expected:
        raise ValueError(
            f"X has {n_channels} features, but {type(estimator).__name__} is expecting "
            f"{expected} features as input."
        )


def check_classes(estimator, y):
    """Return the classes of a training set as an array with one axis.

    Parameters
    ----------
    estimator : estimator
        Whose classes they are.

    y : array-like of shape (n_samples,)
        What was given.

    Returns
    -------
    y : ndarray of shape (n_samples,)
        The classes.
    """
    check_targets(estimator, y)
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    return y


def remembered(memory, key, compute):
    """Return what a call gives, from memory if it has been made before.

    Parameters
    ----------
    memory : None, str, path-like or joblib.Memory
        Where results are kept; None keeps none.

    key : object
        All that the result depends on; it is hashed by content.

    compute : callable
        The call, without arguments.

    Returns
    -------
    result : object
        The result.
    """
    if memory is None:
        return compute()
    place = os.fspath(memory) if isinstance(memory, os.PathLike) else memory
    cached = check_memory(place).cache(_result, ignore=["compute"])
    return cached(version("skawhmm"), joblib.hash(key), compute)


def _result(release, key, compute):  # noqa: ARG001
    return compute()
