"""How one ridge over several views is learned: in the dual, or in the primal."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skawhmm.classification._ridge import Ridge, dual_ridge, primal_ridge
from skawhmm.classification._view_decisions import LinearDecision, RadialDecision
from skawhmm.classification._views import (
    all_vectors,
    column_blocks,
    coordinates,
    fitted_transformer,
    inner_products,
    score_weights,
    squared_gaps,
    standardized_view,
    vectors,
)
from skawhmm.utils._parallel import Shared, completed

# Training vectors from which the primal solver learns the scale and the principal
# directions of a view: at least so many, and so many per direction.
SAMPLE_ROWS = 2000
ROWS_PER_DIRECTION = 4


class Problem(NamedTuple):
    """What is to be learned, and how; the names are those of `ViewRidge`.

    `targets`, `weights`, `folds`, `alphas` and `score` are what a ridge takes.
    """

    targets: np.ndarray
    weights: np.ndarray
    folds: list[np.ndarray]
    alphas: list[float]
    score: Callable[..., float]
    gammas: list[float]
    score_scale: float
    max_rank: int | None
    n_jobs: int | None
    verbose: int

    @property
    def ridge_arguments(self):
        """The last arguments of `dual_ridge` and `primal_ridge`."""
        return self[:5]

    def run(self, function, shared, tasks, label, n_jobs=1):
        """Return the results of tasks, with a progress bar if it is wanted."""
        tasks = [(task,) for task in tasks]
        results = completed(
            function, shared, tasks, n_jobs=n_jobs, verbose=self.verbose, label=label
        )
        return list(results)


class Learned(NamedTuple):
    """What was learned: how to decide, the ridge, and the views' scores and weights."""

    decision: Any
    ridge: Ridge
    scores: np.ndarray
    weights: np.ndarray
    gamma: float


def learn_dual(named, sequences, problem, rng):
    """Learn from the inner products of all training sequences.

    Parameters
    ----------
    named : list of tuple
        Names and transformers of the views.

    sequences : list of ndarray
        Training sequences.

    problem : Problem
        What to learn.

    rng : RandomState
        Source of the draws.

    Returns
    -------
    learned : Learned
        With the kernel that has the best score; the linear one if several have it.
    """
    shared = Shared((named, sequences, rng), 0)
    views, rows, grams = zip(
        *problem.run(dual_view, shared, range(len(named)), "views"), strict=True
    )
    shared = Shared((grams, problem), sum(gram.nbytes for gram in grams))
    alone = problem.run(
        dual_ridge_task, shared, range(len(grams)), "scores", problem.n_jobs
    )
    scores = np.array([ridge.score for ridge in alone])
    weights = score_weights(scores, problem.score_scale)
    gram = sum(w * g for w, g in zip(weights, grams, strict=True))
    lengths = gram.diagonal()
    gaps = squared_gaps(gram, lengths, lengths)
    unit = median_gap(gaps)
    rates = [gamma / unit for gamma in problem.gammas]
    kernels = [np.exp(-rate * gaps) if rate > 0 else gram for rate in rates]
    shared = Shared((kernels, problem), sum(kernel.nbytes for kernel in kernels))
    found = problem.run(
        dual_ridge_task, shared, range(len(kernels)), "kernels", problem.n_jobs
    )
    place = int(np.argmax([ridge.score for ridge in found]))
    ridge, rate = found[place], rates[place]
    if rate > 0:
        decision: Any = RadialDecision(
            views, weights, rows, lengths, rate, ridge.coef, ridge.intercept
        )
    else:
        coefs = [
            w * dual_coefs(view, own, ridge.coef)
            for w, view, own in zip(weights, views, rows, strict=True)
        ]
        decision = LinearDecision(views, coefs, ridge.intercept)
    return Learned(decision, ridge, scores, weights, problem.gammas[place])


def dual_view(shared, n):
    """Return a fitted view, its training vectors and their inner products."""
    named, sequences, rng = shared.value
    name, transformer = named[n]
    fitted = fitted_transformer(transformer, sequences, rng)
    rows = all_vectors(fitted, sequences)
    view = standardized_view(name, fitted, rows)
    return view, rows, inner_products(view, rows, rows)


def dual_ridge_task(shared, n):
    """Return the ridge of one of several matrices."""
    grams, problem = shared.value
    return dual_ridge(grams[n], *problem.ridge_arguments)


def dual_coefs(view, rows, coef):
    """Return coefficients of features, as they are before scaling, from dual ones."""
    coefs = np.empty((len(view.mean), coef.shape[1]))
    for c in column_blocks(len(coefs)):
        coefs[c] = (rows[:, c] - view.mean[c]).T @ coef
    return coefs / view.scale**2


def median_gap(gaps):
    """Return the median squared distance of different rows, 1 if that is 0."""
    others = gaps[~np.eye(len(gaps), dtype=bool)]
    median = float(np.median(others)) if len(others) else 0.0
    return median if median > 0 else 1.0


def learn_primal(named, sequences, problem, rng):
    """Learn from sums over training sequences, a linear kernel only.

    The parameters are those of `learn_dual`.

    Returns
    -------
    learned : Learned
        What was learned.
    """
    shared = Shared((named, sequences, problem, rng), 0)
    found = problem.run(primal_view, shared, range(len(named)), "views")
    views, parts = tuple(view for view, _ in found), [part for _, part in found]
    del found
    shared = Shared((parts, problem), sum(part.nbytes for part in parts))
    alone = problem.run(
        primal_ridge_task, shared, range(len(parts)), "scores", problem.n_jobs
    )
    scores = np.array([ridge.score for ridge in alone])
    weights = score_weights(scores, problem.score_scale)
    del shared
    features = joined_parts(parts, np.sqrt(weights))
    ridge = primal_ridge(features, *problem.ridge_arguments)
    ends = np.cumsum([view_rank(view) for view in views])[:-1]
    split = np.split(ridge.coef, ends)
    coefs = [
        np.sqrt(w) / view.scale * (c if view.basis is None else view.basis @ c)
        for w, view, c in zip(weights, views, split, strict=True)
    ]
    decision = LinearDecision(views, coefs, ridge.intercept)
    return Learned(decision, ridge, scores, weights, 0.0)


def joined_parts(parts, factors):
    """Return the columns of all parts times a factor per part; parts are given up."""
    features = np.empty((len(parts[0]), sum(part.shape[1] for part in parts)))
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
    named, sequences, problem, rng = shared.value
    name, transformer = named[n]
    fitted = fitted_transformer(transformer, sequences, rng)
    n_rows = len(sequences)
    if problem.max_rank is not None:
        n_rows = min(n_rows, max(SAMPLE_ROWS, ROWS_PER_DIRECTION * problem.max_rank))
    chosen = np.sort(rng.permutation(len(sequences))[:n_rows])
    sample = all_vectors(fitted, [sequences[i] for i in chosen])
    view = standardized_view(name, fitted, sample, problem.max_rank)
    del sample
    part = np.empty((len(sequences), view_rank(view)))
    for first, rows in vectors(fitted, sequences):
        part[first : first + len(rows)] = coordinates(view, rows)
    return view, part


def primal_ridge_task(shared, n):
    """Return the ridge of one of several views."""
    parts, problem = shared.value
    return primal_ridge(parts[n], *problem.ridge_arguments)


def view_rank(view):
    """Return the number of coordinates of a view."""
    return len(view.mean) if view.basis is None else view.basis.shape[1]
