"""Models of equal amounts of data, so that units can be exchanged between groups.

A model of few frames is noisier than a model of many, and so is the average of few
models. If all units have as many frames, trials or models as the poorest of them, they
have the same error, and their labels can be exchanged. What a unit has beyond that is
left out at random.

Several such choices can be averaged in the statistic, but only if groups are of equal
size. The average has less error in a rich unit than in a poor one, of which every
choice is the same. What that adds to the difference between two groups and what it
takes away cancel if groups are equal; otherwise the poor ones of a small group look
like a difference. Then one choice is made, with which units are exchangeable.
"""

import numpy as np

from skawhmm.groups._refits import fitted_transformer
from skawhmm.sequences._checked import CheckedSequences
from skawhmm.sequences._trials import Trials
from skawhmm.utils._seeds import item_rng

# Random choices that are averaged, if groups are of equal size.
N_CHOICES = 10

# What can be matched: by fits to parts of the data, or by leaving out models.
FITTED_MATCHES = ("frames", "trials")
MATCHES = (*FITTED_MATCHES, "models")


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
    if match == "frames":
        return min(sum(map(len, _recordings(x))) for x in sequences)
    if not any(isinstance(x, Trials) for x in sequences):
        raise ValueError(
            "match='trials' needs Trials, got single recordings, which match='frames' "
            "cuts to a common length."
        )
    return min(len(_recordings(x)) for x in sequences)


def n_choices(design):
    """Return how many choices are averaged in a comparison."""
    return N_CHOICES if design.is_balanced else 1


def matched_models(hmm, sequences, match, n_choices, seed):
    """Return models of equal amounts of data, one batch per random choice.

    Parameters
    ----------
    hmm : transformer or None
        What fits the models; whatever it learns from all sequences, it learns from the
        chosen parts of them.

    sequences : CheckedSequences
        Arrays or `Trials`, one per model.

    match : {"frames", "trials"}
        What is matched.

    n_choices : int
        Number of choices.

    seed : int
        Seed of the choices.

    Returns
    -------
    batches : list of HMMBatch
        One model per sequence in each.
    """
    amount = check_match(match, sequences)
    choose = {"frames": _chosen_frames, "trials": _chosen_trials}[match]
    batches = []
    for k in range(n_choices):
        chosen = CheckedSequences(
            [choose(x, amount, item_rng(seed, k, *_recordings(x))) for x in sequences],
            sequences.names,
        )
        batches.append(fitted_transformer(hmm, chosen, seed).transform(chosen))
    return batches


def matched_rows(distances, design, n_choices, seed):
    """Return as many models of each unit, one row of indices per random choice.

    Parameters
    ----------
    distances : ndarray of shape (n_models, n_models)
        Distances between models; a choice depends on them, and not on the order in
        which models were given.

    design : Design
        The comparison.

    n_choices : int
        Number of choices.

    seed : int
        Seed of the choices.

    Returns
    -------
    rows : ndarray of int of shape (n_choices, n_units * amount)
        The models, one unit after the other.
    """
    content = np.sort(distances, axis=1).sum(axis=1)
    order = np.lexsort((content, design.unit_of))
    units = np.split(order, np.cumsum(np.bincount(design.unit_of))[:-1])
    amount = min(map(len, units))
    return np.array(
        [
            [
                i
                for own in units
                for i in item_rng(seed, k, content[own]).permutation(own)[:amount]
            ]
            for k in range(n_choices)
        ]
    )


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
