"""The arrays of models, checked and padded to one number of states."""

import numpy as np

from skawhmm.emissions._checks import check_finite, check_probabilities
from skawhmm.models._checks import as_arrays, check_model_shapes
from skawhmm.numerics._stationary import stationary_distribution


def checked_stacks(transmats, states, weights, startprobs, family=None):
    """Return the arrays of models, checked and padded.

    Parameters
    ----------
    transmats, weights, startprobs : array-like or sequence of array-like
        As in the constructor of `HMMBatch`.

    states : dict of array-like
        Parameters of the states, by name.

    family : type, default=None
        Family of the states, which knows the axes of its parameters; none is needed
        without parameters.

    Returns
    -------
    stacks : dict of ndarray
        One array per name, with the models on the first axis. What was not given
        follows from the transitions.

    n_components : ndarray of int of shape (n_models,)
        Number of states of each model.
    """
    given = {"transmats": as_arrays("transmats", transmats, (2,))}
    for name, values in states.items():
        given[name] = as_arrays(name, values, family.parameter_axes.get(name, (2,)))
    for name, values in (("weights", weights), ("startprobs", startprobs)):
        if values is not None:
            given[name] = as_arrays(name, values, (1,))
    counts = check_model_shapes(given, tuple(states))
    stacks = {
        name: arrays
        if isinstance(arrays, np.ndarray)
        else padded_stack(name, arrays, counts, counts.max())
        for name, arrays in given.items()
    }
    for name, stack in stacks.items():
        largest = family.largest_value(name) if name in states else np.inf
        check_finite(name, stack, largest)
    for name in ("transmats", "weights", "startprobs"):
        if name in stacks:
            stacks[name] = check_probabilities(name, stacks[name])
    if weights is None:
        start = stacks.get("startprobs", _equal_probabilities(counts))
        stacks["weights"] = stationary_distribution(stacks["transmats"], start)
    stacks.setdefault("startprobs", stacks["weights"])
    return stacks, counts


def padded_stack(name, arrays, counts, size):
    """Return one array for all models, with states that no path reaches at the end."""
    if name == "transmats":
        stack = np.tile(np.eye(size), (len(counts), 1, 1))
        for n, (array, count) in enumerate(zip(arrays, counts, strict=True)):
            stack[n, :count, :count] = array
        return stack
    stack = np.zeros((len(counts), size, *arrays[0].shape[1:]))
    for n, (array, count) in enumerate(zip(arrays, counts, strict=True)):
        stack[n, :count] = array
    return stack


def _equal_probabilities(counts):
    """Return equal probabilities of the states of each model."""
    real = np.arange(counts.max()) < counts[:, None]
    return real / counts[:, None]
