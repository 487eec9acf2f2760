"""Parameter objects, and checks of parameters without effect or changed after `fit`."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache
from inspect import signature
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skawhmm.utils._checks import check_parameters

# Parameters that control how the work is done and never change a result. `memory` is
# for pipelines nested in an estimator.
WORK = frozenset({"n_jobs", "verbose", "memory"})


class Unused(NamedTuple):
    """Parameters that have no effect for some values of another parameter."""

    names: tuple[str, ...]
    because: str
    when: Callable[[Any], bool]


def check_unused(name, value, default, reason):
    """Raise if a parameter that has no effect was set."""
    if not is_same(value, default):
        raise ValueError(
            f"{name} must be {default!r} {reason}, where it has no effect, got "
            f"{value!r:.200}."
        )


def check_effects(values, defaults, rules):
    """Raise if a parameter was set that has no effect because of another one."""
    for names, because, when in rules:
        if because in values and when(values[because]):
            reason = f"with {because}={values[because]!r:.200}"
            # A subclass need not expose all parameters.
            for name in defaults.keys() & names:
                check_unused(name, values[name], defaults[name], reason)


def defaults_of(function: Any) -> dict[str, Any]:
    """Return the default values of the parameters of a function or class."""
    return _defaults(function)


@cache
def _defaults(function):
    parameters = signature(function).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters}


def is_same(one, two):
    """Whether two values of a parameter are equal; arrays are compared as a whole."""
    if one is two or one is None or two is None:
        return one is two
    # NumPy would round 0.99 to float32 before comparing it with np.float32(0.99).
    one, two = (x.item() if isinstance(x, np.generic) else x for x in (one, two))
    if any(isinstance(value, list | tuple | np.ndarray) for value in (one, two)):
        return bool(np.array_equal(one, two))
    equal = one == two
    return bool(equal) if np.ndim(equal) == 0 else bool(np.array_equal(one, two))


class Parametrized(BaseEstimator):
    """Base of objects that are defined by their parameters, such as distances.

    Like scikit-learn's estimators, they have `get_params` and `set_params` and can be
    cloned. They are equal if their parameters are. The constructor of a subclass stores
    what it is given and calls `_check_parameters`. Values from `set_params` are checked
    when the object is used: `_checked` returns a checked copy.
    """

    # Checks that take a name and a value and return the value in its usual type.
    _parameter_checks: ClassVar[Mapping[str, Callable[[str, Any], Any]]] = {}
    _unused: ClassVar[Sequence[Unused]] = ()

    def _check_parameters(self) -> dict[str, Any]:
        """Return the checked parameters; raise if one is invalid or has no effect."""
        values = self.get_params(deep=False)
        for name, check in self._parameter_checks.items():
            if name in values:
                values[name] = check(name, values[name])
        check_effects(values, defaults_of(type(self)), self._unused)
        return values

    def _checked(self) -> Any:
        """Return a copy with checked parameters in their usual types."""
        checked = copy(self)
        for name, value in self._check_parameters().items():
            setattr(checked, name, value)
        return checked

    @property
    def _kind(self) -> type:
        """The class used to compare objects."""
        return type(self)

    def __repr__(self) -> str:
        changed = (
            f"{name}={getattr(self, name)!r}"
            for name, default in defaults_of(type(self)).items()
            if not is_same(getattr(self, name), default)
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parametrized) or self._kind is not other._kind:
            return NotImplemented
        mine, theirs = (x.get_params(deep=False) for x in (self, other))
        return mine.keys() == theirs.keys() and all(
            is_same(mine[name], theirs[name]) for name in mine
        )

    def __hash__(self) -> int:
        # Parameters may change, and may be arrays.
        return hash(self._kind)


def kind_of(value):
    """Return the class used to compare an object with others."""
    return value._kind if isinstance(value, Parametrized) else type(value)


class ParametersMixin:
    """Handling of parameters shared by all estimators.

    The `fit` of a subclass begins with `_begin_fit`, its other methods with
    `_check_ready`.
    """

    get_params: Callable[..., dict[str, Any]]

    # Checks by parameter name, which take the name and the value and raise. A subclass
    # adds checks of its own parameters.
    _parameter_checks: ClassVar[Mapping[str, Callable[[str, Any], Any]]] = {}

    _unused: ClassVar[Sequence[Unused]] = ()

    # Parameters that may change after `fit`, because they are read on use.
    _read_later: ClassVar[frozenset[str]] = frozenset()

    def _check_parameters(self):
        """Raise if a parameter is invalid, alone or in combination with others."""
        values = self.get_params(deep=False)
        check_parameters(values, self._parameter_checks)
        check_effects(values, defaults_of(type(self)), self._unused)

    def _begin_fit(self):
        """Check the parameters and store a snapshot of them at the start of `fit`.

        Returns what `_check_parameters` returns, such as the distance.
        """
        self._resolved = self._check_parameters()
        self._fitted_params = {
            name: _snapshot(value) for name, value in self.get_params(deep=True).items()
        }
        return self._resolved

    def _check_ready(self):
        """Raise unless the estimator is fitted and its parameters have not changed.

        Returns what `_check_parameters` returns, such as the distance.
        """
        if not hasattr(self, "_fitted_params"):
            check_is_fitted(self)
        now = self.get_params(deep=True)
        before = self._fitted_params
        changed = [
            name
            for name in before
            if name in now and not _is_unchanged(now[name], before[name])
        ]
        if not changed and now.keys() == before.keys():
            return self._resolved
        checked = self._check_parameters()
        allowed = self._changeable()
        for name in changed:
            if name.partition("__")[0] in allowed or name.rpartition("__")[2] in WORK:
                continue
            raise ValueError(
                f"{name} must be as it was in fit ({before[name]!r:.100}), got "
                f"{now[name]!r:.100}. Call fit again to use another value."
            )
        return checked

    def _changeable(self):
        """Return the parameters that may differ from their values in `fit`."""
        return self._read_later


def _snapshot(value):
    """Return a copy of a parameter that later in-place changes do not affect."""
    if isinstance(value, list | tuple):
        return [*map(_snapshot, value)]
    if isinstance(value, dict):
        return {key: _snapshot(entry) for key, entry in value.items()}
    # Objects without their own `__eq__`, such as functions and random states, are
    # compared by identity; the parameters of a nested estimator are listed separately.
    by_content = getattr(type(value), "__eq__", None) is not object.__eq__
    return copy(value) if by_content and not _is_estimator(value) else value


def _is_unchanged(value, before):
    """Whether a parameter is unchanged since its snapshot was taken."""
    if isinstance(value, list | tuple) and isinstance(before, list):
        same = map(_is_unchanged, value, before)
        return len(value) == len(before) and all(same)
    if isinstance(value, dict) and isinstance(before, dict):
        return value.keys() == before.keys() and all(
            _is_unchanged(value[key], before[key]) for key in value
        )
    if _is_estimator(value):
        return type(value) is type(before)
    # NaN is not equal to itself.
    both_nan = all(isinstance(x, float) and np.isnan(x) for x in (value, before))
    return both_nan or is_same(value, before)


def _is_estimator(value):
    return hasattr(value, "get_params") and not isinstance(value, type | Parametrized)
