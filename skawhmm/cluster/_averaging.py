r"""The moves that make centres averages of models, in the geometry of p = 2.

A centre with weights :math:`a` minimises :math:`\sum_n \lambda_n R_2^2(a, n)`, the mean
of the squared marginal components. Three moves, none of which raises it, take turns:

- exact plans :math:`W_n` between the states of the centre and those of each model;
- states: means are averaged with weights :math:`\lambda_n W_n[i, j]`, and so are the
  factors :math:`L` of the covariances, each turned towards that of the centre by its
  best rotation,
  :math:`L \leftarrow \sum \lambda_n W_n[i, j] L_{nj} Q_{nij} / a_i`. This
  is one step of the fixed point of Bures barycenters, written without inverses so that
  singular covariances are legal. Standard deviations of diagonal ones just average;
- weights: a step against the prices of the plans, which are a subgradient.

Transitions follow: :math:`T = \sum_n \lambda_n W_{r,n} T_n W_{c,n}^\top`, for which
:math:`a T = a` if the weights of all models are stationary.

The functions work on many centres at once: model n belongs to centre `labels[n]` with
share `shares[n]`, and the shares of the models of each centre sum to one.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from skawhmm.distances._components import carried_chain, conditional_plans
from skawhmm.distances._registration import optimal_registrations
from skawhmm.emissions._gaussian_costs import GaussianCosts
from skawhmm.models._batch import HMMBatch
from skawhmm.numerics._transport import PRICE, make_workspace, solve_transport
from skawhmm.utils._compile import KERNEL

# Number of factors turned at once, which limits the memory of their products.
BATCH_OF_FACTORS = 4096

# Steps of the weights, as changes of the logarithm of the most mispriced state; the
# first that lowers the objective is taken.
WEIGHT_STEPS = 4.0 ** -np.arange(9)


class Members(NamedTuple):
    """Models to be averaged, and the costs between their states."""

    models: HMMBatch
    costs: Any


def make_members(models, size=1):
    """Return models ready to be averaged.

    Parameters
    ----------
    models : HMMBatch
        The models.

    size : int, default=1
        Least number of states per model; models with fewer are padded.

    Returns
    -------
    members : Members
        What the other functions take.
    """
    models.emission.gaussian("Averages need")
    masks = models.emission.masks()
    unlike = np.flatnonzero((masks != masks[0]).any(axis=1))
    if len(unlike):
        raise ValueError(
            "Models to be averaged must have observed the same features, got others in "
            f"model {unlike[0]} than in model 0. HMMKMedoids takes any."
        )
    models = models._bare()._padded(max(size, models.transmats.shape[1]))
    models = models._changed(emission=models.emission.keeping_costs())
    return Members(models, models.emission.ground_costs())


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
    """Return squared costs between the states of models and of their centres.

    Parameters
    ----------
    members : Members
        The models.

    centers : HMMBatch
        The centres, with as many states as the models.

    labels : ndarray of shape (n_models,)
        The centre of each model.

    Returns
    -------
    cost : ndarray of shape (n_models, n_components, n_components)
        From the states of the centre to those of the model.
    """
    own = centers.emission.ground_costs()
    costs = GaussianCosts.concatenate([own, members.costs])
    return costs.cross(labels, len(centers) + np.arange(len(labels)))


def registered(members, centers, labels, cost):
    """Return optimal plans between models and their centres.

    Parameters
    ----------
    members : Members
        The models.

    centers : HMMBatch
        The centres.

    labels : ndarray of shape (n_models,)
        The centre of each model.

    cost : ndarray of shape (n_models, n_components, n_components)
        From `squared_costs`.

    Returns
    -------
    plans : ndarray of shape (n_models, n_components, n_components)
        Plans from centre to model.

    totals : ndarray of shape (n_models,)
        Costs of the plans.
    """
    models = members.models
    plans = optimal_registrations(
        np.concatenate([centers.weights, models.weights]),
        np.concatenate([centers.transmats, models.transmats]),
        labels,
        len(centers) + np.arange(len(models)),
        cost,
    )
    return plans, np.einsum("nij,nij->n", plans, cost)


def moved_centers(members, centers, labels, shares, plans):
    """Return centres whose states are averages of the states registered with them.

    Parameters
    ----------
    members : Members
        The models.

    centers : HMMBatch
        The centres.

    labels, shares : ndarray of shape (n_models,)
        The centre of each model, and its share in it.

    plans : ndarray of shape (n_models, n_components, n_components)
        Plans between them.

    Returns
    -------
    centers : HMMBatch
        The new centres, with the same weights.
    """
    old = centers.emission.ground_costs()
    points = old.points.copy()
    mass, sums = summed_points(
        plans, labels, shares, members.costs.points, len(centers)
    )
    used = mass > 0
    points[used] = sums[used] / mass[used, None]
    if old.roots is None:
        means, spreads = np.split(points, 2, axis=2)
        covars = spreads**2
    else:
        roots = old.roots.copy()
        sums = _summed_roots(members, old.roots, labels, shares, plans)
        roots[used] = sums[used] / mass[used, None, None]
        means, covars = points, roots @ roots.swapaxes(2, 3)
    family = centers.emission.like(means, covars, observed=centers.observed)
    moved = centers._changed(emission=family)
    return rechained_centers(members, moved, labels, shares, plans)


def rechained_centers(members, centers, labels, shares, plans):
    """Return centres whose chains are averages of the chains carried over to them.

    Parameters
    ----------
    members : Members
        The models.

    centers : HMMBatch
        The centres.

    labels, shares : ndarray of shape (n_models,)
        The centre of each model, and its share in it.

    plans : ndarray of shape (n_models, n_components, n_components)
        Plans between them.

    Returns
    -------
    centers : HMMBatch
        The centres, with new transition matrices and start probabilities.
    """
    chains, starts = averaged_chains(
        plans,
        members.models.transmats,
        members.models.startprobs,
        labels,
        shares,
        centers.weights,
    )
    return centers._changed(transmats=chains, startprobs=starts)


@njit(**KERNEL)
def summed_points(plans, labels, shares, points, n_centers):
    """Return the mass of each state of the centres, and the points it stands for.

    Parameters
    ----------
    plans : ndarray of shape (n_models, n_components, n_components)
        Plans from the centre of each model to the model.

    labels, shares : ndarray of shape (n_models,)
        The centre of each model, and its share in it.

    points : ndarray of shape (n_models, n_components, n_values)
        A vector for each state of the models.

    n_centers : int
        Number of centres.

    Returns
    -------
    mass : ndarray of shape (n_centers, n_components)
        Sums of the plans.

    sums : ndarray of shape (n_centers, n_components, n_values)
        Sums of the vectors, weighted by the plans.
    """
    size = plans.shape[1]
    mass = np.zeros((n_centers, size))
    sums = np.zeros((n_centers, size, points.shape[2]))
    for n in range(plans.shape[0]):
        for i in range(size):
            for j in range(size):
                share = shares[n] * plans[n, i, j]
                if share > 0:
                    mass[labels[n], i] += share
                    for k in range(points.shape[2]):
                        sums[labels[n], i, k] += share * points[n, j, k]
    return mass, sums


def _summed_roots(members, center_roots, labels, shares, plans):
    """Return sums of the factors of the models' states, turned towards the centre's."""
    masks = members.costs.masks[:, None, :, None]
    roots, target = members.costs.roots * masks, center_roots * masks[:1]
    sums = np.zeros_like(center_roots)
    cells = np.argwhere(plans * shares[:, None, None] > 0)
    for first in range(0, len(cells), BATCH_OF_FACTORS):
        n, i, j = cells[first : first + BATCH_OF_FACTORS].T
        own, center = roots[n, j], target[labels[n], i]
        u, _, vh = np.linalg.svd(own.swapaxes(1, 2) @ center)
        share = (shares[n] * plans[n, i, j])[:, None, None]
        np.add.at(sums, (labels[n], i), share * (own @ (u @ vh)))
    return sums


def reweighted_centers(members, centers, labels, shares, cost):
    """Return centres with weights after one step, if a step lowers the objective.

    Parameters
    ----------
    members : Members
        The models.

    centers : HMMBatch
        The centres.

    labels, shares : ndarray of shape (n_models,)
        The centre of each model, and its share in it.

    cost : ndarray of shape (n_models, n_components, n_components)
        From `squared_costs`.

    Returns
    -------
    centers : HMMBatch
        The centres, with new weights.
    """
    problem = members.models.weights, labels, shares, cost
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


@njit(**KERNEL)
def priced_weights(weights, model_weights, labels, shares, cost):
    """Return the objective of each centre, and its slope in the weights of the centre.

    Parameters
    ----------
    weights : ndarray of shape (n_centers, n_components)
        Weights of the centres.

    model_weights : ndarray of shape (n_models, n_components)
        Weights of the models.

    labels, shares : ndarray of shape (n_models,)
        The centre of each model, and its share in it.

    cost : ndarray of shape (n_models, n_components, n_components)
        Squared costs from the states of the centre to those of the model.

    Returns
    -------
    values : ndarray of shape (n_centers,)
        Mean costs of optimal plans.

    slopes : ndarray of shape (n_centers, n_components)
        Mean prices of the states, up to a constant for each centre.
    """
    size = weights.shape[1]
    values, slopes = np.zeros(weights.shape[0]), np.zeros(weights.shape)
    numbers, nodes = make_workspace(size, size)
    plan = np.empty((size, size))
    for n in range(labels.size):
        center = labels[n]
        total = solve_transport(
            weights[center], model_weights[n], cost[n], plan, numbers, nodes
        )
        values[center] += shares[n] * total
        for i in range(size):
            if weights[center, i] > 0:
                slopes[center, i] += shares[n] * numbers[PRICE, i]
    return values, slopes


@njit(**KERNEL)
def averaged_chains(plans, transmats, startprobs, labels, shares, weights):
    """Return the mean of chains carried over to the states of their centres.

    Parameters
    ----------
    plans : ndarray of shape (n_models, n_components, n_components)
        Plans from the centre of each model to the model.

    transmats : ndarray of shape (n_models, n_components, n_components)
        Transition matrices of the models.

    startprobs : ndarray of shape (n_models, n_components)
        Start probabilities of the models.

    labels, shares : ndarray of shape (n_models,)
        The centre of each model, and its share in it.

    weights : ndarray of shape (n_centers, n_components)
        Weights of the centres.

    Returns
    -------
    chains : ndarray of shape (n_centers, n_components, n_components)
        Transition matrices of the centres. States without weight loop.

    starts : ndarray of shape (n_centers, n_components)
        Start probabilities of the centres: the weights, where no model starts in a
        state that has weight.
    """
    n_centers, size = weights.shape
    chains = np.zeros((n_centers, size, size))
    starts = np.zeros((n_centers, size))
    forth, back = np.empty((size, size)), np.empty((size, size))
    half, moved = np.empty((size, size)), np.empty((size, size))
    for n in range(plans.shape[0]):
        conditional_plans(plans[n], forth, back)
        carried_chain(forth, transmats[n], back, half, moved)
        chains[labels[n]] += shares[n] * moved
        for j in range(size):
            starts[labels[n]] += shares[n] * startprobs[n, j] * back[j]
    for k in range(n_centers):
        total = starts[k].sum()
        starts[k] = starts[k] / total if total > 0 else weights[k]
        for i in range(size):
            total = chains[k, i].sum()
            if total > 0:
                chains[k, i] /= total
            else:
                chains[k, i, i] = 1.0
    return chains, starts
