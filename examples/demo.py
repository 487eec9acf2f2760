"""A tour in three parts: sequences in which order matters, two groups, phonemes.

1. Two classes of sequences differ only in the order of their frames.
2. Two groups of subjects, one model per subject: do they differ, and in which state?
3. Phonemes are classified, cross-validated over speakers, and shown on a map. They are
   synthesised (34 of them, by several speakers), or come from the TIMIT sample if the
   folder named by the environment variable SKAWHMM_DATA contains it.

The folder demo_output receives the figures, and a map to explore in a browser.

Run: make demo
"""

import time
from pathlib import Path
from textwrap import fill, indent

import matplotlib as mpl
import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay, accuracy_score
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tqdm import tqdm

from skawhmm import (
    AlphaMixer,
    Framewise,
    HMMBatch,
    HMMTransformer,
    KNeighborsHMMClassifier,
    KNeighborsHMMClassifierCV,
    PairwiseHMMDistance,
    dynamics_gain,
    hmm_group_test,
    make_classifier,
)
from skawhmm.datasets import load_timit, make_hmm_sequences, make_phonemes
from skawhmm.groups import HMMAligner, state_effects
from skawhmm.plot import (
    EffectsDisplay,
    HMMMapDisplay,
    RegistrationDisplay,
    StateSummaryDisplay,
)
from skawhmm.sequences import TimeChannel

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("demo_output")
ALPHAS = np.linspace(0, 1, 101)
COLORS = {"maw": "#D55E00", "jaw": "#0072B2"}


# 1. Order


def order():
    """Compare MAW and JAW on classes that differ in their transitions only."""
    X, y = make_hmm_sequences(
        150, differ_in="transitions", separation=0.6, n_timesteps=60, random_state=0
    )
    print("\n1. Order: 150 sequences, two classes, the same states in another order")
    hmm = HMMTransformer(3, random_state=0)
    _, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
    for metric, color in COLORS.items():
        knn = KNeighborsHMMClassifierCV(n_neighbors=1, metric=metric, hmm=hmm)
        knn.fit(X, y)
        ax.plot(knn.alphas_, knn.scores_.ravel(), color=color, label=metric.upper())
        print(
            f"   {metric.upper()}: 1-NN {knn.scores_.ravel()[0]:.3f} by states alone, "
            f"{knn.best_score_:.3f} with transitions (alpha {knn.alpha_:.2f})"
        )
    ax.set(xlabel="alpha", ylabel="accuracy of 1-NN, leaving one out", ylim=(0.4, 1))
    ax.legend(loc="lower right", frameon=False)
    save("order_alpha")
    knn = KNeighborsHMMClassifier(1, metric="jaw", hmm=hmm)
    gain = dynamics_gain(X, y, estimator=knn, random_state=0)
    print(indent(fill(f"dynamics_gain: {gain.meaning}", 80), "   "))


# 2. Groups


def groups():
    """Test whether two groups of separately fitted models differ, and where."""
    rng = np.random.default_rng(0)
    group = np.repeat(["control", "patient"], 20)
    stay = np.where(group == "patient", 0.85, 0.7) + rng.normal(0, 0.04, 40)
    subjects = HMMBatch(
        transmats=[
            [[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.7 * (1 - s), 0.3 * (1 - s), s]]
            for s in stay
        ],
        means=rng.normal([[0, 0], [6, 0], [3, 6]], 0.4, (40, 3, 2)),
        covars=np.ones((40, 3, 2)),
    )
    recordings, _ = subjects.sample(400, random_state=0)
    models = HMMTransformer(3, random_state=0).fit_transform(recordings)
    print(
        "\n2. Groups: 20 controls, 20 patients who stay longer in one of their states"
    )
    result = hmm_group_test(models, group, random_state=0)
    print(indent(result.report(), "   "))
    aligner = HMMAligner("medoid").fit(models)
    effects = state_effects(models, group, reference=aligner, random_state=0)
    print("   What differs most:")
    print(indent("\n".join(str(effects).splitlines()[2:6]), "   "))
    _, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    EffectsDisplay.from_effects(effects, max_rows=8, ax=axes[0])
    StateSummaryDisplay.from_models(
        models, group, "dwell_time", reference=aligner, ax=axes[1]
    )
    save("groups_states")


# 3. Phonemes


def phonemes():
    """Classify phonemes of speakers that are not in the training data."""
    X, y, speakers, source = load_phonemes()
    print(f"\n3. Phonemes: {source}")
    print(
        f"   {len(X)} sequences of {X[0].shape[1]} features, "
        f"{len(np.unique(y))} phonemes, {len(np.unique(speakers))} groups of speakers"
    )
    cv = list(GroupKFold(min(3, len(np.unique(speakers)))).split(y, groups=speakers))
    print(
        f"   Guessing would be right in {1 / len(np.unique(y)):.2f} of the cases. "
        "Accuracy on new speakers:"
    )
    summary = make_pipeline(
        FunctionTransformer(summary_features), StandardScaler(), KNeighborsClassifier(1)
    )
    accuracy("means and deviations: 1-NN", summary, X, y, cv)
    # A phoneme begins, lasts and ends: three states in a fixed order, and the time.
    # It is short, so its model is adapted from one that is fitted to all phonemes.
    states = HMMTransformer(
        3,
        topology="left-to-right",
        prior="pooled",
        keep_sequences=True,
        random_state=0,
    )
    hmm = make_pipeline(Framewise(StandardScaler()), TimeChannel(), states)
    for metric in COLORS:
        knn = KNeighborsHMMClassifierCV(
            alphas=ALPHAS, n_neighbors=(1, 3, 5), metric=metric
        )
        name = f"{metric.upper()}: k-NN, alpha and k by search"
        found = accuracy(name, make_pipeline(hmm, knn), X, y, cv)
    recommended = make_classifier(n_jobs=2, random_state=0)
    accuracy("recommended: make_classifier()", recommended, X, y, cv)
    models = hmm.fit_transform(X, y)
    search(models, y, cv)
    confusion(y, found)
    explorer(models, y)


