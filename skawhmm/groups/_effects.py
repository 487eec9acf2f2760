r"""Which states and transitions differ between groups, and by how much.

Each measure y (the occupancy of a state, a transition probability, ...) is compared by
a contrast a of the units: the estimated difference is :math:`a^\top y`, by least
squares with the means of strata taken out. Its interval uses the robust variance HC2
with the degrees of freedom of Bell and McCaffrey; for two groups without strata this is
the interval of Welch.

For p-values all measures are centred within strata and scaled to length one, and so are
the contrasts. Their products, in units of the standard error that the spread within
each group gives them, are partial correlations if groups are of equal size, and have
one scale. Every one of them is compared with the largest of all under each permutation,
so that the p-values hold for all together (Westfall and Young).

If models hold the expected counts of their data, transitions and dwell times are ratios
of counts (see `_support`): a prior to which models were shrunk, or the length of
sequences, is then not mistaken for a difference between groups.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from skawhmm.groups._alignment import HMMAligner
from skawhmm.groups._amounts import Amounts, compared_amounts, warn_of_amounts
from skawhmm.groups._design import check_design
from skawhmm.groups._measures import measured
from skawhmm.groups._permutations import (
    LEVEL,
    permuted,
    pvalues,
    warn_of_few_arrangements,
    warn_of_few_permutations,
)
from skawhmm.groups._support import EQUAL, NO_SPREAD, left_out_reasons
from skawhmm.groups._tables import aligned_to, named_states
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_models
from skawhmm.utils._checks import (
    check_choice,
    check_integer,
    check_n_jobs,
    check_real,
    check_seed,
    check_verbose,
)
from skawhmm.utils._tables import data_frame, html_table, text_table

MEASURES = ("occupancy", "dwell_time", "visits", "parameters", "transitions")
COMPARED = ("occupancy", "dwell_time", "parameters", "transitions")

# A value with fewer degrees of freedom than this is fitted exactly.
FITTED = 1e-8

# Random stream of the test of amounts.
AMOUNTS = 1

# Columns that hold states.
ENDS = "state", "next_state"

# Number of rows that `repr` shows.
SHOWN_ROWS = 12


@dataclass(frozen=True, eq=False)
class StateEffects:
    """Differences between groups, as returned by :func:`state_effects`.

    Parameters
    ----------
    columns : dict of ndarray of shape (n_effects,)
        The table: "measure", "state", "next_state" (indices; -1 unless it is a
        transition; `to_frame` gives the names of states that have names), "group",
        "other", "mean", "other_mean", "difference" (`other` minus `group`), "low",
        "high", "standardized" (the difference in standard deviations within groups),
        "pvalue" (corrected for all rows together) and "uncorrected". If the aligner has
        `n_resamples`, "match" is the mean fraction of refits in which the state of a
        model is matched with this state again (for a transition, the smaller fraction
        of its two states). If it is far below 1, the difference may be an artefact of
        matching.

    null_distribution : ndarray of shape (n_permutations,)
        Largest absolute statistic under each permutation.

    statistic : ndarray of shape (n_effects,)
        Difference between the groups divided by its standard error and by the square
        root of the number of units: a partial correlation, if the groups have the same
        number of units.

    models : HMMBatch
        The models on common states.

    groups : dict
        Number of units per group.

    confidence : float
        Confidence of the intervals.

    left_out : dict of ndarray of shape (n_left_out,)
        Measures that are not compared: "measure", "state", "next_state", and the
        "reason".

    amounts : dict of Amounts
        How much data the units of each group have, if the models record it.

    See Also
    --------
    state_effects : The computation.
    EffectsDisplay : A forest plot.
    TransitionGraphDisplay : The transitions as a graph.

    Examples
    --------
    >>> import numpy as np
    >>> from skawhmm import HMMBatch
    >>> from skawhmm.groups import state_effects
    >>> models = HMMBatch(
    ...     transmats=np.ones((8, 1, 1)),
    ...     means=np.array([0.0, 0.2, 0.1, 0.1, 1.1, 0.9, 1.0, 1.0])[:, None, None],
    ...     covars=np.ones((8, 1, 1)),
    ... )
    >>> effects = state_effects(models, list("aaaabbbb"), random_state=0)
    >>> effects.columns["difference"].round(2), effects.columns["low"].round(2)
    (array([0.9]), array([0.76]))
    """

    columns: Mapping[str, NDArray[Any]]
    null_distribution: NDArray[np.float64] = field(repr=False)
    statistic: NDArray[np.float64] = field(repr=False)
    models: HMMBatch
    groups: Mapping[str, int]
    confidence: float
    left_out: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    amounts: Mapping[str, Amounts] = field(default_factory=dict)

    def to_frame(self, significance: float = 1.0) -> Any:
        """Return the differences as a pandas data frame, smallest p-value first.

        Parameters
        ----------
        significance : float in [0, 1], default=1.0
            Largest corrected p-value of the rows returned.

        Returns
        -------
        frame : pandas.DataFrame
            One row per measure and pair of groups. Measures for which a group has too
            little data have no row; `left_out` lists them.
        """
        check_real("significance", significance, 0, 1)
        rows = self._order()
        rows = rows[self.columns["pvalue"][rows] <= significance]
        columns = {name: values[rows] for name, values in self.columns.items()}
        for name in ENDS:
            columns[name] = named_states(self.models, columns[name])
        return data_frame(columns, "StateEffects.to_frame")

    def _order(self):
        """Return the rows, the most significant first."""
        sizes = -np.abs(np.nan_to_num(self.statistic))
        return np.lexsort((sizes, self.columns["pvalue"]))

    def _title(self):
        groups = ", ".join(f"{name}: {count}" for name, count in self.groups.items())
        n_sure = int(np.sum(self.columns["pvalue"] <= LEVEL))
        return (
            f"{n_sure} of {len(self.statistic)} differences at p <= {LEVEL}, "
            f"{len(self.null_distribution)} permutations\n"
            f"{groups}; {self._direction()}"
        )

    def _direction(self):
        """Return which group is subtracted from which."""
        if len(self.groups) != 2:
            return 'differences are "other" - "group"'
        first, other = (self.columns[name][0] for name in ("group", "other"))
        return f"differences are {other} - {first}"

    def _shown(self):
        rows = self._order()[:SHOWN_ROWS]
        shown = {name: values[rows].tolist() for name, values in self.columns.items()}
        shown["state"] = named_states(self.models, self.columns["state"][rows]).tolist()
        shown["next_state"] = self._state_texts(self.columns["next_state"][rows])
        for name in ("mean", "other_mean", "standardized", "uncorrected"):
            del shown[name]
        if len(self.groups) == 2:
            del shown["group"], shown["other"]
        return shown

    def _state_texts(self, states):
        """Return states by name or index; empty texts for -1."""
        names = named_states(self.models, states)
        return [
            "" if k < 0 else str(name) for k, name in zip(states, names, strict=True)
        ]

    def _notes(self):
        """Return lines about measures left out, and about amounts of data."""
        reasons = np.asarray(self.left_out.get("reason", []), dtype=str)
        rows = np.flatnonzero(reasons != EQUAL)
        names = []
        if len(rows):
            few = rows[:SHOWN_ROWS]
            ends = [self._state_texts(self.left_out[name][few]) for name in ENDS]
            parts = zip(self.left_out["measure"][few], *ends, strict=True)
            names = [
                f"{measure} {state}" + ("" if after == "" else f" -> {after}")
                for measure, state, after in parts
            ]
        more = [f"{len(rows) - SHOWN_ROWS} more"] if len(rows) > SHOWN_ROWS else []
        lines = [amount.line() for amount in self.amounts.values() if amount.varies]
        if names:
            lines.append(f"left out, for lack of data: {', '.join(names + more)}")
        return lines

    def __repr__(self) -> str:
        return "\n".join([self._title(), text_table(self._shown()), *self._notes()])

    def _repr_html_(self) -> str:
        caption = "\n".join([self._title(), *self._notes()])
        return html_table(self._shown(), caption)


def state_effects(
    models: HMMBatch,
    groups: str | ArrayLike,
    *,
    reference: Any = "barycenter",
    measures: str | Sequence[str] = COMPARED,
    units: str | ArrayLike | None = None,
    strata: str | ArrayLike | None = None,
    confidence: float = 0.95,
    n_permutations: int = 9999,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> StateEffects:
    """Return which states and transitions differ between groups, and by how much.

    Models are aligned to common states. The measures of each state and transition are
    then compared between groups.

    Parameters
    ----------
    models : HMMBatch
        The models.

    groups : str or array-like of shape (n_models,)
        The group of each model, or the name of a column of ``models.info``.

    reference : {"barycenter", "medoid"}, HMMBatch, HMMAligner or None, \
            default="barycenter"
        Model to whose states all models are aligned, as in :func:`state_table`. None
        keeps the states unchanged; they must then mean the same in all models.

    measures : str or sequence of str, default=("occupancy", "dwell_time", \
            "parameters", "transitions")
        Measures to compare: fractions of time, mean lengths of visits, numbers of
        "visits" per 100 steps, means and standard deviations (or probabilities of
        symbols, rates of counts) of the states, transition probabilities.

    units : str or array-like of shape (n_models,), default=None
        Independent unit of each model, such as the subject if subjects have several
        sequences. Measures are averaged over the models of a unit.

    strata : str or array-like of shape (n_models,), default=None
        Strata within which units are compared and permuted, such as pairs or sites.

    confidence : float in (0, 1), default=0.95
        Confidence of each interval, taken alone.

    n_permutations : int, default=9999
        Number of permutations.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the permutations and of the average.

    n_jobs : int, default=None
        Number of joblib workers. It never changes the result.

    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    effects : StateEffects
        A table of differences with intervals and p-values, which are corrected for all
        of its rows together.

    See Also
    --------
    hmm_group_test : Whether groups differ at all.

    Notes
    -----
    A model that lacks a state has occupancy 0 for it and no other value; a state that
    is never left has no dwell time. Missing values are left out of differences and
    intervals. Measures that are the same in all models are left out, too.

    Models that were fitted to sequences hold the expected counts of their data
    (``models.counts``). Their transition probabilities and dwell times are then ratios
    of counts: the value of a group is the ratio of the sums over its units, so that a
    unit with many steps from a state weighs more than one with few. Priors do not
    affect them. A transition is compared if every group is expected to show it 5 times
    under the pooled probability of all units; a dwell time, if every group is expected
    to leave the state 5 times and it is no longer than the sequences of the group; and
    a parameter of a state, if at least 2 units of every group have at least half an
    expected frame in it. ``effects.left_out`` lists everything else, with the reason.

    A warning is given if the amounts of data differ between groups: parameters of
    states that are fitted to less data are noisier and biased, which looks like a
    difference between groups.

    References
    ----------
    Westfall, P. H. and Young, S. S. (1993). Resampling-based multiple testing. Wiley.

    Examples
    --------
    Patients stay longer in the second state than controls:

    >>> import numpy as np
    >>> from skawhmm import HMMBatch
    >>> from skawhmm.groups import state_effects
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(["control", "patient"], 10)
    >>> stay = np.where(group == "control", 0.6, 0.8) + rng.normal(0, 0.03, 20)
    >>> models = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [1 - s, s]] for s in stay],
    ...     means=rng.normal([[0.0], [5.0]], 0.3, (20, 2, 1)),
    ...     covars=np.ones((20, 2, 1)),
    ... )
    >>> measures = ("occupancy", "transitions")
    >>> state_effects(models, group, measures=measures, random_state=0)
    4 of 4 differences at p <= 0.05, 9999 permutations
    control: 10, patient: 10; differences are patient - control
    measure     state  next_state  difference      low     high  pvalue
    transition      1  0              -0.1839  -0.2079  -0.1599  0.0001
    transition      1  1               0.1839   0.1599   0.2079  0.0001
    occupancy       0                 -0.1197  -0.1391  -0.1003  0.0001
    occupancy       1                  0.1197   0.1003   0.1391  0.0001
    """
    check_models("models", models)
    # Anything but a list is rejected below, by name.
    given: Any = measures
    is_list = np.iterable(given) and not isinstance(given, str)
    names = list(given) if is_list else [given]
    for name in names:
        check_choice("measures", name, MEASURES)
    if not names:
        raise ValueError("measures must name at least 1 measure, got none.")
    confidence = check_real(
        "confidence", confidence, 0, 1, include_low=False, include_high=False
    )
    check_integer("n_permutations", n_permutations, 1)
    check_n_jobs("n_jobs", n_jobs)
    check_verbose("verbose", verbose)
    seed = check_seed(random_state)
    design = check_design(models, groups, units, strata)
    warn_of_few_permutations(n_permutations)
    warn_of_few_arrangements(design.cells)
    amounts = compared_amounts(models, design, n_permutations, (seed, AMOUNTS))
    warn_of_amounts(amounts)
    if isinstance(reference, str):
        reference = HMMAligner(reference, random_state=seed, verbose=verbose)
        reference.fit(models)
    matched = aligned_to(models, reference)
    aligned = matched.models
    compared = measured(aligned, names).of_units(design)
    longest = longest_sequences(aligned, design)
    compared, left_out = comparable_measures(compared, design, longest)
    # Permutations must not depend on the order in which the models are given.
    keys = np.concatenate([compared.sums, compared.sizes], axis=1)
    order = np.lexsort((*keys.T[::-1], design.codes))
    design, compared = design.ordered(order), compared.rows(order)
    directions = pair_directions(design)
    scaled = _scaled(compared, design)
    observed = _correlations((scaled, directions), np.arange(len(order))[None])[0]
    null = permuted(
        _correlations,
        (scaled, directions),
        design.strata,
        n_permutations,
        (seed,),
        n_jobs=n_jobs,
        verbose=verbose,
    )
    null = np.abs(null)
    largest = null.max(axis=(1, 2))
    effects = tabulated_effects(
        aligned, compared, design, (observed, null, largest), confidence
    )
    columns = dict(effects.columns)
    if matched.confidence is not None:
        columns["match"] = _match_column(matched.confidence, columns)
    return replace(
        effects,
        columns=MappingProxyType(columns),
        left_out=MappingProxyType(left_out),
        amounts=MappingProxyType(amounts),
    )


def tabulated_effects(models, measures, design, statistics, confidence):
    """Return differences with intervals and p-values, given statistics.

    Parameters
    ----------
    models : HMMBatch
        The models on common states.

    measures : Measures
        The measures of units.

    design : Design
        The comparison.

    statistics : tuple of ndarray
        Statistics of shape (n_pairs, n_measures), their absolute values under each
        permutation, and the largest value of each permutation.

    confidence : float
        Confidence of the intervals.

    Returns
    -------
    effects : StateEffects
        The differences.
    """
    observed, null, largest = statistics
    values = measures.linearized(design.codes)
    columns = _columns(measures.labels, values, design, confidence)
    columns["pvalue"] = pvalues(np.abs(observed).ravel(), largest[:, None])
    columns["uncorrected"] = pvalues(np.abs(observed), null).ravel()
    counts = zip(map(str, design.names), design.counts.tolist(), strict=True)
    return StateEffects(
        MappingProxyType(columns),
        largest,
        observed.ravel(),
        models,
        MappingProxyType(dict(counts)),
        confidence,
    )


def effect_statistics(measures, design, longest):
    """Return the statistics of all measures; 0 where they cannot be compared."""
    reasons = np.array(left_out_reasons(measures, design, longest))
    arrays = _scaled(measures, design), pair_directions(design)
    found = _correlations(arrays, np.arange(len(design.codes))[None])[0]
    return np.where(reasons == "", found, 0.0)


def _match_column(confidence, columns):
    """Return the mean matching confidence of the states of each row."""
    sure = _known_mean(confidence)
    after = columns["next_state"]
    own = sure[columns["state"]]
    return np.where(after < 0, own, np.minimum(own, sure[after]))


def longest_sequences(models, design):
    """Return the number of frames of the longest sequence of each unit, if known."""
    if models.counts is None:
        return None
    longest = np.zeros(len(design.codes))
    np.maximum.at(longest, design.unit_of, models.counts.states.sum(axis=1))
    return longest


def comparable_measures(measures, design, longest):
    """Return the measures that can be compared, and a table of the others."""
    reasons = np.array(left_out_reasons(measures, design, longest))
    kept, left = np.flatnonzero(reasons == ""), np.flatnonzero(reasons != "")
    if len(kept) == 0:
        raise ValueError(
            "models must differ in what is compared, got no measure that the data of "
            f"all groups show and that is not the same in all of them: "
            f"{measures.labels[0][0]} is {reasons[0]}."
        )
    others = measures.columns(left).labels
    table = {
        name: np.array([label[k] for label in others])
        for k, name in enumerate(("measure", "state", "next_state"))
    }
    return measures.columns(kept), {**table, "reason": reasons[left]}


def pair_directions(design):
    """Return the contrast of each pair of groups, scaled to length one."""
    contrasts, _ = _contrasts(design, np.arange(len(design.codes)))
    return (contrasts / np.linalg.norm(contrasts, axis=1, keepdims=True)).T


def _contrasts(design, rows):
    """Return contrasts that estimate group differences, and the residual projection.

    Parameters
    ----------
    design : Design
        The comparison.

    rows : ndarray of int of shape (n_rows,)
        Units with known values.

    Returns
    -------
    contrasts : ndarray of shape (n_pairs, n_rows)
        Least-squares contrasts, with the means of strata taken out; NaN for groups that
        the rows cannot distinguish.

    rest : ndarray of shape (n_rows, n_rows)
        Projection onto the residuals of groups and strata.
    """
    strata = design.strata[rows]
    blocks = (strata[:, None] == np.unique(strata)).astype(float)
    groups = (design.codes[rows, None] == np.arange(len(design.names))).astype(float)
    columns = np.concatenate([groups, blocks], axis=1)
    inverse = np.linalg.pinv(columns)
    pairs = np.arange(len(design.pairs))
    wanted = np.zeros((len(pairs), columns.shape[1]))
    one, two = np.transpose(design.pairs)
    wanted[pairs, one], wanted[pairs, two] = -1, 1
    contrasts = wanted @ inverse
    known = np.isclose(contrasts @ columns, wanted, atol=1e-8).all(axis=1)
    contrasts[~known] = np.nan
    return contrasts, np.eye(len(rows)) - columns @ inverse


def _scaled(measures, design):
    """Return deviations of units from their stratum, of length one; 0 for NaN."""
    left = measures.residuals(design.strata)
    sizes = np.linalg.norm(left, axis=0)
    # If measures vary only between strata, only rounding errors remain.
    varied = sizes > NO_SPREAD * np.linalg.norm(measures.sums, axis=0)
    return np.where(varied, left / np.where(varied, sizes, 1), 0.0)


def _correlations(arrays, rows):
    """Return contrasts in units of their standard errors, at most 1 in size.

    Each unit enters the error with its own deviation, so that spreads of groups may
    differ.
    """
    scaled, directions = arrays
    n_units, n_pairs = directions.shape
    moved = directions[rows].swapaxes(1, 2).reshape(-1, n_units)
    errors = np.sqrt(n_units * (moved**2 @ scaled**2))
    found = moved @ scaled / np.where(errors > 0, errors, 1)
    return found.reshape(len(rows), n_pairs, -1)


def _columns(labels, values, design, confidence):
    """Return names, differences and intervals of all measures and pairs of groups."""
    n_pairs, n_measures = len(design.pairs), len(labels)
    one, two = (np.repeat(side, n_measures) for side in np.transpose(design.pairs))
    kinds = np.array([label[0] for label in labels])
    places = np.array([label[1:] for label in labels])
    columns = {
        "measure": np.tile(kinds, n_pairs),
        "state": np.tile(places[:, 0], n_pairs),
        "next_state": np.tile(places[:, 1], n_pairs),
        "group": design.names[one].astype(str),
        "other": design.names[two].astype(str),
    }
    means = np.stack(
        [_known_mean(values[design.codes == g]) for g in range(two.max() + 1)]
    )
    tiled = np.tile(np.arange(n_measures), n_pairs)
    columns["mean"], columns["other_mean"] = means[one, tiled], means[two, tiled]
    found = np.empty((4, n_pairs, n_measures))
    # Measures known for the same units share their contrasts.
    patterns, which = np.unique(~np.isnan(values), axis=1, return_inverse=True)
    for k, pattern in enumerate(patterns.T):
        own = np.flatnonzero(which.ravel() == k)
        rows = np.flatnonzero(pattern)
        part = difference_intervals(values[np.ix_(rows, own)], design, rows, confidence)
        found[..., own] = part
    names = "difference", "low", "high", "standardized"
    return columns | dict(zip(names, found.reshape(4, -1), strict=True))


def _known_mean(values):
    known = ~np.isnan(values)
    sums = np.where(known, values, 0.0).sum(axis=0)
    counts = known.sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def difference_intervals(values, design, rows, confidence):
    """Return the differences of measures between pairs of groups, with intervals.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_measures)
        The measures, all of them known.

    design : Design
        The comparison.

    rows : ndarray of int of shape (n_rows,)
        The units that the values belong to.

    confidence : float
        Confidence of the intervals.

    Returns
    -------
    found : ndarray of shape (4, n_pairs, n_measures)
        Differences, the ends of their intervals, and differences in units of the
        standard deviation within groups and strata. NaN where there are too few values.
    """
    contrasts, rest = _contrasts(design, rows)
    free = np.diagonal(rest)
    # A value that is alone in its stratum is fitted exactly and has no information.
    usable = free > FITTED
    roots = np.where(usable, contrasts / np.sqrt(np.where(usable, free, 1)), 0.0)
    roots[np.isnan(contrasts).all(axis=1)] = np.nan
    left = rest @ values
    errors = np.sqrt(roots**2 @ left**2)
    spreads = [root[:, None] * rest * root for root in roots]
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.array([np.trace(x) ** 2 / np.sum(x**2) for x in spreads])
        deviation = np.sqrt(np.sum(left**2, axis=0) / np.trace(rest))
        deviation[np.trace(rest) < 0.5] = np.nan
        difference = contrasts @ values
        margin = errors * stats.t.ppf((1 + confidence) / 2, freedom)[:, None]
        standardized = difference / np.where(deviation > 0, deviation, np.nan)
    return np.stack(
        [difference, difference - margin, difference + margin, standardized]
    )
