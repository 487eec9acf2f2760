"""Models that go on learning: EM on new frames, beside what older ones have shown."""

import numpy as np

from skawhmm.models._causal import chain_of
from skawhmm.models._counts import Counts
from skawhmm.numerics._forward_backward import forward_backward
from skawhmm.sequences._trials import Trials

# Info columns that say how a fit went, which no longer holds.
STALE = ("converged", "n_iter", "log_likelihood")


def updated_models(batch, sequences, *, forgetting, max_iter, tol):
    """Return models after EM on new sequences, one per model.

    The older frames count as their expected counts and the parameters that follow from
    them: in the M step, each state is the mixture of what it was, with its count, and
    of what the new frames make of it. For families whose parameters are expectations
    this is the M step on the sum of the sufficient statistics.

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
        EM stops when no expected count changes by more than this, per frame.

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
    # Every recording has one step less than frames.
    n_old = old.states.sum() - old.transitions.sum()
    starts = n_old * model.startprobs[0]
    n_frames = sum(map(len, recordings))
    now, last = before, np.full(size, np.inf)
    for _ in range(max_iter):
        posts, start, moves = _expectation(now, recordings)
        fresh = np.concatenate(posts, axis=1).sum(axis=1)
        if np.abs(fresh - last).max() <= tol * n_frames:
            break
        last = fresh
        states = now.emission.weighted_states(0, recordings, posts)
        now = before._changed(
            emission=_mixed(before, states, old.states[0], fresh),
            transmats=_normalized(old.transitions[0] + moves, before.transmats[0])[
                None
            ],
            startprobs=_normalized(starts + start, before.startprobs[0])[None],
        )
    counts = Counts(old.states + fresh, old.transitions + moves)
    weights = counts.states / counts.states.sum(axis=1, keepdims=True)
    return now._changed(weights=weights, counts=counts), n_frames


def _expectation(model, recordings):
    """Return state probabilities of frames, expected starts and transitions."""
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


def _mixed(before, states, old, fresh):
    """Return states that are mixtures of those before and those of new frames."""
    family = before.emission
    both = [
        np.concatenate([array, new[None]], axis=1)
        for array, new in zip(family.parameters.values(), states, strict=True)
    ]
    total = old + fresh
    # A state that neither old nor new frames visit stays as it is.
    fraction = np.where(total > 0, old / np.where(total > 0, total, 1.0), 1.0)
    weights = np.hstack([np.diag(fraction), np.diag(1 - fraction)])
    return family.like(*both, observed=family.observed).merged(weights[None])


def _normalized(amounts, otherwise):
    """Return rows that sum to one; those without any amount are the other ones."""
    totals = amounts.sum(axis=-1, keepdims=True)
    return np.where(totals > 0, amounts / np.where(totals > 0, totals, 1.0), otherwise)
