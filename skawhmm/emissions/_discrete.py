"""States that emit symbols or counts: densities and what families of them share.

The frames decide the family. Symbols are codes, one axis: `states` then holds their
probabilities (n_components, n_symbols), and a code below 0 was not observed. Counts
have two axes, time and channels: `states` holds Poisson rates (n_components,
n_channels), and NaN was not observed. Functions that depend on the family take the
frames first: numba drops the branch of the other family.
"""

from math import lgamma

import numpy as np
from numba import njit

from skawhmm.emissions._contract import PlainEmission
from skawhmm.numerics._forward_backward import log_likelihood_of
from skawhmm.utils._compile import KERNEL

# A state with less than this many expected frames is empty and keeps its parameters.
EMPTY_COUNT = 1e-8
# Probabilities below this are 0: their powers would leave the range.
LEAST_PROBABILITY = 1e-100


@njit(**KERNEL)
def fill_log_densities(frames, states, out):
    """Fill log densities (n_components, n_timesteps) of frames under states."""
    logs = np.log(states)
    if frames.ndim == 1:
        for k in range(out.shape[0]):
            for t in range(out.shape[1]):
                code = frames[t]
                out[k, t] = logs[k, code] if code >= 0 else 0.0
    else:
        out[:] = 0.0
        for t in range(out.shape[1]):
            for c in range(frames.shape[1]):
                count = frames[t, c]
                if np.isnan(count):
                    continue
                ways = lgamma(count + 1.0)
                for k in range(out.shape[0]):
                    # A rate of 0 makes a count of 0 certain.
                    part = count * logs[k, c] if count > 0 else 0.0
                    out[k, t] += part - states[k, c] - ways


@njit(**KERNEL)
def fill_likelihoods(frames, states, startprobs, transmats, sizes, models, out):
    """Fill the log likelihoods of one sequence under some models of a stack.

    Parameters
    ----------
    frames : ndarray of shape (n_timesteps,) or (n_timesteps, n_channels)
        Symbols or counts.

    states, startprobs, transmats, sizes : ndarray with a leading axis of models
        Parameters, and the numbers of states.

    models : ndarray of int of shape (n_chosen,)
        Which models.

    out : ndarray of shape (n_chosen,)
        Receives the result.
    """
    for n in range(models.shape[0]):
        i = models[n]
        size = sizes[i]
        logs = np.empty((size, frames.shape[0]))
        fill_log_densities(frames, states[i, :size], logs)
        transmat = np.ascontiguousarray(transmats[i, :size, :size])
        out[n] = log_likelihood_of(logs, startprobs[i, :size], transmat)


@njit(**KERNEL)
def normalized(counts, fallback, out):
    """Fill a law with the shares of counts; with too few of them it stays as it was."""
    total, kept = counts.sum(), 0.0
    for j in range(counts.shape[0]):
        out[j] = fallback[j] if total < EMPTY_COUNT else counts[j] / total
        if out[j] < LEAST_PROBABILITY:
            out[j] = 0.0
        kept += out[j]
    for j in range(counts.shape[0]):
        out[j] /= kept


@njit(**KERNEL)
def shared_log(prior, law):
    """Sum of prior shares times logs of a law."""
    value = 0.0
    for j in range(prior.shape[0]):
        if prior[j] > 0:
            value += prior[j] * np.log(max(law[j], LEAST_PROBABILITY))
    return value


class Discrete(PlainEmission):
    """Base of the families of states that emit symbols or counts.

    A subclass defines how states are drawn, fitted and compared. `Poisson` is the
    shorter example.

    Parameters
    ----------
    states : ndarray of shape (n_models, n_components, n_values)
        Parameters of the states.
    """

    @property
    def states(self):
        """The parameters of all states."""
        return getattr(self, self.parameter_names[0])

    def log_densities(self, frames, states):
        """Return log densities (n_components, n_timesteps) of frames under states."""
        logs = np.empty((len(states[0]), len(frames)))
        fill_log_densities(frames, states[0], logs)
        return logs

    def scorer(self, startprobs, transmats, sizes):
        """Return a function of a checked sequence and models: its log likelihoods."""
        states = np.array(self.states)

        def scores(x, models):
            out = np.empty(len(models))
            frames = self.frames(x)
            fill_likelihoods(frames, states, startprobs, transmats, sizes, models, out)
            return out

        return scores
