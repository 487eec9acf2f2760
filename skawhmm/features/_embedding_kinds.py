"""What an embedding does differently for each family of states.

A kind checks input, learns references, and makes vectors and names. Each has the same
members; `KINDS` knows them by the name of the family.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from skawhmm._estimator import check_frames_or_symbols
from skawhmm.emissions._categorical import make_categorical
from skawhmm.emissions._poisson import Poisson, check_count_sequences
from skawhmm.features._embedding_blocks import (
    BLOCKS,
    DEFAULT_BLOCKS,
    Recipe,
    embedded_rows,
)
from skawhmm.features._embedding_discrete import (
    COUNT_BLOCKS,
    SYMBOL_BLOCKS,
    DiscreteRecipe,
    discrete_rows,
)
from skawhmm.features._embedding_references import (
    fit_discrete_references,
    fit_references,
    raw_model,
    writable_model,
)
from skawhmm.fitting._pooled import without_oversized
from skawhmm.models._batch import HMMBatch
from skawhmm.sequences._checks import check_input
from skawhmm.sequences._symbols import learned_symbols, symbol_codes, symbol_sequences
from skawhmm.utils._parallel import writable


class GaussianKind:
    """References with Gaussian states, in standardized coordinates."""

    blocks = BLOCKS
    default_blocks = DEFAULT_BLOCKS
    max_iter = 8
    rows = staticmethod(embedded_rows)

    def checked(self, estimator, X, y=None, *, reset):
        """Return sequences as the other members take them."""
        return check_input(estimator, X, y, reset=reset)

    def of_one_scale(self, sequences):
        """Return the sequences that references can be fitted to together."""
        return without_oversized(sequences, "the reference models")

    def fit(self, pieces, sizes, options, **parallel):
        """Learn the references."""
        self.references, self.coordinates = fit_references(
            pieces, sizes, options, **parallel
        )
        return self

    def recipe(self, blocks, relevance, normalize):
        """Return what makes vectors."""
        centre, scale = writable((self.coordinates.centre, self.coordinates.scale))
        return Recipe(
            [writable_model(reference.model) for reference in self.references],
            replace(self.coordinates, centre=centre, scale=scale),
            blocks,
            relevance,
            normalize,
        )

    def channels(self, names):
        """Return the names of what a block has per state, given those of channels."""
        return names

    def batch(self):
        """Return the references as models."""
        models = [raw_model(r, self.coordinates) for r in self.references]
        return HMMBatch(
            [model.transmat for model in models],
            [model.states[0] for model in models],
            [model.states[1] for model in models],
            weights=[reference.weights for reference in self.references],
            startprobs=[model.startprob for model in models],
        )


class DiscreteKind:
    """References whose states emit symbols or counts; `family` has one blank state."""

    blocks: dict[str, Any]
    family: Any
    # Starts are drawn at random, so there is a longer way to go.
    max_iter = 25
    rows = staticmethod(discrete_rows)

    def of_one_scale(self, sequences):
        """Return all sequences: symbols and counts have no units."""
        return sequences

    def fit(self, pieces, sizes, options, **parallel):  # noqa: ARG002
        """Learn the references; one EM step is a single call."""
        self.references = fit_discrete_references(pieces, sizes, self.family, options)
        return self

    def recipe(self, blocks, relevance, normalize):
        """Return what makes vectors."""
        models = [writable_model(reference.model) for reference in self.references]
        functions = {name: self.blocks[name] for name in blocks}
        return DiscreteRecipe(models, self.family, functions, relevance, normalize)

    def batch(self):
        """Return the references as models."""
        models = [reference.model for reference in self.references]
        (name,) = self.family.parameter_names
        return HMMBatch._of(
            type(self.family),
            [model.transmat for model in models],
            {name: [model.states[0] for model in models]},
            shared=self.family.extras,
            weights=[reference.weights for reference in self.references],
            startprobs=[model.startprob for model in models],
        )


class CategoricalKind(DiscreteKind):
    """References whose states emit symbols; unknown symbols count as not observed."""

    blocks = SYMBOL_BLOCKS
    default_blocks = ("transitions", "emissions")

    def checked(self, estimator, X, y=None, *, reset):
        """Return the codes of symbols."""
        sequences = symbol_sequences(
            check_frames_or_symbols(estimator, X, y, reset=reset)
        )
        if reset:
            symbols = learned_symbols(sequences)
            empty = np.zeros((1, 1, len(symbols)))
            self.family = make_categorical(empty, symbols, None)
        # Codes below 0 were not observed, whether they are missing or unknown.
        return symbol_codes(sequences, self.family.symbols)

    def channels(self, names):  # noqa: ARG002
        """Return the symbols, whatever the channel is called."""
        return [str(symbol) for symbol in self.family.symbols]


class PoissonKind(DiscreteKind):
    """References whose states emit counts."""

    blocks = COUNT_BLOCKS
    default_blocks = ("transitions", "rates")

    def checked(self, estimator, X, y=None, *, reset):
        """Return counts."""
        sequences = check_count_sequences(check_input(estimator, X, y, reset=reset))
        if reset:
            self.family = Poisson(np.zeros((1, 1, sequences[0].shape[1])))
        return sequences

    def channels(self, names):
        """Return the names of what a block has per state, given those of channels."""
        return names


KINDS: dict[str, Any] = {
    "gaussian": GaussianKind,
    "categorical": CategoricalKind,
    "poisson": PoissonKind,
}
