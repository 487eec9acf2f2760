r"""Test of equal spread of groups, by permutation of deviations from their centres.

The statistic is the F of the analysis of variance of the distances of units to the
centres of their groups (Anderson 2006). Under the hypothesis, groups may differ in
their centres but not in the spread around them. Units are then not exchangeable, but
their deviations from the centres are. Three things would break the level of the test:

- *Permuted radii.* A centre is estimated from the units of its group, which are all
  pulled towards it, the more the fewer they are. Permutations therefore move the
  deviations themselves, as vectors, and compute centres and radii again.
- *Deviations from means.* One outlier moves the mean of a small group, and all other
  deviations of the group with it. Permuted deviations are therefore taken from the
  spatial median of each group, which an outlier hardly moves.
- *Strata.* Units are permuted within strata, so deviations must not contain effects of
  strata and covariates, which are removed first. If every stratum holds one unit of
  each group, such as before and after, deviations within strata mirror each other, so
  the spread of whole groups is compared instead.

All vectors are given by their inner products, which follow from squared distances.
"""

import numpy as np

from skawhmm.groups._permutations import f_ratios, permuted, pvalues
from skawhmm.groups._results import PermutationTest

# Steps of the iteration for a spatial median, and the fraction of the mean distance
# below which a unit counts as the median itself.
MEDIAN_STEPS = 50
AT_MEDIAN = 1e-6


def dispersion_test(matrix, design, n_permutations, seed, *, n_jobs=None, verbose=0):
    """Return the test of equal mean distance to the centres of the groups.

    Parameters
    ----------
    matrix : ndarray of shape (n_units, n_units)
        Squared distances, times -1/2.

    design : Design
        The comparison.

    n_permutations : int
        Number of permutations.

    seed : tuple of int
        Their seed.

    n_jobs, verbose : int
        Workers, and whether to show a progress bar.

    Returns
    -------
    test : PermutationTest or None
        The test; None if no stratum has more than two units, and pairs are not
        complete.
    """
    located = design
    if design.has_complete_blocks:
        located = design._replace(strata=np.zeros_like(design.strata))
    elif np.bincount(design.strata).max() <= 2:
        return None
    effect, blocks, nuisance = located.bases()
    basis = np.concatenate([effect, nuisance], axis=1)
    unit = np.eye(len(matrix))
    between = unit - blocks @ blocks.T
    rest = between - basis @ basis.T
    deviations = rest @ matrix @ rest
    # Permutations within strata leave the means of strata unchanged.
    moved = between @ (unit - _median_weights(deviations, design.codes))
    plain = design._replace(covariates=design.covariates[:, :0])
    groups, strata, _ = plain.bases()
    arrays = basis, groups, strata
    observed = _spread_ratios((deviations, *arrays), np.arange(len(matrix))[None])[0]
    null = permuted(
        _spread_ratios,
        (moved @ deviations @ moved.T, *arrays),
        design.strata,
        n_permutations,
        seed,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    chance = float(pvalues(observed, null))
    return PermutationTest(float(observed), chance, np.nan, null)


def _spread_ratios(arrays, rows):
    """Return the F of the distances of permuted deviations to the centres of groups."""
    matrix, basis, groups, strata = arrays
    radii = permuted_radii(matrix, basis, rows)
    radii -= radii @ strata @ strata.T
    totals = np.sum(radii**2, axis=1)
    forms = np.einsum("ku,kue->ke", radii, groups[rows]) ** 2
    n_effects = groups.shape[1]
    n_left = len(matrix) - n_effects - strata.shape[1]
    return f_ratios(forms, totals, n_effects, n_left)[0]


def permuted_radii(matrix, basis, rows):
    """Return the distances of units to the centres that a permuted basis fits to them.

    Parameters
    ----------
    matrix : ndarray of shape (n_units, n_units)
        Inner products of deviations.

    basis : ndarray of shape (n_units, n_directions)
        Orthonormal basis of the fitted space.

    rows : ndarray of int of shape (n_permutations, n_units)
        The row of the basis assigned to each unit.

    Returns
    -------
    radii : ndarray of shape (n_permutations, n_units)
        Lengths of the residuals.
    """
    n_units, n_directions = basis.shape
    moved = basis[rows]
    flat = np.moveaxis(moved, 1, 0).reshape(n_units, -1)
    products = (matrix @ flat).reshape(n_units, len(rows), n_directions)
    products = np.moveaxis(products, 0, 1)
    fitted = moved @ (moved.swapaxes(1, 2) @ products)
    squared = np.diagonal(matrix) + np.sum(moved * (fitted - 2 * products), axis=2)
    # With distances that are not Euclidean, the distance to a centre can be imaginary;
    # its absolute value is taken, as in the R package vegan.
    return np.sqrt(np.abs(squared))


def _median_weights(matrix, codes):
    """Return the weights that make the spatial median of the group of each unit."""
    weights = np.zeros(matrix.shape)
    for g in np.unique(codes):
        own = np.flatnonzero(codes == g)
        weights[np.ix_(own, own)] = spatial_median(matrix[np.ix_(own, own)])
    return weights


def spatial_median(matrix):
    """Return weights of vectors, given by inner products, that make their median.

    Parameters
    ----------
    matrix : ndarray of shape (n_vectors, n_vectors)
        Inner products.

    Returns
    -------
    weights : ndarray of shape (n_vectors,)
        Weights of the point with the least sum of distances, by Weiszfeld's iteration.
    """
    weights = np.full(len(matrix), 1 / len(matrix))
    for _ in range(MEDIAN_STEPS):
        inner = matrix @ weights
        squared = np.diagonal(matrix) - 2 * inner + weights @ inner
        distances = np.sqrt(np.abs(squared))
        scale = distances.mean()
        if scale == 0:
            break
        pull = 1 / np.maximum(distances, AT_MEDIAN * scale)
        weights = pull / pull.sum()
    return weights
