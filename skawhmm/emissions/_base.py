"""The contract of families of states: what each of them must define."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skawhmm.numerics._forward_backward import log_likelihood_of
from skawhmm.utils._checks import LARGEST_VALUE
from skawhmm.utils._numbers import aligned


class Model(NamedTuple):
    """Parameters of one model, or of several with a leading axis.

    `states` are the arrays of `Emission.parameters`, in their order.
    """

    startprob: np.ndarray
    transmat: np.ndarray
    states: tuple[np.ndarray, ...]


class Data(NamedTuple):
    """Sequences of several models in the form that EM reads.

    `frames` holds the frames of all sequences in the family's own form, and `seen` the
    mask of observed values if the family keeps one. `offsets` says where sequences
    begin and end, `firsts` which of the offsets are the bounds of models.
    """

    frames: Any
    seen: Any
    offsets: np.ndarray
    firsts: np.ndarray

    @property
    def bounds(self):
        """Where the frames of each model begin and end."""
        return self.offsets[self.firsts]


class Expected(NamedTuple):
    """Expected statistics of several models: arrays with one row per model.

    They are the starts, transitions and frames per state, and the statistics of the
    family.
    """

    start: np.ndarray
    moves: np.ndarray
    counts: np.ndarray
    statistics: tuple[np.ndarray, ...]


class Emission(ABC):
    """Base of the families of states: what the states of a stack of models emit.

    A family holds the parameters of all states of all models, as arrays with one row
    per model and one column per state, and defines everything that depends on what
    states emit. A new family is a subclass and a line in
    `skawhmm.emissions._registry`; nothing else changes. Most families are easier to
    write as a `skawhmm.emissions._simple.PlainEmission`, which asks for less.

    **Every family defines**

    ``name``, ``parameter_names``
        The name for ``HMMTransformer(emission=...)`` and for files, and the names of
        the arrays of parameters, in the order in which the constructor takes them.
    ``n_features``
        Number of channels of a frame.
    ``checked(X, caller)``
        Sequences of a user as arrays (n_timesteps, n_features), or an error that names
        the caller.
    ``cross(index_a, index_b)``
        Ground cost: squared distances between the states of pairs of models.

    **If it has something to add**

    ``traits``, ``shown(x)``
        What `repr` shows of the family; a drawn sequence as a user sees it.
    ``from_arrays(arrays, is_state)``
        The family made from arrays of a user or of a file, or an error that says what
        is wrong with them.
    ``merged(shares)``, ``described(channels)``
        States that stand for mixtures of states, and what tables show of a state. By
        default both go by the parameters as they are.

    **If states have a density**

    ``densities(i, x, start, transmat)``
        Log densities (n_components, n_timesteps) of a sequence under model i.
    ``divergences(index_a, index_b)``
        Kullback-Leibler divergences between the states of pairs of models.
    ``drawn(i, path, rng)``
        A sequence drawn from model i, given its path of states.
    ``mmd_comparer(masses, sizes, bandwidth)``, ``median_gap(weights)``
        Distances between the laws of frames, and the scale of their kernel.

    **If models can be fitted**

    ``blank(sequences, options)``
        The family with one blank state that fits start from, and the checked training
        sequences.
    ``check_gaps(sequences, options)``
        An error if values are missing that a fit needs.
    ``data(sequences, firsts)``
        Checked sequences in the form that EM reads.
    ``expectations``, ``updates``, ``log_priors``
        The family's part of EM: sufficient statistics, new states, log prior.
    ``random_states``, ``common_states``, ``varied``, ``n_free``
        Start values, whether frames differ at all, and the number of free parameters
        per state. (Gaussian states do without: `skawhmm.fitting._gaussian_starts`
        makes their start values.)

    **If hmmlearn has such models**

    ``hmmlearn_class``, ``hmmlearn_attribute``
        Class in `hmmlearn.hmm`, and the attribute that holds the parameters. They are
        enough for a family with one array of parameters; others define
        ``hmmlearn_arrays(models)`` and ``hmmlearn_model(i, size)``.

    All other members have an implementation here, which a family may replace by a
    faster one: they slice, pad, join and store the arrays, score sequences and compare
    states.

    Parameters
    ----------
    *parameters : ndarray of shape (n_models, n_components, ...)
        The parameters of the states.
    """

    name: str
    parameter_names: tuple[str, ...]

    # Numbers of axes that the array of one model may have, by parameter; 2 by default.
    parameter_axes: ClassVar[dict[str, tuple[int, ...]]] = {}

    # Whether models carry sequences as given; otherwise `checked` encodes them.
    keeps_sequences: ClassVar[bool] = False

    # Arguments of the constructor that all models share, by name. Arrays among them are
    # stored in files.
    shared_names: ClassVar[tuple[str, ...]] = ()

    # Parameters of `HMMTransformer` that this family supports and others may not.
    fit_options: ClassVar[frozenset[str]] = frozenset()

    # Whether laws are compared by a kernel between frames, which has a bandwidth.
    has_kernel: ClassVar[bool] = False

    # Which features each model observed; None if all of them.
    observed: np.ndarray | None = None

    def __init__(self, *parameters: np.ndarray) -> None:
        for name, array in zip(self.parameter_names, parameters, strict=True):
            setattr(self, name, array)

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of channels of a frame."""

    @classmethod
    def largest_value(cls, name: str) -> float:
        """Return the largest size of the values of a parameter."""
        return LARGEST_VALUE

    @property
    def traits(self) -> dict[str, Any]:
        """What `repr` shows of the family, by name."""
        return {"emission": self.name, "n_features": self.n_features}

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """Arrays with one row per model and one column per state, by name."""
        return {name: getattr(self, name) for name in self.parameter_names}

    @property
    def extras(self) -> dict[str, np.ndarray]:
        """Arrays that all models share and that are stored with them, by name."""
        shared = {name: getattr(self, name) for name in self.shared_names}
        return {name: v for name, v in shared.items() if isinstance(v, np.ndarray)}

    @property
    def fingerprint(self) -> bytes:
        """Bytes that tell families with equal parameters apart."""
        return b""

    def __getstate__(self) -> dict[str, Any]:
        # Results kept under private names follow from the parameters.
        return {name: v for name, v in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, v in state.items():
            setattr(self, name, aligned(v) if isinstance(v, np.ndarray) else v)

    # The stack.

    def like(self, *parameters: np.ndarray, observed: np.ndarray | None = None) -> Any:
        """Return a family of the same class with other parameters."""
        shared = {name: getattr(self, name) for name in self.shared_names}
        family = type(self)(*parameters, **shared)
        family.observed = observed
        return family

    def __getitem__(self, index: Any) -> Any:
        observed = None if self.observed is None else self.observed[index]
        arrays = (array[index] for array in self.parameters.values())
        return self.like(*arrays, observed=observed)

    def padded(self, size):
        """Return the family with `size` states per model, the new ones all zero."""
        arrays = []
        for array in self.parameters.values():
            short = [(0, 0), (0, size - array.shape[1])]
            arrays.append(np.pad(array, short + [(0, 0)] * (array.ndim - 2)))
        return self.like(*arrays, observed=self.observed)

    @classmethod
    def concatenate(cls, families):
        """Return one family with the models of all, which have equally many states."""
        observed = None
        if any(family.observed is not None for family in families):
            observed = np.concatenate([family.masks() for family in families]) > 0
        parts = zip(*(family.parameters.values() for family in families), strict=True)
        return families[0].like(*map(np.concatenate, parts), observed=observed)

    def masks(self):
        """Return the observed features of each model, as ones and zeros."""
        if self.observed is None:
            n_models = len(getattr(self, self.parameter_names[0]))
            return np.ones((n_models, self.n_features))
        return self.observed.astype(float)

    @classmethod
    def from_arrays(cls, arrays, is_state):
        """Return the family made from given arrays, or raise if they are wrong.

        Parameters
        ----------
        arrays : dict of object
            The parameters by name, finite and padded to the largest number of states,
            and what all models share, as a user or a file gave it.

        is_state : ndarray of bool of shape (n_models, n_components)
            True for states, False for padding.

        Returns
        -------
        family : Emission
            The family.
        """
        shared = {name: arrays[name] for name in cls.shared_names if name in arrays}
        return cls(*(arrays[name] for name in cls.parameter_names), **shared)

    @property
    def is_stored(self) -> bool:
        """Whether the arrays define the family, so that a file can hold it."""
        return True

    # Comparisons of groups.

    def merged(self, shares):
        """Return the family with states that stand for mixtures of its own.

        Parameters
        ----------
        shares : ndarray of shape (n_models, n_merged, n_components)
            Share of each state in each new one.

        Returns
        -------
        family : Emission
            The new states, with the mean parameters of those they stand for.
        """
        arrays = (
            np.einsum("nkj,nj...->nk...", shares, array)
            for array in self.parameters.values()
        )
        return self.like(*arrays, observed=self.observed)

    def described(self, channels):
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

    # Sequences.

    @abstractmethod
    def checked(self, X, caller):
        """Return the sequences of a user as arrays (n_timesteps, n_features)."""

    def shown(self, x):
        """Return a drawn sequence as users see it."""
        return x

    def check_scorable(self, sequences):  # noqa: B027 (most accept any)
        """Raise if values are missing that a density needs.

        Parameters
        ----------
        sequences : list of ndarray of shape (n_timesteps, n_features)
            Checked sequences.
        """

    def drawn(self, i, path, rng):
        """Draw a checked sequence from model i, given its path of states."""
        raise self._lacking("a density")

    def densities(self, i, x, start, transmat):
        """Return log densities of a checked sequence, given the chain of model i."""
        raise self._lacking("a density")

    def scorer(self, startprobs, transmats, sizes):
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

        def scores(x, models):
            out = np.empty(len(models))
            for n, i in enumerate(models):
                start = startprobs[i, : sizes[i]]
                transmat = transmats[i, : sizes[i], : sizes[i]].copy()
                logs = self.densities(i, x, start, transmat)
                out[n] = log_likelihood_of(logs, start, transmat)
            return out

        return scores

    def pair_scorer(self, startprobs, transmats, sizes):
        """Return a function that scores sequences under chosen models.

        The parameters are those of `scorer`.

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

    # Comparisons of states.

    @abstractmethod
    def cross(self, index_a, index_b):
        """Return squared distances (n_pairs, n_components, n_components) of states."""

    def within(self, index_a, index_b):
        """Return squared distances within models a, on features that b observed too."""
        return self._own[index_a]

    @cached_property
    def _own(self):
        index = np.arange(len(getattr(self, self.parameter_names[0])))
        upper = np.triu(self.cross(index, index), 1)
        return upper + upper.swapaxes(1, 2)

    def ground_costs(self):
        """Return an object with `cross` and `within` that serves many comparisons."""
        # Read-only arrays are another type to the compiler.
        return self.like(*map(np.array, self.parameters.values()))

    def divergences(self, index_a, index_b):
        """Return divergences (n_pairs, n_components, n_components) from a to b."""
        raise self._lacking("a density")

    def mmd_comparer(self, masses, sizes, bandwidth):
        """Return a function that compares the laws of frames of pairs of models.

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
        raise self._lacking("a law")

    def median_gap(self, weights):
        """Return the median squared distance between frames of two states."""
        raise NotImplementedError

    def gaussian(self, purpose):
        """Return the family if its states are Gaussian, else raise.

        Parameters
        ----------
        purpose : str
            Beginning of the message: what needs Gaussian states, and the verb.
        """
        raise TypeError(
            f"{purpose} models with Gaussian states, got states of kind {self.name!r}. "
            "HMMKMedoids and the metrics 'maw' and 'coupling' take models of any kind."
        )

    # Fitting. Families that cannot be fitted keep these.

    @classmethod
    def blank(cls, sequences, options):
        """Return the family with one blank state, and the checked training sequences.

        Parameters
        ----------
        sequences : object
            The training sequences as a user gave them.

        options : HMMTransformer
            The transformer, whose parameters may matter to the family.

        Returns
        -------
        family : Emission
            Knows what all models share, such as the number of channels.

        sequences : list of ndarray of shape (n_timesteps, n_features)
            Checked sequences.
        """
        raise TypeError(f"Models with states of kind {cls.name!r} cannot be fitted.")

    def check_gaps(self, sequences, options):  # noqa: B027 (most accept any)
        """Raise if values are missing that a fit needs.

        Parameters
        ----------
        sequences : list of ndarray of shape (n_timesteps, n_features)
            Checked sequences.

        options : HMMTransformer
            The transformer, whose parameters may matter to the family.
        """

    def data(self, sequences, firsts=None):
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
        raise self._lacking("a way to be fitted")

    def expectations(self, data, model, active):
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
        raise self._lacking("a way to be fitted")

    def updates(self, expected, rows, model, prior, relevance, active):
        """Change the states of some models in place: the M step.

        Parameters
        ----------
        expected : Expected
            Expected statistics.

        rows, active : ndarray of int of shape (n_active,)
            Rows of the statistics, and the numbers of the models they belong to.

        model, prior : Model
            Stack of the present parameters, and of the priors (one per model, or one
            for all).

        relevance : float
            Weight of the prior, in frames per state.
        """
        raise self._lacking("a way to be fitted")

    def log_priors(self, model, prior, active):
        """Return the log priors of the states of some models.

        They are those of one frame of relevance, up to a constant. The parameters are
        those of `updates`.
        """
        raise self._lacking("a way to be fitted")

    # Exchange with hmmlearn.

    # Class in `hmmlearn.hmm`, and the attribute by which its models are recognised.
    hmmlearn_class: ClassVar[str | None] = None
    hmmlearn_attribute: ClassVar[str | None] = None

    @classmethod
    def hmmlearn_arrays(cls, models):
        """Return chains and parameters of fitted models of hmmlearn, by name."""
        for n, model in enumerate(models):
            if not hasattr(model, str(cls.hmmlearn_attribute)):
                raise TypeError(
                    f"models must all be fitted {cls.hmmlearn_class} models, as the "
                    f"first, got {type(model).__name__} at {n}."
                )
        return {
            "transmats": [model.transmat_ for model in models],
            cls.parameter_names[0]: [
                getattr(model, str(cls.hmmlearn_attribute)) for model in models
            ],
            "startprobs": [model.startprob_ for model in models],
        }

    def hmmlearn_model(self, i, size):
        """Return a model of hmmlearn with the states of model i, without its chain."""
        if self.hmmlearn_class is None:
            raise self._lacking("a counterpart in hmmlearn")
        hmm = hmmlearn_models()
        (states,) = (array[i, :size].copy() for array in self.parameters.values())
        model = getattr(hmm, self.hmmlearn_class)(int(size))
        model.n_features = states.shape[1]
        setattr(model, str(self.hmmlearn_attribute), states)
        return model

    def _lacking(self, what):
        return TypeError(
            f"This needs models whose states have {what}, got states of kind "
            f"{self.name!r}."
        )


def hmmlearn_models():
    """Return the module `hmmlearn.hmm`, or say how to install it."""
    try:
        from hmmlearn import hmm
    except ModuleNotFoundError as error:
        raise ImportError(
            "This needs hmmlearn, which is not installed: pip install hmmlearn."
        ) from error
    return hmm
