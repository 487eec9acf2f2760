"""Visible Markov chains: one state per symbol, estimated by counting.

All distributions of a chain (starts, rows of transitions, symbols) are frequencies. A
prior adds pseudo-counts.
"""

from functools import partial
from operator import ne
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skawhmm.emissions._categorical import Categorical
from skawhmm.emissions._model import Model
from skawhmm.fitting._base import WEIGHTS, ModelTransformer, make_batch, with_columns
from skawhmm.fitting._em import Fit
from skawhmm.models._batch import HMMBatch
from skawhmm.sequences._checks import check_no_missing
from skawhmm.sequences._names import fitted_names
from skawhmm.sequences._trials import recordings_of, split_units
from skawhmm.utils._checks import check_boolean, check_choice, check_real
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._parameters import Unused


def check_chain_prior(name, value):
    """Raise unless `value` is None, "pooled" or a positive number."""
    if isinstance(value, str) and value != "pooled":
        raise ValueError(
            f"{name} must be None, 'pooled' or a positive number, got {value!r}."
        )
    if value is not None and not isinstance(value, str):
        check_real(name, value, 0, np.inf, include_low=False)


class MarkovChainTransformer(ModelTransformer):
    """Estimate one visible Markov chain per sequence, or per unit of several trials.

    Every symbol of the alphabet is a state, so states are visible and the same in all
    models. Starts, transitions and symbols are counted; there is no EM.

    Parameters
    ----------
    symbols : str or array-like of shape (n_symbols,), default=None
        All symbols that may occur: characters, strings or integers. By default the
        symbols of the training sequences or, with `costs`, the integers from 0.

    costs : array-like of shape (n_symbols, n_symbols), default=None
        Distances between `symbols`, in their order, used to compare states. By default
        any two symbols have distance 1.

    prior : {None, "pooled"} or float, default=None
        Pseudo-counts: the chain of all training sequences, times `relevance`, or a
        number that is added to the count of every start, transition and symbol. Without
        a prior, anything that does not occur in a sequence is impossible in its model,
        and `KL` is infinite for most pairs.

    relevance : float, default=4.0
        Weight of the pooled chain, in steps per symbol, with ``prior="pooled"``.

    weights : {"occupancy", "stationary", "uniform"}, default="occupancy"
        State probabilities of the models: the frequencies of the symbols, the
        stationary distribution of the transition matrix, or equal probabilities.

    keep_sequences : bool, default=False
        Whether the models keep the sequences they were fitted to;
        ``KL(method="data")`` needs them.

    Attributes
    ----------
    n_features_in_ : int
        Number of features, which is 1.

    symbols_ : ndarray of shape (n_symbols,)
        The alphabet.

    pooled_model_ : HMMBatch or None
        The chain of all training sequences, if ``prior="pooled"``.

    See Also
    --------
    HMMTransformer : Models with hidden states.

    Examples
    --------
    Here "n" follows every "a" but the last, and "a" follows every "b" and "n":

    >>> from skawhmm.fitting import MarkovChainTransformer
    >>> chains = MarkovChainTransformer().fit_transform(["banana"])
    >>> chains.symbols.tolist()
    ['a', 'b', 'n']
    >>> chains.transmats[0]
    array([[0., 0., 1.],
           [1., 0., 0.],
           [1., 0., 0.]])
    """

    _parameter_checks: ClassVar = {
        "prior": check_chain_prior,
        "relevance": partial(check_real, low=0, high=np.inf, include_low=False),
        "weights": partial(check_choice, choices=WEIGHTS),
        "keep_sequences": check_boolean,
    }
    _unused: ClassVar = (Unused(("relevance",), "prior", partial(ne, "pooled")),)
    _read_later: ClassVar = frozenset({"keep_sequences"})

    def __init__(
        self,
        symbols: str | ArrayLike | None = None,
        *,
        costs: ArrayLike | None = None,
        prior: str | float | None = None,
        relevance: float = 4.0,
        weights: str = "occupancy",
        keep_sequences: bool = False,
    ) -> None:
        self.symbols = symbols
        self.costs = costs
        self.prior = prior
        self.relevance = relevance
        self.weights = weights
        self.keep_sequences = keep_sequences

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> "MarkovChainTransformer":
        """Learn the alphabet and, with ``prior="pooled"``, the pooled chain.

        Parameters
        ----------
        X : list of str or array-like of shape (n_timesteps,)
            Training sequences: texts, or sequences of strings or integers.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        self._begin_fit()
        sequences = self._learned(X, y, Categorical(self.symbols, costs=self.costs))
        self._prior: Any = None, 0.0
        self.pooled_model_ = None
        n_symbols = len(self._template.symbols)
        self._check_no_missing(sequences)
        if isinstance(self.prior, str):
            pooled, fit = pooled_chain(sequences, n_symbols, self.relevance)
            self._prior = pooled, self.relevance
            self.pooled_model_ = make_batch(
                [fit],
                self._template,
                weights=self.weights,
                feature_names=fitted_names(self),
            )
        elif self.prior is not None:
            self._prior = uniform_chain(n_symbols), float(self.prior) * n_symbols
        return self

    def transform(self, X: Any) -> HMMBatch:
        """Return one chain per sequence.

        Parameters
        ----------
        X : list of str or array-like of shape (n_timesteps,)
            Sequences of symbols from the alphabet.

        Returns
        -------
        models : HMMBatch
            The chains, in the order of the sequences. Its `info` has the columns
            ``converged``, ``n_iter``, ``log_likelihood``, ``n_timesteps`` and
            ``n_trials``, and its `counts` are the numbers of symbols and transitions.
        """
        sequences = self._checked(X)
        self._check_no_missing(sequences)
        n_symbols = len(self._template.symbols)
        fits = visible_fits(sequences, n_symbols, *self._prior)
        return with_columns(self._batch(fits, sequences), X)

    def _check_no_missing(self, sequences):
        recordings, units = split_units(sequences)
        with units.naming():
            check_no_missing(recordings, type(self).__name__)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.three_d_array = False
        tags.input_tags.allow_nan = False
        return tags

    def _check_parameters(self):
        super()._check_parameters()
        Categorical(self.symbols, costs=self.costs).check_options()


class Chain(NamedTuple):
    """Probabilities of one chain, or of several with a leading axis."""

    startprob: np.ndarray
    transmat: np.ndarray
    weights: np.ndarray


def counts_of(sequences, n_symbols):
    """Return counts of first symbols, of transitions and of all symbols.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, 1), or Trials
        Codes of symbols, one entry per unit.

    n_symbols : int
        Size of the alphabet.

    Returns
    -------
    counts : Chain
        One row per unit.
    """
    recordings, firsts = recordings_of(sequences)
    units = np.repeat(np.arange(len(sequences)), np.diff(firsts))
    lengths = np.array([len(x) for x in recordings])
    codes = np.concatenate(recordings)[:, 0].astype(np.int64)
    owner = np.repeat(units, lengths)
    first = np.cumsum(lengths) - lengths
    # There is no transition from the last symbol of a recording to the next recording.
    leaves = np.ones(len(codes), bool)
    leaves[first + lengths - 1] = False
    left = np.flatnonzero(leaves)
    shape = len(sequences), n_symbols, n_symbols
    places = owner[left], codes[left], codes[left + 1]
    return Chain(
        number_of((units, codes[first]), shape[:2]),
        number_of(places, shape),
        number_of((owner, codes), shape[:2]),
    )


def number_of(places, shape):
    """Return how often each index into an array occurs."""
    flat = np.ravel_multi_index(places, shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).astype(float).reshape(shape)


def smoothed(counts, prior, relevance):
    """Return frequencies after adding `relevance` times a prior distribution."""
    totals = counts.sum(axis=-1, keepdims=True)
    empty = totals + relevance == 0
    sums = (counts + relevance * prior) / np.where(empty, 1.0, totals + relevance)
    return np.where(empty, prior, sums)


def chains_of(counts, prior, relevance):
    """Return the chains of counts under a prior; None for no prior."""
    if prior is None:
        weights = smoothed(counts.weights, 0.0, 0.0)
        # A symbol without successors is followed by the symbols at their frequencies.
        transmat = smoothed(counts.transmat, weights[..., None, :], 0.0)
        return Chain(smoothed(counts.startprob, 0.0, 0.0), transmat, weights)
    return Chain(*map(smoothed, counts, prior, (relevance,) * 3))


def uniform_chain(n_symbols):
    """Return the chain in which all symbols follow each other equally often."""
    equal = np.full(n_symbols, 1 / n_symbols)
    return Chain(equal, np.tile(equal, (n_symbols, 1)), equal)


def pooled_chain(sequences, n_symbols, relevance):
    """Return the chain of all sequences, smoothed so that nothing is impossible."""
    counts = counts_of(sequences, n_symbols)
    total = Chain(*(part.sum(axis=0) for part in counts))
    weights = smoothed(total.weights, 1 / n_symbols, relevance)
    chain = Chain(
        smoothed(total.startprob, weights, relevance),
        smoothed(total.transmat, weights, relevance),
        weights,
    )
    stacks = (Chain(*(part[None] for part in parts)) for parts in (total, chain))
    return chain, chain_fits(*stacks)[0]


def visible_fits(sequences, n_symbols, prior=None, relevance=0.0):
    """Count one chain per sequence."""
    counts = counts_of(sequences, n_symbols)
    return chain_fits(counts, chains_of(counts, prior, relevance))


def chain_fits(counts, chains):
    """Return chains as fits, with the likelihood of the counted sequences."""
    states = (np.eye(counts.weights.shape[1]),)
    scores = sum(
        weighted_logs(counted, chain)
        for counted, chain in zip(counts[:2], chains[:2], strict=True)
    )
    sizes, starts = counts.weights.sum(axis=1), counts.startprob.sum(axis=1)
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
            counts=tuple(seen),
            n_trials=int(n_trials),
        )
        for start, transmat, weights, score, size, n_trials, *seen in zip(
            *chains, scores, sizes, starts, counts.weights, counts.transmat, strict=True
        )
    ]


def weighted_logs(counts, probabilities):
    """Return sums of counts times logarithms, one per row; 0 log 0 is 0."""
    logs = counts * np.log(np.where(counts > 0, probabilities, 1.0))
    return logs.reshape(len(counts), -1).sum(axis=1)
