"""Random streams: one per caller, or an independent one per item."""

from hashlib import blake2b

import numpy as np
from sklearn.utils import check_random_state

from skawhmm.utils._checks import check_seed


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
