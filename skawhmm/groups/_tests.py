r"""Tests of differences between groups of models, by permutation.

The squared distances :math:`A_{ij} = d_{ij}^2` are all that a linear model of the
groups needs. With :math:`G = -A / 2`, the projection :math:`H_0` onto the nuisance
terms (a mean, strata, covariates) and :math:`G_0 = (I - H_0) G (I - H_0)`, the groups
explain :math:`\operatorname{tr}(Q^\top G_0 Q)` of the variation
:math:`\operatorname{tr}(G_0)`, where Q is an orthonormal basis of the differences
between groups outside :math:`H_0`. Their ratio of mean squares is the pseudo-F of
Anderson (2001); in one dimension it is the F of the analysis of (co)variance. With
distances instead of their squares it is the energy statistic of Rizzo and Szekely.

Permutations exchange the residuals of :math:`H_0` (Freedman and Lane), within strata.
They permute the rows of the bases, so that a thousand of them are one matrix product.
"""

from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skawhmm._estimator import (
    check_hmm,
    is_mixture,
    mixed_precomputed,
)
from skawhmm.distances._base import Distance
from skawhmm.distances._pairwise import all_pairs
from skawhmm.distances._resolve import METRIC_CHECKS, resolve_metric
from skawhmm.groups._amounts import (
    check_models_per_unit,
    compared_amounts,
    warn_of_amounts,
)
from skawhmm.groups._design import check_design
from skawhmm.groups._dispersion import dispersion_test
from skawhmm.groups._matching import (
    FITTED_MATCHES,
    MATCHES,
    matched_models,
    matched_rows,
)
from skawhmm.groups._permutations import (
    LEVEL,
    f_ratios,
    permuted,
    pvalues,
    quadratic_forms,
    warn_of_few_arrangements,
    warn_of_few_permutations,
)
from skawhmm.groups._refits import (
    check_trials,
    checked_units,
    refitted_tests,
)
from skawhmm.groups._results import (
    GroupTestResult,
    PermutationTest,
    corrected_pvalues,
)
from skawhmm.models._checks import check_models, check_same_features
from skawhmm.sequences._forms import is_models, warn_caller
from skawhmm.utils._checks import (
    LARGEST_DISTANCE,
    check_choice,
    check_distances,
    check_integer,
    check_n_jobs,
    check_seed,
    check_verbose,
)
from skawhmm.utils._numbers import real_array
from skawhmm.utils._parameters import check_unused, defaults_of

# Precomputed distances may be asymmetric, or differ from 0 on the diagonal, by this
# fraction of the largest one.
DISTANCE_TOLERANCE = 1e-8

# Powers of the distances in the two statistics.
POWERS = {"pseudo_f": 2, "energy": 1}

# Random streams of one call.
OVERALL, SPREAD, PAIRS, AMOUNTS = 0, 1, 2, 3


