"""Table 3: phonemes classified by their nearest neighbours.

Twenty segments of one phoneme, all from training or all from test speakers, are
concatenated to one sequence; a model with three states and diagonal covariances is
fitted to each, and test models are classified by their k nearest training models.

Readings. alpha is chosen by leave-one-out 1-NN accuracy on the training part. Of
classes with equal votes, the class of the nearest neighbour wins, which the paper does
not specify. Without the corpus the scripts use synthetic phonemes. Training and test
speakers are drawn at random, several times: the sample is small and has no test part of
its own.
"""

from itertools import product

import numpy as np
from common import (
    MISSING,
    PAPER,
    STYLES,
    Result,
    all_values,
    better,
    chosen_alpha,
    legend_below,
    line,
    main,
    metrics,
    mixed,
    panels,
    phonemes,
    progress,
    save_figure,
    similar,
    svm_hits,
    wanted,
)

from skawhmm import HMMTransformer, KNeighborsHMMClassifier

SIZES = {
    "smoke": {"n_steps": 50, "n_samples": 16, "n_splits": 1},
    "quick": {"n_steps": 300, "n_samples": 32, "n_splits": 3},
    "full": {"n_steps": 5000, "n_samples": 512, "n_splits": 5},
}
PUBLISHED = {
    name: [float(number) / 1000 for number in numbers.split()]
    for name, numbers in {
        "KL": "492 487 525 522 548 537 545 545 558 560 550 551",
        "MAW": "525 502 536 536 553 545 553 553 551 547 552 547",
        "IAW": "532 535 560 566 584 570 579 570 566 571 570 567",
    }.items()
}
NUMBERS = range(1, 13)
_CACHE: dict = {}


def phoneme_values(args, split=0, window=0.004, hop=0.002):
    """Components or distances of all pairs of phonemes; computed once per process."""
    key = args.size, args.seed, tuple(args.methods or ()), split, window, hop
    if key not in _CACHE:
        size = SIZES[args.size]
        data = phonemes(args.size, args.seed + split, window, hop)
        distances = metrics(size["n_steps"], size["n_samples"], args.seed)
        hmm = HMMTransformer(3, "diag", random_state=args.seed, n_jobs=args.jobs)
        bar = progress(len(wanted(args, distances)), "phonemes")
        values = all_values(data[0], hmm, distances, args, train=data[2], bar=bar)
        bar.close()
        _CACHE[key] = values, data
    return _CACHE[key]


def hits_by_number(values, y, train, test):
    """Chosen alpha, and which items are correct for each number of neighbours."""
    alpha = chosen_alpha(values[np.ix_(train, train)], y[train])
    distances = mixed(values, alpha)
    knn = KNeighborsHMMClassifier(metric="precomputed")
    knn.fit(distances[np.ix_(train, train)], y[train])
    queries = distances[np.ix_(test, train)]
    numbers = [min(k, len(train) - 1) for k in NUMBERS]
    found = [knn.set_params(n_neighbors=k).predict(queries) for k in numbers]
    return alpha, np.array(found) == y[test]


def run(args):
    """Classify with 1 to 12 neighbours; also with the usual window and step."""
    found, alphas, notes = {}, {}, []
    n_splits = SIZES[args.size]["n_splits"]
    windows = [(0.004, 0.002)] + [(0.025, 0.010)] * (args.size != "smoke")
    for (window, hop), split in product(windows, range(n_splits)):
        values, (_, y, train, test, note) = phoneme_values(args, split, window, hop)
        if not split:
            notes.append(note)
        for name, value in values.items():
            alpha, hits = hits_by_number(value, y, train, test)
            found.setdefault((window, name), []).append(hits)
            if value.ndim == 3:
                alphas.setdefault((window, name), []).append(alpha)
        if "MAW" in values:
            alpha = alphas[window, "MAW"][-1]
            hits = svm_hits(mixed(values["MAW"], alpha), y, train, test)
            hits = np.tile(hits, (len(NUMBERS), 1))
            found.setdefault((window, "SVM on MAW"), []).append(hits)
    found = {key: np.hstack(hits) for key, hits in found.items()}
    methods = [name for name in STYLES if (0.004, name) in found]
    figure, axes = panels(1, len(windows), width=4.6, height=3.2, sharey=True)
    rows = []
    for ax, (window, hop) in zip(axes[0], windows, strict=True):
        for name in methods:
            line(ax, NUMBERS, found[window, name].mean(axis=1), name)
        title = f"{1e3 * window:g} ms window, {1e3 * hop:g} ms step"
        ax.set(title=title, xlabel="neighbours k")
        for place, k in enumerate(NUMBERS):
            rows.append(
                [
                    f"{1e3 * window:g}/{1e3 * hop:g} ms",
                    k,
                    *(found[window, name][place].mean() for name in methods),
                    *[MISSING] * ("DTW" not in methods),
                    *(PUBLISHED[name][place] for name in PAPER),
                ]
            )
    axes[0, 0].set_ylabel("test accuracy")
    legend_below(figure, axes[0, 0])
    header = [*methods, *["DTW"] * ("DTW" not in methods)]
    chosen = "; ".join(
        f"{name} " + " ".join(f"{alpha:.2f}" for alpha in values)
        for (window, name), values in alphas.items()
        if window == windows[0][0]
    )
    notes.append(
        f"{n_splits} draws of test speakers and of concatenated segments, "
        f"{found[windows[0][0], methods[0]].shape[1]} test items in all. alpha chosen "
        f"(4/2 ms): {chosen}. The SVM has no k; its accuracy is repeated in every row. "
        "The paper's columns are for 4/2 ms."
    )
    return Result(
        "table3",
        "Table 3: phonemes classified by k nearest neighbours",
        ["front end", "k", *header, *(f"paper: {name}" for name in PAPER)],
        rows,
        _orderings(found),
        notes,
        [save_figure(args, "table3", figure)],
    )


def _orderings(found):
    if any((0.004, name) not in found for name in PAPER):
        return []
    # One number per item, so that the error is the error of the sample of test items.
    kl, maw, iaw = (found[0.004, name].mean(axis=0) for name in PAPER)
    return [
        better("IAW better than MAW (over k)", iaw, maw, ("IAW", "MAW")),
        better("IAW better than KL (over k)", iaw, kl, ("IAW", "KL")),
        similar("MAW and KL similar (over k)", maw, kl, ("MAW", "KL")),
    ]


if __name__ == "__main__":
    main(run, __doc__)
