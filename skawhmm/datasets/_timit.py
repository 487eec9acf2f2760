"""Phonemes of the TIMIT corpus."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skawhmm.datasets._files import file_tree, found_path, loaded
from skawhmm.datasets._sampling import seed_sequence
from skawhmm.datasets._sound_files import sound
from skawhmm.sequences._mfcc import frame_samples, mfcc
from skawhmm.utils._checks import check_integer, check_real
from skawhmm.utils._seeds import item_rng

_NAMES = ("timit", "TIMIT", "timit.zip", "timit_nltk_sample_raw.zip")

# Folding of the 61 phones by K.-F. Lee and H.-W. Hon, "Speaker-independent phone
# recognition using hidden Markov models", IEEE Transactions on Acoustics, Speech, and
# Signal Processing 37, 1989: first to 48 phones for models, then to 39 for scores.
_KEPT = (
    *("aa", "ae", "ah", "ao", "aw", "ax", "ay", "b", "ch", "d", "dh", "dx", "eh", "el"),
    *("en", "epi", "er", "ey", "f", "g", "hh", "ih", "ix", "iy", "jh", "k", "l", "m"),
    *("n", "ng", "ow", "oy", "p", "r", "s", "sh", "t", "th", "uh", "uw", "v", "w", "y"),
    *("z", "zh"),
)
_FOLD_48 = {
    **{phone: phone for phone in _KEPT},
    "ax-h": "ax",
    "axr": "er",
    "em": "m",
    "eng": "ng",
    "hv": "hh",
    "nx": "n",
    "ux": "uw",
    **dict.fromkeys(("h#", "pau"), "sil"),
    **dict.fromkeys(("bcl", "dcl", "gcl"), "vcl"),
    **dict.fromkeys(("pcl", "tcl", "kcl"), "cl"),
}
_FOLD_39 = {
    "ao": "aa",
    "ax": "ah",
    "el": "l",
    "en": "n",
    "ix": "ih",
    "zh": "sh",
    **dict.fromkeys(("cl", "vcl", "epi"), "sil"),
}
# The number of a sample.
_SAMPLE = re.compile(r"[0-9]{1,18}")
# The glottal stop has no class in the folded sets.
_UNFOLDED = "q"


def load_timit(
    path: str | PathLike[str] | None = None,
    *,
    n_phones: int = 39,
    window: float = 0.025,
    hop: float = 0.010,
    deltas: int = 2,
    concat: int = 1,
    test_size: float = 0.25,
    random_state: Any = 0,
    return_X_y: bool = False,
) -> Any:
    """Read the phonemes of the TIMIT corpus as sequences of cepstral coefficients.

    Parameters
    ----------
    path : str or path-like or None, default=None
        A folder or zip archive with sound files, RIFF or NIST SPHERE, and the `.phn`
        file of each; speakers are folders. `None` looks for `timit`, `timit.zip` or
        `timit_nltk_sample_raw.zip` in :func:`data_home`.

    n_phones : {39, 48, 61}, default=39
        Number of labels that the phones are folded to. The sets of 39 and 48 leave out
        the glottal stop "q".

    window : float, default=0.025
        Length of the analysis window in seconds; 0.004 in the paper.

    hop : float, default=0.010
        Time from one window to the next in seconds; 0.002 in the paper.

    deltas : {0, 1, 2}, default=2
        Order of the time derivatives appended to the 13 static coefficients.

    concat : int, default=1
        Number of segments of the same class that are concatenated to one sequence; 20
        in the paper. They are drawn at random within the training or the test part.

    test_size : float, default=0.25
        Fraction of the speakers in the test part. Not used if the data has folders
        `train` and `test`.

    random_state : int, RandomState instance, Generator or None, default=0
        Seed of the choice of test speakers and of the concatenated segments.

    return_X_y : bool, default=False
        Whether to return `(data, target)` instead of the bunch.

    Returns
    -------
    data : Bunch
        With the attributes

        data : list of ndarray of shape (n_frames, 13 * (1 + deltas))
            Coefficients of the segments.
        target : ndarray of shape (n_sequences,)
            Labels.
        split : ndarray of shape (n_sequences,)
            "train" or "test"; no speaker is in both.
        speaker : ndarray of shape (n_sequences,)
            Folder of the speaker; for concatenated segments, all their speakers with
            "+" between them.
        segments : Bunch
            Arrays `phone` (of 61), `speaker`, `utterance`, `part` (folder "train" or
            "test", if any), `start`, `end` (in samples) and `n_frames` of all segments.
        members : list of ndarray
            For each sequence, the indices of its segments in `segments`.
        n_dropped_segments : int
            Number of segments left over by `concat`.

    See Also
    --------
    make_phonemes : Synthetic phonemes.
    mfcc : The analysis.

    Notes
    -----
    A segment consists of the frames whose centres lie in it, or of the nearest frame if
    there are none. Whole utterances are analysed before they are cut, so deltas extend
    across segment borders.

    Examples
    --------
    >>> from skawhmm.datasets import load_timit
    >>> timit = load_timit(window=0.004, hop=0.002, concat=20)  # doctest: +SKIP
    """
    if check_integer("n_phones", n_phones, 1) not in {39, 48, 61}:
        raise ValueError(f"n_phones must be 39, 48 or 61, got {n_phones!r}.")
    concat = check_integer("concat", concat, 1)
    test_size = check_real("test_size", test_size, 0, 1)
    if test_size == 1:
        raise ValueError(f"test_size must be in [0, 1), got {test_size!r}.")
    hint = "The corpus is LDC93S1; a free sample is the NLTK corpus 'timit'."
    tree = file_tree(found_path(path, _NAMES, hint))
    frames, segments = _segments(tree, n_phones, window, hop, deltas)
    labels = np.array([_folded(phone, n_phones) for phone in segments.phone])
    root = seed_sequence(random_state)
    split = _split(segments, test_size, item_rng(root, 0))
    members, n_dropped = _joined(labels, split, concat, item_rng(root, 1))
    first = np.array([indices[0] for indices in members], dtype=int)
    speakers = [sorted(set(segments.speaker[indices])) for indices in members]
    bunch = Bunch(
        data=[np.concatenate([frames[i] for i in indices]) for indices in members],
        target=labels[first],
        split=split[first],
        speaker=np.array(["+".join(names) for names in speakers]),
        segments=segments,
        members=members,
        n_dropped_segments=n_dropped,
    )
    return loaded(bunch, return_X_y)


def _folded(phone, n_phones):
    if n_phones == 61:
        return phone
    folded = _FOLD_48[phone]
    return folded if n_phones == 48 else _FOLD_39.get(folded, folded)


def _segments(tree, n_phones, window, hop, deltas):
    """Return the frames and the description of every segment in the tree."""
    sounds = _sound_names(tree)
    frames, rows = [], []
    for stem, (phn_name, sound_name) in sounds.items():
        place = tree.place(sound_name)
        rate, samples = sound(tree.read(sound_name), place)
        features = mfcc(samples, rate, window=window, hop=hop, deltas=deltas)
        width, step = frame_samples(window, hop, rate)
        centres = np.arange(len(features)) * step + width / 2
        parents = PurePosixPath(stem).parts
        if len(parents) < 2:
            raise ValueError(f"{place}: expected the file in its speaker's folder.")
        part = next((p for p in parents if p in {"train", "test"}), "")
        for phone, start, end in phn_segments(
            tree.text(phn_name), tree.place(phn_name)
        ):
            if start >= len(samples):
                raise ValueError(
                    f"{tree.place(phn_name)}: {phone!r} starts at sample {start}, but "
                    f"{place} has only {len(samples)}."
                )
            if phone == _UNFOLDED and n_phones != 61:
                continue
            first, last = np.searchsorted(centres, (start, end))
            if first == last:
                middle = (start + end) / 2
                first = int(np.argmin(np.abs(centres - middle)))
                last = first + 1
            frames.append(features[first:last])
            name = "/".join(parents[-2:])
            rows.append((phone, parents[-2], name, part, start, end, last - first))
    if not frames:
        raise ValueError(f"{tree.source}: expected phonemes, got none.")
    names = ("phone", "speaker", "utterance", "part", "start", "end", "n_frames")
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return frames, Bunch(**{name: np.array(column) for name, column in columns})


def _sound_names(tree):
    """Return annotation and sound file of each utterance, by lower-case stem."""
    lower = {name.lower(): name for name in tree.names}
    pairs = {}
    for name in sorted(lower):
        if not name.endswith(".phn"):
            continue
        stem = name[: -len(".phn")]
        # Some copies keep the SPHERE file and add a RIFF file next to it.
        endings = (".wav.wav", ".wav", ".sph")
        found = [stem + end for end in endings if stem + end in lower]
        if not found:
            raise FileNotFoundError(
                f"{tree.place(lower[name])}: expected a sound file of this name, .wav "
                "or .sph, next to it."
            )
        pairs[stem] = (lower[name], lower[found[0]])
    if not pairs:
        raise FileNotFoundError(f"{tree.source}: expected .phn files, got none.")
    return pairs


def phn_segments(lines, place):
    """Return the phones of an annotation, with their first and last samples."""
    known = {*_FOLD_48, _UNFOLDED}
    segments: list[tuple[str, int, int]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        words = line.split()
        if len(words) != 3 or not all(map(_SAMPLE.fullmatch, words[:2])):
            raise ValueError(
                f"{place}, line {number}: expected a first sample, a last sample and a "
                f"phone, got {line[:40]!r}."
            )
        start, end, phone = int(words[0]), int(words[1]), words[2].lower()
        if phone not in known:
            raise ValueError(
                f"{place}, line {number}: {phone!r} is not one of TIMIT's 61 phones."
            )
        if end <= start:
            raise ValueError(
                f"{place}, line {number}: the segment ends at {end}, not after its "
                f"start {start}."
            )
        segments.append((phone, start, end))
    return segments


def _split(segments, test_size, rng):
    """Return the part of each segment, by folder or by randomly chosen speakers."""
    if np.all(segments.part != ""):
        return segments.part
    speakers = np.unique(segments.speaker)
    n_test = round(test_size * len(speakers))
    chosen = rng.permutation(speakers)[:n_test]
    return np.where(np.isin(segments.speaker, chosen), "test", "train")


def _joined(labels, split, concat, rng):
    """Return the members of each sequence, and the number of segments left over."""
    if concat == 1:
        return [np.array([i]) for i in range(len(labels))], 0
    members = []
    for part in ("train", "test"):
        for label in np.unique(labels):
            pool = rng.permutation(np.flatnonzero((labels == label) & (split == part)))
            n_whole = len(pool) // concat * concat
            members.extend(pool[:n_whole].reshape(-1, concat))
    if not members:
        raise ValueError(
            "concat must not exceed the number of segments of every class, "
            f"got {concat}."
        )
    return members, len(labels) - concat * len(members)
