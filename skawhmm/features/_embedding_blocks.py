"""A sequence described relative to a reference model: statistics, then features.

Everything is in the coordinates of the reference, on the channels that vary in its
training data. Statistics have a leading axis over the sequences of a batch; those of
one sequence depend on it alone.
"""

from collections import namedtuple

import numpy as np
from numba import njit

from skawhmm.emissions._gaussian_densities import add_diag_moments, diag_log_density
from skawhmm.numerics._forward_backward import forward_backward
from skawhmm.utils._compile import KERNEL

Recipe = namedtuple(
    "Recipe", ["models", "coordinates", "blocks", "relevance", "normalize"]
)
Recipe.__doc__ = "References, their coordinates, and what to write down about them."

# Parts of equal duration whose statistics are kept apart.
N_PARTS = 3

Statistics = namedtuple(
    "Statistics", ["occupancies", "counts", "firsts", "seconds", "moves"]
)
Statistics.__doc__ = """Expected statistics of a batch of sequences under a reference.

Occupancies (n_sequences, N_PARTS, n_components) count frames; counts, firsts and
seconds (n_sequences, N_PARTS, n_components, n_features) are the observed values and
their moments about the reference means; moves (n_sequences, n_components, n_components)
count transitions.
"""


def empty_statistics(n_sequences, n_components, n_features):
    """Statistics of no frames."""
    moments = (n_sequences, N_PARTS, n_components, n_features)
    return Statistics(
        np.zeros(moments[:3]),
        np.zeros(moments),
        np.zeros(moments),
        np.zeros(moments),
        np.zeros((n_sequences, n_components, n_components)),
    )


@njit(**KERNEL)
def add_part(frames, seen, post, part, means, stats):
    """Add the moments of one part of a sequence.

    The frame in which a part ends belongs to it by the share of its duration, so that
    parts have equal weight at any length, down to one frame.
    """
    n_timesteps = post.shape[1]
    begin, end = part * n_timesteps, (part + 1) * n_timesteps
    first, last = begin // N_PARTS, (end + N_PARTS - 1) // N_PARTS
    weights = post[:, first:last].copy()
    for t in range(first, last):
        if t == first or t == last - 1:
            overlap = min(N_PARTS * (t + 1), end) - max(N_PARTS * t, begin)
            weights[:, t - first] *= overlap / N_PARTS
    for k in range(weights.shape[0]):
        stats.occupancies[part, k] += weights[k].sum()
    add_diag_moments(
        frames[:, first:last].copy(),
        seen[:, first:last].copy(),
        weights,
        means,
        stats.counts[part],
        stats.firsts[part],
        stats.seconds[part],
    )


@njit(**KERNEL)
def add_statistics(frames, seen, model, stats):
    """Add the statistics of one sequence: one forward-backward pass.

    Parameters
    ----------
    frames, seen : ndarray of shape (n_features, n_timesteps)
        The sequence and its mask (empty if all is observed).

    model : Model
        The reference.

    stats : Statistics
        Receives the sums; arrays without the axis over sequences.
    """
    logs = np.empty((model.startprob.shape[0], frames.shape[1]))
    post = np.empty(logs.shape)
    diag_log_density(frames, seen, model.states[0], model.states[1], logs)
    forward_backward(logs, model.startprob, model.transmat, post, stats.moves)
    for part in range(N_PARTS):
        add_part(frames, seen, post, part, model.states[0], stats)


def relative_statistics(batch, model):
    """Statistics of sequences under a reference.

    Parameters
    ----------
    batch : list of (frames, seen)
        Sequences and their masks, channels first.

    model : Model
        The reference.
    """
    stats = empty_statistics(len(batch), *model.states[0].shape)
    for i, (frames, seen) in enumerate(batch):
        add_statistics(frames, seen, model, Statistics(*(x[i] for x in stats)))
    return stats


def adapted_gaps(counts, firsts, model, relevance):
    """Means adapted to the frames less those of the reference, in its deviations."""
    return firsts / (counts + relevance) / np.sqrt(model.states[1])


def state_shares(stats):
    """Share of the sequence's frames in each state, of shape (n, n_components)."""
    occupancies = stats.occupancies.sum(axis=1)
    return occupancies / occupancies.sum(axis=1, keepdims=True)


