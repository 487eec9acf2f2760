"""Fig. 7 and Fig. 2 of the supplement: retrieval when channels of the query are lost.

Every motion is a query once, with 1, 2 or 3 randomly chosen channels set to 0; the
motions to be retrieved are complete. Models with a dead channel have variance 0 there,
so KL is infinite and useless for ranking, while MAW and IAW remain finite.

Readings. The lost channels are drawn again for each query, joint group and number;
alpha is taken from Fig. 6; the query is left out of its own ranking. KL on complete
queries, which the paper compares with, is taken from Fig. 6. "MAW common" is ours: the
query's model knows that the channel is missing, and models are compared on common
channels. ``--quick`` takes every other one of the motions that Fig. 6 scores.
"""

import numpy as np
from common import (
    PAPER,
    Result,
    chosen_alpha,
    compared,
    everywhere,
    judged,
    main,
    mean_std,
    method_rows,
    metrics,
    mixed,
    models_for,
    panels,
    progress,
    save_csv,
    save_figure,
    scores,
    svm_cross_validated,
    wanted,
    warped,
)
from fig6 import SIZES, estimator, motion_values, set_aside

from skawhmm import KL, MAW
from skawhmm.neighbors import retrieval_curve

COMMON = "MAW common"
COUNTS = (1, 2, 3)
SHADES = ("#000000", "#0072B2", "#E69F00", "#CC79A7")
LINES = ("-", "--", "-.", ":")
# Every n-th of the motions that Fig. 6 scores is used.
STEP = {"smoke": 1, "quick": 2, "full": 1}


def damaged(sequences, n_lost, seed):
    """Return the sequences with some channels set to 0, and the lost channels."""
    rng = np.random.default_rng([seed, n_lost])
    n_channels = sequences[0].shape[1]
    lost = [rng.permutation(n_channels)[:n_lost] for _ in sequences]
    queries = []
    for x, channels in zip(sequences, lost, strict=True):
        query = x.copy()
        query[:, channels] = 0.0
        queries.append(query)
    return queries, lost


def complete_models(sequences, args):
    """Return models of complete motions, and the transformer with a pooled prior."""
    pooled = estimator(args).set_params(prior="pooled").fit(sequences)
    own = estimator(args).fit_transform(sequences)
    return {"own": own, "pooled": pooled.transform(sequences)}, pooled


def query_values(sequences, n_lost, args, distances, complete, pooled, bar):
    """Components or distances of damaged queries to complete motions, by method."""
    queries, lost = damaged(sequences, n_lost, args.seed)
    own = estimator(args).fit_transform(queries)
    broken = {"own": own, "pooled": pooled.transform(queries)}
    found = {}
    for method in wanted(args, distances):
        pair = models_for(method, broken), models_for(method, complete)
        found[method] = compared(pair[0], distances[method], args.jobs, pair[1])
        bar.update()
    unknown = [x.copy() for x in queries]
    for x, channels in zip(unknown, lost, strict=True):
        x[:, channels] = np.nan
    known = estimator(args).set_params(missing="common").fit_transform(unknown)
    found[COMMON] = compared(known, MAW(), args.jobs, complete["own"])
    both = mean_std([*queries, *sequences])
    found["mean/std"] = both[: len(queries), len(queries) :]
    aligned = warped(queries, args, sequences)
    if aligned is not None:
        found["DTW"] = aligned
    return found


