"""Stationary laws and covariance roots, for stacks of models."""

import numpy as np

from skawhmm.numerics._stationary_kernels import stationary_laws


def stationary_law(transmats, startprobs):
    r"""Long-run share of time each chain spends in each state.

    The law is found by the elimination of Grassmann, Taksar and Heyman, which never
    subtracts and so keeps full relative accuracy for nearly reducible chains. A chain
    with several closed classes has no unique law: its start probabilities then decide
    how much weight each class receives (the Cesàro limit of :math:`s T^t`).

    Parameters
    ----------
    transmats : ndarray of shape (n_models, n_components, n_components)
        Transition matrices :math:`T`, rows summing to one.

    startprobs : ndarray of shape (n_models, n_components)
        Start probabilities :math:`s`; read only where there are several closed classes.

    Returns
    -------
    weights : ndarray of shape (n_models, n_components)
        The laws :math:`\pi`, with :math:`\pi T = \pi`.
    """
    return stationary_laws(
        np.ascontiguousarray(transmats), np.ascontiguousarray(startprobs)
    )


def covariance_roots(covars):
    r"""Factors :math:`L` with :math:`\Sigma = L L^\top`, singular matrices included.

    Parameters
    ----------
    covars : ndarray of shape (..., n_features, n_features)
        Symmetric positive semidefinite matrices :math:`\Sigma`.

    Returns
    -------
    roots : ndarray of shape (..., n_features, n_features)
        The factors :math:`L`: eigenvectors scaled by the roots of their eigenvalues,
        largest first.
    """
    values, vectors = np.linalg.eigh(covars)
    # Rounding turns the zero eigenvalues of a singular matrix slightly negative.
    roots = vectors * np.sqrt(np.maximum(values, 0))[..., None, :]
    return np.ascontiguousarray(roots[..., ::-1])
