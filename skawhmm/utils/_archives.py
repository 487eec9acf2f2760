"""Zip archives and their arrays, read without trusting their own declarations.

Nothing in an archive is executed or unpickled, and its names are never used as paths.
Declared sizes are compared with the actual content before memory is allocated.
"""

import io
import math
import sys
import tokenize
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import PurePosixPath, PureWindowsPath

import numpy as np

# An archive may unpack to this many times its own size, or to MIN_UNPACKED bytes if
# that is more. Numbers as text unpack to about 4 times their size; ten times is rare.
MAX_RATIO = 100
MIN_UNPACKED = 1 << 24

# Members are unpacked in pieces of this many bytes, so that a false size does no harm.
PIECE = 1 << 20

# Exceptions of zipfile for damaged, encrypted or unsupported archives.
ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    # Raised by zipfile for unknown compression methods.
    NotImplementedError,
    OSError,
    RuntimeError,
    UnicodeDecodeError,
)

# Exceptions of numpy's header reader, depending on the damage.
HEADER_ERRORS = (
    ValueError,
    KeyError,
    TypeError,
    SyntaxError,
    RecursionError,
    tokenize.TokenError,
)


def is_inside(name):
    """Whether the name of a file stays inside its folder."""
    kinds = PurePosixPath(name), PureWindowsPath(name)
    return not any(path.anchor or ".." in path.parts for path in kinds)


def open_archive(path):
    """Return a zip archive whose names and sizes have been checked.

    Parameters
    ----------
    path : pathlib.Path
        The file.

    Returns
    -------
    archive : zipfile.ZipFile
        The archive, open. A ValueError says what is wrong with it.
    """
    size = path.stat().st_size
    if path.is_dir():
        raise ValueError("it is a folder")
    try:
        archive = zipfile.ZipFile(path)
    except ZIP_ERRORS as error:
        raise ValueError(f"no complete zip archive ({error})") from error
    try:
        _check_members(archive.infolist(), size)
    except ValueError:
        archive.close()
        raise
    return archive


def _check_members(members, size):
    outside = [member.filename for member in members if not is_inside(member.filename)]
    if outside:
        raise ValueError(f"{outside[0]!r} leads to a place outside of the archive")
    total = sum(member.file_size for member in members)
    limit = max(MAX_RATIO * size, MIN_UNPACKED)
    if total > limit:
        raise ValueError(
            f"its {size} bytes unpack to {total} bytes, at most {limit} are read"
        )


def member_bytes(archive, name):
    """Return the content of a member, after checking its declared length.

    Parameters
    ----------
    archive : zipfile.ZipFile
        From `open_archive`.

    name : str
        Name of the member.

    Returns
    -------
    content : bytes
        The content. A ValueError is raised if it is damaged.
    """
    member = archive.getinfo(name)
    if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise ValueError(f"{name!r} is packed in a way that is not read")
    try:
        with archive.open(member) as file:
            pieces = list(iter(lambda: file.read(PIECE), b""))
    except ZIP_ERRORS as error:
        raise ValueError(f"{name!r} cannot be unpacked ({error})") from error
    content = b"".join(pieces)
    if len(content) != member.file_size:
        raise ValueError(
            f"{name!r} must have {member.file_size} bytes, got {len(content)}"
        )
    return content


def archived_arrays(path):
    """Return all arrays of an `.npz` file."""
    with open_archive(path) as archive, room_for(path):
        return {
            name.removesuffix(".npy"): stored_array(member_bytes(archive, name), name)
            for name in archive.namelist()
        }


@contextmanager
def room_for(path):
    """Name the file in the error if its content does not fit into memory."""
    try:
        yield
    except MemoryError as error:
        with open_archive(path) as archive:
            size = sum(member.file_size for member in archive.infolist()) / 1e6
        raise MemoryError(
            f"{str(path)!r} holds {size:.0f} MB, for which there is no room in memory."
        ) from error


def stored_array(content, name):
    """Return an array in numpy's `.npy` format.

    Parameters
    ----------
    content : bytes
        The file.

    name : str
        Its name in errors.

    Returns
    -------
    array : ndarray
        The array. A ValueError is raised for objects, and if the shape in the header
        does not match the data.
    """
    file = io.BytesIO(content)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        shape, by_columns, dtype = readers[np.lib.format.read_magic(file)](file)
    except HEADER_ERRORS as error:
        raise ValueError(
            f"{name!r} is not an array that can be read ({error})"
        ) from error
    # A header may say True for 1.
    shape = tuple(map(int, shape))
    if dtype.hasobject:
        raise ValueError(f"{name!r} holds objects, which are not read")
    expected = math.prod(shape) * dtype.itemsize
    if any(length < 0 for length in shape) or len(content) - file.tell() != expected:
        raise ValueError(
            f"{name!r} must have {expected} bytes for the shape {shape}, got "
            f"{len(content) - file.tell()}"
        )
    if expected == 0:
        if math.prod(n or 1 for n in shape) > MIN_UNPACKED:
            raise ValueError(f"{name!r} cannot have the shape {shape}")
        return np.zeros(shape, dtype)
    if dtype.kind == "U":
        # NumPy would fail later, on first use of an invalid character code.
        codes = np.frombuffer(content, dtype.byteorder + "u4", offset=file.tell())
        if codes.max() > sys.maxunicode:
            raise ValueError(f"{name!r} holds text with characters that do not exist")
    flat = np.frombuffer(content, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if by_columns else "C").copy()
