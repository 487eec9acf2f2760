"""Table 2: how long does one distance take?

Time per pair on one core for models fitted to sequences of Fig. 3 (two states, two
channels) and to motions (three states, 12 channels), with the paper's sample sizes: KL
2000 steps and IAW 500 points, on motions 1000 and 1000. IAW with its defaults (256
quasi-random points) is also timed. The best of several runs counts; compilation and
the fitting of models are not included. The paper timed MATLAB (MAW, IAW) and C (KL).
"""

import time

import numpy as np
from common import (
    MISSING,
    STYLES,
    Result,
    compared,
    dtw,
    fitted,
    judged,
    main,
    mean_std,
    metrics,
    mixed,
    mocap,
    models_for,
    panels,
    progress,
    save_figure,
)
from sklearn.svm import SVC

from skawhmm import IAW, HMMTransformer
from skawhmm.datasets import make_model_sequences, make_table1_models

SIZES = {
    "smoke": {"n_models": 6, "n_sampled": 3, "n_runs": 1, "short": True},
    "quick": {"n_models": 50, "n_sampled": 6, "n_runs": 3},
    "full": {"n_models": 50, "n_sampled": 12, "n_runs": 5},
}
OURS = "not in the paper"
PUBLISHED = {
    ("synthetic", "KL"): 5.8,
    ("synthetic", "MAW"): 3.8,
    ("synthetic", "IAW"): 57.9,
    ("mocap", "KL"): 8.0,
    ("mocap", "MAW"): 21.0,
    ("mocap", "IAW"): 158.0,
}


def best_time(call, n_runs):
    """Return the shortest of several runs, after one that compiles."""
    call()
    times = []
    for _ in range(n_runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def times(sequences, hmm, distances, size, bar):
    """Milliseconds per pair of each method."""
    found = {}
    models = fitted(sequences, hmm)
    for method, metric in distances.items():
        n = size["n_sampled"] if isinstance(metric, IAW) else len(sequences)
        part = models_for(method, models)[:n]
        seconds = best_time(lambda m=part, d=metric: compared(m, d, 1), size["n_runs"])
        found[method] = 1e3 * seconds / (n * (n - 1) / 2)
        bar.update()
    n_pairs = len(sequences) * (len(sequences) - 1) / 2
    y = np.arange(len(sequences)) % 2
    kernel = np.exp(-mixed(compared(models["own"], distances["MAW"], 1), 0.1))

    def svm():
        SVC(kernel="precomputed").fit(kernel, y).predict(kernel)

    found["SVM on MAW"] = found["MAW"] + 1e3 * best_time(svm, size["n_runs"]) / n_pairs
    seconds = best_time(lambda: mean_std(sequences), size["n_runs"])
    found["mean/std"] = 1e3 * seconds / n_pairs
    if dtw(sequences[:2], 1) is not None:
        seconds = best_time(lambda: dtw(sequences, 1), 1)
        found["DTW"] = 1e3 * seconds / n_pairs
    return found


def settings(args, size):
    """Yield name, sequences, estimator and distances of each setting."""
    n = size["n_models"]
    models = make_table1_models("means", 0.4, random_state=args.seed)
    X, _ = make_model_sequences(models, max(n // 5, 2), random_state=args.seed)
    short = size.get("short")
    yield (
        "synthetic",
        X[:n],
        HMMTransformer(2, "full", random_state=args.seed),
        _sampled(metrics(100 if short else 2000, 20 if short else 500)),
    )
    motions, _, _, groups, _ = mocap(args.size, 6, args.seed)
    channels = next(iter(groups.values()))
    order = np.random.default_rng(args.seed).permutation(len(motions))[:n]
    yield (
        "mocap",
        [motions[i][:, channels] for i in order],
        HMMTransformer(3, "full", random_state=args.seed),
        _sampled(metrics(100 if short else 1000, 20 if short else 1000)),
    )


def _sampled(distances):
    return distances | {"IAW debiased": IAW(debias=True), "IAW, default": IAW()}


def run(args):
    """Time every method in both settings."""
    size = SIZES[args.size]
    rows, found = [], {}
    bar = progress(14, "table2")
    for name, sequences, hmm, distances in settings(args, size):
        found[name] = times(sequences, hmm, distances, size, bar)
        for method in [*STYLES, "IAW, default"]:
            if method in found[name] or method == "DTW":
                time_here = MISSING
                if method in found[name]:
                    time_here = f"{found[name][method]:.3g}"
                rows.append(
                    [name, method, time_here, PUBLISHED.get((name, method), OURS)]
                )
    bar.close()
    figure, axes = panels(1, 2, width=4.6, height=3.4, sharex=True)
    for ax, (name, by_method) in zip(axes[0], found.items(), strict=True):
        methods = list(by_method)[::-1]
        colors = [STYLES.get(m, STYLES["IAW"])["color"] for m in methods]
        ax.barh(methods, [by_method[m] for m in methods], color=colors, label="here")
        for place, method in enumerate(methods):
            if (name, method) in PUBLISHED:
                ax.plot(PUBLISHED[name, method], place, "kd", label="paper")
        ax.set(xscale="log", xlabel="milliseconds per pair", title=name)
        handles, labels = ax.get_legend_handles_labels()
        ax.legend(handles[:1], labels[:1], loc="lower right")
    return Result(
        "table2",
        "Table 2: time per pair",
        ["setting", "method", "ms per pair", "paper, ms per pair"],
        rows,
        _orderings(found),
        [
            "One core. The SVM counts the distances of its kernel and one fit with "
            "prediction. The mocap setting is the paper's 6 joint groups (section "
            "5.3.3), its first group here."
        ],
        [save_figure(args, "table2", figure)],
    )


def _orderings(found):
    def text(times):
        return ", ".join(f"{m} {times[m]:.4f} ms" for m in ("KL", "MAW", "IAW"))

    a, b = found["synthetic"], found["mocap"]
    return [
        judged("synthetic: MAW < KL < IAW", a["MAW"] < a["KL"] < a["IAW"], text(a)),
        judged("mocap: KL < MAW < IAW", b["KL"] < b["MAW"] < b["IAW"], text(b)),
    ]


if __name__ == "__main__":
    main(run, __doc__)
