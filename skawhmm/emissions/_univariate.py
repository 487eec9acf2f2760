"""What families of states with independent channels share: costs, starts, checks.

A state emits its channels independently, each by a distribution on a line (or a
circle). The 2-Wasserstein distance of two distributions on a line is the L2 distance of
their quantile functions, so a state is a point whose coordinates are quantiles, and
costs are Euclidean distances.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from skawhmm.emissions._checks import check_observed
from skawhmm.emissions._gaussian_costs import GaussianCosts
from skawhmm.emissions._simple import SimpleEmission
from skawhmm.emissions._starts import clustered_posteriors, unit_points
from skawhmm.emissions._univariate_kernels import fill_linear_densities, weighted_sums
from skawhmm.sequences._checks import check_sequences

# A state with less than this many expected frames is empty and keeps its parameters.
EMPTY_COUNT = 1e-8

# Least spread of a state, as a fraction of the spread of all frames.
LEAST_SPREAD = 1e-2

# The logarithm of probability 0 as a finite number: 0 times it is 0.
LOG_ZERO = -1e300

# A frame with a log density below this is impossible.
IMPOSSIBLE = -1e250

# Quantiles per channel. The error of a distance is about 1e-6 for gamma distributions.
N_NODES = 16


def quantile_nodes():
    """Return levels of quantiles and the root weights of a rule that integrates them.

    It is the Gauss-Hermite rule in z for levels Phi(z), so that nodes follow the tails,
    and it is exact for Gaussian distributions.

    Returns
    -------
    levels, upper : ndarray of shape (n_nodes,)
        Levels, and one minus them, which keep their digits near 1.

    roots : ndarray of shape (n_nodes,)
        Square roots of the weights, which sum to one.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
    return ndtr(nodes), ndtr(-nodes), np.sqrt(weights / weights.sum())


LEVELS, UPPER_LEVELS, ROOT_WEIGHTS = quantile_nodes()


class Univariate(SimpleEmission):
    """Base of the families whose channels are independent within a state.

    Besides the members of `SimpleEmission`, a subclass defines `points` and
    `projected`.
    """

    accepts_missing = True
    support = "line"

    # What tables call the parameters, one word for each.
    described_names: ClassVar[tuple[str, ...]]

    def ground_costs(self) -> Any:
        """Return the costs between the states of any two of the models."""
        return GaussianCosts(self.points(), None, np.ones((len(self._first), 1)))

    def cross(self, index_a, index_b):
        """Return squared distances (n_pairs, n_components, n_components) of states."""
        return self.ground_costs().cross(index_a, index_b)

    def points(self) -> Any:
        """Return states as points whose squared Euclidean distances are the costs."""
        return None

    @abstractmethod
    def projected(self, points):
        """Return parameters of the states next to points, those with their moments."""

    def averaged(self, models, labels, masses):
        """Return the states next to the means of the points of matched states."""
        points = self.matched_means(self.points(), models.points(), labels, masses)
        return self._replaced(self.projected(points), labels, masses)

    def _replaced(self, parameters, labels, masses):
        """Return the family with new parameters of the states that have weight."""
        used = np.zeros(self._first.shape[:2], dtype=bool)
        np.logical_or.at(used, labels, masses.any(axis=2))
        pairs = zip(parameters, self.parameters.values(), strict=True)
        arrays = (np.where(used[..., None], new, old) for new, old in pairs)
        return self.like(*arrays, observed=self.observed)

    def described(self, channels):
        """Return the parameters of each channel."""
        columns = {}
        for word, array in zip(
            self.described_names, self.parameters.values(), strict=True
        ):
            for c, channel in enumerate(channels):
                columns[f"{word}_{channel}"] = array[..., c]
        return columns

    def checked(self, X, *, caller, n_features=None):
        """Return the sequences of a user as arrays, or raise."""
        sequences = check_sequences(X, n_features=n_features, caller=caller)
        for i, x in enumerate(sequences):
            self.check_frames(x, f"X[{i}]")
        return sequences

    def moments(self, i, size):
        """Return means and covariances of the states of a model."""
        states = (array[i, :size] for array in self.parameters.values())
        means, variances = self.means_and_variances(*states)
        return means, variances[..., None] * np.eye(self.n_features)

    def means_and_variances(self, *states: Any) -> Any:
        """Return means and variances (n_components, n_features) of states."""
        return super().moments(0, len(states[0]))

    def check_frames(self, x, name):
        """Raise if a frame holds a value that no state can emit."""

    def check_missing(self, sequences, *, is_pooled):
        """Raise if a channel has no value in a sequence that is to have a model."""
        channels = [*range(sequences[0].shape[1])]
        check_observed(sequences, channels, is_pooled=is_pooled)

    @abstractmethod
    def cluster_points(self, frames):
        """Return frames as points that k-means takes; 0 where nothing was observed."""

    def random_states(self, frames, n_states, rng):
        """Return start values: the states of clusters of frames."""
        points = unit_points(self.cluster_points(frames))
        post = clustered_posteriors(points, n_states, rng)
        return self.given_states(frames, post)

    def common_states(self, frames):
        """Return one state that stands for all frames."""
        return self.given_states(frames, np.ones((1, len(frames))))

    @abstractmethod
    def given_states(self, frames, post):
        """Return states by the probabilities of the states in each frame."""

    def varied(self, frames):
        """Tell whether a channel has more than one value."""
        low, high = np.fmin.reduce(frames, axis=0), np.fmax.reduce(frames, axis=0)
        return bool((high > low).any())