def hmm_group_test(
    X: Any,
    groups: str | ArrayLike,
    *,
    metric: str | Distance = "jaw",
    alpha: float | None = None,
    statistic: str = "pseudo_f",
    n_permutations: int = 9999,
    units: str | ArrayLike | None = None,
    strata: str | ArrayLike | None = None,
    covariates: str | ArrayLike | None = None,
    hmm: Any = None,
    refit: bool | str = False,
    match: str | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> GroupTestResult:
    """Test whether groups of models differ, by permutation of their distances.

    The order and the number of states may differ between models. The test is made for
    the distance and, with the same permutations, for its two components: do the states
    differ, or the transitions between them?

    Parameters
    ----------
    X : HMMBatch or array-like of shape (n_models, n_models[, 2])
        The models; or any symmetric matrix of distances, between models or between
        anything else; or the components of distances as :func:`pairwise_hmm_components`
        gives them, stacked along a third axis. Components need `alpha`; with distances
        or components, `metric` must not be set. With `refit` or ``match="frames"`` or
        ``"trials"``, sequences: one recording per trial for `refit` (or a list of
        `Trials`, one per unit), one recording or `Trials` per model to match.

    groups : str or array-like of shape (n_models,)
        The group of each model, or the name of a column of ``X.info``; the condition of
        each trial with `refit`.

    metric : {"maw", "iaw", "jaw", "kl", "coupling"} or object, default="jaw"
        Distance between two models, which must be symmetric.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw"
        and "iaw", 0.5 for "jaw". Must be None if the distance has no components, or if
        `metric` is an object, which has its own.

    statistic : {"pseudo_f", "energy"}, default="pseudo_f"
        Statistic of the test: the pseudo-F of PERMANOVA, a ratio of squared distances,
        finds differences between the centres of groups; the energy statistic, the same
        ratio of plain distances, finds any difference between groups.

    n_permutations : int, default=9999
        Number of permutations. The smallest possible p-value is
        ``1 / (n_permutations + 1)``.

    units : str or array-like of shape (n_models,), default=None
        Independent unit of each model, such as the subject if subjects have several
        sequences: the models of a unit are averaged (in the geometry of the distances)
        and permuted together. By default each model is a unit. With `refit`, the unit
        of each trial: one model is fitted per unit and condition; by default all trials
        belong to one unit.

    strata : str or array-like of shape (n_models,), default=None
        Strata within which units are permuted, such as pairs or sites. Differences
        between strata are taken out.

    covariates : str or array-like of shape (n_models[, n_covariates]), default=None
        Numbers whose linear effect is taken out first, such as age. Permutations then
        exchange residuals.

    hmm : transformer, default=None
        Fits models to sequences, with `refit` or to match frames or trials; it is
        cloned. By default an :class:`HMMTransformer`.

    refit : bool or "within", default=False
        Whether labels are permuted among trials, and all models fitted again under each
        permutation: within units, if conditions vary within them; otherwise units are
        permuted, and their models stay the same. "within" raises an error in the latter
        case. The p-values include the error of fitting, and are exact for any number of
        trials. With a single unit, the statistic is the variation between conditions
        alone. `strata` and `covariates` must be None.

    match : {"frames", "trials", "models"}, default=None
        Amount of data to make equal. With "frames" or "trials", every model is fitted
        to as many of them as the shortest sequence has; with "models", every unit keeps
        as many models as the unit with the fewest. They are chosen at random, once: an
        average over several choices would be less noisy for larger units, which would
        then not be exchangeable with the others.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the permutations. With the same seed the result does not depend on the
        order of the models.

    n_jobs : int, default=None
        Number of joblib workers. It never changes the result.

    verbose : int, default=0
        Whether to show a progress bar and, with `refit`, the number of fits and about
        how long they will take.

    Returns
    -------
    result : GroupTestResult
        Statistics, p-values, fractions of explained variation and null distributions
        for the distance and its components, a test of equal spread and, for three or
        more groups, tests of all pairs with the correction of Holm. With `refit`, also
        the models and the effects of single states and transitions.

    See Also
    --------
    state_effects : Which states and transitions differ.
    HMMAligner : Models on common states.

    Notes
    -----
    A significant result may also be due to groups of unequal spread. The test of
    dispersion compares the distances of units to the centres of their groups, and a
    warning is given if it is significant, too. It permutes the deviations from the
    spatial medians of the groups, within strata, after strata and covariates are taken
    out. If every stratum holds one unit of each group (before and after), the spread of
    whole groups is compared; if strata are pairs of which some groups are absent, there
    is no such test.

    Labels of fitted models are exchangeable only if all models come from equal amounts
    of data: models of short sequences are noisier, and look like another group. The
    amounts in ``X.info["n_timesteps"]`` (and ``"n_trials"``, if there is such a column)
    are compared between groups, and a warning is given if they differ. Then use `refit`
    if conditions vary within units, or `match` if units belong to groups. If the groups
    differ in the number of models per unit, an error is raised, unless
    ``match="models"``.

    References
    ----------
    Anderson, M. J. (2001). A new method for non-parametric multivariate analysis of
    variance. Austral Ecology 26, 32-46.

    Anderson, M. J. (2006). Distance-based tests for homogeneity of multivariate
    dispersions. Biometrics 62, 245-253.

    Rizzo, M. L. and Szekely, G. J. (2010). DISCO analysis. Annals of Applied
    Statistics 4, 1034-1055.

    Examples
    --------
    Two groups with the same states but different transitions:

    >>> from skawhmm import HMMTransformer, hmm_group_test
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(
    ...     30, differ_in="transitions", separation=2, n_timesteps=200, random_state=0
    ... )
    >>> models = HMMTransformer(n_components=3, random_state=0).fit_transform(X)
    >>> hmm_group_test(models, y, n_permutations=999, random_state=0)
    pseudo-F of 2 groups (0: 15, 1: 15), 999 permutations
    test        statistic  pvalue  effect_size
    distance        143.4   0.001       0.8366
    marginal       0.8257   0.522      0.02864
    transition      587.3   0.001       0.9545
    dispersion     0.4612   0.518

    Six viewers, each with 24 trials of one condition and 6 of the other. Labels are
    permuted among the trials of each viewer, and the models are fitted again:

    >>> import numpy as np
    >>> trials, _ = make_hmm_sequences(
    ...     180, separation=0, n_timesteps=6, random_state=0
    ... )
    >>> viewer = np.repeat(np.arange(6), 30)
    >>> condition = np.tile(["seen"] * 24 + ["new"] * 6, 6)
    >>> hmm = HMMTransformer(n_components=2, random_state=0)
    >>> hmm_group_test(
    ...     trials,
    ...     condition,
    ...     units=viewer,
    ...     hmm=hmm,
    ...     refit=True,
    ...     n_permutations=99,
    ...     random_state=0,
    ... )
    pseudo-F of 2 groups (new: 6, seen: 6), 99 permutations with refits
    test        statistic  pvalue  effect_size
    distance        1.474    0.29       0.2276
    marginal        1.411    0.32       0.2201
    transition     0.5416    0.58      0.09773
    not tested: dispersion (models are fitted again under each permutation)
    """
    check_choice("statistic", statistic, POWERS)
    check_integer("n_permutations", n_permutations, 1)
    check_n_jobs("n_jobs", n_jobs)
    check_verbose("verbose", verbose)
    seed = check_seed(random_state)
    workers = {"n_jobs": n_jobs, "verbose": verbose}
    _check_fitting(X, hmm, refit, match, units)
    if refit:
        for name, value in (
            ("strata", strata),
            ("covariates", covariates),
            ("match", match),
        ):
            check_unused(name, value, None, f"with refit={refit!r}")
        chosen = _symmetric_metric(metric, alpha)
        trials = check_trials(X, groups, units, within=refit == "within")
        if trials.design is not None:
            warn_of_few_permutations(n_permutations, len(trials.design.models.pairs))
            warn_of_few_arrangements(trials.design.cells)
            power = POWERS[statistic]
            found = refitted_tests(
                trials, hmm, chosen, power, n_permutations, seed, workers
            )
            return GroupTestResult(**found, kind=statistic)
        # Each unit has one condition, so its model does not depend on labels.
        X, groups, units = trials.unit_models(hmm, seed), trials.unit_groups, None
    X, chosen = _checked(X, metric, alpha, match)
    design = check_design(X, groups, units, strata, covariates)
    warn_of_few_permutations(n_permutations, len(design.pairs))
    # With covariates, no two permutations are the same.
    if covariates is None:
        warn_of_few_arrangements(design.cells)
    if match in FITTED_MATCHES:
        X = matched_models(hmm, X, match, seed)
    amounts = compared_amounts(X, design, n_permutations, (seed, AMOUNTS))
    if match == "models":
        amounts.pop("models_per_unit", None)
    check_models_per_unit(amounts)
    warn_of_amounts(amounts)
    compared = _compared(X, chosen, alpha, workers)
    if match == "models":
        compared, design = _matched(compared, design, seed)
    names = list(compared)
    powers = [values ** POWERS[statistic] for values in compared.values()]
    powers.append(compared["distance"] ** 2)
    matrices, design = unit_matrices(np.stack(powers), design)
    arguments = names, matrices[:-1], n_permutations, workers
    tests = _component_tests(design, *arguments, (seed, OVERALL))
    spread = dispersion_test(
        matrices[-1], design, n_permutations, (seed, SPREAD), **workers
    )
    pairwise, apart = _pairwise_tests(design, *arguments, seed)
    _warn_of_spread(tests["distance"], spread)
    counts = zip(map(str, design.names), design.counts.tolist(), strict=True)
    return GroupTestResult(
        MappingProxyType(tests),
        spread,
        MappingProxyType(pairwise),
        MappingProxyType(corrected_pvalues(pairwise)),
        MappingProxyType(dict(counts)),
        statistic,
        MappingProxyType(amounts),
        MappingProxyType(_missing(tests, spread, chosen is None) | apart),
    )


def _check_fitting(X, hmm, refit, match, units):
    """Raise if the parameters that fit models are wrong or unused."""
    check_hmm("hmm", hmm)
    if not isinstance(refit, bool | np.bool_):
        check_choice("refit", refit, ("within",))
    if match is not None:
        check_choice("match", match, MATCHES)
    if match == "models" and units is None:
        raise ValueError("match='models' needs units with several models, got None.")
    if not refit and match not in FITTED_MATCHES:
        check_unused("hmm", hmm, None, f"with {refit=!r} and {match=!r}")
    elif is_models(X):
        name = f"refit={refit!r}" if refit else f"match={match!r}"
        raise TypeError(
            f"{name} needs sequences, to which models are fitted again, got an "
            "HMMBatch."
        )


def _symmetric_metric(metric, alpha):
    """Return the distance, or raise if it is not symmetric."""
    chosen = resolve_metric(metric, alpha=alpha)
    if not chosen.symmetric:
        raise ValueError(f"metric must be symmetric, got {metric!r}, which is not.")
    return chosen


def _matched(compared, design, seed):
    """Return distances between equal numbers of models of each unit."""
    rows = matched_rows(compared["distance"], design, seed)
    compared = {name: x[np.ix_(rows, rows)] for name, x in compared.items()}
    return compared, design._replace(unit_of=design.unit_of[rows])


def _missing(tests, spread, given):
    """Return which tests were not made, and why."""
    what = "X holds distances without components" if given else "not in this metric"
    missing = dict.fromkeys({"marginal", "transition"} - tests.keys(), what)
    if spread is None:
        missing["dispersion"] = "no stratum has more than two units"
    return dict(sorted(missing.items()))


def _checked(X, metric, alpha, match):
    """Return models or sequences and a distance, or precomputed matrices and None."""
    if match in FITTED_MATCHES:
        return checked_units(X), _symmetric_metric(metric, alpha)
    if is_models(X):
        return check_models("X", X), _symmetric_metric(metric, alpha)
    METRIC_CHECKS["alpha"]("alpha", alpha)
    X = checked_matrices(X)
    default = defaults_of(hmm_group_test)["metric"]
    check_unused("metric", metric, default, "if X holds distances or components")
    return X, None


def checked_matrices(X):
    """Return precomputed distances or components, or raise.

    Parameters
    ----------
    X : array-like of shape (n_models, n_models[, 2])
        The argument as the caller gave it.

    Returns
    -------
    X : ndarray of the same shape
        Finite, symmetric and 0 on the diagonal.
    """
    forms = (
        "X must be an HMMBatch, distances of shape (n_models, n_models) or components "
        "of shape (n_models, n_models, 2)"
    )
    try:
        X = real_array("X", X)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{forms}, got {type(X).__name__}, which is not an array of numbers. "
            "HMMTransformer makes models from sequences."
        ) from error
    if (
        X.ndim not in {2, 3}
        or X.shape[0] != X.shape[1]
        or X.shape[2:] not in {(), (2,)}
    ):
        raise ValueError(f"{forms}, got shape {X.shape}.")
    check_distances("X", X, LARGEST_DISTANCE)
    for wrong, wanted in ((np.isinf(X), "be finite"), (X < 0, "not be negative")):
        _check_cells(wrong, X, wanted)
    slack = DISTANCE_TOLERANCE * X.max(initial=0.0)
    _check_cells(np.abs(X - X.swapaxes(0, 1)) > slack, X, "be symmetric")
    far = np.zeros(X.shape, dtype=bool)
    index = np.arange(len(X))
    far[index, index] = X[index, index] > slack
    _check_cells(far, X, "be 0 on the diagonal")
    return X


