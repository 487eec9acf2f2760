"""Matrices in files that grow tile by tile and survive being interrupted.

A second file, ``matrix.npy.journal``, has one line that says what is computed, then one
line per tile that is known to be in the matrix. A tile is entered in the journal only
after it was written to the matrix, so a tile that was interrupted is computed again.
"""

import json
import os
import time
import zlib
from pathlib import Path

import numpy as np

JOURNAL_KIND = "skawhmm.matrix"
JOURNAL_VERSION = 1

# Finished tiles are written to disk at this interval, in seconds: an interruption loses
# no more than that.
SECURING_INTERVAL = 2.0


class Journal:
    """The tiles of a matrix that are known to be in its file.

    Parameters
    ----------
    path : path-like
        The matrix.

    plan : dict
        What is computed: anything that JSON can hold. A journal with another plan is
        refused.

    Attributes
    ----------
    done : set of int
        The tiles in the file.
    """

    def __init__(self, path, plan):
        self.path = Path(f"{os.fspath(path)}.journal")
        header = {"kind": JOURNAL_KIND, "version": JOURNAL_VERSION, **plan}
        self.header = json.dumps(header, sort_keys=True)
        self.done = set()
        self._pending = []
        self._secured = time.monotonic()
        if self.path.exists():
            self._read(os.fspath(path))
        elif Path(path).exists():
            raise FileExistsError(
                f"out must name a new file or one that was interrupted, but "
                f"{os.fspath(path)!r} exists without a journal: move it away first."
            )
        else:
            self._write(self.header + "\n")

    def _read(self, path):
        lines = self.path.read_text(encoding="utf-8").split("\n")
        if lines[0] != self.header:
            raise ValueError(
                f"{path!r} was begun with other models or parameters: "
                f"{_differences(lines[0], self.header)}. Choose another file or "
                f"delete it and {self.path.name!r}."
            )
        for line in lines[1:]:
            number, _, check = line.partition(" ")
            # The last line may be cut short.
            if check == _checksum(number):
                self.done.add(int(number))

    def _write(self, text):
        draft = self.path.with_name(self.path.name + ".draft")
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, self.path)

    def restart(self):
        """Forget all tiles."""
        self.done.clear()
        self._write(self.header + "\n")

    def add(self, tile, matrix):
        """Record a tile as written; from time to time bring all of it to the disk.

        Parameters
        ----------
        tile : int
            Number of the tile.

        matrix : memmap
            The matrix it was written to.
        """
        self._pending.append(tile)
        if time.monotonic() - self._secured > SECURING_INTERVAL:
            self.secure(matrix)

    def secure(self, matrix):
        """Bring the matrix, then the journal, to the disk.

        Parameters
        ----------
        matrix : memmap
            The matrix.
        """
        matrix.flush()
        with self.path.open("a", encoding="utf-8") as file:
            # After a line that was cut short this starts a new one.
            file.write("\n")
            for tile in self._pending:
                file.write(f"{tile} {_checksum(str(tile))}\n")
            file.flush()
            os.fsync(file.fileno())
        self.done.update(self._pending)
        self._pending.clear()
        self._secured = time.monotonic()


def _checksum(text):
    return f"{zlib.crc32(text.encode()):08x}"


def _differences(found, wanted):
    try:
        one, two = json.loads(found), json.loads(wanted)
    except json.JSONDecodeError:
        return "its journal cannot be read"
    names = sorted(
        key for key in one.keys() | two.keys() if one.get(key) != two.get(key)
    )
    return ", ".join(f"{key} {one.get(key)!r}, now {two.get(key)!r}" for key in names)


def open_matrix(path, shape, dtype, plan):
    """Return a matrix in a file, and the journal of what is in it.

    Parameters
    ----------
    path : str or path-like
        The file, in numpy's ``.npy`` format.

    shape : tuple of int
        Shape of the matrix.

    dtype : dtype
        Type of its numbers.

    plan : dict
        What is computed.

    Returns
    -------
    matrix : memmap
        The matrix; tiles that are not in the journal have no meaning.

    journal : Journal
        The tiles that are there.
    """
    path = Path(path)
    journal = Journal(path, {**plan, "shape": list(shape), "dtype": str(dtype)})
    if journal.done and path.exists():
        matrix = np.lib.format.open_memmap(path, mode="r+")
        if matrix.shape == shape and matrix.dtype == dtype:
            return matrix, journal
    journal.restart()
    return np.lib.format.open_memmap(path, "w+", dtype, shape), journal


def check_matrix(name, matrix, shape):
    """Check that an array can take a result.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    matrix : ndarray
        What was given.

    shape : tuple of int
        The shape it must have.
    """
    floating = np.issubdtype(matrix.dtype, np.floating)
    if matrix.shape != shape or not floating or not matrix.flags.writeable:
        raise ValueError(
            f"{name} must be a writable array of floating-point numbers of shape "
            f"{shape}, got {matrix.dtype} of shape {matrix.shape}."
        )
