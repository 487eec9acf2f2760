"""States that emit numbers with heavy tails, by Student's t distributions."""

import numpy as np
from scipy.special import gammaln, stdtrit

from skawhmm.emissions._checks import check_positive
from skawhmm.emissions._student_kernels import fill_student_densities, student_sums
from skawhmm.emissions._univariate import (
    EMPTY_COUNT,
    LEAST_SPREAD,
    LEVELS,
    ROOT_WEIGHTS,
    Univariate,
)
from skawhmm.emissions._univariate_kernels import gamma_shapes

# Degrees of freedom of fitted states. With 2 or less the variance is infinite; with
# more, states are practically Gaussian.
FREEDOM_RANGE = 2.5, 1000.0

# Degrees of freedom that fits start from.
START_FREEDOM = 5.0

# The range of the middle half of a Gaussian, in standard deviations.
QUARTILE_RANGE = 1.3489795

# Least scale of a channel that does not vary, as a fraction of its value.
LEAST_DEVIATION = 1e-6

# EM steps from one state for all frames to the start values; each halves the influence
# of that state.
START_STEPS = 3

# Degrees of freedom between which those of an average are interpolated.
N_FREEDOMS = 100

# Values of a prior: a rule of Gauss and Legendre.
PRIOR_NODES, PRIOR_WEIGHTS = np.polynomial.legendre.leggauss(64)


