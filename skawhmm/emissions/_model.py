"""What EM and the families of states exchange: models, sequences, statistics."""

from typing import Any, NamedTuple

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


class Expected(NamedTuple):
    """Expected statistics of several models: arrays with one row per model.

    They are the starts, transitions and frames per state, and the statistics of the
    family.
    """

    start: Array
    moves: Array
    counts: Array
    statistics: tuple[Array, ...]
