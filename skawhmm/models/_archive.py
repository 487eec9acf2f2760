"""Arrays in files: npz archives with a versioned JSON header, never a pickle."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from skawhmm.utils._archives import archived_arrays, is_inside
from skawhmm.utils._whole_files import whole_file

HEADER = "header"


def save_arrays(path, header, arrays):
    """Write arrays and a header to a file, completely or not at all.

    Parameters
    ----------
    path : str or path-like
        The file; it is replaced if it exists.

    header : dict
        Values that JSON can hold.

    arrays : dict of ndarray
        Arrays by name.
    """
    outside = [name for name in arrays if not is_inside(name)]
    if outside:
        raise ValueError(
            f"Columns that are saved must not be named like a place in another folder, "
            f"got {outside[0]!r}."
        )
    header = {**header, "arrays": sorted(arrays)}
    named: dict[str, Any] = {HEADER: np.array(json.dumps(header)), **arrays}
    with whole_file(path) as file:
        np.savez(file, **named)


def load_arrays(path, kind, version):
    """Read what `save_arrays` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    kind : str
        The kind of file that the header must name.

    version : int
        The newest version that can be read.

    Returns
    -------
    header : dict
        The header.

    arrays : dict of ndarray
        The arrays by name.
    """
    try:
        arrays = archived_arrays(Path(path))
    except ValueError as error:
        raise ValueError(
            f"{os.fspath(path)!r} must be a complete {kind} file, but cannot be read "
            f"as one ({error}): it was cut short, damaged or is something else. "
            "HMMBatch.save writes such files."
        ) from error
    try:
        header = json.loads(str(arrays.pop(HEADER)))
        found = header["kind"], int(header["version"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{os.fspath(path)!r} must be a {kind} file, got an archive without its "
            "header. HMMBatch.save writes such files."
        ) from error
    if found[0] != kind:
        raise ValueError(f"{os.fspath(path)!r} must hold a {kind}, got a {found[0]}.")
    if found[1] > version:
        raise ValueError(
            f"{os.fspath(path)!r} has version {found[1]} of the {kind} format; this "
            f"skawhmm reads up to version {version}. A newer skawhmm wrote it."
        )
    if header.get("arrays") != sorted(arrays):
        raise ValueError(
            f"{os.fspath(path)!r} must hold the arrays {header.get('arrays')}, got "
            f"{sorted(arrays)}: it is damaged."
        )
    return header, arrays
