"""Tables of states and transitions, one row per model and state."""

from typing import Any, NamedTuple

import numpy as np

from skawhmm.groups._alignment import HMMAligner
from skawhmm.groups._support import LEAST_SEEN
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_models
from skawhmm.utils._tables import data_frame


def state_table(models: HMMBatch, reference: Any = None) -> Any:
    """Return a table with one row per model and state.

    Parameters
    ----------
    models : HMMBatch
        The models. Columns of their `info` with one value per model are repeated in
        each row.

    reference : {"barycenter", "medoid"}, HMMBatch or HMMAligner, default=None
        Model to whose states all models are aligned first, by :class:`HMMAligner`; a
        fitted aligner is used unchanged. By default models keep their own states, whose
        indices are comparable only if all models share their states.

    Returns
    -------
    table : pandas.DataFrame
        The columns are "model", the columns of `info`, and "state" (its symbol in
        visible chains, otherwise its index), with

        - "occupancy": probability of the state;
        - "dwell_time": mean number of steps per visit;
        - "visits": mean number of visits per 100 steps;
        - "dwell_time_beyond_data": for models that hold `counts`, whether the
          dwell time is an extrapolation, because it is longer than all of the model's
          data, or because they never left the state;
        - "mean_0", ..., "sd_0", ...: means and standard deviations of the channels
          ("p_a", ... for symbols, "rate_0", ... for counts);
        - "distance", "matched_mass": with a reference, the distance to its state, and
          the mass of states near enough to count as matched;
        - "match": with an aligner that has `n_resamples`, the fraction of refits in
          which the state is matched with the same state of the reference again.

        A state that a model does not have gets occupancy 0 and NaN in the other
        columns.

        Models that were fitted to sequences hold expected counts (``models.counts``).
        Occupancy, dwell times and visits are then computed from the data, whatever
        prior the models were shrunk to. A state with less than half an expected frame
        (half a step from it, for dwell times) has NaN.

    See Also
    --------
    transition_table : The same for transitions.
    state_effects : Differences between groups.

    Examples
    --------
    >>> from skawhmm import HMMBatch
    >>> from skawhmm.groups import state_table
    >>> models = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.1, 0.9]]],
    ...     means=[[[0.0], [5.0]], [[5.5], [0.5]]],
    ...     covars=[[[1.0], [4.0]], [[4.0], [1.0]]],
    ...     info={"subject": ["Ann", "Ben"]},
    ... )
    >>> table = state_table(models, reference=models[0])
    >>> table[["subject", "state", "occupancy", "dwell_time", "mean_0"]].round(2)
      subject  state  occupancy  dwell_time  mean_0
    0     Ann      0       0.67        10.0     0.0
    1     Ann      1       0.33         5.0     5.0
    2     Ben      0       0.83        10.0     0.5
    3     Ben      1       0.17         2.0     5.5
    """
    alignment = aligned_to(models, reference)
    models, n_states = alignment.models, alignment.models.transmats.shape[1]
    kept = np.arange(n_states) < models.n_components[:, None]
    columns = _shared_columns(models, kept)
    columns["state"] = named_states(models, np.nonzero(kept)[1])
    absent = unseen_states(models)
    for name, values in state_measures(models).items():
        columns[name] = values[kept]
    for name, values in models._described().items():
        columns[name] = np.where(absent, np.nan, values)[kept]
    for name, values in (
        ("distance", alignment.distances),
        ("matched_mass", alignment.matched_mass),
        ("match", alignment.confidence),
    ):
        if values is not None:
            columns[name] = values[kept]
    return data_frame(columns, "state_table")


