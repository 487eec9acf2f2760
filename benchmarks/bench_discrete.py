"""Do models of symbols distinguish languages and genes better than frequencies do?

The data are the paragraphs of the Universal Declaration of Human Rights in 12 languages
(letters a-z and space), and genes of 7 families (the same number of each), as the amino
acids that they code for and as nucleotides, where changes of the common kind cost half.
Printed: accuracy of one nearest neighbour over five folds, and the adjusted Rand index
of as many clusters as there are classes, for

- frequencies: how often each symbol occurs, compared by the sum of absolute
  differences, which ignores the order;
- maw, coupling: hidden Markov models, adapted from a model of all sequences;
- kl: the same models by their Kullback-Leibler rate.

Clusters are found by k-medoids. All folds use the same model of all sequences, which is
fitted without the classes.

Run: SKAWHMM_DATA=... python benchmarks/bench_discrete.py [--jobs N] [--genes N]
"""

import argparse
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.model_selection import cross_val_score

from skawhmm import (
    KL,
    HMMKMedoids,
    HMMTransformer,
    KNeighborsHMMClassifier,
    pairwise_hmm_distances,
)
from skawhmm.datasets import data_home
from skawhmm.emissions import Categorical

# Changes between the two purines (A, G) or the two pyrimidines (C, T) are the common
# ones; N stands for any.
NUCLEOTIDES = "ACGNT"
TRANSITIONS = {"AG", "GA", "CT", "TC"}

# The amino acid of every codon, from AAA to TTT; * ends a protein, X is unknown.
CODE = "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSSWCWCLFLF"
AMINO_ACIDS = "*ACDEFGHIKLMNPQRSTVWXY"


def load(name):
    with np.load(data_home() / f"discrete_{name}.npz") as file:
        X = np.split(file["X"].astype(np.int64), np.cumsum(file["lengths"])[:-1])
        return X, file["y"], file["symbols"]


def of_each_class(X, y, count, seed=0):
    rng = np.random.default_rng(seed)
    members = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
    chosen = np.sort(np.concatenate([part[:count] for part in members]))
    return [X[i] for i in chosen], y[chosen]


def nucleotide_costs():
    return [
        [0.0 if a == b else 0.5 if a + b in TRANSITIONS else 1.0 for b in NUCLEOTIDES]
        for a in NUCLEOTIDES
    ]


def proteins(X):
    """Amino acids of genes, codon by codon."""
    digits = np.array([0, 1, 2, -64, 3])
    codons = [digits[x[: len(x) // 3 * 3]].reshape(-1, 3) @ [16, 4, 1] for x in X]
    return ["".join(CODE[k] if k >= 0 else "X" for k in row) for row in codons]


def frequencies(X, symbols):
    return np.stack([[np.mean(np.array(list(x)) == s) for s in symbols] for x in X])


def quality(distances, y):
    """Accuracy of the nearest neighbour, and agreement of clusters with classes."""
    nearest = KNeighborsHMMClassifier(n_neighbors=1, metric="precomputed")
    accuracy = cross_val_score(nearest, distances, y, cv=5).mean()
    medoids = HMMKMedoids(len(np.unique(y)), metric="precomputed").fit(distances)
    return accuracy, adjusted_rand_score(y, medoids.labels_)


def report(title, X, y, hmm, metrics, n_jobs):
    lengths = np.array([len(x) for x in X])
    print(
        f"{title}: {len(X)} sequences of {lengths.min()} to {lengths.max()} symbols, "
        f"{len(np.unique(y))} classes"
    )
    begin = time.perf_counter()
    models = hmm.set_params(n_jobs=n_jobs).fit_transform(X)
    print(f"  {hmm.n_components} states, fitted in {time.perf_counter() - begin:.1f} s")
    print(f"  {'':12} {'accuracy':>8} {'ARI':>6} {'seconds':>8}")
    begin = time.perf_counter()
    plain = manhattan_distances(frequencies(X, hmm.symbols_))
    row("frequencies", plain, y, time.perf_counter() - begin)
    for name, metric, params in metrics:
        begin = time.perf_counter()
        distances = pairwise_hmm_distances(
            models, metric=metric, n_jobs=n_jobs, **params
        )
        row(name, distances, y, time.perf_counter() - begin)


def row(name, distances, y, seconds):
    accuracy, agreement = quality(distances, y)
    print(f"  {name:12} {accuracy:8.3f} {agreement:6.3f} {seconds:8.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--genes", type=int, default=80, help="genes of each family")
    args = parser.parse_args()
    if not (data_home() / "discrete_udhr_chars.npz").exists():
        print(f"skipped: there is no discrete_udhr_chars.npz in {data_home()}")
        return
    metrics = [
        ("maw", "maw", {"alpha": 0.1}),
        ("coupling", "coupling", {}),
        ("kl", KL(n_steps=400), {}),
    ]
    X, y, symbols = load("udhr_chars")
    hmm = HMMTransformer(
        4,
        emission=Categorical(range(len(symbols))),
        prior="pooled",
        random_state=0,
    )
    report("languages", X, y, hmm, metrics, args.jobs)
    X, y, symbols = load("gene_families")
    X, y = of_each_class(X, y, args.genes)
    hmm.set_params(emission=Categorical(AMINO_ACIDS))
    report("gene families, amino acids", proteins(X), y, hmm, metrics, args.jobs)
    nucleotides = Categorical(range(len(symbols)), costs=nucleotide_costs())
    hmm.set_params(emission=nucleotides)
    report("gene families, nucleotides", X, y, hmm, metrics[:1], args.jobs)


if __name__ == "__main__":
    main()
