"""Work that takes long in one kernel, to be interrupted: ``python tests/long_work.py``.

The arguments are names of work, by default all; each of it is done twice. A line is
printed when the work starts; whoever reads it sends the signal. Another line has the
time when the work ended.
"""

import os
import sys
import time

# BLAS needs only one thread here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import joblib
import numpy as np

from skawhmm import (
    IAW,
    KL,
    HMMBatch,
    HMMEmbedding,
    HMMKMeans,
    HMMKMedoids,
    HMMRetriever,
    HMMTransformer,
    TransitionCoupling,
    hmm_barycenter,
    hmm_group_test,
    pairwise_hmm_distances,
)
from skawhmm.distances import MMD
from skawhmm.plot import HMMMapDisplay

TRIALS = 2
RNG = np.random.default_rng(0)


def chains(n_models, n_components):
    return RNG.dirichlet(np.ones(n_components), (n_models, n_components))


def gaussian(n_models, n_components, n_features, full=False):
    shape = n_models, n_components, n_features
    covars = RNG.uniform(0.5, 2.0, shape)
    if full:
        mixed = RNG.normal(size=(*shape, n_features)) / np.sqrt(n_features)
        covars = mixed @ mixed.swapaxes(2, 3) + 0.1 * np.eye(n_features)
    means = RNG.normal(size=shape)
    return HMMBatch(chains(n_models, n_components), means, covars)


def symbols(n_models, n_components, n_symbols, **options):
    probabilities = RNG.dirichlet(np.ones(n_symbols), (n_models, n_components))
    return HMMBatch.from_emissionprobs(
        chains(n_models, n_components), probabilities, **options
    )


def counts(n_models, n_components, n_channels):
    rates = RNG.uniform(1.0, 9.0, (n_models, n_components, n_channels))
    return HMMBatch.from_rates(chains(n_models, n_components), rates)


def frames(n_timesteps, n_features):
    return RNG.normal(size=(n_timesteps, n_features)).cumsum(axis=0) % 7.0


def pairs(models, metric, **options):
    return lambda: pairwise_hmm_distances(models, metric=metric, **options)


def fit(sequence, *arguments, **options):
    options = {"random_state": 0, "tol": 0.0, "max_iter": 10_000, **options}
    return lambda: HMMTransformer(*arguments, **options).fit_transform([sequence])


# Distances


def registration():
    return pairs(gaussian(3, 1200, 2), "maw")


def tied_registration():
    models = gaussian(3, 150, 1)
    return pairs(
        HMMBatch(models.transmats, 0 * models.means, 0 * models.covars + 1.0), "maw"
    )


def joint_registration():
    return pairs(gaussian(3, 900, 2), "jaw")


def many_pairs():
    return pairs(gaussian(6000, 4, 2), "maw")


def coupling():
    return pairs(gaussian(3, 100, 2), "coupling")


def coupling_by_elimination():
    return pairs(gaussian(3, 60, 2), TransitionCoupling(gamma=1 - 1e-9))


def samples():
    return pairs(gaussian(5, 3, 4), IAW(n_samples=4096))


def samples_by_sinkhorn():
    return pairs(gaussian(5, 3, 4), IAW(n_samples=1500, coupling="sinkhorn"))


def divergence_bound():
    return pairs(gaussian(2, 20, 2), KL(method="variational"))


def divergences_of_states():
    return pairs(gaussian(4, 60, 120, full=True), KL(method="variational"))


def drawn_divergence():
    return pairs(gaussian(3, 60, 2), KL(n_steps=2_000_000))


def bures_of_many_channels():
    return pairs(gaussian(3, 15, 250, full=True), "maw")


def bures_of_few_channels():
    return pairs(gaussian(8, 150, 20, full=True), "maw")


def mmd():
    return pairs(gaussian(4, 250, 80, full=True), MMD(bandwidth=1.0))


def mmd_of_steps():
    return pairs(gaussian(8, 700, 2), MMD(order=2, bandwidth=1.0))


def mmd_of_symbols():
    return pairs(symbols(60, 80, 1500), MMD(order=2))


def symbol_transports():
    table = np.abs(np.subtract.outer(np.arange(300.0), np.arange(300.0))) ** 0.5
    return pairs(symbols(4, 60, 300, symbol_costs=table), "maw")


def count_costs():
    return pairs(counts(25, 400, 300), "maw")


# Fits


def long_fit():
    return fit(frames(3_000_000, 2), 3)


def fit_of_many_states():
    return fit(frames(100_000, 2), 100)


def full_fit():
    return fit(frames(60_000, 60), 20, "full")


def tied_fit_of_many_channels():
    return fit(frames(3000, 400), 10, "tied")


