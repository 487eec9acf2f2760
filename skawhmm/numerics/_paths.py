"""Paths of states of one chain: possible ones, the best, random ones; empty states.

Log densities have shape (n_components, n_timesteps); minus infinity marks a frame that
a state cannot emit. Nothing here knows what the emissions are.
"""

import numpy as np
from numba import njit

from skawhmm.utils._compile import KERNEL

# A state with fewer expected frames than this is empty: weight 0, never entered.
DEAD_COUNT = 1e-6


@njit(**KERNEL)
def keep_least_rank(logs, ranks, startprob, transmat):
    """Drop, frame by frame, reachable states that a flatter one outweighs.

    If the supports of states differ in dimension, a frame on the support of lowest
    dimension has infinitely more density there. The log densities are changed in place.
    """
    n_components, n_timesteps = logs.shape
    alive = startprob > 0
    for t in range(n_timesteps):
        least = n_components * 0 + ranks.max()
        for j in range(n_components):
            if alive[j] and logs[j, t] > -np.inf:
                least = min(least, ranks[j])
        for j in range(n_components):
            if not alive[j] or ranks[j] > least:
                logs[j, t] = -np.inf
        following = np.zeros(n_components, np.bool_)
        for i in range(n_components):
            if logs[i, t] > -np.inf:
                for j in range(n_components):
                    following[j] |= transmat[i, j] > 0
        alive = following


@njit(**KERNEL)
def best_path(logs, startprob, transmat, path):
    """Fill the most probable path of states; returns its log probability."""
    n_components, n_timesteps = logs.shape
    log_start, log_transmat = np.log(startprob), np.log(transmat)
    back = np.zeros((n_timesteps, n_components), np.int64)
    score, following = log_start + logs[:, 0], np.empty(n_components)
    for t in range(1, n_timesteps):
        for j in range(n_components):
            best, origin = -np.inf, 0
            for i in range(n_components):
                value = score[i] + log_transmat[i, j]
                if value > best:
                    best, origin = value, i
            following[j] = best + logs[j, t]
            back[t, j] = origin
        score[:] = following
    path[n_timesteps - 1] = np.argmax(score)
    for t in range(n_timesteps - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return score.max()


@njit(**KERNEL)
def random_path(startprob, transmat, uniforms, path):
    """Fill a path of states drawn from the chain by inversion."""
    n_components = startprob.shape[0]
    row = startprob
    for t in range(path.shape[0]):
        level, state = uniforms[t] * row.sum(), -1
        for j in range(n_components):
            if row[j] > 0:
                state = j
                level -= row[j]
                if level < 0:
                    break
        path[t] = state
        row = transmat[state]


def without_empty_states(model, counts):
    """Return models with states of no expected frames cut off from the others.

    Parameters
    ----------
    model : namedtuple
        Has `startprob` and `transmat`, which may have leading axes.

    counts : ndarray of shape (..., n_components)
        Expected frames per state.
    """
    dead = counts < DEAD_COUNT
    dead &= ~dead.all(axis=-1, keepdims=True)
    changed = dead.any(axis=-1)[..., None]
    startprob = np.where(dead, 0.0, model.startprob)
    transmat = np.where(dead[..., None, :], 0.0, model.transmat)
    # A row that led only to empty states leads to the states where the chain may start.
    stuck = transmat.sum(axis=-1, keepdims=True) == 0
    transmat = np.where(stuck, startprob[..., None, :], transmat)
    startprob = startprob / startprob.sum(axis=-1, keepdims=True)
    transmat = transmat / transmat.sum(axis=-1, keepdims=True)
    return model._replace(
        startprob=np.where(changed, startprob, model.startprob),
        transmat=np.where(changed[..., None], transmat, model.transmat),
    )
