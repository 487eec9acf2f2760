r"""Squared 2-Wasserstein distances between Gaussian states, for lists of model pairs.

With a factor :math:`L` of each covariance, :math:`\Sigma = L L^\top`,

.. math::
    W_2^2 = \lVert \mu_a - \mu_b \rVert^2 + \lVert L_a \rVert_F^2
          + \lVert L_b \rVert_F^2 - 2 \lVert L_b^\top L_a \rVert_*
          = \lVert \mu_a - \mu_b \rVert^2
          + \min_{Q \text{ orthogonal}} \lVert L_a - L_b Q \rVert_F^2 .

For diagonal covariances :math:`L` is the vector of standard deviations, and the whole
is a Euclidean distance. Features that one of two models did not observe are left out
of both, and the rest is scaled up by n_features / n_common.
"""

from functools import cached_property

import numpy as np

from skawhmm.emissions._gaussian_costs_kernels import add_squared_gaps, vector_spreads
from skawhmm.numerics._lapack import batch_size, in_batches

# Where the difference of traces is below this fraction of them, half its digits or more
# are lost, and the distance is taken from the residual of the best rotation instead.
REFINED_SHARE = 1e-6

# A residual below this fraction of the factors' norms is rounding of the rotation.
ROTATION_ROUNDING = 1e-13

# Up to this size singular values are found for many matrices side by side, which is
# faster than a call of LAPACK for each.
MAX_VECTOR_FEATURES = 24

# Matrices given to LAPACK at once, to bound the memory of their products.
LAPACK_BATCH = 512

# Number of factors rotated at once for averages, which limits the same memory.
BATCH_OF_FACTORS = 4096


def add_squared_spreads(roots, masks, left, right, index_a, index_b, cost):
    """Add the covariance term (squared Bures distances) of model pairs to `cost`.

    Parameters
    ----------
    roots : ndarray of shape (n_models, n_components, n_features, n_features)
        Factors of the covariances.

    masks, left, right, index_a, index_b, cost : ndarray
        As in `add_squared_gaps`.
    """
    pairs = roots, masks, left, right, index_a, index_b
    spread, traces = np.empty(cost.shape), np.empty(cost.shape)
    if roots.shape[-1] <= MAX_VECTOR_FEATURES:
        vector_spreads(*pairs, spread, traces)
        cells = np.array(np.nonzero(np.isnan(spread) & np.isfinite(traces)))
    else:
        cells = np.indices(spread.shape).reshape(3, -1)
    _fill_by_lapack(cells, *pairs, spread, traces)
    close = np.argwhere(spread <= REFINED_SHARE * traces)
    size = min(LAPACK_BATCH, batch_size(roots.shape[-1]))
    for first in range(0, len(close), size):
        pair, i, j = close[first : first + size].T
        common = (masks[index_a[pair]] * masks[index_b[pair]])[:, :, None]
        spread[pair, i, j] = _residuals(
            common * roots[left[pair], i], common * roots[right[pair], j]
        )
    common = masks[index_a] * masks[index_b]
    cost += spread * (masks.shape[1] / common.sum(axis=1))[:, None, None]


def _residuals(roots_a, roots_b):
    """Squared distance of each factor to the best rotation of its partner."""
    u, _, vh = in_batches(np.linalg.svd, roots_b.transpose(0, 2, 1) @ roots_a)
    squared = np.sum((roots_a - roots_b @ (u @ vh)) ** 2, axis=(1, 2))
    # In the null space of singular covariances the rotation is noise; for equal ones no
    # rotation is needed.
    squared = np.minimum(squared, np.sum((roots_a - roots_b) ** 2, axis=(1, 2)))
    rounding = ROTATION_ROUNDING**2 * np.sum(roots_a**2 + roots_b**2, axis=(1, 2))
    return np.where(squared <= rounding, 0.0, squared)


