"""EM for all: one loop and one stopping rule, whatever the states and the data.

Many models climb side by side, each on its own; one that has arrived drops out.
"""

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from skawhmm.emissions._contract import Data, Model
from skawhmm.fitting._em import chain_log_priors
from skawhmm.fitting._em_kernels import update_chains


class Rule(NamedTuple):
    """What the M step keeps to, and when to stop.

    Gaussians per state, weight of the prior in frames per state, the largest number of
    M steps, the least gain per frame.
    """

    n_mix: int = 1
    relevance: float = 0.0
    max_iter: int = 100
    tol: float = 1e-5


class Climbs(NamedTuple):
    """How several climbs ended, arrays with one row for each.

    Counts are expected frames per state, the objective is the log likelihood plus the
    log prior; both belong to the model after `n_iter` M steps.
    """

    model: Model
    counts: np.ndarray
    log_likelihood: np.ndarray
    objective: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray


class Steps:
    """EM steps of several models, each with sequences of its own.

    Parameters
    ----------
    family : Emission
        What the states are.

    data : Data
        The sequences of each model.

    rule : Rule
        What the M step keeps to.

    prior : Model or None
        What to shrink to, a stack of one for each or one for all; not used at relevance
        0.
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
        """Return the logs of the priors of the active models; 0 without a prior."""
        if self.rule.relevance == 0:
            return np.zeros(len(active))
        values = chain_log_priors(model, self.prior, active)
        values += self.family.log_priors(model, self.prior, active)
        return self.rule.relevance * values

    def maximization(self, expected, rows, model, active):
        """Change the parameters of the active models to those of the M step."""
        prior = model if self.prior is None else self.prior
        chains, priors = model[:2], prior[:2]
        rule, parts = self.rule, (expected.start, expected.moves)
        update_chains(parts, rows, chains, priors, rule.n_mix, rule.relevance, active)
        self.family.updates(expected, rows, model, prior, rule.relevance, active)


def has_converged(gain, tol, n_frames):
    """Tell whether a step gained too little for another one: the stopping rule."""
    return gain <= tol * n_frames


def climb(steps, start, *, max_iter=None, tol=None):
    """Climb from start values until the gain per frame is at most the tolerance.

    Parameters
    ----------
    steps : Steps
        What an E step and an M step are.

    start : Model
        A stack of start values, one for each model.

    max_iter, tol : int and float, or None
        In place of those of the rule.

    Returns
    -------
    climbs : Climbs
        One row per model.
    """
    max_iter = steps.rule.max_iter if max_iter is None else max_iter
    tol = steps.rule.tol if tol is None else tol
    model = copied(start)
    n_models = len(model.startprob)
    log_likelihood, objective = np.empty(n_models), np.full(n_models, -np.inf)
    counts = np.empty_like(model.startprob)
    n_iter, converged = np.zeros(n_models, np.int64), np.zeros(n_models, bool)
    active = np.arange(n_models)
    while True:
        values, expected = steps.expectation(model, active)
        before = objective[active]
        log_likelihood[active], counts[active] = values, expected.counts
        objective[active] = values + steps.log_priors(model, active)
        # From one impossible sequence to another there is no gain to speak of.
        with np.errstate(invalid="ignore"):
            gain = objective[active] - before
        done = has_converged(gain, tol, steps.n_frames[active])
        converged[active] = done
        rows = np.flatnonzero(~done & (n_iter[active] < max_iter))
        active = active[rows]
        if active.size == 0:
            return Climbs(model, counts, log_likelihood, objective, n_iter, converged)
        steps.maximization(expected, rows, model, active)
        n_iter[active] += 1


def best_start(steps, starts, *, n_steps, tol):
    """Return, for each model, the best of several starts after a few steps of EM.

    Parameters
    ----------
    steps : Steps
        What a step is.

    starts : list of Model
        Stacks of start values. A single one is returned as it is.

    n_steps, tol : int and float
        How far they are followed, and the gain per frame below which not.

    Returns
    -------
    model : Model
        A stack of one model for each.
    """
    if len(starts) == 1:
        return starts[0]
    trials = (climb(steps, start, max_iter=n_steps, tol=tol) for start in starts)
    return reduce(better, trials).model


def better(a, b):
    """Return, of two climbs of the same models, those that ended higher."""
    wins = b.objective > a.objective

    def chosen(left, right):
        return np.where(wins.reshape(-1, *(1,) * (left.ndim - 1)), right, left)

    startprob, transmat = map(chosen, a.model[:2], b.model[:2])
    states = tuple(map(chosen, a.model.states, b.model.states))
    return Climbs(Model(startprob, transmat, states), *map(chosen, a[1:], b[1:]))


def copied(model):
    """Return a model, or a stack, whose arrays may be changed."""
    return Model(
        np.array(model.startprob, order="C"),
        np.array(model.transmat, order="C"),
        tuple(np.array(part, order="C") for part in model.states),
    )


def stacked(models):
    """Return several models of equal size as a stack."""
    startprobs, transmats, states = zip(*models, strict=True)
    parts = (np.stack(part) for part in zip(*states, strict=True))
    return Model(np.stack(startprobs), np.stack(transmats), tuple(parts))


def model_at(model, i):
    """Return one of a stack of models."""
    return Model(
        model.startprob[i],
        model.transmat[i],
        tuple(part[i] for part in model.states),
    )
