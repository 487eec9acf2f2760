"""What all distances share: how they are printed and when they are equal."""

from collections.abc import Sequence
from inspect import signature
from typing import Any, ClassVar

from skawhmm.utils._parameters import Unused, check_effects, defaults_of, is_same


class Parametrized:
    """Base of the distances: printed by their parameters, and equal if these are.

    As in scikit-learn, only the parameters that differ from their defaults are printed.
    """

    _unused: ClassVar[Sequence[Unused]] = ()

    def __repr__(self) -> str:
        arguments = signature(type(self)).parameters
        own = vars(self)
        shown = (
            f"{name}={own[name]!r}"
            for name, argument in arguments.items()
            if name in own and not is_same(own[name], argument.default)
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: Any) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = vars(self), vars(other)
        return mine.keys() == theirs.keys() and all(
            is_same(mine[name], theirs[name]) for name in mine
        )

    def __hash__(self) -> int:
        return hash(type(self))

    def _check_effects(self):
        """Raise if a parameter was set that another one leaves without effect."""
        check_effects(vars(self), defaults_of(type(self)), self._unused)
