"""Coordinates in which a sequence is fitted: centred, scaled, free of dead channels.

EM commutes with affine maps, so fitting in good coordinates and mapping the model back
gives the same model as fitting the raw values, without their numerical trouble: offsets
that cost digits, units that differ by ten orders of magnitude, constant channels.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skawhmm.emissions._gaussian_costs import covariance_roots
from skawhmm.emissions._gaussian_em_kernels import composed
from skawhmm.emissions._model import Model
from skawhmm.fitting._coordinates_kernels import (
    channel_summaries,
    second_moments,
    standardized_rows,
    whitened_rows,
)
from skawhmm.numerics._lapack import in_batches
from skawhmm.utils._numbers import aligned

# A channel whose range is below this fraction of its size is constant up to rounding.
CONSTANT_RANGE = 8 * np.finfo(float).eps
# A channel with a smaller range also counts as constant: state variances would be
# below `LEAST_VARIANCE`.
LEAST_RANGE = 1e-140
# Directions with less than this fraction of the variance are scaled as if they had it,
# which keeps collinear channels finite.
COLLINEAR_FRACTION = 1e-6
# Sequences whose values are this many times larger or smaller than in other sequences
# have other units: in a common model, the smaller ones would look like a single point.
OTHER_SCALE = 1e4
# Covariances may be indefinite by this fraction of their largest entry, as `HMMBatch`
# accepts them.
INDEFINITE = 1e-9
# Eigenvalues of a product of three matrices are off by at most this, times the square
# of the size of the matrices, times the largest entry of the product of their absolute
# values: 2 n roundings per entry, n entries per row, and as much for a symmetric factor
# that is itself rounded.
PRODUCT_ROUNDING = 4 * np.finfo(float).eps


@dataclass(frozen=True)
class Coordinates:
    """An affine map of the channels that vary, and the values of the others.

    For several sequences in which the same channels vary, all arrays but `active` have
    a leading axis.

    Attributes
    ----------
    active : ndarray of shape (n_features,)
        Channels that vary.

    missing : ndarray of shape (..., n_features)
        Channels without any value.

    centre, scale : ndarray of shape (..., n_features)
        Means and standard deviations (0 and 1 where missing, 1 where constant).

    basis, inverse : ndarray of shape (..., n_active, n_active) or None
        Whitening matrix and its inverse; None for diagonal models.

    log_volume : ndarray of shape (...)
        Log density of a complete frame in these coordinates minus its raw log density.
    """

    active: np.ndarray
    missing: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    basis: np.ndarray | None
    inverse: np.ndarray | None
    log_volume: np.ndarray

    def __getitem__(self, index):
        parts: dict[str, Any] = vars(self)
        chosen = {
            name: part if part is None or name == "active" else part[index]
            for name, part in parts.items()
        }
        return Coordinates(**chosen)

    def standardized(self, channels, offsets=None):
        """Active channels (n_active, n_timesteps) centred and scaled, and their mask.

        Missing values become 0; the mask is empty if there are none. The offsets bound
        the sequences, one per row of the coordinates.
        """
        if offsets is None:
            offsets = np.array([0, channels.shape[1]])
        # Unpickled arrays may be unaligned.
        rows = [aligned(np.atleast_2d(part)) for part in (self.centre, self.scale)]
        active = np.flatnonzero(self.active)
        return standardized_rows(channels, offsets, active, *rows)

    def excess(self, n_timesteps, seen, offsets=None):
        """Log likelihood in these coordinates minus that of the raw frames."""
        if seen.size == 0:
            return n_timesteps * self.log_volume
        first = np.zeros(1, int) if offsets is None else offsets[:-1]
        counts = np.add.reduceat(seen, first, axis=1).T
        logs = np.log(self.scale[..., self.active])
        excess = (counts * logs).sum(axis=-1)
        return excess if offsets is not None else float(excess[0])

    def frames(self, z, offsets=None):
        """Standardized channels in the coordinates of the fit."""
        if self.basis is None:
            return z
        if offsets is None:
            offsets = np.array([0, z.shape[1]])
        bases = self.basis if self.basis.ndim == 3 else self.basis[None]
        return whitened_rows(z, offsets, np.ascontiguousarray(bases.swapaxes(1, 2)))

    def raw_states(self, states):
        """Means and covariances of fitted models over all channels, in raw units."""
        local_means, local_covars = states
        active, scale = self.active, self.scale[..., None, self.active]
        shape = (*local_means.shape[:-1], len(active))
        means = np.zeros(shape) + self.centre[..., None, :]
        if self.basis is None:
            covars = np.zeros(shape)
            means[..., active] += scale * local_means
            covars[..., active] = local_covars * scale**2
        else:
            covars = np.zeros((*shape, len(active)))
            back = self.inverse * scale
            means[..., active] += local_means @ back
            back = back[..., None, :, :]
            block = back.swapaxes(-1, -2) @ local_covars @ back
            rows, columns = np.ix_(active, active)
            block = (block + block.swapaxes(-1, -2)) / 2
            covars[..., rows, columns] = _semidefinite(block, local_covars, back)
        return means, covars

    def local_model(self, model):
        """Map a model over all channels, in raw units, into these coordinates."""
        raw_means, raw_covars = model.states
        active, scale = self.active, self.scale[..., None, self.active]
        means = (raw_means[:, active] - self.centre[..., None, active]) / scale
        if self.basis is None:
            covars = raw_covars[:, active] / scale**2
        else:
            inside = np.ix_(np.arange(len(raw_means)), active, active)
            units = scale[..., None] * scale[..., None, :]
            # Products of one and of many matrices round identically only if they have
            # the same memory layout.
            basis = np.ascontiguousarray(self.basis)
            means = np.ascontiguousarray(means) @ basis
            basis = basis[..., None, :, :]
            transposed = np.ascontiguousarray(basis.swapaxes(-1, -2))
            covars = (
                transposed @ np.ascontiguousarray(raw_covars[inside] / units) @ basis
            )
        shape = self.scale.shape[:-1]
        return Model(
            np.broadcast_to(model.startprob, shape + model.startprob.shape).copy(),
            np.broadcast_to(model.transmat, shape + model.transmat.shape).copy(),
            (np.ascontiguousarray(means), np.ascontiguousarray(covars)),
        )


def channel_scales(channels, offsets, covariance_type):
    """Which channels of each sequence vary, and by how much.

    Parameters
    ----------
    channels : ndarray of shape (n_features, n_timesteps)
        Frames channel by channel, NaN where not observed.

    offsets : ndarray of shape (n_sequences + 1,)
        Where the sequences begin and end.

    covariance_type : {"diag", "spherical", "full", "tied"}
        Spherical models keep the channels' relative units.

    Returns
    -------
    active, missing, gappy : ndarray of bool of shape (n_sequences, n_features)
        Channels that vary, channels without any value, channels with missing values.

    centre, scale : ndarray of shape (n_sequences, n_features)
        As in `Coordinates`.
    """
    centre, variances, low, high, counts = channel_summaries(channels, offsets)
    missing = counts == 0
    size = np.maximum(np.abs(low), np.abs(high))
    least = np.maximum(CONSTANT_RANGE * size, LEAST_RANGE)
    constant = ~missing & ~(high - low > least)
    centre = np.where(constant, low, centre)
    active = ~(missing | constant) & (variances > 0)
    if covariance_type == "spherical":
        shared = np.where(active, variances, 0.0).sum(axis=1)
        shared = shared / np.maximum(active.sum(axis=1), 1)
        variances = np.repeat(shared[:, None], variances.shape[1], axis=1)
    scale = np.sqrt(np.where(active, variances, 1.0))
    gappy = ~missing & (counts < np.diff(offsets)[:, None])
    return active, missing, gappy, centre, scale


def make_coordinates(channels, offsets, scales, covariance_type):
    """Coordinates of sequences in which the same channels vary.

    Parameters
    ----------
    channels, offsets, covariance_type :
        As in `channel_scales`; full and tied models are whitened.

    scales : tuple of ndarray
        What `channel_scales` returned.
    """
    active, missing, _, centre, scale = scales
    log_volume = np.log(scale).sum(axis=-1)
    plain = Coordinates(active[0], missing, centre, scale, None, None, log_volume)
    if covariance_type in {"diag", "spherical"}:
        return plain
    z, _ = plain.standardized(channels, offsets)
    values, vectors = in_batches(np.linalg.eigh, second_moments(z, offsets))
    top = np.maximum(values.max(axis=1, initial=0.0, keepdims=True), 1.0)
    values = np.maximum(values, COLLINEAR_FRACTION * top)
    roots = np.sqrt(values)
    # A symmetric matrix does not depend on the choice of eigenvectors for directions of
    # equal variance, such as zero variance if there are more channels than frames.
    basis, inverse = composed(1 / roots, vectors), composed(roots, vectors)
    log_volume = log_volume + 0.5 * np.log(values).sum(axis=1)
    return replace(plain, basis=basis, inverse=inverse, log_volume=log_volume)


def pooled_coordinates(channels, covariance_type):
    """Coordinates, without a leading axis, of the frames of all sequences together."""
    offsets = np.array([0, channels.shape[1]])
    scales = channel_scales(channels, offsets, covariance_type)
    return make_coordinates(channels, offsets, scales, covariance_type)[0]


def is_oversized(channels, offsets):
    """Return a mask of the sequences with values far larger than in the others."""
    active, missing, _, centre, scale = channel_scales(channels, offsets, "diag")
    varies = active.any(axis=0)
    active, missing, centre, scale = (
        part[:, varies] for part in (active, missing, centre, scale)
    )
    gaps = centre - chosen_medians(centre, active)
    size = np.hypot(np.where(active, scale, 0.0), gaps)
    limit = OTHER_SCALE * chosen_medians(size, active)
    return (~missing & (size > limit)).any(axis=1)


def chosen_medians(values, chosen):
    """Return the medians of the chosen entries of columns, at least one of each."""
    ordered = np.sort(np.where(chosen, values, np.inf), axis=0)
    count, columns = chosen.sum(axis=0), np.arange(values.shape[1])
    return (ordered[(count - 1) // 2, columns] + ordered[count // 2, columns]) / 2


def is_of_other_scale(coordinates, scales):
    """Return a mask of the sequences far larger or smaller than the coordinates."""
    active, missing, _, centre, scale = scales
    spread = np.where(active, scale, 0.0)
    size = np.hypot(spread, np.where(missing, 0.0, centre - coordinates.centre))
    known = coordinates.active & ~missing
    large = (known & (size > OTHER_SCALE * coordinates.scale)).any(axis=1)
    both = known & active
    small = ~both | (spread * OTHER_SCALE < coordinates.scale)
    return large | (both.any(axis=1) & small.all(axis=1))


def _semidefinite(raw, local, back):
    """Return raw covariances, rebuilt from roots where rounding made them indefinite.

    A state far outside of its sequence has covariances so large, in coordinates that
    amplify nearly equal channels, that their products lose all digits.
    """
    if raw.size == 0:
        return raw
    limit = INDEFINITE * np.abs(raw).max(axis=(-2, -1))
    # The rounding of a product is bounded by the product of the sizes. This bound rules
    # out most matrices, so eigenvalues are computed for the few others only.
    sizes = np.abs(back)
    sizes = sizes.swapaxes(-1, -2) @ np.abs(local) @ sizes
    rounding = PRODUCT_ROUNDING * raw.shape[-1] ** 2 * sizes.max(axis=(-2, -1))
    wrong = ~(rounding <= limit)
    if wrong.any():
        least = in_batches(np.linalg.eigvalsh, raw[wrong])[..., 0]
        wrong[wrong] = least < -limit[wrong]
    if wrong.any():
        back = np.broadcast_to(back, (*wrong.shape, *back.shape[-2:]))[wrong]
        half = covariance_roots(local[wrong]).swapaxes(-1, -2) @ back
        raw[wrong] = half.swapaxes(-1, -2) @ half
    return raw
