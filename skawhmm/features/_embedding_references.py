"""Reference models: hidden Markov models of a sample of the training frames."""

from dataclasses import dataclass

import numpy as np

from skawhmm.features._embedding_blocks import writable
from skawhmm.fitting._coordinates import Coordinates, pooled_coordinates
from skawhmm.fitting._each import FitOptions, start_labels, started
from skawhmm.fitting._em import Model, empty_stats, maximization
from skawhmm.fitting._pooled import block_expectation, joined, pool_blocks
from skawhmm.fitting._starts import distinct_count
from skawhmm.utils._parallel import Shared, completed

# Longer sequences are sampled in pieces of this many frames.
PIECE = 100
# Transitions added to the expected ones of each state, spread over all: every move
# stays possible, and a sequence that makes a new one is no surprise beyond measure.
PSEUDO_COUNT = 1.0


@dataclass(frozen=True)
class Reference:
    """A reference in its coordinates, and how the fit went."""

    model: Model
    weights: np.ndarray
    log_likelihood: float
    n_iter: int


@dataclass(frozen=True)
class ReferenceOptions:
    """What references have in common; the words are those of `HMMEmbedding`."""

    is_chain: bool
    max_iter: int
    tol: float
    reg_covar: float
    seed: int


def sampled_pieces(sequences, n_frames, rng):
    """At most `n_frames` frames of the sequences, in pieces drawn without repetition.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, n_features)
        Training sequences.

    n_frames : int
        Number of frames wanted.

    rng : RandomState
        Source of the draw; not used if all frames are taken.

    Returns
    -------
    pieces : list of ndarray
        Views of the sequences, in their order.
    """
    if sum(len(x) for x in sequences) <= n_frames:
        return sequences
    places = [(i, t) for i, x in enumerate(sequences) for t in range(0, len(x), PIECE)]
    chosen, missing = [], n_frames
    for index in rng.permutation(len(places)):
        i, first = places[index]
        piece = sequences[i][first : first + min(PIECE, missing)]
        chosen.append((index, piece))
        missing -= len(piece)
        if missing == 0:
            break
    return [piece for _, piece in sorted(chosen, key=lambda pair: pair[0])]


def fit_references(pieces, sizes, options, *, n_jobs=None, verbose=False):
    """Fit one diagonal model of each size to all pieces.

    Parameters
    ----------
    pieces : list of ndarray of shape (n_timesteps, n_features)
        Training sequences, NaN where not observed.

    sizes : list of int
        Numbers of states.

    options : ReferenceOptions
        How.

    n_jobs, verbose : int or None, bool
        Jobs for the E steps; whether to show progress.

    Returns
    -------
    references : list of Reference
        In the order of the sizes; with fewer states than asked for if there are fewer
        distinct frames.

    coordinates : Coordinates
        Those of all references.
    """
    coordinates = pooled_coordinates(np.concatenate(pieces).T.copy(), "diag")
    blocks = pool_blocks(pieces, coordinates)
    fit_options = FitOptions(reg_covar=options.reg_covar, seed=options.seed)
    pool = joined(blocks)
    starts = [reference_start(pool, size, fit_options) for size in sizes]
    del pool
    references = []
    for start in starts:
        climb = reference_climb(
            blocks, start, fit_options.rule(), options, n_jobs, verbose
        )
        references.append(climb)
    return references, coordinates


def reference_start(pool, n_components, options):
    """Start values by k-means."""
    z, frames, seen, offsets = pool
    if len(z) == 0:
        return Model(np.ones(1), np.ones((1, 1)), np.zeros((1, 0)), np.zeros((1, 0)))
    n_states, bounds = distinct_count(z, 0, z.shape[1], n_components), offsets[[0, -1]]
    labels, _ = start_labels(z, offsets, bounds, n_states, 1, options)
    rule = options.rule()._replace(max_iter=-1)
    climbs = started(frames, seen, offsets, bounds, labels, n_states, options, rule)
    return Model(*(part[0] for part in climbs.model))


def reference_climb(blocks, model, rule, options, n_jobs, verbose):
    """EM from start values; sums over blocks are taken in their order."""
    n_frames = sum(block[1].shape[1] for block in blocks)
    previous, n_iter = -np.inf, 0
    while True:
        shared = Shared((blocks, model), sum(block[1].nbytes for block in blocks))
        tasks = [(b,) for b in range(len(blocks))]
        label = f"EM step of {len(model.startprob)} states"
        parts = list(
            completed(
                expected_part,
                shared,
                tasks,
                n_jobs=n_jobs,
                verbose=verbose,
                label=label,
            )
        )
        log_likelihood = float(sum(part[0] for part in parts))
        weights = sum(part[2] for part in parts) / n_frames
        converged = log_likelihood - previous <= options.tol * n_frames
        if converged or n_iter == options.max_iter:
            return Reference(model, weights, log_likelihood, n_iter)
        stats = summed_stats(model, parts)
        model = maximization(model.covars, stats, model, model, rule)
        if not options.is_chain:
            model = without_memory(model, weights * n_frames + PSEUDO_COUNT)
        previous, n_iter = log_likelihood, n_iter + 1


def without_memory(model, counts):
    """Return the model as a mixture: every row of the chain has the same weights."""
    weights = counts / counts.sum()
    rows = np.repeat(weights[None], len(weights), axis=0)
    return model._replace(startprob=weights, transmat=rows)


def expected_part(shared, b):
    """E step on one block."""
    blocks, model = shared.value
    return block_expectation(writable(blocks[b]), Model(*writable(model)))


def summed_stats(model, parts):
    """Sum of the blocks' statistics, with pseudo-counts of starts and transitions."""
    stats = empty_stats(model)
    stats.start[:] = PSEUDO_COUNT / len(stats.start)
    stats.moves[:] = PSEUDO_COUNT / len(stats.start)
    for _, part, _ in parts:
        for total, term in zip(stats, part, strict=True):
            np.add(total, term, out=total)
    return stats


def raw_model(reference: Reference, coordinates: Coordinates):
    """Return the reference's model over all channels, in raw units."""
    means, covars = coordinates.raw_emissions(reference.model)
    return reference.model._replace(means=means, covars=covars)
