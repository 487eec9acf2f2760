"""Permutations within strata, and what many of them give, as matrix products."""

import numpy as np

from skawhmm.utils._parallel import Shared, completed
from skawhmm.utils._seeds import item_rng

# Permutations per task. The draws of a task depend on its number only.
BLOCK = 256

# A statistic below the observed one by this fraction is equal to it: the same
# arrangement may come up again, and its terms are then added in another order.
EQUAL = 1e-10

# The level of warnings.
LEVEL = 0.05


def permuted_rows(strata, n_permutations, rng):
    """Return permutations that leave every stratum in its place.

    Parameters
    ----------
    strata : ndarray of int of shape (n_units,)
        Strata of the units.

    n_permutations : int
        Number of permutations.

    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    rows : ndarray of int of shape (n_permutations, n_units)
        The unit in each place.
    """
    keys = rng.random((n_permutations, len(strata))) + strata
    rows = np.empty(keys.shape, dtype=np.int64)
    rows[:, np.argsort(strata, kind="stable")] = np.argsort(keys, axis=1)
    return rows


def permuted(function, arrays, strata, n_permutations, seed, *, n_jobs=None, verbose=0):
    """Return what a function gives for many permutations.

    Parameters
    ----------
    function : callable
        Takes arrays and permutations of shape (n, n_units); returns an array whose
        first axis is n.

    arrays : tuple of ndarray
        What the function needs.

    strata : ndarray of int of shape (n_units,)
        Strata of the units.

    n_permutations : int
        Number of permutations.

    seed : tuple of int
        Seed of the draws. The first permutations are the same however many there are.

    n_jobs, verbose : int
        Number of joblib workers, and whether to show a progress bar.

    Returns
    -------
    values : ndarray of shape (n_permutations, ...)
        What the function returns.
    """
    shared = Shared((function, arrays, strata, seed), sum(x.nbytes for x in arrays))
    starts = range(0, n_permutations, BLOCK)
    tasks = [(k, min(BLOCK, n_permutations - first)) for k, first in enumerate(starts)]
    parts = completed(
        _block, shared, tasks, n_jobs=n_jobs, verbose=verbose, label="permutations"
    )
    return np.concatenate(list(parts))


def _block(shared, number, size):
    function, arrays, strata, seed = shared.value
    rng = item_rng(*seed, number)
    # All blocks are drawn in full, so that a shorter one begins like a longer one.
    rows = permuted_rows(strata, BLOCK, rng)[:size]
    return function(arrays, rows)


def quadratic_forms(matrices, basis, rows):
    """Return the squared lengths of permuted directions under some matrices.

    Parameters
    ----------
    matrices : ndarray of shape (n_matrices, n_units, n_units)
        Symmetric matrices G.

    basis : ndarray of shape (n_units, n_directions)
        Directions q.

    rows : ndarray of int of shape (n_permutations, n_units)
        Permutations P.

    Returns
    -------
    forms : ndarray of shape (n_permutations, n_matrices, n_directions)
        The numbers ``(P q)' G (P q)``.
    """
    n_units, n_directions = basis.shape
    moved = basis[rows.T].reshape(n_units, -1)
    forms = [np.einsum("ix,ix->x", moved, matrix @ moved) for matrix in matrices]
    shape = len(matrices), len(rows), n_directions
    return np.moveaxis(np.reshape(forms, shape), 0, 1)


def pvalues(observed, null):
    """Return the fractions of permutations that are at least as extreme.

    Parameters
    ----------
    observed : ndarray of shape (...)
        Statistics; larger is more extreme.

    null : ndarray of shape (n_permutations, ...)
        The statistics of the permutations.

    Returns
    -------
    pvalues : ndarray of shape (...)
        ``(b + 1) / (m + 1)`` for b of m permutations: the observed arrangement is one
        of those that could have come up.
    """
    observed = np.asarray(observed)
    scale = np.abs(observed) + np.median(np.abs(null), axis=0)
    finite = np.isfinite(scale)
    reached = null >= observed - np.where(finite, EQUAL * np.where(finite, scale, 0), 0)
    return (reached.sum(axis=0) + 1) / (len(null) + 1)


def holm(pvalues):
    """Return p-values corrected for their number by the method of Holm.

    Parameters
    ----------
    pvalues : ndarray of shape (n_tests,)
        The p-values.

    Returns
    -------
    corrected : ndarray of shape (n_tests,)
        Corrected p-values, at most 1.
    """
    order = np.argsort(pvalues)
    factors = np.arange(len(pvalues), 0, -1)
    corrected = np.empty(len(pvalues))
    corrected[order] = np.maximum.accumulate(pvalues[order] * factors)
    return np.minimum(corrected, 1.0)
