"""Common code of the scripts in this folder: arguments, competitors, scores and files.

Every script has the same options. ``--quick`` (the default) takes about a minute on
two cores, ``--full`` uses the paper's sizes. Each writes a figure and tables to the
folder given by ``--out`` and prints its table and, for every ordering that the paper
states, whether it was reproduced. An ordering counts as reproduced if the mean
difference is more than two standard errors above 0.
"""

import argparse
import csv
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
from joblib import Parallel, delayed
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.svm import SVC
from tqdm.auto import tqdm

from skawhmm import (
    IAW,
    JAW,
    KL,
    MAW,
    KNeighborsHMMClassifierCV,
    TransitionCoupling,
    pairwise_hmm_components,
    pairwise_hmm_distances,
)
from skawhmm.datasets import (
    load_cmu_mocap,
    load_timit,
    make_hmm_sequences,
    make_phonemes,
)
from skawhmm.distances import MMD
from skawhmm.neighbors import average_precision, precision_at_k, retrieval_auc

mpl.use("Agg")
import matplotlib.pyplot as plt

# The colour-blind safe colours of Okabe and Ito; line styles distinguish them in print.
STYLES = {
    "KL": {"color": "#0072B2", "linestyle": "-", "marker": "o"},
    "MAW": {"color": "#D55E00", "linestyle": "-", "marker": "s"},
    "IAW": {"color": "#009E73", "linestyle": "-", "marker": "^"},
    "JAW": {"color": "#AA3377", "linestyle": "-", "marker": "p"},
    "mmd": {"color": "#44AA99", "linestyle": "-.", "marker": ">"},
    "coupling": {"color": "#CC79A7", "linestyle": "--", "marker": "D"},
    "IAW debiased": {"color": "#56B4E9", "linestyle": "--", "marker": "v"},
    "MAW pooled prior": {"color": "#E69F00", "linestyle": "--", "marker": "P"},
    "SVM on MAW": {"color": "#666666", "linestyle": "-.", "marker": "*"},
    "MAW scaled channels": {"color": "#882255", "linestyle": "--", "marker": "h"},
    "MAW equal weights": {"color": "#332288", "linestyle": "-.", "marker": "<"},
    "mean/std": {"color": "#000000", "linestyle": ":", "marker": "x"},
    "DTW": {"color": "#999999", "linestyle": ":", "marker": "+"},
}
PAPER = ("KL", "MAW", "IAW")
# Methods that need no models and no fit.
PLAIN = ("mean/std", "DTW")
MISSING = "not installed"
NO_RANKING = "ranks nothing"

# Maximal number of frames per sequence for DTW in quick scripts; its cost is quadratic.
DTW_FRAMES = 60

# Where the paper calls two methods similar, differences up to this count as similar.
SIMILAR = 0.02

# Where the paper says "much better", the difference must be at least this.
MUCH = 0.05


@dataclass
class Result:
    """Results of a script: a table, the paper's orderings, and remarks."""

    name: str
    title: str
    header: list
    rows: list
    orderings: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    figures: list = field(default_factory=list)
    seconds: float = 0.0


# Arguments and files


def parse(description, argv=None):
    """Read the options that all scripts have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    size = parser.add_mutually_exclusive_group()
    for name, text in {
        "quick": "smaller settings, about a minute (the default)",
        "full": "the paper's settings",
        "smoke": argparse.SUPPRESS,
    }.items():
        size.add_argument(
            f"--{name}", dest="size", action="store_const", const=name, help=text
        )
    parser.add_argument("--out", type=Path, default=Path("paper_output"), metavar="DIR")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="joblib workers")
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=list(STYLES),
        help="only these methods, where a script compares many",
    )
    parser.set_defaults(size="quick")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def main(run, description, argv=None):
    """Run one script from the command line and print its results."""
    result = timed(run, parse(description, argv))
    print(markdown(result))
    return result


def timed(run, args):
    """Call a script's `run`, save its table and note how long it took."""
    start = time.perf_counter()
    result = run(args)
    result.seconds = time.perf_counter() - start
    cells = {*result.header, *(cell for row in result.rows for cell in row)}
    if "DTW" in cells and MISSING not in cells and args.size != "full":
        result.notes.append(
            f"DTW sees evenly spaced frames of long sequences, at most {DTW_FRAMES}; "
            "with --full, and in Table 2, all frames."
        )
    save_csv(args, result.name, result.header, result.rows)
    return result


