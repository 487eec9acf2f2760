r"""Ridge regression whose penalty is chosen by exact leave-fold-out: arrays only.

With features :math:`z_i`, targets :math:`y_i` and weights :math:`c_i`, the ridge is the
minimum of

.. math::
    \sum_i c_i \lVert y_i - z_i^T \beta - b \rVert^2 + \alpha \lVert \beta \rVert^2 .

The intercept :math:`b` is not penalized, so a shift of the features changes nothing. If
the rows of a fold are left out, the predictions for them follow from the solution for
all rows (dual) or from sums over the other rows (primal); both are those of a fit
without the fold, up to rounding, with the weights :math:`c_i` as they are.
"""

from typing import Any, NamedTuple

import numpy as np

from skawhmm.numerics._lapack import in_batches

# Share of the squared error in the score of a classifier: it breaks ties of accuracy.
ERROR_SHARE = 1e-2


class Ridge(NamedTuple):
    """A ridge with the best of several penalties.

    `coef` has one row per training sequence (dual) or feature (primal), `held_out` one
    row per training sequence: the predictions of fits without its fold.
    """

    score: float
    alpha: float
    coef: np.ndarray
    intercept: np.ndarray
    held_out: np.ndarray


def weighted_accuracy(predicted, targets, weights):
    """Share of rows whose largest entry is that of the target, less a bit of the error.

    Parameters
    ----------
    predicted, targets : ndarray of shape (n, n_classes)
        Decisions, and 1 for the class of a row and -1 for the others.

    weights : ndarray of shape (n,)
        Weights of the rows. If they balance the classes, the share is the balanced
        accuracy.
    """
    hits = predicted.argmax(axis=1) == targets.argmax(axis=1)
    error = ((predicted - targets) ** 2).mean(axis=1)
    return float(weights @ (hits - ERROR_SHARE * error) / weights.sum())


def explained_variance(predicted, targets, weights):
    """Share of the squared deviations from the mean that predictions explain.

    The parameters are those of `weighted_accuracy`, with any numbers as targets.
    """
    gaps = targets - weights @ targets / weights.sum()
    error, total = (weights @ (x**2) for x in (predicted - targets, gaps))
    return float(1 - error.sum() / total.sum()) if total.sum() > 0 else 0.0


def dual_ridge(gram, targets, weights, folds, alphas, score):
    r"""Return the ridge on rows with given inner products.

    Write :math:`R = \operatorname{diag}(\sqrt{c})`, :math:`P` for the projection onto
    the complement of :math:`\sqrt{c}`, and :math:`H = P (P R K R P + \alpha I)^{-1} P`.
    Then :math:`a = R H R y` are the dual coefficients, and the residuals of a fold
    :math:`v` that was left out are :math:`R_v^{-1} (H_{vv})^{-1} (H R y)_v`.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Inner products :math:`K`, or a positive semidefinite kernel.

    targets : ndarray of shape (n, n_targets)
        Targets.

    weights : ndarray of shape (n,)
        Positive weights of the rows.

    folds : list of ndarray of int
        Rows of each fold: each row is in one of them, and none holds all rows.

    alphas : sequence of float
        Penalties to try, in ascending order; the first of equally good ones is taken.

    score : callable
        Takes predictions, targets and weights; larger is better.

    Returns
    -------
    ridge : Ridge
        With dual coefficients: predictions are ``gram_of_new @ coef + intercept``.
    """
    root = np.sqrt(weights)
    direction = root / np.linalg.norm(root)
    inner = _projected(gram * root[:, None] * root, direction)
    values, vectors = in_batches(np.linalg.eigh, inner)
    # Rounding can push the eigenvalues of a singular matrix below zero.
    values = np.maximum(values, 0.0)
    vectors -= np.outer(direction, direction @ vectors)
    aims = vectors.T @ (root[:, None] * targets)
    best: Any = None
    for alpha in alphas:
        shrinkage = 1 / (values + alpha)
        coef, held_out = vectors @ (shrinkage[:, None] * aims), np.empty_like(targets)
        for fold in folds:
            # A matrix times its own transpose takes half the time of other products.
            part = vectors[fold] * np.sqrt(shrinkage)
            gaps = np.linalg.solve(part @ part.T, coef[fold])
            held_out[fold] = targets[fold] - gaps / root[fold, None]
        value = score(held_out, targets, weights)
        if best is None or value > best.score:
            best = Ridge(value, alpha, coef * root[:, None], np.empty(0), held_out)
    offsets = weights @ (targets - gram @ best.coef) / weights.sum()
    return best._replace(intercept=offsets)


def _projected(matrix, direction):
    """Return P A P for the projection P along a unit vector."""
    image = matrix @ direction
    edge = np.outer(direction, image - 0.5 * (direction @ image) * direction)
    return matrix - edge - edge.T


