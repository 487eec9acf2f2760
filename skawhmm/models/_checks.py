"""Checks of models and their arrays."""

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np

from skawhmm.sequences._forms import hint_of_foreign, is_models
from skawhmm.sequences._tables import shown
from skawhmm.sequences._trials import split_units
from skawhmm.utils._checks import is_integer
from skawhmm.utils._numbers import real_array


def as_arrays(name, values, n_axes):
    """Return one float array per model, with one of the given numbers of axes.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    values : array-like or sequence of array-like
        One entry per model.

    n_axes : tuple of int
        Numbers of axes that an entry may have.

    Returns
    -------
    arrays : list of ndarray, or one ndarray with a leading axis of models
        The entries, copied.
    """
    wanted = " or ".join(str(count) for count in n_axes)
    wanted += " axis" if n_axes == (1,) else " axes"
    arrays: Any
    try:
        if isinstance(values, np.ndarray) and values.dtype != object and values.ndim:
            arrays = np.array(real_array(name, values))
            shapes = {arrays.shape[1:]: 0}
        else:
            arrays = [
                np.array(real_array(f"{name}[{n}]", value))
                for n, value in enumerate(entries_of(name, values))
            ]
            shapes = {array.shape: n for n, array in reversed([*enumerate(arrays)])}
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must hold one numeric array per model, but {error}"
        ) from error
    for shape, n in shapes.items():
        if len(shape) not in n_axes:
            raise ValueError(
                f"{name} must have {wanted} per model, got shape {shape} for "
                f"model {n}. Give a single model as a list of one."
            )
    return arrays


def entries_of(name, values):
    """Return the input as a list with one entry per model."""
    no_list = isinstance(values, str | bytes | type | Mapping | Set)
    no_list |= isinstance(values, np.ndarray) and values.ndim == 0
    if no_list or not isinstance(values, Iterable):
        raise TypeError(
            f"{name} must be a list with one entry per model, got "
            f"{type(values).__name__}."
        )
    return [*values]


def check_model_shapes(arrays, groups):
    """Check that the arrays of each model agree in states and features.

    Parameters
    ----------
    arrays : dict of list of ndarray
        Arguments by name, one entry per model.

    groups : tuple of tuple of str
        Names of the state parameters, grouped so that the parameters in a group have
        the same number of features.

    Returns
    -------
    n_components : ndarray of shape (n_models,)
        Number of states of each model.
    """
    counts = {name: len(entries) for name, entries in arrays.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"All arguments must have one entry per model, got {counts}.")
    if counts["transmats"] == 0:
        raise ValueError("transmats must hold at least one model, got none.")
    states, n_features = [name for group in groups for name in group], 0
    widths = {n: arrays[group[0]][0].shape[1] for group in groups for n in group}
    for name, n_features in widths.items():
        if n_features == 0:
            raise ValueError(f"{name} must have at least one feature, got none.")
    n_components = np.array([len(transmat) for transmat in arrays["transmats"]])
    if n_components.min() == 0:
        n = int(np.argmin(n_components))
        raise ValueError(f"Each model must have a state, got none in model {n}.")
    for name in states:
        n_axes = [entry.ndim for entry in arrays[name]]
        if min(n_axes) != max(n_axes):
            n, other = n_axes.index(2), n_axes.index(3)
            raise ValueError(
                f"{name} must be variances in all models or matrices in all, got "
                f"variances in model {n} and matrices in model {other}."
            )
    sizes = n_components.tolist()
    for name, entries in arrays.items():
        for n, (entry, size) in enumerate(zip(entries, sizes, strict=True)):
            width = {"transmats": size, **widths}.get(name)
            axes = () if width is None else (width,) * (entry.ndim - 1)
            if entry.shape != (size, *axes):
                raise ValueError(
                    f"{name} of model {n} must have shape {(size, *axes)} ({size} "
                    f"states, {widths.get(name, n_features)} features), got "
                    f"{entry.shape}."
                )
    return n_components


def check_observed(observed, n_models, n_features):
    """Return the mask of observed features as a boolean array.

    Parameters
    ----------
    observed : array-like of shape (n_models, n_features)
        True where a model observed a feature.

    n_models, n_features : int
        The shape it must have.

    Returns
    -------
    observed : ndarray of bool of shape (n_models, n_features)
        The mask.
    """
    mask = np.array(observed)
    if mask.dtype != bool or mask.shape != (n_models, n_features):
        raise ValueError(
            f"observed must be a boolean array of shape {(n_models, n_features)}, got "
            f"{mask.dtype} of shape {mask.shape}."
        )
    if not mask.any(axis=1).all():
        n = int(np.argmin(mask.any(axis=1)))
        raise ValueError(
            f"observed must keep at least one feature, got none in model {n}."
        )
    return mask


