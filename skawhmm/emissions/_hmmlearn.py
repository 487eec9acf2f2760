"""Models from and for hmmlearn."""

from copy import copy

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


def gaussian_arrays(models):
    """Return the arguments of `HMMBatch` for fitted hmmlearn models."""
    parts = [_parts(n, model) for n, model in enumerate(models)]
    names = ("transmats", "means", "covars", "startprobs")
    arrays = {name: [part[k] for part in parts] for k, name in enumerate(names)}
    if any(covar.ndim == 3 for covar in arrays["covars"]):
        arrays["covars"] = [
            covar if covar.ndim == 3 else covar[..., None] * np.eye(covar.shape[1])
            for covar in arrays["covars"]
        ]
    return arrays


def unfitted_hint(model):
    """Return what to do if it is only that a model has not been fitted."""
    is_unfitted = hasattr(model, "fit") and not hasattr(model, "transmat_")
    return " It is not fitted: call its fit first." if is_unfitted else ""


def _parts(n, model):
    means = getattr(model, "means_", getattr(model, "means_posterior_", None))
    if means is None or not hasattr(model, "transmat_"):
        raise TypeError(
            f"models must be fitted Gaussian models of hmmlearn, got "
            f"{type(model).__name__} at {n}.{unfitted_hint(model)}"
        )
    if means.ndim == 2:
        if not hasattr(model, "n_features"):
            # Its parameters were set by hand; hmmlearn's covars_ needs the number.
            model = copy(model)
            model.n_features = means.shape[1]
        covars = _covariances(model.covars_, model.covariance_type, means.shape)
        return model.transmat_, means, covars, model.startprob_
    # A mixture: state i with k Gaussians is k states that share its row.
    n_components, n_mix, n_features = means.shape
    covars = model.covars_
    if model.covariance_type == "tied":
        covars = np.repeat(covars[:, None], n_mix, axis=1)
    covars = covars.reshape(n_components * n_mix, *covars.shape[2:])
    means = means.reshape(n_components * n_mix, n_features)
    shares = model.weights_
    transmat = np.repeat(model.transmat_, n_mix, axis=0)[..., None] * shares
    start = model.startprob_[:, None] * shares
    return (
        transmat.reshape(len(means), len(means)),
        means,
        _covariances(covars, model.covariance_type, means.shape),
        start.ravel(),
    )


def _covariances(covars, covariance_type, shape):
    """Return variances of this shape, or matrices where hmmlearn's type needs them."""
    if covariance_type in {"full", "tied"}:
        return covars
    if covars.ndim == 3:
        # Once fitted, spherical models of hmmlearn 0.3.3 repeat the matrix of a state
        # as often as there are features.
        covars = covars[:: len(covars) // shape[0]]
        return np.diagonal(covars, axis1=1, axis2=2)
    return np.broadcast_to(covars.reshape(shape[0], -1), shape)


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
    least = covars.min() if covars.ndim == 2 else np.linalg.eigvalsh(covars).min()
    if least <= 0:
        raise ValueError(
            "covars must be positive definite for hmmlearn, got a model with the least "
            f"eigenvalue {least}."
        )
    model = hmmlearn_models().GaussianHMM(len(means), covariance_type=kind)
    model.n_features = means.shape[1]
    model.means_ = means.copy()
    model.covars_ = covars.copy()
    return model
