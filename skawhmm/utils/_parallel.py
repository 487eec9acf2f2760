"""The only module that calls joblib: parallel tasks."""

import pickle
import sys
from collections import deque
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from functools import cached_property, partial
from itertools import islice, starmap

import cloudpickle
import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs, parallel_config
from joblib.parallel import ThreadingBackend, get_active_backend
from tqdm.auto import tqdm

from skawhmm.utils._checks import check_n_jobs
from skawhmm.utils._interruption import Call

# If a worker dies, the shared data it held are lost. Tasks without a result are then
# started again, at most this many times.
MAX_RETRIES = 3

# The largest size of a number, in bytes.
ALIGNMENT = 16

# Tasks per worker that are begun before the first of them is waited for: workers always
# have some, and their results do not pile up.
TASKS_AHEAD = 4


class Shared:
    """Data of all tasks of a call, sent to each worker once and not with each task.

    Parameters
    ----------
    value : object
        The data.
    """

    def __init__(self, value):
        self.value = value

    def __sizeof__(self):
        # dask decides by it where to keep the data.
        rest, buffers = self._parts
        return len(rest) + sum(x.nbytes for x in buffers)

    def __reduce__(self):
        return _received, self._parts

    @cached_property
    def _parts(self):
        """The value without the numbers of its arrays, and these, which are not copied.

        They are the same objects at each call, so that joblib maps them once.
        """
        buffers: list[pickle.PickleBuffer] = []
        # It may hold functions of the user's script, which `pickle` does not take.
        rest = cloudpickle.dumps(self.value, 5, buffer_callback=buffers.append)
        return rest, [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]


def _received(rest, buffers):
    """Return a `Shared` made of its parts, which may lie anywhere in a message.

    Kernels read numbers from addresses that are multiples of their size.
    """
    buffers = [x.copy() if x.ctypes.data % ALIGNMENT else x for x in buffers]
    shared = Shared(pickle.loads(rest, buffers=buffers))
    shared._parts = rest, buffers
    return shared


def completed(
    function, shared, tasks, *, n_jobs, verbose=0, label="tasks", amounts=None
):
    """Yield ``function(shared, *task)`` for each task, in their order.

    Parameters
    ----------
    function : callable
        What runs in the workers.

    shared : Shared
        First argument of the function.

    tasks : sequence of tuple
        Other arguments of the function, one tuple of small objects per task, which may
        be made when they are asked for.

    n_jobs : int or None
        Number of joblib workers; they are threads unless a `joblib.parallel_config`
        context says otherwise.

    verbose : int, default=0
        Whether to show a progress bar.

    label : str, default="tasks"
        Name of the progress bar.

    amounts : list of int, default=None
        How far each task moves the progress bar; by default by one.

    Yields
    ------
    result : object
        The result of one task.
    """
    # Small integer types would overflow.
    n_jobs = check_n_jobs("n_jobs", n_jobs)
    n_done, retries = 0, MAX_RETRIES
    total = len(tasks) if amounts is None else sum(amounts)
    with tqdm(total=total, desc=label, disable=not verbose) as bar:
        while n_done < len(tasks):
            left = islice(tasks, n_done, None)
            if n_jobs is not None:
                # joblib starts as many threads as it is told to, with or without work.
                n_jobs = min(n_jobs, len(tasks) - n_done)
            results = _results(function, shared, left, n_jobs)
            try:
                for result in results:
                    yield result
                    bar.update(1 if amounts is None else amounts[n_done])
                    n_done += 1
            except CancelledError as error:
                if retries == 0:
                    raise CancelledError(
                        f"Workers died while they computed {label}, and again when "
                        f"this was repeated {MAX_RETRIES} times. Their logs may say "
                        "why; a common cause is too little memory."
                    ) from error
                retries -= 1


def workers_are_threads():
    """Return whether tasks run in threads of this process."""
    return isinstance(get_active_backend(prefer="threads")[0], ThreadingBackend)


def _results(function, shared, tasks, n_jobs):
    """Return an iterator of results, of this process if one job is asked for."""
    backend, _ = get_active_backend(prefer="threads")
    # The dask back end would send the tasks of one job to its workers all the same.
    if n_jobs != 1 and _runs_on_dask(backend):
        return _dask_results(backend, function, shared, tasks, n_jobs)
    if effective_n_jobs(n_jobs) == 1:
        return starmap(partial(function, shared), tasks)
    if isinstance(backend, ThreadingBackend):
        return _thread_results(backend, function, shared, tasks, n_jobs)
    return _joblib_results(backend, function, shared, tasks, n_jobs)


