"""Refits of models to sequences resampled from them, or from their data."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from skawhmm._estimator import check_hmm
from skawhmm.fitting._transformer import HMMTransformer
from skawhmm.models._inference import sample_sequences
from skawhmm.sequences._trials import Trials, mapped, recordings_of, units_of
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
    """How models are refitted; fields are named as in `distance_interval`."""

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
            drawn = _samples(model, self._length(model, name), seeds)
        else:
            drawn = _resampled(model, name, self.block_length, seeds)
        hmm = self.hmm
        hmm = transformer_like(model, self.seed, self.verbose) if hmm is None else hmm
        hmm = with_scales(clone(hmm), model)
        return hmm.fit_transform(mapped(model.emission.shown, drawn))

    def _length(self, model, name):
        if self.n_timesteps is not None:
            return self.n_timesteps
        if "n_timesteps" not in model.info:
            raise ValueError(
                "n_timesteps must be the length of the sequences that the models were "
                f"fitted to, got None, and no such column in the info of {name}."
            )
        return int(model.info["n_timesteps"][0])


def _samples(model, length, seeds):
    """Return sequences drawn from a model, or `Trials` if it was fitted to several."""
    n_trials = int(model.info["n_trials"][0]) if "n_trials" in model.info else 1
    if n_trials == 1:
        repeated = model[np.zeros(len(seeds), dtype=np.int64)]
        return sample_sequences(repeated, length, seeds)[0]
    lengths = length // n_trials + (np.arange(n_trials) < length % n_trials)
    if model.sequences is not None:
        own = np.array([len(x) for x in model.sequences[0]])
        lengths = own if own.sum() == length else lengths
    lengths = np.tile(np.maximum(lengths, 1), len(seeds))
    repeated = model[np.zeros(len(lengths), dtype=np.int64)]
    each = [(*seed, trial) for seed in seeds for trial in range(n_trials)]
    drawn, _ = sample_sequences(repeated, lengths, each)
    return units_of(drawn, np.arange(len(drawn)) // n_trials)


def _resampled(model, name, block_length, seeds):
    """Return sequences assembled from parts of the model's own sequence."""
    if model.sequences is None:
        raise ValueError(
            f"method='block' needs models that keep their sequences, got {name} "
            "without. HMMTransformer(keep_sequences=True) makes them."
        )
    x = model.sequences[0]
    if isinstance(x, Trials) and len(x) > 1:
        reason = f"with {name} of several trials, which are drawn as a whole"
        check_unused("block_length", block_length, None, reason)
        return [_drawn_trials(x, seed) for seed in seeds]
    return _blocks(recordings_of([x])[0][0], block_length, seeds)


def _drawn_trials(trials, seed):
    """Return trials drawn with replacement, at least one with a transition."""
    rng, lengths = item_rng(*seed), np.array([len(x) for x in trials])
    while True:
        chosen = rng.integers(len(trials), size=len(trials))
        if lengths[chosen].max() > 1:
            return Trials([trials.recordings[i] for i in chosen])


def _blocks(x, block_length, seeds):
    """Return sequences assembled from blocks of one sequence."""
    size = min(block_length or int(np.ceil(np.sqrt(len(x)))), len(x))
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


def with_scales(hmm, model):
    """Return a transformer that keeps the scales of a model with blocks of channels.

    Otherwise each fit would learn its own scales, and fits could not be compared.
    """
    scale = getattr(getattr(hmm, "emission", None), "scale", None)
    if isinstance(scale, str) and model.emission.name == "by_channel":
        hmm.set_params(emission=clone(model.emission))
    return hmm


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
    lengths = models.info["n_timesteps"]
    drawn: list[Any] = []
    for n in range(len(models)):
        seeds = [(seed, int(models.keys[n]), r) for r in range(n_resamples)]
        drawn += mapped(
            models.emission.shown, _samples(models[n], int(lengths[n]), seeds)
        )
    refits: list[Any] = [None] * len(models)
    sizes = models.n_components
    # Models with the same number of states are fitted together.
    for size in np.unique(sizes):
        own = np.flatnonzero(sizes == size).tolist()
        hmm = transformer_like(models[own[0]], seed, verbose)
        fits = hmm.fit_transform([x for n in own for x in _part(drawn, n, n_resamples)])
        for k, n in enumerate(own):
            refits[n] = fits[_part(np.arange(len(fits)), k, n_resamples)]
    return refits


def _part(items, n, size):
    """Return the n-th part of items divided into parts of equal size."""
    return items[n * size : (n + 1) * size]
