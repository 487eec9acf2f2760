"""Tests of groups: seconds compared with scikit-bio, level and power.

    python benchmarks/bench_groups.py [--models 500] [--draws 200] [--nulls 500]
    python benchmarks/bench_groups.py --part levels fitted

The first table has the seconds of permutation tests on the same distances. scikit-bio
tests the distance alone; ours also tests the spread of the groups. The next two tables
have the fraction of draws without a difference in which one is found (level): of points
in many designs, and of models that `match` and `refit` fit to unequal amounts of data.
Then follow the levels of tests that are not told the design, or amounts of data that
are not matched; power; and what is found in fitted models. `--part` prints some of
these parts only: seconds, levels, fitted, untold, powers, components, amounts, priors.
"""

import argparse
import warnings

import numpy as np
from common import make_models, timed
from scipy import stats
from scipy.spatial.distance import cdist

from skawhmm import (
    HMMBatch,
    HMMTransformer,
    Trials,
    hmm_group_test,
    pairwise_hmm_distances,
)
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


def normal(rng, *size):
    return rng.normal(size=size)


def heavy(rng, *size):
    """Student's t with three degrees of freedom."""
    return rng.standard_t(3, size=size)


def skewed(rng, *size):
    return rng.lognormal(size=size)


class Design:
    """Units in groups, with everything that a test is told about them.

    `group`, `unit`, `site` and the distribution of the noise make the design. `apart`
    is the distance between sites, `wider` the factor by which the second site has more
    noise, `age` the effect of an age that is higher in the second group, `session` the
    noise of the models of a unit. If units have unequal numbers of models, the test is
    told to match them.
    """

    def __init__(self, group, noise=normal, *, unit=None, site=None, **more):
        self.group, self.noise = np.asarray(group), noise
        self.unit = np.arange(len(group)) if unit is None else np.asarray(unit)
        self.site = None if site is None else np.asarray(site)
        self.apart = more.get("apart", 0.0)
        self.wider = more.get("wider", 1.0)
        self.age = more.get("age", 0.0)
        self.session = more.get("session", 0.5)
        self.told = {} if unit is None else {"units": self.unit}
        self.told |= {} if site is None else {"strata": self.site}
        if unit is not None and np.ptp(np.bincount(self.unit)):
            self.told["match"] = "models"

    def draw(self, rng, shift=0.0, spread=1.0):
        """Return components, and what the test is told, for effects on groups."""
        told, n = dict(self.told), len(self.group)
        scale = np.where(self.group == 1, spread, 1.0)[:, None]
        base = shift * self.group[:, None]
        if self.site is not None:
            base = base + self.apart * normal(rng, self.site.max() + 1, 1)[self.site]
            scale = scale * np.where(self.site == 1, self.wider, 1.0)[:, None]
        if self.age:
            told["covariates"] = normal(rng, n) + self.group
            base = base + self.age * told["covariates"][:, None]
        parts = []
        for _ in range(2):
            values = self.noise(rng, self.unit.max() + 1, 3)[self.unit]
            if "units" in told:
                values = values + self.session * normal(rng, n, 3)
            parts.append(points(base + scale * values))
        return np.stack(parts, axis=2), told


