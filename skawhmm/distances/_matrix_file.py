"""Matrices in files that are filled tile by tile and survive interruptions.

A second file, ``matrix.npy.journal``, has one line that says what is computed, then one
line per tile that was brought to the disk, with a checksum of its numbers. A tile is
entered after it was written to the matrix, and trusted only if its numbers still have
that checksum: tiles that were cut short, damaged or replaced are computed again.
"""

import errno
import hashlib
import json
import os
import time
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np

from skawhmm.utils._whole_files import regular_file

JOURNAL_KIND = "skawhmm.matrix"
JOURNAL_VERSION = 2

# Finished tiles are written to disk at this interval, in seconds: an interruption loses
# no more than that.
SECURING_INTERVAL = 2.0

# Zeros are written in pieces of this many bytes where a file cannot be allocated.
ZEROS = 1 << 20

# The byte that a writer locks on Windows, beyond the end of any journal.
LOCKED_BYTE = 1 << 40


class Journal:
    """The tiles of a matrix that are known to be in its file.

    Only one journal of a file can be open at a time, across all processes. Use it as a
    context manager to close it.

    Parameters
    ----------
    path : path-like
        The matrix.

    plan : dict
        Description of the matrix, as JSON. A journal with another plan is rejected.

    Attributes
    ----------
    checksums : dict
        The checksum of each tile that is on disk, by tile number.
    """

    def __init__(self, path, plan):
        self.matrix_name = os.fspath(path)
        self.path = regular_file("out", f"{self.matrix_name}.journal")
        header = {"kind": JOURNAL_KIND, "version": JOURNAL_VERSION, **plan}
        self.header = json.dumps(header, sort_keys=True)
        self.checksums = {}
        self._pending = {}
        self._secured = time.monotonic()
        if Path(path).exists() and not self.path.exists():
            raise FileExistsError(
                f"out must name a new file or one that was interrupted, but "
                f"{self.matrix_name!r} exists without a journal: move it away first."
            )
        # Unbuffered: on a full disk, closing would fail again to write the buffer.
        self._file = self.path.open("a+b", buffering=0)
        try:
            self._lock()
            self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Release the lock, so that others can write to the matrix."""
        self._file.close()

    def _lock(self):
        try:
            _lock_file(self._file)
        except (BlockingIOError, PermissionError) as error:
            raise BlockingIOError(
                f"{self.matrix_name!r} is being written by another process or thread: "
                "wait for it, stop it or choose another file."
            ) from error
        except OSError as error:
            # Some file systems have no locks; a matrix may still be written there.
            if error.errno not in {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}:
                raise

    def _read(self):
        self._file.seek(0)
        head, *lines = self._file.read().split(b"\n")
        if not lines and not Path(self.matrix_name).exists():
            # The journal is new, or its first line was cut short.
            self._file.truncate(0)
            self._append(self.header)
            return
        if head != self.header.encode():
            raise ValueError(
                f"{self.matrix_name!r} {_differences(head, self.header)}. Choose "
                f"another file or delete it and {self.path.name!r}."
            )
        for line in lines:
            entry, _, check = line.rpartition(b" ")
            # A line that was cut short or damaged does not count.
            if check == _line_check(entry):
                number, checksum = entry.decode().split(" ")
                self.checksums[int(number)] = checksum

    def add(self, tile, checksum, matrix):
        """Record a tile as written; flush everything to disk from time to time."""
        self._pending[tile] = checksum
        if time.monotonic() - self._secured > SECURING_INTERVAL:
            self.secure(matrix)

    def secure(self, matrix):
        """Flush the matrix to disk, then the journal."""
        matrix.flush()
        entries = (f"{n} {checksum}" for n, checksum in self._pending.items())
        lines = (f"{entry} {_line_check(entry.encode()).decode()}" for entry in entries)
        # The last line may have been cut short: start a new one.
        self._append("", *lines)
        self.checksums.update(self._pending)
        self._pending.clear()
        self._secured = time.monotonic()

    def _append(self, *lines):
        rest = "".join(f"{line}\n" for line in lines).encode()
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            # The error for a full disk has no file name.
            error.filename = os.fspath(self.path)
            raise


def _lock_file(file):
    """Lock an open file until it is closed or its process ends."""
    try:
        import fcntl
    except ImportError:
        import msvcrt

        file.seek(LOCKED_BYTE)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _line_check(entry):
    return b"%08x" % zlib.crc32(entry)


def tile_checksum(values):
    """Return 16 hexadecimal digits that identify the numbers of a tile."""
    content = np.ascontiguousarray(values).tobytes()
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _differences(found, wanted):
    """Return why a journal does not belong to the plan."""
    try:
        one, two = json.loads(found), json.loads(wanted)
        version = one["version"]
        if version != JOURNAL_VERSION:
            when = "an earlier" if version < JOURNAL_VERSION else "a later"
            return f"was begun by {when} version of skawhmm"
    except (KeyError, TypeError, ValueError, RecursionError):
        return "has a journal that cannot be read"
    names = sorted(
        key for key in one.keys() | two.keys() if one.get(key) != two.get(key)
    )
    changes = (f"{key} {one.get(key)!r}, now {two.get(key)!r}" for key in names)
    return f"was begun with other models or parameters: {', '.join(changes)}"


def open_matrix(path, shape, dtype, plan):
    """Return a matrix in a file, and the journal of its finished tiles."""
    # Links to the same matrix share one journal, next to the file itself.
    path, dtype = regular_file("out", path), np.dtype(dtype)
    journal = Journal(path, {**plan, "shape": list(shape), "dtype": dtype.str})
    try:
        offset = _allocated(path, shape, dtype)
        return np.memmap(path, dtype, "r+", offset, shape), journal
    except BaseException:
        journal.close()
        raise


def _allocated(path, shape, dtype):
    """Create the file of a matrix at full size; return the offset of its numbers."""
    head = _npy_header(shape, dtype)
    size = len(head) + int(np.prod(shape, dtype=object)) * dtype.itemsize
    if path.exists():
        with path.open("r+b") as file:
            if file.read(len(head)) != head or path.stat().st_size > size:
                raise ValueError(
                    f"{os.fspath(path)!r} must be the matrix that its journal "
                    "describes, but is another file or damaged in its first bytes: "
                    "move it away to start again."
                )
            _allocate(file, size)
        return len(head)
    # A file under its final name is always complete, so none is overwritten. Unlike the
    # drafts of `whole_file`, this draft has a fixed name: the next process overwrites
    # the draft, possibly large, of a killed one. The journal is locked.
    draft = path.with_name(path.name + ".draft")
    try:
        with draft.open("w+b") as file:
            file.write(head)
            file.flush()
            _allocate(file, size)
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return len(head)


def _npy_header(shape, dtype):
    header = BytesIO()
    kind = {"descr": dtype.str, "fortran_order": False, "shape": tuple(shape)}
    np.lib.format.write_array_header_1_0(header, kind)
    return header.getvalue()


def _allocate(file, size):
    """Reserve the disk space of a file: a disk full later would kill the process."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
            return
        file.seek(0, os.SEEK_END)
        while (missing := size - file.tell()) > 0:
            file.write(bytes(min(missing, ZEROS)))
        file.flush()
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise
        raise OSError(
            error.errno,
            f"the matrix needs {size} bytes, for which there is no room "
            f"({error.strerror})",
            os.fspath(file.name),
        ) from error


def check_matrix(name, matrix, shape):
    """Raise unless an array of floats has a given shape and can be written to."""
    floating = np.issubdtype(matrix.dtype, np.floating)
    if matrix.shape != shape or not floating or not matrix.flags.writeable:
        raise ValueError(
            f"{name} must be a writable array of floating-point numbers of shape "
            f"{shape}, got {matrix.dtype} of shape {matrix.shape}."
        )