def _thread_results(backend, function, shared, tasks, n_jobs):
    """Yield the results of threads.

    joblib's own loop looks for results once in 10 ms, which is longer than a small
    batch takes. Threads that still work when nobody waits any more are told to stop.
    """
    n_workers = effective_n_jobs(n_jobs)
    # Work inside of a task is divided as joblib would divide it there.
    inner, inner_jobs = backend.get_nested_backend()
    pool = ThreadPoolExecutor(n_workers)
    try:
        with Call() as call:

            def run(*task):
                with parallel_config(backend=inner, n_jobs=inner_jobs):
                    return call.run(function, shared, *task)

            futures = (pool.submit(run, *task) for task in tasks)
            for future in _in_order(futures, TASKS_AHEAD * n_workers):
                # Without a limit, waiting cannot be interrupted on every system.
                while not wait([future], timeout=0.2).done:
                    pass
                yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _in_order(futures, n_ahead):
    """Yield futures one by one; at most `n_ahead` more are begun before."""
    ahead = deque(islice(futures, n_ahead))
    while ahead:
        yield ahead.popleft()
        ahead.extend(islice(futures, 1))


def _joblib_results(backend, function, shared, tasks, n_jobs):
    """Yield the results of joblib's other workers."""
    streams = backend.supports_return_generator
    kind = "generator" if streams else "list"
    n_ahead = TASKS_AHEAD * effective_n_jobs(n_jobs)
    run = Parallel(n_jobs=n_jobs, prefer="threads", return_as=kind)
    calls = (delayed(function)(shared, *task) for task in tasks)
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


def _dask_results(backend, function, shared, tasks, n_jobs):
    """Yield the results of dask workers; `CancelledError` says that one has died.

    joblib's own loop for dask waits for ever if a task ends without a result, because
    every worker that tried it died, or if one dies while it is sent the shared data.
    """
    client, options = backend.client, {"pure": False, **backend.submit_kwargs}
    n_ahead = TASKS_AHEAD * effective_n_jobs(n_jobs)
    place = _sent(client, shared)
    futures = (client.submit(function, place, *task, **options) for task in tasks)
    # A task that waits for others must not take the place of one of them.
    with backend.retrieval_context():
        for future in _in_order(futures, n_ahead):
            yield future.result()


def _sent(client, shared):
    """Return where the shared data are in the memory of dask workers."""
    try:
        # Without a hash the data of a dead worker are not taken for those sent again.
        return client.scatter(shared, hash=False)
    except TimeoutError:
        # There are no workers, so another attempt would fail too.
        raise
    except OSError as error:
        raise CancelledError from error


def n_threads(n_jobs):
    """Return how many threads a library may start that has threads of its own."""
    n_workers = effective_n_jobs(check_n_jobs("n_jobs", n_jobs))
    return max(1, min(n_workers, cpu_count()))


def even_ranges(sizes, n_jobs, *, per_job, least=1, most=np.inf):
    """Return ranges of items with about equal total size, a few per worker.

    There are fewer if they would be smaller than `least`, so that a worker would take
    longer to begin than to finish, and more if they would be larger than `most`.
    """
    ends = np.cumsum(sizes)
    n_workers = effective_n_jobs(check_n_jobs("n_jobs", n_jobs))
    n_ranges = min(per_job * n_workers, int(ends[-1] // least))
    n_ranges = max(n_ranges, int(ends[-1] // most), 1)
    n_ranges = min(n_ranges, len(ends))
    parts = np.minimum((ends - 1) * n_ranges // ends[-1], n_ranges - 1)
    cuts = (np.flatnonzero(np.diff(parts)) + 1).tolist()
    return list(zip([0, *cuts], [*cuts, len(ends)], strict=True))


def writable(arrays):
    """Return writable arrays, copied only if they are not.

    Arrays sent to a worker may be mapped from a file and read-only, which is another
    type to the compiler.
    """
    return [np.require(x, requirements=("C", "W", "E")) for x in arrays]
