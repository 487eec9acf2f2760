"""Fitting states that emit symbols or counts: start values, EM, number of states.

What a sequence gets depends on its frames and the options, and on nothing else.
"""

from collections import namedtuple
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numba import njit

from skawhmm.emissions._discrete import fill_log_densities
from skawhmm.numerics._forward_backward import forward_backward_each
from skawhmm.numerics._paths import DEAD_COUNT, without_empty_states
from skawhmm.utils._compile import KERNEL

# A state with less than this many expected frames is empty and keeps its parameters.
EMPTY_COUNT = 1e-8
# Probabilities below this are 0: their powers would leave the range.
LEAST_PROBABILITY = 1e-100
# Starts compared before a fit, and the steps of EM after which they are.
CANDIDATES = 4
SCREENING_STEPS = 5

DiscreteModel = namedtuple("DiscreteModel", ["startprob", "transmat", "states"])
DiscreteModel.__doc__ = "Parameters of one model, arrays without a leading axis."


@dataclass(frozen=True)
class DiscreteOptions:
    """What to fit and how; the words are those of `HMMTransformer`.

    Attributes
    ----------
    family : Discrete
        Family without states, which reads sequences and makes start values.

    relevance : float
        Weight of the pooled model as a prior, 0 for maximum likelihood.

    criterion : {None, "aic", "bic"}
        If not None, `n_components` is the largest number of states tried.

    allowed : callable
        Masks of allowed starts and transitions of a number of states.

    ordered : bool
        Whether states come one after the other.
    """

    family: Any
    allowed: Any
    n_components: int = 3
    ordered: bool = False
    n_init: int = 1
    max_iter: int = 100
    tol: float = 1e-5
    relevance: float = 0.0
    criterion: str | None = None
    seed: int = 0


@dataclass(frozen=True)
class DiscreteFit:
    """A fitted model, and how the fit went."""

    model: DiscreteModel
    weights: np.ndarray
    n_states: int
    log_likelihood: float
    objective: float
    n_iter: int
    converged: bool
    n_timesteps: int


@njit(**KERNEL)
def expected_counts(frames, offsets, model, post, chain):
    """E step: fill state probabilities, add starts and moves, return log likelihood.

    Parameters
    ----------
    frames : ndarray of shape (n_frames,) or (n_frames, n_channels)
        The sequences one after the other.

    offsets : ndarray of shape (n_sequences + 1,)
        Where they begin and end.

    model : DiscreteModel
        Present parameters.

    post : ndarray of shape (n_components, n_frames)
        Receives the state probabilities.

    chain : ndarray of shape (n_components + 1, n_components)
        Receives the expected transitions; the last row is the start.
    """
    n_components = post.shape[0]
    logs = np.empty(post.shape)
    fill_log_densities(frames, model.states, logs)
    starts, moves = np.zeros(n_components), np.zeros((n_components, n_components))
    total = forward_backward_each(
        logs, offsets, model.startprob, model.transmat, post, starts, moves
    )
    chain[:n_components] = moves
    chain[n_components] = starts
    return total


@njit(**KERNEL)
def normalized(counts, fallback, out):
    """Fill a law with the shares of counts; with too few of them it stays as it was."""
    total, kept = counts.sum(), 0.0
    for j in range(counts.shape[0]):
        out[j] = fallback[j] if total < EMPTY_COUNT else counts[j] / total
        if out[j] < LEAST_PROBABILITY:
            out[j] = 0.0
        kept += out[j]
    for j in range(counts.shape[0]):
        out[j] /= kept


@njit(**KERNEL)
def updated_states(frames, post, states, prior, relevance):
    """States of the M step; the prior counts as `relevance` frames a state."""
    fresh = np.empty(states.shape)
    sums = relevance * prior
    if frames.ndim == 1:
        for t in range(frames.shape[0]):
            if frames[t] >= 0:
                for k in range(states.shape[0]):
                    sums[k, frames[t]] += post[k, t]
        for k in range(states.shape[0]):
            normalized(sums[k], states[k], fresh[k])
    else:
        sizes = np.full(states.shape, relevance)
        for t in range(frames.shape[0]):
            for c in range(states.shape[1]):
                if not np.isnan(frames[t, c]):
                    for k in range(states.shape[0]):
                        sums[k, c] += post[k, t] * frames[t, c]
                        sizes[k, c] += post[k, t]
        for k in range(states.shape[0]):
            for c in range(states.shape[1]):
                few = sizes[k, c] < EMPTY_COUNT
                fresh[k, c] = states[k, c] if few else sums[k, c] / sizes[k, c]
    return fresh


