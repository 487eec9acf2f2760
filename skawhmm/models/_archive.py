"""Files of models: npz archives with a versioned JSON header, never a pickle."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from skawhmm.emissions._registry import FAMILIES
from skawhmm.models._exchange import parts_of
from skawhmm.utils._archives import archived_arrays, is_inside
from skawhmm.utils._whole_files import whole_file

KIND = "skawhmm.HMMBatch"
# The version that is written, the newest that can be read.
VERSION = 1
HEADER = "header"
# Begins the names of info columns.
INFO = "info."
# Endings that promise something else than what is written.
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
    suffix = os.path.splitext(path)[1].lower()
    if suffix in FOREIGN_SUFFIXES:
        raise ValueError(
            f"path must name an archive of arrays, such as 'models.npz', got "
            f"{os.fspath(path)!r}, which names another format."
        )
    emission = models.emission
    if not emission.is_stored:
        raise TypeError(
            "Only models with Gaussian states, symbols or counts can be saved, got "
            f"states of kind {emission.name!r}."
        )
    if not len(models):
        raise ValueError("A batch that is saved must hold models, got none.")
    columns = {f"{INFO}{name}": column for name, column in models.info.items()}
    arrays = {**models._arrays(), **emission.extras, **columns}
    outside = [name for name in arrays if not is_inside(name)]
    if outside:
        raise ValueError(
            f"Columns that are saved must not be named like a place in another folder, "
            f"got {outside[0]!r}."
        )
    header = {
        "kind": KIND,
        "version": VERSION,
        "emission": emission.name,
        "masked": models.observed is not None,
        "arrays": sorted(arrays),
    }
    named: dict[str, Any] = {HEADER: np.array(json.dumps(header)), **arrays}
    with whole_file(path) as file:
        np.savez(file, **named)


def stored_parts(path):
    """Return the parts of the models in a file that `save_models` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    parts : dict
        Arguments of `HMMBatch._of`.
    """
    header, arrays = _read(path)
    family = FAMILIES.get(str(header.get("emission")))
    if family is None:
        raise ValueError(
            f"{os.fspath(path)!r} must hold states of a known kind, one of "
            f"{list(FAMILIES)}, got {header.get('emission')!r}."
        )
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
    parts, unknown = parts_of(family, arrays)
    if unknown:
        raise ValueError(
            f"{os.fspath(path)!r} must not hold other arrays, got {unknown}."
        )
    return {**parts, "info": info}


def _read(path):
    """Return the header and the arrays of a file, which agree."""
    try:
        arrays = archived_arrays(Path(path))
    except ValueError as error:
        raise ValueError(
            f"{os.fspath(path)!r} must be a complete {KIND} file, but cannot be read "
            f"as one ({error}): it was cut short, damaged or is something else. "
            "HMMBatch.save writes such files."
        ) from error
    try:
        header = json.loads(str(arrays.pop(HEADER)))
        kind, version = header["kind"], int(header["version"])
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(
            f"{os.fspath(path)!r} must be a {KIND} file, got an archive without its "
            "header. HMMBatch.save writes such files."
        ) from error
    if kind != KIND:
        raise ValueError(
            f"{os.fspath(path)!r} must hold a {KIND}, got a {str(kind)[:40]}."
        )
    if version > VERSION:
        raise ValueError(
            f"{os.fspath(path)!r} has version {version} of the {KIND} format; this "
            f"skawhmm reads up to version {VERSION}. A newer skawhmm wrote it."
        )
    if header.get("arrays") != sorted(arrays):
        raise ValueError(
            f"{os.fspath(path)!r} must hold the arrays {header.get('arrays')}, got "
            f"{sorted(arrays)}: it is damaged."
        )
    return header, arrays
