"""Models with equal states, which may be in any order."""

import numpy as np
from helpers import cloned, reordered, tied_batch, tied_model

import skawhmm as sk
from fuzzing.draw import pick
from fuzzing.judge import ORDER, BreachError, Trial
from fuzzing.names import MODELS, arguments_of
from fuzzing.params import METRICS, drawn_metric, shown

# Roundings of p-th powers of distances. The squared Hellinger distance has roots of
# probabilities, whose rounding error near 0 is the root of 1e-17.
TOLERANCES = {"transport": 1e-10, "hellinger": 3e-8}


def trial(rng):
    """Draw models with equal states; their order does not change the components."""
    size = int(rng.integers(1, 13)) if rng.random() < 0.2 else int(rng.integers(1, 7))
    scale = 1.0 if rng.random() < 0.5 else 10.0 ** int(rng.integers(-90, 90))
    given = [
        _scaled(tied_model(rng, size), scale) for _ in range(int(rng.integers(1, 4)))
    ]
    metric, params = drawn_metric(rng, ("maw", "jaw"))
    settings = {"metric": metric, "metric_params": params}
    settings["p"] = pick(rng, [1, 1, 2, 0.5, 1.5])
    is_maw = metric == "maw" and params.get("steps") != "joint"

    def components(models):
        found = sk.pairwise_hmm_components(tied_batch(*models), **settings)
        return np.array(found)

    def verify(found):
        other = [reordered(model, rng.permutation(size)) for model in given]
        _check(found, components(other), "renamed", settings, scale)
        both = components([given[0], other[0]])
        _check(both, np.zeros_like(both), "a renamed copy", settings, scale)
        if is_maw:
            fraction = pick(rng, [0.5, 0.25, 0.1])
            split = [
                cloned(model, int(rng.integers(size)), fraction) for model in given
            ]
            _check(found, components(split), "split states", settings, scale)

    return Trial(
        f"components {shown(settings)} of {len(given)} tied models of {size} states",
        lambda: components(given),
        [given, settings],
        MODELS | arguments_of(sk.pairwise_hmm_components) | {*METRICS[metric]},
        verify,
    )


def _scaled(model, scale):
    transmat, means, covars, weights = model
    return transmat, scale * means, scale**2 * covars, weights


def _check(one, two, claim, settings, scale):
    """Raise unless the p-th powers of components are equal up to rounding."""
    p, rows = settings["p"], settings["metric_params"].get("rows", "transport")
    for k, name in enumerate(("marginal", "transition")):
        is_root = k == 1 and rows == "hellinger"
        unit = 1.0 if is_root else scale
        gap = np.abs((one[k] / unit) ** p - (two[k] / unit) ** p).max()
        if not gap <= TOLERANCES[rows if is_root else "transport"]:
            raise BreachError(
                ORDER, f"{claim}: {name} component by {gap:.3g} of {unit:.3g}"
            )
