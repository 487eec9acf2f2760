"""Fits of many sequences in parallel, and the batch of their models."""

import numpy as np

from skawhmm.fitting._em_fit import general_fits, general_pooled_fit
from skawhmm.fitting._gaussian_fit import independent_fits
from skawhmm.fitting._pooled import pooled_fit, pooled_fits
from skawhmm.models._batch import HMMBatch
from skawhmm.models._counts import Counts
from skawhmm.models._inference import own_log_likelihoods
from skawhmm.utils._parallel import Shared, completed, even_ranges

# Blocks of sequences per worker, so that workers finish at about the same time. There
# are more blocks if they would be larger than the next number.
BLOCKS_PER_JOB = 2
# A block of about this many values stays in the shared cache; smaller ones spend their
# time between the steps of EM, where threads wait for each other.
BLOCK_VALUES = 2**19


def gaussian_fits(sequences, options, pooled=None):
    """Fit models with Gaussian states; the parameters are those of `fit_models`."""
    if pooled is None:
        return independent_fits(sequences, options)
    return pooled_fits(sequences, options, pooled)


# Families with their own functions for one model per sequence, and for one model of all
# sequences. All others use `_general`.
FITS = {"gaussian": gaussian_fits}
POOLED_FITS = {"gaussian": pooled_fit}


def fit_pool(sequences, options, n_jobs=None):
    """Fit one model to all sequences together.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, n_features)
        Checked sequences.

    options : FitOptions
        What to fit and how.

    n_jobs : int, default=None
        Number of joblib workers.

    Returns
    -------
    pooled : object
        The start or prior that `fit_models` takes.

    fit : Fit
        The same model, and how the fit went.
    """
    fit = POOLED_FITS.get(options.learner.name, general_pooled_fit)
    return fit(sequences, options, n_jobs)


def fit_models(sequences, options, *, pooled=None, n_jobs=None, verbose=False):
    """Fit one model per sequence.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, n_features)
        Checked sequences.

    options : FitOptions
        What to fit and how.

    pooled : object, default=None
        What `fit_pool` returned: the start values, or the prior.

    n_jobs : int, default=None
        Number of joblib workers; the result does not depend on it.

    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    fits : list of Fit
        One per sequence, in their order.
    """
    sizes = [x.size for x in sequences]
    tasks = even_ranges(sizes, n_jobs, per_job=BLOCKS_PER_JOB, most=BLOCK_VALUES)
    parts = completed(
        fit_block,
        Shared((sequences, options, pooled), sum(x.nbytes for x in sequences)),
        tasks,
        n_jobs=n_jobs,
        verbose=verbose,
        label="fits",
        amounts=[last - first for first, last in tasks],
    )
    return [fit for part in parts for fit in part]


def fit_block(shared, first, last):
    """Return fits of a range of sequences; an error names the sequence."""
    sequences, options, pooled = shared.value
    fits = FITS.get(options.learner.name, general_fits)
    try:
        return fits(sequences[first:last], options, pooled)
    except ValueError as error:
        if last - first == 1:
            text = f"X[{first}] could not be fitted: {error}."
            raise ValueError(text) from error
    return [fit for i in range(first, last) for fit in fit_block(shared, i, i + 1)]


def make_batch(
    fits,
    family,
    *,
    weights="occupancy",
    mask_missing=False,
    sequences=None,
    feature_names=None,
):
    """Return the models of several fits as one batch.

    Parameters
    ----------
    fits : list of Fit
        At least one fit. The numbers of states may differ.

    family : Emission
        Family of the states.

    weights : {"occupancy", "stationary", "uniform"}, default="occupancy"
        State probabilities of the models, as in `state_weights`.

    mask_missing : bool, default=False
        Whether missing channels are left out of comparisons; otherwise their means and
        variances are 0.

    sequences : list of ndarray, default=None
        The sequences, if the models are to carry them; they are copied.

    feature_names : tuple of str, default=None
        Names of the features.

    Returns
    -------
    models : HMMBatch
        The models, with their counts and info columns that say how the fits went.
    """
    shares = state_weights([fit.weights for fit in fits], weights)
    observed = None
    if mask_missing and fits[0].observed is not None:
        observed = np.stack([fit.observed for fit in fits])
    # One array is checked faster than many.
    joined = np.stack if len({len(fit.weights) for fit in fits}) == 1 else list
    states = {
        name: joined([fit.model.states[k] for fit in fits])
        for k, name in enumerate(family.parameter_names)
    }
    models = HMMBatch._of(
        type(family),
        joined([fit.model.transmat for fit in fits]),
        states,
        shared=family.extras,
        weights=None if shares is None else joined(shares),
        startprobs=joined([fit.model.startprob for fit in fits]),
        observed=observed,
        info=fit_info(fits),
    )
    if sequences is not None:
        # The models own what they carry: users may change their arrays later.
        sequences = [np.array(x) for x in sequences]
    return models._changed(
        sequences=sequences,
        feature_names=feature_names,
        counts=Counts.concatenate([fit.counts for fit in fits]),
    )


def scored(models, sequences):
    """Return fitted models whose log likelihoods are those that `score` gives.

    Gaussian states are fitted in coordinates that resolve more than covariances in raw
    units can hold, so that the last log likelihood of EM may be another one.

    Parameters
    ----------
    models : HMMBatch
        Models with Gaussian states.

    sequences : list of ndarray of shape (n_timesteps, n_features)
        The sequence that each was fitted to.

    Returns
    -------
    models : HMMBatch
        The models, with another column ``log_likelihood``. The value of the fit is kept
        where the score is infinite: values that differ by less than variances can hold
        count as one.
    """
    if models.covariance_type == "full":
        # Channels without values have mean and variance 0.
        sequences = [np.nan_to_num(x, nan=0.0) for x in sequences]
    values = np.array(own_log_likelihoods(models, sequences))
    values = np.where(np.isfinite(values), values, models.info["log_likelihood"])
    return models._changed(_info={**models._info, "log_likelihood": values})


def state_weights(occupancies, weights):
    """Return the state probabilities that `HMMTransformer` was asked for.

    Parameters
    ----------
    occupancies : list of ndarray of shape (n_components,)
        Share of frames in each state, one array per model.

    weights : {"occupancy", "stationary", "uniform"}
        These shares, the stationary law, or equal probabilities of all states that
        have frames.

    Returns
    -------
    weights : list of ndarray, or None
        One array per model; None for the stationary law, which `HMMBatch` computes.
    """
    if weights == "stationary":
        return None
    if weights == "uniform":
        return [(shares > 0) / np.count_nonzero(shares) for shares in occupancies]
    return occupancies


def fit_info(fits):
    """Return how the fits went, as info columns with one entry per model."""
    names = ["converged", "n_iter", "log_likelihood", "n_timesteps"]
    return {name: np.array([getattr(fit, name) for fit in fits]) for name in names}
