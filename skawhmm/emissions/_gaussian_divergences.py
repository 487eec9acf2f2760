"""Kullback-Leibler divergences between Gaussian states, for lists of model pairs."""

import numpy as np
from numba import njit

from skawhmm.utils._compile import KERNEL

# A direction with less than this share of the largest variance is flat.
RANK_TOLERANCE = 1e-10


@njit(**KERNEL)
def gaussian_divergence(mean_a, root_a, mean_b, values_b, vectors_b, rank_a, log_det_a):
    """Kullback-Leibler divergence of one Gaussian from another.

    Parameters
    ----------
    mean_a, root_a : ndarray of shape (n_features,), (n_features, n_features)
        Mean and covariance factor of the first.

    mean_b, values_b, vectors_b : ndarray
        Mean, eigenvalues and eigenvectors (columns) of the second.

    rank_a, log_det_a : int and float
        Rank of the first and log determinant on its support.

    Returns
    -------
    divergence : float
        Infinite unless both have the same support.
    """
    size = mean_a.size
    flat = RANK_TOLERANCE * values_b.max()
    total, rank_b = -log_det_a, 0
    for c in range(size):
        gap = 0.0
        for f in range(size):
            gap += vectors_b[f, c] * (mean_a[f] - mean_b[f])
        spread = 0.0
        for k in range(size):
            part = 0.0
            for f in range(size):
                part += vectors_b[f, c] * root_a[f, k]
            spread += part * part
        if values_b[c] > flat:
            rank_b += 1
            total += (gap * gap + spread) / values_b[c] - 1 + np.log(values_b[c])
        else:
            scale = values_b.max() + np.sum(mean_a**2) + np.sum(mean_b**2)
            if gap * gap + spread > RANK_TOLERANCE * scale:
                return np.inf
    return 0.5 * max(total, 0.0) if rank_a == rank_b else np.inf


@njit(**KERNEL)
def state_divergences(means, roots, values, vectors, a, b, out):
    """Fill `out` with the divergences of all states of model a from those of b."""
    for i in range(out.shape[0]):
        flat = RANK_TOLERANCE * values[a, i].max()
        rank, log_det = 0, 0.0
        for c in range(values.shape[2]):
            if values[a, i, c] > flat:
                rank += 1
                log_det += np.log(values[a, i, c])
        for j in range(out.shape[1]):
            out[i, j] = gaussian_divergence(
                means[a, i],
                roots[a, i],
                means[b, j],
                values[b, j],
                vectors[b, j],
                rank,
                log_det,
            )


@njit(**KERNEL)
def gaussian_divergences(means, roots, values, vectors, index_a, index_b):
    """Divergences between the states of model pairs; see `state_divergences`.

    Parameters
    ----------
    means, roots, values, vectors : ndarray with a leading axis of models and states
        Means, covariance factors, and eigenvalues and eigenvectors of covariances.

    index_a, index_b : ndarray of shape (n_pairs,)
        The models of each pair.

    Returns
    -------
    divergences : ndarray of shape (n_pairs, n_components, n_components)
        Of the states of a from those of b.
    """
    size = means.shape[1]
    divergences = np.empty((index_a.size, size, size))
    for n in range(index_a.size):
        state_divergences(
            means, roots, values, vectors, index_a[n], index_b[n], divergences[n]
        )
    return divergences
