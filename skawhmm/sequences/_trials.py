"""Several recordings of one unit: the container, and its conversion."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from skawhmm.sequences._forms import SERIES, package_type, readable


class Trials:
    """Several recordings of one unit, such as a subject, for a single model.

    A unit is anything that gets one model: a subject with forty trials, an animal with
    four tracks, a machine with one recording per night. Each item of `X` is an array or
    a `Trials`, so ``len(X)`` is the number of units, with one label each.

    The model of a unit is fitted to all its recordings. Each recording contributes a
    start; there is no transition from one recording to the next. Recordings may be as
    short as one frame, which informs the starts and the states but not the transitions.

    Parameters
    ----------
    recordings : list of array-like of shape (n_timesteps, n_features)
        At least one recording, in any form that a sequence may have; also an array of
        shape (n_trials, n_timesteps, n_features). Lengths may differ.

    See Also
    --------
    as_sequences : Reads trials from a table, by the columns of units and of trials.
    HMMTransformer : Fits one model per unit.

    Notes
    -----
    Nested lists are not interpreted: a list of lists of arrays raises an error that
    asks for `Trials`.

    For these units, results with one entry per frame, such as state paths, are lists
    with one array per recording.

    Examples
    --------
    Two viewers look at three faces each. One looks from left to right, the other back
    and forth:

    >>> import numpy as np
    >>> from skawhmm import HMMTransformer, Trials
    >>> rng = np.random.default_rng(0)
    >>> def looks(*places):
    ...     return rng.normal(np.array(places)[:, None], 0.1)
    >>> X = [
    ...     Trials([looks(0, 1), looks(0, 1, 1), looks(0, 0, 1)]),
    ...     Trials([looks(1, 0, 1, 0), looks(0, 1), looks(0, 1, 0)]),
    ... ]
    >>> models = HMMTransformer(n_components=2, random_state=0).fit_transform(X)
    >>> models.info["n_trials"], models.info["n_timesteps"]
    (array([3, 3]), array([8, 9]))
    >>> [model.transmats[0].round(2).tolist() for model in models]
    [[[0.25, 0.75], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
    """

    # No `__getitem__`, so that NumPy and scikit-learn treat it as a single object.
    def __init__(self, recordings: Sequence[Any]) -> None:
        is_stack = isinstance(recordings, np.ndarray) and (
            recordings.ndim == (1 if recordings.dtype == object else 3)
        )
        if not is_stack and not isinstance(recordings, list | tuple):
            raise TypeError(
                "recordings must be a list of arrays, got "
                f"{_description(recordings)}. A single recording is given as "
                "Trials([x])."
            )
        self.recordings = tuple(recordings)
        for recording in self.recordings:
            if isinstance(recording, np.ndarray):  # the usual case, quick to recognise
                continue
            if isinstance(recording, Trials):
                raise TypeError("recordings must be arrays, got Trials among them.")
            if not isinstance(recording, str) and np.isscalar(recording):
                raise TypeError(
                    "recordings must be a list of arrays, got a list of numbers. A "
                    "single recording is given as Trials([x])."
                )

    def __len__(self) -> int:
        return len(self.recordings)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.recordings)

    def __repr__(self) -> str:
        return f"Trials(n_trials={len(self)})"


def _description(value):
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    return f"a {type(value).__name__}"


class Units(NamedTuple):
    """Which of the concatenated recordings belong to which unit.

    Attributes
    ----------
    firsts : ndarray of int of shape (n_units + 1,), or None
        Index of the first recording of each unit, and the number of recordings; None
        if there are no `Trials`, so that each recording is a unit.

    several : list of bool
        Which units are `Trials`; the others are single recordings.
    """

    firsts: np.ndarray | None = None
    several: Sequence[bool] = ()

    def bounds(self, recordings):
        """Return `firsts`, also if each of the recordings is a unit."""
        return np.arange(len(recordings) + 1) if self.firsts is None else self.firsts

    def name(self, i):
        """Return the name of recording i for messages."""
        if self.firsts is None:
            return f"X[{i}]"
        unit = int(np.searchsorted(self.firsts, i, side="right")) - 1
        if not self.several[unit]:
            return f"X[{unit}]"
        return f"trial {i - self.firsts[unit]} of X[{unit}]"

    def grouped(self, items, kind=Trials):
        """Return one entry per unit, given one item per recording."""
        if self.firsts is None:
            return items
        bounds = zip(self.firsts[:-1], self.firsts[1:], self.several, strict=True)
        return [kind(items[i:j]) if several else items[i] for i, j, several in bounds]

    @contextmanager
    def naming(self):
        """Name the unit and the trial in errors that number recordings."""
        try:
            yield
        except (TypeError, ValueError) as error:
            if self.firsts is None:
                raise
            text = re.sub(r"X\[(\d+)\]", lambda m: self.name(int(m[1])), str(error))
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(text) from error


def split_units(X):
    """Return the recordings of all units, and the unit of each recording.

    Parameters
    ----------
    X : object
        What was given as sequences.

    Returns
    -------
    X : object
        A list of recordings if some items are `Trials`; otherwise the same object, or
        the entries of a Series.

    units : Units
        The units.
    """
    if isinstance(X, Trials):
        raise TypeError(
            f"X must be a list of units, got Trials of {len(X)} recordings. A single "
            "unit is given as [X]."
        )
    if package_type(X) in SERIES:
        X = readable(X)
    is_list = isinstance(X, list | tuple)
    if not is_list and not (isinstance(X, np.ndarray) and X.dtype == object):
        return X, Units()
    several = [isinstance(x, Trials) for x in X]
    if True not in several:
        return X, Units()
    recordings: list[Any] = []
    firsts = [0]
    for i, (x, is_trials) in enumerate(zip(X, several, strict=True)):
        if is_trials and len(x) == 0:
            raise ValueError(
                f"X[{i}] must hold at least 1 recording, got empty Trials."
            )
        recordings += x.recordings if is_trials else (x,)
        firsts.append(len(recordings))
    return recordings, Units(np.array(firsts), several)


def units_of(recordings, codes):
    """Return one `Trials` per unit, given the unit index of each recording."""
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    units = Units(np.cumsum([0, *sizes]), [True] * len(sizes))
    return units.grouped([recordings[i] for i in order])


def recordings_of(sequences):
    """Return all recordings, and the index of the first recording of each unit.

    Parameters
    ----------
    sequences : list of ndarray or Trials
        Checked sequences.

    Returns
    -------
    recordings : list of ndarray of shape (n_timesteps, n_features)
        All recordings.

    firsts : ndarray of int of shape (n_units + 1,)
        As in `Units`.
    """
    recordings, units = split_units(sequences)
    return recordings, units.bounds(recordings)


def mapped(function, sequences):
    """Return sequences with a function applied to each recording."""
    recordings, units = split_units(sequences)
    return units.grouped([function(x) for x in recordings])


def unit_frames(sequences):
    """Return all frames of each unit as one array."""
    return [np.concatenate([*x]) if isinstance(x, Trials) else x for x in sequences]
