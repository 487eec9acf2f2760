"""States that emit symbols, compared by transport between their probabilities."""

import hashlib
from functools import cached_property

import numpy as np

from skawhmm.emissions._categorical_kernels import (
    add_symbol_counts,
    squared_transports,
    squared_variations,
    state_divergences,
)
from skawhmm.emissions._checks import check_probabilities
from skawhmm.emissions._custom import check_table
from skawhmm.emissions._discrete import Discrete
from skawhmm.emissions._discrete_kernels import normalized, shared_log
from skawhmm.emissions._mmd import symbol_mmd_comparer
from skawhmm.sequences._checks import check_no_missing
from skawhmm.sequences._symbols import (
    check_symbols,
    encoded,
    learned_symbols,
    symbol_sequences,
)

# A way around that is shorter by less than this share of the largest cost is not.
TRIANGLE_ROUNDING = 1e-14


class Categorical(Discrete):
    """States that emit one of finitely many symbols.

    Parameters
    ----------
    states : ndarray of shape (n_models, n_components, n_symbols)
        Probabilities of the symbols.

    symbols : ndarray of shape (n_symbols,)
        The alphabet, strings or integers.

    symbol_costs : ndarray of shape (n_symbols, n_symbols), default=None
        Distances between symbols; by default any two different symbols have distance 1.
    """

    name = "categorical"
    parameter_names = ("emissionprobs",)
    shared_names = ("symbols", "symbol_costs")
    fit_options = frozenset({"symbols", "symbol_costs"})
    hmmlearn_class = "CategoricalHMM"
    hmmlearn_attribute = "emissionprob_"
    n_features = 1

    def __init__(self, states, symbols, symbol_costs=None):
        super().__init__(states)
        self.symbols = symbols
        self.symbol_costs = symbol_costs

    @property
    def traits(self):
        """What `repr` shows of the family, by name."""
        return {"emission": self.name, "n_symbols": len(self.symbols)}

    @property
    def fingerprint(self):
        """Bytes that tell families with equal parameters apart."""
        digest = hashlib.blake2b(repr(self.symbols.tolist()).encode())
        if self.symbol_costs is not None:
            digest.update(self.symbol_costs.tobytes())
        return digest.digest()

    @classmethod
    def concatenate(cls, families):
        """Return one family with the models of all, which have equally many states."""
        first = families[0]
        for n, family in enumerate(families):
            if not np.array_equal(family.symbols, first.symbols):
                raise ValueError(
                    "All batches must have the same symbols, got "
                    f"{first.symbols.tolist()} in batch 0 and "
                    f"{family.symbols.tolist()} in batch {n}."
                )
            if family.fingerprint != first.fingerprint:
                raise ValueError(
                    "All batches must have the same symbol_costs, got others in batch "
                    f"{n} than in batch 0."
                )
        return super().concatenate(families)

    def described(self, channels):
        """Return the probabilities of the symbols."""
        names = (f"p_{symbol}" for symbol in self.symbols)
        return dict(zip(names, np.moveaxis(self.states, 2, 0), strict=True))

    def checked(self, X, caller):
        """Return the sequences of a user as codes of shape (n_timesteps, 1)."""
        return encoded(symbol_sequences(X), self.symbols)

    def frames(self, x):
        """Return a checked sequence in the form that compiled functions read."""
        codes = x[:, 0]
        return np.where(np.isnan(codes), -1, codes).astype(np.int64)

    def drawn(self, i, path, rng):
        """Draw a checked sequence from model i, given its path of states."""
        sums = np.cumsum(self.states[i], axis=1)
        # Rounding may leave the last sum below 1; no symbol has probability 0.
        sums /= np.where(sums[:, -1:] > 0, sums[:, -1:], 1.0)
        codes = (sums[path] <= rng.random(len(path))[:, None]).sum(axis=1)
        return codes[:, None].astype(float)

    def shown(self, x):
        """Return a checked sequence in the user's symbols."""
        return self.symbols[x.astype(np.int64)]

    @classmethod
    def from_arrays(cls, arrays, is_state):
        """Return the family, or raise unless its probabilities sum to one."""
        rows = arrays["emissionprobs"]
        padding = ~is_state & ~rows.any(axis=2)
        filled = np.where(padding[..., None], 1 / rows.shape[2], rows)
        checked = check_probabilities("emissionprobs", filled)
        states = np.where(padding[..., None], 0.0, checked)
        return make_categorical(
            states, arrays.get("symbols"), arrays.get("symbol_costs")
        )

    @classmethod
    def blank(cls, sequences, options):
        """Return the family with one blank state, and checked training sequences."""
        symbols = options.symbols
        if symbols is not None:
            symbols = check_symbols(symbols)
        elif options.symbol_costs is not None:
            table = check_table("symbol_costs", "symbol", options.symbol_costs)
            symbols = np.arange(len(table))
        else:
            symbols = learned_symbols(symbol_sequences(sequences))
        empty = np.zeros((1, 1, len(symbols)))
        family = make_categorical(empty, symbols, options.symbol_costs)
        return family, family.checked(sequences, type(options).__name__)

    def check_gaps(self, sequences, options):
        """Raise if a symbol is missing that a visible chain would have to count."""
        if isinstance(options.n_components, str) and options.n_components == "symbols":
            check_no_missing(sequences, "n_components='symbols'")

    def common_states(self, frames):
        """Return the frequencies of symbols, as one state."""
        counts = np.bincount(frames[frames >= 0], minlength=len(self.symbols))
        return ((counts / counts.sum())[None],)

    def random_states(self, frames, n_states, rng):
        """Return start values: the frequencies of symbols, changed at random."""
        shape = n_states, len(self.symbols)
        shares = rng.standard_exponential(shape) * self.common_states(frames)[0]
        return (shares / shares.sum(axis=1, keepdims=True),)

    def statistics(self, frames, post, states):
        """Return the expected number of each symbol in each state."""
        sums = np.zeros(states[0].shape)
        add_symbol_counts(frames, post, sums)
        return (sums,)

    def update(self, statistics, states, prior, relevance):
        """Return the states of the M step."""
        return (normalized(statistics[0] + relevance * prior[0], states[0]),)

    def log_prior(self, states, prior):
        """Return the logarithm of the prior per frame of relevance."""
        return shared_log(prior[0], states[0])

    def varied(self, frames):
        """Tell whether more than one symbol occurs."""
        return frames.max() > frames[frames >= 0].min()

    def n_free(self, frames):
        """Return the number of free parameters per state, given the frames."""
        return len(np.unique(frames[frames >= 0])) - 1

    def divergences(self, index_a, index_b):
        """Return divergences (n_pairs, n_components, n_components) of states a to b."""
        return state_divergences(self.states, index_a, index_b)

    def mmd_comparer(self, masses, sizes, bandwidth):
        """Return a function of pairs of models: squared distances of their laws."""
        return symbol_mmd_comparer(self.states, masses)

    def cross(self, index_a, index_b):
        """Return squared distances (n_pairs, n_components, n_components) of a to b."""
        if self.symbol_costs is None:
            return squared_variations(self.states, index_a, index_b)
        return squared_transports(
            self.states, self.symbol_costs, self._is_metric, index_a, index_b
        )

    @cached_property
    def _is_metric(self):
        costs, slack = self.symbol_costs, TRIANGLE_ROUNDING * self.symbol_costs.max()
        ways = (row[:, None] + row for row in costs)
        return all((costs <= way + slack).all() for way in ways)


def make_categorical(states, symbols, symbol_costs):
    """Return a family after checking what the user gave for it.

    Parameters
    ----------
    states : ndarray of shape (n_models, n_components, n_symbols)
        Probabilities, known to be valid.

    symbols : str, array-like of shape (n_symbols,), or None
        The alphabet; None numbers the symbols.

    symbol_costs : array-like of shape (n_symbols, n_symbols), or None
        Distances between symbols.

    Returns
    -------
    family : Categorical
        The family.
    """
    n_symbols = states.shape[2]
    alphabet = np.arange(n_symbols) if symbols is None else check_symbols(symbols)
    if len(alphabet) != n_symbols:
        raise ValueError(
            f"symbols must name the {n_symbols} symbols of emissionprobs, got "
            f"{len(alphabet)}."
        )
    if symbol_costs is None:
        return Categorical(states, alphabet)
    costs = check_table("symbol_costs", "symbol", symbol_costs)
    if len(costs) != n_symbols:
        raise ValueError(
            f"symbol_costs must have shape {(n_symbols, n_symbols)}, one row per "
            f"symbol, got {costs.shape}."
        )
    return Categorical(states, alphabet, costs)
