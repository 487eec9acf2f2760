"""The contract of families of states: what each of them must define."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.random import Generator

from skawhmm.emissions._averages import matched_sums
from skawhmm.emissions._hmmlearn import hmmlearn_models
from skawhmm.emissions._model import Array, Data, Expected, FrameParts, Model
from skawhmm.numerics._forward_backward import log_likelihood_of
from skawhmm.sequences._checks import check_no_missing, check_sequences
from skawhmm.utils._checks import LARGEST_VALUE
from skawhmm.utils._digest import content_digest
from skawhmm.utils._numbers import aligned
from skawhmm.utils._parameters import defaults_of

# Frames whose densities are computed together if they must not depend on other frames.
FRAME_BLOCK = 256

if TYPE_CHECKING:
    # The part of scikit-learn's class that is used here. The class has no types, and
    # type checkers would not check its subclasses.
    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...

        def set_params(self, **params: Any) -> Self: ...
else:
    from sklearn.base import BaseEstimator


class Emission(BaseEstimator, ABC):
    """Base of the families of states: what the states of models emit.

    An instance made by the constructor is a template. It holds the options of the
    family, which the constructor takes by name as in any scikit-learn estimator, and is
    what ``HMMTransformer(emission=...)`` takes. The states of fitted models are an
    instance that also holds the parameters of all states of all models, as arrays with
    one row per model and one column per state (``HMMBatch.emission``).

    The contract has three parts. Most families are easier to write as a
    :class:`SimpleEmission`, which defines most of the second part.

    **Parameters: to define**

    ``name``, ``parameter_names``
        Name of the family in messages and files, and names of its arrays of
        parameters.

    **Parameters: optional**

    ``check_options()``
        Raises if an option is wrong.
    ``n_features``
        Number of channels of a frame; by default the number of values per state in the
        first array.
    ``from_arrays(arrays, is_state)``
        Checks the arrays of a user or of a file.
    ``support``, ``of_channel(channel)``
        Where the values of a channel lie, and the family of one channel: pictures.
    ``merged(weights)``, ``described(channels)``, ``compared(channels)``
        Mixtures of states as one state; what tables show of a state, and what groups
        are compared by.
    ``state_names()``
        Names of states that what they emit gives them.

    **Likelihood and EM: to define if models are to be fitted and scored**

    ``densities(i, x, start, transmat)``
        Log densities of a sequence under model i.
    ``data(sequences, firsts)``, ``expectations``, ``updates``, ``log_priors``
        Frames in the form that EM reads; the E step, the M step and the log prior.
    ``random_states``, ``common_states``, ``varied``, ``n_free``
        Start values, whether frames differ at all, and the number of free parameters
        per state.

    **Likelihood and EM: optional**

    ``checked(X, caller, n_features)``, ``learned(X, caller)``
        Sequences of a user as arrays, and what all models share, such as an alphabet.
        By default sequences hold numbers in one or more channels.
    ``accepts_missing``
        Whether densities skip values that are NaN; by default they are an error.
    ``has_moments``, ``moments(i, size)``
        Whether what states emit has means and covariances, and these, for
        `HMMBatch.forecast`.
    ``drawn(i, path, rng)``, ``shown(x)``
        A sequence drawn from model i, given its path of states, and the form in which
        users see it. `HMMBatch.sample` and `KL` need it.
    ``frames_at(i, path, levels)``, ``frame_parts(x)``
        Quantiles of the states of model i, and frames in the form in which they are
        compared. `IAW` needs them.

    **Ground cost: to define**

    ``cross(index_a, index_b)``
        Squared distances between the states of pairs of models.

    **Ground cost: optional**

    ``divergences(index_a, index_b)``
        Kullback-Leibler divergences of states, for ``KL(method="variational")``.
    ``mmd_comparer(masses, sizes, bandwidth)``, ``median_gap(weights)``
        Distances between distributions of frames, and their scale, for `MMD`.
    ``averaged(models, labels, masses)``
        Averages of matched states, for `hmm_barycenter`, `HMMKMeans` and `HMMAligner`.
        `matched_means` computes weighted means of parameters.

    The other members have an implementation here, which a family may replace by a
    faster one.

    See Also
    --------
    SimpleEmission : Families that define EM for one model at a time.
    """

    # ------------------------------------------------------------------ Parameters

    name: ClassVar[str]
    parameter_names: ClassVar[tuple[str, ...]]

    # Numbers of axes that the array of one model may have, by parameter; 2 by default.
    parameter_axes: ClassVar[Mapping[str, tuple[int, ...]]] = {}

    @property
    def parameter_groups(self) -> tuple[tuple[str, ...], ...]:
        """Names of the parameters, grouped by their number of features."""
        return (tuple(self.parameter_names),)

    # Arrays that all models share and that are stored with them, see `extras`.
    shared_names: ClassVar[tuple[str, ...]] = ()

    # Where the values of a channel lie: on a "line", a "circle", or among "counts" or
    # "symbols". Pictures of states need it, and `of_channel`.
    support: ClassVar[str | None] = None

    # Which features each model observed; None if all of them.
    observed: Array | None = None

    def check_options(self) -> None:
        """Raise if an option of the family is wrong."""

    @property
    def n_features(self) -> int:
        """Number of channels of a frame."""
        return int(self._first.shape[2])

    def of_channel(self, channel: int) -> Any:
        """Return the family of one channel: what states emit in it."""
        chosen = slice(channel, channel + 1)
        return self.like(*(array[:, :, chosen] for array in self.parameters.values()))

    @classmethod
    def largest_value(cls, name: str) -> float:
        """Return the largest absolute value of a parameter."""
        return LARGEST_VALUE

    @property
    def traits(self) -> dict[str, Any]:
        """What the `repr` of a batch shows of the family, by name."""
        return {"emission": self.name, "n_features": self.n_features}

    @property
    def parameters(self) -> dict[str, Array]:
        """Arrays with one row per model and one column per state, by name."""
        return {name: getattr(self, name) for name in self.parameter_names}

    @property
    def _first(self) -> Array:
        return getattr(self, self.parameter_names[0])

    @property
    def extras(self) -> dict[str, Array]:
        """Arrays that all models share and that are stored with them, by name."""
        return {}

    @property
    def fingerprint(self) -> bytes:
        """Bytes that differ between families with equal parameters."""
        options = self.get_params(deep=False)
        return content_digest(options).encode() if options else b""

    def __getstate__(self) -> dict[str, Any]:
        # Results kept under private names follow from the parameters.
        return {name: v for name, v in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, v in state.items():
            setattr(self, name, aligned(v) if isinstance(v, np.ndarray) else v)

    def like(self, *parameters: Array, observed: Array | None = None) -> Self:
        """Return a family with the same options and other parameters.

        Parameters
        ----------
        *parameters : ndarray of shape (n_models, n_components, ...)
            The arrays, in the order of `parameter_names`.

        observed : ndarray of bool of shape (n_models, n_features), default=None
            Which features each model observed; None if all of them.

        Returns
        -------
        family : Emission
            An instance of the same class.
        """
        options = {name: getattr(self, name) for name in defaults_of(type(self))}
        family = type(self)(**options)
        for name, array in zip(self.parameter_names, parameters, strict=True):
            setattr(family, name, array)
        family.observed = observed
        return family

    def __getitem__(self, index: Any) -> Self:
        observed = None if self.observed is None else self.observed[index]
        arrays = (array[index] for array in self.parameters.values())
        return self.like(*arrays, observed=observed)

    def padded(self, size: int) -> Self:
        """Return the family with `size` states per model, the new ones all zero."""
        arrays = []
        for array in self.parameters.values():
            short = [(0, 0), (0, size - array.shape[1])]
            arrays.append(np.pad(array, short + [(0, 0)] * (array.ndim - 2)))
        return self.like(*arrays, observed=self.observed)

    @classmethod
    def concatenate(cls, families: Sequence[Any]) -> Any:
        """Return one family with the models of all, which have equally many states."""
        for n, family in enumerate(families):
            if family.fingerprint != families[0].fingerprint:
                raise ValueError(
                    f"All batches must have the same states, got {families[0]!r} in "
                    f"batch 0 and {family!r} in batch {n}."
                )
        observed = None
        if any(family.observed is not None for family in families):
            observed = np.concatenate([family.masks() for family in families]) > 0
        parts = zip(*(family.parameters.values() for family in families), strict=True)
        return families[0].like(*map(np.concatenate, parts), observed=observed)

    def masks(self) -> Array:
        """Return the observed features of each model, as ones and zeros."""
        if self.observed is None:
            return np.ones((len(self._first), self.n_features))
        return self.observed.astype(float)

    def from_arrays(self, arrays: Mapping[str, Any], is_state: Array) -> Any:
        """Return the family with given arrays, or raise if they are wrong.

        Parameters
        ----------
        arrays : mapping of object
            The parameters by name, finite and padded to the largest number of states,
            and what all models share, as a user or a file gave it.

        is_state : ndarray of bool of shape (n_models, n_components)
            True for states, False for padding.

        Returns
        -------
        family : Emission
            The family.
        """
        return self.like(*(arrays[name] for name in self.parameter_names))

    @property
    def stored_options(self) -> dict[str, Any]:
        """Options that a file must hold besides the arrays, as JSON holds them."""
        return {}

    @classmethod
    def from_stored(cls, options: Mapping[str, Any]) -> Any:
        """Return the template with the options that a file holds."""
        return cls(**options)

    @property
    def is_stored(self) -> bool:
        """Whether the arrays define the family, so that a file can hold it."""
        return True

    def merged(self, weights: Array) -> Self:
        """Return the family with states that stand for mixtures of its own.

        Parameters
        ----------
        weights : ndarray of shape (n_models, n_merged, n_components)
            Weight of each state in each new one.

        Returns
        -------
        family : Emission
            The new states, with the mean parameters of the states they stand for.
        """
        arrays = (
            np.einsum("nkj,nj...->nk...", weights, array)
            for array in self.parameters.values()
        )
        return self.like(*arrays, observed=self.observed)

    def described(self, channels: Sequence[Any]) -> dict[str, Array]:
        """Return what a table shows of each state, by name.

        Parameters
        ----------
        channels : sequence of str or int of shape (n_features,)
            Names of the channels.

        Returns
        -------
        columns : dict of ndarray of shape (n_models, n_components)
            One number per state.
        """
        columns = {}
        for name, array in self.parameters.items():
            values = array.reshape(*array.shape[:2], -1)
            for k in range(values.shape[2]):
                columns[f"{name}_{k}"] = values[..., k]
        return columns

    def compared(self, channels: Sequence[Any]) -> dict[str, Array]:
        """Return what groups of models are compared by: `described`, on a line."""
        return self.described(channels)

    def state_names(self) -> tuple[str, ...] | None:
        """Return names that states have by what they emit, None if they have none."""
        return None

    # Class in `hmmlearn.hmm`, and the attribute that holds the parameters: enough for a
    # family with one array of them.
    hmmlearn_class: ClassVar[str | None] = None
    hmmlearn_attribute: ClassVar[str | None] = None

    def hmmlearn_model(self, i: int, size: int) -> Any:
        """Return a model of hmmlearn with the states of model i, without its chain."""
        if self.hmmlearn_class is None:
            self._lacking("a counterpart in hmmlearn")
        hmm = hmmlearn_models()
        (states,) = (array[i, :size].copy() for array in self.parameters.values())
        model = getattr(hmm, self.hmmlearn_class)(int(size))
        model.n_features = states.shape[1]
        setattr(model, str(self.hmmlearn_attribute), states)
        return model

    def _lacking(self, what: str) -> NoReturn:
        raise TypeError(
            f"This needs models whose states have {what}, got states of kind "
            f"{self.name!r}."
        )

    # ----------------------------------------------------------- Likelihood and EM

    # Whether densities skip values that are NaN.
    accepts_missing: ClassVar[bool] = False

    # Whether `moments` is defined.
    has_moments: ClassVar[bool] = False

    # Whether models carry sequences unchanged; otherwise `checked` encodes them.
    keeps_sequences: ClassVar[bool] = False

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
            Number of the model.

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
            Number of the model.

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
            Number of the model.

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
            Number of the model.

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
            Number of the model.

        sequences : list of ndarray of shape (n_timesteps, n_features)
            Checked sequences.

        posts : list of ndarray of shape (n_components, n_timesteps)
            Probabilities of the states in each frame.

        older : Emission
            Family whose states, those of model i, stand for frames seen before.

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
            Number of the model.

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
            Takes a sequence and an array of model numbers, and returns one log
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

    def pair_scorer(
        self, startprobs: Array, transmats: Array, sizes: Array
    ) -> Callable[..., list[Any]]:
        """Return a function that scores sequences under chosen models.

        Parameters
        ----------
        startprobs, transmats, sizes : ndarray
            As for `scorer`.

        Returns
        -------
        scores : callable
            Takes a list of sequences and a list of pairs of index arrays (sequence,
            model). It returns one tuple per pair of arrays: log likelihoods, and the
            dimensions of the supports on which the sequences were scored (0 if the
            family has only one kind of support).
        """
        scorer = self.scorer(startprobs, transmats, sizes)

        def scores(sequences, pairs):
            results = []
            for sequence, model in pairs:
                values = np.empty(sequence.size)
                for k in np.unique(sequence):
                    rows = np.flatnonzero(sequence == k)
                    values[rows] = scorer(sequences[k], model[rows])
                results.append((values, np.zeros(sequence.size, np.int64)))
            return results

        return scores

    def data(self, sequences: list[Array], firsts: Any = None) -> Data:
        """Return checked sequences in the form that EM reads.

        Parameters
        ----------
        sequences : list of ndarray of shape (n_timesteps, n_features)
            The sequences of all models, one model after the other.

        firsts : array-like of int, default=None
            Number of the first sequence of each model, and at the end the number of
            sequences. By default each model has one sequence.

        Returns
        -------
        data : Data
            The sequences.
        """
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
            Numbers of the models.

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
            Numbers of the models.
        """
        self._lacking("a way to be fitted")

    def log_priors(self, model: Model, prior: Model, active: Array) -> Array:
        """Return the log priors of states per frame of relevance, up to a constant."""
        self._lacking("a way to be fitted")

    # ---------------------------------------------------------------- Ground cost

    # Whether distributions are compared by a kernel between frames, with a bandwidth.
    has_kernel: ClassVar[bool] = False

    @abstractmethod
    def cross(self, index_a: Array, index_b: Array) -> Array:
        """Return squared distances between the states of pairs of models.

        Parameters
        ----------
        index_a, index_b : ndarray of int of shape (n_pairs,)
            Numbers of the models.

        Returns
        -------
        cost : ndarray of shape (n_pairs, n_components, n_components)
            Squared distances between the states of model a and those of model b.
        """

    def within(self, index_a: Array, index_b: Array) -> Array:
        """Return squared distances within models a, on features that b observed too."""
        return self._own[index_a]

    @cached_property
    def _own(self) -> Array:
        index = np.arange(len(self._first))
        upper = np.triu(self.cross(index, index), 1)
        return upper + upper.swapaxes(1, 2)

    def ground_costs(self) -> Any:
        """Return an object with `cross` and `within` that serves many comparisons."""
        return self

    def points(self) -> Array | None:
        """Return states as points whose squared Euclidean distances are the costs.

        Returns
        -------
        points : ndarray of shape (n_models, n_components, n_dimensions) or None
            The points; None if costs have no such form.
        """
        return None

    def divergences(self, index_a: Array, index_b: Array) -> Array:
        """Return divergences (n_pairs, n_components, n_components) from a to b."""
        self._lacking("a divergence in closed form, as KL(method='variational') does")

    def mmd_comparer(
        self, masses: Array, sizes: Array, bandwidth: float
    ) -> Callable[[Array, Array], Array]:
        """Return a function that compares distributions of frames of pairs of models.

        Parameters
        ----------
        masses : ndarray of shape (n_models, n_components[, n_components])
            Probabilities of states, or of pairs of successive states.

        sizes : ndarray of int of shape (n_models,)
            Number of states of each model, without padding.

        bandwidth : float
            Width of the kernel between frames, if the family has one.

        Returns
        -------
        gaps : callable
            Takes two index arrays and returns one squared distance per pair.
        """
        self._lacking("a distribution that can be compared")

    def median_gap(self, weights: Array) -> float:
        """Return the median squared distance between frames of two states."""
        self._lacking("a kernel between frames")

    def keeping_costs(self) -> Self:
        """Return the family with its costs prepared, for models compared repeatedly."""
        return self

    def averaged(self, models: Self, labels: Array, masses: Array) -> Self:
        """Return states that are averages of the states of models matched with them.

        The average of states minimises the weighted sum of their squared distances,
        those of `cross`. It need not be exact: averages of models take no step that
        raises this sum.

        Parameters
        ----------
        models : Emission
            States of the models to be averaged, of the same family.

        labels : ndarray of int of shape (n_models,)
            The row of this family that each model is averaged into.

        masses : ndarray of shape (n_models, n_components, n_components)
            ``masses[n, i, j]`` is the weight of state j of model n in the average that
            becomes state i of row ``labels[n]``. Weights do not sum to one.

        Returns
        -------
        family : Emission
            The averages. States without any weight keep their parameters.
        """
        raise TypeError(
            "Averages of models need states of a family that defines averaged, got "
            f"states of kind {self.name!r}. HMMKMedoids and HMMAligner('medoid') need "
            "no averages."
        )

    @staticmethod
    def matched_means(own: Array, values: Array, labels: Array, masses: Array) -> Array:
        """Return weighted means of the parameters of matched states.

        Parameters
        ----------
        own : ndarray of shape (n_rows, n_components, ...)
            Parameters to be replaced; they stay where no state has weight.

        values : ndarray of shape (n_models, n_components, ...)
            Parameters of the states of models.

        labels, masses : ndarray
            As in `averaged`.

        Returns
        -------
        means : ndarray of shape (n_rows, n_components, ...)
            The means.
        """
        flat = values.reshape(*values.shape[:2], -1)
        mass, sums = matched_sums(masses, labels, flat, len(own))
        used, means = mass > 0, np.array(own)
        means[used] = (sums[used] / mass[used, None]).reshape(-1, *own.shape[2:])
        return means

    def gaussian(self, purpose: str) -> Any:
        """Return the family if its states are Gaussian, else raise.

        Parameters
        ----------
        purpose : str
            Beginning of the message: what needs Gaussian states, and the verb.

        Returns
        -------
        family : Gaussian
            The family.
        """
        raise TypeError(
            f"{purpose} models with Gaussian states, got states of kind {self.name!r}. "
            "HMMKMedoids and the metrics 'maw' and 'coupling' take models of any kind."
        )
