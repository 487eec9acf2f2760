"""Draw docs/_static/overview.png, the picture of the README and of the start page.

Run with ``python docs/make_overview.py``.
"""

from itertools import pairwise
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from skawhmm import HMMTransformer, pairwise_hmm_distances
from skawhmm.datasets import make_hmm_sequences
from skawhmm.plot import HMMMapDisplay, RegistrationDisplay

OUT = Path(__file__).parent / "_static" / "overview.png"
STATES = ("#4477aa", "#ee6677", "#228833")


def draw_course(ax, x, path, colors, name):
    """Draw a sequence over the colours of its states."""
    turns = np.flatnonzero(np.diff(path)) + 1
    edges = [0, *turns, len(path)]
    for start, end in pairwise(edges):
        ax.axvspan(start, end, color=colors[path[start]], alpha=0.3, lw=0)
    ax.plot(np.arange(len(x)) + 0.5, x, color="0.15", lw=0.9)
    ax.set(yticks=[], xlim=(0, len(x)), ylabel=name)
    ax.spines[["top", "right", "left"]].set_visible(False)


def pair(models):
    """Return a model that uses all its states, and its nearest neighbour."""
    distances = pairwise_hmm_distances(models)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argmin(axis=1)
    used = models.weights.min(axis=1)
    best = int(np.argmax(np.minimum(used, used[nearest])))
    return best, int(nearest[best])


def main():
    X, y = make_hmm_sequences(
        n_sequences=160, n_classes=6, n_features=2, separation=3, random_state=1
    )
    models = HMMTransformer(n_components=3, random_state=0).fit_transform(X)
    plt.rcParams.update({"font.size": 9, "axes.titlesize": 10})
    figure = plt.figure(figsize=(10, 3.1), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=[1.1, 1, 1])
    courses = left.subplots(2, 1)
    a, b = pair(models)
    registered = RegistrationDisplay.from_models(
        models[a], models[b], names=("a", "b"), ax=middle.subplots()
    )
    registered.axes_[0].set(xticks=[], yticks=[], xlabel="", ylabel="")
    paths, _ = models[[a, b]].decode([X[a], X[b]])
    match = np.asarray(registered.plan).argmax(axis=0)
    draw_course(courses[0], X[a], paths[0], STATES, "a")
    draw_course(courses[1], X[b], paths[1], [STATES[k] for k in match], "b")
    courses[0].set_xticks([])
    courses[1].set_xlabel("time")
    HMMMapDisplay.from_models(models, y, ax=right.subplots())
    right.axes[0].get_legend().remove()
    for part, title in zip(
        (left, middle, right),
        (
            "1  each sequence becomes a model",
            "2  transport matches states",
            "3  distances become maps",
        ),
        strict=True,
    ):
        part.suptitle(title, x=0.02, ha="left", fontsize=10, weight="bold")
    OUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUT, dpi=125)


if __name__ == "__main__":
    main()
