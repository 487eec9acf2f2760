"""Parallel tasks; the only module that calls joblib."""

import pickle
import sys
from collections import deque
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from functools import cached_property, partial
from itertools import islice, starmap

import cloudpickle
import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import ThreadingBackend, get_active_backend
from tqdm.auto import tqdm

from skawhmm.utils._checks import check_n_jobs
from skawhmm.utils._interruption import Call

# If a worker dies, its shared data are lost. Tasks without a result are then restarted,
# at most this many times.
MAX_RETRIES = 3

# The largest size of a number, in bytes.
ALIGNMENT = 16

# Tasks submitted per worker before waiting for the first: workers are always busy, and
# results do not pile up.
TASKS_AHEAD = 4


class Shared:
    """Data shared by all tasks of a call, sent once per worker instead of per task.

    Parameters
    ----------
    value : object
        The data.
    """

    def __init__(self, value):
        self.value = value

    def __sizeof__(self):
        # dask uses the size to decide where to keep the data.
        rest, buffers = self._parts
        return len(rest) + sum(x.nbytes for x in buffers)

    def __reduce__(self):
        return _received, self._parts

    @cached_property
    def _parts(self):
        """The pickled value without array data, and the uncopied buffers of its arrays.

        Each call returns the same objects, so that joblib maps them only once.
        """
        buffers: list[pickle.PickleBuffer] = []
        # The value may hold functions of the user's script, which `pickle` rejects.
        rest = cloudpickle.dumps(self.value, 5, buffer_callback=buffers.append)
        return rest, [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]


def _received(rest, buffers):
    """Return a `Shared` rebuilt from its parts, which may be unaligned in a message.

    Kernels require aligned arrays.
    """
    buffers = [x.copy() if x.ctypes.data % ALIGNMENT else x for x in buffers]
    shared = Shared(pickle.loads(rest, buffers=buffers))
    shared._parts = rest, buffers
    return shared


def completed(function, data, tasks, *, n_jobs, verbose=0, label="tasks", amounts=None):
    """Return an iterator over ``function(data, *task)`` for each task, in order.

    Parameters
    ----------
    function : callable
        Function that runs in the workers.

    data : object
        First argument of the function, sent once per worker instead of per task.

    tasks : sequence of tuple
        Other arguments of the function, one tuple per task. A list should hold small
        objects, which are sent. Any other sequence is sent as part of the data, and
        makes its tasks in the workers.

    n_jobs : int or None
        Number of joblib workers; they are threads unless a `joblib.parallel_config`
        context says otherwise.

    verbose : int, default=0
        Whether to show a progress bar.

    label : str, default="tasks"
        Name of the progress bar.

    amounts : list of int, default=None
        How far each task moves the progress bar; by default by one.

    Returns
    -------
    results : iterator
        The results, each computed when it is asked for if there is one job.
    """
    # Small integer types would overflow.
    n_jobs = check_n_jobs("n_jobs", n_jobs)
    backend, _ = get_active_backend(prefer="threads")
    # Even with one job, the dask back end would send the tasks to its workers.
    is_dask = n_jobs != 1 and _runs_on_dask(backend)
    if not is_dask and effective_n_jobs(n_jobs) == 1:
        results = starmap(partial(function, data), tasks)
    else:
        send = _joblib_results
        if is_dask:
            send = _dask_results
        elif isinstance(backend, ThreadingBackend):
            send = _thread_results
        results = _from_workers(
            partial(send, backend), function, data, tasks, n_jobs, label
        )
    if not verbose:
        return results
    return _with_bar(results, [1] * len(tasks) if amounts is None else amounts, label)


def _with_bar(results, amounts, label):
    """Yield results, and show how far they are."""
    with tqdm(total=sum(amounts), desc=label) as bar:
        for result, amount in zip(results, amounts, strict=True):
            yield result
            bar.update(amount)


def _task_made_here(data, k):
    """Return the result of a task that the worker makes from its number."""
    function, data, tasks = data
    return function(data, *tasks[k])


def _from_workers(send, function, data, tasks, n_jobs, label):
    """Yield the results of workers; tasks of dead workers are sent again."""
    n_tasks = len(tasks)
    if not isinstance(tasks, list):
        function, data, tasks = _task_made_here, (function, data, tasks), None
    shared = Shared((function, data))
    n_done, retries = 0, MAX_RETRIES
    while n_done < n_tasks:
        left = zip(range(n_done, n_tasks)) if tasks is None else tasks[n_done:]
        if n_jobs is not None:
            # joblib starts all requested threads, even without work for them.
            n_jobs = min(n_jobs, n_tasks - n_done)
        try:
            for result in send(shared, left, n_jobs):
                yield result
                n_done += 1
        except CancelledError as error:
            if retries == 0:
                raise CancelledError(
                    f"Workers died while they computed {label}, and again when "
                    f"this was repeated {MAX_RETRIES} times. Their logs may say "
                    "why; a common cause is too little memory."
                ) from error
            retries -= 1


