"""Reader of the UEA archive's text format."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skawhmm.datasets._files import found_path, loaded


def load_ts(path: str | PathLike[str], *, return_X_y: bool = False) -> Any:
    r"""Read sequences from `.ts` files, the format of the UEA and UCR archives.

    Parameters
    ----------
    path : str or path-like
        A `.ts` file, or a folder with a file that ends in `_TRAIN.ts` and one that ends
        in `_TEST.ts`; a relative path is also looked for in :func:`data_home`.

    return_X_y : bool, default=False
        Whether to return `(data, target)` instead of the bunch.

    Returns
    -------
    data : Bunch
        With the attributes

        data : list of ndarray of shape (n_timesteps, n_features)
            The sequences. Missing values, written `?` or `NaN`, are NaN.
        target : ndarray of shape (n_sequences,) or None
            The labels: names of classes, or numbers to predict.
        target_names : list of str
            The classes listed in the header.
        split : ndarray of shape (n_sequences,)
            "train" or "test", from the name of the file; otherwise "".
        problem_name : str
            Name of the data set in the header.

    See Also
    --------
    load_npz : Reader of a plain numeric format.

    Notes
    -----
    Files with time stamps are not read. Labels must be encoded in UTF-8; descriptions
    may have any encoding.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from skawhmm.datasets import load_ts
    >>> text = "@classLabel true up down\n@data\n1,2,3:4,5,6:up\n3,2:6,5:down\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "mine.ts"
    ...     _ = path.write_text(text)
    ...     X, y = load_ts(path, return_X_y=True)
    >>> [x.shape for x in X], y
    ([(3, 2), (2, 2)], array(['up', 'down'], dtype='<U4'))
    """
    hint = "Data sets in this format are at https://www.timeseriesclassification.com."
    place = found_path(path, (), hint)
    files = _split_files(place) if place.is_dir() else [place]
    parts = [_ts_file(file) for file in files]
    widths = sorted({x.shape[1] for part in parts for x in part["data"]})
    if len(widths) > 1:
        raise ValueError(
            f"{place}: the files have different numbers of dimensions {widths}."
        )
    targets = [part["target"] for part in parts]
    if len({None if target is None else target.dtype.kind for target in targets}) > 1:
        raise ValueError(
            f"{place}: the files must all have class labels, all have target labels, "
            "or all have none."
        )
    names = [name for part in parts for name in part["target_names"]]
    split = [_split_name(file) for file in files]
    bunch = Bunch(
        data=[x for part in parts for x in part["data"]],
        target=None if targets[0] is None else np.concatenate(targets),
        target_names=list(dict.fromkeys(names)),
        split=np.repeat(split, [len(part["data"]) for part in parts]),
        problem_name=parts[0]["problem_name"],
    )
    return loaded(bunch, return_X_y)


def _split_files(folder):
    files = [sorted(folder.glob(f"*_{part}.ts")) for part in ("TRAIN", "TEST")]
    if [len(found) for found in files] != [1, 1]:
        names = [file.name for found in files for file in found]
        raise ValueError(
            f"{folder}: expected one file *_TRAIN.ts and one *_TEST.ts, got {names}."
        )
    return [found[0] for found in files]


def _split_name(file):
    endings = {"_TRAIN": "train", "_TEST": "test"}
    return next((v for k, v in endings.items() if file.stem.endswith(k)), "")


def _ts_file(path):
    """Return the header and the cases of one file."""
    header: dict[str, list[str]] = {}
    cases: list[np.ndarray] = []
    labels: list[str | None] = []
    reading = False
    # Descriptions may have any encoding; labels must be decoded exactly.
    with Path(path).open(encoding="utf-8-sig", errors="surrogateescape") as lines:
        for number, raw in enumerate(lines, 1):
            line = raw.strip()
            if not line or line.startswith("#"):
                continue
            if not _is_utf8(line):
                raise ValueError(
                    f"{path}, line {number}: expected UTF-8, got {line[:40]!r}."
                )
            if reading:
                case, label = _case(line, header, path, number)
                cases.append(case)
                labels.append(label)
            elif line.startswith("@") and line != "@":
                key, *values = line[1:].split()
                header[key.lower()] = values
                reading = key.lower() == "data"
                _check_header(key.lower(), values, path, number)
            else:
                raise ValueError(
                    f"{path}, line {number}: expected a line beginning with @ or # "
                    f"before @data, got {line[:40]!r}."
                )
    if not cases:
        raise ValueError(f"{path}: expected cases after a line @data, got none.")
    return {
        "data": cases,
        "target": _target(labels, header),
        "target_names": header.get("classlabel", [])[1:],
        "problem_name": " ".join(header.get("problemname", [])),
    }


def _is_utf8(line):
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_header(key, values, path, number):
    flags = {"timestamps", "classlabel", "targetlabel", "univariate", "equallength"}
    if key in flags and (not values or values[0].lower() not in {"true", "false"}):
        raise ValueError(
            f"{path}, line {number}: expected true or false after @{key}, got {values}."
        )
    if key == "timestamps" and values[0].lower() == "true":
        raise ValueError(f"{path}, line {number}: time stamps are not supported.")


def _has(header, key):
    return header.get(key, ["false"])[0].lower() == "true"


def _case(line, header, path, number):
    """Array of shape (n_timesteps, n_features) and label of one line."""
    parts = line.split(":")
    label = None
    if _has(header, "classlabel") or _has(header, "targetlabel"):
        if len(parts) < 2:
            raise ValueError(f"{path}, line {number}: expected a label after a colon.")
        label = parts.pop().strip()
    if _has(header, "classlabel") and label not in header["classlabel"][1:]:
        raise ValueError(
            f"{path}, line {number}: label {label!r} is not one of the header's "
            f"{header['classlabel'][1:]}."
        )
    try:
        if label is not None and _has(header, "targetlabel"):
            float(label)
        values = [_numbers(part) for part in parts]
    except ValueError as error:
        raise ValueError(f"{path}, line {number}: {error}.") from None
    _check_dimensions(len(values), header, path, number)
    lengths = sorted({len(value) for value in values})
    if len(lengths) > 1:
        raise ValueError(
            f"{path}, line {number}: the dimensions of a case must have one length, "
            f"got {lengths}."
        )
    return np.stack(values, axis=1), label


def _numbers(part):
    """Return the values of one dimension."""
    # Python reads 1_0 as 10.
    if "_" in part:
        raise ValueError(f"expected numbers, got {part[:40]!r}")
    values = np.array(part.replace("?", "nan").split(","), float)
    if np.isinf(values).any():
        raise ValueError("expected finite numbers, got infinity")
    return values


def _check_dimensions(n_dimensions, header, path, number):
    """Raise unless a case agrees with header and other cases on dimensions."""
    named = next((k for k in ("dimensions", "dimension") if k in header), "dimensions")
    if _has(header, "univariate"):
        header.setdefault(named, ["1"])
    expected = header.setdefault(named, [str(n_dimensions)])
    if expected != [str(n_dimensions)]:
        raise ValueError(
            f"{path}, line {number}: expected {' '.join(expected)} dimensions, got "
            f"{n_dimensions}."
        )


def _target(labels, header):
    if _has(header, "targetlabel"):
        return np.array(labels, dtype=float)
    return np.array(labels) if _has(header, "classlabel") else None
