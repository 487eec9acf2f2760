"""Files that are written completely or not at all."""

import errno
import os
import stat
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path

# Characters of a file's name at the beginning of its draft's name, which must not
# exceed the length that file systems allow.
DRAFT_PREFIX = 40


def check_path(name, path):
    """Raise unless `path` is the name of a file."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"{name} must be the name of a file, a str or a path, got "
            f"{type(path).__name__}."
        )


def regular_file(name, path):
    """Return the path of a file to be written, with links followed.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    path : str or path-like
        The file or a link to it; neither the link nor its target need exist.

    Returns
    -------
    path : pathlib.Path
        The path without links. A ValueError is raised for devices, pipes and sockets,
        an OSError for folders and for links in a circle.
    """
    check_path(name, path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
        folder = Path(os.path.realpath(path)).parent
        if not folder.exists():
            raise FileNotFoundError(
                errno.ENOENT,
                f"{name} must name a file in an existing folder (create it first)",
                os.fspath(path),
            ) from None
    if stat.S_ISDIR(mode):
        code = errno.EISDIR
        raise IsADirectoryError(code, os.strerror(code), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise ValueError(
            f"{name} must name a regular file or a new one, got {os.fspath(path)!r}, "
            "which is a pipe, a socket or a device."
        )
    return Path(os.path.realpath(path))


@contextmanager
def whole_file(path):
    """Open a file for writing that gets its name only once it is complete on disk.

    Parameters
    ----------
    path : str or path-like
        The file. If it exists, it is replaced, and its permissions are kept; if writing
        fails, it is left unchanged, and the error names this file. A link stays a link:
        the file that it leads to is replaced.

    Yields
    ------
    file : file object
        Open to write bytes.
    """
    target = regular_file("path", path)
    draft = target.with_name(f".{target.name[:DRAFT_PREFIX]}.{uuid.uuid4().hex}")
    try:
        with open(draft, "xb", opener=_opener(target)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno is not None:
            # The error for a full disk has no file name, others have the draft's.
            error.filename = os.fspath(path)
        # If writing failed, removing may fail too: keep the first error.
        with suppress(OSError):
            draft.unlink()
        raise


def _opener(target):
    """Return an opener of files with the owner and the permissions of another file."""
    try:
        old = os.stat(target)
    except FileNotFoundError:
        return None

    def opened(path, flags):
        # Until the owner is set, nobody else may read it.
        number = os.open(path, flags, 0o600)
        try:
            if hasattr(os, "fchown"):
                # Only root may change the owner; users may only set groups they are in.
                with suppress(PermissionError):
                    os.fchown(number, -1, old.st_gid)
                    os.fchown(number, old.st_uid, -1)
                os.fchmod(number, stat.S_IMODE(old.st_mode))
        except BaseException:
            os.close(number)
            raise
        return number

    return opened