def _fill_by_lapack(cells, roots, masks, left, right, index_a, index_b, spread, traces):
    """Fill the covariance terms and the sums of traces of some cells."""
    size = min(LAPACK_BATCH, batch_size(roots.shape[-1]))
    for first in range(0, cells.shape[1], size):
        pair, i, j = cells[:, first : first + size]
        common = (masks[index_a[pair]] * masks[index_b[pair]])[:, :, None]
        a, b = common * roots[left[pair], i], common * roots[right[pair], j]
        values = in_batches(_singular_values, b.transpose(0, 2, 1) @ a)
        total = np.sum(a**2, axis=(1, 2)) + np.sum(b**2, axis=(1, 2))
        traces[pair, i, j] = total
        # Rounding can push the term of two equal states below zero.
        spread[pair, i, j] = np.maximum(total - 2 * values.sum(axis=1), 0)


def _singular_values(matrices):
    """Return the singular values of each matrix of a stack."""
    return np.linalg.svd(matrices, compute_uv=False)


def spectral_parts(covars):
    """Return eigenvalues, eigenvectors and their products with the values' roots."""
    values, vectors = in_batches(np.linalg.eigh, covars)
    # Rounding turns the zero eigenvalues of a singular matrix slightly negative.
    values = np.maximum(values, 0)
    return values, vectors, vectors * np.sqrt(values)[..., None, :]


def covariance_roots(covars):
    r"""Factors :math:`L` with :math:`\Sigma = L L^\top`, singular matrices included."""
    return np.ascontiguousarray(spectral_parts(covars)[2][..., ::-1])


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

    def cross(self, index_a, index_b, right=None):
        """Return costs (n_pairs, n_components, n_components) from states of a to b.

        If `right` is given, they are costs to the states of these models instead, on
        the features that a and b observed.
        """
        right = index_b if right is None else right
        n_components = self.points.shape[1]
        cost = np.zeros((index_a.size, n_components, n_components))
        pairs = self.masks, index_a, right, index_a, index_b
        add_squared_gaps(self.points, *pairs, cost)
        if self.roots is not None:
            add_squared_spreads(self.roots, *pairs, cost)
        return cost

    def within(self, index_a, index_b):
        """Return the costs inside the models a, on the features that b observed too."""
        if self.same_features:
            return self._own[index_a]
        return self._inside(index_a, index_b)

    @cached_property
    def _own(self):
        index = np.arange(len(self.masks))
        return self._inside(index, index)

    def _inside(self, index_a, index_b):
        cost = self.cross(index_a, index_b, right=index_a)
        states = np.arange(cost.shape[1])
        cost[:, states, states] = 0.0
        return cost


def averaged_roots(old, costs, labels, masses):
    r"""Return means of factors, each rotated as close as possible to the old average.

    Parameters
    ----------
    old : GaussianCosts
        The averages to start from. Factors that are 0 stand for nothing: what is
        averaged is then rotated towards the identity.

    costs : GaussianCosts
        The states of the models, which have observed the same features.

    labels, masses : ndarray
        As in `Emission.averaged`.

    Returns
    -------
    roots : ndarray of shape (n_rows, n_components, n_features, n_features)
        Factors :math:`L \leftarrow \sum m_{nij} L_{nj} Q_{nij} / \sum m_{nij}`; the
        old ones where no state has weight.
    """
    masks = costs.masks[:, None, :, None]
    identity = covariance_roots(np.eye(masks.shape[2]))
    is_zero = ~old.roots.any(axis=(2, 3))
    target = np.where(is_zero[..., None, None], identity, old.roots) * masks[:1]
    own_roots, sums = costs.roots * masks, np.zeros_like(old.roots)
    mass = np.zeros(old.roots.shape[:2])
    cells = np.argwhere(masses > 0)
    for first in range(0, len(cells), BATCH_OF_FACTORS):
        n, i, j = cells[first : first + BATCH_OF_FACTORS].T
        own, weights = own_roots[n, j], masses[n, i, j]
        u, _, vh = in_batches(np.linalg.svd, own.swapaxes(1, 2) @ target[labels[n], i])
        np.add.at(mass, (labels[n], i), weights)
        np.add.at(sums, (labels[n], i), weights[:, None, None] * (own @ (u @ vh)))
    used, roots = mass > 0, old.roots.copy()
    roots[used] = sums[used] / mass[used, None, None]
    return roots
