"""Fig. 6: how well do models of motions retrieve motions of the same kind?

A model with three states and full covariances is fitted to every motion and joint
group; each model retrieves the others. alpha is chosen by 1-NN accuracy on a fifth of
the motions, which is then set aside.

Readings. The query is left out of its own ranking. Covariances are full: the paper
mentions diagonal ones only for speech. Channels have their recorded units (root
positions in inches, angles in degrees), on which MAW and IAW depend and KL does not;
"MAW scaled channels" divides each by its standard deviation over all motions. Class and
actor are confounded in these motions, so we also give scores among the motions of
*other* actors; these leave out classes with a single actor.

The paper's whole retrieval by MAW and KL:  fig6.py --full --methods MAW KL
"""

import numpy as np
from common import (
    PAPER,
    Result,
    across_groups,
    all_values,
    chosen_alpha,
    compared,
    everywhere,
    legend_below,
    line,
    main,
    method_rows,
    metrics,
    mixed,
    mocap,
    panels,
    progress,
    save_csv,
    save_figure,
    scores,
    svm_cross_validated,
    wanted,
)

from skawhmm import MAW, HMMTransformer
from skawhmm.neighbors import retrieval_curve

SIZES = {
    "smoke": {"n_steps": 50, "n_samples": 16, "fraction": 1.0},
    "quick": {"n_steps": 300, "n_samples": 32, "fraction": 0.5},
    "full": {"n_steps": 1000, "n_samples": 256, "fraction": 1.0},
}
SCALED = "MAW scaled channels"
_CACHE: dict = {}


def estimator(args):
    """Return the transformer that fits the models."""
    return HMMTransformer(3, "full", random_state=args.seed, n_jobs=args.jobs)


def set_aside(y, seed):
    """Return the fifth of the items on which alpha is chosen, and the others."""
    rng = np.random.default_rng(seed)
    part = [rng.permutation(np.flatnonzero(y == c)) for c in np.unique(y)]
    part = np.concatenate([items[: max(2, len(items) // 5)] for items in part])
    return np.sort(part), np.setdiff1d(np.arange(len(y)), part)


def motion_values(args):
    """Components or distances of all pairs, by joint group and method.

    Fig. 6, Fig. 7 and the supplement use the same; it is computed once per process.
    """
    key = args.size, args.seed, tuple(args.methods or ())
    if key in _CACHE:
        return _CACHE[key]
    size = SIZES[args.size]
    data = mocap(args.size, 6, args.seed, size["fraction"])
    sequences, _, _, groups, _ = data
    distances = metrics(size["n_steps"], size["n_samples"], args.seed)
    bar = progress(len(groups) * len(wanted(args, distances)), "motions")
    found = {}
    for group, channels in groups.items():
        part = [x[:, channels] for x in sequences]
        found[group] = all_values(part, estimator(args), distances, args, bar=bar)
        if wanted(args, [SCALED]):
            spread = np.concatenate(part).std(axis=0)
            scaled = [x / np.where(spread > 0, spread, 1) for x in part]
            models = estimator(args).fit_transform(scaled)
            found[group][SCALED] = compared(models, MAW(), args.jobs)
    bar.close()
    _CACHE[key] = found, data
    return _CACHE[key]


def run(args):
    """Retrieve by each joint group and draw precision against recall."""
    found, (_, y, subjects, groups, note) = motion_values(args)
    aside, rest = set_aside(y, args.seed)
    figure, axes = panels(2, max(len(groups) // 2, 1), sharex=True, sharey=True)
    rows, curves, precision, other = [], [], {}, {}
    for ax, group in zip(axes.flat, groups, strict=False):
        by_method, alphas = {}, {}
        for name, values in found[group].items():
            alphas[name] = chosen_alpha(values[np.ix_(aside, aside)], y[aside])
            matrix = mixed(values[np.ix_(rest, rest)], alphas[name])
            recall, curve = retrieval_curve(matrix, y[rest])
            line(ax, recall, curve, name, marker="")
            curves.extend(
                [group, name, r, p] for r, p in zip(recall, curve, strict=True)
            )
            by_method[name] = [
                *scores(matrix, y[rest])[:2],
                *across_groups(matrix, y[rest], subjects[rest]),
                scores(matrix, y[rest])[2],
            ]
            precision.setdefault(name, []).append(by_method[name][0])
            other.setdefault(name, []).append(by_method[name][2])
            if name == "MAW":
                accuracy = [
                    svm_cross_validated(matrix, y[rest], args.seed, groups=g)
                    for g in (subjects[rest], None)
                ]
                by_method["SVM on MAW"] = accuracy
        for row in method_rows([group], by_method, 5):
            alpha = alphas.get(row[1], "none")
            has = row[1] in found[group] and found[group][row[1]].ndim == 3
            rows.append([*row[:2], alpha if has else "none", *row[2:]])
        ax.set_title(group, fontsize=10)
    for ax in axes[-1]:
        ax.set(xlabel="recall", ylim=(0, 1.02))
    for ax in axes[:, 0]:
        ax.set_ylabel("precision")
    legend_below(figure, axes[0, 0])
    save_csv(args, "fig6_curves", ["group", "method", "recall", "precision"], curves)
    header = ["group", "method", "alpha", "mean average precision", "AUC"]
    header += ["the same, other actors", "accuracy, other actors", "accuracy"]
    return Result(
        "fig6",
        "Fig. 6: retrieval of motions",
        header,
        rows,
        _orderings(precision, other, list(groups)),
        [
            note,
            "Accuracy: nearest neighbour, leaving one out; of the SVM, five-fold "
            "cross-validation. "
            f"{len(aside)} motions chose alpha, {len(rest)} were scored. Other actors: "
            "only motions by other people can be found.",
        ],
        [save_figure(args, "fig6", figure)],
    )


def _orderings(precision, other, groups):
    if set(PAPER) - set(precision):
        return []
    return [
        everywhere(f"{name} better than KL{where}", groups, values[name], values["KL"])
        for values, where in (
            (precision, " in all joint groups"),
            (other, " in all joint groups (other actors, not in the paper)"),
        )
        for name in ("MAW", "IAW")
    ]


if __name__ == "__main__":
    main(run, __doc__)
