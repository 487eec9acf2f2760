"""Common code of the benchmarks: random models and a timer."""

import time

import numpy as np

from skawhmm import HMMBatch


def make_models(n_models, n_components, n_features, covariance_type="diag", seed=0):
    """Models with random states and chains."""
    rng = np.random.default_rng(seed)
    shape = (n_models, n_components, n_features)
    covars = rng.uniform(0.2, 2, shape)
    if covariance_type == "full":
        factors = rng.normal(size=(*shape, n_features))
        covars = factors @ factors.swapaxes(2, 3) / n_features
    transmats = rng.dirichlet(np.ones(n_components), shape[:2])
    return HMMBatch(transmats, rng.normal(size=shape), covars)


def timed(function, *args, repeats=1, **kwargs):
    """Fewest seconds of any call, and the result."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        result = function(*args, **kwargs)
        best = min(best, time.perf_counter() - start)
    return best, result