def primal_ridge(features, targets, weights, folds, alphas, score):
    """Return the ridge on rows of features: memory and time grow linearly with rows.

    Parameters
    ----------
    features : ndarray of shape (n, n_features)
        The rows, with means near 0.

    targets, weights, folds, alphas, score : object
        As for `dual_ridge`.

    Returns
    -------
    ridge : Ridge
        With one coefficient per feature: predictions are ``features_of_new @ coef +
        intercept``.
    """
    sums = [weighted_sums(features[f], targets[f], weights[f]) for f in folds]
    total = Sums(*(np.sum(part, axis=0) for part in zip(*sums, strict=True)))
    held_out = np.empty((len(alphas), *targets.shape))
    for fold, own in zip(folds, sums, strict=True):
        rest = Sums(*(a - b for a, b in zip(total, own, strict=True)))
        solve, mean, aim = solver_of(rest)
        turned = (features[fold] - mean) @ solve.vectors
        for predicted, alpha in zip(held_out, alphas, strict=True):
            predicted[fold] = turned @ solve.shrunken(alpha) + aim
    scores = [score(predicted, targets, weights) for predicted in held_out]
    # The first of equally good ones, as in the dual.
    place = int(np.argmax(scores))
    solve, mean, aim = solver_of(total)
    coef = solve.vectors @ solve.shrunken(alphas[place])
    return Ridge(scores[place], alphas[place], coef, aim - mean @ coef, held_out[place])


class Sums(NamedTuple):
    """Weighted sums over rows: of 1, features, targets, and their products."""

    weight: np.ndarray
    features: np.ndarray
    targets: np.ndarray
    squares: np.ndarray
    products: np.ndarray


def weighted_sums(features, targets, weights):
    """Return the sums of some rows."""
    scaled = features * weights[:, None]
    return Sums(
        weights.sum(),
        weights @ features,
        weights @ targets,
        scaled.T @ features,
        scaled.T @ targets,
    )


class Solver(NamedTuple):
    """Eigenvectors and eigenvalues of the squares, and the products turned by them."""

    vectors: np.ndarray
    values: np.ndarray
    products: np.ndarray

    def shrunken(self, alpha):
        """Return the coefficients in the directions of the eigenvectors."""
        return self.products / (self.values + alpha)[:, None]


def solver_of(sums):
    """Return the solver of a ridge, and the weighted means of features and targets."""
    mean, aim = sums.features / sums.weight, sums.targets / sums.weight
    squares = sums.squares - sums.weight * np.outer(mean, mean)
    values, vectors = in_batches(np.linalg.eigh, squares)
    products = vectors.T @ (sums.products - sums.weight * np.outer(mean, aim))
    # Rounding can push the eigenvalues of a singular matrix below zero.
    return Solver(vectors, np.maximum(values, 0.0), products), mean, aim


def dealt_folds(codes, groups, n_folds, rng):
    """Return folds with about equal shares of each class; groups stay together.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        Classes, counted from 0.

    groups : ndarray of shape (n,), or None
        Groups of rows that folds keep together.

    n_folds : int
        Largest number of folds; at least 2. There are fewer if there are fewer rows or
        groups.

    rng : RandomState
        Source of the order in which rows or groups are dealt.

    Returns
    -------
    folds : list of ndarray of int
        Rows of each fold, in ascending order.
    """
    if groups is None:
        n_folds = min(n_folds, len(codes))
        order = rng.permutation(len(codes))
        # Members of a class come one after the other and go to folds in turn.
        order = order[np.argsort(codes[order], kind="stable")]
        place = np.empty(len(codes), np.int64)
        place[order] = np.arange(len(codes)) % n_folds
    else:
        names, members = np.unique(groups, return_inverse=True)
        n_folds = min(n_folds, len(names))
        counts = np.zeros((len(names), codes.max() + 1))
        np.add.at(counts, (members, codes), 1.0)
        place = dealt_groups(counts, n_folds, rng)[members]
    return [np.flatnonzero(place == fold) for fold in range(n_folds)]


def dealt_groups(counts, n_folds, rng):
    """Return the fold of each group: the one that evens out the classes most.

    Parameters
    ----------
    counts : ndarray of shape (n_groups, n_classes)
        Number of rows of each class in each group.

    n_folds : int
        Number of folds, at most that of groups.

    rng : RandomState
        Decides the order of groups that are equally uneven.

    Returns
    -------
    place : ndarray of int of shape (n_groups,)
        Number of the fold.
    """
    shares = counts / counts.sum(axis=0)
    order = rng.permutation(len(counts))
    # Groups that are hard to place come first.
    order = order[np.argsort(-shares[order].std(axis=1), kind="stable")]
    totals, sizes = np.zeros((n_folds, counts.shape[1])), np.zeros(n_folds)
    place, n_empty = np.empty(len(counts), np.int64), n_folds
    for n, group in enumerate(order):
        # The sum of squares of all shares grows least where this is least.
        overlap = np.round(totals @ shares[group], 12)
        # Every fold gets a group, and equal choices go to the smaller fold.
        taken = sizes > 0 if len(order) - n <= n_empty else np.zeros(n_folds, bool)
        best = np.lexsort((sizes, overlap, taken))[0]
        n_empty -= sizes[best] == 0
        place[group] = best
        totals[best] += shares[group]
        sizes[best] += counts[group].sum()
    return place