def masked_fit():
    values = frames(400_000, 6)
    values[::3, 1] = np.nan
    return fit(values, 12)


def fit_of_segments():
    return fit(frames(300_000, 3), 60, topology="left-to-right")


def starts():
    return fit(frames(2_000_000, 4), 40, n_init=20)


def pooled_fit():
    return fit(frames(200_000, 4), 30, init="pooled")


def symbol_fit():
    return fit(RNG.integers(0, 30, 400_000), 25, emission="categorical")


def count_fit():
    return fit(RNG.poisson(4.0, (200_000, 5)), 20, emission="poisson")


# Sequences and models


def scores():
    models, sequences = gaussian(30, 50, 4), [frames(200_000, 4)]
    return lambda: models.score(sequences)


def paths():
    models, sequences = gaussian(8, 60, 2), [frames(300_000, 2)]
    return lambda: models.decode(sequences)


def posteriors():
    models, sequences = gaussian(8, 40, 2), [frames(300_000, 2)]
    return lambda: models.predict_proba(sequences)


def drawn_sequences():
    models = gaussian(20, 100, 4)
    return lambda: models.sample(3_000_000, random_state=0)


def stationary_distributions():
    matrices = chains(1, 1200).repeat(12, axis=0)
    means = np.zeros((12, 1200, 1))
    return lambda: HMMBatch(matrices, means, means + 1.0)


def embedding():
    sequences = [frames(300_000, 4) for _ in range(4)]
    return lambda: HMMEmbedding(random_state=0).fit_transform(sequences)


# Collections


def averages():
    models = gaussian(200, 60, 3)
    return lambda: hmm_barycenter(models, tol=0.0, max_iter=1000, random_state=0)


def full_averages():
    models = gaussian(30, 10, 60, full=True)
    return lambda: HMMKMeans(3, tol=0.0, max_iter=1000, random_state=0).fit(models)


def medoids():
    distances = RNG.uniform(size=(4000, 4000))
    medoids = HMMKMedoids(1500, metric="precomputed", max_iter=1000)
    return lambda: medoids.fit(distances)


def exact_search():
    models = gaussian(3000, 12, 4)
    retriever = HMMRetriever(3, algorithm="pruned").fit(models)
    return lambda: retriever.kneighbors(models)


def permutations():
    models, groups = gaussian(80, 3, 2), np.arange(80) % 2
    return lambda: hmm_group_test(
        models, groups, n_permutations=3_000_000, random_state=0
    )


def refits():
    trials = [frames(3, 2) for _ in range(1280)]
    units, groups = np.repeat(np.arange(32), 40), np.tile(np.arange(4) // 3, 320)
    return lambda: hmm_group_test(
        trials, groups, units=units, refit=True, n_permutations=20_000, random_state=0
    )


def map_of_distances():
    distances = np.linalg.norm(RNG.normal(size=(3000, 1, 2)), axis=2)
    distances = np.abs(distances - distances.T)
    return lambda: HMMMapDisplay.from_distances(distances, method="mds")


# Workers


def threads():
    return pairs(gaussian(4, 80, 2), "coupling", n_jobs=2)


def processes():
    models = gaussian(4, 80, 2)

    def work():
        with joblib.parallel_config(backend="loky", n_jobs=2):
            pairwise_hmm_distances(models[:2], models, metric="coupling")

    return work


KINDS = [
    registration,
    tied_registration,
    joint_registration,
    many_pairs,
    coupling,
    coupling_by_elimination,
    samples,
    samples_by_sinkhorn,
    divergence_bound,
    divergences_of_states,
    drawn_divergence,
    bures_of_many_channels,
    bures_of_few_channels,
    mmd,
    mmd_of_steps,
    mmd_of_symbols,
    symbol_transports,
    count_costs,
    long_fit,
    fit_of_many_states,
    full_fit,
    tied_fit_of_many_channels,
    masked_fit,
    fit_of_segments,
    starts,
    pooled_fit,
    symbol_fit,
    count_fit,
    scores,
    paths,
    posteriors,
    drawn_sequences,
    stationary_distributions,
    embedding,
    averages,
    full_averages,
    medoids,
    exact_search,
    permutations,
    refits,
    map_of_distances,
    threads,
    processes,
]


def tell(*words):
    print(*words, flush=True)  # noqa: T201


def main(*names):
    for kind in KINDS:
        if names and kind.__name__ not in names:
            continue
        work = kind()
        for _ in range(TRIALS):
            try:
                tell("start", kind.__name__)
                work()
                tell("finished", kind.__name__)
                # The signal is still to come.
                time.sleep(60)
            except KeyboardInterrupt:
                tell("interrupted", time.time())


if __name__ == "__main__":
    main(*sys.argv[1:])
