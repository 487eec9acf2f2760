"""States that emit angles, by von Mises distributions."""

import numpy as np
from scipy.special import i0e

from skawhmm.emissions._checks import check_not_negative
from skawhmm.emissions._circle import (
    ROOT_WEIGHTS,
    CircleCosts,
    circle_places,
    circle_points,
    vonmises_quantiles,
)
from skawhmm.emissions._model import FrameParts
from skawhmm.emissions._univariate import EMPTY_COUNT, ExponentialFamily
from skawhmm.emissions._univariate_kernels import (
    bessel_ratios,
    vonmises_concentrations,
)
from skawhmm.sequences._forms import warn_caller

# Largest concentration of a fitted state: a standard deviation of 0.01 radians.
LARGEST_CONCENTRATION = 1e4

# Arcs into which angles are sorted to find their spread.
N_ARCS = 360


class VonMises(ExponentialFamily):
    r"""States that emit angles, such as headings, in independent channels.

    The parameters of a state are the mean angles ``locations`` and the
    ``concentrations`` of von Mises distributions. A concentration of 0 is the uniform
    distribution; a large one is close to a Gaussian of variance 1 / concentration.

    Angles are in radians. Angles outside [-pi, pi) are wrapped into this interval, and
    `fit` of a transformer warns about them, except for pi itself, which equals -pi.

    See Also
    --------
    Gamma : States that emit positive numbers.
    ByChannel : States with channels of several kinds.

    Notes
    -----
    Two states are compared by their 2-Wasserstein distance on the circle: the L2
    distance of their quantile functions, one of which is shifted by the angle that
    makes it least. Concentrations of fitted states are at most 10 000.

    Examples
    --------
    Two headings, west-south-west and east:

    >>> import numpy as np
    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.emissions import VonMises
    >>> rng = np.random.default_rng(0)
    >>> headings = rng.vonmises(np.repeat([-3, 0, -3, 0], 60), 4)[:, None]
    >>> hmm = HMMTransformer(2, emission=VonMises(), random_state=0)
    >>> hmm.fit_transform([headings]).emission.locations[0].round(1)
    array([[ 0.],
           [-3.]])
    """

    name = "vonmises"
    parameter_names = ("locations", "concentrations")
    described_names = ("angle", "concentration")
    n_values = 3
    support = "circle"

    locations: np.ndarray
    concentrations: np.ndarray

    def from_arrays(self, arrays, is_state):
        """Return the family, or raise if a concentration is negative."""
        check_not_negative("concentrations", arrays["concentrations"])
        arrays = {**arrays, "locations": wrapped(arrays["locations"])}
        return super().from_arrays(arrays, is_state)

    def compared(self, channels):
        """Return `described`, with angles around their mean direction over the models.

        Differences and means of numbers on both sides of pi would be meaningless.
        """
        columns = self.described(channels)
        for channel in channels:
            angles = columns[f"angle_{channel}"]
            centre = np.angle(np.nansum(np.exp(1j * angles), axis=0))
            columns[f"angle_{channel}"] = centre + wrapped(angles - centre)
        return columns

    def checked(self, X, *, caller, n_features=None):
        """Return the sequences of a user, with angles wrapped into [-pi, pi)."""
        sequences = super().checked(X, caller=caller, n_features=n_features)
        return [x if _is_wrapped(x) else wrapped(x) for x in sequences]

    def learned(self, X, *, caller):
        """Return the template and the checked sequences; warn of wrapped angles."""
        sequences = super().checked(X, caller=caller)
        warn_of_wrapping(sequences)
        return self, [x if _is_wrapped(x) else wrapped(x) for x in sequences]

    def features(self, x):
        """Return whether values were observed, their cosines and their sines."""
        seen = ~np.isnan(x)
        angles = np.where(seen, x, 0.0)
        return np.stack([seen, seen * np.cos(angles), seen * np.sin(angles)], axis=2)

    def factors(self, states):
        """Return the factors of the features in log densities."""
        angles, concentrations = states
        # The scaled Bessel function does not overflow.
        norms = -np.log(2 * np.pi * i0e(concentrations)) - concentrations
        vectors = concentrations * np.cos(angles), concentrations * np.sin(angles)
        return np.stack([norms, *vectors], axis=-1)

    def expected_features(self, states):
        """Return the expected features of states."""
        angles, concentrations = states
        lengths = bessel_ratios(concentrations)
        vectors = lengths * np.cos(angles), lengths * np.sin(angles)
        return np.stack([np.ones_like(angles), *vectors], axis=-1)

    def solved(self, sums, states):
        """Return the likeliest states, given the sums of features."""
        counts, x, y = np.moveaxis(sums, -1, 0)
        few = counts < EMPTY_COUNT
        # Rounding can push the length of equal angles above 1.
        lengths = np.minimum(np.hypot(x, y) / np.where(few, 1.0, counts), 1.0)
        found = np.minimum(vonmises_concentrations(lengths), LARGEST_CONCENTRATION)
        return (
            np.where(few, states[0], wrapped(np.arctan2(y, x))),
            np.where(few, states[1], found),
        )

    def default_states(self, shape):
        """Return states of channels without any value."""
        return np.zeros(shape), np.zeros(shape)

    def cluster_points(self, frames):
        """Return the cosines and sines of angles."""
        parts = frames[:, 1 :: self.n_values], frames[:, 2 :: self.n_values]
        return np.concatenate(parts, axis=1)

    def varied(self, frames):
        """Tell whether a channel has more than one value."""
        seen = np.tile(frames[:, :: self.n_values] > 0, 2)
        return super().varied(np.where(seen, self.cluster_points(frames), np.nan))

    def drawn(self, i, path, rng):
        """Draw a checked sequence from model i, given its path of states."""
        angles = rng.vonmises(self.locations[i][path], self.concentrations[i][path])
        return wrapped(angles)

    def frames_at(self, i, path, levels):
        """Return the angles of model i at given levels of their distributions."""
        x = np.empty(levels.shape)
        for k in np.unique(path):
            own = path == k
            for c in range(levels.shape[1]):
                state = self.locations[i, k, c], self.concentrations[i, k, c]
                x[own, c] = vonmises_quantiles(*state, levels[own, c])
        return wrapped(x)

    def frame_parts(self, x):
        """Return angles, which are compared on the circle."""
        none = np.empty((*x.shape[:-1], 0))
        return FrameParts(none, x, np.ones(x.shape[-1]), none.astype(np.intp), ())

    def merged(self, weights):
        """Return the family with states that have the moments of mixtures."""
        expected = self.expected_features(tuple(self.parameters.values()))
        sums = np.einsum("nkj,njcf->nkcf", weights, expected)
        states = np.zeros(sums.shape[:3]), np.zeros(sums.shape[:3])
        return self.like(*self.solved(sums, states), observed=self.observed)

    def ground_costs(self):
        """Return the costs between the states of any two of the models."""
        return CircleCosts(
            circle_points(self.concentrations),
            circle_places(self.locations, self.concentrations),
        )

    def spread(self, sequences):
        """Return the root mean square arc between two frames, over the root of 2."""
        frames, total = np.concatenate(sequences), 0.0
        middles = (np.arange(N_ARCS) + 0.5) * 2 * np.pi / N_ARCS - np.pi
        table = wrapped(middles[:, None] - middles) ** 2
        for angles in frames.T:
            seen = angles[~np.isnan(angles)]
            counts, _ = np.histogram(seen, N_ARCS, (-np.pi, np.pi))
            weights = counts / max(len(seen), 1)
            total += 0.5 * weights @ table @ weights
        return float(np.sqrt(total))

    def projected(self, points):
        """Return the concentrations of the states with the resultants of points."""
        angles = points.reshape(*self.locations.shape, -1) / ROOT_WEIGHTS
        lengths = np.cos(angles) @ ROOT_WEIGHTS**2
        found = vonmises_concentrations(np.clip(lengths, 0.0, 1.0))
        return (np.minimum(found, LARGEST_CONCENTRATION),)

    def averaged(self, models, labels, masses):
        """Return states with mean quantiles around the mean angles of matched states.

        Angles are averaged as seen from the present average.
        """
        points = self.matched_means(
            circle_points(self.concentrations),
            circle_points(models.concentrations),
            labels,
            masses,
        )
        steps, mass = np.zeros(self.locations.shape), np.zeros(points.shape[:2])
        gaps = models.locations[:, None] - self.locations[labels][:, :, None]
        np.add.at(mass, labels, masses.sum(axis=2))
        np.add.at(steps, labels, np.einsum("nij,nijc->nic", masses, wrapped(gaps)))
        steps /= np.where(mass > 0, mass, 1.0)[..., None]
        states = wrapped(self.locations + steps), *self.projected(points)
        return self._replaced(states, labels, masses)


def wrapped(angles):
    """Return angles in [-pi, pi)."""
    # Missing values of R are signalling NaN, of which NumPy would warn.
    with np.errstate(invalid="ignore"):
        turned = (angles + np.pi) % (2 * np.pi) - np.pi
    # Rounding can make pi of an angle just below -pi.
    return np.where(turned >= np.pi, -np.pi, turned)


def _is_wrapped(x):
    low, high = np.fmin.reduce(x, axis=None), np.fmax.reduce(x, axis=None)
    return low >= -np.pi and high < np.pi


def warn_of_wrapping(sequences):
    """Warn if angles lie outside of [-pi, pi)."""
    for i, x in enumerate(sequences):
        outside = x[(x < -np.pi) | (x > np.pi)]
        if outside.size:
            warn_caller(
                f"X[{i}] holds angles outside of [-pi, pi), such as {outside[0]:g}: "
                "they are wrapped into it. Angles must be in radians."
            )
            return