def save_csv(args, name, header, rows):
    """Write a table to the output folder."""
    with open(args.out / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([[_plain(cell) for cell in row] for row in rows])


def save_figure(args, name, figure):
    """Write a figure to the output folder and return its name."""
    figure.savefig(args.out / f"{name}.png", dpi=130)
    plt.close(figure)
    return f"{name}.png"


def _plain(cell):
    return f"{cell:.6g}" if isinstance(cell, (float, np.floating)) else cell


def method_rows(start, found, width):
    """Rows of a table, one per method in the order of the styles, each `start` first.

    `found` has the numbers of each method; a single number is an accuracy, and goes
    into the last column. DTW has a row even where it cannot be computed.
    """
    rows = []
    for name in STYLES:
        if name in found:
            numbers = [float(v) for v in np.mean(np.atleast_2d(found[name]), axis=0)]
            gap = [NO_RANKING] * (width - len(numbers))
            rows.append([*start, name, *gap, *numbers])
        elif name == "DTW":
            rows.append([*start, name, *[MISSING] * width])
    return rows


def formatted(cell):
    """Return a cell of a table as text."""
    if isinstance(cell, (float, np.floating)):
        return f"{cell:.3f}" if abs(cell) < 1000 else f"{cell:.4g}"
    return str(cell)


def table(header, rows):
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(formatted, line)) + " |" for line in lines)


def markdown(result):
    """Return the results of a script in Markdown."""
    parts = [f"## {result.title}", table(result.header, result.rows)]
    if result.orderings:
        head = ["stated in the paper", "here", "numbers"]
        parts.append(table(head, result.orderings))
    parts.extend(result.notes)
    parts.append(f"({result.seconds:.0f} s)")
    return "\n\n".join(parts)


# Orderings


