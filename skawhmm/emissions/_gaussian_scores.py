"""Log densities and likelihoods under given Gaussian states, singular ones included."""

from collections import namedtuple
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr

from skawhmm.numerics._lapack import in_batches

LOG_TWO_PI = np.log(2 * np.pi)
# Relative size below which an eigenvalue of a correlation matrix is rounding.
RANK_TOLERANCE = 1e-13

Densities = namedtuple("Densities", ["means", "factors", "norms", "scales", "nulls"])
Densities.__doc__ = """What log densities need, for a stack of models.

`factors` are variances (diagonal) or whitening matrices (full); `norms` the logs of the
normalising constants; `scales` the units in which a distance from the support counts;
`nulls` has a row (or, diagonal, an entry) that is not 0 for each direction off it.
"""


def make_densities(family):
    """Factor the covariances of models."""
    observed = family.masks() > 0
    parts = diag_densities if family.covariance_type == "diag" else full_densities
    return Densities(*map(np.ascontiguousarray, parts(family, observed)))


def diag_densities(family, observed):
    """Densities of diagonal models."""
    covars = np.where(observed[:, None], family.covars, 0.0)
    nulls = ((covars == 0) & observed[:, None]).astype(float)
    scales = np.repeat(np.sqrt(covars.max(axis=2))[..., None], covars.shape[2], axis=2)
    norms = np.zeros(covars.shape[:2])
    return Densities(family.means, covars, norms, scales, nulls)


def full_densities(family, observed):
    """Densities of full models, by the eigenvectors of the correlation matrices."""
    covars = family.covars
    n_features = covars.shape[2]
    spread = np.sqrt(np.einsum("nkcc->nkc", covars))
    widest = spread.max(axis=2, keepdims=True)
    units = np.where(spread > 0, spread, np.where(widest > 0, widest, 1.0))
    scaled = covars / (units[..., None] * units[..., None, :])
    values, vectors = in_batches(np.linalg.eigh, scaled)
    # A row of `directions` is an eigenvector, acting on raw gaps.
    directions = vectors.swapaxes(2, 3) / units[..., None, :]
    kept = values > RANK_TOLERANCE * n_features
    roots = np.sqrt(np.where(kept, values, 1.0))
    whiteners = np.where(kept[..., None], directions / roots[..., None], 0.0)
    nulls = np.where(kept[..., None], 0.0, directions)
    # A channel that was not observed has no variance: its direction is a unit vector.
    nulls = np.where(observed[:, None, None], nulls, 0.0)
    ranks = kept.sum(axis=2)
    log_det = 2 * np.log(roots).sum(axis=2)
    log_det += 2 * np.log(units).sum(axis=2, where=ranks[..., None] == n_features)
    for i, k in zip(*np.nonzero((ranks > 0) & (ranks < n_features)), strict=True):
        # Densities on the support of a flat state refer to volume in raw channels.
        log_det[i, k] += 2 * log_volume(vectors[i, k][:, kept[i, k]], units[i, k])
    norms = -0.5 * (ranks * LOG_TWO_PI + log_det)
    return Densities(family.means, whiteners, norms, units, nulls)


def log_volume(vectors, units):
    """Return the log of the volume that orthonormal vectors span in other units."""
    # With long rows first and columns pivoted, rounding of long rows does not reach
    # short ones, as it does in eigenvalues.
    order = np.argsort(-units, kind="stable")
    rows = (vectors * units[:, None])[order]
    triangle = qr(rows, mode="r", pivoting=True)[0]
    return np.log(np.abs(np.diagonal(triangle))).sum()


def channels_and_mask(x):
    """One sequence channel by channel, NaN replaced by 0, and its mask."""
    frames = x.T.copy()
    gaps = np.isnan(frames)
    if not gaps.any():
        return frames, np.empty((0, 0))
    return np.where(gaps, 0.0, frames), (~gaps).astype(float)


class PackedSequences(NamedTuple):
    """Sequences of unequal length in one array, each stored channel by channel."""

    frames: np.ndarray
    seen: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    gappy: np.ndarray


def packed_sequences(sequences):
    """Return sequences in the form that the compiled loop reads."""
    lengths = np.array([*map(len, sequences)])
    frames = np.concatenate([sequence.T.ravel() for sequence in sequences])
    starts = np.cumsum([0, *(sequence.size for sequence in sequences)])[:-1]
    seen, gappy = np.empty(0), np.zeros(len(sequences), np.uint8)
    missing = np.isnan(frames)
    if missing.any():
        seen = (~missing).astype(float)
        frames[missing] = 0.0
        # Sequences without gaps get the same scores as without the others.
        gappy[:] = np.logical_or.reduceat(missing, starts)
    return PackedSequences(frames, seen, starts, lengths, gappy)
