"""Engines that replace our EM loop: hmmlearn's own, and any estimator of hmmlearn.

An engine takes the sequences of one model in the coordinates of the fit, the number of
channels, a start, the options and a seed, and returns one row of `EMRuns`.
"""

from functools import partial

import numpy as np
from sklearn.base import clone

from skawhmm.emissions._gaussian_em import lifted
from skawhmm.emissions._hmmlearn import hmmlearn_models
from skawhmm.emissions._model import Model
from skawhmm.fitting._em import EMRuns, stacked
from skawhmm.models._hmmlearn import trained_arrays


def resolve_engine(engine, covariance_type):
    """Return the engine that the parameter `engine` stands for."""
    if not isinstance(engine, str):
        return partial(estimator_engine, engine, covariance_type)
    return partial(hmmlearn_engine, covariance_type)


def hmmlearn_engine(covariance_type, data, n_features, start, options, seed):
    """Run the EM of `hmmlearn.hmm.GaussianHMM` from our start values."""
    model = hmmlearn_models().GaussianHMM(
        n_components=len(start.startprob),
        covariance_type=covariance_type,
        n_iter=options.max_iter,
        tol=options.tol * data.offsets[-1],
        min_covar=options.template.floor,
        init_params="",
        random_state=seed % 2**32,
    )
    model.startprob_, model.transmat_ = start.startprob, start.transmat
    means, covars = start.states
    model.means_ = means
    model.covars_ = hmmlearn_covars(covars, covariance_type)
    return fitted_result(model, data, n_features, options)


def hmmlearn_covars(covars, covariance_type):
    """Return the covariances of single Gaussians in hmmlearn's form."""
    if covariance_type == "spherical":
        return covars.mean(axis=1)
    return covars[0] if covariance_type == "tied" else covars


def estimator_engine(
    estimator, covariance_type, data, n_features, start, options, seed
):
    """Fit a clone of an hmmlearn estimator, with its own start and stopping rule."""
    model = clone(estimator)
    model.set_params(
        n_components=len(start.startprob),
        covariance_type=covariance_type,
        random_state=seed % 2**32,
    )
    return fitted_result(model, data, n_features, options)


def fitted_result(model, data, n_features, options):
    """Fit a model of hmmlearn; return it as a row of `EMRuns`."""
    try:
        with np.errstate(all="ignore"):
            frames = data.frames.reshape(n_features, -1).T
            model.fit(np.ascontiguousarray(frames), np.diff(data.offsets))
    except (ValueError, np.linalg.LinAlgError) as error:
        raise ValueError(f"{type(model).__name__} failed with: {error}") from error
    arrays = trained_arrays(model)
    transmat = np.array(arrays["transmats"], float)
    # hmmlearn leaves a row of zeros if a state was never left: make it stay there.
    empty = transmat.sum(axis=1) == 0
    transmat[empty] = np.eye(len(transmat))[empty]
    # A fitted spherical model of hmmlearn repeats each state once per feature.
    covars = np.array(arrays["covars"], float)
    covars = covars[:: len(covars) // len(transmat)].copy()
    floor = options.template.floor
    covars = np.maximum(covars, floor) if covars.ndim == 2 else lifted(covars, floor)
    startprob = np.array(arrays["startprobs"], float)
    fitted = Model(
        startprob / startprob.sum(),
        transmat / transmat.sum(axis=1, keepdims=True),
        (np.array(arrays["means"], float), covars),
    )
    if not all(np.isfinite(part).all() for part in (*fitted[:2], *fitted.states)):
        raise ValueError(f"{type(model).__name__} ended in parameters that are NaN")
    (value,), expected = options.template.expectations(
        data, stacked([fitted]), np.arange(1)
    )
    monitor = model.monitor_
    steps, converged = np.array(monitor.iter), np.array(bool(monitor.converged))
    sums = expected.counts[0], expected.moves[0]
    return EMRuns(fitted, *sums, value, value, steps, converged)
