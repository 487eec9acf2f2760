"""Inference with given models: likelihoods, posteriors, best paths, samples."""

from collections import namedtuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numba import njit

from skawhmm.emissions._gaussian_densities import (
    LOG_TWO_PI,
    RANK_TOLERANCE,
    SUPPORT_TOLERANCE,
    diag_log_density,
    full_log_density,
)
from skawhmm.numerics._forward_backward import forward_backward, log_likelihood_of
from skawhmm.numerics._paths import best_path, keep_least_rank, random_path
from skawhmm.utils._compile import KERNEL

# Blocks of sequences per worker, which evens out their lengths.
BLOCKS_PER_JOB = 4

Emissions = namedtuple("Emissions", ["means", "factors", "norms", "scales", "nulls"])
Emissions.__doc__ = """What log densities need, for a stack of models or one of them.

`factors` are variances (diagonal) or whitening matrices (full); `norms` the logs of the
normalising constants; `scales` the units in which a distance from the support counts;
`nulls` has a row (or, diagonal, an entry) that is not 0 for each direction off it.
"""


def make_emissions(batch):
    """Factor the covariances of a batch.

    Parameters
    ----------
    batch : HMMBatch
        Models with Gaussian states.

    Returns
    -------
    emissions : Emissions
        Arrays with a leading axis of models. Channels that a model did not observe
        count neither in the density nor in the support.
    """
    observed = np.ones((len(batch), batch.n_features), bool)
    if batch.observed is not None:
        observed = np.asarray(batch.observed, bool)
    if batch.covariance_type == "diag":
        return diag_emissions(batch, observed)
    return full_emissions(batch, observed)


def diag_emissions(batch, observed):
    """Emissions of diagonal models."""
    covars = np.where(observed[:, None], batch.covars, 0.0)
    nulls = ((covars == 0) & observed[:, None]).astype(float)
    scales = np.repeat(np.sqrt(covars.max(axis=2))[..., None], covars.shape[2], axis=2)
    norms = np.zeros(covars.shape[:2])
    return Emissions(np.array(batch.means), covars, norms, scales, nulls)


def full_emissions(batch, observed):
    """Emissions of full models, by the eigenvectors of the correlation matrices."""
    covars = np.array(batch.covars)
    n_features = covars.shape[2]
    spread = np.sqrt(np.einsum("nkcc->nkc", covars))
    widest = spread.max(axis=2, keepdims=True)
    units = np.where(spread > 0, spread, np.where(widest > 0, widest, 1.0))
    values, vectors = np.linalg.eigh(covars / (units[..., None] * units[..., None, :]))
    # A row of `directions` is an eigenvector, acting on raw gaps.
    directions = vectors.swapaxes(2, 3) / units[..., None, :]
    kept = values > RANK_TOLERANCE * n_features
    roots = np.sqrt(np.where(kept, values, 1.0))
    whiteners = np.where(kept[..., None], directions / roots[..., None], 0.0)
    nulls = np.where(kept[..., None], 0.0, directions)
    # A channel that was not observed has no variance: its direction is a unit vector.
    nulls = np.where(observed[:, None, None], nulls, 0.0)
    ranks = kept.sum(axis=2)
    log_det = 2 * np.log(units).sum(axis=2) + 2 * np.log(roots).sum(axis=2)
    for i, k in zip(*np.nonzero(ranks < n_features), strict=True):
        # On the support of a flat state the volume is that of the raw channels.
        top = np.linalg.eigvalsh(covars[i, k])[n_features - ranks[i, k] :]
        log_det[i, k] = np.log(top).sum()
    norms = -0.5 * (ranks * LOG_TWO_PI + log_det)
    return Emissions(np.array(batch.means), whiteners, norms, units, nulls)


@njit(**KERNEL)
def sequence_centre(frames, seen):
    """Means of the channels, 0 where nothing was observed."""
    centre = np.zeros(frames.shape[0])
    for c in range(frames.shape[0]):
        count = frames.shape[1] if seen.size == 0 else seen[c].sum()
        if count > 0:
            centre[c] = frames[c].sum() / count
    return centre


@njit(**KERNEL)
def model_densities(factors, frames, seen, emissions, out):
    """Log densities of the frames under one model, on and off the supports.

    Parameters
    ----------
    factors : ndarray
        `emissions.factors`; an argument for numba to tell the families apart.

    frames, seen : ndarray of shape (n_features, n_timesteps)
        Raw frames with 0 where not observed, and the mask (or an empty one).

    emissions : Emissions
        Of one model.

    out : ndarray of shape (n_components, n_timesteps)
        Receives the result.
    """
    if factors.ndim == 2:
        diag_log_density(frames, seen, emissions.means, factors, out)
        for k in range(out.shape[0]):
            if emissions.nulls[k].any():
                leave_diag_support(frames, seen, k, emissions, out[k])
    else:
        # Far from the origin the whitened frames would lose digits.
        centre = sequence_centre(frames, seen)
        gaps = frames - centre.reshape((-1, 1))
        means = emissions.means - centre
        full_log_density(gaps, means, factors, emissions.norms, out)
        for k in range(out.shape[0]):
            if emissions.nulls[k].any():
                leave_full_support(frames, k, emissions, out[k])


