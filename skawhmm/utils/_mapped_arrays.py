"""Memory-mapped files of arrays: npz archives with aligned members.

`numpy.load` reads them like any other archive. The data of an array begin at a multiple
of `ALIGNMENT` bytes and are not compressed, so they can be mapped to memory.
"""

import math
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from skawhmm.utils._archives import HEADER_ERRORS, ZIP_ERRORS, open_archive
from skawhmm.utils._whole_files import whole_file

ALIGNMENT = 64

# Bytes that zipfile adds to the header of a member to allow large sizes.
LARGE_FIELD = 20

# The fixed part of a header. It ends with the lengths of the name and the extra field
# that follow it.
FIXED_HEADER = 30
LENGTHS = struct.Struct("<26xHH")

# Kind of an extra field used as padding.
PADDING = 0xD935


def write_arrays(path, arrays):
    """Write arrays to a file, completely or not at all.

    Parameters
    ----------
    path : str or path-like
        The file; it is replaced if it exists.

    arrays : dict of ndarray
        The arrays by name; arrays of objects are not allowed.
    """
    with whole_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")
            taken = file.tell() + FIXED_HEADER + len(member.filename.encode())
            gap = -(taken + LARGE_FIELD + 4) % ALIGNMENT
            member.extra = struct.pack("<HH", PADDING, gap) + bytes(gap)
            with archive.open(member, "w", force_zip64=True) as place:
                np.lib.format.write_array(
                    place, np.asanyarray(array), allow_pickle=False
                )


def mapped_arrays(path):
    """Return the arrays of a file written by `write_arrays`, mapped to memory.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    arrays : dict of ndarray
        The arrays by name, read-only. Data are read when they are used, without
        verifying the checksums of the file. A ValueError is raised if the file is not
        such an archive, or is incomplete.
    """
    path = Path(path)
    with open_archive(path) as archive, open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return {
            member.filename.removesuffix(".npy"): _mapped(file, size, member)
            for member in archive.infolist()
        }


def _mapped(file, size, member):
    """Return the array in one member of an archive."""
    name = member.filename
    if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
        raise ValueError(f"{name!r} is packed, so that it cannot be mapped")
    try:
        file.seek(member.header_offset)
        lengths = LENGTHS.unpack(file.read(FIXED_HEADER))
        start = member.header_offset + FIXED_HEADER + sum(lengths)
        file.seek(start)
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError("an unknown version")
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    except (*HEADER_ERRORS, *ZIP_ERRORS, struct.error) as error:
        raise ValueError(f"{name!r} is not an array ({error})") from error
    shape, offset = tuple(map(int, shape)), file.tell()
    n_bytes = math.prod(shape) * dtype.itemsize
    is_whole = offset + n_bytes == start + member.file_size <= size
    if dtype.hasobject or any(n < 0 for n in shape) or not is_whole:
        raise ValueError(f"{name!r} must have {n_bytes} bytes for the shape {shape}")
    if n_bytes == 0:
        return np.zeros(shape, dtype)
    mapped: Any = np.memmap(file, dtype, "r", offset, shape, "F" if by_columns else "C")
    # A plain array: results computed from a memmap would be labelled memmap, too.
    return np.asarray(mapped)
