"""Designs of comparisons: groups, units, strata and covariates."""

from typing import Any, NamedTuple

import numpy as np

from skawhmm.models._batch import HMMBatch
from skawhmm.utils._numbers import check_one_type, label_array, real_array

# A direction with a residual below this fraction counts as explained by a basis.
RANK_TOLERANCE = 1e-8


class Design(NamedTuple):
    """A comparison of groups of units, each of which is one model or several.

    `names` are the groups; `codes` and `strata` have one number per unit. `unit_of` is
    the unit of each model. `covariates` has one row per unit.
    """

    names: np.ndarray
    codes: np.ndarray
    strata: np.ndarray
    covariates: np.ndarray
    unit_of: np.ndarray

    @property
    def counts(self):
        """Number of units per group."""
        return np.bincount(self.codes, minlength=len(self.names))

    @property
    def cells(self):
        """Number of units per stratum and group."""
        return np.stack(
            [
                np.bincount(self.codes[self.strata == s], minlength=len(self.names))
                for s in np.unique(self.strata)
            ]
        )

    @property
    def pairs(self):
        """All pairs of groups, as indices."""
        return list(zip(*np.triu_indices(len(self.names), 1), strict=True))

    @property
    def has_complete_blocks(self):
        """Whether there are strata, each with one unit of every group."""
        cells = self.cells
        return len(cells) > 1 and bool((cells == 1).all())

    @property
    def is_exchangeable(self):
        """Whether any stratum has units of several groups."""
        return bool(((self.cells > 0).sum(axis=1) > 1).any())

    def averaged(self, values):
        """Return values averaged over the models of each unit, ignoring NaN.

        Parameters
        ----------
        values : ndarray of shape (n_models, n_columns)
            One row per model.

        Returns
        -------
        averages : ndarray of shape (n_units, n_columns)
            One row per unit; NaN where all its models have NaN.
        """
        known = ~np.isnan(values)
        sums = self.summed(np.where(known, values, 0.0))
        sizes = self.summed(known)
        return np.where(sizes > 0, sums / np.maximum(sizes, 1), np.nan)

    def summed(self, values):
        """Return values summed over the models of each unit.

        Parameters
        ----------
        values : ndarray of shape (n_models, n_columns)
            One row per model.

        Returns
        -------
        sums : ndarray of shape (n_units, n_columns)
            One row per unit.
        """
        sums = np.zeros((len(self.codes), values.shape[1]))
        np.add.at(sums, self.unit_of, values)
        return sums

    def ordered(self, order):
        """Return the comparison with its units in another order, one model per unit.

        Parameters
        ----------
        order : ndarray of int of shape (n_units,)
            The unit in each place.

        Returns
        -------
        design : Design
            The comparison.
        """
        return self._replace(
            codes=self.codes[order],
            strata=self.strata[order],
            covariates=self.covariates[order],
            unit_of=np.arange(len(order)),
        )

    def chosen(self, groups):
        """Return the comparison of some of the groups, and the units in it.

        Parameters
        ----------
        groups : sequence of int
            Indices of the groups.

        Returns
        -------
        design : Design
            The smaller comparison, one model per unit.

        units : ndarray of int
            The units of this design that are in the smaller one.
        """
        units = np.flatnonzero(np.isin(self.codes, groups))
        _, codes = np.unique(self.codes[units], return_inverse=True)
        design = self.ordered(units)._replace(
            names=self.names[list(groups)], codes=codes
        )
        return design, units

    def bases(self):
        """Return orthonormal bases of group differences, strata and covariates.

        Returns
        -------
        effect : ndarray of shape (n_units, n_groups - 1)
            Differences between groups, orthogonal to the other two.

        blocks : ndarray of shape (n_units, n_strata)
            Means of the strata. Permutations within strata do not change them.

        nuisance : ndarray of shape (n_units, n_directions)
            Directions that covariates add to the strata.
        """
        blocks = _indicators(self.strata)
        blocks = blocks / np.sqrt(blocks.sum(axis=0))
        nuisance = _new_directions(self.covariates, blocks)
        known = np.concatenate([blocks, nuisance], axis=1)
        groups = _indicators(self.codes)
        effect = _new_directions(groups, known)
        if effect.shape[1] < len(self.names) - 1:
            names = ", ".join(map(str, self.names))
            raise ValueError(
                f"groups must not follow from strata and covariates, got groups "
                f"({names}) of which these leave only {effect.shape[1] + 1} distinct."
            )
        return effect, blocks, nuisance


def _indicators(codes):
    return (codes[:, None] == np.unique(codes)).astype(float)


def _new_directions(columns, known):
    """Return an orthonormal basis of what columns add to a known one."""
    rest = columns - known @ (known.T @ columns)
    scale = np.linalg.norm(columns, axis=0).max(initial=0.0)
    left, sizes, _ = np.linalg.svd(rest, full_matrices=False)
    return left[:, sizes > RANK_TOLERANCE * scale]


