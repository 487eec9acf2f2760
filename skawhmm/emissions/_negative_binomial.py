"""States that emit counts whose variance exceeds their mean."""

import numpy as np
from scipy.special import betainc, xlogy
from scipy.stats import nbinom

from skawhmm.emissions._checks import check_not_negative, check_positive
from skawhmm.emissions._gamma import quantile_moments, standard_quantiles
from skawhmm.emissions._negative_binomial_kernels import (
    count_shapes,
    count_sums,
    fill_count_densities,
)
from skawhmm.emissions._poisson import check_count_sequences
from skawhmm.emissions._univariate import (
    EMPTY_COUNT,
    LOG_ZERO,
    ROOT_WEIGHTS,
    Univariate,
)

# Shapes of fitted states. With larger ones, states are practically Poisson.
SHAPE_RANGE = 1e-3, 1e6

# Shape that fits start from.
START_SHAPE = 2.0

# Steps from all frames to the start values of states.
START_STEPS = 3

# Integers below this one have a bin of their own; the bins of larger ones grow by an
# eighth, up to the largest integer that floats count by ones.
N_SMALL = 64
N_WIDE = 300
EDGES = np.concatenate(
    [np.arange(N_SMALL), np.ceil(N_SMALL * 1.125 ** np.arange(N_WIDE))]
).astype(float)

# An integer in the middle of each bin.
MIDDLES = np.floor(np.sqrt(EDGES[:-1] * (EDGES[1:] - 1)))


