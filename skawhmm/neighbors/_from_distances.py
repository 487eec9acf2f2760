"""Neighbours from distances: the nearest first, equal distances by index."""

import numpy as np
from scipy.sparse import csr_matrix


def nearest(distances, n_neighbors):
    """Return the nearest columns of each row.

    Parameters
    ----------
    distances : ndarray of shape (n_rows, n_columns)
        Distances, without NaN.

    n_neighbors : int
        Number of neighbours per row, at most `n_columns`.

    Returns
    -------
    distances : ndarray of shape (n_rows, n_neighbors)
        Distances of the neighbours, in increasing order.

    indices : ndarray of shape (n_rows, n_neighbors)
        Their columns. Columns at equal distance are in increasing order.
    """
    last = n_neighbors - 1
    indices = np.argpartition(distances, last, axis=1)[:, :n_neighbors]
    farthest = np.take_along_axis(distances, indices[:, last:], axis=1)
    # `argpartition` returns any of the columns that tie for the last place.
    tied = np.flatnonzero((distances <= farthest).sum(axis=1) > n_neighbors)
    order = np.argsort(distances[tied], axis=1, kind="stable")
    indices[tied] = order[:, :n_neighbors]
    indices.sort(axis=1)
    found = np.take_along_axis(distances, indices, axis=1)
    order = np.argsort(found, axis=1, kind="stable")
    found = np.take_along_axis(found, order, axis=1)
    return found, np.take_along_axis(indices, order, axis=1)


def nearest_others(distances, n_neighbors):
    """Return the nearest columns of each row, without the one on the diagonal."""
    found, indices = nearest(without_diagonal(distances), n_neighbors)
    return found, whole_columns(indices)


def within_radius(distances, radius, *, has_own):
    """Return distances and columns within a radius, a list of each with one per row.

    Both are in increasing order of distance, then of column. With `has_own`, the
    column on the diagonal is left out.
    """
    near = distances <= radius
    if has_own:
        np.fill_diagonal(near, False)
    found, indices = [], []
    for row, columns in zip(distances, map(np.flatnonzero, near), strict=True):
        order = columns[np.argsort(row[columns], kind="stable")]
        found.append(row[order])
        indices.append(order)
    return found, indices


def nearest_except(distances, own, n_neighbors):
    """Return the nearest columns of each row, without the column `own` of the row."""
    others = np.arange(distances.shape[1]) != own[:, None]
    found, indices = nearest(distances[others].reshape(len(own), -1), n_neighbors)
    return found, indices + (indices >= own[:, None])


def without_diagonal(rows, first=0):
    """Return the off-diagonal entries of successive rows of a square matrix."""
    n_rows, n_models = rows.shape[:2]
    others = rows[~np.eye(n_rows, n_models, first, dtype=bool)]
    return others.reshape(n_rows, n_models - 1, *rows.shape[2:])


def whole_columns(indices, first=0):
    """Return columns of the full matrix, given columns without the diagonal."""
    return indices + (indices >= first + np.arange(len(indices))[:, None])


def neighbor_graph(values, indices, n_columns):
    """Return a sparse matrix of neighbours, each row in the order given."""
    n_rows, n_neighbors = indices.shape
    starts = np.arange(0, n_rows * n_neighbors + 1, n_neighbors)
    return csr_matrix(
        (values.ravel(), indices.ravel(), starts), shape=(n_rows, n_columns)
    )


def broken_ties(fractions, codes):
    """Return fractions of votes with ties broken, so that one class is first."""
    most = fractions == fractions.max(axis=1, keepdims=True)
    rows = np.flatnonzero(most.sum(axis=1) > 1)
    leading = np.take_along_axis(most[rows], codes[rows], axis=1)
    winners = codes[rows, np.argmax(leading, axis=1)]
    fractions = fractions.copy()
    fractions[rows, winners] = np.nextafter(fractions[rows, winners], 2)
    return fractions
