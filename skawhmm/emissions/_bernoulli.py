"""States that emit flags, which are 0 or 1."""

import numpy as np

from skawhmm.emissions._checks import check_not_negative
from skawhmm.emissions._univariate import EMPTY_COUNT, LOG_ZERO, ExponentialFamily


class Bernoulli(ExponentialFamily):
    r"""States that emit flags, 0 or 1, in one or more independent channels.

    The parameters of a state are its ``probabilities`` of a 1.

    See Also
    --------
    Categorical : States that emit one of several symbols.
    ByChannel : States with channels of several kinds.

    Notes
    -----
    The distance between two states is the Euclidean distance of their probabilities. In
    one channel it is the 1-Wasserstein distance. (As for counts, the 2-Wasserstein
    distance would be its square root, in which small errors of a fit become large
    distances.)

    Examples
    --------
    A switch that is mostly off, then mostly on:

    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.emissions import Bernoulli
    >>> X = [[[0], [0], [0], [0], [1], [0], [0], [1], [1], [1], [1], [1], [0], [1]] * 5]
    >>> hmm = HMMTransformer(2, emission=Bernoulli(), random_state=0)
    >>> hmm.fit_transform(X).emission.probabilities[0].round(2)
    array([[0.26],
           [0.96]])
    """

    name = "bernoulli"
    parameter_names = ("probabilities",)
    described_names = ("p",)
    n_values = 2
    support = "counts"

    probabilities: np.ndarray

    def from_arrays(self, arrays, is_state):
        """Return the family, or raise unless probabilities are from 0 to 1."""
        found = arrays["probabilities"]
        check_not_negative("probabilities", found)
        if found.max() > 1:
            raise ValueError(f"probabilities must be at most 1, got {found.max()}.")
        return super().from_arrays(arrays, is_state)

    def check_frames(self, x, name):
        """Raise if a value is neither 0 nor 1."""
        wrong = x[(x != 0) & (x != 1) & ~np.isnan(x)]
        if wrong.size:
            raise ValueError(
                f"{name} must hold flags, which are 0 or 1, got {wrong[0]}."
            )

    def features(self, x):
        """Return which flags are 0, and which are 1."""
        return np.stack([x == 0, x == 1], axis=2).astype(float)

    def factors(self, states):
        """Return the factors of the features in log densities."""
        (found,) = states
        with np.errstate(divide="ignore"):
            logs = np.log1p(-found), np.log(found)
        return np.stack([np.maximum(part, LOG_ZERO) for part in logs], axis=-1)

    def expected_features(self, states):
        """Return the expected features of states."""
        return np.stack([1 - states[0], states[0]], axis=-1)

    def solved(self, sums, states):
        """Return the likeliest states, given the sums of features."""
        totals = sums.sum(axis=-1)
        few = totals < EMPTY_COUNT
        return (np.where(few, states[0], sums[..., 1] / np.where(few, 1.0, totals)),)

    def default_states(self, shape):
        """Return states of channels without any value."""
        return (np.full(shape, 0.5),)

    def random_states(self, frames, n_states, rng):
        """Return start values: the frequencies of both flags, changed at random."""
        (common,) = self.common_states(frames)
        weights = rng.standard_exponential((2, n_states, common.shape[1]))
        ones, zeros = weights[0] * common, weights[1] * (1 - common)
        return (ones / (ones + zeros),)

    def cluster_points(self, frames):
        """Return -1 for 0, and 1 for 1."""
        return frames[:, 1 :: self.n_values] - frames[:, :: self.n_values]

    def varied(self, frames):
        """Tell whether a channel has both flags."""
        ones, zeros = frames[:, 1 :: self.n_values], frames[:, :: self.n_values]
        return bool((ones.any(axis=0) & zeros.any(axis=0)).any())

    has_moments = True

    def means_and_variances(self, probabilities):
        """Return means and variances of states."""
        return probabilities, probabilities * (1 - probabilities)

    def drawn(self, i, path, rng):
        """Draw a checked sequence from model i, given its path of states."""
        chances = self.probabilities[i][path]
        return (rng.random(chances.shape) < chances).astype(float)

    def frames_at(self, i, path, levels):
        """Return the flags of model i at given levels of their distributions."""
        return (levels > 1 - self.probabilities[i][path]).astype(float)

    def shown(self, x):
        """Return a drawn sequence as integers."""
        return x.astype(np.int64)

    def points(self):
        """Return the probabilities."""
        return np.array(self.probabilities)

    def projected(self, points):
        """Return the parameters of the states at points."""
        return (points,)
