"""Stationary laws and covariance roots, for stacks of models."""

import numpy as np
from numba import njit

from skawhmm.utils._compile import KERNEL


def stationary_law(transmats, startprobs):
    r"""Share of time that each chain spends in each state in the long run.

    The law is found by the elimination of Grassmann, Taksar and Heyman, which never
    subtracts and so keeps full relative accuracy for nearly reducible chains. A chain
    with several closed classes has no unique law: its start probabilities then decide
    how much weight each class receives (the Cesàro limit of :math:`s T^t`).

    Parameters
    ----------
    transmats : ndarray of shape (n_models, n_components, n_components)
        Transition matrices :math:`T`, rows summing to one.

    startprobs : ndarray of shape (n_models, n_components)
        Start probabilities :math:`s`; used only if there are several closed classes.

    Returns
    -------
    weights : ndarray of shape (n_models, n_components)
        The laws :math:`\pi`, with :math:`\pi T = \pi`.
    """
    weights = np.empty(startprobs.shape)
    _stationary_laws(np.ascontiguousarray(transmats), startprobs, weights)
    return weights


@njit(**KERNEL)
def _stationary_laws(transmats, startprobs, weights):
    for n in range(transmats.shape[0]):
        chain, mass = transmats[n].copy(), startprobs[n].copy()
        closed = _closed_classes(chain)
        _eliminate_transient(chain, mass, closed)
        weights[n] = _law_of_closed_classes(chain, mass, closed)


@njit(**KERNEL)
def _closed_classes(chain):
    """Name each state by the first state of its closed class; -1 if transient."""
    size = chain.shape[0]
    reach = chain > 0
    for k in range(size):
        reach[k, k] = True
    for k in range(size):
        for i in range(size):
            if reach[i, k]:
                reach[i] |= reach[k]
    closed = np.full(size, -1)
    for i in range(size):
        returns, first = True, size
        for j in range(size):
            if reach[i, j]:
                returns &= reach[j, i]
                first = min(first, j)
        if returns:
            closed[i] = first
    return closed


@njit(**KERNEL)
def _eliminate_transient(chain, mass, closed):
    """Move the start mass of transient states to the classes they end in."""
    size = chain.shape[0]
    for k in range(size):
        if closed[k] >= 0:
            continue
        leaving = 0.0
        for j in range(size):
            if j != k:
                leaving += chain[k, j]
        for j in range(size):
            if j == k:
                continue
            share = chain[k, j] / leaving if leaving > 0 else 0.0
            mass[j] += mass[k] * share
            for i in range(size):
                if i != k:
                    chain[i, j] += chain[i, k] * share
        mass[k] = 0.0
        chain[:, k] = 0.0


@njit(**KERNEL)
def _law_of_closed_classes(chain, mass, closed):
    size = chain.shape[0]
    law = np.zeros(size)
    total = mass.sum()
    for first in range(size):
        if closed[first] != first:
            continue
        states = np.flatnonzero(closed == first)
        share = mass[states].sum() / total
        if share == 0:
            continue
        block = np.empty((states.size, states.size))
        for i in range(states.size):
            for j in range(states.size):
                block[i, j] = chain[states[i], states[j]]
        law[states] = share * _law_of_class(block)
    return law


@njit(**KERNEL)
def _law_of_class(block):
    size = block.shape[0]
    leaving = np.ones(size)
    for k in range(size - 1, 0, -1):
        leaving[k] = block[k, :k].sum()
        for j in range(k):
            share = block[k, j] / leaving[k] if leaving[k] > 0 else 0.0
            for i in range(k):
                block[i, j] += block[i, k] * share
    law = np.ones(size)
    for k in range(1, size):
        entering = 0.0
        for i in range(k):
            entering += law[i] * block[i, k]
        # The largest weight stays one: ratios of tiny probabilities would overflow.
        if entering > leaving[k]:
            law[:k] *= leaving[k] / entering
        else:
            law[k] = entering / leaving[k] if leaving[k] > 0 else 0.0
    return law / law.sum()
