"""Arrays in files: npz archives with a versioned JSON header, never a pickle."""

import json
import os
import uuid
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

HEADER = "header"

# What reading a damaged archive may raise, depending on where the damage is. The
# NotImplementedError is zipfile's, if the damage names a compression it does not know.
READ_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


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
    path = Path(path)
    header = {**header, "arrays": sorted(arrays)}
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with open(draft, "xb") as file:
            named: dict[str, Any] = {HEADER: np.array(json.dumps(header)), **arrays}
            np.savez(file, **named)
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
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        except READ_ERRORS as error:
            # NumPy advises to unpickle what it does not know, which may run code.
            reason = "" if "pickle" in str(error) else f" ({error})"
            raise ValueError(
                f"{os.fspath(path)!r} must be a complete {kind} file, but cannot be "
                f"read as one{reason}: it was cut short, damaged or is something else. "
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
