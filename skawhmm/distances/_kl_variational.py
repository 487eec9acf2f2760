r"""Variational upper bound of the Kullback-Leibler rate between hidden Markov models.

The bound of Hershey, Olsen and Rennie couples the states of the two chains: with
:math:`K_{ij}` the divergence between the emissions of states i and j,

.. math::
    V_{ij} \leftarrow K_{ij} + F_V(T_a[i], T_b[j]) , \qquad
    F_V(\pi, \omega) = \min_{\phi, \psi}
        \sum_{kl} \phi_{kl} \Bigl(\log \frac{\phi_{kl}}{\psi_{kl}} + V_{kl}\Bigr) ,

where :math:`\phi` has row sums :math:`\pi` and :math:`\psi` column sums :math:`\omega`.
The rate is what V grows by a step. It needs no sample.
"""

import numpy as np
from numba import njit

from skawhmm.utils._compile import KERNEL

# Growth of V that is even among states to this share is taken as the rate; of equal
# models it is up to twice this, and taken as 0.
RATE_TOLERANCE = 1e-9
MAX_STEPS = 2000

# Alternating updates of phi and psi stop when the minimum falls by less than this.
INNER_TOLERANCE = 1e-11
MAX_UPDATES = 500


@njit(**KERNEL)
def variational_rates(weights, transmats, divergences, index_a, index_b):
    """Upper bounds of the divergence rates of models a from models b.

    Parameters
    ----------
    weights : ndarray of shape (n_models, n_components)
        State probabilities.

    transmats : ndarray of shape (n_models, n_components, n_components)
        Transition matrices.

    divergences : ndarray of shape (n_pairs, n_components, n_components)
        Divergences of the states of a from those of b.

    index_a, index_b : ndarray of shape (n_pairs,)
        The models of each pair.

    Returns
    -------
    rates : ndarray of shape (n_pairs,)
        The bounds, infinite where the supports of the models differ.
    """
    size = transmats.shape[1]
    rates = np.empty(index_a.size)
    psi = np.empty((size, size, size, size))
    for n in range(index_a.size):
        a, b = index_a[n], index_b[n]
        rates[n] = _rate(
            weights[a], transmats[a], weights[b], transmats[b], divergences[n], psi
        )
    return rates


@njit(**KERNEL)
def _reached(weights, chain):
    """Whether a path may come to each state; padding is never reached."""
    reached = weights > 0
    for _ in range(weights.size):
        for i in range(weights.size):
            if reached[i]:
                for j in range(weights.size):
                    reached[j] |= chain[i, j] > 0
    return reached


@njit(**KERNEL)
def _rate(weights_a, chain_a, weights_b, chain_b, divergence, psi):
    """Grow V until it grows evenly.

    Each step goes half way only, so that periodic chains settle too; the growth is
    measured over a whole step. Where chains fall into parts that grow unevenly, the
    weights say how much of each part there is.
    """
    size = divergence.shape[0]
    pairs = np.outer(_reached(weights_a, chain_a), _reached(weights_b, chain_b))
    for i in range(size):
        for j in range(size):
            psi[i, j] = np.outer(chain_a[i], chain_b[j])
    value = np.where(pairs, divergence, np.inf)
    if value.min() == np.inf:
        return np.inf
    fresh = value.copy()
    for _ in range(MAX_STEPS):
        # Only differences of V matter: near 0 it keeps its digits.
        value = 0.5 * (value + fresh) - fresh.min()
        low, high = np.inf, -np.inf
        for i in range(size):
            for j in range(size):
                if not pairs[i, j]:
                    continue
                fresh[i, j] = divergence[i, j] + _coupled_divergence(
                    chain_a[i], chain_b[j], value, psi[i, j]
                )
                if fresh[i, j] < np.inf:
                    growth = fresh[i, j] - value[i, j]
                    low, high = min(low, growth), max(high, growth)
        if high == -np.inf:
            return np.inf
        if high - low <= RATE_TOLERANCE * max(abs(high), 1.0):
            break
    start = np.outer(weights_a, weights_b)
    after = _coupled_divergence(weights_a, weights_b, fresh, start.copy())
    if after == np.inf:
        return np.inf
    before = _coupled_divergence(weights_a, weights_b, value, start)
    return after - before if after - before > 2 * RATE_TOLERANCE else 0.0


@njit(**KERNEL)
def _coupled_divergence(row_a, row_b, value, psi):
    """Minimum F of the coupled divergence of two rows; `psi` starts and ends there."""
    size = row_a.size
    before = np.inf
    for _ in range(MAX_UPDATES):
        total = 0.0
        for k in range(size):
            if row_a[k] <= 0:
                psi[k] = 0.0
                continue
            least = np.inf
            for m in range(size):
                if psi[k, m] > 0:
                    least = min(least, value[k, m])
            if least == np.inf:
                return np.inf
            mass = 0.0
            for m in range(size):
                if psi[k, m] > 0:
                    # The best phi given psi stands in its place.
                    psi[k, m] *= np.exp(least - value[k, m])
                    mass += psi[k, m]
            total += row_a[k] * (np.log(row_a[k] / mass) + least)
            for m in range(size):
                psi[k, m] *= row_a[k] / mass
        for m in range(size):
            share = psi[:, m].sum()
            for k in range(size):
                psi[k, m] *= row_b[m] / share if share > 0 else 0.0
        if before - total <= INNER_TOLERANCE * max(abs(total), 1.0):
            break
        before = total
    return total
