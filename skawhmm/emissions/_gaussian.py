"""Emission families: what the states of a stack of models emit.

A family owns the parameters of all states of all models and knows what depends on
them: how to slice, pad and store them, and the ground cost between states. A new
family is a new class with the methods of `Gaussian`; nothing else changes.
"""

from functools import cached_property

import numpy as np

from skawhmm.emissions._gaussian_costs import add_squared_spreads
from skawhmm.emissions._gaussian_costs_kernels import add_squared_gaps
from skawhmm.numerics._stationary import covariance_roots
from skawhmm.sequences._checks import check_sequences


class Gaussian:
    """Gaussian states with diagonal or full covariances.

    Parameters
    ----------
    means : ndarray of shape (n_models, n_components, n_features)
        Means of the states.

    covars : ndarray of shape (n_models, n_components, n_features[, n_features])
        Variances, or covariance matrices.

    observed : ndarray of bool of shape (n_models, n_features), or None
        Which features each model observed; None if all of them.
    """

    name = "gaussian"

    # What tells two families with equal parameters apart: nothing.
    fingerprint = b""

    # Set by `keeping_costs`.
    kept_costs = None

    def __init__(self, means, covars, observed=None):
        self.means = means
        self.covars = covars
        self.observed = observed

    @property
    def covariance_type(self):
        """Either "diag" or "full"."""
        return "diag" if self.covars.ndim == 3 else "full"

    @property
    def n_features(self):
        """Number of features of an observation."""
        return self.means.shape[2]

    @property
    def traits(self):
        """What is shown of the family, by name."""
        return {
            "n_features": self.n_features,
            "covariance_type": self.covariance_type,
        }

    @property
    def parameters(self):
        """Arrays with one row per model and one column per state, by name."""
        return {"means": self.means, "covars": self.covars}

    @property
    def extras(self):
        """Arrays that all models share, by name, which are stored with them."""
        return {}

    def __getitem__(self, index):
        observed = None if self.observed is None else self.observed[index]
        return Gaussian(self.means[index], self.covars[index], observed)

    def padded(self, size):
        """Return the family with `size` states a model, the new ones all zero."""
        short = size - self.means.shape[1]
        means, covars = (
            np.pad(array, [(0, 0), (0, short)] + [(0, 0)] * (array.ndim - 2))
            for array in (self.means, self.covars)
        )
        return Gaussian(means, covars, self.observed)

    @classmethod
    def concatenate(cls, families):
        """Return one family that holds the models of all, of equal state counts."""
        covars = [family.covars for family in families]
        if len({family.covariance_type for family in families}) > 1:
            covars = [family.full_covars() for family in families]
        observed = None
        if any(family.observed is not None for family in families):
            observed = np.concatenate([family.masks() for family in families]) > 0
        means = np.concatenate([family.means for family in families])
        both = cls(means, np.concatenate(covars), observed)
        same_type = both.covariance_type == families[0].covariance_type
        if same_type and families[0].kept_costs is not None:
            costs = [family.ground_costs() for family in families]
            both.kept_costs = GaussianCosts.concatenate(costs)
        return both

    def full_covars(self):
        """Return the covariances as matrices."""
        if self.covariance_type == "full":
            return self.covars
        return self.covars[..., None] * np.eye(self.n_features)

    def masks(self):
        """Return one where a model observed a feature and zero elsewhere."""
        if self.observed is None:
            return np.ones((len(self.means), self.n_features))
        return self.observed.astype(float)

    def checked(self, X, caller):
        """Return sequences that a user gave, as arrays (n_timesteps, n_features)."""
        return check_sequences(X, n_features=self.n_features, caller=caller)

    def drawn(self, i, path, rng):
        """Draw a checked sequence from model i, given its path of states."""
        noise = rng.standard_normal((len(path), self.n_features))
        if self.covariance_type == "diag":
            noise *= np.sqrt(self.covars[i])[path]
        else:
            noise = np.einsum("tcr,tr->tc", covar_roots(self.covars[i])[path], noise)
        return self.means[i][path] + noise

    def shown(self, x):
        """Return a drawn sequence as users see it."""
        return x

    def ground_costs(self):
        """Return what makes the costs between the states of any two of the models."""
        if self.kept_costs is not None:
            return self.kept_costs
        if self.covariance_type == "diag":
            points = np.concatenate([self.means, np.sqrt(self.covars)], axis=2)
            return GaussianCosts(points, None, self.masks())
        means, roots = np.array(self.means), covariance_roots(self.covars)
        return GaussianCosts(means, roots, self.masks())

    def keeping_costs(self):
        """Return the family with its costs kept, for models compared again and again.

        They are handed on to families that begin with it, so that comparing the models
        with few others takes time for those only.
        """
        family = Gaussian(self.means, self.covars, self.observed)
        family.kept_costs = self.ground_costs()
        return family


def covar_roots(covars):
    """Roots L of covariances L L^T, which may be singular."""
    values, vectors = np.linalg.eigh(covars)
    # Rounding can push the eigenvalues of a singular matrix below zero.
    return vectors * np.sqrt(np.maximum(values, 0))[..., None, :]


class GaussianCosts:
    """Squared 2-Wasserstein distances between the states of a stack of models.

    Parameters
    ----------
    points : ndarray of shape (n_models, n_components, n_dimensions)
        Means; for diagonal covariances means, then standard deviations.

    roots : ndarray of shape (n_models, n_components, n_features, n_features), or None
        Factors of full covariances.

    masks : ndarray of shape (n_models, n_features)
        One where a model observed a feature, zero elsewhere.
    """

    def __init__(self, points, roots, masks):
        self.points = points
        self.roots = roots
        self.masks = masks
        self.same_features = bool(masks.all())

    def __getitem__(self, rows):
        roots = None if self.roots is None else self.roots[rows]
        chosen = GaussianCosts(self.points[rows], roots, self.masks[rows])
        if "_own" in vars(self):
            chosen._own = self._own[rows]
        return chosen

    @classmethod
    def concatenate(cls, parts):
        """Return the costs of the models of all parts, which are of one kind."""
        roots = None
        if parts[0].roots is not None:
            roots = np.concatenate([part.roots for part in parts])
        joined = cls(
            np.concatenate([part.points for part in parts]),
            roots,
            np.concatenate([part.masks for part in parts]),
        )
        if joined.same_features:
            joined._own = np.concatenate([part._own for part in parts])
        return joined

    def cross(self, index_a, index_b):
        """Return costs (n_pairs, n_components, n_components) from states of a to b."""
        return self._between(index_a, index_b, index_a, index_b)

    def within(self, index_a, index_b):
        """Return the costs inside the models a, on the features that b observed too."""
        if self.same_features:
            return self._own[index_a]
        return self._inside(index_a, index_b)

    @cached_property
    def _own(self):
        index = np.arange(len(self.masks))
        return self._inside(index, index)

    def _inside(self, index, index_b):
        cost = self._between(index, index, index, index_b)
        states = np.arange(cost.shape[1])
        cost[:, states, states] = 0.0
        return cost

    def _between(self, left, right, index_a, index_b):
        n_components = self.points.shape[1]
        cost = np.zeros((left.size, n_components, n_components))
        add_squared_gaps(self.points, self.masks, left, right, index_a, index_b, cost)
        if self.roots is not None:
            add_squared_spreads(
                self.roots, self.masks, left, right, index_a, index_b, cost
            )
        return cost
