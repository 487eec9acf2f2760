"""Expected numbers of frames and transitions in the data of fitted models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Names of the arrays in files.
NAMES = ("counts.states", "counts.transitions")


@dataclass(frozen=True, eq=False)
class Counts:
    """Expected counts of the sequences that models were fitted to.

    They count the data alone and do not include a prior. The states of a visible chain
    are observed, so its counts are the actual numbers of symbols and of steps.

    Parameters
    ----------
    states : ndarray of shape (n_models, n_components)
        Expected number of frames in each state.

    transitions : ndarray of shape (n_models, n_components, n_components)
        Expected number of steps from each state to each state.
    """

    states: NDArray[np.float64]
    transitions: NDArray[np.float64]

    def __post_init__(self) -> None:
        for array in (self.states, self.transitions):
            array.flags.writeable = False

    def __getitem__(self, rows: Any) -> "Counts":
        return Counts(self.states[rows], self.transitions[rows])

    @classmethod
    def concatenate(cls, parts: "Sequence[Counts]") -> "Counts":
        """Return several counts as one, padded to the largest number of states."""
        size = max(part.states.shape[1] for part in parts)
        padded = [part.padded(size) for part in parts]
        return cls(
            np.concatenate([part.states for part in padded]),
            np.concatenate([part.transitions for part in padded]),
        )

    @classmethod
    def stacked(cls, states: Sequence[Any], transitions: Sequence[Any]) -> "Counts":
        """Return the counts of single models as one, padded to the largest size."""
        size = max(map(len, states))
        stacks = np.zeros((len(states), size)), np.zeros((len(states), size, size))
        for i, (frames, steps) in enumerate(zip(states, transitions, strict=True)):
            stacks[0][i, : len(frames)] = frames
            stacks[1][i, : len(frames), : len(frames)] = steps
        return cls(*stacks)

    def by_name(self) -> dict[str, NDArray[np.float64]]:
        """Return the arrays by their names in files."""
        return dict(zip(NAMES, (self.states, self.transitions), strict=True))

    def padded(self, size: int) -> "Counts":
        """Return the counts with `size` states per model, zero for new states."""
        more = size - self.states.shape[1]
        if more == 0:
            return self
        ends = (0, more)
        return Counts(
            np.pad(self.states, ((0, 0), ends)),
            np.pad(self.transitions, ((0, 0), ends, ends)),
        )

    def merged(self, maps: NDArray[np.float64]) -> "Counts":
        """Return the counts of merged states."""
        states = np.einsum("nj,njk->nk", self.states, maps)
        return Counts(states, maps.swapaxes(1, 2) @ self.transitions @ maps)
