"""References of an embedding, and statistics of sequences relative to them.

References are models of a sample of the training frames. One forward-backward pass
gives the statistics of a sequence under a reference; blocks of features are made of
these statistics.
Gaussian references live in standardized coordinates, on the channels that vary in the
training data. Statistics have a leading axis over the sequences of a batch; those of
one sequence depend on no other.
"""

import math
import re
from collections.abc import Callable
from itertools import cycle, pairwise
from typing import NamedTuple

import numpy as np

from skawhmm.emissions._gaussian import Gaussian
from skawhmm.emissions._model import Data, Model
from skawhmm.features._embedding_kernels import (
    add_statistics,
    fill_normalized,
    weighted_log_scales,
    weighted_shifts,
)
from skawhmm.fitting._coordinates import Coordinates, pooled_coordinates
from skawhmm.fitting._em import (
    FitOptions,
    Steps,
    model_at,
    random_starts,
    run_em,
    stacked,
)
from skawhmm.fitting._gaussian_fit import start_models
from skawhmm.fitting._pooled import BlockSteps, concatenated, pool_blocks
from skawhmm.fitting._starts import distinct_count
from skawhmm.numerics._forward_backward import forward_backward
from skawhmm.utils._parallel import writable
from skawhmm.utils._seeds import item_rng

# References are learned from at most this many frames, which bounds the time of `fit`
# (too few to use several workers). If there are more, pieces of this length are drawn.
MAX_FRAMES = 20_000
PIECE = 100
# Start values are clusters of at most this many frames.
START_FRAMES = 4_000
# EM stops if a step gains at most this much log likelihood per frame: references only
# need to divide the frames sensibly.
TOLERANCE = 1e-5
# Least variance of a Gaussian state, relative to the variance of the channel. It bounds
# how much a single frame can move the features of a state.
LEAST_VARIANCE = 1e-2
# Transitions from each state that are added to the expected ones, equally to all
# states: every transition stays possible, so that no new sequence has likelihood 0.
PSEUDO_COUNT = 1.0
# Number of parts of equal duration with separate statistics.
N_PARTS = 3


class Reference(NamedTuple):
    """A model in the coordinates of the embedding, its weights, and its EM steps."""

    model: Model
    weights: np.ndarray
    n_iter: int


