"""Permutations within strata, and statistics of many of them as matrix products."""

from math import comb, factorial, prod

import numpy as np

from skawhmm.sequences._forms import warn_caller
from skawhmm.utils._parallel import completed
from skawhmm.utils._seeds import item_rng

# Number of permutations per task. The draws of a task depend only on its index.
BLOCK = 256

# A statistic below the observed one by this fraction is equal to it: the same
# arrangement may come up again, and its terms are then added in another order.
EQUAL = 1e-10

# The level of warnings.
LEVEL = 0.05


def n_arrangements(counts):
    """Return the number of arrangements of labels within strata.

    Parameters
    ----------
    counts : ndarray of int of shape (n_strata, n_groups)
        How many labels of each group a stratum has.

    Returns
    -------
    n_arrangements : int
        The number of different arrangements.
    """
    return prod(
        comb(sum(row[k:]), row[k]) for row in counts.tolist() for k in range(len(row))
    )


def n_partitions(counts):
    """Return the number of arrangements, counting swapped groups as one arrangement."""
    columns = np.unique(counts, axis=1, return_counts=True)[1]
    return n_arrangements(counts) // prod(map(factorial, columns.tolist()))


def warn_of_few_permutations(n_permutations, n_tests=1):
    """Warn if there are too few permutations for any p-value to reach the level."""
    needed = int(np.ceil(n_tests / LEVEL)) - 1
    if n_permutations < needed:
        warn_caller(
            f"n_permutations={n_permutations} cannot give a p-value of {LEVEL} or less"
            f"{' after correction' if n_tests > 1 else ''}: at least {needed} "
            "permutations are needed.",
        )


def warn_of_few_arrangements(counts):
    """Warn if labels have too few arrangements for any p-value to reach the level."""
    n_different = n_partitions(counts)
    # The integer may exceed the range of floats, so it is only compared.
    if n_different < 1 / LEVEL:
        warn_caller(
            f"There are only {n_different} different arrangements of the labels, so "
            f"that no p-value can be below {1 / n_different:.3g}.",
        )


def permuted_rows(strata, n_permutations, rng):
    """Return permutations of rows within strata."""
    keys = rng.random((n_permutations, len(strata))) + strata
    rows = np.empty(keys.shape, dtype=np.int64)
    rows[:, np.argsort(strata, kind="stable")] = np.argsort(keys, axis=1)
    return rows


def permuted(function, arrays, strata, n_permutations, seed, *, n_jobs=None, verbose=0):
    """Return the values of a function for many permutations."""
    data = function, arrays, strata, seed
    starts = range(0, n_permutations, BLOCK)
    tasks = [(k, min(BLOCK, n_permutations - first)) for k, first in enumerate(starts)]
    parts = completed(
        _block, data, tasks, n_jobs=n_jobs, verbose=verbose, label="permutations"
    )
    return np.concatenate(list(parts))


def _block(data, number, size):
    function, arrays, strata, seed = data
    rng = item_rng(*seed, number)
    # All blocks are drawn in full, so a shorter block is the beginning of a longer one.
    rows = permuted_rows(strata, BLOCK, rng)[:size]
    return function(arrays, rows)


def quadratic_forms(matrices, basis, rows):
    """Return the squared lengths of permuted directions under some matrices."""
    n_units, n_directions = basis.shape
    moved = basis[rows.T].reshape(n_units, -1)
    forms = [np.einsum("ix,ix->x", moved, matrix @ moved) for matrix in matrices]
    shape = len(matrices), len(rows), n_directions
    return np.moveaxis(np.reshape(forms, shape), 0, 1)


def f_ratios(forms, totals, n_effects, n_left):
    """Return F ratios, and fractions that order them; 0 if nothing varies.

    Parameters
    ----------
    forms : ndarray of shape (..., n_directions)
        Sums of squares of the effects, and of nuisance directions.

    totals : ndarray of shape (...)
        Total sums of squares.

    n_effects, n_left : int
        Degrees of freedom.

    Returns
    -------
    ratios : ndarray of shape (...)
        The ratios; infinite if nothing is left.

    fractions : ndarray of shape (...)
        Effects as a fraction of effects and residual. With distances that are not
        Euclidean, the residual can be negative if groups are far apart. The ratio is
        then negative, while the fraction exceeds 1 and so keeps increasing with the
        difference.
    """
    effects = forms[..., :n_effects].sum(axis=-1)
    left = totals - forms.sum(axis=-1)
    varied = (totals > 0) & (effects + left > 0)
    some = varied & (left > EQUAL * totals)
    ratios = (effects / n_effects) / np.where(some, left / n_left, 1)
    ratios = np.where(some, ratios, np.where(varied, np.inf, 0.0))
    fractions = effects / np.where(varied, effects + left, 1)
    return ratios, np.where(varied, fractions, 0.0)


def pvalues(observed, null):
    """Return the fractions of permutations that are at least as extreme."""
    observed = np.asarray(observed)
    scale = np.abs(observed) + np.median(np.abs(null), axis=0)
    finite = np.isfinite(scale)
    reached = null >= observed - np.where(finite, EQUAL * np.where(finite, scale, 0), 0)
    return (reached.sum(axis=0) + 1) / (len(null) + 1)


def holm(pvalues):
    """Return p-values corrected for their number by the method of Holm."""
    order = np.argsort(pvalues)
    factors = np.arange(len(pvalues), 0, -1)
    corrected = np.empty(len(pvalues))
    corrected[order] = np.maximum.accumulate(pvalues[order] * factors)
    return np.minimum(corrected, 1.0)
