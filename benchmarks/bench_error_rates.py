"""Error rates of common tests of whether two conditions differ, on fixations.

    SKAWHMM_DATA=/path/to/data python benchmarks/bench_error_rates.py [--shuffles 200]

Thirty-two viewers looked at faces, and recognised some of them
(`trials_face_fixations.npz`; a generated twin if the file is absent). One model is
fitted per viewer and condition. The first table has the fraction of shuffles of the
labels within viewers in which each test finds a difference at p <= 0.05: shuffled
labels mean nothing. The second has the p-values of the real labels. The third has the
time of all refits.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import stats

from skawhmm import HMMBatch, HMMTransformer, Trials, hmm_group_test

N_STATES = 3
NAME = "trials_face_fixations.npz"


def fixations():
    """Return trials, viewers, conditions, and where they come from."""
    path = Path(os.environ.get("SKAWHMM_DATA", "")) / NAME
    if not path.is_file():
        return (*twin(), "a generated twin (set SKAWHMM_DATA for the real data)")
    with np.load(path) as data:
        bounds = np.cumsum(data["lengths"])[:-1]
        trials = np.split(data["X"], bounds)
        return trials, data["group"], data["y"], f"{NAME}, {len(trials)} trials"


def twin(n_viewers=32, seed=0):
    """Return trials of viewers whose models do not differ between conditions."""
    rng = np.random.default_rng(seed)
    places = np.array([[170.0, 160.0], [220.0, 160.0], [195.0, 215.0]])
    trials, viewers, labels = [], [], []
    for viewer in range(n_viewers):
        truth = HMMBatch(
            [rng.dirichlet(np.full(3, 4.0), size=3)],
            [places + rng.normal(0, 15, (3, 2))],
            np.full((1, 3, 2), 150.0),
        )
        n_trials = int(rng.integers(36, 41))
        n_wrong = int(rng.integers(3, 16))
        for k in range(n_trials):
            length = 1 + int(rng.integers(3)) if k % 4 else 3
            drawn = truth.sample(length, random_state=int(rng.integers(2**31)))
            trials.append(drawn[0][0])
            viewers.append(viewer)
            labels.append("wrong" if k < n_wrong else "correct")
    return trials, np.array(viewers), np.array(labels)


def units(trials, viewers, labels):
    """Return the trials of each viewer and condition, conditions next to each other."""
    names = np.unique(labels)
    return [
        [trials[i] for i in np.flatnonzero((viewers == v) & (labels == name))]
        for v in np.unique(viewers)
        for name in names
    ]


def fit(parts):
    hmm = HMMTransformer(N_STATES, random_state=0)
    return hmm.fit_transform([Trials(part) for part in parts])


def mean_likelihoods(models, parts):
    """Return log likelihoods per trial under the own model and under the other one."""
    own, other = np.empty(len(parts)), np.empty(len(parts))
    for n, part in enumerate(parts):
        scores = models[[n, n ^ 1]].score(part)
        own[n], other[n] = np.maximum(scores, -1e3).mean(axis=0)
    return own, other


def likelihood_tests(parts):
    """Paired t-tests of likelihoods on the data that models were trained on."""
    own, other = mean_likelihoods(fit(parts), parts)
    return [stats.ttest_rel(own[k::2], other[k::2]).pvalue for k in (0, 1)]


def held_out_tests(parts, rng):
    """The same on trials that models were not trained on."""
    train, test = [], []
    for part in parts:
        # A model needs a trial with a transition.
        order = rng.permutation(len(part))
        order = order[np.argsort([len(part[i]) < 2 for i in order], kind="stable")]
        train.append([part[i] for i in order[::2]])
        test.append([part[i] for i in order[1::2]])
    own, other = mean_likelihoods(fit(train), test)
    return [stats.ttest_rel(own[k::2], other[k::2]).pvalue for k in (0, 1)]


def permuted_models(parts, n_permutations, seed):
    """hmm_group_test of models, permuted within viewers."""
    n_viewers = len(parts) // 2
    return hmm_group_test(
        fit(parts),
        np.tile([0, 1], n_viewers),
        strata=np.repeat(np.arange(n_viewers), 2),
        n_permutations=n_permutations,
        random_state=seed,
    )


def permuted_trials(trials, viewers, labels, n_permutations, seed):
    """hmm_group_test of trials, permuted within viewers, with refits."""
    return hmm_group_test(
        trials,
        labels,
        units=viewers,
        hmm=HMMTransformer(N_STATES, random_state=0),
        refit=True,
        n_permutations=n_permutations,
        random_state=seed,
    )


def shuffled(labels, viewers, trials, rng):
    """Return labels shuffled within viewers; every model can be fitted."""
    labels = labels.copy()
    for viewer in np.unique(viewers):
        own = np.flatnonzero(viewers == viewer)
        long = np.array([len(trials[i]) > 1 for i in own])
        while True:
            drawn = rng.permutation(labels[own])
            # Twice, so that the trials can be divided into halves.
            if all((drawn[long] == name).sum() > 1 for name in np.unique(labels)):
                break
        labels[own] = drawn
    return labels


def all_pvalues(trials, viewers, labels, n_permutations, seed):
    """Return the p-values of all tests by name, and the result with refits."""
    rng = np.random.default_rng(seed)
    parts = units(trials, viewers, labels)
    names = [str(name) for name in np.unique(labels)]
    found = {}
    for name, values in (
        ("t-test of likelihoods, training data", likelihood_tests(parts)),
        ("t-test of likelihoods, held-out data", held_out_tests(parts, rng)),
    ):
        found |= {f"{name}, {c}": p for c, p in zip(names, values, strict=True)}
    models = permuted_models(parts, max(n_permutations, 199), seed)
    refits = permuted_trials(trials, viewers, labels, n_permutations, seed)
    for name, result in (("permuted models", models), ("permuted trials", refits)):
        found |= {f"{name}, {k}": test.pvalue for k, test in result.tests.items()}
    found["permuted trials, any state or step"] = refits.effects.columns["pvalue"].min()
    return found, refits


def rejections(trials, viewers, labels, n_shuffles):
    rows = []
    for seed in range(n_shuffles):
        rng = np.random.default_rng([seed, 1])
        drawn = shuffled(labels, viewers, trials, rng)
        # With 19 permutations, p <= 0.05 if no permutation reaches the observed value.
        rows.append(all_pvalues(trials, viewers, drawn, 19, seed)[0])
    low, high = stats.binom(n_shuffles, 0.05).ppf([0.0005, 0.9995]) / n_shuffles
    print(f"\nfraction of {n_shuffles} shuffles with p <= 0.05")
    print(f"99.9 % of tests at their level lie in {low:.3f} to {high:.3f}")
    for name in rows[0]:
        print(f"  {name:52}{np.mean([row[name] <= 0.05 for row in rows]):8.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--shuffles", type=int, default=200)
    parser.add_argument("--permutations", type=int, default=999)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    trials, viewers, labels, source = fixations()
    counts = {str(name): int(np.sum(labels == name)) for name in np.unique(labels)}
    print(f"{source}: {len(np.unique(viewers))} viewers, trials {counts}")
    begin = time.process_time()
    found, result = all_pvalues(trials, viewers, labels, arguments.permutations, 0)
    seconds = time.process_time() - begin
    print("\nreal labels, p-values")
    for name, value in found.items():
        print(f"  {name:52}{value:8.3g}")
    print(f"\n{result}\n\n{result.effects}")
    n_models = len(result.models)
    print(
        f"\n{arguments.permutations} refits of {n_models} models, and all other tests:"
    )
    print(f"  {seconds:.0f} seconds of one processor")
    rejections(trials, viewers, labels, arguments.shuffles)


if __name__ == "__main__":
    main()
