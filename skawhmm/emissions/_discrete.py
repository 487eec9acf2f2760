"""States that emit symbols or counts: densities and what families of them share.

The frames decide the family. Symbols are codes, one axis: `states` then holds their
probabilities (n_components, n_symbols), and a code below 0 was not observed. Counts
have two axes, time and channels: `states` holds Poisson rates (n_components,
n_channels), and NaN was not observed.
"""

from typing import ClassVar

import numpy as np

from skawhmm.emissions._discrete_kernels import (
    DiscreteEM,
    fill_expectations,
    fill_likelihoods,
    fill_log_densities,
    fill_statistics,
)
from skawhmm.emissions._model import Expected
from skawhmm.emissions._simple import SimpleEmission


class Discrete(SimpleEmission):
    """Base of the families of states that emit symbols or counts.

    A subclass defines how states are drawn, fitted and compared. `Poisson` is the
    shorter example.
    """

    accepts_missing = True

    # Symbols: expected symbols; counts: expected counts, and frames that hold them.
    n_statistics: ClassVar[int]

    @property
    def states(self) -> np.ndarray:
        """The parameters of all states."""
        return getattr(self, self.parameter_names[0])

    def log_densities(self, frames, states):
        """Return log densities (n_components, n_timesteps) of frames under states."""
        logs = np.empty((len(states[0]), len(frames)))
        fill_log_densities(frames, states[0], logs)
        return logs

    def statistics(self, frames, post, states):
        """Return the expected symbols or counts of each state; see `n_statistics`."""
        found = tuple(np.zeros(states[0].shape) for _ in range(self.n_statistics))
        fill_statistics(frames, post, found[0], found[-1])
        return found

    def expectations(self, data, model, active):
        """Return log likelihoods and expected statistics of some models: the E step."""
        (states,), values = model.states, np.empty(len(active))
        parts = model.startprob, model.transmat, model.startprob
        start, moves, counts, *statistics = (
            np.zeros((len(active), *part.shape[1:]))
            for part in (*parts, *[states] * self.n_statistics)
        )
        fill_expectations(
            data.frames,
            data.offsets,
            data.firsts,
            model[:2],
            states,
            active,
            (start, moves, counts),
            tuple(statistics),
            values,
        )
        return values, Expected(start, moves, counts, tuple(statistics))

    def updates(self, expected, rows, model, prior, relevance, active):
        """Change the states of some models in place: the M step."""
        (states,), (before,) = model.states, prior.states
        before = before[np.minimum(active, len(before) - 1)]

        def flat(array):
            return array.reshape(-1, array.shape[-1])

        # States are updated one by one, whichever models they belong to.
        found = tuple(flat(part[rows]) for part in expected.statistics)
        (fresh,) = self.update(
            found, (flat(states[active]),), (flat(before),), relevance
        )
        states[active] = fresh.reshape(-1, *states.shape[1:])

    def compiled_em(self, data, states, prior):
        """Return the EM steps of the states of several models, without Python."""
        return DiscreteEM(data, states[0], prior[0])

    def scorer(self, startprobs, transmats, sizes):
        """Return a function of a checked sequence and models: its log likelihoods."""
        states = np.ascontiguousarray(self.states)

        def scores(x, models):
            out = np.empty(len(models))
            frames = self.frames(x)
            fill_likelihoods(frames, states, startprobs, transmats, sizes, models, out)
            return out

        return scores