@njit(**KERNEL)
def maximization(frames, post, chain, model, prior, relevance):
    """M step."""
    n_components = post.shape[0]
    startprob, transmat = np.empty(n_components), np.empty(model.transmat.shape)
    start = chain[n_components] + relevance * prior.startprob
    normalized(start, model.startprob, startprob)
    for i in range(n_components):
        moves = chain[i] + relevance * prior.transmat[i]
        normalized(moves, model.transmat[i], transmat[i])
    states = updated_states(frames, post, model.states, prior.states, relevance)
    return DiscreteModel(startprob, transmat, states)


@njit(**KERNEL)
def shared_log(prior, law):
    """Sum of prior shares times logs of a law."""
    value = 0.0
    for j in range(prior.shape[0]):
        if prior[j] > 0:
            value += prior[j] * np.log(max(law[j], LEAST_PROBABILITY))
    return value


@njit(**KERNEL)
def log_prior(frames, model, prior, relevance):
    """Logarithm of the prior at the model, up to a constant (0 without a prior)."""
    if relevance == 0:
        return 0.0
    value = shared_log(prior.startprob, model.startprob)
    for k in range(model.startprob.shape[0]):
        value += shared_log(prior.transmat[k], model.transmat[k])
        value += shared_log(prior.states[k], model.states[k])
        if frames.ndim == 2:
            value -= model.states[k].sum()
    return relevance * value


@njit(**KERNEL)
def climb(frames, offsets, start, prior, relevance, max_iter, tol):
    """Climb from a start until the gain per frame is at most the tolerance.

    Parameters
    ----------
    frames, offsets : ndarray
        As in `expected_counts`.

    start, prior : DiscreteModel
        Start values; the model to shrink to (not used at relevance 0).

    relevance : float
        Weight of the prior in frames, starts and steps a state.

    max_iter, tol : int and float
        Largest number of M steps, and the least gain a frame.

    Returns
    -------
    model : DiscreteModel
        Parameters after the last M step.

    post : ndarray of shape (n_components, n_frames)
        State probabilities under them.

    history : ndarray of shape (n_iter + 1,)
        Log likelihood plus log prior before each M step and at the end.

    log_likelihood : float
        Log likelihood of the returned model.

    converged : bool
        Whether the gain fell to the tolerance.
    """
    n_components, n_frames = start.startprob.shape[0], frames.shape[0]
    post = np.empty((n_components, n_frames))
    chain = np.empty((n_components + 1, n_components))
    history = np.empty(max_iter + 1)
    model, converged, n_iter = start, False, 0
    while True:
        log_likelihood = expected_counts(frames, offsets, model, post, chain)
        history[n_iter] = log_likelihood + log_prior(frames, model, prior, relevance)
        if n_iter > 0:
            converged = history[n_iter] - history[n_iter - 1] <= tol * n_frames
        if converged or n_iter == max_iter:
            break
        model = maximization(frames, post, chain, model, prior, relevance)
        n_iter += 1
    return model, post, history[: n_iter + 1], log_likelihood, converged


def item_rng(frames, seed, run):
    """Return a generator that depends on the frames and the seed only."""
    digest = blake2b(frames.tobytes(), digest_size=8).digest()
    return np.random.default_rng([seed, run, int.from_bytes(digest, "little")])


def start_model(frames, offsets, n_states, options, rng, *, first):
    """Draw start values.

    Parameters
    ----------
    frames, offsets : ndarray
        As in `expected_counts`.

    n_states : int
        Number of states.

    options : DiscreteOptions
        How.

    rng : numpy.random.Generator
        What to draw from.

    first : bool
        Whether states that come in order cut the sequences evenly, else at random.

    Returns
    -------
    model : DiscreteModel
        Every allowed move and every observed value is possible.
    """
    start, allowed = options.allowed(n_states)
    if not options.ordered:
        shares = rng.standard_exponential(allowed.shape) * allowed
        states = options.family.random_states(frames, n_states, rng)
        return DiscreteModel(
            start / start.sum(), shares / shares.sum(axis=1, keepdims=True), states
        )
    cuts = np.arange(1, n_states) / n_states
    if not first:
        cuts = np.sort(rng.random(n_states - 1))
    place = [(np.arange(n) + 0.5) / n for n in np.diff(offsets)]
    labels = np.searchsorted(cuts, np.concatenate(place))
    post = (labels == np.arange(n_states)[:, None]).astype(float)
    common = np.repeat(options.family.common_states(frames), n_states, axis=0)
    # About as many moves as a path through all states has, and one frame of the whole.
    stays = np.eye(n_states) * len(frames) / (len(offsets) - 1) / n_states
    moves = (stays + 1.0) * allowed
    states = updated_states(frames, post, common, common, 1.0)
    return DiscreteModel(start, moves / moves.sum(axis=1, keepdims=True), states)


