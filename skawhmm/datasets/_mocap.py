"""The CMU motion capture database."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skawhmm.datasets._amc import CMU_JOINTS, amc_frames, asf_joints
from skawhmm.datasets._files import (
    file_tree,
    found_path,
    loaded,
    npz_arrays,
    split_frames,
)
from skawhmm.utils._checks import check_integer

# Frame rate of the database, which the files do not state.
_SOURCE_FPS = 120

_NPZ_NAMES = ("cmu_mocap329_30fps.npz", "cmu_mocap329_120fps_q.npz")
_ARCHIVE_NAMES = ("cmu_mocap", "cmu_mocap.zip", "cmu_mocap_amc_sample.zip")

_ARM = ("clavicle", "humerus", "radius", "wrist", "hand", "fingers", "thumb")
_LEG = ("femur", "tibia", "foot")
_SIX_GROUPS = {
    "root_12": ("root", "lowerback", "upperback"),
    "head_neck_thorax_12": ("thorax", "lowerneck", "upperneck", "head"),
    "rbody_12": tuple("r" + joint for joint in _ARM),
    "lbody_12": tuple("l" + joint for joint in _ARM),
    "rleg_6": tuple("r" + joint for joint in _LEG),
    "lleg_6": tuple("l" + joint for joint in _LEG),
}
_GROUPS: dict[int, dict[str, tuple[str, ...]]] = {
    6: _SIX_GROUPS,
    27: {joint: (joint,) for joint in CMU_JOINTS if not joint.endswith("toes")},
}


def load_cmu_mocap(
    path: str | PathLike[str] | None = None,
    *,
    groups: int | None = None,
    fps: int = 30,
    return_X_y: bool = False,
) -> Any:
    """Read sequences of the CMU motion capture database.

    Parameters
    ----------
    path : str or path-like or None, default=None
        A folder or zip archive with `.amc` and `.asf` files as in the database and, for
        the labels, a file `index.csv` with lines `27/27_04.amc,walk` (or the
        database's own `cmu-mocap-index-text.txt`); or an `.npz` file of such sequences.
        `None` looks for `cmu_mocap329_30fps.npz`, `cmu_mocap329_120fps_q.npz`,
        `cmu_mocap` or `cmu_mocap.zip` in :func:`data_home`.

    groups : {6, 27} or None, default=None
        Joint groups to return in `groups`: the paper's 6 or 27 groups, which leave out
        the toes, or None for all channels as one group.

    fps : int, default=30
        Frames per second: a divisor of the rate of the file, which is 120 for `.amc`. A
        frame is the mean of the recorded frames that it replaces.

    return_X_y : bool, default=False
        Whether to return `(data, target)` instead of the bunch.

    Returns
    -------
    data : Bunch
        With the attributes

        data : list of ndarray of shape (n_timesteps, n_channels)
            The motions: the position of the root, and the joint angles in degrees.
        target : ndarray of shape (n_sequences,)
            The labels; "" if the index has none.
        files, subjects : ndarray of shape (n_sequences,)
            File and subject, such as "27/27_04.amc" and "27".
        feature_names : ndarray of shape (n_channels,)
            Channels, such as "root_tx".
        groups : dict of str to ndarray
            Channel indices of each joint group.
        n_zero_frames, n_dropped_frames, n_missing_frames : ndarray
            For each sequence, the number of recorded frames that are zero in all
            channels (the tracker was lost; they are kept), that were cut off at the end
            because they do not fill a block, and that the numbering of the file skips.
        missing_files : list of str
            Files in the index that were not found.

    See Also
    --------
    load_npz : Reader of sequences from one numeric file.

    Notes
    -----
    Angles are returned as recorded, without unwrapping: if an angle jumps by 360
    degrees, the jump is kept, and a mean across it lies in between. In this database,
    class and actor are confounded, so use `subjects` as the groups in cross-validation.
    The data are free for research and commercial use; the authors ask for the
    acknowledgement "The data used in this project was obtained from mocap.cs.cmu.edu.
    The database was created with funding from NSF EIA-0196217".

    Examples
    --------
    >>> from skawhmm.datasets import load_cmu_mocap
    >>> mocap = load_cmu_mocap(groups=6)  # doctest: +SKIP
    >>> legs = [x[:, mocap.groups["rleg_6"]] for x in mocap.data]  # doctest: +SKIP
    """
    if groups is not None and check_integer("groups", groups, 1) not in _GROUPS:
        raise ValueError(f"groups must be 6, 27 or None, got {groups!r}.")
    fps = check_integer("fps", fps, 1)
    if _SOURCE_FPS % fps:
        raise ValueError(f"fps must be an int that divides 120, got {fps!r}.")
    source = _source(path, fps)
    bunch = _from_npz(source) if source.suffix == ".npz" else _from_files(source)
    channels = list(bunch.feature_names)
    bunch.data = _resampled(bunch.data, bunch.pop("fps"), fps, source)
    n_used = [len(x) * (_SOURCE_FPS // fps) for x in bunch.data]
    bunch.n_dropped_frames = bunch.pop("n_recorded") - np.array(n_used)
    bunch.subjects = np.array([name.split("/")[0] for name in bunch.files])
    bunch.groups = _channel_groups(channels, groups)
    return loaded(bunch, return_X_y)


def _channel_groups(channels, groups):
    """Channel indices of each joint group."""
    if groups is None:
        return {"all": np.arange(len(channels))}
    return {
        name: np.flatnonzero([c.rsplit("_", 1)[0] in joints for c in channels])
        for name, joints in _GROUPS[groups].items()
    }


def _source(path, fps):
    names = [name for name in _NPZ_NAMES if fps <= 30 or "120" in name]
    hint = "The database is at http://mocap.cs.cmu.edu."
    path = found_path(path, (*names, *_ARCHIVE_NAMES), hint)
    if path.is_dir() and not any(path.rglob("*.[aA][mM][cC]")):
        inside = [path / name for name in (*names, *_ARCHIVE_NAMES)]
        found = [place for place in inside if place.exists()]
        if not found:
            raise FileNotFoundError(
                f"{path}: expected .amc files or one of {', '.join(names)}. {hint}"
            )
        return found[0]
    return path


def _resampled(data, source_fps, fps, path):
    """Means of blocks of frames; an incomplete block at the end is left out."""
    if source_fps % fps:
        raise ValueError(
            f"{path}: fps must divide the file's rate of {source_fps:g}, got {fps}."
        )
    size = int(source_fps // fps)
    short = min(len(x) for x in data)
    if short < size:
        raise ValueError(
            f"{path}: at fps={fps} a frame is the mean of {size} recorded ones, but a "
            f"sequence has only {short}."
        )
    blocks = [x[: len(x) // size * size] for x in data]
    return [x.reshape(-1, size, x.shape[1]).mean(axis=1) for x in blocks]


def _from_npz(path):
    arrays = npz_arrays(path, ("lengths", "y", "files", "channels", "fps"))
    fps = arrays["fps"]
    if fps.shape != () or fps.dtype.kind not in "iuf" or not 0 < fps <= _SOURCE_FPS:
        raise ValueError(
            f"{path}: fps must be a number in (0, {_SOURCE_FPS}], got {fps!r}."
        )
    for name in ("files", "channels"):
        if arrays[name].dtype.kind != "U":
            raise ValueError(
                f"{path}: {name} must hold strings, got {arrays[name].dtype}."
            )
    if "delta_T" in arrays:
        data = _decoded(arrays, path)
    elif "X" in arrays:
        data = split_frames(arrays["X"], arrays["lengths"], path)
    else:
        raise ValueError(f"{path}: expected the array X or delta_T, got neither.")
    zero = [int(np.sum(~x.any(axis=1))) for x in data]
    sizes = {"y": len(data), "files": len(data), "channels": data[0].shape[1]}
    sizes |= {k: len(data) for k in ("n_zero_frames", "lengths_120fps") if k in arrays}
    for name, size in sizes.items():
        if arrays[name].shape != (size,):
            raise ValueError(
                f"{path}: {name} must have shape ({size},), got {arrays[name].shape}."
            )
    return Bunch(
        data=data,
        target=arrays["y"],
        files=arrays["files"],
        feature_names=arrays["channels"],
        n_zero_frames=arrays.get("n_zero_frames", np.array(zero)),
        n_missing_frames=np.zeros(len(data), dtype=int),
        missing_files=arrays.get("missing_files", np.array([], dtype=str)).tolist(),
        n_recorded=arrays.get("lengths_120fps", _recorded(arrays)),
        fps=float(fps),
    )


def _recorded(arrays):
    return (arrays["lengths"] * (_SOURCE_FPS / arrays["fps"])).astype(int)


def _decoded(arrays, path):
    """Undo the storage as scaled differences of integers."""
    differences = split_frames(arrays["delta_T"].T, arrays["lengths"], path)
    n_channels = differences[0].shape[1]
    wanted = {"first": (len(differences), n_channels), "scale": (n_channels,)}
    for name, shape in wanted.items():
        found = arrays[name].shape if name in arrays else "none"
        if found != shape and (name, found) != ("scale", ()):
            raise ValueError(f"{path}: {name} must have shape {shape}, got {found}.")
    pairs = zip(differences, arrays["first"], strict=True)
    return [
        (np.cumsum(difference, axis=0) + first) * arrays["scale"]
        for difference, first in pairs
    ]


def _from_files(path):
    tree = file_tree(path)
    names = [name for name in tree.names if name.lower().endswith(".amc")]
    if not names:
        raise FileNotFoundError(f"{path}: expected files that end in .amc, got none.")
    skeletons = {
        PurePosixPath(name): asf_joints(tree.text(name), tree.place(name))
        for name in tree.names
        if name.lower().endswith(".asf")
    }
    motions = []
    for name in names:
        joints = _skeleton(skeletons, PurePosixPath(name), tree)
        motions.append(amc_frames(tree.read(name), joints, tree.place(name)))
        if motions[-1][0] != motions[0][0]:
            raise ValueError(
                f"{tree.place(name)}: its channels differ from those of "
                f"{tree.place(names[0])}."
            )
    labels = _labels(tree)
    found = {PurePosixPath(name).stem for name in names}
    return Bunch(
        data=[frames for _, frames, _ in motions],
        target=np.array([labels.get(PurePosixPath(name).stem, "") for name in names]),
        files=np.array(["/".join(PurePosixPath(name).parts[-2:]) for name in names]),
        feature_names=np.array(motions[0][0]),
        n_zero_frames=np.array([np.sum(~x.any(axis=1)) for _, x, _ in motions]),
        n_missing_frames=np.array([n_missing for _, _, n_missing in motions]),
        missing_files=sorted(
            f"{stem.split('_')[0]}/{stem}.amc" for stem in labels if stem not in found
        ),
        n_recorded=np.array([len(frames) for _, frames, _ in motions]),
        fps=_SOURCE_FPS,
    )


def _skeleton(skeletons, motion, tree):
    """Return the joints of the skeleton of a motion, found by subject if needed."""
    beside = {p: s for p, s in skeletons.items() if p.parent == motion.parent}
    if len(beside) > 1:
        subject = motion.stem.split("_")[0]
        beside = {p: s for p, s in beside.items() if p.stem == subject}
        if len(beside) != 1:
            raise ValueError(
                f"{tree.place(motion)}: expected one skeleton in its folder, or one "
                f"named {subject}.asf, got several."
            )
    return next(iter(beside.values()), CMU_JOINTS)


def _labels(tree):
    """Return labels by file stem, from all indexes in the tree."""
    labels = {}
    for name in tree.names:
        if Path(name).name.lower() not in {"index.csv", "cmu-mocap-index-text.txt"}:
            continue
        for number, line in enumerate(tree.text(name), 1):
            if not line.strip() or line.startswith("Subject #"):
                continue
            match = re.match(r"\s*(?:.*/)?(\d+_\d+)(?:\.amc)?\s*[,\t]\s*(.*\S)", line)
            if match is None:
                # The first line may be a header.
                if number == 1:
                    continue
                raise ValueError(
                    f"{tree.place(name)}, line {number}: expected a file such as "
                    f"27/27_04.amc and its label, got {line[:60]!r}."
                )
            labels[match[1]] = match[2]
    return labels
