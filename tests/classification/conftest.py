import numpy as np
import pytest
from helpers import Moments

from skawhmm.classification import HMMViewClassifier


@pytest.fixture
def problem(rng):
    """Return noisy sequences of three classes that differ in their means."""
    y = np.arange(60) % 3
    centres = rng.normal(size=(3, 4))
    X = [rng.normal(size=(9, 4)) + 0.5 * centres[c] for c in y]
    return X, np.array(["a", "b", "c"])[y]


@pytest.fixture
def views():
    return [("mean", Moments()), ("square", Moments(2))]


@pytest.fixture
def small(views):
    return HMMViewClassifier(views, random_state=0)