def screened_start(frames, offsets, n_states, options, run):
    """Return the best of several starts after a few steps of EM from each."""
    rng = item_rng(frames, options.seed, run)
    best, best_value = None, -np.inf
    for n in range(CANDIDATES if n_states > 1 else 1):
        first = run == 0 and n == 0
        start = start_model(frames, offsets, n_states, options, rng, first=first)
        steps = SCREENING_STEPS
        model, _, history, _, _ = climb(frames, offsets, start, start, 0.0, steps, 0.0)
        if best is None or history[-1] > best_value:
            best, best_value = model, history[-1]
    return best


def fit_discrete(frames, offsets, options, pooled=None):
    """Fit one model to one or more sequences.

    Parameters
    ----------
    frames, offsets : ndarray
        As in `expected_counts`.

    options : DiscreteOptions
        How.

    pooled : DiscreteModel or None
        Start and, if `options.relevance` is not 0, prior.

    Returns
    -------
    fit : DiscreteFit
        The model; with a criterion, of the number of states it prefers.
    """
    if options.criterion is not None and pooled is None:
        return selected_fit(frames, offsets, options)
    rule = float(options.relevance), int(options.max_iter), float(options.tol)
    best: Any = None
    if pooled is not None:
        best = climb(frames, offsets, pooled, pooled, *rule)
    else:
        limit = np.diff(offsets).max() if options.family.varied(frames) else 1
        n_states = int(min(options.n_components, limit))
        for run in range(options.n_init):
            start = screened_start(frames, offsets, n_states, options, run)
            result = climb(frames, offsets, start, start, *rule)
            if best is None or result[2][-1] > best[2][-1]:
                best = result
    return finished_fit(best, options)


def finished_fit(result, options):
    """Return the result of `climb` as a fit, empty states cut off."""
    model, post, history, log_likelihood, converged = result
    counts = post.sum(axis=1)
    if options.relevance == 0:
        model = without_empty_states(model, counts)
        counts = np.where(counts < DEAD_COUNT, 0.0, counts)
    return DiscreteFit(
        model,
        counts / counts.sum(),
        len(counts),
        float(log_likelihood),
        float(history[-1]),
        len(history) - 1,
        bool(converged),
        post.shape[1],
    )


def selected_fit(frames, offsets, options):
    """Return the fit with the number of states that the criterion prefers."""
    n_frames = len(frames)
    price = {"aic": 2.0, "bic": np.log(n_frames)}[options.criterion]
    best, best_value = None, np.inf
    for n_states in range(1, options.n_components + 1):
        only = replace(options, n_components=n_states, criterion=None)
        fit = fit_discrete(frames, offsets, only)
        if fit.n_states < n_states:
            break
        start, allowed = options.allowed(n_states)
        size = start.sum() - 1 + (allowed.sum(axis=1) - 1).sum()
        size += n_states * options.family.n_free(frames)
        value = price * size - 2 * fit.log_likelihood
        if value < best_value:
            best, best_value = fit, value
    return best


def discrete_fits(sequences, options, pooled=None):
    """Fit every checked sequence; the parameters are those of `fit_discrete`."""
    frames = (options.family.frames(x) for x in sequences)
    return [fit_discrete(x, np.array([0, len(x)]), options, pooled) for x in frames]


def fit_all(sequences, options):
    """Return one model of all sequences together, by maximum likelihood."""
    frames = np.concatenate([options.family.frames(x) for x in sequences])
    offsets = np.cumsum([0, *(len(x) for x in sequences)])
    return fit_discrete(frames, offsets, replace(options, relevance=0.0))