class StudentT(Univariate):
    r"""States that emit numbers with heavy tails, in independent channels.

    The parameters of a state are the ``locations``, ``scales`` and degrees of freedom
    ``dofs`` of Student's t distributions. Outliers hardly move them.

    See Also
    --------
    Gaussian : States without outliers, and with correlated channels.
    ByChannel : States with channels of several kinds.

    Notes
    -----
    Two states are compared by their 2-Wasserstein distance, which exists if variances
    exist. Degrees of freedom are therefore above 2; in fitted states they are between
    2.5 and 1000. The scale of a fitted state is at least 1 % of the spread of the
    sequence (its interquartile range, scaled to the standard deviation of a Gaussian),
    and 1e-6 of the location if all values are equal.

    The M step uses the expanded model of Liu, Rubin and Wu (1998), which needs fewer
    steps than plain EM.

    References
    ----------
    C. Liu, D. B. Rubin and Y. N. Wu (1998). "Parameter expansion to accelerate EM: the
    PX-EM algorithm." Biometrika 85, 755-770.

    Examples
    --------
    Two levels, and two extreme outliers:

    >>> import numpy as np
    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.emissions import StudentT
    >>> rng = np.random.default_rng(0)
    >>> x = np.repeat([0.0, 5.0, 0.0, 5.0], 60) + rng.standard_t(3, 240)
    >>> x[[20, 100]] = 1000.0
    >>> hmm = HMMTransformer(2, emission=StudentT(), random_state=0)
    >>> np.sort(hmm.fit_transform([x[:, None]]).emission.locations[0, :, 0]).round(1)
    array([0.1, 4.9])
    """

    name = "student"
    parameter_names = ("locations", "scales", "dofs")
    described_names = ("location", "scale", "dof")

    locations: np.ndarray
    scales: np.ndarray
    dofs: np.ndarray

    def from_arrays(self, arrays, is_state):
        """Return the family, or raise unless all variances are finite."""
        check_positive("scales", arrays["scales"], is_state)
        check_positive("dofs", arrays["dofs"], is_state)
        low = np.where(arrays["dofs"] > 0, arrays["dofs"], np.inf).min()
        if low <= 2:
            raise ValueError(f"dofs must be above 2 for a finite variance, got {low}.")
        return super().from_arrays(arrays, is_state)

    def frames(self, x):
        """Return the values, and the spread of each channel in each frame."""
        low, middle, high = _quartiles(x)
        spread = (high - low) / QUARTILE_RANGE
        gaps = np.abs(x - middle)
        seen = np.maximum((~np.isnan(x)).sum(axis=0), 1)
        # If more than half of the values are equal, the others say more.
        mean = np.nansum(np.where(gaps > 0, gaps, np.nan), axis=0) / seen
        spread = np.where(spread > 0, spread, mean)
        return np.concatenate([x, np.broadcast_to(spread, x.shape)], axis=1)

    def log_densities(self, frames, states):
        """Return log densities (n_components, n_timesteps) of frames under states."""
        logs = np.empty((len(states[0]), len(frames)))
        norms = _log_peaks(states[1], states[2])
        fill_student_densities(frames, np.stack(states), norms, logs)
        return logs

    def statistics(self, frames, post, states):
        """Return the sums over frames that an M step needs."""
        return (student_sums(frames, np.ascontiguousarray(post), np.stack(states)),)

    def update(self, statistics, states, prior, relevance):
        """Return the states of the M step."""
        (sums,) = statistics
        if relevance > 0:
            sums = sums + relevance * self._prior_sums(states, prior)
        counts, weights, firsts, seconds, logs = np.moveaxis(sums[..., :5], -1, 0)
        few = counts < EMPTY_COUNT
        counts, weights = np.where(few, 1.0, counts), np.where(few, 1.0, weights)
        shifts = firsts / weights
        variances = np.maximum(seconds / weights - shifts**2, 0.0)
        totals = np.maximum(sums[..., 0].sum(axis=0), EMPTY_COUNT)
        least = LEAST_SPREAD * sums[..., 5].sum(axis=0) / totals
        sizes = np.abs(states[0] + shifts)
        still = LEAST_DEVIATION * np.where(sizes == 0, 1.0, sizes)
        scales = np.maximum(np.sqrt(variances), np.where(least > 0, least, still))
        shapes = gamma_shapes(np.log(weights / counts) - logs / counts)
        return (
            np.where(few, states[0], states[0] + shifts),
            np.where(few, states[1], scales),
            np.where(few, states[2], np.clip(2 * shapes, *FREEDOM_RANGE)),
        )

    def log_prior(self, states, prior):
        """Return the mean log density of a frame of the prior, over all states."""
        total = 0.0
        for k, c, values in self._prior_values(prior):
            state = tuple(part[k : k + 1, c : c + 1] for part in states)
            total += float(self.log_densities(values, state)[0] @ PRIOR_WEIGHTS) / 2
        return total

    def _prior_sums(self, states, prior):
        """Return the statistics of one frame of the prior of each state."""
        sums = np.empty((*states[0].shape, 6))
        for k, c, values in self._prior_values(prior):
            state = tuple(part[k : k + 1, c : c + 1] for part in states)
            sums[k, c] = self.statistics(values, PRIOR_WEIGHTS[None] / 2, state)[0][
                0, 0
            ]
        return sums

    def _prior_values(self, prior):
        """Give each state and channel of a prior, and its quantiles as frames."""
        locations, scales, dofs = prior
        levels = 0.5 * (PRIOR_NODES + 1)
        for k, c in np.ndindex(locations.shape):
            values = locations[k, c] + scales[k, c] * stdtrit(dofs[k, c], levels)
            yield k, c, np.stack([values, np.full(len(values), scales[k, c])], axis=1)

    def given_states(self, frames, post):
        """Return states by the probabilities of the states in each frame."""
        n_channels = frames.shape[1] // 2
        _, middle, _ = _quartiles(frames[:, :n_channels])
        spread = frames[0, n_channels:]
        shape = len(post), n_channels
        states = (
            np.broadcast_to(np.nan_to_num(middle), shape),
            np.broadcast_to(np.where(spread > 0, spread, 1.0), shape),
            np.full(shape, START_FREEDOM),
        )
        for _ in range(START_STEPS):
            statistics = self.statistics(frames, post, states)
            states = self.update(statistics, states, states, 0.0)
        return states

    def cluster_points(self, frames):
        """Return values in units of the spread, without outliers."""
        n_channels = frames.shape[1] // 2
        _, middle, _ = _quartiles(frames[:, :n_channels])
        spread = frames[0, n_channels:]
        points = (frames[:, :n_channels] - middle) / np.where(spread > 0, spread, 1.0)
        return np.nan_to_num(np.clip(points, -3, 3))

    def n_free(self, frames):
        """Return the number of free parameters per state."""
        return 3 * frames.shape[1] // 2

    def drawn(self, i, path, rng):
        """Draw a checked sequence from model i, given its path of states."""
        noise = rng.standard_t(self.dofs[i][path])
        return self.locations[i][path] + self.scales[i][path] * noise

    def frames_at(self, i, path, levels):
        """Return the numbers of model i at given levels of their distributions."""
        noise = stdtrit(self.dofs[i][path], levels)
        return self.locations[i][path] + self.scales[i][path] * noise

    has_moments = True

    def means_and_variances(self, locations, scales, dofs):
        """Return means and variances of states."""
        return locations, scales**2 * _variances(dofs)

    def merged(self, weights):
        """Return the family with states that have the moments of mixtures."""
        means = np.einsum("nkj,njc->nkc", weights, self.locations)
        gaps = self.locations[:, None] - means[:, :, None]
        inner = (self.scales**2 * _variances(self.dofs))[:, None]
        variances = np.einsum("nkj,nkjc->nkc", weights, inner + gaps**2)
        dofs = np.einsum("nkj,njc->nkc", weights, self.dofs)
        dofs = np.where(dofs > 0, dofs, START_FREEDOM)
        scales = np.sqrt(variances / _variances(dofs))
        return self.like(means, scales, dofs, observed=self.observed)

    def points(self):
        """Return the location, upper quantiles around it, and what is beyond them.

        Quantiles around the location are symmetric. What the rule misses of the
        variance lies in the tails, which are in the same order in all states.
        """
        dofs = np.where(self.dofs > 0, self.dofs, START_FREEDOM)
        spread = self.scales[..., None] * _standard_points(dofs)
        flat = spread.reshape(*dofs.shape[:2], -1)
        return np.concatenate([self.locations, flat], axis=2)

    def projected(self, points):
        """Return the states with the variances and mean deviations of points."""
        locations, spread = np.split(points, [self.n_features], axis=2)
        spread = spread.reshape(*locations.shape, -1)
        variances = np.sum(spread**2, axis=-1)
        used = variances > 0
        ratios = _mean_deviations(spread) ** 2 / np.where(used, variances, 1.0)
        grid = np.geomspace(FREEDOM_RANGE[0] - 2, FREEDOM_RANGE[1] - 2, N_FREEDOMS) + 2
        own = _standard_points(grid)
        known = _mean_deviations(own) ** 2 / np.sum(own**2, axis=-1)
        dofs = np.exp(np.interp(ratios, known, np.log(grid)))
        return locations, np.sqrt(variances / _variances(dofs)), dofs


