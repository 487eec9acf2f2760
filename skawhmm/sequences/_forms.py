"""Recognise the containers passed as `X`; if one is ambiguous, say what to write."""

import sys
import warnings
from collections.abc import (
    ItemsView,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    Set,
    ValuesView,
)

import numpy as np
from scipy import sparse

# Packages whose objects are recognised by name, without importing them.
PACKAGES = ("pandas", "polars", "pyarrow", "xarray", "awkward")
TABLES = {
    ("pandas", "DataFrame"),
    ("polars", "DataFrame"),
    ("polars", "LazyFrame"),
    ("pyarrow", "Table"),
    ("pyarrow", "RecordBatch"),
}
SERIES = {
    ("pandas", "Series"),
    ("polars", "Series"),
    ("pyarrow", "Array"),
    ("pyarrow", "ChunkedArray"),
}
OTHERS = {("xarray", "DataArray"), ("xarray", "Dataset"), ("awkward", "Array")}

# Usual names of id and time columns, for suggestions in messages.
ID_NAMES = {
    *("id", "case", "instance", "series", "sequence", "subject", "run", "trial"),
    *("recording", "session", "patient", "user", "unit", "name", "file", "speaker"),
}
TIME_NAMES = {
    *("time", "t", "timestamp", "date", "datetime", "frame", "step", "tick", "ds"),
}

# Stack frames in these packages do not belong to the caller.
OURS = ("skawhmm", "sklearn", "joblib")

# A matrix with at least this many rows, and this many per column, looks like a single
# recording with time along its rows. Fewer rows suffice if there are few columns: that
# is a usual number of channels, but an unusually small number of timesteps.
RECORDING_ROWS = 100
RECORDING_RATIO = 20
FEW_COLUMNS = 8
FEW_COLUMNS_ROWS = 10
FEW_COLUMNS_RATIO = 3

# Tolerance for symmetry and the zero diagonal of distances, as a fraction of the
# largest one: distances computed elsewhere have rounding errors.
DISTANCE_ROUNDING = 1e-8
# Smaller matrices could look like distances by chance.
LEAST_DISTANCES = 3

# Libraries whose models `as_models` reads.
LIBRARIES = ("hmmlearn", "dynamax", "pomegranate", "ssm", "glhmm")


def package_type(X):
    """Return the package and the name of a known container, else two empty strings."""
    for base in type(X).__mro__:
        package = base.__module__.split(".")[0]
        if package in PACKAGES:
            known = (package, base.__name__)
            if known in TABLES | SERIES | OTHERS:
                return known
    return ("", "")


def hint_of_foreign(x, name="X"):
    """Return a hint if a model of another library was given, else an empty text."""
    is_model = type(x).__module__.partition(".")[0] in LIBRARIES
    return f" Write: as_models({name})." if is_model else ""


def is_models(X):
    """Whether X is a batch of models; a table may have a column named "emission"."""
    return hasattr(type(X), "emission")


def is_table(X):
    """Whether X is a table of pandas, polars or pyarrow."""
    return package_type(X) in TABLES


def is_bare_frame(X):
    """Whether X is a DataFrame without names: a matrix, as scikit-learn passes it."""
    if package_type(X) != ("pandas", "DataFrame") or X.index.nlevels > 1:
        return False
    plain = [*X.columns] == [*range(X.shape[1])]
    return plain and all(getattr(t, "kind", "O") in "iufb" for t in X.dtypes)


