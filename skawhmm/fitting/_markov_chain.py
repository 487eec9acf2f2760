"""Visible Markov chains: one state per symbol, counted, without EM.

All laws of a chain (starts, rows of transitions, symbols) are frequencies, to which a
prior law may be added as if it had been seen so many times.
"""

from typing import NamedTuple

import numpy as np

from skawhmm.emissions._base import Model
from skawhmm.fitting._em_loop import Fit
from skawhmm.models._counts import Counts


class Chain(NamedTuple):
    """Laws of one chain, or of several with a leading axis."""

    startprob: np.ndarray
    transmat: np.ndarray
    weights: np.ndarray


def counts_of(sequences, n_symbols):
    """Return how often symbols start, follow each other and occur.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, 1)
        Codes of symbols.

    n_symbols : int
        Size of the alphabet.

    Returns
    -------
    counts : Chain
        One row per sequence.
    """
    lengths = np.array([len(x) for x in sequences])
    codes = np.concatenate(sequences)[:, 0].astype(np.int64)
    owner = np.repeat(np.arange(len(sequences)), lengths)
    first = np.cumsum(lengths) - lengths
    # The last symbol of a sequence is not followed by the first one of the next.
    leaves = np.ones(len(codes), bool)
    leaves[first + lengths - 1] = False
    left = np.flatnonzero(leaves)
    shape = len(sequences), n_symbols, n_symbols
    places = owner[left], codes[left], codes[left + 1]
    return Chain(
        number_of((np.arange(len(sequences)), codes[first]), shape[:2]),
        number_of(places, shape),
        number_of((owner, codes), shape[:2]),
    )


def number_of(places, shape):
    """Return how often each place of an array occurs."""
    flat = np.ravel_multi_index(places, shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).astype(float).reshape(shape)


def smoothed(counts, law, relevance):
    """Return frequencies, a law having been seen `relevance` times before.

    Parameters
    ----------
    counts : ndarray of shape (..., n_symbols)
        Counts.

    law : ndarray that broadcasts with `counts`
        The law. It stands alone where nothing was counted.

    relevance : float
        Weight of the law, in observations.

    Returns
    -------
    shares : ndarray of shape (..., n_symbols)
        Frequencies.
    """
    totals = counts.sum(axis=-1, keepdims=True)
    empty = totals + relevance == 0
    shares = (counts + relevance * law) / np.where(empty, 1.0, totals + relevance)
    return np.where(empty, law, shares)


def chains_of(counts, prior, relevance):
    """Return the chains of counts under a prior; None for no prior."""
    if prior is None:
        weights = smoothed(counts.weights, 0.0, 0.0)
        # A symbol that is followed by nothing goes on as the sequence does on average.
        transmat = smoothed(counts.transmat, weights[..., None, :], 0.0)
        return Chain(counts.startprob, transmat, weights)
    return Chain(*map(smoothed, counts, prior, (relevance,) * 3))


def uniform_chain(n_symbols):
    """Return the chain in which all symbols follow each other equally often."""
    law = np.full(n_symbols, 1 / n_symbols)
    return Chain(law, np.tile(law, (n_symbols, 1)), law)


def pooled_chain(sequences, n_symbols, relevance):
    """Return the chain of all sequences, in which everything is possible.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, 1)
        Codes of symbols, all observed.

    n_symbols : int
        Size of the alphabet.

    relevance : float
        Weight of the law of symbols in starts and rows, and of equal shares in the law
        of symbols.

    Returns
    -------
    chain : Chain
        The prior that `visible_fits` takes; no probability is 0.

    fit : Fit
        The same chain, and the likelihood of the sequences.
    """
    counts = counts_of(sequences, n_symbols)
    total = Chain(*(part.sum(axis=0) for part in counts))
    law = smoothed(total.weights, 1 / n_symbols, relevance)
    chain = Chain(
        smoothed(total.startprob, law, relevance),
        smoothed(total.transmat, law, relevance),
        law,
    )
    stacks = (Chain(*(part[None] for part in parts)) for parts in (total, chain))
    return chain, chain_fits(*stacks)[0]


def visible_fits(sequences, n_symbols, prior=None, relevance=0.0):
    """Count one chain per sequence.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, 1)
        Codes of symbols, all observed.

    n_symbols : int
        Size of the alphabet.

    prior : Chain, default=None
        Laws towards which those of the sequences are smoothed.

    relevance : float, default=0.0
        Weight of the prior, in observations per law.

    Returns
    -------
    fits : list of Fit
        One per sequence, in their order.
    """
    counts = counts_of(sequences, n_symbols)
    return chain_fits(counts, chains_of(counts, prior, relevance))


def chain_fits(counts, chains):
    """Return chains as fits, with the likelihood of what was counted."""
    states = (np.eye(counts.weights.shape[1]),)
    scores = sum(
        shared_logs(counted, law)
        for counted, law in zip(counts[:2], chains[:2], strict=True)
    )
    sizes = counts.weights.sum(axis=1)
    seen = Counts(counts.weights, counts.transmat)
    return [
        Fit(
            model=Model(start, transmat, states),
            weights=weights,
            observed=None,
            n_states=len(weights),
            log_likelihood=float(score),
            objective=float(score),
            n_iter=0,
            converged=True,
            n_timesteps=int(size),
            counts=seen[i : i + 1],
        )
        for i, (start, transmat, weights, score, size) in enumerate(
            zip(*chains, scores, sizes, strict=True)
        )
    ]


def shared_logs(counts, laws):
    """Return sums of counts times logarithms, one per row; 0 log 0 is 0."""
    logs = counts * np.log(np.where(counts > 0, laws, 1.0))
    return logs.reshape(len(counts), -1).sum(axis=1)
