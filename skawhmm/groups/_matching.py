"""Models of equal amounts of data, so that units can be exchanged between groups.

A model of few frames is noisier than a model of many. If all units are fitted to as
many frames (or trials) as the poorest of them has, their models have the same error,
and their labels can be exchanged. The frames are chosen at random, several times, and
the distances of all choices are averaged.
"""

import numpy as np

from skawhmm.sequences._checked import CheckedSequences
from skawhmm.sequences._trials import Trials
from skawhmm.utils._checks import check_choice
from skawhmm.utils._seeds import item_rng

# Random choices of frames or trials, over which distances are averaged.
N_CHOICES = 10

MATCHES = ("frames", "trials")


def check_match(match, sequences):
    """Return how much data each unit is fitted to, or raise.

    Parameters
    ----------
    match : {"frames", "trials"}
        What is matched.

    sequences : CheckedSequences
        Arrays or `Trials`, one per model.

    Returns
    -------
    amount : int
        Number of frames or trials of the poorest one.
    """
    check_choice("match", match, MATCHES)
    if match == "frames":
        return min(sum(map(len, _recordings(x))) for x in sequences)
    if not any(isinstance(x, Trials) for x in sequences):
        raise ValueError(
            "match='trials' needs Trials, got single recordings, which match='frames' "
            "cuts to a common length."
        )
    return min(len(_recordings(x)) for x in sequences)


def matched_models(hmm, sequences, match, seed):
    """Return models of equal amounts of data, one batch per random choice.

    Parameters
    ----------
    hmm : transformer
        A fitted transformer.

    sequences : CheckedSequences
        Arrays or `Trials`, one per model.

    match : {"frames", "trials"}
        What is matched.

    seed : int
        Seed of the choices.

    Returns
    -------
    batches : list of HMMBatch
        One model per sequence in each.
    """
    amount = check_match(match, sequences)
    choose = {"frames": _chosen_frames, "trials": _chosen_trials}[match]
    chosen = [
        choose(x, amount, item_rng(seed, k, *_recordings(x)))
        for k in range(N_CHOICES)
        for x in sequences
    ]
    models = hmm.transform(CheckedSequences(chosen, sequences.names))
    size = len(sequences)
    return [models[k * size : (k + 1) * size] for k in range(N_CHOICES)]


def _recordings(x):
    return list(x) if isinstance(x, Trials) else [x]


def _chosen_trials(x, amount, rng):
    """Return so many trials of a unit, in their order."""
    trials = _recordings(x)
    index = np.sort(rng.permutation(len(trials))[:amount])
    return Trials([trials[i] for i in index])


def _chosen_frames(x, amount, rng):
    """Return successive frames of a recording, or trials with so many frames."""
    if not isinstance(x, Trials):
        first = int(rng.integers(len(x) - amount + 1))
        return x[first : first + amount]
    trials, left = [], amount
    for i in rng.permutation(len(x)):
        part = x.recordings[i][:left]
        trials.append(part)
        left -= len(part)
        if left == 0:
            break
    return Trials(trials)
