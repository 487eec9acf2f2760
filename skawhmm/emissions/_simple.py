"""Families that define their part of EM for one model at a time."""

from abc import abstractmethod

import numpy as np

from skawhmm.emissions._base import Data, Emission, Expected
from skawhmm.numerics._forward_backward import forward_backward_each


class PlainEmission(Emission):
    """Base of families that define their part of EM for one model at a time.

    Frames are those of `frames(x)`, with time on the first axis. `states` is a tuple of
    the parameters of one model, in the order of `parameter_names`; so are `prior` and
    all states that a member returns.

    **To define, besides `blank` and what `Emission` asks of every family**

    ``log_densities(frames, states)``
        Log densities (n_components, n_timesteps).
    ``statistics(frames, post, states)``
        Sufficient statistics, a tuple of arrays with one row per state. `post` holds
        the probabilities (n_components, n_timesteps) of the states in each frame.
    ``update(statistics, states, prior, relevance)``
        The states after an M step. The prior counts as `relevance` frames per state.
    ``log_prior(states, prior)``
        Log prior of one frame of relevance, up to a constant.
    ``random_states(frames, n_states, rng)``, ``common_states(frames)``
        Start values: states drawn at random, and one state for all frames.
    ``varied(frames)``, ``n_free(frames)``
        Whether the frames differ at all, and the number of free parameters per state.
    """

    def frames(self, x):
        """Return a checked sequence in the form that the other members take."""
        return x

    @abstractmethod
    def log_densities(self, frames, states):
        """Return log densities (n_components, n_timesteps)."""

    @abstractmethod
    def statistics(self, frames, post, states):
        """Return sufficient statistics, a tuple of arrays with one row per state."""

    @abstractmethod
    def update(self, statistics, states, prior, relevance):
        """Return the states after an M step."""

    @abstractmethod
    def log_prior(self, states, prior):
        """Return the log prior of one frame of relevance, up to a constant."""

    @abstractmethod
    def random_states(self, frames, n_states, rng):
        """Return start values drawn at random."""

    @abstractmethod
    def common_states(self, frames):
        """Return one state that stands for all frames."""

    @abstractmethod
    def varied(self, frames):
        """Tell whether the frames differ at all."""

    @abstractmethod
    def n_free(self, frames):
        """Return the number of free parameters per state, given the frames."""

    def densities(self, i, x, start, transmat):
        """Return log densities of a checked sequence, given the chain of model i."""
        states = (array[i, : len(start)] for array in self.parameters.values())
        return self.log_densities(self.frames(x), tuple(map(np.array, states)))

    def data(self, sequences, firsts=None):
        """Return checked sequences in the form that EM reads."""
        offsets = np.cumsum([0, *(len(x) for x in sequences)])
        frames = np.concatenate([self.frames(x) for x in sequences])
        firsts = np.arange(len(offsets)) if firsts is None else np.asarray(firsts)
        return Data(frames, None, offsets, firsts)

    def expectations(self, data, model, active):
        """Return log likelihoods and expected statistics of some models: the E step."""
        values, found = np.empty(len(active)), []
        start, moves, counts = (
            np.zeros((len(active), *part.shape[1:]))
            for part in (model.startprob, model.transmat, model.startprob)
        )
        for n, m in enumerate(active):
            inner = data.offsets[data.firsts[m] : data.firsts[m + 1] + 1]
            frames, states = data.frames[inner[0] : inner[-1]], _row_of(model.states, m)
            logs = self.log_densities(frames, states)
            chain, post = (model.startprob[m], model.transmat[m]), np.empty(logs.shape)
            values[n] = forward_backward_each(
                logs, inner - inner[0], *chain, post, start[n], moves[n]
            )
            counts[n] = post.sum(axis=1)
            found.append(self.statistics(frames, post, states))
        statistics = tuple(np.stack(parts) for parts in zip(*found, strict=True))
        return values, Expected(start, moves, counts, statistics)

    def updates(self, expected, rows, model, prior, relevance, active):
        """Change the states of some models in place: the M step."""
        for n, m in zip(rows, active, strict=True):
            found, states = _row_of(expected.statistics, n), _row_of(model.states, m)
            fresh = self.update(found, states, _row_of(prior.states, m), relevance)
            for old, new in zip(states, fresh, strict=True):
                old[...] = new

    def log_priors(self, model, prior, active):
        """Return the log priors of the states of some models."""
        pairs = ((_row_of(model.states, m), _row_of(prior.states, m)) for m in active)
        return np.array([self.log_prior(*pair) for pair in pairs])


def _row_of(arrays, m):
    """Return row m of each array, or the only row of arrays that serve all models."""
    return tuple(array[min(m, len(array) - 1)] for array in arrays)
