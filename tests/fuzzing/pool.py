"""Cases in separate processes, so that crashes and hangs are counted."""

import contextlib
import importlib
import multiprocessing
import os
import signal
import time
import traceback
import warnings
from multiprocessing.connection import wait

from fuzzing.judge import CRASH, HANG, UNCLEAR, Finding

# A case may compute this long, in seconds of processor time. A process that was put to
# sleep (by a user, or a laptop that was closed) is given this many times as long.
LIMIT = 30.0
PATIENCE = 20


def found(seed, number, draw=None):
    """Return the outcome of a case."""
    from fuzzing.judge import judged
    from fuzzing.kinds import trial_of

    kind, text = "drawing", ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kind, trial = (draw or trial_of)(seed, number)
            text = trial.text
            finding = judged(kind, trial)
        except Exception:
            # Mistakes of the fuzzer itself are reported, not skipped.
            trace = traceback.format_exc()
            finding = Finding(
                kind, UNCLEAR, text, "the case itself failed", trace=trace
            )
            finding.place = trace.splitlines()[-1][:80]
    finding.number = number
    return finding


def _work(pipe, seed, draw, limit):
    """Receive the numbers of cases and send their outcomes, in a separate process."""
    with open(os.devnull, "w", encoding="utf-8") as null:
        os.dup2(null.fileno(), 1)
        os.dup2(null.fileno(), 2)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Imports do not count towards the time of a case.
        importlib.import_module("fuzzing.kinds")
        while True:
            number = pipe.recv()
            if number is None:
                return
            with _timed(limit):
                finding = found(seed, number, draw)
            pipe.send(finding)


@contextlib.contextmanager
def _timed(limit):
    """End the process if a case takes more processor time than the limit."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class Worker:
    """A process that runs cases one after the other, and is replaced if it dies."""

    def __init__(self, seed, draw=None, limit=LIMIT):
        self.settings = (seed, draw, limit)
        self.limit = limit
        self.number = None
        self.start()

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_work, args=(theirs, *self.settings), daemon=True
        )
        with _no_threads():
            self.process.start()
        theirs.close()

    def give(self, number):
        self.number, self.since = number, time.monotonic()
        self.pipe.send(number)

    def answer(self):
        """Return the finding, None if there is none yet."""
        if self.pipe.poll():
            with contextlib.suppress(EOFError, ConnectionResetError):
                finding, self.number = self.pipe.recv(), None
                return finding
        if self.process.exitcode is None and not self.process.is_alive():
            self.process.join()
        late = time.monotonic() - self.since > PATIENCE * self.limit
        if self.process.is_alive() and not late:
            return None
        return self._ended(late)

    def _ended(self, late):
        """Return the outcome if the process died, and start another one."""
        if late:
            self.process.kill()
        self.process.join()
        code, number = self.process.exitcode, self.number
        is_hang = late or code == -getattr(signal, "SIGPROF", 0)
        words = f"ended after {self.limit:g} s" if is_hang else f"exit code {code}"
        self.number = None
        self.start()
        return Finding(
            "", HANG if is_hang else CRASH, message=words, place=words, number=number
        )

    def stop(self):
        if self.process.is_alive() and self.number is None:
            with contextlib.suppress(OSError):
                self.pipe.send(None)
        else:
            self.process.kill()
        self.process.join(10)


@contextlib.contextmanager
def _no_threads():
    """Start processes whose linear algebra has one thread."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def findings(seed, numbers, *, n_jobs=1, draw=None, limit=LIMIT):
    """Yield the outcomes of cases as they end.

    Parameters
    ----------
    seed : int
        Seed of all cases.

    numbers : iterable of int
        The cases.

    n_jobs : int, default=1
        Number of processes.

    draw : callable, default=None
        Takes a seed and a number and returns the name of a kind and a `Trial`; by
        default all kinds.

    limit : float
        Processor time per case, in seconds.

    Yields
    ------
    finding : Finding
        What came of a case.
    """
    left = iter(numbers)
    workers = [Worker(seed, draw, limit) for _ in range(n_jobs)]
    try:
        for worker in workers:
            _give_next(worker, left)
        while busy := [worker for worker in workers if worker.number is not None]:
            wait([w.pipe for w in busy] + [w.process.sentinel for w in busy], timeout=5)
            for worker in busy:
                finding = worker.answer()
                if finding is not None:
                    yield finding
                    _give_next(worker, left)
    finally:
        for worker in workers:
            worker.stop()


def _give_next(worker, numbers):
    number = next(numbers, None)
    if number is not None:
        worker.give(number)