def _called(shared, *task):
    """Return the result of one task."""
    function, data = shared.value
    return function(data, *task)


def workers_are_threads():
    """Return whether tasks run in threads of this process."""
    return isinstance(get_active_backend(prefer="threads")[0], ThreadingBackend)


def _thread_results(backend, shared, tasks, n_jobs):
    """Yield the results of threads.

    joblib's own loop polls for results every 10 ms, which is longer than a small batch
    takes. Threads whose results are no longer needed are told to stop.
    """
    n_workers = effective_n_jobs(n_jobs)
    # Nested parallel work is divided as joblib would divide it.
    inner, inner_jobs = backend.get_nested_backend()
    pool = ThreadPoolExecutor(n_workers)
    try:
        with Call() as call:

            def run(*task):
                with parallel_config(backend=inner, n_jobs=inner_jobs):
                    return call.run(_called, shared, *task)

            futures = (pool.submit(run, *task) for task in tasks)
            for future in _in_order(futures, TASKS_AHEAD * n_workers):
                # Waiting without a time limit cannot be interrupted on some systems.
                while not wait([future], timeout=0.2).done:
                    pass
                yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _in_order(futures, n_ahead):
    """Yield futures one by one, with at most `n_ahead` more already submitted."""
    ahead = deque(islice(futures, n_ahead))
    while ahead:
        yield ahead.popleft()
        ahead.extend(islice(futures, 1))


def _joblib_results(backend, shared, tasks, n_jobs):
    """Yield the results of joblib's other back ends."""
    streams = backend.supports_return_generator
    kind = "generator" if streams else "list"
    n_ahead = TASKS_AHEAD * effective_n_jobs(n_jobs)
    run = Parallel(n_jobs=n_jobs, prefer="threads", return_as=kind)
    calls = (delayed(_called)(shared, *task) for task in tasks)
    if streams:
        yield from run(calls)
        return
    with run:
        while some := list(islice(calls, n_ahead)):
            yield from run(some)


def _runs_on_dask(backend):
    distributed = sys.modules.get("distributed")
    client = getattr(backend, "client", None)
    return distributed is not None and isinstance(client, distributed.Client)


def _dask_results(backend, shared, tasks, n_jobs):
    """Yield the results of dask workers; `CancelledError` means that one has died.

    joblib's own loop for dask waits forever if every worker that tried a task died, or
    if a worker dies while the shared data are sent to it.
    """
    client, options = backend.client, {"pure": False, **backend.submit_kwargs}
    n_ahead = TASKS_AHEAD * effective_n_jobs(n_jobs)
    place = _sent(client, shared)
    futures = (client.submit(_called, place, *task, **options) for task in tasks)
    # A task that waits for other tasks must not occupy one of their workers.
    with backend.retrieval_context():
        for future in _in_order(futures, n_ahead):
            yield future.result()


def _sent(client, shared):
    """Return the future of the shared data in the memory of dask workers."""
    try:
        # Without a hash, resent data are not mistaken for the data of a dead worker.
        return client.scatter(shared, hash=False)
    except TimeoutError:
        # There are no workers, so another attempt would fail too.
        raise
    except OSError as error:
        raise CancelledError from error


def even_ranges(sizes, n_jobs, *, per_job, least=1, most=np.inf):
    """Return ranges of items with about equal total size, a few per worker.

    There are fewer ranges if they would be smaller than `least`, where starting a
    worker takes longer than its work, and more if they would be larger than `most`.
    Each worker gets equally many, so that all finish at about the same time.
    """
    ends = np.cumsum(sizes)
    n_workers = effective_n_jobs(check_n_jobs("n_jobs", n_jobs))
    n_ranges = min(per_job * n_workers, int(ends[-1] // least))
    n_ranges = max(n_ranges, int(ends[-1] // most), 1)
    if n_ranges > n_workers:
        n_ranges = -(-n_ranges // n_workers) * n_workers
    n_ranges = min(n_ranges, len(ends))
    parts = np.minimum((ends - 1) * n_ranges // ends[-1], n_ranges - 1)
    cuts = (np.flatnonzero(np.diff(parts)) + 1).tolist()
    return list(zip([0, *cuts], [*cuts, len(ends)], strict=True))


def writable(arrays):
    """Return writable arrays, copied only if necessary.

    Arrays sent to a worker may be mapped from a file and read-only, which kernels do
    not accept.
    """
    return [np.require(x, requirements=("C", "W", "E")) for x in arrays]
