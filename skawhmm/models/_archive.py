"""Files of models: npz archives with a versioned JSON header, never a pickle."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from skawhmm.emissions._registry import STORED_FAMILIES, check_emission
from skawhmm.models._counts import NAMES, Counts
from skawhmm.models._exchange import parts_of
from skawhmm.utils._archives import archived_arrays, is_inside
from skawhmm.utils._checks import is_integer
from skawhmm.utils._numbers import real_array
from skawhmm.utils._whole_files import check_path, whole_file

KIND = "skawhmm.HMMBatch"
# The newest version that can be read. Counts came with version 2; models without them
# are still written as version 1.
VERSION = 2
HEADER = "header"
# Fields about all models, in the headers of files and in JSON.
HEADER_KEYS = ("kind", "version", "emission", "options", "feature_names")
# Prefix of the names of info columns.
INFO = "info."
# File endings of other formats, which would be misleading.
FOREIGN_SUFFIXES = {
    *(".csv", ".h5", ".hdf5", ".joblib", ".json", ".mat", ".npy", ".parquet"),
    *(".pickle", ".pkl", ".txt"),
}


def save_models(path, models):
    """Write models to a file, completely or not at all.

    Parameters
    ----------
    path : str or path-like
        The file; it is replaced if it exists.

    models : HMMBatch
        The models.
    """
    check_path("path", path)
    suffix = os.path.splitext(path)[1].lower()
    if suffix in FOREIGN_SUFFIXES:
        raise ValueError(
            f"path must name an archive of arrays, such as 'models.npz', got "
            f"{os.fspath(path)!r}, which names another format."
        )
    header, arrays = header_and_arrays(models)
    named: dict[str, Any] = {HEADER: np.array(json.dumps(header)), **arrays}
    with whole_file(path) as file:
        np.savez(file, **named)


def header_and_arrays(models):
    """Return the header of a file of models, and their arrays by name."""
    check_stored(models)
    columns = {f"{INFO}{name}": column for name, column in models.info.items()}
    arrays = {**models._arrays(), **models.emission.extras, **columns}
    outside = [name for name in arrays if not is_inside(name)]
    if outside:
        raise ValueError(
            f"Columns that are saved must not be named like a place in another folder, "
            f"got {outside[0]!r}."
        )
    header = {
        **header_of(models),
        "masked": models.observed is not None,
        "arrays": sorted(arrays),
    }
    return header, arrays


def check_stored(models):
    """Raise unless arrays define the models, so that a file can hold them."""
    if not models.emission.is_stored:
        raise TypeError(
            "Models whose states are given by their costs cannot be saved, got states "
            f"of kind {models.emission.name!r}."
        )
    if not len(models):
        raise ValueError("A batch that is saved must hold models, got none.")


def header_of(models):
    """Return the fields that headers of files and JSON store about all models."""
    header = {
        "kind": KIND,
        "version": 1 if models.counts is None else VERSION,
        "emission": models.emission.name,
    }
    if models.emission.stored_options:
        header["options"] = models.emission.stored_options
    if models.feature_names is not None:
        header["feature_names"] = models.feature_names
    return header


def check_header(header, where):
    """Raise unless a header belongs to models, in a version that can be read.

    Parameters
    ----------
    header : dict
        The header.

    where : str
        The file or the text as the caller knows it.
    """
    kind, version = header.get("kind"), header.get("version")
    if kind != KIND:
        raise ValueError(f"{where} must hold a {KIND}, got a {str(kind)[:40]}.")
    if not is_integer(version) or version < 1:
        raise ValueError(
            f"{where} must have the version of its format, an integer from 1, got "
            f"{str(version)[:40]!r}."
        )
    if version > VERSION:
        raise ValueError(
            f"{where} has version {version} of the {KIND} format; this skawhmm reads "
            f"up to version {VERSION}. A newer skawhmm wrote it."
        )
    names = header.get("feature_names")
    if names is not None and not isinstance(names, list):
        raise ValueError(
            f"{where} must hold a list of feature_names, got {str(names)[:40]!r}: it "
            "is damaged."
        )


def stored_parts(path, emission=None):
    """Return the parts of the models in a file that `save_models` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    emission : Emission, default=None
        Template of the states, needed for user-defined families.

    Returns
    -------
    parts : dict
        Arguments of `HMMBatch._of`.
    """
    header, arrays = _read(path)
    return parts_in(path, header, arrays, emission)


def parts_in(path, header, arrays, emission=None):
    """Return the parts of models, given the results of `header_and_arrays`.

    `path` is the file in errors; the other parameters are those of `stored_parts`.
    """
    check_header(header, repr(os.fspath(path)))
    if header.get("arrays") != sorted(arrays):
        raise ValueError(
            f"{os.fspath(path)!r} must hold the arrays {header.get('arrays')}, got "
            f"{sorted(arrays)}: it is damaged."
        )
    family = _stored_family(path, header, emission)
    needed = {"transmats", "observed", *family.parameter_names}
    if not needed <= arrays.keys():
        raise ValueError(
            f"{os.fspath(path)!r} must hold the arrays {sorted(needed)}, got "
            f"{sorted(arrays)}: it is damaged."
        )
    info = {
        name.removeprefix(INFO): arrays.pop(name)
        for name in list(arrays)
        if name.startswith(INFO)
    }
    if not header.get("masked"):
        del arrays["observed"]
    counts = _stored_counts(path, arrays)
    parts, unknown = parts_of(family, arrays)
    if unknown:
        raise ValueError(
            f"{os.fspath(path)!r} must not hold other arrays, got {unknown}."
        )
    return {
        **parts,
        "info": info,
        "feature_names": header.get("feature_names"),
        "counts": counts,
    }


def _stored_family(path, header, emission):
    """Return the template of the states in a file, or raise if it is not known."""
    name = header.get("emission")
    if emission is not None:
        if check_emission("emission", emission).name != name:
            raise ValueError(
                f"emission must be of the kind that {os.fspath(path)!r} holds, "
                f"{name!r}, got {emission!r}."
            )
        return emission
    hint = (
        " States of a family of your own are read by HMMBatch.load(path, "
        "emission=...), which takes an instance of it."
    )
    return stored_template(header, repr(os.fspath(path)), hint)


def stored_template(header, where, hint=""):
    """Return the template of the states that a header names, or raise.

    Parameters
    ----------
    header : dict
        The header, with the name of the family and its options.

    where : str
        The file or the text as the caller knows it.

    hint : str, default=""
        What to do if the family is not known.

    Returns
    -------
    template : Emission
        The template.
    """
    name = header.get("emission")
    if not isinstance(name, str) or name not in STORED_FAMILIES:
        raise ValueError(
            f"{where} must hold states of a known kind, one of "
            f"{list(STORED_FAMILIES)}, got {str(name)[:40]!r}.{hint}"
        )
    try:
        return STORED_FAMILIES[name].from_stored(header.get("options", {}))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{where} must hold the options of states of kind {name!r}, but they are "
            f"wrong ({error}).{hint}"
        ) from error


def _stored_counts(path, arrays):
    """Remove the expected counts from the arrays of a file and return them, or None."""
    stored = [arrays.pop(name) for name in NAMES if name in arrays]
    if not stored:
        return None
    shape = arrays["transmats"].shape
    shapes = [array.shape for array in stored]
    if shapes != [shape[:2], shape]:
        raise ValueError(
            f"{os.fspath(path)!r} must hold counts of shape {shape[:2]} and {shape}, "
            f"got {shapes}: it is damaged."
        )
    try:
        counts = Counts(*(real_array("counts", array) for array in stored))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{os.fspath(path)!r} must hold counts that are numbers ({error}): it is "
            "damaged."
        ) from error
    for array in (counts.states, counts.transitions):
        if not (np.isfinite(array) & (array >= 0)).all():
            raise ValueError(
                f"{os.fspath(path)!r} must hold counts that are finite and not "
                "negative: it is damaged."
            )
    return counts


def _read(path):
    """Return the header and the arrays of a file, or raise unless they agree."""
    check_path("path", path)
    try:
        arrays = archived_arrays(Path(path))
    except ValueError as error:
        raise ValueError(
            f"{os.fspath(path)!r} must be a complete {KIND} file, but cannot be read "
            f"as one ({error}): it was cut short, damaged or is something else. "
            "HMMBatch.save writes such files."
        ) from error
    try:
        header = dict(json.loads(str(arrays.pop(HEADER))))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(
            f"{os.fspath(path)!r} must be a {KIND} file, got an archive without its "
            "header. HMMBatch.save writes such files."
        ) from error
    return header, arrays
