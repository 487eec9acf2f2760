"""One way to hand out work: joblib tasks that share what is large."""

from concurrent.futures import CancelledError

from joblib import Parallel, delayed
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