def readable(X, name="X"):
    """Return X as a list or array-like, or raise an error that says what to write.

    Parameters
    ----------
    X : object
        What was given.

    name : str, default="X"
        The argument as the caller knows it.

    Returns
    -------
    X : list, tuple or object
        `X` itself, or a list of its entries.
    """
    kind = package_type(X)
    if is_models(X):
        raise TypeError(
            f"{name} must hold sequences, got an HMMBatch, which holds models already. "
            "Pass it to an estimator that compares models, such as HMMRetriever."
        )
    if kind in SERIES:
        return _entries(X)
    if kind in TABLES:
        if is_bare_frame(X):
            return X
        raise TypeError(_table_message(X, kind, name))
    if kind in OTHERS:
        raise TypeError(
            f"{name} must be a list of arrays or an array, got an object of {kind[0]} "
            f"({kind[1]}), whose axes could be read in several ways. Write: "
            f"{name}, ids = as_sequences({name})."
        )
    if sparse.issparse(X):
        raise TypeError(
            f"Sparse data was passed for {name}, but dense sequences are required: a "
            "list of arrays of shape (n_timesteps, n_features). Use "
            f"{name}.toarray()."
        )
    if isinstance(X, Mapping):
        raise TypeError(_mapping_message(X, name))
    if isinstance(X, Iterator | KeysView | ValuesView | ItemsView | Set):
        order = "sorted" if isinstance(X, set | frozenset) else "list"
        reason = " which can be read only once;" * isinstance(X, Iterator)
        reason = " which has no order;" if order == "sorted" else reason
        raise TypeError(
            f"{name} must be a list of arrays or an array, got a {type(X).__name__},"
            f"{reason} write: {name} = {order}({name})."
        )
    if isinstance(X, type):
        raise TypeError(f"{name} must be a list of sequences, got a class, {X!r}.")
    if X is None or np.isscalar(X):
        shown = "None" if X is None else f"a single {type(X).__name__}"
        hint = " Write [X] if it is one text; files are not read." * isinstance(X, str)
        raise TypeError(f"{name} must be a list of sequences, got {shown}.{hint}")
    if isinstance(X, np.ndarray) and X.dtype.names:
        raise TypeError(
            f"{name} must be a list of arrays or an array of numbers, got a structured "
            f"array with the fields {list(X.dtype.names)}. If its rows are frames, "
            f"write: {name}, ids = as_sequences({name}, id=...), with the name of the "
            "field that identifies sequences."
        )
    is_other = not isinstance(X, list | tuple) and not hasattr(X, "__array__")
    if isinstance(X, Sequence) and is_other:
        return list(X)
    return X


def _entries(X):
    """Return the entries of a Series whose entries are sequences or texts."""
    dtype = getattr(X, "dtype", None)
    if package_type(X)[0] == "pandas":
        is_numeric = getattr(dtype, "kind", "O") in "iufb"
        return X.to_numpy() if is_numeric else X.tolist()
    values = X.to_list() if hasattr(X, "to_list") else X.to_pylist()
    is_number = [isinstance(value, int | float) for value in values[:1]]
    return np.asarray(values, float) if any(is_number) else values


def _table_message(X, kind, name):
    if kind[1] == "LazyFrame":
        return f"{name} must be a list of arrays, got a LazyFrame: call collect first."
    shape = X.shape if hasattr(X, "shape") else (X.num_rows, X.num_columns)
    what = f"a table ({kind[0]} {kind[1]} of {shape[0]} rows and {shape[1]} columns)"
    line = suggested_line(X, name)
    message = f"{name} must be a list of arrays or an array, got {what}. "
    if line is not None and line.endswith(f"as_sequences({name})"):
        return f"{message}Write: {line}."
    if line is None:
        return (
            f"{message}If each row is a univariate sequence, write: {name}, ids = "
            f"as_sequences({name}). If rows are frames, name the column that "
            f"identifies sequences: {name}, ids = as_sequences({name}, id=...)."
        )
    return (
        f"{message}Write: {line}. (This reads one row per frame; if each row is a "
        f"sequence: {name}, ids = as_sequences({name}).)"
    )


def suggested_line(X, name):
    """Return a call that reads a table, guessed from its columns, or None."""
    if getattr(getattr(X, "index", None), "nlevels", 1) > 1:
        return f"{name}, ids = as_sequences({name})"
    names = [*(X.column_names if hasattr(X, "column_names") else X.columns)]
    times = [column for column in names if is_time_name(column)]
    ids = [column for column in names if is_id_name(column)]
    if not ids and not times and all(_is_text(X, c) for c in names):
        # A wide table of symbols.
        return f"{name}, ids = as_sequences({name})"
    ids += [c for c in names if c not in times and _repeats(X, c)]
    if not ids:
        return None
    time = f", time={times[0]!r}" if times else ""
    return f"{name}, ids = as_sequences({name}, id={ids[0]!r}{time})"


def is_id_name(name):
    """Whether a column has a name that columns of ids usually have."""
    lower = str(name).lower()
    return lower in ID_NAMES or lower.endswith(("_id", " id"))


def is_time_name(name):
    """Whether a column has a name that columns of times usually have."""
    return str(name).lower() in TIME_NAMES


def _is_text(X, column):
    """Whether the first value of a column is a text."""
    values = np.asarray(X[column])
    return len(values) > 0 and isinstance(values[0], str)


