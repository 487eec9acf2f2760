"""States that a chain never enters."""

import numpy as np

# A state with fewer expected frames than this is empty: it gets weight 0.
DEAD_COUNT = 1e-6


def without_empty_states(model, counts):
    """Return models in which no transition leads to states without expected frames.

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
    # A row that led only to empty states now leads to the start states.
    stuck = transmat.sum(axis=-1, keepdims=True) == 0
    transmat = np.where(stuck, startprob[..., None, :], transmat)
    startprob = startprob / startprob.sum(axis=-1, keepdims=True)
    transmat = transmat / transmat.sum(axis=-1, keepdims=True)
    return model._replace(
        startprob=np.where(changed, startprob, model.startprob),
        transmat=np.where(changed[..., None], transmat, model.transmat),
    )
