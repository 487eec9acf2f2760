"""Views of sequences: one vector per sequence and view, centred and scaled.

Arrays and transformers only; the estimators are in `_view_estimators`.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

from skawhmm.numerics._lapack import in_batches

# Columns that are converted to double precision at a time, and sequences that are
# transformed at a time: bounds of memory.
COLUMN_BLOCK = 4096
SEQUENCE_BLOCK = 256
# Views are fitted to at most this many sequences, drawn at random from more.
FIT_SEQUENCES = 10_000


class View(NamedTuple):
    """A fitted transformer and what makes its vectors comparable with other views.

    A vector has the `mean` of the training sequences taken off. Divided by `scale`, it
    has mean squared length 1 in the training data. `basis`, if any, holds the principal
    directions of which the primal solver takes the coordinates.
    """

    name: str
    transformer: Any
    mean: np.ndarray
    scale: float
    basis: np.ndarray | None


def vectors(transformer, sequences):
    """Return the vectors of sequences, dense, in blocks of bounded memory.

    Parameters
    ----------
    transformer : transformer
        The fitted transformer of a view.

    sequences : list of ndarray
        The sequences.

    Yields
    ------
    first : int
        Number of the first sequence of the block.

    rows : ndarray of shape (n_block, n_features)
        Its vectors, in single or double precision.
    """
    for first in range(0, len(sequences), SEQUENCE_BLOCK):
        rows = transformer.transform(sequences[first : first + SEQUENCE_BLOCK])
        if sparse.issparse(rows):
            rows = rows.toarray()
        rows = np.asarray(rows)
        single = rows.dtype == np.float32
        yield first, rows if single else rows.astype(np.float64, copy=False)


def all_vectors(transformer, sequences):
    """Return the vectors of sequences as one array."""
    return np.concatenate([rows for _, rows in vectors(transformer, sequences)])


def fitted_transformer(transformer, sequences, rng):
    """Return a clone of a transformer, fitted to at most `FIT_SEQUENCES` sequences.

    No labels are given to it: folds of the training sequences can share it.

    Parameters
    ----------
    transformer : transformer
        The transformer of a view.

    sequences : list of ndarray
        Training sequences.

    rng : RandomState
        Draws the sequences if there are more.

    Returns
    -------
    transformer : transformer
        The fitted clone.
    """
    if len(sequences) > FIT_SEQUENCES:
        chosen = np.sort(rng.permutation(len(sequences))[:FIT_SEQUENCES])
        sequences = [sequences[i] for i in chosen]
    return clone(transformer).fit(sequences, None)


def standardized_view(name, transformer, rows, max_rank=None):
    """Return a view whose mean and scale are those of some vectors.

    Parameters
    ----------
    name, transformer : str, transformer
        Name and fitted transformer.

    rows : ndarray of shape (n_rows, n_features)
        Vectors of training sequences.

    max_rank : int, default=None
        With more features than this, the view gets a basis of so many principal
        directions of the rows.

    Returns
    -------
    view : View
        The view.
    """
    mean = rows.mean(axis=0, dtype=np.float64)
    spread = sum(((rows[:, c] - mean[c]) ** 2).sum() for c in column_blocks(len(mean)))
    # All vectors are equal: there is nothing to scale.
    scale = float(np.sqrt(spread / len(rows))) if spread > 0 else 1.0
    view = View(name, transformer, mean, scale, None)
    if max_rank is None or len(mean) <= max_rank:
        return view
    values, turned = in_batches(np.linalg.eigh, inner_products(view, rows, rows))
    kept = values[-max_rank:] > values[-1] * len(values) * np.finfo(float).eps
    values, turned = values[-max_rank:][kept], turned[:, -max_rank:][:, kept]
    basis = np.empty((len(mean), len(values)))
    for c in column_blocks(len(mean)):
        basis[c] = (rows[:, c] - mean[c]).T @ (turned / np.sqrt(values)) / scale
    return view._replace(basis=basis)


def column_blocks(n_columns):
    """Return slices of a few thousand columns each."""
    return [slice(c, c + COLUMN_BLOCK) for c in range(0, n_columns, COLUMN_BLOCK)]


def inner_products(view, rows, others):
    """Return inner products of standardized vectors, summed in double precision.

    Parameters
    ----------
    view : View
        The view, whose basis is not used.

    rows, others : ndarray of shape (n_rows, n_features)
        Vectors. The same array twice takes half the time.

    Returns
    -------
    products : ndarray of shape (n_rows, n_others)
        The products.
    """
    products = np.zeros((len(rows), len(others)))
    for c in column_blocks(len(view.mean)):
        part = rows[:, c] - view.mean[c]
        other = part if others is rows else others[:, c] - view.mean[c]
        products += part @ other.T
    return products / view.scale**2


def squared_lengths(view, rows):
    """Return squared lengths of standardized vectors, of shape (n_rows,)."""
    lengths = np.zeros(len(rows))
    for c in column_blocks(len(view.mean)):
        lengths += ((rows[:, c] - view.mean[c]) ** 2).sum(axis=1)
    return lengths / view.scale**2


def coordinates(view, rows):
    """Return standardized vectors, or their coordinates if the view has a basis."""
    if view.basis is None:
        return (rows - view.mean) / view.scale
    return turned(view, rows, view.basis) / view.scale


def turned(view, rows, matrix):
    """Return centred vectors times a matrix, summed in double precision.

    Parameters
    ----------
    view : View
        The view.

    rows : ndarray of shape (n_rows, n_features)
        Vectors.

    matrix : ndarray of shape (n_features, n_columns)
        The matrix.

    Returns
    -------
    products : ndarray of shape (n_rows, n_columns)
        The products.
    """
    products = np.zeros((len(rows), matrix.shape[1]))
    for c in column_blocks(len(view.mean)):
        products += (rows[:, c] - view.mean[c]) @ matrix[c]
    return products


def squared_gaps(products, lengths, others):
    """Return squared distances from inner products and squared lengths."""
    # Rounding can push the distance of equal vectors below zero.
    return np.maximum(lengths[:, None] + others - 2 * products, 0.0)


def score_weights(scores, scale):
    """Return weights proportional to exp(score / scale), with sum 1."""
    weights = np.exp((scores - np.max(scores)) / scale)
    return weights / weights.sum()
