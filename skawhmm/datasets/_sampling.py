"""Draw sequences from hidden Markov models given by their parameters."""

from __future__ import annotations

import numpy as np

from skawhmm.numerics._stationary import stationary_distribution
from skawhmm.utils._checks import LARGEST_INTEGER, is_integer, shown_value
from skawhmm.utils._seeds import item_rng


def seed_sequence(random_state):
    """Convert any form of `random_state` to a root for independent streams."""
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(2**31, size=4).tolist())
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(2**31, size=4).tolist())
    if is_integer(random_state) and random_state >= 0:
        return np.random.SeedSequence(int(random_state))
    raise ValueError(
        "random_state must be None, a non-negative int, a RandomState or a Generator, "
        f"got {shown_value(random_state)}."
    )


def length_range(n_timesteps):
    """Return the smallest and largest length from `n_timesteps`."""
    pair = isinstance(n_timesteps, (tuple, list)) and len(n_timesteps) == 2
    low, high = n_timesteps if pair else (n_timesteps, n_timesteps)
    if not is_integer(low) or not is_integer(high):
        raise TypeError(
            "n_timesteps must be an int or a pair of ints (low, high), got "
            f"{shown_value(n_timesteps)}."
        )
    if not 1 <= low <= high <= LARGEST_INTEGER:
        raise ValueError(
            "n_timesteps must satisfy 1 <= low <= high, got "
            f"{shown_value(n_timesteps)}."
        )
    return int(low), int(high)


def root_matrices(covars, n_features):
    """Square roots of diagonal or full covariances, as full matrices."""
    if covars.ndim == 3:
        return np.sqrt(covars)[..., None] * np.eye(n_features)
    values, vectors = np.linalg.eigh(covars)
    return vectors * np.sqrt(np.clip(values, 0, None))[..., None, :]


def sampled_states(uniforms, startprobs, transmats):
    """Return state paths of many chains, given one uniform number per step.

    Parameters
    ----------
    uniforms : ndarray of shape (n_sequences, n_timesteps)
        Numbers in [0, 1).

    startprobs : ndarray of shape (n_sequences, n_components)
        Distribution of the first state.

    transmats : ndarray of shape (n_sequences, n_components, n_components)
        Transition matrix of each sequence.

    Returns
    -------
    states : ndarray of shape (n_sequences, n_timesteps)
        The paths.
    """
    n_sequences, n_timesteps = uniforms.shape
    # Without the last bound, which rounding may place below a uniform number.
    bounds = np.cumsum(transmats, axis=-1)[..., :-1]
    first = np.cumsum(startprobs, axis=-1)[:, :-1]
    states = np.empty((n_sequences, n_timesteps), dtype=np.intp)
    states[:, 0] = np.sum(uniforms[:, :1] >= first, axis=-1)
    rows = np.arange(n_sequences)
    for t in range(1, n_timesteps):
        limits = bounds[rows, states[:, t - 1]]
        states[:, t] = np.sum(uniforms[:, t, None] >= limits, axis=-1)
    return states


def sampled_sequences(models, labels, lengths, root):
    """Sequences drawn from the models, each from its own random stream.

    Parameters
    ----------
    models : mapping
        Arrays `transmats`, `means` and `covars`, with one row per model.

    labels : ndarray of shape (n_sequences,)
        The model each sequence is drawn from.

    lengths : (int, int)
        Smallest and largest length.

    root : SeedSequence
        Root of the streams; the i-th sequence depends only on it and on `i`.

    Returns
    -------
    X : list of ndarray of shape (n_timesteps, n_features)
        The sequences.
    """
    transmats, means = models["transmats"], models["means"]
    roots = root_matrices(models["covars"], means.shape[-1])
    # With several closed classes, a uniform start decides how often each is entered.
    uniform = np.full(transmats.shape[:-1], 1 / transmats.shape[-1])
    startprobs = stationary_distribution(transmats, uniform)
    uniforms = np.zeros((len(labels), lengths[1]))
    noises = []
    for i in range(len(labels)):
        rng = item_rng(root, i)
        length = int(rng.integers(lengths[0], lengths[1], endpoint=True))
        uniforms[i, :length] = rng.random(length)
        noises.append(rng.standard_normal((length, means.shape[-1])))
    paths = sampled_states(uniforms, startprobs[labels], transmats[labels])
    X = []
    for label, path, noise in zip(labels, paths, noises, strict=True):
        states = path[: len(noise)]
        spread = np.einsum("tij,tj->ti", roots[label][states], noise)
        X.append(means[label][states] + spread)
    return X
