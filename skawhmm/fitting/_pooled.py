"""The pooled model of all training sequences, as a start or prior of other fits."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from skawhmm.emissions._gaussian_em import lifted
from skawhmm.emissions._model import Data, Expected, Model
from skawhmm.fitting._coordinates import (
    OTHER_SCALE,
    Coordinates,
    channel_scales,
    is_of_other_scale,
    is_oversized,
    pooled_coordinates,
)
from skawhmm.fitting._em import (
    Fit,
    Steps,
    criterion_value,
    model_at,
    run_em,
    stacked,
)
from skawhmm.fitting._gaussian_fit import (
    equal_rows,
    finished_fits,
    gaussian_data,
    groups_of,
    independent_fits,
    make_group,
    n_parameters,
    pool_of,
    runs_from,
    start_models,
    still_fit,
    still_fits,
)
from skawhmm.fitting._starts import distinct_count
from skawhmm.models._batch import HMMBatch
from skawhmm.models._inference import log_likelihood, posteriors
from skawhmm.numerics._paths import without_empty_states
from skawhmm.sequences._forms import warn_caller
from skawhmm.sequences._trials import recordings_of
from skawhmm.utils._parallel import completed, writable

# Frames per block of the pooled fit; fixed, so that sums do not depend on n_jobs.
POOL_BLOCK = 16384
NO_MASK = np.empty((0, 0))

# joblib polls for results every hundredth of a second; a step on fewer frames takes
# less than that.
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
    counts: tuple[np.ndarray, np.ndarray]


def fit_pooled(sequences, options, n_jobs=None):
    """Fit one model to all sequences together, by maximum likelihood.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, n_features)
        Training sequences, NaN where not observed.

    options : FitOptions
        What to fit and how; the relevance is not used.

    n_jobs : int, default=None
        Number of joblib workers for the E steps.

    Returns
    -------
    pooled : PooledModel
        The model; a criterion chooses its number of states.
    """
    options = replace(options, relevance=0.0)
    recordings, _ = recordings_of(sequences)
    pool = np.concatenate(recordings).T.copy()
    coordinates = pooled_coordinates(pool, options.covariance_type)
    n_active = int(coordinates.active.sum())
    if n_active == 0:
        known = coordinates.centre, coordinates.missing
        fit = still_fit(pool.shape[1], *known, options, n_trials=len(recordings))
        done = fit.n_timesteps, 0.0, 0, True, fit.counts
        return PooledModel(fit.model, coordinates, 1, *done)
    del pool
    blocks = pool_blocks(recordings, coordinates)
    fits = [pooled_runs(blocks, coordinates, n, options, n_jobs) for n in options.sizes]

    def value(fit):
        n_free = n_parameters(fit.n_states, n_active, options)
        return criterion_value(fit, n_free, options)

    return min(fits, key=value)


@dataclass(frozen=True)
class Block:
    """Some sequences of one model: standardized frames, mask, and what EM reads."""

    points: np.ndarray
    seen: np.ndarray
    data: Data


def make_block(points, seen, offsets, coordinates):
    """Return standardized sequences, one after the other, as a block."""
    ends = [0, len(offsets) - 1]
    data = gaussian_data(coordinates.frames(points), seen, offsets, ends)
    return Block(points, seen, data)


def pooled_fit(sequences, options, n_jobs=None):
    """Fit one model to all sequences together, as a start or prior of other fits.

    The parameters are those of `fit_pooled`.

    Returns
    -------
    pooled : PooledModel
        The start or prior that `pooled_start_fits` and `adapted_fits` take.

    fit : Fit
        The same model, with the fraction of frames in each state.
    """
    sequences, _ = recordings_of(without_oversized(sequences))
    pooled = fit_pooled(sequences, options, n_jobs)
    model = pooled.model
    means, covars = (part[None] for part in model.states)
    batch = HMMBatch(
        model.transmat[None], means, covars, startprobs=model.startprob[None]
    )
    weights = np.concatenate(posteriors(batch, sequences)).mean(axis=0)
    # As in `score`: raw units may be less precise than the coordinates of the fit.
    total = float(log_likelihood(batch, sequences).sum())
    total = total if np.isfinite(total) else pooled.log_likelihood
    return pooled, Fit(
        model,
        weights,
        ~pooled.coordinates.missing,
        pooled.n_states,
        total,
        pooled.log_likelihood,
        pooled.n_iter,
        pooled.converged,
        pooled.n_timesteps,
        pooled.counts,
        len(sequences),
    )


def without_oversized(sequences, left_out_of="the pooled model"):
    """Return the sequences of similar scale; a warning names the others.

    A single sequence in larger units would take all states, and the variances of the
    other sequences would be below the smallest one allowed.
    """
    pool = pool_of(sequences)
    oversized = is_oversized(pool.channels, pool.bounds)
    if not oversized.any():
        return sequences
    warn_caller(
        f"{np.count_nonzero(oversized)} of {len(sequences)} sequences have values more "
        f"than {OTHER_SCALE:g} times as large as the others and are left out of "
        f"{left_out_of}; the first is X[{np.argmax(oversized)}]. Check their units, or "
        "standardise each sequence."
    )
    return [x for x, is_out in zip(sequences, oversized, strict=True) if not is_out]


def of_other_scale(sequences, pooled):
    """Return a mask of the sequences whose scale differs from the pooled model's."""
    pool = pool_of(sequences)
    scales = channel_scales(pool.channels, pool.bounds, "diag")
    return is_of_other_scale(pooled.coordinates, scales)


