"""Error rates of intervals, equivalence, numbers of states and `dynamics_gain`.

    python benchmarks/bench_uncertainty.py [--draws 100]

Two processes at a known distance: how often does the interval of `distance_interval`
hold it, and how often are they called equivalent at a margin that is exactly their
distance? A third model, as far away as the second: how often is the second called
nearer? Sequences of 1 to 4 states: how often is the number wrong that each criterion
chooses? Frames without order: how often does `dynamics_gain` say that order matters,
and how often does its interval hold the mean gain?
"""

import argparse
import warnings

import numpy as np

from skawhmm import HMMBatch, HMMTransformer, dynamics_gain, hmm_distance
from skawhmm.groups import distance_interval, stability_curve


def chain(stay, n_states):
    moves = np.full((n_states, n_states), (1 - stay) / max(n_states - 1, 1))
    np.fill_diagonal(moves, stay if n_states > 1 else 1)
    return moves


def line(means):
    means = np.reshape(means, (1, -1, 1)).astype(float)
    size = means.shape[1]
    return HMMBatch([chain(0.85, size)], means, np.ones((1, size, 1)))


def intervals(n_draws):
    print(f"\ndistance_interval, confidence 0.9, {n_draws} draws of 200 frames")
    print(f"  {'means of a and b':26}{'true':>7}{'covered':>9}{'equivalent':>12}")
    for first, second in (((0, 4), (0, 4)), ((0, 4), (1, 5)), ((0, 4), (2, 8))):
        one, two = line(first), line(second)
        true = hmm_distance(one, two, metric="jaw")
        covered = equivalent = 0
        for seed in range(n_draws):
            X = one.sample(200, random_state=2 * seed)[0]
            X += two.sample(200, random_state=2 * seed + 1)[0]
            fits = HMMTransformer(2, random_state=0).fit_transform(X)
            found = distance_interval(
                fits[0], fits[1], n_resamples=60, random_state=seed
            )
            covered += found.low <= true <= found.high
            equivalent += true > 0 and found.within(true) <= 0.05
        shown = f"{equivalent / n_draws:12.2f}" if true > 0 else f"{'':>12}"
        print(f"  {first!s:10} {second!s:15}{true:7.2f}{covered / n_draws:9.2f}{shown}")


def nearness(n_draws):
    print(f"\nnearer, {n_draws} draws of 200 frames, two models equally far away")
    one, *others = line((0, 4)), line((-1, 3)), line((1, 5))
    found = 0
    for seed in range(n_draws):
        seeds = 3 * seed + np.arange(3)
        X = [
            model.sample(200, random_state=int(k))[0][0]
            for model, k in zip((one, *others), seeds, strict=True)
        ]
        fits = HMMTransformer(2, random_state=0).fit_transform(X)
        result = distance_interval(
            *(fits[k] for k in range(3)), n_resamples=60, random_state=seed
        )
        found += result.nearer >= 0.95
    print(f"  one is called nearer with confidence 0.95 in {found / n_draws:.3f}")


def noise(kind, rng, length):
    if kind == "heavy tails":
        return rng.standard_t(5, (length, 2)) * np.sqrt(3 / 5)
    if kind == "skewed":
        return rng.gamma(2, size=(length, 2)) / np.sqrt(2) - np.sqrt(2)
    values = rng.normal(size=(length, 2))
    if kind == "correlated":
        for t in range(1, length):
            values[t] = 0.5 * values[t - 1] + np.sqrt(0.75) * values[t]
    return values


def recordings(rng, n_states, separation, n_sequences, length, kind):
    """Return sequences whose states lie on a circle, a little elsewhere in each."""
    angles = 2 * np.pi * np.arange(n_states) / n_states
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    places *= separation / (2 * np.sin(np.pi / max(n_states, 2)))
    moves, X = chain(0.8, n_states), []
    for _ in range(n_sequences):
        states = np.empty(length, dtype=int)
        states[0] = rng.integers(n_states)
        for t in range(1, length):
            states[t] = rng.choice(n_states, p=moves[states[t - 1]])
        own = places + rng.normal(0, 0.3, places.shape)
        X.append(own[states] + noise(kind, rng, length))
    return X


