"""Tests of groups: seconds compared with scikit-bio, level and power.

    python benchmarks/bench_groups.py [--models 500] [--draws 200]

The first table has the seconds of permutation tests on the same distances. scikit-bio
tests the distance alone; ours also tests the spread of the groups. The second has the
fraction of draws in which groups are found to differ at p <= 0.05, where they do not
(level) and where they do (power), with and without passing the design to the test. The
last tables have groups of one process that differ in the lengths of their sequences.
"""

import argparse
import warnings

import numpy as np
from common import make_models, timed
from scipy.spatial.distance import cdist

from skawhmm import HMMBatch, HMMTransformer, hmm_group_test, pairwise_hmm_distances
from skawhmm.datasets import make_hmm_sequences
from skawhmm.fitting import MarkovChainTransformer
from skawhmm.groups import state_effects


def seconds(n_models, n_permutations=9999):
    """Seconds of our test and of scikit-bio's on the same matrix."""
    models = make_models(n_models, 3, 4)
    groups = np.arange(n_models) % 2
    made, distances = timed(pairwise_hmm_distances, models, metric="jaw")
    ours, result = timed(
        hmm_group_test,
        distances,
        groups,
        n_permutations=n_permutations,
        random_state=0,
        repeats=3,
    )
    print(f"{n_models} models, {n_permutations} permutations (seconds)")
    print(f"  distances (JAW)        {made:9.2f}")
    print(f"  hmm_group_test         {ours:9.2f}")
    try:
        from skbio.stats.distance import DistanceMatrix, permanova
    except ImportError:
        print("  scikit-bio is not installed: pip install scikit-bio")
        return
    matrix = DistanceMatrix(distances)
    theirs, judged = timed(permanova, matrix, groups, permutations=n_permutations)
    print(f"  scikit-bio permanova   {theirs:9.2f}   {theirs / ours:.0f}x")
    gap = abs(result.statistic - judged["test statistic"])
    print(f"  difference of the two pseudo-F: {gap:.1e}")


def points(values):
    values = np.reshape(values, (len(values), -1))
    return cdist(values, values)


def plain(rng, effect):
    group = np.arange(20) % 2
    return points(rng.normal(size=(20, 3)) + effect * group[:, None]), group, {}


def sessions(rng, effect):
    """Eight subjects with five sessions each."""
    subject = np.repeat(np.arange(8), 5)
    group = subject % 2
    values = rng.normal(size=(8, 3))[subject] + 0.5 * rng.normal(size=(40, 3))
    return points(values + effect * group[:, None]), group, {"units": subject}


def pairs(rng, effect):
    """Twelve subjects, before and after."""
    subject, group = np.tile(np.arange(12), 2), np.repeat([0, 1], 12)
    values = 2 * rng.normal(size=(12, 3))[subject] + rng.normal(size=(24, 3))
    return points(values + effect * group[:, None]), group, {"strata": subject}


def sites(rng, effect):
    """Two sites that differ, with unequal proportions of the groups."""
    site = np.repeat([0, 1], 12)
    group = np.r_[np.repeat([0, 1], [9, 3]), np.repeat([0, 1], [3, 9])]
    values = 2 * site[:, None] + rng.normal(size=(24, 3))
    return points(values + effect * group[:, None]), group, {"strata": site}


def ages(rng, effect):
    """One group is older, and age matters."""
    group = np.arange(24) % 2
    age = rng.normal(size=24) + group
    values = age[:, None] + rng.normal(size=(24, 3))
    return points(values + effect * group[:, None]), group, {"covariates": age}


DESIGNS = {
    "independent models": plain,
    "five sessions per subject (units)": sessions,
    "before and after (strata)": pairs,
    "two unlike sites (strata)": sites,
    "age (covariates)": ages,
}


def found(draw, effect, told, n_draws):
    """Fraction of draws in which groups are found to differ."""
    hits = 0
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        distances, group, design = draw(rng, effect)
        result = hmm_group_test(
            distances,
            group,
            n_permutations=199,
            random_state=seed,
            **(design if told else {}),
        )
        hits += result.pvalue <= 0.05
    return hits / n_draws


def level_and_power(n_draws):
    print(f"\nfraction of {n_draws} draws with p <= 0.05")
    print(f"  {'design':34}{'level, not told':>16}{'level':>8}{'power':>8}")
    for name, draw in DESIGNS.items():
        naive = found(draw, 0, False, n_draws)
        level = found(draw, 0, True, n_draws)
        power = found(draw, 1, True, n_draws)
        print(f"  {name:34}{naive:16.2f}{level:8.2f}{power:8.2f}")


