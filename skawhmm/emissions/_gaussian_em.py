"""EM of Gaussian states, many models at a time.

The covariances decide what is computed: three axes are diagonal (or spherical) states
of a stack of models, four are full (or tied) ones.
"""

from collections import namedtuple

import numpy as np

from skawhmm.emissions._gaussian_em_kernels import composed, fill_updates, is_below
from skawhmm.numerics._lapack import in_batches

# Floor of eigenvalues, relative to the data's: keeps factors finite at reg_covar=0.
LEAST_FLOOR = 1e-12

# Least eigenvalue that a matrix can hold, in units of the largest one.
DIGITS = 1e-14

Moments = namedtuple("Moments", ["counts", "firsts", "seconds"])
Moments.__doc__ = "Expected moments of the frames of each state, about its mean."


def update_states(moments, rows, states, prior, constraints, active):
    """M step of the states of several models, in place."""
    relevance, floor, is_pooled = constraints
    low = fill_updates(
        moments, rows, states, prior, relevance, floor, is_pooled, active
    )
    if low.size > 0:
        _, covars = states
        cells = np.unravel_index(low, covars.shape[:2])
        covars[cells] = recomposed(covars[cells], floor)


def lifted(covars, floor):
    """Return covariances with eigenvalues below the floor lifted to it.

    Among matrices that are at least floor * I these have the greatest likelihood, so
    this is still an M step, and the likelihood never falls.
    """
    n_matrices = int(np.prod(covars.shape[:-2]))
    matrices = np.array(covars, order="C").reshape(n_matrices, *covars.shape[-2:])
    low = is_below(matrices, floor)
    if low.any():
        matrices[low] = recomposed(matrices[low], floor)
    return matrices.reshape(covars.shape)


def recomposed(covars, floor):
    """Return matrices rebuilt from their eigenvectors and lifted eigenvalues."""
    values, vectors = in_batches(np.linalg.eigh, covars)
    # Relative to the largest one, a smaller eigenvalue is lost in rounding.
    least = np.maximum(floor, DIGITS * values[..., -1:])
    return composed(np.maximum(values, least), vectors)
