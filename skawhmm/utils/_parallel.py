"""The one door to joblib: tasks that share what is large, results that are kept."""

import os
from concurrent.futures import CancelledError
from importlib.metadata import version

import joblib
from joblib import Parallel, delayed
from sklearn.utils.validation import check_memory
from tqdm.auto import tqdm

# A worker that dies takes the shared data it held with it; what is missing is then
# handed out again, this many times.
MAX_RETRIES = 3


class Shared:
    """What all tasks of a call need. It travels to a worker once, not with each task.

    Parameters
    ----------
    value : object
        What is shared.

    n_bytes : int
        About how large it is, by which back ends decide how to send it.
    """

    def __init__(self, value, n_bytes):
        self.value = value
        self.n_bytes = n_bytes

    def __sizeof__(self):
        return int(self.n_bytes)


def completed(function, shared, tasks, *, n_jobs, verbose=0, label="tasks"):
    """Yield ``function(shared, *task)`` for each task, in their order.

    Parameters
    ----------
    function : callable
        What to do.

    shared : Shared
        Its first argument.

    tasks : list of tuple
        Its other arguments, small ones.

    n_jobs : int or None
        Number of joblib workers, threads unless a `joblib.parallel_config` context
        says otherwise.

    verbose : int, default=0
        Whether to show a progress bar.

    label : str, default="tasks"
        What the progress bar calls the work.

    Yields
    ------
    result : object
        What the function returned.
    """
    n_done, retries = 0, MAX_RETRIES
    with tqdm(total=len(tasks), desc=label, disable=not verbose) as bar:
        while n_done < len(tasks):
            run = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
            results = run(delayed(function)(shared, *task) for task in tasks[n_done:])
            try:
                for result in results:
                    yield result
                    n_done += 1
                    bar.update()
            except CancelledError:
                if retries == 0:
                    raise
                retries -= 1


def content_hash(value):
    """Return a text that is the same for equal content, whatever object holds it."""
    return joblib.hash(value)


def remembered(memory, key, compute):
    """Return what a call gives, from memory if it has been made before.

    Parameters
    ----------
    memory : None, str, path-like or joblib.Memory
        Where results are kept; None keeps none.

    key : object
        All that the result depends on; it is hashed by content.

    compute : callable
        The call, without arguments.

    Returns
    -------
    result : object
        The result.
    """
    if memory is None:
        return compute()
    place = os.fspath(memory) if isinstance(memory, os.PathLike) else memory
    cached = check_memory(place).cache(_result, ignore=["compute"])
    return cached(version("skawhmm"), content_hash(key), compute)


def _result(release, key, compute):  # noqa: ARG001
    return compute()
