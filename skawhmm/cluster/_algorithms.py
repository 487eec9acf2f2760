"""Partitions of models: around averages (k-means) and around medoids (FasterPAM)."""

from typing import NamedTuple

import numpy as np

from skawhmm.cluster._algorithms_kernels import greedy_medoids, swap_medoids
from skawhmm.cluster._averaging import (
    indexed_centers,
    moved_centers,
    registered,
    reweighted_centers,
    squared_costs,
    trimmed,
)
from skawhmm.models._batch import HMMBatch
from skawhmm.utils._numbers import row_blocks

# Models per cluster in the sample whose medoids are the seeds: enough to miss no
# cluster, few enough that their distances take no longer than a round of k-means.
SAMPLE_PER_CLUSTER = 20

# The inverse of a smaller power of two overflows.
LEAST_EXPONENT = -1023

# Rounds of swaps that find the seeds, which need not be optimal.
SEED_ROUNDS = 10


class Partition(NamedTuple):
    """Clusters of models around centres."""

    inertia: float
    labels: np.ndarray
    centers: HMMBatch
    n_iter: int


def kmeans_partition(members, seeds, distances, max_iter, tol, advance):
    """Return clusters of models around averages, by Lloyd's algorithm.

    Parameters
    ----------
    members : Members
        The models.

    seeds : ndarray of shape (n_clusters,)
        The models to start from.

    distances : callable
        Takes two batches and returns the matrix of their distances.

    max_iter : int
        Largest number of rounds.

    tol : float
        The algorithm stops when a round lowers the inertia by less than this fraction.

    advance : callable
        Called with the number of rounds that are done or not needed any more.

    Returns
    -------
    partition : Partition
        The best of all rounds.
    """
    centers = members.models[seeds]
    best = Partition(np.inf, np.empty(0, np.intp), centers, 0)
    for n_iter in range(1, max_iter + 1):
        squared = distances(members.models, centers) ** 2
        labels = np.argmin(squared, axis=1)
        inertia = float(squared[np.arange(len(labels)), labels].sum())
        advance(1)
        done = n_iter > 1 and best.inertia - inertia <= tol * best.inertia
        if inertia < best.inertia:
            best = Partition(inertia, labels, centers, n_iter)
        if done or inertia == 0:
            break
        centers = _averaged(members, centers, _filled(labels, squared))
    advance(max_iter - n_iter)
    return best._replace(centers=trimmed(best.centers), n_iter=n_iter)


def _averaged(members, centers, labels):
    """Return the centres after a step towards the averages of their clusters."""
    fractions = 1 / np.bincount(labels, minlength=len(centers))[labels]
    if members.by_index:
        return indexed_centers(members, centers, labels, fractions)
    cost = squared_costs(members, centers, labels)
    centers = reweighted_centers(members, centers, labels, fractions, cost)
    plans, _ = registered(members, centers, labels, cost)
    return moved_centers(members, centers, labels, fractions, plans)


def _filled(labels, squared):
    """Return labels that give each empty cluster a model far from its own centre."""
    labels = labels.copy()
    empty = np.setdiff1d(np.arange(squared.shape[1]), labels)
    order = np.argsort(-squared[np.arange(len(labels)), labels], kind="stable")
    for n in order:
        if len(empty) == 0:
            break
        if np.sum(labels == labels[n]) > 1:
            labels[n], empty = empty[0], empty[1:]
    return labels


def spread_seeds(models, n_clusters, distances, random_state):
    """Return models far from each other, drawn as k-means++ does.

    Parameters
    ----------
    models : HMMBatch
        The models of `Members`.

    n_clusters : int
        Number of seeds.

    distances : callable
        Takes two batches and returns the matrix of their distances.

    random_state : RandomState
        Source of the draws.

    Returns
    -------
    seeds : ndarray of shape (n_clusters,)
        Different models.
    """
    n_trials = 2 + int(np.log(n_clusters))
    seeds = [random_state.randint(len(models))]
    nearest = distances(models, models[seeds])[:, 0] ** 2
    while len(seeds) < n_clusters:
        left = nearest.copy()
        left[seeds] = 0
        if not left.any():
            # All remaining models equal a seed.
            left[:] = 1
            left[seeds] = 0
        n_drawn = min(n_trials, np.count_nonzero(left))
        drawn = random_state.choice(
            len(models), n_drawn, replace=False, p=left / left.sum()
        )
        reach = np.minimum(nearest[:, None], distances(models, models[drawn]) ** 2)
        chosen = int(np.argmin(reach.sum(axis=0)))
        seeds.append(int(drawn[chosen]))
        nearest = reach[:, chosen]
    return np.array(seeds)


def random_seeds(models, n_clusters, distances, random_state):  # noqa: ARG001
    """Return models drawn at random; the arguments are as in `spread_seeds`."""
    return random_state.choice(len(models), n_clusters, replace=False)


def medoid_seeds(models, n_clusters, distances, random_state):
    """Return the medoids of a sample of the models."""
    size = min(len(models), SAMPLE_PER_CLUSTER * n_clusters)
    sample = random_state.choice(len(models), size, replace=False)
    drawn = models[sample]
    medoids, _ = medoid_partition(distances(drawn, drawn), n_clusters, SEED_ROUNDS)
    return sample[medoids]


def medoid_partition(distances, n_clusters, max_iter):
    """Return the medoids of clusters, by FasterPAM from the greedy start of PAM.

    Parameters
    ----------
    distances : ndarray of shape (n_models, n_models)
        Distance of each row to each column, not NaN. Infinite ones are avoided as far
        as possible.

    n_clusters : int
        Number of medoids.

    max_iter : int
        Largest number of rounds over all models.

    Returns
    -------
    medoids : ndarray of shape (n_clusters,)
        The medoids.

    n_iter : int
        Number of rounds.
    """
    largest, symmetric = 0.0, True
    for rows in row_blocks(distances):
        block = distances[rows]
        largest = max(largest, np.max(block, where=np.isfinite(block), initial=0.0))
        symmetric = symmetric and np.array_equal(block, distances[:, rows].T)
    # Dividing by a power of two near the largest distance keeps sums in range and is
    # exact. One infinite distance outweighs all finite ones.
    _, exponent = np.frexp(largest)
    limits = np.ldexp(1.0, -max(exponent, LEAST_EXPONENT)), len(distances) + 1.0
    # The kernels look at the distances of all models to one candidate at a time, which
    # lie side by side if the distance is symmetric. A copy would take too much memory.
    columns = distances if symmetric else distances.T
    medoids = greedy_medoids(columns, n_clusters, *limits)
    return medoids, swap_medoids(columns, medoids, max_iter, *limits)
