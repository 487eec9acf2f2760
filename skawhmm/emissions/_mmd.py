r"""Distances between distributions of frames, for lists of model pairs.

A frame is distributed as a mixture of states, two successive frames as a mixture of
pairs of states. `masses` holds the weights of the mixture, with one axis of states per
frame.

Gaussian states are compared by the maximum mean discrepancy under a Gaussian kernel of
bandwidth h. The expected kernel between two states has a closed form,

.. math::
    \kappa_{ij} = E \, e^{-\lVert x - y \rVert^2 / 2 h^2}
    = \Bigl| I + \frac{\Sigma_i + \Gamma_j}{h^2} \Bigr|^{-1/2} \exp \Bigl(
    -\tfrac12 (\mu_i - \nu_j)^\top (h^2 I + \Sigma_i + \Gamma_j)^{-1} (\mu_i - \nu_j)
    \Bigr) ,

and so does the kernel between two distributions:
:math:`\sum P_a[i, j] P_b[k, l] \kappa_{ik} \kappa_{jl}` for two frames. Symbols
are compared by the Hellinger distance.
"""

import numpy as np

from skawhmm.emissions._mmd_kernels import (
    kernel_products,
    masked_mmd_gaps,
    mmd_gaps,
    symbol_mmd_gaps,
)

# The median is taken over the states of evenly chosen models, about this many in all.
MEDIAN_STATES = 1500


def gaussian_mmd_comparer(means, covars, masks, masses, sizes, bandwidth):
    """Return a function of model pairs: squared distances of their distributions.

    Parameters
    ----------
    means : ndarray of shape (n_models, n_components, n_features)
        Means.

    covars : ndarray of shape (n_models, n_components, n_features[, n_features])
        Variances or covariances.

    masks : ndarray of shape (n_models, n_features)
        One where a model observed a feature, zero elsewhere.

    masses : ndarray of shape (n_models, n_components[, n_components])
        Probabilities of states, or of pairs of successive states.

    sizes : ndarray of shape (n_models,)
        Number of states of each model.

    bandwidth : float
        Width of the kernel.

    Returns
    -------
    gaps : callable
        Takes the indices of pairs. On features that one model of a pair did not
        observe neither is compared, and squared distances between frames are scaled up
        by n_features / n_common.
    """
    half = 0.5 * (np.eye(means.shape[2]) if covars.ndim == 4 else 1.0)
    parts = means / bandwidth, covars / bandwidth / bandwidth + half
    if not masks.all():
        return lambda index_a, index_b: masked_mmd_gaps(
            *parts, masks, masses, sizes, index_a, index_b
        )
    index = np.arange(len(means))
    own = kernel_products(*parts, masses, sizes, index, index)

    def gaps(index_a, index_b):
        products = kernel_products(*parts, masses, sizes, index_a, index_b)
        return mmd_gaps(own, products, index_a, index_b)

    return gaps


def symbol_mmd_comparer(states, masses):
    """Return a function of model pairs: squared Hellinger distances."""

    def gaps(index_a, index_b):
        # Distributions of pairs are large: only the given models get one.
        used, place = np.unique(np.stack([index_a, index_b]), return_inverse=True)
        return symbol_mmd_gaps(states, masses, used, *place.reshape(2, -1))

    return gaps


def median_squared_gap(means, variances, masks, weights):
    """Return the median, over pairs of states, of the expected squared distance.

    Parameters
    ----------
    means, variances : ndarray of shape (n_models, n_components, n_features)
        Means and variances of the states.

    masks : ndarray of shape (n_models, n_features)
        One where a model observed a feature, zero elsewhere.

    weights : ndarray of shape (n_models, n_components)
        Probabilities of the states; states of weight 0 do not count.

    Returns
    -------
    median : float
        Median of E|x - y|^2, x and y drawn from any two states, or from one state
        twice. Features that one model did not observe are left out, the rest is scaled
        up.
    """
    n_models = min(len(means), max(MEDIAN_STATES // means.shape[1], 2))
    chosen = np.linspace(0, len(means) - 1, n_models).astype(np.int64)
    model, state = np.nonzero(weights[chosen] > 0)
    seen = masks[chosen][model]
    points, spreads = means[chosen][model, state], variances[chosen][model, state]
    # Distances do not depend on the origin, but their rounding does.
    points = seen * (points - points.mean(axis=0))
    squares = (points**2 + seen * spreads) @ seen.T
    gaps = squares + squares.T - 2 * points @ points.T
    common = seen @ seen.T
    shared = common > 0
    return float(np.median(gaps[shared] / common[shared])) * seen.shape[1]