def _check_cells(wrong, X, wanted):
    if wrong.any():
        cell = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"The distances in X must {wanted}, got {X[cell]} in row {cell[0]}, column "
            f"{cell[1]}."
        )


def _compared(X, metric, alpha, workers):
    """Return the distances between models and, if they have any, their components."""
    if metric is None and X.ndim == 2:
        return {"distance": mixed_precomputed(X, alpha)}
    if metric is not None:
        check_same_features(X, X)
        alpha = getattr(metric, "alpha", None)
    if metric is not None and not is_mixture(metric):
        distances = all_pairs(X, X, metric, **workers)
        return {"distance": _off_diagonal(distances)}
    both = (
        X if metric is None else all_pairs(X, X, metric, "components", (2,), **workers)
    )
    both = _off_diagonal(both)
    return {
        "distance": mixed_precomputed(both, alpha),
        "marginal": both[..., 0],
        "transition": both[..., 1],
    }


def _off_diagonal(distances):
    """Return distances that are finite, and 0 on the diagonal.

    The distance of a model to itself may differ from 0 (`IAW`); no statistic uses it.
    """
    _check_cells(np.isinf(distances), distances, "be finite")
    distances = np.array(distances)
    index = np.arange(len(distances))
    distances[index, index] = 0.0
    return distances


