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
