"""What EM and the families of states exchange: models, sequences, statistics."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Model(NamedTuple):
    """Parameters of one model, or of several with a leading axis.

    `states` are the arrays of `Emission.parameters`, in their order.
    """

    startprob: Array
    transmat: Array
    states: tuple[Array, ...]


class Data(NamedTuple):
    """Sequences of several models in the form that EM reads.

    `frames` holds the frames of all sequences in the family's own form, and `seen` the
    mask of observed values if the family keeps one. `offsets` says where sequences
    begin and end, `firsts` which of the offsets are the bounds of models.
    """

    frames: Any
    seen: Any
    offsets: Array
    firsts: Array

    @property
    def bounds(self) -> Array:
        """Where the frames of each model begin and end."""
        return self.offsets[self.firsts]

    def chosen(self, members: Any) -> "Data":
        """Return the sequences of some models; frames are one row per frame."""
        if len(members) == len(self.firsts) - 1:
            return self
        bounds, lengths = self.bounds, np.diff(self.offsets)
        frames = [self.frames[bounds[i] : bounds[i + 1]] for i in members]
        sizes = [lengths[self.firsts[i] : self.firsts[i + 1]] for i in members]
        return Data(
            frames[0] if len(frames) == 1 else np.concatenate(frames),
            self.seen,
            np.cumsum(np.concatenate([[0], *sizes])),
            np.cumsum([0, *map(len, sizes)]),
        )


class FrameParts(NamedTuple):
    """Frames in the form in which `IAW` compares them, all with the same leading axes.

    The squared distance of two frames is the squared distance of their `points`, plus
    the squared distances of their `angles` on a circle, each times its factor, plus the
    entries of `tables`, one per coordinate of `codes`.
    """

    points: Array
    angles: Array
    factors: Array
    codes: Array
    tables: tuple[Array, ...]

    @classmethod
    def of_points(cls, points: Array) -> "FrameParts":
        """Return frames that are compared by Euclidean distance."""
        none = np.empty((*points.shape[:-1], 0))
        return cls(points, none, np.empty(0), none.astype(np.intp), ())

    def scaled(self, scale: float) -> "FrameParts":
        """Return frames whose distances are divided by a scale."""
        return FrameParts(
            self.points / scale,
            self.angles,
            self.factors / scale**2,
            self.codes,
            tuple(table / scale**2 for table in self.tables),
        )

    @classmethod
    def side_by_side(cls, parts: "list[FrameParts]") -> "FrameParts":
        """Return frames whose squared distances are sums over several parts."""
        points, angles, codes = (
            np.concatenate([getattr(part, name) for part in parts], axis=-1)
            for name in ("points", "angles", "codes")
        )
        factors = np.concatenate([part.factors for part in parts])
        tables = tuple(table for part in parts for table in part.tables)
        return cls(points, angles, factors, codes, tables)


class Expected(NamedTuple):
    """Expected statistics of several models: arrays with one row per model.

    They are the starts, transitions and frames per state, and the statistics of the
    family.
    """

    start: Array
    moves: Array
    counts: Array
    statistics: tuple[Array, ...]
