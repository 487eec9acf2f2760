"""Inference with given models: likelihoods, posteriors, best paths, samples."""

from collections import Counter

import numpy as np

from skawhmm.numerics._forward_backward import forward_backward
from skawhmm.numerics._paths_kernels import best_path, random_path
from skawhmm.sequences._trials import Trials, recordings_of, split_units
from skawhmm.utils._parallel import completed, even_ranges
from skawhmm.utils._seeds import item_rng

# Blocks of sequences per worker, so that workers finish at about the same time.
BLOCKS_PER_JOB = 4

# Scoring a block of this many values takes about as long as starting a thread.
LEAST_VALUES = 2**17


def chains(batch, startprobs):
    """Return copies of the starts, transitions and state counts of a batch."""
    starts = batch.startprobs if startprobs is None else startprobs
    sizes = np.array(batch.n_components, np.int64)
    return np.array(starts, float), np.array(batch.transmats), sizes


def log_likelihood(batch, sequences, *, startprobs=None, n_jobs=None, verbose=0):
    """Return the log likelihood of every sequence under every model.

    Parameters
    ----------
    batch : HMMBatch
        Models.

    sequences : list of ndarray of shape (n_timesteps, n_features), or Trials
        Checked sequences; NaN (missing) only if the models are diagonal. The likelihood
        of `Trials` is the product of the likelihoods of the recordings.

    startprobs : ndarray of shape (n_models, n_components), default=None
        Start probabilities; by default from the models.

    n_jobs : int, default=None
        Number of joblib workers; the values do not depend on it.

    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    scores : ndarray of shape (n_sequences, n_models)
        Minus infinity where a model cannot emit a sequence.
    """
    recordings, firsts = recordings_of(sequences)
    score = batch.emission.scorer(*chains(batch, startprobs))
    scores = np.empty((len(recordings), len(batch)))
    tasks = even_ranges([len(x) for x in recordings], n_jobs, per_job=BLOCKS_PER_JOB)
    data = score, recordings, len(batch)
    shown = {
        "verbose": verbose,
        "label": "sequences",
        "amounts": [last - first for first, last in tasks],
    }
    results = completed(_scored_range, data, tasks, n_jobs=n_jobs, **shown)
    for (first, last), rows in zip(tasks, results, strict=True):
        scores[first:last] = rows
    return np.add.reduceat(scores, firsts[:-1], axis=0)


def _scored_range(data, first, last):
    score, sequences, n_models = data
    models = np.arange(n_models)
    return np.array([score(x, models) for x in sequences[first:last]])


def own_log_likelihoods(batch, sequences, n_jobs=None):
    """Return the log likelihood of each sequence under its own model."""
    recordings, firsts = recordings_of(sequences)
    models = np.repeat(np.arange(len(sequences)), np.diff(firsts))
    sizes = [x.size for x in recordings]
    limits = {"per_job": BLOCKS_PER_JOB, "least": LEAST_VALUES}
    tasks = even_ranges(sizes, n_jobs, **limits)
    data = batch.emission, chains(batch, None), recordings, models
    parts = completed(_own_range, data, tasks, n_jobs=n_jobs)
    return np.add.reduceat(np.concatenate([*parts]), firsts[:-1])


def _own_range(data, first, last):
    emission, parameters, sequences, models = data
    pair = np.arange(last - first), models[first:last]
    ((values, _),) = emission.pair_scores(parameters, sequences[first:last], [pair])
    return values


def paired_densities(batch, sequences, startprobs):
    """Yield log densities, starts and transitions of each model with its recordings.

    A single model is paired with every sequence, a single sequence with every model.
    """
    starts, transmats, sizes = chains(batch, startprobs)
    n_pairs = max(len(batch), len(sequences))
    for n in range(n_pairs):
        i, x = n % len(batch), sequences[n % len(sequences)]
        size = sizes[i]
        start, transmat = starts[i, :size], transmats[i, :size, :size].copy()
        for recording in x if isinstance(x, Trials) else [x]:
            logs = batch.emission.densities(i, recording, start, transmat)
            yield logs, start, transmat


def paired_units(batch, sequences):
    """Return the sequence of each pair of a model and a sequence."""
    return sequences if len(sequences) > 1 else [*sequences] * len(batch)


def posteriors(batch, sequences, *, startprobs=None):
    """Return the state probabilities of every frame, given its whole recording.

    The entries of `Trials` are lists with one array per recording.
    """
    result = []
    for logs, start, transmat in paired_densities(batch, sequences, startprobs):
        post = np.empty(logs.shape)
        forward_backward(logs, start, transmat, post, np.zeros(transmat.shape))
        result.append(post.T.copy())
    _, units = split_units(paired_units(batch, sequences))
    return units.grouped(result, list)


def best_paths(batch, sequences, *, startprobs=None):
    """Return most probable paths (Viterbi); the parameters are as for `posteriors`."""
    paths, scores = [], []
    for logs, start, transmat in paired_densities(batch, sequences, startprobs):
        path = np.empty(logs.shape[1], np.int64)
        scores.append(best_path(logs, start, transmat, path))
        paths.append(path)
    _, units = split_units(paired_units(batch, sequences))
    totals = np.add.reduceat(scores, units.bounds(paths)[:-1])
    return units.grouped(paths, list), totals


def model_seeds(seed, keys):
    """Return seeds of draws that depend on the model, not on the rest of its batch."""
    copies: Counter[int] = Counter()
    seeds: list[tuple[int, ...]] = []
    for key in keys.tolist():
        # The first of several equal models gets the same draws as if it were alone.
        seeds.append((seed, key, copies[key]) if copies[key] else (seed, key))
        copies[key] += 1
    return seeds


def sample_sequences(batch, n_timesteps, seeds, *, startprobs=None, n_trials=1):
    """Draw sequences from every model, `n_trials` one after the other."""
    starts, transmats, sizes = chains(batch, startprobs)
    lengths = np.broadcast_to(n_timesteps, len(batch))
    sequences, paths = [], []
    for i, (length, seed) in enumerate(zip(lengths, seeds, strict=True)):
        rng = item_rng(*seed)
        for _ in range(n_trials):
            path = np.empty(length, np.int64)
            random_path(starts[i, : sizes[i]], transmats[i], rng.random(length), path)
            sequences.append(batch.emission.drawn(i, path, rng))
            paths.append(path)
    return sequences, paths