def sized(*sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


def sessions(group, counts, **more):
    """Return a design of subjects whose numbers of sessions depend on their group."""
    unit = np.repeat(np.arange(len(group)), np.array(counts)[group])
    return Design(group[unit], unit=unit, **more)


SITES = {"group": np.r_[sized(9, 3), sized(3, 9)], "site": sized(12, 12)}
PAIRS = {"group": sized(12, 12), "site": np.tile(np.arange(12), 2)}
TRIOS = {"group": [0, 0, 1] * 4 + [0, 1, 1] * 4, "site": np.repeat(np.arange(8), 3)}
DESIGNS = {
    "10 and 10": Design(sized(10, 10)),
    "6 and 14, heavy tails": Design(sized(6, 14), heavy),
    "6 and 14, skewed": Design(sized(6, 14), skewed),
    "4, 6 and 12, heavy tails": Design(sized(4, 6, 12), heavy),
    "five sessions per subject": Design(
        np.repeat(np.arange(8) % 2, 5), unit=np.repeat(np.arange(8), 5)
    ),
    "2 and 8 sessions per subject": sessions(sized(6, 6), (2, 8)),
    "the same, unlike sessions": sessions(sized(6, 6), (2, 8), session=4),
    "the same, 4 and 16 subjects": sessions(sized(4, 16), (2, 8), session=4),
    "pairs": Design(**PAIRS, apart=2),
    "pairs far apart, heavy tails": Design(noise=heavy, **PAIRS, apart=10),
    "three groups in blocks": Design(
        sized(8, 8, 8), heavy, site=np.tile(np.arange(8), 3), apart=3
    ),
    "blocks of two and one": Design(**TRIOS, apart=3),
    "two sites, 9 + 3 and 3 + 9": Design(**SITES, apart=3),
    "sites far apart, heavy tails": Design(noise=heavy, **SITES, apart=30),
    "sites of unequal spread": Design(**SITES, apart=5, wider=4),
    "age": Design(sized(12, 12), age=1),
    "age that explains most": Design(sized(12, 12), age=5),
    "age, skewed": Design(sized(8, 16), skewed, age=2),
    "age and sites": Design(**SITES, apart=5, age=1),
    "age and sites, heavy tails": Design(noise=heavy, **SITES, apart=5, age=1),
}


COMPONENTS = ("distance", "marginal", "transition")
STATISTICS = ("pseudo_f", "energy")


def group_pvalues(X, groups, **options):
    """Return the p-values of all tests by name."""
    result = hmm_group_test(X, groups, **{"n_permutations": 199, **options})
    found = {name: test.pvalue for name, test in result.all_tests.items()}
    if result.effects is not None:
        found["effects"] = result.effects.columns["pvalue"].min()
    return found


def chosen_pvalues(design, n_draws, statistic, told=True, **effects):
    """Return the p-values of all tests, one row per draw."""
    rows = []
    for seed in range(n_draws):
        parts, known = design.draw(np.random.default_rng(seed), **effects)
        options = {"alpha": 0.5, "statistic": statistic, "random_state": seed}
        rows.append(
            group_pvalues(parts, design.group, **options, **(known if told else {}))
        )
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def print_heads(n_draws, last):
    """Print what a table of levels is about; return the interval of its cells."""
    low, high = stats.binom(n_draws, 0.05).ppf([0.0005, 0.9995]) / n_draws
    print(f"fraction of {n_draws} draws without a difference with p <= 0.05")
    print(f"99.9 % of tests at their level lie in {low:.3f} to {high:.3f}")
    print(f"  {'':32}{'pseudo-F':^33}{'energy':^33}")
    names = "".join(f"{name:>11}" for name in COMPONENTS * 2)
    print(f"  {'design':32}{names}{last:>12}")
    return low, high


def print_levels(title, cells, interval):
    """Print the cells of one design; return how many are outside their interval."""
    print(f"  {title:32}" + "".join(f"{x:11.3f}" for x in cells[:-1]), end="")
    print(f"{cells[-1]:12.3f}", flush=True)
    return sum(not interval[0] <= cell <= interval[1] for cell in cells)


def levels(n_draws):
    """Fractions of draws without a difference in which one is found."""
    print("\nlevel: points")
    interval, outside = print_heads(n_draws, "dispersion"), 0
    for title, design in DESIGNS.items():
        cells = []
        for statistic in STATISTICS:
            found = chosen_pvalues(design, n_draws, statistic)
            cells += [np.mean(found[name] <= 0.05) for name in COMPONENTS]
        cells.append(np.mean(found["dispersion"] <= 0.05))
        outside += print_levels(title, cells, interval)
    print(f"  {outside} of {7 * len(DESIGNS)} cells outside")


def truth():
    """Return one process of three states."""
    return HMMBatch(
        [[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]],
        [[[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]],
        np.ones((1, 3, 2)),
    )


def drawn_trials(rng, n_trials, length=6):
    seeds = rng.integers(2**31, size=n_trials)
    return [truth().sample(length, random_state=int(k))[0][0] for k in seeds]


def drawn_frames(sizes, lengths):
    """Return a function that draws groups of recordings of unequal lengths."""

    def draw(rng):
        group = sized(*sizes)
        X = [drawn_trials(rng, 1, lengths[g])[0] for g in group]
        return X, group, {"match": "frames"}

    return draw


def drawn_units(sizes, counts):
    """Return a function that draws groups of units of unequal numbers of trials."""

    def draw(rng):
        group = sized(*sizes)
        X = [Trials(drawn_trials(rng, counts[g], 12)) for g in group]
        return X, group, {"match": "trials"}

    return draw


def drawn_conditions(n_units, counts):
    """Return a function that draws trials of unequal conditions in units."""

    def draw(rng):
        group = np.tile(sized(*counts), n_units)
        unit = np.repeat(np.arange(n_units), sum(counts))
        more = {"units": unit, "refit": True, "n_permutations": 19}
        return drawn_trials(rng, len(group)), group, more

    return draw


FITTED = {
    "match: 12 of 60, 12 of 400": ("dispersion", drawn_frames((12, 12), (60, 400))),
    "match: 5 of 60, 20 of 400": ("dispersion", drawn_frames((5, 20), (60, 400))),
    "match: 20 of 60, 5 of 400": ("dispersion", drawn_frames((20, 5), (60, 400))),
    "match: 8 of 60, 100 and 400": (
        "dispersion",
        drawn_frames((8, 8, 8), (60, 100, 400)),
    ),
    "match: 10 of 6, 10 of 24 trials": ("dispersion", drawn_units((10, 10), (6, 24))),
    "match: 5 of 6, 15 of 24 trials": ("dispersion", drawn_units((5, 15), (6, 24))),
    "refit: 6 units, 24 and 6 trials": ("effects", drawn_conditions(6, (24, 6))),
    "refit: 4 units, 16, 8 and 4": ("effects", drawn_conditions(4, (16, 8, 4))),
}


def fitted(n_draws):
    """Levels of models that are fitted to unequal amounts of data of one process."""
    print("\nlevel: fitted models (frames or trials per unit; trials per condition)")
    interval, outside = print_heads(n_draws, "last"), 0
    hmm = HMMTransformer(3, random_state=0)
    for title, (last, draw) in FITTED.items():
        rows = []
        for seed in range(n_draws):
            X, group, more = draw(np.random.default_rng(seed))
            row = []
            for statistic in STATISTICS:
                options = {"statistic": statistic, "random_state": seed, "hmm": hmm}
                found = group_pvalues(X, group, **options, **more)
                row += [found[name] for name in COMPONENTS]
            rows.append([*row, found[last]])
        cells = np.mean(np.array(rows) <= 0.05, axis=0)
        outside += print_levels(title, cells, interval)
    print("  last: dispersion for match, the least p-value of effects for refit")
    print(f"  {outside} of {7 * len(FITTED)} cells outside")


def untold(n_draws):
    """What the distance finds if the test is not told the design."""
    print(f"\nno difference: fraction of {n_draws} draws with p <= 0.05, distance")
    print(f"  {'design':32}{'not told':>10}{'told':>8}")
    for title, name in (
        ("five sessions per subject", "units"),
        ("sites far apart, heavy tails", "strata"),
        ("age", "covariates"),
    ):
        cells = [
            chosen_pvalues(DESIGNS[title], n_draws, "pseudo_f", told=told)["distance"]
            for told in (False, True)
        ]
        fractions = [np.mean(values <= 0.05) for values in cells]
        print(f"  {title:32}{fractions[0]:10.2f}{fractions[1]:8.2f}   {name}")
    rows = []
    for seed in range(n_draws):
        X, group, more = drawn_conditions(6, (24, 6))(np.random.default_rng(seed))
        parts = [
            Trials([X[i] for i in np.flatnonzero((more["units"] == u) & (group == g))])
            for u in range(6)
            for g in range(2)
        ]
        models = HMMTransformer(3, random_state=0).fit_transform(parts)
        options = {"strata": np.repeat(np.arange(6), 2), "random_state": seed}
        found = group_pvalues(models, np.tile([0, 1], 6), **options)
        rows.append([found[name] <= 0.05 for name in COMPONENTS])
    cells = "".join(f"{x:8.2f}" for x in np.mean(rows, axis=0))
    print(f"  models of 24 and 6 trials, permuted: {cells} ({', '.join(COMPONENTS)})")


def powers(n_draws):
    """Power curves of shifts and of spreads."""
    print(f"\npower: fraction of {n_draws} draws with p <= 0.05")
    shifts = (0.0, 0.5, 1.0, 1.5, 2.0)
    spreads = (1.0, 1.5, 2.0, 3.0, 4.0)
    print(f"  {'shift of the second group':42}" + "".join(f"{x:7}" for x in shifts))
    for title in ("10 and 10", "6 and 14, heavy tails", "pairs", "age and sites"):
        for statistic in ("pseudo_f", "energy"):
            found = [
                chosen_pvalues(DESIGNS[title], n_draws, statistic, shift=shift)
                for shift in shifts
            ]
            cells = [np.mean(part["distance"] <= 0.05) for part in found]
            name = f"{title}, {statistic}"
            print(f"  {name:42}" + "".join(f"{x:7.2f}" for x in cells), flush=True)
    print(f"  {'dispersion: spread of the second group':42}", end="")
    print("".join(f"{x:7}" for x in spreads))
    for title in ("10 and 10", "6 and 14, heavy tails", "pairs", "age and sites"):
        cells = []
        for spread in spreads:
            found = chosen_pvalues(
                DESIGNS[title], n_draws, "pseudo_f", spread=spread, shift=2.0
            )
            cells.append(np.mean(found["dispersion"] <= 0.05))
        print(f"  {title:42}" + "".join(f"{x:7.2f}" for x in cells), flush=True)


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
                truth().sample(400, random_state=100 * seed + n)[0][0][: lengths[g]]
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
    parts = {
        "seconds": (seconds, "models"),
        "levels": (levels, "nulls"),
        "fitted": (fitted, "nulls"),
        "untold": (untold, "draws"),
        "powers": (powers, "draws"),
        "components": (lambda draws: components(max(draws // 5, 1)), "draws"),
        "amounts": (amounts, "draws"),
        "priors": (priors, "draws"),
    }
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--nulls", type=int, default=500)
    parser.add_argument("--part", nargs="+", choices=list(parts), default=list(parts))
    arguments = parser.parse_args()
    for message in ("The groups", "n_permutations=19 cannot"):
        warnings.filterwarnings("ignore", message=message)
    for name in arguments.part:
        function, size = parts[name]
        function(getattr(arguments, size))


if __name__ == "__main__":
    main()
