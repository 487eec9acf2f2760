"""States that emit counts, compared by transport between Poisson distributions."""

import numpy as np
from scipy.stats import poisson

from skawhmm.emissions._checks import check_not_negative
from skawhmm.emissions._discrete import Discrete
from skawhmm.emissions._discrete_kernels import log_prior_of, mean_rates
from skawhmm.emissions._mmd import gaussian_mmd_comparer, median_squared_gap
from skawhmm.emissions._model import Data
from skawhmm.emissions._poisson_kernels import rate_divergences, squared_rate_gaps
from skawhmm.sequences._checks import check_sequences
from skawhmm.utils._seeds import integer_draws

# NumPy draws no counts of larger rates: they would not fit into an integer.
LARGEST_DRAWN = 1e18


class Poisson(Discrete):
    """States that emit counts in one or more independent channels.

    The parameters of a state are its ``rates``, the mean counts of the channels.

    See Also
    --------
    skawhmm.models.HMMBatch.from_rates : Models with given rates.

    Examples
    --------
    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.emissions import Poisson
    >>> X = [[[0], [1], [0], [9], [8], [9]], [[2], [1], [1], [4], [5], [5]]]
    >>> hmm = HMMTransformer(2, emission=Poisson(), random_state=0)
    >>> hmm.fit_transform(X)
    HMMBatch(n_models=2, n_components=2, emission='poisson', n_features=1)
    """

    name = "poisson"
    support = "counts"
    parameter_names = ("rates",)
    has_kernel = True
    n_statistics = 2
    has_compiled_em = True
    hmmlearn_class = "PoissonHMM"
    hmmlearn_attribute = "lambdas_"

    def from_arrays(self, arrays, is_state):
        """Return the family, or raise if a rate is negative."""
        check_not_negative("rates", arrays["rates"])
        return super().from_arrays(arrays, is_state)

    def described(self, channels):
        """Return the rates of the channels."""
        names = (f"rate_{channel}" for channel in channels)
        return dict(zip(names, np.moveaxis(self.states, 2, 0), strict=True))

    def checked(self, X, *, caller, n_features=None):
        """Return the sequences of a user, if they hold counts."""
        return check_count_sequences(X, n_features=n_features, caller=caller)

    def drawn(self, i, path, rng):
        """Draw a checked sequence from model i, given its path of states."""
        if self.states[i].max() > LARGEST_DRAWN:
            raise ValueError(
                f"rates must be at most {LARGEST_DRAWN:g} for counts to be drawn, got "
                f"{self.states[i].max():g} in model {i}."
            )
        return rng.poisson(self.states[i][path]).astype(float)

    has_moments = True

    def moments(self, i, size):
        """Return means and covariances of the states of a model."""
        rates = self.states[i, :size]
        return rates, rates[..., None] * np.eye(rates.shape[1])

    def frames_at(self, i, path, levels):
        """Return the counts of model i at given levels of their distributions."""
        return poisson.ppf(levels, self.states[i][path])

    def shown(self, x):
        """Return a drawn sequence as counts."""
        return x.astype(np.int64)

    def common_states(self, frames):
        """Return the mean counts, as one state; 0 where nothing was observed."""
        seen = ~np.isnan(frames)
        totals = np.where(seen, frames, 0.0).sum(axis=0)
        return ((totals / np.maximum(seen.sum(axis=0), 1))[None],)

    def random_states(self, frames, n_states, rng):
        """Return start values: half way from the mean to frames drawn at random."""
        data = Data(frames, None, np.array([0, len(frames)]), np.array([0, 1]))
        return (self.random_stack(data, n_states, [rng])[0][0],)

    def random_stack(self, data, n_states, rngs):
        """Return start values of several models."""
        starts, lengths = data.bounds[:-1], np.diff(data.bounds)
        is_seen = ~np.isnan(data.frames)
        totals = np.add.reduceat(np.where(is_seen, data.frames, 0.0), starts)
        means = totals / np.maximum(np.add.reduceat(is_seen, starts, dtype=int), 1)
        places = starts[:, None] + integer_draws(rngs, lengths.tolist(), n_states)
        means, drawn = means[:, None], data.frames[places]
        return (0.5 * (means + np.where(np.isnan(drawn), means, drawn)),)

    def update(self, statistics, states, prior, relevance):
        """Return the rates of the M step."""
        sums, sizes = statistics[0] + relevance * prior[0], statistics[1] + relevance
        return (mean_rates(sums, sizes, states[0]),)

    def log_prior(self, states, prior):
        """Return the logarithm of the prior per frame of relevance."""
        return log_prior_of(prior[0], states[0], True)

    def varied(self, frames):
        """Tell whether a channel has more than one value."""
        low, high = np.fmin.reduce(frames, axis=0), np.fmax.reduce(frames, axis=0)
        return bool((high > low).any())

    def divergences(self, index_a, index_b):
        """Return divergences (n_pairs, n_components, n_components) of states a to b."""
        return rate_divergences(self.states, index_a, index_b)

    def mmd_comparer(self, masses, sizes, bandwidth):
        """Return a function of pairs of models: squared distances."""
        means, variances = self._stabilized
        masks = self.masks()
        return gaussian_mmd_comparer(means, variances, masks, masses, sizes, bandwidth)

    def median_gap(self, weights):
        """Return the median squared distance between frames of two states."""
        means, variances = self._stabilized
        return median_squared_gap(means, variances, self.masks(), weights)

    @property
    def _stabilized(self):
        """Means and variances of 2 sqrt(x), which is nearly Gaussian for counts x."""
        return 2 * np.sqrt(self.states), np.ones(self.states.shape)

    def points(self):
        """Return the rates if there is one channel; others have no such costs."""
        return np.array(self.states) if self.n_features == 1 else None

    def cluster_points(self, frames):
        """Return the roots of counts, whose spread depends little on the rate."""
        roots = np.sqrt(frames)
        return np.where(np.isnan(roots), np.nanmean(roots, axis=0), roots)

    def cross(self, index_a, index_b):
        """Return squared distances (n_pairs, n_components, n_components) of a to b."""
        return squared_rate_gaps(self.states, index_a, index_b)

    def averaged(self, models, labels, masses):
        """Return the mean rates of matched states."""
        return self.like(self.matched_means(self.states, models.states, labels, masses))


def check_count_sequences(X, *, n_features=None, caller="HMMTransformer"):
    """Return sequences of counts; the parameters are those of `check_sequences`."""
    sequences = check_sequences(X, n_features=n_features, caller=caller)
    for i, x in enumerate(sequences):
        wrong = x[(x < 0) | (x % 1 > 0)]
        if wrong.size:
            raise ValueError(
                f"X[{i}] must hold counts, which are integers from 0, got {wrong[0]}."
            )
    return sequences