def check_design(models, groups, units=None, strata=None, covariates=None):
    """Return a comparison of groups, or raise if it cannot be made.

    Parameters
    ----------
    models : HMMBatch or ndarray
        The models or their distances, one entry per model.

    groups, units, strata : str or array-like of shape (n_models,)
        Labels of the models, or the name of a column of their `info`. Units and strata
        may be None: each model is then a unit, and all are one stratum.

    covariates : str, array-like of shape (n_models[, n_covariates]), or None
        Numbers per model whose influence is removed.

    Returns
    -------
    design : Design
        The comparison.
    """
    n_models = len(models)
    labels = check_labels("groups", groups, models)
    names, codes = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise ValueError(f"groups must name at least 2 groups, got only '{names[0]}'.")
    if len(names) == n_models and labels.dtype.kind == "f":
        raise ValueError(
            f"groups must hold labels of groups, got {n_models} different numbers for "
            f"{n_models} models. A measurement, such as an age, belongs in covariates."
        )
    if units is None:
        unit_of = np.arange(n_models)
    else:
        unit_of = np.unique(check_labels("units", units, models), return_inverse=True)[
            1
        ]
        _check_constant("units", "group", unit_of, labels)
    if strata is None:
        blocks = np.zeros(n_models, dtype=np.int64)
    else:
        given = check_labels("strata", strata, models)
        blocks = np.unique(given, return_inverse=True)[1]
        _check_constant("units", "stratum", unit_of, given)
    firsts = np.unique(unit_of, return_index=True)[1]
    counts = np.bincount(codes[firsts])
    if counts.min() < 2:
        raise ValueError(
            "Each of the groups must hold at least 2 units (models, if units is None), "
            f"got 1 in '{names[counts.argmin()]}'."
        )
    numbers = check_covariates(covariates, models)
    design = Design(names, codes[firsts], blocks[firsts], np.empty((0, 0)), unit_of)
    design = design._replace(covariates=design.averaged(numbers))
    if not design.is_exchangeable:
        raise ValueError(
            "strata must hold units of at least 2 groups, got 1 group in each stratum: "
            "there is nothing to permute."
        )
    return design


def check_labels(name, labels, models, of="model"):
    """Return one label per model, or raise.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    labels : str or array-like of shape (n_models,)
        The labels, or the name of a column of the `info` of the models.

    models : HMMBatch or ndarray
        The models or their distances.

    of : str, default="model"
        What each label belongs to, for messages.

    Returns
    -------
    labels : ndarray of shape (n_models,)
        The labels.
    """
    given = _column(name, labels, models)
    array = label_array(name, given, len(models), of)
    check_one_type(name, given, of)
    return array.astype(str) if array.dtype == object else array


def check_covariates(covariates, models):
    """Return covariates as columns of finite numbers, or raise.

    Parameters
    ----------
    covariates : str, array-like of shape (n_models[, n_covariates]), or None
        The argument as the caller gave it.

    models : HMMBatch or ndarray
        The models or their distances.

    Returns
    -------
    covariates : ndarray of shape (n_models, n_covariates)
        The numbers, in units of their own spread.
    """
    if covariates is None:
        return np.empty((len(models), 0))
    given = _column("covariates", covariates, models)
    try:
        array = real_array("covariates", given)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{error} Give categories as strata, or as columns of 0 and 1."
        ) from error
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or len(array) != len(models):
        raise ValueError(
            f"covariates must have one row per model ({len(models)} models), got shape "
            f"{array.shape}."
        )
    if not np.isfinite(array).all():
        n, column = (int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"covariates must be finite, got {array[n, column]} for model {n}."
        )
    centered = array - array.mean(axis=0)
    spread = centered.std(axis=0)
    return centered / np.where(spread > 0, spread, 1)


def _column(name, values, models):
    """Return the column of `info` that a string names; anything else unchanged."""
    if isinstance(values, HMMBatch):
        raise TypeError(
            f"{name} must hold one entry per model, got an HMMBatch. To compare two "
            "batches a and b, write X = HMMBatch.concatenate([a, b]) and "
            f'{name}=["a"] * len(a) + ["b"] * len(b).'
        )
    if not isinstance(values, str):
        return values
    info: Any = getattr(models, "info", {})
    if values not in info:
        raise ValueError(
            f"{name} must hold one entry per model or name a column of the info of the "
            f"models, one of {sorted(info)}, got {values!r}."
        )
    return info[values]


def _check_constant(name, what, unit_of, labels):
    """Raise if the models of a unit have different labels."""
    firsts = np.unique(unit_of, return_index=True)[1]
    other = np.flatnonzero(labels != labels[firsts][unit_of])
    if len(other):
        n = int(other[0])
        first = int(firsts[unit_of[n]])
        raise ValueError(
            f"{name} must lie within one {what} each, got models {first} and {n} of "
            f"one unit in '{labels[first]}' and '{labels[n]}'."
        )
