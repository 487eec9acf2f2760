"""Leave-one-out scores of nearest neighbours, for many or all alphas at once."""

import numpy as np
from scipy.stats import rankdata

from skawhmm._estimator import mixed_precomputed
from skawhmm.neighbors._from_distances import (
    broken_ties,
    nearest,
    whole_columns,
    without_diagonal,
)

# Values of alpha that share one search for candidates.
GRID_PART = 10

# Number of pairs examined together, in blocks of rows: memory beyond the components is
# a few times this.
GRID_ENTRIES = 1 << 20

# Relative error of a distance due to rounding.
GRID_ROUNDING = 1e-12

# Sums of fractions that are mathematically equal differ by less than this.
ROUNDING = 1e-9

# Digits of a score that rounding does not affect.
SCORE_DIGITS = 12


def envelope(intercepts, slopes):
    """Return which of several lines is lowest, from 0 to 1.

    Parameters
    ----------
    intercepts, slopes : ndarray of shape (n_lines,)
        Lines ``intercepts + slopes * alpha``.

    Returns
    -------
    starts : ndarray of shape (n_pieces,)
        Where each piece of the lower envelope begins; the first begins at 0.

    lines : ndarray of shape (n_pieces,)
        The lowest line on each piece; of identical lines, the first.
    """
    order = np.lexsort((slopes, intercepts))
    # A line that starts higher and does not fall faster is never the lowest.
    least = np.minimum.accumulate(slopes[order])
    order = order[np.append(True, slopes[order][1:] < least[:-1])]
    starts: list[float] = []
    lines: list[int] = []
    for line in order:
        start = 0.0
        while lines:
            gap = intercepts[line] - intercepts[lines[-1]]
            start = gap / (slopes[lines[-1]] - slopes[line])
            if start > starts[-1]:
                break
            starts.pop()
            lines.pop()
        if start < 1:
            starts.append(start if lines else 0.0)
            lines.append(int(line))
    return np.array(starts), np.array(lines)


def nearest_path(components, codes, gains):
    """Return the leave-one-out score of one neighbour as a function of alpha.

    The distance to each candidate is a line in alpha, so the nearest one follows the
    lower envelope of lines and the score is constant between finitely many alphas.

    Parameters
    ----------
    components : ndarray of shape (n_models, n_models, 2)
        Marginal and transition components.

    codes : ndarray of shape (n_models,)
        Classes, counted from 0.

    gains : ndarray of shape (n_classes, n_classes)
        What a model adds to the score, by its class and the class of its neighbour.

    Returns
    -------
    alphas : ndarray of shape (n_pieces + 1,)
        Where pieces begin and end, from 0 to 1.

    scores : ndarray of shape (n_pieces,)
        Score on each piece.
    """
    first, places, changes = 0.0, [np.empty(0)], [np.empty(0)]
    for n, code in enumerate(codes):
        others = np.flatnonzero(np.arange(len(codes)) != n)
        marginal, transition = components[n, others].T
        finite = np.isfinite(marginal) & np.isfinite(transition)
        slopes = np.zeros(len(others))
        np.subtract(transition, marginal, out=slopes, where=finite)
        starts, lines = envelope(marginal, slopes)
        gained = gains[code, codes[others[lines]]]
        first += gained[0]
        places.append(starts[1:])
        changes.append(np.diff(gained))
    place, change = np.concatenate(places), np.concatenate(changes)
    place, change = place[change != 0], change[change != 0]
    cuts, where = np.unique(place, return_inverse=True)
    totals = np.bincount(where, weights=change, minlength=len(cuts))
    # Running sums drift in the last digits.
    scores = np.round(first + np.append(0, np.cumsum(totals)), SCORE_DIGITS)
    return np.concatenate([[0], cuts, [1]]), scores


def accuracy_gains(codes):
    """Return what each prediction adds to the accuracy, by class and prediction."""
    return np.eye(codes.max() + 1) / len(codes)


def balanced_gains(codes):
    """Return what each prediction adds to the mean recall of the classes."""
    counts = np.bincount(codes)
    return np.diag(1 / counts) / len(counts)