def better(statement, first, second, labels=("", "")):
    """Judge "first is better than second" from paired scores of repetitions.

    Where the paper says "much better", the difference has to be large as well as sure.
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    gaps = first - second
    error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
    numbers = (
        f"{labels[0]} {first.mean():.3f}, {labels[1]} {second.mean():.3f}, "
        f"difference {gaps.mean():+.3f} ± {error:.3f}"
    )
    needed = 2 * error
    if "much better" in statement:
        needed = max(needed, MUCH)
        numbers += f", much means more than {MUCH}"
    return [statement, _verdict(gaps.mean() > needed), numbers]


def similar(statement, first, second, labels=("", "")):
    """Judge "first and second are similar"."""
    first, second = np.mean(first), np.mean(second)
    numbers = (
        f"{labels[0]} {first:.3f}, {labels[1]} {second:.3f}, similar means within "
        f"{SIMILAR}"
    )
    return [statement, _verdict(abs(first - second) <= SIMILAR), numbers]


def everywhere(statement, names, first, second):
    """Judge "first is better than second in every case"."""
    pairs = list(zip(names, first, second, strict=True))
    numbers = "; ".join(f"{name} {a:.3f} against {b:.3f}" for name, a, b in pairs)
    holds = sum(a > b for _, a, b in pairs)
    numbers = f"in {holds} of {len(pairs)}: {numbers}"
    return [statement, _verdict(holds == len(pairs)), numbers]


def judged(statement, holds, numbers):
    """Return an ordering judged by the script itself."""
    return [statement, _verdict(holds), numbers]


def _verdict(holds):
    return "reproduced" if holds else "not reproduced"


# Competitors


def metrics(n_steps, n_samples, seed=0):
    """Distances between models, by the name of the method."""
    return {
        "KL": KL(n_steps=n_steps, random_state=seed),
        "MAW": MAW(),
        "IAW": IAW(n_samples=n_samples, random_state=seed),
        "JAW": JAW(),
        "mmd": MMD(),
        "coupling": TransitionCoupling(),
        "IAW debiased": IAW(n_samples=n_samples, debias=True, random_state=seed),
        "MAW pooled prior": MAW(),
    }


def mixtures(distances):
    """Keep the distances that have an alpha."""
    return {k: v for k, v in distances.items() if hasattr(v, "components")}


def fitted(sequences, hmm, train=None, *, pooled=True):
    """Models of the sequences: fitted separately, and adapted from a pooled model."""
    own = clone(hmm).fit_transform(sequences)
    if not pooled:
        return {"own": own}
    known = sequences if train is None else [sequences[i] for i in train]
    adapted = clone(hmm).set_params(prior="pooled").fit(known).transform(sequences)
    return {"own": own, "pooled": adapted}


def models_for(method, models):
    """Return the models that a method compares."""
    return models["pooled" if method == "MAW pooled prior" else "own"]


def compared(models, metric, jobs, others=None):
    """Components (n, m, 2) of all pairs, or distances without components."""
    if not hasattr(metric, "components"):
        return pairwise_hmm_distances(models, others, metric, n_jobs=jobs)
    both = pairwise_hmm_components(models, others, metric, n_jobs=jobs)
    return np.stack(both, axis=-1)


def mixed(values, alpha):
    """Return distances at `alpha`; distances are returned unchanged."""
    if values.ndim == 2:
        return values
    return (1 - alpha) * values[..., 0] + alpha * values[..., 1]


def chosen_alpha(values, y):
    """Return the `alpha` with the best 1-NN accuracy, leaving one out."""
    if values.ndim == 2:
        return 0.0
    search = KNeighborsHMMClassifierCV(n_neighbors=1, metric="precomputed")
    return search.fit(values, y).alpha_


def mean_std(sequences):
    """Distances between means and standard deviations of the channels."""
    vectors = np.array([np.r_[x.mean(axis=0), x.std(axis=0)] for x in sequences])
    spread = vectors.std(axis=0)
    vectors = (vectors - vectors.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return cdist(vectors, vectors)


def dtw(sequences, jobs, others=None):
    """Dynamic time warping distances by aeon or tslearn; None without them."""
    try:
        from aeon.distances import dtw_pairwise_distance  # noqa: PLC0415

        flipped = [
            None if part is None else [np.ascontiguousarray(x.T) for x in part]
            for part in (sequences, others)
        ]
        return dtw_pairwise_distance(*flipped, n_jobs=jobs)
    except ImportError:
        pass
    try:
        from tslearn.metrics import cdist_dtw  # noqa: PLC0415

        return cdist_dtw(sequences, others, n_jobs=jobs)
    except ImportError:
        return None


def warped(sequences, args, others=None):
    """Like `dtw`, with long sequences subsampled in quick scripts."""
    if not wanted(args, ["DTW"]):
        return None
    thin = [
        part if part is None or args.size == "full" else [_thinned(x) for x in part]
        for part in (sequences, others)
    ]
    return dtw(thin[0], args.jobs, thin[1])


def _thinned(x):
    return x[:: -(-len(x) // DTW_FRAMES)]


def wanted(args, names):
    """Keep the methods that the user asked for."""
    return [name for name in names if args.methods is None or name in args.methods]


def all_values(sequences, hmm, distances, args, *, train=None, bar=None):
    """Components or distances of all pairs of sequences, for every method."""
    methods = wanted(args, distances)
    models = fitted(sequences, hmm, train, pooled="MAW pooled prior" in methods)
    values = {}
    for method in methods:
        values[method] = compared(
            models_for(method, models), distances[method], args.jobs
        )
        if bar is not None:
            bar.update()
    if wanted(args, ["mean/std"]):
        values["mean/std"] = mean_std(sequences)
    found = warped(sequences, args)
    if found is not None:
        values["DTW"] = found
    return values


def kernel_svm(distances, train):
    """Kernel of a distance matrix, and a search for the SVM that uses it.

    The width of the kernel is the median distance of the training part.
    """
    kernel = np.exp(-distances / np.median(distances[np.ix_(train, train)]))
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": [1, 10, 100]}, cv=folds)
    return kernel, search


def svm_hits(distances, y, train, test):
    """Whether the SVM on the kernel classifies each item of the test part correctly."""
    kernel, search = kernel_svm(distances, train)
    search.fit(kernel[np.ix_(train, train)], y[train])
    return search.predict(kernel[np.ix_(test, train)]) == y[test]


def svm_cross_validated(distances, y, seed, *, queries=None, groups=None):
    """Accuracy of an SVM (C = 10) on that kernel in five-fold cross-validation.

    `queries` are the distances of the test items, if they differ; with `groups`, all
    items of a group are tested together and only classes known from others count.
    """
    n_folds = min(5, np.unique(y, return_counts=True)[1].min())
    if groups is None:
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(y, y)
    else:
        folds = GroupKFold(5 if len(set(groups)) > 4 else 2).split(y, y, groups)
    width = np.median(distances)
    tested = distances if queries is None else queries
    hits = []
    for train, test in folds:
        known = test[np.isin(y[test], y[train])]
        if known.size:
            svm = SVC(kernel="precomputed", C=10)
            svm.fit(np.exp(-distances[np.ix_(train, train)] / width), y[train])
            found = svm.predict(np.exp(-tested[np.ix_(known, train)] / width))
            hits.extend(found == y[known])
    return float(np.mean(hits))


def scores(distances, y):
    """Mean average precision, area under the ROC and 1-NN accuracy of retrieval."""
    return (
        float(np.nanmean(average_precision(distances, y))),
        float(np.nanmean(retrieval_auc(distances, y))),
        float(np.mean(precision_at_k(distances, y))),
    )


def across_groups(distances, y, groups):
    """Mean average precision and 1-NN accuracy among items of other groups.

    Queries without a relevant item in another group are left out.
    """
    kept = []
    for i, group in enumerate(groups):
        others = groups != group
        if np.any(y[others] == y[i]):
            row = distances[i : i + 1, others], y[others], y[i : i + 1]
            kept.append((average_precision(*row)[0], precision_at_k(*row)[0]))
    return np.mean(kept, axis=0)


# Data


@lru_cache(maxsize=8)
def mocap(size, groups, seed, fraction=1.0):
    """Motions, or generated sequences of the same shape, and a remark saying which."""
    if size == "smoke":
        return _generated_motions(size, groups, seed)
    try:
        data = load_cmu_mocap(groups=groups)
    except FileNotFoundError:
        return _generated_motions(size, groups, seed)
    kept = [
        np.random.default_rng(seed).permutation(np.flatnonzero(data.target == label))
        for label in np.unique(data.target)
    ]
    kept = np.sort(
        np.concatenate([k[: max(4, round(fraction * len(k)))] for k in kept])
    )
    part = [data.data[i] for i in kept]
    note = (
        f"Data: {len(kept)} of the {len(data.data)} CMU motions at hand (the paper has "
        f"337), {groups} joint groups, 30 frames a second."
    )
    return part, data.target[kept], data.subjects[kept], data.groups, note


def _generated_motions(size, groups, seed):
    n_channels, n_each = (62, 12) if size != "smoke" else (8, 8)
    y_count = 7 if size != "smoke" else 3
    X, y = make_hmm_sequences(
        y_count * n_each,
        n_classes=y_count,
        n_features=n_channels,
        separation=0.5 if size != "smoke" else 2.0,
        random_state=seed,
    )
    parts = np.array_split(np.arange(n_channels), groups if size != "smoke" else 2)
    named = {f"group_{i}": part for i, part in enumerate(parts)}
    subjects = np.arange(len(X)) // y_count % 4
    note = (
        f"Data: {len(X)} generated sequences of {n_channels} channels, since the CMU "
        "motions were not found (set SKAWHMM_DATA); the paper's numbers do not apply."
    )
    return X, y, subjects, named, note


@lru_cache(maxsize=4)
def phonemes(size, seed, window=0.004, hop=0.002):
    """Concatenated phonemes of TIMIT, or synthetic ones, and a remark saying which."""
    if size == "smoke":
        return _generated_phonemes(size, seed)
    try:
        data = load_timit(
            n_phones=39, window=window, hop=hop, concat=20, random_state=seed
        )
    except FileNotFoundError:
        return _generated_phonemes(size, seed)
    train = np.flatnonzero(data.split == "train")
    test = np.flatnonzero(data.split == "test")
    n_speakers = len(np.unique(data.segments.speaker))
    n_utterances = len(np.unique(data.segments.utterance))
    note = (
        f"Data: TIMIT, {n_utterances} utterances of {n_speakers} speakers (the paper "
        f"has 6300), concatenated by 20 to {len(train)} training and {len(test)} test "
        f"segments (the paper: 2218 and 795), window {1e3 * window:g} ms, step "
        f"{1e3 * hop:g} ms; no speaker is in both parts."
    )
    return data.data, data.target, train, test, note


def _generated_phonemes(size, seed):
    few = {"phonemes": ("aa", "iy", "s", "m")} if size == "smoke" else {}
    n_speakers = 3 if size == "smoke" else 8
    X, y, speakers = make_phonemes(n_speakers, 2, deltas=2, random_state=seed, **few)
    is_test = speakers >= n_speakers - max(n_speakers // 4, 1)
    train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    note = (
        f"Data: {len(X)} synthetic phonemes, since TIMIT was not found (set "
        "SKAWHMM_DATA); the paper's numbers do not apply."
    )
    return X, y, train, test, note


# Pictures


def panels(n_rows, n_columns, *, width=3.0, height=2.6, **kwargs):
    """Return a figure and its axes, always as a matrix."""
    return plt.subplots(
        n_rows,
        n_columns,
        figsize=(max(width * n_columns, 5), height * n_rows + 0.6),
        squeeze=False,
        layout="constrained",
        **kwargs,
    )


def legend_below(figure, ax, n_columns=4):
    """Put one legend for all panels below them."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=n_columns, frameon=False
    )


def line(ax, x, values, method, **kwargs):
    """Draw a line in the style of a method."""
    style = {**STYLES[method], "label": method, "markersize": 4, "linewidth": 1.4}
    ax.plot(x, values, **(style | kwargs))


def parallel(args, function, tasks, label=None):
    """Results of `function(args, *task)` in order, each task with one worker."""
    single = argparse.Namespace(**(vars(args) | {"jobs": 1}))
    workers = Parallel(n_jobs=args.jobs, prefer="threads", return_as="generator")
    results = workers(delayed(function)(single, *task) for task in tasks)
    bar = tqdm(results, label, len(tasks), leave=False, disable=label is None)
    return list(bar)


def progress(total, label):
    """Return a progress bar."""
    return tqdm(total=total, desc=label, leave=False)