def means_block(stats, model, relevance):
    """Shift of each state's mean, weighted by the root of the state's share."""
    gaps = adapted_gaps(stats.counts.sum(1), stats.firsts.sum(1), model, relevance)
    return np.sqrt(state_shares(stats))[..., None] * gaps


def scales_block(stats, model, relevance):
    """Logarithm of the ratio of each state's deviation to the reference's."""
    totals = stats.counts.sum(axis=1) + relevance
    steps = stats.firsts.sum(axis=1) / totals
    covars = (
        stats.seconds.sum(axis=1) + relevance * model.states[1]
    ) / totals - steps**2
    # The prior's part is exact; the rest is a variance that rounding may push below 0.
    covars = np.maximum(covars, relevance * model.states[1] / totals)
    logs = 0.5 * np.log(covars / model.states[1])
    return np.sqrt(state_shares(stats))[..., None] * logs


def thirds_block(stats, model, relevance):
    """Shift of each state's mean in each third of the sequence."""
    totals = stats.occupancies.sum(axis=(1, 2))[:, None, None]
    gaps = adapted_gaps(stats.counts, stats.firsts, model, relevance)
    return np.sqrt(stats.occupancies / totals)[..., None] * gaps


def occupancy_block(stats, model, relevance):  # noqa: ARG001
    """Roots of the states' shares."""
    return np.sqrt(state_shares(stats))


def transitions_block(stats, model, relevance):  # noqa: ARG001
    """Roots of the expected transition frequencies; 0 if there is one frame."""
    totals = stats.moves.sum(axis=(1, 2), keepdims=True)
    return np.sqrt(stats.moves / np.where(totals > 0, totals, 1.0))


BLOCKS = {
    "means": means_block,
    "scales": scales_block,
    "thirds": thirds_block,
    "occupancy": occupancy_block,
    "transitions": transitions_block,
}
# Blocks whose last axis is that of the channels.
CHANNEL_BLOCKS = ("means", "scales", "thirds")


@njit(**KERNEL)
def normalize_rows(rows):
    """Take the signed square root of the entries, then divide rows by their length.

    The length is then the root of the sum of absolute values. Rows of 0 stay.
    """
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += abs(rows[i, j])
        for j in range(rows.shape[1]):
            if total > 0:
                rows[i, j] = np.sign(rows[i, j]) * np.sqrt(abs(rows[i, j]) / total)


def block_features(name, stats, model, recipe):
    """Features of one block, flat, with 0 for channels that the references lack.

    Parameters
    ----------
    name : str
        One of `BLOCKS`.

    stats, model : Statistics, Model
        What `relative_statistics` gave and took.

    recipe : Recipe
        The rest.
    """
    block = BLOCKS[name](stats, model, recipe.relevance)
    active = recipe.coordinates.active
    if name in CHANNEL_BLOCKS and not active.all():
        wide = np.zeros((*block.shape[:-1], len(active)))
        wide[..., active] = block
        block = wide
    flat = np.ascontiguousarray(block.reshape(len(block), -1))
    if recipe.normalize:
        normalize_rows(flat)
    return flat


def embedded_rows(sequences, recipe):
    """Vectors of a few sequences.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, n_features)
        Checked sequences.

    recipe : Recipe
        References and what to write down.
    """
    batch = [recipe.coordinates.standardized(x.T.copy()) for x in sequences]
    parts = []
    for model in recipe.models:
        stats = relative_statistics(batch, model)
        parts += [block_features(name, stats, model, recipe) for name in recipe.blocks]
    vectors = np.concatenate(parts, axis=1)
    return vectors / np.sqrt(len(parts)) if recipe.normalize else vectors


def block_names(name, n_components, channels):
    """Names of a block's features, in their order."""
    states = [f"s{k}" for k in range(n_components)]
    axes = {
        "thirds": [[f"part{part}" for part in range(N_PARTS)], states, channels],
        "occupancy": [states],
        "transitions": [states, states],
    }.get(name, [states, channels])
    labels = [name]
    for axis in axes:
        labels = [f"{label}_{entry}" for label in labels for entry in axis]
    return labels
