"""States of any kind, given only the distances between them."""

import numpy as np

from skawhmm.emissions._base import Emission
from skawhmm.utils._checks import LARGEST_VALUE
from skawhmm.utils._digest import content_digest
from skawhmm.utils._numbers import real_array

# A table of distances may be asymmetric by this fraction of its largest entry.
SYMMETRY_TOLERANCE = 1e-8


class StateCosts(Emission):
    """States that are compared by a user-defined distance.

    Parameters
    ----------
    states : ndarray of shape (n_models, n_components, ...)
        What `cost` takes for each state.

    sizes : ndarray of shape (n_models,)
        Number of states of each model. Later states are padding and never compared.

    cost : callable
        Takes two stacks of equally many states and returns one distance per pair.
    """

    name = "custom"
    parameter_names = ("states",)
    states: np.ndarray
    is_stored = False

    def __init__(self, states, sizes, cost):
        self.states = states
        self.sizes = sizes
        self.cost = cost

    @property
    def n_features(self):
        """Number of values that describe a state."""
        return int(np.prod(self.states.shape[2:]))

    @property
    def traits(self):
        """What `repr` shows of the family, by name."""
        return {"n_features": self.n_features, "states": self.name}

    @property
    def fingerprint(self):
        """Bytes that distinguish families with equal parameters."""
        try:
            return content_digest(self.cost).encode()
        except TypeError:
            # Results are not kept on disk for such a cost, so a name will do.
            name = getattr(self.cost, "__qualname__", type(self.cost).__qualname__)
            return f"{self.cost.__module__}.{name}".encode()

    def __getitem__(self, index):
        return StateCosts(self.states[index], self.sizes[index], self.cost)

    def checked(self, X, *, caller, n_features=None):
        """Raise, because only the distances between states are known."""
        self._lacking("a density")

    def padded(self, size):
        """Return the family with `size` states per model, the new ones all zero."""
        short = [(0, 0), (0, size - self.states.shape[1])]
        axes = short + [(0, 0)] * (self.states.ndim - 2)
        return StateCosts(np.pad(self.states, axes), self.sizes, self.cost)

    @classmethod
    def concatenate(cls, families):
        """Return one family with the models of all, which have equally many states."""
        first = families[0]
        for n, family in enumerate(families):
            if family.cost is not first.cost and family.cost != first.cost:
                raise ValueError(
                    "All batches must have the same cost between states, got another "
                    f"one in batch {n} than in batch 0."
                )
        states = np.concatenate([family.states for family in families])
        sizes = np.concatenate([family.sizes for family in families])
        return cls(states, sizes, first.cost)

    def merged(self, weights):
        """Raise, because only the distances between states are known."""
        self._lacking("parameters that can be averaged")

    def described(self, channels):
        """Return nothing: a cost may take states of any form."""
        return {}

    def ground_costs(self):
        """Return the family, because a cost takes states as the user gave them."""
        return self

    def cross(self, index_a, index_b):
        """Return squared distances (n_pairs, n_components, n_components) of states."""
        states = np.arange(self.states.shape[1])
        real_a = states < self.sizes[index_a, None]
        real_b = states < self.sizes[index_b, None]
        pair, i, j = np.nonzero(real_a[:, :, None] & real_b[:, None, :])
        left, right = self.states[index_a[pair], i], self.states[index_b[pair], j]
        cost = np.zeros((index_a.size, states.size, states.size))
        cost[pair, i, j] = check_costs(self.cost(left, right), len(pair)) ** 2
        return cost

    def within(self, index_a, index_b):
        """Return the squared distances within models a."""
        cost = self.cross(index_a, index_a)
        states = np.arange(cost.shape[1])
        cost[:, states, states] = 0.0
        return cost


class CostTable:
    """Distances between numbered states, looked up in a table.

    Parameters
    ----------
    table : ndarray of shape (n_states, n_states)
        The distances.
    """

    def __init__(self, table):
        self.table = table

    def __call__(self, left, right):
        return self.table[left, right]

    def __eq__(self, other):
        return isinstance(other, CostTable) and np.array_equal(self.table, other.table)

    __hash__ = None  # type: ignore[assignment]


