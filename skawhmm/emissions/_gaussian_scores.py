"""Log densities and likelihoods under given Gaussian states, singular ones included."""

from collections import namedtuple
from typing import NamedTuple

import numpy as np
from numba import njit

from skawhmm.emissions._gaussian_densities import (
    LOG_TWO_PI,
    RANK_TOLERANCE,
    SUPPORT_TOLERANCE,
    diag_log_density,
    full_log_density,
)
from skawhmm.numerics._forward_backward import log_likelihood_of
from skawhmm.numerics._paths import keep_least_rank
from skawhmm.utils._compile import KERNEL

Densities = namedtuple("Densities", ["means", "factors", "norms", "scales", "nulls"])
Densities.__doc__ = """What log densities need, for a stack of models or one of them.

`factors` are variances (diagonal) or whitening matrices (full); `norms` the logs of the
normalising constants; `scales` the units in which a distance from the support counts;
`nulls` has a row (or, diagonal, an entry) that is not 0 for each direction off it.
"""


def make_densities(family):
    """Factor the covariances of models.

    Parameters
    ----------
    family : Gaussian
        Their states.

    Returns
    -------
    densities : Densities
        Arrays with a leading axis of models. Channels that a model did not observe
        count neither in the density nor in the support.
    """
    observed = family.masks() > 0
    if family.covariance_type == "diag":
        return diag_densities(family, observed)
    return full_densities(family, observed)


def diag_densities(family, observed):
    """Densities of diagonal models."""
    covars = np.where(observed[:, None], family.covars, 0.0)
    nulls = ((covars == 0) & observed[:, None]).astype(float)
    scales = np.repeat(np.sqrt(covars.max(axis=2))[..., None], covars.shape[2], axis=2)
    norms = np.zeros(covars.shape[:2])
    return Densities(np.array(family.means), covars, norms, scales, nulls)


def full_densities(family, observed):
    """Densities of full models, by the eigenvectors of the correlation matrices."""
    covars = np.array(family.covars)
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
    return Densities(np.array(family.means), whiteners, norms, units, nulls)


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
def model_densities(factors, frames, seen, densities, out):
    """Log densities of the frames under one model, on and off the supports.

    Parameters
    ----------
    factors : ndarray
        `densities.factors`; an argument for numba to tell the families apart.

    frames, seen : ndarray of shape (n_features, n_timesteps)
        Raw frames with 0 where not observed, and the mask (or an empty one).

    densities : Densities
        Of one model.

    out : ndarray of shape (n_components, n_timesteps)
        Receives the result.
    """
    if factors.ndim == 2:
        diag_log_density(frames, seen, densities.means, factors, out)
        for k in range(out.shape[0]):
            if densities.nulls[k].any():
                leave_diag_support(frames, seen, k, densities, out[k])
    else:
        # Far from the origin the whitened frames would lose digits.
        centre = sequence_centre(frames, seen)
        gaps = frames - centre.reshape((-1, 1))
        means = densities.means - centre
        full_log_density(gaps, means, factors, densities.norms, out)
        for k in range(out.shape[0]):
            if densities.nulls[k].any():
                leave_full_support(frames, k, densities, out[k])


@njit(**KERNEL)
def leave_diag_support(frames, seen, k, densities, out):
    """Set the log density of state k to minus infinity off its support."""
    for t in range(frames.shape[1]):
        gap, size = 0.0, 0.0
        for c in range(frames.shape[0]):
            size += frames[c, t] * frames[c, t]
            if densities.nulls[k, c] > 0 and (seen.size == 0 or seen[c, t] > 0):
                gap = max(gap, abs(frames[c, t] - densities.means[k, c]))
        if gap > SUPPORT_TOLERANCE * (densities.scales[k, 0] + np.sqrt(size)):
            out[t] = -np.inf