def transition_table(models: HMMBatch, reference: Any = None) -> Any:
    """Return a table with one row per model and transition.

    Parameters
    ----------
    models : HMMBatch
        The models. Columns of their `info` with one value per model are repeated in
        each row.

    reference : {"barycenter", "medoid"}, HMMBatch or HMMAligner, default=None
        Model to whose states all models are aligned first, as in :func:`state_table`.

    Returns
    -------
    table : pandas.DataFrame
        The columns are "model", the columns of `info`, "state" and "next_state", with

        - "probability": probability of the next state given the state; NaN where a
          model does not have the state;
        - "steps": mean number of such transitions per 100 steps.

        Both come from the data, not from a prior, if the models hold expected counts
        (``models.counts``). The probabilities of a state with less than half an
        expected step from it are NaN.

    See Also
    --------
    state_table : The same for states.

    Examples
    --------
    >>> from skawhmm import HMMBatch
    >>> from skawhmm.groups import transition_table
    >>> model = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [0.2, 0.8]]],
    ...     means=[[[0.0], [5.0]]],
    ...     covars=[[[1.0], [1.0]]],
    ... )
    >>> transition_table(model).round(2)
       model  state  next_state  probability  steps
    0      0      0           0          0.9  60.00
    1      0      0           1          0.1   6.67
    2      0      1           0          0.2   6.67
    3      0      1           1          0.8  26.67
    """
    models = aligned_to(models, reference).models
    real = np.arange(models.transmats.shape[1]) < models.n_components[:, None]
    kept = real[:, :, None] & real[:, None, :]
    columns = _shared_columns(models, kept)
    _, *ends = np.nonzero(kept)
    columns["state"], columns["next_state"] = (named_states(models, k) for k in ends)
    columns["probability"] = transition_probabilities(models)[kept]
    columns["steps"] = (100 * step_fractions(models))[kept]
    return data_frame(columns, "transition_table")


def named_states(models, states):
    """Return states by name, if they have names; -1 becomes an empty name."""
    if models.state_names is None:
        return states
    return np.array([*models.state_names, ""], dtype=object)[states]


class Compared(NamedTuple):
    """Models on the states that are compared, and how well they match."""

    models: HMMBatch
    distances: Any = None
    matched_mass: Any = None
    confidence: Any = None


def aligned_to(models, reference):
    """Return models on the states of a reference; unchanged if it is None."""
    check_models("models", models)
    if reference is None:
        return Compared(models)
    if isinstance(reference, HMMAligner):
        found = reference.align(models)
    else:
        found = HMMAligner(reference, random_state=0).fit(models).align(models)
    return Compared(found.models, found.distances, found.matched_mass, found.confidence)


def state_measures(models):
    """Return occupancy, dwell time and visits of each state.

    Parameters
    ----------
    models : HMMBatch
        The models.

    Returns
    -------
    columns : dict of ndarray of shape (n_models, n_components)
        Fractions of time, mean numbers of steps per visit (infinite if a state is never
        left), and mean numbers of visits per 100 steps; NaN for states that the model
        does not have. If models know their counts, also whether dwell times are longer
        than the data can show.
    """
    absent, counts = unseen_states(models), models.counts
    chains = transition_probabilities(models)
    leaving = 1 - np.diagonal(chains, axis1=1, axis2=2)
    with np.errstate(divide="ignore"):
        dwell = 1 / np.maximum(leaving, 0)
    steps = step_fractions(models)
    exits = steps.sum(axis=2) - np.diagonal(steps, axis1=1, axis2=2)
    columns = {
        "occupancy": occupancies(models),
        "dwell_time": dwell,
        "visits": np.where(absent, np.nan, 100 * exits),
    }
    if counts is not None:
        exits = leaving * counts.transitions.sum(axis=2)
        frames = counts.states.sum(axis=1, keepdims=True)
        columns["dwell_time_beyond_data"] = (exits < LEAST_SEEN) | (dwell > frames)
    return columns


def unseen_states(models):
    """Return which states a model does not have, or has not visited in its data."""
    if models.counts is None:
        return models.weights == 0
    return models.counts.states < LEAST_SEEN


def occupancies(models):
    """Return the fraction of time in each state."""
    if models.counts is None:
        return np.array(models.weights)
    states = models.counts.states
    return states / states.sum(axis=1, keepdims=True)


def step_fractions(models):
    """Return the fraction of each transition among all steps."""
    if models.counts is None:
        return models.weights[:, :, None] * models.transmats
    steps = models.counts.transitions
    total = steps.sum(axis=(1, 2), keepdims=True)
    return np.where(total > 0, steps / np.where(total > 0, total, 1), np.nan)


def transition_probabilities(models):
    """Return transition matrices, NaN in the rows of states a model does not have."""
    if models.counts is None:
        return np.where(models.weights[:, :, None] > 0, models.transmats, np.nan)
    steps = models.counts.transitions
    total = steps.sum(axis=2, keepdims=True)
    seen = total >= LEAST_SEEN
    return np.where(seen, steps / np.where(seen, total, 1), np.nan)


def _shared_columns(models, kept):
    """Return the index of the model and its info, repeated in each of its rows."""
    rows = np.nonzero(kept)[0]
    info = {name: c[rows] for name, c in models.info.items() if c.ndim == 1}
    return {"model": rows, **info}