def checked_rows(key, n_models):
    """Return the indices of the models that an index expression selects.

    Parameters
    ----------
    key : int, slice or array-like of int or bool
        The index.

    n_models : int
        Number of models.

    Returns
    -------
    rows : ndarray of int of shape (n_chosen,)
        The numbers.
    """
    numbers = np.arange(n_models)
    wanted = "models must be indexed by integers, by a slice or by a boolean mask"
    if isinstance(key, slice):
        try:
            return numbers[key]
        except TypeError as error:
            raise IndexError(f"{wanted}, got {key!r}.") from error
    try:
        # NumPy turns an empty list into an array of floats, which is not an index.
        index = np.asarray(key, dtype=None if np.size(key) else int)
    except ValueError as error:
        raise IndexError(f"{wanted}, got nested lists.") from error
    if index.ndim > 1:
        raise IndexError(f"HMMBatch has one axis, the models; got {key!r}.")
    if index.dtype.kind == "b" and index.shape != (n_models,):
        raise IndexError(
            f"A boolean mask must have one entry per model ({n_models} models), got "
            f"shape {index.shape}."
        )
    if index.dtype.kind not in "iub":
        raise IndexError(f"{wanted}, got {key!r}.")
    if index.dtype.kind != "b" and index.size:
        outside = index[(index < -n_models) | (index >= n_models)]
        if outside.size:
            raise IndexError(
                f"An index must lie within the {n_models} models, got "
                f"{outside.flat[0]}."
            )
    return np.atleast_1d(numbers[index])


def check_info(info, n_models):
    """Return info columns as arrays with one entry per model.

    Parameters
    ----------
    info : dict of array-like
        Columns by name.

    n_models : int
        Number of models.

    Returns
    -------
    info : dict of ndarray
        The columns.
    """
    columns = {}
    for name, column in info.items():
        if not isinstance(name, str):
            raise TypeError(f"info must have names as keys, got {name!r}.")
        array = np.array(column)
        if array.shape[:1] != (n_models,) or array.dtype == object:
            raise ValueError(
                f"info[{name!r}] must hold one number, boolean or string per model "
                f"({n_models} models), got {array.dtype} of shape {array.shape}."
            )
        columns[name] = array
    return columns


def check_feature_names(names, n_features):
    """Return names of features as a tuple, or raise unless there is one per feature.

    Parameters
    ----------
    names : sequence of str or None
        What was given.

    n_features : int
        Number of features.

    Returns
    -------
    names : tuple of str or None
        The names.
    """
    if names is None:
        return None
    is_list = isinstance(names, Iterable) and not isinstance(names, str)
    given = [*names] if is_list else [None]
    if not all(isinstance(name, str) for name in given):
        raise TypeError(f"feature_names must be a list of strings, got {names!r}.")
    if len({*given}) < len(given) or len(given) != n_features:
        raise ValueError(
            f"feature_names must be {n_features} distinct names, one per feature, got "
            f"{given}."
        )
    return tuple(map(str, given))


def check_agreeing_names(names, others, one, two):
    """Raise if feature names differ, or are in a different order."""
    if None not in {names, others} and names != others:
        raise ValueError(
            f"{one} and {two} must have the same feature names in the same order, got "
            f"{shown(names)} and {shown(others)}."
        )


def check_concatenable(batches):
    """Check that batches can be concatenated.

    Parameters
    ----------
    batches : iterable of HMMBatch
        The batches.

    Returns
    -------
    batches : list of HMMBatch
        The batches.
    """
    if not isinstance(batches, Iterable):
        raise TypeError(
            f"batches must be a list of HMMBatch objects, got {type(batches).__name__}."
        )
    batches = [*batches]
    if not batches:
        raise ValueError("batches must hold at least one batch, got none.")
    for n, batch in enumerate(batches):
        if not is_models(batch):
            raise TypeError(
                f"batches must hold HMMBatch objects, got {type(batch).__name__} at "
                f"{n}."
            )
        if batch.n_features != batches[0].n_features:
            raise ValueError(
                f"All batches must have the same number of features, got "
                f"{batches[0].n_features} in batch 0 and {batch.n_features} in batch "
                f"{n}."
            )
        named = next((m for m in range(n) if batches[m].feature_names), 0)
        check_agreeing_names(
            batches[named].feature_names,
            batch.feature_names,
            f"batch {named}",
            f"batch {n}",
        )
        if batch.info.keys() != batches[0].info.keys():
            raise ValueError(
                f"All batches must have the same info columns, got "
                f"{sorted(batches[0].info)} in batch 0 and {sorted(batch.info)} in "
                f"batch {n}."
            )
    return batches


def check_model_number(name, value, n_models):
    """Return the number of a model, counted from the end if negative, or raise."""
    if not is_integer(value):
        raise TypeError(f"{name} must be the number of a model, got {value!r}.")
    if not -n_models <= value < n_models:
        raise IndexError(f"{name} must lie within the {n_models} models, got {value}.")
    return int(value) % n_models


