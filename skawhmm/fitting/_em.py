"""EM: its options, its steps, its one stopping rule, and fits of any family of states.

EM runs for many models at once, each with its own sequences; a model that has converged
takes no further steps. Gaussian states are fitted in `_gaussian_fit`, by the same loop.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from skawhmm.emissions._gaussian import Gaussian
from skawhmm.emissions._model import Data, Model
from skawhmm.fitting._em_kernels import update_chains
from skawhmm.fitting._runs import advance_runs
from skawhmm.numerics._paths import DEAD_COUNT, without_empty_states
from skawhmm.sequences._trials import recordings_of
from skawhmm.utils._seeds import exponential_draws, item_rng

# Transition probabilities are raised to this value before logarithms are taken.
LEAST_TRANSITION = 1e-100
# Number of starts compared before a fit, and of EM steps after which they are compared.
CANDIDATES = 4
SCREENING_STEPS = 5


class Rule(NamedTuple):
    """Constraints of the M step, and the stopping rule.

    Attributes
    ----------
    n_mix : int
        Number of Gaussians per state.

    relevance : float
        Weight of the prior, in frames per state; 0 for maximum likelihood.

    max_iter : int
        Largest number of M steps.

    tol : float
        EM stops if a step gains at most this much log likelihood (plus log prior) per
        frame.
    """

    n_mix: int = 1
    relevance: float = 0.0
    max_iter: int = 100
    tol: float = 1e-5


@dataclass(frozen=True)
class FitOptions:
    """What to fit and how.

    Attributes that are not listed here are described in `HMMTransformer`.

    Attributes
    ----------
    relevance : float
        Weight of the pooled model as a prior, 0 for maximum likelihood.

    criterion : {None, "aic", "bic"}
        Criterion that chooses the number of states, up to `n_components`.

    seed : int
        Seed of all draws, which depend on the frames as well.

    engine : callable or None
        Replaces our own EM loop.

    template : Emission
        Family of the states and its options.
    """

    n_components: int = 3
    template: Any = field(default_factory=Gaussian)
    topology: str = "ergodic"
    n_mix: int = 1
    n_init: int = 1
    max_iter: int = 100
    tol: float = 1e-5
    relevance: float = 0.0
    criterion: str | None = None
    seed: int = 0
    engine: Any = None

    @property
    def covariance_type(self):
        """Form of the covariances of Gaussian states."""
        return self.template.covariance_type

    @cached_property
    def rule(self):
        """The constraints of the M step and the stopping rule."""
        return Rule(
            int(self.n_mix),
            float(self.relevance),
            int(self.max_iter),
            float(self.tol),
        )

    @property
    def sizes(self):
        """Numbers of states to try."""
        if self.criterion is None:
            return [self.n_components]
        return list(range(1, self.n_components + 1))


class EMRuns(NamedTuple):
    """How several EM runs ended: arrays with one row per run.

    Counts are expected frames per state, moves are expected transitions, and the
    objective is the log likelihood plus the log prior, all for the model after `n_iter`
    M steps.
    """

    model: Model
    counts: np.ndarray
    moves: np.ndarray
    log_likelihood: np.ndarray
    objective: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray


class Steps:
    """EM steps of several models, each with its own sequences.

    Parameters
    ----------
    family : Emission
        Family of the states.

    data : Data
        The sequences of each model.

    rule : Rule
        Constraints of the M step and the stopping rule.

    prior : Model, default=None
        Stack of priors, one per model or one for all; not used if the relevance is 0.
    """

    def __init__(self, family: Any, data: Data, rule: Rule, prior: Model | None = None):
        self.family = family
        self.data = data
        self.rule = rule
        self.prior = prior
        self.n_frames = np.diff(data.bounds)

    def expectation(self, model, active):
        """Return log likelihoods and expected statistics of the active models."""
        return self.family.expectations(self.data, model, active)

    def log_priors(self, model, active):
        """Return the log priors of the active models; 0 if there is no prior."""
        if self.rule.relevance == 0:
            return np.zeros(len(active))
        values = chain_log_priors(model, self.prior, active)
        values += self.family.log_priors(model, self.prior, active)
        return self.rule.relevance * values

    def maximization(self, expected, rows, model, active):
        """Change the parameters of the active models, in place, by an M step."""
        prior = model if self.prior is None else self.prior
        chains, priors = model[:2], prior[:2]
        rule, parts = self.rule, (expected.start, expected.moves)
        update_chains(parts, rows, chains, priors, rule.n_mix, rule.relevance, active)
        self.family.updates(expected, rows, model, prior, rule.relevance, active)


def chain_log_priors(model, prior, active):
    """Return the logs of the priors of chains, per step of relevance."""
    values = np.zeros(len(active))
    for part in ("startprob", "transmat"):
        now, before = getattr(model, part), getattr(prior, part)
        logs = np.log(np.maximum(now[active], LEAST_TRANSITION))
        before = before[np.minimum(active, len(before) - 1)]
        terms = np.where(before > 0, before * logs, 0.0)
        values += terms.sum(axis=tuple(range(1, terms.ndim)))
    return values


def has_converged(gain, tol, n_frames):
    """Whether a step gained too little to go on: the stopping rule."""
    return gain <= tol * n_frames


def run_em(steps, start, *, max_iter=None, tol=None, is_scored=True):
    """Run EM from start values until the gain per frame is at most the tolerance.

    Parameters
    ----------
    steps : Steps
        The E step and the M step.

    start : Model
        A stack of start values, one per model.

    max_iter, tol : int and float, default=None
        Replace the values of the rule.

    is_scored : bool, default=True
        Whether likelihoods and counts belong to the model after the last step.
        Otherwise they belong to the model before it, which saves an E step.

    Returns
    -------
    runs : EMRuns
        One row per model.
    """
    max_iter = steps.rule.max_iter if max_iter is None else max_iter
    tol = steps.rule.tol if tol is None else tol
    model = copied(start)
    n_models = len(model.startprob)
    log_likelihood, objective = np.empty(n_models), np.full(n_models, -np.inf)
    counts, moves = np.empty_like(model.startprob), np.empty_like(model.transmat)
    n_iter, converged = np.zeros(n_models, np.int64), np.zeros(n_models, bool)
    active = np.arange(n_models)
    while True:
        values, expected = steps.expectation(model, active)
        before = objective[active]
        log_likelihood[active] = values
        counts[active], moves[active] = expected.counts, expected.moves
        objective[active] = values + steps.log_priors(model, active)
        # The gain of a sequence that stays impossible is NaN.
        with np.errstate(invalid="ignore"):
            gain = objective[active] - before
        done = has_converged(gain, tol, steps.n_frames[active])
        converged[active] = done
        rows = np.flatnonzero(~done & (n_iter[active] < max_iter))
        active = active[rows]
        if active.size > 0:
            steps.maximization(expected, rows, model, active)
            n_iter[active] += 1
        # All active models have taken the same number of steps.
        if active.size == 0 or not (is_scored or n_iter[active[0]] < max_iter):
            scores = log_likelihood, objective
            return EMRuns(model, counts, moves, *scores, n_iter, converged)


def em_runs(family, data, rule, start):
    """Run EM from start values, which are also the prior; see `run_em`.

    The steps and the stopping rule are those of `run_em`, without Python between them
    if the family has compiled steps.
    """
    if not family.has_compiled_em:
        return run_em(Steps(family, data, rule, start), start)
    model = copied(start)
    n_models, n_frames = len(model.startprob), np.diff(data.bounds)
    states = family.compiled_em(data, model.states, start.states)
    runs = EMRuns(
        model,
        np.empty_like(model.startprob),
        np.empty_like(model.transmat),
        np.empty(n_models),
        np.full(n_models, -np.inf),
        np.zeros(n_models, np.int64),
        np.zeros(n_models, bool),
    )
    active = np.arange(n_models)
    while active.size > 0:
        active = advance_runs(states, start, runs, rule, n_frames, active)
        if active.size > 0:
            states.resume()
    return runs


def best_start(family, data, rule, starts):
    """Return the best of several starts of each model, after the steps of a rule.

    The rule must not have a relevance.
    """
    if len(starts) == 1:
        return starts[0]
    return reduce(better, (em_runs(family, data, rule, x) for x in starts)).model


def better(a, b):
    """Return the better of two EM runs of each model, by their objectives."""
    wins = b.objective > a.objective

    def chosen(left, right):
        return np.where(wins.reshape(-1, *(1,) * (left.ndim - 1)), right, left)

    startprob, transmat = map(chosen, a.model[:2], b.model[:2])
    states = tuple(map(chosen, a.model.states, b.model.states))
    return EMRuns(Model(startprob, transmat, states), *map(chosen, a[1:], b[1:]))


def copied(model):
    """Return a copy of a model, or of a stack of models."""
    return Model(
        np.array(model.startprob, order="C"),
        np.array(model.transmat, order="C"),
        tuple(np.array(part, order="C") for part in model.states),
    )


def stack_of(model):
    """Return a model as a stack of one."""
    startprob, transmat, states = model
    return Model(startprob[None], transmat[None], tuple(part[None] for part in states))


def stacked(models):
    """Return several models with the same number of states as a stack."""
    startprobs, transmats, states = zip(*models, strict=True)
    parts = (np.stack(part) for part in zip(*states, strict=True))
    return Model(np.stack(startprobs), np.stack(transmats), tuple(parts))


def concatenated(stacks):
    """Return several stacks of models with the same number of states as one."""
    startprobs, transmats, states = zip(*stacks, strict=True)
    parts = (np.concatenate(part) for part in zip(*states, strict=True))
    return Model(np.concatenate(startprobs), np.concatenate(transmats), tuple(parts))


def repeated(model, n_models):
    """Return a stack that repeats the one model of a given stack."""
    startprob, transmat, *states = (
        np.repeat(part, n_models, axis=0)
        for part in (model.startprob, model.transmat, *model.states)
    )
    return Model(startprob, transmat, tuple(states))


def model_at(model, i):
    """Return model i of a stack."""
    return Model(
        model.startprob[i],
        model.transmat[i],
        tuple(part[i] for part in model.states),
    )


class Fit(NamedTuple):
    """A fitted model in raw units, its convergence, and its `Counts` as arrays."""

    model: Model
    weights: np.ndarray
    observed: np.ndarray | None
    n_states: int
    log_likelihood: float
    objective: float
    n_iter: int
    converged: bool
    n_timesteps: int
    counts: tuple[np.ndarray, np.ndarray]
    n_trials: int = 1


def allowed_moves(topology, n_states):
    """Return masks of the allowed starts and transitions, as floats."""
    if topology == "ergodic":
        return np.ones(n_states), np.ones((n_states, n_states))
    moves = np.eye(n_states) + np.eye(n_states, k=1)
    if topology == "left-to-right":
        moves = np.triu(np.ones((n_states, n_states)))
    return np.eye(n_states)[0], moves


def chain_size(topology, n_states):
    """Return the number of free start and transition probabilities."""
    start, allowed = allowed_moves(topology, n_states)
    return start.sum() - 1 + (allowed.sum(axis=1) - 1).sum()


def criterion_value(fit, n_free, options):
    """Return the value of the selection criterion: smaller is better."""
    if options.criterion is None:
        return 0.0
    price = {"aic": 2.0, "bic": np.log(fit.n_timesteps)}[options.criterion]
    return price * n_free - 2 * fit.log_likelihood


def frames_rng(frames, seed, run):
    """Return a random generator that depends only on the frames, seed and run."""
    return item_rng(seed, run, frames)


def random_starts(data, n_states, options, rngs):
    """Return start values of ergodic models: a stack of one draw per model.

    Parameters
    ----------
    data : Data
        The sequences of the models.

    n_states : int
        Number of states.

    options : FitOptions
        Family of the states.

    rngs : list of numpy.random.Generator
        Source of the draws of each model.
    """
    drawn = exponential_draws(rngs, (n_states, n_states))
    transmat = drawn / drawn.sum(axis=2, keepdims=True)
    states = options.template.random_stack(data, n_states, rngs)
    return Model(np.full((len(rngs), n_states), 1 / n_states), transmat, states)


def ordered_start(data, n_states, options, rng, *, first):
    """Return start values of one model whose states follow in order.

    Parameters
    ----------
    data : Data
        The sequences of the model.

    n_states : int
        Number of states.

    options : FitOptions
        Family and topology.

    rng : numpy.random.Generator
        Source of the draws.

    first : bool
        Whether states divide each sequence into equal parts; otherwise the cuts are
        drawn at random.

    Returns
    -------
    model : Model
        A stack of one; every allowed move and every observed value is possible.
    """
    family, frames = options.template, data.frames
    start, allowed = allowed_moves(options.topology, n_states)
    cuts = np.arange(1, n_states) / n_states
    if not first:
        cuts = np.sort(rng.random(n_states - 1))
    lengths = np.diff(data.offsets)
    place = [(np.arange(n) + 0.5) / n for n in lengths]
    labels = np.searchsorted(cuts, np.concatenate(place))
    post = (labels == np.arange(n_states)[:, None]).astype(float)
    common = tuple(
        np.repeat(part, n_states, axis=0) for part in family.common_states(frames)
    )
    # About the moves of a path through all states, and one frame of the common state.
    stays = np.eye(n_states) * len(frames) / len(lengths) / n_states
    moves = (stays + 1.0) * allowed
    statistics = family.statistics(frames, post, common)
    states = family.update(statistics, common, common, 1.0)
    return stack_of(Model(start, moves / moves.sum(axis=1, keepdims=True), states))


def drawn_starts(data, n_states, options, run):
    """Return several starts of each model, as a list of stacks."""
    n_candidates = CANDIDATES if n_states > 1 else 1
    units = list(pairwise(data.bounds.tolist()))
    rngs = [frames_rng(data.frames[i:j], options.seed, run) for i, j in units]
    if options.topology == "ergodic":
        draws = range(n_candidates)
        return [random_starts(data, n_states, options, rngs) for _ in draws]
    starts = []
    for n in range(n_candidates):
        first = run == 0 and n == 0
        drawn = (
            ordered_start(data.chosen([i]), n_states, options, rng, first=first)
            for i, rng in enumerate(rngs)
        )
        starts.append(concatenated(list(drawn)))
    return starts


def screened_starts(data, n_states, options, run):
    """Return the best of several starts of each model after a few EM steps."""
    starts = drawn_starts(data, n_states, options, run)
    rule = options.rule._replace(relevance=0.0, max_iter=SCREENING_STEPS, tol=0.0)
    if n_states == 1:
        return em_runs(options.template, data, rule, starts[0]).model
    return best_start(options.template, data, rule, starts)


def fits_of(data, options, pooled=None):
    """Fit one model to the sequences of each unit.

    Parameters
    ----------
    data : Data
        The sequences of the units.

    options : FitOptions
        What to fit and how.

    pooled : Model, default=None
        Start values and, if `options.relevance` is not 0, the prior.

    Returns
    -------
    fits : list of Fit
        The models; a criterion chooses their numbers of states.
    """
    n_units = len(data.firsts) - 1
    if pooled is not None:
        starts = repeated(stack_of(pooled), n_units)
        runs = em_runs(options.template, data, options.rule, starts)
        return finished_fits(runs, data, options)
    most = most_states(data, options)
    fits: list[Any] = [None] * n_units
    best, sizes = np.full(n_units, np.inf), options.sizes
    for size in sizes:
        n_states = np.minimum(most, size)
        chosen = (n_states == size) | (len(sizes) == 1)
        for own in np.unique(n_states[chosen]).tolist():
            members = np.flatnonzero(chosen & (n_states == own))
            part = data.chosen(members)
            for i, fit in zip(members, best_fits(part, own, options), strict=True):
                value = 0.0
                if options.criterion is not None:
                    inner = data.bounds[i : i + 2]
                    n_free = options.template.n_free(data.frames[slice(*inner)])
                    n_free = chain_size(options.topology, own) + own * n_free
                    value = criterion_value(fit, n_free, options)
                if value < best[i]:
                    fits[i], best[i] = fit, value
    return fits


def best_fits(data, n_states, options):
    """Return fits with `n_states` states, each the best of `n_init` restarts."""
    best: Any = None
    for run in range(options.n_init):
        starts = screened_starts(data, n_states, options, run)
        runs = em_runs(options.template, data, options.rule, starts)
        best = runs if best is None else better(best, runs)
    return finished_fits(best, data, options)


def most_states(data, options):
    """Return the largest number of states that the sequences of each model allow."""
    varied = [
        options.template.varied(data.frames[i:j])
        for i, j in pairwise(data.bounds.tolist())
    ]
    most = np.diff(data.bounds)
    if options.topology != "ergodic":
        # States that follow in order must all be visited in one sequence.
        most = np.maximum.reduceat(np.diff(data.offsets), data.firsts[:-1])
    return np.where(varied, most, 1)


def cut_off(runs, data, template):
    """Return runs without transitions to empty states, and their likelihoods."""
    model = without_empty_states(runs.model, runs.counts)
    parts = zip(model[:2], runs.model[:2], strict=True)
    moved = [(new != old).reshape(len(new), -1).any(axis=1) for new, old in parts]
    rows = np.flatnonzero(np.logical_or(*moved))
    if rows.size == 0:
        return runs
    gains = np.zeros(len(runs.log_likelihood))
    gains[rows] = template.expectations(data, model, rows)[0]
    gains[rows] -= runs.log_likelihood[rows]
    return runs._replace(
        model=model,
        log_likelihood=runs.log_likelihood + gains,
        objective=runs.objective + gains,
    )


def finished_fits(runs, data, options):
    """Return finished runs as fits, without transitions to empty states."""
    counts = runs.counts
    if options.relevance == 0:
        runs = cut_off(runs, data, options.template)
        counts = np.where(counts < DEAD_COUNT, 0.0, counts)
    weights = counts / counts.sum(axis=1, keepdims=True)
    lengths, n_trials = np.diff(data.bounds), np.diff(data.firsts)
    return [
        Fit(
            model_at(runs.model, i),
            weights[i],
            None,
            weights.shape[1],
            float(runs.log_likelihood[i]),
            float(runs.objective[i]),
            int(runs.n_iter[i]),
            bool(runs.converged[i]),
            int(lengths[i]),
            (runs.counts[i], runs.moves[i]),
            int(n_trials[i]),
        )
        for i in range(len(lengths))
    ]


def general_fits(sequences, options, pooled=None):
    """Fit one model per unit; the other parameters are those of `fits_of`."""
    return fits_of(options.template.data(*recordings_of(sequences)), options, pooled)


def general_pooled_fit(sequences, options):
    """Fit one model to all sequences together, by maximum likelihood."""
    recordings, _ = recordings_of(sequences)
    data = options.template.data(recordings, [0, len(recordings)])
    (fit,) = fits_of(data, replace(options, relevance=0.0))
    return fit.model, fit
