"""Designs of trials within units, and permutations of their conditions."""

from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from skawhmm.groups._design import Design, check_labels

# Largest number of draws until every condition of a unit has a trial with a transition.
MAX_DRAWS = 10_000


class TrialDesign(NamedTuple):
    """Trials of units under several conditions.

    `names` are the conditions, `codes` and `units` have one number per trial. `usable`
    marks the trials with a transition: a model needs at least one. Labels that leave a
    model without one are not drawn; the others are equally likely, so the observed
    labels are one of a set of exchangeable labellings.
    """

    names: np.ndarray
    codes: np.ndarray
    units: np.ndarray
    unit_names: np.ndarray
    usable: np.ndarray

    @property
    def members(self):
        """The trials of each unit."""
        return [np.flatnonzero(self.units == u) for u in range(len(self.unit_names))]

    @property
    def models(self):
        """The comparison of the models, one per unit and condition."""
        n_units, n_groups = len(self.unit_names), len(self.names)
        strata = np.repeat(np.arange(n_units), n_groups)
        codes = np.tile(np.arange(n_groups), n_units)
        rows = np.arange(len(codes))
        return Design(self.names, codes, strata, np.empty((len(codes), 0)), rows)

    def chosen(self, groups):
        """Return the comparison of some of the conditions, and its trials."""
        trials = np.flatnonzero(np.isin(self.codes, groups))
        _, codes = np.unique(self.codes[trials], return_inverse=True)
        part = self._replace(
            names=self.names[list(groups)],
            codes=codes,
            units=self.units[trials],
            usable=self.usable[trials],
        )
        return part, trials

    @property
    def cells(self):
        """Number of trials per unit and condition."""
        n_names = len(self.names)
        return np.stack(
            [np.bincount(self.codes[own], minlength=n_names) for own in self.members]
        )

    def arrangements(self):
        """Return all usable arrangements of the labels, the observed one first."""
        choices = []
        for own in self.members:
            labels = _arrangements(self.codes[own].tolist())
            choices.append([x for x in labels if self._is_usable(own, np.array(x))])
        rows = np.empty((prod(map(len, choices)), len(self.codes)), dtype=np.int64)
        for row, labels in zip(rows, product(*choices), strict=True):
            for own, part in zip(self.members, labels, strict=True):
                row[own] = part
        same = (rows == self.codes).all(axis=1)
        return np.concatenate([rows[same], rows[~same]])

    def drawn(self, rng):
        """Return labels that are permuted within units."""
        labels = self.codes.copy()
        for own in self.members:
            for _ in range(MAX_DRAWS):
                drawn = rng.permutation(self.codes[own])
                if self._is_usable(own, drawn):
                    labels[own] = drawn
                    break
        return labels

    def _is_usable(self, own, labels):
        """Return whether every condition of a unit has a trial with a transition."""
        seen = labels[self.usable[own]]
        return len(np.unique(seen)) == len(self.names)


def _arrangements(labels):
    """Return all different orders of labels."""
    if not labels:
        return [()]
    found = []
    for first in sorted(set(labels)):
        rest = list(labels)
        rest.remove(first)
        found += [(first, *others) for others in _arrangements(rest)]
    return found


def check_trial_design(recordings, groups, units, within):
    """Return the conditions of trials, or raise.

    Parameters
    ----------
    recordings : list of ndarray
        The trials.

    groups : array-like of shape (n_trials,)
        Conditions.

    units : array-like of shape (n_trials,) or None
        Units; None if all trials are of one unit.

    within : bool
        Whether conditions must vary within units.

    Returns
    -------
    design : TrialDesign or None
        The conditions; None if each unit has only one condition.
    """
    labels = check_labels("groups", groups, recordings, of="trial")
    names, codes = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise ValueError(f"groups must name at least 2 groups, got only '{names[0]}'.")
    if units is None:
        unit_names, numbers = np.zeros(1, int), np.zeros(len(codes), int)
    else:
        given = check_labels("units", units, recordings, of="trial")
        unit_names, numbers = np.unique(given, return_inverse=True)
    counts = np.zeros((len(unit_names), len(names)), dtype=np.int64)
    np.add.at(counts, (numbers, codes), 1)
    constant = (counts > 0).sum(axis=1) == 1
    if constant.all() and not within:
        return None
    if constant.all():
        raise ValueError(
            "groups must vary within units if trials are permuted within them, got one "
            f"group in each of the {len(constant)} units. refit=True permutes units."
        )
    if (counts == 0).any():
        unit, group = (int(k) for k in np.argwhere(counts == 0)[0])
        raise ValueError(
            "Every unit must have trials of every group, if any unit has several, got "
            f"unit '{unit_names[unit]}' without '{names[group]}'."
        )
    if (counts == 1).all():
        raise ValueError(
            "Some unit must have 2 or more trials of a group, got 1 trial per unit and "
            "group. Models of single trials can be exchanged: fit them, and pass them "
            "with strata instead of units."
        )
    usable = np.array([len(x) > 1 for x in recordings])
    seen = np.zeros_like(counts)
    np.add.at(seen, (numbers[usable], codes[usable]), 1)
    if (seen == 0).any():
        unit, group = (int(k) for k in np.argwhere(seen == 0)[0])
        raise ValueError(
            "Every unit must have a trial of at least 2 frames in every group, got "
            f"unit '{unit_names[unit]}' with none in '{names[group]}'."
        )
    return TrialDesign(names, codes, numbers, unit_names, usable)
