"""Test whether groups differ in the amount of data that their models were fitted to.

A model fitted to little data has a larger error than a model fitted to much data, so
the two have different distributions even if both come from one process. Labels of
models are exchangeable only if the amounts of data are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy import stats

from skawhmm.groups._permutations import LEVEL, permuted, pvalues
from skawhmm.groups._support import NO_SPREAD
from skawhmm.sequences._forms import warn_caller

# Columns of `info` that count data.
AMOUNTS = ("n_timesteps", "n_trials")

# Advice on unequal amounts.
REMEDIES = {
    "n_timesteps": (
        "Fit all models to the same number of frames: give the recordings to "
        "hmm_group_test, with match='frames', or cut them to a common length first, as "
        "in [x[:n] for x in X] with n = min(map(len, X))."
    ),
    "n_trials": (
        "Give the trials to hmm_group_test: with refit=True if conditions vary within "
        "units, with match='trials' if they do not."
    ),
    "models_per_unit": "Take the same number of models of each unit.",
}

# A warning is given if the median amounts of two groups differ by more than this
# factor: the errors of their fits then differ as well.
NOTABLE_RATIO = 1.1


@dataclass(frozen=True, eq=False)
class Amounts:
    """How much data the units of each group have.

    Parameters
    ----------
    name : str
        The column of `info` that counts them, such as "n_timesteps".

    medians : dict of float
        Median amount per model of the units of each group.

    pvalue : float
        Test by permutation of ranks, within strata, of whether the amounts differ
        between groups.
    """

    name: str
    medians: Mapping[str, float]
    pvalue: float

    @property
    def varies(self) -> bool:
        """Whether the groups have different medians."""
        return len(set(self.medians.values())) > 1

    @property
    def differs(self) -> bool:
        """Whether the amounts of groups differ significantly and notably."""
        values = list(self.medians.values())
        return self.pvalue <= LEVEL and max(values) > NOTABLE_RATIO * min(values)

    def line(self) -> str:
        """Return the amounts as a line of text."""
        medians = ", ".join(f"{name}: {x:g}" for name, x in self.medians.items())
        return f"median {self.name} ({medians}), p = {self.pvalue:.4g}"


def compared_amounts(models, design, n_permutations, seed):
    """Return how much data the units of each group have.

    Parameters
    ----------
    models : HMMBatch or ndarray
        The models, or distances, which hold no amounts.

    design : Design
        The comparison.

    n_permutations : int
        Number of permutations.

    seed : tuple of int
        Their seed.

    Returns
    -------
    amounts : dict of Amounts
        By name: the numbers in `info`, and "models_per_unit" if units have several
        models. Empty if no amounts are known.
    """
    found = {}
    info = getattr(models, "info", {})
    per_unit = np.bincount(design.unit_of).astype(float)
    columns = {"models_per_unit": per_unit} if per_unit.max() > 1 else {}
    for name in AMOUNTS:
        column = info.get(name)
        if column is None or column.ndim != 1 or column.dtype.kind not in "iuf":
            continue
        columns[name] = design.averaged(np.asarray(column, float)[:, None])[:, 0]
    for name, values in columns.items():
        if not np.isfinite(values).all():
            continue
        medians = {
            str(label): float(np.median(values[design.codes == g]))
            for g, label in enumerate(design.names)
        }
        pvalue = _rank_test(values, design, n_permutations, seed)
        found[name] = Amounts(name, MappingProxyType(medians), pvalue)
    return found


def _rank_test(values, design, n_permutations, seed):
    """Return the p-value of a Kruskal-Wallis test by permutation within strata."""
    # Permutations must not depend on the order in which the models are given.
    order = np.lexsort((values, design.codes))
    values, design = values[order], design.ordered(order)
    groups, blocks = map(_orthonormal, (design.codes, design.strata))
    ranks = stats.rankdata(values)
    ranks -= blocks @ (blocks.T @ ranks)
    # If amounts are equal within strata, only rounding errors remain.
    ranks[np.abs(ranks) < NO_SPREAD * len(ranks)] = 0.0
    arrays = ranks, groups
    observed = _explained(arrays, np.arange(len(ranks))[None])[0]
    null = permuted(_explained, arrays, design.strata, n_permutations, seed)
    return float(pvalues(observed, null))


def _orthonormal(codes):
    """Return indicators of groups or strata, scaled to length one."""
    members = (codes[:, None] == np.unique(codes)).astype(float)
    return members / np.sqrt(members.sum(axis=0))


def _explained(arrays, rows):
    """Return the sum of squares of ranks between groups."""
    ranks, groups = arrays
    return np.sum((ranks[rows] @ groups) ** 2, axis=1)


def check_models_per_unit(amounts):
    """Raise if groups differ in the number of models averaged per unit."""
    counts = amounts.get("models_per_unit")
    if counts is not None and counts.differs:
        raise ValueError(
            "units must have as many models in one group as in another, got "
            f"{counts.line()}. An average of few models is noisier, which a test takes "
            "for a difference between groups. match='models' takes as many models of "
            "each unit as the unit with the fewest has."
        )


def warn_of_amounts(amounts):
    """Warn if the amounts of data differ between groups."""
    for amount in amounts.values():
        if amount.differs:
            warn_caller(
                f"The groups differ in how much data their models were fitted to: "
                f"{amount.line()}. Models of less data are noisier, which a test takes "
                f"for a difference between groups. {REMEDIES[amount.name]}",
            )
