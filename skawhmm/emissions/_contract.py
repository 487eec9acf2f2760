"""What a family of states must know: the one contract that all families fulfil."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skawhmm.numerics._forward_backward import forward_backward_each, log_likelihood_of


class Model(NamedTuple):
    """Parameters of one model, or of several with a leading axis.

    `states` are the arrays of `Emission.parameters`, in their order.
    """

    startprob: np.ndarray
    transmat: np.ndarray
    states: tuple[np.ndarray, ...]


class Data(NamedTuple):
    """Sequences of several models in the form that EM reads.

    `frames` is what the family's `frames` returned (with `seen`, if it keeps a mask),
    `offsets` says where sequences begin and end, and `firsts` which of the offsets are
    the bounds of models.
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
    """Expected statistics of several models, arrays with one row per model.

    Starts, moves and frames per state, and the family's own statistics.
    """

    start: np.ndarray
    moves: np.ndarray
    counts: np.ndarray
    statistics: tuple[np.ndarray, ...]


class Emission(ABC):
    """What the states of a stack of models emit.

    A family owns the parameters of all states of all models, as arrays with one row
    per model and one column per state, and knows all that depends on them. A new family
    is a subclass and a line in `skawhmm.emissions._registry`; nothing else changes.
    Most families are easier to write as a `PlainEmission`, which asks for less.

    **Always defined**

    ``name``, ``parameter_names``
        The word for ``HMMTransformer(emission=...)`` and files, and the names of the
        arrays of parameters, in the order in which the constructor takes them.
    ``n_features``, ``traits``
        Number of channels of a frame; what `repr` shows.
    ``checked(X, caller)``, ``shown(x)``
        A user's sequences as arrays (n_timesteps, n_features), and a drawn one as a
        user sees it.
    ``from_arrays(arrays, is_state)``
        The family that arrays of a user or of a file make, or a clear error.
    ``cross(index_a, index_b)``
        Ground cost: squared distances between the states of pairs of models.

    **Defined unless the states have no density**

    ``densities(i, x, start, transmat)``
        Log densities (n_components, n_timesteps) of a sequence under model i.
    ``divergences(index_a, index_b)``
        Kullback-Leibler divergences between the states of pairs of models.
    ``drawn(i, path, rng)``
        A sequence drawn from model i, given its path of states.

    **Defined if models can be fitted**

    ``blank(sequences, options)``
        A family of one blank state, as a user's training sequences ask for.
    ``check_gaps(sequences, options)``
        Whether values may be missing.
    ``data(sequences, firsts)``
        Checked sequences in the form that EM reads.
    ``expectations``, ``updates``, ``log_priors``
        The family's part of EM: sufficient statistics, states, prior.
    ``random_states``, ``common_states``, ``varied``, ``n_free``
        Start values; whether there is anything to tell states apart by; free
        parameters of a state. (Gaussian states have start values of their own, in
        `skawhmm.fitting._each`.)

    **Defined if hmmlearn has such models**

    ``hmmlearn_arrays(models)``, ``hmmlearn_model(i, size)``
        Parameters of fitted models by name, and a model that has those of model i.

    What is left has an implementation here, which a family may replace by a faster
    one: how to slice, pad, join and store the arrays, to score and to compare.

    Parameters
    ----------
    *parameters : ndarray of shape (n_models, n_components, ...)
        The parameters of the states.
    """

    name: str
    parameter_names: tuple[str, ...]

    # Numbers of axes that a parameter may have per model, if not 2.
    parameter_axes: ClassVar[dict[str, tuple[int, ...]]] = {}

    # Whether sequences that models carry are kept as they were given, not encoded.
    keeps_sequences: ClassVar[bool] = False

    # Arguments of the constructor that all models share, by name. Arrays among them are
    # stored in files.
    shared_names: ClassVar[tuple[str, ...]] = ()

    # Parameters of `HMMTransformer` that this family, unlike others, can do with.
    fit_options: ClassVar[frozenset[str]] = frozenset()

    # Which features each model observed; None if all of them.
    observed: np.ndarray | None = None

    def __init__(self, *parameters: np.ndarray) -> None:
        for name, array in zip(self.parameter_names, parameters, strict=True):
            setattr(self, name, array)

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of channels of a frame."""

    @property
    def traits(self) -> dict[str, Any]:
        """What is shown of the family, by name."""
        return {"emission": self.name, "n_features": self.n_features}

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """Arrays with one row per model and one column per state, by name."""
        return {name: getattr(self, name) for name in self.parameter_names}

    @property
    def extras(self) -> dict[str, np.ndarray]:
        """Arrays that all models share, by name, which are stored with them."""
        shared = {name: getattr(self, name) for name in self.shared_names}
        return {name: v for name, v in shared.items() if isinstance(v, np.ndarray)}

    @property
    def fingerprint(self) -> bytes:
        """What tells two families with equal parameters apart."""
        return b""

    def __getstate__(self) -> dict[str, Any]:
        # What is computed once is computed again from the parameters.
        return {name: v for name, v in vars(self).items() if not name.startswith("_")}

    # The stack.

    def like(self, *parameters: np.ndarray, observed: np.ndarray | None = None) -> Any:
        """Return a family of the same kind with other parameters."""
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
        """Return one family that holds the models of all, of equal state counts."""
        observed = None
        if any(family.observed is not None for family in families):
            observed = np.concatenate([family.masks() for family in families]) > 0
        parts = zip(*(family.parameters.values() for family in families), strict=True)
        return families[0].like(*map(np.concatenate, parts), observed=observed)

    def masks(self):
        """Return one where a model observed a feature and zero elsewhere."""
        if self.observed is None:
            n_models = len(getattr(self, self.parameter_names[0]))
            return np.ones((n_models, self.n_features))
        return self.observed.astype(float)

    @classmethod
    def from_arrays(cls, arrays, is_state):
        """Return the family that given arrays make.

        Parameters
        ----------
        arrays : dict of object
            The parameters, finite and padded to the largest number of states, and what
            all models share, as a user or a file gave it.

        is_state : ndarray of bool of shape (n_models, n_components)
            Which states are no padding.

        Returns
        -------
        family : Emission
            The family; what is wrong with its parameters raises an error.
        """
        shared = {name: arrays[name] for name in cls.shared_names if name in arrays}
        return cls(*(arrays[name] for name in cls.parameter_names), **shared)

    @property
    def is_stored(self) -> bool:
        """Whether the arrays say all there is to say, so that a file can hold them."""
        return True

    # Sequences.

    @abstractmethod
    def checked(self, X, caller):
        """Return sequences that a user gave, as arrays (n_timesteps, n_features)."""

    def shown(self, x):
        """Return a drawn sequence as users see it."""
        return x

    def drawn(self, i, path, rng):
        """Draw a checked sequence from model i, given its path of states."""
        raise self._lacking("a density")

    def densities(self, i, x, start, transmat):
        """Return log densities of a checked sequence, given the chain of model i."""
        raise self._lacking("a density")

    def scorer(self, startprobs, transmats, sizes):
        """Return a function of a checked sequence and models: its log likelihoods.

        Parameters
        ----------
        startprobs, transmats : ndarray with a leading axis of models
            The chains.

        sizes : ndarray of int of shape (n_models,)
            Numbers of states, padding left out.

        Returns
        -------
        scores : callable
            Takes a sequence and an array of model numbers.
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
        """Return a function of sequences and lists of pairs with models.

        The parameters are those of `scorer`.

        Returns
        -------
        scores : callable
            Takes a list of sequences and a list of pairs of index arrays (sequence,
            model). For each it returns log likelihoods, and the dimension of the
            support that each sequence was scored on (0 where there is only one kind).
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
        """Return squared distances (n_pairs, n_components, n_components) of a to b."""

    def within(self, index_a, index_b):
        """Return the squared distances inside the models a, on what b observed too."""
        return self._own[index_a]

    @cached_property
    def _own(self):
        index = np.arange(len(getattr(self, self.parameter_names[0])))
        upper = np.triu(self.cross(index, index), 1)
        return upper + upper.swapaxes(1, 2)

    def ground_costs(self):
        """Return an object with `cross` and `within`, kept for many comparisons."""
        # Read-only arrays are another type to the compiler.
        return self.like(*map(np.array, self.parameters.values()))

    def divergences(self, index_a, index_b):
        """Return divergences (n_pairs, n_components, n_components) of states a to b."""
        raise self._lacking("a density")

    def gaussian(self, purpose):
        """Return the family if its states are Gaussian, else raise.

        Parameters
        ----------
        purpose : str
            What needs Gaussian states, and the verb: the beginning of the message.
        """
        raise TypeError(
            f"{purpose} models with Gaussian states, got states of kind {self.name!r}. "
            "HMMKMedoids and the metrics 'maw' and 'coupling' take models of any kind."
        )

    # Learning: what cannot be fitted keeps these.

    @classmethod
    def blank(cls, sequences, options):
        """Return a family of one blank state, and the checked training sequences.

        Parameters
        ----------
        sequences : object
            What a user gave to `fit`.

        options : HMMTransformer
            Its parameters.
        """
        raise TypeError(f"Models with states of kind {cls.name!r} cannot be fitted.")

    def check_gaps(self, sequences, options):  # noqa: B027 (most can do with any)
        """Raise if values are missing that a fit cannot do without.

        Parameters
        ----------
        sequences : list of ndarray of shape (n_timesteps, n_features)
            Checked sequences.

        options : HMMTransformer
            Its parameters.
        """

    def data(self, sequences, firsts=None):
        """Return checked sequences in the form that EM reads.

        Parameters
        ----------
        sequences : list of ndarray of shape (n_timesteps, n_features)
            The sequences of all models, one model after the other.

        firsts : array-like of int, default=None
            Which sequence is the first of each model, and how many there are; by
            default each has one.
        """
        raise self._lacking("a way to be fitted")

    def expectations(self, data, model, active):
        """E step of some models.

        Parameters
        ----------
        data : Data
            Their sequences.

        model : Model
            Present parameters, a stack.

        active : ndarray of int of shape (n_active,)
            Which models.

        Returns
        -------
        log_likelihoods : ndarray of shape (n_active,)
            One per model.

        expected : Expected
            Their statistics, in the order of `active`.
        """
        raise self._lacking("a way to be fitted")

    def updates(self, expected, rows, model, prior, relevance, active):
        """M step of some models: change their states in place.

        Parameters
        ----------
        expected : Expected
            Statistics.

        rows, active : ndarray of int of shape (n_active,)
            Which rows of the statistics belong to which models.

        model, prior : Model
            Present parameters, a stack; what they shrink to, one for each or for all.

        relevance : float
            Weight of the prior, in frames per state.
        """
        raise self._lacking("a way to be fitted")

    def log_priors(self, model, prior, active):
        """Return the logs of the prior of the states of some models.

        Per frame of relevance, and up to a constant; the parameters are those of
        `updates`.
        """
        raise self._lacking("a way to be fitted")

    # Exchange with hmmlearn.

    # Class in `hmmlearn.hmm`, and the attribute that tells its models from others'.
    hmmlearn_class: ClassVar[str | None] = None
    hmmlearn_attribute: ClassVar[str | None] = None

    @classmethod
    def hmmlearn_arrays(cls, models):
        """Return transmats, startprobs and the parameters of fitted models, by name."""
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
        """Return a model of hmmlearn with the states of model i, but no chain yet."""
        if self.hmmlearn_class is None:
            raise self._lacking("a twin in hmmlearn")
        from hmmlearn import hmm

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


class PlainEmission(Emission):
    """A family defined by what holds for one model at a time.

    Frames are those of `frames(x)`, with time on the first axis; `states` is the tuple
    of the parameters of one model, in the order of `parameter_names`.

    **To define, beside what `Emission` asks of every family**

    ``log_densities(frames, states)``
        Log densities (n_components, n_timesteps).
    ``statistics(frames, post, states)``
        Sufficient statistics, given state probabilities (n_components, n_timesteps): a
        tuple of arrays with one row per state.
    ``update(statistics, states, prior, relevance)``
        The states of the M step; the prior counts as `relevance` frames per state.
    ``log_prior(states, prior)``
        Logarithm of the prior per frame of relevance, up to a constant.
    ``random_states(frames, n_states, rng)``, ``common_states(frames)``
        Start values: random states, and one state for all frames.
    ``varied(frames)``, ``n_free(frames)``
        Whether the frames differ; the number of free parameters of a state.
    """

    def frames(self, x):
        """Return a checked sequence in the form that the other members read."""
        return x

    @abstractmethod
    def log_densities(self, frames, states):
        """Return log densities (n_components, n_timesteps)."""

    @abstractmethod
    def statistics(self, frames, post, states):
        """Return sufficient statistics, a tuple of arrays with one row per state."""

    @abstractmethod
    def update(self, statistics, states, prior, relevance):
        """Return the states of the M step."""

    @abstractmethod
    def log_prior(self, states, prior):
        """Return the logarithm of the prior per frame of relevance."""

    @abstractmethod
    def random_states(self, frames, n_states, rng):
        """Return start values drawn at random."""

    @abstractmethod
    def common_states(self, frames):
        """Return one state that stands for all frames."""

    @abstractmethod
    def varied(self, frames):
        """Tell whether the frames differ."""

    @abstractmethod
    def n_free(self, frames):
        """Return the number of free parameters of a state, given what was observed."""

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
        """E step of some models."""
        values, found = np.empty(len(active)), []
        start, moves, counts = (
            np.zeros((len(active), *part.shape[1:]))
            for part in (model.startprob, model.transmat, model.startprob)
        )
        for n, m in enumerate(active):
            inner = data.offsets[data.firsts[m] : data.firsts[m + 1] + 1]
            frames, states = data.frames[inner[0] : inner[-1]], row_of(model.states, m)
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
        """M step of some models: change their states in place."""
        for n, m in zip(rows, active, strict=True):
            found, states = row_of(expected.statistics, n), row_of(model.states, m)
            fresh = self.update(found, states, row_of(prior.states, m), relevance)
            for old, new in zip(states, fresh, strict=True):
                old[...] = new

    def log_priors(self, model, prior, active):
        """Return the logs of the prior of the states of some models."""
        pairs = ((row_of(model.states, m), row_of(prior.states, m)) for m in active)
        return np.array([self.log_prior(*pair) for pair in pairs])


def row_of(arrays, m):
    """Return row m of each array, or the only row if there is one for all."""
    return tuple(array[min(m, len(array) - 1)] for array in arrays)
