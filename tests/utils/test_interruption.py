"""Work that ends when it is no longer wanted, and work in a thread of its own."""

import threading

import numpy as np
import pytest

from skawhmm import KL
from skawhmm.utils._interruption import Call, Unwanted, check_wanted, waited_for


def test_code_outside_a_call_is_never_cancelled():
    check_wanted()


def test_an_ended_call_is_cancelled_for_its_tasks():
    with Call() as call:
        assert call.run(sum, [1, 2]) == 3
        assert call.run(call.run, sum, [1, 2]) == 3
    with pytest.raises(Unwanted):
        call.run(sum, [1, 2])
    check_wanted()


def test_a_kernel_stops_when_it_is_cancelled(make_batch):
    metric, index = KL(method="variational"), (np.array([0]), np.array([1]))
    prepared = metric.prepare(make_batch(2, 25))
    began, ends = threading.Event(), []

    def work():
        began.set()
        # It takes minutes.
        metric.distances(prepared, *index)

    def run():
        try:
            call.run(work)
        except Unwanted:
            ends.append("not wanted")

    with Call() as call:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        assert began.wait(60)
    thread.join(60)
    assert ends == ["not wanted"]


def test_waiting_returns_and_raises_as_usual():
    assert waited_for(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        waited_for(divmod, 7, 0)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        waited_for(np.log, 0.0)
