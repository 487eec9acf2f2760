"""EM of Gaussian states one model at a time, for blocks of `ByChannel`.

`Gaussian` alone is fitted many models at a time, in coordinates of its own. In a block
among others it defines what a `SimpleEmission` does: densities, statistics, M step.
"""

from typing import Any

import numpy as np

from skawhmm.emissions._gaussian_em import lifted
from skawhmm.emissions._gaussian_frames_kernels import (
    diag_moments,
    fill_diag_densities,
    fill_full_densities,
    full_moments,
)
from skawhmm.emissions._univariate import EMPTY_COUNT

# Least standard deviation of a channel that does not vary, as a fraction of its value.
LEAST_DEVIATION = 1e-6

# A channel whose standard deviation is a smaller fraction of its value does not vary:
# the rest is rounding.
ROUNDING = 1e-12


class GaussianFrames:
    """What `Gaussian` defines to be one of several blocks."""

    @property
    def is_full(self) -> bool:
        """Whether covariances are matrices while they are fitted."""
        raise NotImplementedError

    @property
    def floor(self) -> float:
        """Least variance in any direction after an M step."""
        raise NotImplementedError

    def frames(self, x: Any) -> Any:
        """Return a checked sequence in the form that compiled functions read."""
        return np.ascontiguousarray(x)

    def log_densities(self, frames: Any, states: Any) -> Any:
        """Return log densities (n_components, n_timesteps) of frames under states."""
        means, covars = (np.ascontiguousarray(part) for part in states)
        logs = np.empty((len(means), len(frames)))
        if covars.ndim == 2:
            fill_diag_densities(frames, means, covars, logs)
        else:
            factors = np.linalg.cholesky(covars)
            whiteners = np.ascontiguousarray(np.linalg.inv(factors))
            fill_full_densities(frames, means, whiteners, logs)
        return logs

    def statistics(self, frames: Any, post: Any, states: Any) -> Any:
        """Return the moments of the frames of each state, about its mean."""
        moments = full_moments if self.is_full else diag_moments
        parts = frames, np.ascontiguousarray(post), np.ascontiguousarray(states[0])
        return (moments(*parts),)

    def update(self, statistics: Any, states: Any, prior: Any, relevance: float) -> Any:
        """Return the states of the M step."""
        counts, firsts, seconds = _parts(statistics[0], self.is_full)
        means = states[0]
        if relevance > 0:
            gaps = prior[0] - means
            counts, firsts = counts + relevance, firsts + relevance * gaps
            seconds = seconds + relevance * (prior[1] + _squares(gaps, self.is_full))
        few = counts < EMPTY_COUNT
        whole = np.where(few, 1.0, counts)
        shifts = firsts / whole
        covars = seconds / _beside(whole, self.is_full) - _squares(shifts, self.is_full)
        least = self._least_deviations(counts, firsts, seconds, means)
        if self.is_full:
            units = least[:, None] * least
            covars = lifted(covars / units, 1.0) * units
        else:
            covars = np.maximum(covars, least**2)
        kept = _beside(few, self.is_full)
        return np.where(few, means, means + shifts), np.where(kept, states[1], covars)

    def _least_deviations(self, counts, firsts, seconds, means):
        """Return the least standard deviation of each channel, from all frames."""
        if self.is_full:
            seconds = np.einsum("kcc->kc", seconds)
        totals = np.maximum(counts.sum(axis=0), EMPTY_COUNT)
        center = (counts * means + firsts).sum(axis=0) / totals
        gaps = means - center
        squares = seconds + 2 * gaps * firsts + counts * gaps**2
        variances = np.maximum(squares.sum(axis=0) / totals, 0.0)
        still = LEAST_DEVIATION * np.where(center == 0, 1.0, np.abs(center))
        varied = variances > (ROUNDING * center) ** 2
        return np.where(varied, np.sqrt(self.floor * variances), still)

    def log_prior(self, states: Any, prior: Any) -> float:
        """Return the mean log density of a frame of the prior, over all states."""
        means, covars = states
        spread = prior[1] + _squares(prior[0] - means, self.is_full)
        if not self.is_full:
            return -0.5 * float(np.sum(np.log(2 * np.pi * covars) + spread / covars))
        inner = np.einsum("kcc->", np.linalg.solve(covars, spread))
        outer = np.linalg.slogdet(2 * np.pi * covars)[1].sum()
        return -0.5 * float(inner + outer)

    def given_states(self, frames: Any, post: Any) -> Any:
        """Return states by the probabilities of the states in each frame."""
        (common,) = self.common_states(frames)[0]
        means = np.tile(common, (len(post), 1))
        shape = (*means.shape, means.shape[1]) if self.is_full else means.shape
        states = means, np.zeros(shape)
        return self.update(self.statistics(frames, post, states), states, states, 0.0)

    def common_states(self, frames: Any) -> Any:
        """Return mean and covariance of all frames, as one state."""
        seen = ~np.isnan(frames)
        totals = np.where(seen, frames, 0.0).sum(axis=0)
        means = (totals / np.maximum(seen.sum(axis=0), 1))[None]
        shape = (*means.shape, means.shape[1]) if self.is_full else means.shape
        states, post = (means, np.zeros(shape)), np.ones((1, len(frames)))
        return self.update(self.statistics(frames, post, states), states, states, 0.0)

    def cluster_points(self, frames: Any) -> Any:
        """Return the frames, with means for missing values."""
        (means,) = self.common_states(frames)[0]
        return np.where(np.isnan(frames), means, frames)

    def varied(self, frames: Any) -> bool:
        """Tell whether a channel has more than one value."""
        low, high = np.fmin.reduce(frames, axis=0), np.fmax.reduce(frames, axis=0)
        return bool((high > low).any())

    def n_free(self, frames: Any) -> int:
        """Return the number of free parameters per state."""
        size = frames.shape[1]
        return size + (size * (size + 1) // 2 if self.is_full else size)


def _parts(moments, is_full):
    """Return counts, sums and sums of squares (or products) of statistics."""
    seconds = moments[:, 2:] if is_full else moments[:, 2]
    return moments[:, 0], moments[:, 1], seconds


def _squares(gaps, is_full):
    """Return squares, or products, of differences."""
    return gaps[:, :, None] * gaps[:, None] if is_full else gaps**2


def _beside(values, is_full):
    """Return values of channels in the shape of covariances."""
    return values[:, :, None] if is_full else values
