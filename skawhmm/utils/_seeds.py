"""Random streams: one per caller, or an independent one per item."""

from hashlib import blake2b
from threading import Lock

import numpy as np
from sklearn.utils import check_random_state

from skawhmm.utils._checks import check_seed

# A draw releases the GIL for a moment, after which its thread queues for it. Threads
# that draw at the same time would wait for each other at every draw.
DRAWING = Lock()


def random_stream(random_state):
    """Return a RandomState for any `random_state`, including a Generator."""
    if isinstance(random_state, np.random.Generator):
        random_state = check_seed(random_state)
    return check_random_state(random_state)


def array_key(array):
    """Return an integer that depends on the content of an array."""
    return int.from_bytes(blake2b(array.tobytes(), digest_size=8).digest(), "little")


def item_rng(seed, *content):
    """Return the random stream of one item, which depends only on seed and content."""
    key = [array_key(x) if isinstance(x, np.ndarray) else x for x in content]
    if isinstance(seed, np.random.SeedSequence):
        spawn_key = (*seed.spawn_key, *key)
        return np.random.default_rng(
            np.random.SeedSequence(seed.entropy, spawn_key=spawn_key)
        )
    return np.random.default_rng([seed, *key])


def exponential_draws(rngs, shape):
    """Return standard exponential draws, an array of some shape per random stream."""
    drawn = np.empty((len(rngs), *shape))
    with DRAWING:
        for rng, own in zip(rngs, drawn, strict=True):
            rng.standard_exponential(out=own)
    return drawn


def integer_draws(rngs, highs, size):
    """Return integers from 0 to below `highs`, a row of some size per random stream."""
    with DRAWING:
        drawn = [
            rng.integers(high, size=size) for rng, high in zip(rngs, highs, strict=True)
        ]
    return np.array(drawn)
