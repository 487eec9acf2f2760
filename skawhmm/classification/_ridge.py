r"""Ridge regression over several views, with exact leave-fold-out scores.

With features :math:`z_i`, targets :math:`y_i`, weights :math:`c_i` and a penalty
:math:`\alpha`, the ridge is the minimum of

.. math::
    \sum_i c_i \lVert y_i - z_i^T \beta - b \rVert^2 + \alpha \lVert \beta \rVert^2 .

The intercept :math:`b` is not penalized, so a shift of the features changes nothing. If
the rows of a fold are left out, the predictions for them follow from the solution for
all rows (dual) or from sums over the other rows (primal); both equal a fit without the
fold, up to rounding, with unchanged weights :math:`c_i`.

`dual_ridge` and `primal_ridge` work on arrays. `learn_dual` and `learn_primal` fit the
views, weight them by their scores, and return the decision function of their vectors.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from skawhmm.classification._views import (
    View,
    all_vectors,
    combined,
    coordinates,
    feature_coefs,
    fitted_transformer,
    group_sums,
    inner_products,
    principal_view,
    projected,
    sampled,
    squared_distances,
    squared_lengths,
    standardized_view,
    vectors,
)
from skawhmm.numerics._lapack import in_batches
from skawhmm.utils._parallel import completed

# Weight of the squared error in the score of a classifier. Accuracy alone, counted on a
# few hundred sequences, is too coarse to choose between penalties and kernels.
ERROR_WEIGHT = 1.0
# Difference of scores at which the weights of two views differ by the factor e: two
# percentage points of accuracy. Views that are clearly worse hardly count.
SCORE_SCALE = 0.02
# The dual solver scores views and kernels by at most this many sequences. Only the
# final ridge uses all of them; its time grows with the cube of their number.
SCORED_ROWS = 1000
# Training vectors from which the primal solver learns the scale and the principal
# directions of a view: a minimum, and a number per direction.
SAMPLE_ROWS = 2000
ROWS_PER_DIRECTION = 4
# Rows that the primal solver converts to double precision at a time.
ROW_BLOCK = 4096


class Ridge(NamedTuple):
    """A ridge fitted with the best of several penalties.

    `coef` has one row per training sequence (dual) or feature (primal), `held_out` one
    row per training sequence: its prediction by a fit without its fold.
    """

    score: float
    penalty: float
    coef: np.ndarray
    intercept: np.ndarray
    held_out: np.ndarray


def weighted_accuracy(predicted, targets, weights):
    """Return the weighted accuracy minus the squared error."""
    hits = predicted.argmax(axis=1) == targets.argmax(axis=1)
    error = ((predicted - targets) ** 2).mean(axis=1)
    return float(weights @ (hits - ERROR_WEIGHT * error) / weights.sum())


def explained_variance(predicted, targets, weights):
    """Return the fraction of the variance of the targets that is explained, or 0.

    The parameters are those of `weighted_accuracy`, with any numbers as targets.
    """
    gaps = targets - weights @ targets / weights.sum()
    error, total = (weights @ (x**2) for x in (predicted - targets, gaps))
    return float(1 - error.sum() / total.sum()) if total.sum() > 0 else 0.0


def dual_ridge(gram, targets, weights, folds, penalties, score):
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

    penalties : sequence of float
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
    inner = projected_matrix(gram * root[:, None] * root, direction)
    values, directions = in_batches(np.linalg.eigh, inner)
    # Rounding can push the eigenvalues of a singular matrix below zero.
    values = np.maximum(values, 0.0)
    directions -= np.outer(direction, direction @ directions)
    products = directions.T @ (root[:, None] * targets)
    best: Any = None
    for penalty in penalties:
        shrinkage = 1 / (values + penalty)
        coef = directions @ (shrinkage[:, None] * products)
        held_out = np.empty_like(targets)
        for fold in folds:
            # A matrix times its own transpose takes half the time of other products.
            part = directions[fold] * np.sqrt(shrinkage)
            gaps = np.linalg.solve(part @ part.T, coef[fold])
            held_out[fold] = targets[fold] - gaps / root[fold, None]
        value = score(held_out, targets, weights)
        if best is None or value > best.score:
            best = Ridge(value, penalty, coef * root[:, None], np.empty(0), held_out)
    offsets = weights @ (targets - gram @ best.coef) / weights.sum()
    return best._replace(intercept=offsets)


def projected_matrix(matrix, direction):
    """Return P A P for the projection P along a unit vector."""
    image = matrix @ direction
    edge = np.outer(direction, image - 0.5 * (direction @ image) * direction)
    return matrix - edge - edge.T


def primal_ridge(features, targets, weights, folds, penalties, score):
    """Return the ridge on rows of features, in time and memory linear in the rows.

    Parameters
    ----------
    features : ndarray of shape (n, n_features)
        The rows, with means near 0.

    targets, weights, folds, penalties, score : object
        As for `dual_ridge`.

    Returns
    -------
    ridge : Ridge
        With one coefficient per feature: predictions are ``features_of_new @ coef +
        intercept``.
    """
    sums = [weighted_sums(features, targets, weights, fold) for fold in folds]
    total = Sums(*(np.sum(part, axis=0) for part in zip(*sums, strict=True)))
    held_out = np.empty((len(penalties), *targets.shape))
    for fold, own in zip(folds, sums, strict=True):
        rest = Sums(*(a - b for a, b in zip(total, own, strict=True)))
        solver, mean, target = solver_of(rest)
        for rows in row_parts(fold):
            rotated = (features[rows] - mean) @ solver.directions
            for predicted, penalty in zip(held_out, penalties, strict=True):
                predicted[rows] = rotated @ solver.shrunken(penalty) + target
    scores = [score(predicted, targets, weights) for predicted in held_out]
    # The first of equally good ones, as in the dual.
    place = int(np.argmax(scores))
    solver, mean, target = solver_of(total)
    coef = solver.directions @ solver.shrunken(penalties[place])
    return Ridge(
        scores[place], penalties[place], coef, target - mean @ coef, held_out[place]
    )


class Sums(NamedTuple):
    """Weighted sums over rows: of 1, features, targets, and their products."""

    weight: np.ndarray
    features: np.ndarray
    targets: np.ndarray
    squares: np.ndarray
    products: np.ndarray


def row_parts(rows):
    """Return rows in parts of bounded memory."""
    return [rows[n : n + ROW_BLOCK] for n in range(0, len(rows), ROW_BLOCK)]


def weighted_sums(features, targets, weights, fold):
    """Return the sums over the rows of a fold, in double precision."""
    found = []
    for rows in row_parts(fold):
        own, goal, weight = features[rows], targets[rows], weights[rows]
        own = own.astype(np.float64, copy=False)
        scaled = own * weight[:, None]
        found.append(
            Sums(
                weight.sum(),
                weight @ own,
                weight @ goal,
                scaled.T @ own,
                scaled.T @ goal,
            )
        )
    return Sums(*(np.sum(part, axis=0) for part in zip(*found, strict=True)))


class Solver(NamedTuple):
    """Eigenvectors and eigenvalues of the squares, and the products in their basis."""

    directions: np.ndarray
    values: np.ndarray
    products: np.ndarray

    def shrunken(self, penalty):
        """Return the coefficients in the directions of the eigenvectors."""
        return self.products / (self.values + penalty)[:, None]


def solver_of(sums):
    """Return the solver of a ridge, and the weighted means of features and targets."""
    mean, target = sums.features / sums.weight, sums.targets / sums.weight
    squares = sums.squares - sums.weight * np.outer(mean, mean)
    values, directions = in_batches(np.linalg.eigh, squares)
    products = directions.T @ (sums.products - sums.weight * np.outer(mean, target))
    # Rounding can push the eigenvalues of a singular matrix below zero.
    return Solver(directions, np.maximum(values, 0.0), products), mean, target


class LinearDecision(NamedTuple):
    """Sums of features times coefficients: `coefs` has one array per view."""

    views: tuple[View, ...]
    coefs: list[np.ndarray]
    intercept: np.ndarray

    def decide(self, parts):
        """Return decisions of shape (n_sequences, n_targets) from a list of vectors."""
        triples = zip(self.views, parts, self.coefs, strict=True)
        return self.intercept + sum(projected(*triple) for triple in triples)

    def contributions(self, parts, groups):
        """Return contributions of shape (n_sequences, n_groups, n_targets).

        A contribution is the decision minus the decision with the features of the group
        at their training means. Groups are arrays of feature indices, counted through
        all views.
        """
        n_features = sum(len(view.mean) for view in self.views)
        members = sparse.csr_array(membership(groups, n_features))
        sums, first = [], 0
        for view, rows, coefs in zip(self.views, parts, self.coefs, strict=True):
            own = members[first : first + len(coefs)]
            sums.append(group_sums(view, rows, coefs, own))
            first += len(coefs)
        return np.sum(sums, axis=0)


def membership(groups, n_features):
    """Return which features are in which groups, as a sparse indicator matrix."""
    columns = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    coords = np.concatenate(groups), columns
    return sparse.coo_array((np.ones(len(columns)), coords), (n_features, len(groups)))


class RadialDecision(NamedTuple):
    """Sums of kernel values times dual coefficients.

    The kernel is `exp(-rate * d**2)`, with the distance d between all views, weighted.
    `rows` and `lengths` hold the vectors of the training sequences by view, and their
    weighted squared lengths.
    """

    views: tuple[View, ...]
    weights: np.ndarray
    rows: tuple[np.ndarray, ...]
    lengths: np.ndarray
    rate: float
    coef: np.ndarray
    intercept: np.ndarray

    def decide(self, parts):
        """Return decisions of shape (n_sequences, n_targets) from a list of vectors."""
        return self._decided(*self._products(parts))

    def contributions(self, parts, groups):
        """Return contributions of groups, as in `LinearDecision.contributions`."""
        products, lengths = self._products(parts)
        whole, found = self._decided(products, lengths), []
        for group in groups:
            own, length = self._products(parts, group)
            found.append(whole - self._decided(products - own, lengths - length))
        return np.stack(found, axis=1)

    def _products(self, parts, group=None):
        """Return products with training vectors, and squared lengths, of a group."""
        products, lengths, first = 0.0, 0.0, 0
        everything = zip(self.views, self.weights, parts, self.rows, strict=True)
        for view, weight, part, rows in everything:
            part_view, n_features = view, len(view.mean)
            if group is not None:
                own = group[(group >= first) & (group < first + n_features)] - first
                part_view = view._replace(mean=view.mean[own])
                part, rows = part[:, own], rows[:, own]  # noqa: PLW2901
            products = products + weight * inner_products(part_view, part, rows)
            lengths = lengths + weight * squared_lengths(part_view, part)
            first += n_features
        return products, lengths

    def _decided(self, products, lengths):
        distances = squared_distances(products, lengths, self.lengths)
        return np.exp(-self.rate * distances) @ self.coef + self.intercept


class Problem(NamedTuple):
    """A learning problem; fields are named as in `ViewRidge`.

    The first five are the last arguments of `dual_ridge` and `primal_ridge`.
    """

    targets: np.ndarray
    weights: np.ndarray
    folds: list[np.ndarray]
    penalties: list[float]
    score: Callable[..., float]
    gammas: list[float]
    max_rank: int | None
    n_jobs: int | None
    verbose: int

    def restricted(self, rows):
        """Return the problem for some rows, in ascending order."""
        place = np.full(len(self.targets), -1)
        place[rows] = np.arange(len(rows))
        folds = [place[fold][place[fold] >= 0] for fold in self.folds]
        return self._replace(
            targets=self.targets[rows],
            weights=self.weights[rows],
            folds=[fold for fold in folds if len(fold)],
        )

    def run(self, function, shared, n_tasks, label, n_jobs=1):
        """Return the results of tasks by index, with a progress bar if `verbose`."""
        results = completed(
            function,
            shared,
            [(n,) for n in range(n_tasks)],
            n_jobs=n_jobs,
            verbose=self.verbose,
            label=label,
        )
        return list(results)

    def ridges(self, solve, arrays, label):
        """Return the ridge of each of several arrays, by several jobs."""
        shared = solve, arrays, self[:5]
        return self.run(ridge_task, shared, len(arrays), label, self.n_jobs)


class Learned(NamedTuple):
    """Decision function, ridge, scores and weights of views, and kernel."""

    decision: Any
    ridge: Ridge
    scores: np.ndarray
    weights: np.ndarray
    gamma: float


def ridge_task(shared, n):
    """Return the ridge of one of several arrays."""
    solve, arrays, arguments = shared
    return solve(arrays[n], *arguments)


def score_weights(scores):
    """Return weights proportional to exp(score / SCORE_SCALE), with sum 1."""
    weights = np.exp((scores - np.max(scores)) / SCORE_SCALE)
    return weights / weights.sum()


def scoring_rows(folds, rng):
    """Return the rows by which views and kernels are scored, ascending.

    All rows, or the same fraction of every fold, drawn at random.
    """
    n_rows = sum(map(len, folds))
    if n_rows <= SCORED_ROWS:
        return np.arange(n_rows)
    ends = np.round(np.cumsum(list(map(len, folds))) * (SCORED_ROWS / n_rows))
    sizes = np.diff(ends.astype(int), prepend=0)
    parts = [
        fold[rng.permutation(len(fold))[:size]]
        for fold, size in zip(folds, sizes, strict=True)
    ]
    return np.sort(np.concatenate(parts))


def learn_dual(named, sequences, problem, rng):
    """Learn from the inner products of all training sequences.

    Parameters
    ----------
    named : list of tuple
        Names and transformers of the views.

    sequences : CheckedSequences
        Training sequences.

    problem : Problem
        What to learn.

    rng : RandomState
        Source of the draws.

    Returns
    -------
    learned : Learned
        The result, with the kernel of the best score; ties go to the linear one.
    """
    shared = named, sequences, rng
    views, rows, grams = zip(
        *problem.run(dual_view, shared, len(named), "views"), strict=True
    )
    rows_scored = scoring_rows(problem.folds, rng)
    part = problem.restricted(rows_scored)
    square = np.ix_(rows_scored, rows_scored)
    found = part.ridges(dual_ridge, [gram[square] for gram in grams], "scores")
    scores = np.array([ridge.score for ridge in found])
    weights = score_weights(scores)
    gram = sum(w * g for w, g in zip(weights, grams, strict=True))
    del grams
    lengths = gram.diagonal()
    distances = squared_distances(gram, lengths, lengths)
    unit = median_distance(distances)
    rates = [gamma / unit for gamma in problem.gammas]

    def kernel(rate, of=...):
        return np.exp(-rate * distances[of]) if rate > 0 else gram[of]

    found = part.ridges(dual_ridge, [kernel(rate, square) for rate in rates], "kernels")
    place = int(np.argmax([ridge.score for ridge in found]))
    ridge, rate = found[place], rates[place]
    if len(rows_scored) < len(gram):
        ridge = dual_ridge(kernel(rate), *problem[:5])
    if rate > 0:
        decision: Any = RadialDecision(
            views, weights, rows, lengths, rate, ridge.coef, ridge.intercept
        )
    else:
        coefs = [
            w * combined(view, own, ridge.coef)
            for w, view, own in zip(weights, views, rows, strict=True)
        ]
        decision = LinearDecision(views, coefs, ridge.intercept)
    return Learned(decision, ridge, scores, weights, problem.gammas[place])


def dual_view(shared, n):
    """Return a fitted view, its training vectors and their inner products."""
    named, sequences, rng = shared
    name, transformer = named[n]
    fitted = fitted_transformer(transformer, sequences, rng)
    rows = all_vectors(fitted, sequences)
    view, products = standardized_view(name, fitted, rows)
    return view, rows, products


def median_distance(distances):
    """Return the median squared distance of different rows, or 1 if it is 0."""
    others = distances[~np.eye(len(distances), dtype=bool)]
    median = float(np.median(others)) if len(others) else 0.0
    return median if median > 0 else 1.0


def learn_primal(named, sequences, problem, rng):
    """Learn from sums over training sequences, with a linear kernel.

    The parameters and the result are as in `learn_dual`.
    """
    shared = named, sequences, problem.max_rank, rng
    found = problem.run(primal_view, shared, len(named), "views")
    views, parts = tuple(view for view, _ in found), [part for _, part in found]
    del found
    scores = np.array([r.score for r in problem.ridges(primal_ridge, parts, "scores")])
    weights = score_weights(scores)
    features = concatenated(parts, np.sqrt(weights))
    ridge = primal_ridge(features, *problem[:5])
    split = np.split(ridge.coef, np.cumsum([view.rank for view in views])[:-1])
    coefs = [
        np.sqrt(w) * feature_coefs(view, c)
        for w, view, c in zip(weights, views, split, strict=True)
    ]
    decision = LinearDecision(views, coefs, ridge.intercept)
    return Learned(decision, ridge, scores, weights, 0.0)


def concatenated(parts, factors):
    """Return the columns of all parts times a factor per part; `parts` is emptied."""
    width = sum(part.shape[1] for part in parts)
    features = np.empty((len(parts[0]), width), np.result_type(*parts))
    first = 0
    for n, factor in enumerate(factors):
        last = first + parts[n].shape[1]
        np.multiply(parts[n], factor, out=features[:, first:last])
        # Two copies of all parts may not fit into memory.
        parts[n] = None
        first = last
    return features


def primal_view(shared, n):
    """Return a fitted view and the coordinates of the training sequences."""
    named, sequences, max_rank, rng = shared
    name, transformer = named[n]
    fitted = fitted_transformer(transformer, sequences, rng)
    n_rows = len(sequences)
    if max_rank is not None:
        n_rows = max(SAMPLE_ROWS, ROWS_PER_DIRECTION * max_rank)
    sample = all_vectors(fitted, sampled(sequences, n_rows, rng))
    view, products = standardized_view(name, fitted, sample)
    if max_rank is not None:
        view = principal_view(view, sample, products, max_rank)
    del sample, products
    part: Any = None
    for first, rows in vectors(fitted, sequences):
        if part is None:
            # Coordinates keep the precision of the vectors.
            kind = rows.dtype if not sparse.issparse(rows) else np.float32
            part = np.empty((len(sequences), view.rank), kind)
        part[first : first + rows.shape[0]] = coordinates(view, rows)
    return view, part
