"""Fits of many sequences, in parallel, and the batch that they make."""

import numpy as np

from skawhmm.fitting._each import independent_fits
from skawhmm.fitting._general import general_fits, general_pooled_fit
from skawhmm.fitting._pooled import adapted_fits, pooled_fit, pooled_start_fits
from skawhmm.models._batch import HMMBatch
from skawhmm.utils._parallel import Shared, completed, even_ranges

# Blocks per worker in a batch of fits, which evens out their lengths ...
BLOCKS_PER_JOB = 8
# ... or more: a block of about this many values stays in the cache.
BLOCK_VALUES = 2**17


def gaussian_fits(sequences, options, pooled=None):
    """Fit models with Gaussian states; the parameters are those of `fit_models`."""
    if pooled is None:
        return independent_fits(sequences, options)
    lean = adapted_fits if options.relevance > 0 else pooled_start_fits
    return lean(sequences, options, pooled)


# Families that are fitted in a way of their own: one model per sequence, and one of all
# sequences. The others follow `_general`.
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

    n_jobs : int or None
        Number of joblib workers.

    Returns
    -------
    pooled : object
        What `fit_models` takes.

    fit : Fit
        The model itself.
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

    pooled : object or None
        What `fit_pool` returned: prior or start.

    n_jobs : int or None
        Number of joblib workers; the result does not depend on it.

    verbose : bool
        Whether to show progress.

    Returns
    -------
    fits : list of Fit
        In the order of the sequences.
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
    """Fit the sequences of a range; an error names the one it is about."""
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
    fits, family, *, weights="occupancy", mask_missing=False, sequences=None
):
    """Stack fits of unequal state counts into a batch.

    Parameters
    ----------
    fits : list of Fit
        At least one.

    family : Emission
        What their states are.

    weights : {"occupancy", "stationary", "uniform"}
        State probabilities; see `state_weights`.

    mask_missing : bool
        Whether missing channels are left out of comparisons, else they are zeros.

    sequences : list of ndarray, or None
        The sequences, if the models are to carry them.

    Returns
    -------
    models : HMMBatch
        The models; how the fits went is in its info columns.
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
    return models._changed(sequences=sequences)


def state_weights(occupancies, weights):
    """Return the state probabilities that a user's word means.

    Parameters
    ----------
    occupancies : list of ndarray of shape (n_components,)
        Shares of frames in each state.

    weights : {"occupancy", "stationary", "uniform"}
        The word.

    Returns
    -------
    weights : list of ndarray, or None
        None for the stationary law, which `HMMBatch` finds itself. States without
        frames have weight 0 in any case.
    """
    if weights == "stationary":
        return None
    if weights == "uniform":
        return [(shares > 0) / np.count_nonzero(shares) for shares in occupancies]
    return occupancies


def fit_info(fits):
    """Return how the fits went, as columns with one entry per model."""
    names = ["converged", "n_iter", "log_likelihood", "n_timesteps"]
    return {name: np.array([getattr(fit, name) for fit in fits]) for name in names}