def sampled_pieces(sequences, rng, n_frames=None):
    """Return all sequences, or randomly drawn pieces that do not overlap.

    Parameters
    ----------
    sequences : list of ndarray
        Training sequences; their first axis is time.

    rng : RandomState
        Source of the draws; not used if all frames are taken.

    n_frames : int, default=None
        Number of frames; by default `MAX_FRAMES`.

    Returns
    -------
    pieces : list of ndarray
        Views of the sequences, in their order.
    """
    n_frames = MAX_FRAMES if n_frames is None else n_frames
    # Items of a plain list are found faster.
    sequences = [*sequences]
    lengths = np.array([len(x) for x in sequences])
    if lengths.sum() <= n_frames:
        return sequences
    counts = -(-lengths // PIECE)
    owners = np.repeat(np.arange(len(sequences)), counts)
    firsts = PIECE * (
        np.arange(len(owners)) - np.repeat(counts.cumsum() - counts, counts)
    )
    sizes = np.minimum(lengths[owners] - firsts, PIECE)
    order = rng.permutation(len(owners))
    ends = sizes[order].cumsum()
    last = np.searchsorted(ends, n_frames)
    sizes[order[last]] -= ends[last] - n_frames
    return [
        sequences[owners[n]][firsts[n] : firsts[n] + sizes[n]]
        for n in np.sort(order[: last + 1])
    ]


class ReferenceMixin:
    """EM steps of a reference: of a chain, or of a mixture if it is not `is_chain`.

    All rows of the transition matrix of a mixture are equal.
    """

    def __init__(self, *args, is_chain, **kwargs):
        super().__init__(*args, **kwargs)
        self.is_chain = is_chain

    def maximization(self, expected, rows, model, active):
        """Change the parameters of the model, in place, by an M step."""
        super().maximization(expected, rows, model, active)  # type: ignore[misc]
        if not self.is_chain:
            counts = expected.counts + PSEUDO_COUNT
            weights = counts / counts.sum(axis=1, keepdims=True)
            model.startprob[:] = weights
            model.transmat[:] = weights[:, None]


class GaussianSteps(ReferenceMixin, BlockSteps):
    """EM steps of a reference with Gaussian states."""


class DiscreteSteps(ReferenceMixin, Steps):
    """EM steps of a reference whose states emit symbols or counts."""


def learned_reference(steps, start, n_frames=None):
    """Return the reference that EM finds, with the weights of the last M step."""
    found = run_em(steps, start, is_scored=False)
    n_frames = found.counts[0].sum() if n_frames is None else n_frames
    weights = found.counts[0] / n_frames
    return Reference(model_at(found.model, 0), weights, int(found.n_iter[0]))


def fit_gaussian_references(pieces, sizes, *, is_chain, max_iter, seed, verbose=0):
    """Fit one diagonal model of each size to all pieces.

    Parameters
    ----------
    pieces : list of ndarray of shape (n_timesteps, n_features)
        Training sequences, NaN where not observed.

    sizes : list of int
        Numbers of states.

    is_chain : bool
        Whether references are chains, not mixtures.

    max_iter : int
        Largest number of EM steps.

    seed : int
        Seed of the start values.

    verbose : int, default=0
        Whether to show progress bars.

    Returns
    -------
    references : list of Reference
        One per size, in their order. A reference has fewer states if there are fewer
        distinct frames.

    coordinates : Coordinates
        Coordinates of all references.
    """
    coordinates = pooled_coordinates(np.concatenate(pieces).T.copy(), "diag")
    if not coordinates.active.any():
        return [constant_reference()] * len(sizes), coordinates
    blocks = pool_blocks(pieces, coordinates)
    options = FitOptions(
        template=Gaussian(reg_covar=LEAST_VARIANCE),
        max_iter=max_iter,
        tol=TOLERANCE,
        seed=seed,
    )
    some = sampled_pieces(pieces, item_rng(seed, 0), START_FRAMES)
    pool = concatenated(pool_blocks(some, coordinates), coordinates)
    starts = [gaussian_start(pool, size, options) for size in sizes]
    del pool
    steps = GaussianSteps(
        options.template,
        blocks,
        options.rule,
        pseudo_count=PSEUDO_COUNT,
        n_jobs=1,
        verbose=verbose,
        is_chain=is_chain,
    )
    n_frames = steps.n_frames[0]
    references = [learned_reference(steps, start, n_frames) for start in starts]
    return references, coordinates


def constant_reference():
    """Return a reference without channels, for frames that are all equal."""
    nothing = np.zeros((1, 0))
    model = Model(np.ones(1), np.ones((1, 1)), (nothing, nothing))
    return Reference(model, np.ones(1), 0)


def gaussian_start(pool, n_components, options):
    """Return start values by k-means, a stack of one model."""
    points = pool.points
    if len(points) == 0:
        nothing = np.zeros((1, 1, 0))
        return Model(np.ones((1, 1)), np.ones((1, 1, 1)), (nothing, nothing))
    n_states = distinct_count(points, 0, points.shape[1], n_components)
    return start_models(points, pool.data, n_states, options, n_candidates=1)[0]


def fit_discrete_references(pieces, sizes, family, *, is_chain, max_iter, seed):
    """Fit one model of each size to all pieces, from random start values.

    The prior of a state is the distribution of all frames, with a weight of one frame.

    Parameters
    ----------
    pieces : list of ndarray
        Frames of training sequences, in the form that the family's EM reads.

    sizes : list of int
        Numbers of states.

    family : Discrete
        Template of the states.

    is_chain, max_iter, seed : object
        As for `fit_gaussian_references`.

    Returns
    -------
    references : list of Reference
        One per size; one state is enough if all frames are equal.
    """
    offsets = np.cumsum([0, *(len(piece) for piece in pieces)])
    data = Data(np.concatenate(pieces), None, offsets, np.array([0, len(pieces)]))
    options = FitOptions(
        max_iter=max_iter,
        tol=TOLERANCE,
        relevance=PSEUDO_COUNT,
        seed=seed,
        template=family,
    )
    references = []
    for n, size in enumerate(sizes):
        n_states = size if family.varied(data.frames) else 1
        rng = item_rng(seed, n)
        start = random_starts(data, n_states, options, [rng])
        prior = common_model(family, data.frames, n_states)
        steps = DiscreteSteps(family, data, options.rule, prior, is_chain=is_chain)
        references.append(learned_reference(steps, start))
    return references


def common_model(family, frames, n_states):
    """Return a stack of one model whose states are identical and equally probable."""
    equal = np.full(n_states, 1 / n_states)
    states = tuple(
        np.repeat(part, n_states, axis=0) for part in family.common_states(frames)
    )
    return stacked([Model(equal, np.tile(equal, (n_states, 1)), states)])


def raw_model(reference: Reference, coordinates: Coordinates):
    """Return the model of a reference over all channels, in raw units."""
    states = coordinates.raw_states(reference.model.states)
    return reference.model._replace(states=states)


def writable_model(model):
    """Return a model whose arrays are writable, for the kernels."""
    startprob, transmat, *states = writable((*model[:2], *model.states))
    return Model(startprob, transmat, tuple(states))


def standardized_batch(sequences, coordinates):
    """Return sequences and their masks in the coordinates, channels first."""
    ends = np.cumsum([0, *(len(x) for x in sequences)]).tolist()
    frames, seen = coordinates.standardized(np.concatenate(sequences).T.copy())
    nothing = seen[:0, :0]
    batch = []
    for first, last in pairwise(ends):
        # A mask does not depend on other sequences: without missing values it is empty.
        own = seen[:, first:last] if seen.size > 0 else nothing
        mask = nothing if own.all() else own.copy()
        batch.append((frames[:, first:last].copy(), mask))
    return batch


class GaussianStatistics(NamedTuple):
    """Expected statistics of a batch of sequences under a Gaussian reference.

    Occupancies (n_sequences, N_PARTS, n_components) count frames; counts, firsts and
    seconds (n_sequences, N_PARTS, n_components, n_features) are the numbers of observed
    values and their moments about the reference means; moves (n_sequences,
    n_components, n_components) count transitions, or are None if they are not needed.
    """

    occupancies: np.ndarray
    counts: np.ndarray
    firsts: np.ndarray
    seconds: np.ndarray
    moves: np.ndarray | None


def gaussian_statistics(batch, owners, model, *, with_moves=True):
    """Return the statistics of a batch from `standardized_batch`, one row per owner."""
    n_components, n_features = model.states[0].shape
    n = owners[-1] + 1
    counts, firsts, seconds = np.zeros((3, n, N_PARTS, n_components, n_features))
    stats = GaussianStatistics(
        np.zeros((n, N_PARTS, n_components)),
        counts,
        firsts,
        seconds,
        np.zeros((n, n_components, n_components)) if with_moves else None,
    )
    add_statistics(batch, owners, model, stats)
    return stats


class DiscreteStatistics(NamedTuple):
    """Expected statistics of sequences of symbols or counts under a reference.

    Occupancies (n_sequences, 1, n_components) count frames, moves (n_sequences,
    n_components, n_components) transitions; sums are the statistics of the family, one
    array (n_sequences, n_components, n_values) each.
    """

    occupancies: np.ndarray
    moves: np.ndarray
    sums: tuple[np.ndarray, ...]


def discrete_statistics(batch, owners, model, family):
    """Return the statistics of frames in the form that the family's EM reads."""
    n_components, n = len(model.startprob), owners[-1] + 1
    occupancies = np.zeros((n, 1, n_components))
    moves = np.zeros((n, n_components, n_components))
    sums = []
    for i, frames in zip(owners, batch, strict=True):
        logs = family.log_densities(frames, model.states)
        post = np.empty(logs.shape)
        forward_backward(logs, model.startprob, model.transmat, post, moves[i])
        occupancies[i, 0] += post.sum(axis=1)
        sums.append(family.statistics(frames, post, model.states))
    firsts = np.searchsorted(owners, np.arange(n))
    parts = tuple(np.add.reduceat(part, firsts) for part in zip(*sums, strict=True))
    return DiscreteStatistics(occupancies, moves, parts)


def means_block(stats, model, relevance):
    """Shift of each state's mean, times the root of the state's weight."""
    return weighted_shifts(stats, model.states[1], relevance, whole=True)


def scales_block(stats, model, relevance):
    """Log ratio of each state's deviation to the reference's, likewise weighted."""
    return weighted_log_scales(stats, model.states[1], relevance)


def thirds_block(stats, model, relevance):
    """Shift of each state's mean in each third of the sequence, likewise weighted."""
    return weighted_shifts(stats, model.states[1], relevance, whole=False)


def occupancy_block(stats, model, relevance):  # noqa: ARG001
    """Roots of the fractions of frames spent in each state."""
    occupancies = stats.occupancies.sum(axis=1)
    return np.sqrt(occupancies / occupancies.sum(axis=1, keepdims=True))


def transitions_block(stats, model, relevance):  # noqa: ARG001
    """Roots of the expected transition frequencies; 0 if there is one frame."""
    totals = stats.moves.sum(axis=(1, 2), keepdims=True)
    return np.sqrt(stats.moves / np.where(totals > 0, totals, 1.0))


def emissions_block(stats, model, relevance):  # noqa: ARG001
    """Roots of the joint frequencies of states and symbols; 0 if none was observed."""
    (counts,) = stats.sums
    totals = counts.sum(axis=(1, 2), keepdims=True)
    return np.sqrt(counts / np.where(totals > 0, totals, 1.0))


def rates_block(stats, model, relevance):
    """Shift of the root of each state's rates, times the root of its weight."""
    sums, sizes = stats.sums
    (rates,) = model.states
    adapted = (sums + relevance * rates) / (sizes + relevance)
    roots = occupancy_block(stats, model, relevance)[..., None]
    return roots * 2 * (np.sqrt(adapted) - np.sqrt(rates))


CHAIN_BLOCKS = {"occupancy": occupancy_block, "transitions": transitions_block}
GAUSSIAN_BLOCKS = {
    "means": means_block,
    "scales": scales_block,
    "thirds": thirds_block,
    **CHAIN_BLOCKS,
}
SYMBOL_BLOCKS = {**CHAIN_BLOCKS, "emissions": emissions_block}
COUNT_BLOCKS = {**CHAIN_BLOCKS, "rates": rates_block}
# Gaussian blocks whose last axis is over channels.
CHANNEL_BLOCKS = ("means", "scales", "thirds")
# Blocks that are square roots already.
ROOT_BLOCKS = ("occupancy", "transitions", "emissions")


class Recipe(NamedTuple):
    """How sequences become vectors: references, and blocks of features by name.

    `prepare` turns recordings into a batch. `statistics` takes that batch, the unit of
    each recording, and a reference. `active` masks the channels of Gaussian references.
    """

    models: list[Model]
    prepare: Callable
    statistics: Callable
    active: np.ndarray | None
    blocks: dict[str, Callable]
    relevance: float
    normalize: bool


def embedded_rows(recordings, owners, recipe, dtype=np.float64):
    """Return the vectors of a few units, given the unit of each recording.

    If the recipe says so, blocks that are not square roots are replaced by their signed
    square roots, and all blocks get the same length, so that whole rows have length 1.
    """
    batch, parts, kept = recipe.prepare(recordings), [], []
    for model in recipe.models:
        stats = recipe.statistics(batch, owners, model)
        for name, block in recipe.blocks.items():
            features = block(stats, model, recipe.relevance)
            parts.append(np.ascontiguousarray(features.reshape(len(features), -1)))
            kept.append(known_columns(name, features.shape, recipe.active))
    if recipe.normalize:
        rows = normalized_parts(parts, cycle(recipe.blocks), dtype)
    else:
        rows = np.concatenate(parts, axis=1, dtype=dtype)
    # Zeros are filled in last, so that they do not change the rounding of sums.
    known = np.concatenate(kept)
    if known.all():
        return rows
    wide = np.zeros((len(rows), len(known)), dtype)
    wide[:, known] = rows
    return wide


def normalized_parts(parts, names, dtype):
    """Return blocks next to each other, each with rows of the same length."""
    column = 0
    rows = np.empty((len(parts[0]), sum(part.shape[1] for part in parts)), dtype)
    for part, name in zip(parts, names, strict=False):
        fill_normalized(part, name in ROOT_BLOCKS, len(parts) ** -0.5, rows, column)
        column += part.shape[1]
    return rows


def known_columns(name, shape, active):
    """Return which columns of a flat block belong to channels of the references."""
    if name in CHANNEL_BLOCKS:
        return np.tile(active, math.prod(shape[1:-1]))
    return np.ones(math.prod(shape[1:]), bool)


def block_names(name, n_components, channels):
    """Return the names of a block's features, in their order."""
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
    # A channel name may contain any character.
    re.DOTALL,
)


def name_fields(name):
    """Return the parts of the name of an embedding's feature."""
    match = FEATURE_NAME.fullmatch(name)
    if match is None:
        return {}
    fields = {key: value for key, value in match.groupdict().items() if value}
    if fields["block"] == "transitions":
        fields.pop("channel", None)
    fields["reference"] = f"r{fields['reference']}"
    fields["state"] = f"s{fields['state']}"
    return fields
