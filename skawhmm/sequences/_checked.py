"""Checked sequences, as they are passed between estimators."""

import numpy as np

from skawhmm.sequences._trials import Trials, mapped, split_units


class CheckedSequences(list):
    """Sequences that were checked, so that nested estimators need not check again.

    All are plain arrays of shape (n_timesteps, n_features), float64 or strings, or
    `Trials` of them. Only checks, and steps with equally valid results, create such a
    list. User-defined transformers may receive it, so it cannot be changed. Users get
    an ordinary list in the end.

    Parameters
    ----------
    sequences : iterable of ndarray or Trials
        The sequences, one entry per unit.

    names : tuple of str, default=None
        Names of their channels.
    """

    def __init__(self, sequences, names=None):
        super().__init__(sequences)
        self.names = names

    def split(self):
        """Return the recordings as checked sequences, and their units, see `Units`."""
        recordings, units = split_units(self)
        return CheckedSequences(recordings, self.names), units

    @property
    def _first(self):
        unit = self[0]
        return unit.recordings[0] if isinstance(unit, Trials) else unit

    @property
    def is_text(self):
        """Whether the sequences hold strings."""
        return self._first.dtype.kind == "U"

    @property
    def n_features(self):
        """Number of channels."""
        return self._first.shape[1]

    def taken(self, index):
        """Return the sequences at some indices."""
        return CheckedSequences([self[i] for i in index], self.names)

    def channels(self, index):
        """Return the sequences with some of their channels, given as an array."""
        names = self.names and tuple(self.names[k] for k in index)
        parts = mapped(lambda x: np.ascontiguousarray(x[:, index]), self)
        return CheckedSequences(parts, names)

    def __getitem__(self, key):
        part = super().__getitem__(key)
        return CheckedSequences(part, self.names) if isinstance(key, slice) else part

    def __reduce__(self):
        return CheckedSequences, (list(self), self.names)

    def _refused(self, *_, **__):
        raise TypeError("Checked sequences cannot be changed. Write: X = list(X).")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refused
    append = extend = insert = pop = remove = clear = sort = reverse = _refused


def is_checked(X, *, text=False):
    """Whether X holds checked sequences of numbers, or of strings."""
    return isinstance(X, CheckedSequences) and X.is_text == text
