"""Cross-validated phoneme classification with a search over alpha.

Phonemes are synthesised (34 of them, by several speakers), or come from the TIMIT
sample if the folder named by the environment variable SKAWHMM_DATA contains it. No
speaker is in both the training and the test part. The folder demo_output receives the
figures, and a map to explore in a browser.

Run: make demo
"""

import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import ConfusionMatrixDisplay, accuracy_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from skawhmm import (
    AlphaCurveDisplay,
    AlphaMixer,
    Framewise,
    HMMEmbedding,
    HMMMapDisplay,
    HMMTransformer,
    KNeighborsHMMClassifierCV,
    PairwiseHMMDistance,
    RegistrationDisplay,
    TimeChannel,
)
from skawhmm.datasets import load_timit, make_phonemes

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("demo_output")
ALPHAS = np.linspace(0, 1, 101)


def load():
    """Return sequences, labels, speakers and where they come from."""
    try:
        bunch = load_timit(concat=20, n_phones=39)
    except FileNotFoundError:
        X, y, speakers = make_phonemes(n_speakers=6, random_state=0)
        return X, np.asarray(y), np.asarray(speakers), "synthesised phonemes"
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


def folds(speakers):
    n_splits = min(3, len(np.unique(speakers)))
    return list(GroupKFold(n_splits).split(speakers, groups=speakers))


def accuracy(name, estimator, X, y, cv):
    """Print the cross-validated accuracy of an estimator; return its predictions."""
    start = time.perf_counter()
    guesses = np.empty_like(y)
    for train, test in tqdm(cv, name, leave=False):
        fitted = estimator.fit([X[i] for i in train], y[train])
        guesses[test] = fitted.predict([X[i] for i in test])
    seconds = time.perf_counter() - start
    print(f"  {name:46} {accuracy_score(y, guesses):.3f}   {seconds:6.1f} s")
    return guesses


def main():
    OUT.mkdir(exist_ok=True)
    X, y, speakers, source = load()
    frames = sum(len(x) for x in X)
    print(f"\nData: {source}")
    print(
        f"  {len(X)} sequences of {X[0].shape[1]} features ({frames} frames), "
        f"{len(np.unique(y))} phonemes, {len(np.unique(speakers))} groups of speakers\n"
    )
    cv = folds(speakers)
    print("Accuracy on speakers that were not heard in training:")
    baseline = make_pipeline(StandardScaler(), KNeighborsClassifier(1))
    guesses = cross_val_predict(baseline, summary_features(X), y, cv=cv)
    print(
        f"  {'1-NN, means and deviations of channels':46} "
        f"{accuracy_score(y, guesses):.3f}"
    )
    # A phoneme begins, lasts and ends: three states in a fixed order, and the time.
    hmm = HMMTransformer(
        3, topology="left-to-right", keep_sequences=True, random_state=0
    )
    hmm = make_pipeline(Framewise(StandardScaler()), TimeChannel(), hmm)
    knn = KNeighborsHMMClassifierCV(alphas=ALPHAS, n_neighbors=(1, 3, 5))
    pipeline = Pipeline([("hmm", hmm), ("knn", knn)])
    found = accuracy("k-NN on MAW, alpha and k by leave-one-out", pipeline, X, y, cv)
    embedding = make_pipeline(
        Framewise(StandardScaler()),
        HMMEmbedding(random_state=0),
        RidgeClassifierCV(np.logspace(-3, 3, 13)),
    )
    accuracy("ridge on HMMEmbedding", embedding, X, y, cv)
    search(hmm, X, y, cv)
    draw(pipeline.fit(X, y), X, y, found)


def search(hmm, X, y, cv):
    """Search alphas with an ordinary GridSearchCV; distances are computed once."""
    start = time.perf_counter()
    models = hmm.fit_transform(X, y)
    components = PairwiseHMMDistance(output="components").fit_transform(models)
    vote = KNeighborsClassifier(metric="precomputed")
    grid = {
        "alphamixer__alpha": ALPHAS[::5],
        "kneighborsclassifier__n_neighbors": [1, 3, 5],
    }
    found = GridSearchCV(make_pipeline(AlphaMixer(), vote), grid, cv=cv)
    found.fit(components, y)
    seconds = time.perf_counter() - start
    best = found.best_params_
    print(
        f"\nGridSearchCV over 21 alphas x 3 k, from one matrix: accuracy "
        f"{found.best_score_:.3f}\n  at alpha {best['alphamixer__alpha']:.2f}, k "
        f"{best['kneighborsclassifier__n_neighbors']}, {seconds:.1f} s"
    )


def draw(pipeline, X, y, found):
    """Save the figures and the explorer."""
    models = pipeline[:-1].transform(X)
    AlphaCurveDisplay.from_estimator(pipeline[-1])
    save("alpha_curve")
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
    save("confusion_matrix")
    _, ax = plt.subplots(figsize=(8, 8), layout="constrained")
    chart = HMMMapDisplay.from_models(models, y, alpha=pipeline[-1].alpha_, ax=ax)
    save("map")
    chart.to_html(OUT / "explorer.html", title="Phonemes")
    a, b = alike(models, y, chart.distances)
    names = f"[{y[a]}] number {a}", f"[{y[b]}] number {b}"
    RegistrationDisplay.from_models(models[a], models[b], names=names)
    save("registration")
    print(
        f"\nIn the folder {OUT}/: {', '.join(sorted(p.name for p in OUT.iterdir()))}"
        f"\n\nTry next: open {OUT}/explorer.html in a browser and click a point;"
        "\n  SKAWHMM_DATA=/path/to/timit make demo; metric='iaw', 'kl' or 'coupling' in"
        "\n  examples/demo.py; your own sequences, a list of arrays of shape"
        "\n  (n_timesteps, n_features); and the tutorial: make docs"
    )


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


if __name__ == "__main__":
    main()