@njit(**KERNEL)
def leave_diag_support(frames, seen, k, emissions, out):
    """Set the log density of state k to minus infinity off its support."""
    for t in range(frames.shape[1]):
        gap, size = 0.0, 0.0
        for c in range(frames.shape[0]):
            size += frames[c, t] * frames[c, t]
            if emissions.nulls[k, c] > 0 and (seen.size == 0 or seen[c, t] > 0):
                gap = max(gap, abs(frames[c, t] - emissions.means[k, c]))
        if gap > SUPPORT_TOLERANCE * (emissions.scales[k, 0] + np.sqrt(size)):
            out[t] = -np.inf


@njit(**KERNEL)
def leave_full_support(frames, k, emissions, out):
    """Set the log density of state k to minus infinity off its support."""
    spread = 1.0 if emissions.factors[k].any() else 0.0
    for t in range(frames.shape[1]):
        gap, size = 0.0, 0.0
        for r in range(frames.shape[0]):
            size += (frames[r, t] / emissions.scales[k, r]) ** 2
            part = 0.0
            for c in range(frames.shape[0]):
                part += emissions.nulls[k, r, c] * (
                    frames[c, t] - emissions.means[k, c]
                )
            gap = max(gap, abs(part))
        if gap > SUPPORT_TOLERANCE * (spread + np.sqrt(size)):
            out[t] = -np.inf


@njit(**KERNEL)
def state_ranks(factors):
    """Dimension of the support of every state of one model."""
    ranks = np.zeros(factors.shape[0], np.int64)
    for k in range(factors.shape[0]):
        for r in range(factors.shape[1]):
            if factors.ndim == 2:
                ranks[k] += factors[k, r] != 0
            else:
                ranks[k] += factors[k, r].any()
    return ranks


@njit(**KERNEL)
def chain_densities(frames, seen, emissions, startprob, transmat):
    """Log densities under one model, only the flattest supports kept."""
    logs = np.empty((startprob.shape[0], frames.shape[1]))
    model_densities(emissions.factors, frames, seen, emissions, logs)
    ranks = state_ranks(emissions.factors)
    if ranks.min() < ranks.max():
        keep_least_rank(logs, ranks, startprob, transmat)
    return logs


@njit(**KERNEL)
def one_model(emissions, i, size):
    """Return the emissions of the first `size` states of model i."""
    return Emissions(
        emissions.means[i, :size],
        emissions.factors[i, :size],
        emissions.norms[i, :size],
        emissions.scales[i, :size],
        emissions.nulls[i, :size],
    )


@njit(**KERNEL)
def score_models(frames, seen, emissions, startprobs, transmats, sizes, models, out):
    """Fill the log likelihoods of one sequence under some models of a stack."""
    for n in range(models.shape[0]):
        i = models[n]
        size = sizes[i]
        model = one_model(emissions, i, size)
        startprob = startprobs[i, :size]
        transmat = np.ascontiguousarray(transmats[i, :size, :size])
        logs = chain_densities(frames, seen, model, startprob, transmat)
        out[n] = log_likelihood_of(logs, startprob, transmat)


def channels_and_mask(x):
    """One sequence channel by channel, NaN replaced by 0, and its mask."""
    frames = x.T.copy()
    gaps = np.isnan(frames)
    if not gaps.any():
        return frames, np.empty((0, 0))
    return np.where(gaps, 0.0, frames), (~gaps).astype(float)


def chains(batch, startprobs):
    """Writable copies of the chains of a batch: starts, transitions, state counts."""
    starts = batch.startprobs if startprobs is None else startprobs
    sizes = np.array(batch.n_components, np.int64)
    return np.array(starts, float), np.array(batch.transmats), sizes


def make_scorer(batch, parts):
    """Return a function of a sequence and models: its log likelihoods under them."""
    if hasattr(batch.emission, "scorer"):
        return batch.emission.scorer(*parts)
    emissions = make_emissions(batch)

    def scores(x, models):
        out = np.empty(len(models))
        score_models(*channels_and_mask(x), emissions, *parts, models, out)
        return out

    return scores