def _standard_points(dofs):
    """Return upper quantiles of scale 1 and what is beyond, on a new last axis."""
    half = len(LEVELS) // 2
    quantiles = -stdtrit(dofs[..., None], LEVELS[:half])
    quantiles *= np.sqrt(2) * ROOT_WEIGHTS[:half]
    beyond = _variances(dofs) - np.sum(quantiles**2, axis=-1)
    return np.concatenate(
        [quantiles, np.sqrt(np.maximum(beyond, 0.0))[..., None]], axis=-1
    )


def _mean_deviations(points):
    """Return mean absolute deviations of points around a location."""
    half = len(LEVELS) // 2
    return np.sqrt(2) * np.sum(points[..., :half] * ROOT_WEIGHTS[:half], axis=-1)


def _variances(dofs):
    """Return variances of t distributions of scale 1; 0 for padding."""
    return np.where(dofs > 2, dofs / np.where(dofs > 2, dofs - 2, 1.0), 0.0)


def _log_peaks(scales, dofs):
    """Return log densities at the location."""
    ratio = gammaln(0.5 * (dofs + 1)) - gammaln(0.5 * dofs)
    return ratio - 0.5 * np.log(np.pi * dofs) - np.log(scales)


def _quartiles(x):
    """Return quartiles of each channel; 0 for channels without any value."""
    seen = ~np.isnan(x).all(axis=0)
    return np.nanquantile(np.where(seen, x, 0.0), [0.25, 0.5, 0.75], axis=0)