def auc_gains(codes):
    """Return what each prediction adds to the mean area under the curve.

    For a prediction without scores the area of each class against the rest is the mean
    of two recalls.
    """
    counts = np.bincount(codes)
    right = np.diag(1 / counts)
    # A model of another class counts for class c unless it is predicted as c.
    kept = 1 / (len(codes) - counts)
    total = kept.sum() - kept[:, None] - kept[None, :]
    spared = np.where(np.eye(len(counts), dtype=bool), kept.sum() - kept, total)
    return (right + spared) / (2 * len(counts))


def gain_score(gains):
    """Return a function of classes and fractions of votes that adds up gains."""

    def score(codes, fractions, neighbors):
        chosen = np.argmax(broken_ties(fractions, neighbors), axis=1)
        return gains(codes)[codes, chosen].sum()

    return score


def auc_score(codes, fractions, neighbors):
    """Return the area under the curve of each class against the rest, averaged."""
    counts = np.bincount(codes)
    members = np.eye(len(counts), dtype=bool)[codes]
    ranks = rankdata(broken_ties(fractions, neighbors), axis=0)
    ranks = np.where(members, ranks, 0).sum(axis=0)
    areas = (ranks - counts * (counts + 1) / 2) / (counts * (len(codes) - counts))
    return areas.mean()


SCORES = {
    "accuracy": (gain_score(accuracy_gains), accuracy_gains),
    "balanced_accuracy": (gain_score(balanced_gains), balanced_gains),
    "roc_auc": (auc_score, auc_gains),
}


def vote_fractions(found, codes, n_classes, weights):
    """Return the fractions of votes, per number of neighbours."""
    votes = np.eye(n_classes)[codes]
    if weights == "distance":
        found = np.clip(found, 0, np.finfo(float).max)
        exact = found == 0
        weight = np.where(exact[:, :1], exact, 1 / np.where(exact, 1, found))
        votes = votes * weight[..., None]
    totals = np.cumsum(votes, axis=1)
    return totals / totals.sum(axis=2, keepdims=True)


def widest_best(lows, highs, scores):
    """Return the widest run of neighbouring pieces that have the best score."""
    best = scores >= scores.max() - ROUNDING
    edges = np.diff(np.concatenate([[0], best.astype(int), [0]]))
    firsts, lasts = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    widest = int(np.argmax(highs[lasts] - lows[firsts]))
    return int(firsts[widest]), int(lasts[widest])


def grid_neighbors(components, alphas, n_neighbors):
    """Yield the nearest others of each model for each alpha.

    Parameters
    ----------
    components : ndarray of shape (n_models, n_models, 2)
        Marginal and transition components.

    alphas : ndarray of shape (n_alphas,)
        Weights of the transition component, in increasing order.

    n_neighbors : int
        Number of neighbours per model.

    Yields
    ------
    distances, indices : ndarray of shape (n_models, n_neighbors)
        As `nearest_others` returns them.
    """
    n_models = len(components)
    step = max(1, GRID_ENTRIES // n_models)
    for part in np.array_split(alphas, -(-len(alphas) // GRID_PART)):
        found = np.empty((len(part), n_models, n_neighbors))
        indices = np.empty(found.shape, np.int64)
        for first in range(0, n_models, step):
            rows = slice(first, first + step)
            others = without_diagonal(components[rows], first)
            kept = _candidates(others, part[[0, -1]], n_neighbors)
            places = whole_columns(kept, first)
            stack = np.take_along_axis(others, kept[..., None], axis=1)
            for n, alpha in enumerate(part):
                mixed = mixed_precomputed(stack, alpha)
                found[n, rows], chosen = nearest(mixed, n_neighbors)
                indices[n, rows] = np.take_along_axis(places, chosen, axis=1)
        yield from zip(found, indices, strict=True)


def _candidates(others, ends, n_neighbors):
    """Return columns that include the nearest ones, for all alphas in a range."""
    first, last = (mixed_precomputed(others, alpha) for alpha in ends)
    # Inside the range a distance stays between its values at the ends. If both exceed
    # what enough other distances never exceed, it is not among the nearest.
    least, most = np.minimum(first, last), np.maximum(first, last)
    bound = np.partition(most, n_neighbors - 1, axis=1)[:, n_neighbors - 1, None]
    counts = (least <= bound + GRID_ROUNDING * np.abs(bound)).sum(axis=1)
    _, kept = nearest(least, int(counts.max()))
    kept.sort(axis=1)
    return kept
