"""Data on which parameters have effects."""

import numpy as np

import skawhmm as sk
from skawhmm import HMMBatch, HMMTransformer

HMM = HMMTransformer(2, random_state=0)
VIEW = ("x", sk.HMMEmbedding((1, 2), random_state=0))
OTHER = ("z", sk.HMMEmbedding((2,), blocks="scales", random_state=0))
COSTS = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])


def frames(rng, n=12, size=(15, 30)):
    """Draw sequences of two classes that move between two states."""
    X = []
    for label in np.arange(n) % 2:
        turns = rng.random(int(rng.integers(*size))) < (0.5 if label else 0.15)
        states = np.cumsum(turns) % 2
        X.append(2.0 * states[:, None] + rng.normal(size=(len(turns), 2)))
    return X


def gaps(rng):
    """Draw sequences, two of which lack a channel."""
    X = frames(rng)
    for n in (0, 3):
        X[n][:, 1] = np.nan
    return X


def texts(rng):
    """Draw texts of three characters."""
    return [
        "abc" + "".join(rng.choice([*"abc"], 25, p=rng.dirichlet(np.ones(3))))
        for _ in range(12)
    ]


def counts(rng):
    """Draw sequences of counts in two channels."""
    return [rng.poisson(2 + 4 * (np.abs(x) > 1)) for x in frames(rng)]


def models(rng):
    """Draw fitted models that keep their sequences."""
    hmm = HMMTransformer(2, random_state=0, keep_sequences=True)
    return hmm.fit_transform(frames(rng))


def few(rng):
    """Draw three fitted models."""
    return models(rng)[:3]


def swapped(model):
    """Return a model of two states in reversed order."""
    states = model.means[:, ::-1], model.covars[:, ::-1]
    return HMMBatch(model.transmats[:, ::-1, ::-1], *states)


def chains(rng):
    """Draw models whose states emit symbols."""
    return HMMTransformer(2, emission="categorical", random_state=0).fit_transform(
        texts(rng)
    )


def distances(rng):
    """Draw distances between points."""
    points = rng.normal(size=(12, 2))
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))


def components(rng):
    """Draw components: two matrices of distances."""
    return np.stack([distances(rng), distances(rng)], axis=-1)


def signal(rng):
    """Draw a second of sound."""
    return rng.normal(size=2000)


def drawn(rng):
    """Draw two models whose registrations depend on the order of the distance."""
    chains = rng.dirichlet(np.ones(6), size=(2, 6))
    both = HMMBatch(chains, rng.normal(size=(2, 6, 2)), rng.uniform(0.1, 2, (2, 6, 2)))
    return both[0], both[1]


def table(rng):
    """Draw a long table of four sequences, its rows in any order of time."""
    return {
        "id": np.arange(40) // 10,
        "t": rng.permutation(40),
        "x": rng.normal(size=40),
        "z": rng.normal(size=40),
        "label": np.arange(40) // 10 % 2,
    }


def recording(rng):
    """Draw the frames of several sequences, one after the other."""
    return rng.normal(size=(300, 2))


def cube(rng):
    """Draw sequences of equal length as one array."""
    return rng.normal(size=(4, 9, 3))
