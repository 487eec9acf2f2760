"""Fig. 1: how stable are W2 and KL between Gaussians estimated from little data?

A standard Gaussian in the plane is estimated from 50 points, 100 times, and compared
with Gaussians whose means, or whose variances, move away from it step by step. A
distance distinguishes step i from step i + 1 if its mean grows by more than its
scatter.

Readings. The paper writes KL in both directions; its conclusion ("stable if phi_i is
under the umbrella of phi_0") is about KL(phi_i, estimate), which is drawn here. The
other direction, KL(estimate, phi_i), is in the table. The range of i for the variances
is not printed; the text speaks of i < 0 and of i >= 2, so it is -5, ..., 5 here.
"""

import numpy as np
from common import Result, judged, main, panels, progress, save_csv, save_figure

from skawhmm import KL, HMMBatch, pairwise_hmm_distances

SIZES = {
    "smoke": {"n_batches": 20},
    "quick": {"n_batches": 100},
    "full": {"n_batches": 1000},
}
N_POINTS = 50
DISTANCES = ("W2", "KL", "KL reversed")


def gaussians(means, covars):
    """Return Gaussians as models with one state."""
    n = len(means)
    return HMMBatch(np.ones((n, 1, 1)), means[:, None], covars[:, None])


def moved(differ_in):
    """Return the steps and the Gaussians of one experiment."""
    if differ_in == "means":
        steps = np.arange(1, 11)
        means = 0.5 * steps[:, None] * np.ones(2)
        return steps, gaussians(means, np.tile(np.eye(2), (10, 1, 1)))
    steps = np.arange(-5, 6)
    covars = np.exp(0.5 * steps)[:, None, None] * np.eye(2)
    return steps, gaussians(np.zeros((len(steps), 2)), covars)


def estimates(n_batches, seed):
    """Return Gaussians estimated from batches of points of a standard one."""
    points = np.random.default_rng(seed).standard_normal((n_batches, N_POINTS, 2))
    covars = np.stack([np.cov(batch.T) for batch in points])
    return gaussians(points.mean(axis=1), covars)


def values(estimated, targets):
    """Return each distance from every estimate to every target."""
    # With one state the variational bound is the divergence itself.
    kl = KL(method="variational", symmetric=False)
    return {
        "W2": pairwise_hmm_distances(estimated, targets, "maw", alpha=0, p=1),
        "KL": pairwise_hmm_distances(targets, estimated, kl).T,
        "KL reversed": pairwise_hmm_distances(estimated, targets, kl),
    }


def separations(found):
    """Return the growth from each step to the next, in standard deviations."""
    mean, std = found.mean(axis=0), found.std(axis=0)
    return np.diff(mean) / np.sqrt((std[1:] ** 2 + std[:-1] ** 2) / 2)


def run(args):
    """Compare the distances and draw them with their 3-sigma ranges."""
    estimated = estimates(SIZES[args.size]["n_batches"], args.seed)
    figure, axes = panels(1, 2, width=4.2, height=3.2)
    rows, curves, apart = [], [], {}
    bar = progress(2, "fig1")
    for ax, differ_in in zip(axes[0], ("means", "variances"), strict=True):
        steps, targets = moved(differ_in)
        found = values(estimated, targets)
        twin = ax.twinx()
        for name, place, color in (("W2", ax, "#D55E00"), ("KL", twin, "#0072B2")):
            mean, std = found[name].mean(axis=0), found[name].std(axis=0)
            place.plot(steps, mean, color=color, marker="os"[name == "KL"], ms=4)
            place.fill_between(
                steps, mean - 3 * std, mean + 3 * std, color=color, alpha=0.2
            )
            place.set_ylabel(f"{name}, mean ± 3 sd", color=color)
        ax.set(title=f"varying {differ_in}", xlabel="step i")
        for name in DISTANCES:
            apart[differ_in, name] = separations(found[name])
            mean, std = found[name].mean(axis=0), found[name].std(axis=0)
            curves.extend(
                [differ_in, name, i, m, s]
                for i, m, s in zip(steps, mean, std, strict=True)
            )
        rows.extend(
            [differ_in, i, i + 1, *(apart[differ_in, n][k] for n in DISTANCES)]
            for k, i in enumerate(steps[:-1])
        )
        bar.update()
    bar.close()
    save_csv(
        args, "fig1_curves", ["differ_in", "distance", "step", "mean", "std"], curves
    )
    return Result(
        "fig1",
        "Fig. 1: W2 and KL between estimated Gaussians",
        ["differ_in", "step", "next", *(f"{n}: growth / sd" for n in DISTANCES)],
        rows,
        _orderings(apart),
        [
            "Growth / sd: difference of the means of two neighbouring steps over the "
            "pooled standard deviation; the larger it is, the better the steps are "
            "distinguished. KL is KL(phi_i, estimate), KL reversed is KL(estimate, "
            "phi_i)."
        ],
        [save_figure(args, "fig1", figure)],
    )


def _orderings(apart):
    def compare(differ_in, keep):
        steps = moved(differ_in)[0][:-1]
        w2, kl = (np.abs(apart[differ_in, n])[keep(steps)] for n in ("W2", "KL"))
        return w2, kl, f"mean growth / sd: W2 {w2.mean():.2f}, KL {kl.mean():.2f}"

    w2, kl, text = compare("means", lambda i: i > 0)
    first = judged(
        "means: W2 has the smaller scatter and distinguishes the steps better",
        bool(np.all(w2 > kl)),
        f"{text}; better in {np.sum(w2 > kl)} of {len(w2)} steps",
    )
    w2, kl, text = compare("variances", lambda i: i < -1)
    second = judged("variances, i < 0: KL is the steadier", kl.mean() > w2.mean(), text)
    w2, kl, text = compare("variances", lambda i: i >= 2)
    third = judged("variances, i >= 2: W2 is the steadier", w2.mean() > kl.mean(), text)
    return [first, second, third]


if __name__ == "__main__":
    main(run, __doc__)
