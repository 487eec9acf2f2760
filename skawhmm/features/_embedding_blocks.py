"""A sequence described relative to a reference model: statistics, then features.

Everything is in the coordinates of the reference, on the channels that vary in its
training data. Statistics have a leading axis over the sequences of a batch; those of
one sequence depend on it alone.
"""

import re
from collections import namedtuple

import numpy as np

from skawhmm.features._embedding_kernels import (
    add_statistics,
    normalize_rows,
    weighted_log_scales,
    weighted_shifts,
)

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


def state_shares(stats):
    """Share of the sequence's frames in each state, of shape (n, n_components)."""
    occupancies = stats.occupancies.sum(axis=1)
    return occupancies / occupancies.sum(axis=1, keepdims=True)


def means_block(stats, model, relevance):
    """Shift of each state's mean, weighted by the root of the state's share."""
    return weighted_shifts(stats, model.states[1], relevance, whole=True)


def scales_block(stats, model, relevance):
    """Logarithm of the ratio of each state's deviation to the reference's."""
    return weighted_log_scales(stats, model.states[1], relevance)


def thirds_block(stats, model, relevance):
    """Shift of each state's mean in each third of the sequence."""
    return weighted_shifts(stats, model.states[1], relevance, whole=False)


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
DEFAULT_BLOCKS = ("means", "scales", "thirds")
# Blocks whose last axis is that of the channels.
CHANNEL_BLOCKS = ("means", "scales", "thirds")
# Blocks that are square roots already.
ROOT_BLOCKS = ("occupancy", "transitions", "emissions")


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
    return flat_block(name, block, recipe)


def flat_block(name, block, recipe):
    """Return a block with one row per sequence, normalized if that is wanted.

    All blocks of all references then have the same length, and whole rows length 1. The
    signed square root of blocks that are no roots is taken before.

    Parameters
    ----------
    name : str
        Name of the block.

    block : ndarray of shape (n_sequences, ...)
        The features.

    recipe : Recipe or DiscreteRecipe
        Says whether rows are normalized, and how many blocks there are.
    """
    flat = np.ascontiguousarray(block.reshape(len(block), -1))
    if recipe.normalize:
        n_blocks = len(recipe.models) * len(recipe.blocks)
        normalize_rows(flat, name in ROOT_BLOCKS, n_blocks**-0.5)
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
    return np.concatenate(parts, axis=1)


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


FEATURE_NAME = re.compile(
    r"r(?P<reference>\d+)_(?P<block>[a-z]+)(?:_part\d+)?_s(?P<state>\d+)"
    r"(?:_(?P<channel>.*))?",
    # Channels may have any name.
    re.DOTALL,
)


def name_fields(name):
    """Return what the name of a feature of an embedding says about it.

    Parameters
    ----------
    name : str
        Any name, such as "r0_means_s1_x2".

    Returns
    -------
    fields : dict of str
        Some of "reference", "block", "state" and "channel"; none of them if the name
        is not that of a feature of an embedding. A transition belongs to the state in
        which it begins, and has no channel.
    """
    match = FEATURE_NAME.fullmatch(name)
    if match is None:
        return {}
    fields = {key: value for key, value in match.groupdict().items() if value}
    if fields["block"] == "transitions":
        fields.pop("channel", None)
    fields["reference"] = f"r{fields['reference']}"
    fields["state"] = f"s{fields['state']}"
    return fields
