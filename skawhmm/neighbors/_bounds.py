r"""Lower bounds of aggregated distances, cheapest first, for exact pruned search.

With :math:`f = (\mu, \sqrt{\operatorname{diag} \Sigma})` the Euclidean distance of two
states' vectors is at most :math:`W_2`: each coordinate of a coupling of two Gaussians
costs at least what the coupling of its own margins does. Hence, for p >= 1:

- centroid: :math:`R \ge \lVert E_a f - E_b f \rVert`, since a norm is convex;
- relaxed: :math:`R^p \ge \sum_i \pi_a[i] \min_j \lVert f_i - f_j \rVert^p` and the same
  with a and b exchanged, since a plan with one margin less to obey costs no more;
- transition: :math:`OT_{C^p}(s, t) \ge \lVert (s - t) F \rVert^p` for rows s, t and the
  matrix F of the states' vectors, again by convexity.
"""

import numpy as np
from numba import njit

from skawhmm.distances._jit_components import carried_chain, conditional_plans
from skawhmm.utils._compile import KERNEL, REORDERED


def state_vectors(models):
    """Return means and standard deviations (n_models, n_components, 2 * n_features).

    Parameters
    ----------
    models : HMMBatch
        The models.

    Returns
    -------
    vectors : ndarray of shape (n_models, n_components, 2 * n_features)
        The vectors :math:`f`.
    """
    variances = models.covars
    if models.covariance_type == "full":
        variances = np.diagonal(variances, axis1=2, axis2=3)
    return np.concatenate([models.means, np.sqrt(variances)], axis=2)


@njit(**REORDERED)
def centroid_bounds(centroids_a, centroids_b, index_a, index_b):
    """Distances between the mean state vectors of model pairs.

    Parameters
    ----------
    centroids_a, centroids_b : ndarray of shape (n_models, n_dimensions)
        Mean state vectors of the models on each side.

    index_a, index_b : ndarray of int of shape (n_pairs,)
        The models of each pair.

    Returns
    -------
    bounds : ndarray of shape (n_pairs,)
        Lower bounds of the marginal component, p >= 1.
    """
    bounds = np.empty(index_a.size)
    for n in range(index_a.size):
        total = 0.0
        for k in range(centroids_a.shape[1]):
            total += (centroids_a[index_a[n], k] - centroids_b[index_b[n], k]) ** 2
        bounds[n] = np.sqrt(total)
    return bounds


@njit(**REORDERED)
def relaxed_bounds(vectors_a, weights_a, vectors_b, weights_b, index_a, index_b, p):
    """Costs of the plans that obey one margin only, for model pairs.

    Parameters
    ----------
    vectors_a, weights_a, vectors_b, weights_b : ndarray
        State vectors and state probabilities of the models on each side.

    index_a, index_b : ndarray of int of shape (n_pairs,)
        The models of each pair.

    p : float
        Order of the distance.

    Returns
    -------
    bounds : ndarray of shape (n_pairs,)
        Lower bounds of the marginal component.
    """
    size_a, size_b = vectors_a.shape[1], vectors_b.shape[1]
    bounds = np.empty(index_a.size)
    nearest_b = np.empty(size_b)
    for n in range(index_a.size):
        a, b = index_a[n], index_b[n]
        nearest_b[:] = np.inf
        forth, back = 0.0, 0.0
        for i in range(size_a):
            if weights_a[a, i] <= 0:
                continue
            nearest = np.inf
            for j in range(size_b):
                if weights_b[b, j] <= 0:
                    continue
                total = 0.0
                for k in range(vectors_a.shape[2]):
                    total += (vectors_a[a, i, k] - vectors_b[b, j, k]) ** 2
                nearest = min(nearest, total)
                nearest_b[j] = min(nearest_b[j], total)
            forth += weights_a[a, i] * nearest ** (0.5 * p)
        for j in range(size_b):
            if weights_b[b, j] > 0:
                back += weights_b[b, j] * nearest_b[j] ** (0.5 * p)
        bounds[n] = max(forth, back) ** (1 / p)
    return bounds


@njit(**KERNEL)
def transition_bounds(weights, transmats, chains, vectors, index_a, index_b, plans, p):
    """Lower bounds of the transition component of model pairs, given the plans.

    Parameters
    ----------
    weights, transmats, chains : ndarray
        As in `transition_components`.

    vectors : ndarray of shape (n_models, n_components, n_dimensions)
        State vectors.

    index_a, index_b : ndarray of int of shape (n_pairs,)
        The models of each pair.

    plans : ndarray of shape (n_pairs, n_components, n_components)
        Registrations.

    p : float
        Order of the distance, at least 1.

    Returns
    -------
    bounds : ndarray of shape (n_pairs,)
        The bounds.
    """
    size = weights.shape[1]
    bounds = np.empty(index_a.size)
    forth, back = np.empty((size, size)), np.empty((size, size))
    half, moved = np.empty((size, size)), np.empty((size, size))
    for n in range(index_a.size):
        a, b = index_a[n], index_b[n]
        conditional_plans(plans[n], forth, back)
        carried_chain(forth, transmats[b], back, half, moved)
        total = _row_gaps(weights[a], chains[a], moved, vectors[a], p)
        carried_chain(back, transmats[a], forth, half, moved)
        total += _row_gaps(weights[b], chains[b], moved, vectors[b], p)
        bounds[n] = total ** (1 / p)
    return bounds


@njit(**REORDERED)
def _row_gaps(weights, chain, moved, vectors, p):
    total = 0.0
    for i in range(weights.size):
        if weights[i] > 0:
            squared = 0.0
            for k in range(vectors.shape[1]):
                gap = 0.0
                for s in range(weights.size):
                    gap += (chain[i, s] - moved[i, s]) * vectors[s, k]
                squared += gap * gap
            total += weights[i] * squared ** (0.5 * p)
    return total
