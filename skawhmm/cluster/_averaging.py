r"""The steps that turn centres into averages of models, for p = 2.

A centre with weights :math:`a` minimises :math:`\sum_n \lambda_n R_2^2(a, n)`, the mean
of the squared marginal components. Three steps alternate, none of which raises it:

- exact plans :math:`W_n` between the states of the centre and of each model;
- states: averages of the states of the models, with weights
  :math:`\lambda_n W_n[i, j]`, as their family defines them (`Emission.averaged`);
- weights: a step against the prices of the plans, which are a subgradient.

Transitions follow: :math:`T = \sum_n \lambda_n \tilde T_n`, the mean of the chains
transferred to the states of the centre, with both ends of a transition registered
jointly as in `JAW`: the mean of chains that stay in their state with probability 0.9
stays at least as often. With :math:`a` as above, :math:`a T = a` if the weights of all
models are stationary.

The functions work on many centres at once: model n belongs to centre `labels[n]` with
weight `fractions[n]`, and the weights of the models of each centre sum to one.

Models whose states are matched by index need no search: see `indexed_centers`.
"""

from typing import Any, NamedTuple

import numpy as np

from skawhmm.cluster._averaging_kernels import averaged_chains, priced_weights
from skawhmm.distances._prepared import visited_chains
from skawhmm.distances._registration import optimal_registrations
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_equal_sizes

# Step sizes for the weights: changes of the log weight of the most mispriced state. The
# first one that lowers the objective is taken.
WEIGHT_STEPS = 4.0 ** -np.arange(9)


class Members(NamedTuple):
    """Models to be averaged, the costs between their states, and how they are matched.

    With `by_index`, state 1 of a model stands for state 1 of every other model.
    """

    models: HMMBatch
    costs: Any
    by_index: bool = False


def make_members(models, size=1, *, by_index=False):
    """Return models ready to be averaged.

    Parameters
    ----------
    models : HMMBatch
        The models.

    size : int, default=1
        Least number of states per model; models with fewer are padded.

    by_index : bool, default=False
        Whether states are matched by index, not by transport.

    Returns
    -------
    members : Members
        The models as the other functions take them.
    """
    first = models.emission[:1]
    # A weight of 0 changes nothing, but families without averages raise here.
    first.averaged(first, np.zeros(1, np.intp), np.zeros_like(models.transmats[:1]))
    masks = models.emission.masks()
    unlike = np.flatnonzero((masks != masks[0]).any(axis=1))
    if len(unlike):
        raise ValueError(
            "Models to be averaged must have observed the same features, got others in "
            f"model {unlike[0]} than in model 0. HMMKMedoids takes any."
        )
    models = models._bare()._padded(max(size, models.transmats.shape[1]))
    models = models._changed(emission=models.emission.keeping_costs())
    if by_index:
        check_equal_sizes(models, "registration='identity'")
    else:
        chains = visited_chains(models.weights, models.transmats)
        models = models._changed(transmats=chains)
    return Members(models, models.emission.ground_costs(), by_index)


def trimmed(models):
    """Return the models without states that are padding in all of them."""
    size = int(models.n_components.max())
    states = (array[:, :size] for array in models.emission.parameters.values())
    return models._changed(
        emission=models.emission.like(*states, observed=models.observed),
        transmats=models.transmats[:, :size, :size],
        weights=models.weights[:, :size],
        startprobs=models.startprobs[:, :size],
    )


def squared_costs(members, centers, labels):
    """Return squared costs between the states of models and of their centres."""
    own = centers.emission.ground_costs()
    costs = type(own).concatenate([own, members.costs])
    return costs.cross(labels, len(centers) + np.arange(len(labels)))


def registered(members, centers, labels, cost):
    """Return optimal plans between models and their centres."""
    models = members.models
    plans = optimal_registrations(
        np.concatenate([centers.weights, models.weights]),
        np.concatenate([centers.transmats, models.transmats]),
        labels,
        len(centers) + np.arange(len(models)),
        cost,
    )
    return plans, np.einsum("nij,nij->n", plans, cost)


def moved_centers(members, centers, labels, fractions, plans):
    """Return centres whose states are averages of the states registered with them.

    Parameters
    ----------
    members : Members
        The models.

    centers : HMMBatch
        The centres.

    labels, fractions : ndarray of shape (n_models,)
        The centre of each model, and its weight in the average.

    plans : ndarray of shape (n_models, n_components, n_components)
        Plans between them.

    Returns
    -------
    centers : HMMBatch
        The new centres, with the same weights.
    """
    masses = fractions[:, None, None] * plans
    family = centers.emission.averaged(members.models.emission, labels, masses)
    moved = centers._changed(emission=family)
    return rechained_centers(members, moved, labels, fractions, plans)


def rechained_centers(members, centers, labels, fractions, plans):
    """Return centres whose chains are averages of the chains transferred to them."""
    chains, starts = averaged_chains(
        plans,
        members.models.transmats,
        members.models.startprobs,
        labels,
        fractions,
        centers.weights,
    )
    return centers._changed(transmats=chains, startprobs=starts)


def indexed_centers(members, centers, labels, fractions):
    """Return the averages of models whose states are matched by index.

    Probabilities of states, and of pairs of successive states, are averaged: the
    weights of the average are stationary if the weights of all models are. For a state
    that no model visits, the rows of the transition matrices are averaged.

    Parameters
    ----------
    members : Members
        The models.

    centers : HMMBatch
        Any models with as many states.

    labels, fractions : ndarray of shape (n_models,)
        The centre of each model, and its weight in the average.

    Returns
    -------
    centers : HMMBatch
        The averages.
    """
    models = members.models
    part = fractions[:, None]
    weights, starts = np.zeros((2, *centers.weights.shape))
    np.add.at(weights, labels, part * models.weights)
    np.add.at(starts, labels, part * models.startprobs)
    mass = part * np.where(weights[labels] > 0, models.weights, 1.0)
    masses = mass[:, :, None] * np.eye(mass.shape[1])
    states = centers.emission
    return centers._changed(
        emission=states.averaged(models.emission, labels, masses),
        transmats=states.matched_means(
            centers.transmats, models.transmats, labels, masses
        ),
        weights=weights,
        startprobs=starts,
    )


def reweighted_centers(members, centers, labels, fractions, cost):
    """Return centres with weights after one step, if a step lowers the objective.

    Parameters
    ----------
    members : Members
        The models.

    centers : HMMBatch
        The centres.

    labels, fractions : ndarray of shape (n_models,)
        The centre of each model, and its weight in the average.

    cost : ndarray of shape (n_models, n_components, n_components)
        From `squared_costs`.

    Returns
    -------
    centers : HMMBatch
        The centres, with new weights.
    """
    problem = members.models.weights, labels, fractions, cost
    weights = np.array(centers.weights)
    best, slopes = priced_weights(weights, *problem)
    slopes -= np.sum(weights * slopes, axis=1, keepdims=True)
    steep = np.abs(np.where(weights > 0, slopes, 0)).max(axis=1, keepdims=True)
    slopes /= np.where(steep > 0, steep, 1)
    waiting = steep[:, 0] > 0
    for step in WEIGHT_STEPS:
        if not waiting.any():
            break
        trial = weights * np.exp(-step * waiting[:, None] * slopes)
        trial /= trial.sum(axis=1, keepdims=True)
        value, _ = priced_weights(trial, *problem)
        better = waiting & (value < best)
        weights[better] = trial[better]
        waiting &= ~better
    return centers._changed(weights=weights)
