"""Fitting one sequence: its own start values, EM, the number of states.

A sequence is fitted in its own coordinates; what it gets depends on its frames and the
options, and on nothing else.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from skawhmm._em import LEAST_FLOOR, Model, Rule, Search, em, screened_start
from skawhmm._starts import content_seed, distinct_count

# A state with fewer expected frames than this is empty: weight 0, never entered.
DEAD_COUNT = 1e-6
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

    engine : callable
        Climbs from a start: `batched_engine`, or one with its parameters and results.
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


def batched_engine(frames, seen, start, rule, seed):  # noqa: ARG001
    """Climb by our own kernel."""
    return em(frames, seen, np.array([0, frames.shape[1]]), start, start, rule)


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

    The arrays are shared between calls and must not be written to.
    """
    start, allowed = allowed_moves(topology, n_states)
    start, allowed = np.repeat(start, n_mix), np.kron(allowed, np.ones((n_mix, n_mix)))
    covar = np.eye(n_features) if full else np.ones(n_features)
    model = Model(
        start / start.sum(),
        allowed / allowed.sum(axis=1, keepdims=True),
        np.zeros((len(start), n_features)),
        np.repeat(covar[None], len(start), axis=0),
    )
    return model, allowed


def start_model(points, frames, seen, offsets, n_states, options, run):
    """Start values of one run, and the seed they were made with."""
    seed = content_seed(points.ravel(), options.seed + 1000003 * run)
    full = options.covariance_type in {"full", "tied"}
    origin, allowed = blank_model(
        len(frames), n_states, options.topology, options.n_mix, full
    )
    ordered = options.topology != "ergodic"
    n_candidates = n_starts(n_states * options.n_mix, frames.shape[1])
    search = Search(origin, allowed, ordered, n_candidates)
    state = np.array([seed], np.uint64)
    rule = options.rule()
    start = screened_start(points, frames, seen, offsets, search, rule, state)
    return start, int(seed)


def n_starts(n_components, n_frames):
    """Return how many starts to compare: more where they cost less."""
    if n_components == 1:
        return 1
    return int(np.clip(CANDIDATE_FRAMES // n_frames, *CANDIDATES))


def independent_fit(channels, coordinates, options):
    """Fit by maximum likelihood from the sequence's own start values."""
    z, seen = coordinates.standardized(channels)
    frames, offsets = coordinates.frames(z), np.array([0, z.shape[1]])
    n_states = distinct_count(z, options.n_components)
    runs = (
        start_model(z, frames, seen, offsets, n_states, options, run)
        for run in range(options.n_init)
    )
    return climbed(frames, seen, runs, coordinates, options)


def climbed(frames, seen, starts, coordinates, options):
    """Best of the fits from several starts, in raw units."""
    engine = options.engine or batched_engine
    rule = options.rule()
    best = None
    for start, seed in starts:
        result = engine(frames, seen, start, rule, seed)
        if best is None or result[2][-1] > best[2][-1]:
            best = result
    return finished_fit(best, coordinates, seen, coordinates.missing, options)


def finished_fit(result, coordinates, seen, missing, options):
    """Turn the result of an engine into a fit in raw units."""
    model, post, history, log_likelihood, converged = result
    n_timesteps = post.shape[1]
    if options.relevance == 0:
        model = without_empty_states(model, post.sum(axis=1))
    means, covars = coordinates.raw_emissions(model)
    weights = np.where(model.startprob + model.transmat.sum(axis=0) > 0, post.sum(1), 0)
    excess = coordinates.excess(n_timesteps, seen)
    return Fit(
        Model(model.startprob, model.transmat, means, covars),
        weights / weights.sum(),
        ~missing,
        len(weights) // options.n_mix,
        float(log_likelihood - excess),
        float(history[-1] - excess),
        len(history) - 1,
        bool(converged),
        n_timesteps,
    )


def without_empty_states(model, counts):
    """Return the model with states of no expected frames cut off from the others."""
    dead = counts < DEAD_COUNT
    if not dead.any() or dead.all():
        return model
    startprob = np.where(dead, 0.0, model.startprob)
    transmat = np.where(dead, 0.0, model.transmat)
    stuck = transmat.sum(axis=1) == 0
    # A row that led only to empty states goes anywhere else the chain may start.
    transmat[stuck] = startprob
    return model._replace(
        startprob=startprob / startprob.sum(),
        transmat=transmat / transmat.sum(axis=1, keepdims=True),
    )


def still_fit(n_timesteps, coordinates, options):
    """One state for a sequence of which no channel moves."""
    n_features = len(coordinates.active)
    covars = np.zeros((1, n_features))
    if options.covariance_type in {"full", "tied"}:
        covars = np.zeros((1, n_features, n_features))
    model = Model(np.ones(1), np.ones((1, 1)), coordinates.centre[None], covars)
    observed = ~coordinates.missing
    return Fit(model, np.ones(1), observed, 1, 0.0, 0.0, 0, True, n_timesteps)


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


def criterion_value(log_likelihood, n_frames, n_states, n_features, options):
    """Value of the selection criterion; less is better."""
    price = {"aic": 2.0, "bic": np.log(n_frames)}[options.criterion]
    return price * n_parameters(n_states, n_features, options) - 2 * log_likelihood


def selected_fit(channels, coordinates, options):
    """Fit with the number of states that the criterion prefers."""
    best, best_value = None, np.inf
    for n_states in range(1, options.n_components + 1):
        fit = independent_fit(
            channels, coordinates, replace(options, n_components=n_states)
        )
        if fit.n_states < n_states:
            break
        n_features = int(coordinates.active.sum())
        value = criterion_value(
            fit.log_likelihood, fit.n_timesteps, n_states, n_features, options
        )
        if value < best_value:
            best, best_value = fit, value
    return best
