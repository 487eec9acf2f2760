"""The first part of the contract of families of states: their parameters."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np

from skawhmm.emissions._hmmlearn import hmmlearn_models
from skawhmm.emissions._model import Array
from skawhmm.utils._checks import LARGEST_VALUE
from skawhmm.utils._digest import content_digest
from skawhmm.utils._numbers import aligned
from skawhmm.utils._parameters import defaults_of

if TYPE_CHECKING:
    # The part of scikit-learn's class that is used here. The class has no types, and
    # type checkers would not check its subclasses.
    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...

        def set_params(self, **params: Any) -> Self: ...
else:
    from sklearn.base import BaseEstimator


class EmissionParameters(BaseEstimator):
    """Arrays of parameters of all states of all models, and the options of a family.

    `Emission` describes which members a family defines.
    """

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
