"""Parameters of dynamax as arrays by name, and models for dynamax."""

import numpy as np

from skawhmm.emissions._hmmlearn import check_definite
from skawhmm.models._conversions import mark_states, unknown_states
from skawhmm.models._exchange import is_group, named_arrays

# Names of dynamax's emission parameters, without "Params" and "HMMEmissions".
KINDS = (
    "Gaussian",
    "DiagonalGaussian",
    "SphericalGaussian",
    "SharedCovarianceGaussian",
    "LowRankGaussian",
    "GaussianMixture",
    "DiagonalGaussianMixture",
    "Categorical",
    "Poisson",
    "Bernoulli",
)


def dynamax_arrays(params, where):
    """Return the arrays of parameters of dynamax, by our names.

    Parameters
    ----------
    params : named tuple
        Result of `initialize`, `fit_em` or `fit_sgd` of a dynamax model, with a leading
        axis of models if they were fitted together by `vmap`.

    where : str
        The parameters as the caller knows them.

    Returns
    -------
    arrays : dict of ndarray
        Chain and states.
    """
    emissions = getattr(params, "emissions", None)
    if not is_group(params) or emissions is None:
        raise TypeError(
            f"{where} must be the parameters of a model of dynamax, which its fit_em "
            f"returns, got a {type(params).__name__}: dynamax keeps them apart."
        )
    name = type(emissions).__name__
    kind = name.removeprefix("Params").removesuffix("HMMEmissions")
    if kind not in KINDS:
        raise unknown_states(where, name, KINDS)
    fields = params._asdict()
    if kind in {"Categorical", "Bernoulli"}:
        fields["emissions"] = {"emissionprobs": np.asarray(emissions.probs)}
    arrays = named_arrays(fields, where)
    if kind == "Bernoulli":
        return {**arrays, **mark_states(arrays["emissionprobs"], where)}
    if kind == "Categorical":
        arrays["emissionprobs"] = _only_channel(arrays["emissionprobs"], where)
    return arrays


def _only_channel(probs, where):
    """Return probabilities of symbols without the axis of channels."""
    if probs.shape[-2] != 1:
        raise TypeError(
            f"{where} must emit symbols in one channel, got probabilities of shape "
            f"{probs.shape}."
        )
    return probs[..., 0, :]


def _gaussian(models, emission):
    means, covars = emission["means"], emission["covars"]
    check_definite(covars, "dynamax")
    shape = means.shape
    if covars.ndim == 3:
        model = models.GaussianHMM(*shape)
        return model, {"emission_means": means, "emission_covariances": covars}
    model = models.DiagonalGaussianHMM(*shape)
    return model, {"emission_means": means, "emission_scale_diags": np.sqrt(covars)}


def _categorical(models, emission):
    probs = emission["emissionprobs"][:, None]
    return models.CategoricalHMM(*probs.shape), {"emission_probs": probs}


def _poisson(models, emission):
    rates = emission["rates"]
    return models.PoissonHMM(*rates.shape), {"emission_rates": rates}


WRITERS = {"gaussian": _gaussian, "categorical": _categorical, "poisson": _poisson}


def dynamax_model(family, startprob, transmat, states):
    """Return a model of dynamax and its parameters.

    Parameters
    ----------
    family : str
        Name of the family of states, one of `WRITERS`.

    startprob, transmat : ndarray
        The chain, without padding.

    states : dict of ndarray
        Parameters of its states by name.

    Returns
    -------
    model : object
        A model of `dynamax.hidden_markov_model`.

    params : named tuple
        Its parameters.
    """
    try:
        import jax.numpy as jnp
        from dynamax import hidden_markov_model as models
    except ModuleNotFoundError as error:
        raise ImportError(
            "This needs dynamax, which is not installed: pip install dynamax."
        ) from error
    model, emission = WRITERS[family](models, states)
    chain = {"initial_probs": startprob, "transition_matrix": transmat}
    given = {name: jnp.asarray(array) for name, array in {**chain, **emission}.items()}
    return model, model.initialize(**given)[0]
