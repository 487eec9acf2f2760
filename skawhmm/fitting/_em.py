"""The chain's part of EM: start and transition probabilities; compiled."""

import numpy as np
from numba import njit

from skawhmm.utils._compile import KERNEL

# A state with less than this many expected moves keeps its row.
EMPTY_COUNT = 1e-8
# Transition probabilities below this are 0: their powers would leave the range.
LEAST_TRANSITION = 1e-100


@njit(**KERNEL)
def update_chain(start, moves, prior_start, prior_moves, n_mix, relevance, chain):
    """Start and transition probabilities of the M step, in place.

    Parameters
    ----------
    start, moves : ndarray of shape (n_components,) and (n_components, n_components)
        Expected starts and transitions.

    prior_start, prior_moves : ndarray of the same shapes
        The chain to shrink to.

    n_mix : int
        Gaussians per state, which are entered in fixed proportions.

    relevance : float
        Weight of the prior, in starts and steps per state.

    chain : tuple of ndarray
        Start and transition probabilities; changed.
    """
    startprob, transmat = chain
    n_components = startprob.shape[0]
    # The start is the last row.
    counts = np.empty((n_components + 1, n_components))
    for j in range(n_components):
        counts[-1, j] = start[j] + relevance * prior_start[j]
        for i in range(n_components):
            counts[i, j] = moves[i, j] + relevance * prior_moves[i, j]
    if n_mix > 1:
        tie_mixtures(counts, n_mix)
    for i in range(n_components + 1):
        total, kept = 0.0, 0.0
        for j in range(n_components):
            total += counts[i, j]
        for j in range(n_components):
            if i < n_components and total < EMPTY_COUNT:
                counts[i, j] = transmat[i, j]
            else:
                counts[i, j] /= total
            if counts[i, j] < LEAST_TRANSITION:
                counts[i, j] = 0.0
            kept += counts[i, j]
        for j in range(n_components):
            if i < n_components:
                transmat[i, j] = counts[i, j] / kept
            else:
                startprob[j] = counts[i, j] / kept


@njit(**KERNEL)
def tie_mixtures(counts, n_mix):
    """Change counts to what they are if components are entered in fixed proportions.

    The rows are those of the components, and the start.
    """
    n_components = counts.shape[1]
    portions = np.zeros(n_components)
    for j in range(n_components):
        for i in range(n_components + 1):
            portions[j] += counts[i, j]
    for first in range(0, n_components, n_mix):
        total = 0.0
        for j in range(first, first + n_mix):
            total += portions[j]
        for j in range(first, first + n_mix):
            portions[j] = portions[j] / total if total > 0 else 1 / n_mix
    for top in range(0, n_components + 1, n_mix):
        bottom = min(top + n_mix, n_components + 1)
        for first in range(0, n_components, n_mix):
            total = 0.0
            for i in range(top, bottom):
                for j in range(first, first + n_mix):
                    total += counts[i, j]
            for i in range(top, bottom):
                for j in range(first, first + n_mix):
                    counts[i, j] = total * portions[j]


@njit(**KERNEL)
def update_chains(expected, rows, chains, priors, n_mix, relevance, active):
    """`update_chain` of several models.

    Parameters
    ----------
    expected : tuple of ndarray
        Starts and moves, with a leading axis.

    rows, active : ndarray of int of shape (n_active,)
        Which rows of them belong to which models.

    chains, priors : tuple of ndarray
        Start and transition probabilities of a stack of models, changed in place; and
        what they shrink to, one for each or one for all.

    n_mix, relevance : int and float
        As in `update_chain`.
    """
    for n in range(rows.shape[0]):
        m = active[n]
        prior = min(m, priors[0].shape[0] - 1)
        update_chain(
            expected[0][rows[n]],
            expected[1][rows[n]],
            priors[0][prior],
            priors[1][prior],
            n_mix,
            relevance,
            (chains[0][m], chains[1][m]),
        )


def chain_log_priors(model, prior, active):
    """Return the logs of the priors of chains, per step of relevance.

    Parameters
    ----------
    model, prior : Model
        Stacks of models: where the prior is taken; its chain, one for each or for all.

    active : ndarray of int of shape (n_active,)
        Which models.

    Returns
    -------
    values : ndarray of shape (n_active,)
        One per model, up to a constant.
    """
    values = np.zeros(len(active))
    for part in ("startprob", "transmat"):
        law, shares = getattr(model, part), getattr(prior, part)
        logs = np.log(np.maximum(law[active], LEAST_TRANSITION))
        shares = shares[np.minimum(active, len(shares) - 1)]
        terms = np.where(shares > 0, shares * logs, 0.0)
        values += terms.sum(axis=tuple(range(1, terms.ndim)))
    return values
