"""Functions of `numpy.linalg` for stacks of matrices, which Ctrl-C can interrupt.

NumPy handles no signal until a whole stack is done. Stacks are therefore processed in
batches, and a single large matrix in another thread.
"""

import numpy as np

from skawhmm.utils._interruption import waited_for

# Largest sum of cubed matrix sizes in a batch, which takes a fraction of a second.
BATCH_OPERATIONS = 20_000_000

# Matrices of a batch at most: small ones take a microsecond each.
MAX_BATCH = 65_536

# A single matrix of more rows takes long.
LARGE_SIZE = 500


def in_batches(function, matrices):
    """Return what a function of `numpy.linalg` returns for a stack of matrices.

    Parameters
    ----------
    function : callable
        Such as `numpy.linalg.eigh`.

    matrices : ndarray of shape (..., n_rows, n_columns)
        The matrices.

    Returns
    -------
    result : ndarray or tuple of ndarray
        The result, equal to one call to the last bit.
    """
    *leading, n_rows, n_columns = matrices.shape
    if min(n_rows, n_columns) > LARGE_SIZE:
        call, size = waited_for, 1
    else:
        call, size = _called, batch_size(max(n_rows, n_columns))
    n_matrices = int(np.prod(leading))
    if n_matrices <= size:
        return call(function, matrices)
    flat = matrices.reshape(n_matrices, n_rows, n_columns)
    starts = range(0, n_matrices, size)
    parts = [call(function, flat[first : first + size]) for first in starts]
    if not isinstance(parts[0], tuple):
        return _joined(parts, leading)
    return tuple(_joined(part, leading) for part in zip(*parts, strict=True))


def batch_size(n_rows):
    """Return how many matrices with `n_rows` rows take a fraction of a second."""
    return min(max(BATCH_OPERATIONS // max(n_rows, 1) ** 3, 1), MAX_BATCH)


def _called(function, matrices):
    return function(matrices)


def _joined(parts, leading):
    whole = np.concatenate(parts)
    return whole.reshape(*leading, *whole.shape[1:])
