"""What all distances share: how they are printed and when they are equal."""

from inspect import signature
from numbers import Number
from typing import Any

import numpy as np


class Parametrized:
    """Base of the distances: printed by their parameters, and equal if these are.

    As in scikit-learn, only the parameters that differ from their defaults are printed.
    """

    def __repr__(self) -> str:
        arguments = signature(type(self)).parameters
        own = vars(self)
        shown = (
            f"{name}={own[name]!r}"
            for name, argument in arguments.items()
            if name in own and not _is_default(own[name], argument.default)
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: Any) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = vars(self), vars(other)
        return mine.keys() == theirs.keys() and all(
            _is_same(mine[name], theirs[name]) for name in mine
        )

    def __hash__(self) -> int:
        return hash(type(self))


def _is_same(one, two):
    # Parameters of a user's distance may be arrays, whose == has many answers.
    return one is two or bool(np.array_equal(one, two))


def _is_default(value, default):
    if isinstance(value, Number | str) and isinstance(default, Number | str):
        return value == default
    return value is default
