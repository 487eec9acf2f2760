"""A sequence described relative to a reference model: statistics, then features.

Everything is in the coordinates of the reference, on the channels that vary in its
training data. Statistics have a leading axis over the sequences of a batch; those of
one sequence depend on it alone.
"""

from collections import namedtuple

import numpy as np

from skawhmm.features._embedding_kernels import add_statistics, normalize_rows

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
