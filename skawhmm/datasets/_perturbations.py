"""Families of models from the experiments of Chen, Ye and Li."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm
from sklearn.utils import Bunch

from skawhmm.datasets._generators import check_range
from skawhmm.datasets._sampling import (
    length_range,
    sampled_sequences,
    seed_sequence,
)
from skawhmm.models._batch import HMMBatch
from skawhmm.utils._checks import check_choice, check_integer, check_real
from skawhmm.utils._numbers import real_array
from skawhmm.utils._seeds import item_rng

# Degrees of freedom of the Wishart distribution, supplementary Algorithm 1.
_WISHART_DF = 10

# Variance of the factors beta of the covariances, read from "N(1, 0.1)".
_FACTOR_VARIANCE = 0.1


def make_table1_models(
    differ_in: str = "means",
    step: float = 0.4,
    *,
    n_models: int = 5,
    random_state: Any = None,
) -> Bunch:
    r"""Return two-state models of the paper's Table 1 that differ in one parameter.

    Parameters
    ----------
    differ_in : {"means", "covariances", "transitions"}, default="means"
        The parameter that differs from model to model.

    step : float, default=0.4
        Size of the difference between successive models; the paper uses 0.2, 0.4 and
        0.6. At most 1 with `differ_in="transitions"`.

    n_models : int, default=5
        Number of models :math:`i = 1, 2, \dots`.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the random matrices; "means" needs none.

    Returns
    -------
    models : Bunch
        Arrays `transmats` of shape (n_models, 2, 2), `means` of shape
        (n_models, 2, 2) and `covars` of shape (n_models, 2, 2, 2).

    See Also
    --------
    make_seed_models : Models with more states and channels.
    make_model_sequences : Sequences drawn from such models.

    Notes
    -----
    The table leaves three points open. The exponential of the covariances is the matrix
    exponential. The random matrix :math:`S` in it is the same for all models, and it is
    made symmetric, because the results would not be covariances otherwise. The
    transitions are :math:`(1 - \Delta t) S + \Delta t T_i`: the table prints the two
    weights the other way round, but according to the text the models get closer as the
    step decreases.

    References
    ----------
    Y. Chen, J. Ye and J. Li, "Aggregated Wasserstein Distance and State Registration
    for Hidden Markov Models", IEEE Transactions on Pattern Analysis and Machine
    Intelligence, 2020.

    Examples
    --------
    >>> from skawhmm.datasets import make_table1_models
    >>> models = make_table1_models("means", step=0.2)
    >>> models.means[:, 0, 0]
    array([2.2, 2.4, 2.6, 2.8, 3. ])
    """
    check_choice("differ_in", differ_in, sorted(_TABLE1))
    n_models = check_integer("n_models", n_models, 1)
    step = check_real("step", step, 0, 1 if differ_in == "transitions" else np.inf)
    rng = item_rng(seed_sequence(random_state), 0)
    base = {
        "transmats": np.array([[0.8, 0.2], [0.2, 0.8]]),
        "means": np.array([[2.0, 2.0], [5.0, 5.0]]),
        "covars": np.stack([np.eye(2), np.eye(2)]),
    }
    base = {name: np.stack([value] * n_models) for name, value in base.items()}
    with np.errstate(over="ignore", invalid="ignore"):
        models = base | _TABLE1[differ_in](rng, base, step)
    check_range("step", step, models)
    return Bunch(**models)


def _table1_means(rng, base, step):  # noqa: ARG001
    ranks = np.arange(1, len(base["means"]) + 1)
    return {"means": base["means"] + step * ranks[:, None, None]}


def _table1_covariances(rng, base, step):
    exponent = rng.random((2, 2))
    exponent = (exponent + exponent.T) / 2
    ranks = np.arange(1, len(base["covars"]) + 1)
    covars = 0.2 * expm(step * ranks[:, None, None] * exponent)
    return {"covars": np.repeat(covars[:, None], 2, axis=1)}


def _table1_transitions(rng, base, step):
    draws = [
        [rng.dirichlet(10 * row) for row in transmat] for transmat in base["transmats"]
    ]
    return {"transmats": (1 - step) * base["transmats"] + step * np.array(draws)}


_TABLE1 = {
    "means": _table1_means,
    "covariances": _table1_covariances,
    "transitions": _table1_transitions,
}


def make_seed_models(
    differ_in: str = "means",
    scale: float = 0.2,
    *,
    n_models: int = 6,
    n_components: int = 3,
    n_features: int = 3,
    random_state: Any = None,
) -> Bunch:
    r"""Draw the models of the paper's simulations, which differ in one parameter.

    They follow the paper's Algorithm 2 and its two supplementary algorithms: all models
    are equal except for one parameter, which is drawn around a common value.

    Parameters
    ----------
    differ_in : {"means", "covariances", "transitions"}, default="means"
        The parameter that differs from model to model.

    scale : float, default=0.2
        Size :math:`\gamma` of the difference: the variance of the means around the
        common ones, or the weight in [0, 1] of the random covariance or random
        transition matrix. At 0 the models are equal.

    n_models : int, default=6
        Number of models, the classes of the experiment.

    n_components : int, default=3
        Number of hidden states; the paper uses 3, 5 and 8.

    n_features : int, default=3
        Number of channels; the paper uses 3, 5 and 8.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the draw.

    Returns
    -------
    models : Bunch
        Arrays `transmats` of shape (n_models, n_components, n_components), `means` of
        shape (n_models, n_components, n_features) and `covars` of shape
        (n_models, n_components, n_features, n_features).

    See Also
    --------
    make_table1_models : The paper's models with two states.
    make_model_sequences : Sequences drawn from such models.

    Notes
    -----
    The state covariances are :math:`\beta_j \Sigma` with :math:`\beta_j \sim N(1, .1)`,
    where .1 is read as a variance, and draws that are not positive are repeated.
    Perturbed transitions are :math:`(1 - \gamma) T_{base} + \gamma P_i`; the paper
    prints the two weights the other way round, against its text. The paper does not say
    what the common transition matrix and covariance are. Here the matrix has 0.8 on the
    diagonal and equal entries elsewhere, as in Table 1, and the covariance is the
    identity. A Wishart matrix with 10 degrees of freedom has mean
    :math:`10 \Sigma_{base}`, so with "covariances" the states become wider as well as
    different. At most 10 channels are possible.

    References
    ----------
    Y. Chen, J. Ye and J. Li, "Aggregated Wasserstein Distance and State Registration
    for Hidden Markov Models", IEEE Transactions on Pattern Analysis and Machine
    Intelligence, 2020.

    Examples
    --------
    >>> from skawhmm.datasets import make_seed_models
    >>> models = make_seed_models("transitions", scale=0.3, random_state=0)
    >>> models.transmats.shape, models.means.shape, models.covars.shape
    ((6, 3, 3), (6, 3, 3), (6, 3, 3, 3))
    """
    check_choice("differ_in", differ_in, sorted(_SEED))
    n_models = check_integer("n_models", n_models, 1)
    n_components = check_integer("n_components", n_components, 1)
    n_features = check_integer("n_features", n_features, 1)
    scale = check_real("scale", scale, 0, np.inf if differ_in == "means" else 1)
    if differ_in == "covariances" and n_features > _WISHART_DF:
        raise ValueError(
            f'n_features must be at most {_WISHART_DF} with differ_in="covariances", '
            f"got {n_features}."
        )
    rng = item_rng(seed_sequence(random_state), 0)
    spread = 1.0 if differ_in == "means" else 5.0
    means = np.sqrt(spread) * rng.standard_normal((n_components, n_features))
    covars = _factors(rng, n_components)[:, None, None] * np.eye(n_features)
    base = {
        "transmats": np.stack([_sticky_transmat(n_components)] * n_models),
        "means": np.stack([means] * n_models),
        "covars": np.stack([covars] * n_models),
    }
    models = base | _SEED[differ_in](rng, base, scale)
    check_range("scale", scale, models)
    return Bunch(**models)


def _sticky_transmat(n_components):
    if n_components == 1:
        return np.ones((1, 1))
    moves = np.full((n_components, n_components), 0.2 / (n_components - 1))
    np.fill_diagonal(moves, 0.8)
    return moves


def _factors(rng, n_components):
    factors = rng.normal(1, np.sqrt(_FACTOR_VARIANCE), size=n_components)
    while np.any(factors <= 0):
        redrawn = rng.normal(1, np.sqrt(_FACTOR_VARIANCE), size=n_components)
        factors = np.where(factors <= 0, redrawn, factors)
    return factors


def _seed_means(rng, base, scale):
    shift = rng.standard_normal(base["means"].shape)
    return {"means": base["means"] + np.sqrt(scale) * shift}


def _seed_covariances(rng, base, scale):
    n_models, _, n_features = base["means"].shape
    identity = np.eye(n_features)
    # A Wishart matrix is the scatter of one normal vector per degree of freedom.
    vectors = rng.standard_normal((n_models, 1, n_features, _WISHART_DF))
    draws = vectors @ np.swapaxes(vectors, -1, -2)
    factors = base["covars"][..., :1, :1]
    return {"covars": factors * ((1 - scale) * identity + scale * draws)}


def _seed_transitions(rng, base, scale):
    n_models, n_components, _ = base["transmats"].shape
    draws = rng.dirichlet(np.ones(n_components), size=(n_models, n_components))
    return {"transmats": (1 - scale) * base["transmats"] + scale * draws}


_SEED = {
    "means": _seed_means,
    "covariances": _seed_covariances,
    "transitions": _seed_transitions,
}


def make_model_sequences(
    models: Any,
    n_sequences: int = 10,
    *,
    n_timesteps: int | tuple[int, int] = 100,
    random_state: Any = None,
) -> tuple[list[NDArray[np.float64]], NDArray[Any]]:
    """Draw sequences from given models; each model is a class.

    Parameters
    ----------
    models : mapping
        Arrays `transmats` of shape (n_models, n_components, n_components), `means` of
        shape (n_models, n_components, n_features) and `covars` of shape
        (n_models, n_components, n_features) or
        (n_models, n_components, n_features, n_features).

    n_sequences : int, default=10
        Number of sequences per model.

    n_timesteps : int or (int, int), default=100
        Length of the sequences, or the smallest and the largest length.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the draw. Each sequence has its own random stream; its first state is
        drawn from the stationary distribution.

    Returns
    -------
    X : list of ndarray of shape (n_timesteps, n_features)
        The sequences, in the order of the models.

    y : ndarray of shape (n_models * n_sequences,)
        The model each sequence was drawn from.

    See Also
    --------
    make_table1_models : The paper's models with two states.
    make_seed_models : The paper's randomly drawn models.

    Examples
    --------
    >>> from skawhmm.datasets import make_model_sequences, make_table1_models
    >>> models = make_table1_models("transitions", step=0.6, random_state=0)
    >>> X, y = make_model_sequences(models, n_sequences=10, random_state=0)
    >>> len(X), X[0].shape, y[[0, 10, 49]]
    (50, (100, 2), array([0, 1, 4]))
    """
    n_sequences = check_integer("n_sequences", n_sequences, 1)
    arrays = _checked_arrays(models)
    y = np.repeat(np.arange(len(arrays["means"])), n_sequences)
    lengths = length_range(n_timesteps)
    return sampled_sequences(arrays, y, lengths, seed_sequence(random_state)), y


def _checked_arrays(models):
    """Return the arrays of models whose parameters are valid."""
    names = ("transmats", "means", "covars")
    lacking = [name for name in names if name not in models]
    if lacking:
        raise ValueError(f"models must hold the arrays {names}, without {lacking}.")
    arrays = {name: real_array(f"models[{name!r}]", models[name]) for name in names}
    _check_shapes(**arrays)
    # A batch of models checks probabilities and covariances.
    HMMBatch(arrays["transmats"], arrays["means"], arrays["covars"])
    return arrays


def _check_shapes(transmats, means, covars):
    if means.ndim != 3:
        raise ValueError(
            "models['means'] must have shape (n_models, n_components, n_features), "
            f"got {means.shape}."
        )
    expected = (*means.shape[:2], means.shape[1])
    if transmats.shape != expected:
        raise ValueError(
            f"models['transmats'] must have shape {expected}, got {transmats.shape}."
        )
    if covars.shape not in {means.shape, (*means.shape, means.shape[2])}:
        raise ValueError(
            f"models['covars'] must have shape {means.shape} or "
            f"{(*means.shape, means.shape[2])}, got {covars.shape}."
        )
