"""Coordinates in which a sequence is fitted: centred, scaled, free of dead channels.

EM commutes with affine maps, so fitting in good coordinates and mapping the model back
gives the same model as fitting the raw values, without their trouble: offsets that eat
digits, units that differ by ten orders, channels that do not move.
"""

from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from skawhmm._densities import KERNEL, REORDERED
from skawhmm._em import Model

# A channel whose range is below this share of its size is constant up to rounding.
CONSTANT_RANGE = 8 * np.finfo(float).eps
# Directions of less variance than this share are scaled as if they had it, which keeps
# collinear channels finite.
COLLINEAR_SHARE = 1e-6


@dataclass(frozen=True)
class Coordinates:
    """An affine map of the channels that vary, and what the others hold.

    Attributes
    ----------
    missing, active : ndarray of shape (n_features,)
        Channels without any value; channels that vary.

    centre, scale : ndarray of shape (n_features,)
        Means and standard deviations (0 and 1 where missing, 1 where constant).

    basis, inverse : ndarray of shape (n_active, n_active) or None
        Whitening matrix and its inverse; None for diagonal models.

    log_volume : float
        What a complete frame's log density in these coordinates exceeds the raw one by.
    """

    missing: np.ndarray
    active: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    basis: np.ndarray | None
    inverse: np.ndarray | None
    log_volume: float

    def standardized(self, channels):
        """Active channels (n_active, n_timesteps) centred and scaled, and their mask.

        Values not observed become 0; the mask is empty if there are none.
        """
        active = np.flatnonzero(self.active)
        return standardized_rows(channels, active, self.centre, self.scale)

    def excess(self, n_timesteps, seen):
        """Log likelihood in these coordinates less that of the raw frames."""
        if seen.size == 0:
            return n_timesteps * self.log_volume
        return float(seen.sum(axis=1) @ np.log(self.scale[self.active]))

    def frames(self, z):
        """Standardized channels in the coordinates of the fit."""
        return z if self.basis is None else np.ascontiguousarray(self.basis.T @ z)

    def raw_emissions(self, model):
        """Means and covariances of a fitted model over all channels, in raw units."""
        active, scale = self.active, self.scale[self.active]
        n_components, n_features = len(model.means), len(active)
        means = np.tile(self.centre, (n_components, 1))
        covars = np.zeros((n_components, *(n_features,) * (model.covars.ndim - 1)))
        if self.basis is None:
            means[:, active] += scale * model.means
            covars[:, active] = model.covars * scale**2
        else:
            back = self.inverse * scale
            means[:, active] += model.means @ back
            block = back.T @ model.covars @ back
            inside = np.ix_(np.arange(n_components), active, active)
            covars[inside] = (block + block.transpose(0, 2, 1)) / 2
        return means, covars

    def local_model(self, model):
        """Map a model over all channels, in raw units, into these coordinates."""
        active, scale = self.active, self.scale[self.active]
        means = (model.means[:, active] - self.centre[active]) / scale
        if self.basis is None:
            covars = model.covars[:, active] / scale**2
        else:
            inside = np.ix_(np.arange(len(means)), active, active)
            block = model.covars[inside] / np.outer(scale, scale)
            means = means @ self.basis
            covars = self.basis.T @ block @ self.basis
        return Model(
            model.startprob,
            model.transmat,
            np.ascontiguousarray(means),
            np.ascontiguousarray(covars),
        )


@njit(**REORDERED)
def row_summary(row):
    """Sum, least and greatest value and number of the values that are not NaN."""
    total, low, high, count = 0.0, np.inf, -np.inf, 0
    for value in row:
        seen = not np.isnan(value)
        total += value if seen else 0.0
        low = min(low, value if seen else np.inf)
        high = max(high, value if seen else -np.inf)
        count += seen
    return total, low, high, count


@njit(**REORDERED)
def row_spread(row, centre):
    """Sum of squared gaps of the values that are not NaN."""
    total = 0.0
    for value in row:
        gap = 0.0 if np.isnan(value) else value - centre
        total += gap * gap
    return total


@njit(**KERNEL)
def channel_summary(channels):
    """Means, variances, least and greatest values and counts of all channels."""
    summary = np.zeros((5, channels.shape[0]))
    for c in range(channels.shape[0]):
        total, low, high, count = row_summary(channels[c])
        summary[2, c], summary[3, c], summary[4, c] = low, high, count
        if count > 0:
            summary[0, c] = total / count
            summary[1, c] = row_spread(channels[c], total / count) / count
    return summary


@njit(**KERNEL)
def standardized_rows(channels, active, centre, scale):
    """Chosen channels centred, scaled, NaN replaced by 0, and the mask of those."""
    result = np.empty((active.shape[0], channels.shape[1]))
    complete = True
    for i in range(active.shape[0]):
        row, out = channels[active[i]], result[i]
        shift, factor = centre[active[i]], 1 / scale[active[i]]
        total = 0.0
        for t in range(row.shape[0]):
            out[t] = (row[t] - shift) * factor
            total += out[t]
        complete &= not np.isnan(total)
    if complete:
        return result, np.empty((0, 0))
    seen = np.empty(result.shape)
    for i in range(result.shape[0]):
        for t in range(result.shape[1]):
            unknown = np.isnan(result[i, t])
            seen[i, t] = 0.0 if unknown else 1.0
            result[i, t] = 0.0 if unknown else result[i, t]
    return result, seen


def make_coordinates(channels, covariance_type):
    """Coordinates for the frames of one sequence, or of many pooled.

    Parameters
    ----------
    channels : ndarray of shape (n_features, n_timesteps)
        Frames channel by channel, NaN where not observed.

    covariance_type : {"diag", "spherical", "full", "tied"}
        Spherical models keep the channels' relative units; full and tied ones are
        whitened.
    """
    centre, variances, low, high, counts = channel_summary(channels)
    missing = counts == 0
    size = np.maximum(np.abs(low), np.abs(high))
    constant = ~missing & ~(high - low > CONSTANT_RANGE * size)
    centre = np.where(constant, low, centre)
    active = ~(missing | constant) & (variances > 0)
    if covariance_type == "spherical" and active.any():
        variances = np.full(len(variances), variances[active].mean())
    scale = np.sqrt(np.where(active, variances, 1.0))
    log_volume = np.log(scale).sum()
    plain = Coordinates(missing, active, centre, scale, None, None, log_volume)
    if covariance_type in {"diag", "spherical"}:
        return plain
    z, _ = plain.standardized(channels)
    values, vectors = np.linalg.eigh(z @ z.T / z.shape[1])
    values = np.maximum(values, COLLINEAR_SHARE * values.max(initial=1.0))
    basis, inverse = vectors / np.sqrt(values), (vectors * np.sqrt(values)).T
    log_volume += 0.5 * np.log(values).sum()
    return replace(plain, basis=basis, inverse=inverse, log_volume=log_volume)
