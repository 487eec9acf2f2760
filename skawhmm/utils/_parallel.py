"""One way to hand out work: joblib tasks that share what is large."""

from concurrent.futures import CancelledError

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
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


def completed(
    function, shared, tasks, *, n_jobs, verbose=0, label="tasks", amounts=None
):
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

    amounts : list of int, default=None
        What the bar counts each task for, by default one.

    Yields
    ------
    result : object
        What the function returned.
    """
    n_done, retries = 0, MAX_RETRIES
    amounts = [1] * len(tasks) if amounts is None else amounts
    with tqdm(total=sum(amounts), desc=label, disable=not verbose) as bar:
        while n_done < len(tasks):
            run = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
            results = run(delayed(function)(shared, *task) for task in tasks[n_done:])
            try:
                for result in results:
                    yield result
                    bar.update(amounts[n_done])
                    n_done += 1
            except CancelledError:
                if retries == 0:
                    raise
                retries -= 1


def even_ranges(sizes, n_jobs, *, per_job, most=np.inf):
    """Return ranges of items of about equal total size, a few for each job.

    Parameters
    ----------
    sizes : list of int
        Size of each item, at least one item.

    n_jobs : int or None
        Number of joblib workers.

    per_job : int
        How many ranges each of them gets, which evens out what they take.

    most : float, default=inf
        Largest total size of a range of several items, about.

    Returns
    -------
    ranges : list of tuple of int
        First item, and the one behind the last.
    """
    ends = np.cumsum(sizes)
    n_ranges = max(per_job * effective_n_jobs(n_jobs), int(ends[-1] // most))
    n_ranges = min(n_ranges, len(ends))
    parts = np.minimum((ends - 1) * n_ranges // ends[-1], n_ranges - 1)
    cuts = (np.flatnonzero(np.diff(parts)) + 1).tolist()
    return list(zip([0, *cuts], [*cuts, len(ends)], strict=True))


def writable(arrays):
    """Return arrays of which none is read-only, copied where need be.

    What has travelled to a worker may be mapped from a file, and read-only arrays are
    another type to the compiler.

    Parameters
    ----------
    arrays : iterable of ndarray
        The arrays.

    Returns
    -------
    arrays : list of ndarray
        C-contiguous and writable.
    """
    return [np.require(x, requirements=("C", "W", "E")) for x in arrays]