class NegativeBinomial(Univariate):
    r"""States that emit overdispersed counts, in one or more independent channels.

    The parameters of a state are the ``means`` :math:`m` and ``shapes`` :math:`r` of
    its counts, whose variance is :math:`m + m^2 / r`. Such a count is a Poisson count
    whose rate has a gamma distribution with this mean and shape.

    See Also
    --------
    Poisson : Counts whose variance is their mean.
    ByChannel : States with channels of several kinds.

    Notes
    -----
    Two states are compared by the 2-Wasserstein distance between the distributions of
    their rates. If shapes are large it is the difference of the means, as for
    :class:`Poisson`. Shapes of fitted states are between 0.001 and 1 000 000.

    Examples
    --------
    Bursts of counts:

    >>> import numpy as np
    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.emissions import NegativeBinomial
    >>> rng = np.random.default_rng(0)
    >>> means = np.repeat([2.0, 30.0, 2.0, 30.0], 100)
    >>> counts = rng.poisson(rng.gamma(3, means / 3))[:, None]
    >>> hmm = HMMTransformer(2, emission=NegativeBinomial(), random_state=0)
    >>> np.sort(hmm.fit_transform([counts]).emission.means[0, :, 0]).round()
    array([ 2., 29.])
    """

    name = "negative_binomial"
    parameter_names = ("means", "shapes")
    described_names = ("mean", "shape")
    support = "counts"

    means: np.ndarray
    shapes: np.ndarray

    def from_arrays(self, arrays, is_state):
        """Return the family, or raise unless shapes are positive."""
        check_not_negative("means", arrays["means"])
        check_positive("shapes", arrays["shapes"], is_state)
        return super().from_arrays(arrays, is_state)

    def checked(self, X, *, caller, n_features=None):
        """Return the sequences of a user, if they hold counts."""
        return check_count_sequences(X, n_features=n_features, caller=caller)

    def frames(self, x):
        """Return a checked sequence in the form that compiled functions read."""
        return np.ascontiguousarray(x)

    def log_densities(self, frames, states):
        """Return log densities (n_components, n_timesteps) of frames under states."""
        means, shapes = (np.ascontiguousarray(part) for part in states)
        logs = np.empty((len(means), len(frames)))
        fill_count_densities(frames, means, shapes, _small_logs(means, shapes), logs)
        return logs

    def statistics(self, frames, post, states):
        """Return the sums over frames that an M step needs."""
        shapes = np.ascontiguousarray(states[1])
        return (count_sums(frames, np.ascontiguousarray(post), shapes, EDGES),)

    def update(self, statistics, states, prior, relevance):
        """Return the states of the M step."""
        (sums,) = statistics
        if relevance > 0:
            sums = sums + relevance * self._prior_sums(states, prior)
        few = sums[..., 0] < EMPTY_COUNT
        means = np.where(few, 0.0, sums[..., 1] / np.where(few, 1.0, sums[..., 0]))
        before = np.ascontiguousarray(states[1])
        shapes = count_shapes(sums, means, before, EDGES, *SHAPE_RANGE)
        return np.where(few, states[0], means), np.where(few, states[1], shapes)

    def log_prior(self, states, prior):
        """Return the mean log density of a frame of the prior, over all states."""
        weights, total = _bin_weights(*prior), 0.0
        for c in range(states[0].shape[1]):
            part = tuple(array[:, c : c + 1] for array in states)
            logs = self.log_densities(MIDDLES[:, None], part)
            # A state of mean 0 emits nothing else; 0 times its log density is 0.
            total += np.sum(weights[:, c] * np.maximum(logs, LOG_ZERO))
        return float(total)

    def _prior_sums(self, states, prior):
        """Return the statistics of one frame of the prior of each state."""
        weights, sums = _bin_weights(*prior), []
        for c in range(states[0].shape[1]):
            part = tuple(array[:, c : c + 1] for array in states)
            sums.append(self.statistics(MIDDLES[:, None], weights[:, c], part)[0])
        return np.concatenate(sums, axis=1)

    def given_states(self, frames, post):
        """Return states by the probabilities of the states in each frame."""
        shape = len(post), frames.shape[1]
        states = np.zeros(shape), np.full(shape, START_SHAPE)
        for _ in range(START_STEPS):
            statistics = self.statistics(frames, post, states)
            states = self.update(statistics, states, states, 0.0)
        return states

    def cluster_points(self, frames):
        """Return the roots of counts, whose spread depends little on the mean."""
        roots = np.sqrt(frames)
        return np.where(np.isnan(roots), np.nanmean(roots, axis=0), roots)

    def drawn(self, i, path, rng):
        """Draw a checked sequence from model i, given its path of states."""
        means, shapes = self.means[i][path], self.shapes[i][path]
        return rng.poisson(rng.gamma(shapes, means / shapes)).astype(float)

    def frames_at(self, i, path, levels):
        """Return the counts of model i at given levels of their distributions."""
        means, shapes = self.means[i][path], self.shapes[i][path]
        return nbinom.ppf(levels, shapes, shapes / (shapes + means))

    def shown(self, x):
        """Return a drawn sequence as counts."""
        return x.astype(np.int64)

    has_moments = True

    def means_and_variances(self, means, shapes):
        """Return means and variances of states."""
        return means, means + means**2 / shapes

    def merged(self, weights):
        """Return the family with states that have the moments of mixtures."""
        used = self.shapes > 0
        rates = np.where(used, self.means**2 / np.where(used, self.shapes, 1.0), 0.0)
        means = np.einsum("nkj,njc->nkc", weights, self.means)
        gaps = self.means[:, None] - means[:, :, None]
        spread = np.einsum("nkj,nkjc->nkc", weights, rates[:, None] + gaps**2)
        shapes = _matched_shapes(means, spread)
        return self.like(means, shapes, observed=self.observed)

    def points(self):
        """Return quantiles of the rates."""
        used = self.shapes > 0
        shapes = np.where(used, self.shapes, 1.0)
        scales = np.where(used, self.means / shapes, 0.0)
        quantiles = standard_quantiles(shapes) * scales[..., None] * ROOT_WEIGHTS
        return quantiles.reshape(*used.shape[:2], -1)

    def projected(self, points):
        """Return the parameters of the states with the moments of points."""
        means, sds = quantile_moments(points.reshape(*self.means.shape, -1))
        return means, _matched_shapes(means, sds**2)


def _matched_shapes(means, variances):
    """Return shapes of rates with given means and variances, within their range."""
    few = variances * SHAPE_RANGE[1] <= means**2
    shapes = np.where(few, SHAPE_RANGE[1], means**2 / np.where(few, 1.0, variances))
    return np.maximum(shapes, SHAPE_RANGE[0])


def _small_logs(means, shapes):
    """Return log probabilities of small counts, on a new last axis."""
    means, shapes, counts = means[..., None], shapes[..., None], np.arange(N_SMALL)
    steps = np.log((shapes + counts[:-1]) / counts[1:])
    ways = np.concatenate([np.zeros(steps[..., :1].shape), steps.cumsum(-1)], axis=-1)
    chances = -shapes * np.log1p(means / shapes) + xlogy(
        counts, means / (means + shapes)
    )
    return ways + chances


def _bin_weights(means, shapes):
    """Return the probabilities (n_components, n_channels, n_bins) of the bins."""
    means, shapes = means[..., None], shapes[..., None]
    below = betainc(shapes, np.maximum(EDGES, 1.0), shapes / (shapes + means))
    below = np.where(EDGES > 0, below, 0.0)
    below[..., -1] = 1.0
    return np.diff(below)
