"""Models of what users pass as `X`, and their distances to reference models."""

from functools import partial

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from skawhmm.distances._aggregated import mixed
from skawhmm.distances._pairwise import pairwise_hmm_components, pairwise_hmm_distances
from skawhmm.distances._resolve import resolve_metric
from skawhmm.fitting._transformer import HMMTransformer
from skawhmm.sequences._input import is_models, remembered
from skawhmm.utils._checks import check_distances


def fit_models(hmm, X, y, memory):
    """Return the fitted transformer of sequences, and their models.

    Parameters
    ----------
    hmm : transformer or None
        Turns sequences into models; None stands for ``HMMTransformer()``. It is cloned.

    X : HMMBatch or list of ndarray
        Checked input.

    y : array-like or None
        Given to the transformer.

    memory : None, str, path-like or joblib.Memory
        Where fits are kept.

    Returns
    -------
    hmm : transformer or None
        The fitted one; None if `X` holds models.

    models : HMMBatch
        The models.
    """
    if is_models(X):
        return None, X
    hmm = HMMTransformer() if hmm is None else clone(hmm)

    def compute():
        models = hmm.fit_transform(X, y)
        return hmm, models

    return remembered(memory, ("fit_transform", hmm, X, y), compute)


def transformed(hmm, X, memory):
    """Return the models of `X` by a transformer that `fit_models` fitted.

    Parameters
    ----------
    hmm : transformer or None
        The fitted one; None if models were given to `fit`.

    X : HMMBatch or list of ndarray
        Checked input.

    memory : None, str, path-like or joblib.Memory
        Where fits are kept.

    Returns
    -------
    models : HMMBatch
        The models.
    """
    if is_models(X):
        return X
    if hmm is None:
        raise TypeError(
            "X must be an HMMBatch, as it was in fit, got sequences. To pass sequences "
            "here, pass sequences to fit."
        )
    return remembered(memory, ("transform", hmm, X), lambda: hmm.transform(X))


def is_mixture(metric):
    """Whether a distance is made of two components by its alpha."""
    return hasattr(metric, "components") and hasattr(metric, "alpha")


def reference_distances(X, Y, estimator, alpha):
    """Return the distances of models to reference models.

    Parameters
    ----------
    X, Y : HMMBatch
        The models.

    estimator : estimator
        Its parameters `metric`, `p`, `metric_params`, `memory`, `n_jobs` and `verbose`
        say how.

    alpha : float
        Share of the transition component.

    Returns
    -------
    distances : ndarray of shape (n_models_X, n_models_Y)
        Without NaN.
    """
    chosen = resolve_metric(
        estimator.metric,
        alpha=alpha,
        p=estimator.p,
        metric_params=estimator.metric_params,
    )
    if estimator.memory is not None and is_mixture(chosen):
        return mixed(reference_components(X, Y, estimator), chosen.alpha)

    def compute(X, Y):
        run = {"n_jobs": estimator.n_jobs, "verbose": estimator.verbose}
        return pairwise_hmm_distances(X, Y, chosen, **run)

    return _computed_once(X, Y, estimator, "distances", compute)


def reference_components(X, Y, estimator):
    """Return the components of the distances, of shape (n_models_X, n_models_Y, 2)."""

    def compute(X, Y):
        pair = pairwise_hmm_components(
            X,
            Y,
            estimator.metric,
            p=estimator.p,
            metric_params=estimator.metric_params,
            n_jobs=estimator.n_jobs,
            verbose=estimator.verbose,
        )
        return np.stack(pair, axis=-1)

    return _computed_once(X, Y, estimator, "components", compute)


def _computed_once(X, Y, estimator, what, compute):
    contents = [_content(X), _content(Y)]
    if Y is X or contents[0] == contents[1]:
        # Models compared with themselves need half of the pairs, for the same result.
        Y, contents[1] = None, None
    params = (estimator.metric, float(estimator.p), estimator.metric_params)
    call = partial(compute, X, Y)
    return check_distances(
        "metric", remembered(estimator.memory, (what, *contents, *params), call)
    )


def _content(models):
    """Return what tells models apart: all that a distance may look at."""
    return models.keys.tobytes(), joblib.hash(models.sequences)


def check_precomputed(estimator, X, *, reset, square=False):
    """Return given distances or components as an array, infinity allowed.

    Parameters
    ----------
    estimator : estimator
        Whose input it is; `n_features_in_` is the number of reference models.

    X : array-like of shape (n_models, n_models_fit[, 2])
        What was given.

    reset : bool
        Whether this is the input of `fit`.

    square : bool, default=False
        Whether `X` must have as many rows as columns.

    Returns
    -------
    X : ndarray of the same shape
        The values, none of them NaN.
    """
    X = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=np.float64,
        allow_nd=True,
        ensure_all_finite=False,
    )
    if X.shape[2:] not in {(), (2,)}:
        raise ValueError(
            "X must be distances of shape (n_models, n_models_fit) or components of "
            f"shape (n_models, n_models_fit, 2), got shape {X.shape}."
        )
    check_distances("X", X)
    if square and X.shape[0] != X.shape[1]:
        raise ValueError(
            "X must be a square matrix of distances between the training models, got "
            f"shape {X.shape}."
        )
    return X


def mixed_precomputed(X, alpha):
    """Return distances: components are mixed, distances left as they are."""
    if X.ndim == 2:
        return X
    with np.errstate(invalid="ignore"):
        distances = mixed(X, alpha)
    # An infinite component makes an infinite distance, even if its share is 0.
    return np.where(np.isnan(distances), np.inf, distances)
