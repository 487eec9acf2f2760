"""The stack of arrays behind a batch: checks, padding, indexing, concatenation."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from skawhmm.emissions._checks import check_finite, check_probabilities
from skawhmm.models._checks import (
    as_arrays,
    check_carried,
    check_concatenable,
    check_feature_names,
    check_info,
    check_model_shapes,
    check_observed,
    checked_rows,
)
from skawhmm.models._counts import Counts
from skawhmm.numerics._stationary import stationary_distribution
from skawhmm.sequences._trials import recordings_of
from skawhmm.utils._numbers import aligned

# The parts of a batch; everything else is derived from them.
CHAIN = ("transmats", "weights", "startprobs")
PARTS = ("emission", *CHAIN, "_info", "sequences", "feature_names", "counts")


class ModelStack:
    """Immutable arrays of models, with one row per model: the storage of `HMMBatch`.

    It can be indexed like an array, compared, pickled and concatenated, for any family
    of states. `HMMBatch` creates and checks the arrays.
    """

    # A class attribute by which `is_models` recognises batches of models.
    emission: Any = None
    transmats: NDArray[np.float64]
    weights: NDArray[np.float64]
    startprobs: NDArray[np.float64]
    sequences: list[Any] | None
    feature_names: tuple[str, ...] | None
    counts: Counts | None
    _info: dict[str, NDArray[Any]]

    # Pickles of earlier versions have neither names nor counts.
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
        recordings = [] if sequences is None else recordings_of(sequences)[0]
        for array in [*arrays, *info.values(), *recordings]:
            _read_only(array)
        chain = transmats, weights, startprobs
        parts = emission, *chain, info, sequences, feature_names, counts
        vars(self).update(zip(PARTS, parts, strict=True))

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
            Options that all models share, by name; None entries are left out.

        transmats, weights, startprobs, observed, info : object
            As in the constructor, like `sequences` and `feature_names`.

        counts : Counts, default=None
            Expected counts in the data of the models.
        """
        stacks, _ = checked_stacks(transmats, states, weights, startprobs, family)
        chain = stacks["transmats"], stacks["weights"], stacks["startprobs"]
        extras = {name: v for name, v in (shared or {}).items() if v is not None}
        is_state = (chain[1] > 0) | (chain[2] > 0)
        emission = family.from_arrays({**stacks, **extras}, is_state)
        n_models = len(chain[0])
        if observed is not None:
            emission.observed = check_observed(observed, n_models, emission.n_features)
        carried = check_carried(sequences, n_models, emission)
        columns = check_info(info or {}, n_models)
        names = check_feature_names(feature_names, emission.n_features)
        self._set(emission, *chain, columns, carried, names, counts)

    @classmethod
    def _of(cls, family, transmats, states, **parts):
        """Return models of some family; the parameters are those of `_build`."""
        batch = cls.__new__(cls)
        batch._build(family, transmats, states, **parts)
        return batch

    @classmethod
    def _fitted(
        cls,
        template,
        models,
        weights,
        *,
        observed=None,
        info=None,
        sequences=None,
        **parts,
    ):
        """Return fitted models as a batch; only their states are checked.

        `models` are `Model` tuples with any numbers of states, `weights` their state
        probabilities (None if they are stationary); further parts are as in `_set`.
        States are checked because user-defined families may return invalid ones.
        """
        startprobs, transmats, states = zip(*models, strict=True)
        startprobs = padded_stack("startprobs", startprobs)
        transmats = padded_stack("transmats", transmats)
        arrays = {
            name: padded_stack(name, values)
            for name, *values in zip(template.parameter_names, *states, strict=True)
        }
        if weights is None:
            weights = stationary_distribution(transmats, startprobs)
        else:
            weights = padded_stack("weights", weights)
        for name, array in arrays.items():
            check_finite(name, array)
        emission = template.from_arrays(arrays, (weights > 0) | (startprobs > 0))
        emission.observed = observed
        batch = cls.__new__(cls)
        chain = transmats, weights, startprobs
        batch._set(emission, *chain, info or {}, sequences, **parts)
        return batch

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
        """One number per model that depends only on its content."""
        masks = self.emission.masks()
        arrays = [self.weights, *self.emission.parameters.values()]
        fingerprint = self.emission.fingerprint
        keys = np.empty(len(self), np.uint64)
        for n, size in enumerate(self.n_components):
            digest = hashlib.blake2b(digest_size=8)
            # Adding zero turns -0.0 into 0.0, whose bytes differ.
            digest.update((self.transmats[n, :size, :size] + 0.0).tobytes())
            for array in arrays:
                digest.update((array[n, :size] + 0.0).tobytes())
            digest.update(masks[n].tobytes())
            digest.update(fingerprint)
            keys[n] = int.from_bytes(digest.digest(), "little")
        return _read_only(keys)

    def __len__(self) -> int:
        return len(self.transmats)

    def __getitem__(self, key: Any) -> Self:
        if isinstance(key, tuple):
            # scikit-learn treats X as an array and writes X[key, ...].
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

    def __iter__(self) -> Iterator[Self]:
        return (self[n] for n in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModelStack):
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
            "first, for example with PairwiseHMMDistance. HMMBatch.concatenate joins "
            "several batches."
        )

    def __repr__(self) -> str:
        counts = self.n_components.tolist() or [0]
        states = "..".join(map(str, sorted({min(counts), max(counts)})))
        traits = (f"{name}={value!r}" for name, value in self.emission.traits.items())
        return (
            f"HMMBatch(n_models={len(self)}, n_components={states}, "
            f"{', '.join(traits)})"
        )

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
        chain = {name: padded_stack(name, getattr(self, name), size) for name in CHAIN}
        seen = self.counts and self.counts.padded(size)
        return self._changed(emission=self.emission.padded(size), **chain, counts=seen)

    @classmethod
    def concatenate(cls, batches: Sequence[Any]) -> Self:
        """Return one batch with the models of several.

        Parameters
        ----------
        batches : sequence of HMMBatch
            Batches with the same kind of states, the same number of features and the
            same info columns. If any has full covariances, so does the result. Feature
            names must agree; batches without names take the names of the others.

        Returns
        -------
        batch : HMMBatch
            The models in the order given. They have sequences and counts if the models
            of all batches do.
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


def checked_stacks(transmats, states, weights, startprobs, family=None):
    """Return the arrays of models, checked and padded.

    Parameters
    ----------
    transmats, weights, startprobs : array-like or sequence of array-like
        As in the constructor of `HMMBatch`.

    states : dict of array-like
        Parameters of the states, by name.

    family : type, default=None
        Family of the states, which defines the axes of their parameters; not needed
        without parameters.

    Returns
    -------
    stacks : dict of ndarray
        One array per name, with the models on the first axis. Missing arrays are
        derived from the transitions.

    n_components : ndarray of int of shape (n_models,)
        Number of states of each model.
    """
    given = {"transmats": as_arrays("transmats", transmats, (2,))}
    for name, values in states.items():
        given[name] = as_arrays(name, values, family.parameter_axes.get(name, (2,)))
    for name, values in (("weights", weights), ("startprobs", startprobs)):
        if values is not None:
            given[name] = as_arrays(name, values, (1,))
    groups = family.parameter_groups if states else ()
    counts = check_model_shapes(given, groups)
    stacks = {
        name: arrays if isinstance(arrays, np.ndarray) else padded_stack(name, arrays)
        for name, arrays in given.items()
    }
    for name, stack in stacks.items():
        largest = family.largest_value(name) if name in states else np.inf
        check_finite(name, stack, largest)
    for name in ("transmats", "weights", "startprobs"):
        if name in stacks:
            stacks[name] = check_probabilities(name, stacks[name])
    if weights is None:
        start = stacks.get("startprobs", _equal_probabilities(counts))
        stacks["weights"] = stationary_distribution(stacks["transmats"], start)
    stacks.setdefault("startprobs", stacks["weights"])
    return stacks, counts


def padded_stack(name, arrays, size=None):
    """Return one array for all models, padded at the end with unreachable states."""
    lengths = [*map(len, arrays)]
    size = max(lengths) if size is None else size
    if min(lengths) == size:
        # `np.stack` is slower.
        return np.concatenate(arrays).reshape(len(arrays), *np.shape(arrays[0]))
    if name == "transmats":
        stack = np.tile(np.eye(size), (len(arrays), 1, 1))
        for n, (array, length) in enumerate(zip(arrays, lengths, strict=True)):
            stack[n, :length, :length] = array
        return stack
    stack = np.zeros((len(arrays), size, *arrays[0].shape[1:]))
    for n, (array, length) in enumerate(zip(arrays, lengths, strict=True)):
        stack[n, :length] = array
    return stack


def _equal_probabilities(counts):
    """Return equal probabilities of the states of each model."""
    real = np.arange(counts.max()) < counts[:, None]
    return real / counts[:, None]