@njit(**KERNEL)
def leave_full_support(frames, k, densities, out):
    """Set the log density of state k to minus infinity off its support."""
    spread = 1.0 if densities.factors[k].any() else 0.0
    for t in range(frames.shape[1]):
        gap, size = 0.0, 0.0
        for r in range(frames.shape[0]):
            size += (frames[r, t] / densities.scales[k, r]) ** 2
            part = 0.0
            for c in range(frames.shape[0]):
                part += densities.nulls[k, r, c] * (
                    frames[c, t] - densities.means[k, c]
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
def chain_densities(frames, seen, densities, startprob, transmat):
    """Log densities under one model, only the flattest supports kept."""
    logs = np.empty((startprob.shape[0], frames.shape[1]))
    model_densities(densities.factors, frames, seen, densities, logs)
    ranks = state_ranks(densities.factors)
    if ranks.min() < ranks.max():
        keep_least_rank(logs, ranks, startprob, transmat)
    return logs


@njit(**KERNEL)
def one_model(densities, i, size):
    """Return the densities of the first `size` states of model i."""
    return Densities(
        densities.means[i, :size],
        densities.factors[i, :size],
        densities.norms[i, :size],
        densities.scales[i, :size],
        densities.nulls[i, :size],
    )


@njit(**KERNEL)
def score_models(frames, seen, densities, startprobs, transmats, sizes, models, out):
    """Fill the log likelihoods of one sequence under some models of a stack."""
    for n in range(models.shape[0]):
        i = models[n]
        size = sizes[i]
        model = one_model(densities, i, size)
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


class PackedSequences(NamedTuple):
    """Sequences of unequal length in one array, each stored channel by channel."""

    frames: np.ndarray
    seen: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


def packed_sequences(sequences):
    """Return sequences in the form that the compiled loop reads.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, n_features)
        The sequences; NaN marks values that were not observed.

    Returns
    -------
    packed : PackedSequences
        All frames, whether they were observed (empty if all were), where each
        sequence starts and how long it is.
    """
    lengths = np.array([len(sequence) for sequence in sequences])
    frames = np.concatenate([sequence.T.ravel() for sequence in sequences])
    starts = np.cumsum([0, *(sequence.size for sequence in sequences)])[:-1]
    seen = np.empty(0)
    missing = np.isnan(frames)
    if missing.any():
        seen = (~missing).astype(float)
        frames[missing] = 0.0
    return PackedSequences(frames, seen, starts, lengths)


@njit(**KERNEL)
def paired_log_likelihoods(
    packed, densities, startprobs, transmats, sizes, sequence, model
):
    """Log likelihood and dimension of support of sequences under models.

    Parameters
    ----------
    packed : PackedSequences
        The sequences.

    densities : Emissions
        The states of the models, from `make_densities`.

    startprobs, transmats, sizes : ndarray
        Initial laws, transition matrices and numbers of states.

    sequence, model : ndarray of int of shape (n_pairs,)
        Which sequence is scored under which model.

    Returns
    -------
    scores : ndarray of shape (n_pairs,)
        Log likelihoods, with respect to volume on the supports of the states.

    ranks : ndarray of int of shape (n_pairs,)
        Dimensions of these supports, summed over frames. Likelihoods of different
        ranks cannot be compared: one model is infinitely less likely.
    """
    scores = np.empty(sequence.size)
    ranks = np.empty(sequence.size, np.int64)
    n_features = densities.means.shape[2]
    for n in range(sequence.size):
        k, m = sequence[n], model[n]
        first, length = packed.starts[k], packed.lengths[k]
        last = first + length * n_features
        frames = packed.frames[first:last].reshape(n_features, length)
        seen = np.empty((0, 0))
        if packed.seen.size > 0:
            seen = packed.seen[first:last].reshape(n_features, length)
        size = sizes[m]
        states = one_model(densities, m, size)
        startprob = startprobs[m, :size]
        transmat = np.ascontiguousarray(transmats[m, :size, :size])
        logs = chain_densities(frames, seen, states, startprob, transmat)
        scores[n] = log_likelihood_of(logs, startprob, transmat)
        ranks[n] = _total_rank(logs, state_ranks(states.factors))
    return scores, ranks


@njit(**KERNEL)
def _total_rank(logs, ranks):
    if ranks.min() == ranks.max():
        return ranks[0] * logs.shape[1]
    total = 0
    for t in range(logs.shape[1]):
        least = ranks.max()
        for k in range(ranks.size):
            if logs[k, t] > -np.inf:
                least = min(least, ranks[k])
        total += least
    return total
