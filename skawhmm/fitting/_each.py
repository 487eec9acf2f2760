"""Fitting one model a sequence: its own start values, EM, the number of states.

Sequences that are alike in what decides the shapes of arrays go through the kernels
together. A sequence is fitted in its own coordinates; what it gets depends on its
frames and the options, and on nothing else.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from skawhmm.fitting._coordinates import Coordinates, channel_scales, make_coordinates
from skawhmm.fitting._em import LEAST_FLOOR, Model, Rule
from skawhmm.fitting._em_loop import Climbs, climb
from skawhmm.fitting._starts import (
    content_seeds,
    distinct_counts,
    kmeans_starts,
    segment_starts,
    split_starts,
)
from skawhmm.numerics._paths import without_empty_states

# Starts compared before a fit: this many frames' worth, within these bounds.
CANDIDATE_FRAMES = 600
CANDIDATES = (2, 6)


@dataclass(frozen=True)
class FitOptions:
    """What to fit and how; the words are those of `HMMTransformer`.

    Attributes
    ----------
    relevance : float
        Weight of the pooled model as a prior, 0 for maximum likelihood.

    criterion : {None, "aic", "bic"}
        If not None, `n_components` is the largest number of states tried.

    engine : callable or None
        Climbs from the start of one sequence, in place of our own kernel.
    """

    n_components: int = 3
    covariance_type: str = "diag"
    topology: str = "ergodic"
    n_mix: int = 1
    n_init: int = 1
    max_iter: int = 100
    tol: float = 1e-5
    reg_covar: float = 1e-4
    relevance: float = 0.0
    criterion: str | None = None
    seed: int = 0
    engine: Any = None

    def rule(self):
        """Return the constraints and stopping rule of the M step."""
        return Rule(
            self.covariance_type in {"spherical", "tied"},
            self.n_mix,
            max(float(self.reg_covar), LEAST_FLOOR),
            float(self.relevance),
            int(self.max_iter),
            float(self.tol),
        )


@dataclass(frozen=True)
class Fit:
    """A fitted model in raw units, and how the fit went."""

    model: Model
    weights: np.ndarray
    observed: np.ndarray
    n_states: int
    log_likelihood: float
    objective: float
    n_iter: int
    converged: bool
    n_timesteps: int


@dataclass(frozen=True)
class Group:
    """Sequences that go through the kernels together.

    Attributes
    ----------
    members : ndarray of shape (n_sequences,)
        Their numbers.

    coordinates : Coordinates
        Theirs, or one for all.

    points, frames, seen : ndarray of shape (n_active, n_frames)
        The sequences one after the other: standardized, in the coordinates of the fit,
        and the mask (empty if all is observed).

    offsets : ndarray of shape (n_sequences + 1,)
        Where they begin and end.
    """

    members: np.ndarray
    coordinates: Coordinates
    points: np.ndarray
    frames: np.ndarray
    seen: np.ndarray
    offsets: np.ndarray


def joined_channels(sequences):
    """Sequences as one array (n_features, n_frames), and where they begin and end."""
    channels = np.ascontiguousarray(np.concatenate(sequences).T)
    return channels, np.cumsum([0, *(len(x) for x in sequences)])


def alike(keys):
    """Return the numbers of equal rows, an array for each kind of row."""
    if len(keys) == 0:
        return []
    if (keys == keys[0]).all():
        return [np.arange(len(keys))]
    _, kinds = np.unique(keys, axis=0, return_inverse=True)
    return [np.flatnonzero(kinds == kind) for kind in range(kinds.max() + 1)]


def make_group(pool, members, coordinates=None, scales=None, covariance_type=None):
    """Group of some sequences of a pool, in given coordinates or their own.

    Parameters
    ----------
    pool : tuple of ndarray
        What `joined_channels` returned.

    members : ndarray of shape (n_sequences,)
        Which of its sequences.

    coordinates : Coordinates or None
        Coordinates for all; or else ...

    scales, covariance_type :
        ... what `channel_scales` returned for the pool, and for which covariances.
    """
    channels, offsets = pool
    if len(members) < len(offsets) - 1:
        parts = [channels[:, offsets[i] : offsets[i + 1]] for i in members]
        offsets = np.cumsum([0, *(part.shape[1] for part in parts)])
        channels = np.concatenate(parts, axis=1)
    if coordinates is None:
        scales = tuple(part[members] for part in scales)
        coordinates = make_coordinates(channels, offsets, scales, covariance_type)
    z, seen = coordinates.standardized(channels, offsets)
    frames = coordinates.frames(z, offsets)
    return Group(members, coordinates, z, frames, seen, offsets)


def groups_of(pool, chosen, columns, scales, covariance_type):
    """Yield groups of sequences that are alike.

    Parameters
    ----------
    pool, scales, covariance_type :
        As in `make_group`.

    chosen : ndarray of bool of shape (n_sequences,)
        Which sequences to take; those of which no channel moves are left out.

    columns : list of ndarray of shape (n_sequences,)
        What members of a group have in common beside channels that vary and gaps.
    """
    active, _, gappy, *_ = scales
    chosen = np.flatnonzero(chosen & active.any(axis=1))
    keys = np.column_stack([active, gappy.any(axis=1), *columns])
    for rows in alike(keys[chosen]):
        yield make_group(
            pool, chosen[rows], scales=scales, covariance_type=covariance_type
        )


def allowed_moves(topology, n_states):
    """Masks of allowed starts and allowed transitions, as floats."""
    if topology == "ergodic":
        return np.ones(n_states), np.ones((n_states, n_states))
    moves = np.eye(n_states) + np.eye(n_states, k=1)
    if topology == "left-to-right":
        moves = np.triu(np.ones((n_states, n_states)))
    return np.eye(n_states)[0], moves


@lru_cache(maxsize=256)
def blank_model(n_features, n_states, topology, n_mix, full):
    """Model with uniform chain and the moments of standard coordinates; its mask.

    It is a stack of one. The arrays are shared between calls and must not be written.
    """
    start, allowed = allowed_moves(topology, n_states)
    start, allowed = np.repeat(start, n_mix), np.kron(allowed, np.ones((n_mix, n_mix)))
    covar = np.eye(n_features) if full else np.ones(n_features)
    model = Model(
        (start / start.sum())[None],
        (allowed / allowed.sum(axis=1, keepdims=True))[None],
        np.zeros((1, len(start), n_features)),
        np.repeat(covar[None], len(start), axis=0)[None],
    )
    return model, allowed


def n_starts(n_components, n_frames):
    """Return how many starts to compare: more where they cost less."""
    most = np.clip(CANDIDATE_FRAMES // n_frames, *CANDIDATES)
    return np.where(n_components == 1, 1, most)


def start_labels(points, offsets, bounds, n_states, n_candidates, options, run=0):
    """States of the frames in the starts to be compared, and the seeds of the models.

    Parameters
    ----------
    points : ndarray of shape (n_features, n_frames)
        Standardized frames.

    offsets, bounds : ndarray
        Where sequences, and where the frames of a model, begin and end.

    n_states, n_candidates : int
        Number of states, and of starts for each model.

    options : FitOptions
        How.

    run : int
        Number of the restart.

    Returns
    -------
    labels : ndarray of int of shape (n_candidates, n_frames)
        State (and mixture component) of every frame.

    seeds : ndarray of shape (n_models,)
        What they were drawn with.
    """
    seeds = content_seeds(points, bounds, options.seed + 1000003 * run)
    labels = np.empty((n_candidates, points.shape[1]), np.int64)
    states = seeds.copy()
    if options.topology == "ergodic":
        kmeans_starts(points, bounds, n_states, states, labels)
    else:
        segment_starts(points, offsets, bounds, n_states, states, labels)
    if options.n_mix > 1:
        split_starts(points, bounds, options.n_mix, states, labels)
    return labels, seeds[:, 0]


def started(frames, seen, offsets, bounds, labels, n_states, options, rule):
    """Climb, by the rule, from the best of the starts that the labels give."""
    full = options.covariance_type in {"full", "tied"}
    shape = (len(frames), n_states, options.topology, options.n_mix, full)
    origin, allowed = blank_model(*shape)
    return climb(frames, seen, offsets, bounds, labels, allowed, origin, origin, rule)


def start_models(points, frames, seen, offsets, bounds, n_states, options, run=0):
    """Start values of models, and the seeds they were drawn with.

    Parameters
    ----------
    points, frames, seen : ndarray of shape (n_features, n_frames)
        Frames in the coordinates of the start and of the fit, and the mask.

    offsets, bounds, n_states, options, run :
        As in `start_labels`.
    """
    n_frames = int(np.diff(bounds).min())
    n_candidates = int(n_starts(n_states * options.n_mix, n_frames))
    labels, seeds = start_labels(
        points, offsets, bounds, n_states, n_candidates, options, run
    )
    rule = options.rule()._replace(max_iter=-1)
    climbs = started(frames, seen, offsets, bounds, labels, n_states, options, rule)
    return climbs.model, seeds


def independent_fits(sequences, options):
    """Fit every sequence by maximum likelihood from its own start values.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, n_features)
        Checked sequences.

    options : FitOptions
        How.

    Returns
    -------
    fits : list of Fit
        In the order of the sequences.
    """
    pool = channels, offsets = joined_channels(sequences)
    kind = options.covariance_type
    scales = channel_scales(channels, offsets, kind)
    active, lengths = scales[0], np.diff(offsets)
    most = distinct_counts(channels, offsets, options.n_components)
    fits = still_fits(lengths, scales, options)
    best = np.full(len(sequences), np.inf)
    sizes = [options.n_components]
    if options.criterion is not None:
        sizes = list(range(1, options.n_components + 1))
    for size in sizes:
        n_states = np.minimum(most, size)
        n_candidates = n_starts(n_states * options.n_mix, lengths)
        chosen = (n_states == size) | (len(sizes) == 1)
        for group in groups_of(pool, chosen, [n_states, n_candidates], scales, kind):
            first = group.members[0]
            found = group_fits(group, n_states[first], n_candidates[first], options)
            for i, fit in zip(group.members, found, strict=True):
                value = criterion_value(fit, active[i].sum(), options)
                if value < best[i]:
                    fits[i], best[i] = fit, value
    return fits


def group_fits(group, n_states, n_candidates, options):
    """Fit the sequences of a group with one number of states: the best restart."""
    bounds = group.offsets
    best: Any = None
    for run in range(options.n_init):
        labels, seeds = start_labels(
            group.points, group.offsets, bounds, n_states, n_candidates, options, run
        )
        rule = options.rule()
        if options.engine is not None:
            rule = rule._replace(max_iter=-1)
        climbs = started(
            group.frames, group.seen, bounds, bounds, labels, n_states, options, rule
        )
        if options.engine is not None:
            climbs = engine_climbs(group, climbs.model, seeds, options)
        best = climbs if best is None else better(best, climbs)
    return finished_fits(best, group, options)


def climbs_from(group, starts, options):
    """Climb from given starts, one for each sequence of a group or one for all.

    They are the prior, too, where the relevance is not 0.
    """
    if options.engine is not None:
        return engine_climbs(group, starts, np.zeros(len(group.members), int), options)
    none = np.empty((0, group.frames.shape[1]), np.int64)
    allowed, rule = starts.transmat[0], options.rule()
    bounds = group.offsets
    return climb(
        group.frames, group.seen, bounds, bounds, none, allowed, starts, starts, rule
    )


def engine_climbs(group, starts, seeds, options):
    """Let another engine climb, sequence by sequence."""
    climbs = []
    for i, (first, last) in enumerate(
        zip(group.offsets[:-1], group.offsets[1:], strict=True)
    ):
        frames = np.ascontiguousarray(group.frames[:, first:last])
        start = Model(*(part[i] for part in starts))
        climbs.append(options.engine(frames, start, options.rule(), int(seeds[i])))
    model = Model(
        *(np.stack(parts) for parts in zip(*(c.model for c in climbs), strict=True))
    )
    rest = [np.stack(parts) for parts in zip(*(c[1:] for c in climbs), strict=True)]
    return Climbs(model, *rest)


def better(a, b):
    """Of two climbs of the same sequences, those that ended higher."""
    wins = b.objective > a.objective
    chosen = [
        np.where(wins.reshape(-1, *(1,) * (left.ndim - 1)), right, left)
        for left, right in zip((*a.model, *a[1:]), (*b.model, *b[1:]), strict=True)
    ]
    return Climbs(Model(*chosen[:4]), *chosen[4:])


def finished_fits(climbs, group, options):
    """Turn climbs into fits in raw units."""
    model, coordinates = climbs.model, group.coordinates
    if options.relevance == 0:
        model = without_empty_states(model, climbs.counts)
    means, covars = coordinates.raw_emissions(model)
    entered = model.startprob + model.transmat.sum(axis=1) > 0
    weights = np.where(entered, climbs.counts, 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    lengths = np.diff(group.offsets)
    excess = coordinates.excess(lengths, group.seen, group.offsets)
    observed = np.broadcast_to(~coordinates.missing, (len(lengths), means.shape[-1]))
    return [
        Fit(
            Model(model.startprob[i], model.transmat[i], means[i], covars[i]),
            weights[i],
            observed[i],
            weights.shape[1] // options.n_mix,
            float(climbs.log_likelihood[i] - excess[i]),
            float(climbs.objective[i] - excess[i]),
            int(climbs.n_iter[i]),
            bool(climbs.converged[i]),
            int(lengths[i]),
        )
        for i in range(len(lengths))
    ]


def still_fit(n_timesteps, centre, missing, options):
    """One state for a sequence of which no channel moves."""
    covars = np.zeros((1, len(centre)))
    if options.covariance_type in {"full", "tied"}:
        covars = np.zeros((1, len(centre), len(centre)))
    model = Model(np.ones(1), np.ones((1, 1)), centre[None], covars)
    return Fit(model, np.ones(1), ~missing, 1, 0.0, 0.0, 0, True, int(n_timesteps))


def still_fits(lengths, scales, options):
    """Fits of the sequences of which no channel moves, None for the others."""
    active, missing, _, centre, _ = scales
    fits: list[Any] = [None] * len(lengths)
    for i in np.flatnonzero(~active.any(axis=1)):
        fits[i] = still_fit(lengths[i], centre[i], missing[i], options)
    return fits


def n_parameters(n_states, n_features, options):
    """Free parameters of a model: starts, transitions, mixtures, means, covariances."""
    start, allowed = allowed_moves(options.topology, n_states)
    chain = start.sum() - 1 + (allowed.sum(axis=1) - 1).sum()
    n_components = n_states * options.n_mix
    covars = {
        "diag": n_components * n_features,
        "spherical": n_components,
        "full": n_components * n_features * (n_features + 1) / 2,
        "tied": n_features * (n_features + 1) / 2,
    }[options.covariance_type]
    return chain + n_components - n_states + n_components * n_features + covars


def criterion_value(fit, n_features, options):
    """Value of the selection criterion, less is better; 0 if there is none."""
    if options.criterion is None:
        return 0.0
    price = {"aic": 2.0, "bic": np.log(fit.n_timesteps)}[options.criterion]
    n_free = n_parameters(fit.n_states, int(n_features), options)
    return price * n_free - 2 * fit.log_likelihood
