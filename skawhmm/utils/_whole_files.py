"""Files that are written completely or not at all."""

import os
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole_file(path):
    """Open a file to write that takes its name only once it is on the disk.

    Parameters
    ----------
    path : str or path-like
        The file; it is replaced if it exists, and left as it is if writing fails. The
        error then names this file.

    Yields
    ------
    file : file object
        Open to write bytes.
    """
    path = Path(path)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with open(draft, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno is not None:
            # That of a full disk names no file, others name the draft.
            error.filename = os.fspath(path)
        # What cannot be written may not be removed either: the first error counts.
        with suppress(OSError):
            draft.unlink()
        raise
