"""Readers of the Acclaim formats: skeletons (`.asf`) and motions (`.amc`)."""

from __future__ import annotations

import re

import numpy as np

# Longest word (a number or a name) of a motion that is parsed all at once.
MAX_WORD = 64

# The unsupported line in the units of a skeleton.
RADIANS = ["angle", "rad"]

# Spellings of the rate of the CMU database.
SOURCE_RATE = re.compile(r"120(\.0*)?")

# A frame number; longer numbers cannot be frame numbers.
FRAME_NUMBER = re.compile(r"[0-9]{1,18}")

# Joints and degrees of freedom of the skeletons of the CMU database, in file order.
CMU_JOINTS = {
    "root": ("tx", "ty", "tz", "rx", "ry", "rz"),
    **dict.fromkeys(
        ("lowerback", "upperback", "thorax", "lowerneck", "upperneck", "head"),
        ("rx", "ry", "rz"),
    ),
    **{
        side + joint: freedom
        for side in "rl"
        for joint, freedom in {
            "clavicle": ("ry", "rz"),
            "humerus": ("rx", "ry", "rz"),
            "radius": ("rx",),
            "wrist": ("ry",),
            "hand": ("rx", "rz"),
            "fingers": ("rx",),
            "thumb": ("rx", "rz"),
        }.items()
    },
    **{
        side + joint: freedom
        for side in "rl"
        for joint, freedom in {
            "femur": ("rx", "ry", "rz"),
            "tibia": ("rx",),
            "foot": ("rx", "rz"),
            "toes": ("rx",),
        }.items()
    },
}


def asf_joints(lines, place):
    """Degrees of freedom of each joint of a skeleton.

    Parameters
    ----------
    lines : sequence of str
        Lines of the `.asf` file.

    place : str
        Name of the file in errors.

    Returns
    -------
    joints : dict of str to tuple of str
        Degrees of freedom, such as ("rx", "ry"), by the name of the joint; joints
        without any are left out.
    """
    joints: dict[str, tuple[str, ...]] = {}
    section, name = "", None
    for number, line in enumerate(lines, 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0].startswith(":"):
            section = words[0].lower()
        elif section == ":units" and [word.lower() for word in words[:2]] == RADIANS:
            raise ValueError(
                f"{place}, line {number}: angles in radians are not supported."
            )
        elif section == ":root" and words[0] == "order":
            joints["root"] = tuple(word.lower() for word in words[1:])
        elif section == ":bonedata" and words[0] == "begin":
            name = None
        elif section == ":bonedata" and words[0] == "name":
            name = words[-1]
        elif section == ":bonedata" and words[0] == "dof":
            if name is None:
                raise ValueError(f"{place}, line {number}: dof before the bone's name.")
            if name in joints:
                raise ValueError(f"{place}, line {number}: bone {name!r} twice.")
            joints[name] = tuple(word.lower() for word in words[1:])
    if "root" not in joints or len(joints) < 2:
        raise ValueError(
            f"{place}: expected a section :root with an order and a section :bonedata "
            f"with bones, got joints {list(joints)}."
        )
    return joints


