import numpy as np
import pytest


@pytest.fixture
def frames():
    """Two channels that change between two levels."""
    rng = np.random.default_rng(3)
    levels = np.repeat([0.0, 3.0, 0.0, 3.0], 40)
    return rng.normal(levels[:, None], 1.0, size=(160, 2))


@pytest.fixture
def counts(frames):
    return np.random.default_rng(4).poisson(np.exp(0.5 * np.abs(frames)))


@pytest.fixture
def symbols(frames):
    return (frames[:, 0] > 1).astype(int) + (frames[:, 1] > 2)
