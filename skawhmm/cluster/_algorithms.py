"""Partitions of models: around averages (k-means) and around medoids (FasterPAM)."""

from typing import NamedTuple

import numpy as np
from numba import njit

from skawhmm.cluster._averaging import (
    moved_centers,
    registered,
    reweighted_centers,
    squared_costs,
    trimmed,
)
from skawhmm.models._batch import HMMBatch
from skawhmm.utils._compile import KERNEL

# Models per cluster in the sample whose medoids are the seeds: enough to miss no
# cluster, few enough that their distances take no longer than a round of k-means.
SAMPLE_PER_CLUSTER = 20

# Rounds of swaps that find the seeds; they need not be optimal.
SEED_ROUNDS = 10

# A swap must lower the loss by more than this share of it, so that rounding cannot
# make two swaps undo each other forever.
LOSS_ROUNDING = 1e-12


class Partition(NamedTuple):
    """Clusters of models around centres."""

    inertia: float
    labels: np.ndarray
    centers: HMMBatch
    n_iter: int


def kmeans_partition(members, seeds, distances, max_iter, tol):
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
        The search stops when a round lowers the inertia by less than this share.

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
        done = n_iter > 1 and best.inertia - inertia <= tol * best.inertia
        if inertia < best.inertia:
            best = Partition(inertia, labels, centers, n_iter)
        if done or inertia == 0:
            break
        centers = _averaged(members, centers, _filled(labels, squared))
    return best._replace(centers=trimmed(best.centers), n_iter=n_iter)


def _averaged(members, centers, labels):
    """Return the centres after a step towards the averages of their clusters."""
    shares = 1 / np.bincount(labels, minlength=len(centers))[labels]
    cost = squared_costs(members, centers, labels)
    centers = reweighted_centers(members, centers, labels, shares, cost)
    plans, _ = registered(members, centers, labels, cost)
    return moved_centers(members, centers, labels, shares, plans)


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
        The models, those of `Members`.

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
            # All that is left equals a seed.
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
    """Return models drawn at random; the arguments are those of `spread_seeds`."""
    return random_state.choice(len(models), n_clusters, replace=False)


def medoid_seeds(models, n_clusters, distances, random_state):
    """Return the medoids of a sample of the models.

    Parameters
    ----------
    models : HMMBatch
        The models, those of `Members`.

    n_clusters : int
        Number of medoids.

    distances : callable
        Takes two batches and returns the matrix of their distances.

    random_state : RandomState
        Source of the sample.

    Returns
    -------
    seeds : ndarray of shape (n_clusters,)
        Different models.
    """
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
    finite = distances[np.isfinite(distances)]
    # One infinite distance outweighs all finite ones.
    far = (len(distances) + 1) * max(finite.max(initial=0.0), 1.0)
    # The kernels look at the distances of all models to one candidate at a time.
    columns = np.ascontiguousarray(np.minimum(distances, far).T)
    medoids = greedy_medoids(columns, n_clusters)
    return medoids, swap_medoids(columns, medoids, max_iter)


@njit(**KERNEL)
def greedy_medoids(columns, n_clusters):
    """Return medoids chosen one by one, each to lower the sum of distances the most.

    Parameters
    ----------
    columns : ndarray of shape (n_models, n_models)
        Distances to each candidate, by rows.

    n_clusters : int
        Number of medoids.

    Returns
    -------
    medoids : ndarray of shape (n_clusters,)
        Different models.
    """
    size = columns.shape[0]
    medoids = np.empty(n_clusters, np.int64)
    taken = np.zeros(size, np.bool_)
    nearest = np.full(size, np.inf)
    for k in range(n_clusters):
        least, best = np.inf, -1
        for candidate in range(size):
            if taken[candidate]:
                continue
            total = 0.0
            for n in range(size):
                total += min(nearest[n], columns[candidate, n])
            if total < least:
                least, best = total, candidate
        medoids[k], taken[best] = best, True
        nearest = np.minimum(nearest, columns[best])
    return medoids


@njit(**KERNEL)
def swap_medoids(columns, medoids, max_iter):
    """Swap medoids for other models as long as the sum of distances falls, in place.

    FasterPAM (Schubert and Rousseeuw, 2021): for a candidate the gains of swapping it
    with each of the medoids are found in one pass over the models, and the best swap is
    made at once if it gains.

    Parameters
    ----------
    columns : ndarray of shape (n_models, n_models)
        Distances to each candidate, by rows.

    medoids : ndarray of shape (n_clusters,)
        Changed in place.

    max_iter : int
        Largest number of rounds over all candidates.

    Returns
    -------
    n_iter : int
        Number of rounds, the last one without a swap unless there were `max_iter`.
    """
    size, n_clusters = columns.shape[0], medoids.size
    if n_clusters == 1:
        # The greedy start is exact.
        return 1
    first, second = np.empty(size, np.int64), np.empty(size)
    losses = _rank_medoids(columns, medoids, first, second)
    change = np.empty(n_clusters)
    last, total = 0, 0.0
    for n in range(size):
        total += columns[medoids[first[n]], n]
    for step in range(max_iter * size):
        candidate = step % size
        if step - last >= size:
            break
        if (medoids == candidate).any():
            continue
        shared = 0.0
        change[:] = losses
        for n in range(size):
            own, new = columns[medoids[first[n]], n], columns[candidate, n]
            if new < own:
                shared += new - own
                change[first[n]] += own - second[n]
            elif new < second[n]:
                change[first[n]] += new - second[n]
        worst = np.argmin(change)
        gain = change[worst] + shared
        if gain < -LOSS_ROUNDING * total:
            medoids[worst] = candidate
            losses = _rank_medoids(columns, medoids, first, second)
            total += gain
            last = step
    return min(step // size + 1, max_iter)


@njit(**KERNEL)
def _rank_medoids(columns, medoids, first, second):
    """Set the nearest medoid and the distance of the next; return losses by removal."""
    losses = np.zeros(medoids.size)
    for n in range(first.size):
        nearest, second[n] = np.inf, np.inf
        for k in range(medoids.size):
            distance = columns[medoids[k], n]
            if distance < nearest:
                first[n], nearest, second[n] = k, distance, nearest
            elif distance < second[n]:
                second[n] = distance
        losses[first[n]] += second[n] - nearest
    return losses