def amc_frames(content, joints, place):
    """Return the channels and the frames of a motion."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    _check_keywords(content, place)
    parsed = _regular_frames(content, joints)
    if parsed is None:
        # Something is irregular: read line by line, to accept the line or report it.
        parsed = _irregular_frames(content, joints, place)
    names, numbers, frames = parsed
    channels = tuple(f"{name}_{freedom}" for name in names for freedom in joints[name])
    n_missing = int(numbers[-1] - numbers[0] + 1 - len(numbers))
    return channels, frames, n_missing


def _check_keywords(content, place):
    """Raise if a line such as ":RADIANS" declares an unsupported kind of file."""
    for number, line in enumerate(content.split(b"\n"), 1):
        words = line.decode("latin-1").split()
        if words and words[0].isdigit():
            return
        key = words[0].upper() if words else ""
        if key == ":RADIANS":
            raise ValueError(
                f"{place}, line {number}: angles in radians are not supported."
            )
        rate = " ".join(words[1:])
        if key == ":SAMPLES-PER-SECOND" and not SOURCE_RATE.fullmatch(rate):
            raise ValueError(
                f"{place}, line {number}: expected 120 frames per second, got {rate!r}."
            )


def _regular_frames(content, joints):
    """Parse all frames at once, or return None unless all have the same layout."""
    start = 0
    while content[start : start + 1] in {b"#", b":", b"\r", b"\n"}:
        start = content.find(b"\n", start) + 1 or len(content)
    words = content[start:].split()
    # In an array, all words take as much memory as the longest.
    usable = words and words[0].isdigit() and max(map(len, words)) <= MAX_WORD
    # Python reads 1_0 as 10.
    if not usable or b"_" in content[start:]:
        return None
    names = []
    position = 1
    while position < len(words) and words[position][:1].isalpha():
        name = words[position].decode("ascii", "replace")
        if name not in joints or name in names:
            return None
        names.append(name)
        position += 1 + len(joints[name])
    if not names or len(words) % position:
        return None
    table = np.array(words).reshape(-1, position)
    sizes = [1 + len(joints[name]) for name in names]
    heads = 1 + np.concatenate([[0], np.cumsum(sizes)[:-1]])
    if np.any(table[:, heads] != table[0, heads]):
        return None
    try:
        numbers = table[:, 0].astype(int)
        frames = np.delete(table, np.append(0, heads), axis=1).astype(float)
    except (ValueError, OverflowError):
        return None
    regular = np.all(np.diff(numbers) > 0) and np.all(np.isfinite(frames))
    return (names, numbers, frames) if regular else None


def _irregular_frames(content, joints, place):
    """Parse line by line, with errors that name the line."""
    numbers: list[int] = []
    frames: list[dict[str, list[float]]] = []
    for number, line in enumerate(content.decode("latin-1").splitlines(), 1):
        where = f"{place}, line {number}"
        words = line.split()
        if not words or words[0][0] in "#:":
            continue
        if len(words) == 1 and FRAME_NUMBER.fullmatch(words[0]):
            _check_complete(frames, where)
            if numbers and int(words[0]) <= numbers[-1]:
                raise ValueError(
                    f"{where}: frame {words[0]} follows frame {numbers[-1]}."
                )
            numbers.append(int(words[0]))
            frames.append({})
        elif not frames:
            raise ValueError(f"{where}: expected a frame number, got {line[:40]!r}.")
        else:
            name, values = _joint_values(words, joints, where)
            if name in frames[-1]:
                raise ValueError(f"{where}: joint {name!r} twice in one frame.")
            frames[-1][name] = values
    if not frames:
        raise ValueError(f"{place}: expected frames, got none.")
    _check_complete(frames, f"{place}, line {number}")
    names = list(frames[0])
    stacked = np.array([np.concatenate([f[name] for name in names]) for f in frames])
    return names, np.array(numbers), stacked


def _check_complete(frames, where):
    """Raise unless the last frame has the same joints as the first."""
    if frames and (not frames[-1] or set(frames[-1]) != set(frames[0])):
        raise ValueError(
            f"{where}: the frame before it must have the joints of the first frame, "
            f"differing in {sorted(set(frames[0]) ^ set(frames[-1]))}."
        )


def _joint_values(words, joints, where):
    name = words[0]
    if name not in joints:
        raise ValueError(f"{where}: joint {name!r} is not in the skeleton.")
    if len(words) - 1 != len(joints[name]):
        raise ValueError(
            f"{where}: expected {len(joints[name])} values for joint {name!r}, "
            f"got {len(words) - 1}."
        )
    try:
        values = [float(word) for word in words[1:]]
    except ValueError as error:
        raise ValueError(f"{where}: {error}.") from None
    if any("_" in word for word in words[1:]):
        raise ValueError(
            f"{where}: expected numbers, got {' '.join(words[1:])[:40]!r}."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{where}: joint {name!r} has a value that is not finite.")
    return name, values
