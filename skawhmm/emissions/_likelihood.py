"""The second part of the contract of families of states: likelihood and EM."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from skawhmm.emissions._model import Array, Data, Expected, FrameParts, Model
from skawhmm.emissions._parameters import EmissionParameters
from skawhmm.numerics._forward_backward import log_likelihood_of
from skawhmm.sequences._checks import check_no_missing, check_sequences

# Frames whose densities are computed together if they must not depend on other frames.
FRAME_BLOCK = 256


# Members that compiled EM steps replace.
EM_MEMBERS = {
    "expectations",
    "log_densities",
    "log_prior",
    "log_priors",
    "statistics",
    "update",
    "updates",
}


class EmissionLikelihood(EmissionParameters):
    """How likely frames are in each state, frames that states draw, and EM.

    `Emission` describes which members a family defines.
    """

    # Whether densities skip values that are NaN.
    accepts_missing: ClassVar[bool] = False

    # Whether `moments` is defined.
    has_moments: ClassVar[bool] = False

    # Whether EM calls `compiled_em` instead of the members that it replaces.
    has_compiled_em: ClassVar[bool] = False

    # Whether models carry sequences unchanged; otherwise `checked` encodes them.
    keeps_sequences: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # The steps of a base class do not call what a subclass defines.
        own = vars(cls)
        if EM_MEMBERS & own.keys() and "has_compiled_em" not in own:
            cls.has_compiled_em = False

    def checked(
        self, X: Any, *, caller: str, n_features: int | None = None
    ) -> list[Array]:
        """Return the sequences of a user as arrays, or raise.

        Parameters
        ----------
        X : object
            What the user passed.

        caller : str
            Name of the estimator, for messages.

        n_features : int, default=None
            Number of channels that sequences must have; None accepts any.

        Returns
        -------
        sequences : list of ndarray of shape (n_timesteps, n_features)
            Numbers; NaN for values that were not observed, if the family accepts it.
        """
        sequences = check_sequences(X, n_features=n_features, caller=caller)
        if not self.accepts_missing:
            check_no_missing(sequences, f"emission={self!r}")
        return sequences

    def named(self, names: Sequence[str] | None) -> Any:
        """Return the template for sequences whose channels have names, if any."""
        return self

    def spread(self, sequences: list[Array]) -> float:
        """Return the root mean square distance of two frames, over the root of 2.

        It is the unit of distances between the states of a block of `ByChannel`. By
        default it is the standard deviation of the frames.

        Parameters
        ----------
        sequences : list of ndarray of shape (n_timesteps, n_features)
            Checked sequences.

        Returns
        -------
        spread : float
            The spread; 0 if all frames are equal.
        """
        frames = np.concatenate(sequences)
        seen = ~np.isnan(frames)
        counts = np.maximum(seen.sum(axis=0), 1)
        means = np.where(seen, frames, 0.0).sum(axis=0) / counts
        gaps = np.where(seen, frames, means) - means
        squares = (gaps**2).sum(axis=0)
        return float(np.sqrt(np.sum(squares / counts)))

    def learned(self, X: Any, *, caller: str) -> tuple[Any, list[Array]]:
        """Return the template with what all models share, learned from `X`.

        Parameters
        ----------
        X : object
            Training sequences as a user passed them.

        caller : str
            Name of the estimator, for messages.

        Returns
        -------
        template : Emission
            A template with the same options or, as an alphabet, options that were
            learned.

        sequences : list of ndarray of shape (n_timesteps, n_features)
            The checked sequences.
        """
        return self, self.checked(X, caller=caller)

    def fitted_as(self) -> Any:
        """Return the template that fits use; its parameters have the same order."""
        return self

    def shown(self, x: Array) -> Array:
        """Return a drawn sequence as users see it."""
        return x

    def check_missing(self, sequences: list[Array], *, is_pooled: bool) -> None:
        """Raise if values are missing that a fit needs.

        Parameters
        ----------
        sequences : list of ndarray of shape (n_timesteps, n_features)
            Checked sequences.

        is_pooled : bool
            Whether one model is fitted to all of them.
        """

    def check_scorable(self, sequences: list[Array]) -> None:
        """Raise if values of checked sequences are missing that a density needs."""

    def drawn(self, i: int, path: Array, rng: Generator) -> Array:
        """Draw a checked sequence from model i, given its path of states.

        Parameters
        ----------
        i : int
            Index of the model.

        path : ndarray of int of shape (n_timesteps,)
            The state of each frame.

        rng : numpy.random.Generator
            Source of the draws.

        Returns
        -------
        x : ndarray of shape (n_timesteps, n_features)
            The frames.
        """
        self._lacking("a density")

    def frames_at(self, i: int, path: Array, levels: Array) -> Array:
        """Return the frames of model i at given levels of their distributions.

        With uniform levels the frames are draws. `IAW` needs it.

        Parameters
        ----------
        i : int
            Index of the model.

        path : ndarray of int of shape (n_timesteps,)
            The state of each frame.

        levels : ndarray of shape (n_timesteps, n_features)
            Numbers between 0 and 1: quantiles of independent channels.

        Returns
        -------
        x : ndarray of shape (n_timesteps, n_features)
            The frames.
        """
        self._lacking("quantiles")

    def frame_parts(self, x: Array) -> FrameParts:
        """Return frames as `IAW` compares them, by default by Euclidean distance."""
        return FrameParts.of_points(x)

    def densities(self, i: int, x: Array, start: Array, transmat: Array) -> Array:
        """Return log densities of a checked sequence, given the chain of model i.

        Parameters
        ----------
        i : int
            Index of the model.

        x : ndarray of shape (n_timesteps, n_features)
            The sequence.

        start, transmat : ndarray
            Start and transition probabilities of the model, without padding.

        Returns
        -------
        logs : ndarray of shape (n_components, n_timesteps)
            Log densities.
        """
        self._lacking("a density")

    def frame_densities(self, i: int, x: Array, size: int) -> tuple[Array, Array]:
        """Return log densities that depend on one frame each, to the last bit.

        Parameters
        ----------
        i : int
            Index of the model.

        x : ndarray of shape (n_timesteps, n_features)
            A checked sequence.

        size : int
            Number of states of the model, without padding.

        Returns
        -------
        logs : ndarray of shape (size, n_timesteps)
            Log densities.

        ranks : ndarray of int of shape (size, n_timesteps)
            Dimensions of the supports of the states; 0 if the family has one support.
        """
        # NumPy may round a frame differently in an array of another length.
        short = -len(x) % FRAME_BLOCK if len(x) > 1 else 0
        padded = np.concatenate([x, np.repeat(x[-1:], short, axis=0)])
        chain = np.full(size, 1 / size), np.full((size, size), 1 / size)
        logs = np.empty((size, len(padded)))
        for first in range(0, len(padded), FRAME_BLOCK):
            block = slice(first, first + FRAME_BLOCK)
            logs[:, block] = self.densities(i, padded[block], *chain)
        return logs[:, : len(x)], np.zeros((size, len(x)), np.intp)

    def updated_states(
        self,
        i: int,
        sequences: list[Array],
        posts: list[Array],
        older: Self,
        counts: Array,
    ) -> tuple[Array, ...]:
        """Return the most likely states of a model, given the state of every frame.

        Parameters
        ----------
        i : int
            Index of the model.

        sequences : list of ndarray of shape (n_timesteps, n_features)
            Checked sequences.

        posts : list of ndarray of shape (n_components, n_timesteps)
            Probabilities of the states in each frame.

        older : Emission
            Family; the states of its model i stand for frames seen before.

        counts : ndarray of shape (n_components,)
            How many frames each of them stands for.

        Returns
        -------
        states : tuple of ndarray of shape (n_components, ...)
            Parameters of the states, unchanged where there are no frames at all.
        """
        self._lacking("a way to be fitted")

    def moments(self, i: int, size: int) -> tuple[Array, Array]:
        """Return means and covariances of the frames that the states of a model emit.

        Parameters
        ----------
        i : int
            Index of the model.

        size : int
            Number of states of the model, without padding.

        Returns
        -------
        means : ndarray of shape (size, n_features)
            Means.

        covars : ndarray of shape (size, n_features, n_features)
            Covariances.
        """
        self._lacking("means and covariances")

    def scorer(
        self, startprobs: Array, transmats: Array, sizes: Array
    ) -> Callable[[Array, Array], Array]:
        """Return a function that scores a checked sequence under some models.

        Parameters
        ----------
        startprobs, transmats : ndarray with a leading axis of models
            The chains.

        sizes : ndarray of int of shape (n_models,)
            Number of states of each model, without padding.

        Returns
        -------
        scores : callable
            Takes a sequence and an array of model indices, and returns one log
            likelihood per model.
        """

        def scores(x: Array, models: Array) -> Array:
            out = np.empty(len(models))
            for n, i in enumerate(models):
                start = startprobs[i, : sizes[i]]
                transmat = transmats[i, : sizes[i], : sizes[i]].copy()
                logs = self.densities(i, x, start, transmat)
                out[n] = log_likelihood_of(logs, start, transmat)
            return out

        return scores

    def pair_scores(
        self,
        chains: tuple[Array, Array, Array],
        sequences: list[Array],
        pairs: list[tuple[Array, Array]],
    ) -> list[tuple[Array, Array]]:
        """Return the log likelihoods of sequences under chosen models.

        Parameters
        ----------
        chains : tuple of ndarray
            The arguments of `scorer`.

        sequences : list of ndarray of shape (n_timesteps, n_features)
            Checked sequences.

        pairs : list of tuple of ndarray
            Pairs of index arrays (sequence, model).

        Returns
        -------
        results : list of tuple of ndarray
            One per pair of arrays: log likelihoods, and the dimensions of the supports
            on which the sequences were scored (0 if the family has only one kind of
            support).
        """
        scorer, results = self.scorer(*chains), []
        for sequence, model in pairs:
            values = np.empty(sequence.size)
            for k in np.unique(sequence):
                rows = np.flatnonzero(sequence == k)
                values[rows] = scorer(sequences[k], model[rows])
            results.append((values, np.zeros(sequence.size, np.int64)))
        return results

    def data(self, sequences: list[Array], firsts: Any = None) -> Data:
        """Return checked sequences in the form that EM reads.

        Parameters
        ----------
        sequences : list of ndarray of shape (n_timesteps, n_features)
            The sequences of all models, one model after the other.

        firsts : array-like of int, default=None
            Index of the first sequence of each model, and at the end the number of
            sequences. By default each model has one sequence.

        Returns
        -------
        data : Data
            The sequences.
        """
        self._lacking("a way to be fitted")

    def random_stack(
        self, data: Data, n_states: int, rngs: list[Generator]
    ) -> tuple[Array, ...]:
        """Return states of several models, drawn from their frames as start values.

        Parameters
        ----------
        data : Data
            The sequences of all models.

        n_states : int
            Number of states.

        rngs : list of numpy.random.Generator
            Source of the draws of each model.

        Returns
        -------
        states : tuple of ndarray of shape (n_models, n_states, ...)
            Parameters, by default those that `random_states` returns for each model.
        """
        bounds = pairwise(data.bounds.tolist())
        drawn = [
            self.random_states(data.frames[i:j], n_states, rng)
            for (i, j), rng in zip(bounds, rngs, strict=True)
        ]
        return tuple(np.stack(parts) for parts in zip(*drawn, strict=True))

    def random_states(
        self, frames: Array, n_states: int, rng: Generator
    ) -> tuple[Array, ...]:
        """Return start values of `n_states` states, drawn at random."""
        self._lacking("a way to be fitted")

    def expectations(
        self, data: Data, model: Model, active: Array
    ) -> tuple[Array, Expected]:
        """Return log likelihoods and expected statistics of some models: the E step.

        Parameters
        ----------
        data : Data
            The sequences of all models.

        model : Model
            Present parameters of all models, a stack.

        active : ndarray of int of shape (n_active,)
            Indices of the models.

        Returns
        -------
        log_likelihoods : ndarray of shape (n_active,)
            One per active model.

        expected : Expected
            Their statistics, in the order of `active`.
        """
        self._lacking("a way to be fitted")

    def updates(
        self,
        expected: Expected,
        rows: Array,
        model: Model,
        prior: Model,
        relevance: float,
        active: Array,
    ) -> None:
        """Change the states of some models in place: the M step.

        Parameters
        ----------
        expected : Expected
            Expected statistics.

        rows : ndarray of int of shape (n_active,)
            Rows of the statistics that belong to the active models.

        model, prior : Model
            Stack of the present parameters, and of the priors (one per model, or one
            for all).

        relevance : float
            Weight of the prior, in frames per state.

        active : ndarray of int of shape (n_active,)
            Indices of the models.
        """
        self._lacking("a way to be fitted")

    def log_priors(self, model: Model, prior: Model, active: Array) -> Array:
        """Return the log priors of states per frame of relevance, up to a constant."""
        self._lacking("a way to be fitted")

    def compiled_em(
        self, data: Data, states: tuple[Array, ...], prior: tuple[Array, ...]
    ) -> Any:
        """Return a `StateEM`, which takes EM steps without Python between them.

        Parameters
        ----------
        data : Data
            The sequences of all models.

        states, prior : tuple of ndarray
            Stack of the parameters of all models, which the steps change in place, and
            those of the priors (one per model, or one for all).
        """
        self._lacking("compiled EM steps")
