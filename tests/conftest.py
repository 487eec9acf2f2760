import os
from pathlib import Path

import numpy as np
import pytest
from helpers import random_model
from hypothesis import settings

from skawhmm import HMMBatch

# Scripts that tests run in separate processes.
collect_ignore = [
    "first_run.py",
    "interruptions.py",
    "long_work.py",
    "lost_workers.py",
    "memory_limits.py",
    "mutations.py",
    "writers.py",
]

settings.register_profile("local", deadline=None, max_examples=30, database=None)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def make_batch():
    """Return a function that draws a batch; the same arguments give the same batch.

    A list of `n_components` gives models with unequal numbers of states.
    """

    def make(
        n_models=4,
        n_components=3,
        n_features=2,
        covariance_type="diag",
        *,
        seed=0,
        **kw,
    ):
        rng = np.random.default_rng(seed)
        sizes = np.broadcast_to(n_components, n_models)
        models = [random_model(rng, m, n_features, covariance_type) for m in sizes]
        return HMMBatch(*zip(*models, strict=True), **kw)

    return make


@pytest.fixture(scope="session")
def make_sequences():
    """Return a function that draws sequences of two-state chains, and their labels.

    Sequences of one class switch slowly between the states, the others fast.
    """

    def make(n_sequences=6, n_timesteps=(20, 40), n_features=2, *, seed=0):
        rng = np.random.default_rng(seed)
        X, y = [], np.arange(n_sequences) % 2
        for label in y:
            length = int(rng.integers(*n_timesteps, endpoint=True))
            turns = rng.random(length) < (0.5 if label else 0.1)
            states = np.cumsum(turns) % 2
            X.append(3.0 * states[:, None] + rng.normal(size=(length, n_features)))
        return X, y

    return make


@pytest.fixture
def shared():
    """Return a function that finds a file of real data, or skips the test."""

    def found(name):
        path = Path(os.environ.get("SKAWHMM_DATA", "missing")) / name
        if not path.exists():
            pytest.skip(f"needs {name} in the folder named by SKAWHMM_DATA")
        return path

    return found
