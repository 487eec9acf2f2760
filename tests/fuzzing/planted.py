"""A trial with each outcome, to test that judge and pool distinguish them."""

import ctypes
import os
import time

import numpy as np

from fuzzing.judge import (
    CHANGED,
    CLEAR,
    CRASH,
    HANG,
    IGNORED,
    MISREAD,
    NOT_FINITE,
    ORDER,
    OUTCOMES,
    PROPERTY,
    RIGHT,
    UNCLEAR,
    BreachError,
    Trial,
)
from skawhmm import HMMTransformer


def _crash():
    if os.name == "nt":
        os._exit(3)
    ctypes.string_at(0)


def _hang():
    while True:
        time.perf_counter()


def _changing(X):
    def call():
        X[0][0] = 5.0

    return call


def _broken(outcome):
    def verify(result):
        raise BreachError(outcome, f"{result} is not what it should be")

    return verify


def planted(seed, number):
    """Return the trial whose outcome has this number in `OUTCOMES`."""
    outcome = OUTCOMES[number % len(OUTCOMES)]
    X = [np.arange(float(seed + 4))]
    hmm = HMMTransformer(1)
    trials = {
        RIGHT: Trial("fit", lambda: hmm.fit_transform(X), [X], {"X"}),
        CLEAR: Trial("text", lambda: hmm.fit("text"), [], {"X"}),
        # Names of arguments that the message does not have.
        UNCLEAR: Trial("text", lambda: hmm.fit("text"), [], {"alpha"}),
        CRASH: Trial("crash", _crash, [], set()),
        HANG: Trial("hang", _hang, [], set()),
        NOT_FINITE: Trial("NaN", lambda: {"a": [np.nan]}, [], set()),
        CHANGED: Trial("changed", _changing(X), [X], set()),
        MISREAD: Trial("misread", lambda: 1.0, [], set(), wrong="dates"),
        IGNORED: Trial("ignored", lambda: 1.0, [], set(), verify=_broken(IGNORED)),
        PROPERTY: Trial("property", lambda: 1.0, [], set(), verify=_broken(PROPERTY)),
        ORDER: Trial("order", lambda: 1.0, [], set(), verify=_broken(ORDER)),
    }
    return outcome, trials[outcome]