def check_carried(sequences, n_models, emission):
    """Return the sequences that models carry as a list of arrays or `Trials`.

    Parameters
    ----------
    sequences : sequence of array-like or Trials, or None
        One entry per model.

    n_models : int
        Number of models.

    emission : Emission
        States of the models.

    Returns
    -------
    sequences : list of ndarray of shape (n_timesteps, n_features) or Trials, or None
        The sequences, copied.
    """
    if sequences is None:
        return None
    n_features = emission.n_features
    recordings, units = split_units(sequences)
    if not emission.keeps_sequences:
        with units.naming():
            recordings = emission.checked(
                recordings, caller="HMMBatch", n_features=n_features
            )
    arrays = [
        np.array(real_array(f"sequences[{n}]", sequence))
        for n, sequence in enumerate(entries_of("sequences", recordings))
    ]
    n_units = len(units.bounds(arrays)) - 1
    if n_units != n_models:
        raise ValueError(
            f"sequences must hold one entry per model ({n_models} models), got "
            f"{n_units}."
        )
    for n, array in enumerate(arrays):
        if array.ndim != 2 or array.shape[1] != n_features or not len(array):
            raise ValueError(
                f"sequences must have shape (n_timesteps, {n_features}), got "
                f"{array.shape} for {_model_name(units, n)}."
            )
    return units.grouped(arrays)


def _model_name(units, n):
    """Return the name of recording n for messages: its model and its trial."""
    if not units.several:
        return f"model {n}"
    return units.name(n).replace("X[", "sequences[")


def check_models(name, models):
    """Return `models` if it is a batch that holds a model, else raise."""
    if not is_models(models):
        first = models[0] if isinstance(models, list | tuple) and models else models
        hint = hint_of_foreign(first, name)
        if is_models(first):
            hint = f" Join its batches: HMMBatch.concatenate({name})."
        raise TypeError(
            f"{name} must be an HMMBatch, got {type(models).__name__}."
            f"{hint or ' HMMTransformer makes one from sequences.'}"
        )
    if len(models) == 0:
        raise ValueError(f"{name} must hold at least one model, got none.")
    return models


def check_single_model(name, models):
    """Return `models` if it is a batch of exactly one model, else raise."""
    if len(check_models(name, models)) != 1:
        raise ValueError(
            f"{name} must hold one model, got {len(models)}. models[i] takes one out "
            "of a batch."
        )
    return models


def check_equal_sizes(models, reason):
    """Raise unless all models have the same number of states."""
    sizes = models.n_components
    other = np.flatnonzero(sizes != sizes[0])
    if other.size:
        raise ValueError(
            f"{reason} needs models with the same number of states, got {sizes[0]} and "
            f"{sizes[other[0]]}."
        )


def check_same_features(X, Y, names=("X", "Y")):
    """Check that the models of two batches can be compared.

    Parameters
    ----------
    X, Y : HMMBatch
        The two batches.

    names : tuple of str, default=("X", "Y")
        The arguments as the caller knows them.
    """
    one, two = names
    if X.emission.name != Y.emission.name:
        raise TypeError(
            f"{one} and {two} must have one kind of states, got {X.emission.name} and "
            f"{Y.emission.name}."
        )
    if X.n_features != Y.n_features:
        raise ValueError(
            f"{one} and {two} must have the same number of features, got "
            f"{X.n_features} and {Y.n_features}."
        )
    check_agreeing_names(X.feature_names, Y.feature_names, one, two)
    if X.observed is None and Y.observed is None:
        return
    # There are few distinct masks; comparing only these saves memory.
    masks, rows = np.unique(X.emission.masks(), axis=0, return_index=True)
    others, columns = np.unique(Y.emission.masks(), axis=0, return_index=True)
    apart = np.argwhere(masks @ others.T == 0)
    if len(apart):
        i, j = min((int(rows[k]), int(columns[m])) for k, m in apart)
        raise ValueError(
            f"Models must share an observed feature, got none for model {i} of {one} "
            f"and model {j} of {two}."
        )


def check_kept_sequences(models):
    """Check that models carry the sequences they were fitted to."""
    if models.sequences is None:
        raise ValueError(
            "method='data' needs models that carry their sequences, got models without."
            " HMMTransformer(keep_sequences=True) makes them."
        )
    models.emission.check_scorable(split_units(models.sequences)[0])


def check_paired(n_models, n_sequences):
    """Check that there is one sequence per model, or a single one of either."""
    if 1 not in {n_models, n_sequences} and n_models != n_sequences:
        raise ValueError(
            f"X must hold one sequence per model ({n_models} models), or one for all, "
            f"got {n_sequences}."
        )
