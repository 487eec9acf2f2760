"""Families of states, data for them, and models of them given by parameters."""

import numpy as np

from fuzzing.draw import chain_arguments, pick, power
from skawhmm.emissions import (
    Bernoulli,
    ByChannel,
    Categorical,
    Gamma,
    Gaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
    VonMises,
)

FAMILIES = {
    "gaussian": Gaussian,
    "full gaussian": lambda: Gaussian("full"),
    "gamma": Gamma,
    "gamma with zeros": lambda: Gamma(zero_mass=True),
    "vonmises": VonMises,
    "student": StudentT,
    "poisson": Poisson,
    "negative binomial": NegativeBinomial,
    "bernoulli": Bernoulli,
    "categorical": lambda: Categorical([0, 1, 2]),
}


def template(rng):
    """Return a family, or several side by side, and the kind of each channel."""
    if rng.random() < 0.4:
        name = pick(rng, [*FAMILIES])
        width = 1 if name == "categorical" else int(rng.integers(1, 3))
        return FAMILIES[name](), [name] * width
    blocks, kinds = [], []
    for n in range(int(rng.integers(1, 5))):
        name = pick(rng, [*FAMILIES])
        width = 1 if name == "categorical" else int(rng.integers(1, 3))
        columns = [*range(len(kinds), len(kinds) + width)]
        blocks.append((f"block {n}", FAMILIES[name](), _columns(rng, columns)))
        kinds += [name] * width
    names = [name for name, _, _ in blocks]
    scale = pick(rng, ["spread", "spread", None, dict.fromkeys(names, 2.0)])
    return ByChannel(blocks, scale=scale), kinds


def _columns(rng, columns):
    """Return columns in one of the forms that a block takes."""
    forms = [columns, np.array(columns), slice(columns[0], columns[-1] + 1)]
    return pick(rng, [*forms, columns[0]] if len(columns) == 1 else forms)


def channel(rng, kind, path, unit):  # noqa: PLR0911 (one return per kind)
    """Return values of one channel, whose states have levels."""
    n = len(path)
    if "gaussian" in kind:
        return unit * (rng.normal(size=n) + 3 * path)
    if kind == "student":
        return unit * (rng.standard_t(3, n) + 3 * path)
    if "gamma" in kind:
        zeros = "zeros" in kind and rng.random() < 0.7
        values = np.maximum(rng.gamma(2.0, 1.0 + 4 * path), 1e-6)
        return unit * values * (rng.random(n) > 0.2 * zeros)
    if kind == "vonmises":
        return np.mod(rng.vonmises(2.0 * path, 2.0) + np.pi, 2 * np.pi) - np.pi
    if kind == "bernoulli":
        return (rng.random(n) < 0.2 + 0.6 * path).astype(float)
    if kind == "categorical":
        return np.minimum(rng.integers(0, 3, n), 2.0 - path)
    return rng.poisson(rng.gamma(2.0, 1.0 + 4 * path)).astype(float)


def recording(rng, kinds, length, units):
    """Return one recording with channels of several kinds."""
    path = np.cumsum(rng.random(length) < 0.2) % 2
    parts = [
        channel(rng, kind, path, unit) for kind, unit in zip(kinds, units, strict=True)
    ]
    return np.column_stack(parts)


def recordings(rng, kinds, n=None, *, largest=0):
    """Return recordings; units are powers of ten if `largest` is positive."""
    n = int(rng.integers(1, 5)) if n is None else n
    units = [power(rng, largest) if largest else 1.0 for _ in kinds]
    return [recording(rng, kinds, int(rng.integers(6, 25)), units) for _ in range(n)]


def _arrays(rng, kind, shape, unit):  # noqa: PLR0911 (one return per kind)
    """Return the parameters of a family, by name."""
    if "gaussian" in kind:
        covars = unit * unit * rng.uniform(0.1, 2, shape)
        if kind.startswith("full"):
            covars = covars[..., None] * np.eye(shape[-1])
        return {"means": unit * rng.normal(size=shape), "covars": covars}
    if "gamma" in kind:
        zeros = rng.random(shape) if "zeros" in kind else np.zeros(shape)
        means, sds = (
            unit * rng.uniform(0.1, 5, shape),
            unit * rng.uniform(0.1, 5, shape),
        )
        return {"means": means, "sds": sds, "zero_probs": zeros}
    if kind == "vonmises":
        concentrations = rng.uniform(0, 1, shape) * power(rng, 4)
        return {
            "locations": rng.uniform(-9, 9, shape),
            "concentrations": concentrations,
        }
    if kind == "student":
        return {
            "locations": unit * rng.normal(size=shape),
            "scales": unit * rng.uniform(0.1, 2, shape),
            "dofs": 2 + rng.uniform(0.01, 1, shape) * pick(rng, [1, 10, 1000]),
        }
    if kind == "poisson":
        return {"rates": rng.uniform(0, 20, shape)}
    if kind == "negative binomial":
        means = rng.uniform(0, 20, shape)
        return {"means": means, "shapes": rng.uniform(0.1, 50, shape)}
    if kind == "bernoulli":
        return {"probabilities": pick(rng, [rng.random(shape), np.ones(shape)])}
    return {"emissionprobs": rng.dirichlet(np.ones(3), shape[:2])}


def family_arguments(rng):
    """Return the arguments of `HMMBatch.from_arrays`, their description and size."""
    n, m = (int(k) for k in rng.integers([2, 1], [6, 5]))
    given, text = chain_arguments(rng, n, m)
    family, kinds = template(rng)
    unit = power(rng, 60)
    if isinstance(family, ByChannel):
        for name, _, columns in family.blocks:
            own = _indices(columns, len(kinds))
            arrays = _arrays(rng, kinds[own[0]], (n, m, len(own)), unit)
            given |= {f"{name}.{key}": array for key, array in arrays.items()}
    else:
        given |= _arrays(rng, kinds[0], (n, m, len(kinds)), unit)
    same = "distinct"
    if rng.random() < 0.2:
        for array in given.values():
            array[-1], same = array[0], "two equal"
    text = f"{n} models ({same}), {m} states of {kinds}, {text}, unit {unit:g}"
    return {"models": given, "emission": family}, text


def _indices(columns, n):
    if isinstance(columns, slice):
        return [*range(n)[columns]]
    return [*np.ravel(columns)]


# Recordings that no state can emit, and values by which they are spoilt.
WRONG_VALUES = {
    "gamma": [-1.0, 0.0, np.inf],
    "gamma with zeros": [-1.0, -np.inf],
    "bernoulli": [2.0, 0.5, -1.0, np.inf],
    "poisson": [-1.0, 0.5, np.inf],
    "negative binomial": [-1.0, 2.5, np.inf],
    "categorical": [3.0, 0.5, -1.0, np.inf],
    "vonmises": [np.inf],
    "student": [np.inf, -np.inf],
    "gaussian": [np.inf],
    "full gaussian": [-np.inf],
}
