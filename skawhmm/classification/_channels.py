"""Channels prepared for views: as real numbers, as symbols, or standardized."""

from typing import Any

import numpy as np

from skawhmm.emissions._blocks import check_blocks, in_block, resolved_columns
from skawhmm.sequences._checked import CheckedSequences
from skawhmm.sequences._names import fitted_names
from skawhmm.sequences._preprocessing import SequenceTransformer
from skawhmm.sequences._symbols import learned_symbols, symbol_codes

# Least standard deviation of a channel within a sequence, relative to its deviation
# over all frames. Smaller variation is noise of a channel at rest.
LEAST_DEVIATION = 1e-3
# Families of non-negative numbers: square roots stabilise their variance.
POSITIVE = ("gamma", "poisson", "negative_binomial")


def symbol_blocks(emission):
    """Return the names of the blocks that hold symbols."""
    check_blocks(emission.blocks)
    return [name for name, family, _ in emission.blocks if family.name == "categorical"]


def located_blocks(emission, X, names):
    """Return blocks with the indices of their columns in sequences."""
    blocks = emission.named(names).blocks
    columns = resolved_columns(blocks, X[0].shape[1])
    pairs = zip(blocks, columns, strict=True)
    return [(name, family, own) for (name, family, _), own in pairs]


def columns_of(X, columns):
    """Return some channels of sequences."""
    return [np.ascontiguousarray(x[:, columns]) for x in X]


class RealChannels(SequenceTransformer):
    """Convert channels of several kinds to numbers that suit Gaussian states.

    An angle becomes its cosine and its sine, a symbol one indicator per symbol, a
    positive number or a count its square root. Other channels are unchanged. A missing
    symbol, or one not seen in `fit`, counts as not observed.

    Parameters
    ----------
    emission : ByChannel
        The kinds of the channels.
    """

    def __init__(self, emission: Any) -> None:
        self.emission = emission

    def _fit(self, X, y):  # noqa: ARG002
        self._blocks = []
        caller = type(self).__name__
        for name, family, columns in located_blocks(
            self.emission, X, fitted_names(self)
        ):
            own, symbols = columns_of(X, columns), None
            with in_block(name):
                if family.name == "categorical":
                    symbols = learned_symbols([x[:, 0] for x in own])
                else:
                    family, _ = family.learned(own, caller=caller)  # noqa: PLW2901
            self._blocks.append((name, family, columns, symbols))

    def _transform(self, X):
        parts = [self._numbers(X, *block) for block in self._blocks]
        return CheckedSequences(np.hstack(part) for part in zip(*parts, strict=True))

    def _numbers(self, X, name, family, columns, symbols):
        """Return the channels of one block as numbers."""
        own = columns_of(X, columns)
        if symbols is not None:
            codes = symbol_codes([x[:, 0] for x in own], symbols)
            return [indicators(x, len(symbols)) for x in codes]
        with in_block(name):
            own = family.checked(own, caller=type(self).__name__)
        if family.name == "vonmises":
            return [np.hstack([np.cos(x), np.sin(x)]) for x in own]
        return [np.sqrt(x) for x in own] if family.name in POSITIVE else own

    def _names(self, channels):
        names = []
        for _, family, columns, symbols in self._blocks:
            own = [channels[k] for k in columns]
            if symbols is not None:
                names += [f"{own[0]}={symbol}" for symbol in symbols]
            elif family.name == "vonmises":
                names += [f"{part}({c})" for part in ("cos", "sin") for c in own]
            else:
                names += own
        return names

    def _sources(self, channels):
        sources = []
        for _, family, columns, symbols in self._blocks:
            own = [channels[k] for k in columns]
            copies = 1 if symbols is None else len(symbols)
            sources += own * (2 if family.name == "vonmises" else copies)
        return sources


def indicators(codes, n_symbols):
    """Return one indicator column per symbol; NaN where no symbol was observed."""
    found = (codes[:, None] == np.arange(n_symbols)).astype(np.float64)
    found[codes < 0] = np.nan
    return found


class SymbolChannel(SequenceTransformer):
    """Select the channel of a block of symbols.

    Parameters
    ----------
    emission : ByChannel
        The kinds of the channels.

    block : str
        Name of the block.
    """

    def __init__(self, emission: Any, block: str) -> None:
        self.emission = emission
        self.block = block

    def _fit(self, X, y):  # noqa: ARG002
        blocks = located_blocks(self.emission, X, fitted_names(self))
        self._columns = {name: columns for name, _, columns in blocks}[self.block]

    def _transform(self, X):
        return CheckedSequences(columns_of(X, self._columns))

    def _names(self, channels):
        return [channels[k] for k in self._columns]


class OwnScale(SequenceTransformer):
    """Standardize each channel within each sequence.

    The result does not depend on offset and scale, which may differ between subjects
    and recordings.
    """

    def _fit(self, X, y):  # noqa: ARG002
        deviations = np.nan_to_num(moments(np.concatenate(X))[1])
        self._least = LEAST_DEVIATION * deviations

    def _transform(self, X):
        changed = []
        for x in X:
            mean, deviation = moments(x)
            scale = np.fmax(deviation, self._least)
            # A channel that never varies is 0.
            changed.append((x - mean) / np.where(scale > 0, scale, 1.0))
        return CheckedSequences(changed)

    def _names(self, channels):
        return channels


def moments(frames):
    """Return means and standard deviations of channels; NaN if nothing was observed."""
    seen = ~np.isnan(frames)
    n_seen = np.where(seen.any(axis=0), seen.sum(axis=0), np.nan)
    mean = np.where(seen, frames, 0.0).sum(axis=0) / n_seen
    gaps = np.where(seen, frames - mean, 0.0)
    return mean, np.sqrt((gaps**2).sum(axis=0) / n_seen)
