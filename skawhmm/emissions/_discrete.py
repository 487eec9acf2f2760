"""States that emit symbols or counts: densities and what families of them share.

The frames decide the family. Symbols are codes, one axis: `states` then holds their
probabilities (n_components, n_symbols), and a code below 0 was not observed. Counts
have two axes, time and channels: `states` holds Poisson rates (n_components,
n_channels), and NaN was not observed.
"""

import numpy as np

from skawhmm.emissions._discrete_kernels import fill_likelihoods, fill_log_densities
from skawhmm.emissions._simple import SimpleEmission


class Discrete(SimpleEmission):
    """Base of the families of states that emit symbols or counts.

    A subclass defines how states are drawn, fitted and compared. `Poisson` is the
    shorter example.
    """

    accepts_missing = True

    @property
    def states(self) -> np.ndarray:
        """The parameters of all states."""
        return getattr(self, self.parameter_names[0])

    def log_densities(self, frames, states):
        """Return log densities (n_components, n_timesteps) of frames under states."""
        logs = np.empty((len(states[0]), len(frames)))
        fill_log_densities(frames, states[0], logs)
        return logs

    def scorer(self, startprobs, transmats, sizes):
        """Return a function of a checked sequence and models: its log likelihoods."""
        states = np.ascontiguousarray(self.states)

        def scores(x, models):
            out = np.empty(len(models))
            frames = self.frames(x)
            fill_likelihoods(frames, states, startprobs, transmats, sizes, models, out)
            return out

        return scores
