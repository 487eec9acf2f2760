"""What an interruption ends, and what it leaves as it was."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import wraps
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

_thread = threading.local()


class Unwanted(Exception):  # noqa: N818
    """Raised in a worker thread whose result nobody waits for any more."""


class Call:
    """A call that waits for the results of tasks in other threads.

    It is a context manager. When it ends, or the call for which its own thread works,
    tasks that still run are told to stop; a copy that was sent to another process never
    ends.
    """

    def __init__(self):
        self._outer = getattr(_thread, "call", None)
        self._ended = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._ended = True

    @property
    def ended(self):
        """Whether nobody waits any more."""
        return self._ended or (self._outer is not None and self._outer.ended)

    def run(self, function, *arguments):
        """Return what a function returns; its kernels raise once the call ended."""
        before = getattr(_thread, "call", None)
        _thread.call = self
        try:
            check_wanted()
            return function(*arguments)
        finally:
            _thread.call = before


def check_wanted():
    """Raise if the call that this thread works for has ended.

    Compiled loops ask for it some ten times a second; see ``_interruption.h``.
    """
    call = getattr(_thread, "call", None)
    if call is not None and call.ended:
        raise Unwanted


def waited_for(function, *arguments):
    """Return the result of a function that ignores signals, such as LAPACK's.

    The main thread runs it in another one, so that Ctrl-C need not wait for it. What
    was interrupted comes to its end, and nobody looks at it.

    Parameters
    ----------
    function : callable
        It must release the GIL.

    *arguments : object
        What it is called with.

    Returns
    -------
    result : object
        The result.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    future: Future[Any] = Future()
    context = copy_context()

    def run():
        try:
            future.set_result(context.run(function, *arguments))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    # Without a limit, waiting cannot be interrupted on every system.
    while not wait([future], timeout=0.2).done:
        pass
    return future.result()


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
