r"""Registration of states by coupling samples of the two marginal mixtures.

The samples of two models are coupled at the least cost. Matched points x and y then say
how much their states have in common: :math:`W = E[\pi_a(x) \pi_b(y)^\top]`, where
:math:`\pi_a(x)` are the posterior probabilities of the states of a.
"""

from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from skawhmm.distances._sampled_registration_kernels import fill_posteriors
from skawhmm.emissions._gaussian_scores import make_densities
from skawhmm.numerics._assignment import neighbouring_order
from skawhmm.utils._interruption import waited_for

# Uniform points are kept this far from 0 and 1, where normal quantiles are infinite.
LEAST_UNIFORM = 1e-16


def stratified_draws(weights, n_samples, n_features, seed, keys):
    """Quasi-random draws from each model, with exact proportions of the states.

    All models share one scrambled Sobol net; each state shifts it by its own offset,
    made from `seed` and the content of its model.

    Parameters
    ----------
    weights : ndarray of shape (n_models, n_components)
        State probabilities.

    n_samples, n_features : int
        Size of a sample.

    seed : int
        Seed of the draws.

    keys : ndarray of uint64 of shape (n_models,)
        Hash of the content of each model.

    Returns
    -------
    states : ndarray of int of shape (n_models, n_samples)
        The state of each draw.

    normals : ndarray of shape (n_models, n_samples, n_features)
        Standard normal draws.
    """
    net = _scrambled_net(n_samples, n_features, seed)
    counts = stratified_counts(weights, n_samples)
    n_models, n_components = weights.shape
    ends = np.cumsum(counts, axis=1)
    order = np.arange(n_samples)
    states = (order >= ends[:, :, None]).sum(axis=1)
    place = order - np.take_along_axis(ends - counts, states, axis=1)
    normals = np.empty((n_models, n_samples, n_features))
    for n, key in enumerate(keys):
        shifts = philox_rng(seed, key).random((n_components, n_features))
        uniforms = (net[place[n]] + shifts[states[n]]) % 1.0
        normals[n] = ndtri(np.clip(uniforms, LEAST_UNIFORM, 1 - LEAST_UNIFORM))
    return states, normals


@lru_cache(maxsize=1)
def _scrambled_net(n_samples, n_features, seed):
    """Return a Sobol net of at least `n_samples` points; the last one is kept.

    In the main thread, the first one of a process would swallow Ctrl-C and then be
    wrong: SciPy ignores all exceptions while it reads its table.
    """

    def points():
        net = qmc.Sobol(n_features, scramble=True, rng=seed)
        return net.random_base2(int(np.ceil(np.log2(n_samples))))

    net = waited_for(points)
    net.flags.writeable = False
    return net


def independent_draws(weights, n_samples, n_features, seed, keys):
    """Independent draws from each model; see `stratified_draws`."""
    n_models = len(weights)
    states = np.empty((n_models, n_samples), np.int64)
    normals = np.empty((n_models, n_samples, n_features))
    for n, key in enumerate(keys):
        rng = philox_rng(seed, key)
        levels = np.cumsum(weights[n])
        states[n] = np.searchsorted(levels, rng.random(n_samples) * levels[-1], "right")
        normals[n] = rng.standard_normal((n_samples, n_features))
    return states, normals


def philox_rng(seed, key):
    """Return the random generator of one item, which does not depend on the others."""
    words = np.array([seed % 2**64, int(key)], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=words))


def stratified_counts(weights, n_samples):
    """Integers in proportion to the weights that sum to `n_samples`."""
    expected = weights * n_samples
    counts = np.floor(expected).astype(np.int64)
    short = n_samples - counts.sum(axis=1)
    # A stable sort gives equal remainders to the earlier state.
    ranks = np.argsort(np.argsort(counts - expected, axis=1, kind="stable"), axis=1)
    return counts + (ranks < short[:, None])


def quantile_samples(models, states, normals):
    """Return samples of states of any family, given normal numbers.

    Parameters
    ----------
    models : HMMBatch
        The models.

    states : ndarray of int of shape (n_models, n_samples)
        The state of each draw.

    normals : ndarray of shape (n_models, n_samples, n_features)
        Standard normal draws.

    Returns
    -------
    frames : ndarray of shape (n_models, n_samples, n_features)
        The samples.

    posteriors : ndarray of shape (n_models, n_samples, n_components)
        Posterior state probabilities of each point under its own model.
    """
    levels = np.clip(ndtr(normals), LEAST_UNIFORM, 1 - LEAST_UNIFORM)
    frames = np.empty(normals.shape)
    posteriors = np.zeros((*states.shape, models.weights.shape[1]))
    for n, size in enumerate(models.n_components):
        frames[n] = models.emission.frames_at(n, states[n], levels[n])
        weights, chain = models.weights[n, :size], models.transmats[n, :size, :size]
        with np.errstate(divide="ignore"):
            start = np.log(weights)
        logs = models.emission.densities(n, frames[n], weights, chain.copy())
        logs = logs.T + start
        tops = logs.max(axis=1, keepdims=True)
        lost = ~np.isfinite(tops[:, 0])
        shares = np.exp(logs - np.where(lost[:, None], 0.0, tops))
        # Rounding may make a frame impossible in the state that it was drawn from.
        shares[lost] = np.eye(size)[states[n][lost]]
        posteriors[n, :, :size] = shares / shares.sum(axis=1, keepdims=True)
    return frames, posteriors


def metric_parts(emission, frames):
    """Return frames as points, and the other inputs of their distances.

    Parameters
    ----------
    emission : Emission
        Family of the states.

    frames : ndarray of shape (n_models, n_samples, n_features)
        The frames.

    Returns
    -------
    points : ndarray of shape (n_models, n_samples, n_dimensions)
        Coordinates of the frames, at least one.

    parts : tuple of ndarray
        Angles, factors, codes and tables, as `sampled_registrations` takes them.
    """
    found = emission.frame_parts(frames)
    points = found.points
    if points.shape[-1] == 0:
        points = np.zeros((*points.shape[:-1], 1))
    size = max((len(table) for table in found.tables), default=1)
    tables = np.zeros((len(found.tables), size, size))
    for n, table in enumerate(found.tables):
        tables[n, : len(table), : len(table)] = table
    rest = found.angles, found.factors, found.codes, tables
    return np.ascontiguousarray(points), tuple(map(np.ascontiguousarray, rest))


def ordered_samples(points, parts, posteriors):
    """Return samples sorted so that nearby points are neighbours in memory.

    Their assignment does not change but is found sooner. The parameters are described
    in `sampled_registrations`.
    """
    angles, factors, codes, tables = parts
    place = neighbouring_order(np.concatenate([points, angles, codes], axis=2))[
        ..., None
    ]

    def ordered(x):
        return np.take_along_axis(x, place, axis=1)

    parts = ordered(angles), factors, ordered(codes), tables
    return ordered(points), parts, ordered(posteriors)


def mixture_posteriors(models, points, states):
    """Posterior state probabilities of the points under their own models."""
    posteriors = np.zeros((*points.shape[:2], models.weights.shape[1]))
    fill_posteriors(
        points,
        states,
        make_densities(models.emission),
        np.ascontiguousarray(models.weights),
        np.asarray(models.n_components),
        posteriors,
    )
    return posteriors
