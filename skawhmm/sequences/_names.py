"""Names of channels: how arrays carry them, how they are matched, and their errors."""

import numpy as np

from skawhmm.sequences._checked import CheckedSequences
from skawhmm.sequences._forms import (
    is_table,
    warn_caller,
)
from skawhmm.sequences._tables import channel_names, matrix, open_table, shown
from skawhmm.sequences._trials import mapped, split_units

# Number of names that a message lists, as in scikit-learn.
LISTED = 5


class NamedFrames(np.ndarray):
    """Frames of a sequence, with the names of their channels.

    Each array carries its own names, because cross-validation and `train_test_split`
    make plain lists of the arrays in a list, which would lose the names of the list.
    Selected rows and columns keep their names (``x[:100]``, ``x[:, [2, 0]]``). Other
    results computed from the frames have no names, as their columns may be different
    channels.

    Kernels never see this class: `check_sequences` returns plain arrays.
    """

    feature_names: "tuple[str, ...] | None" = None

    def __getitem__(self, key):
        part = self.view(np.ndarray)[key]
        if self.feature_names is None or np.ndim(part) != 2:
            return part
        columns = key[1] if isinstance(key, tuple) and len(key) == 2 else slice(None)
        names = np.array(self.feature_names, dtype=object)[columns]
        if np.shape(names) != part.shape[1:] or len({*names}) < len(names):
            return part
        return named_frames(part, names)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return array[()] if return_scalar else array.view(np.ndarray)

    def __reduce__(self):
        return named_frames, (self.view(np.ndarray), self.feature_names)

    def __repr__(self):
        return repr(self.view(np.ndarray))


def named_frames(frames, names):
    """Return frames of shape (n_timesteps, n_features) that carry names, if any."""
    if names is None:
        return frames
    named = np.asarray(frames).view(NamedFrames)
    named.feature_names = tuple(names)
    return named


def named_sequences(sequences, names):
    """Return a list of arrays that carry names; unchanged if there are none."""
    return mapped(lambda x: named_frames(x, names), sequences)


def own_names(x):
    """Return the names of the channels of one sequence, None if it has none."""
    if isinstance(x, NamedFrames):
        return x.feature_names
    if not is_table(x):
        return None
    table = open_table(x)
    return column_names(channel_names(table, None, table.levels))


def column_names(columns):
    """Return the columns of a table as names, None if they are numbered from 0."""
    return None if [*columns] == [*range(len(columns))] else tuple(columns)


def matched_columns(X, where=None):
    """Return sequences whose columns have one order, and the names of the columns.

    Columns are matched by name to those of the first sequence that has names. Sequences
    without names are matched by position, with a warning.

    Parameters
    ----------
    X : object
        The input. Only lists can hold `Trials` and sequences with names.

    where : list of str, default=None
        Name of each sequence in messages; by default "X[0]" and so on.

    Returns
    -------
    X : object
        The same, or a list in which sequences with names are plain arrays. If there are
        `Trials`, a list of all recordings.

    names : tuple of str or None
        The names, None unless they are strings, as in scikit-learn.

    units : Units
        Which recordings belong together.
    """
    if isinstance(X, CheckedSequences):
        recordings, units = X.split()
        return recordings, X.names, units
    X, units = split_units(X)
    is_objects = isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1
    if not is_objects and not isinstance(X, list | tuple):
        return X, None, units
    if all(type(x) is np.ndarray for x in X):  # the usual case, quick to recognise
        return X, None, units
    known = [own_names(x) for x in X]
    first = next((i for i, names in enumerate(known) if names is not None), None)
    if first is None:
        return X, None, units
    wanted = known[first]
    if where is None or units.several:
        where = [units.name(i) for i in range(len(X))]
    sequences = []
    for i, (x, names) in enumerate(zip(X, known, strict=True)):
        if names is not None and {*names} != {*wanted}:
            raise ValueError(_columns_message(where[i], names, where[first], wanted))
        sequences.append(x if names is None else _columns(x, names, wanted))
    if None in known:
        warn_caller(
            f"{where[known.index(None)]} does not have valid feature names, but "
            f"{where[first]} has the feature names {shown(wanted)}. Sequences without "
            "names are matched by position."
        )
    return sequences, valid_names(wanted), units


def _columns(x, names, wanted):
    """Return the frames of one sequence, with its columns in the order of `wanted`."""
    if is_table(x):
        return matrix(open_table(x), [*wanted])
    frames = x.view(np.ndarray)
    if names == wanted:
        return frames
    return frames[:, [names.index(name) for name in wanted]]


def _columns_message(one, names, other, wanted):
    parts = {
        "missing": [name for name in wanted if name not in names],
        "unexpected": [name for name in names if name not in wanted],
    }
    differ = " and ".join(f"{word} {shown(p)}" for word, p in parts.items() if p)
    return (
        f"{one} must have the same columns as {other}, {shown(wanted)}, in any order, "
        f"got {shown(names)}: {differ}."
    )


def valid_names(names):
    """Return names if all are strings, None if no name is: scikit-learn's rule."""
    types = sorted({type(name).__qualname__ for name in names})
    if types == ["str"]:
        return tuple(names)
    if "str" in types:
        raise TypeError(
            "Feature names are only supported if all input features have string names, "
            f"but your input has {types} as feature name / column name types. Convert "
            "all names to strings: X.columns = X.columns.astype(str)."
        )
    return None


def check_names(estimator, names, *, reset):
    """Set `feature_names_in_`, or compare names with it, as scikit-learn does.

    Parameters
    ----------
    estimator : estimator
        The estimator that got the input.

    names : sequence of str or None
        Names of the channels of the input.

    reset : bool
        Whether this is the input of `fit`.
    """
    if reset:
        vars(estimator).pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return
    expected = fitted_names(estimator)
    caller = type(estimator).__name__
    if names is None and expected is not None:
        warn_caller(
            f"X does not have valid feature names, but {caller} was fitted with "
            "feature names"
        )
    elif names is not None and expected is None:
        warn_caller(
            f"X has feature names, but {caller} was fitted without feature names"
        )
    elif names is not None:
        check_same_names(names, expected)


def fitted_names(estimator):
    """Return the names of the channels seen by `fit` as a tuple, or None."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(names)


def check_same_names(names, expected):
    """Raise unless the names are the expected ones, in the same order.

    Parameters
    ----------
    names, expected : tuple of str
        Names of the input, and names seen by `fit`.
    """
    if tuple(names) == tuple(expected):
        return
    unseen, missing = {*names} - {*expected}, {*expected} - {*names}
    message = "The feature names should match those that were passed during fit.\n"
    if unseen:
        message += f"Feature names unseen at fit time:\n{_listed(unseen)}"
    if missing:
        message += "Feature names seen at fit time, yet now missing:\n"
        message += _listed(missing)
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(message)


def _listed(names):
    rows = [f"- {name}\n" for name in sorted(names)]
    return "".join(rows[:LISTED]) + "- ...\n" * (len(rows) > LISTED)
