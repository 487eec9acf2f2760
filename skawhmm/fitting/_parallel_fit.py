"""Fitting: one model a sequence, many sequences at a time."""

from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from tqdm.auto import tqdm

from skawhmm.fitting._each import Fit, independent_fits
from skawhmm.fitting._pooled import adapted_fits, pooled_start_fits
from skawhmm.models._batch import HMMBatch

# Blocks per worker in a batch of fits, which evens out their lengths ...
BLOCKS_PER_JOB = 8
# ... or more: a block of about this many values stays in the cache.
BLOCK_VALUES = 2**17


def fit_models(
    sequences, options, *, pooled=None, fit=None, n_jobs=None, verbose=False
):
    """Fit one model a sequence.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, n_features)
        Checked sequences.

    options : FitOptions
        How.

    pooled : PooledModel or None
        Prior or start.

    fit : callable or None
        Fits a list of sequences, given the options and `pooled`; `gaussian_fits` if
        None.

    n_jobs : int or None
        Jobs; the result does not depend on them.

    verbose : bool
        Whether to show progress.

    Returns
    -------
    fits : list of Fit
        In the order of the sequences.
    """
    blocks = even_blocks(sequences, n_jobs)
    fit = fit or gaussian_fits
    tasks = (delayed(fit_block)(sequences, b, options, pooled, fit) for b in blocks)
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    fits: list[Fit] = []
    with tqdm(total=len(sequences), disable=not verbose, desc="fits") as bar:
        for part in parallel(tasks):
            fits.extend(part)
            bar.update(len(part))
    return fits


def fit_block(sequences, block, options, pooled, fit):
    """Fit the sequences of a range; an error names the one it is about."""
    try:
        return fit([sequences[i] for i in block], options, pooled)
    except ValueError as error:
        if len(block) == 1:
            text = f"X[{block[0]}] could not be fitted: {error}."
            raise ValueError(text) from error
    singles = (block[i : i + 1] for i in range(len(block)))
    parts = [fit_block(sequences, one, options, pooled, fit) for one in singles]
    return [part[0] for part in parts]


def gaussian_fits(sequences, options, pooled=None):
    """Fit models with Gaussian states; the parameters are those of `fit_models`."""
    if pooled is None:
        return independent_fits(sequences, options)
    lean = adapted_fits if options.relevance > 0 else pooled_start_fits
    return lean(sequences, options, pooled)


def even_blocks(sequences, n_jobs):
    """Ranges of sequences of about equal total length, a few for each job."""
    ends = np.cumsum([np.size(x) for x in sequences])
    n_blocks = max(BLOCKS_PER_JOB * effective_n_jobs(n_jobs), ends[-1] // BLOCK_VALUES)
    n_blocks = min(n_blocks, len(sequences))
    parts = np.minimum((ends - 1) * n_blocks // ends[-1], n_blocks - 1)
    cuts = np.flatnonzero(np.diff(parts)) + 1
    return [
        range(*pair) for pair in zip([0, *cuts], [*cuts, len(sequences)], strict=True)
    ]


def make_batch(fits, *, weights="occupancy", mask_missing=False, sequences=None):
    """Stack fits of unequal state counts into a batch.

    Parameters
    ----------
    fits : list of Fit
        At least one.

    weights : {"occupancy", "stationary", "uniform"}
        State probabilities; see `state_weights`.

    mask_missing : bool
        Whether missing channels are left out of comparisons, else they are zeros.

    sequences : list of ndarray, or None
        The sequences, if the models are to carry them.
    """
    arrays: dict[str, Any] = {
        "transmats": [fit.model.transmat for fit in fits],
        "means": [fit.model.means for fit in fits],
        "covars": [fit.model.covars for fit in fits],
        "startprobs": [fit.model.startprob for fit in fits],
    }
    shares = state_weights([fit.weights for fit in fits], weights)
    if shares is not None:
        arrays["weights"] = shares
    if len({len(fit.weights) for fit in fits}) == 1:
        arrays = {name: np.stack(parts) for name, parts in arrays.items()}
    observed = np.stack([fit.observed for fit in fits]) if mask_missing else None
    info = fit_info(fits)
    return HMMBatch(**arrays, observed=observed, info=info, sequences=sequences)


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
    """Return how the fits went, as columns with one entry a model."""
    names = ["converged", "n_iter", "log_likelihood", "n_timesteps"]
    return {name: np.array([getattr(fit, name) for fit in fits]) for name in names}


def make_discrete_batch(fits, family, *, weights="occupancy", sequences=None):
    """Stack fits of states that emit symbols or counts.

    Parameters
    ----------
    fits : list of DiscreteFit
        At least one.

    family : Discrete
        The family of the states.

    weights, sequences : str and list of ndarray, or None
        As in `make_batch`.
    """
    size = max(len(fit.weights) for fit in fits)
    states = np.zeros((len(fits), size, fits[0].model.states.shape[1]))
    for n, fit in enumerate(fits):
        states[n, : len(fit.weights)] = fit.model.states
    bare, _ = HMMBatch._bare(
        [fit.model.transmat for fit in fits],
        state_weights([fit.weights for fit in fits], weights),
        [fit.model.startprob for fit in fits],
        fit_info(fits),
    )
    return HMMBatch._from_parts(
        family.like(states),
        bare.transmats,
        bare.weights,
        bare.startprobs,
        bare._info,
        sequences,
    )
