"""Persistent names of states, and differences from the reference."""

from itertools import count
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from skawhmm.distances._registration import optimal_registrations, power_cost
from skawhmm.models._batch import HMMBatch

# States with less probability are estimated from too few frames to be new.
LEAST_WEIGHT = 0.05

# Fraction of states of calibration models whose distance to the reference is usual: in
# some windows a state is not visited, and another one is split.
USUAL_FRACTION = 0.95

# Largest number of new names that a monitor gives.
MOST_NEW = 32

# Least spread by which a difference is divided, as a fraction of the mean spread.
LEAST_SPREAD = 0.1


def state_letters(n_states):
    """Return the names A, B, ..., Z, A1, B1, ... of states."""
    return [
        ascii_uppercase[k % 26] + (str(k // 26) if k >= 26 else "")
        for k in range(n_states)
    ]


def registered(models, a, b):
    """Return registrations of pairs of models, and distances between their states."""
    gaps = power_cost(models.emission.cross(a, b), 1.0)
    return optimal_registrations(models.weights, models.transmats, a, b, gaps), gaps


class Registered(NamedTuple):
    """Models registered to the reference, with plans and distances of states.

    Plans and distances have axes for the models, the states of a model and the states
    of the reference.
    """

    plans: np.ndarray
    gaps: np.ndarray
    weights: np.ndarray
    transmats: np.ndarray


def registered_to(reference, models):
    """Return models registered to the reference."""
    batch = HMMBatch.concatenate([reference, models])
    others = np.arange(1, len(batch))
    plans, gaps = registered(batch, others, np.zeros(len(others), int))
    return Registered(plans, gaps, batch.weights[1:], batch.transmats[1:])


def usual_gap(found):
    """Return the usual distance of states to their matches in the reference."""
    gaps = []
    for plan, gap, weights, _ in zip(*found, strict=True):
        rows, columns = linear_sum_assignment(plan, maximize=True)
        used = weights[rows] >= LEAST_WEIGHT
        gaps.append(gap[rows[used], columns[used]])
    return float(np.quantile(np.concatenate(gaps), USUAL_FRACTION))


class StateNames:
    """Gives the states of successive models the names of the reference.

    The states of a model are registered to the states of the reference, and to the
    states of the previous model, so that a slowly drifting state keeps its name. A
    state that is farther from both than `reach` gets a new name, and is known from then
    on.

    Parameters
    ----------
    reference : HMMBatch
        One model.

    names : list of str
        Names of its states.

    reach : float
        Distance up to which two states count as the same.
    """

    def __init__(self, reference, names, reach):
        self.n_reference = len(names)
        self.reach = reach
        # Models and the names of their states; the last model comes second.
        self.anchors = [reference, reference]
        self.known = [[*names], [*names]]

    def name(self, model):
        """Name the states of the next model.

        Parameters
        ----------
        model : HMMBatch
            One model.

        Returns
        -------
        names : list of str
            Names of its states, empty for states without probability.

        fresh : list of str
            The names that are new.

        found : Registered
            The model, registered to the reference.
        """
        batch = HMMBatch.concatenate([model, *self.anchors])
        others = np.arange(1, len(batch))
        plans, gaps = registered(batch, np.zeros(len(others), int), others)
        weights = model.weights[0]
        matched = [
            self._matched(plan[:, : len(known)], gap[:, : len(known)], known)
            for plan, gap, known in zip(plans, gaps, self.known[:2], strict=False)
        ]
        names, fresh = [], []
        for i, weight in enumerate(weights):
            name, gap = min((m[i] for m in matched), key=lambda pair: pair[1])
            if gap > self.reach:
                name, gap = self._nearest(gaps[:, i])
            if gap > self.reach and weight >= LEAST_WEIGHT:
                name = self._new_name(model, i)
                fresh.append(name)
            names.append(name if weight > 0 else "")
        self.anchors[1], self.known[1] = model, names
        found = plans[:1], gaps[:1], batch.weights[:1], batch.transmats[:1]
        return names, fresh, Registered(*found)

    @staticmethod
    def _matched(plan, gaps, known):
        """Return the name and the distance of each state, one to one by the plan."""
        rows, columns = linear_sum_assignment(plan, maximize=True)
        found = [("", np.inf)] * len(plan)
        for i, j in zip(rows, columns, strict=True):
            if known[j]:
                found[i] = known[j], float(gaps[i, j])
        return found

    def _nearest(self, gaps):
        """Return the nearest known name of a state, and the distance."""
        # States of the same model that were just named have no gaps yet.
        pairs = [
            (float(row[j]), name)
            for row, names in zip(gaps, self.known, strict=False)
            for j, name in enumerate(names)
            if name
        ]
        gap, name = min(pairs)
        return name, gap

    def _new_name(self, model, i):
        n_new = len(self.anchors) - 2
        if n_new >= MOST_NEW:
            return "other"
        taken = {name for names in self.known for name in names}
        letters = (name for k in count(1) for name in state_letters(26 * k))
        name = next(letter for letter in letters if letter not in taken)
        self.anchors.append(model)
        self.known.append(
            [name if j == i else "" for j in range(len(model.weights[0]))]
        )
        return name


class Differences:
    """Which state and which transition of a model differ most from the reference.

    Models are registered to the reference. The cost of each state of the reference, and
    the differences of transitions, are compared with the calibration models, in units
    of their spread.
    """

    def __init__(self, found, n_states):
        self.n_states = n_states
        costs, moves = self._transferred(found)
        self.centres = np.median(costs, axis=0), np.median(moves, axis=0)
        self.spreads = _spreads(costs), _spreads(moves)

    def largest(self, found):
        """Return the state and the transition of a registered model."""
        costs, moves = (
            ((part - centre) / spread)[0]
            for part, centre, spread in zip(
                self._transferred(found), self.centres, self.spreads, strict=True
            )
        )
        return int(np.argmax(costs)), divmod(int(np.argmax(np.abs(moves))), len(costs))

    def _transferred(self, found):
        """Return costs (n, k) and transitions (n, k, k) by states of the reference."""
        plans, size = found.plans, self.n_states
        costs = np.sum(plans * found.gaps, axis=1)
        # A state without probability is not registered.
        tiny = np.finfo(float).tiny
        back = plans / np.maximum(plans.sum(axis=1, keepdims=True), tiny)
        forth = plans / np.maximum(plans.sum(axis=2, keepdims=True), tiny)
        moves = np.einsum("nij,nik,nkl->njl", back, found.transmats, forth)
        return costs[:, :size], moves[:, :size, :size]


def _spreads(parts):
    """Return median absolute deviations, none much smaller than their mean."""
    # Medians ignore the few windows in which a state is not visited.
    spreads = np.median(np.abs(parts - np.median(parts, axis=0)), axis=0)
    return np.maximum(spreads, LEAST_SPREAD * spreads.mean() + np.finfo(float).tiny)