def pool_blocks(sequences, coordinates):
    """Return sequences in blocks of about `POOL_BLOCK` frames."""
    lengths = np.array([len(x) for x in sequences])
    groups = (np.cumsum(lengths) - 1) // POOL_BLOCK
    blocks = []
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        part = np.concatenate([sequences[i] for i in members])
        points, seen = coordinates.standardized(part.T.copy())
        offsets = np.concatenate([[0], np.cumsum(lengths[members])])
        blocks.append(make_block(points, seen, offsets, coordinates))
    return blocks


def concatenated(blocks, coordinates):
    """Return one block made of several."""
    if len(blocks) == 1:
        return blocks[0]
    points = np.concatenate([block.points for block in blocks], axis=1)
    seen = NO_MASK
    if any(block.seen.size for block in blocks):
        masks = [
            block.seen if block.seen.size else np.ones_like(block.points)
            for block in blocks
        ]
        seen = np.concatenate(masks, axis=1)
    sizes = np.concatenate([np.diff(block.data.offsets) for block in blocks])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return make_block(points, seen, offsets, coordinates)


def pooled_runs(blocks, coordinates, n_states, options, n_jobs):
    """Return the best of `n_init` fits with `n_states` states to all blocks."""
    best: Any = None
    steps = BlockSteps(options.template, blocks, options.rule, n_jobs=n_jobs)
    for run in range(options.n_init):
        pool = concatenated(blocks, coordinates)
        n_used = distinct_count(pool.points, 0, pool.points.shape[1], n_states)
        start, _ = start_models(pool.points, pool.data, n_used, options, run=run)
        del pool
        runs = run_em(steps, start)
        if best is None or runs.objective[0] > best.objective[0]:
            best = runs
    model = without_empty_states(best.model, best.counts)
    excess = sum(
        coordinates.excess(block.points.shape[1], block.seen) for block in blocks
    )
    return PooledModel(
        model_at(model._replace(states=coordinates.raw_states(model.states)), 0),
        coordinates,
        n_states,
        int(steps.n_frames[0]),
        float(best.log_likelihood[0] - excess),
        int(best.n_iter[0]),
        bool(best.converged[0]),
        (best.counts[0], best.moves[0]),
    )


class BlockSteps(Steps):
    """EM steps of one model whose sequences come in blocks, one task per block.

    Sums are taken in the order of the blocks, so that they do not depend on `n_jobs`.

    Parameters
    ----------
    family : Emission
        Family of the states.

    blocks : list of Block
        The sequences.

    rule : Rule
        Constraints of the M step and the stopping rule; the relevance must be 0.

    pseudo_count : float, default=0.0
        Number added to the expected starts, and to the expected transitions from each
        state, spread equally.

    n_jobs : int, default=None
        Number of joblib workers.

    verbose : int, default=0
        Whether to show a progress bar.
    """

    def __init__(
        self, family, blocks, rule, *, pseudo_count=0.0, n_jobs=None, verbose=0
    ):
        self.family = family
        self.blocks = blocks
        self.rule = rule
        self.prior = None
        self.pseudo_count = pseudo_count
        self.n_frames = np.array([sum(block.points.shape[1] for block in blocks)])
        self.n_jobs = n_jobs if self.n_frames[0] >= PARALLEL_FRAMES else 1
        self.verbose = verbose

    def expectation(self, model, active):
        """Return the log likelihood and the expected statistics of the model."""
        data = self.family, self.blocks, model, active
        n_states = model.startprob.shape[1]
        parts = list(
            completed(
                block_expectation,
                data,
                [(b,) for b in range(len(self.blocks))],
                n_jobs=self.n_jobs,
                verbose=self.verbose,
                label=f"EM step of {n_states} states",
            )
        )
        start, moves = (
            np.full(part.shape, self.pseudo_count / n_states) for part in model[:2]
        )
        statistics = tuple(np.zeros_like(part) for part in parts[0][1].statistics)
        total = Expected(start, moves, np.zeros_like(start), statistics)
        for _, found in parts:
            for one, other in zip(
                (*total[:3], *total.statistics),
                (*found[:3], *found.statistics),
                strict=True,
            ):
                np.add(one, other, out=one)
        moments = type(parts[0][1].statistics)(*statistics)
        return sum(part[0] for part in parts), total._replace(statistics=moments)


