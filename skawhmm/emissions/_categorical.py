"""States that emit symbols, compared by transport between their probabilities."""

import hashlib
from functools import cached_property
from typing import Any

import numpy as np
import ot

from skawhmm.emissions._categorical_kernels import (
    squared_transports,
    squared_variations,
    state_divergences,
)
from skawhmm.emissions._checks import SUM_TOLERANCE, check_probabilities
from skawhmm.emissions._custom import check_table
from skawhmm.emissions._discrete import Discrete
from skawhmm.emissions._discrete_kernels import log_prior_of, normalized
from skawhmm.emissions._mmd import symbol_mmd_comparer
from skawhmm.emissions._model import Data, FrameParts
from skawhmm.sequences._symbols import (
    check_symbols,
    encoded,
    learned_symbols,
    symbol_sequences,
)
from skawhmm.utils._seeds import exponential_draws

# Violations of the triangle inequality below this fraction of the largest cost are
# rounding.
TRIANGLE_ROUNDING = 1e-14

# Fraction by which a barycentre may be farther than the mean and count as equally
# close: linear programmes are solved to about this tolerance.
CENTER_ROUNDING = 1e-6


class Categorical(Discrete):
    """States that emit one of finitely many symbols.

    The parameters of a state are its ``emissionprobs``, the probabilities of the
    symbols.

    Parameters
    ----------
    symbols : str or array-like of shape (n_symbols,), default=None
        All symbols that may occur: characters, strings or integers. By default the
        symbols of the training sequences or, with `costs`, the integers from 0.

    costs : array-like of shape (n_symbols, n_symbols), default=None
        Distances between `symbols`, in their order, used to compare states: symmetric,
        and 0 between equal symbols. By default any two symbols have distance 1.

    See Also
    --------
    skawhmm.models.HMMBatch.from_emissionprobs : Models with given probabilities.
    skawhmm.fitting.MarkovChainTransformer : One state per symbol.

    Examples
    --------
    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.emissions import Categorical
    >>> hmm = HMMTransformer(2, emission=Categorical("ACGT"), random_state=0)
    >>> hmm.fit_transform(["AAACCCAAACCC", "AACCAACCAACC"])
    HMMBatch(n_models=2, n_components=2, emission='categorical', n_symbols=4)
    """

    name = "categorical"
    support = "symbols"
    parameter_names = ("emissionprobs",)
    shared_names = ("symbols", "symbol_costs")
    n_statistics = 1
    has_compiled_em = True
    hmmlearn_class = "CategoricalHMM"
    hmmlearn_attribute = "emissionprob_"
    n_features = 1

    def __init__(self, symbols: Any = None, *, costs: Any = None) -> None:
        self.symbols = symbols
        self.costs = costs

    def check_options(self):
        """Raise if the alphabet or the distances between symbols are wrong."""
        checked_options(self.symbols, self.costs)

    @property
    def extras(self):
        """Arrays that all models share and that are stored with them, by name."""
        found = dict(zip(self.shared_names, (self.symbols, self.costs), strict=True))
        return {name: array for name, array in found.items() if array is not None}

    @property
    def traits(self):
        """What `repr` shows of the family, by name."""
        return {"emission": self.name, "n_symbols": len(self.symbols)}

    @property
    def fingerprint(self):
        """Bytes that differ between families with equal parameters."""
        digest = hashlib.blake2b(repr(self.symbols.tolist()).encode())
        if self.costs is not None:
            digest.update(self.costs.tobytes())
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

    def state_names(self):
        """Return the symbols of states that emit nothing else, as in visible chains."""
        codes = self.states.argmax(axis=2)
        is_one = self.states.max(axis=2) > 1 - SUM_TOLERANCE
        if not codes.size or not is_one.all() or (codes != codes[0]).any():
            return None
        names = tuple(str(self.symbols[code]) for code in codes[0])
        return names if len({*names}) == len(names) else None

    def checked(self, X, *, caller, n_features=None):
        """Return the sequences of a user as codes of shape (n_timesteps, 1)."""
        return encoded(symbol_sequences(X), self.symbols)

    def frames(self, x):
        """Return a checked sequence in the form that compiled functions read."""
        codes = x[:, 0]
        return np.where(np.isnan(codes), -1, codes).astype(np.int64)

    def drawn(self, i, path, rng):
        """Draw a checked sequence from model i, given its path of states."""
        return self._codes_at(i, path, rng.random(len(path)))

    def of_channel(self, channel):
        """Return the family: there is one channel."""
        return self

    def frames_at(self, i, path, levels):
        """Return the codes of the symbols of model i at given levels."""
        return self._codes_at(i, path, levels[:, 0])

    def frame_parts(self, x):
        """Return symbols with the squared distances between them."""
        table = 1 - np.eye(len(self.symbols)) if self.costs is None else self.costs**2
        none = np.empty((*x.shape[:-1], 0))
        return FrameParts(none, none, np.empty(0), x.astype(np.intp), (table,))

    def _codes_at(self, i, path, levels):
        sums = np.cumsum(self.states[i], axis=1)
        # Rounding may leave the last sum below 1; no symbol has probability 0.
        sums /= np.where(sums[:, -1:] > 0, sums[:, -1:], 1.0)
        codes = (sums[path] <= levels[:, None]).sum(axis=1)
        return codes[:, None].astype(float)

    def shown(self, x):
        """Return a checked sequence in the user's symbols."""
        return self.symbols[x.astype(np.int64)]

    def from_arrays(self, arrays, is_state):
        """Return the family, or raise unless its probabilities sum to one."""
        rows = arrays["emissionprobs"]
        n_symbols = rows.shape[2]
        padding = ~is_state & ~rows.any(axis=2)
        filled = np.where(padding[..., None], 1 / n_symbols, rows)
        checked = check_probabilities("emissionprobs", filled)
        name = "symbol_costs" if "symbol_costs" in arrays else "costs"
        symbols, costs = checked_options(
            arrays.get("symbols", self.symbols),
            arrays.get("symbol_costs", self.costs),
            n_symbols,
            name=name,
        )
        family = Categorical(symbols, costs=costs)
        return family.like(np.where(padding[..., None], 0.0, checked))

    def learned(self, X, *, caller):
        """Return the template with its alphabet, and the checked sequences."""
        symbols = self.symbols
        if symbols is None and self.costs is None:
            symbols = learned_symbols(symbol_sequences(X))
        symbols, costs = checked_options(symbols, self.costs)
        template = Categorical(symbols, costs=costs)
        return template, template.checked(X, caller=caller)

    def common_states(self, frames):
        """Return the frequencies of symbols, as one state."""
        counts = np.bincount(frames[frames >= 0], minlength=len(self.symbols))
        return ((counts / counts.sum())[None],)

    def random_states(self, frames, n_states, rng):
        """Return start values: the frequencies of symbols, changed at random."""
        data = Data(frames, None, np.array([0, len(frames)]), np.array([0, 1]))
        return (self.random_stack(data, n_states, [rng])[0][0],)

    def random_stack(self, data, n_states, rngs):
        """Return start values of several models."""
        n_symbols, n_models = len(self.symbols), len(rngs)
        units = np.repeat(np.arange(n_models), np.diff(data.bounds))
        seen = data.frames >= 0
        cells = units[seen] * n_symbols + data.frames[seen]
        counts = np.bincount(cells, minlength=n_models * n_symbols)
        counts = counts.reshape(n_models, 1, n_symbols)
        weights = exponential_draws(rngs, (n_states, n_symbols))
        weights *= counts / counts.sum(axis=2, keepdims=True)
        return (weights / weights.sum(axis=2, keepdims=True),)

    def cluster_points(self, frames):
        """Return a coordinate per symbol, which is 1 in its frames."""
        return (frames[:, None] == np.arange(len(self.symbols))).astype(float)

    def spread(self, sequences):
        """Return the root mean square distance of two frames, over the root of 2."""
        codes = np.concatenate([self.frames(x) for x in sequences])
        (frequencies,) = self.common_states(codes)[0]
        table = 1 - np.eye(len(frequencies)) if self.costs is None else self.costs**2
        return float(np.sqrt(0.5 * frequencies @ table @ frequencies))

    def update(self, statistics, states, prior, relevance):
        """Return the states of the M step."""
        return (normalized(statistics[0] + relevance * prior[0], states[0]),)

    def log_prior(self, states, prior):
        """Return the logarithm of the prior per frame of relevance."""
        return log_prior_of(prior[0], states[0], False)

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
        """Return a function of pairs of models: squared distances."""
        return symbol_mmd_comparer(self.states, masses)

    def cross(self, index_a, index_b):
        """Return squared distances (n_pairs, n_components, n_components) of a to b."""
        if self.costs is None:
            return squared_variations(self.states, index_a, index_b)
        return squared_transports(
            self.states, self.costs, self._is_metric, index_a, index_b
        )

    def averaged(self, models, labels, masses):
        """Return averages of the probabilities of matched states.

        They are means where all symbols are equally far. With other `costs` they are
        Wasserstein barycentres of order 2, where these are at least as close.
        """
        rows = self.matched_means(self.states, models.states, labels, masses)
        if not self._is_equidistant:
            for label in range(len(rows)):
                members = labels == label
                weights, states = masses[members], models.states[members]
                for i in np.flatnonzero(weights.any(axis=(0, 2))):
                    rows[label, i] = self._average(
                        rows[label, i], states, weights[:, i]
                    )
        return self.like(rows)

    def _average(self, mean, states, weights):
        """Return the barycentre of weighted states, or their mean if it is closer."""
        found = weights > 0
        # Sorted, so that the order of the models does not matter.
        rows, place = np.unique(states[found], axis=0, return_inverse=True)
        weights = np.bincount(place.ravel(), weights[found])
        weights /= weights.sum()
        if len(rows) == 1:
            return rows[0]
        table = (self.costs / self.costs.max()) ** 2
        center = ot.lp.barycenter(rows.T, table, weights, solver="highs")
        center = np.maximum(center, 0)
        center /= center.sum()
        stack = self.like(np.concatenate([[center, mean], rows])[:, None])
        others = np.arange(2, 2 + len(rows))
        own, plain = (
            weights @ stack.cross(np.full_like(others, n), others)[:, 0, 0]
            for n in (0, 1)
        )
        return center if own <= (1 + CENTER_ROUNDING) * plain else mean

    @cached_property
    def _is_equidistant(self):
        """Whether any two symbols have the same distance."""
        if self.costs is None:
            return True
        others = self.costs[~np.eye(len(self.costs), dtype=bool)]
        return bool((others == others[:1]).all())

    @cached_property
    def _is_metric(self):
        costs, slack = self.costs, TRIANGLE_ROUNDING * self.costs.max()
        ways = (row[:, None] + row for row in costs)
        return all((costs <= way + slack).all() for way in ways)


def checked_options(symbols, costs, n_symbols=None, *, name="costs"):
    """Return the alphabet and the distances between symbols, or raise.

    Parameters
    ----------
    symbols : str, array-like of shape (n_symbols,), or None
        The alphabet; None numbers the symbols, if their number is known.

    costs : array-like of shape (n_symbols, n_symbols), or None
        Distances between symbols.

    n_symbols : int, default=None
        Number of symbols, if it is known.

    name : str, default="costs"
        The distances as the caller knows them.

    Returns
    -------
    symbols, costs : ndarray or None
        The checked values.
    """
    if costs is not None:
        costs = check_table(name, "symbol", costs)
    if symbols is not None:
        symbols = check_symbols(symbols)
        if n_symbols is not None and len(symbols) != n_symbols:
            raise ValueError(
                f"symbols must name the {n_symbols} symbols of emissionprobs, got "
                f"{len(symbols)}."
            )
    elif n_symbols is not None or costs is not None:
        symbols = np.arange(len(costs) if n_symbols is None else n_symbols)
    if costs is not None and len(costs) != len(symbols):
        raise ValueError(
            f"{name} must have shape {(len(symbols), len(symbols))}, one row per "
            f"symbol, got {costs.shape}."
        )
    return symbols, costs
