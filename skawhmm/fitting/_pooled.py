"""One model of all training sequences, and fits that lean on it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from skawhmm.fitting._coordinates import Coordinates, channel_scales, pooled_coordinates
from skawhmm.fitting._each import (
    alike,
    climbs_from,
    criterion_value,
    finished_fits,
    groups_of,
    joined_channels,
    make_group,
    start_models,
    still_fit,
    still_fits,
)
from skawhmm.fitting._em import Model, empty_stats, expectation, lifted, maximization
from skawhmm.fitting._em_loop import stacked
from skawhmm.fitting._starts import distinct_count
from skawhmm.numerics._paths import without_empty_states

# Frames per block of the pooled fit; fixed, so that sums do not depend on n_jobs.
POOL_BLOCK = 16384
NO_MASK = np.empty((0, 0))

# joblib looks for results a hundred times a second: on fewer frames a step takes less.
PARALLEL_FRAMES = 200_000


@dataclass(frozen=True)
class PooledModel:
    """One model of all training sequences, in raw units, and its coordinates."""

    model: Model
    coordinates: Coordinates
    n_states: int
    n_timesteps: int
    log_likelihood: float
    n_iter: int
    converged: bool


def fit_pooled(sequences, options, n_jobs=None):
    """Fit one model to all sequences together, by maximum likelihood.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, n_features)
        Training sequences, NaN where not observed.

    options : FitOptions
        How; the relevance is not used.

    n_jobs : int or None
        Jobs for the E steps.
    """
    options = replace(options, relevance=0.0)
    pool = np.concatenate(sequences).T.copy()
    coordinates = pooled_coordinates(pool, options.covariance_type)
    n_active = int(coordinates.active.sum())
    if n_active == 0:
        fit = still_fit(pool.shape[1], coordinates.centre, coordinates.missing, options)
        return PooledModel(fit.model, coordinates, 1, fit.n_timesteps, 0.0, 0, True)
    del pool
    blocks = pool_blocks(sequences, coordinates)
    counts: list[int] = [options.n_components]
    if options.criterion is not None:
        counts = list(range(1, options.n_components + 1))
    fits = [pooled_runs(blocks, coordinates, n, options, n_jobs) for n in counts]
    return min(fits, key=lambda fit: criterion_value(fit, n_active, options))


def pool_blocks(sequences, coordinates):
    """Sequences in blocks of fixed size: standardized frames, frames, mask, offsets."""
    lengths = np.array([len(x) for x in sequences])
    groups = (np.cumsum(lengths) - 1) // POOL_BLOCK
    blocks = []
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        part = np.concatenate([sequences[i] for i in members])
        z, seen = coordinates.standardized(part.T.copy())
        offsets = np.concatenate([[0], np.cumsum(lengths[members])])
        blocks.append((z, coordinates.frames(z), seen, offsets))
    return blocks


def joined(blocks):
    """One block made of several."""
    if len(blocks) == 1:
        return blocks[0]
    z, frames = (np.concatenate([block[i] for block in blocks], 1) for i in (0, 1))
    seen = NO_MASK
    if any(block[2].size for block in blocks):
        masks = [
            block[2] if block[2].size else np.ones_like(block[0]) for block in blocks
        ]
        seen = np.concatenate(masks, axis=1)
    sizes = np.concatenate([np.diff(block[3]) for block in blocks])
    return z, frames, seen, np.concatenate([[0], np.cumsum(sizes)])


def pooled_runs(blocks, coordinates, n_states, options, n_jobs):
    """Best of `n_init` fits of one number of states to all blocks."""
    best: Any = None
    for run in range(options.n_init):
        z, frames, seen, offsets = joined(blocks)
        n_used = distinct_count(z, 0, z.shape[1], n_states)
        bounds = offsets[[0, -1]]
        starts, _ = start_models(z, frames, seen, offsets, bounds, n_used, options, run)
        start = Model(*(part[0] for part in starts))
        del z, frames, seen
        result = em_over_blocks(blocks, start, options.rule(), n_jobs)
        if best is None or result[2] > best[2]:
            best = result
    model, counts, log_likelihood, n_iter, converged = best
    model = without_empty_states(model, counts)
    means, covars = coordinates.raw_emissions(model)
    excess = sum(
        coordinates.excess(frames.shape[1], seen) for _, frames, seen, _ in blocks
    )
    return PooledModel(
        model._replace(means=means, covars=covars),
        coordinates,
        n_states,
        sum(frames.shape[1] for _, frames, _, _ in blocks),
        float(log_likelihood - excess),
        n_iter,
        converged,
    )


def block_expectation(block, model):
    """E step on one block: log likelihood, statistics, expected frames per state."""
    _, frames, seen, offsets = block
    stats = empty_stats(model)
    post = np.empty((len(model.startprob), frames.shape[1]))
    value = expectation(model.covars, frames, seen, offsets, model, stats, post)
    return value, stats, post.sum(axis=1)


def em_over_blocks(blocks, model, rule, n_jobs):
    """EM whose E steps run over blocks of sequences; sums are taken in their order."""
    n_frames = sum(block[1].shape[1] for block in blocks)
    previous, n_iter = -np.inf, 0
    if n_frames < PARALLEL_FRAMES:
        n_jobs = 1
    with Parallel(n_jobs=n_jobs, prefer="threads") as parallel:
        while True:
            parts = parallel(delayed(block_expectation)(b, model) for b in blocks)
            log_likelihood = sum(part[0] for part in parts)
            counts = sum(part[2] for part in parts)
            converged = log_likelihood - previous <= rule.tol * n_frames
            if converged or n_iter == rule.max_iter:
                return model, counts, float(log_likelihood), n_iter, bool(converged)
            stats = empty_stats(model)
            for _, part, _ in parts:
                for total, term in zip(stats, part, strict=True):
                    np.add(total, term, out=total)
            model = maximization(model.covars, stats, model, model, rule)
            previous, n_iter = log_likelihood, n_iter + 1


def pooled_start_fits(sequences, options, pooled):
    """Fit every sequence by maximum likelihood, started from the pooled model."""
    pool = channels, offsets = joined_channels(sequences)
    kind = options.covariance_type
    scales = channel_scales(channels, offsets, kind)
    fits = still_fits(np.diff(offsets), scales, options)
    everything = np.ones(len(sequences), bool)
    for group in groups_of(pool, everything, [], scales, kind):
        starts = group.coordinates.local_model(pooled.model)
        starts = starts._replace(covars=floored(starts.covars, options.rule().floor))
        found = finished_fits(climbs_from(group, starts, options), group, options)
        for i, fit in zip(group.members, found, strict=True):
            fits[i] = fit
    return fits


def floored(covars, floor):
    """Covariances of starts no smaller than the floor."""
    if covars.ndim == 3:
        return np.maximum(covars, floor)
    lifts = [[lifted(covar, floor) for covar in model] for model in covars]
    return np.array(lifts)


def adapted_fits(sequences, options, pooled):
    """Fit every sequence a posteriori with the pooled model as conjugate prior."""
    coordinates, pool = pooled.coordinates, joined_channels(sequences)
    prior = stacked(coordinates.local_model(pooled.model))
    gappy = [[np.isnan(x[:, coordinates.active]).any()] for x in sequences]
    fits: list[Any] = [None] * len(sequences)
    for members in alike(np.array(gappy)):
        group = make_group(pool, members, coordinates=coordinates)
        found = finished_fits(climbs_from(group, prior, options), group, options)
        for i, fit in zip(members, found, strict=True):
            fits[i] = completed_fit(fit, sequences[i], coordinates, options)
    return fits


def completed_fit(fit, x, coordinates, options):
    """Return an adapted fit with the channels that the states say nothing of."""
    missing = np.isnan(x).all(axis=0)
    means, covars = fit.model.means, fit.model.covars
    for c in np.flatnonzero(~coordinates.active | missing):
        mean, variance = still_moments(x[:, c], coordinates, c, options.relevance)
        means[:, c] = mean
        covars[(slice(None),) + (c,) * (covars.ndim - 1)] = variance
        if covars.ndim == 3:
            others = np.arange(len(coordinates.active)) != c
            covars[:, c, others] = covars[:, others, c] = 0
    return replace(fit, observed=~missing)


def still_moments(values, coordinates, c, relevance):
    """Mean and variance of a channel on which the pooled model says nothing of states.

    It is missing in the sequence, or the training sequences have one value or none.
    """
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return 0.0, 0.0
    prior = 0.0 if coordinates.missing[c] else relevance
    total, origin = prior + len(values), coordinates.centre[c]
    gaps = values - origin
    step = gaps.sum() / total
    return origin + step, max((gaps**2).sum() / total - step**2, 0.0)
