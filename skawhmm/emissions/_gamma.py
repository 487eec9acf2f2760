"""States that emit positive numbers, by gamma distributions."""

import numpy as np
from scipy.special import digamma, gammainccinv, gammaincinv, gammaln

from skawhmm.emissions._checks import check_not_negative, check_positive
from skawhmm.emissions._univariate import (
    EMPTY_COUNT,
    LEAST_SPREAD,
    LEVELS,
    LOG_ZERO,
    ROOT_WEIGHTS,
    UPPER_LEVELS,
    ExponentialFamily,
)
from skawhmm.emissions._univariate_kernels import gamma_shapes
from skawhmm.utils._checks import check_boolean

# Shapes of fitted states: quantiles of smaller ones leave the range of numbers, and
# larger ones differ from a constant by rounding.
SHAPE_RANGE = 1e-2, 1e10


class Gamma(ExponentialFamily):
    r"""States that emit positive numbers, such as speeds, in independent channels.

    The parameters of a state are the ``means`` and standard deviations ``sds`` of its
    gamma distributions, and ``zero_probs``, the probabilities of an exact 0.

    Parameters
    ----------
    zero_mass : bool, default=False
        Whether a channel may be exactly 0, with a separate probability in each state.
        Otherwise zeros raise an error, because the density of a gamma distribution at 0
        is 0 or infinite.

    See Also
    --------
    VonMises : States that emit angles.
    ByChannel : States with channels of several kinds.

    Notes
    -----
    Two states are compared by the 2-Wasserstein distance of their gamma distributions,
    summed over channels. States that differ in their probability of 0 only are
    :math:`|z - z'|` times their mean apart, which is the 1-Wasserstein distance. (Their
    2-Wasserstein distance would be the square root of it, in which small errors of a
    fit become large distances.)

    The standard deviation of a state is at least 1 % of the standard deviation of the
    sequence.

    Examples
    --------
    Steps of an animal that rests and travels:

    >>> import numpy as np
    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.emissions import Gamma
    >>> rng = np.random.default_rng(0)
    >>> steps = rng.gamma(2, np.repeat([0.1, 3, 0.1, 3], 60))[:, None]
    >>> hmm = HMMTransformer(2, emission=Gamma(), random_state=0)
    >>> hmm.fit_transform([steps]).emission.means[0].round(1)
    array([[6.2],
           [0.2]])
    """

    name = "gamma"
    parameter_names = ("means", "sds", "zero_probs")
    described_names = ("mean", "sd", "p_zero")
    n_values = 4

    means: np.ndarray
    sds: np.ndarray
    zero_probs: np.ndarray

    def __init__(self, zero_mass: bool = False) -> None:
        self.zero_mass = zero_mass

    def check_options(self):
        """Raise if an option is wrong."""
        check_boolean("zero_mass", self.zero_mass)

    @property
    def stored_options(self):
        """Options that a file must hold besides the arrays."""
        return {"zero_mass": True} if self.zero_mass else {}

    def from_arrays(self, arrays, is_state):
        """Return the family, or raise unless means and deviations are positive."""
        for name in ("means", "sds"):
            check_positive(name, arrays[name], is_state)
        zeros = arrays["zero_probs"]
        check_not_negative("zero_probs", zeros)
        largest = 1.0 if self.zero_mass else 0.0
        if zeros.max() > largest:
            hint = "" if self.zero_mass else " without zero_mass=True"
            raise ValueError(
                f"zero_probs must be at most {largest:g}{hint}, got {zeros.max()}."
            )
        return super().from_arrays(arrays, is_state)

    def check_frames(self, x, name):
        """Raise if a value is negative, or 0 without `zero_mass`."""
        low = np.fmin.reduce(x, axis=None)
        if low < 0:
            raise ValueError(
                f"{name} must not hold negative numbers for states of kind 'gamma', "
                f"got {low}."
            )
        if low == 0 and not self.zero_mass:
            raise ValueError(
                f"{name} must hold positive numbers, got {np.count_nonzero(x == 0)} "
                "zeros. Gamma(zero_mass=True) gives them a probability."
            )

    def features(self, x):
        """Return whether values are positive, the values, their logs, and the zeros."""
        positive, zero = x > 0, x == 0
        values = np.where(positive, x, 1.0)
        parts = positive, values * positive, np.log(values), zero
        return np.stack([np.asarray(part, dtype=float) for part in parts], axis=2)

    def factors(self, states):
        """Return the factors of the features in log densities."""
        means, sds, zeros = states
        shapes, rates = _shapes_and_rates(means, sds)
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log1p(-zeros), LOG_ZERO)
            log_zeros = np.maximum(np.log(zeros), LOG_ZERO)
        norms = shapes * np.log(rates) - gammaln(shapes)
        return np.stack([norms + logs, -rates, shapes - 1, log_zeros], axis=-1)

    def expected_features(self, states):
        """Return the expected features of states."""
        means, sds, zeros = states
        shapes, rates = _shapes_and_rates(means, sds)
        parts = np.ones_like(means), means, digamma(shapes) - np.log(rates)
        return np.stack([*((1 - zeros) * part for part in parts), zeros], axis=-1)

    def solved(self, sums, states):
        """Return the likeliest states, given the sums of features."""
        means, shapes = _likeliest(*np.moveaxis(sums[..., :3], -1, 0))
        whole_means, whole_shapes = _likeliest(
            *np.moveaxis(sums[..., :3].sum(0), -1, 0)
        )
        least = LEAST_SPREAD * whole_means / np.sqrt(whole_shapes)
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = np.clip((means / least) ** 2, *SHAPE_RANGE)
        shapes = np.clip(shapes, SHAPE_RANGE[0], limits)
        few = sums[..., 0] < EMPTY_COUNT
        new_means = np.where(few, states[0], means)
        new_sds = np.where(few, states[1], means / np.sqrt(shapes))
        totals = sums[..., 0] + sums[..., 3]
        empty = totals < EMPTY_COUNT
        zeros = np.where(empty, states[2], sums[..., 3] / np.where(empty, 1.0, totals))
        return new_means, new_sds, zeros

    def default_states(self, shape):
        """Return states of channels without any positive value."""
        return np.ones(shape), np.ones(shape), np.zeros(shape)

    def cluster_points(self, frames):
        """Return the roots of values, whose spread depends little on the mean."""
        return np.sqrt(frames[:, 1 :: self.n_values])

    def varied(self, frames):
        """Tell whether a channel has more than one value."""
        seen = frames[:, :: self.n_values] + frames[:, 3 :: self.n_values] > 0
        return super().varied(np.where(seen, frames[:, 1 :: self.n_values], np.nan))

    def n_free(self, frames):
        """Return the number of free parameters per state."""
        return (2 + self.zero_mass) * frames.shape[1] // self.n_values

    def drawn(self, i, path, rng):
        """Draw a checked sequence from model i, given its path of states."""
        means, sds = self.means[i][path], self.sds[i][path]
        values = rng.gamma((means / sds) ** 2, sds**2 / means)
        # Tiny shapes draw numbers that are too small for a float.
        values = np.maximum(values, np.finfo(float).tiny)
        if not self.zero_mass:
            return values
        return np.where(rng.random(values.shape) < self.zero_probs[i][path], 0, values)

    def frames_at(self, i, path, levels):
        """Return the numbers of model i at given levels of their distributions."""
        zeros = self.zero_probs[i][path]
        shapes, rates = _shapes_and_rates(self.means[i][path], self.sds[i][path])
        inside = (levels - zeros) / np.where(zeros < 1, 1 - zeros, 1.0)
        values = gammaincinv(shapes, np.clip(inside, 0.0, 1.0)) / rates
        values = np.maximum(values, np.finfo(float).tiny)
        return np.where(levels < zeros, 0.0, values)

    has_moments = True

    def means_and_variances(self, means, sds, zeros):
        """Return means and variances of states, zeros included."""
        whole = (1 - zeros) * means
        return whole, (1 - zeros) * (sds**2 + means**2) - whole**2

    def merged(self, weights):
        """Return the family with states that have the moments of mixtures."""
        kept = weights[..., None] * (1 - self.zero_probs)[:, None]
        totals = kept.sum(axis=2)
        filled = totals > 0
        # If all states are always 0, their gamma distributions get equal weight.
        kept = np.where(filled[:, :, None], kept, weights[..., None])
        kept /= np.maximum(kept.sum(axis=2, keepdims=True), np.finfo(float).tiny)
        means = np.sum(kept * self.means[:, None], axis=2)
        gaps = self.means[:, None] - means[:, :, None]
        variances = np.sum(kept * (self.sds[:, None] ** 2 + gaps**2), axis=2)
        zeros = np.einsum("nkj,njc->nkc", weights, self.zero_probs)
        return self.like(means, np.sqrt(variances), zeros, observed=self.observed)

    def points(self):
        """Return quantiles of each channel and its zero probability times its mean."""
        used = self.means > 0
        shapes, rates = _shapes_and_rates(
            np.where(used, self.means, 1.0), np.where(used, self.sds, 1.0)
        )
        quantiles = standard_quantiles(shapes) / rates[..., None] * ROOT_WEIGHTS
        quantiles = np.where(used[..., None], quantiles, 0.0)
        parts = [quantiles.reshape(*used.shape[:2], -1)]
        if self.zero_mass:
            parts.append(self.zero_probs * self.means)
        return np.concatenate(parts, axis=2)

    def projected(self, points):
        """Return the parameters of the states with the moments of points."""
        n_features = self.n_features
        quantiles, rest = np.split(points, [n_features * len(LEVELS)], axis=2)
        means, sds = quantile_moments(quantiles.reshape(*self.means.shape, -1))
        # Quantiles at a single node have no spread.
        sds = np.maximum(sds, means / np.sqrt(SHAPE_RANGE[1]))
        zeros = np.zeros(means.shape)
        if self.zero_mass:
            zeros = np.clip(rest / np.where(means > 0, means, 1.0), 0.0, 1.0)
        return means, sds, zeros


def quantile_moments(points):
    """Return mean and standard deviation of weighted quantiles on the last axis."""
    means = np.sum(points * ROOT_WEIGHTS, axis=-1)
    squares = np.sum((points - means[..., None] * ROOT_WEIGHTS) ** 2, axis=-1)
    return means, np.sqrt(squares)


def standard_quantiles(shapes):
    """Return quantiles of gamma distributions of rate 1, nodes on a new last axis."""
    half = len(LEVELS) // 2
    low = gammaincinv(shapes[..., None], LEVELS[:half])
    high = gammainccinv(shapes[..., None], UPPER_LEVELS[half:])
    return np.concatenate([low, high], axis=-1)


def _shapes_and_rates(means, sds):
    return (means / sds) ** 2, means / sds**2


def _likeliest(counts, sums, logs):
    """Return the mean and the shape of greatest likelihood; shape infinite if equal."""
    few = counts < EMPTY_COUNT
    counts = np.where(few, 1.0, counts)
    means = np.where(few, 1.0, sums / counts)
    gaps = np.where(few, 1.0, np.log(means) - logs / counts)
    return means, gamma_shapes(gaps)
