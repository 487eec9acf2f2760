"""Averages of models."""

from functools import partial
from operator import eq
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import KMeans
from tqdm.auto import tqdm

from skawhmm.cluster._averaging import (
    indexed_centers,
    make_members,
    moved_centers,
    rechained_centers,
    registered,
    reweighted_centers,
    squared_costs,
    trimmed,
)
from skawhmm.distances._maw import REGISTRATIONS
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_models
from skawhmm.utils._checks import (
    WORK_CHECKS,
    check_boolean,
    check_choice,
    check_integer,
    check_optional,
    check_parameters,
    check_random,
    check_real,
)
from skawhmm.utils._numbers import real_array
from skawhmm.utils._parameters import Unused, check_effects, defaults_of
from skawhmm.utils._seeds import random_stream

# Largest number of models tried as the start of an average.
MAX_STARTS = 10


CHECKS = {
    **WORK_CHECKS,
    "models": check_models,
    "n_components": partial(check_optional, check=partial(check_integer, low=1)),
    "max_iter": partial(check_integer, low=1),
    "tol": partial(check_real, low=0, high=np.inf),
    "update_weights": check_boolean,
    "registration": partial(check_choice, choices=REGISTRATIONS),
    "random_state": check_random,
}

# An average of states that are matched by index needs no search.
SEARCH = "n_components", "update_weights", "max_iter", "tol", "random_state"
UNUSED = (Unused(SEARCH, "registration", partial(eq, "identity")),)


def hmm_barycenter(
    models: HMMBatch,
    sample_weight: ArrayLike | None = None,
    *,
    n_components: int | None = None,
    update_weights: bool = True,
    max_iter: int = 100,
    tol: float = 1e-6,
    registration: str = "transport",
    random_state: Any = None,
    verbose: int = 0,
) -> tuple[HMMBatch, NDArray[np.float64]]:
    """Return the average of models: the model with the least mean squared distance.

    Parameters
    ----------
    models : HMMBatch
        The models. They must have observed the same features.

    sample_weight : array-like of shape (n_models,), default=None
        Weights of the models in the average, scaled to sum to one; by default equal.

    n_components : int, default=None
        Number of states of the average; by default as many as the largest model has.

    update_weights : bool, default=True
        Whether to optimise the state probabilities too. Otherwise they stay as in the
        model from which the search starts.

    max_iter : int, default=100
        Largest number of steps.

    tol : float, default=1e-6
        The search stops if a step lowers the objective by at most this fraction.

    registration : {"transport", "identity"}, default="transport"
        How states are matched: by transport, whatever their order, or by index. With
        "identity", state 1 of a model stands for state 1 of every other model, and so
        on, as in visible chains. No search is needed then, and its parameters must keep
        their defaults.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed for the start of the search, which is the best of ten models drawn at
        random or, if no model has `n_components` states, made from clusters of all
        states.

    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    barycenter : HMMBatch
        A batch of one model.

    objective : ndarray of shape (n_steps + 1,)
        Weighted mean of the squared marginal components (``p=2``) between the average
        and the models, at the start and after each step. It never rises. With
        ``registration="identity"``, its value for the average.

    See Also
    --------
    HMMKMeans : Clusters of models around averages.

    Notes
    -----
    States are averaged as their family defines (`averaged` of
    :class:`skawhmm.emissions.Emission`): means and factors of covariances, rates, or
    probabilities of symbols. If symbols have costs, their probabilities are averaged by
    the Wasserstein barycentre of order 2, or by the mean if it is closer. For two
    models, means of probabilities, and of the rates of several channels, are the
    closest possible states; for more models there may be slightly closer ones. The
    search ends before a step that would raise the objective.

    With ``registration="identity"``, probabilities of states and of pairs of successive
    states are averaged by index. The transition matrix of the average is thus a mean of
    transition matrices in which each row is weighted by how often its state is visited.

    The search finds a local minimum. With `update_weights`, which one it finds may
    depend on the order of the states. Transition matrices are transferred to the states
    of the average as in :class:`JAW` and then averaged: so the average of persistent
    chains is persistent, too. If the weights of the models are their stationary
    distributions, so are the weights of the average.

    Examples
    --------
    The average transition matrix of three nights between wake (W), non-REM sleep (N)
    and REM sleep (R):

    >>> from skawhmm import HMMBatch, hmm_barycenter
    >>> from skawhmm.fitting import MarkovChainTransformer
    >>> nights = ["WWNNNNRRNNNW", "WNNNRRRNNNNN", "WWWNNNNNRRWW"]
    >>> chains = MarkovChainTransformer("WNR").fit_transform(nights)
    >>> average, _ = hmm_barycenter(chains, registration="identity")
    >>> average.transmats[0].round(2)
    array([[0.58, 0.42, 0.  ],
           [0.05, 0.79, 0.16],
           [0.14, 0.29, 0.57]])

    Two models whose states are in a different order:

    >>> models = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [0.1, 0.9]], [[0.7, 0.3], [0.3, 0.7]]],
    ...     means=[[[0.0], [5.0]], [[7.0], [0.0]]],
    ...     covars=[[[1.0], [1.0]], [[9.0], [1.0]]],
    ... )
    >>> barycenter, objective = hmm_barycenter(models)
    >>> barycenter.means[0].ravel(), barycenter.covars[0].ravel()
    (array([0., 6.]), array([1., 4.]))
    >>> barycenter.transmats[0].round(3)
    array([[0.8, 0.2],
           [0.2, 0.8]])
    >>> objective[-1].round(3)
    np.float64(1.0)
    """
    given = {
        "models": models,
        "n_components": n_components,
        "max_iter": max_iter,
        "tol": tol,
        "update_weights": update_weights,
        "registration": registration,
        "random_state": random_state,
        "verbose": verbose,
    }
    check_parameters(given, CHECKS)
    check_effects(given, defaults_of(hmm_barycenter), UNUSED)
    fractions = _check_fractions(sample_weight, len(models))
    if registration == "identity":
        return _indexed(models, fractions)
    largest = models.n_components.max()
    size = int(largest if n_components is None else n_components)
    members = make_members(models, size)
    start = _start(members, size, fractions, random_stream(random_state))
    label = "steps of the average"
    with tqdm(total=max_iter, desc=label, disable=not verbose) as bar:
        found = _search(
            members, start, fractions, update_weights, max_iter, tol, bar.update
        )
        # Converged: the remaining steps are not needed.
        bar.update(max_iter - bar.n)
    return found


