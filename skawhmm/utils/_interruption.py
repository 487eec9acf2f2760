"""Interruption of running tasks, and protection of objects from half-done changes."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import wraps
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

_thread = threading.local()


class Unwanted(Exception):  # noqa: N818
    """Raised in a worker thread whose result is no longer needed."""


class Call:
    """A call that waits for the results of tasks in other threads.

    It is a context manager. When it ends, or when the call that its own thread works
    for ends, tasks that still run are told to stop. A copy that was sent to another
    process never ends.
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
        """Whether the results are no longer needed."""
        return self._ended or (self._outer is not None and self._outer.ended)

    def run(self, function, *arguments):
        """Return a function's result; its kernels raise once the call has ended."""
        before = getattr(_thread, "call", None)
        _thread.call = self
        try:
            check_wanted()
            return function(*arguments)
        finally:
            _thread.call = before


def check_wanted():
    """Raise if the call that this thread works for has ended.

    Compiled loops call it about ten times a second; see ``_interruption.h``.
    """
    call = getattr(_thread, "call", None)
    if call is not None and call.ended:
        raise Unwanted


def waited_for(function, *arguments):
    """Return the result of a function that ignores signals, such as LAPACK's.

    The main thread runs it in another thread, so that Ctrl-C need not wait for it. An
    interrupted function runs to its end in the background; its result is discarded.

    Parameters
    ----------
    function : callable
        It must release the GIL.

    *arguments : object
        Its arguments.

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
    # Waiting without a time limit cannot be interrupted on some systems.
    while not wait([future], timeout=0.2).done:
        pass
    return future.result()


def all_or_nothing(method: Method) -> Method:
    """Return a method that changes its object completely, or not at all.

    Parameters
    ----------
    method : callable
        A method that assigns attributes, such as `fit`. If it raises or is interrupted,
        the attributes from before the call are restored. It must replace attributes,
        not change them in place.

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
