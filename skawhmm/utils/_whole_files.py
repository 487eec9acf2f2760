"""Files that are written completely or not at all."""

import os
import uuid
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path):
    """Open a file to write that takes its name only once it is on the disk.

    Parameters
    ----------
    path : str or path-like
        The file; it is replaced if it exists, and left as it is if writing fails.

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
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