def check_state_costs(cost, states, sizes):
    """Return the family of states with a distance of the user.

    Parameters
    ----------
    cost : callable or array-like of shape (n_states, n_states)
        The distance, or a table of the distances between numbered states.

    states : array-like, list of array-like, or None
        What describes each state; None numbers the states of all models.

    sizes : ndarray of shape (n_models,)
        Number of states of each model.

    Returns
    -------
    family : StateCosts
        The states.
    """
    numbered = not callable(cost)
    if states is None:
        if not numbered:
            raise ValueError(
                "states must be given with a callable cost, which takes two of them, "
                "got None."
            )
        numbers = np.arange(sizes.sum())
        states = np.split(numbers, np.cumsum(sizes)[:-1])
    stack = _stacked(states, sizes)
    if numbered:
        cost = CostTable(check_table("cost", "state", cost))
        if stack.dtype.kind not in "iu" or stack.ndim != 2:
            raise ValueError(
                "states must hold the number of each state in the table of costs, got "
                f"{stack.dtype} of shape {stack.shape}."
            )
        if stack.min() < 0 or stack.max() >= len(cost.table):
            raise ValueError(
                f"states must be numbers from 0 to {len(cost.table) - 1}, as cost has "
                f"shape {cost.table.shape}, got {stack.min()} to {stack.max()}."
            )
    return StateCosts(stack, sizes, cost)


def _stacked(states, sizes):
    """Return the states of all models as one array, padded by zeros."""
    entries = [np.asarray(entry) for entry in states]
    counts = [len(entry) if entry.ndim else 0 for entry in entries]
    if counts != sizes.tolist():
        raise ValueError(
            "states must hold one entry per state of each model, as transmats do, got "
            f"{counts} for models with {sizes.tolist()} states."
        )
    tails = {entry.shape[1:] for entry in entries}
    if len(tails) > 1 or any(entry.dtype.kind not in "biuf" for entry in entries):
        raise ValueError(
            "states must be numeric and all have one shape, got the shapes "
            f"{sorted(tails)} and dtype {entries[0].dtype}."
        )
    dtype = np.result_type(*entries)
    stack = np.zeros((len(sizes), sizes.max(), *tails.pop()), dtype)
    for n, entry in enumerate(entries):
        stack[n, : len(entry)] = entry
    if not np.isfinite(stack).all():
        n = int(np.argwhere(~np.isfinite(stack))[0][0])
        raise ValueError(f"states must be finite, got NaN or infinity in model {n}.")
    return stack


def check_table(name, item, table):
    """Return a table of distances, exactly symmetric, or raise if it is not valid.

    Parameters
    ----------
    name, item : str
        The argument as the caller knows it, and what its rows describe.

    table : array-like of shape (n_items, n_items)
        The value to check.

    Returns
    -------
    table : ndarray of shape (n_items, n_items)
        The distances.
    """
    table = np.array(real_array(name, table))
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not len(table):
        kinds = "a callable or a square array" if item == "state" else "a square array"
        raise ValueError(
            f"{name} must be {kinds} with the distance between any two {item}s, got "
            f"shape {table.shape}."
        )
    check_costs(table.ravel(), table.size, name, item)
    gap = np.abs(table - table.T).max()
    if gap > SYMMETRY_TOLERANCE * table.max():
        raise ValueError(f"{name} must be symmetric, got entries that differ by {gap}.")
    if table.diagonal().any():
        n = int(np.argmax(table.diagonal() != 0))
        raise ValueError(
            f"{name} must be 0 between a {item} and itself, got {table[n, n]} for "
            f"{item} {n}."
        )
    return (table + table.T) / 2


def check_costs(values, n_pairs, name="cost", item="state"):
    """Return the distances that a cost of the user gave, or raise if they are wrong.

    Parameters
    ----------
    values : array-like
        What the cost returned.

    n_pairs : int
        Number of distances that it was asked for.

    name, item : str
        The argument as the caller knows it, and what the distances are between.

    Returns
    -------
    values : ndarray of shape (n_pairs,)
        The distances.
    """
    values = np.asarray(values, dtype=float)
    if values.shape != (n_pairs,):
        raise ValueError(
            "cost must return one distance per pair of states, an array of shape "
            f"{(n_pairs,)}, got shape {values.shape}."
        )
    wrong = ~((values >= 0) & (values <= LARGEST_VALUE))
    if wrong.any():
        raise ValueError(
            f"{name} must be finite, not negative and at most {LARGEST_VALUE:g}, got "
            f"{values[np.argmax(wrong)]} between two {item}s."
        )
    return values
