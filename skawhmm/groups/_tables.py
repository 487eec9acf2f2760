"""Tables of states and transitions, one row per model and state."""

from typing import Any, NamedTuple

import numpy as np

from skawhmm.groups._alignment import HMMAligner
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
        Whose states the models are brought to first, by :class:`HMMAligner`; a fitted
        aligner is used as it is. By default models keep their own states, whose numbers
        mean something only if all models share them.

    Returns
    -------
    table : pandas.DataFrame
        The columns are "model", those of `info`, and "state", with

        - "occupancy": probability of the state;
        - "dwell_time": mean number of steps that a visit lasts;
        - "visits": mean number of visits per 100 steps;
        - "mean_0", ..., "sd_0", ...: means and standard deviations of the channels
          ("p_a", ... for symbols, "rate_0", ... for counts);
        - "distance", "matched_mass": with a reference, the distance to its state, and
          the mass of states that lie near enough to count as matched.

        States that a model does not have get occupancy 0 and NaN elsewhere.

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
    columns["state"] = np.nonzero(kept)[1]
    measured = {**state_measures(models), **models._described()}
    absent = models.weights == 0
    for name, values in measured.items():
        gaps = absent if name != "occupancy" else np.zeros_like(absent)
        columns[name] = np.where(gaps, np.nan, values)[kept]
    for name, values in (
        ("distance", alignment.distances),
        ("matched_mass", alignment.matched_mass),
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
        Whose states the models are brought to first, as in :func:`state_table`.

    Returns
    -------
    table : pandas.DataFrame
        The columns are "model", those of `info`, "state" and "next_state", with

        - "probability": that of the next state given the state; NaN where a model does
          not have the state;
        - "steps": mean number of such transitions per 100 steps.

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
    _, columns["state"], columns["next_state"] = np.nonzero(kept)
    columns["probability"] = transition_probabilities(models)[kept]
    columns["steps"] = (100 * models.weights[:, :, None] * models.transmats)[kept]
    return data_frame(columns, "transition_table")


class Compared(NamedTuple):
    """Models as they are compared, with what an alignment says of their states."""

    models: HMMBatch
    distances: Any = None
    matched_mass: Any = None


def aligned_to(models, reference):
    """Return models on the states of a reference; as they are if it is None.

    Parameters
    ----------
    models : HMMBatch
        The models.

    reference : None, str, HMMBatch or HMMAligner
        As in `state_table`.

    Returns
    -------
    compared : Compared
        The models, and how near their states are to those of the reference.
    """
    check_models("models", models)
    if reference is None:
        return Compared(models)
    if isinstance(reference, HMMAligner):
        found = reference.align(models)
    else:
        found = HMMAligner(reference, random_state=0).fit(models).align(models)
    return Compared(found.models, found.distances, found.matched_mass)


def state_measures(models):
    """Return occupancy, dwell time and visits of each state.

    Parameters
    ----------
    models : HMMBatch
        The models.

    Returns
    -------
    columns : dict of ndarray of shape (n_models, n_components)
        Shares of time, mean numbers of steps per visit (infinite if a state is never
        left), and mean numbers of visits per 100 steps.
    """
    leaving = 1 - np.diagonal(models.transmats, axis1=1, axis2=2)
    with np.errstate(divide="ignore"):
        dwell = 1 / np.maximum(leaving, 0)
    return {
        "occupancy": np.array(models.weights),
        "dwell_time": dwell,
        "visits": 100 * models.weights * leaving,
    }


def transition_probabilities(models):
    """Return transition matrices, NaN in the rows of states a model does not have.

    Parameters
    ----------
    models : HMMBatch
        The models.

    Returns
    -------
    transmats : ndarray of shape (n_models, n_components, n_components)
        The probabilities.
    """
    return np.where(models.weights[:, :, None] > 0, models.transmats, np.nan)


def _shared_columns(models, kept):
    """Return the number of the model and its info, repeated in each of its rows."""
    rows = np.nonzero(kept)[0]
    info = {name: c[rows] for name, c in models.info.items() if c.ndim == 1}
    return {"model": rows, **info}
