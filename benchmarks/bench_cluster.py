"""How long does clustering take, and does it find planted clusters?

Models (M = 3, d = 12) are noisy copies of a few archetypes with their states in random
order. In the second kind of data all archetypes have the same overall mean and
variance, so that they differ only in states and transitions. Printed: seconds,
and the adjusted Rand index of

- averages: HMMKMeans, clusters around barycenters, from the medoids of a sample;
- drawn: the same from models drawn far from each other, best of three starts;
- medoids: HMMKMedoids, clusters around models;
- mean/std: scikit-learn's KMeans on the overall mean and standard deviation of every
  feature, which ignores the states.

Run: python benchmarks/bench_cluster.py [--jobs N] [--models N]
"""

import argparse

import numpy as np
from common import timed
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from skawhmm import HMMBatch, HMMKMeans, HMMKMedoids


def make_planted(n_models, n_clusters, covariance_type, noise, *, centred, seed=0):
    rng = np.random.default_rng(seed)
    n_components, n_features = 3, 12
    means = rng.normal(size=(n_clusters, n_components, n_features))
    scales = rng.uniform(0.5, 1.5, size=(n_clusters, n_components, n_features))
    transmats = rng.dirichlet(np.ones(n_components), (n_clusters, n_components))
    transmats = 0.5 * transmats + 0.5 * np.eye(n_components)
    if centred:
        # Equal weights (doubly stochastic rows), mean 0 and variance 2 overall.
        circle = np.eye(n_components)[[1, 2, 0]]
        turn = rng.uniform(0, 0.5, size=(n_clusters, 1, 1))
        transmats = (1 - turn) * np.eye(n_components) + turn * circle
        means -= means.mean(axis=1, keepdims=True)
        total = np.sqrt((means**2 + scales**2).mean(axis=1, keepdims=True))
        means, scales = means * 2**0.5 / total, scales * 2**0.5 / total
    y = rng.integers(n_clusters, size=n_models)
    order = rng.permuted(np.tile(np.arange(n_components), (n_models, 1)), axis=1)
    rows = y[:, None]
    means = means[rows, order] + noise * rng.normal(size=(n_models, 3, n_features))
    scales = scales[rows, order] * np.exp(noise / 2 * rng.normal(size=means.shape))
    chains = transmats[rows[..., None], order[:, :, None], order[:, None, :]]
    chains = chains + noise / 5 * rng.dirichlet(np.ones(3), (n_models, 3))
    chains /= chains.sum(axis=2, keepdims=True)
    covars = scales**2
    if covariance_type == "full":
        mix = rng.normal(size=(n_features, n_features)) / n_features**0.5
        roots = (np.eye(n_features) + mix) @ (scales[..., None] * np.eye(n_features))
        covars = roots @ roots.swapaxes(2, 3)
    return HMMBatch(chains, means, covars), y


def overall(models):
    """Mean and standard deviation of every feature, over all states."""
    mean = np.einsum("nk,nkd->nd", models.weights, models.means)
    spread = models.emission.full_covars().diagonal(axis1=2, axis2=3)
    square = np.einsum("nk,nkd->nd", models.weights, spread + models.means**2)
    deviation = np.sqrt(np.maximum(square - mean**2, 0))
    return StandardScaler().fit_transform(np.concatenate([mean, deviation], axis=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--models", type=int, default=2000)
    args = parser.parse_args()
    few = make_planted(30, 10, "diag", 0.5, centred=False)[0]
    HMMKMeans(3, n_jobs=args.jobs, random_state=0).fit(few)
    HMMKMedoids(3, n_jobs=args.jobs).fit(few)
    print(
        f"{'data':>8} {'covars':>6} {'noise':>5} {'models':>6} {'clusters':>8} | "
        f"{'averages s':>10} {'drawn s':>8} {'medoids s':>9} | ARI {'averages':>8} "
        f"{'drawn':>8} {'medoids':>8} {'mean/std':>8}"
    )
    cases = [
        (args.models, 10, covariance_type, noise, centred)
        for covariance_type in ("diag", "full")
        for noise, centred in ((1.0, False), (0.6, True))
    ]
    cases += [(80, 8, "diag", 1.0, False), (80, 8, "diag", 0.6, True)]
    for n_models, n_clusters, covariance_type, noise, centred in cases:
        models, y = make_planted(
            n_models, n_clusters, covariance_type, noise, centred=centred
        )
        averages = HMMKMeans(n_clusters, n_jobs=args.jobs, random_state=0)
        drawn = HMMKMeans(
            n_clusters, init="k-means++", n_init=3, n_jobs=args.jobs, random_state=0
        )
        medoids = HMMKMedoids(n_clusters, n_jobs=args.jobs)
        plain = KMeans(n_clusters, n_init=10, random_state=0)
        runs = [
            timed(averages.fit_predict, models),
            timed(drawn.fit_predict, models),
            timed(medoids.fit_predict, models),
            timed(plain.fit_predict, overall(models)),
        ]
        scores = [adjusted_rand_score(y, labels) for _, labels in runs]
        print(
            f"{'centred' if centred else 'plain':>8} {covariance_type:>6} {noise:5.1f} "
            f"{n_models:6d} {n_clusters:8d} | {runs[0][0]:10.2f} {runs[1][0]:8.2f} "
            f"{runs[2][0]:9.2f} |     {scores[0]:8.2f} {scores[1]:8.2f} "
            f"{scores[2]:8.2f} {scores[3]:8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
