"""Models for hmmlearn."""

import numpy as np


def hmmlearn_models():
    """Return the module `hmmlearn.hmm`, or say how to install it."""
    try:
        from hmmlearn import hmm
    except ModuleNotFoundError as error:
        raise ImportError(
            "This needs hmmlearn, which is not installed: pip install hmmlearn."
        ) from error
    return hmm


def check_definite(covars, library):
    """Raise unless the covariances of a model are positive definite, as others need."""
    least = covars.min() if covars.ndim == 2 else np.linalg.eigvalsh(covars).min()
    if least <= 0:
        raise ValueError(
            f"covars must be positive definite for {library}, got a model with the "
            f"least eigenvalue {least}."
        )


def gaussian_model(means, covars):
    """Return a `hmmlearn.hmm.GaussianHMM` with these states, but no chain yet.

    Parameters
    ----------
    means : ndarray of shape (n_components, n_features)
        Means.

    covars : ndarray of shape (n_components, n_features[, n_features])
        Variances or covariance matrices.
    """
    kind = "diag" if covars.ndim == 2 else "full"
    check_definite(covars, "hmmlearn")
    model = hmmlearn_models().GaussianHMM(len(means), covariance_type=kind)
    model.n_features = means.shape[1]
    model.means_ = means.copy()
    model.covars_ = covars.copy()
    return model
