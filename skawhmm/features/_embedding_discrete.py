"""A sequence of symbols or counts described relative to a reference model."""

from collections import namedtuple

import numpy as np

from skawhmm.features._embedding_blocks import (
    flat_block,
    occupancy_block,
    transitions_block,
)
from skawhmm.numerics._forward_backward import forward_backward

DiscreteRecipe = namedtuple(
    "DiscreteRecipe", ["models", "family", "blocks", "relevance", "normalize"]
)
DiscreteRecipe.__doc__ = "References, their family, and what to write down about them."

DiscreteStatistics = namedtuple("DiscreteStatistics", ["occupancies", "moves", "sums"])
DiscreteStatistics.__doc__ = """Expected statistics of sequences under a reference.

Occupancies (n_sequences, 1, n_components) count frames, moves (n_sequences,
n_components, n_components) transitions; sums are the statistics of the family, one
array (n_sequences, n_components, n_values) each.
"""


def discrete_statistics(batch, model, family):
    """Statistics of sequences under a reference.

    Parameters
    ----------
    batch : list of ndarray
        Frames of sequences, in the form that the family's EM reads.

    model : Model
        The reference.

    family : Discrete
        Family of the states.
    """
    n_components = len(model.startprob)
    occupancies = np.empty((len(batch), 1, n_components))
    moves = np.zeros((len(batch), n_components, n_components))
    sums = []
    for i, frames in enumerate(batch):
        logs = family.log_densities(frames, model.states)
        post = np.empty(logs.shape)
        forward_backward(logs, model.startprob, model.transmat, post, moves[i])
        occupancies[i, 0] = post.sum(axis=1)
        sums.append(family.statistics(frames, post, model.states))
    parts = tuple(np.stack(part) for part in zip(*sums, strict=True))
    return DiscreteStatistics(occupancies, moves, parts)


def emissions_block(stats, model, relevance):  # noqa: ARG001
    """Roots of the shares of symbols emitted in states; 0 if none was observed."""
    (counts,) = stats.sums
    totals = counts.sum(axis=(1, 2), keepdims=True)
    return np.sqrt(counts / np.where(totals > 0, totals, 1.0))


def rates_block(stats, model, relevance):
    """Shift of the root of each state's rates, weighted by the root of its share."""
    sums, sizes = stats.sums
    (rates,) = model.states
    adapted = (sums + relevance * rates) / (sizes + relevance)
    shares = occupancy_block(stats, model, relevance)[..., None]
    return shares * 2 * (np.sqrt(adapted) - np.sqrt(rates))


SHARED_BLOCKS = {"occupancy": occupancy_block, "transitions": transitions_block}
SYMBOL_BLOCKS = {**SHARED_BLOCKS, "emissions": emissions_block}
COUNT_BLOCKS = {**SHARED_BLOCKS, "rates": rates_block}


def discrete_rows(sequences, recipe):
    """Vectors of a few sequences.

    Parameters
    ----------
    sequences : list of ndarray
        Frames, in the form that the family's EM reads.

    recipe : DiscreteRecipe
        References and what to write down; `blocks` are functions by name.
    """
    parts = []
    for model in recipe.models:
        stats = discrete_statistics(sequences, model, recipe.family)
        parts += [
            flat_block(name, block(stats, model, recipe.relevance), recipe)
            for name, block in recipe.blocks.items()
        ]
    return np.concatenate(parts, axis=1)
