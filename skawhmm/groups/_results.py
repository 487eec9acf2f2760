"""Results of tests of groups."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skawhmm.groups._amounts import Amounts
from skawhmm.groups._permutations import LEVEL, holm
from skawhmm.models._batch import HMMBatch
from skawhmm.utils._tables import data_frame, html_table, text_table

# Width of the lines of a report.
PARAGRAPH = 80

STATISTICS = {"pseudo_f": "pseudo-F", "energy": "energy F"}


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """One permutation test: a statistic, and its values under permutation.

    Parameters
    ----------
    statistic : float
        The observed value.

    pvalue : float
        Fraction of arrangements with a value at least as large.

    effect_size : float
        Fraction of the variation that the groups explain; NaN if it is not defined.

    null_distribution : ndarray of shape (n_permutations,)
        Values under permutation.
    """

    statistic: float
    pvalue: float
    effect_size: float
    null_distribution: NDArray[np.float64] = field(repr=False)


@dataclass(frozen=True, eq=False)
class GroupTestResult:
    """Whether groups of models differ, as returned by :func:`hmm_group_test`.

    Parameters
    ----------
    tests : dict of PermutationTest
        The tests of the distance and, if it has any, of its components:
        "distance", "marginal" and "transition".

    dispersion : PermutationTest or None
        Test of equal spread around the centres of the groups; None if the strata leave
        nothing to compare.

    pairwise : dict
        For three or more groups: one dict like `tests` per pair of groups.

    pairwise_pvalues : dict
        The p-values of the pairwise tests, corrected for the number of pairs by Holm's
        method.

    groups : dict
        Number of units per group.

    kind : {"pseudo_f", "energy"}
        The statistic.

    amounts : dict of Amounts
        How much data the models of each group were fitted to, by column of `info`
        ("n_timesteps"): medians per group, and whether they differ. Empty if the models
        do not record it.

    missing : dict of str
        Tests that were not made, by name, with the reason: for components that the
        distance does not have, for the dispersion, or for pairs of groups that share no
        stratum.

    models : HMMBatch or None
        With ``refit``: the models, one per unit and group.

    effects : StateEffects or None
        With ``refit``: differences of states and transitions, as :func:`state_effects`
        gives them, with p-values by refits. The states come from a model of all trials.

    Attributes
    ----------
    statistic, pvalue, effect_size, null_distribution : float or ndarray
        Results of the test of the distance.

    marginal, transition : PermutationTest or None
        Tests of the components: do the states differ, or the transitions between them?

    See Also
    --------
    hmm_group_test : The test.
    GroupTestDisplay : A picture of it.

    Examples
    --------
    >>> import numpy as np
    >>> from skawhmm import hmm_group_test
    >>> values = np.array([0.0, 1.0, 2.0, 5.0, 4.0, 6.0, 8.0, 9.0])
    >>> distances = np.abs(values[:, None] - values)
    >>> result = hmm_group_test(distances, list("aaaabbbb"), random_state=0)
    >>> round(result.statistic, 2), round(result.effect_size, 2)
    (9.42, 0.61)
    >>> result
    pseudo-F of 2 groups (a: 4, b: 4), 9999 permutations
    test        statistic  pvalue  effect_size
    distance        9.417  0.0569       0.6108
    dispersion        0.1  0.8859
    not tested: marginal, transition (X holds distances without components)
    """

    tests: Mapping[str, PermutationTest]
    dispersion: PermutationTest | None
    pairwise: Mapping[tuple[str, str], Mapping[str, PermutationTest]]
    pairwise_pvalues: Mapping[tuple[str, str], Mapping[str, float]]
    groups: Mapping[str, int]
    kind: str
    amounts: Mapping[str, Amounts] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    models: HMMBatch | None = field(default=None, repr=False)
    effects: Any = field(default=None, repr=False)

    @property
    def statistic(self) -> float:
        """Statistic of the distance."""
        return self.tests["distance"].statistic

    @property
    def pvalue(self) -> float:
        """Fraction of arrangements that are at least as extreme."""
        return self.tests["distance"].pvalue

    @property
    def effect_size(self) -> float:
        """Fraction of the variation that the groups explain."""
        return self.tests["distance"].effect_size

    @property
    def null_distribution(self) -> NDArray[np.float64]:
        """Statistics under permutation."""
        return self.tests["distance"].null_distribution

    @property
    def marginal(self) -> PermutationTest | None:
        """Test of the marginal component: whether the states differ."""
        return self.tests.get("marginal")

    @property
    def transition(self) -> PermutationTest | None:
        """Test of the transition component: whether the transitions differ."""
        return self.tests.get("transition")

    @property
    def all_tests(self) -> dict[str, PermutationTest]:
        """The tests of all groups together by name, the dispersion last."""
        spread = {} if self.dispersion is None else {"dispersion": self.dispersion}
        return {**self.tests, **spread}

    def report(self) -> str:
        """Return a paragraph for the results section of an article.

        Returns
        -------
        text : str
            The groups, the method and the findings, with the p-values of all tests.

        Examples
        --------
        >>> import numpy as np
        >>> from skawhmm import hmm_group_test
        >>> values = np.array([0.0, 1.0, 2.0, 5.0, 14.0, 16.0, 18.0, 19.0])
        >>> distances = np.abs(values[:, None] - values)
        >>> result = hmm_group_test(distances, list("aaaabbbb"), random_state=0)
        >>> print(result.report())
        Groups (a: n = 4, b: n = 4) were compared by a permutation test of pseudo-F on
        distances between hidden Markov models (9999 permutations). They differed:
        pseudo-F = 90.8, p = 0.028, effect size 0.94. Spread around the centres of the
        groups: p = 0.89. Not tested: marginal, transition (X holds distances without
        components).
        """
        sizes = ", ".join(f"{name}: n = {count}" for name, count in self.groups.items())
        kind, refits = statistic_name(self), self.models is not None
        test = self.tests["distance"]
        effect = test.effect_size
        size = "" if np.isnan(effect) else f", effect size {effect:.2f}"
        verdict = "differed" if test.pvalue <= LEVEL else "did not differ significantly"
        parts = [
            f"Groups ({sizes}) were compared by a permutation test of {kind} on "
            f"distances between hidden Markov models ({len(test.null_distribution)} "
            f"permutations{', models refitted in each' if refits else ''}).",
            f"They {verdict}: {kind} = {test.statistic:.3g}, {_written(test.pvalue)}"
            f"{size}.",
        ]
        for name, what in (("marginal", "States"), ("transition", "Transitions")):
            if name in self.tests:
                parts.append(f"{what} alone: {_written(self.tests[name].pvalue)}.")
        if self.dispersion is not None:
            spread = _written(self.dispersion.pvalue)
            parts.append(f"Spread around the centres of the groups: {spread}.")
        for pair, corrected in self.pairwise_pvalues.items():
            pvalue = _written(corrected["distance"])
            parts.append(f"{' and '.join(pair)}: {pvalue} after Holm's correction.")
        parts += [f"{note[0].upper()}{note[1:]}." for note in self._notes()]
        return fill(" ".join(parts), PARAGRAPH)

    def to_frame(self) -> Any:
        """Return all tests as a pandas data frame.

        Returns
        -------
        frame : pandas.DataFrame
            One row per test, with the columns "groups", "test", "statistic", "pvalue",
            "corrected" and "effect_size". Corrected p-values are given for pairs of
            groups.
        """
        return data_frame(self._columns(), "GroupTestResult.to_frame")

    def _columns(self):
        """Return the columns of the table of all tests."""
        rows = []
        for name, test in self.all_tests.items():
            rows.append(("all", name, test, np.nan))
        for pair, tests in self.pairwise.items():
            for name, test in tests.items():
                corrected = self.pairwise_pvalues[pair][name]
                rows.append((" - ".join(pair), name, test, corrected))
        return {
            "groups": [row[0] for row in rows],
            "test": [row[1] for row in rows],
            "statistic": [row[2].statistic for row in rows],
            "pvalue": [row[2].pvalue for row in rows],
            "corrected": [row[3] for row in rows],
            "effect_size": [row[2].effect_size for row in rows],
        }

    def _title(self):
        groups = ", ".join(f"{name}: {count}" for name, count in self.groups.items())
        return (
            f"{statistic_name(self)} of {len(self.groups)} groups ({groups}), "
            f"{len(self.null_distribution)} permutations"
            f"{' with refits' if self.models is not None else ''}"
        )

    def __repr__(self) -> str:
        columns = self._columns()
        if not self.pairwise:
            del columns["groups"], columns["corrected"]
        return "\n".join([self._title(), text_table(columns), *self._notes()])

    def _repr_html_(self) -> str:
        caption = "\n".join([self._title(), *self._notes()])
        return html_table(self._columns(), caption)

    def _notes(self):
        lines = [amount.line() for amount in self.amounts.values() if amount.varies]
        for reason in dict.fromkeys(self.missing.values()):
            names = [name for name, why in self.missing.items() if why == reason]
            lines.append(f"not tested: {', '.join(names)} ({reason})")
        return lines


def statistic_name(result):
    """Return the name of the statistic.

    Conditions of a single unit are compared by their distance alone, not by a ratio.
    """
    if np.isnan(result.effect_size):
        return "variation"
    return STATISTICS[result.kind]


def _written(pvalue):
    """Return a p-value formatted for an article."""
    return "p < 0.001" if pvalue < 0.001 else f"p = {pvalue:.2g}"


def corrected_pvalues(pairwise):
    """Return p-values of pairs, corrected for their number within each component."""
    names = list(next(iter(pairwise.values()), ()))
    columns = {
        name: holm(np.array([tests[name].pvalue for tests in pairwise.values()]))
        for name in names
    }
    return {
        pair: {name: float(columns[name][k]) for name in names}
        for k, pair in enumerate(pairwise)
    }
