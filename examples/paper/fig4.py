"""Fig. 4: do the findings of Fig. 3 hold for more states and more channels?

Six random models, six sequences of each, for 3, 5 and 8 states, 3, 5 and 8 channels and
four scales of the difference: 36 settings for each of three perturbations (Algorithm 2
of the paper and Algorithms 1 and 2 of its supplement).

Readings. Transitions are (1 - scale) T_base + scale P; the supplement prints the
weights the other way round. N(1, .1) for the factors of the covariances is a mean and a
variance; draws that are not positive are drawn again. Each sequence has an independent
seed, all distances see the same models, and the query is left out of its own ranking.
The scales, the sequence length (here 100, as in section 5.1), T_base (here .8 on the
diagonal) and alpha are not printed. alpha is chosen by 1-NN accuracy on a second draw
from the same models. An error bar is the standard error over the 36 queries.
"""

from itertools import product

import numpy as np
from common import (
    PAPER,
    STYLES,
    Result,
    all_values,
    better,
    chosen_alpha,
    legend_below,
    main,
    method_rows,
    metrics,
    mixed,
    mixtures,
    panels,
    parallel,
    save_csv,
    save_figure,
    similar,
    svm_cross_validated,
)

from skawhmm import HMMTransformer
from skawhmm.datasets import make_model_sequences, make_seed_models
from skawhmm.neighbors import precision_at_k, retrieval_auc

SIZES = {
    "smoke": {"n_steps": 50, "n_samples": 16, "states": (3,), "channels": (3,)},
    "quick": {"n_steps": 200, "n_samples": 24, "max_iter": 50},
    "full": {"n_steps": 2000, "n_samples": 256},
}
SCALES = {
    "means": (0.05, 0.1, 0.2, 0.4),
    "covariances": (0.05, 0.1, 0.2, 0.4),
    "transitions": (0.25, 0.5, 0.75, 1.0),
}
COUNTS = (3, 5, 8)


def retrieved(args, differ_in, n_channels, n_states, scale):
    """AUC of every query and accuracy, by method, for one setting."""
    size = SIZES[args.size]
    distances = metrics(size["n_steps"], size["n_samples"], args.seed)
    models = make_seed_models(
        differ_in,
        scale,
        n_components=n_states,
        n_features=n_channels,
        random_state=args.seed,
    )
    max_iter = size.get("max_iter", 100)
    hmm = HMMTransformer(n_states, "full", max_iter=max_iter, random_state=args.seed)
    chosen, found = {}, {}
    for part in ("alpha", "test"):
        X, y = make_model_sequences(
            models, 6, random_state=2 * args.seed + (part == "test") + 1
        )
        used = distances if part == "test" else mixtures(distances)
        values = all_values(X, hmm, used, args)
        if part == "alpha":
            chosen = {name: chosen_alpha(value, y) for name, value in values.items()}
    matrices = {
        name: mixed(value, chosen.get(name, 0)) for name, value in values.items()
    }
    for name, matrix in matrices.items():
        found[name] = retrieval_auc(matrix, y), np.mean(precision_at_k(matrix, y))
    if "MAW" in matrices:
        found["SVM on MAW"] = svm_cross_validated(matrices["MAW"], y, args.seed)
    return found


def run(args):
    """Retrieve in all settings, draw a panel of subplots for each perturbation."""
    size = SIZES[args.size]
    states, channels = size.get("states", COUNTS), size.get("channels", COUNTS)
    tasks = [
        (differ_in, *task)
        for differ_in, scales in SCALES.items()
        for task in product(channels, states, scales)
    ]
    by_task = dict(zip(tasks, parallel(args, retrieved, tasks, "fig4"), strict=True))
    summary, settings, aucs, figures = [], [], {}, []
    for differ_in, scales in SCALES.items():
        figure, axes = panels(
            len(channels), len(states), height=2.2, sharex=True, sharey=True
        )
        pooled = {}
        for row, d in zip(axes, channels, strict=True):
            for ax, m in zip(row, states, strict=True):
                curves = {}
                for scale in scales:
                    for name, value in by_task[differ_in, d, m, scale].items():
                        if name == "SVM on MAW":
                            pooled.setdefault(name, []).append((value,))
                            continue
                        auc, accuracy = value
                        error = auc.std(ddof=1) / np.sqrt(len(auc))
                        curves.setdefault(name, []).append((auc.mean(), error))
                        pooled.setdefault(name, []).append((auc.mean(), accuracy))
                        settings.append(
                            [differ_in, m, d, scale, name, auc.mean(), error]
                        )
                for name, values in curves.items():
                    style = STYLES[name] | {"ms": 4, "lw": 1.3, "capsize": 2}
                    mean, error = np.transpose(values)
                    ax.errorbar(scales, mean, error, label=name, **style)
                ax.set_title(f"{m} states, {d} channels", fontsize=9)
        for ax in axes[-1]:
            ax.set_xlabel("scale")
        for ax in axes[:, 0]:
            ax.set_ylabel("AUC")
        figure.suptitle(f"perturbation of {differ_in}")
        legend_below(figure, axes[0, 0])
        figures.append(save_figure(args, f"fig4_{differ_in}", figure))
        aucs[differ_in] = {
            name: np.array(v)[:, 0] for name, v in pooled.items() if name in STYLES
        }
        summary.extend(method_rows([differ_in], pooled, 2))
    header = ["differ_in", "states", "channels", "scale", "method", "AUC", "error"]
    save_csv(args, "fig4_settings", header, settings)
    n_settings = len(states) * len(channels) * 4
    return Result(
        "fig4",
        "Fig. 4: retrieval for more states and channels",
        ["differ_in", "method", "AUC", "accuracy"],
        summary,
        _orderings(aucs),
        [
            f"Means over {n_settings} settings of states, channels and scale, 6 "
            "classes x 6 sequences each. Accuracy: nearest neighbour, leaving one out; "
            "of the SVM, five-fold cross-validation. Every setting is in "
            "`fig4_settings.csv`."
        ],
        figures,
    )


def _orderings(aucs):
    if any(set(PAPER) - set(found) for found in aucs.values()):
        return []
    means, covariances, transitions = aucs.values()

    def judge(kind, text, found, first, second):
        return kind(text, found[first], found[second], (first, second))

    return [
        judge(similar, "means: IAW and KL similar", means, "IAW", "KL"),
        judge(better, "means: KL better than MAW", means, "KL", "MAW"),
        judge(better, "means: IAW better than MAW", means, "IAW", "MAW"),
        judge(better, "covariances: KL better than IAW", covariances, "KL", "IAW"),
        judge(better, "covariances: IAW better than MAW", covariances, "IAW", "MAW"),
        judge(similar, "transitions: MAW, IAW similar", transitions, "MAW", "IAW"),
        judge(better, "transitions: MAW better than KL", transitions, "MAW", "KL"),
        judge(better, "transitions: IAW better than KL", transitions, "IAW", "KL"),
    ]


if __name__ == "__main__":
    main(run, __doc__)
