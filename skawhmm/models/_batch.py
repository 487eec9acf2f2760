"""HMMBatch: a stack of hidden Markov models as arrays."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skawhmm.emissions._base import Emission
from skawhmm.emissions._categorical import Categorical
from skawhmm.emissions._custom import check_state_costs
from skawhmm.emissions._gaussian import Gaussian
from skawhmm.emissions._poisson import Poisson
from skawhmm.models._archive import save_models, stored_parts
from skawhmm.models._checks import (
    check_carried,
    check_concatenable,
    check_feature_names,
    check_info,
    check_model_number,
    check_observed,
    check_paired,
    checked_rows,
)
from skawhmm.models._counts import Counts
from skawhmm.models._dynamax import WRITERS, dynamax_model
from skawhmm.models._exchange import given_parts
from skawhmm.models._html import batch_html
from skawhmm.models._inference import (
    best_paths,
    log_likelihood,
    model_seeds,
    posteriors,
    sample_sequences,
)
from skawhmm.models._json import json_text
from skawhmm.models._stacks import checked_stacks, padded_stack
from skawhmm.sequences._checks import check_not_distances
from skawhmm.sequences._names import (
    check_same_names,
    matched_columns,
    named_sequences,
)
from skawhmm.utils._archives import room_for
from skawhmm.utils._checks import check_integer, check_seed, check_verbose
from skawhmm.utils._numbers import aligned

# What a batch is made of; all else follows from it.
CHAIN = ("transmats", "weights", "startprobs")
PARTS = ("emission", *CHAIN, "_info", "sequences", "feature_names", "counts")


class HMMBatch:
    r"""Immutable stack of hidden Markov models.

    The constructor makes models with Gaussian states. `from_emissionprobs` and
    `from_rates` make models that emit symbols and counts; `from_state_costs` makes
    models from the distances between their states. `HMMTransformer` fits models to
    sequences.

    A batch is indexed like an array, and scikit-learn slices it like one. Models with
    fewer states than the largest one are padded by states that no path reaches: their
    weight and start probability are 0, and they only move to themselves.

    Parameters
    ----------
    transmats : array-like of shape (n_models, n_components, n_components)
        Transition matrices, whose rows sum to one. This and the following parameters
        may also be lists with one array per model, if numbers of states differ.

    means : array-like of shape (n_models, n_components, n_features)
        Means of the states, of size at most 1e100.

    covars : array-like of shape (n_models, n_components, n_features[, n_features])
        Variances (diagonal covariances) or covariance matrices, of size at most 1e200.
        They may be singular: a dead sensor has variance 0. Variances below 1e-290 are
        taken for 0.

    weights : array-like of shape (n_models, n_components), default=None
        State probabilities :math:`\pi` that distances use. By default the stationary
        law of each chain.

    startprobs : array-like of shape (n_models, n_components), default=None
        Probabilities of the first state, for sampling and likelihoods. By default the
        weights. A chain with several closed classes has no unique stationary law; its
        start probabilities (by default equal ones) decide between them.

    observed : array-like of bool of shape (n_models, n_features), default=None
        Which features each model observed. Two models are compared on the features
        that both observed. By default each model observed all.

    info : dict of array-like, default=None
        Columns with one entry per model, such as ``converged`` or ``log_likelihood``.
        They are indexed and saved with the models.

    sequences : sequence of ndarray of shape (n_timesteps, n_features), default=None
        The sequence that each model was fitted to, which ``KL(method="data")`` needs.
        They are copied. Sequences are indexed and pickled with the models, but `save`
        leaves them out: a file of models holds models only.

    feature_names : sequence of str of shape (n_features,), default=None
        Names of the features. `HMMTransformer` sets them if it is fitted to sequences
        that have names. Tables and pictures show them, estimators remember them as
        ``feature_names_in_``, and models with other names are not compared with these.

    Attributes
    ----------
    transmats, means, covars, weights, startprobs, observed, info : ndarray or dict
        As above, read-only.

    sequences : list of ndarray, or None
        As above; the arrays are read-only.

    feature_names : tuple of str, or None
        As above.

    counts : Counts or None
        What the data of fitted models have shown: ``counts.states`` of shape
        (n_models, n_components), the expected number of frames in each state, and
        ``counts.transitions`` of shape (n_models, n_components, n_components), the
        expected number of steps from each state to each. A prior adds nothing to them.
        :class:`HMMTransformer` fills them in; they are indexed and saved with the
        models. None for models that were given by their parameters.

    Examples
    --------
    >>> from skawhmm import HMMBatch
    >>> models = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [0.2, 0.8]], [[1.0]]],
    ...     means=[[[0.0], [3.0]], [[1.0]]],
    ...     covars=[[[1.0], [1.0]], [[0.5]]],
    ... )
    >>> models
    HMMBatch(n_models=2, n_components=1..2, n_features=1, covariance_type='diag')
    >>> models[0].weights
    array([[0.66666667, 0.33333333]])
    """

    # Whatever has it as an attribute of its type is a batch of models (`is_models`).
    emission: Any = None
    transmats: NDArray[np.float64]
    weights: NDArray[np.float64]
    startprobs: NDArray[np.float64]
    sequences: list[NDArray[np.float64]] | None
    feature_names: tuple[str, ...] | None
    counts: Counts | None
    _info: dict[str, NDArray[Any]]

    def __init__(
        self,
        transmats: ArrayLike | Sequence[ArrayLike],
        means: ArrayLike | Sequence[ArrayLike],
        covars: ArrayLike | Sequence[ArrayLike],
        *,
        weights: ArrayLike | Sequence[ArrayLike] | None = None,
        startprobs: ArrayLike | Sequence[ArrayLike] | None = None,
        observed: ArrayLike | None = None,
        info: Mapping[str, ArrayLike] | None = None,
        sequences: Sequence[ArrayLike] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self._build(
            Gaussian(),
            transmats,
            {"means": means, "covars": covars},
            weights=weights,
            startprobs=startprobs,
            observed=observed,
            info=info,
            sequences=sequences,
            feature_names=feature_names,
        )

    def _build(
        self,
        family,
        transmats,
        states,
        *,
        shared=None,
        weights=None,
        startprobs=None,
        observed=None,
        info=None,
        sequences=None,
        feature_names=None,
        counts=None,
    ):
        """Check the parts of models, and set them.

        Parameters
        ----------
        family : Emission
            Template of the states.

        states : dict of array-like
            Parameters of the states, by name.

        shared : dict, default=None
            What all models share, by name; entries that are None are left out.

        transmats, weights, startprobs, observed, info : object
            As in the constructor; so are `sequences` and `feature_names`.

        counts : Counts, default=None
            What the data of the models have shown.
        """
        stacks, _ = checked_stacks(transmats, states, weights, startprobs, family)
        chain = stacks["transmats"], stacks["weights"], stacks["startprobs"]
        extras = {name: v for name, v in (shared or {}).items() if v is not None}
        is_state = (chain[1] > 0) | (chain[2] > 0)
        emission = family.from_arrays({**stacks, **extras}, is_state)
        n_models = len(chain[0])
        if observed is not None:
            emission.observed = check_observed(observed, n_models, emission.n_features)
        if sequences is not None and not emission.keeps_sequences:
            sequences = emission.checked(
                sequences, caller="HMMBatch", n_features=emission.n_features
            )
        carried = check_carried(sequences, n_models, emission.n_features)
        columns = check_info(info or {}, n_models)
        names = check_feature_names(feature_names, emission.n_features)
        self._set(emission, *chain, columns, carried, names, counts)

    @classmethod
    def _of(cls, family, transmats, states, **parts):
        """Return models of some family; the parameters are those of `_build`."""
        batch = cls.__new__(cls)
        batch._build(family, transmats, states, **parts)
        return batch

    # Pickles of earlier versions hold neither names nor counts.
    def _set(
        self,
        emission,
        transmats,
        weights,
        startprobs,
        info,
        sequences,
        feature_names=None,
        counts=None,
    ):
        arrays = [transmats, weights, startprobs, *emission.parameters.values()]
        if emission.observed is not None:
            arrays.append(emission.observed)
        for array in [*arrays, *info.values(), *(sequences or [])]:
            _read_only(array)
        chain = transmats, weights, startprobs
        parts = emission, *chain, info, sequences, feature_names, counts
        vars(self).update(zip(PARTS, parts, strict=True))

    def _changed(self, **parts):
        """Return a copy with some of its `PARTS` replaced, without further checks."""
        batch = type(self).__new__(type(self))
        batch._set(*({**self.__getstate__(), **parts}.values()))
        return batch

    def _bare(self):
        """Return the models without info columns, sequences and counts."""
        return self._changed(_info={}, sequences=None, counts=None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in PARTS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set(
            *(aligned(x) if isinstance(x, np.ndarray) else x for x in state.values())
        )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"HMMBatch is immutable: {name} cannot be set.")

    @property
    def means(self) -> NDArray[np.float64]:
        """Means of the states, of models with Gaussian states."""
        return self._parameter("means")

    @property
    def covars(self) -> NDArray[np.float64]:
        """Variances or covariance matrices, of models with Gaussian states."""
        return self._parameter("covars")

    @property
    def emissionprobs(self) -> NDArray[np.float64]:
        """Probabilities of the symbols, of models that emit symbols."""
        return self._parameter("emissionprobs")

    @property
    def rates(self) -> NDArray[np.float64]:
        """Rates of the channels, of models that emit counts."""
        return self._parameter("rates")

    @property
    def symbols(self) -> NDArray[Any]:
        """The alphabet, of models that emit symbols."""
        return self._parameter("symbols")

    def _parameter(self, name):
        known = {**self.emission.parameters, **self.emission.extras}
        if name not in known:
            raise AttributeError(
                f"Models with states of kind {self.emission.name!r} have no {name}. "
                f"They have {', '.join(known)}."
            )
        return known[name]

    @property
    def observed(self) -> NDArray[np.bool_] | None:
        """Which features each model observed; None if each observed all."""
        return self.emission.observed

    @property
    def info(self) -> Mapping[str, NDArray[Any]]:
        """Columns with one entry per model."""
        return _Columns(self._info)

    @property
    def covariance_type(self) -> str:
        """Form of the covariances of Gaussian states, "diag" or "full"."""
        return self.emission.gaussian("covariance_type needs").covariance_type

    @property
    def n_features(self) -> int:
        """Number of features of a frame."""
        return self.emission.n_features

    @property
    def shape(self) -> tuple[int]:
        """The number of models, in a tuple."""
        return (len(self.transmats),)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays of the models, in bytes."""
        arrays = [self.transmats, self.weights, self.startprobs]
        arrays += self.emission.parameters.values()
        arrays += self.counts.by_name().values() if self.counts else []
        return sum(array.nbytes for array in arrays)

    @cached_property
    def n_components(self) -> NDArray[np.int64]:
        """Number of states of each model, without padding."""
        size = self.transmats.shape[1]
        loops = np.eye(size)
        used = (self.weights > 0) | (self.startprobs > 0)
        used |= (self.transmats != loops).any(axis=2)
        used |= (self.transmats != loops).any(axis=1)
        for array in self.emission.parameters.values():
            used |= array.any(axis=tuple(range(2, array.ndim)))
        used[:, 0] = True
        return _read_only(size - np.argmax(used[:, ::-1], axis=1))

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """One number per model, which depends on its content only."""
        masks = self.emission.masks()
        arrays = [self.weights, *self.emission.parameters.values()]
        fingerprint = self.emission.fingerprint
        keys = np.empty(len(self), np.uint64)
        for n, size in enumerate(self.n_components):
            digest = hashlib.blake2b(digest_size=8)
            # Adding zero turns -0.0 into 0.0, which has other bytes.
            digest.update((self.transmats[n, :size, :size] + 0.0).tobytes())
            for array in arrays:
                digest.update((array[n, :size] + 0.0).tobytes())
            digest.update(masks[n].tobytes())
            digest.update(fingerprint)
            keys[n] = int.from_bytes(digest.digest(), "little")
        return _read_only(keys)

    def __len__(self) -> int:
        return len(self.transmats)

    def __getitem__(self, key: Any) -> "HMMBatch":
        if isinstance(key, tuple):
            # Written X[key, ...] by scikit-learn, which treats X as an array.
            if len(key) != 2 or key[1] is not Ellipsis:
                raise IndexError(f"HMMBatch has one axis, the models; got {key!r}.")
            key = key[0]
        rows = checked_rows(key, len(self))
        return self._changed(
            emission=self.emission[rows],
            transmats=self.transmats[rows],
            weights=self.weights[rows],
            startprobs=self.startprobs[rows],
            _info={name: column[rows] for name, column in self._info.items()},
            sequences=self.sequences and [self.sequences[n] for n in rows],
            counts=self.counts and self.counts[rows],
        )

    def __iter__(self) -> "Iterator[HMMBatch]":
        return (self[n] for n in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HMMBatch):
            return NotImplemented
        if self.shape != other.shape or self.emission.traits != other.emission.traits:
            return False
        if self.emission.fingerprint != other.emission.fingerprint:
            return False
        if self.feature_names != other.feature_names:
            return False
        size = max(self.transmats.shape[1], other.transmats.shape[1])
        one, two = self._padded(size), other._padded(size)
        columns = one._info.keys() == two._info.keys() and all(
            np.array_equal(column, two._info[name], equal_nan=column.dtype.kind == "f")
            for name, column in one._info.items()
        )
        first, second = one._arrays(), two._arrays()
        return (
            columns
            and first.keys() == second.keys()
            and all(np.array_equal(array, second[k]) for k, array in first.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        raise TypeError(
            "A batch of models is not an array of numbers. Turn it into distances "
            "first, for example with PairwiseHMMDistance."
        )

    def __repr__(self) -> str:
        counts = self.n_components.tolist() or [0]
        states = "..".join(map(str, sorted({min(counts), max(counts)})))
        traits = (f"{name}={value!r}" for name, value in self.emission.traits.items())
        return (
            f"HMMBatch(n_models={len(self)}, n_components={states}, "
            f"{', '.join(traits)})"
        )

    def _repr_html_(self) -> str:
        return batch_html(self)

    def _arrays(self):
        """Return the arrays of the batch by name, without the info columns."""
        return {
            "transmats": self.transmats,
            "weights": self.weights,
            "startprobs": self.startprobs,
            "observed": self.emission.masks() > 0,
            **self.emission.parameters,
            **(self.counts.by_name() if self.counts else {}),
        }

    def _padded(self, size):
        """Return the batch with `size` states per model."""
        if size == self.transmats.shape[1]:
            return self
        counts = np.full(len(self), self.transmats.shape[1])
        chain = {
            name: padded_stack(name, getattr(self, name), counts, size)
            for name in CHAIN
        }
        seen = self.counts and self.counts.padded(size)
        return self._changed(emission=self.emission.padded(size), **chain, counts=seen)

    @classmethod
    def concatenate(cls, batches: "Sequence[HMMBatch]") -> "HMMBatch":
        """Return one batch with the models of several.

        Parameters
        ----------
        batches : sequence of HMMBatch
            Batches with the same kind of states, the same number of features and the
            same info columns. If some have full covariances, the result has. Names of
            features must agree; batches without names take those of the others.

        Returns
        -------
        batch : HMMBatch
            The models in the order given. They carry their sequences and their counts
            if those of all batches do.
        """
        batches = check_concatenable(batches)
        family = type(batches[0].emission)
        names = sorted({batch.emission.name for batch in batches})
        if len(names) > 1:
            raise TypeError(
                f"All batches must have one kind of states, got {' and '.join(names)}."
            )
        if len(batches) == 1:
            return batches[0]
        size = max(batch.transmats.shape[1] for batch in batches)
        padded = [batch._padded(size) for batch in batches]
        chain = {
            name: np.concatenate([getattr(batch, name) for batch in padded])
            for name in CHAIN
        }
        columns = {
            name: np.concatenate([batch._info[name] for batch in padded])
            for name in padded[0]._info
        }
        sequences = None
        if all(batch.sequences is not None for batch in padded):
            sequences = [sequence for batch in padded for sequence in batch.sequences]
        counts = None
        if all(batch.counts is not None for batch in padded):
            counts = Counts.concatenate([batch.counts for batch in padded])
        return batches[0]._changed(
            emission=family.concatenate([batch.emission for batch in padded]),
            **chain,
            _info=columns,
            sequences=sequences,
            feature_names=next(
                (b.feature_names for b in batches if b.feature_names), None
            ),
            counts=counts,
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the batch to a file, completely or not at all.

        Parameters
        ----------
        path : str or path-like
            The file, usually named ``*.npz``. If it exists, it is replaced and keeps
            its permissions; a symbolic link is followed. Pipes and devices are refused.
        """
        save_models(path, self)

    @classmethod
    def load(
        cls, path: str | PathLike[str], *, emission: Emission | None = None
    ) -> "HMMBatch":
        """Read a batch that `save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.

        emission : Emission, default=None
            For states of a family of your own, an instance of the family. A file holds
            the arrays of the states, not the options of such a family.

        Returns
        -------
        batch : HMMBatch
            The models, equal to those saved.
        """
        parts = stored_parts(path, emission)
        try:
            # Checks need memory of their own.
            with room_for(Path(path)):
                return cls._of(**parts)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{fspath(path)!r} must hold valid models: {error}"
            ) from error

    @classmethod
    def from_state_costs(
        cls,
        transmats: ArrayLike | Sequence[ArrayLike],
        cost: Callable[[NDArray[Any], NDArray[Any]], ArrayLike] | ArrayLike,
        *,
        states: ArrayLike | Sequence[ArrayLike] | None = None,
        weights: ArrayLike | Sequence[ArrayLike] | None = None,
        startprobs: ArrayLike | Sequence[ArrayLike] | None = None,
        info: Mapping[str, ArrayLike] | None = None,
    ) -> "HMMBatch":
        """Return models with states of any kind, given the distances between them.

        `MAW`, `TransitionCoupling` and everything built on them use the distances in
        place of the 2-Wasserstein distance between Gaussian states. `KL`, `IAW`,
        `MMD`, sampling, `hmm_barycenter` and `save` need more than distances and raise
        an error.

        Parameters
        ----------
        transmats : array-like of shape (n_models, n_components, n_components)
            Transition matrices, or a list of them if their sizes differ.

        cost : callable or array-like of shape (n_states, n_states)
            The distance between two states (not its square), symmetric and 0 between
            equal states. Distances between models take its p-th power. A callable
            ``cost(x, y)`` takes two arrays with the entries of `states` of equally many
            states and returns one distance per pair ``x[k], y[k]``; ``np.vectorize``
            makes it from a function of two states. An array holds the distances
            between numbered states.

        states : array-like of shape (n_models, n_components, ...), default=None
            With a callable, what describes each state, such as its parameters. With an
            array, the number of each state; by default states are numbered in the
            order of the models.

        weights, startprobs, info : array-like or dict, default=None
            As in the constructor.

        Returns
        -------
        batch : HMMBatch
            The models.

        Examples
        --------
        Two-state chains that emit exponential waiting times; their 2-Wasserstein
        distance is known in closed form:

        >>> import numpy as np
        >>> from skawhmm import HMMBatch, pairwise_hmm_distances
        >>> models = HMMBatch.from_state_costs(
        ...     transmats=[[[0.9, 0.1], [0.1, 0.9]]] * 2,
        ...     cost=lambda x, y: np.sqrt(2) * np.abs(x - y),
        ...     states=[[1.0, 5.0], [5.0, 2.0]],
        ... )
        >>> pairwise_hmm_distances(models, alpha=0).round(3)
        array([[0.   , 0.707],
               [0.707, 0.   ]])
        """
        stacks, sizes = checked_stacks(transmats, {}, weights, startprobs)
        chain = stacks["transmats"], stacks["weights"], stacks["startprobs"]
        batch = cls.__new__(cls)
        family = check_state_costs(cost, states, sizes)
        batch._set(family, *chain, check_info(info or {}, len(sizes)), None)
        return batch

    @classmethod
    def from_emissionprobs(
        cls,
        transmats: ArrayLike | Sequence[ArrayLike],
        emissionprobs: ArrayLike | Sequence[ArrayLike],
        *,
        symbols: Any = None,
        symbol_costs: ArrayLike | None = None,
        weights: ArrayLike | Sequence[ArrayLike] | None = None,
        startprobs: ArrayLike | Sequence[ArrayLike] | None = None,
        info: Mapping[str, ArrayLike] | None = None,
        sequences: Any = None,
    ) -> "HMMBatch":
        r"""Return models whose states emit symbols.

        Two states are compared by the least cost of turning the symbols of one into
        those of the other, which is optimal transport between their probabilities.
        `KL`, `MAW`, `TransitionCoupling` and everything built on them work as with
        Gaussian states. `IAW` and `hmm_barycenter` need points that can be averaged and
        raise an error.

        Parameters
        ----------
        transmats : array-like of shape (n_models, n_components, n_components)
            Transition matrices, or a list of them if their sizes differ.

        emissionprobs : array-like of shape (n_models, n_components, n_symbols)
            Probabilities of the symbols in each state, or a list with one array per
            model.

        symbols : str or array-like of shape (n_symbols,), default=None
            The alphabet: characters, strings or integers, in the order of
            `emissionprobs`. By default the integers from 0.

        symbol_costs : array-like of shape (n_symbols, n_symbols), default=None
            Distances between symbols, symmetric and 0 between equal symbols. By default
            any two symbols have distance 1; the distance between two states is then
            their total variation, the share of symbols that differ.

        weights, startprobs, info : array-like or dict, default=None
            As in the constructor.

        sequences : list of str or array-like, default=None
            The sequence that each model was fitted to, as in the constructor.

        Returns
        -------
        batch : HMMBatch
            The models.

        Examples
        --------
        >>> from skawhmm import HMMBatch, pairwise_hmm_distances
        >>> models = HMMBatch.from_emissionprobs(
        ...     transmats=[[[0.9, 0.1], [0.1, 0.9]]] * 2,
        ...     emissionprobs=[[[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [0.8, 0.2]]],
        ...     symbols="ab",
        ... )
        >>> models
        HMMBatch(n_models=2, n_components=2, emission='categorical', n_symbols=2)
        >>> pairwise_hmm_distances(models, alpha=0)
        array([[0. , 0.1],
               [0.1, 0. ]])

        The first text is more likely under the first model, the second one under the
        second:

        >>> models.score(["aaaa", "abba"]).round(2)
        array([[-0.76, -1.52],
               [-3.38, -3.07]])
        """
        return cls._of(
            Categorical(),
            transmats,
            {"emissionprobs": emissionprobs},
            shared={"symbols": symbols, "symbol_costs": symbol_costs},
            weights=weights,
            startprobs=startprobs,
            info=info,
            sequences=sequences,
        )

    @classmethod
    def from_rates(
        cls,
        transmats: ArrayLike | Sequence[ArrayLike],
        rates: ArrayLike | Sequence[ArrayLike],
        *,
        weights: ArrayLike | Sequence[ArrayLike] | None = None,
        startprobs: ArrayLike | Sequence[ArrayLike] | None = None,
        info: Mapping[str, ArrayLike] | None = None,
        sequences: Any = None,
        feature_names: Sequence[str] | None = None,
    ) -> "HMMBatch":
        r"""Return models whose states emit counts, by Poisson laws.

        Two states are compared by the 1-Wasserstein distance between their laws, where
        the distance between two vectors of counts is the sum of the differences in each
        channel. It is exactly :math:`\sum_c |\lambda_c - \lambda'_c|`. The same
        distances and estimators work as for `from_emissionprobs`.

        Parameters
        ----------
        transmats : array-like of shape (n_models, n_components, n_components)
            Transition matrices, or a list of them if their sizes differ.

        rates : array-like of shape (n_models, n_components, n_features)
            Mean counts of the channels in each state, or a list with one array per
            model.

        weights, startprobs, info : array-like or dict, default=None
            As in the constructor.

        sequences : list of array-like of shape (n_timesteps, n_features), default=None
            The sequence that each model was fitted to, as in the constructor.

        feature_names : sequence of str of shape (n_features,), default=None
            Names of the channels, as in the constructor.

        Returns
        -------
        batch : HMMBatch
            The models.

        Examples
        --------
        >>> from skawhmm import HMMBatch, hmm_distance
        >>> chain = [[0.9, 0.1], [0.1, 0.9]]
        >>> quiet = HMMBatch.from_rates([chain], [[[1.0], [4.0]]])
        >>> busy = HMMBatch.from_rates([chain], [[[5.0], [2.0]]])
        >>> hmm_distance(quiet, busy, alpha=0)
        1.0
        """
        return cls._of(
            Poisson(),
            transmats,
            {"rates": rates},
            weights=weights,
            startprobs=startprobs,
            info=info,
            sequences=sequences,
            feature_names=feature_names,
        )

    @classmethod
    def from_arrays(
        cls,
        models: Any,
        *,
        emission: Emission | None = None,
        weights: ArrayLike | Sequence[ArrayLike] | None = None,
        info: Mapping[str, ArrayLike] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> "HMMBatch":
        """Return models given as plain arrays by name, in a dictionary.

        Models of libraries that keep their parameters in dictionaries or named tuples
        are read as they are, whatever made the arrays: NumPy, JAX, PyTorch.

        Parameters
        ----------
        models : mapping or named tuple, or sequence of them
            The arrays of one model, of several models stacked along a first axis, or
            one mapping per model. Known are our own names (those of the attributes of
            a batch), those of hmmlearn (``transmat_``, ``startprob_``, ``means_``,
            ``covars_``, ``emissionprob_``, ``lambdas_``) and those of dynamax
            (``initial.probs``, ``transitions.transition_matrix``, and in ``emissions``
            ``means`` with ``covs`` or ``scale_diags``, ``probs``, ``rates``), with or
            without their groups.

        emission : Emission, default=None
            For states of a family of your own, an instance of the family, whose
            parameters are known by their names. By default the arrays decide.

        weights : array-like of shape (n_models, n_components), default=None
            State probabilities. By default those among the arrays or, if there are
            none, the stationary law of each chain.

        info : dict of array-like, default=None
            Columns with one entry per model.

        feature_names : sequence of str of shape (n_features,), default=None
            Names of the features, as in the constructor.

        Returns
        -------
        batch : HMMBatch
            The models.

        Examples
        --------
        A model as dynamax keeps it:

        >>> from skawhmm import HMMBatch
        >>> params = {
        ...     "initial": {"probs": [0.5, 0.5]},
        ...     "transitions": {"transition_matrix": [[0.9, 0.1], [0.2, 0.8]]},
        ...     "emissions": {
        ...         "means": [[0.0], [3.0]], "covs": [[[1.0]], [[2.0]]],
        ...     },
        ... }
        >>> HMMBatch.from_arrays([params, params], info={"subject": ["ann", "bob"]})
        HMMBatch(n_models=2, n_components=2, n_features=1, covariance_type='full')
        """
        parts = given_parts(models, emission)
        if weights is not None:
            parts["weights"] = weights
        return cls._of(info=info, feature_names=feature_names, **parts)

    def to_hmmlearn(self, index: int = 0) -> Any:
        """Return one model as a fitted model of hmmlearn.

        Parameters
        ----------
        index : int, default=0
            Number of the model.

        Returns
        -------
        model : hmmlearn.hmm.GaussianHMM
            The model; a ``CategoricalHMM`` if states emit symbols, which hmmlearn
            numbers from 0, and a ``PoissonHMM`` if they emit counts.
        """
        index, size = self._exported(index, "hmmlearn")
        model = self.emission.hmmlearn_model(index, size)
        model.startprob_ = self.startprobs[index, :size].copy()
        model.transmat_ = self.transmats[index, :size, :size].copy()
        return model

    def to_dynamax(self, index: int = 0) -> tuple[Any, Any]:
        """Return one model as a model of dynamax and its parameters.

        Parameters
        ----------
        index : int, default=0
            Number of the model.

        Returns
        -------
        model : dynamax.hidden_markov_model.DiagonalGaussianHMM
            A model for the parameters; a ``GaussianHMM`` if covariances are matrices, a
            ``CategoricalHMM`` if states emit symbols, which dynamax numbers from 0, and
            a ``PoissonHMM`` if they emit counts.

        params : named tuple
            The parameters, in single precision unless JAX was told otherwise
            (``jax.config.update("jax_enable_x64", True)``). The log likelihood of
            frames is ``model.marginal_log_prob(params, frames)``.
        """
        index, size = self._exported(index, "dynamax")
        if self.emission.name not in WRITERS:
            self.emission._lacking("a counterpart in dynamax")
        states = self.emission.parameters
        return dynamax_model(
            self.emission.name,
            self.startprobs[index, :size],
            self.transmats[index, :size, :size],
            {name: array[index, :size] for name, array in states.items()},
        )

    def _exported(self, index, library):
        """Return the number of a model that has all channels, and of its states."""
        index = check_model_number("index", index, len(self))
        if not self.emission.masks()[index].all():
            raise ValueError(
                f"Models must have observed all features for {library}, got model "
                f"{index} that did not."
            )
        return index, self.n_components[index]

    def to_json(self) -> str:
        """Return the models as JSON text, which `as_models` reads.

        The text holds what `save` writes, with all digits of all numbers; the page *The
        model file* describes it. It is about three times as large.

        Returns
        -------
        text : str
            The text.

        Examples
        --------
        >>> from skawhmm import HMMBatch, as_models
        >>> models = HMMBatch([[[1.0]]], [[[0.5]]], [[[2.0]]])
        >>> print(models.to_json())
        {"kind": "skawhmm.HMMBatch", "version": 1, "emission": "gaussian", "info": {},
        "models": [{"transmats": [[1.0]], "weights": [1.0], "startprobs": [1.0],
        "means": [[0.5]], "covars": [[2.0]]}]}
        >>> as_models(models.to_json()) == models
        True
        """
        return json_text(self)

    def score(
        self, X: Any, *, n_jobs: int | None = None, verbose: int = 0
    ) -> NDArray[np.float64]:
        """Return the log likelihood of every sequence under every model.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences.

        n_jobs : int, default=None
            Number of joblib workers.

        verbose : int, default=0
            Whether to show a progress bar.

        Returns
        -------
        scores : ndarray of shape (n_sequences, n_models)
            Log likelihoods; minus infinity where a model cannot emit a sequence.
        """
        check_verbose("verbose", verbose)
        sequences = self._checked(X)
        return log_likelihood(self, sequences, n_jobs=n_jobs, verbose=verbose)

    def decode(self, X: Any) -> tuple[list[NDArray[np.int64]], NDArray[np.float64]]:
        """Return the most probable path of states of each sequence under its model.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            One sequence per model. A single model goes with every sequence, a single
            sequence with every model.

        Returns
        -------
        paths : list of ndarray of int of shape (n_timesteps,)
            The state of each frame.

        scores : ndarray of shape (n_pairs,)
            Joint log density of each path and its sequence.
        """
        return best_paths(self, self._checked(X, paired=True))

    def predict_proba(self, X: Any) -> list[NDArray[np.float64]]:
        """Return the probabilities of the states of each frame, given its sequence.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences, as for `decode`.

        Returns
        -------
        probabilities : list of ndarray of shape (n_timesteps, n_components)
            One array per sequence, whose rows sum to one.
        """
        return posteriors(self, self._checked(X, paired=True))

    def sample(
        self, n_timesteps: int = 100, *, random_state: Any = None
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.int64]]]:
        """Draw one sequence from every model.

        Parameters
        ----------
        n_timesteps : int, default=100
            Length of the sequences.

        random_state : int, RandomState instance, Generator or None, default=None
            Seed of the draws. The sequence of a model depends on the seed and the model
            only, not on the rest of the batch; equal models get sequences of their own.

        Returns
        -------
        sequences : list of ndarray of shape (n_timesteps, n_features)
            The frames, one array per model.

        paths : list of ndarray of int of shape (n_timesteps,)
            The state of each frame.
        """
        check_integer("n_timesteps", n_timesteps, 1)
        seeds = model_seeds(check_seed(random_state), self.keys)
        sequences, paths = sample_sequences(self, n_timesteps, seeds)
        shown = [self.emission.shown(x) for x in sequences]
        return named_sequences(shown, self.feature_names), paths

    def _described(self):
        """Return what a table shows of each state, by name."""
        n_features = self.emission.n_features
        return self.emission.described(self.feature_names or range(n_features))

    def _checked(self, X, *, paired=False, caller="HMMBatch"):
        check_not_distances(caller, X)
        X, names = matched_columns(X)
        if names is not None and self.feature_names is not None:
            check_same_names(names, self.feature_names)
        sequences = self.emission.checked(
            X, caller=caller, n_features=self.emission.n_features
        )
        if paired:
            check_paired(len(self), len(sequences))
        return sequences


def _read_only(array):
    array.flags.writeable = False
    return array


class _Columns(dict[str, Any]):
    """Columns with one entry per model that cannot be replaced."""

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("The info of an HMMBatch cannot be changed.")

    __setitem__ = __delitem__ = _refused
    update = setdefault = pop = popitem = clear = _refused
    __ior__ = _refused

    def __reduce__(self) -> Any:
        return dict, (dict(self),)
