"""Trained models of glhmm as arrays by name."""

import numpy as np

from skawhmm.models._conversions import check_fitted

# All states have the first entry of `Sigma`.
SHARED = ("shareddiag", "sharedfull", "identity")


def glhmm_arrays(model, where):
    """Return the arrays of a trained `glhmm`, by our names.

    glhmm stores distributions of parameters; we use the centres that it reports itself:
    means, and the inverse of the expected precision (`get_covariance_matrix`, without
    projecting back to the data before PCA).
    """
    check_fitted(model, where, bool(getattr(model, "trained", False)))
    options = model.hyperparameters
    if options["model_beta"] != "no" and model.beta is not None:
        raise TypeError(
            f"{where} must have states that do not depend on another signal, got "
            f"model_beta={options['model_beta']!r}. Train it with model_beta='no'."
        )
    size = options["K"]
    covars = _covariances(model, options["covtype"], size)
    return {
        "transmats": model.P,
        "startprobs": model.Pi,
        "means": _means(model, options["model_mean"], covars.shape[:2]),
        "covars": covars,
    }


def _means(model, kind, shape):
    """Return the mean of each state: 0 if the model, for centred data, has none."""
    if kind == "no" or model.mean is None:
        return np.zeros(shape)
    if kind == "shared":
        return np.broadcast_to(np.ravel(model.mean[0]["Mu"]), shape)
    return np.stack([np.ravel(mean["Mu"]) for mean in model.mean[: shape[0]]])


def _covariances(model, kind, size):
    chosen = [model.Sigma[0]] * size if kind in SHARED else model.Sigma[:size]
    return np.stack([part["rate"] / part["shape"] for part in chosen])