CASES = [
    (n_states, *case, "Gaussian")
    for n_states in (1, 2, 3, 4)
    for case in ((4, 8, 200), (2.5, 8, 200), (3, 20, 100))
] + [
    (n_states, 4, 8, 200, kind)
    for kind in ("heavy tails", "skewed", "correlated")
    for n_states in (1, 2, 3)
]


def numbers_of_states(n_draws):
    rows = []
    for case in CASES:
        for seed in range(n_draws):
            rng = np.random.default_rng([CASES.index(case), seed])
            X = recordings(rng, *case)
            curve = stability_curve(X, range(1, 7), random_state=seed)
            wrong = {name: n != case[0] for name, n in curve.choices.items()}
            rows.append((case[-1], curve.agreed, wrong))
    print(f"\nnumber of states: fraction wrong, {len(rows)} data sets")
    names = ("restarts", "held_out", "bic", "aic")
    print(f"  {'frames':14}" + "".join(f"{name:>10}" for name in names))
    for gaussian in (True, False):
        part = [wrong for kind, _, wrong in rows if (kind == "Gaussian") == gaussian]
        cells = [np.mean([wrong[name] for wrong in part]) for name in names]
        title = "Gaussian" if gaussian else "others"
        print(f"  {title:14}" + "".join(f"{cell:10.2f}" for cell in cells))
    for agreed in (True, False):
        part = [wrong["restarts"] for _, same, wrong in rows if same == agreed]
        title = "criteria agree" if agreed else "they do not"
        fraction = len(part) / len(rows)
        print(f"  {title:16}{fraction:.2f} of data sets, wrong {np.mean(part):.2f}")


def without_order(rng, n_sequences, shift):
    y = np.arange(n_sequences) % 2
    jumps = rng.choice([0.0, 2.0], size=(n_sequences, 30, 1))
    X = rng.normal(size=(n_sequences, 30, 2)) + jumps + shift * y[:, None, None]
    return list(X), y


def with_order(rng, n_sequences, stays):
    y, X = np.arange(n_sequences) % 2, []
    for label in y:
        states = np.cumsum(rng.random(40) > stays[label]) % 2
        X.append(3 * states[:, None] + 0.7 * rng.normal(size=(40, 2)))
    return X, y


def gains(n_draws):
    print(f"\ndynamics_gain, {n_draws} draws")
    print(f"  {'data':34}{'gain':>7}{'said':>7}{'covered':>9}")
    for title, draw in (
        ("20 sequences without order", lambda rng: without_order(rng, 20, 0.3)),
        ("40 sequences without order", lambda rng: without_order(rng, 40, 0.3)),
        ("40 sequences, no classes", lambda rng: without_order(rng, 40, 0.0)),
        (
            "40 sequences, order matters a bit",
            lambda rng: with_order(rng, 40, (0.7, 0.8)),
        ),
        ("40 sequences, order matters", lambda rng: with_order(rng, 40, (0.6, 0.8))),
    ):
        found = []
        for seed in range(n_draws):
            rng = np.random.default_rng(1000 + seed)
            found.append(dynamics_gain(*draw(rng), random_state=seed))
        mean = np.mean([result.gain for result in found])
        said = [
            result.meaning.startswith(("Order matters", "Order misleads"))
            for result in found
        ]
        held = [result.interval[0] <= mean <= result.interval[1] for result in found]
        print(f"  {title:34}{mean:7.3f}{np.mean(said):7.3f}{np.mean(held):9.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--draws", type=int, default=100)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    intervals(arguments.draws)
    nearness(5 * arguments.draws)
    numbers_of_states(max(arguments.draws // 5, 1))
    gains(2 * arguments.draws)


if __name__ == "__main__":
    main()