def run(args):
    """Retrieve with damaged queries and draw MAW and IAW for each joint group."""
    size = SIZES[args.size]
    whole, (sequences, y, _, groups, note) = motion_values(args)
    aside, rest = set_aside(y, args.seed)
    # Sorted by class, so that each class is thinned by the same factor.
    rest = rest[np.argsort(y[rest], kind="stable")][:: STEP[args.size]]
    distances = metrics(size["n_steps"], size["n_samples"], args.seed)
    # Between a query without variance and a complete motion it is infinite at any
    # length.
    distances["KL"] = KL(n_steps=10)
    bar = progress(len(COUNTS) * len(groups) * len(wanted(args, distances)), "fig7")
    rows, curves, precision = [], [], {}
    for group, channels in groups.items():
        part = [sequences[i][:, channels] for i in rest]
        models = complete_models(part, args)
        alphas = {
            name: chosen_alpha(values[np.ix_(aside, aside)], y[aside])
            for name, values in whole[group].items()
        }
        alphas[COMMON] = alphas.get("MAW", 0.1)
        complete = {
            name: mixed(values[np.ix_(rest, rest)], alphas[name])
            for name, values in whole[group].items()
        }
        for n_lost in (0, *COUNTS):
            if n_lost:
                found = query_values(part, n_lost, args, distances, *models, bar)
            else:
                found = dict(complete)
                if "MAW" in found:
                    found[COMMON] = found["MAW"]
            by_method = {}
            for name, values in found.items():
                matrix = mixed(values, alphas[name])
                by_method[name] = scores(matrix, y[rest])
                precision[name, n_lost, group] = by_method[name][0]
                recall, curve = retrieval_curve(matrix, y[rest])
                curves.extend(
                    [group, n_lost, name, r, p]
                    for r, p in zip(recall, curve, strict=True)
                )
            if "MAW" in found:
                by_method["SVM on MAW"] = svm_cross_validated(
                    complete["MAW"],
                    y[rest],
                    args.seed,
                    queries=mixed(found["MAW"], alphas["MAW"]),
                )
            rows.extend(method_rows([group, n_lost], by_method, 3))
            if COMMON in by_method:
                rows.append([group, n_lost, COMMON, *by_method[COMMON]])
    bar.close()
    save_csv(
        args, "fig7_curves", ["group", "lost", "method", "recall", "precision"], curves
    )
    return Result(
        "fig7",
        "Fig. 7 and supplement Fig. 2: retrieval with missing channels",
        ["group", "lost", "method", "mean average precision", "AUC", "accuracy"],
        rows,
        _orderings(precision, list(groups)),
        [
            note,
            f"{len(rest)} of these motions are queries and what is to be found. "
            "Accuracy: nearest neighbour; of the SVM, five-fold cross-validation. KL "
            "with a lost channel is infinite unless the channel rests in both motions: "
            "next to chance.",
        ],
        [
            _picture(args, curves, name)
            for name in ("MAW", "IAW")
            if wanted(args, [name])
        ],
    )


def _picture(args, curves, method):
    groups = list(dict.fromkeys(row[0] for row in curves))
    figure, axes = panels(2, max(len(groups) // 2, 1), sharex=True, sharey=True)
    for ax, group in zip(axes.flat, groups, strict=False):
        lines = [
            (method, n_lost, f"{method}, {n_lost} lost", color, style)
            for n_lost, color, style in zip(range(4), SHADES, LINES, strict=True)
        ]
        lines.append(("KL", 0, "KL, complete", "#999999", "-"))
        for name, n_lost, label, color, style in lines:
            curve = [r[3:] for r in curves if r[:3] == [group, n_lost, name]]
            if curve:
                ax.plot(*np.transpose(curve), style, color=color, label=label, lw=1.5)
        ax.set_title(group, fontsize=10)
    for ax in axes[-1]:
        ax.set(xlabel="recall", ylim=(0, 1.02))
    for ax in axes[:, 0]:
        ax.set_ylabel("precision")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return save_figure(args, f"fig7_{method.lower()}", figure)


def _orderings(precision, groups):
    if any((name, 3, groups[0]) not in precision for name in PAPER):
        return []
    orderings = []
    for name in ("MAW", "IAW"):
        means = [
            np.mean([precision[name, n, group] for group in groups]) for n in range(4)
        ]
        orderings.append(
            judged(
                f"{name}: precision falls as more channels are lost",
                bool(np.all(np.diff(means) < 0)),
                "mean average precision with 0, 1, 2, 3 lost: "
                + ", ".join(f"{value:.3f}" for value in means),
            )
        )
        orderings.append(
            everywhere(
                f"{name} with 3 lost channels better than KL with none, in all groups",
                groups,
                [precision[name, 3, group] for group in groups],
                [precision["KL", 0, group] for group in groups],
            )
        )
    return orderings


if __name__ == "__main__":
    main(run, __doc__)
