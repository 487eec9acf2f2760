"""Sequences of cepstral coefficients from folders of sound files."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skawhmm.datasets._files import file_tree, found_path, loaded
from skawhmm.datasets._sound_files import sound
from skawhmm.sequences._mfcc import mfcc
from skawhmm.utils._whole_files import check_path


def load_wav_folder(
    path: str | PathLike[str],
    *,
    label: Callable[[str], Any] | None = None,
    return_X_y: bool = False,
    **analysis: Any,
) -> Any:
    """Read a folder of sound files as sequences of cepstral coefficients.

    Parameters
    ----------
    path : str or path-like
        A folder or a zip archive with `.wav` files at any depth; a relative path is
        also looked for in :func:`data_home`. Files are read in the order of their
        names.

    label : callable, default=None
        Function that takes the name of a file, relative to `path` and with slashes, and
        returns its label. By default, the label is the folder of the file.

    return_X_y : bool, default=False
        Whether to return `(data, target)` instead of the bunch.

    **analysis : dict
        Parameters of :func:`skawhmm.sequences.mfcc`, such as `n_coefficients` or `hop`.

    Returns
    -------
    data : Bunch
        With the attributes

        data : list of ndarray of shape (n_frames, n_features)
            One sequence per file. Several channels are averaged.
        target : ndarray of shape (n_files,)
            The labels.
        target_names : list of str
            The distinct labels.
        files : list of str
            The names of the files.
        sample_rate : ndarray of int of shape (n_files,)
            Samples per second.

    See Also
    --------
    skawhmm.sequences.mfcc : The analysis.
    load_timit : Phonemes within annotated utterances.

    Examples
    --------
    Three rising and three falling tones, in one folder each:

    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from scipy.io import wavfile
    >>> from scipy.signal import chirp
    >>> from skawhmm.datasets import load_wav_folder
    >>> times = np.arange(8000) / 16000
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, end in [("up", 900), ("down", 100)]:
    ...         (pathlib.Path(folder) / name).mkdir()
    ...         for k in range(3):
    ...             tone = chirp(times, 300 + 20 * k, 0.5, end)
    ...             wavfile.write(f"{folder}/{name}/{k}.wav", 16000, tone)
    ...     X, y = load_wav_folder(folder, deltas=0, return_X_y=True)
    >>> X[0].shape
    (48, 13)
    >>> y
    array(['down', 'down', 'down', 'up', 'up', 'up'], dtype='<U4')
    """
    check_path("path", path)
    place = found_path(path, (), "It must be a folder or a zip archive of sound files.")
    tree = file_tree(place)
    files = [name for name in tree.names if name.lower().endswith(".wav")]
    if not files:
        raise FileNotFoundError(f"{place}: expected files that end in .wav, got none.")
    data, rates = [], []
    for name in files:
        rate, samples = sound(tree.read(name), tree.place(name), mono=True)
        data.append(mfcc(samples, rate, **analysis))
        rates.append(rate)
    target = np.array([(label or _folder)(name) for name in files])
    bunch = Bunch(
        data=data,
        target=target,
        target_names=np.unique(target).tolist(),
        files=files,
        sample_rate=np.array(rates),
    )
    return loaded(bunch, return_X_y)


def _folder(name):
    return PurePosixPath(name).parent.name
