"""States that emit symbols or counts: densities and what families of them share.

The frames decide the family. Symbols are codes, one axis: `states` then holds their
probabilities (n_components, n_symbols), and a code below 0 was not observed. Counts
have two axes, time and channels: `states` holds Poisson rates (n_components,
n_channels), and NaN was not observed. Functions that depend on the family take the
frames first: numba drops the branch of the other family.
"""

from functools import cached_property
from math import lgamma

import numpy as np
from numba import njit

from skawhmm.numerics._forward_backward import log_likelihood_of
from skawhmm.utils._compile import KERNEL


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
def fill_scores(frames, states, startprobs, transmats, sizes, models, out):
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


class Discrete:
    """What families of states that emit symbols or counts have in common.

    A family adds how states are drawn, started and compared: see `Poisson`, the
    smaller one.

    Parameters
    ----------
    states : ndarray of shape (n_models, n_components, n_values)
        Parameters of the states.
    """

    name: str
    parameter: str
    observed = None

    def __init__(self, states):
        self.states = states

    def __getattr__(self, name):
        # Pickling asks for special names before there are any attributes.
        if name in {"means", "covars", "covariance_type", "full_covars"}:
            raise TypeError(
                "This needs models with Gaussian states, got states of kind "
                f'{self.name!r}. The metrics "maw", "kl" and "coupling" compare them.'
            )
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")

    @property
    def parameters(self):
        """Arrays with one row per model and one column per state, by name."""
        return {self.parameter: self.states}

    @property
    def extras(self):
        """Arrays that all models share, by name, which are stored with them."""
        return {}

    @property
    def fingerprint(self):
        """What tells two families with equal parameters apart."""
        return b""

    def like(self, states):
        """Return a family of the same kind with other states."""
        return type(self)(states)

    def __getitem__(self, index):
        return self.like(self.states[index])

    def padded(self, size):
        """Return the family with `size` states a model, the new ones all zero."""
        short = size - self.states.shape[1]
        return self.like(np.pad(self.states, [(0, 0), (0, short), (0, 0)]))

    @classmethod
    def concatenate(cls, families):
        """Return one family that holds the models of all, of equal state counts."""
        return families[0].like(np.concatenate([family.states for family in families]))

    def masks(self):
        """Return ones: every model observed all there is."""
        return np.ones((len(self.states), self.n_features))

    def frames(self, x):
        """Return a checked sequence in the form that compiled functions read."""
        return x

    def densities(self, i, x, start, transmat):  # noqa: ARG002
        """Return log densities (n_components, n_timesteps) of a sequence in model i."""
        logs = np.empty((len(start), len(x)))
        fill_log_densities(self.frames(x), np.array(self.states[i, : len(start)]), logs)
        return logs

    def scorer(self, startprobs, transmats, sizes):
        """Return a function of a checked sequence and models: its log likelihoods."""
        states = np.array(self.states)

        def scores(x, models):
            out = np.empty(len(models))
            frames = self.frames(x)
            fill_scores(frames, states, startprobs, transmats, sizes, models, out)
            return out

        return scores

    def ground_costs(self):
        """Return what makes the costs between the states of any two of the models."""
        # Read-only arrays are another type to the compiler.
        return self.like(np.array(self.states))

    def within(self, index_a, index_b):  # noqa: ARG002
        """Return the squared distances inside the models a."""
        return self._own[index_a]

    @cached_property
    def _own(self):
        index = np.arange(len(self.states))
        upper = np.triu(self.cross(index, index), 1)
        return upper + upper.swapaxes(1, 2)