def components(n_draws):
    """Which component finds a difference between fitted models, and which effects."""
    print(f"\nfitted models, 24 sequences of 200 frames, fraction of {n_draws} draws")
    print(
        f"  {'groups differ in':18}{'distance':>9}{'marginal':>9}{'transition':>11}",
        end="",
    )
    print(f"{'a state':>9}{'a step':>8}")
    for differ_in, separation in (("means", 0), ("means", 0.5), ("transitions", 0.5)):
        rows = []
        for seed in range(n_draws):
            X, y = make_hmm_sequences(
                24,
                differ_in=differ_in,
                separation=separation,
                n_timesteps=200,
                random_state=seed,
            )
            models = HMMTransformer(3, random_state=0).fit_transform(X)
            options = {"n_permutations": 199, "random_state": seed}
            tests = hmm_group_test(models, y, **options).tests
            columns = state_effects(models, y, **options).columns
            sure = columns["pvalue"] <= 0.05
            is_step = np.isin(columns["measure"], ["transition", "dwell_time"])
            rows.append(
                [tests[name].pvalue <= 0.05 for name in tests]
                + [(sure & ~is_step).any(), (sure & is_step).any()]
            )
        fractions = np.mean(rows, axis=0)
        name = differ_in if separation else "nothing"
        print(
            f"  {name:18}{fractions[0]:9.2f}{fractions[1]:9.2f}{fractions[2]:11.2f}",
            end="",
        )
        print(f"{fractions[3]:9.2f}{fractions[4]:8.2f}")


def amounts(n_draws):
    """Groups of one process whose recordings are of unequal length."""
    truth = HMMBatch(
        [[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]],
        [[[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]],
        np.ones((1, 3, 2)),
    )
    group = np.repeat([0, 1], 15)
    print(f"\none process, 15 + 15 recordings: fraction of {n_draws} draws, p <= 0.05")
    print(f"  {'frames':18}{'distance':>9}{'marginal':>9}{'transition':>11}", end="")
    print(f"{'warned':>8}")
    for name, lengths in (
        ("60 and 400", (60, 400)),
        ("first 60 of each", (60, 60)),
    ):
        rows = []
        for seed in range(n_draws):
            X = [
                truth.sample(400, random_state=100 * seed + n)[0][0][: lengths[g]]
                for n, g in enumerate(group)
            ]
            models = HMMTransformer(3, random_state=0).fit_transform(X)
            result = hmm_group_test(
                models, group, n_permutations=199, random_state=seed
            )
            found = [test.pvalue <= 0.05 for test in result.tests.values()]
            rows.append([*found, result.amounts["n_timesteps"].differs])
        fractions = np.mean(rows, axis=0)
        print(
            f"  {name:18}{fractions[0]:9.2f}{fractions[1]:9.2f}{fractions[2]:11.2f}",
            end="",
        )
        print(f"{fractions[3]:8.2f}")


def priors(n_draws):
    """Effects in groups of one chain whose texts are of unequal length."""
    chain = np.array([[0.6, 0.4, 0.0], [0.3, 0.4, 0.3], [0.0, 0.5, 0.5]])
    truth = HMMBatch.from_emissionprobs([chain], [np.eye(3)], symbols="abc")
    group = np.repeat([0, 1], 15)
    print(f"\none chain, 15 + 15 texts, fraction of {n_draws} draws with any effect")
    print(f"  {'prior':18}{'15 and 60 symbols':>18}{'15 symbols':>12}")
    for prior in (None, "pooled", 0.5):
        hmm = MarkovChainTransformer("abc", prior=prior)
        fractions = []
        for lengths in ((15, 60), (15, 15)):
            hits = 0
            for seed in range(n_draws):
                texts = [
                    truth.sample(lengths[g], random_state=100 * seed + n)[0][0]
                    for n, g in enumerate(group)
                ]
                models = hmm.fit_transform(texts)
                options = {"n_permutations": 199, "random_state": seed}
                effects = state_effects(models, group, reference=None, **options)
                hits += effects.columns["pvalue"].min() <= 0.05
            fractions.append(hits / n_draws)
        print(f"  {prior!s:18}{fractions[0]:18.2f}{fractions[1]:12.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--draws", type=int, default=200)
    arguments = parser.parse_args()
    for message in ("The groups also differ in spread", "The groups differ in how"):
        warnings.filterwarnings("ignore", message=message)
    seconds(arguments.models)
    level_and_power(arguments.draws)
    components(max(arguments.draws // 5, 1))
    amounts(arguments.draws)
    priors(arguments.draws)


if __name__ == "__main__":
    main()
