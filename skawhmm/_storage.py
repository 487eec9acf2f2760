"""Arrays in a file: an npz archive with a versioned JSON header, never a pickle."""

import json
import os
import uuid
import zipfile
import zlib
from pathlib import Path

import numpy as np

HEADER = "header"


def save_arrays(path, header, arrays):
    """Write arrays and a header to `path`, all of it or nothing.

    Parameters
    ----------
    path : str or path-like
        The file; it is replaced if it exists.

    header : dict
        What JSON can hold.

    arrays : dict of ndarray
        Arrays by name.
    """
    path = Path(path)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with open(draft, "xb") as file:
            np.savez(file, **{HEADER: np.array(json.dumps(header))}, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def load_arrays(path, kind, version):
    """Read what `save_arrays` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    kind : str
        What the header must call itself.

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
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, TypeError) as error:
        raise ValueError(
            f"{os.fspath(path)!r} must be a complete {kind} file, but cannot be read "
            f"as one ({error}): it was cut short, damaged or is something else."
        ) from error
    try:
        header = json.loads(str(arrays.pop(HEADER)))
        found = header["kind"], header["version"]
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{os.fspath(path)!r} must be a {kind} file, got an archive without its "
            f"header."
        ) from error
    if found[0] != kind:
        raise ValueError(f"{os.fspath(path)!r} must hold a {kind}, got a {found[0]}.")
    if found[1] > version:
        raise ValueError(
            f"{os.fspath(path)!r} has version {found[1]} of the {kind} format; this "
            f"skawhmm reads up to version {version}. A newer skawhmm wrote it."
        )
    return header, arrays
