"""Locate data files, and read them from folders and zip archives."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skawhmm.utils._archives import archived_arrays, member_bytes, open_archive
from skawhmm.utils._whole_files import check_path


def data_home(path: str | PathLike[str] | None = None) -> Path:
    """Return the folder in which the loaders look for data.

    Parameters
    ----------
    path : str or path-like or None, default=None
        The folder. `None` means the folder named by the environment variable
        `SKAWHMM_DATA` or, if it is not set, `.cache/skawhmm` in the home folder.

    Returns
    -------
    folder : pathlib.Path
        The folder; it need not exist.

    Examples
    --------
    >>> from skawhmm.datasets import data_home
    >>> data_home("recordings").name
    'recordings'
    """
    if path is not None:
        return Path(path).expanduser()
    named = os.environ.get("SKAWHMM_DATA")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "skawhmm"


def found_path(path, candidates, what):
    """Return the path of the data: as given, or relative to the data folder.

    Parameters
    ----------
    path : str or path-like or None
        The path given by the caller; `None` means the first candidate that exists.

    candidates : sequence of str
        Names to look for in the data folder if `path` is `None`.

    what : str
        Sentence for the error message, saying where to get the data.

    Returns
    -------
    path : pathlib.Path
        An existing file or folder.
    """
    home = data_home()
    if path is None:
        places = [home / name for name in candidates]
    else:
        check_path("path", path)
        given = Path(path).expanduser()
        places = [given, home / given]
    for place in places:
        if place.exists():
            return place
    wanted = ", ".join(dict.fromkeys(str(place) for place in places))
    if path is not None:
        raise FileNotFoundError(
            f"path must be an existing path, or one in the folder named by the "
            f"environment variable SKAWHMM_DATA, got none of: {wanted}. {what}"
        )
    raise FileNotFoundError(
        f"Found none of: {wanted}. Give the path of the data, or set the environment "
        f"variable SKAWHMM_DATA to the folder that holds it. {what}"
    )


@dataclass(frozen=True)
class FileTree:
    """Files below a folder or inside a zip archive, by relative names."""

    source: str
    names: tuple[str, ...]
    read: Callable[[str], bytes]

    def place(self, name):
        """Name of a file for an error message."""
        return f"{self.source}/{name}"

    def text(self, name):
        """Lines of a text file."""
        try:
            return self.read(name).decode("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.place(name)}: not a text file ({error})."
            ) from None


def file_tree(path):
    """Open a folder or a zip archive."""
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file())
        names = [p.relative_to(path).as_posix() for p in files]
        return FileTree(str(path), _visible(names), lambda n: (path / n).read_bytes())
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: expected a folder or a zip archive.")
    try:
        archive = open_archive(path)
    except ValueError as error:
        raise ValueError(f"{path}: {error}.") from error
    names = sorted(n for n in archive.namelist() if not n.endswith("/"))

    def read(name):
        try:
            return member_bytes(archive, name)
        except ValueError as error:
            raise ValueError(f"{path}: {error}.") from error

    return FileTree(str(path), _visible(names), read)


def _visible(names):
    """Return names without hidden files and __MACOSX, which file managers add."""
    return tuple(
        name
        for name in names
        if not any(part.startswith((".", "__MACOSX")) for part in name.split("/"))
    )


def loaded(bunch, return_X_y):
    """Return the bunch, or the pair of its data and target."""
    return (bunch.data, bunch.target) if return_X_y else bunch


def load_npz(path: str | PathLike[str], *, return_X_y: bool = False) -> Any:
    """Read sequences from a plain `.npz` file.

    Parameters
    ----------
    path : str or path-like
        The file, with or without its extension; a relative path is also looked for in
        :func:`data_home`. It contains the arrays `X`, the frames of all sequences one
        after the other, `lengths`, the number of frames of each sequence, and
        optionally the labels `y`.

    return_X_y : bool, default=False
        Whether to return `(data, target)` instead of the bunch.

    Returns
    -------
    data : Bunch
        With the following attributes, and every other array of the file under its own
        name (such as `split`, `speaker` or `feature_names`):

        data : list of ndarray of shape (n_timesteps, n_features)
            The sequences; integers if the file has integers, otherwise floats.
        target : ndarray of shape (n_sequences,) or None
            The labels.

    See Also
    --------
    load_ts : Reader of the UEA archive's format.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from skawhmm.datasets import load_npz
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/mine.npz", X=np.zeros((5, 2)), lengths=[2, 3], y=[0, 1])
    ...     X, y = load_npz(f"{folder}/mine.npz", return_X_y=True)
    >>> [x.shape for x in X], y
    ([(2, 2), (3, 2)], array([0, 1]))
    """
    check_path("path", path)
    name = Path(path)
    with_ending = name if name.suffix == ".npz" else name.with_name(f"{name.name}.npz")
    hint = "It must be an .npz file with the arrays X, lengths and y."
    arrays = npz_arrays(found_path(with_ending, (), hint), ("X", "lengths"))
    data = split_frames(arrays.pop("X"), arrays.pop("lengths"), with_ending)
    target = arrays.pop("y", None)
    if target is not None and target.shape != (len(data),):
        raise ValueError(
            f"{with_ending}: y must have shape ({len(data)},), one label per sequence, "
            f"got {target.shape}."
        )
    extras = {key: x.item() if x.ndim == 0 else x for key, x in arrays.items()}
    return loaded(Bunch(**(extras | {"data": data, "target": target})), return_X_y)


def npz_arrays(path, required):
    """All arrays of an `.npz` file, or an error that names what is wrong."""
    try:
        arrays = archived_arrays(path)
    except ValueError as error:
        raise ValueError(f"{path}: not a plain .npz file ({error}).") from error
    missing = [key for key in required if key not in arrays]
    if missing:
        raise ValueError(
            f"{path}: expected the arrays {', '.join(required)}, "
            f"got {', '.join(arrays) or 'none'}."
        )
    return arrays


def split_frames(frames, lengths, path):
    """Cut stacked frames into sequences."""
    wanted = frames.ndim in {1, 2} and frames.dtype.kind in "iufb" and frames.size
    if not wanted:
        raise ValueError(
            f"{path}: X must be a numeric array of shape (n_frames, n_features), "
            f"got {frames.dtype} of shape {frames.shape}."
        )
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or np.any(lengths < 1):
        raise ValueError(f"{path}: lengths must be positive integers.")
    # Python integers cannot overflow.
    total = sum(lengths.tolist())
    if total != len(frames):
        raise ValueError(
            f"{path}: lengths must sum to the {len(frames)} frames of X, got {total}."
        )
    if frames.dtype.kind == "u" and np.any(frames > np.iinfo(np.int64).max):
        raise ValueError(
            f"{path}: X must hold integers below 2**63, got {frames.max()}. Store such "
            "values as floats."
        )
    frames = frames.astype(np.float64 if frames.dtype.kind == "f" else np.int64)
    frames = frames.reshape(len(frames), -1)
    ends = np.cumsum(lengths.astype(np.int64))
    return [part.copy() for part in np.split(frames, ends[:-1])]