def _repeats(X, column):
    """Whether a column holds few different names or integers."""
    values = np.asarray(X[column])
    if values.ndim != 1 or values.dtype.kind not in "iuOUT" or len(values) < 2:
        return False
    try:
        return len(set(values.tolist())) <= len(values) / 2
    except TypeError:
        return False


def _mapping_message(X, name):
    if "data" in X and "target" in X:
        return f"{name} must be a list of arrays, got a {type(X).__name__}: give .data."
    return (
        f"{name} must be a list of arrays or an array, got a {type(X).__name__}. "
        f"Write: {name}, ids = as_sequences({name}), which returns its values, and its "
        "keys as ids."
    )


def check_not_lengths(X, y):
    """Raise if `y` holds hmmlearn's lengths, not one label per sequence.

    Parameters
    ----------
    X : object
        What was given as sequences.

    y : array-like or None
        What was given as labels.
    """
    if y is None or getattr(X, "ndim", 0) != 2:
        return
    lengths = np.asarray(y)
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        return
    n_frames = len(X)
    if len(lengths) < n_frames and lengths.sum() == n_frames and (lengths > 0).all():
        raise ValueError(
            f"y must hold one label per sequence, got {len(lengths)} integers that sum "
            f"to the {n_frames} rows of X, as hmmlearn's lengths do. Write: X, ids = "
            "as_sequences(X, lengths=y)."
        )


def warn_of_form(X):
    """Warn if X looks like a single recording, or its axes seem to be swapped.

    Parameters
    ----------
    X : list of ndarray, or array-like of two or three dimensions
        What `fit` was given, after all checks.
    """
    shape = _shape(X)
    if len(shape) == 3 and shape[1] < shape[2]:
        warn_caller(
            f"X was read as {shape[0]} sequences of {shape[1]} timesteps with "
            f"{shape[2]} features. If channels come before time, as in aeon and sktime,"
            ' write: X, ids = as_sequences(X, layout="channels_first").'
        )
    elif len(shape) == 2 and _is_recording(*shape):
        warn_caller(
            f"X of shape {shape} was read as {shape[0]} univariate sequences of "
            f"{shape[1]} timesteps. If it is one recording of {shape[0]} timesteps, "
            "write [X]; if it holds several, X, ids = as_sequences(X, lengths=...); if "
            "it was read as intended, write X[:, :, None] to silence this warning."
        )


def _is_recording(n_rows, n_columns):
    """Whether a matrix looks like one recording, not like a sequence per row."""
    if n_columns <= FEW_COLUMNS:
        return n_rows >= max(FEW_COLUMNS_ROWS, FEW_COLUMNS_RATIO * n_columns)
    return n_rows >= max(RECORDING_ROWS, RECORDING_RATIO * n_columns)


def looks_like_distances(X):
    """Whether X is a matrix of distances, or holds the components of distances.

    Parameters
    ----------
    X : array-like
        What was given as sequences.

    Returns
    -------
    is_distances : bool
        True for numbers of shape (n, n) or (n, n, 2) that are symmetric and not
        negative, 0 on the diagonal, and not 0 everywhere.
    """
    shape = _shape(X)
    if len(shape) not in {2, 3} or shape[2:] not in {(), (2,)}:
        return False
    if shape[0] != shape[1] or shape[0] < LEAST_DISTANCES:
        return False
    try:
        values = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    largest = np.max(values, initial=0.0, where=np.isfinite(values))
    slack = DISTANCE_ROUNDING * largest
    own = np.diagonal(values)
    return bool(
        largest > 0
        and (values >= 0).all()
        and (own <= slack).all()
        and np.allclose(values, values.swapaxes(0, 1), rtol=0, atol=slack)
    )


def _shape(X):
    """Return the shape of an array, or of a list as an array; () if there is none."""
    if not isinstance(X, list | tuple):
        shape = getattr(X, "shape", ())
        return shape if isinstance(shape, tuple) else ()
    shapes = {np.shape(x) for x in X}
    shape = shapes.pop()
    is_rows = len(shape) == 1 and not any(hasattr(x, "__array__") for x in X)
    return (len(X), *shape) if not shapes and (is_rows or len(shape) == 2) else ()


def warn_caller(message):
    """Issue a warning that points to the caller's line outside this package."""
    level, frame = 0, sys._getframe()
    while frame.f_back is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level + 1)


def _is_ours(frame):
    return str(frame.f_globals.get("__name__", "")).split(".")[0] in OURS
