"""Models fitted again to sequences that are resampled from them, or from their data."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from skawhmm._estimator import check_hmm
from skawhmm.fitting._transformer import HMMTransformer
from skawhmm.models._inference import sample_sequences
from skawhmm.utils._checks import (
    check_choice,
    check_integer,
    check_seed,
    check_verbose,
)
from skawhmm.utils._parameters import check_unused
from skawhmm.utils._seeds import item_rng

METHODS = ("parametric", "block")


class Resampling(NamedTuple):
    """How models are fitted again; the fields are those of `distance_interval`."""

    method: str
    n_timesteps: int | None
    block_length: int | None
    n_resamples: int
    hmm: Any
    seed: int
    verbose: int

    def refits(self, model, name):
        """Return models fitted to resampled sequences of one model."""
        n_resamples = self.n_resamples
        key = int(model.keys[0])
        seeds = [(self.seed, key, ord(name), r) for r in range(n_resamples)]
        if self.method == "parametric":
            length = self._length(model, name)
            repeated = model[np.zeros(n_resamples, dtype=np.int64)]
            drawn, _ = sample_sequences(repeated, length, seeds)
        else:
            drawn = self._blocks(model, name, seeds)
        hmm = self.hmm
        hmm = transformer_like(model, self.seed, self.verbose) if hmm is None else hmm
        return clone(hmm).fit_transform([model.emission.shown(x) for x in drawn])

    def _length(self, model, name):
        if self.n_timesteps is not None:
            return self.n_timesteps
        if "n_timesteps" not in model.info:
            raise ValueError(
                "n_timesteps must be the length of the sequences that the models were "
                f"fitted to, got None, and no such column in the info of {name}."
            )
        return int(model.info["n_timesteps"][0])

    def _blocks(self, model, name, seeds):
        """Return sequences put together from blocks of the model's own one."""
        if model.sequences is None:
            raise ValueError(
                f"method='block' needs models that keep their sequences, got {name} "
                "without. HMMTransformer(keep_sequences=True) makes them."
            )
        x = model.sequences[0]
        size = self.block_length or int(np.ceil(np.sqrt(len(x))))
        size = min(size, len(x))
        n_blocks = -(-len(x) // size)
        drawn = []
        for seed in seeds:
            starts = item_rng(*seed).integers(len(x) - size + 1, size=n_blocks)
            rows = (starts[:, None] + np.arange(size)).ravel()[: len(x)]
            drawn.append(x[rows])
        return drawn


def check_resampling(
    method, n_timesteps, block_length, n_resamples, hmm, random_state, verbose
):
    """Return how models are fitted again, or raise."""
    check_choice("method", method, METHODS)
    for name, length in (("n_timesteps", n_timesteps), ("block_length", block_length)):
        if length is not None:
            check_integer(name, length, 1)
    unused = ("block_length", block_length), ("n_timesteps", n_timesteps)
    name, length = unused[METHODS.index(method)]
    check_unused(name, length, None, f"with method={method!r}")
    check_integer("n_resamples", n_resamples, 2)
    check_hmm("hmm", hmm)
    check_verbose("verbose", verbose)
    seed = check_seed(random_state)
    return Resampling(
        method, n_timesteps, block_length, n_resamples, hmm, seed, verbose
    )


def transformer_like(model, seed, verbose=0):
    """Return a transformer that fits models like the first one of a batch."""
    return HMMTransformer(
        int(model.n_components[0]),
        emission=clone(model.emission),
        random_state=seed % (2**32),
        verbose=verbose,
    )


def drawn_refits(models, n_resamples, seed, verbose=0):
    """Return refits of all models, to sequences drawn from them, as a list of batches.

    Parameters
    ----------
    models : HMMBatch
        The models, with the lengths of their sequences in `info`.

    n_resamples : int
        Number of refits per model.

    seed : int
        Seed of the sequences.

    verbose : int
        Whether to show progress bars.

    Returns
    -------
    refits : list of HMMBatch
        One batch of `n_resamples` models per model.
    """
    if "n_timesteps" not in models.info:
        raise ValueError(
            "n_resamples needs the number of frames that each model was fitted to, got "
            "models without a column n_timesteps in their info."
        )
    which = np.repeat(np.arange(len(models)), n_resamples)
    numbers = np.tile(np.arange(n_resamples), len(models))
    keys = models.keys[which].tolist()
    seeds = [(seed, key, int(r)) for key, r in zip(keys, numbers, strict=True)]
    lengths = np.asarray(models.info["n_timesteps"], dtype=np.int64)[which]
    drawn, _ = sample_sequences(models[which], lengths, seeds)
    drawn = [models.emission.shown(x) for x in drawn]
    refits: list[Any] = [None] * len(models)
    sizes = models.n_components
    # Models of as many states are fitted together.
    for size in np.unique(sizes):
        own = np.flatnonzero(sizes == size)
        hmm = transformer_like(models[int(own[0])], seed, verbose)
        fits = hmm.fit_transform([x for n in own for x in _part(drawn, n, n_resamples)])
        for k, n in enumerate(own):
            refits[n] = fits[_part(np.arange(len(fits)), k, n_resamples)]
    return refits


def _part(items, n, size):
    """Return the n-th part of items that come in parts of one size."""
    return items[n * size : (n + 1) * size]
