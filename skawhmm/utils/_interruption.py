"""Estimators that stay as they were if a fit is interrupted."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(method: Method) -> Method:
    """Return a method that changes its object completely, or not at all.

    Parameters
    ----------
    method : callable
        A method that assigns attributes, such as `fit`. If it raises or is interrupted,
        the attributes are those from before the call. What they hold must be replaced,
        not changed in place.

    Returns
    -------
    method : callable
        The method.
    """

    @wraps(method)
    def guarded(self, *args, **kwargs):
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            for name in vars(self).keys() - before.keys():
                delattr(self, name)
            vars(self).update(before)
            raise

    return guarded  # type: ignore[return-value]