def unit_matrices(matrices, design):
    """Return matrices and their design with one row per unit, ordered by content.

    Parameters
    ----------
    matrices : ndarray of shape (n_matrices, n_models, n_models)
        Powers of distances between models.

    design : Design
        The comparison.

    Returns
    -------
    matrices : ndarray of shape (n_matrices, n_units, n_units)
        Their averages over the models of each unit, times -1/2.

    design : Design
        The comparison in the same order, one model per unit.
    """
    n_units = len(design.codes)
    if n_units == len(design.unit_of):
        rows = np.argsort(design.unit_of)
        matrices = matrices[:, rows][:, :, rows]
    else:
        means = (np.arange(n_units)[:, None] == design.unit_of).astype(float)
        means /= means.sum(axis=1, keepdims=True)
        matrices = means @ matrices @ means.T
    # Permutations must not depend on the order in which the models are given.
    content = np.sort(matrices[0], axis=1).sum(axis=1)
    order = np.lexsort((content, design.codes))
    design = design.ordered(order)
    return -0.5 * matrices[:, order][:, :, order], design


def _component_tests(design, names, matrices, n_permutations, workers, seed):
    """Return one test per matrix, by name, all with the same permutations."""
    effect, blocks, nuisance = design.bases()
    n_units, n_effects = effect.shape
    n_left = n_units - n_effects - blocks.shape[1] - nuisance.shape[1]
    if n_left < 1:
        raise ValueError(
            "There must be more units than groups, strata and covariates together, got "
            f"{n_units} units, which leave {n_left} degrees of freedom."
        )
    known = np.concatenate([blocks, nuisance], axis=1)
    rest = np.eye(n_units) - known @ known.T
    matrices = rest @ matrices @ rest
    totals = np.trace(matrices, axis1=1, axis2=2)
    basis = np.concatenate([effect, nuisance], axis=1)
    observed = quadratic_forms(matrices, basis, np.arange(n_units)[None])
    forms = permuted(
        _forms, (matrices, basis), design.strata, n_permutations, seed, **workers
    )
    ratios, order = zip(
        *(f_ratios(values, totals, n_effects, n_left) for values in (observed, forms)),
        strict=True,
    )
    fractions = observed[0, :, :n_effects].sum(axis=1) / np.where(totals > 0, totals, 1)
    chances = pvalues(order[0][0], order[1])
    return {
        name: PermutationTest(
            float(ratios[0][0, k]),
            float(chances[k]),
            float(fractions[k]),
            ratios[1][:, k],
        )
        for k, name in enumerate(names)
    }


def _forms(arrays, rows):
    matrices, basis = arrays
    return quadratic_forms(matrices, basis, rows)


def _pairwise_tests(design, names, matrices, n_permutations, workers, seed):
    """Return tests of each pair of groups, and why some pairs have none."""
    if len(design.names) == 2:
        return {}, {}
    found, missing = {}, {}
    for pair in design.pairs:
        part, units = design.chosen(pair)
        names_of_pair = tuple(map(str, part.names))
        if not part.is_exchangeable:
            missing[" - ".join(names_of_pair)] = "no stratum has units of both groups"
            continue
        tests = _component_tests(
            part,
            names,
            matrices[:, units][:, :, units],
            n_permutations,
            workers,
            (seed, PAIRS, *map(int, pair)),
        )
        found[names_of_pair] = MappingProxyType(tests)
    return found, missing


def _warn_of_spread(test, spread):
    if spread is not None and max(test.pvalue, spread.pvalue) <= LEVEL:
        warn_caller(
            "The groups also differ in spread (test of dispersion: "
            f"p = {spread.pvalue:.4g}), which may be what the test of the distance "
            "found. See the field dispersion of the result.",
        )