def load_phonemes():
    """Return sequences, labels, speakers and where they come from."""
    try:
        bunch = load_timit(concat=20, n_phones=39)
    except FileNotFoundError:
        X, y, speakers = make_phonemes(n_speakers=6, random_state=0)
        return X, np.asarray(y), np.asarray(speakers), "synthesised"
    keep = np.isin(bunch.target, common_labels(bunch.target, 6))
    X = [x for x, kept in zip(bunch.data, keep, strict=True) if kept]
    y, speakers = np.asarray(bunch.target)[keep], np.asarray(bunch.split)[keep]
    return X, y, speakers, "TIMIT sample, groups of 20 segments"


def common_labels(labels, least):
    names, counts = np.unique(labels, return_counts=True)
    return names[counts >= least]


def summary_features(X):
    """The trivial baseline: mean and standard deviation of each channel."""
    return np.array([np.r_[x.mean(axis=0), x.std(axis=0)] for x in X])


def accuracy(name, estimator, X, y, cv):
    """Print the cross-validated accuracy of an estimator; return its predictions."""
    start = time.perf_counter()
    guesses = np.empty_like(y)
    for train, test in tqdm(cv, name, leave=False):
        fitted = estimator.fit([X[i] for i in train], y[train])
        guesses[test] = fitted.predict([X[i] for i in test])
    seconds = time.perf_counter() - start
    print(f"     {name:42} {accuracy_score(y, guesses):.3f}   {seconds:5.1f} s")
    return guesses


def search(models, y, cv):
    """Search alphas with an ordinary GridSearchCV; distances are computed once."""
    start = time.perf_counter()
    distance = PairwiseHMMDistance(metric="jaw", output="components")
    vote = KNeighborsClassifier(metric="precomputed")
    grid = {
        "alphamixer__alpha": ALPHAS[::5],
        "kneighborsclassifier__n_neighbors": [1, 3, 5],
    }
    found = GridSearchCV(make_pipeline(AlphaMixer(), vote), grid, cv=cv)
    found.fit(distance.fit_transform(models), y)
    best = found.best_params_
    print(
        "   The same in an ordinary GridSearchCV, 21 alphas and 3 k from one matrix:\n"
        f"     JAW at alpha {best['alphamixer__alpha']:.2f}, "
        f"k {best['kneighborsclassifier__n_neighbors']}"
        f"{found.best_score_:23.3f}   {time.perf_counter() - start:5.1f} s"
    )


def confusion(y, found):
    _, ax = plt.subplots(figsize=(9, 8), layout="constrained")
    ConfusionMatrixDisplay.from_predictions(
        y,
        found,
        ax=ax,
        include_values=False,
        xticks_rotation="vertical",
        cmap="Blues",
        normalize="true",
    )
    ax.set(xlabel="found", ylabel="said")
    save("phonemes_confusion")


def explorer(models, y):
    """Save a map of the phonemes, and two of them with their states registered."""
    _, ax = plt.subplots(figsize=(10, 5.5), layout="constrained")
    chart = HMMMapDisplay.from_models(models, y, metric="jaw", ax=ax)
    save("phonemes_map")
    chart.to_html(OUT / "explorer.html", title="Phonemes")
    a, b = alike(models, y, chart.distances)
    names = f"[{y[a]}] number {a}", f"[{y[b]}] number {b}"
    RegistrationDisplay.from_models(models[a], models[b], names=names)
    save("phonemes_registration")


def alike(models, y, distances):
    """Return a model whose states are all used and far apart, and one close to it."""
    used = models.weights.min(axis=1) * models.means.std(axis=1).mean(axis=1)
    others = np.where(y[:, None] == y, distances, np.inf)
    np.fill_diagonal(others, np.inf)
    nearest = others.argmin(axis=1)
    best = int(np.argmax(np.minimum(used, used[nearest])))
    return best, int(nearest[best])


def save(name):
    plt.savefig(OUT / f"{name}.png", dpi=150, bbox_inches="tight")
    plt.close()


def main():
    OUT.mkdir(exist_ok=True)
    order()
    groups()
    phonemes()
    print(
        f"\nFigures in {OUT}/:"
        "\n   order_alpha.png            accuracy against the weight of transitions"
        "\n   groups_states.png          which states and transitions differ"
        "\n   phonemes_confusion.png     which phonemes are mistaken for others"
        "\n   phonemes_map.png           all phonemes, similar ones close together"
        "\n   phonemes_registration.png  the states of two phonemes, matched"
        "\n   explorer.html              the map in a browser: click a point"
        "\n\nTry next: the tutorial (make docs, docs/_build/html/tutorial.html), and"
        "\nyour own sequences, a list of arrays of shape (n_timesteps, n_features)."
    )


if __name__ == "__main__":
    main()
