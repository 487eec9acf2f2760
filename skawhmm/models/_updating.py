"""Updates of fitted models: EM on new frames, with old frames as counts."""

import numpy as np
from scipy.sparse.csgraph import shortest_path

from skawhmm.models._causal import chain_of
from skawhmm.models._counts import Counts
from skawhmm.numerics._forward_backward import forward_backward
from skawhmm.sequences._trials import Trials

# Info columns about the fit, which no longer apply after an update.
STALE = ("converged", "n_iter", "log_likelihood")


def updated_models(batch, sequences, *, forgetting, max_iter, tol):
    """Return models after EM on new sequences, one per model.

    The old frames are represented by their expected counts and the fitted parameters:
    in the M step, each old state stands for as many frames as its count. For
    exponential families this is the M step on the sum of the sufficient statistics.

    Parameters
    ----------
    batch : HMMBatch
        Models with counts.

    sequences : list of ndarray of shape (n_timesteps, n_features) or Trials
        One per model.

    forgetting : float in [0, 1)
        Fraction of the older counts that is forgotten.

    max_iter : int
        Largest number of EM steps.

    tol : float
        EM stops when the expected counts per frame change by at most this, and the
        parameters of the states by at most this fraction of the largest one.

    Returns
    -------
    models : HMMBatch
        The models.
    """
    runs = [
        _updated_model(batch[i : i + 1], x, 1 - forgetting, max_iter, tol)
        for i, x in enumerate(sequences)
    ]
    models = type(batch).concatenate([model for model, _ in runs])
    columns = {k: v for k, v in batch._info.items() if k not in STALE}
    for name, amounts in (
        ("n_timesteps", [n for _, n in runs]),
        ("n_trials", [_n_trials(x) for x in sequences]),
    ):
        if name in columns:
            columns[name] = columns[name] + np.array(amounts)
    return models._changed(_info=columns, feature_names=batch.feature_names)


def _n_trials(x):
    return len(x) if isinstance(x, Trials) else 1


def _updated_model(model, x, kept, max_iter, tol):
    """Return one model after EM on its new recordings, and the number of frames."""
    recordings = [*x] if isinstance(x, Trials) else [x]
    size = model.transmats.shape[1]
    before = model._bare()
    old = Counts(kept * model.counts.states, kept * model.counts.transitions)
    # Every recording has one step fewer than frames.
    n_old = old.states.sum() - old.transitions.sum()
    starts = n_old * model.startprobs[0]
    n_frames = sum(map(len, recordings))
    now = before._changed(startprobs=_open_starts(before, starts, len(recordings)))
    last, states = np.full(size, np.inf), None
    for _ in range(max_iter):
        posts, start, moves = _expectation(now, recordings)
        fresh = np.concatenate(posts, axis=1).sum(axis=1)
        family, known = before.emission, states
        states = now.emission.updated_states(
            0, recordings, posts, family, old.states[0]
        )
        settled = np.abs(fresh - last).max() <= tol * n_frames
        if settled and _largest_change(known, states) <= tol:
            break
        last = fresh
        now = before._changed(
            emission=family.like(
                *(part[None] for part in states), observed=family.observed
            ),
            transmats=_normalized(old.transitions[0] + moves, before.transmats[0])[
                None
            ],
            startprobs=_normalized(starts + start, before.startprobs[0])[None],
        )
    counts = Counts(old.states + fresh, old.transitions + moves)
    weights = counts.states / counts.states.sum(axis=1, keepdims=True)
    return now._changed(weights=weights, counts=counts), n_frames


def _open_starts(model, starts, n_new):
    """Return the start probabilities that EM begins with.

    EM never changes a probability of 0, and after one recording all but one start
    probability are often 0. New recordings may therefore begin in any state that leads
    to an old first state; in a left-to-right chain, only in the old first states.
    """
    weights, chain = model.weights[0], model.transmats[0] > 0
    steps = shortest_path(chain, unweighted=True)[:, starts > 0]
    reaching = weights * np.isfinite(steps).any(axis=1)
    return _normalized(starts + n_new * reaching, model.startprobs[0])[None]


def _expectation(model, recordings):
    """Return state probabilities of frames, and expected starts and transitions."""
    start, transmat = chain_of(model, 0)
    size, used = model.transmats.shape[1], len(start)
    posts, starts, moves = [], np.zeros(size), np.zeros((size, size))
    for x in recordings:
        logs = model.emission.densities(0, x, start, transmat)
        post, steps = np.zeros((size, len(x))), np.zeros(transmat.shape)
        inner = np.empty(logs.shape)
        forward_backward(logs, np.array(start), transmat, inner, steps)
        post[:used] = inner
        posts.append(post)
        starts += post[:, 0]
        moves[:used, :used] += steps
    return posts, starts, moves


def _largest_change(states, others):
    """Return the largest change of a parameter, as a fraction of the largest one."""
    return max(
        np.abs(one - two).max() / max(np.abs(one).max(), np.finfo(float).tiny)
        for one, two in zip(states, others, strict=True)
    )


def _normalized(amounts, otherwise):
    """Return rows scaled to sum to one; rows of zeros come from `otherwise`."""
    totals = amounts.sum(axis=-1, keepdims=True)
    return np.where(totals > 0, amounts / np.where(totals > 0, totals, 1.0), otherwise)
