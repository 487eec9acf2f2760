"""Supplement, Fig. 1 and Table 1: how does accuracy depend on alpha?

1-NN accuracy on the set-aside motions as an exact function of alpha, for one joint
group, and the alpha chosen for every joint group. The models and distances are taken
from Fig. 6. The score is a step function of alpha; where a range is best, its middle is
taken, which the paper does not specify.
"""

import numpy as np
from common import (
    STYLES,
    Result,
    judged,
    main,
    panels,
    save_csv,
    save_figure,
    wanted,
)
from fig6 import motion_values, set_aside

from skawhmm import KNeighborsHMMClassifierCV

METHODS = ("MAW", "IAW", "IAW debiased", "MAW pooled prior", "MAW scaled channels")
SHOWN = "rleg_6"
OURS = "not in the paper"
PUBLISHED = {
    "MAW": (0.03, 0.01, 0.25, 0.07, 0.13, 0.21),
    "IAW": (0.15, 0.05, 0.16, 0.08, 0.0, 0.08),
}


def run(args):
    """Choose alpha for every joint group, draw the curve of one."""
    found, (_, y, _, groups, note) = motion_values(args)
    aside, rest = set_aside(y, args.seed)
    drawn = SHOWN if SHOWN in groups else next(iter(groups))
    figure, axes = panels(1, 2, width=4.6, height=3.2, sharey=True)
    rows, curves, gains = [], [], []
    for method in wanted(args, METHODS):
        for place, group in enumerate(groups):
            values = found[group][method]
            fits = [
                KNeighborsHMMClassifierCV(n_neighbors=1, metric="precomputed").fit(
                    values[np.ix_(part, part)], y[part]
                )
                for part in (aside, rest)
            ]
            path = fits[0].alpha_path_["scores"]
            published = PUBLISHED.get(method, [OURS] * len(groups))
            printed = published[place] if len(groups) == 6 else OURS
            rows.append(
                [method, group, fits[0].alpha_, printed, path[0], path[-1], path.max()]
            )
            gains.append((path.max(), path[0]))
            if group == drawn:
                _draw(axes[0], fits, method, curves)
    for ax, part in zip(axes[0], ("set-aside motions", "the others"), strict=True):
        ax.set(xlabel="alpha", title=f"{drawn}: {part}")
    axes[0, 0].set_ylabel("1-NN accuracy")
    axes[0, 0].legend(fontsize=8)
    save_csv(args, "supplement_alpha_curve", ["method", "part", "alpha", "s"], curves)
    header = ["method", "group", "alpha", "paper", "accuracy at alpha = 0"]
    return Result(
        "supplement_alpha",
        "Supplement: the choice of alpha",
        [*header, "at alpha = 1", "at the choice"],
        rows,
        [_ordering(rows, gains)],
        [
            note,
            "KL, the transition coupling, the mean and standard deviation, DTW and the "
            "SVM have no alpha of their own.",
        ],
        [save_figure(args, "supplement_alpha", figure)],
    )


def _draw(axes, fits, method, curves):
    for ax, fit, part in zip(axes, fits, ("set aside", "others"), strict=True):
        ends, scores = fit.alpha_path_["alphas"], fit.alpha_path_["scores"]
        style = {k: STYLES[method][k] for k in ("color", "linestyle")}
        ax.plot(ends, np.append(scores, scores[-1]), ds="steps-post", **style)
        ax.plot(fit.alpha_, scores.max(), marker="o", label=method, **style)
        curves.extend(
            [method, part, a, s] for a, s in zip(ends[:-1], scores, strict=True)
        )


def _ordering(rows, gains):
    alphas = np.array([row[2] for row in rows if row[0] in PUBLISHED])
    best, none = np.mean(gains, axis=0)
    return judged(
        "the chosen alphas are small: at most 0.25 (Table 1 of the supplement)",
        bool(np.all(alphas <= 0.25)),
        f"{np.sum(alphas <= 0.25)} of {len(alphas)} (MAW, IAW) are at most 0.25, the "
        f"largest is {alphas.max():.2f}; mean accuracy {best:.3f} at the choice, "
        f"{none:.3f} at alpha = 0",
    )


if __name__ == "__main__":
    main(run, __doc__)
