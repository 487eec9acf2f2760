"""Models of equal amounts of data, so that units can be exchanged between groups.

A model of few frames is noisier than a model of many, and so is the average of few
models. If all units are cut to the frames, trials or models of the smallest unit, they
have the same error, and their labels can be exchanged. The surplus of a unit is left
out at random.

The choice is made once. An average over several choices would have less error for a
large unit than for the smallest one, whose choices are all the same, and labels of
units could not be exchanged: in simulations, a test at the 5 % level then rejects in 7
% of the cases.
"""

import numpy as np

from skawhmm.groups._refits import fitted_transformer
from skawhmm.sequences._checked import CheckedSequences
from skawhmm.sequences._trials import Trials
from skawhmm.utils._seeds import item_rng

# Amounts matched by fits to parts of the data; "models" leaves out models instead.
FITTED_MATCHES = ("frames", "trials")
MATCHES = (*FITTED_MATCHES, "models")


def check_match(match, sequences):
    """Return the amount of data that each unit is fitted to, or raise.

    Parameters
    ----------
    match : {"frames", "trials"}
        Amount that is matched.

    sequences : CheckedSequences
        Arrays or `Trials`, one per model.

    Returns
    -------
    amount : int
        Number of frames or trials of the smallest unit.
    """
    if match == "frames":
        return min(sum(map(len, _recordings(x))) for x in sequences)
    if not any(isinstance(x, Trials) for x in sequences):
        raise ValueError(
            "match='trials' needs Trials, got single recordings, which match='frames' "
            "cuts to a common length."
        )
    return min(len(_recordings(x)) for x in sequences)


def matched_models(hmm, sequences, match, seed):
    """Return models of equal amounts of data, chosen at random.

    Parameters
    ----------
    hmm : transformer or None
        Transformer that fits the models. It sees only the chosen parts of the
        sequences.

    sequences : CheckedSequences
        Arrays or `Trials`, one per model.

    match : {"frames", "trials"}
        Amount that is matched.

    seed : int
        Seed of the choice.

    Returns
    -------
    models : HMMBatch
        One model per sequence.
    """
    amount = check_match(match, sequences)
    choose = {"frames": _chosen_frames, "trials": _chosen_trials}[match]
    chosen = CheckedSequences(
        [choose(x, amount, item_rng(seed, 0, *_recordings(x))) for x in sequences],
        sequences.names,
    )
    return fitted_transformer(hmm, chosen, seed).transform(chosen)


def matched_rows(distances, design, seed):
    """Return the same number of models of each unit, chosen at random.

    Parameters
    ----------
    distances : ndarray of shape (n_models, n_models)
        Distances between models; the choice depends on them, not on the order in which
        the models are given.

    design : Design
        The comparison.

    seed : int
        Seed of the choices.

    Returns
    -------
    rows : ndarray of int of shape (n_units * amount,)
        The models, one unit after the other.
    """
    content = np.sort(distances, axis=1).sum(axis=1)
    order = np.lexsort((content, design.unit_of))
    units = np.split(order, np.cumsum(np.bincount(design.unit_of))[:-1])
    amount = min(map(len, units))
    return np.concatenate(
        [item_rng(seed, 0, content[own]).permutation(own)[:amount] for own in units]
    )


def _recordings(x):
    return list(x) if isinstance(x, Trials) else [x]


def _chosen_trials(x, amount, rng):
    """Return a given number of trials of a unit, in their order."""
    trials = _recordings(x)
    index = np.sort(rng.permutation(len(trials))[:amount])
    return Trials([trials[i] for i in index])


def _chosen_frames(x, amount, rng):
    """Return `amount` successive frames of a recording, or of trials."""
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
