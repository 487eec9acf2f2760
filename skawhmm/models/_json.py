"""Models as JSON text, with one entry per model and the names of array files."""

import json
import math

import numpy as np

from skawhmm.models._archive import (
    HEADER_KEYS,
    check_header,
    check_stored,
    header_of,
    stored_template,
)
from skawhmm.models._counts import NAMES, Counts
from skawhmm.models._exchange import SHARED, model_parts
from skawhmm.utils._numbers import real_array

# Keys that an entry of `models` may have besides the parameters of its states.
ENTRY = ("transmats", "startprobs", "weights", "observed", *NAMES)


def json_text(models):
    """Return models as JSON.

    Parameters
    ----------
    models : HMMBatch
        The models.

    Returns
    -------
    text : str
        The text; numbers have all their digits.
    """
    check_stored(models)
    arrays = models._arrays()
    if models.observed is None:
        del arrays["observed"]
    content = {
        **header_of(models),
        **{name: v.tolist() for name, v in models.emission.extras.items()},
        "info": {name: _column(name, column) for name, column in models.info.items()},
        "models": [
            {name: _own(name, array[n], size) for name, array in arrays.items()}
            for n, size in enumerate(models.n_components)
        ],
    }
    return json.dumps(content, allow_nan=False)


def _own(name, array, size):
    """Return the array of one model as lists, without padding."""
    if name == "observed":
        return array.tolist()
    if name in {"transmats", NAMES[1]}:
        return array[:size, :size].tolist()
    return array[:size].tolist()


def _column(name, column):
    """Return an info column as a list, with null for NaN."""
    if column.dtype.kind not in "biufU":
        raise TypeError(
            f"info[{name!r}] must hold numbers, booleans or strings to be written as "
            f"JSON, got {column.dtype}."
        )
    if column.dtype.kind == "f":
        allowed = np.isfinite(column) | (np.isnan(column) & (column.ndim == 1))
        if not allowed.all():
            raise ValueError(
                f"info[{name!r}] must be finite to be written as JSON, got "
                f"{column[~allowed][0]}."
            )
    if column.dtype.kind == "f" and column.ndim == 1:
        return [None if math.isnan(v) else v for v in column.tolist()]
    return column.tolist()


def json_content(text, where):
    """Return the content of JSON text, or raise if it is damaged."""

    def refused(word):
        raise ValueError(f"{word} is not a number of JSON")

    try:
        return json.loads(text, parse_constant=refused)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{where} must be JSON, but cannot be read as it ({error}): it was cut "
            "short, damaged or is something else."
        ) from error


def is_own(content):
    """Whether the content of JSON declares our format."""
    return isinstance(content, dict) and "kind" in content


def json_parts(content, where):
    """Return the parts of models from JSON, written by `json_text` or another program.

    Parameters
    ----------
    content : dict
        The content of the JSON.

    where : str
        The text as the caller knows it.

    Returns
    -------
    parts : dict
        Arguments of `HMMBatch._of`.
    """
    check_header(content, where)
    family = stored_template(content, where)
    shared = {key: content[key] for key in SHARED if key in content}
    known = {*HEADER_KEYS, *family.shared_names, "info", "models"}
    _check_keys(content, known, {"models"}, where)
    entries = content["models"]
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{where} must hold a list of models that is not empty.")
    states, models = {*family.parameter_names}, []
    for n, entry in enumerate(entries):
        place = f"models[{n}] of {where}"
        if not isinstance(entry, dict):
            raise TypeError(
                f"{place} must hold arrays by name, got {type(entry).__name__}."
            )
        _check_keys(entry, {*ENTRY, *states}, {"transmats", *states}, place)
        arrays = {key: _array(key, value, place) for key, value in entry.items()}
        models.append({**arrays, **shared})
    counts = _counts(models, where)
    info = content.get("info", {})
    if not isinstance(info, dict):
        raise TypeError(f"{where} must hold info columns by name, got {info!r:.40}.")
    return {
        **model_parts(models, [family]),
        "info": {key: _read_column(key, v, where) for key, v in info.items()},
        "feature_names": content.get("feature_names"),
        "counts": counts,
    }


def _check_keys(group, known, needed, where):
    if not needed <= {*group} <= known:
        raise ValueError(
            f"{where} must hold {sorted(needed)} and may hold "
            f"{sorted(known - needed)}, got {sorted(group)}."
        )


def _array(name, value, where):
    if name == "observed":
        return np.array(value)
    try:
        return real_array(f"{name} of {where}", value)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _counts(models, where):
    """Remove the expected counts from the arrays of models and return them, or None."""
    given = [tuple(model.pop(name, None) for name in NAMES) for model in models]
    if all(part is None for pair in given for part in pair):
        return None
    sizes = [len(model["transmats"]) for model in models]
    for n, (pair, size) in enumerate(zip(given, sizes, strict=True)):
        for name, part, shape in zip(NAMES, pair, ((size,), (size, size)), strict=True):
            if part is None or part.shape != shape or not (part >= 0).all():
                raise ValueError(
                    f"models[{n}] of {where} must hold {name} of shape {shape} that "
                    "are not negative, as all models or none."
                )
    return Counts.stacked(*zip(*given, strict=True))


def _read_column(name, column, where):
    """Return an info column as an array; null among numbers becomes NaN."""
    if not isinstance(column, list):
        raise TypeError(
            f"info[{name!r}] of {where} must be a list, got {column!r:.40}."
        )
    if None in column:
        return real_array(
            f"info[{name!r}] of {where}", [math.nan if v is None else v for v in column]
        )
    return column
