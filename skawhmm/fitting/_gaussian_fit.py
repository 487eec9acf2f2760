"""One model with Gaussian states per unit: start values, EM, number of states.

A unit has one or more sequences. Each unit is fitted in its own coordinates; its model
depends only on its frames and the options. Units whose arrays have the same shapes go
through the kernels together, as a group.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from skawhmm.emissions._gaussian_em import Moments
from skawhmm.emissions._gaussian_em_kernels import fill_given
from skawhmm.emissions._model import Data, Expected, Model
from skawhmm.fitting._coordinates import (
    Coordinates,
    channel_scales,
    make_coordinates,
)
from skawhmm.fitting._em import (
    EMRuns,
    Fit,
    allowed_moves,
    best_start,
    better,
    chain_size,
    criterion_value,
    cut_off,
    em_runs,
    model_at,
    repeated,
    stacked,
)
from skawhmm.fitting._em_kernels import update_chains
from skawhmm.fitting._starts import (
    content_seeds,
    distinct_counts,
    kmeans_starts,
    segment_starts,
    split_starts,
)
from skawhmm.sequences._trials import recordings_of

# Starts compared before a fit: as many as give this many frames, within these bounds.
CANDIDATE_FRAMES = 600
CANDIDATES = (2, 6)

# EM steps after which starts are compared.
SCREENING_STEPS = 1


class Pool(NamedTuple):
    """Frames of several units, channel by channel.

    Attributes
    ----------
    channels : ndarray of shape (n_features, n_frames)
        The frames of all sequences, one after the other.

    offsets, firsts : ndarray of int
        Bounds of the sequences, and the indices of those that are bounds of units.
    """

    channels: np.ndarray
    offsets: np.ndarray
    firsts: np.ndarray

    @property
    def bounds(self):
        """Where the frames of each unit begin and end."""
        return self.offsets[self.firsts]

    def chosen(self, members):
        """Return the pool of some units."""
        if len(members) == len(self.firsts) - 1:
            return self
        bounds, lengths = self.bounds, np.diff(self.offsets)
        parts = [self.channels[:, bounds[i] : bounds[i + 1]] for i in members]
        sizes = [lengths[self.firsts[i] : self.firsts[i + 1]] for i in members]
        offsets = np.cumsum(np.concatenate([[0], *sizes]))
        firsts = np.cumsum([0, *map(len, sizes)])
        return Pool(np.concatenate(parts, axis=1), offsets, firsts)


@dataclass(frozen=True)
class Group:
    """Units that go through the kernels together.

    Attributes
    ----------
    members : ndarray of shape (n_units,)
        Indices of the units in the pool.

    coordinates : Coordinates
        Coordinates of each unit, or one set for all.

    points, seen : ndarray of shape (n_active, n_frames)
        Standardized frames of the units, one after the other, and the mask of observed
        values (empty if all are).

    data : Data
        The frames in the coordinates of the fit, in the form that EM reads.
    """

    members: np.ndarray
    coordinates: Coordinates
    points: np.ndarray
    seen: np.ndarray
    data: Data


def gaussian_data(frames, seen, offsets, firsts=None):
    """Return frames in the form that Gaussian EM reads."""
    firsts = np.arange(len(offsets)) if firsts is None else np.asarray(firsts)
    bounds = offsets[firsts]

    def flat(rows):
        if rows.size == 0:
            return np.empty(0)
        return np.concatenate([rows[:, i:j].ravel() for i, j in pairwise(bounds)])

    return Data(flat(frames), flat(seen), np.asarray(offsets), firsts)


def pool_of(sequences):
    """Return the pool of a list of sequences or `Trials`."""
    recordings, firsts = recordings_of(sequences)
    channels = np.ascontiguousarray(np.concatenate([*recordings]).T)
    return Pool(channels, np.cumsum([0, *map(len, recordings)]), firsts)


def equal_rows(keys):
    """Return the indices of equal rows, one array per distinct row."""
    if len(keys) == 0:
        return []
    if (keys == keys[0]).all():
        return [np.arange(len(keys))]
    _, kinds = np.unique(keys, axis=0, return_inverse=True)
    return [np.flatnonzero(kinds == kind) for kind in range(kinds.max() + 1)]


def make_group(members, pool, coordinates):
    """Return the group of all units of a pool in given coordinates."""
    z, seen = coordinates.standardized(pool.channels, pool.bounds)
    frames = coordinates.frames(z, pool.bounds)
    data = gaussian_data(frames, seen, pool.offsets, pool.firsts)
    return Group(members, coordinates, z, seen, data)


def groups_of(pool, chosen, columns, scales, covariance_type):
    """Yield groups of units whose arrays have the same shapes."""
    active, _, gappy, *_ = scales
    chosen = np.flatnonzero(chosen & active.any(axis=1))
    keys = np.column_stack([active, gappy.any(axis=1), *columns])
    for rows in equal_rows(keys[chosen]):
        members = chosen[rows]
        part = pool.chosen(members)
        own = tuple(scale[members] for scale in scales)
        place = part.channels, part.bounds
        coordinates = make_coordinates(*place, own, covariance_type)
        yield make_group(members, part, coordinates)


@lru_cache(maxsize=256)
def blank_model(n_features, n_states, topology, n_mix, full):
    """Return a stack of one model with equal probabilities, and its allowed moves.

    States have the moments of standard coordinates. The arrays are shared between calls
    and must not be changed.
    """
    start, allowed = allowed_moves(topology, n_states)
    start, allowed = np.repeat(start, n_mix), np.kron(allowed, np.ones((n_mix, n_mix)))
    covar = np.eye(n_features) if full else np.ones(n_features)
    model = Model(
        (start / start.sum())[None],
        (allowed / allowed.sum(axis=1, keepdims=True))[None],
        (
            np.zeros((1, len(start), n_features)),
            np.repeat(covar[None], len(start), axis=0)[None],
        ),
    )
    return model, allowed


def n_starts(n_components, n_frames):
    """Return how many starts to compare: more for short, cheap sequences."""
    most = np.clip(CANDIDATE_FRAMES // n_frames, *CANDIDATES)
    return np.where(n_components == 1, 1, most)


def start_labels(points, offsets, bounds, n_states, n_candidates, options, run=0):
    """Return the state of each frame in several starts, and the seeds of the models."""
    seeds = content_seeds(points, bounds, options.seed + 1000003 * run)
    labels = np.empty((n_candidates, points.shape[1]), np.intp)
    states = seeds.copy()
    if options.topology == "ergodic":
        kmeans_starts(points, bounds, n_states, states, labels)
    else:
        segment_starts(points, offsets, bounds, n_states, states, labels)
    if options.n_mix > 1:
        split_starts(points, bounds, options.n_mix, states, labels)
    return labels, seeds


def given_start(data, labels, n_features, n_states, options):
    """Return start values from the states of the frames.

    Parameters
    ----------
    data : Data
        The frames.

    labels : ndarray of shape (n_frames,)
        State of every frame.

    n_features, n_states : int
        Number of channels, and of states.

    options : FitOptions
        Topology, covariances.

    Returns
    -------
    model : Model
        A stack of start values, one per model.
    """
    full = options.covariance_type in {"full", "tied"}
    shape = (n_features, n_states, options.topology, options.n_mix, full)
    origin, allowed = blank_model(*shape)
    n_models = len(data.firsts) - 1
    model = repeated(origin, n_models)
    start, moves = np.zeros_like(model.startprob), np.zeros_like(model.transmat)
    means, covars = model.states
    moments = Moments(np.zeros_like(means), np.zeros_like(means), np.zeros_like(covars))
    fill_given(
        data.frames,
        data.seen,
        data.offsets,
        data.firsts,
        labels,
        origin.states,
        (origin.startprob[0], allowed),
        (start, moves),
        moments,
    )
    # An M step, without a prior.
    every, chains = np.arange(n_models), model[:2]
    update_chains((start, moves), every, chains, chains, options.n_mix, 0.0, every)
    expected = Expected(start, moves, start, moments)
    options.template.updates(expected, every, model, model, 0.0, every)
    return model


def start_models(points, data, n_states, options, *, n_candidates=None, run=0):
    """Return start values of models, and the seeds they were drawn with.

    Parameters
    ----------
    points : ndarray of shape (n_features, n_frames)
        Standardized frames, between which k-means takes distances.

    data : Data
        The frames in the coordinates of the fit.

    n_states : int
        Number of states.

    options : FitOptions
        Topology, covariances, seed.

    n_candidates : int, default=None
        Number of starts to compare; by default determined by the model with the fewest
        frames.

    run : int, default=0
        Index of the restart.

    Returns
    -------
    model : Model
        A stack of start values, one per model.

    seeds : ndarray of shape (n_models,)
        Seeds of the draws.
    """
    bounds = data.bounds
    if n_candidates is None:
        n_frames = int(np.diff(bounds).min())
        n_candidates = int(n_starts(n_states * options.n_mix, n_frames))
    labels, seeds = start_labels(
        points, data.offsets, bounds, n_states, n_candidates, options, run
    )
    starts = [given_start(data, row, len(points), n_states, options) for row in labels]
    rule = options.rule._replace(relevance=0.0, max_iter=SCREENING_STEPS, tol=-np.inf)
    return best_start(options.template, data, rule, starts), seeds


def independent_fits(sequences, options):
    """Fit one model per unit by maximum likelihood, from its own start values.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, n_features), or Trials
        Checked sequences, one entry per unit.

    options : FitOptions
        What to fit and how.

    Returns
    -------
    fits : list of Fit
        In the order of the sequences.
    """
    pool, kind = pool_of(sequences), options.covariance_type
    scales = channel_scales(pool.channels, pool.bounds, kind)
    active, lengths = scales[0], np.diff(pool.bounds)
    most = distinct_counts(pool.channels, pool.bounds, options.n_components)
    fits = still_fits(pool, scales, options)
    best = np.full(len(sequences), np.inf)
    sizes = options.sizes
    for size in sizes:
        n_states = np.minimum(most, size)
        n_candidates = n_starts(n_states * options.n_mix, lengths)
        chosen = (n_states == size) | (len(sizes) == 1)
        for group in groups_of(pool, chosen, [n_states, n_candidates], scales, kind):
            first = group.members[0]
            found = group_fits(group, n_states[first], n_candidates[first], options)
            for i, fit in zip(group.members, found, strict=True):
                value = 0.0
                if options.criterion is not None:
                    n_free = n_parameters(fit.n_states, int(active[i].sum()), options)
                    value = criterion_value(fit, n_free, options)
                if value < best[i]:
                    fits[i], best[i] = fit, value
    return fits


def group_fits(group, n_states, n_candidates, options):
    """Fit the units of a group with `n_states` states; keep the best restart."""
    best: Any = None
    for run in range(options.n_init):
        starts, seeds = start_models(
            group.points,
            group.data,
            n_states,
            options,
            n_candidates=n_candidates,
            run=run,
        )
        runs = runs_from(group, starts, options, seeds)
        best = runs if best is None else better(best, runs)
    return finished_fits(best, group, options)


def runs_from(group, starts, options, seeds=None):
    """Run EM from given starts, one per unit of a group.

    Parameters
    ----------
    group : Group
        The units.

    starts : Model
        A stack of start values, which are also the prior.

    options : FitOptions
        Stopping rule, prior and engine.

    seeds : ndarray of shape (n_units,), default=None
        Seeds of an engine that draws its own start values.

    Returns
    -------
    runs : EMRuns
        One row per unit.
    """
    if options.engine is None:
        return em_runs(options.template, group.data, options.rule, starts)
    seeds = np.zeros(len(group.members), int) if seeds is None else seeds
    runs, data, n_features = [], group.data, len(group.points)
    for i, (first, last) in enumerate(pairwise(data.firsts)):
        offsets = data.offsets[first : last + 1]
        flat = data.frames[offsets[0] * n_features : offsets[-1] * n_features]
        own = Data(flat, np.empty(0), offsets - offsets[0], np.array([0, last - first]))
        runs.append(
            options.engine(own, n_features, model_at(starts, i), options, int(seeds[i]))
        )
    rest = [np.stack(parts) for parts in zip(*(c[1:] for c in runs), strict=True)]
    return EMRuns(stacked([c.model for c in runs]), *rest)


def finished_fits(runs, group, options):
    """Return finished EM runs as fits in raw units."""
    coordinates = group.coordinates
    if options.relevance == 0:
        runs = cut_off(runs, group.data, options.template)
    model = runs.model
    means, covars = coordinates.raw_states(model.states)
    entered = model.startprob + model.transmat.sum(axis=1) > 0
    weights = np.where(entered, runs.counts, 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    bounds = group.data.bounds
    lengths, n_trials = np.diff(bounds), np.diff(group.data.firsts)
    excess = coordinates.excess(lengths, group.seen, bounds)
    observed = np.broadcast_to(~coordinates.missing, (len(lengths), means.shape[-1]))
    return [
        Fit(
            Model(model.startprob[i], model.transmat[i], (means[i], covars[i])),
            weights[i],
            observed[i],
            weights.shape[1] // options.n_mix,
            float(runs.log_likelihood[i] - excess[i]),
            float(runs.objective[i] - excess[i]),
            int(runs.n_iter[i]),
            bool(runs.converged[i]),
            int(lengths[i]),
            (runs.counts[i], runs.moves[i]),
            int(n_trials[i]),
        )
        for i in range(len(lengths))
    ]


def still_fit(n_timesteps, centre, missing, options, n_trials=1):
    """Return the fit of a unit in which no channel varies: a single state."""
    covars = np.zeros((1, len(centre)))
    if options.covariance_type in {"full", "tied"}:
        covars = np.zeros((1, len(centre), len(centre)))
    model = Model(np.ones(1), np.ones((1, 1)), (centre[None], covars))
    n_steps = n_timesteps - n_trials
    counts = np.array([1.0 * n_timesteps]), np.array([[1.0 * n_steps]])
    done = 0.0, 0.0, 0, True, int(n_timesteps)
    return Fit(model, np.ones(1), ~missing, 1, *done, counts, int(n_trials))


def still_fits(pool, scales, options):
    """Return fits of the units in which no channel varies, None for the others."""
    active, missing, _, centre, _ = scales
    lengths, n_trials = np.diff(pool.bounds), np.diff(pool.firsts)
    fits: list[Any] = [None] * len(lengths)
    for i in np.flatnonzero(~active.any(axis=1)):
        known = lengths[i], centre[i], missing[i]
        fits[i] = still_fit(*known, options, n_trials[i])
    return fits


def n_parameters(n_states, n_features, options):
    """Return the number of free parameters of a model with Gaussian states."""
    chain = chain_size(options.topology, n_states)
    n_components = n_states * options.n_mix
    covars = {
        "diag": n_components * n_features,
        "spherical": n_components,
        "full": n_components * n_features * (n_features + 1) / 2,
        "tied": n_features * (n_features + 1) / 2,
    }[options.covariance_type]
    return chain + n_components - n_states + n_components * n_features + covars