def _indexed(models, fractions):
    """Return the average of models whose states are matched by index."""
    members = make_members(models, by_index=True)
    labels = np.zeros(len(models), dtype=np.int64)
    center = indexed_centers(members, members.models[0], labels, fractions)
    cost = squared_costs(members, center, labels)
    _, totals = registered(members, center, labels, cost)
    return center, np.array([fractions @ totals])


def _search(members, center, fractions, update_weights, max_iter, tol, advance):
    """Return the average found from a start, and the objective after each step."""
    labels = np.zeros(len(fractions), dtype=np.int64)
    cost = squared_costs(members, center, labels)
    plans, totals = registered(members, center, labels, cost)
    trace = [fractions @ totals]
    for _ in range(max_iter):
        moved = moved_centers(members, center, labels, fractions, plans)
        cost = squared_costs(members, moved, labels)
        if update_weights:
            moved = reweighted_centers(members, moved, labels, fractions, cost)
        moved_plans, totals = registered(members, moved, labels, cost)
        advance(1)
        value = fractions @ totals
        # The objective can rise by rounding, or because the averages of the family are
        # not exact. Either way nothing is left to gain.
        if value > trace[-1]:
            break
        center, plans = moved, moved_plans
        trace.append(value)
        if trace[-2] - value <= tol * trace[-2]:
            break
    center = rechained_centers(members, center, labels, fractions, plans)
    return trimmed(center), np.array(trace)


def _check_fractions(sample_weight, n_models):
    if sample_weight is None:
        return np.full(n_models, 1 / n_models)
    fractions = real_array("sample_weight", sample_weight)
    if fractions.shape != (n_models,):
        raise ValueError(
            f"sample_weight must have one entry per model ({n_models} models), got "
            f"shape {fractions.shape}."
        )
    if not (
        np.isfinite(fractions).all() and fractions.min() >= 0 and fractions.sum() > 0
    ):
        raise ValueError(
            "sample_weight must be finite, not negative and not all 0, got values from "
            f"{fractions.min()} to {fractions.max()}."
        )
    return fractions / fractions.sum()


def _start(members, size, fractions, random_state):
    """Return the starting model: the best of a few, or one made of clustered states."""
    models = members.models
    usable = np.flatnonzero((models.n_components == size) & (fractions > 0))
    if len(usable) == 0:
        return _pooled_start(members, size, fractions, random_state)
    if len(usable) > MAX_STARTS:
        usable = np.sort(random_state.choice(usable, MAX_STARTS, replace=False))
    labels = np.zeros(len(models), dtype=np.int64)
    values = []
    for center in models[usable]:
        cost = squared_costs(members, center, labels)
        values.append(fractions @ registered(members, center, labels, cost)[1])
    return models[usable[np.argmin(values)]]


def _pooled_start(members, size, fractions, random_state):
    """Return a model whose states are averages of clusters of all states."""
    models = members.models
    n, j = np.nonzero(models.weights * fractions[:, None] > 0)
    columns = models.emission.described(range(models.n_features)).values()
    # NaN stands for features that no model observed.
    states = np.nan_to_num(np.stack(list(columns), axis=2)[n, j])
    n_distinct = len(np.unique(states, axis=0))
    if n_distinct < size:
        raise ValueError(
            "n_components must be at most the number of different states of all "
            f"models, got n_components={size} for {n_distinct}."
        )
    pooled = KMeans(size, n_init=4, random_state=random_state)
    mass = fractions[n] * models.weights[n, j]
    clusters = pooled.fit(states, sample_weight=mass).labels_
    plans = np.zeros_like(models.transmats)
    plans[n, clusters, j] = models.weights[n, j]
    weights = np.zeros((1, plans.shape[1]))
    np.add.at(weights[0], clusters, mass)
    weights /= weights.sum()
    first = models[0]
    blank = map(np.zeros_like, first.emission.parameters.values())
    center = first._changed(
        emission=first.emission.like(*blank, observed=first.observed),
        weights=weights,
        startprobs=weights,
    )
    labels = np.zeros(len(models), dtype=np.int64)
    return moved_centers(members, center, labels, fractions, plans)
