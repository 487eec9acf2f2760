"""Fitted models of hmmlearn as arrays by name."""

from copy import copy

import numpy as np

from skawhmm.models._conversions import check_fitted, split_mixture, with_every_row

KINDS = ("GaussianHMM", "GMMHMM", "CategoricalHMM", "PoissonHMM")


def hmmlearn_arrays(model, where="models"):
    """Return the arrays of a fitted model of hmmlearn, by our names.

    Parameters
    ----------
    model : object
        A model with the attributes of hmmlearn.

    where : str, default="models"
        The model as the caller knows it.

    Returns
    -------
    arrays : dict of ndarray
        Chain and states. A state without observed transitions gets equal transition
        probabilities.
    """
    arrays = trained_arrays(model, where)
    return {**arrays, "transmats": with_every_row(arrays["transmats"])}


def trained_arrays(model, where="models"):
    """Return the arrays of `hmmlearn_arrays`, keeping hmmlearn's rows of zeros."""
    check_fitted(model, where, hasattr(model, "transmat_"))
    chain = {"transmats": model.transmat_, "startprobs": model.startprob_}
    if hasattr(model, "lambdas_"):
        return {**chain, "rates": model.lambdas_}
    if hasattr(model, "emissionprob_"):
        _check_one_trial(model, where)
        return {**chain, "emissionprobs": model.emissionprob_}
    # Variational models have distributions of means; their centres are used.
    means = getattr(model, "means_", getattr(model, "means_posterior_", None))
    if means is None:
        raise TypeError(
            f"{where} must be a model of a kind that can be read, one of "
            f"{list(KINDS)}, got {type(model).__name__}."
        )
    if means.ndim == 3:
        return _mixture_arrays(model, means)
    if not hasattr(model, "n_features"):
        # If parameters were set by hand, hmmlearn's covars_ needs this number.
        model = copy(model)
        model.n_features = means.shape[1]
    covars = _covariances(model.covars_, model.covariance_type, means.shape)
    return {**chain, "means": means, "covars": covars}


def _check_one_trial(model, where):
    trials = np.asarray(getattr(model, "n_trials", 1))
    if trials.dtype == object or (trials != 1).any():
        raise TypeError(
            f"{where} must emit one symbol per frame, got a {type(model).__name__} "
            f"with n_trials={model.n_trials!r}. Only n_trials=1 has the same meaning "
            "as symbols."
        )


def _mixture_arrays(model, means):
    n_components, n_mix, n_features = means.shape
    covars = model.covars_
    if model.covariance_type == "tied":
        covars = np.repeat(covars[:, None], n_mix, axis=1)
    covars = covars.reshape(n_components * n_mix, *covars.shape[2:])
    means = means.reshape(n_components * n_mix, n_features)
    moves, start = split_mixture(model.transmat_, model.startprob_, model.weights_)
    return {
        "transmats": moves,
        "startprobs": start,
        "means": means,
        "covars": _covariances(covars, model.covariance_type, means.shape),
    }


def _covariances(covars, covariance_type, shape):
    """Return variances of this shape, or matrices where hmmlearn's type needs them."""
    if covariance_type in {"full", "tied"}:
        return covars
    if covars.ndim == 3:
        # Fitted spherical models of hmmlearn 0.3.3 repeat the matrix of a state once
        # per feature.
        covars = covars[:: len(covars) // shape[0]]
        return np.diagonal(covars, axis1=1, axis2=2)
    return np.broadcast_to(covars.reshape(shape[0], -1), shape)