def block_expectation(shared, b):
    """Return log likelihood and expected statistics of one block."""
    family, blocks, model, active = shared
    data = Data(*writable(blocks[b].data))
    startprob, transmat, *states = writable((*model[:2], *model.states))
    model = Model(startprob, transmat, tuple(states))
    return family.expectations(data, model, active)


def pooled_fits(sequences, options, pooled):
    """Fit one model per unit, with the pooled model as its start or its prior.

    At a very different scale, all states of the pooled model look like one point or one
    flat distribution. The model of such a unit starts from its own frames, without a
    prior.
    """
    fit = adapted_fits if options.relevance > 0 else pooled_start_fits
    other = of_other_scale(sequences, pooled)
    if not other.any():
        return fit(sequences, options, pooled)
    alone = replace(
        options, n_components=pooled.n_states, criterion=None, relevance=0.0
    )
    usual, apart = np.flatnonzero(~other), np.flatnonzero(other)
    found = dict(
        zip(apart, independent_fits([sequences[i] for i in apart], alone), strict=True)
    )
    if usual.size > 0:
        fits = fit([sequences[i] for i in usual], options, pooled)
        found.update(zip(usual, fits, strict=True))
    return [found[i] for i in range(len(sequences))]


def pooled_start_fits(sequences, options, pooled):
    """Fit one model per unit by maximum likelihood, starting from the pooled model."""
    pool, kind = pool_of(sequences), options.covariance_type
    scales = channel_scales(pool.channels, pool.bounds, kind)
    fits = still_fits(pool, scales, options)
    everything = np.ones(len(sequences), bool)
    for group in groups_of(pool, everything, [], scales, kind):
        starts = group.coordinates.local_model(pooled.model)
        starts = floored(starts, options.template.floor)
        found = finished_fits(runs_from(group, starts, options), group, options)
        for i, fit in zip(group.members, found, strict=True):
            fits[i] = fit
    return fits


def floored(models, floor):
    """Return a stack of models whose variances are at least the floor in any direction.

    Flat states may fall below it through the conversion to raw units and back.
    """
    means, covars = models.states
    lift = np.maximum if covars.ndim == 3 else lifted
    return models._replace(states=(means, lift(covars, floor)))


def adapted_fits(sequences, options, pooled):
    """Fit one model per unit with the pooled model as its conjugate prior."""
    coordinates, pool = pooled.coordinates, pool_of(sequences)
    local = coordinates.local_model(pooled.model)
    frames = [pool.channels[:, i:j].T for i, j in pairwise(pool.bounds)]
    gappy = [[np.isnan(x[:, coordinates.active]).any()] for x in frames]
    fits: list[Any] = [None] * len(sequences)
    for members in equal_rows(np.array(gappy)):
        group = make_group(members, pool.chosen(members), coordinates)
        prior = floored(stacked([local] * len(members)), options.template.floor)
        found = finished_fits(runs_from(group, prior, options), group, options)
        for i, fit in zip(members, found, strict=True):
            fits[i] = completed_fit(fit, frames[i], coordinates, options)
    return fits


def completed_fit(fit, x, coordinates, options):
    """Return an adapted fit extended by the missing and the constant channels."""
    missing = np.isnan(x).all(axis=0)
    means, covars = fit.model.states
    for c in np.flatnonzero(~coordinates.active | missing):
        mean, variance = still_moments(x[:, c], coordinates, c, options.relevance)
        means[:, c] = mean
        covars[(slice(None),) + (c,) * (covars.ndim - 1)] = variance
        if covars.ndim == 3:
            others = np.arange(len(coordinates.active)) != c
            covars[:, c, others] = covars[:, others, c] = 0
    return fit._replace(observed=~missing)


def still_moments(values, coordinates, c, relevance):
    """Return the mean and variance of a channel in which all states are identical.

    The channel is missing in the sequence, or has at most one distinct value in the
    training sequences.
    """
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return 0.0, 0.0
    prior = 0.0 if coordinates.missing[c] else relevance
    total, origin = prior + len(values), coordinates.centre[c]
    gaps = values - origin
    step = gaps.sum() / total
    return origin + step, max((gaps**2).sum() / total - step**2, 0.0)