def log_likelihood(batch, sequences, *, startprobs=None, n_jobs=None):
    """Log likelihood of every sequence under every model.

    Parameters
    ----------
    batch : HMMBatch
        Models.

    sequences : list of ndarray of shape (n_timesteps, n_features)
        Checked sequences; NaN (not observed) only if the models are diagonal.

    startprobs : ndarray of shape (n_models, n_components) or None
        Initial laws in place of the models' own.

    n_jobs : int or None
        Jobs; the values do not depend on them.

    Returns
    -------
    scores : ndarray of shape (n_sequences, n_models)
        Minus infinity where a model cannot emit a sequence.
    """
    score = make_scorer(batch, chains(batch, startprobs))
    scores = np.empty((len(sequences), len(batch)))

    def fill(block):
        for i in block:
            scores[i] = score(sequences[i], np.arange(len(batch)))

    n_blocks = min(len(sequences), BLOCKS_PER_JOB * effective_n_jobs(n_jobs))
    blocks = np.array_split(np.arange(len(sequences)), max(n_blocks, 1))
    # Every job writes rows of its own.
    Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem")(
        delayed(fill)(block) for block in blocks
    )
    return scores


def make_densities(batch):
    """Return a function of a model, a sequence and a chain: the log densities."""
    if hasattr(batch.emission, "densities"):
        return batch.emission.densities
    emissions = make_emissions(batch)

    def densities(i, x, start, transmat):
        model = one_model(emissions, i, len(start))
        return chain_densities(*channels_and_mask(x), model, start, transmat)

    return densities


def paired_densities(batch, sequences, startprobs):
    """Densities and chains of every model with its sequence, one after the other.

    A single model goes with every sequence, a single sequence with every model.
    """
    densities = make_densities(batch)
    starts, transmats, sizes = chains(batch, startprobs)
    n_pairs = max(len(batch), len(sequences))
    for n in range(n_pairs):
        i, j = n % len(batch), n % len(sequences)
        size = sizes[i]
        start, transmat = starts[i, :size], transmats[i, :size, :size].copy()
        yield densities(i, sequences[j], start, transmat), start, transmat


def posteriors(batch, sequences, *, startprobs=None):
    """State probabilities of every frame, given its whole sequence.

    Parameters
    ----------
    batch : HMMBatch
        Models, as many as sequences (or one).

    sequences : list of ndarray of shape (n_timesteps, n_features)
        Checked sequences, as many as models (or one).

    startprobs : ndarray of shape (n_models, n_components) or None
        Initial laws in place of the models' own.

    Returns
    -------
    posteriors : list of ndarray of shape (n_timesteps, n_components)
        One a pair. Frames that a model cannot emit are passed over.
    """
    result = []
    for logs, start, transmat in paired_densities(batch, sequences, startprobs):
        post = np.empty(logs.shape)
        forward_backward(logs, start, transmat, post, np.zeros(transmat.shape))
        result.append(post.T.copy())
    return result


def best_paths(batch, sequences, *, startprobs=None):
    """Most probable paths of states (Viterbi); the parameters are as in `posteriors`.

    Returns
    -------
    paths : list of ndarray of int of shape (n_timesteps,)
        One a pair.

    scores : ndarray of shape (n_pairs,)
        Log densities of paths and sequences together.
    """
    paths, scores = [], []
    for logs, start, transmat in paired_densities(batch, sequences, startprobs):
        path = np.empty(logs.shape[1], np.int64)
        scores.append(best_path(logs, start, transmat, path))
        paths.append(path)
    return paths, np.array(scores)


def sample_sequences(batch, n_timesteps, seeds, *, startprobs=None):
    """Draw one sequence from every model.

    Parameters
    ----------
    batch : HMMBatch
        Models.

    n_timesteps : int or array-like of shape (n_models,)
        Lengths.

    seeds : sequence of int of length n_models
        What each draw depends on, besides its model.

    startprobs : ndarray of shape (n_models, n_components) or None
        Initial laws in place of the models' own.

    Returns
    -------
    sequences : list of ndarray of shape (n_timesteps, n_features)
        Frames.

    paths : list of ndarray of int of shape (n_timesteps,)
        States.
    """
    starts, transmats, sizes = chains(batch, startprobs)
    lengths = np.broadcast_to(n_timesteps, len(batch))
    sequences, paths = [], []
    for i, (length, seed) in enumerate(zip(lengths, seeds, strict=True)):
        rng = np.random.default_rng(seed)
        path = np.empty(length, np.int64)
        random_path(starts[i, : sizes[i]], transmats[i], rng.random(length), path)
        sequences.append(batch.emission.drawn(i, path, rng))
        paths.append(path)
    return sequences, paths
