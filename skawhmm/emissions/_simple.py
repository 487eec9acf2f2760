"""Base class of families that define EM for one model at a time."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.random import Generator

from skawhmm.emissions._base import Emission
from skawhmm.emissions._model import Array, Data, Expected, Model
from skawhmm.numerics._forward_backward import forward_backward_each


class SimpleEmission(Emission):
    """Base of families that define their part of EM for one model at a time.

    Frames are what `frames(x)` returns, with time on the first axis. `states` is a
    tuple of the parameters of one model, in the order of `parameter_names`; so are
    `prior` and all states that a member returns.

    **To define, besides `name`, `parameter_names` and `cross` of every family**

    ``log_densities(frames, states)``
        Log densities.
    ``statistics(frames, post, states)``
        Sufficient statistics.
    ``update(statistics, states, prior, relevance)``
        The states after an M step.
    ``log_prior(states, prior)``
        Log prior.
    ``random_states(frames, n_states, rng)``, ``common_states(frames)``
        Start values: states drawn at random, and one state for all frames.

    See Also
    --------
    Emission : The whole contract, with its optional members.

    Examples
    --------
    States that emit exponential waiting times in one channel:

    >>> import numpy as np
    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.emissions import SimpleEmission
    >>> class Exponential(SimpleEmission):
    ...     name = "exponential"
    ...     parameter_names = ("scales",)
    ...
    ...     def log_densities(self, frames, states):
    ...         return -np.log(states[0]) - frames.T / states[0]
    ...
    ...     def statistics(self, frames, post, states):
    ...         return post @ frames, post.sum(axis=1, keepdims=True)
    ...
    ...     def update(self, statistics, states, prior, relevance):
    ...         sums, counts = statistics
    ...         totals = counts + relevance + 1e-9
    ...         return ((sums + relevance * prior[0]) / totals,)
    ...
    ...     def log_prior(self, states, prior):
    ...         return -np.sum(np.log(states[0]) + prior[0] / states[0])
    ...
    ...     def random_states(self, frames, n_states, rng):
    ...         return (frames.mean() * rng.uniform(0.3, 3, (n_states, 1)),)
    ...
    ...     def common_states(self, frames):
    ...         return (frames.mean(axis=0, keepdims=True),)
    ...
    ...     def cross(self, index_a, index_b):
    ...         gaps = self.scales[index_a] - self.scales[index_b].swapaxes(1, 2)
    ...         return 2 * gaps**2
    >>> rng = np.random.default_rng(0)
    >>> waits = rng.exponential(np.repeat([1, 40, 1, 40], 50))[:, None]
    >>> hmm = HMMTransformer(2, emission=Exponential(), random_state=0)
    >>> models = hmm.fit_transform([waits])
    >>> np.sort(models.emission.scales[0, :, 0]).round()
    array([ 1., 49.])
    """

    def frames(self, x: Array) -> Array:
        """Return a checked sequence in the form that the other members take."""
        return x

    @abstractmethod
    def log_densities(self, frames: Array, states: tuple[Array, ...]) -> Array:
        """Return log densities of frames under the states of one model.

        Parameters
        ----------
        frames : ndarray of shape (n_timesteps, ...)
            The frames.

        states : tuple of ndarray of shape (n_components, ...)
            Parameters of the states.

        Returns
        -------
        logs : ndarray of shape (n_components, n_timesteps)
            Log densities.
        """

    @abstractmethod
    def statistics(
        self, frames: Array, post: Array, states: tuple[Array, ...]
    ) -> tuple[Array, ...]:
        """Return the sufficient statistics of frames.

        Parameters
        ----------
        frames : ndarray of shape (n_timesteps, ...)
            The frames.

        post : ndarray of shape (n_components, n_timesteps)
            Probabilities of the states in each frame.

        states : tuple of ndarray of shape (n_components, ...)
            Parameters of the states.

        Returns
        -------
        statistics : tuple of ndarray of shape (n_components, ...)
            Sums over frames, weighted by `post`.
        """

    @abstractmethod
    def update(
        self,
        statistics: tuple[Array, ...],
        states: tuple[Array, ...],
        prior: tuple[Array, ...],
        relevance: float,
    ) -> tuple[Array, ...]:
        """Return the states after an M step.

        Parameters
        ----------
        statistics : tuple of ndarray
            What `statistics` returned.

        states, prior : tuple of ndarray of shape (n_components, ...)
            The states before, and the states of the prior.

        relevance : float
            Weight of the prior, in frames per state; 0 for maximum likelihood.

        Returns
        -------
        states : tuple of ndarray of shape (n_components, ...)
            The new states.
        """

    @abstractmethod
    def log_prior(self, states: tuple[Array, ...], prior: tuple[Array, ...]) -> float:
        """Return the log prior of one frame of relevance, up to a constant."""

    @abstractmethod
    def random_states(
        self, frames: Array, n_states: int, rng: Generator
    ) -> tuple[Array, ...]:
        """Return start values of `n_states` states, drawn at random."""

    @abstractmethod
    def common_states(self, frames: Array) -> tuple[Array, ...]:
        """Return one state that stands for all frames: arrays of one row."""

    def cluster_points(self, frames: Array) -> Array:
        """Return frames as points that can be clustered, for blocks of `ByChannel`."""
        return np.nan_to_num(np.asarray(frames, dtype=float).reshape(len(frames), -1))

    def given_states(self, frames: Array, post: Array) -> tuple[Array, ...]:
        """Return states by the probabilities of the states in each frame.

        They are shrunk to the state of all frames by the weight of one frame.

        Parameters
        ----------
        frames : ndarray of shape (n_timesteps, ...)
            The frames.

        post : ndarray of shape (n_components, n_timesteps)
            Probabilities of the states in each frame.

        Returns
        -------
        states : tuple of ndarray of shape (n_components, ...)
            The states.
        """
        common = tuple(
            np.repeat(part, len(post), axis=0) for part in self.common_states(frames)
        )
        statistics = self.statistics(frames, post, common)
        return self.update(statistics, common, common, 1.0)

    def varied(self, frames: Array) -> bool:
        """Tell whether the frames differ at all."""
        return bool((frames != frames[0]).any())

    def n_free(self, frames: Array) -> int:
        """Return the number of free parameters per state, given the frames."""
        return sum(part[0].size for part in self.common_states(frames))

    def densities(self, i: int, x: Array, start: Array, transmat: Array) -> Array:
        """Return log densities of a checked sequence, given the chain of model i."""
        states = (array[i, : len(start)] for array in self.parameters.values())
        return self.log_densities(self.frames(x), tuple(map(np.array, states)))

    def updated_states(
        self,
        i: int,
        sequences: list[Array],
        posts: list[Array],
        older: Self,
        counts: Array,
    ) -> tuple[Array, ...]:
        """Return the most likely states, with older states as their prior."""
        frames = np.concatenate([self.frames(x) for x in sequences])
        post = np.ascontiguousarray(np.concatenate(posts, axis=1))
        states, prior = (
            tuple(np.array(array[i]) for array in family.parameters.values())
            for family in (self, older)
        )
        groups = self.statistics(frames, post, states), states, prior
        # The weight of a prior is one number, so states are updated one by one.
        rows = []
        for k, count in enumerate(counts):
            sums, now, before = (
                tuple(part[k : k + 1] for part in group) for group in groups
            )
            rows.append(self.update(sums, now, before, float(count)))
        return tuple(np.concatenate(parts) for parts in zip(*rows, strict=True))

    def data(self, sequences: list[Array], firsts: Any = None) -> Data:
        """Return checked sequences in the form that EM reads."""
        offsets = np.cumsum([0, *(len(x) for x in sequences)])
        frames = np.concatenate([self.frames(x) for x in sequences])
        firsts = np.arange(len(offsets)) if firsts is None else np.asarray(firsts)
        return Data(frames, None, offsets, firsts)

    def expectations(
        self, data: Data, model: Model, active: Array
    ) -> tuple[Array, Expected]:
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

    def updates(
        self,
        expected: Expected,
        rows: Array,
        model: Model,
        prior: Model,
        relevance: float,
        active: Array,
    ) -> None:
        """Change the states of some models in place: the M step."""
        for n, m in zip(rows, active, strict=True):
            found, states = _row_of(expected.statistics, n), _row_of(model.states, m)
            fresh = self.update(found, states, _row_of(prior.states, m), relevance)
            for old, new in zip(states, fresh, strict=True):
                old[...] = new

    def log_priors(self, model: Model, prior: Model, active: Array) -> Array:
        """Return the log priors of the states of some models."""
        pairs = ((_row_of(model.states, m), _row_of(prior.states, m)) for m in active)
        return np.array([self.log_prior(*pair) for pair in pairs])


def _row_of(arrays, m):
    """Return row m of each array, or the only row of arrays that serve all models."""
    return tuple(array[min(m, len(array) - 1)] for array in arrays)
