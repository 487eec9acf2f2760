r"""Measures of units, and which of them have enough data to be compared.

A measure of a unit is a ratio of two sums. Counted measures have counts in both: steps
from i to k, and all steps from i. Their difference :math:`x - p\,n` from what a
probability p predicts has mean 0 however long the sequences are, where the ratio
:math:`x / n` is biased in short ones. Units are therefore compared by such differences,
a group's value is the ratio of its sums, and a unit without steps from i has no
influence. For all other measures the second sum is 1.
"""

from typing import NamedTuple

import numpy as np

# A unit with fewer expected frames in a state, or steps from it, has not visited it: an
# estimate would rest on the prior alone. A hidden state that was visited once has an
# expected count slightly below one.
LEAST_SEEN = 0.5

# A transition is compared if every group is expected to show it this often under the
# pooled probability of all units: the usual rule for contingency tables.
LEAST_EXPECTED = 5.0

# The reason for leaving out measures that do not vary.
EQUAL = "equal in all units"

# Values that differ by less than this fraction of their size are equal.
NO_SPREAD = 1e-10


class Measures(NamedTuple):
    """Measures of models or units, as columns.

    `labels` are tuples of name, state and next state (-1 if there is none). `sums` and
    `sizes` have one row per model or unit; the value is their ratio, missing where the
    size is 0. `counted` marks columns that are ratios of counts, `inverted` marks those
    whose denominator counts the events: dwell times are steps per exit.
    """

    labels: list[tuple[str, int, int]]
    sums: np.ndarray
    sizes: np.ndarray
    counted: np.ndarray
    inverted: np.ndarray

    @classmethod
    def plain(cls, labels, values):
        """Return measures that are not counted.

        Parameters
        ----------
        labels : list of tuple
            Their labels.

        values : ndarray of shape (n_models, n_columns)
            The values; not finite where they are missing.

        Returns
        -------
        measures : Measures
            The measures.
        """
        known = np.isfinite(values)
        flags = np.zeros(len(labels), bool)
        return cls(labels, np.where(known, values, 0.0), 1.0 * known, flags, flags)

    @classmethod
    def counts(cls, labels, sums, sizes, *, inverted=False):
        """Return measures that are ratios of counts.

        Parameters
        ----------
        labels : list of tuple
            Their labels.

        sums, sizes : ndarray of shape (n_models, n_columns)
            The counts.

        inverted : bool, default=False
            Whether the sizes are the events.

        Returns
        -------
        measures : Measures
            The measures.
        """
        flags = np.ones(len(labels), bool)
        return cls(labels, sums, sizes, flags, flags & inverted)

    @classmethod
    def concatenated(cls, parts):
        """Return several measures of the same models, concatenated.

        Parameters
        ----------
        parts : list of Measures
            The measures, at least one.

        Returns
        -------
        measures : Measures
            All columns, in the order given.
        """
        labels, *arrays = zip(*parts, strict=True)
        columns = (np.concatenate(part, axis=-1) for part in arrays)
        return cls([label for part in labels for label in part], *columns)

    @property
    def values(self):
        """The ratios; NaN where they are missing."""
        known = self.sizes > 0
        return np.where(known, self.sums / np.where(known, self.sizes, 1), np.nan)

    def columns(self, chosen):
        """Return some of the measures.

        Parameters
        ----------
        chosen : ndarray of int
            Indices of the columns.

        Returns
        -------
        measures : Measures
            The measures.
        """
        labels = [self.labels[k] for k in chosen]
        return Measures(labels, *(part[..., chosen] for part in self[1:]))

    def rows(self, order):
        """Return the measures of some units, or of all in another order.

        Parameters
        ----------
        order : ndarray of int or bool
            The units.

        Returns
        -------
        measures : Measures
            The measures.
        """
        return self._replace(sums=self.sums[order], sizes=self.sizes[order])

    def of_units(self, design):
        """Return the measures of units: counts are summed, all others averaged.

        Parameters
        ----------
        design : Design
            The comparison.

        Returns
        -------
        measures : Measures
            One row per unit.
        """
        sums, sizes = map(design.summed, (self.sums, self.sizes))
        several = (sizes > 1) & ~self.counted
        scale = np.where(several, sizes, 1.0)
        return self._replace(sums=sums / scale, sizes=sizes / scale)

    def residuals(self, blocks):
        """Return deviations of units from the ratio of their block.

        Parameters
        ----------
        blocks : ndarray of int of shape (n_units,)
            Blocks of the units, such as groups or strata.

        Returns
        -------
        residuals : ndarray of shape (n_units, n_columns)
            ``sums - ratio * sizes``; they add up to 0 in every block.
        """
        return self.sums - self.ratios(blocks) * self.sizes

    def ratios(self, blocks):
        """Return the ratio of sums of each unit's block; 0 if it is missing.

        Parameters
        ----------
        blocks : ndarray of int of shape (n_units,)
            Blocks of the units.

        Returns
        -------
        ratios : ndarray of shape (n_units, n_columns)
            The same for all units of a block.
        """
        which = (blocks[:, None] == np.unique(blocks)).astype(float)
        sums, sizes = which.T @ self.sums, which.T @ self.sizes
        return which @ (sums / np.where(sizes > 0, sizes, 1))

    def linearized(self, codes):
        """Return values of units whose plain means are the ratios of their groups.

        Parameters
        ----------
        codes : ndarray of int of shape (n_units,)
            Groups of the units.

        Returns
        -------
        values : ndarray of shape (n_units, n_columns)
            Their spread equals the spread of the ratio, to first order. NaN where a
            unit, or a whole group, has no value.
        """
        which = (codes[:, None] == np.unique(codes)).astype(float)
        means = which @ ((which.T @ self.sizes) / which.sum(axis=0)[:, None])
        moved = self.residuals(codes) / np.where(means > 0, means, 1)
        counted = np.where(means > 0, self.ratios(codes) + moved, np.nan)
        return np.where(self.counted, counted, self.values)


def left_out_reasons(measures, design, longest):
    """Return why measures cannot be compared; an empty text if they can.

    Parameters
    ----------
    measures : Measures
        The measures of units.

    design : Design
        The comparison.

    longest : ndarray of shape (n_units,) or None
        Number of frames of the longest sequence of each unit; None if models hold no
        counts, so that their support is unknown.

    Returns
    -------
    reasons : list of str
        One per column.
    """
    reasons = np.full(len(measures.labels), "", dtype=object)
    left = measures.residuals(np.zeros(len(design.codes), int))
    size = np.abs(measures.sums).max(axis=0)
    reasons[np.abs(left).max(axis=0) <= NO_SPREAD * size] = EQUAL
    if longest is None:
        return reasons.tolist()
    sums = np.where(measures.inverted, measures.sizes, measures.sums)
    chances = np.where(measures.inverted, measures.sums, measures.sizes)
    rate = sums.sum(axis=0) / np.maximum(chances.sum(axis=0), 1e-300)
    for g, name in enumerate(design.names):
        own = design.codes == g
        beyond = measures.rows(own).ratios(np.zeros(own.sum(), int))[0]
        beyond = measures.inverted & (beyond > longest[own].max())
        few = (chances[own] >= LEAST_SEEN).sum(axis=0) < 2
        rare = measures.counted & (rate * chances[own].sum(axis=0) < LEAST_EXPECTED)
        for wrong, text in (
            (beyond, f"longer than the sequences of group '{name}'"),
            (rare, f"expected fewer than {LEAST_EXPECTED:g} times in group '{name}'"),
            (few, f"seen in fewer than 2 units of group '{name}'"),
        ):
            reasons[wrong] = text
    return reasons.tolist()