class ExponentialFamily(Univariate):
    """Base of the families whose log densities are linear in features of a frame.

    A subclass defines the features of a frame, their factors in each state, their
    expected values, and the states whose expected features are given. The sums of the
    features over the frames of a state are all that an M step needs.
    """

    # Number of features per channel.
    n_values: ClassVar[int]

    @abstractmethod
    def features(self, x):
        """Return features (n_timesteps, n_features, n_values), 0 for missing values."""

    @abstractmethod
    def factors(self, states):
        """Return the factors (..., n_features, n_values) of the features."""

    @abstractmethod
    def expected_features(self, states):
        """Return the expected features (..., n_features, n_values) of states."""

    @abstractmethod
    def solved(self, sums, states):
        """Return the likeliest states, given the sums of features.

        Parameters
        ----------
        sums : ndarray of shape (n_components, n_features, n_values)
            Sums over frames.

        states : tuple of ndarray of shape (n_components, n_features)
            What states keep if they are empty.
        """

    @abstractmethod
    def default_states(self, shape):
        """Return states (n_components, n_features) of channels without any value."""

    def frames(self, x):
        """Return the features of a checked sequence, grouped by channel."""
        return np.ascontiguousarray(self.features(x).reshape(len(x), -1))

    def log_densities(self, frames, states):
        """Return log densities (n_components, n_timesteps) of frames under states."""
        logs = np.empty((len(states[0]), len(frames)))
        factors = self.factors(states).reshape(len(states[0]), -1)
        fill_linear_densities(frames, np.ascontiguousarray(factors), logs)
        return logs

    def statistics(self, frames, post, states):
        """Return the sums of features over the frames of each state."""
        return (weighted_sums(frames, np.ascontiguousarray(post)),)

    def update(self, statistics, states, prior, relevance):
        """Return the states of the M step."""
        (sums,) = statistics
        sums = sums.reshape(len(sums), -1, self.n_values)
        if relevance > 0:
            sums = sums + relevance * self.expected_features(prior)
        return self.solved(sums, states)

    def log_prior(self, states, prior):
        """Return the mean log density of a frame of the prior, over all states."""
        return float(np.sum(self.factors(states) * self.expected_features(prior)))

    def divergences(self, index_a, index_b):
        """Return divergences (n_pairs, n_components, n_components) of states a to b.

        Log densities are linear in features: the divergence is the product of the
        difference of their factors with the expected features of a.
        """
        states = self._filled()
        shape = *self._first.shape[:2], -1
        factors = self.factors(states).reshape(shape)
        expected = self.expected_features(states).reshape(shape)
        own = np.sum(factors * expected, axis=2)[index_a]
        cross = np.einsum("nif,njf->nij", expected[index_a], factors[index_b])
        found = np.maximum(own[:, :, None] - cross, 0.0)
        return np.where(found > -0.5 * IMPOSSIBLE, np.inf, found)

    def _filled(self):
        """Return the parameters, with a common state as padding."""
        arrays = [*self.parameters.values()]
        padding = ~np.any([array != 0 for array in arrays], axis=(0, 3))
        filled = self.default_states(self._first.shape)
        pairs = zip(filled, arrays, strict=True)
        return tuple(np.where(padding[..., None], new, old) for new, old in pairs)

    def given_states(self, frames, post):
        """Return states by the probabilities of the states in each frame."""
        (sums,) = self.statistics(frames, post, ())
        sums = sums.reshape(len(sums), -1, self.n_values)
        common = self.default_states((1, sums.shape[1]))
        common = self.solved(sums.sum(axis=0, keepdims=True), common)
        common = tuple(np.repeat(part, len(sums), axis=0) for part in common)
        return self.solved(sums, common)
